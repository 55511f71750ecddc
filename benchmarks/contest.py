"""The contest on AN4: our networks and PyTorch's, single and averaged, with the same processor seconds.

    python benchmarks/contest.py --data an4_states.npz --valid-only          rehearsal: never touches the test part
    python benchmarks/contest.py --data an4_states.npz [--only single --budgets 20 60 --sides ours --jobs 2]

benchmarks/frozen/contest.toml holds rows, sides and candidates; docs/evidence/protocol.md explains the rules. Every
training is a process of its own on one core, and its record is appended to results/contest.json when it ends: an
interrupted contest resumes, and a training is repeated only if its settings, its data or its code have changed. A row
whose candidates have all been trained is decided on valid; the test part is then read for the two chosen ones only.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import an4
import protocol
import results
from contest_plan import compare, entry_key, read_plan, runs_of, select, summarise

EXPERIMENT = "contest"
WORKER = Path(__file__).with_name("contest_worker.py")
OURS, PEER = "ours", "torch"
START_SECONDS = 12  # of a process: imports, compilation, reading the data, valid errors


class Contest:
    """The state of a contest: what is frozen, and what the result file and the folder of models have of it."""

    def __init__(self, data, options):
        self.data, self.options = an4.data_file(data), options
        frozen = protocol.read_frozen(EXPERIMENT)
        self.plan = read_plan(frozen)
        self.digest = protocol.data_digest(self.data)
        if self.digest != frozen["arrays_sha256"]:
            sys.exit(
                f"{data} has the digest {self.digest}, but the settings were frozen for {frozen['arrays_sha256']}."
            )
        self.path = results.FOLDER / f"{EXPERIMENT}.json"
        self.models = protocol.ROOT / "runs" / EXPERIMENT
        self.orders = self.models / "orders"
        self.orders.mkdir(parents=True, exist_ok=True)

    @cached_property
    def codes(self):
        """Return the fingerprint of each side's code."""
        return {name: protocol.code_fingerprint(side["code"]) for name, side in self.plan.sides.items()}

    def content(self):
        """Return the result file as it is now."""
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def comparisons(self):
        """Return (row, budget) of every comparison that is to be made."""
        rows = [row for name, row in self.plan.rows.items() if self.options.only is None or name in self.options.only]
        wanted = self.options.budgets
        return [(row, budget) for row in rows for budget in row.budgets if wanted is None or budget in wanted]

    def entries(self, row, budget, side):
        """Return {candidate: {seed: runs}} of what a side may choose from."""
        seeds = [seed for seed in row.seeds if self.options.seeds is None or seed in self.options.seeds]
        return [
            (c, {s: runs_of(self.plan, c, row, s, codes=self.codes, data=self.digest) for s in seeds})
            for c in self.plan.choices(row, side, budget)
        ]

    def all_entries(self):
        """Return the runs of every candidate and seed, each entry once, short budgets first."""
        found = {}
        for row, budget in self.comparisons():
            for side in self.options.sides:
                for _, by_seed in self.entries(row, budget, side):
                    found |= {entry_key(runs): runs for runs in by_seed.values()}
        return sorted(found.values(), key=lambda runs: sum(run.core_seconds for run in runs))

    def pending_runs(self):
        """Return the trainings without a record, and those whose lost models an average still needs."""
        content = self.content()
        done, averages = content.get("runs", {}), content.get("averages", {})
        entries = self.all_entries()
        averaged = {run.key for runs in entries if len(runs) > 1 and entry_key(runs) not in averages for run in runs}
        runs = {run.key: run for runs in entries for run in runs}
        return [run for key, run in runs.items() if key not in done or (key in averaged and self.lost(run))]

    def lost(self, run):
        """Return whether the model of a run is gone."""
        return not (self.models / f"{run.key}.model").exists()

    def order(self, job, key, **order):
        """Run one worker and return what went wrong, or None."""
        common = {"key": key, "data": str(self.data.resolve()), "models": str(self.models), "results": str(self.path)}
        path = self.orders / f"{job}-{key}.json"
        path.write_text(json.dumps(common | order))
        return in_own_process(job, path)

    def train(self, run):
        """Train one network in a process of its own."""
        return self.order("train", run.key, run=asdict(run), code=self.plan.sides[run.side]["code"])

    def average(self, runs):
        """Find the valid error of averaged networks."""
        return self.order("valid", entry_key(runs), keys=[run.key for run in runs])

    def test(self, runs, valid_error):
        """Read the test error of a chosen candidate at one seed."""
        keys, seeds = [run.key for run in runs], [run.seed for run in runs]
        return self.order(
            "test", entry_key(runs), keys=keys, seeds=seeds, valid_error=valid_error, experiment=EXPERIMENT
        )


