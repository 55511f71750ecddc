"""Reservoirs made of smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from echolearn.reservoir._reservoir import Reservoir
from echolearn.validation import Array


def join_reservoirs(reservoirs: Sequence[Reservoir]) -> Reservoir:
    """Return one reservoir with the units of all, in order, and without connections between them.

    All have the same inputs and activation. `Reservoir.subreservoir` is the inverse.
    """

    def joined(name: str) -> Array | None:
        values = [getattr(reservoir, name) for reservoir in reservoirs]
        return None if values[0] is None else np.concatenate(values)

    return Reservoir(
        W=np.hstack([reservoir.W for reservoir in reservoirs]),
        W_rec=sparse.block_diag([reservoir.W_rec for reservoir in reservoirs], format="csr"),
        activation=reservoirs[0].activation,
        leak=joined("leak"),
        bias=joined("bias"),
        W_fb=joined("W_fb"),
        initial_state=joined("initial_state"),
        backward=joined("backward"),
    )


def bidirectional_reservoir(forward: Reservoir, backward: Reservoir) -> Reservoir:
    """Return one reservoir: the units of `forward`, then those of `backward`, which run from the end to the start."""
    joined = join_reservoirs([forward, backward])
    return replace(joined, backward=np.arange(joined.N) >= forward.N)
