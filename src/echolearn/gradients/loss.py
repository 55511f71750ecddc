"""`loss_and_gradients`: E and its derivatives for given weights, without any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from echolearn.execution.blas import one_blas_thread
from echolearn.gradients.batch import through_states
from echolearn.gradients.exact import Gradients, error_wrt_states
from echolearn.readout.network import apply_readout
from echolearn.readout.ridge import loss, solve
from echolearn.readout.statistics import Statistics, residual, sample_precision, statistics_of, weighted
from echolearn.readout.view import MAX_FRAMES_PER_PASS, Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.checks import check_finite
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import check_long_enough, open_sequences
from echolearn.sequences.targets import as_class_numbers, open_values, open_weights
from echolearn.validation import (
    Array,
    Rule,
    check_boolean,
    check_each,
    check_float_dtype,
    is_number,
    one_of,
    or_none,
    whole_number,
)

# which targets and which steps a gradient covers
GRADIENT_RULES: dict[str, Rule] = {
    "washout": whole_number(0),
    "lookback": or_none(whole_number(1), "the whole sequence"),
    "targets": one_of("all", "last"),
    "gradient": one_of("exact", "printed"),
}


@dataclass(frozen=True, eq=False)
class LossAndGradients:
    """The error E and its derivatives, as `loss_and_gradients` returns them.

    Attributes
    ----------
    loss : float
        E = min_U ||H_c U - T||² + ridge ||U||².
    readout : array of shape (n_units + n_features, n_outputs)
        The minimising U. The rows of the states H come first, then those of the inputs X.
    dE_dW : array of shape (n_features, n_units)
        The derivative with respect to the input weights.
    dE_dW_rec : sparse array of shape (n_units, n_units)
        The derivative with respect to the recurrent weights, on their sparse pattern.
    dE_dW_fb : array of shape (n_units, n_outputs) or None
        The derivative with respect to the feedback weights, if there are any.
    dE_dbias : array of shape (n_units,) or None
        The derivative with respect to the bias, if there is one.
    dE_dleak : array of shape (n_units,) or None
        The derivative with respect to the leak of each unit (None with ``gradient="printed"``).

    See Also
    --------
    loss_and_gradients : Compute them; it has an example.
    """

    loss: float
    readout: Array
    dE_dW: Array
    dE_dW_rec: sparse.csr_array
    dE_dW_fb: Array | None
    dE_dbias: Array | None
    dE_dleak: Array | None


def loss_and_gradients(
    reservoir: Reservoir,
    X: ArrayLike | Sequence[ArrayLike],
    T: ArrayLike | Sequence[ArrayLike],
    *,
    ridge: float,
    lookback: int | None = None,
    targets: str = "all",
    gradient: str = "exact",
    direct: bool = True,
    washout: int = 0,
    sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
    dtype: DTypeLike = np.float64,
) -> LossAndGradients:
    """Return the training error E of a reservoir with its best readout, and the gradients of E.

    E = min_U ||H_c U - T||² + ridge ||U||². With weights w of the targets, E = min_U Σ_k w_k ||U'h_k - t_k||² +
    ridge ||U||². The gradient is exact: back-propagation through time, with the readout U in closed form. Nothing is
    trained.

    Parameters
    ----------
    reservoir : Reservoir
        The weights at which E and its gradients are computed.
    X : array of shape (n_steps, n_features), 3-D array, or list of such 2-D arrays
        One sequence, or several of any lengths. Time runs along the first axis of each sequence.
    T : array or list of arrays
        The targets in the form of X with n_outputs columns.
    ridge : float
        The penalty of ||U||² (mu in the paper), at least 0. A larger one gives smaller readout weights.
    lookback : int, default=None
        How many steps (m in the paper) the gradient follows back in time. None: the whole sequence.
        A smaller number gives a truncated gradient, in the same time.
    targets : {"all", "last"}, default="all"
        Which frames after the washout count: all, or the last one of each block of `lookback` steps, as in the paper.
    gradient : {"exact", "printed"}, default="exact"
        "printed" uses the formulas of the paper as printed, for comparison. They cover neither leak nor feedback.
    direct : bool, default=True
        Whether the readout has the inputs X as further regressors beside the states H.
    washout : int, default=0
        The number of steps at the start of each sequence whose targets do not count. Use some tens of steps if
        sequences are long, so that the initial state has no influence.
    sample_weight : array or list of arrays, default=None
        How much each target counts: one number per sequence, or one per step in the form of X. A target of weight 0
        does not count, and may be NaN. None: all count alike.
    dtype : {"float64", "float32"}, default="float64"
        The precision of states and errors; statistics and gradients are summed in float64. "float32" is faster.

    Returns
    -------
    LossAndGradients
        The loss, the readout and the derivatives with respect to each kind of weight.

    Raises
    ------
    ValueError
        If data or parameters do not fit, states or gradients are not finite, or the Gram matrix is singular and the
        ridge is 0.

    See Also
    --------
    echolearn.states.harvest : The states alone.
    echolearn.training.optimizers.Adam : Steps along these gradients.

    Notes
    -----
    U minimises E for the given weights, so by the envelope theorem its own change with the weights adds nothing to the
    gradient (docs/explanation/derivation.md). E is that of eq. 6 with the penalty of eq. 9; dE/dH replaces eq. 30, and
    ``gradient="printed"`` uses eq. 34, 35, 41 and 42. There are two passes over groups of sequences on all cores; only
    the states of a few groups exist at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.gradients import loss_and_gradients
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> result = loss_and_gradients(Reservoir.random(2, 20, random_state=0), X, np.roll(X[:, :1], 2), ridge=1e-2)
    >>> result.dE_dW.shape, result.dE_dW_rec.shape
    ((2, 20), (20, 20))
    """
    check_each({"lookback": lookback, "targets": targets, "gradient": gradient, "washout": washout}, GRADIENT_RULES)
    if not is_number(ridge) or ridge < 0:
        raise ValueError(f"ridge={ridge!r:.80}; expected a number >= 0.")
    check_boolean("direct", direct)
    precision = check_float_dtype(dtype)
    sequences = open_sequences(X, n_features=reservoir.n_in)
    check_long_enough(sequences, washout)
    weights = open_weights(sample_weight, sequences, per_step=True)
    values = open_values(T, sequences, per_step=True, weights=weights)
    y = as_class_numbers(values) if weights is None else values
    data = Dataset(sequences.X, y, values[0].shape[-1], True, precision, weights=weights)
    task = Task(washout, direct, lookback, targets, intercept=False)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        s, U, g = _statistics_readout_gradients(reservoir, data, task, ridge, gradient)
    pattern = (g.W_rec, reservoir.W_rec.indices, reservoir.W_rec.indptr)
    return LossAndGradients(
        loss=loss(s, U, ridge, intercept=True),
        readout=U[:-1],  # without the row of an intercept, which is 0
        dE_dW=g.W,
        dE_dW_rec=sparse.csr_array(pattern, shape=reservoir.W_rec.shape),
        dE_dW_fb=g.W_fb,
        dE_dbias=g.bias,
        dE_dleak=g.leak,
    )


def _statistics_readout_gradients(
    reservoir: Reservoir, data: Dataset, task: Task, ridge: float, gradient: str
) -> tuple[Statistics, Array, Gradients]:
    """Return G and Q over all of the data, their U, and the gradients at this U."""
    groups, frames = list(group_sequences(data.lengths, MAX_FRAMES_PER_PASS)), data.frames

    def statistics(data: Dataset, which: Array) -> Statistics:
        seen = observe(reservoir, task, data.batch(which))
        precision = sample_precision(seen.H_c, frames, ridge, seen.w)
        return statistics_of(seen.H_c, seen.T, data.n_out, precision, w=seen.w)

    def gradients(data: Dataset, which: Array) -> Gradients:
        seen = observe(reservoir, task, data.batch(which))
        U_now = U.astype(data.dtype)
        R = weighted(residual(apply_readout(seen.H, seen.X, U_now), seen.T), seen.w)
        return through_states(reservoir, task, gradient, seen, error_wrt_states(R, U_now[: seen.H.shape[1]]))

    s = data.sum(statistics, groups)
    check_finite(s.G, "sums of states and targets")
    check_finite(s.Q, "sums of states and targets")
    U = solve(s, ridge, intercept=True)
    g = data.sum(gradients, groups)
    for values in (g.W, g.W_rec):
        check_finite(values, "gradients")
    return s, U, g
