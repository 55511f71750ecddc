"""Mutation testing: are the choices that the code makes tested? (`make mutants`, docs/evidence/reliability.md)

Every mutant makes one choice otherwise: another comparison, sign, constant, part of the data, and so on. It runs in a
copy of the source tree with the tests that run the changed line. A test that fails kills it. What survives is either
explained in explanations.json, or lacks a test. The named mutants come first, then a sample of each package. An
interrupted campaign resumes; the survivors of an earlier one are tried again, with the tests that were added since.
With --own, one package after another is judged by its own tests alone, which is soon done; what survives there is left
to a campaign without it.
"""

from __future__ import annotations

import argparse
import difflib
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from reliability.mutants import judging, named, session, tree
from reliability.mutants.drawing import PACKAGES, Mutant, draw, function_around
from reliability.results import keep, show

HERE = Path(__file__).parent


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=12, help="mutants per package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=60.0, help="processor seconds of tests per mutant, about")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--folders", nargs="*", default=(), help="folders of tests/ to run; without: all")
    parser.add_argument("--named", action="store_true", help="only the named mutants")
    parser.add_argument("--sampled", action="store_true", help="only the sample")
    parser.add_argument("--same-copy", action="store_true", help="source and tests as the last campaign had them")
    parser.add_argument("--own", action="store_true", help="only the quick judgement, by the tests of its own package")
    parser.add_argument("--quick", action="store_true", help="only the quick judgement, in one session of pytest")
    options = parser.parse_args()
    tree.WORK.mkdir(parents=True, exist_ok=True)
    if not options.same_copy:
        tree.update_copy()
    tests = tree.TestMap()
    judging.load_libraries()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the copy is left as it was
    path = tree.WORK / f"outcomes-{options.seed}.json"
    outcomes: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    work = []
    for packages in [[one] for one in options.packages] if options.own else [options.packages]:
        some = _chosen(packages, options)
        work += some
        tests.update(packages if options.own else options.folders)
        campaign = _Campaign(tests, some, outcomes, path, options)
        campaign.judge_quickly()
        if not (options.quick or options.own):
            campaign.judge_thoroughly()
        _report([outcomes[entry["key"]] for entry in work if entry["key"] in outcomes], options)


def _chosen(packages: Sequence[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the entries of the named mutants of some packages, and of a sample of their other mutants."""
    work = [_named(name) for name, patch in named.MUTANTS.items() if patch.path.split("/")[2] in packages]
    if options.sampled:
        work = []
    if not options.named:
        drawn = [draw(tree.COPY, package, options.each, options.seed) for package in packages]
        for mutants in zip_longest(*drawn):  # every package in turn; a small one has fewer
            work += [_sampled(mutant) for mutant in mutants if mutant is not None]
    return work


class _Campaign:
    """The mutants to judge, and what became of them, kept in a file."""

    def __init__(
        self,
        tests: tree.TestMap,
        work: list[dict[str, Any]],
        outcomes: dict[str, dict[str, Any]],
        path: Path,
        options: argparse.Namespace,
    ):
        self.tests, self.work, self.outcomes, self.path, self.options = tests, work, outcomes, path, options

    def left(self, *, thorough: bool = False) -> list[int]:
        """Return the numbers of the mutants that are not judged, or that have survived earlier or quicker tests."""
        known = [self.outcomes.get(entry["key"]) for entry in self.work]
        same = self.options.same_copy

        def again(found: dict[str, Any]) -> bool:
            return found["outcome"] == "survived" and (not same or (thorough and found["quick"]))

        return [k for k, found in enumerate(known) if found is None or again(found)]

    def rounds(self, k: int) -> list[list[str]]:
        """Return the tests of a mutant, in two rounds."""
        return judging.choose_tests(self.tests, self.work[k]["places"], self.options.most, own_alone=self.options.own)

    def record(self, k: int, verdict: judging.Verdict, *, quick: bool = False) -> None:
        """Keep a verdict; quick: whether a mutant that survives has to be judged again."""
        entry = self.work[k]
        before = self.outcomes.get(entry["key"], {})
        facts = {name: value for name, value in entry.items() if name not in ("source", "places")}
        first = before.get("first", verdict.outcome)
        self.outcomes[entry["key"]] = {**facts, **vars(verdict), "first": first, "quick": quick}
        self.path.write_text(json.dumps(self.outcomes, indent=1), encoding="utf-8")

    def judge_quickly(self) -> None:
        """Judge what is left in one session; the verdicts are read from the file that its process has written."""
        jobs = []
        for k in self.left():
            entry, chosen = self.work[k], [test for some in self.rounds(k) for test in some]
            if chosen:
                jobs.append(session.Job(k, entry["path"], entry["source"], entry["places"].lines[0], chosen))
        if jobs:
            session.judge_quickly(jobs, self.tests, partial(self.record, quick=True))
        if self.path.is_file():
            self.outcomes |= json.loads(self.path.read_text(encoding="utf-8"))

    def judge_thoroughly(self) -> None:
        """Judge what is left again, each mutant in a process that imports it."""
        left = self.left(thorough=True)
        judging.check_harness(self.tests)
        for count, k in enumerate(left):
            entry = self.work[k]
            verdict = judging.judge(entry["source"], entry["path"], self.rounds(k), self.tests)
            self.record(k, verdict)
            print(f"{count + 1}/{len(left)} {verdict.outcome:8} {verdict.seconds:6.1f} s {entry['key']}", flush=True)


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
