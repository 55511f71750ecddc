"""Mutation testing: are the choices that the code makes tested? (`make mutants`, docs/reliability.md)

Every mutant makes one choice otherwise: another comparison, sign, constant, part of the data, and so on. It runs in a
copy of the source tree with the tests that run the changed line. A test that fails kills it. What survives is either
explained in explanations.json, or lacks a test. The named mutants come first, then a sample of each package. An
interrupted campaign resumes; the survivors of an earlier one are tried again, with the tests that were added since.
"""

from __future__ import annotations

import argparse
import difflib
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from reliability.mutants import judging, named, tree
from reliability.mutants.drawing import PACKAGES, Mutant, draw, function_around
from reliability.results import keep, show

HERE = Path(__file__).parent
OUTCOMES = ("killed", "timeout", "survived", "explained")


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=50, help="mutants per package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=60.0, help="processor seconds of tests per mutant, about")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--folders", nargs="*", default=(), help="folders of tests/ to run; without: all")
    parser.add_argument("--named", action="store_true", help="only the named mutants")
    parser.add_argument("--sampled", action="store_true", help="only the sample")
    parser.add_argument("--fresh", action="store_true", help="a sample of its own: no survivor is tried again")
    options = parser.parse_args()
    tree.WORK.mkdir(parents=True, exist_ok=True)
    tree.update_copy()
    tests = tree.TestMap()
    tests.update(options.folders)
    judging.load_libraries()
    judging.check_harness(tests)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the copy is left as it was
    path = tree.WORK / f"outcomes-{options.seed}.json"
    outcomes: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    work = [_named(name) for name in named.MUTANTS if not options.sampled]
    if not options.named:
        drawn = [draw(tree.COPY, package, options.each, options.seed) for package in options.packages]
        work += [_sampled(mutant) for some in zip(*drawn, strict=True) for mutant in some]  # every package in turn
    for k, entry in enumerate(work):
        known = outcomes.get(entry["key"])
        if known is not None and (known["outcome"] != "survived" or options.fresh):
            continue
        source = entry.pop("source")
        rounds = judging.choose_tests(tests, entry.pop("places"), options.most)
        verdict = judging.judge(source, entry["path"], rounds, tests)
        first = known["first"] if known is not None else verdict.outcome
        outcomes[entry["key"]] = {**entry, **vars(verdict), "first": first}
        path.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
        print(f"{k + 1}/{len(work)} {verdict.outcome:8} {verdict.seconds:6.1f} s {entry['key']}", flush=True)
    _report([outcomes[entry["key"]] for entry in work], options)


def _named(name: str) -> dict[str, Any]:
    """Return the entry of a named mutant."""
    patch = named.MUTANTS[name]
    old = (tree.COPY / patch.path).read_text(encoding="utf-8")
    line = old[: old.index(patch.old)].count("\n") + 1
    lines = (line, line + patch.old.count("\n"))
    return {
        "key": f"named: {name}",
        "package": "named",
        "path": patch.path,
        "diff": _difference(old, patch.apply(old)),
        "source": patch.apply(old),
        "places": judging.Places(patch.path, lines, function_around(old, line)),
    }


def _sampled(mutant: Mutant) -> dict[str, Any]:
    """Return the entry of a sampled mutant."""
    old = (tree.COPY / mutant.path).read_text(encoding="utf-8")
    return {
        "key": mutant.key(old),
        "package": mutant.package,
        "path": mutant.path,
        "operator": mutant.operator,
        "inside": mutant.inside,
        "diff": _difference(old, mutant.apply(old)),
        "source": mutant.apply(old),
        "places": judging.Places(mutant.path, mutant.lines, mutant.function),
    }


def _difference(old: str, new: str) -> list[str]:
    """Return the changed lines, with the number of the first."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[2:]
    return [line.rstrip() for line in lines]


def _report(entries: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Print the table and the survivors, and keep all in reliability/results."""
    explanations: dict[str, str] = json.loads((HERE / "explanations.json").read_text(encoding="utf-8"))
    for entry in entries:
        if entry["outcome"] == "survived" and entry["key"] in explanations:
            entry["explanation"] = explanations[entry["key"]]
    rows: dict[str, dict[str, int]] = {}
    for entry in entries:
        counts = rows.setdefault(entry["package"], Counter())
        counts["mutants"] += 1
        counts[entry["outcome"]] += 1
        counts["explained"] += "explanation" in entry
        counts["survived at first"] += entry["first"] == "survived"
    sampled = [row for name, row in rows.items() if name != "named"]
    rows["all sampled"] = {c: sum(row[c] for row in sampled) for c in {c for row in sampled for c in row}}
    show("mutants", ("mutants", "killed", "timeout", "survived", "explained", "survived at first"), rows)
    for entry in entries:
        if entry["outcome"] == "survived":
            print("", entry["key"], *entry["diff"], entry.get("explanation", "NOT EXPLAINED"), sep="\n")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    about = {"commit": commit.stdout.strip(), "source": tree.source_digest(), "seed": options.seed}
    kept = [{k: v for k, v in e.items() if e["outcome"] == "survived" or k not in ("explanation",)} for e in entries]
    keep("mutants" if options.seed == 1 else f"mutants-{options.seed}", {**about, "table": rows, "mutants": kept})


if __name__ == "__main__":
    main()
