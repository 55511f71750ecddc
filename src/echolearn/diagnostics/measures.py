"""What a reservoir does with its inputs: how fast it forgets, how much it remembers, how well it tells inputs apart.

Every diagnostic returns its numbers with a `plot()` of them, a matplotlib Figure (the extra `report`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from echolearn.readout import statistics as readout
from echolearn.reservoir.activations import slope
from echolearn.reservoir.reservoir import Reservoir
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.sequences.batch import pack
from echolearn.sequences.validation import open_sequences
from echolearn.states.run import States, harvest, run
from echolearn.validation.values import as_generator, check_integer, check_positive

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Linearised:
    """What one step does to a small disturbance of h: A = (1 - a) I + a f' W_rec (N, N)."""

    A: Any

    @property
    def radius(self) -> float:
        """The effective spectral radius: how much of a disturbance is left a step later, in the long run."""
        return spectral_radius_of(self.A)

    @property
    def eigenvalues(self) -> Array:
        return np.asarray(np.linalg.eigvals(self.A.toarray()))

    def plot(self, axes: Any = None) -> Any:
        from echolearn.diagnostics import plots as diagnostics_plots

        return diagnostics_plots.eigenvalues(self, axes)


def linearised(reservoir: Reservoir, X: ArrayLike | None = None) -> Linearised:
    """The reservoir around its operating point: the mean of A over the frames of X (steps, n_in), or without X the
    reservoir at rest (h = 0, x = 0)."""
    if X is None:
        F = _driven(replace(reservoir, W_fb=None, initial_state=None), np.zeros((1, reservoir.n_in))).F
    else:
        F = _driven(reservoir, X).F
    a, mean_slope = reservoir.leak, slope(reservoir.activation, F).mean(axis=0)
    A = sparse.diags_array(1 - a) + sparse.diags_array(a * mean_slope) @ reservoir.W_rec
    return Linearised(sparse.csr_array(A))


def _driven(reservoir: Reservoir, X: ArrayLike) -> States:
    """H and F (steps, N) under one sequence, in float64."""
    if reservoir.W_fb is not None:
        raise ValueError(
            "diagnostics drive a reservoir by its inputs alone, and this one has feedback weights. Look at "
            "reservoir.with_weights(W_fb=None), or make y one more input."
        )
    _refuse_both_ways(reservoir)
    given = open_sequences(X, n_features=reservoir.n_in)
    if given.kind != "one":
        raise ValueError(f"X holds {len(given.X)} sequences; diagnostics take one, an array (steps, {reservoir.n_in}).")
    return run(reservoir, pack(given.X, np.float64))


def _refuse_both_ways(reservoir: Reservoir) -> None:
    if reservoir.backward is not None:
        raise ValueError(
            "diagnostics follow one direction in time, and this reservoir has both. Look at each on its own: "
            "reservoir.subreservoir(~reservoir.backward), reservoir.subreservoir(reservoir.backward)."
        )


@dataclass(frozen=True, eq=False)
class Lyapunov:
    """growth (steps,): log |v_t| / |v_{t-1}| of a disturbance v, which the inputs do not tell the reservoir."""

    growth: Array
    washout: int

    @property
    def exponent(self) -> float:
        """The largest Lyapunov exponent, given the inputs: below 0 the reservoir forgets, above 0 it is chaotic."""
        return float(self.growth[self.washout :].mean())

    def plot(self, axes: Any = None) -> Any:
        from echolearn.diagnostics import plots as diagnostics_plots

        return diagnostics_plots.lyapunov(self, axes)


def lyapunov(reservoir: Reservoir, X: ArrayLike, *, washout: int | None = None) -> Lyapunov:
    """A tangent vector carried along the states: v_t = (1 - a) v_{t-1} + a f'(z_t) W_rec v_{t-1}, in units of its
    length at every step. The first `washout` steps (None: a fifth), in which v turns to the direction that grows
    most, do not count."""
    slopes = slope(reservoir.activation, _driven(reservoir, X).F)
    washout = len(slopes) // 5 if washout is None else check_integer("washout", washout, 0)
    if not 0 <= washout < len(slopes):
        raise ValueError(f"washout={washout} of {len(slopes)} steps leaves nothing; give a longer X.")
    a = reservoir.leak
    v = np.random.default_rng(0).standard_normal(reservoir.N)
    v /= np.linalg.norm(v)
    growth = np.full(len(slopes), -np.inf)  # where v has died out
    for t, s in enumerate(slopes):
        v = (1 - a) * v + a * s * (reservoir.W_rec @ v)
        length = float(np.linalg.norm(v))
        if length == 0:
            break
        growth[t] = np.log(length)
        v /= length
    return Lyapunov(growth, washout)


@dataclass(frozen=True, eq=False)
class Echo:
    """distances (steps + 1,): root mean square difference of the states of two runs that began differently."""

    distances: Array

    def forgotten_after(self, share: float = 1e-3) -> int | None:
        """Steps until no more than `share` of the first distance is left, for good; None: not within these steps."""
        above = np.flatnonzero(self.distances > share * self.distances[0])
        steps = int(above[-1]) + 1
        return steps if steps < len(self.distances) else None

    def plot(self, axes: Any = None) -> Any:
        from echolearn.diagnostics import plots as diagnostics_plots

        return diagnostics_plots.echo(self, axes)


