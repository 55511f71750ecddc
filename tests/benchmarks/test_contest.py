"""The contest does what docs/evidence/protocol.md says: with two sides that cost nothing, in its own repository."""

import sys

import numpy as np
import pytest

import contest
import contest_plan
import contest_worker
import protocol
import results
from contest_plan import Candidate, Row, charge, compare, read_plan, runs_of, select
from small_contest import FROZEN, Repository, candidate, in_this_process

# names: what is chosen on valid is worse on test than the others, so a choice made on test shows
BOTH = [
    candidate("ours", "small", 20, valid=0.20, test=0.30),
    candidate("ours", "other", 20, valid=0.40, test=0.10),
    candidate("ours", "large", 60, valid=0.30, test=0.20),
    candidate("torch", "short", 20, valid=0.50, test=0.60),
    candidate("torch", "long", 60, valid=0.40, test=0.50),
]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository whose contest runs in this process."""
    monkeypatch.setattr(contest, "in_own_process", in_this_process)
    monkeypatch.setattr(protocol, "ROOT", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "benchmarks" / "results")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second
    monkeypatch.syspath_prepend(tmp_path / "benchmarks")
    return Repository(tmp_path)


def row_of(found, name, budget):
    (row,) = [row for row in found["rows"] if (row["row"], row["budget"]) == (name, budget)]
    return row


def test_valid_decides_among_this_budget_and_the_smaller_ones(repository):
    repository.freeze(BOTH, rows={"single": {"budgets": [20, 60], "asked": 0.08}})
    done = repository.run()
    assert done.returncode == 0, done.stderr
    found = repository.results()
    short, long = row_of(found, "single", 20), row_of(found, "single", 60)
    assert (short["ours"]["name"], short["torch"]["name"]) == ("small", "short")
    assert (long["ours"]["name"], long["torch"]["name"]) == ("small", "long")  # of the smaller budget
    assert len(found["runs"]) == 15  # every candidate at three seeds, once
    assert len(found["tests"]) == 9  # test is read for the chosen ones only
    assert abs(long["ours"]["test"]["mean"] - 30) < 4
    assert long["relative"] == pytest.approx(1 - long["ours"]["test"]["mean"] / long["torch"]["test"]["mean"])
    assert long["reached"]
    for key in ("commit", "blob", "data_sha256", "versions", "machine"):
        assert long[key]
    assert long["commit"] == repository.git("rev-parse", "HEAD")
    record = next(iter(found["runs"].values()))
    assert {"cpu_seconds", "seconds", "peak_mb", "extra_mb", "seed", "commit", "valid_error"} <= set(record)


def test_a_finished_run_is_not_repeated_unless_settings_code_or_data_change(repository):
    small = {"rows": {"single": {"budgets": [20], "asked": 0.08}}}
    ours, theirs = candidate("ours", "a", 20, valid=0.2, test=0.2), candidate("torch", "b", 20, valid=0.4, test=0.4)
    repository.freeze([ours, theirs], **small)
    assert "6 trainings to do" in repository.run().stdout
    first = repository.results()
    assert "0 trainings to do" in repository.run().stdout
    assert repository.results()["runs"] == first["runs"]
    module = (repository.folder / "benchmarks/fake_ours.py").read_text()
    repository.write("benchmarks/fake_ours.py", module.replace("A side of", "# comment\nOne side of"))
    assert "0 trainings to do" in repository.run("--valid-only", "--plan").stdout  # a docstring is not code
    repository.write("benchmarks/fake_ours.py", module.replace("wrong) % 3", "2 * wrong) % 3"))
    assert "3 trainings to do" in repository.run("--valid-only", "--plan").stdout  # the other side's code is the same
    repository.write("benchmarks/fake_ours.py", module)
    repository.freeze([ours, candidate("torch", "b", 20, valid=0.3, test=0.3)], **small)
    assert "3 trainings to do" in repository.run("--plan").stdout
    repository.write_data(1)
    repository.freeze([ours, theirs], **small)
    assert "6 trainings to do" in repository.run("--plan").stdout
    record = repository.folder / "benchmarks/results/contest.json"
    record.unlink()
    repository.write_data(0)
    repository.freeze([ours, theirs], **small)
    assert "6 trainings to do" in repository.run("--plan").stdout  # a model without its record does not count


def test_every_training_is_a_single_threaded_process_of_its_own(repository):
    module = (repository.folder / "benchmarks/fake_ours.py").read_text()
    about = '{"process": os.getpid(), "threads": os.environ["NUMBA_NUM_THREADS"], '
    module = module.replace("import time", "import os\nimport time").replace("facts = {", f"facts = {about}")
    repository.write("benchmarks/fake_ours.py", module)
    repository.freeze(
        [candidate("ours", "a", 20, valid=0.2, test=0.2), candidate("torch", "b", 20, valid=0.4, test=0.4)],
        rows={"single": {"budgets": [20], "asked": 0.08}},
    )
    done = repository.run_in_processes()
    assert done.returncode == 0, done.stderr
    assert "reached" in done.stdout
    facts = [run["facts"] for run in repository.results()["runs"].values() if run["side"] == "ours"]
    assert {fact["threads"] for fact in facts} == {"1"}
    assert len({fact["process"] for fact in facts}) == 3


def test_an_interrupted_contest_resumes(repository):
    repository.freeze(BOTH, rows={"single": {"budgets": [20], "asked": 0.08}})
    repository.run("--valid-only", "--seeds", 1)
    part = repository.results()
    assert sorted(run["seed"] for run in part["runs"].values()) == [1, 1, 1]
    done = repository.run()
    assert "6 trainings to do" in done.stdout
    runs = repository.results()["runs"]
    assert len(runs) == 9
    assert {key: runs[key] for key in part["runs"]} == part["runs"]


def test_rehearsals_never_touch_test_and_need_no_commit(repository):
    repository.freeze(BOTH, commit=False)
    done = repository.run("--valid-only", "--budgets", 20, "--seeds", 0)
    assert done.returncode == 0, done.stderr
    assert "valid %" in done.stdout
    assert not {"tests", "rows"} & set(repository.results())
    assert repository.results("test_readings") == {}


@pytest.mark.parametrize("state", ["nothing committed", "frozen file", "side", "new file"])
def test_the_contest_refuses_before_it_trains(repository, state):
    repository.freeze(BOTH, commit=state != "nothing committed")
    if state == "frozen file":
        repository.freeze(BOTH[1:], commit=False)
    elif state == "side":
        with open(repository.folder / "benchmarks/fake_ours.py", "a") as file:
            file.write("LATER = 1\n")
    elif state == "new file":
        repository.write("benchmarks/helper.py", "")
    done = repository.run("--budgets", 20)
    assert done.returncode != 0
    assert "NotFrozen" in done.stderr
    assert repository.results() == {}
    assert repository.results("test_readings") == {}


def test_former_figures_stay_beside_the_new(repository):
    small = {"rows": {"single": {"budgets": [20], "asked": 0.08}}}
    theirs = candidate("torch", "b", 20, valid=0.4, test=0.4)
    repository.freeze([candidate("ours", "a", 20, valid=0.3, test=0.39), theirs], **small)
    repository.run()
    (former,) = repository.results()["rows"]
    assert not former["reached"]
    repository.run()  # nothing new: nothing is superseded
    assert "superseded" not in repository.results()
    repository.freeze([candidate("ours", "tuned", 20, valid=0.3, test=0.2), theirs], **small)
    repository.run()
    found = repository.results()
    assert found["superseded"] == [former]
    assert row_of(found, "single", 20)["ours"]["name"] == "tuned"
    assert row_of(found, "single", 20)["commit"] != former["commit"]
    assert len(repository.results("test_readings")["readings"]) == 2


def test_an_ensemble_reuses_single_runs_and_averages_them(repository):
    """Three networks that are wrong at different frames are right together; each has a third of the seconds."""
    networks = {"valid": 0.3, "test": 0.3, "step": 1 / 3}
    repository.freeze(
        [
            candidate("ours", "one", 20, **networks),
            candidate("ours", "three", 60, row="ensembles", of="one", members=3),
            candidate("torch", "one", 20, **networks),
        ],
        rows={
            "single": {"budgets": [20], "asked": 0.08},
            "ensembles": {"budgets": [60], "asked": 0.08, "also": ["single"]},
        },
    )
    done = repository.run()
    assert done.returncode == 0, done.stderr
    found = repository.results()
    ours = [run for run in found["runs"].values() if run["side"] == "ours"]
    assert sorted(run["seed"] for run in ours) == list(range(9))  # 0, 1, 2 are the singles of the first row, too
    assert {run["core_seconds"] for run in ours} == {40.0}
    row = row_of(found, "ensembles", 60)
    assert (row["ours"]["name"], row["torch"]["name"]) == ("three", "one")
    assert row["ours"]["test"]["mean"] == 0
    assert row["torch"]["test"]["mean"] > 20


def test_a_run_over_its_budget_cannot_be_chosen(repository):
    repository.freeze(
        [
            candidate("ours", "greedy", 0.05, valid=0.1, test=0.1, spends=0.4),  # 0.05 s of two cores: 0.1 s, and 0.2
            candidate("ours", "modest", 0.05, valid=0.2, test=0.2, spends=0.1),
            candidate("torch", "b", 0.05, valid=0.4, test=0.4),
        ],
        rows={"single": {"budgets": [0.05], "asked": 0.08}},
    )
    repository.run()
    row = row_of(repository.results(), "single", 0.05)
    assert row["ours"]["name"] == "modest"
    assert [entry["over_budget"] for entry in row["ours"]["considered"]] == [True, False]


def test_little_data_are_five_draws_of_every_nth_utterance(repository):
    repository.freeze(
        [
            candidate("ours", "a", 20, row="little", valid=0.2, test=0.2),
            candidate("torch", "b", 20, row="little", valid=0.4, test=0.4),
        ],
        rows={"little": {"budgets": [20], "asked": 0, "every": 8, "seeds": [0, 1, 2, 3, 4]}},
    )
    repository.run("--valid-only")
    runs = [run for run in repository.results()["runs"].values() if run["side"] == "ours"]
    assert sorted((run["seed"], run["offset"]) for run in runs) == [(0, 0), (1, 1), (2, 3), (3, 4), (4, 6)]
    assert {run["facts"]["utterances"] for run in runs} == {2, 3}  # of 20


def test_code_that_the_fingerprint_does_not_cover_is_refused(repository):
    repository.write("benchmarks/helper.py", "")
    repository.write(
        "benchmarks/fake_ours.py", "import helper\n" + (repository.folder / "benchmarks/fake_ours.py").read_text()
    )
    repository.freeze(
        [candidate("ours", "a", 20, valid=0.2, test=0.2), candidate("torch", "b", 20, valid=0.4, test=0.4)]
    )
    done = repository.run("--valid-only", "--sides", "ours", "--only", "single", "--budgets", 20)
    assert done.returncode == 1
    assert "benchmarks/helper.py" in done.stderr
    assert "runs" not in repository.results()


def test_without_its_data_the_contest_stops_and_says_how_to_get_them(repository):
    repository.freeze(BOTH)
    done = repository.run(data=repository.folder / "nowhere.npz")
    assert done.returncode != 0
    assert "build_an4.py" in done.stderr


def test_probabilities_are_averaged_not_votes_nor_logarithms():
    votes = [[1.0, 0.0], [0.3, 0.7], [0.3, 0.7]]  # mean: class 0; two of three: class 1
    logarithms = [[0.0, 1.0], [0.8, 0.2], [0.8, 0.2]]  # mean: class 0; product: class 1
    models = [lambda X, pair=pair: [np.array(pair)] for pair in zip(votes, logarithms, strict=True)]
    (mean,) = contest_worker.mean_probabilities(models, [None])
    assert mean == pytest.approx(np.array([[1.6 / 3, 1.4 / 3], [1.6 / 3, 1.4 / 3]]))


def test_the_lowest_mean_is_chosen_not_the_lowest_seed():
    assert select([("lucky", [10.0, 30.0, 30.0]), ("steady", [20.0, 20.0, 20.0])]) == "steady"
    assert select([("first", [20.0]), ("second", [20.0])]) == "first"


@pytest.mark.parametrize(
    ("cpu", "facts", "over"),
    [
        (40.5, {}, False),
        (41.5, {}, True),
        (50, {"core_seconds": 40}, False),
        (50, {"core_seconds": 45}, True),
        (70, {"core_seconds": 40}, True),
        (40, {"core_seconds": 99}, False),
    ],
)
def test_what_a_run_is_charged(cpu, facts, over):
    """Valid errors are free if they are reported, up to half of the budget."""
    found = charge(cpu, facts, 40)
    assert found["over_budget"] is over
    assert found["charged_seconds"] == min(facts.get("core_seconds", cpu), cpu)


def test_what_is_required_is_reached_at_the_figure_itself():
    row = Row("single", (20,), 0.08, (0, 1, 2))
    assert compare(row, {"mean": 23.0}, {"mean": 25.0})["reached"]
    assert not compare(row, {"mean": 23.1}, {"mean": 25.0})["reached"]
    below = Row("little", (20,), 0.0, (0, 1, 2))
    assert compare(below, {"mean": 24.9}, {"mean": 25.0})["reached"]
    assert not compare(below, {"mean": 25.0}, {"mean": 25.0})["reached"]


def test_members_of_an_ensemble_share_its_seconds_and_no_network():
    plan = read_plan({**FROZEN, "sides": {"ours": FROZEN["sides"]["fake_ours"]}, "candidate": []})
    three = Candidate("ours", "ensembles", "three", 180, {}, members=3)
    entries = [runs_of(plan, three, plan.rows["ensembles"], s, codes={"ours": "x"}, data="d") for s in (0, 1, 2)]
    runs = [run for entry in entries for run in entry]
    assert sum(run.core_seconds for run in entries[0]) == contest_plan.CORES * 180
    assert len({run.key for run in runs}) == 9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seeds": [0, 1]}, "three are required"),
        ({"candidate": [candidate("ours", "a", 20, valid=0.1, members=2)]}, "single networks"),
        ({"candidate": [candidate("ours", "a", 20, row="other", valid=0.1)]}, "no row"),
        ({"candidate": [candidate("ours", "a", 20, valid=0.1)] * 2}, "same side"),
        (
            {
                "candidate": [
                    candidate("ours", "a", 20, valid=0.1),
                    candidate("ours", "a", 60, valid=0.2),
                    candidate("ours", "b", 60, row="ensembles", of="a"),
                ]
            },
            "several candidates",
        ),
    ],
)
def test_an_unfair_plan_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        read_plan({**FROZEN, "sides": {"ours": {}}, "candidate": [], **changes})
