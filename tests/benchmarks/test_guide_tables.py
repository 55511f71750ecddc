"""Tests of the tables that guide readers: every result file has its command, and hours are sums of recorded seconds."""

import re

import guide_tables
from table_text import RESULTS, ROOT


def test_every_result_file_has_a_command_or_a_reason():
    listed = [name for *_, files in guide_tables.REPRODUCED for name in files]
    assert len(listed) == len(set(listed))
    assert {path.stem for path in RESULTS.glob("*.json")} <= {
        name.partition(":")[0] for name in (*listed, *guide_tables.KEPT)
    }
    page = (ROOT / "docs" / "evidence" / "reproduce.md").read_text(encoding="utf-8")
    assert all(f"`{name}.json`" in page for name in guide_tables.KEPT)


def test_commands_and_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for _, page, program, data, _ in guide_tables.REPRODUCED:
        command = guide_tables.command_of(program, data)
        assert (ROOT / "docs" / "evidence" / f"{page}.md").resolve().exists(), page
        if command.startswith("make "):
            assert f"\n{command.split()[1]}:" in makefile
        else:
            script = (ROOT / command.split()[1]).read_text(encoding="utf-8")
            for option in re.findall(r"--[a-z-]+", command):
                assert f'"{option}"' in script, command
            arguments = re.findall(r'add_argument\("[a-z_]+"', script)
            assert len(arguments) == len(command.partition(" --")[0].split()[2:]), command


def test_hours_are_sums_of_processor_seconds():
    assert (
        guide_tables.processor_seconds({"a": [{"cpu_seconds": 1.5, "seconds": 9.0}, {"processor": [2.0, 3.0]}]}) == 6.5
    )
    assert guide_tables.processor_seconds({"ours": {"processor_seconds": 4.0, "seeds": [0, 1, 2]}}) == 12.0
    assert guide_tables.processor_seconds({"rows": [], "superseded": [{"cpu_seconds": 5.0}]}) == 0.0
    assert guide_tables.core_hours(["nothing"]) == "not measured yet"


def test_hours_of_a_part_leave_out_rows_of_older_code(monkeypatch):
    def row(seconds, code, method=guide_tables.OURS):
        return {"cpu_seconds": seconds, "code": code, "method": method}

    rows = [row(36000.0, "old"), row(3600.0, "new"), row(1800.0, None, "MiniRocket")]
    monkeypatch.setattr(guide_tables, "load", lambda name: {"rows": rows, "seeds": [row(9e9, "new")]})
    assert guide_tables.core_hours(["sequences:rows"]) == "1.5"


def test_sizes_without_a_measurement_are_named(monkeypatch):
    cells = {"esn": {"test_error": 0.5}, "W_Wrec_m3": {"test_error": 0.4, "processor_seconds": 1234.0}}
    rows = [{"units": 2000, "columns": cells}, {"units": 500, "columns": {}}]
    monkeypatch.setattr(guide_tables, "scaled_content", lambda: {"rows": rows})
    rows = guide_tables.learning_by_size().splitlines()[2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["100", "500", "2,000", "10,000", "30,000"]
    assert rows[2].endswith("| 50.0 | 40.0 | 20.0 % | 1,234 |")
    assert sum("not measured yet" in row for row in rows) == 4
