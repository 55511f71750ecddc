"""The ridge that serves best, and the readout with it: by the sums of all states, or by a sample of a large network's.

A ridge is given as a number, or as a function from the mean diagonal of the Gram matrix to those to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import statistics as readout
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data

Array = NDArray[Any]
Ridge = float | Callable[[float], Sequence[float]]

RIDGES = 10.0 ** np.arange(-8, 2)  # of "auto", in units of the mean diagonal of the Gram matrix


def of_sums(s: readout.Sums, ridge: Ridge, held_out: readout.Sums | None = None) -> float:
    """On held-out sums, or by generalised cross-validation."""
    if not callable(ridge):
        return ridge
    path = ridge(float(np.trace(s.G)) / len(s.G))
    return readout.choose_ridge(s, path, intercept=True, held_out=held_out)[0]


def of_sample(seen: tuple[Array, Array], ridge: Ridge, data: Data, task: passes.Task, held_out: Any = None) -> float:
    """As `of_sums`, from a sample of rows of H_c and T."""
    if not callable(ridge):
        return ridge
    diagonal = iterative.rows(data, task).sum() * float(np.square(seen[0]).mean(dtype=np.float64))
    return iterative.choose_ridge(seen, ridge(diagonal), data.n_out, held_out)


def to_learn_with(
    reservoir: Reservoir, data: Data, task: passes.Task, ridge: Ridge, rng: np.random.Generator
) -> tuple[float, readout.Sums | None]:
    """A ridge for all epochs, and the sums it was chosen by, if there are any."""
    if not callable(ridge):
        return ridge, None
    if reservoir.N >= iterative.FROM:
        return of_sample(iterative.sample(reservoir, data, task, rng.spawn(1)[0]), ridge, data, task), None
    s = passes.collect(reservoir, data, task)
    return of_sums(s, ridge), s


def fitted(
    reservoir: Reservoir,
    task: passes.Task,
    ridge: Ridge,
    train: Data,
    spare: Data | None,
    held_out: Data | None,
    rng: np.random.Generator,
    say: Callable[[str], object],
    checkpoint: Checkpoint | None = None,
) -> tuple[Array, float, readout.Sums | iterative.Sketch]:
    """U of `train` and `spare` together, its ridge, chosen on `held_out`, and the sums or the sketch behind it."""
    if reservoir.N >= iterative.FROM:
        seen = iterative.sample(reservoir, train, task, rng)
        held_rows = (
            iterative.sample(reservoir, held_out, task, rng) if callable(ridge) and held_out is not None else None
        )
        mu = of_sample(seen, ridge, train, task, held_rows)
        both = train if spare is None else train.joined(spare)
        about = iterative.sketch(seen[0], float(iterative.rows(both, task).sum()))
        kept = None if checkpoint is None else checkpoint.for_stage("readout")
        return iterative.fit(reservoir, both, task, mu, about, say=say, checkpoint=kept), mu, about
    if callable(ridge):
        s = passes.collect(reservoir, train, task)
        held = None if held_out is None else passes.collect(reservoir, held_out, task)
        mu = of_sums(s, ridge, held)
        if spare is not None and held is not None:
            s += held
    else:
        mu = ridge
        s = passes.collect(reservoir, train if spare is None else train.joined(spare), task, mu)
    return readout.solve(s, mu, intercept=True), mu, s
