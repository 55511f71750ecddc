"""The tables of the documents are those of the result files, and recorded defaults are still the defaults."""

import json
import re

import pytest

import contest_tables
import measured_tables
import reliability_tables
import results
import table_text
import tables


def recorded():
    """Yield every result file, or part of one, that names the defaults it was measured with."""
    for path in sorted(table_text.RESULTS.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = {path.stem: content, f"{path.stem}, about": content.get("about") or {}}
        parts |= {f"{path.stem}, {name}": part for name, part in content.get("parts", {}).items()}
        yield from ((name, part["defaults"]) for name, part in parts.items() if part.get("defaults"))


def differences(found, now):
    """Return the defaults of present estimators that a result file has and that are no longer the same."""
    return [
        f"{estimator}({name}={value}) is now {now[estimator].get(name)}"
        for estimator, values in found.items()
        if estimator in now
        for name, value in values.items()
        if now[estimator].get(name, results.FORMER.get(name)) != value
    ]


@pytest.mark.parametrize("path", tables.documents(), ids=lambda path: path.name)
def test_tables_are_those_of_the_result_files(path):
    text = path.read_text(encoding="utf-8")
    assert tables.rendered(text) == text, f"{path.name}: run `make tables`"
    assert text.count("\n<!-- table:") == len(tables.MARK.findall(text)), "a table has no end"


def test_every_table_is_used():
    used = {name for path in tables.documents() for _, name, _ in tables.MARK.findall(path.read_text(encoding="utf-8"))}
    assert used == set(tables.TABLES)


def test_recorded_defaults_are_the_defaults():
    now = results.defaults()
    found = {name: differences(defaults, now) for name, defaults in recorded()}
    assert found, "no result file records its defaults"
    changed = {name: changes for name, changes in found.items() if changes}
    assert not changed, f"measured with other defaults; run them again or move them to 'superseded': {changed}"


def test_a_changed_figure_and_a_changed_default_are_noticed(tmp_path, monkeypatch):
    source = table_text.RESULTS / "an4_errors_directions.json"
    content = json.loads(source.read_text())
    content["rows"][0]["test_error"] += 1
    (tmp_path / "an4_errors_directions.json").write_text(json.dumps(content))
    before = measured_tables.directions()
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    assert measured_tables.directions() != before
    now = results.defaults()
    changed = {**now, "ESNClassifier": {**now["ESNClassifier"], "hidden_units": "1"}}
    assert differences(now, now) == []
    assert differences(changed, now) == ["ESNClassifier(hidden_units=1) is now 300"]
    assert differences({"ESNClassifier": {"gone": "1"}}, now) == ["ESNClassifier(gone=1) is now None"]


def test_what_the_contest_will_look_like(tmp_path, monkeypatch):
    """A missed goal stands in the same place as a hit."""

    def side(name, mean):
        summary = {"mean": mean, "least": mean - 0.1, "most": mean + 0.1, "errors": []}
        costs = {"core_seconds": 40.0, "wall_seconds": 41.0, "peak_mb": 300.0, "extra_mb": 50.0, "weights": 1000}
        return {"name": name, "budget": 20, "valid": summary, "test": summary, "considered": [1, 2], **costs}

    rows = [
        {"row": "single", "budget": 60, "ours": side("a", 23.0), "torch": side("b", 25.0), "relative": 0.08},
        {"row": "single", "budget": 20, "ours": side("a", 24.0), "torch": side("b", 25.0), "relative": 0.04},
    ]
    rows = [{**row, "asked": 0.08, "reached": row["relative"] >= 0.08} for row in rows]
    (tmp_path / "contest.json").write_text(json.dumps({"rows": rows, "superseded": [{**rows[0], "commit": "0" * 40}]}))
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    lines = contest_tables.contest_summary().splitlines()
    errors = "24.0 (23.9 to 24.1) | 25.0 (24.9 to 25.1)"
    assert lines[2] == f"| single networks | 20 | {errors} | −4.0 % | ≥ 8 % below | **no** |"
    assert lines[3].endswith("| −8.0 % | ≥ 8 % below | yes |")
    assert len(contest_tables.contest().splitlines()) == 6
    assert "0000000000" in contest_tables.contest_superseded()


def test_readings_have_the_whole_name_of_their_experiment(tmp_path, monkeypatch):
    reading = {"experiment": "recognition", "commit": "0" * 40, "blob": "1" * 40, "first": "a", "last": "b", "times": 2}
    (tmp_path / "test_readings.json").write_text(json.dumps({"readings": [reading]}))
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    assert contest_tables.test_readings().endswith("| recognition | 0000000000 | 1111111111 | a | b | 2 |")


def test_unknown_tables_are_refused():
    with pytest.raises(KeyError, match=re.escape("there is no table 'nothing'")):
        tables.rendered("<!-- table: nothing -->\n<!-- end -->\n")


def test_results_keep_what_they_replace(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    first, second = {"work": "a", "ours": 1.0}, {"work": "a", "ours": 2.0}
    results.write("some", [first])
    results.write("some", [second])  # the same program: it corrects itself
    read = lambda: json.loads((tmp_path / "some.json").read_text())  # noqa: E731
    assert (read()["rows"], read()["superseded"]) == ([second], [])
    monkeypatch.setattr(results, "PROCESS", "another")
    results.write("some", [second, first])  # nothing is lost
    assert read()["superseded"] == []
    monkeypatch.setattr(results, "PROCESS", "a third")
    results.write("some", [{"work": "a", "ours": 3.0}])
    (former,) = read()["superseded"]
    assert former["rows"] == [second, first]
    assert former["process"] == "another"
    assert "commit" in former


def test_no_outcome_is_left_out_of_a_table_of_counts():
    assert "| a | 1,000 | 0 |" in reliability_tables.counts({"a": {"good": 1000}}, "", {"good": "good", "bad": "bad"})
    with pytest.raises(ValueError, match="no column for"):
        reliability_tables.counts({"a": {"good": 1, "crashed": 1}}, "", {"good": "good"})
