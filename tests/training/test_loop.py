"""The epoch loop, with an objective of one weight: best epoch, patience, divergence, Ctrl-C, checkpoints, history."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echolearn.exceptions import CheckpointError, TrainingWarning
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.sequences.batch import MIN_SEQUENCES_PER_BATCH
from echolearn.training.history import History
from echolearn.training.loop import MiniBatches, Schedule, run_epochs

LENGTHS = np.array([5, 9, 4, 7, 6, 8, 3])


class OneWeight:
    """A weight that every mini-batch moves, in a way that depends on the order of sequences.

    errors: on held-out data, at the start and after each epoch, or none. diverges(step_size, epoch): whether an
    epoch fails; explodes(weight): whether a weight is unstable.
    """

    error_name = "error"

    def __init__(self, errors=None, *, batch_size=2, diverges=lambda size, epoch: False, explodes=lambda w: False):
        self.weight, self.velocity, self.step_size = 1.0, 0.0, 1.0
        self.errors, self.validated = errors, 0
        self.batch_size, self.diverges, self.explodes = batch_size, diverges, explodes
        self.lengths, self.log, self.steps = LENGTHS, [], 0

    @property
    def validates(self):
        return self.errors is not None

    def begin_epoch(self, pause):
        self.log.append("begin")

    def step(self, which, done):
        self.log.append((done, sorted(which.tolist())))
        if self.diverges(self.step_size, int(done) + 1):
            raise FloatingPointError("too far")
        self.velocity = 0.5 * self.velocity + self.step_size * float(which @ (1 + np.arange(len(which))))
        self.weight = 0.9 * self.weight + self.velocity / 7
        self.steps += 1
        return 3.0 * len(which), float(len(which))

    def end_epoch(self):
        self.log.append("end")

    def validation_error(self):
        error = self.errors[self.validated]
        self.validated += 1
        if isinstance(error, BaseException):
            raise error
        return error

    def measurements(self):
        return {"velocity": self.velocity}

    def row(self, number, measurements, seconds):
        return {**measurements, "seconds": seconds, "step_size": self.step_size}

    def snapshot(self):
        return self.weight

    def restart(self, snapshot):
        self.log.append(("restart", snapshot))
        self.weight, self.velocity = snapshot, 0.0
        self.step_size *= 0.1

    def is_stable(self, snapshot):
        return not self.explodes(snapshot)

    def pack(self, name, snapshot):
        return {f"{name}_weight": np.array([snapshot])}

    def unpack(self, name, tensors):
        return float(tensors[f"{name}_weight"][0])

    def shapes(self):
        return dict.fromkeys(("weight", "velocity", "best_weight", "safe_weight", "began_weight"), (1,))

    def state_dict(self, *, inside_epoch):
        tensors = {"weight": np.array([self.weight]), "velocity": np.array([self.velocity])}
        return tensors, {"step_size": self.step_size, "validated": self.validated}

    def load_state_dict(self, tensors, facts):
        self.weight, self.velocity = float(tensors["weight"][0]), float(tensors["velocity"][0])
        self.step_size, self.validated = float(facts["step_size"]), int(facts["validated"])


def run(objective, epochs=5, *, patience=None, retries=0, seed=0, **more):
    return run_epochs(objective, Schedule(epochs, patience, retries), rng=np.random.default_rng(seed), **more)


def weights_after(epochs, **how):
    """Return the weight after each epoch, the first being that of the start."""
    objective = OneWeight(**how)
    seen = [objective.snapshot()]
    run(objective, epochs, on_epoch=lambda row: seen.append(objective.snapshot()))
    return seen


def test_without_validation_the_newest_weights_are_the_result():
    objective = OneWeight()
    result = run(objective)
    assert result.best == objective.weight == weights_after(5)[-1]
    assert not result.interrupted
    assert isinstance(result.history, History)
    assert [row["epoch"] for row in result.history] == [1, 2, 3, 4, 5]


def test_no_epochs_leave_the_weights_as_they_are():
    result = run(OneWeight([0.5]), 0)
    assert (result.best, result.history, result.interrupted) == (1.0, [], False)


@pytest.mark.parametrize(
    ("errors", "best"),
    [
        ([0.9, 0.5, 0.4, 0.45, 0.3, 0.6], 4),
        ([0.9, 0.5, 0.4, 0.4, 0.6, 0.7], 2),  # of equal ones the first
        ([0.2, 0.5, 0.4, 0.45, 0.3, 0.2], 0),  # the start counts, and learning must be better than it
        ([np.nan, 0.5, np.nan, 0.45, 0.6, 0.7], 3),
        ([FloatingPointError("start"), 0.5, 0.4, 0.6, 0.7, 0.8], 2),
        ([np.linalg.LinAlgError("start"), 0.5, 0.4, 0.6, 0.7, 0.8], 2),
    ],
)
def test_the_epoch_with_the_smallest_validation_error_is_the_result(errors, best):
    result = run(OneWeight(errors))
    assert result.best == weights_after(5)[best]
    np.testing.assert_array_equal([row["valid_error"] for row in result.history], errors[1:])


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 7), (3, 8), (None, 9)])
def test_training_stops_after_some_epochs_without_a_better_error(patience, epochs):
    errors = [0.9, 0.5, 0.4, 0.41, 0.3, 0.2, 0.25, 0.26, 0.27, 0.28]
    assert len(run(OneWeight(errors), 9, patience=patience).history) == epochs


def test_patience_counts_from_the_start_where_no_epoch_is_better():
    assert len(run(OneWeight([0.1] + [0.5] * 9), 9, patience=2).history) == 2


def test_the_callback_gets_every_row_and_true_stops_the_training():
    rows = []
    result = run(OneWeight(), 9, on_epoch=lambda row: rows.append(row) or row["epoch"] == 3)
    assert rows == list(result.history)
    assert len(rows) == 3
    assert not result.interrupted
    assert len(run(OneWeight(), 4, on_epoch=lambda row: "anything but True").history) == 4


def test_a_callback_cannot_change_the_history():
    result = run(OneWeight(), 2, on_epoch=lambda row: row.clear())
    assert all(row["error"] == pytest.approx(3.0) for row in result.history)


def test_a_row_has_the_errors_per_target_and_what_the_objective_measured():
    row = run(OneWeight([0.9, 0.5]), 1).history[0]
    assert list(row) == ["epoch", "error", "valid_error", "velocity", "seconds", "step_size"]
    assert (row["epoch"], row["error"], row["valid_error"], row["step_size"]) == (1, 3.0, 0.5, 1.0)
    assert 0 < row["seconds"] < 60


def test_the_errors_carry_the_name_that_the_objective_gives_them():
    objective = OneWeight([0.9, 0.5])
    objective.error_name = "cross_entropy"
    assert {"cross_entropy", "valid_cross_entropy"} <= set(run(objective, 1).history[0])


def test_an_epoch_takes_every_sequence_once_in_an_order_of_its_own():
    objective = OneWeight()
    run(objective, 2)
    begins = [i for i, entry in enumerate(objective.log) if entry == "begin"]
    orders = []
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], None], strict=True)):
        steps = objective.log[begin:end][1:-1]
        assert objective.log[begin:end][-1] == "end"
        assert sorted(i for _, which in steps for i in which) == list(range(7))
        assert [done for done, _ in steps] == [number + i / 4 for i in range(4)]
        orders.append([which for _, which in steps])
    assert orders[0] != orders[1]


def test_without_a_batch_size_an_epoch_is_one_step_and_draws_nothing():
    objective, rng = OneWeight(batch_size=None), np.random.default_rng(0)
    before = rng.bit_generator.state
    run_epochs(objective, Schedule(3), rng=rng)
    assert objective.steps == 3
    assert rng.bit_generator.state == before


def test_an_epoch_that_diverges_is_tried_again_from_safe_weights_with_smaller_steps():
    """Safe are the weights with which a whole epoch has run: those at the begin of the epoch before."""
    weights = weights_after(3)
    objective = OneWeight(diverges=lambda size, epoch: size == 1.0 and epoch == 3)
    with pytest.warns(TrainingWarning, match=r"epoch 3 diverged \(too far\); tried again with step_size=0\.1\."):
        result = run(objective, 4, retries=3)
    assert ("restart", weights[1]) in objective.log
    assert len(result.history) == 4
    assert [row["step_size"] for row in result.history] == [1.0, 1.0, 0.1, 0.1]


def test_an_epoch_that_diverges_midway_is_tried_again_with_all_its_sequences():
    objective = OneWeight()
    step = objective.step

    def diverging(which, done):
        if done == 1.5 and objective.step_size == 1.0:
            raise FloatingPointError("too far")
        return step(which, done)

    objective.step = diverging
    with pytest.warns(TrainingWarning, match="epoch 2 diverged"):
        result = run(objective, 2, retries=1)
    again = objective.log[objective.log.index(("restart", 1.0)) :]
    assert again[1] == "begin"
    assert sorted(i for _, which in again[2:-1] for i in which) == list(range(7))
    assert [row["error"] for row in result.history] == [3.0, 3.0]


def test_after_the_last_retry_training_stops_with_the_best_weights_so_far():
    objective = OneWeight([0.9, 0.5, 0.6], diverges=lambda size, epoch: epoch == 3)
    with pytest.warns(TrainingWarning) as seen:
        result = run(objective, 9, retries=2)
    texts = [str(warning.message) for warning in seen]
    assert [text.split(" (")[0] for text in texts[:2]] == ["epoch 3 diverged"] * 2
    assert (
        "training stopped in epoch 3: too far, even with smaller steps. The best weights so far are kept." in texts[2]
    )
    assert "Try a smaller step_size in `learning`, or scale X to about 1." in texts[2]
    assert len(texts) == 3
    assert result.best == weights_after(2)[1]
    assert len(result.history) == 2
    assert not result.interrupted
    assert seen[0].filename == __file__


def test_without_retries_training_stops_at_once_with_a_warning():
    objective = OneWeight([0.9, 0.5], diverges=lambda size, epoch: epoch == 2)
    with pytest.warns(TrainingWarning, match=r"^training stopped in epoch 2: too far\. The best") as seen:
        result = run(objective, 9)
    assert len(seen) == 1
    assert result.best == weights_after(1)[1]
    assert not any(isinstance(entry, tuple) and entry[0] == "restart" for entry in objective.log)


def test_retries_are_counted_over_all_epochs():
    def diverges(size, epoch):
        return size > 0.5 * 0.1 ** (epoch - 1)  # every epoch needs smaller steps than the one before

    with pytest.warns(TrainingWarning) as seen:
        result = run(OneWeight(diverges=diverges), 9, retries=3)
    assert len(seen) == 4
    assert len(result.history) == 3


def test_an_epoch_whose_validation_diverges_is_tried_again():
    objective = OneWeight([0.9, np.linalg.LinAlgError("singular"), 0.5, 0.4])
    with pytest.warns(TrainingWarning, match=r"epoch 1 diverged \(singular\); tried again"):
        result = run(objective, 2, retries=1)
    assert [row["valid_error"] for row in result.history] == [0.5, 0.4]


def test_other_errors_are_raised():
    with pytest.raises(ZeroDivisionError):
        run(OneWeight([0.9, ZeroDivisionError()]), retries=3)


def test_without_validation_weights_that_explode_give_way_to_safe_ones():
    weights = weights_after(4)
    objective = OneWeight(explodes=lambda w: w == weights[4])
    with pytest.warns(TrainingWarning, match="the weights after the last epoch explode; those of the epoch before"):
        result = run(objective, 4)
    assert result.best == weights[3]
    assert len(result.history) == 4


def test_with_validation_the_weights_are_not_checked_again():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(OneWeight([0.9, 0.5], explodes=lambda w: True), 1).best == weights_after(1)[1]


@pytest.mark.parametrize("errors", [None, [0.9, 0.5, 0.6]])
def test_ctrl_c_between_epochs_gives_the_best_weights_so_far(errors):
    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    result = run(OneWeight(errors), 9, on_epoch=press)
    assert result.interrupted
    assert len(result.history) == 2
    assert result.best == weights_after(2)[2 if errors is None else 1]


def test_ctrl_c_inside_an_epoch_gives_the_weights_of_the_last_whole_epoch():
    objective = OneWeight()
    step = objective.step

    def press_at_sixth(which, done):
        if objective.steps == 5:
            raise KeyboardInterrupt
        return step(which, done)

    objective.step = press_at_sixth
    result = run(objective, 9)
    assert result.interrupted
    assert len(result.history) == 1
    assert result.best == weights_after(1)[1]


def test_ctrl_c_during_the_first_validation_gives_the_start():
    result = run(OneWeight([KeyboardInterrupt()]), 9)
    assert (result.best, result.history, result.interrupted) == (1.0, [], True)


class Cut(Exception):
    pass


def run_cut_after_every_state(make, folder, monkeypatch, epochs=4, **how):
    """Run a training that is cut off after each state that it keeps; return its result, and how often."""
    save = Checkpoint.save

    def save_and_stop(self, tensors, state):
        save(self, tensors, state)
        raise Cut

    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    for cuts in range(100):
        try:
            return run(make(), epochs, checkpoint=Checkpoint(folder, {}), **how), cuts
        except Cut:
            pass
    raise AssertionError("the training does not advance")


def without_seconds(result):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in result.history]


@pytest.mark.parametrize("errors", [None, [0.9, 0.5, 0.4, 0.45, 0.6]])
@pytest.mark.parametrize(("batch_size", "cuts"), [(2, 16), (None, 4)])
def test_cut_off_after_every_state_it_resumes_to_the_bit(errors, batch_size, cuts, tmp_path, monkeypatch):
    """States are kept after epochs, between mini-batches, and before validation."""

    def make():
        return OneWeight(errors, batch_size=batch_size)

    straight = run(make(), 4)
    resumed, count = run_cut_after_every_state(make, tmp_path, monkeypatch)
    assert resumed.best == straight.best
    assert without_seconds(resumed) == without_seconds(straight)
    assert count == cuts + (4 if errors else 0)


def test_cut_off_it_resumes_with_its_retries_and_safe_weights(tmp_path, monkeypatch):
    def make():
        return OneWeight(diverges=lambda size, epoch: size == 1.0 and epoch == 3, explodes=lambda w: w != weights[3])

    weights = weights_after(3)
    with pytest.warns(TrainingWarning, match=r"diverged|explode"):
        straight = run(make(), 4, retries=1)
    with pytest.warns(TrainingWarning, match=r"diverged|explode"):
        resumed, _ = run_cut_after_every_state(make, tmp_path, monkeypatch, retries=1)
    assert resumed.best == straight.best
    assert without_seconds(resumed) == without_seconds(straight)


def test_a_finished_training_is_not_repeated(tmp_path):
    first = run(OneWeight([0.9, 0.5, 0.4]), 2, checkpoint=Checkpoint(tmp_path, {}))
    again = OneWeight([0.9])
    second = run(again, 2, checkpoint=Checkpoint(tmp_path, {}))
    assert second.best == first.best
    assert second.history == first.history
    assert again.log == []


def test_seconds_include_the_time_before_an_interruption(tmp_path):
    run(OneWeight(), 1, checkpoint=Checkpoint(tmp_path, {}))
    checkpoint = Checkpoint(tmp_path, {})
    tensors, facts = checkpoint.load(OneWeight().shapes())
    checkpoint.save(tensors, {**facts, "seconds": 1000.0})
    assert 1000 < run(OneWeight(), 2, checkpoint=Checkpoint(tmp_path, {})).history[1]["seconds"] < 1060


def test_without_validation_states_of_version_0_1_have_only_the_best_weights(tmp_path):
    """Some stages of version 0.1 kept a "best_score", and neither safe weights nor retries."""
    run(OneWeight([0.9, 0.5]), 1, checkpoint=Checkpoint(tmp_path, {}))
    checkpoint = Checkpoint(tmp_path, {})
    tensors, facts = checkpoint.load(OneWeight().shapes())
    tensors = {name: value for name, value in tensors.items() if not name.startswith(("safe", "began"))}
    facts["best_score"] = facts.pop("best_error")
    for name in ("best_epoch", "backoffs", "seconds"):
        del facts[name]
    checkpoint.save(tensors, facts)
    errors = [0.9, 0.5, 0.6]
    result = run(OneWeight(errors), 2, checkpoint=Checkpoint(tmp_path, {}))
    assert result.best == run(OneWeight(errors), 2).best
    assert len(result.history) == 2


@pytest.mark.parametrize("changes", [{"rng": 3}, {"best_error": "small"}, {"pending": [1]}, {"midway": {"done": 1}}])
def test_a_state_that_makes_no_sense_is_refused(changes, tmp_path):
    run(OneWeight(), 1, checkpoint=Checkpoint(tmp_path, {}))
    checkpoint = Checkpoint(tmp_path, {})
    tensors, facts = checkpoint.load(OneWeight().shapes())
    checkpoint.save(tensors, {**facts, **changes})
    with pytest.raises(CheckpointError, match=r"cannot resume from .*start anew"):
        run(OneWeight(), 2, checkpoint=Checkpoint(tmp_path, {}))


# An epoch of mini-batches


@example(lengths=[1] * 17, size=2, seed=0)
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    size=st.integers(1, 40) | st.none(),
    seed=st.integers(0, 99),
)
def test_every_sequence_is_in_one_mini_batch(lengths, size, seed):
    minibatches = MiniBatches.draw(np.array(lengths), size, np.random.default_rng(seed))
    assert sorted(np.concatenate(minibatches.batches).tolist()) == list(range(len(lengths)))
    larger = [which for which in minibatches.batches if len(which) > (size or len(lengths))]
    assert len(larger) <= 1, "only the batch that the rest joins may have more than `size` sequences"
    assert all(len(which) < size + MIN_SEQUENCES_PER_BATCH for which in larger)


def test_without_a_size_all_sequences_are_one_batch_and_nothing_is_drawn():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    minibatches = MiniBatches.draw(LENGTHS, None, rng)
    assert [which.tolist() for which in minibatches.batches] == [list(range(7))]
    assert rng.bit_generator.state == before


def test_mini_batches_that_are_left_come_with_the_share_of_the_epoch_before_them():
    minibatches = MiniBatches.draw(LENGTHS, 2, np.random.default_rng(0))
    assert [share for share, _ in minibatches.left()] == [0.0, 0.25, 0.5, 0.75]
    minibatches.add(1.5, 2.0)
    minibatches.add(0.5, 1.0)
    assert (minibatches.error, minibatches.n) == (2.0, 3.0)
    left = list(minibatches.left())
    assert [share for share, _ in left] == [0.5, 0.75]
    assert [which.tolist() for _, which in left] == [which.tolist() for which in minibatches.batches[2:]]


def test_between_mini_batches_is_neither_before_the_first_nor_after_the_last():
    minibatches = MiniBatches.draw(LENGTHS, 3, np.random.default_rng(0))
    states = [minibatches.between]
    for _ in minibatches.batches:
        minibatches.add(0.0, 1.0)
        states.append(minibatches.between)
    assert states == [False, True, True, False]


def test_an_epoch_resumes_with_the_same_mini_batches():
    rng = np.random.default_rng(3)
    rng.random(5)
    first = MiniBatches.draw(LENGTHS, 2, rng)
    first.add(1.5, 2.0)
    other = np.random.default_rng(99)
    second = MiniBatches.resume(first.state_dict(), LENGTHS, 2, other)
    assert [which.tolist() for which in second.batches] == [which.tolist() for which in first.batches]
    assert (second.done, second.error, second.n) == (1, 1.5, 2.0)
    assert other.random() == rng.random()  # it stands where the drawing left it


@pytest.mark.parametrize("done", [-1, 0, 4, 99])
def test_a_state_that_is_not_between_mini_batches_is_refused(done):
    minibatches = MiniBatches.draw(LENGTHS, 2, np.random.default_rng(0))
    state = {**minibatches.state_dict(), "done": done}
    with pytest.raises(ValueError, match=rf"{done} of 4 mini-batches are done"):
        MiniBatches.resume(state, LENGTHS, 2, np.random.default_rng(0))
