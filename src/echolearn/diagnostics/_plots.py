"""Figures of diagnostics, in the style of all figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from echolearn.display.figures import BLUE, GREY, ORANGE, prepared_axes
from echolearn.validation import Array

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def plot_eigenvalues(values: Array, radius: float, axes: Axes | None) -> Figure | SubFigure:
    """Plot eigenvalues in the complex plane, with the unit circle and the circle through the largest."""
    axes = prepared_axes(axes, (4.4, 4.4))
    from matplotlib.patches import Circle

    axes.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
    axes.add_patch(Circle((0, 0), radius, fill=False, color=BLUE, linewidth=1, linestyle=":"))
    axes.scatter(values.real, values.imag, s=14, color=BLUE, alpha=0.7, linewidth=0)
    reach = 1.1 * max(1.0, radius)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    axes.set_title(f"effective spectral radius {radius:.3f}", fontsize=10)
    return axes.figure


def plot_growth(growth: Array, washout: int, exponent: float, axes: Axes | None) -> Figure | SubFigure:
    """Plot the growth of a disturbance at each step after the washout, and its mean so far."""
    axes = prepared_axes(axes)
    counted = growth[washout:]
    steps = np.arange(washout, len(growth)) + 1
    with np.errstate(invalid="ignore"):
        running = np.cumsum(counted) / np.arange(1, len(counted) + 1)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.plot(steps, counted, color=BLUE, linewidth=0.5, alpha=0.35, label="each step")
    axes.plot(steps, running, color=ORANGE, linewidth=1.8, label="mean so far")
    axes.set(xlabel="step", ylabel="log growth of a disturbance")
    axes.set_title(f"largest Lyapunov exponent {exponent:.3f} per step", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return axes.figure


def plot_distances(distances: Array, forgotten_after: int | None, axes: Axes | None) -> Figure | SubFigure:
    """Plot the distance of two runs at each step, and when the initial state is forgotten."""
    axes = prepared_axes(axes)
    axes.semilogy(np.maximum(distances, 1e-17), color=BLUE, linewidth=1.8)
    if forgotten_after is not None:
        axes.axvline(forgotten_after, color=ORANGE, linewidth=1, linestyle="--")
    axes.set(xlabel="step", ylabel="distance of two runs")
    after = "start not forgotten" if forgotten_after is None else f"start forgotten after {forgotten_after} steps"
    axes.set_title(after, fontsize=10)
    return axes.figure


def plot_recall(by_delay: Array, total: float, axes: Axes | None) -> Figure | SubFigure:
    """Plot how well inputs are recalled after each delay."""
    axes = prepared_axes(axes)
    axes.plot(by_delay, color=BLUE, linewidth=1.8)
    axes.fill_between(np.arange(len(by_delay)), by_delay, color=BLUE, alpha=0.15, linewidth=0)
    axes.set(xlabel="delay in steps", ylabel="$r^2$ of the recalled input", ylim=(0, 1.03), xlim=(0, None))
    axes.set_title(f"memory capacity {total:.1f}", fontsize=10)
    return axes.figure


def plot_singular_values(
    kernel: tuple[Array, int], generalisation: tuple[Array, int], tolerance: float, axes: Axes | None
) -> Figure | SubFigure:
    """Plot singular values, each kind with the rank that follows from the tolerance."""
    axes = prepared_axes(axes)
    for (values, rank), colour, name in (
        (kernel, BLUE, "different inputs"),
        (generalisation, ORANGE, "same recent inputs"),
    ):
        shown = np.maximum(values, 1e-17)
        axes.semilogy(np.arange(1, len(shown) + 1), shown, color=colour, linewidth=1.8, label=f"{name}: rank {rank}")
    axes.axhline(tolerance, color=GREY, linewidth=1, linestyle="--")
    axes.set(xlabel="singular value", ylabel="size, relative to the first")
    axes.set_title(f"kernel rank {kernel[1]}, generalisation rank {generalisation[1]}", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return axes.figure
