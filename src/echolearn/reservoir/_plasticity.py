"""Plasticity without targets: gain and bias of units by their activity, and recurrent weights by local rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from echolearn.reservoir._activations import activate, leaky_update
from echolearn.reservoir._reservoir import Reservoir
from echolearn.sequences.opening import open_sequences
from echolearn.validation import Array


def intrinsic_plasticity(
    reservoir: Reservoir,
    X: ArrayLike | Sequence[ArrayLike],
    *,
    spread: float = 0.2,
    rate: float = 1e-3,
    epochs: int = 10,
) -> Reservoir:
    """Adapt a reservoir to its inputs, so that its units carry as much information as their range allows.

    Each unit becomes f(gain z + bias). Frame by frame, gain and bias follow the gradient of the Kullback-Leibler
    divergence of its activity from a target distribution:

    - tanh: a Gaussian of mean 0 and standard deviation `spread` [1]_;
    - sigmoid: an exponential distribution of mean `spread` [2]_.

    Parameters
    ----------
    reservoir : Reservoir
        A reservoir of tanh or sigmoid units, without feedback. It is left as it is.
    X : array of shape (n_steps, n_in), list of such arrays, or 3-D array
        The sequences to adapt to: those that the network will be trained on.
    spread : float, default 0.2
        Standard deviation (tanh) or mean (sigmoid) of the target distribution. Larger values use more of the range of
        f, and so more of its nonlinearity.
    rate : float, default 1e-3
        Step size of the adaptation. Use a smaller one if it diverges.
    epochs : int, default 10
        Number of passes over all sequences. 0 returns the same weights.

    Returns
    -------
    Reservoir
        An ordinary reservoir with the same connections: the gains are multiplied into W and W_rec.

    Raises
    ------
    FloatingPointError
        If the adaptation diverges.

    Notes
    -----
    The inputs must drive the units: if they are weak, the gains of W_rec grow until the units keep each other active.

    References
    ----------
    .. [1] Schrauwen, Wardermann, Verstraeten, Steil and Stroobandt, Improving reservoirs using intrinsic plasticity,
       Neurocomputing 71 (2008).
    .. [2] Triesch, A gradient rule for the plasticity of a neuron's intrinsic excitability, ICANN 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.reservoir import intrinsic_plasticity
    >>> from echolearn.states import harvest
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> reservoir = Reservoir.random(1, 20, input_scaling=0.5, random_state=0)
    >>> adapted = intrinsic_plasticity(reservoir, X, spread=0.2, rate=5e-3)
    >>> [round(float(harvest(r, X).std()), 1) for r in (reservoir, adapted)]
    [0.4, 0.2]
    """
    bias_step = {"tanh": _towards_gaussian, "sigmoid": _towards_exponential}.get(reservoir.activation)
    if bias_step is None or reservoir.W_fb is not None:
        raise ValueError(
            "intrinsic plasticity is known for tanh and sigmoid units without feedback; this reservoir has "
            f"activation={reservoir.activation!r}{' and feedback' if reservoir.W_fb is not None else ''}."
        )
    if not (spread > 0 and rate > 0 and epochs >= 0):
        raise ValueError(f"spread={spread!r}, rate={rate!r}, epochs={epochs!r}; expected positive numbers.")
    sequences = open_sequences(X, n_features=reservoir.n_in).X
    adapt = partial(_gain_and_bias, bias_step=bias_step, spread=spread, rate=rate, epochs=epochs)
    if reservoir.backward is None:
        gain, bias = adapt(reservoir, sequences)
    else:
        gain, bias = np.ones(reservoir.N), np.zeros(reservoir.N)
        backward, reverse = reservoir.backward, [x[::-1] for x in sequences]
        for units, inputs in ((~backward, sequences), (backward, reverse)):
            gain[units], bias[units] = adapt(reservoir.subreservoir(units), inputs)
    if not np.isfinite(gain).all():
        raise FloatingPointError(f"intrinsic plasticity diverged; use a smaller rate than {rate:g}.")
    W_rec = reservoir.W_rec.data * np.repeat(gain, np.diff(reservoir.W_rec.indptr))
    return reservoir.with_weights(W=reservoir.W * gain, W_rec=W_rec, bias=bias)


def _gain_and_bias(
    reservoir: Reservoir,
    X: Sequence[Array],
    *,
    bias_step: Callable[[Array, float], Array],
    spread: float,
    rate: float,
    epochs: int,
) -> tuple[Array, Array]:
    """Return gain and bias (N,) after `epochs` passes over all frames."""
    gain = np.ones(reservoir.N)
    bias = np.zeros(reservoir.N) if reservoir.bias is None else reservoir.bias
    drives = [x @ reservoir.W for x in X]
    for _ in range(epochs):
        for drive in drives:
            h = reservoir.initial_states(1, np.float64)[0]
            for u in drive:
                z = u + reservoir.W_rec @ h
                f = activate(reservoir.activation, gain * z + bias)
                d_bias = rate * bias_step(f, spread)
                gain, bias = gain + rate / gain + d_bias * z, bias + d_bias
                h = leaky_update(h, f, reservoir.leak)
    return gain, bias


def _towards_gaussian(f: Array, sigma: float) -> Array:
    """Return the step of the bias that moves activities f of tanh units towards N(0, sigma²)."""
    return np.asarray(-f / sigma**2 * (2 * sigma**2 + 1 - f * f))


def _towards_exponential(f: Array, mean: float) -> Array:
    """Return the step of the bias that moves activities f of sigmoid units towards an exponential distribution."""
    return np.asarray(1 - (2 + 1 / mean) * f + f * f / mean)


def synaptic_plasticity(
    reservoir: Reservoir,
    X: ArrayLike | Sequence[ArrayLike],
    *,
    rule: str = "anti_oja",
    rate: float = 1e-4,
    epochs: int = 1,
) -> Reservoir:
    """Adapt the recurrent weights of a reservoir to its inputs by a local rule, connection by connection.

    After each step, with y_i the new state of the receiving unit and x_j the former one of the sending unit, "oja"
    moves W_ij by rate y_i (x_j - y_i W_ij), which strengthens what occurs together and keeps the weights bounded;
    "anti_oja" moves it the other way. Compare on held-out data whether either helps: in trials with 40 units, on noise
    and on a slow sine, "anti_oja" made the states more alike, not less.

    Parameters
    ----------
    reservoir : Reservoir
        A reservoir without feedback and backward units. It is left as it is.
    X, epochs
        As in `intrinsic_plasticity`.
    rule : {"anti_oja", "oja"}, default "anti_oja"
        The rule.
    rate : float, default 1e-4
        Step size. "anti_oja" has no resting point: use few epochs and a small rate.

    Returns
    -------
    Reservoir
        A reservoir with the same connections. Its spectral radius changes.

    Raises
    ------
    FloatingPointError
        If the weights diverge.

    References
    ----------
    Oja, A simplified neuron model as a principal component analyzer, Journal of Mathematical Biology 15 (1982).
    Babinec and Pospichal, Improving the prediction accuracy of echo state neural networks by anti-Oja's learning, ICANN
    2007.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.reservoir import synaptic_plasticity
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> adapted = synaptic_plasticity(Reservoir.random(1, 20, random_state=0), X)
    >>> adapted.W_rec.nnz
    200
    """
    if reservoir.W_fb is not None or reservoir.backward is not None:
        raise ValueError("synaptic plasticity is known for reservoirs without feedback and backward units.")
    if rule not in ("anti_oja", "oja"):
        raise ValueError(f"rule={rule!r}; expected 'anti_oja' or 'oja'.")
    if not (rate > 0 and epochs >= 0):
        raise ValueError(f"rate={rate!r}, epochs={epochs!r}; expected a positive rate and at least 0 epochs.")
    step = rate if rule == "oja" else -rate
    W_rec = reservoir.W_rec.copy()
    receiver, sender = np.repeat(np.arange(reservoir.N), np.diff(W_rec.indptr)), W_rec.indices
    bias = 0.0 if reservoir.bias is None else reservoir.bias
    for _ in range(epochs):
        for x in open_sequences(X, n_features=reservoir.n_in).X:
            h = reservoir.initial_states(1, np.float64)[0]
            for u in x @ reservoir.W + bias:
                before, h = h, leaky_update(h, activate(reservoir.activation, u + W_rec @ h), reservoir.leak)
                y = h[receiver]
                W_rec.data = W_rec.data + step * y * (before[sender] - y * W_rec.data)
    if not np.isfinite(W_rec.data).all():
        raise FloatingPointError(f"the weights diverged; use a smaller rate than {rate:g}, or fewer epochs.")
    return reservoir.with_weights(W_rec=W_rec.data)
