"""The benchmark of Table 1: what it runs, what it writes down, and that the document shows that and nothing else."""

import json
import tomllib

import pytest

import paper_table
import paper_tables
import protocol
import table_text
from echolearn.paper.table1 import COLUMNS, PAPER_TIMIT
from sampletable import entry, table


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Let results and runs go to a folder of the test."""
    monkeypatch.setattr(paper_table, "FOLDER", tmp_path)
    monkeypatch.setattr(paper_table, "ROOT", tmp_path)
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    return tmp_path


def run_folder(folder, name, **changes):
    """Write the table of a run as `echolearn table1` does."""
    made = table(digest="d1", made_with=[{"commit": "abcdef0123456789"}], **changes)
    out = folder / "runs" / f"table1_{name}" / str(made["rows"][0]["units"])
    out.mkdir(parents=True)
    (out / "table1.json").write_text(json.dumps(made))
    return made


def test_every_result_file_keeps_to_the_committed_plan():
    """Rows of the norm 8 are of before the settings had another one, or name it."""
    norm_8 = tomllib.loads((paper_table.FROZEN.parent / "norm_8.toml").read_text())["paper"]
    for name in ("synthetic", "synthetic_phones", "an4", "paper", "scaled", "printed"):
        path, plan = paper_table.FOLDER / f"table1_{name}.json", paper_table.read_plan(name)
        planned = {row["units"]: row for row in plan["rows"]}
        for row in json.loads(path.read_text())["rows"] if path.is_file() else []:
            assert row["settings"]["epochs"] == planned[row["units"]]["epochs"]
            assert row["settings"]["ours"] == {}
            assert row["settings"]["paper"] in ([{}, norm_8] if "--config" in plan["options"] else [{}])
            assert all(len(column["seeds"]) <= planned[row["units"]]["seeds"] for column in row["columns"].values())
            assert all(made["commit"] and not made["commit"].endswith("+") for made in row["made_with"])


def test_commands_say_all_that_a_row_depends_on():
    row = {"units": 100, "epochs": 30, "seeds": 3}
    an4, synthetic = (paper_table.read_plan(name) for name in ("an4", "synthetic"))
    assert " ".join(paper_table.command_of(an4, row, 3, "an4_states.npz")) == (
        "table1 --corpus features:an4_states.npz --units 100 --epochs 30 --seeds 3 --columns all"
    )
    assert "--corpus synthetic --frames 35000 --units 100" in " ".join(paper_table.command_of(synthetic, row, 1))
    printed = paper_table.command_of(paper_table.read_plan("printed"), row, 1, "an4_states.npz")
    assert "--columns W_m1,W_Wrec_m1,W_Wrec_m3 --targets last --gradient printed" in " ".join(printed)
    phones = paper_table.command_of(paper_table.read_plan("synthetic_phones"), row, 1)
    assert " ".join(phones).endswith("--columns esn_ours,ours,esn_deep,deep --level recognition")
    with pytest.raises(SystemExit, match="expected one of synthetic"):
        paper_table.read_plan("timit")


def test_the_paper_s_table_has_its_columns_and_sizes_with_one_number_of_epochs_per_row():
    plan = paper_table.read_plan("paper")
    assert [row["units"] for row in plan["rows"]] == [row["units"] for row in PAPER_TIMIT]
    assert plan["columns"].split(",") == list(PAPER_TIMIT[0]["test_error"])
    assert all(row["epochs"] >= (6 if row["units"] == 30_000 else 20) for row in plan["rows"])


def test_rows_are_added_and_replaced_and_another_corpus_is_refused(folders):
    plan = paper_table.read_plan("synthetic")
    made = run_folder(folders, "synthetic")
    row = {"units": 100, "epochs": 20, "seeds": 3}
    paper_table.collect("synthetic", plan, row, None)
    paper_table.collect("synthetic", plan, {**row, "units": 500}, None)  # it has not run
    path = folders / "table1_synthetic.json"
    content = json.loads(path.read_text())
    assert [one["units"] for one in content["rows"]] == [100]
    assert content["rows"][0]["columns"] == made["rows"][0]["columns"]
    assert content["rows"][0]["command"].endswith("--units 100 --epochs 20 --seeds 1 --columns all")
    paper_table.add_row("synthetic", {**content["rows"][0], "units": 7}, made, None)
    assert [one["units"] for one in json.loads(path.read_text())["rows"]] == [7, 100]
    with pytest.raises(ValueError, match="this one is d2"):
        paper_table.add_row("synthetic", content["rows"][0], {**made, "digest": "d2"}, None)


def test_columns_of_an_earlier_run_stay_beside_those_of_a_later_one(folders):
    made = table(digest="d1")
    row = {**made["rows"][0], "settings": {"epochs": 20}, "made_with": [{"commit": "a"}]}
    first = {**row, "columns": {"esn": entry(0.5)}}
    second = {**row, "columns": {"esn": entry(0.4), "W_Wrec_m3": entry(0.3)}, "made_with": [{"commit": "b"}]}
    first["defaults"], second["defaults"] = {"ESNClassifier": {"clip": 25.3}}, {"ESNClassifier": {"clip": 8.0}}
    both = paper_table.joined(second, first)
    assert both["defaults"] == second["defaults"]  # those of the columns that stay
    assert list(both["columns"]) == ["esn", "W_Wrec_m3"]
    assert both["columns"]["esn"]["test_error"] == 0.5
    assert both["relative_gain"] == pytest.approx(0.4)
    assert [one["commit"] for one in both["made_with"]] == ["b", "a"]
    assert paper_table.joined(None, first) is first
    assert paper_table.joined({**second, "settings": {"epochs": 6}}, first) is first


def test_a_plan_of_another_level_writes_down_the_table_of_that_level(folders):
    plan, row = paper_table.read_plan("synthetic_phones"), {"units": 100, "epochs": 20, "seeds": 3}
    run_folder(folders, "synthetic_phones")
    out = folders / "runs" / "table1_synthetic_phones" / "100"
    (out / "recognition").mkdir()
    phones = table(digest="d1", made_with=[{"commit": "abc"}], level="recognition")
    phones["rows"][0]["columns"]["ours"]["test_error"] = 0.07
    (out / "recognition" / "table1.json").write_text(json.dumps(phones))
    paper_table.collect("synthetic_phones", plan, row, None)
    content = json.loads((folders / "table1_synthetic_phones.json").read_text())
    assert content["rows"][0]["columns"]["ours"]["test_error"] == 0.07
    assert "Per cent of the test part, phone error of recognition" in paper_tables.rendered("table1_synthetic_phones")


def test_tables_show_errors_gains_seeds_and_commits(folders):
    several = entry(0.3, test_error_deviation=0.01, seeds=[0, 1, 2], processor_seconds=41.6)
    made = table()
    made["rows"][0]["columns"]["ours"] = several
    run_folder(folders, "synthetic", rows=made["rows"])
    row = {"units": 100, "epochs": 20, "seeds": 3}
    paper_table.collect("synthetic", paper_table.read_plan("synthetic"), row, None)
    text = paper_tables.rendered("table1_synthetic")
    assert "| 100 | 60.0 | 45.0 | 40.0 | 30.0 ± 1.0 | 25.0 | 25.0 | 1 to 3 |" in text
    assert "| 100 | learned, our defaults | 30.0 ± 1.0 | 29.0 | 42 | 20 | 321 | 3.90 | 3 |" in text
    assert "Commits: abcdef0123." in text
    assert "$ echolearn table1 --corpus synthetic --frames 35000 --units 100" in text
    assert text.startswith("**Not finished: 100 units. Planned and not run: 500, 1,000, 2,000 units.**")
    content = table_text.load("table1_synthetic")
    row, seeds = content["rows"][0], {"seeds": [0, 1, 2]}
    whole = {**row, "columns": {key: {**row["columns"]["ours"], **seeds} for key in COLUMNS}}
    rows = [{**whole, "units": units} for units in (100, 500, 1_000, 2_000)]
    assert paper_tables.missing_note("table1_synthetic", {"rows": rows}) == ""
    of_three = [{**one, "columns": {k: v for k, v in one["columns"].items() if k != "deep"}} for one in rows[:3]]
    assert "Not finished: 100, 500, 1,000 units" in paper_tables.missing_note(
        "table1_synthetic", {"rows": [*of_three, rows[3]]}
    )
    rows[1] = {**rows[1], "complete": False}
    assert "Not finished: 500 units" in paper_tables.missing_note("table1_synthetic", {"rows": rows})
    assert paper_tables.rendered("table1_paper").startswith("*Not run yet")


def test_a_default_that_has_changed_is_named_above_the_table(folders, monkeypatch):
    run_folder(folders, "synthetic")
    row = {"units": 100, "epochs": 20, "seeds": 3}
    paper_table.collect("synthetic", paper_table.read_plan("synthetic"), row, None)
    assert not paper_tables.rendered("table1_synthetic").startswith("**Measured with other")
    now = paper_table.defaults(100)
    monkeypatch.setattr(paper_tables, "defaults", lambda units: {**now, "ours": {**now["ours"], "refine_epochs": "77"}})
    text = paper_tables.rendered("table1_synthetic")
    assert text.startswith("**Measured with other defaults than today's.** 100 units: refine_epochs=5 (now 77).")


@pytest.mark.parametrize(("name", "reading"), [("synthetic", False), ("an4", True)])
def test_settings_must_be_settled_and_readings_of_the_test_part_are_counted(name, reading, monkeypatch):
    calls = []
    monkeypatch.setattr(protocol, "require_frozen", lambda experiment: calls.append((experiment, None)))
    monkeypatch.setattr(protocol, "open_test", lambda experiment, path, seeds: calls.append((experiment, path)))
    paper_table.require_settled(paper_table.read_plan(name), "an4.npz")
    assert calls == [("table1", "an4.npz" if reading else None)]


def test_rows_of_the_larger_norm_have_the_fixed_networks_and_the_100_units_of_the_smaller_one(monkeypatch):
    def row(units, **errors):
        return {"units": units, "columns": {n: {"test_error": e, "seeds": [0]} for n, e in errors.items()}}

    files = {
        "table1_paper": {"rows": [row(100, esn=0.6, W_m1=0.5), row(500, esn=0.4, W_m1=0.36), row(2_000, esn=0.35)]},
        "table1_scaled": {"rows": [row(500, W_Wrec_m3=0.2)]},
    }
    monkeypatch.setattr(paper_tables, "load", files.get)
    small, large = paper_tables.scaled_content()["rows"]
    assert small == files["table1_paper"]["rows"][0]
    assert {name: entry["test_error"] for name, entry in large["columns"].items()} == {"esn": 0.4, "W_Wrec_m3": 0.2}
    assert large["relative_gain"] == 0.5
    files["table1_scaled"] = {}
    assert paper_tables.scaled_content() == {}


def test_gains_stand_beside_those_of_the_paper(monkeypatch):
    columns = {"esn": {"test_error": 0.4, "seeds": [0]}, "W_Wrec_m3": {"test_error": 0.2, "seeds": [0]}}
    row = {"units": 500, "columns": columns, "relative_gain": 0.5, "settings": {"epochs": 20}, "complete": True}
    monkeypatch.setattr(paper_tables, "scaled_content", lambda: {"rows": [row]})
    for name in ("stale_note", "caption", "cells_table"):
        monkeypatch.setattr(paper_tables, name, lambda content: "")
    line = paper_tables.table1_scaled().strip().splitlines()[-1]
    assert line == "| 500 | 40.0 | – | – | 20.0 | 50.0 | 19.0 | 20 | 1 |"
