"""An epoch of mini-batches: every sequence once, errors summed, resumed from the generator's state."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echolearn.sequences.batch import REST
from echolearn.training.minibatches import MiniBatches

LENGTHS = np.array([5, 9, 4, 7, 6, 8, 3])


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
    assert all(len(which) < size + REST for which in larger)


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
