"""Checks of names that a user wrote, such as the name of a setting."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


def check_name(name: object, known: Iterable[str], where: str) -> None:
    """Raise ValueError unless `name` is one of `known`.

    The message begins with `where` the name was given, and suggests the nearest known name, or lists all of them where
    none is near.
    """
    known = sorted(known)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{where}: there is no setting {name!r:.80}; {hint(name, known)}")


# Our settings, and what other libraries call them: scikit-learn, reservoirpy, PyRCN, reservoir-computing, Keras, ...
SYNONYMS = {
    "hidden_units": (
        "units n_units num_units n_reservoir n_reservoirs reservoir_size res_size N size n_hidden hidden hidden_size "
        "hidden_dim hidden_layer_size hidden_layer_sizes n_neurons n_nodes nodes n_internal_units"
    ),
    "spectral_radius": "sr rho radius lambda_ lam spectral_rad",
    "leak": "lr leak_rate leaky_rate leaking_rate leakage leaky a",
    "step_size": "lr learning_rate learning_rate_init eta step alpha_",
    "random_state": "seed random_seed rng rand_seed",
    "input_scaling": "input_scale input_gain scale_in w_in_scale in_scaling input_scalings",
    "bias_scaling": "bias bias_scale use_bias",
    "feedback_scaling": "fb_scaling feedback_scale fb_scale",
    "feedback": "fb teacher_forcing output_feedback fb_node Win_fb",
    "ridge": "regularization regularisation reg reg_param alpha alphas mu beta l2 w_ridge weight_decay C ridge_param",
    "connections": "density connectivity rc_connectivity sparsity k_in k_rec fan_in degree",
    "ensemble": "blocks n_estimators n_blocks n_networks",
    "washout": "warmup transient transients n_transient n_drop discard skip burn_in",
    "epochs": "max_iter n_epochs num_epochs n_iter iterations",
    "batch_size": "batch minibatch_size",
    "bidirectional": "bidir bi_directional",
    "activation": "act activation_function nonlinearity func",
    "patience": "early_stopping n_iter_no_change",
    "validation_fraction": "validation_split val_fraction validation_size",
    "clip": "gradient_clipping max_norm clip_norm grad_clip clipnorm",
    "noise": "state_noise noise_rc noise_level noise_in",
    "direct": "input_to_readout input_to_output concat_input",
    "pooling": "mts_rep pool aggregation",
    "readout": "readout_type output_activation",
    "optimizer": "solver optimiser",
    "class_weight": "class_weights weights",
    "layers": "n_layers hidden_layers depth",
    "topology": "W reservoir_type graph",
}


def hint(name: object, known: Collection[str]) -> str:
    """Return words that lead from an unknown name to the known one: a synonym, the nearest one, or all of them."""
    synonyms = [ours for ours, others in SYNONYMS.items() if ours in known and name in others.split()]
    near = synonyms or difflib.get_close_matches(str(name)[:100], sorted(known), 1, cutoff=0.4)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(sorted(known))}."
