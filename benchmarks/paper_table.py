"""Table 1 on synthetic speech and on AN4, as benchmarks/frozen/table1.toml says, and the tables of docs/table1.md.

    python benchmarks/paper_table.py synthetic
    python benchmarks/paper_table.py an4 --data an4_states.npz [--units 100,500] [--seeds 1]
    python benchmarks/paper_table.py large --units 10000
    python benchmarks/paper_table.py --render

Every row is one run of `echolearn table1` into runs/table1_NAME/UNITS, first with one seed of every column, then with
all seeds; the same command resumes a run that was stopped. After each run results/table1_NAME.json holds the row, with
the commits that made its cells. --collect writes down the cells that are finished, also of a row that still runs.
--render puts the tables of all result files into docs/table1.md; --check only compares them.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from echolearn import ESNClassifier
from echolearn.reporting.table import TITLES, error_head, error_rows, error_text, percent
from results import FOLDER, machine, replace_file, versions

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "benchmarks" / "frozen" / "table1.toml"
DOCUMENT = ROOT / "docs" / "table1.md"
CODE = ("src", "benchmarks", ":(exclude)benchmarks/results")  # what must be committed before a test part is read
MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
OF_CORPUS = ("synthetic", "digest", "frames", "states", "speakers", "notes")  # what all rows of a file share


def read_plan(name):
    """Return the corpus, frames, columns and rows that table1.toml gives a name."""
    plans = tomllib.loads(FROZEN.read_text(encoding="utf-8"))
    if name not in plans:
        raise SystemExit(f"{name}: expected one of {', '.join(plans)}")
    return {"columns": "all", "frames": None, **plans[name]}


def git(*words):
    """Return what a git command prints."""
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()


def refuse_changed_code():
    """End the program unless the settings and the code are those of a commit: the rows read test parts."""
    if changed := git("status", "--porcelain", "--", *CODE):
        raise SystemExit(f"Commit these first, a test part is only read with settled code and settings:\n{changed}")


def command_of(plan, row, seeds, data=None):
    """Return the words of `echolearn table1` for a row."""
    features = plan["corpus"] == "features"
    words = ["table1", "--corpus", f"features:{data}" if features else plan["corpus"]]
    words += [] if plan["frames"] is None else ["--frames", str(plan["frames"])]
    words += ["--units", str(row["units"]), "--epochs", str(row["epochs"]), "--seeds", str(seeds)]
    return [*words, "--columns", plan["columns"]]


def defaults():
    """Return our defaults and the settings of the paper, as text."""
    kinds = {"ours": ESNClassifier(), "paper": ESNClassifier.paper(300)}
    return {
        kind: {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
        for kind, estimator in kinds.items()
    }


def out_folder(name, units):
    """Return the folder of a row's cells."""
    return ROOT / "runs" / f"table1_{name}" / str(units)


def compute(name, plan, row, data, seeds):
    """Run the command for a row, with one seed and then with all of them, and write the row down after each."""
    for count in sorted({1, seeds}):
        words = command_of(plan, row, count, data)
        subprocess.run(
            [sys.executable, "-m", "echolearn.cli", *words, "--out", out_folder(name, row["units"])], check=True
        )
        collect(name, plan, row, data)


def collect(name, plan, row, data):
    """Write the finished cells of a row to the result file; the other rows stay as they are."""
    path = out_folder(name, row["units"]) / "table1.json"
    if not path.is_file():
        return
    table = json.loads(path.read_text(encoding="utf-8"))
    if not table["rows"]:
        return
    seeds = table["settings"]["seeds"]
    words = command_of(plan, row, seeds, Path(data).name if data else None)
    kept = {key: table[key] for key in ("complete", "settings", "made_with")}
    add_row(
        name,
        {**table["rows"][0], **kept, "defaults": defaults(), "command": " ".join(["echolearn", *words])},
        table,
        data,
    )


def add_row(name, row, table, data):
    """Put a row into the result file; ValueError where the rows there are of another corpus."""
    path = FOLDER / f"table1_{name}.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rows": []}
    if content["rows"] and content["digest"] != table["digest"]:
        raise ValueError(f"{path} has rows of the corpus {content['digest']}, this one is {table['digest']}")
    rows = {one["units"]: one for one in content["rows"]} | {row["units"]: row}
    replace_file(
        path,
        {
            "corpus": Path(data).name if data else table["corpus"],
            "data_sha256": hashlib.sha256(Path(data).read_bytes()).hexdigest() if data else None,
            **{key: table[key] for key in OF_CORPUS},
            "machine": machine(),
            "versions": versions(),
            "rows": [rows[units] for units in sorted(rows)],
        },
    )


