"""What the report shows beside the table: which cells, which utterance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.estimators.classifier import ESNClassifier
from echolearn.reporting import figures as plots
from echolearn.reporting import table as report
from echolearn.speech.corpus import Corpus
from echolearn.speech.phones import phones_of_states, split_state
from echolearn.states.run import harvest

Array = NDArray[Any]

MOST_UNITS = 2_000  # all eigenvalues of a larger W_rec take longer than they tell
SHOWN_STATES = 100
SPOKEN_FRAMES = (180, 420)  # an utterance of about two to four seconds fills the width
_RIDGE_SHOWN, _SOFTMAX_SHOWN = ("W_Wrec_full", "W_Wrec_m3", "W_Wrec_m1"), ("ours",)


def draw(corpus: Corpus, table: Mapping[str, Any], cells: Mapping[str, Any], model: Any) -> list[report.Figure]:
    """cells: name -> a finished cell's result; model: name -> its fitted network."""
    found = [
        _errors(table),
        _learning(table, cells),
        _utterance(corpus, table, cells, model),
        _eigenvalues(cells, model),
        _confusions(corpus, table, cells),
    ]
    return [figure for figure in found if figure is not None]


def _errors(table: Mapping[str, Any]) -> report.Figure:
    columns = [c for c in report.TITLES if any(c in row["columns"] for row in table["rows"])]
    curves = []
    for row in table["rows"]:
        y = [row["columns"].get(c, {}).get("test_error", np.nan) for c in columns]
        curves.append(plots.Curve(f"{row['units']:,} units", y))
    for paper in table["paper_timit"]:
        if any(paper["units"] == row["units"] for row in table["rows"]):
            y = [paper["test_error"].get(c, np.nan) for c in columns]
            curves.append(plots.Curve(f"{paper['units']:,}, TIMIT (paper)", y, dashed=True))
    svg = plots.errors([report.TITLES[c].short for c in columns], curves)
    caption = (
        "Test error by what is learned. The last two columns have our readout and are to be compared with each other. "
        "Dashed: the paper's numbers, on another corpus (TIMIT); only the shape compares."
    )
    return report.Figure("What learning brings", caption, svg)


def _learning(table: Mapping[str, Any], cells: Mapping[str, Any]) -> report.Figure | None:
    panels: dict[str, list[plots.Curve]] = {}
    for row in table["rows"]:
        curves = []
        for column in row["columns"]:
            history = cells.get(f"{column}-{row['units']}-0", {}).get("history") or []
            if history and "valid_error" in history[0]:
                y = [r["valid_error"] for r in history]
                curves.append(plots.Curve(report.TITLES[column].short.replace("\n", " "), y))
        if curves:
            panels[f"{row['units']:,} units"] = curves
    if not panels:
        return None
    caption = (
        "Validation error with a ridge readout after every epoch (first seed). The paper's columns take one step an "
        "epoch, ours one a mini-batch; ours ends with the softmax readout of the table, which is not in this curve."
    )
    return report.Figure("Learning curves", caption, plots.learning(panels))


def _eigenvalues(cells: Mapping[str, Any], model: Any) -> report.Figure | None:
    spectra = []
    for fixed, learned, title in (
        ("esn", _RIDGE_SHOWN, "the paper's settings"),
        ("esn_ours", _SOFTMAX_SHOWN, "our defaults"),
    ):
        pair = _largest(cells, fixed, learned)
        if pair is not None:
            before, after = (np.linalg.eigvals(model(name).recurrent_weights_.toarray()) for name in pair)
            spectra.append(plots.Spectrum(f"{title}, {len(before):,} units", before, after))
    if not spectra:
        return None
    caption = (
        "Eigenvalues of the recurrent weights as drawn and as learned, with their spectral radius. The paper's "
        "settings bring the radius back to λ after every epoch; ours leave it free."
    )
    return report.Figure("What becomes of W_rec", caption, plots.eigenvalues(spectra), wide=True)


def _largest(cells: Mapping[str, Any], fixed: str, learned: tuple[str, ...]) -> tuple[str, str] | None:
    """Names of a fixed cell and a learned one that started from the same weights."""
    sizes = sorted({int(name.split("-")[1]) for name in cells}, reverse=True)
    for units in (n for n in sizes if n <= MOST_UNITS):
        for column in learned:
            pair = f"{fixed}-{units}-0", f"{column}-{units}-0"
            if all(name in cells for name in pair):
                return pair
    return None


def best_cell(cells: Mapping[str, Any]) -> str:
    """Chosen on validation."""
    return min(cells, key=lambda name: float(cells[name]["valid_error"]))


