"""Diagnostics -> matplotlib Figures. They touch neither pyplot nor its backend, so they work in any setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle
except ImportError as problem:
    raise ImportError("plots need matplotlib: pip install 'echolearn[report]'.") from problem

if TYPE_CHECKING:
    from echolearn.diagnostics.measures import Echo, Linearised, Lyapunov, MemoryCapacity, Ranks

BLUE, ORANGE, GREY = "#2a6fb0", "#d9762b", "#8a8a8a"


def _axes(axes: Any, size: tuple[float, float] = (5.2, 3.4)) -> Any:
    if axes is None:
        axes = Figure(figsize=size, layout="constrained").add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def eigenvalues(result: Linearised, axes: Any = None) -> Any:
    """Eigenvalues of the linearised step in the complex plane, and the unit circle."""
    axes = _axes(axes, (4.4, 4.4))
    values = result.eigenvalues
    axes.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
    axes.add_patch(Circle((0, 0), result.radius, fill=False, color=BLUE, linewidth=1, linestyle=":"))
    axes.scatter(values.real, values.imag, s=14, color=BLUE, alpha=0.7, linewidth=0)
    reach = 1.1 * max(1.0, result.radius)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    axes.set_title(f"effective spectral radius {result.radius:.3f}", fontsize=10)
    return axes.figure


def lyapunov(result: Lyapunov, axes: Any = None) -> Any:
    """The exponent as it settles: the mean growth since the washout."""
    axes = _axes(axes)
    counted = result.growth[result.washout :]
    steps = np.arange(result.washout, len(result.growth)) + 1
    with np.errstate(invalid="ignore"):
        running = np.cumsum(counted) / np.arange(1, len(counted) + 1)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.plot(steps, counted, color=BLUE, linewidth=0.5, alpha=0.35, label="each step")
    axes.plot(steps, running, color=ORANGE, linewidth=1.8, label="mean so far")
    axes.set(xlabel="step", ylabel="log growth of a disturbance")
    axes.set_title(f"largest Lyapunov exponent {result.exponent:.3f} a step", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return axes.figure


def echo(result: Echo, axes: Any = None) -> Any:
    """How far apart two runs are that began differently."""
    axes = _axes(axes)
    axes.semilogy(np.maximum(result.distances, 1e-17), color=BLUE, linewidth=1.8)
    after = result.forgotten_after()
    if after is not None:
        axes.axvline(after, color=ORANGE, linewidth=1, linestyle="--")
    axes.set(xlabel="step", ylabel="distance of two runs")
    axes.set_title("start not forgotten" if after is None else f"start forgotten after {after} steps", fontsize=10)
    return axes.figure


def memory(result: MemoryCapacity, axes: Any = None) -> Any:
    """The forgetting curve."""
    axes = _axes(axes)
    axes.plot(result.by_delay, color=BLUE, linewidth=1.8)
    axes.fill_between(np.arange(len(result.by_delay)), result.by_delay, color=BLUE, alpha=0.15, linewidth=0)
    axes.set(xlabel="delay in steps", ylabel="$r^2$ of the recalled input", ylim=(0, 1.03), xlim=(0, None))
    axes.set_title(f"memory capacity {result.total:.1f}", fontsize=10)
    return axes.figure


def ranks(result: Ranks, axes: Any = None) -> Any:
    """Singular values of the states, and the tolerance that makes ranks of them."""
    axes = _axes(axes)
    for values, rank, colour, name in (
        (result.kernel_values, result.kernel, BLUE, "different inputs"),
        (result.generalisation_values, result.generalisation, ORANGE, "same recent inputs"),
    ):
        shown = np.maximum(values, 1e-17)
        axes.semilogy(np.arange(1, len(shown) + 1), shown, color=colour, linewidth=1.8, label=f"{name}: rank {rank}")
    axes.axhline(result.tolerance, color=GREY, linewidth=1, linestyle="--")
    axes.set(xlabel="singular value", ylabel="size, relative to the first")
    axes.set_title(f"kernel rank {result.kernel}, generalisation rank {result.generalisation}", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return axes.figure