def markdown(head, rows):
    """Return a table, numbers aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def seeds_text(row):
    """Return how many seeds the columns of a row have, `3` or `1 to 3`."""
    counts = sorted({len(entry["seeds"]) for entry in row["columns"].values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def errors_table(content):
    """Return the test errors with their standard deviations, the gains, and the number of seeds of each row."""
    rows = [[*cells, seeds_text(row)] for cells, row in zip(error_rows(content), content["rows"], strict=True)]
    return markdown([*error_head(content), "seeds"], rows)


def cells_table(content):
    """Return one line per column and number of units: errors, processor seconds of one fit, epochs and memory."""
    head = ["units", "column", "test %", "valid %", "processor s", "epochs", "memory MB", "ρ(W_rec)", "seeds"]
    rows = [
        _cell_line(row["units"], column, row["columns"][column])
        for row in content["rows"]
        for column in TITLES
        if column in row["columns"]
    ]
    return markdown(head, rows)


def _cell_line(units, column, entry):
    processor, memory = entry.get("processor_seconds"), entry["peak_memory_mb"]
    return [
        f"{units:,}",
        TITLES[column].long,
        error_text(entry),
        percent(entry["valid_error"], entry.get("valid_error_deviation")),
        "–" if processor is None else f"{processor:.0f}",
        f"{entry['epochs']:.0f}",
        "–" if memory is None else f"{memory:,.0f}",
        f"{entry['spectral_radius']:.2f}",
        str(len(entry["seeds"])),
    ]


def caption(content):
    """Return the sentences above a table: corpus, parts, digest, commits and commands."""
    frames = " / ".join(f"{content['frames'][part]:,}" for part in ("train", "valid", "test"))
    corpus = "synthetic speech (espeak-ng)" if content["synthetic"] else content["corpus"]
    commits = sorted({str(made["commit"])[:10] for row in content["rows"] for made in row["made_with"]})
    commands = "".join(f"    {row['command']}\n" for row in content["rows"])
    return (
        f"{corpus}: {frames} frames (train / valid / test), {content['states']} states, {content['speakers']} "
        f"speakers, digest {content['digest']}. Per cent of test frames; mean ± standard deviation "
        f"over seeds where there are several. Commits: {', '.join(commits)}.\n\n{commands}"
    )


def stale_note(content):
    """Return a sentence on rows that were measured with other defaults than today's; "" where there are none."""
    notes = []
    for row in content["rows"]:
        now, then = defaults(), row.get("defaults", {})
        changed = [
            f"{setting}={value} (now {now[kind].get(setting)})"
            for kind in then
            for setting, value in then[kind].items()
            if now[kind].get(setting) != value
        ]
        notes += [f"{row['units']:,} units: {', '.join(changed)}."] if changed else []
    return f"**Measured with other defaults than today's.** {' '.join(notes)}\n\n" if notes else ""


def rendered(name):
    """Return the tables of a result file, under its sentences."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        return f"*Not measured yet: there is no result file {name}.json.*"
    content = json.loads(path.read_text(encoding="utf-8"))
    return f"{stale_note(content)}{caption(content)}\n{errors_table(content)}\n\n{cells_table(content)}"


def with_tables(text):
    """Return a document with what stands between `<!-- table: NAME -->` and `<!-- end -->` rendered anew."""
    return MARK.sub(lambda mark: f"{mark[1]}{rendered(mark[2].replace('-', '_'))}\n{mark[3]}", text)


def render(check):
    """Put the tables into the document; with `check` only end with 1 where they differ."""
    text = DOCUMENT.read_text(encoding="utf-8")
    new = with_tables(text)
    if check:
        sys.exit(0 if new == text else f"{DOCUMENT} differs from the result files: run paper_table.py --render")
    DOCUMENT.write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="which rows of benchmarks/frozen/table1.toml: synthetic, an4 or large")
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--units", help="only these rows, such as 100,500")
    parser.add_argument("--seeds", type=int, help="at most so many seeds")
    parser.add_argument("--collect", action="store_true", help="fit nothing; write down what is finished")
    parser.add_argument("--render", action="store_true", help="put the tables into docs/table1.md")
    parser.add_argument("--check", action="store_true", help="end with 1 where docs/table1.md has other tables")
    options = parser.parse_args()
    if options.name:
        plan = read_plan(options.name)
        if (plan["corpus"] == "features") != bool(options.data):
            raise SystemExit("--data: needed for an4, and for nothing else; benchmarks/build_an4.py makes the file")
        wanted = None if options.units is None else {int(n) for n in options.units.split(",")}
        rows = [row for row in plan["rows"] if wanted is None or row["units"] in wanted]
        if not options.collect:
            refuse_changed_code()
        for row in rows:
            if options.collect:
                collect(options.name, plan, row, options.data)
            else:
                compute(options.name, plan, row, options.data, min(row["seeds"], options.seeds or row["seeds"]))
    if options.render or options.check:
        render(options.check)


if __name__ == "__main__":
    main()
