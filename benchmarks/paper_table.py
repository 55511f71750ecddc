"""Table 1 on synthetic speech and on AN4, with the settings of benchmarks/frozen/table1.toml.

    python benchmarks/paper_table.py synthetic
    python benchmarks/paper_table.py synthetic_phones
    python benchmarks/paper_table.py an4 --data an4_states.npz [--units 100,500] [--seeds 1]
    python benchmarks/paper_table.py paper --data an4_states.npz --units 10000 [--columns W_m1]
    python benchmarks/paper_table.py scaled --data an4_states.npz --units 10000 [--columns W_m1]
    python benchmarks/paper_table.py printed --data an4_states.npz

Every row is one run of `echolearn table1` into runs/table1_NAME/UNITS, first with one seed of every column, then with
all seeds; the same command resumes a run that was stopped. After each run results/table1_NAME.json holds the row, with
the commits that made its cells; columns that this run does not have stay as they were recorded. --collect writes down
the cells that are finished, also of a row that still runs.
benchmarks/tables.py puts the tables into docs/evidence/table1.md.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import an4
import protocol
from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.fitting.parameters import flat_settings
from echolearn.paper.table1 import COLUMNS, GAINS, relative_gain
from results import FOLDER, machine, replace_file, versions

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "benchmarks" / "frozen" / "table1.toml"
OF_CORPUS = ("synthetic", "level", "digest", "frames", "states", "speakers", "notes")  # what all rows of a file share


def read_plan(name):
    """Return the corpus, frames, level, columns, further options and rows that table1.toml gives a name."""
    plans = tomllib.loads(FROZEN.read_text(encoding="utf-8"))
    if name not in plans:
        raise SystemExit(f"{name}: expected one of {', '.join(plans)}")
    return {"columns": "all", "frames": None, "level": "state", "options": [], **plans[name]}


def require_settled(plan, data):
    """Refuse unless code and settings are those of a commit; a reading of AN4's test part is counted."""
    if plan["corpus"] == "features":
        protocol.open_test("table1", data, seeds=range(max(row["seeds"] for row in plan["rows"])))
    else:
        protocol.require_frozen("table1")


def command_of(plan, row, seeds, data=None):
    """Return the words of `echolearn table1` for a row."""
    features = plan["corpus"] == "features"
    words = ["table1", "--corpus", f"features:{data}" if features else plan["corpus"]]
    words += [] if plan["frames"] is None else ["--frames", str(plan["frames"])]
    words += ["--units", str(row["units"]), "--epochs", str(row["epochs"]), "--seeds", str(seeds)]
    level = [] if plan["level"] == "state" else ["--level", plan["level"]]
    return [*words, "--columns", plan["columns"], *level, *plan["options"]]


def defaults(units):
    """Return our defaults, those of deep networks and the settings of the paper at a number of units, as text."""
    paper = ESNClassifier.paper(units).set_params(hidden_units=300)  # as in rows of other sizes: the row has its units
    kinds = {"ours": ESNClassifier(), "deep": DeepESNClassifier(), "paper": paper}
    return {
        kind: {name: repr(value) for name, value in flat_settings(estimator).items()}
        for kind, estimator in kinds.items()
    }


def out_folder(name, units):
    """Return the folder of a row's cells."""
    return ROOT / "runs" / f"table1_{name}" / str(units)


def compute(name, plan, row, data, seeds):
    """Run the command for a row, with one seed and then with all of them, and write the row down after each."""
    for count in sorted({1, seeds}):
        words = command_of(plan, row, count, data)
        out = ["--out", out_folder(name, row["units"])]
        subprocess.run([sys.executable, "-m", "echolearn", *words, *out], cwd=ROOT, check=True)
        collect(name, plan, row, data)


def collect(name, plan, row, data):
    """Write the finished cells of a row to the result file; the other rows stay as they are."""
    level = "" if plan["level"] == "state" else plan["level"]
    path = out_folder(name, row["units"]) / level / "table1.json"
    if not path.is_file():
        return
    table = json.loads(path.read_text(encoding="utf-8"))
    if not table["rows"]:
        return
    seeds = table["settings"]["seeds"]
    words = command_of(read_plan(name), row, seeds, Path(data).name if data else None)  # of all columns of the row
    kept = {key: table[key] for key in ("complete", "settings", "made_with")}
    add_row(
        name,
        {**table["rows"][0], **kept, "defaults": defaults(row["units"]), "command": " ".join(["echolearn", *words])},
        table,
        data,
    )


def add_row(name, row, table, data):
    """Put a row into the result file; ValueError where the rows there are of another corpus."""
    path = FOLDER / f"table1_{name}.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rows": []}
    if content["rows"] and content["digest"] != table["digest"]:
        raise ValueError(f"{path} has rows of the corpus {content['digest']}, this one is {table['digest']}")
    rows = {one["units"]: one for one in content["rows"]}
    rows[row["units"]] = joined(rows.get(row["units"]), row)
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


def joined(recorded, row):
    """Return a row with the recorded columns that it lacks, if there are any of the same number of epochs.

    The defaults and the command are then those of the recorded columns, which may be older.
    """
    if recorded is None or recorded["settings"]["epochs"] != row["settings"]["epochs"]:
        return row
    columns = recorded["columns"] | row["columns"]
    columns = {name: columns[name] for name in COLUMNS if name in columns}
    gains = {name: relative_gain(columns, fixed, learned) for name, (fixed, learned, _) in GAINS.items()}
    made = {json.dumps(one, sort_keys=True): one for one in (*recorded["made_with"], *row["made_with"])}
    kept = recorded if recorded["columns"].keys() - row["columns"].keys() else row
    return {**kept, "columns": columns, **gains, "made_with": list(made.values())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="which plan of benchmarks/frozen/table1.toml, such as an4")
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--units", help="only these rows, such as 100,500")
    parser.add_argument("--columns", help="only these columns, such as W_m1,W_Wrec_m1")
    parser.add_argument("--seeds", type=int, help="at most so many seeds")
    parser.add_argument("--collect", action="store_true", help="fit nothing; write down what is finished")
    options = parser.parse_args()
    plan = read_plan(options.name)
    plan |= {} if options.columns is None else {"columns": options.columns}
    data = str(an4.data_file(options.data).resolve()) if plan["corpus"] == "features" else None
    wanted = None if options.units is None else {int(n) for n in options.units.split(",")}
    if not options.collect:
        require_settled(plan, data)
    for row in (row for row in plan["rows"] if wanted is None or row["units"] in wanted):
        if options.collect:
            collect(options.name, plan, row, data)
        else:
            compute(options.name, plan, row, data, min(row["seeds"], options.seeds or row["seeds"]))


if __name__ == "__main__":
    main()
