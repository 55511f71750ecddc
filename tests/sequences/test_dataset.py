"""Datasets: batches, subsets, passes over groups, and a fingerprint of their contents."""

from dataclasses import replace

import numpy as np

from echolearn.execution.executor import LOCAL, LocalExecutor, executing_on
from echolearn.sequences.batch import unpack
from echolearn.sequences.dataset import Dataset
from numbered import numbered

X = numbered([3, 5, 4])
LABELS = [np.arange(len(x)) % 3 for x in X]


def labelled(X=X, y=LABELS):
    return Dataset(X, y, 3, True, np.dtype("float32"))


def test_batches_have_inputs_and_class_numbers_of_their_sequences():
    data = labelled()
    assert data.n_out == 3
    assert data.frames == 12
    np.testing.assert_array_equal(data.lengths, [3, 5, 4])
    batch = data.subset([2, 0]).batch([0, 1])
    assert batch.X.dtype == np.float32
    assert batch.T.dtype == np.int64
    np.testing.assert_array_equal(unpack(batch, batch.X)[0], X[2])
    np.testing.assert_array_equal(unpack(batch, batch.T)[0], LABELS[2])
    np.testing.assert_array_equal(unpack(batch, batch.T)[1], LABELS[0])


def test_batches_have_values_and_targets_per_sequence():
    values = Dataset(X, [x[:, :1] for x in X], None, True, np.dtype("float64"))
    assert values.n_out == 1
    np.testing.assert_array_equal(unpack(values.batch([1]), values.batch([1]).T)[0], X[1][:, :1])
    one_each = Dataset(X, [2, 0, 1], 3, False, np.dtype("float32")).batch([0, 1, 2])
    np.testing.assert_array_equal(one_each.T, [0, 1, 2])  # longest first


def test_a_batch_may_have_some_of_the_steps():
    batch = labelled().batch([1], slice(2, 4))
    np.testing.assert_array_equal(batch.X, X[1][2:4])
    np.testing.assert_array_equal(batch.T, LABELS[1][2:4])


def test_joined_datasets_have_the_sequences_of_both_in_order():
    first, second = labelled().subset([0]), labelled().subset([2, 1])
    joined = first.joined_with(second)
    assert all(a is b for a, b in zip(joined.X, [X[0], X[2], X[1]], strict=True))
    assert all(a is b for a, b in zip(joined.y, [LABELS[0], LABELS[2], LABELS[1]], strict=True))


def test_passes_map_and_sum_over_groups_of_sequences():
    data = labelled()

    def total(data, which, factor=1.0):
        return factor * sum(data.X[i][:, 0].sum() for i in which)

    first, second, third = (x[:, 0].sum() for x in X)
    assert list(data.map(total, [[0, 1], [2]])) == [first + second, third]
    assert data.sum(total, [([0, 1], 2.0), ([2], 0.5)]) == 2 * (first + second) + third / 2


def test_a_dataset_is_placed_on_the_executor_in_use():
    class Doubling(LocalExecutor):
        def place(self, X):
            return [2 * x for x in X]

        def place_targets(self, data):
            return Dataset(data.X, [y + 1 for y in data.y], 4, True, data.dtype, self)

    assert Dataset.place(X, LABELS, 3, per_step=True, dtype="float32").executor is LOCAL
    with executing_on(Doubling()):
        data = Dataset.place(X, LABELS, 3, per_step=True, dtype="float32")
        inputs = Dataset.place(X, [], None, per_step=True, dtype="float32")
    np.testing.assert_array_equal(data.X[0], 2 * X[0])
    np.testing.assert_array_equal(data.y[1], LABELS[1] + 1)
    assert len(inputs.y) == 0  # a prediction has no targets to be placed


def test_a_fingerprint_changes_with_any_frame_target_shape_or_order():
    same = labelled([x.copy() for x in X], [y.copy() for y in LABELS])
    assert labelled().fingerprint() == same.fingerprint()
    other_frame = [x.copy() for x in X]
    other_frame[1][2, 1] += 1e-9
    other_label = [y.copy() for y in LABELS]
    other_label[2][0] += 1
    changed = [
        labelled(other_frame),
        labelled(X, other_label),
        labelled(X[::-1], LABELS[::-1]),
        labelled([x.reshape(-1, 1) for x in X], LABELS),
        labelled().subset([0, 1]),
    ]
    prints = {data.fingerprint() for data in (labelled(), *changed)}
    assert len(prints) == 1 + len(changed)


WEIGHTS = [np.array([1.0, 0.0, 2.0]), np.ones(5), np.array([0.5, 0.0, 0.0, 3.0])]


def weighted(weights=WEIGHTS, **changes):
    return replace(labelled(), weights=weights, **changes)


def test_batches_and_subsets_have_the_weights_of_their_targets():
    data = weighted()
    batch = data.subset([2, 0]).batch([0, 1])
    assert batch.w.dtype == np.float64
    np.testing.assert_array_equal(unpack(batch, batch.w)[0], WEIGHTS[2])
    np.testing.assert_array_equal(unpack(batch, batch.w)[1], WEIGHTS[0])
    np.testing.assert_array_equal(data.batch([2], slice(2, 4)).w, WEIGHTS[2][2:4])
    np.testing.assert_array_equal(data.batch([2]).steps(1, 3).w, WEIGHTS[2][1:3])
    one_each = Dataset(X, [2, 0, 1], 3, False, np.dtype("float32"), weights=[1.0, 2.0, 3.0]).batch([0, 1, 2])
    np.testing.assert_array_equal(one_each.w, [2, 3, 1])  # longest first
    assert labelled().batch([0]).w is None


def test_joined_datasets_have_ones_where_one_of_them_has_no_weights():
    with_weights, without = weighted().subset([0]), labelled().subset([2, 1])
    for joined, expected in (
        (with_weights.joined_with(without), [WEIGHTS[0], np.ones(4), np.ones(5)]),
        (without.joined_with(with_weights), [np.ones(4), np.ones(5), WEIGHTS[0]]),
        (with_weights.joined_with(weighted().subset([2])), [WEIGHTS[0], WEIGHTS[2]]),
    ):
        for w, other in zip(joined.weights, expected, strict=True):
            np.testing.assert_array_equal(w, other)
    assert labelled().joined_with(labelled()).weights is None


def test_the_weights_of_each_sequence_add_up_after_the_washout():
    np.testing.assert_array_equal(weighted().target_weights(0), [3, 5, 3.5])
    np.testing.assert_array_equal(weighted().target_weights(1), [2, 4, 3])
    np.testing.assert_array_equal(labelled().target_weights(1), [2, 4, 3])
    one_each = Dataset(X, [2, 0, 1], 3, False, np.dtype("float32"), weights=[1.0, 2.0, 0.0])
    np.testing.assert_array_equal(one_each.target_weights(2), [1, 2, 0])


def test_the_fingerprint_knows_the_weights():
    other = [WEIGHTS[0], WEIGHTS[1], WEIGHTS[2][::-1]]
    prints = {data.fingerprint() for data in (labelled(), weighted(), weighted(other))}
    assert len(prints) == 3
    assert weighted().fingerprint() == weighted([w.copy() for w in WEIGHTS]).fingerprint()
