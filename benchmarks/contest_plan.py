"""The plan of a contest: its candidates, their training runs, and the rule by which one is chosen.

Everything comes from benchmarks/frozen/contest.toml. Its [rows.NAME] say at which budgets two sides are compared, its
[sides.NAME] which module trains, and each [[candidate]] which settings one side may choose on valid:

    [[candidate]]
    side = "ours"
    row = "single"              # or ensembles, bidirectional, ...
    name = "300 units"
    budget = 60                 # seconds of two cores
    members = 1                 # networks whose probabilities are averaged; each has budget / members
    settings = { ... }          # handed to train(); or of = "NAME" of another candidate of this side: the same settings
"""

import hashlib
import json
from dataclasses import dataclass, field

CORES = 2  # budgets are seconds of two cores; a run has one core for twice as long
TOLERANCE = 1.02  # by which a run may exceed its processor time
UNCOUNTED = 0.5  # the most that computing valid errors, which is free, may take: this part of the budget
RULES = 1  # changes when the harness measures otherwise, so that no run of the former rules is reused


@dataclass(frozen=True)
class Row:
    """A comparison of two sides: budgets, what is required, and the data it is trained on."""

    name: str
    budgets: tuple
    asked: float  # relative difference required
    seeds: tuple  # random states or, with every > 1, draws of the data
    every: int = 1  # train on every n-th utterance
    also: tuple = ()  # rows whose candidates may be chosen here too

    def offset(self, seed):
        """Return the first utterance of a draw: draws are spread evenly over the `every` possible ones."""
        return self.seeds.index(seed) * self.every // len(self.seeds)


@dataclass(frozen=True)
class Run:
    """One training: everything that decides its result."""

    side: str
    module: str
    code: str  # fingerprint
    data: str  # digest
    settings: str  # JSON, keys sorted
    core_seconds: float
    seed: int
    every: int = 1
    offset: int = 0
    rules: int = RULES

    @property
    def key(self):
        """Return the name of the run's files; another one as soon as anything that decides the result differs."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Candidate:
    """One choice of one side: `members` networks of the same settings whose probabilities are averaged."""

    side: str
    row: str
    name: str
    budget: float
    settings: dict = field(hash=False)
    members: int = 1


@dataclass(frozen=True)
class Plan:
    """Rows and candidates of a contest."""

    rows: dict
    sides: dict
    candidates: tuple

    def choices(self, row, side, budget):
        """Return the candidates of a side that may be chosen at a budget: its own and those of all smaller budgets."""
        names = (row.name, *row.also)
        return [c for c in self.candidates if c.side == side and c.row in names and c.budget <= budget]


def read_plan(frozen):
    """Return the plan that a frozen file describes, and refuse one that is unfair or incomplete."""
    rows = {name: _row(name, entry, frozen) for name, entry in frozen["rows"].items()}
    settings, candidates = {}, []
    for entry in frozen["candidate"]:
        if "settings" in entry:
            settings.setdefault((entry["side"], entry["name"]), []).append(entry["settings"])
    for entry in frozen["candidate"]:
        values = {key: value for key, value in entry.items() if key != "of"}
        if "of" in entry:
            values["settings"], *others = settings[entry["side"], entry["of"]]
            if any(other != values["settings"] for other in others):
                raise ValueError(f"candidate {entry['name']!r}: several candidates are called {entry['of']!r}")
        candidates.append(Candidate(**values))
    plan = Plan(rows, frozen["sides"], tuple(candidates))
    _check(plan)
    return plan


def _row(name, entry, frozen):
    values = {"seeds": frozen["seeds"], **entry}
    return Row(name, **{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def _check(plan):
    names = [(c.side, c.row, c.name, c.budget) for c in plan.candidates]
    if len(set(names)) < len(names):
        raise ValueError("two candidates have the same side, row, name and budget")
    for c in plan.candidates:
        if c.row not in plan.rows or c.side not in plan.sides:
            raise ValueError(f"candidate {c.name!r}: there is no row {c.row!r} or no side {c.side!r}")
        if c.row == "single" and c.members != 1:
            raise ValueError(f"candidate {c.name!r} has {c.members} members, but stands in the row of single networks")
    for row in plan.rows.values():
        if len(row.seeds) < 3:
            raise ValueError(f"row {row.name!r} has {len(row.seeds)} seeds; at least three are required")
        if any(name not in plan.rows or plan.rows[name].every != row.every for name in row.also):
            raise ValueError(f"row {row.name!r}: 'also' names a row that does not exist or is trained on other data")


def runs_of(plan, candidate, row, seed, *, codes, data):
    """Return the trainings that a candidate consists of at one seed; ensembles of different seeds share no member."""
    k = candidate.members
    little = row.every > 1
    return [
        Run(
            side=candidate.side,
            module=plan.sides[candidate.side]["module"],
            code=codes[candidate.side],
            data=data,
            settings=json.dumps(candidate.settings, sort_keys=True),
            core_seconds=CORES * candidate.budget / k,
            seed=seed * k + member,
            every=row.every,
            offset=row.offset(seed) if little else 0,
        )
        for member in range(k)
    ]


def entry_key(runs):
    """Return the name of an entry: the candidate's networks of one seed, averaged."""
    return hashlib.sha256("".join(run.key for run in runs).encode()).hexdigest()[:20]


def select(choices):
    """Return the candidate with the lowest mean of its valid errors over the seeds; of equal ones, the first."""
    return min(choices, key=lambda choice: sum(choice[1]) / len(choice[1]))[0]


def summarise(errors):
    """Return mean, least and most of errors over the seeds."""
    return {"mean": sum(errors) / len(errors), "least": min(errors), "most": max(errors), "errors": list(errors)}


def compare(row, ours, theirs):
    """Return the relative difference of two mean test errors, and whether it is what the row requires."""
    relative = 1 - ours["mean"] / theirs["mean"]
    reached = relative > row.asked - 1e-12 if row.asked > 0 else relative > 0
    return {"relative": relative, "asked": row.asked, "reached": reached}


def charge(cpu_seconds, facts, core_seconds):
    """Return what a run is charged, and whether that is more than it was given.

    A side may report the processor seconds that count, without those of computing valid errors, as
    facts["core_seconds"] (or "process_seconds"); otherwise all are charged. What is not charged is bounded, so that no
    work hides there.
    """
    reported = facts.get("core_seconds", facts.get("process_seconds", cpu_seconds))
    charged = min(float(reported), cpu_seconds)
    slack = 0.2  # seconds: the last batch of a very short run
    over = charged > TOLERANCE * core_seconds + slack or cpu_seconds - charged > UNCOUNTED * core_seconds + slack
    return {"charged_seconds": charged, "over_budget": over}