def in_own_process(job, path):
    """Run a worker, single-threaded, and return what went wrong, or None."""
    command = [sys.executable, str(WORKER), job, str(path)]
    done = subprocess.run(command, env=protocol.single_threaded(), capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def in_parallel(jobs, tasks):
    """Call functions, so many at a time, and print a line for each that ends; return whether all succeeded.

    tasks: what is done, its processor seconds, and a function that returns what went wrong.
    """
    total, spent, start, good = sum(seconds for _, seconds, _ in tasks), 0.0, time.perf_counter(), True
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(function): (label, seconds) for label, seconds, function in tasks}
        for number, future in enumerate(as_completed(waiting), 1):
            label, seconds = waiting[future]
            problem, spent = future.result(), spent + seconds
            left = (time.perf_counter() - start) * (total - spent) / spent if spent else 0
            print(
                f"  {number}/{len(tasks)}  {label}: {'FAILED' if problem else 'done'}, {duration(left)} left",
                flush=True,
            )
            if problem:
                print(problem, file=sys.stderr, flush=True)
                good = False
    return good


def duration(seconds):
    """Return seconds as hours and minutes."""
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def train_all(contest):
    """Train what is missing, then average the ensembles; return whether all succeeded."""
    pending, jobs = contest.pending_runs(), contest.options.jobs
    estimate = sum(run.core_seconds + START_SECONDS for run in pending) / jobs
    print(f"{len(pending)} trainings to do, about {duration(estimate)} with {jobs} processes at a time", flush=True)
    if contest.options.plan:
        return False
    good = in_parallel(jobs, [(label(r), r.core_seconds, lambda r=r: contest.train(r)) for r in pending])
    content = contest.content()
    runs, known = content.get("runs", {}), content.get("averages", {})
    waiting = [e for e in contest.all_entries() if len(e) > 1 and entry_key(e) not in known]
    ready = [e for e in waiting if all(run.key in runs for run in e)]
    print(f"{len(ready)} ensembles to average on valid", flush=True)
    return in_parallel(jobs, [(f"{len(e)} x {label(e[0])}", 1, lambda e=e: contest.average(e)) for e in ready]) and good


def label(run):
    """Return a short name of a run."""
    part = f", every {run.every}th from {run.offset}" if run.every > 1 else ""
    return f"{run.side} {run.core_seconds:g} s of a core, seed {run.seed}{part}, {run.settings[:60]}"


def valid_errors(content, by_seed):
    """Return the valid errors of a candidate over the seeds, or None if one is missing or over its budget."""
    runs = content.get("runs", {})
    errors = []
    for entry in by_seed.values():
        records = [runs.get(run.key) for run in entry]
        if None in records or any(record["over_budget"] for record in records):
            return None
        found = records[0] if len(entry) == 1 else content.get("averages", {}).get(entry_key(entry))
        if found is None:
            return None
        errors.append(found["valid_error"])
    return errors


def choose(contest, content, row, budget, side):
    """Return the chosen candidate of a side, its runs and what was considered; None while something is missing."""
    considered, choices = [], []
    for candidate, by_seed in contest.entries(row, budget, side):
        records = [content.get("runs", {}).get(run.key) for entry in by_seed.values() for run in entry]
        if None in records:
            return None
        about = {"name": candidate.name, "budget": candidate.budget, "members": candidate.members}
        errors = valid_errors(content, by_seed)
        over = any(record["over_budget"] for record in records)
        if errors is None and not over:
            return None  # an ensemble that has not been averaged
        considered.append(about | {"over_budget": over, "valid": None if errors is None else summarise(errors)})
        if errors is not None:
            choices.append(((candidate, by_seed), errors))
    if not choices:
        return None
    candidate, by_seed = select(choices)
    return {"candidate": candidate, "by_seed": by_seed, "considered": considered}


def chosen_record(content, choice):
    """Return what the result file says about a chosen candidate: errors, seconds and memory over the seeds."""
    candidate, by_seed = choice["candidate"], choice["by_seed"]
    records = [[content["runs"][run.key] for run in entry] for entry in by_seed.values()]
    tests = [content.get("tests", {}).get(entry_key(entry)) for entry in by_seed.values()]

    def total(name):
        return sum(record[name] for entry in records for record in entry) / len(records)

    return {
        "name": candidate.name,
        "settings": candidate.settings,
        "budget": candidate.budget,
        "members": candidate.members,
        "seeds": list(by_seed),
        "valid": summarise(valid_errors(content, by_seed)),
        "test": None if None in tests else summarise([t["test_error"] for t in tests]),
        "core_seconds": total("charged_seconds"),
        "cpu_seconds": total("cpu_seconds"),
        "wall_seconds": total("seconds"),
        "peak_mb": max(record["peak_mb"] for entry in records for record in entry),
        "extra_mb": max(record["extra_mb"] for entry in records for record in entry),
        "weights": sum(record["facts"].get("weights", 0) for record in records[0]) or None,
        "runs": [[run.key for run in entry] for entry in by_seed.values()],
        "considered": choice["considered"],
    }


