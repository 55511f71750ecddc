"""States of a reservoir that is driven by its inputs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.sequences.opening import open_sequences
from echolearn.states.run import States, run


def driven_states(reservoir: Reservoir, X: ArrayLike) -> States:
    """Return states H and activities F (steps, N) for one sequence X (steps, n_in), in float64."""
    if reservoir.W_fb is not None:
        raise ValueError(
            "diagnostics drive a reservoir by its inputs alone, and this one has feedback weights. Look at "
            "reservoir.with_weights(W_fb=None), or make y one more input."
        )
    refuse_backward(reservoir)
    given = open_sequences(X, n_features=reservoir.n_in)
    if given.kind != "one":
        raise ValueError(f"X holds {len(given.X)} sequences; diagnostics take one, an array (steps, {reservoir.n_in}).")
    return run(reservoir, pack(given.X, np.float64))


def refuse_backward(reservoir: Reservoir) -> None:
    """Raise ValueError for a reservoir with backward units."""
    if reservoir.backward is not None:
        raise ValueError(
            "diagnostics follow one direction in time, and this reservoir has both. Look at each on its own: "
            "reservoir.subreservoir(~reservoir.backward), reservoir.subreservoir(reservoir.backward)."
        )
