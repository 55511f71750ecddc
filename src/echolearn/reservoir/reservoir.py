"""Reservoir: the weights of the state equation, frozen; random construction; spectral radius."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import ArpackError, eigs

from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.validation.caller import user_stacklevel
from echolearn.validation.parameters import check_each
from echolearn.validation.values import as_generator, check_integer, finite_array

Array = NDArray[Any]

# Above this spectral radius a network with leak 1 cannot forget: 1 / (largest slope of f).
ECHO_LIMIT = {"sigmoid": 4.0, "tanh": 1.0, "relu": 1.0, "identity": 1.0}

# Leaks bring back some forgetting, but above this many times the limit too little of it: networks were seen to know
# hardly more than their present input (reliability/stress.py).
LEAKY = 4.0

_DENSE = 64  # up to this size all eigenvalues at once are cheap, and never fail to converge


class EchoStateWarning(UserWarning):
    """The reservoir cannot forget its initial state."""


@dataclass(frozen=True, eq=False)
class Reservoir:
    """h_t = (1 - a) h_{t-1} + a f(W'x_t + W_rec h_{t-1} + W_fb y_{t-1} + bias)   (eq. 1, with leak a)

    W (n_in, N); W_rec (N, N), kept sparse; W_fb (N, n_out) or None; bias (N,) or None; leak a: a number or
    (N,), in (0, 1]; initial_state (N,) or None for zero. Only non-zero entries of W_rec
    (those that a sparse one stores) are connections.

    backward (N,) or None: True for units that run from the last step of a sequence to its first (t + 1 in place of
    t - 1 above). There is no connection between units of both kinds, and no W_fb beside backward ones.
    """

    W: Array
    W_rec: Any
    activation: str = "sigmoid"
    leak: Any = 1.0
    bias: Array | None = None
    W_fb: Array | None = None
    initial_state: Array | None = None
    backward: Array | None = None

    def __post_init__(self) -> None:
        W = _matrix("W", self.W)
        N = W.shape[1]
        W_rec = _sparse(self.W_rec)
        if W_rec.shape != (N, N):
            raise ValueError(
                f"W_rec has shape {W_rec.shape}, but W with shape {W.shape} (inputs, hidden units) asks for ({N}, {N})."
            )
        W_rec.sum_duplicates()
        if not np.isfinite(W_rec.data).all():
            raise ValueError("W_rec holds NaN or infinity; give finite weights.")
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            raise ValueError(f"activation={self.activation!r} is unknown; choose one of {sorted(ACTIVATIONS)}.")
        leak = finite_array("leak", self.leak)
        if leak.shape not in ((), (1,), (N,)):
            raise ValueError(f"leak has shape {leak.shape}; expected one number, or {N}, one a unit.")
        leak = np.broadcast_to(leak, (N,)).copy()
        if not ((leak > 0) & (leak <= 1)).all():
            raise ValueError(
                f"leak lies between {leak.min():g} and {leak.max():g}; every leak must be in (0, 1] (1: no leak)."
            )
        object.__setattr__(self, "W", W)
        object.__setattr__(self, "W_rec", W_rec)
        object.__setattr__(self, "leak", leak)
        for name in ("bias", "initial_state"):
            value = getattr(self, name)
            if value is not None:
                value = finite_array(name, value)
                if value.shape != (N,):
                    raise ValueError(f"{name} has shape {value.shape}; expected {N} finite numbers, one a unit.")
                object.__setattr__(self, name, value)
        if self.W_fb is not None:
            W_fb = _matrix("W_fb", self.W_fb)
            if W_fb.shape[0] != N:
                raise ValueError(f"W_fb has shape {W_fb.shape}; expected ({N}, outputs), one row a hidden unit.")
            object.__setattr__(self, "W_fb", W_fb)
        if self.backward is not None:
            self._check_directions()

    def _check_directions(self) -> None:
        backward = np.array(self.backward)
        if backward.shape != (self.N,) or backward.dtype != bool:
            raise ValueError(f"backward has shape {backward.shape}; expected {self.N} times True or False, one a unit.")
        if self.W_fb is not None:
            raise ValueError("feedback comes from the step before; backward units come from the step after. Drop W_fb.")
        listening = np.repeat(backward, np.diff(self.W_rec.indptr))
        if (listening != backward[self.W_rec.indices]).any():
            raise ValueError("W_rec connects forward and backward units; give it only connections within each kind.")
        object.__setattr__(self, "backward", backward if backward.any() else None)

    @property
    def N(self) -> int:
        return int(self.W.shape[1])

    @property
    def n_in(self) -> int:
        return int(self.W.shape[0])

    @classmethod
    def random(
        cls,
        n_in: int,
        hidden_units: int,
        *,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        topology: Any = "random",
        input_scaling: float | ArrayLike = 0.1,
        bias_scaling: float = 0.0,
        feedback_scaling: float = 0.1,
        n_feedback: int = 0,
        activation: str = "tanh",
        leak: float | tuple[float, float] = 1.0,
        initial_state: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Reservoir:
        """A random reservoir: W_rec scaled to `spectral_radius` (eq. 3; None: left as it is), the rest uniform.

        topology: one of `echolearn.topologies.TOPOLOGIES`, or a matrix (N, N). By default every unit listens to
        `connections` others and is heard by as many, so that no unit idles and the sparse products have rows of one
        length. input_scaling: a number, or one a feature. `leak=(low, high)` spreads the leaks evenly in logarithm,
        over units or, where there are groups of them, from the first group (high) to the last (low).
        """
        from echolearn.reservoir import topologies
        from echolearn.reservoir.parameters import RESERVOIR_RULES

        check_integer("n_in", n_in, 1)
        check_integer("n_feedback", n_feedback, 0)
        settings = {name: value for name, value in locals().items() if name in RESERVOIR_RULES}
        check_each(settings if isinstance(leak, (float, int, tuple)) else settings | {"leak": 1.0}, RESERVOIR_RULES)
        rng = as_generator(random_state)
        # One stream a purpose: asking for feedback or a leak does not change W or W_rec.
        rng_W, rng_rec, rng_bias, rng_leak, rng_fb = rng.spawn(5)
        N = int(hidden_units)
        W_rec = topologies.recurrent(topology, rng_rec, N, int(connections), spectral_radius)
        group = topologies.group_of_units(N) if topologies.has_groups(topology) else None
        a: Any = leak
        if isinstance(leak, tuple):
            low, high = leak
            if group is None:
                a = rng_leak.permutation(np.geomspace(low, high, N))
            else:
                a = np.geomspace(high, low, group[-1] + 1)[group]
        scale = input_scales(input_scaling, n_in)
        W = rng_W.uniform(-scale, scale, (n_in, N))
        if group is not None and topology == "deep":
            W[:, group > 0] = 0
        reservoir = cls(
            W=W,
            W_rec=W_rec,
            activation=activation,
            leak=a,
            bias=rng_bias.uniform(-bias_scaling, bias_scaling, N) if bias_scaling else None,
            W_fb=rng_fb.uniform(-feedback_scaling, feedback_scaling, (N, n_feedback)) if n_feedback else None,
            initial_state=None if initial_state is None else np.asarray(initial_state),
        )
        warn_without_echo(reservoir, spectral_radius_of(W_rec) if spectral_radius is None else spectral_radius)
        return reservoir

    def first_states(self, sequences: int, dtype: Any) -> Array:
        """Return the state before the first step, once per sequence (sequences, N)."""
        h0 = np.zeros(self.N) if self.initial_state is None else self.initial_state
        return np.tile(h0.astype(dtype), (sequences, 1))

    def weights(self) -> dict[str, Array]:
        """What `with_weights` takes, by name."""
        all_ = {"W": self.W, "W_rec": self.W_rec.data, "W_fb": self.W_fb, "bias": self.bias, "leak": self.leak}
        return {name: value for name, value in all_.items() if value is not None}

    def with_weights(self, **weights: Any) -> Reservoir:
        """A copy with some weights replaced; "W_rec" takes the new values of the non-zero places."""
        if "W_rec" in weights:
            data = weights.pop("W_rec")
            weights["W_rec"] = sparse.csr_array((data, self.W_rec.indices, self.W_rec.indptr), shape=self.W_rec.shape)
        return replace(self, **weights)

    def part(self, units: Array) -> Reservoir:
        """The units where `units` (N,) is True, all of one direction and hearing no others, in their own time."""

        def of(value: Array | None) -> Array | None:
            return None if value is None else value[units]

        rows = self.W_rec[units]
        number = np.cumsum(units) - 1
        W_rec = sparse.csr_array((rows.data, number[rows.indices], rows.indptr), shape=2 * (int(units.sum()),))
        return Reservoir(
            W=self.W[:, units],
            W_rec=W_rec,
            activation=self.activation,
            leak=self.leak[units],
            bias=of(self.bias),
            W_fb=of(self.W_fb),
            initial_state=of(self.initial_state),
        )


def side_by_side(reservoirs: Sequence[Reservoir]) -> Reservoir:
    """One reservoir whose units are those of all, without connections between them."""

    def together(name: str) -> Array | None:
        parts = [getattr(r, name) for r in reservoirs]
        return None if parts[0] is None else np.concatenate(parts)

    return Reservoir(
        W=np.hstack([r.W for r in reservoirs]),
        W_rec=sparse.block_diag([r.W_rec for r in reservoirs], format="csr"),
        activation=reservoirs[0].activation,
        leak=together("leak"),
        bias=together("bias"),
        W_fb=together("W_fb"),
        initial_state=together("initial_state"),
        backward=together("backward"),
    )


def both_ways(forward: Reservoir, backward: Reservoir) -> Reservoir:
    """One reservoir: first the units of `forward`, then those of `backward`, which run from the end to the start."""
    together = side_by_side([forward, backward])
    return replace(together, backward=np.arange(together.N) >= forward.N)


def _matrix(name: str, value: ArrayLike) -> Array:
    matrix = finite_array(name, value)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}; expected a matrix of finite numbers.")
    return matrix


def _sparse(W_rec: Any) -> Any:
    """A copy in float64, or an error that says what it should have been."""
    if sparse.issparse(W_rec) and W_rec.ndim == 2 and W_rec.dtype.kind in "fiub":
        return sparse.csr_array(W_rec, dtype=np.float64, copy=True)
    if sparse.issparse(W_rec):
        raise ValueError(f"W_rec is sparse, {W_rec.dtype} of shape {W_rec.shape}; expected a matrix of numbers.")
    return sparse.csr_array(_matrix("W_rec", W_rec))


def input_scales(input_scaling: float | ArrayLike, n_in: int) -> Any:
    """One number, or a column of them, one a feature."""
    scale = np.asarray(input_scaling, dtype=np.float64)
    if scale.shape not in ((), (n_in,)):
        raise ValueError(
            f"input_scaling has {scale.size} numbers, but X has {n_in} features; give one number, or one each."
        )
    return scale if scale.ndim == 0 else scale[:, None]


def random_connections(rng: np.random.Generator, N: int, connections: int) -> Any:
    """A random sparse (N, N) pattern, `connections` entries in every row and column, uniform in ±1.

    The pattern is a sum of permutations: rows r and columns p((i + shift) mod N) never collide, because the
    shifts differ.
    """
    shifts = rng.choice(N, connections, replace=False)
    relabel = rng.permutation(N)
    rows = np.tile(np.arange(N), connections)
    columns = relabel[(rng.permutation(N)[None, :] + shifts[:, None]) % N].ravel()
    values = rng.uniform(-1, 1, N * connections)
    return sparse.csr_array((values, (rows, columns)), shape=(N, N))


def rescaled(W_rec: Any, spectral_radius: float) -> Any:
    """Eq. 3: W_rec λ / |λ_max|."""
    if not spectral_radius > 0 or not np.isfinite(spectral_radius):
        raise ValueError(f"spectral_radius={spectral_radius!r}; expected a positive number (tanh: about 0.9).")
    rho = spectral_radius_of(W_rec)
    # A nilpotent matrix has rho = 0; of one whose cycles cancel, floating point leaves a root of its rounding errors.
    if rho <= 1e-5 * max(abs(W_rec).max(), 1e-300):
        raise ValueError(
            "W_rec is nilpotent (spectral radius 0), so it cannot be scaled to "
            f"spectral_radius={spectral_radius:g}. Add connections that close a cycle, or leave it unscaled."
        )
    return W_rec * (spectral_radius / rho)


def spectral_radius_of(W_rec: Any, tol: float = 1e-7) -> float:
    """|λ_max|: all eigenvalues for small matrices, ARPACK from a fixed start vector for large ones."""
    N = W_rec.shape[0]
    if _is_nilpotent_pattern(W_rec):
        return 0.0
    if N > _DENSE:
        try:
            v0 = np.random.default_rng(0).standard_normal(N)
            restarts = max(50, N * N // 2000)  # which take about as long as the dense way
            few = eigs(W_rec, k=4, ncv=40, v0=v0, tol=tol, maxiter=restarts, return_eigenvectors=False)
            return float(np.abs(few).max())
        except ArpackError:
            pass  # close clusters on the circle can stall it; the dense way always ends
    dense = W_rec.toarray() if sparse.issparse(W_rec) else np.asarray(W_rec)
    return float(np.abs(np.linalg.eigvals(dense)).max())


def _is_nilpotent_pattern(W_rec: Any) -> bool:
    """No cycle among the connections: every strong component is one unit without a loop to itself."""
    matrix = sparse.csr_array(W_rec)
    matrix.eliminate_zeros()
    components, _ = sparse.csgraph.connected_components(matrix, connection="strong")
    return bool(components == matrix.shape[0] and not matrix.diagonal().any())


def warn_without_echo(reservoir: Reservoir, spectral_radius: float) -> None:
    """Warn where the echo state property cannot hold."""
    leaks = bool((reservoir.leak < 1).any())
    limit = ECHO_LIMIT[reservoir.activation] * (LEAKY if leaks else 1.0)
    if spectral_radius > limit:
        why, or_else = (
            ("leaks no longer let the network forget its start", "")
            if leaks
            else ("the network has no echo states (it never forgets its start)", ", or a leak below 1")
        )
        warnings.warn(
            f"spectral_radius={spectral_radius:g} with activation={reservoir.activation!r}: above {limit:g} {why}. Use "
            f"a smaller spectral_radius{or_else}.",
            EchoStateWarning,
            stacklevel=user_stacklevel(),
        )