def decide(contest, row, budget):
    """Return the record of one comparison, or None while candidates are missing."""
    content = contest.content()
    chosen = {side: choose(contest, content, row, budget, side) for side in (OURS, PEER)}
    if None in chosen.values():
        return None
    if not contest.options.valid_only:
        for side, choice in chosen.items():
            read_test(contest, content, choice, f"{row.name}, {budget} s, {side}")
        content = contest.content()
    sides = {side: chosen_record(content, choice) for side, choice in chosen.items()}
    found = {"row": row.name, "budget": budget, "every": row.every, **sides}
    if all(record["test"] for record in sides.values()):
        found |= compare(row, sides[OURS]["test"], sides[PEER]["test"])
    return found


def read_test(contest, content, choice, what):
    """Read the test errors of a chosen candidate that are not known yet."""
    errors = dict(zip(choice["by_seed"], valid_errors(content, choice["by_seed"]), strict=True))
    for seed, runs in choice["by_seed"].items():
        if entry_key(runs) in content.get("tests", {}):
            continue
        if any(contest.lost(run) for run in runs):
            keys = ", ".join(run.key for run in runs)
            sys.exit(f"{what}, seed {seed}: a model is gone. Remove the runs {keys} from {contest.path}.")
        print(f"  test: {what}, seed {seed}", flush=True)
        if problem := contest.test(runs, errors[seed]):
            sys.exit(problem)


def write_rows(contest, rows, opened):
    """Put rows into the result file; rows that they replace stay there, under "superseded"."""
    with protocol.updated(contest.path) as content:
        former = {(row["row"], row["budget"]): row for row in content.get("rows", [])}
        for row in json.loads(json.dumps(rows)):
            old = former.get((row["row"], row["budget"]))
            if old is not None and {k: v for k, v in old.items() if k not in opened} == row:
                continue  # read again, nothing new
            if old is not None:
                content.setdefault("superseded", []).append(old)
            former[row["row"], row["budget"]] = row | opened
        content["rows"] = list(former.values())


def line(found):
    """Return one comparison as text."""
    part = "valid" if "relative" not in found else "test"
    texts = [
        f"{side} {found[side]['name']} {found[side][part]['mean']:.2f} "
        f"({found[side][part]['least']:.2f} to {found[side][part]['most']:.2f})"
        for side in (OURS, PEER)
    ]
    relative = 1 - found[OURS][part]["mean"] / found[PEER][part]["mean"]
    reached = {True: ", reached", False: ", NOT reached", None: ""}[found.get("reached")]
    return f"{found['row']} {found['budget']} s, {part} %: {' | '.join(texts)} | {100 * relative:+.1f} % lower{reached}"


def parse(arguments):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--only", nargs="+", help="rows to run (default: all)")
    parser.add_argument("--budgets", type=int, nargs="+", help="seconds (default: all of each row)")
    parser.add_argument("--seeds", type=int, nargs="+", help="seeds to train, with --valid-only (default: all)")
    parser.add_argument("--sides", nargs="+", default=[OURS, PEER], choices=[OURS, PEER], help="sides to train")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time, one core each")
    parser.add_argument("--valid-only", action="store_true", help="decide on valid and stop; any state of the code")
    parser.add_argument("--plan", action="store_true", help="say what is to be trained, and how long, and stop")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    if options.seeds is not None and not options.valid_only:
        sys.exit("--seeds trains a part of the seeds, which decides nothing about test: add --valid-only.")
    contest = Contest(options.data, options)
    opened = {}
    if not options.valid_only:  # refuses now rather than after hours of training
        opened = protocol.describe(EXPERIMENT, options.data, seeds=[])
        del opened["seeds"]  # those of each side are in its record
    good = train_all(contest)
    if options.plan:
        return
    rows = []
    for row, budget in contest.comparisons():
        found = decide(contest, row, budget)
        print(line(found) if found else f"{row.name} {budget} s: not all candidates of both sides are trained")
        rows += [found] if found else []
    if not options.valid_only:
        write_rows(contest, rows, opened)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
