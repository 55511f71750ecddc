"""The view of a fitted estimator in a notebook: scikit-learn's diagram with the facts of the fit below it."""

from __future__ import annotations

from html import escape

from echolearn.display.facts import counted
from echolearn.readout.network import Network
from echolearn.training.history import History

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


def network_facts(network: Network, history: History, learn: object) -> FittedFacts:
    """Return the facts of one fitted network; learn: the parameter of the same name."""
    reservoir, readout = network.reservoir, network.readout
    sizes = [counted(reservoir.N, "hidden unit"), counted(reservoir.n_in, "input")]
    sizes.append(counted(readout.U.shape[1], "output"))
    weights = f"W {_times(reservoir.W.shape)}, W_rec {reservoir.W_rec.nnz:,}, U {_times(readout.U.shape)}"
    if reservoir.W_fb is not None:
        weights += f", W_fb {_times(reservoir.W_fb.shape)}"
    kind = "softmax" if readout.softmax else "ridge regression"
    return [
        ("size", ", ".join(sizes)),
        ("weights", weights),
        ("learned", _learned(learn, history)),
        ("readout", f"{kind}, ridge {readout.ridge:.3g}"),
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
