"""The parameters of estimators: what each may be, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from echolearn import validation
from echolearn.gradients.parameters import GRADIENT_RULES
from echolearn.reservoir.activations import BOUNDED
from echolearn.reservoir.parameters import RESERVOIR_RULES
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.layouts import LAYOUTS
from echolearn.validation import (
    BOOLEAN,
    NON_NEGATIVE,
    POSITIVE,
    Rule,
    any_of,
    is_list,
    is_number,
    number,
    one_of,
    or_none,
    whole_number,
)

Parameters = Mapping[str, Any]  # of an estimator, by their names


def _is_list_of_ridges(value: object) -> bool:
    return is_list(value) and len(value) > 0 and all(is_number(v) and v > 0 for v in value)


def _is_table_of_weights(value: Mapping[object, object]) -> bool:
    return all(is_number(v) and v >= 0 for v in value.values()) and any(v != 0 for v in value.values())


_BALANCED = one_of("balanced")

RULES: dict[str, Rule] = {
    **RESERVOIR_RULES,
    **GRADIENT_RULES,
    "washout": any_of(one_of("auto"), whole_number(0), expected="a whole number >= 0, or 'auto'"),
    "ensemble": whole_number(1),
    "reservoir": Rule(lambda v: v is None or isinstance(v, Reservoir), "None (one is drawn), or a Reservoir"),
    "bidirectional": BOOLEAN,
    "standardize": BOOLEAN,
    "state_noise": NON_NEGATIVE,
    "missing": one_of("error", "carry", "mean"),
    "learn_leak": BOOLEAN,
    "plasticity": or_none(number(lambda v: 1e-3 <= v <= 1, "a number from 0.001 to 1"), "no intrinsic plasticity"),
    "feedback": BOOLEAN,
    "pooling": any_of(
        one_of("auto", "summary"),
        GRADIENT_RULES["pooling"],
        expected="'auto', 'summary', 'mean', 'last', or a whole number >= 1 (into how many parts time is cut, each "
        "with its own mean)",
    ),
    "direct": BOOLEAN,
    "fit_intercept": BOOLEAN,
    "noise": NON_NEGATIVE,
    "method": one_of("auto", "closed_loop", "direct"),
    "horizon": or_none(whole_number(1), "two seasons, 8 to 48"),
    "season": any_of(
        one_of("auto"),
        or_none(whole_number(1), "no season"),
        expected="'auto', a whole number of steps, or None (no season)",
    ),
    "trend": any_of(one_of("auto"), BOOLEAN, expected="'auto', True or False"),
    "log": any_of(one_of("auto"), BOOLEAN, expected="'auto', True or False"),
    "ridge": Rule(
        lambda v: v == "auto" if isinstance(v, str) else (is_number(v) and v >= 0) or _is_list_of_ridges(v),
        "a number >= 0, a list of numbers > 0 to choose from, or 'auto'",
    ),
    "readout": one_of("ridge", "softmax"),
    "learn": one_of("none", "input", "both"),
    "case": one_of(1, 2),
    "optimizer": one_of("adam", "fista"),
    "solver": one_of("gram", "qr"),
    "loop_steps": whole_number(1),
    "momentum": one_of("fista", "printed"),
    "step_size": or_none(POSITIVE, "chosen from the number of hidden units"),
    "refine_epochs": whole_number(0),
    "joint_epochs": whole_number(0),
    "sees": one_of("output", "output+input", "output+hidden"),
    "epochs": or_none(whole_number(0), "as many as the data need"),
    "batch_size": any_of(
        one_of("auto"),
        or_none(whole_number(1), "all sequences at once"),
        expected="a whole number >= 1, None (all sequences at once), or 'auto' (by the amount of data)",
    ),
    "clip": or_none(POSITIVE, "no clipping"),
    "renormalize": BOOLEAN,
    "validation_fraction": number(lambda v: 0 <= v < 1, "a number in [0, 1); 0 holds nothing back"),
    "patience": any_of(
        one_of("auto"),
        or_none(whole_number(1), "no early stopping"),
        expected="a whole number >= 1, 'auto' (a quarter of the epochs), or None (no early stopping)",
    ),
    "class_weight": Rule(
        lambda v: _is_table_of_weights(v) if isinstance(v, Mapping) else v is None or _BALANCED.allows(v),
        "None, 'balanced', or a dict from labels to numbers >= 0, not all 0",
    ),
    "ignore_label": Rule(
        lambda v: v is None or isinstance(v, (str, bool, int, float, np.generic)),
        "one label, NaN (which stands for None too), or None (no label is ignored)",
    ),
    "layout": one_of(*LAYOUTS),
    "dtype": one_of("float32", "float64"),
    "verbose": any_of(
        BOOLEAN,
        whole_number(0),
        expected="0 (silent), 1 (one line per epoch) or 2 (one line per epoch, none rewritten)",
    ),
}


def check_each(settings: Parameters) -> None:
    """Raise ValueError for the first setting that breaks its rule."""
    validation.check_each(settings, RULES)


def check(settings: Parameters) -> None:
    """Raise ValueError for a setting that breaks its rule, or for two that exclude each other."""
    check_each(settings)
    _check_topology(settings)
    state, units = settings.get("initial_state"), settings.get("hidden_units")
    if state is not None and len(state) != units:
        raise ValueError(f"initial_state has shape ({len(state)},); expected {units} finite numbers, one per unit.")
    leak = settings.get("leak")
    if isinstance(leak, np.ndarray) and len(leak) != units:
        raise ValueError(f"leak has shape {leak.shape}; expected {units} numbers in (0, 1], one per unit.")
    if settings.get("bidirectional"):
        _check_directions(settings)
    leaky = leak is not None and bool(np.any(np.asarray(leak) != 1))
    unknown_to_paper = settings.get("feedback") or leaky or settings.get("learn_leak")
    if settings.get("gradient") == "printed" and settings.get("learn") != "none" and unknown_to_paper:
        raise ValueError(
            "gradient='printed': the paper's formulas know neither leak nor feedback. Set leak=1, "
            "learn_leak=False and feedback=False, or gradient='exact'."
        )


def _check_directions(settings: Parameters) -> None:
    """Raise ValueError where units that run from the end of a sequence exclude other settings."""
    for cannot, why in (
        (settings["hidden_units"] < 2, "hidden_units=1: there must be a unit for each direction. Give 2 or more"),
        (
            settings["feedback"],
            "feedback=True: what is fed back is not there yet at the end of a sequence. Set feedback=False",
        ),
        (settings["gradient"] == "printed", "gradient='printed': the paper's formulas run one way. Use 'exact'"),
        (
            not isinstance(settings["topology"], str),
            "topology is a matrix of all units, but each direction has a network of its own. Name a topology",
        ),
    ):
        if cannot:
            raise ValueError(f"bidirectional=True with {why}, or bidirectional=False.")


def _check_topology(settings: Parameters) -> None:
    """Raise ValueError where a given matrix, or intrinsic plasticity, excludes other settings."""
    topology = settings.get("topology", "random")
    given = not isinstance(topology, str)
    if given and topology.shape[0] != settings.get("hidden_units"):
        raise ValueError(
            f"topology is a matrix of shape {topology.shape}, but hidden_units={settings.get('hidden_units')!r}. "
            f"Set hidden_units={topology.shape[0]}."
        )
    if given and settings.get("ensemble", 1) > 1:
        raise ValueError(f"ensemble={settings['ensemble']!r}; expected 1, since topology is a matrix of all units.")
    if settings.get("spectral_radius", 1) is None and (not given or settings.get("renormalize")):
        raise ValueError(
            "spectral_radius=None; expected a number > 0, unless topology is a matrix to be taken as it is (and not "
            "renormalised). Set spectral_radius, for example 0.9."
        )
    if settings.get("plasticity") is not None:
        known = settings.get("activation") in BOUNDED and not settings.get("feedback")
        if not known or (settings.get("activation") == "sigmoid" and settings["plasticity"] >= 1):
            raise ValueError(
                f"plasticity={settings['plasticity']!r}; expected None, or tanh or sigmoid units (these with a "
                "plasticity below 1) without feedback."
            )
