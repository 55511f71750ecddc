"""The figures beside Table 1: which cells they show, which utterance, and their captions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.measured_fit import FitResult
from echolearn.reporting import figures as drawings
from echolearn.reporting.page import Figure
from echolearn.reporting.svg import can_draw
from echolearn.reporting.table import TITLES, Table, shown_columns
from echolearn.speech.audio import read_audio
from echolearn.speech.corpus import Corpus
from echolearn.speech.features import SHIFT, WINDOW
from echolearn.speech.phones import phones_of_states, split_state
from echolearn.states.harvesting import harvest
from echolearn.validation import Array

Results = Mapping[str, FitResult]  # by the name of the cell, "column-units-seed"
LoadModel = Callable[[str], ESNClassifier]  # the network of a cell, by the same name

MOST_UNITS = 2_000  # the eigenvalues of a larger W_rec take too long
SHOWN_STATES = 100
SHOWN_FRAMES = (180, 420)  # an utterance of about two to four seconds fills the width
FFT_LENGTH = 512
_RIDGE_SHOWN, _SOFTMAX_SHOWN = ("W_Wrec_full", "W_Wrec_m3", "W_Wrec_m1"), ("ours",)
ENSEMBLES = ("esn_ours_ensemble", "ours_ensemble")  # their histories are those of several networks


def draw_figures(corpus: Corpus, table: Table, results: Results, load_model: LoadModel) -> list[Figure]:
    """Return the figures of the report; none where matplotlib is missing."""
    if not can_draw():
        return []
    found = [
        _errors(table),
        _learning_curves(table, results),
        _utterance(corpus, table, results, load_model),
        _eigenvalues(results, load_model),
        _confusions(corpus, results),
    ]
    return [figure for figure in found if figure is not None]


def _errors(table: Table) -> Figure:
    columns = shown_columns(table)
    curves = []
    for row in table["rows"]:
        y = [row["columns"][c]["test_error"] if c in row["columns"] else np.nan for c in columns]
        curves.append(drawings.Curve(f"{row['units']:,} units", y))
    for paper in table["paper_timit"]:
        if any(paper["units"] == row["units"] for row in table["rows"]):
            y = [paper["test_error"].get(c, np.nan) for c in columns]
            curves.append(drawings.Curve(f"{paper['units']:,}, TIMIT (paper)", y, dashed=True))
    svg = drawings.errors_by_column([TITLES[c].short for c in columns], curves)
    caption = (
        "Test error by what is learned. The columns after the fifth have our readout: compare each learned "
        "one with the fixed one before it. "
        "Dashed: the paper's errors, on another corpus (TIMIT); compare only the shape."
    )
    return Figure("What learning gains", caption, svg)


def _learning_curves(table: Table, results: Results) -> Figure | None:
    panels: dict[str, list[drawings.Curve]] = {}
    for row in table["rows"]:
        curves = []
        for column in (c for c in row["columns"] if c not in ENSEMBLES):
            result = results.get(f"{column}-{row['units']}-0")
            history = result["history"] if result else []
            if history and "valid_error" in history[0]:
                y = [r["valid_error"] for r in history]
                curves.append(drawings.Curve(TITLES[column].short.replace("\n", " "), y))
        if curves:
            panels[f"{row['units']:,} units"] = curves
    if not panels:
        return None
    caption = (
        "Validation error with a ridge readout after every epoch (first seed). The paper's columns take one step per "
        "epoch, ours one per mini-batch; ours ends with the softmax readout of the table, which is not in this curve."
    )
    return Figure("Learning curves", caption, drawings.learning_curves(panels))


def _eigenvalues(results: Results, load_model: LoadModel) -> Figure | None:
    spectra = []
    for fixed, learned, title in (
        ("esn", _RIDGE_SHOWN, "the paper's settings"),
        ("esn_ours", _SOFTMAX_SHOWN, "our defaults"),
    ):
        pair = _largest_pair(results, fixed, learned)
        if pair is not None:
            before, after = (np.linalg.eigvals(load_model(name).recurrent_weights_.toarray()) for name in pair)
            spectra.append(drawings.Spectrum(f"{title}, {len(before):,} units", before, after))
    if not spectra:
        return None
    caption = (
        "Eigenvalues of the recurrent weights as drawn and as learned, with their spectral radius. The paper's "
        "settings scale the radius back to λ after every epoch; ours leave it free."
    )
    return Figure("How learning changes W_rec", caption, drawings.eigenvalues(spectra), wide=True)


def _largest_pair(results: Results, fixed: str, learned: Sequence[str]) -> tuple[str, str] | None:
    """Return the names of a fixed cell and a learned one that started from the same weights."""
    sizes = sorted({int(name.split("-")[1]) for name in results}, reverse=True)
    for units in (n for n in sizes if n <= MOST_UNITS):
        for column in learned:
            pair = f"{fixed}-{units}-0", f"{column}-{units}-0"
            if all(name in results for name in pair):
                return pair
    return None


def best_cell(results: Results) -> str:
    """Return the name of the cell with the smallest validation error."""
    return min(results, key=lambda name: results[name]["valid_error"])


def _utterance(corpus: Corpus, table: Table, results: Results, load_model: LoadModel) -> Figure:
    name = best_cell(results)
    network = load_model(name)
    k = typical_utterance(corpus, network, results[name]["test_error"])
    shown = _shown_utterance(corpus, k, network)
    column, units, _ = name.split("-")
    kind = "Synthetic speech" if table["synthetic"] else "Speech"
    caption = (
        f"{kind}, test utterance {corpus.utterances[k]} (its error is close to that of the test part). From the top: "
        f"its spectrogram with the phones spoken; states of {shown.states.shape[1]} of the {int(units):,} units, slow "
        "ones at the bottom, fast ones at the top; the probability that the network gives each phone at each moment "
        f"({TITLES[column].long}), with boxes around the phones spoken."
    )
    return Figure("One utterance", caption, drawings.utterance(shown), wide=True)


def typical_utterance(corpus: Corpus, network: ESNClassifier, error: float) -> int:
    """Return the index of the test utterance with an error nearest to `error`, among those of a length to show."""
    low, high = SHOWN_FRAMES
    off = {k: max(low - len(corpus.labels[k]), len(corpus.labels[k]) - high, 0) for k in corpus.which("test")}
    fitting = [k for k in off if off[k] == min(off.values())]
    names = np.array(corpus.state_names)
    recognised = network.predict([corpus.features[k] for k in fitting])
    errors = [float(np.mean(r != names[corpus.labels[k]])) for k, r in zip(fitting, recognised, strict=True)]
    return fitting[int(np.argmin(np.abs(np.array(errors) - error)))]


def _shown_utterance(corpus: Corpus, k: int, network: ESNClassifier) -> drawings.Utterance:
    X = corpus.features[k]
    phones = phones_of_states(corpus.state_names)
    phone_of_class = [phones.index(split_state(str(name))[0]) for name in network.classes_]
    posteriors = np.zeros((len(X), len(phones)))
    np.add.at(posteriors.T, phone_of_class, network.predict_proba([X])[0].T)
    spoken = [split_state(corpus.state_names[label])[0] for label in corpus.labels[k]]
    # Phones in the order of their first frame, then those the network wrongly held likely; other rows would be empty.
    shown = [phones.index(name) for name in dict.fromkeys(spoken)]
    shown += [p for p in np.argsort(-posteriors.max(axis=0)) if posteriors[:, p].max() > 0.5 and p not in shown]
    shown.reverse()
    audio = corpus.audio[k] if corpus.audio else ""
    return drawings.Utterance(
        picture=spectrogram(read_audio(audio)) if audio else X,
        picture_label="0 to 8 kHz" if audio else f"{X.shape[1]} features",
        phones=[(t, name) for t, name in enumerate(spoken) if t == 0 or name != spoken[t - 1]],
        states=_states_by_speed(network, X),
        posteriors=posteriors[:, shown],
        names=[phones[p] for p in shown],
    )


def _states_by_speed(network: ESNClassifier, X: Array) -> Array:
    """Return standardised states (frames, at most SHOWN_STATES), slow units first."""
    states = np.asarray(harvest(network.reservoir_, X))
    deviation = states.std(axis=0) + 1e-9
    by_speed = np.argsort(np.abs(np.diff(states, axis=0)).mean(axis=0) / deviation, kind="stable")
    chosen = np.linspace(0, len(by_speed) - 1, min(SHOWN_STATES, len(by_speed))).astype(int)
    standardised: Array = (states - states.mean(axis=0)) / deviation
    return standardised[:, by_speed[chosen]]


def spectrogram(samples: Array) -> Array:
    """Return decibels (frames, 257), in the frames of the features: 25 ms every 10 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::SHIFT] * np.hamming(WINDOW)
    return np.asarray(20 * np.log10(np.abs(np.fft.rfft(frames, FFT_LENGTH)) + 1.0))


def _confusions(corpus: Corpus, results: Results) -> Figure:
    name = best_cell(results)
    counts = np.array(results[name]["confusion"])
    occurs = counts.sum(axis=1) > 0
    phones = [p for p, shown in zip(phones_of_states(corpus.state_names), occurs, strict=True) if shown]
    column, units, _ = name.split("-")
    right = np.trace(counts) / counts.sum()
    caption = (
        f"{TITLES[column].long}, {int(units):,} units: {100 * right:.1f} % of the test frames get the right phone. "
        "Rows: the phone spoken; columns: the phone recognised; every row adds up to 100 %."
    )
    svg = drawings.confusions(counts[occurs][:, occurs], phones)
    return Figure("Phone confusions", caption, svg, wide=True)
