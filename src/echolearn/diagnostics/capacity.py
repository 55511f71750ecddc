"""Memory capacity and ranks of a reservoir: how much it remembers, and how many inputs it can distinguish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from echolearn.diagnostics.stability import driven_states, refuse_backward
from echolearn.display.facts import brief
from echolearn.display.figures import BLUE, GREY, ORANGE, prepared_axes
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import statistics_of
from echolearn.readout.view import stack
from echolearn.reservoir import Reservoir
from echolearn.states import harvest
from echolearn.validation import Array, as_generator, check_integer, check_positive

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@dataclass(frozen=True, eq=False)
class MemoryCapacity:
    """The result of `memory_capacity`: how well a linear readout recalls past inputs."""

    by_delay: Array  # r² of the input d steps ago, for each delay d from 0 on
    __repr__ = brief

    @property
    def total(self) -> float:
        """The memory capacity: the sum over all delays, at most N."""
        return float(self.by_delay.sum())

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the forgetting curve: r² by delay."""
        axes = prepared_axes(axes)
        axes.plot(self.by_delay, color=BLUE, linewidth=1.8)
        axes.fill_between(np.arange(len(self.by_delay)), self.by_delay, color=BLUE, alpha=0.15, linewidth=0)
        axes.set(xlabel="delay in steps", ylabel="$r^2$ of the recalled input", ylim=(0, 1.03), xlim=(0, None))
        axes.set_title(f"memory capacity {self.total:.1f}", fontsize=10)
        return axes.figure


