"""Sequences in files, bags and delayed values, which the workers of a cluster read."""

import numpy as np
import pytest

import toys
from clusters import SMALL, assert_same_bits
from echolearn import ESNClassifier
from echolearn.cluster import on
from echolearn.cluster.remote_data import checked, firsts, read, seconds, shapes_of, targets_of
from echolearn.sequences.opening import is_remote_source
from toys import grouped

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

SETTINGS = {**SMALL, "learn": "none", "readout": "ridge"}


@pytest.fixture
def files(tmp_path):
    """Sequences, labels, and the same in files: pairs as npz, sequences as npy, labels as npy."""
    X, y = toys.labels(sequences=30)
    pairs, of_X, of_y = [], [], []
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        pairs.append(tmp_path / f"{i}.npz")
        np.savez(pairs[-1], X=x, y=labels)
        of_X.append(str(tmp_path / f"{i}.npy"))
        np.save(of_X[-1], x)
        of_y.append(str(tmp_path / f"{i}-labels.npy"))
        np.save(of_y[-1], labels)
    return X, y, pairs, of_X, of_y


@pytest.mark.usefixtures("many_parts")
def test_files_bags_and_delayed_sequences_are_fitted_as_arrays_are(client, files):
    import dask.bag

    X, y, both, of_X, of_y = files
    here = ESNClassifier(**grouped(SETTINGS)).fit(X, y)
    later = [dask.delayed(np.load)(path) for path in of_X]
    labels_later = [dask.delayed(np.load)(path) for path in of_y]
    pairs = dask.bag.from_sequence(zip(X, y, strict=True), npartitions=7)
    inputs = pairs.map(lambda pair: pair[0])
    with on(client):
        for data in (
            (both, None),
            (of_X, of_y),
            (of_X, y),
            (pairs, None),
            (inputs, y),
            (later, y),
            (later, labels_later),
        ):
            assert_same_bits(here, ESNClassifier(**grouped(SETTINGS)).fit(*data))
        for given in (both, of_X, later, inputs):
            for p, q in zip(here.predict(X), here.predict(given), strict=True):
                np.testing.assert_array_equal(p, q)
        assert here.score(of_X, y) == here.score(X, y)


def test_files_are_added_as_arrays_are(client, files):
    X, y, both, of_X, of_y = files
    here = ESNClassifier(**grouped(SETTINGS)).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    with on(client):
        for data in ((both[20:], None), (of_X[20:], of_y[20:])):
            there = ESNClassifier(**grouped(SETTINGS)).fit(X[:20], y[:20]).partial_fit(*data)
            np.testing.assert_allclose(there.network_.readout.U, here.network_.readout.U, rtol=1e-10)


def test_sources_that_cannot_be_read_are_refused(client, files, tmp_path):
    X, y, _, of_X, _ = files
    here = ESNClassifier(**grouped(SETTINGS)).fit(X, y)
    with on(client):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.npy does not exist on a worker"):
            here.predict([*of_X, "nowhere.npy"])
        with pytest.raises(ValueError, match="expected pairs"):
            ESNClassifier(**grouped(SETTINGS)).fit([dask.delayed(np.load)(path) for path in of_X], None)
        np.savez(tmp_path / "x.npz", X=X[0])
        with pytest.raises(ValueError, match=r"holds .* expected an array named y"):
            ESNClassifier(**grouped(SETTINGS)).fit([tmp_path / "x.npz"], None)
    with pytest.raises(ValueError, match=r"cluster\.on"):
        here.predict(of_X)


def test_what_counts_as_a_source(files):
    import dask.array
    import dask.bag

    X, _, pairs, of_X, _ = files
    for source in (pairs, tuple(of_X), dask.bag.from_sequence(X), [dask.delayed(x) for x in X]):
        assert is_remote_source(source)
    for other in (X, X[0], [], "a.npy", None, [of_X[0], X[0]], [1, 2], dask.array.from_array(X[0])):
        assert not is_remote_source(other)


def test_what_workers_read_from_files(files, tmp_path):
    X, y, pairs, of_X, of_y = files
    for paths in (list(map(str, pairs)), of_X):
        assert shapes_of(paths) == [x.shape for x in X]
        for x, found in zip(X, read(paths), strict=True):
            np.testing.assert_array_equal(found, x)
    for paths in (list(map(str, pairs)), of_y):
        for labels, found in zip(y, targets_of(paths), strict=True):
            np.testing.assert_array_equal(found, labels)
    flat, without_X, damaged = (str(tmp_path / name) for name in ("flat.npy", "without.npz", "damaged.npy"))
    np.save(flat, X[0][:, 0])
    np.savez(without_X, y=y[0])
    np.save(damaged, np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match=r"flat\.npy holds an array of shape .*; expected \(steps, features\)"):
        shapes_of([flat])
    with pytest.raises(ValueError, match=r"without\.npz holds \['y\.npy'\]; expected an array named X"):
        shapes_of([without_X])
    with pytest.raises(ValueError, match=r"damaged\.npy is not an array .* with finite numbers"):
        read([damaged])


def test_what_workers_take_from_pairs():
    X, y = toys.labels(sequences=3)
    pairs = list(zip(X, y, strict=True))
    assert all(a is b for a, b in zip(firsts(pairs), X, strict=True))
    assert all(a is b for a, b in zip(seconds(pairs), y, strict=True))
    for take in (firsts, seconds):
        with pytest.raises(ValueError, match=r"X holds ndarray entries; expected pairs \(x, y\), or give y"):
            take(X)
    with pytest.raises(ValueError, match=r"a sequence of X has shape \(4,\); expected \(steps, features\)"):
        checked([np.ones(4)])
