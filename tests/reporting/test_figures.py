"""Tests of the figures of the reports."""

from __future__ import annotations

import numpy as np

from echolearn.reporting import figures

RNG = np.random.default_rng(0)
UTTERANCE = figures.Utterance(
    picture=RNG.normal(size=(60, 20)),
    picture_label="20 features",
    phones=[(0, "sil"), (5, "aa"), (40, "sil")],
    states=RNG.normal(size=(60, 8)),
    posteriors=RNG.uniform(size=(60, 2)),
    names=["aa", "sil"],
)


def test_the_same_numbers_give_the_same_picture() -> None:
    curves = [figures.Curve("100", (0.5, 0.4, 0.3, 0.3, 0.3, 0.2, 0.1))]
    assert figures.errors_by_column("abcdefg", curves) == figures.errors_by_column("abcdefg", curves)


def test_errors_are_written_beside_their_points_and_gaps_are_left_out() -> None:
    svg = figures.errors_by_column("ab", [figures.Curve("100 units", (0.512, float("nan")))])
    assert ">51.2</text>" in svg
    assert "nan" not in svg


def test_the_papers_errors_are_dashed_and_carry_no_numbers() -> None:
    svg = figures.errors_by_column("ab", [figures.Curve("paper", (0.5, 0.4), dashed=True)])
    assert "stroke-dasharray" in svg
    assert ">50.0</text>" not in svg


def test_phones_end_where_the_next_one_begins() -> None:
    assert UTTERANCE.intervals() == [(0, 5, "sil"), (5, 40, "aa"), (40, 60, "sil")]


def test_every_phone_of_an_utterance_is_named() -> None:
    svg = figures.utterance(UTTERANCE)
    assert svg.count(">aa</text>") == 2  # above its frames, and at the axis
    assert svg.count(">sil</text>") == 3


def test_a_search_is_drawn_against_every_setting() -> None:
    settings = {"ridge": [0.1, 0.2, 0.4], "leak": [(0.1, 1.0), 1.0, 1.0]}
    svg = figures.search_history([0.5, None, 0.6], settings, {"ridge"})
    for text in (">trial</text>", ">ridge</text>", ">leak</text>", ">(0.1, 1.0)</text>"):
        assert text in svg


def test_phones_without_frames_do_not_divide_by_zero() -> None:
    assert ">aa</text>" in figures.confusions(np.array([[3, 1], [0, 0]]), ["aa", "b"])