def _utterance(corpus: Corpus, table: Mapping[str, Any], cells: Mapping[str, Any], model: Any) -> report.Figure:
    name = best_cell(cells)
    network = model(name)
    k = typical(corpus, network, cells[name]["test_error"])
    spoken = _spoken(corpus, k, network)
    column, units, _ = name.split("-")
    kind = "Synthetic speech" if table["synthetic"] else "Speech"
    caption = (
        f"{kind}, test utterance {corpus.utterances[k]} (its error is about that of all). From above: its "
        "spectrogram with the phones said; states of "
        f"{spoken.states.shape[1]} of the {int(units):,} units, slow ones below, fast ones above; how likely the "
        f"network holds each phone at each moment ({report.TITLES[column].long}), boxes around what was said."
    )
    return report.Figure("One utterance", caption, plots.utterance(spoken), wide=True)


def typical(corpus: Corpus, network: ESNClassifier, error: float) -> int:
    """Of the test utterances nearest to the wanted length, the one whose error is nearest to that of all."""
    low, high = SPOKEN_FRAMES
    off = {k: max(low - len(corpus.labels[k]), len(corpus.labels[k]) - high, 0) for k in corpus.which("test")}
    fitting = [k for k in off if off[k] == min(off.values())]
    names = np.array(corpus.state_names)
    heard = network.predict([corpus.features[k] for k in fitting])
    errors = [float(np.mean(h != names[corpus.labels[k]])) for k, h in zip(fitting, heard, strict=True)]
    return fitting[int(np.argmin(np.abs(np.array(errors) - error)))]


def _spoken(corpus: Corpus, k: int, network: ESNClassifier) -> plots.Spoken:
    X = corpus.features[k]
    states = harvest(network.reservoir_, X)
    movement = np.abs(np.diff(states, axis=0)).mean(axis=0) / (states.std(axis=0) + 1e-9)
    by_speed = np.argsort(movement, kind="stable")
    by_speed = by_speed[np.linspace(0, len(by_speed) - 1, min(SHOWN_STATES, len(by_speed))).astype(int)]
    scaled = (states - states.mean(axis=0)) / (states.std(axis=0) + 1e-9)
    phones = phones_of_states(corpus.state_names)
    owner = [phones.index(split_state(str(name))[0]) for name in network.classes_]
    by_state = network.predict_proba([X])[0]
    by_phone = np.zeros((len(X), len(phones)))
    np.add.at(by_phone.T, owner, by_state.T)
    said = [split_state(corpus.state_names[label])[0] for label in corpus.labels[k]]
    # Phones in the order of their first sound, then those the network only thought of; the rest are empty rows.
    shown = [phones.index(name) for name in dict.fromkeys(said)]
    shown += [p for p in np.argsort(-by_phone.max(axis=0)) if by_phone[:, p].max() > 0.5 and p not in shown]
    shown.reverse()
    picture, label = _picture(corpus, k, X)
    return plots.Spoken(
        picture,
        label,
        _runs(said),
        scaled[:, by_speed],
        by_phone[:, shown],
        [phones[p] for p in shown],
    )


def _runs(names: list[str]) -> list[tuple[int, str]]:
    """(first frame, name) of each run of equal names."""
    return [(t, name) for t, name in enumerate(names) if t == 0 or name != names[t - 1]]


def _picture(corpus: Corpus, k: int, X: Array) -> tuple[Array, str]:
    if corpus.audio and corpus.audio[k]:
        from echolearn.speech.audio import read_audio

        return spectrogram(read_audio(corpus.audio[k])), "0 to 8 kHz"
    return X, f"{X.shape[1]} features"


def spectrogram(samples: Array) -> Array:
    """Decibels (frames, 257): the frames of the features, 25 ms every 10 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160] * np.hamming(400)
    return np.asarray(20 * np.log10(np.abs(np.fft.rfft(frames, 512)) + 1.0))


def _confusions(corpus: Corpus, table: Mapping[str, Any], cells: Mapping[str, Any]) -> report.Figure:
    name = best_cell(cells)
    counts = np.array(cells[name]["confusion"])
    phones = phones_of_states(corpus.state_names)
    there = counts.sum(axis=1) > 0
    column, units, _ = name.split("-")
    right = np.trace(counts) / counts.sum()
    caption = (
        f"{report.TITLES[column].long}, {int(units):,} units: {100 * right:.1f} % of the test frames get the right "
        "phone. Rows: what was said; columns: what the network heard; every row adds up to 100 %."
    )
    svg = plots.confusions(counts[there][:, there], [p for p, here in zip(phones, there, strict=True) if here])
    return report.Figure("Which phones are taken for which", caption, svg, wide=True)
