"""Reservoir: the weights of the state equation, frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from echolearn.display.facts import counted, one_line
from echolearn.reservoir._activations import activation_names
from echolearn.reservoir._rules import RESERVOIR_RULES
from echolearn.reservoir._spectrum import spectral_radius_of, warn_without_echo
from echolearn.reservoir._topologies import Topology, group_of_units, recurrent_weights
from echolearn.validation import MAX_COUNT, Array, as_generator, check_each, check_integer, finite_array


@dataclass(frozen=True, eq=False)
class Reservoir:
    """The weights of the state equation.

    The state h of the N hidden units follows the inputs x and the outputs y that are fed back by eq. 1, with leak a::

        h_t = (1 - a) h_{t-1} + a f(W'x_t + W_rec h_{t-1} + W_fb y_{t-1} + bias)

    A reservoir is frozen: methods return new ones. Arguments are checked and copied, in float64.

    Parameters
    ----------
    W : array of shape (n_in, N)
        Input weights.
    W_rec : array or sparse matrix of shape (N, N)
        Recurrent weights, kept as a sparse matrix. Row i holds the weights of the connections into unit i. Only the
        non-zero entries (of a sparse matrix, the stored ones) are connections; only these can be learned.
    activation : {"sigmoid", "tanh", "relu", "identity"}, default "sigmoid"
        The function f, applied to each unit.
    leak : float or array of shape (N,), default 1.0
        The leak rate a in (0, 1], one for all units or one per unit. Units with a small one are slow and remember
        longer; 1 is a unit without leak, as in the paper.
    bias : array of shape (N,) or None, default None
        A constant input to each unit. None: no bias.
    W_fb : array of shape (N, n_out) or None, default None
        Feedback weights, for networks whose next state depends on their last output. None: no feedback.
    initial_state : array of shape (N,) or None, default None
        The state before the first step of each sequence. None: zero.
    backward : array of N bools or None, default None
        True for units that run from the last step of a sequence to its first (t + 1 in place of t - 1 above). There
        must be no connections between forward and backward units, and no feedback. None: all run forward.

    Attributes
    ----------
    N, n_in : int
        Number of hidden units, and of inputs (features).

    See Also
    --------
    Reservoir.random : Draw a random reservoir.
    echolearn.states.harvest : Compute the states of sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.states import harvest
    >>> reservoir = Reservoir(W=np.array([[1.0, 0.0]]), W_rec=np.array([[0.0, 0.0], [1.0, 0.0]]), activation="identity")
    >>> harvest(reservoir, np.array([[1.0], [2.0], [3.0]]))  # the second unit repeats the first one a step later
    array([[1., 0.],
           [2., 1.],
           [3., 2.]])
    """

    W: Array
    W_rec: sparse.csr_array
    activation: str = "sigmoid"
    leak: Any = 1.0  # given as a number or an array, kept as an array (N,)
    bias: Array | None = None
    W_fb: Array | None = None
    initial_state: Array | None = None
    backward: Array | None = None

    def __repr__(self) -> str:
        low, high = float(np.min(self.leak)), float(np.max(self.leak))
        facts = [
            counted(self.N, "unit"),
            counted(self.n_in, "input"),
            counted(self.W_rec.nnz, "recurrent weight"),
            self.activation,
            "" if low == high == 1 else f"leak {low:.3g}" if low == high else f"leak {low:.3g} to {high:.3g}",
            "" if self.bias is None else "bias",
            "" if self.W_fb is None else f"feedback of {counted(self.W_fb.shape[1], 'output')}",
            "" if self.backward is None else "bidirectional",
        ]
        return one_line(self, facts)

    def __post_init__(self) -> None:
        W = check_matrix("W", self.W)
        N = W.shape[1]
        checked: dict[str, Array | sparse.csr_array | None] = {"W": W, "W_rec": check_recurrent(self.W_rec, W)}
        if not isinstance(self.activation, str) or self.activation not in activation_names():
            raise ValueError(
                f"activation={self.activation!r} is unknown; choose one of {sorted(activation_names())}, or register "
                "your own by echolearn.reservoir.register."
            )
        checked["leak"] = check_leak(self.leak, N)
        for name, value in (("bias", self.bias), ("initial_state", self.initial_state)):
            if value is not None:
                checked[name] = numbers = finite_array(name, value)
                if numbers.shape != (N,):
                    raise ValueError(f"{name} has shape {numbers.shape}; expected {N} finite numbers, one per unit.")
        if self.W_fb is not None:
            checked["W_fb"] = W_fb = check_matrix("W_fb", self.W_fb)
            if len(W_fb) != N:
                raise ValueError(f"W_fb has shape {W_fb.shape}; expected ({N}, outputs), one row per hidden unit.")
        if self.backward is not None:
            feedback = self.W_fb is not None
            checked["backward"] = check_backward(self.backward, checked["W_rec"], feedback=feedback)
        for field, array in checked.items():
            object.__setattr__(self, field, array)

    @property
    def N(self) -> int:
        """Number of hidden units."""
        return int(self.W.shape[1])

    @property
    def n_in(self) -> int:
        """Number of inputs (features)."""
        return int(self.W.shape[0])

    @classmethod
    def random(
        cls,
        n_in: int,
        hidden_units: int,
        *,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        topology: Topology = "random",
        input_scaling: ArrayLike = 0.1,
        bias_scaling: float = 0.0,
        feedback_scaling: float = 0.1,
        n_feedback: int = 0,
        activation: str = "tanh",
        leak: ArrayLike = 1.0,
        initial_state: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Reservoir:
        """Draw a random reservoir: W_rec scaled to a spectral radius (eq. 3), all other weights uniform.

        Parameters
        ----------
        n_in : int
            Number of inputs (features).
        hidden_units : int
            Number of units N.
        spectral_radius : float or None, default 0.9
            The largest absolute eigenvalue of W_rec. Larger ones remember longer; above 1 (4 for sigmoid units) a
            network without leaks need not forget its initial state. None leaves a matrix given as `topology` unscaled.
        connections : int, default 10
            Number of connections into each unit, for the topologies that have a choice.
        topology : str or matrix of shape (N, N), default "random"
            Which units are connected: one of the names below, or your own matrix, dense or sparse.

            - "random": into each unit from `connections` others, and out of it to as many;
            - "ring": a circle of units; "delay_line": a ring cut open, whose weights all are `spectral_radius`;
            - "small_world": from neighbours on a ring, a tenth of them replaced by random units;
            - "orthogonal": a random rotation, dense, the best linear memory;
            - "groups": four groups of units without connections between them;
            - "deep": four groups in a row, each with connections from the one before; inputs reach the first.
        input_scaling : float or array of shape (n_in,), default 0.1
            Input weights are uniform between minus and plus this number, one for all features or one per feature.
            Larger values make the units more nonlinear and let them forget faster.
        bias_scaling : float, default 0.0
            Biases are uniform between minus and plus this number. 0: no bias.
        feedback_scaling : float, default 0.1
            Feedback weights are uniform between minus and plus this number, if there is feedback.
        n_feedback : int, default 0
            Number of outputs that are fed back. 0: no feedback.
        activation : {"sigmoid", "tanh", "relu", "identity"} or registered name, default "tanh"
            The function f, applied to each unit; `echolearn.reservoir.register` adds your own.
        leak : float, pair of floats or array of shape (N,), default 1.0
            The leak rate, in (0, 1]. A tuple (low, high) spreads leaks evenly in logarithm over the units or, in the
            topologies "groups" and "deep", from the first group (high) to the last (low).
        initial_state
            As in `Reservoir`.
        random_state : int, numpy.random.Generator or None, default None
            Seed or generator. Equal seeds give equal bits. None: another reservoir every time.

        Returns
        -------
        Reservoir
            The reservoir. An EchoStateWarning is issued if it cannot forget its initial state.

        Examples
        --------
        >>> from echolearn import Reservoir
        >>> Reservoir.random(3, 50, spectral_radius=0.8, connections=5, random_state=0).W_rec.nnz
        250
        >>> Reservoir.random(1, 4, topology="ring", random_state=0).W_rec.toarray()
        array([[0. , 0. , 0. , 0.9],
               [0.9, 0. , 0. , 0. ],
               [0. , 0.9, 0. , 0. ],
               [0. , 0. , 0.9, 0. ]])
        """
        check_integer("n_in", n_in, 1)
        if check_integer("n_feedback", n_feedback, 0) >= MAX_COUNT:
            raise ValueError(f"n_feedback={n_feedback!r:.80}; expected a whole number below {MAX_COUNT}.")
        settings = {name: value for name, value in locals().items() if name in RESERVOIR_RULES}
        if not isinstance(leak, (float, int, tuple)):
            del settings["leak"]  # an array, which the constructor checks
        check_each(settings, RESERVOIR_RULES)
        # One generator per purpose: feedback or a range of leaks does not change W or W_rec.
        rng_W, rng_rec, rng_bias, rng_leak, rng_fb = as_generator(random_state).spawn(5)
        N, bias, fed_back = int(hidden_units), float(bias_scaling), float(feedback_scaling)  # unsigned ones wrap
        W_rec = recurrent_weights(topology, rng_rec, N, int(connections), spectral_radius)
        scale = input_scales(input_scaling, n_in)
        W = rng_W.uniform(-scale, scale, (n_in, N))
        if isinstance(topology, str) and topology == "deep":
            W[:, group_of_units(N) > 0] = 0  # inputs reach the first group only
        reservoir = cls(
            W=W,
            W_rec=W_rec,
            activation=activation,
            leak=draw_leaks(rng_leak, leak, N, topology) if isinstance(leak, tuple) else leak,
            bias=rng_bias.uniform(-bias, bias, N) if bias else None,
            W_fb=rng_fb.uniform(-fed_back, fed_back, (N, n_feedback)) if n_feedback else None,
            initial_state=None if initial_state is None else np.asarray(initial_state),
        )
        radius = spectral_radius_of(W_rec) if spectral_radius is None else spectral_radius
        warn_without_echo(radius, activation, reservoir.leak)
        return reservoir

    def initial_states(self, sequences: int, dtype: DTypeLike) -> Array:
        """Return the state before the first step, once per sequence.

        Parameters
        ----------
        sequences : int
            Number of sequences B.
        dtype : dtype
            Of the states: float32 or float64.

        Returns
        -------
        array of shape (B, N)
            The states.
        """
        h0 = np.zeros(self.N) if self.initial_state is None else self.initial_state
        return np.tile(h0.astype(dtype), (sequences, 1))

    def weights(self) -> dict[str, Array]:
        """Return all weights by name, as `with_weights` takes them: of "W_rec", the values of its connections."""
        every = {"W": self.W, "W_rec": self.W_rec.data, "W_fb": self.W_fb, "bias": self.bias, "leak": self.leak}
        return {name: value for name, value in every.items() if value is not None}

    def with_weights(self, **weights: ArrayLike | None) -> Reservoir:
        """Return a copy with some weights replaced.

        Parameters
        ----------
        **weights : array or None
            New values by name: any field of the reservoir. "W_rec" takes the new values of the connections, in the
            order of `weights()["W_rec"]`; which units are connected stays.

        Returns
        -------
        Reservoir
            The new reservoir.

        Examples
        --------
        >>> from echolearn import Reservoir
        >>> reservoir = Reservoir.random(2, 5, topology="ring", random_state=0)
        >>> reservoir.with_weights(W_rec=0.5 * reservoir.weights()["W_rec"]).W_rec.data
        array([0.45, 0.45, 0.45, 0.45, 0.45])
        """
        changes: dict[str, Any] = dict(weights)
        if "W_rec" in changes:
            pattern = (self.W_rec.indices, self.W_rec.indptr)
            changes["W_rec"] = sparse.csr_array((changes["W_rec"], *pattern), shape=self.W_rec.shape)
        return replace(self, **changes)

    def subreservoir(self, units: Array) -> Reservoir:
        """Return the reservoir of some units, all of one direction and without connections from others.

        Parameters
        ----------
        units : array of N bools
            True for the units to keep.

        Returns
        -------
        Reservoir
            The reservoir of these units. Backward units become forward ones: give them sequences in reverse.
        """

        def kept(value: Array | None) -> Array | None:
            return None if value is None else value[units]

        rows = self.W_rec[units]
        number = np.cumsum(units) - 1
        W_rec = sparse.csr_array((rows.data, number[rows.indices], rows.indptr), shape=2 * (int(units.sum()),))
        return replace(
            self,
            W=self.W[:, units],
            W_rec=W_rec,
            leak=self.leak[units],
            bias=kept(self.bias),
            W_fb=kept(self.W_fb),
            initial_state=kept(self.initial_state),
            backward=None,
        )


# Random draws of the weights (those of W_rec: see _topologies.py)


def input_scales(input_scaling: ArrayLike, n_in: int) -> Array:
    """Return one number for all features, or a column (n_in, 1) with one per feature."""
    scale = np.asarray(input_scaling, dtype=np.float64)
    if scale.shape not in ((), (n_in,)):
        raise ValueError(
            f"input_scaling has {scale.size} numbers, but X has {n_in} features; give one number, or one each."
        )
    return scale if scale.ndim == 0 else scale[:, None]


def draw_leaks(rng: np.random.Generator, limits: tuple[float, float], N: int, topology: Topology) -> Array:
    """Return leaks (N,), even in logarithm between limits: in random order, or falling from group to group."""
    low, high = limits
    if not isinstance(topology, str) or topology not in ("groups", "deep"):
        return rng.permutation(np.geomspace(low, high, N))
    group = group_of_units(N)
    return np.asarray(np.geomspace(high, low, group[-1] + 1)[group])


# Checks of the weights: each returns a new array, or raises an error that names the argument


def check_matrix(name: str, value: ArrayLike) -> Array:
    """Return a matrix of finite numbers that is not empty."""
    matrix = finite_array(name, value)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}; expected a matrix of finite numbers.")
    return matrix


def check_recurrent(W_rec: ArrayLike | sparse.csr_array, W: Array) -> sparse.csr_array:
    """Return W_rec (N, N), sparse and in float64, for input weights W (n_in, N)."""
    if isinstance(W_rec, (sparse.sparray, sparse.spmatrix)):
        if W_rec.ndim != 2 or W_rec.dtype.kind not in "fiub":
            raise ValueError(f"W_rec is sparse, {W_rec.dtype} of shape {W_rec.shape}; expected a matrix of numbers.")
        matrix = sparse.csr_array(W_rec, dtype=np.float64, copy=True)
    else:
        matrix = sparse.csr_array(check_matrix("W_rec", W_rec))
    N = W.shape[1]
    if matrix.shape != (N, N):
        raise ValueError(
            f"W_rec has shape {matrix.shape}, but W with shape {W.shape} (inputs, hidden units) requires ({N}, {N})."
        )
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError("W_rec holds NaN or infinity; give finite weights.")
    return matrix


def check_leak(leak: ArrayLike, N: int) -> Array:
    """Return leaks (N,) in (0, 1]."""
    rates = finite_array("leak", leak)
    if rates.shape not in ((), (1,), (N,)):
        raise ValueError(f"leak has shape {rates.shape}; expected one number, or {N}, one per unit.")
    leaks = np.broadcast_to(rates, (N,)).copy()
    if not ((leaks > 0) & (leaks <= 1)).all():
        raise ValueError(
            f"leak lies between {leaks.min():g} and {leaks.max():g}; every leak must be in (0, 1] (1: no leak)."
        )
    return leaks


def check_backward(backward: ArrayLike, W_rec: sparse.csr_array, *, feedback: bool) -> Array | None:
    """Return which units run backward in time (N,), or None if no unit does."""
    N, units = W_rec.shape[0], np.array(backward)
    if units.shape != (N,) or units.dtype != bool:
        raise ValueError(f"backward has shape {units.shape}; expected {N} times True or False, one per unit.")
    if feedback:
        raise ValueError("feedback comes from the step before; backward units come from the step after. Drop W_fb.")
    into_backward = np.repeat(units, np.diff(W_rec.indptr))
    if (into_backward != units[W_rec.indices]).any():
        raise ValueError("W_rec connects forward and backward units; give it only connections within each kind.")
    return units if units.any() else None


# Reservoirs made of smaller ones


def join_reservoirs(reservoirs: Sequence[Reservoir]) -> Reservoir:
    """Return one reservoir with the units of all, in order, without connections between them."""

    def joined(name: str) -> Array | None:
        values = [getattr(reservoir, name) for reservoir in reservoirs]
        return None if values[0] is None else np.concatenate(values)

    return Reservoir(
        W=np.hstack([reservoir.W for reservoir in reservoirs]),
        W_rec=sparse.block_diag([reservoir.W_rec for reservoir in reservoirs], format="csr"),
        activation=reservoirs[0].activation,
        **{name: joined(name) for name in ("leak", "bias", "W_fb", "initial_state", "backward")},
    )


def bidirectional_reservoir(forward: Reservoir, backward: Reservoir) -> Reservoir:
    """Return one reservoir: the units of `forward`, then those of `backward`, which run from the end to the start."""
    joined = join_reservoirs([forward, backward])
    return replace(joined, backward=np.arange(joined.N) >= forward.N)
