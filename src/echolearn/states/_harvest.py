"""The function `harvest`, which computes the states of sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS, is_registered
from echolearn.sequences.batch import group_sequences, pack, unpack
from echolearn.sequences.checks import check_finite
from echolearn.sequences.opening import open_sequences
from echolearn.sequences.targets import open_values
from echolearn.states import _kernels as kernels
from echolearn.states._kernels import compressed, drive
from echolearn.states.run import run
from echolearn.validation import Array, check_float_dtype

MAX_FRAMES_PER_RUN = 8192  # frames of several sequences that are run at once


def harvest(
    reservoir: Reservoir,
    X: ArrayLike | Sequence[ArrayLike],
    T: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    dtype: DTypeLike = np.float64,
) -> Array | list[Array]:
    """Return the states of a reservoir for input sequences, without any readout (eq. 1).

    Parameters
    ----------
    reservoir : Reservoir
        The weights of the state equation.
    X : array of shape (n_steps, n_features), 3-D array, or list of such 2-D arrays
        One sequence, or several of any lengths. Time runs along the first axis of each sequence. Every sequence
        starts in the reservoir's initial state.
    T : array or list of arrays, default=None
        The targets that are fed back, one row per time step in the form of X. Required by a reservoir with feedback
        weights, and ignored by others.
    dtype : {"float64", "float32"}, default="float64"
        The precision of the states. "float32" is several times faster; use it where six digits are enough.

    Returns
    -------
    array of shape (n_steps, n_units), or list of such arrays
        The state after each step, in the form in which X was given.

    Raises
    ------
    ValueError
        If X or T does not fit the reservoir, or T is missing for a reservoir with feedback weights.

    See Also
    --------
    echolearn.Reservoir.random : Draw a reservoir.
    echolearn.ReservoirFeatures : The states as a transformer of scikit-learn.
    echolearn.gradients.loss_and_gradients : The error of a readout of the states, and its gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.states import harvest
    >>> reservoir = Reservoir.random(2, 50, random_state=0)
    >>> harvest(reservoir, np.zeros((10, 2))).shape
    (10, 50)
    """
    precision, sequences = check_float_dtype(dtype), open_sequences(X, n_features=reservoir.n_in)
    targets = None if T is None else open_values(T, sequences, per_step=True)
    out: list[Array] = [sequences.X[0]] * len(sequences.X)
    lengths = sequences.lengths

    def states_of(which: Array) -> tuple[Array, list[Array]]:
        X = [sequences.X[i] for i in which]
        if targets is None and _may_be_padded(reservoir, lengths[which], precision):
            states = _run_in_place(reservoir, X, precision)
        else:
            batch = pack(X, precision, None if targets is None else [targets[i] for i in which])
            states = unpack(batch, run(reservoir, batch, keep_F=False).H)
        for H in states:
            check_finite(H, "states")
        return which, states

    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for which, states in map_in_order(states_of, group_sequences(lengths, MAX_FRAMES_PER_RUN)):
            for i, H in zip(which, states, strict=True):
                out[i] = H
    return sequences.in_given_form(out)


def _may_be_padded(reservoir: Reservoir, lengths: Array, dtype: np.dtype[np.generic]) -> bool:
    """Return whether sequences are so many, and of so similar lengths, that padding them costs less than packing."""
    one_way = reservoir.backward is None and reservoir.W_fb is None and not is_registered(reservoir.activation)
    return (
        one_way
        and len(lengths) >= kernels.MIN_PARALLEL_SEQUENCES[dtype.itemsize]
        and len(lengths) * lengths.max() < 1.5 * lengths.sum()
    )


def _run_in_place(reservoir: Reservoir, X: list[Array], dtype: DTypeLike) -> list[Array]:
    """Return the states of sequences, longest first; the loops write directly into the arrays that are returned."""
    L, N = len(X[0]), reservoir.N
    F = np.empty((len(X) * L, N), dtype)
    out = [F[b * L : b * L + len(x)] for b, x in enumerate(X)]
    for x, rows in zip(X, out, strict=True):
        drive(reservoir, x.astype(dtype, copy=False), None, rows)
    active = np.searchsorted(-np.array([len(x) for x in X]), -np.arange(L), side="left")
    units = (reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation])
    W_rec, h0 = compressed(reservoir.W_rec, dtype), reservoir.initial_states(len(X), dtype)
    kernels.forward_many(W_rec, *units, active=active, offsets=np.arange(L), stride=L, h0=h0, F=F, H=F, keep_F=False)
    return out
