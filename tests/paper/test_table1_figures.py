"""Tests of the figures beside Table 1, and of the report with all of them."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from echolearn.display.svg import VARIABLES
from echolearn.paper import table1, table1_figures
from echolearn.paper.table1 import Plan
from echolearn.reservoir import Reservoir
from echolearn.speech import Corpus
from echolearn.states import harvest
from sampletable import table


class Links(HTMLParser):
    """Everything a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "srcset", "action")]


class Silent:
    """Progress that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture(scope="module")
def page(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> str:
    out: Path = tmp_path_factory.mktemp("page")
    plan = Plan(units=(8,), epochs=2, ours={"epochs": 2}, columns=("esn", "W_Wrec_m3", "esn_ours", "ours"))
    table1.run(corpus, plan, out, Silent())
    return (out / "report.html").read_text()


def test_the_best_network_may_be_a_deep_one(corpus: Corpus, tmp_path: Path) -> None:
    table1.run(corpus, Plan(units=(8,), deep={"epochs": 2}, columns=("deep",)), tmp_path, Silent())
    report = (tmp_path / "report.html").read_text()
    assert "One utterance" in report
    assert "(deep, learned)" in report
    assert "deep, learned, 8 units: " in report


def test_the_page_is_self_contained(page: str) -> None:
    parsed = Links()
    parsed.feed(page)
    assert all(link.startswith(("data:", "#")) for link in parsed.found)
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    assert parsed.tags.count("svg") == 5
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page


def test_figures_take_their_colours_from_the_page(page: str) -> None:
    assert "var(--ink)" in page
    assert not [c for c in VARIABLES if c in page]


def test_ids_of_figures_do_not_collide(page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_without_matplotlib_there_are_no_figures(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1_figures, "can_draw", lambda: False)
    assert table1_figures.draw_figures(corpus, table(), {}, None) == []  # type: ignore[arg-type]


def test_the_best_cell_is_chosen_on_validation() -> None:
    results: Any = {
        "esn-5-0": {"valid_error": 0.4, "test_error": 0.1},
        "ours-5-0": {"valid_error": 0.3, "test_error": 0.5},
    }
    assert table1_figures.best_cell(results) == "ours-5-0"


def test_a_tone_is_at_its_frequency_in_the_spectrogram() -> None:
    tone = 1000 * np.sin(2 * np.pi * 2_000 * np.arange(16_000) / 16_000)
    picture = table1_figures.spectrogram(tone)
    assert picture.shape == (98, 257)
    assert (picture.argmax(axis=1) == 64).all()  # 2 kHz of 8 kHz over 256 steps


class FixedNetwork:
    """A network whose answers are given: at every frame "aa" has 0.1, "b" 0.7 and "sil" 0.2."""

    def __init__(self, corpus: Corpus, wrong: dict[int, float] | None = None):
        self.corpus, self.wrong = corpus, wrong or {}
        self.classes_ = np.array(corpus.state_names)
        self.reservoir_ = Reservoir.random(corpus.columns, 6, random_state=0)
        self.recurrent_weights_ = self.reservoir_.W_rec

    def states(self, X: list[Any]) -> list[Any]:
        """Return the states of a random reservoir."""
        return harvest(self.reservoir_, X)

    def predict(self, X: list[Any]) -> list[Any]:
        """Return the labels of each utterance, with a given share of wrong ones."""
        found = []
        for x in X:
            k = next(k for k, own in enumerate(self.corpus.features) if np.array_equal(own, x))
            y = np.array(self.corpus.labels[k])
            count = round(self.wrong.get(k, 0.0) * len(y))
            y[:count] = (y[:count] + 1) % len(self.classes_)
            found.append(self.classes_[y])
        return found

    def predict_proba(self, X: list[Any]) -> list[Any]:
        """Return the same probabilities at all frames."""
        row = {"b_s2": 0.3, "b_s3": 0.3, "b_s4": 0.1, "sil_s2": 0.1, "sil_s3": 0.1, "aa_s2": 0.1}
        return [np.tile([row.get(str(name), 0.0) for name in self.classes_], (len(x), 1)) for x in X]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What each drawing was given, by its name."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(table1_figures, "can_draw", lambda: True)
    for name in ("errors_by_column", "learning_curves", "utterance", "eigenvalues", "confusions"):
        monkeypatch.setattr(table1_figures, name, lambda *given, name=name: found.setdefault(name, given) and name)
    return found


def sample_results(corpus: Corpus) -> Any:
    counts = np.zeros((3, 3), int)
    counts[0, 0], counts[0, 2], counts[2, 2] = 6, 2, 8  # "b" is never spoken
    curve = [{"valid_error": 0.5}, {"valid_error": 0.4, "other": 1.0}]
    each: Any = {"test_error": 0.3, "valid_error": 0.4, "confusion": counts.tolist(), "history": curve}
    names = ("esn-100-0", "W_Wrec_m3-100-0", "ours-100-0", "esn_ours-100-0", "esn-50-0", "W_Wrec_m3-50-0")
    results = {name: dict(each) for name in names}
    results["ours-100-0"]["valid_error"] = 0.2
    results["esn-100-0"]["history"] = []
    return results


def test_what_the_figures_show(corpus: Corpus, drawn: dict[str, Any]) -> None:
    loaded: list[str] = []

    def load_model(name: str) -> Any:
        loaded.append(name)
        return FixedNetwork(corpus)

    found = table1_figures.draw_figures(corpus, table(), sample_results(corpus), load_model)
    assert [figure.svg for figure in found] == [
        "errors_by_column",
        "learning_curves",
        "utterance",
        "eigenvalues",
        "confusions",
    ]
    assert [figure.wide for figure in found] == [False, False, True, True, True]
    assert loaded[0] == "ours-100-0"  # the smallest validation error
    assert loaded[1:] == ["esn-100-0", "W_Wrec_m3-100-0", "esn_ours-100-0", "ours-100-0"]  # the largest pairs
    groups, (ours, paper) = drawn["errors_by_column"]
    assert list(groups.values()) == [("paper", False)] * 2 + [("ours", False)] * 2
    assert (list(ours.y), ours.dashed) == ([0.6, 0.45, 0.4, 0.3], False)
    assert (paper.label, paper.dashed) == ("100, TIMIT (paper)", True)
    np.testing.assert_array_equal(paper.y, [0.755, 0.632, np.nan, np.nan])
    (panels,) = drawn["learning_curves"]
    assert {title: len(curves) for title, curves in panels.items()} == {"100 units": 3}  # "esn" has no epochs
    assert panels["100 units"][0].y == [0.5, 0.4]
    ends = {curve.label: (curve.dashed, curve.end) for curve in panels["100 units"]}
    assert ends["W+W_rec m=3"] == (False, None)  # its readout is that of the table
    assert ends["learned, ours"] == (True, 0.2)  # ends with the readout of the table, lowest of all
    table_shown, phones, _ = drawn["confusions"]
    assert (table_shown.tolist(), list(phones)) == ([[6, 2], [0, 8]], ["aa", "sil"])
    assert ": 87.5 % of the test frames" in found[4].caption
    assert "100 units" in found[4].caption
    assert "of the 100 units" in found[2].caption


def test_the_utterance_that_is_shown(corpus: Corpus, drawn: dict[str, Any]) -> None:
    table1_figures.draw_figures(corpus, table(), sample_results(corpus), lambda name: FixedNetwork(corpus))  # type: ignore[arg-type,return-value]
    (shown,) = drawn["utterance"]
    test = corpus.which("test")
    k = next(
        k for k in test if len(corpus.labels[k]) == len(shown.picture) and (corpus.features[k] == shown.picture).all()
    )
    names = [corpus.state_names[label].split("_")[0] for label in corpus.labels[k]]
    starts = [t for t in range(len(names)) if t == 0 or names[t] != names[t - 1]]
    assert [(start, name) for start, _, name in shown.phones] == [(t, names[t]) for t in starts]
    assert [end for _, end, _ in shown.phones] == [*starts[1:], len(names)]
    assert shown.picture_label == f"{corpus.columns} features"
    expected = {"aa": 0.1, "b": 0.7, "sil": 0.2}
    np.testing.assert_allclose(shown.posteriors, np.tile([expected[p] for p in shown.names], (len(names), 1)))
    assert list(shown.names) == list(dict.fromkeys(names))[::-1]
    states = harvest(FixedNetwork(corpus).reservoir_, corpus.features[k])
    np.testing.assert_allclose(shown.states.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(shown.states.std(axis=0), 1, atol=1e-6)
    speed = np.abs(np.diff(states, axis=0)).mean(axis=0) / states.std(axis=0)
    found = np.abs(np.diff(shown.states, axis=0)).mean(axis=0)
    np.testing.assert_allclose(found, np.sort(speed), rtol=1e-5)


def test_a_likely_phone_that_was_not_spoken_is_shown_too(corpus: Corpus, drawn: dict[str, Any]) -> None:
    only = [np.full_like(y, corpus.state_names.index("aa_s2")) for y in corpus.labels]
    spoken = dataclasses.replace(corpus, labels=only)
    table1_figures.draw_figures(spoken, table(), sample_results(corpus), lambda name: FixedNetwork(spoken))  # type: ignore[arg-type,return-value]
    (shown,) = drawn["utterance"]
    assert list(shown.names) == ["b", "aa"]  # "sil" is not likely
    assert shown.phones == [(0, len(shown.posteriors), "aa")]


def test_the_typical_utterance_is_a_test_utterance_of_a_length_to_show(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = corpus.which("test")
    wrong = {k: 0.2 + 0.1 * i for i, k in enumerate(test)}
    network: Any = FixedNetwork(corpus, wrong)
    monkeypatch.setattr(table1_figures, "SHOWN_FRAMES", (1, 1000))
    for i, k in enumerate(test):
        assert table1_figures.typical_utterance(corpus, network, 0.2 + 0.1 * i) == k
    lengths = {k: len(corpus.labels[k]) for k in test}
    assert len(set(lengths.values())) == len(test)
    for k, length in lengths.items():
        monkeypatch.setattr(table1_figures, "SHOWN_FRAMES", (length, length))
        assert table1_figures.typical_utterance(corpus, network, 0.5) == k
    for limits, wanted in (((500, 600), max), ((2, 5), min)):  # none fits: the nearest length
        monkeypatch.setattr(table1_figures, "SHOWN_FRAMES", limits)
        assert table1_figures.typical_utterance(corpus, network, 0.5) == wanted(lengths, key=lengths.__getitem__)


def test_a_spectrogram_is_in_decibels_above_one() -> None:
    tone = 1000 * np.sin(2 * np.pi * 2_000 * np.arange(400) / 16_000)
    (row,) = table1_figures.spectrogram(tone)
    spectrum = np.abs(np.fft.rfft(tone * np.hamming(400), 512))
    np.testing.assert_allclose(row, 20 * np.log10(spectrum + 1), rtol=1e-10)
    assert (table1_figures.spectrogram(np.zeros(400)) == 0).all()


RNG = np.random.default_rng(0)
UTTERANCE = table1_figures.Utterance(
    picture=RNG.normal(size=(60, 20)),
    picture_label="20 features",
    phones=[(0, 5, "sil"), (5, 40, "aa"), (40, 60, "sil")],
    states=RNG.normal(size=(60, 8)),
    posteriors=RNG.uniform(size=(60, 2)),
    names=["aa", "sil"],
)


def test_the_same_numbers_give_the_same_picture() -> None:
    curves = [table1_figures.Curve("100", (0.5, 0.4, 0.3, 0.3, 0.3, 0.2, 0.1))]
    groups = dict(zip("abcdefg", "pppppoo", strict=True))
    assert table1_figures.errors_by_column(groups, curves) == table1_figures.errors_by_column(groups, curves)


def test_lines_connect_columns_of_the_same_form_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line from one form to another would show a gain that is not due to learning."""
    lines: list[list[int]] = []

    def recorded(axes: Any, x: Any, y: Any, **style: Any) -> list[Any]:
        lines.append(list(x))
        return plot(axes, x, y, **style)

    plot = Axes.plot
    monkeypatch.setattr(Axes, "plot", recorded)
    curve = table1_figures.Curve("100", (0.6, 0.5, 0.4, 0.3, 0.2))
    table1_figures.errors_by_column({"a": "paper", "b": "paper", "c": "ours", "d": "deep", "e": "deep"}, [curve])
    assert lines == [[0, 1], [2], [3, 4]]


def test_errors_are_written_beside_their_points_and_gaps_are_left_out() -> None:
    svg = table1_figures.errors_by_column({"a": 1, "b": 1}, [table1_figures.Curve("100 units", (0.512, float("nan")))])
    assert ">51.2</text>" in svg
    assert "nan" not in svg


def test_the_papers_errors_are_dashed_and_carry_no_numbers() -> None:
    svg = table1_figures.errors_by_column({"a": 1, "b": 1}, [table1_figures.Curve("paper", (0.5, 0.4), dashed=True)])
    assert "stroke-dasharray" in svg
    assert ">50.0</text>" not in svg


def test_every_phone_of_an_utterance_is_named() -> None:
    svg = table1_figures.utterance(UTTERANCE)
    assert svg.count(">aa</text>") == 2  # above its frames, and at the axis
    assert svg.count(">sil</text>") == 3


def test_phones_without_frames_do_not_divide_by_zero() -> None:
    assert ">aa</text>" in table1_figures.confusions(np.array([[3, 1], [0, 0]]), ["aa", "b"], ["aa", "b"])
