"""Tables on the command line: `train`, `predict` and `evaluate` of CSV files."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

import echolearn
from echolearn import ESNClassifier

Run = Callable[..., Result]
Refused = Callable[..., str]
SMALL = ("--units", 8, "--set", "learn=none")
SEQUENCES = 12


def machine(seed: int = 0) -> pd.DataFrame:
    """Return recordings of a machine: of each row a state and a load, of each recording a kind and an age."""
    rng, parts = np.random.default_rng(seed), []
    for k in range(SEQUENCES):
        heat, noise = rng.normal(size=(2, 30)).round(3)
        turn = np.sign(heat + 0.3 * (k % 2))
        part = {"heat": heat + 2 * (k % 2), "noise": noise, "state": np.where(turn > 0, "on", "off"), "load": 3 * heat}
        parts.append(pd.DataFrame({"run": f"r{k}", "second": 0.5 * np.arange(30), **part}))
        parts[-1]["kind"], parts[-1]["age"] = ("old", "new")[k % 2], 1.5 * k
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    machine()[["run", "second", "heat", "noise", "state"]].to_csv(tmp_path / "machine.csv", index=False)
    return tmp_path / "machine.csv"


def written(run: Run, *words: object) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("target", "words", "expected"),
    [
        ("state", SMALL, "ESNClassifier: labels of 'state', one per step, from heat, noise; 12 sequences, 360 rows."),
        ("load", SMALL, "ESNRegressor: values of 'load', one per step, from heat, noise; 12 sequences, 360 rows."),
        ("kind", ("--units", 8), "SeriesClassifier: labels of 'kind', one per sequence ('run'), from heat, noise;"),
        ("age", ("--units", 8), "SeriesRegressor: values of 'age', one per sequence ('run'), from heat, noise;"),
        ("kind", ("--network", "deep", "--units", 4, "--epochs", 5), "DeepESNClassifier: labels of 'kind'"),
    ],
)  # fmt: skip
def test_the_data_decide_what_is_learned(
    run: Run, tmp_path: Path, target: str, words: tuple[object, ...], expected: str
) -> None:
    whole = machine()[["run", "second", "heat", "noise", target]]
    whole.to_csv(tmp_path / "a.csv", index=False)
    model, keys = tmp_path / "m.safetensors", ("--id", "run", "--time", "second")
    output = written(run, "train", tmp_path / "a.csv", "--target", target, *keys, *words, "--out", model)
    assert f"a.csv: 360 rows, columns run, second, heat, noise, {target}." in output
    assert expected in output
    assert list(echolearn.load(model).feature_names_in_) == ["heat", "noise"]
    assert [path.name for path in tmp_path.iterdir() if "checkpoint" in path.name] == []

    # one line per answer, with its keys; the rows may come in any order
    whole.sample(frac=1, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    written(run, "predict", model, tmp_path / "b.csv", *keys)
    rows = list(csv.DictReader((tmp_path / "b-predictions.csv").read_text().splitlines()))
    per_step = target in ("state", "load")
    assert list(rows[0]) == (["run", "second", "prediction"] if per_step else ["run", "prediction"])
    assert len(rows) == (360 if per_step else SEQUENCES)
    X = [part[["heat", "noise"]].to_numpy() for _, part in whole.groupby("run", sort=False)]
    answers = echolearn.load(model).predict(X)
    found = pd.DataFrame(rows).assign(second=lambda t: t.get("second", pd.Series("0", t.index)).astype(float))
    found = found.set_index(["run", "second"])["prediction"]
    for k, answer in enumerate(answers):
        own = found.loc[f"r{k}"].sort_index().to_list()
        expected_texts = np.atleast_1d(answer).tolist()
        if target in ("load", "age"):
            np.testing.assert_allclose([float(text) for text in own], expected_texts, rtol=1e-5)
        else:
            assert own == expected_texts


def test_the_command_fits_what_python_fits(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    written(run, "train", table, "--target", "state", "--id", "run", "--time", "second", *SMALL, "--out", model)
    parts = [part for _, part in machine().groupby("run", sort=False)]
    X, y = [part[["heat", "noise"]] for part in parts], [part["state"].to_numpy() for part in parts]
    expected = ESNClassifier(8, learn="none", random_state=0).fit(X, y)
    for own, other in zip(echolearn.load(model).predict_proba(X), expected.predict_proba(X), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6)
    arguments = ("evaluate", model, table, "--target", "state", "--id", "run", "--time", "second")
    found = json.loads(written(run, *arguments, "--json"))
    assert found["steps"] == 360
    assert found["error"] == pytest.approx(1 - expected.score(X, y))
    assert f"state: error {100 * found['error']:.1f} %, mean over classes" in written(run, *arguments)


def test_values_are_evaluated(run: Run, tmp_path: Path) -> None:
    machine()[["run", "heat", "noise", "load"]].to_csv(tmp_path / "a.csv", index=False)
    words = (tmp_path / "a.csv", "--target", "load", "--id", "run")
    written(run, "train", *words, *SMALL, "--out", tmp_path / "m")
    found = json.loads(written(run, "evaluate", tmp_path / "m", *words, "--json"))
    parts = [part for _, part in machine().groupby("run", sort=False)]
    errors = np.concatenate(
        [p["load"] - echolearn.load(tmp_path / "m").predict([p[["heat", "noise"]].to_numpy()])[0] for p in parts]
    )
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=0.05)  # the washout does not count
    assert found["rmse"] >= found["mae"]
    assert "R²" in written(run, "evaluate", tmp_path / "m", *words)


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        ([0, 1] * 30, None, "ESNClassifier"),
        ([0, 1] * 30, "regression", "ESNRegressor"),
        (list(range(60)), None, "ESNRegressor"),
        ([0.5, 1.5] * 30, None, "ESNRegressor"),
        ([0.5, 1.5] * 30, "classification", "ESNClassifier"),
        (["yes", "no"] * 30, None, "ESNClassifier"),
    ],
)
def test_whole_numbers_may_be_labels_or_values(
    run: Run, tmp_path: Path, values: list[object], task: str | None, kind: str
) -> None:
    inputs = np.random.default_rng(0).normal(size=60).round(3)
    pd.DataFrame({"x": inputs, "y": values}).to_csv(tmp_path / "a.csv", index=False)
    words = ("train", tmp_path / "a.csv", "--target", "y", *SMALL, "--out", tmp_path / "m")
    output = written(run, *words, *([] if task is None else ["--task", task]))
    assert f"{kind}: " in output
    guessed = task is None and not isinstance(values[0], str)
    other = "regression" if kind == "ESNClassifier" else "classification"
    assert (f"(else: --task {other})" in output) == guessed


def test_the_better_of_two_networks_is_kept(run: Run, tmp_path: Path) -> None:
    machine()[["run", "heat", "noise", "load", "state"]].to_csv(tmp_path / "a.csv", index=False)
    words = ("train", tmp_path / "a.csv", "--target", "load", "--id", "run", "--network", "auto", "--epochs", 1)
    output = written(run, *words, "--units", 8, "--out", tmp_path / "m")
    line = next(line for line in output.splitlines() if line.startswith("R² on held-out data"))
    shallow, deep = (float(text.split()[-1]) for text in line.partition(": ")[2].partition(";")[0].split(", "))
    expected = "ESNRegressor" if shallow >= deep else "DeepESNRegressor"
    assert type(echolearn.load(tmp_path / "m")).__name__ == expected
    words = ("train", tmp_path / "a.csv", "--target", "state", "--network", "auto", "--epochs", 1, "--units", 8)
    assert "share of right labels" in written(run, *words, "--out", tmp_path / "n")  # one sequence: its last fifth


@pytest.mark.parametrize(("target", "network"), [("state", "esn"), ("load", "esn"), ("state", "deep")])
def test_the_error_on_held_out_data_is_printed(run: Run, tmp_path: Path, target: str, network: str) -> None:
    machine()[["run", "heat", "noise", target]].to_csv(tmp_path / "a.csv", index=False)
    words = ("--id", "run", "--network", network, "--units", 8, "--epochs", 2, "--out", tmp_path / "m")
    output = written(run, "train", tmp_path / "a.csv", "--target", target, *words)
    held = [row["valid_error"] for row in echolearn.load(tmp_path / "m").history_ if "valid_error" in row]
    best = f", smallest held-out error while learning {100 * min(held):.1f} %\n" if held else "\n"
    assert re.search(r"^\d+ epochs in \d:\d\d" + re.escape(best), output, re.M)
    assert held or network == "deep"
    command = f"echolearn evaluate {tmp_path / 'm'} OTHER.csv --target {target} --id run\n"
    assert (f"No data were held out. The error on other data: {command}" in output) == (not held)


def test_missing_targets_and_inputs(run: Run, refused: Refused, table: Path, tmp_path: Path) -> None:
    whole = pd.read_csv(table)
    whole.loc[3:5, "state"] = np.nan
    whole.to_csv(tmp_path / "a.csv", index=False)
    words = ("--target", "state", "--id", "run", *SMALL, "--out", tmp_path / "m")
    assert "360 rows, 3 without a label." in written(run, "train", tmp_path / "a.csv", *words)
    assert list(echolearn.load(tmp_path / "m").classes_) == ["off", "on"]
    assert "357 " not in written(
        run, "evaluate", tmp_path / "m", tmp_path / "a.csv", "--target", "state", "--id", "run"
    )
    whole.loc[7, "noise"] = np.nan
    whole.to_csv(tmp_path / "b.csv", index=False)
    answer = refused("train", tmp_path / "b.csv", *words)
    assert "b.csv, line 9: the input 'noise' is missing. Add --set missing=carry" in answer
    written(run, "train", tmp_path / "b.csv", *words, "--set", "missing=carry")
    series = machine()[["run", "heat", "kind"]]
    series.loc[series["run"] == "r3", "kind"] = np.nan
    series.to_csv(tmp_path / "c.csv", index=False)
    words = ("--target", "kind", "--id", "run", "--units", 8, "--out", tmp_path / "n")
    assert "11 sequences" in written(run, "train", tmp_path / "c.csv", *words)


def test_what_is_not_an_input_is_reported(run: Run, refused: Refused, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=360).strftime("%Y-%m-%d")
    machine().assign(day=days)[["day", "second", "heat", "state", "kind"]].head(30).to_csv(
        tmp_path / "a.csv", index=False
    )
    output = written(run, "train", tmp_path / "a.csv", "--target", "state", *SMALL, "--out", tmp_path / "m")
    assert "The column 'day' holds dates. To order rows by it, add --time day." in output
    assert "The column 'kind' holds text and is not an input. If it separates sequences, add --id kind." in output
    assert "The input 'second' increases from row to row: if it is the time, add --time second." in output
    machine().rename(columns={"run": "id"}).assign(id=1)[["id", "heat", "state"]].to_csv(
        tmp_path / "b.csv", index=False
    )
    words = ("train", tmp_path / "b.csv", "--target", "state", "--out", tmp_path / "n")
    assert "add --id id" in refused(*words)


def test_a_column_of_numbers_with_another_field_is_refused(refused: Refused, table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    lines[6] = lines[6].replace(lines[6].split(",")[3], "broken")
    (tmp_path / "a.csv").write_text("\n".join(lines))
    answer = refused("train", tmp_path / "a.csv", "--target", "state", "--id", "run", "--out", tmp_path / "m")
    assert "a.csv, line 7, column 'noise': 'broken' is not a number." in answer


def test_rows_of_one_time_are_refused(refused: Refused, run: Run, table: Path, tmp_path: Path) -> None:
    words = ("train", table, "--target", "state", "--time", "second", *SMALL, "--out", tmp_path / "m")
    assert "lines 2 and 32 have the same time" in refused(*words)
    assert "--id" in refused(*words)
    assert "neither numbers nor dates" in refused(*words[:5], "run", *words[6:])
    gap = pd.read_csv(table).drop(index=[5, 6])
    gap.to_csv(tmp_path / "gap.csv", index=False)
    output = written(run, "train", tmp_path / "gap.csv", *words[2:], "--id", "run")
    assert "1 gap in 'second'; each row counts as one step." in output


def test_what_cannot_be_trained_is_refused_in_one_line(
    refused: Refused, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ("--out", tmp_path / "m")
    assert "neither a table nor a corpus is given" in refused("train", *out)
    assert "both a table and a corpus are given" in refused("train", table, "--corpus", "synthetic", *out)
    assert "add --target" in refused("train", table, *out)
    assert "has no column 'stat'; it has run, second" in refused("train", table, "--target", "stat", *out)
    assert "--paper is for speech" in refused("train", table, "--target", "state", "--paper", *out)
    assert "--id is for tables" in refused("train", "--corpus", "synthetic", "--id", "run", *out)
    words = ("train", table, "--target", "state", "--id", "run", *out)
    assert "did you mean" in refused(*words, "--set", "spectral_radus=1")
    assert "is not a number" in refused(*words, "--task", "regression")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'echolearn[forecast]'" in refused(*words)
    assert not (tmp_path / "m").exists()


def test_an_evaluation_needs_the_columns_of_the_fit(run: Run, refused: Refused, table: Path, tmp_path: Path) -> None:
    keys = ("--id", "run", "--time", "second")
    written(run, "train", table, "--target", "state", *keys, *SMALL, "--out", tmp_path / "m")
    assert "add --target" in refused("evaluate", tmp_path / "m", table, *keys)
    assert "knows no label of the column 'run'" in refused("evaluate", tmp_path / "m", table, "--target", "run")
    pd.read_csv(table).drop(columns="heat").to_csv(tmp_path / "b.csv", index=False)
    assert "has no column heat" in refused("evaluate", tmp_path / "m", tmp_path / "b.csv", "--target", "state", *keys)
    for command in ("evaluate", "predict"):
        assert "evaluate and predict also take a table" in refused(command, tmp_path / "m")