def memory_capacity(
    reservoir: Reservoir,
    *,
    delays: int | None = None,
    steps: int | None = None,
    amplitude: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> MemoryCapacity:
    """Measure the short-term memory capacity of a reservoir.

    Noise u, the same in all inputs, drives the reservoir, and a linear readout of h_t is fitted to recall u_{t-d}, on
    one half of the steps. How well it does so on the other half is r²_d, for each delay d.

    Parameters
    ----------
    reservoir : Reservoir
        A reservoir whose units all run forward, without feedback.
    delays : int or None, default None
        The longest delay. Delay 0 counts here, since h_t depends on u_t. None: 2 N.
    steps : int or None, default None
        Number of steps, at least four per delay. More give less noisy results. None: 4000, or 20 N if that is more.
    amplitude : float, default 0.5
        The noise is uniform between minus and plus this number. Stronger inputs make the units more nonlinear, which
        costs memory.
    random_state : int, numpy.random.Generator or None, default 0
        For the noise.

    Returns
    -------
    MemoryCapacity
        r² `by_delay`, their sum `total`, and `plot()`.

    References
    ----------
    Jaeger, Short term memory in echo state networks, GMD report 152 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.diagnostics import memory_capacity
    >>> line = Reservoir(W=np.eye(1, 5), W_rec=np.eye(5, k=-1), activation="identity")
    >>> memory_capacity(line).by_delay[:7].round(1)  # each unit holds one past input
    array([1., 1., 1., 1., 1., 0., 0.])
    """
    N = reservoir.N
    delays = 2 * N if delays is None else check_integer("delays", delays, 0)
    steps = max(4000, 20 * N) if steps is None else check_integer("steps", steps, 4)
    amplitude = check_positive("amplitude", amplitude)
    if steps < 4 * delays + 4:
        raise ValueError(f"steps={steps} is too short for delays={delays}; give at least {4 * delays + 4} steps.")
    u = as_generator(random_state).uniform(-amplitude, amplitude, delays + steps)
    H = driven_states(reservoir, np.tile(u[:, None], reservoir.n_in)).H[delays:]
    T = np.stack([u[delays - d : len(u) - d] for d in range(delays + 1)], axis=1)
    H_c = stack(H, H, direct=False, intercept=True)
    half = steps // 2
    s = statistics_of(H_c[:half], T[:half], delays + 1)
    mu = 1e-12 * float(np.trace(s.G[:-1, :-1])) / N  # next to nothing, so that two equal units do no harm
    U = solve(s, max(mu, 1e-30), intercept=True)
    Y, T = H_c[half:] @ U, T[half:]
    Y, T = Y - Y.mean(axis=0), T - T.mean(axis=0)
    power = (Y * Y).sum(axis=0) * (T * T).sum(axis=0)
    r2 = (Y * T).sum(axis=0) ** 2 / np.maximum(power, 1e-300)
    return MemoryCapacity(r2)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The result of `ranks`: singular values of the last states (sequences, N) after two kinds of sequences."""

    kernel_values: Array  # of sequences that differ everywhere, relative to the largest
    generalisation_values: Array  # of sequences that differ only in their first steps
    tolerance: float  # singular values above it count towards a rank
    __repr__ = brief

    @property
    def kernel(self) -> int:
        """The number of dimensions in which the reservoir distinguishes inputs: large is good."""
        return int((self.kernel_values > self.tolerance).sum())

    @property
    def generalisation(self) -> int:
        """The number of dimensions spent on inputs that should be forgotten: small is good."""
        return int((self.generalisation_values > self.tolerance).sum())

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the singular values of both kinds, and the tolerance."""
        axes = prepared_axes(axes)
        for values, rank, colour, name in (
            (self.kernel_values, self.kernel, BLUE, "different inputs"),
            (self.generalisation_values, self.generalisation, ORANGE, "same recent inputs"),
        ):
            shown = np.maximum(values, 1e-17)
            axes.semilogy(np.arange(1, len(shown) + 1), shown, color=colour, lw=1.8, label=f"{name}: rank {rank}")
        axes.axhline(self.tolerance, color=GREY, linewidth=1, linestyle="--")
        axes.set(xlabel="singular value", ylabel="size, relative to the first")
        axes.set_title(f"kernel rank {self.kernel}, generalisation rank {self.generalisation}", fontsize=10)
        axes.legend(frameon=False, fontsize=9)
        return axes.figure


def ranks(
    reservoir: Reservoir,
    *,
    steps: int = 50,
    common: int = 25,
    amplitude: float = 0.5,
    tolerance: float = 1e-3,
    random_state: int | np.random.Generator | None = 0,
) -> Ranks:
    """Measure the kernel rank and the generalisation rank of a reservoir.

    Both are ranks of the matrix of last states of 2 N noise sequences: sequences that differ everywhere (kernel), and
    sequences whose last `common` steps are the same (generalisation).

    Parameters
    ----------
    reservoir, amplitude, random_state
        As in `memory_capacity`.
    steps : int, default 50
        Length of the sequences.
    common : int, default 25
        Number of last steps that are the same for the generalisation rank: at least 1, fewer than `steps`. Inputs
        before them should be forgotten.
    tolerance : float, default 1e-3
        Singular values below this share of the largest count as 0.

    Returns
    -------
    Ranks
        The ranks `kernel` and `generalisation`, the singular values behind them, and `plot()`.

    References
    ----------
    Legenstein and Maass, Edge of chaos and prediction of computational performance for neural circuit models, Neural
    Networks 20 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.diagnostics import ranks
    >>> line = Reservoir(W=np.eye(1, 6), W_rec=np.eye(6, k=-1), activation="identity")
    >>> found = ranks(line, steps=20, common=8)  # six units distinguish inputs, and forget after six steps
    >>> found.kernel, found.generalisation
    (6, 1)
    """
    amplitude = check_positive("amplitude", amplitude)
    tolerance = check_positive("tolerance", tolerance)
    if not check_integer("common", common, 0) < check_integer("steps", steps, 1) or common == 0:
        raise ValueError(f"common={common} of steps={steps}; expected fewer than all steps, and at least one.")
    rng = as_generator(random_state)
    X = rng.uniform(-amplitude, amplitude, (2 * reservoir.N, steps, reservoir.n_in))
    alike = X.copy()
    alike[:, -common:] = X[0, -common:]
    refuse_backward(reservoir)
    return Ranks(_relative_singular_values(reservoir, X), _relative_singular_values(reservoir, alike), tolerance)


def _relative_singular_values(reservoir: Reservoir, X: Array) -> Array:
    """Return the singular values of the last states of sequences X (sequences, steps, n_in)."""
    values = np.linalg.svd(np.asarray(harvest(reservoir, X))[:, -1], compute_uv=False)
    return np.asarray(values / max(values[0], 1e-300))
