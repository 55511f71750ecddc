"""The benchmark of whole series: its scores, what it runs again, and its tables."""

import json

import numpy as np
import pytest

import results
import sequences
import table_text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder for result files."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    return tmp_path


def row(work, method, error, code=None, **others):
    measures = dict.fromkeys(sequences.MEASURES, 1.0) | {"error": error}
    return {"work": work, "method": method, "code": code, "commit": "0" * 40, **measures, **others}


def test_scores_by_hand():
    P = np.array([[0.8, 0.2], [0.5, 0.5], [1.0, 0.0]])
    found = sequences.scores(np.array(["a", "b"]), P, np.array(["a", "b", "b"]))
    assert found["error"] == pytest.approx(200 / 3)
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.5, 1e-6]).mean())
    assert found["brier"] == pytest.approx((0.08 + 0.5 + 2.0) / 3)


def test_series_are_given_without_their_padding():
    X = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    assert [x.shape for x in sequences.given(sequences.OURS, X)] == [(2, 1), (3, 1)]
    assert sequences.given("MiniRocket", X).tolist() == [[[1, 2, 0]], [[3, 4, 5]]]


def test_ours_is_run_again_when_the_code_has_changed(folder):
    sequences.keep(row("a", sequences.OURS, 3.0, code="old"))
    sequences.keep(row("a", "QUANT", 4.0))
    assert sequences.known("a", sequences.OURS, "old")
    assert not sequences.known("a", sequences.OURS, "new")
    assert sequences.known("a", "QUANT", "new")
    assert not sequences.known("b", "QUANT", "new")
    sequences.keep(row("a", sequences.OURS, 2.0, code="new"))
    content = json.loads((folder / "sequences.json").read_text())
    assert [r["error"] for r in content["rows"]] == [4.0, 2.0]
    assert [r["error"] for r in content["superseded"]] == [3.0]


def test_tables_compare_what_both_have_run_on(folder):
    errors = {"a": (1, 2, 2, 3), "b": (5, 5, 4, 5), "c": (7, 9, 8, 9)}
    for work, values in errors.items():
        for method, error in zip(sequences.METHODS, values, strict=True):
            if (work, method) != ("c", "MultiRocket-Hydra"):
                sequences.keep(row(work, method, float(error)))
    lines = sequences.sequences_pairs().splitlines()
    assert lines[2].startswith("| MiniRocket | 3 | 4.33 | 5.33 | 2/1/0 |")
    assert lines[3].startswith("| MultiRocket-Hydra | 2 | 3.00 | 3.00 | 1/0/1 |")
    ranks = sequences.sequences_ranks().splitlines()
    assert ranks[2].startswith("| SeriesClassifier() | 3 | 4.33 | 1.33 |")
    assert "MultiRocket-Hydra" not in "".join(ranks)  # it has not run on all of them


def test_the_spread_over_seeds_is_that_of_the_latest_code(folder):
    ours = [("old", 0, 9.0), ("new", 0, 1.0), ("new", 1, 3.0)]
    seeds = [row("a", sequences.OURS, error, code, seed=seed) for code, seed, error in ours]
    seeds += [row("a", "MiniRocket", error, seed=seed) for seed, error in enumerate((4.0, 4.0))]
    (folder / "sequences.json").write_text(json.dumps({"seeds": seeds}))
    lines = sequences.sequences_seeds().splitlines()
    assert lines[2] == "| SeriesClassifier() | 1 | 2 | 2.00 | 1.41 |"
    assert lines[3] == "| MiniRocket | 1 | 2 | 4.00 | 0.00 |"


def test_the_critical_difference_is_that_of_the_literature():
    """q = 2.569 for four methods at 5 %, divided by the root of 2 already (Demsar 2006)."""
    result_pictures = pytest.importorskip("result_pictures")
    assert result_pictures.critical_difference(4, 30) == pytest.approx(2.569 * np.sqrt(20 / 180), rel=1e-3)


def test_sets_of_the_wheel_have_the_figures_of_the_last_code(folder):
    ours = [
        row("JapaneseVowels", sequences.OURS, e, code=c, cases=200) for e, c in ((9, "old"), (1, "new"), (2, "new"))
    ]
    values = [row("Covid3Month", "DrCIF", 0.1, r2=r2) for r2 in (0.25, 0.5, 0.125)]
    (folder / "sequences.json").write_text(json.dumps({"wheel": [*ours, *values]}))
    lines = sequences.sequences_wheel().splitlines()[2:]
    assert lines == [
        f"| JapaneseVowels | {sequences.OURS} | 2 | errors of 200 | 3 (2 to 4) | 1.0 |",
        "| Covid3Month | DrCIF | 3 | R² | 0.250 (0.125 to 0.500) | 1.0 |",
    ]


def test_series_of_the_wheel_are_padded_for_other_methods_only(monkeypatch):
    X, y = [np.ones((3, 2)), np.ones((5, 2))], np.array(["a", "b"])
    shapes = []

    class Method:
        classes_ = np.array(["a", "b"])

        def fit(self, X, y):
            shapes.append([x.shape for x in X])
            return self

        def predict_proba(self, X):
            return np.eye(2)

    monkeypatch.setattr(sequences, "read_wheel", lambda work, part: (X, y))
    for method in (sequences.OURS, "QUANT"):
        monkeypatch.setitem(sequences.METHODS, method, lambda seed: Method())
        assert sequences.wheel_row("JapaneseVowels", method, 0)["error"] == 0
    assert shapes == [[(3, 2), (5, 2)], [(2, 5), (2, 5)]]
