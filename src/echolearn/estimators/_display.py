"""The view of a fitted estimator in a notebook: scikit-learn's diagram with the facts of the fit below it."""

from __future__ import annotations

from html import escape
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from echolearn.display.facts import counted
from echolearn.display.figures import BLUE, GREY, ORANGE, new_figure, prepared_axes
from echolearn.fitting.model import FittedModel
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
from echolearn.reservoir._deep_reservoir import decay
from echolearn.training.history import History
from echolearn.validation import Answers, Array, SequencesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FittedFacts = list[tuple[str, str]]


class NotebookMixin:
    """Gives an estimator its picture in a notebook. The estimator has `_fitted_facts`, empty before a fit."""

    def _fitted_facts(self) -> FittedFacts:
        return []

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] += as_html(self._fitted_facts())
        return shown

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + as_html(self._fitted_facts())  # type: ignore[misc]


def as_html(facts: FittedFacts) -> str:
    """Return facts as a small table, or "" if there are none."""
    if not facts:
        return ""
    style = "text-align: left; font-weight: normal; opacity: 0.75; padding: 1px 12px 1px 0"
    rows = "".join(
        f'<tr style="background: none"><th scope="row" style="{style}">{escape(name)}</th>'
        f'<td style="text-align: left; padding: 1px 0">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return f'<table style="font-size: 90%; margin: 4px 0; border: none">{rows}</table>'


def network_facts(network: Network | DeepNetwork, history: History, learn: object) -> FittedFacts:
    """Return the facts of one fitted network; learn: the parameter of the same name."""
    if isinstance(network, DeepNetwork):
        stack, readout = network.reservoir, network.readout
        sizes = [counted(stack.layers, "layer"), counted(stack.units, "unit"), counted(stack.n_in, "input")]
        kind = "softmax" if readout.softmax else f"ridge regression, ridge {readout.ridge:.3g}"
        learned = "all weights" if history else "the readout only"
        facts = [("size", ", ".join(sizes)), ("weights", f"{network.size:,}"), ("learned", learned), ("readout", kind)]
        return [*facts, *history_facts(history)]
    reservoir, readout = network.reservoir, network.readout
    sizes = [counted(reservoir.N, "hidden unit"), counted(reservoir.n_in, "input")]
    sizes.append(counted(readout.U.shape[1], "output"))
    weights = f"W {_times(reservoir.W.shape)}, W_rec {reservoir.W_rec.nnz:,}, U {_times(readout.U.shape)}"
    if reservoir.W_fb is not None:
        weights += f", W_fb {_times(reservoir.W_fb.shape)}"
    kind = "softmax" if readout.softmax else "ridge regression"
    summary = network.view.summary
    return [
        ("size", ", ".join(sizes)),
        ("weights", weights),
        ("learned", _learned(learn, history)),
        ("readout", f"{kind}, ridge {readout.ridge:.3g}" + ("" if summary is None else f", {summary}")),
        *history_facts(history),
    ]


def history_facts(history: History) -> FittedFacts:
    """Return how learning went."""
    return [("learning", history.summary())] if history else []


def _learned(learn: object, history: History) -> str:
    matrices = {"both": "W, W_rec and the readout", "input": "W and the readout", "recurrent": "W_rec and the readout"}
    return matrices.get(str(learn), f"{learn} and the readout") if history else "the readout only"


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


MAX_EIGENVALUE_UNITS = 1500  # units up to which all eigenvalues are computed: a second or two
MAX_PLOTTED_UNITS, MAX_PLOTTED_STEPS = 300, 600  # of the picture of states
HISTOGRAM_BINS = 41


class PlotMixin:
    """Gives an estimator with one network the method `plot`."""

    model_: FittedModel

    if TYPE_CHECKING:

        def states(self, X: SequencesLike) -> Answers: ...

    def plot(self, X: SequencesLike = None) -> Figure:
        """Plot what was learned: errors, weights and eigenvalues before and after, the readout, and states.

        Of a deep network: errors, the eigenvalues of all layers, the readout, and states.

        Parameters
        ----------
        X : array of shape (n_steps, n_features) or (n_steps,), list of arrays, or 3-D array, default=None
            A sequence whose hidden states are shown too; of several, the first. None: no states.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows. It requires matplotlib (`pip install 'echolearn[report]'`).

        Notes
        -----
        Weights before learning are known for an estimator that was fitted in this process, but not for an ensemble or
        of one that was loaded from a file: of these, weights and eigenvalues are shown as they are.
        """
        check_is_fitted(self)
        states = None
        if X is not None:
            found = self.states(X[:, None] if isinstance(X, np.ndarray) and X.ndim == 1 else X)
            states = np.asarray(found[0] if isinstance(found, list) or np.ndim(found) > 2 else found)
        if isinstance(self.model_.network, DeepNetwork):
            return plot_deep(self.model_.network, self.model_.history, states)
        return plot_network(self.model_.single, self.model_.history, self.model_.initial_reservoir, states)


def plot_network(network: Network, history: History, before: Reservoir | None, states: Array | None) -> Figure:
    """Return a figure of errors, weights and eigenvalues, and of states (steps, units) if there are any.

    before: the reservoir before learning; None where it is not known.
    """
    figure = new_figure((9.6, 6.8 if states is None else 9.6))
    bottom = [] if states is None else [["states", "states"]]
    rows: dict[str, Axes] = figure.subplot_mosaic([["errors", "weights"], ["spectrum", "readout"], *bottom])
    history.plot(rows["errors"])
    _weights(network.reservoir, before, rows["weights"])
    _spectrum(network.reservoir, before, rows["spectrum"])
    _readout(network, rows["readout"])
    if states is not None:
        _states(states, network.reservoir.leak, rows["states"])
    return figure


def plot_deep(network: DeepNetwork, history: History, states: Array | None) -> Figure:
    """Return a figure of the errors, eigenvalues and readout of a deep network, and of states if there are any."""
    figure = new_figure((9.6, 3.4 if states is None else 6.4))
    bottom = [] if states is None else [["states"] * 3]
    rows: dict[str, Axes] = figure.subplot_mosaic([["errors", "spectrum", "readout"], *bottom])
    history.plot(rows["errors"])
    layers = [(stack.weights, k) for stack in network.stacks for k in range(1, stack.layers + 1)]
    a = np.concatenate([decay(weights[f"{k}/alpha"]) for weights, k in layers])
    values = a * np.exp(1j * np.concatenate([weights[f"{k}/theta"] for weights, k in layers]))
    prepared_axes(rows["spectrum"])
    _eigenvalues({BLUE: np.concatenate([values, values.conj()])}, rows["spectrum"])
    rows["spectrum"].set_title(f"eigenvalues of {len(layers)} layers: at most {a.max():.3f}", fontsize=10)
    _readout(network, rows["readout"])
    if states is not None:
        leaks = np.concatenate([np.tile(1 - decay(weights[f"{k}/alpha"]), 2) for weights, k in layers])
        _states(states, leaks, rows["states"])
    return figure


def _eigenvalues(by_colour: dict[str, Array], axes: Axes) -> None:
    """Plot eigenvalues beside the unit circle."""
    from matplotlib.patches import Circle

    axes.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
    for colour, values in by_colour.items():
        axes.scatter(values.real, values.imag, s=12, color=colour, alpha=0.7, linewidth=0)
    reach = 1.1 * max(1.0, *(float(np.abs(values).max(initial=0.0)) for values in by_colour.values()))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")


def _weights(reservoir: Reservoir, before: Reservoir | None, axes: Axes) -> None:
    """Plot how learned weights differ from those at the start, or how they are distributed."""
    prepared_axes(axes)
    if before is None or reservoir.W.shape != before.W.shape or reservoir.W_rec.nnz != before.W_rec.nnz:
        axes.hist(
            reservoir.W_rec.data,
            bins=HISTOGRAM_BINS,
            color=BLUE,
            alpha=0.7,
            label=f"recurrent ({reservoir.W_rec.nnz:,})",
        )
        axes.hist(
            np.ravel(reservoir.W), bins=HISTOGRAM_BINS, color=ORANGE, alpha=0.5, label=f"input ({reservoir.W.size:,})"
        )
        axes.set(xlabel="weight", ylabel="number")
        axes.set_title("weights", fontsize=10)
    else:
        for now, then, colour, name in (
            (np.ravel(reservoir.W), np.ravel(before.W), ORANGE, "input"),
            (reservoir.W_rec.data, before.W_rec.data, BLUE, "recurrent"),
        ):
            change = np.linalg.norm(now - then) / (np.linalg.norm(then) or 1.0)
            axes.scatter(then, now, s=6, color=colour, alpha=0.4, linewidth=0, label=f"{name}: moved by {change:.0%}")
        axes.axline((0, 0), slope=1, color=GREY, linewidth=1)
        axes.set(xlabel="weight before learning", ylabel="after")
        axes.set_title("what was learned", fontsize=10)
    axes.legend(frameon=False, fontsize=9)


def _spectrum(reservoir: Reservoir, before: Reservoir | None, axes: Axes) -> None:
    """Plot the eigenvalues of the recurrent weights, before and after learning."""
    prepared_axes(axes)
    if reservoir.N > MAX_EIGENVALUE_UNITS:
        axes.set_axis_off()
        text = f"{reservoir.N:,} units: eigenvalues are\nnot computed above {MAX_EIGENVALUE_UNITS:,}"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
        return
    found, radii = {}, []
    for one, colour, name in ((before, GREY, "before (grey)"), (reservoir, BLUE, "after")):
        if one is None:
            continue
        found[colour] = np.linalg.eigvals(one.W_rec.toarray())
        radius = float(np.abs(found[colour]).max(initial=0.0))
        radii.append(f"{radius:.3f} {name}" if before is not None else f"{radius:.3f}")
    _eigenvalues(found, axes)
    axes.set_title(f"eigenvalues: spectral radius {', '.join(radii)}", fontsize=10)


def _readout(network: Network | DeepNetwork, axes: Axes) -> None:
    """Plot how much the readout takes from each of its rows, the largest first."""
    prepared_axes(axes)
    sizes = np.linalg.norm(network.readout.U[:-1], axis=1)
    axes.plot(np.arange(1, len(sizes) + 1), np.sort(sizes)[::-1], color=BLUE, linewidth=1.8)
    axes.set(xlabel="states and inputs, by size", ylabel="size of readout weights", ylim=(0, None))
    rows, outputs = len(sizes), network.readout.U.shape[1]
    axes.set_title(f"readout: {rows:,} x {outputs} weights, ridge {network.readout.ridge:.3g}", fontsize=10)


def _states(states: Array, leak: Array, axes: Axes) -> None:
    """Plot states over time as a picture, slow units below and fast ones above."""
    order = np.argsort(leak, kind="stable")
    shown = np.linspace(0, len(order) - 1, min(len(order), MAX_PLOTTED_UNITS)).astype(int)
    steps = states[:MAX_PLOTTED_STEPS]
    picture = steps[:, order[shown]].T
    largest = float(np.abs(picture).max(initial=0.0)) or 1.0
    drawn = axes.imshow(picture, aspect="auto", origin="lower", cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.figure.colorbar(drawn, ax=axes, fraction=0.03, pad=0.01)
    sorted_by = "units" if np.ptp(leak) == 0 else "units, slow to fast"
    axes.set(xlabel="step", ylabel=sorted_by)
    rest = "" if len(states) <= MAX_PLOTTED_STEPS else f" (the first {MAX_PLOTTED_STEPS} of {len(states):,} steps)"
    axes.set_title(f"hidden states{rest}", fontsize=10)


class ExportMixin:
    """Gives an estimator the method `export`."""

    def export(
        self,
        path: str | PathLike[str],
        *,
        name: str = "esn",
        step: bool = False,
        numbers: str | None = None,
        X: ArrayLike | None = None,
    ) -> None:
        """Write the fitted estimator as an ONNX file, a header in C, or a page for the browser.

        ONNX and C: docs/howto/export.md. Pages for the browser: docs/howto/browser.md.

        Parameters
        ----------
        path : str or path-like
            The file to write. Its ending is the format: .onnx for ONNX (extra `onnx`), .h for C, .html for a page in
            which the estimator runs.
        name : str, default="esn"
            The prefix of the functions in C, the name of the graph in ONNX, or the name of the model on a page.
        step : bool, default=False
            Whether an ONNX graph takes one frame and a state at a time, instead of whole sequences. Code in C
            always takes one frame at a time.
        numbers : {"float32", "float64", "int16", "int8"}, default=None
            The type of number in which the exported network computes. None: the `dtype` of the estimator. "int16" and
            "int8" are for C on small processors only. A page for the browser requires None.
        X : array of shape (n_steps, n_features), default=None
            A sequence on which the loss of accuracy by `numbers` is measured. The result is written into the header.
            For C only.

        Raises
        ------
        ExportError
            If an option cannot be exported; the message names it.
        """
        check_is_fitted(self)
        exporting = import_module("echolearn.export")
        exporting.export_model(self, path, name=name, step=step, numbers=numbers, X=X)