def echo(reservoir: Reservoir, X: ArrayLike, *, random_state: int | np.random.Generator | None = 0) -> Echo:
    """The echo state property, tried: two random initial states driven by the same inputs must come together."""
    rng = as_generator(random_state)
    low = 0.0 if reservoir.activation == "sigmoid" else -1.0
    starts = rng.uniform(low, 1, (2, reservoir.N))
    runs = [np.vstack([h0, _driven(replace(reservoir, initial_state=h0), X).H]) for h0 in starts]
    return Echo(np.sqrt(((runs[0] - runs[1]) ** 2).mean(axis=1)))


@dataclass(frozen=True, eq=False)
class MemoryCapacity:
    """by_delay (delays + 1,): the share of the input's variance d steps ago that a linear readout recovers."""

    by_delay: Array

    @property
    def total(self) -> float:
        """At most N (Jaeger)."""
        return float(self.by_delay.sum())

    def plot(self, axes: Any = None) -> Any:
        from echolearn.diagnostics import plots as diagnostics_plots

        return diagnostics_plots.memory(self, axes)


def memory_capacity(
    reservoir: Reservoir,
    *,
    delays: int | None = None,
    steps: int | None = None,
    amplitude: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> MemoryCapacity:
    """Jaeger's short-term memory capacity (GMD report 152, 2001): noise u uniform in ±amplitude drives every input,
    and a linear readout of h_t, fitted on one half of the steps, tells u_{t-d} on the other: r²_d, d = 0 ... delays.

    Delay 0 counts here, since h_t has heard u_t. delays: 2 N unless given; steps: 4000, or 20 N if that is more.
    """
    N = reservoir.N
    delays = 2 * N if delays is None else check_integer("delays", delays, 0)
    steps = max(4000, 20 * N) if steps is None else check_integer("steps", steps, 4)
    amplitude = check_positive("amplitude", amplitude)
    if steps < 4 * delays + 4:
        raise ValueError(f"steps={steps} is too short for delays={delays}; give at least {4 * delays + 4} steps.")
    u = as_generator(random_state).uniform(-amplitude, amplitude, delays + steps)
    H = _driven(reservoir, np.tile(u[:, None], reservoir.n_in)).H[delays:]
    T = np.stack([u[delays - d : len(u) - d] for d in range(delays + 1)], axis=1)
    H_c = readout.stack(H, H, direct=False, intercept=True)
    half = steps // 2
    s = readout.sums(H_c[:half], T[:half], delays + 1)
    mu = 1e-12 * float(np.trace(s.G[:-1, :-1])) / N  # next to none, only that copies of a unit do no harm
    U = readout.solve(s, max(mu, 1e-30), intercept=True)
    Y, T = H_c[half:] @ U, T[half:]
    Y, T = Y - Y.mean(axis=0), T - T.mean(axis=0)
    power = (Y * Y).sum(axis=0) * (T * T).sum(axis=0)
    r2 = (Y * T).sum(axis=0) ** 2 / np.maximum(power, 1e-300)
    return MemoryCapacity(r2)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Singular values of the states (sequences, N) that different inputs leave (kernel), and that inputs leave
    which differ only long ago (generalisation), each in units of its largest."""

    kernel_values: Array
    generalisation_values: Array
    tolerance: float

    @property
    def kernel(self) -> int:
        """How many dimensions the reservoir has to tell inputs apart: large is good."""
        return int((self.kernel_values > self.tolerance).sum())

    @property
    def generalisation(self) -> int:
        """How many it spends on what should be forgotten: small is good."""
        return int((self.generalisation_values > self.tolerance).sum())

    def plot(self, axes: Any = None) -> Any:
        from echolearn.diagnostics import plots as diagnostics_plots

        return diagnostics_plots.ranks(self, axes)


def ranks(
    reservoir: Reservoir,
    *,
    steps: int = 50,
    common: int = 25,
    amplitude: float = 0.5,
    tolerance: float = 1e-3,
    random_state: int | np.random.Generator | None = 0,
) -> Ranks:
    """Kernel and generalisation rank (Legenstein and Maass, Neural Networks 20, 2007): of the last states of 2 N noise
    sequences, uniform in ±amplitude, and of as many whose last `common` steps are the same."""
    amplitude = check_positive("amplitude", amplitude)
    tolerance = check_positive("tolerance", tolerance)
    if not check_integer("common", common, 0) < check_integer("steps", steps, 1) or common == 0:
        raise ValueError(f"common={common} of steps={steps}; expected fewer than all steps, and at least one.")
    rng = as_generator(random_state)
    X = rng.uniform(-amplitude, amplitude, (2 * reservoir.N, steps, reservoir.n_in))
    alike = X.copy()
    alike[:, -common:] = X[0, -common:]
    return Ranks(_relative(_last_states(reservoir, X)), _relative(_last_states(reservoir, alike)), tolerance)


def _last_states(reservoir: Reservoir, X: Array) -> Array:
    _refuse_both_ways(reservoir)
    return np.asarray(harvest(reservoir, X)[:, -1])


def _relative(H: Array) -> Array:
    values = np.linalg.svd(H, compute_uv=False)
    return np.asarray(values / max(values[0], 1e-300))
