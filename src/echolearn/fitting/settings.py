"""The parameters of estimators: what each may be, and which of them exclude each other."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator

from echolearn import validation
from echolearn.execution.threads import on_worker_thread, thread_count
from echolearn.fitting.parameters import Parameters, equal
from echolearn.gradients.loss import GRADIENT_RULES
from echolearn.modelfile.checkpoint import matrix_fingerprint, weights_fingerprint
from echolearn.readout.ridge import RIDGE_PATH
from echolearn.readout.solver import Ridge
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.reservoir._rules import RESERVOIR_RULES
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.layouts import LAYOUTS
from echolearn.sequences.split import MIN_SEQUENCES_TO_HOLD_OUT
from echolearn.training.cost_model import Job
from echolearn.training.objectives.ridge import LearningPlan
from echolearn.training.optimizers import default_step_size
from echolearn.validation import (
    BOOLEAN,
    NON_NEGATIVE,
    POSITIVE,
    Array,
    Rule,
    any_of,
    is_list,
    is_number,
    number,
    one_of,
    or_none,
    whole_number,
)


def _is_list_of_ridges(value: object) -> bool:
    return is_list(value) and len(value) > 0 and all(is_number(v) and v > 0 for v in value)


def _is_table_of_weights(value: Mapping[object, object]) -> bool:
    return all(is_number(v) and v >= 0 for v in value.values()) and any(v != 0 for v in value.values())


def _is_block_and_reach(value: object) -> bool:
    return is_list(value) and len(value) == 2 and whole_number(1).allows(value[0]) and whole_number(0).allows(value[1])


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
    "feedback": BOOLEAN,
    "direct": BOOLEAN,
    "fit_intercept": BOOLEAN,
    "input_noise": NON_NEGATIVE,
    "method": one_of("auto", "closed_loop", "direct"),
    "neighbourhood": Rule(
        lambda v: v is None or whole_number(0).allows(v) or _is_block_and_reach(v),
        "None, a whole number >= 0 of points on each side, or a pair (points forecast together, points on each side)",
    ),
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
SERIES_RULES = {  # of estimators of whole series
    **RULES,
    "washout": whole_number(0),
    "hidden_units": any_of(
        one_of("auto"), whole_number(1), expected="a whole number >= 1, or 'auto' (by the amount of data)"
    ),
}
DEEP_RULES: dict[str, Rule] = {
    **RULES,
    "units": Rule(
        lambda v: whole_number(2).allows(v) and int(cast(int, v)) % 2 == 0,
        "an even whole number >= 2: units come in pairs",
    ),
    "layers": whole_number(1),
    "dropout": or_none(number(lambda v: 0 <= v < 1, "a number in [0, 1)"), "by the number of weights per target"),
    "leak": Rule(
        lambda v: isinstance(v, tuple) and len(v) == 2 and all(map(is_number, v)) and 0 < v[0] <= v[1] < 1,
        "a pair of numbers (low, high), 0 < low <= high < 1",
    ),
    "angle": number(lambda v: 0 <= v <= np.pi, "a number in [0, pi]"),
    "augment": Rule(lambda v: v is None or callable(v), "None, or a function of a sequence and a generator"),
    "readout": one_of("softmax", "ridge"),
    "label_smoothing": number(lambda v: 0 <= v < 1, "a number in [0, 1)"),
    "step_size": number(lambda v: v > 0, "a number > 0"),
    "batch_size": whole_number(1),
    "patience": or_none(whole_number(1), "no early stopping"),
}


def check_each(settings: Parameters) -> None:
    """Raise ValueError for the first setting that breaks its rule."""
    validation.check_each(settings, RULES)


def check_deep(settings: Parameters) -> None:
    """Raise ValueError for a setting of a deep network that breaks its rule, or for two that exclude each other."""
    validation.check_each(settings, DEEP_RULES)
    if settings["bidirectional"] and settings["units"] < 4:
        raise ValueError(
            f"bidirectional=True with units={settings['units']}: there must be a pair of units for each direction. "
            "Give 4 or more, or bidirectional=False."
        )


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
            "learning={'learn_leak': False} and feedback=False, or gradient='exact'."
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
    """Raise ValueError where a given matrix excludes other settings."""
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


def with_reservoir(params: Parameters) -> Parameters:
    """Return the parameters of an estimator, with those that a given reservoir decides taken from it."""
    reservoir = params.get("reservoir")
    if not isinstance(reservoir, Reservoir):
        return params
    taken = _taken_from(reservoir)
    taken |= {"topology": "random", "connections": max(1, reservoir.W_rec.nnz // reservoir.N)}
    if params.get("renormalize") is True:
        taken["spectral_radius"] = spectral_radius_of(reservoir.W_rec)
    return {**params, **taken}


def _taken_from(reservoir: Reservoir) -> dict[str, object]:
    return {
        "hidden_units": reservoir.N,
        "activation": reservoir.activation,
        "leak": reservoir.leak,
        "feedback": reservoir.W_fb is not None,
        "bidirectional": reservoir.backward is not None,
        "initial_state": reservoir.initial_state,
    }


def check_beside_reservoir(estimator: BaseEstimator) -> None:
    """Raise ValueError if a parameter of the estimator is neither at its default nor what its reservoir has."""
    params = estimator.get_params(deep=False)
    reservoir = params.get("reservoir")
    if not isinstance(reservoir, Reservoir):
        return
    defaults = inspect.signature(type(estimator)).parameters
    for name, own in _taken_from(reservoir).items():
        given = params.get(name, own)
        if name in defaults and not equal(given, defaults[name].default) and not equal(given, own):
            raise ValueError(
                f"{name}={given!r:.60} beside reservoir=, which has {name}={own!r:.60}. Leave {name} out, or give "
                "another reservoir (reservoir.with_weights(...) replaces single weights)."
            )
    if params.get("ensemble", 1) != 1:
        raise ValueError(f"ensemble={params['ensemble']!r} beside reservoir=; expected 1: it is one network.")


def fitting_reservoir(reservoir: Reservoir, n_in: int, n_out: int) -> Reservoir:
    """Return the given reservoir if it takes the inputs and outputs of the data, or raise ValueError."""
    if reservoir.n_in != n_in:
        raise ValueError(f"reservoir has {reservoir.n_in} inputs (W has shape {reservoir.W.shape}); X has {n_in}.")
    if reservoir.W_fb is not None and reservoir.W_fb.shape[1] != n_out:
        raise ValueError(
            f"reservoir feeds back {reservoir.W_fb.shape[1]} outputs (W_fb has shape {reservoir.W_fb.shape}); y makes "
            f"{n_out}: one per class, or one per column of values."
        )
    return reservoir


def reservoir_fingerprint(reservoir: Reservoir) -> str:
    """Return a hash of everything that a reservoir is, for a checkpoint."""
    arrays = {**reservoir.weights(), "initial_state": reservoir.initial_state, "backward": reservoir.backward}
    known = {name: value for name, value in arrays.items() if value is not None}
    return weights_fingerprint(known, (reservoir.activation, matrix_fingerprint(reservoir.W_rec)))


def ridge_choice(given: str | float | Sequence[float], path: Sequence[float] | Array = RIDGE_PATH) -> Ridge:
    """Return a ridge given as a number, or the function from the mean diagonal of G to those to choose from."""
    if isinstance(given, Real):
        return float(given)
    if isinstance(given, str):
        return lambda diagonal: np.asarray(path) * diagonal
    return lambda diagonal: cast("Sequence[float]", given)


DEFAULT_UPDATES = 400  # of the weights, where `epochs` is None: as many epochs as they take,
MIN_DEFAULT_EPOCHS = 8  # and never fewer than these
MINIBATCH_SEQUENCES = 8  # in a mini-batch, where batch_size is "auto" and there is much data
MIN_SERIES_STEPS = 100  # from which on a sequence is a long series
MAX_AUTO_WASHOUT_STEPS, STEPS_PER_AUTO_WASHOUT = 100, 10  # washout="auto" of few such series is a tenth of the steps


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSize:
    """What the cost of a fit depends on in its data: lengths of the sequences, inputs, outputs, held-out frames."""

    lengths: Array
    n_in: int
    n_out: int
    held_out: int = 0


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The parameters of an estimator; those that it does not have are at their defaults.

    ridge_path: the ridges that "auto" chooses from, in units of the mean diagonal of the Gram matrix. time_folds:
    whether a ridge for a few long series is chosen by folds of time, and their learned weights must be better.
    """

    hidden_units: int
    spectral_radius: float | None
    connections: int
    input_scaling: float | Sequence[float]
    bias_scaling: float
    activation: str
    leak: float | tuple[float, float] | Array
    learn_leak: bool
    initial_state: ArrayLike | None
    washout: int | str
    direct: bool
    fit_intercept: bool = True
    ridge: str | float | Sequence[float]
    learn: str
    lookback: int | None
    optimizer: str
    step_size: float | None
    epochs: int | None
    batch_size: int | str | None
    clip: float | None
    renormalize: bool
    validation_fraction: float
    patience: int | str | None
    dtype: str
    random_state: int | np.random.Generator | None
    verbose: int
    standardize: bool = False
    state_noise: float = 0.0
    missing: str = "error"
    ensemble: int = 1
    reservoir: Reservoir | None = None
    topology: str | Array | sparse.csr_array = "random"
    bidirectional: bool = False
    feedback: bool = False
    feedback_scaling: float = 1.0
    readout: str = "ridge"
    targets: str = "all"
    gradient: str = "exact"
    case: int = 2
    momentum: str = "fista"
    refine_epochs: int = 0
    layout: str = "auto"
    ridge_path: Sequence[float]
    time_folds: bool

    @classmethod
    def of(
        cls, params: Parameters, *, ridge_path: Sequence[float] = tuple(RIDGE_PATH), time_folds: bool = True
    ) -> NetworkSettings:
        """Return the settings of an estimator with these parameters, checked; a given reservoir decides on some."""
        params = with_reservoir(params)
        check(params)
        names = {field.name for field in fields(cls)}
        return cls(
            **{name: value for name, value in params.items() if name in names},
            ridge_path=ridge_path,
            time_folds=time_folds,
        )

    @property
    def softmax(self) -> bool:
        return self.readout == "softmax"

    @property
    def learns(self) -> bool:
        """Whether anything but the readout is learned."""
        return self.learn != "none" and self.epochs != 0

    def resolved(self, lengths: Array) -> NetworkSettings:
        """Return the settings for data of these lengths: a washout that is "auto" becomes a number.

        The transient at the start of a few long series spoils the fit of all the rest, while many sequences are all
        starts: what the network answers there is part of the task.
        """
        if self.washout != "auto":
            return self
        few = len(lengths) < MIN_SEQUENCES_TO_HOLD_OUT and min(lengths) >= MIN_SERIES_STEPS
        return replace(
            self, washout=min(MAX_AUTO_WASHOUT_STEPS, int(min(lengths)) // STEPS_PER_AUTO_WASHOUT) if few else 0
        )

    def for_inputs(self, n_features: int, n_in: int) -> NetworkSettings:
        """Return the settings for inputs that also have flags of gaps, scaled like an average feature."""
        if n_in == n_features or np.shape(self.input_scaling) != (n_features,):
            return self
        given = np.asarray(self.input_scaling, dtype=np.float64)
        return replace(self, input_scaling=np.append(given, np.full(n_in - n_features, given.mean())).tolist())

    @property
    def washout_steps(self) -> int:
        """The washout as a number; "auto" has become one in `resolved`."""
        return 0 if isinstance(self.washout, str) else int(self.washout)

    def task(self) -> Task:
        """Return what the weights learn from."""
        return Task(self.washout_steps, self.direct, self.lookback, self.targets, intercept=self.fit_intercept)

    @property
    def minibatch(self) -> int | None:
        """The sequences per mini-batch, or None for all at once; "auto" is for much data."""
        return MINIBATCH_SEQUENCES if isinstance(self.batch_size, str) else self.batch_size

    def epochs_for(self, sequences: int) -> int:
        """Return the epochs given, or enough for `DEFAULT_UPDATES` updates."""
        if self.epochs is not None:
            return int(self.epochs)
        batches = np.ceil(sequences / (self.minibatch or sequences))
        return max(MIN_DEFAULT_EPOCHS, int(np.ceil(DEFAULT_UPDATES / batches)))

    def patience_for(self, epochs: int) -> int | None:
        """Return the patience given, or a quarter of the epochs."""
        return max(5, epochs // 4) if self.patience == "auto" else cast("int | None", self.patience)

    @property
    def refines(self) -> bool:
        """Whether the last epochs are on the cross entropy."""
        return bool(self.learns and self.gradient == "exact" and self.softmax and self.refine_epochs > 0)

    def networks(self) -> int:
        """Return how many networks the hidden units are split into, each with a readout of its own."""
        most = self.hidden_units // 2 if self.bidirectional else self.hidden_units
        return int(min(most, self.ensemble))

    def ridge_choice(self) -> Ridge:
        """Return the ridge given, or the function from the mean diagonal of G to those to choose from."""
        return ridge_choice(self.ridge, self.ridge_path)

    def plan(self, ridge: float, epochs: int) -> LearningPlan:
        """Return how the weights are learned."""
        return LearningPlan(
            learn=self.learn,
            learn_leak=self.learn_leak,
            gradient=self.gradient,
            case=self.case,
            optimizer=self.optimizer,
            momentum=self.momentum,
            step_size=self.step_size or default_step_size(self.optimizer, self.hidden_units),
            epochs=epochs,
            batch_size=self.minibatch,
            clip=self.clip,
            renormalize=self.renormalize,
            spectral_radius=cast(float, self.spectral_radius),
            ridge=ridge,
            threads=1 if on_worker_thread() else 2,
        )

    def job(self, train: Dataset, held_out: Dataset | None, networks: int) -> Job:
        """Return the fit as the estimate of its cost sees it; networks: how many of its kind are fitted."""
        size = DataSize(
            lengths=train.lengths,
            n_in=train.X[0].shape[1],
            n_out=train.n_out,
            held_out=0 if held_out is None else held_out.frames,
        )
        return self.job_of_size(size, networks, threads=1 if on_worker_thread() else thread_count())

    def job_of_size(self, size: DataSize, networks: int, threads: int) -> Job:
        """Return the fit of data of this size as the estimate of its cost sees it."""
        sequences = len(size.lengths)
        batch = None if self.minibatch is None else int(min(self.minibatch, sequences) * size.lengths.mean())
        return Job(
            N=int(self.hidden_units),
            n_in=size.n_in,
            n_out=size.n_out,
            connections=min(self.connections, self.hidden_units),
            frames=int(size.lengths.sum()),
            held_out=size.held_out,
            longest=int(size.lengths.max()),
            epochs=0 if self.learn == "none" else self.epochs_for(sequences),
            refine_epochs=self.refine_epochs if self.refines else 0,
            batch=batch,
            softmax=self.softmax,
            choose=not isinstance(self.ridge, Real),
            direct=self.direct,
            itemsize=np.dtype(self.dtype).itemsize,
            threads=threads,
            networks=networks,
            bidirectional=self.bidirectional,
        )
