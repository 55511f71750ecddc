"""Passes on a Dask cluster of real processes: the bits of this process, whatever happens to the workers."""

import pickle
import signal
import threading
import time

import numpy as np
import pytest

import passes
import toys
from clusters import SMALL, assert_same_bits
from echolearn import ESNClassifier, ESNRegressor, SeriesClassifier
from echolearn.cluster import executor, on
from echolearn.cluster.executor import ClusterExecutor
from echolearn.cluster.worker import work
from echolearn.exceptions import ClusterError, EchoStateWarning
from echolearn.execution.executor import LOCAL
from echolearn.readout import ridge, softmax, solver, statistics
from echolearn.sequences.dataset import Dataset
from toys import grouped

pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("many_parts")


@pytest.mark.parametrize(
    "changes",
    [
        {"learn": "none", "readout": "ridge"},
        {"learn": "none", "washout": 3},
        {"readout": "ridge", "batch_size": None},
        {"readout": "ridge", "batch_size": None, "case": 1, "targets": "last", "lookback": 4},
        {"refine_epochs": 1},
    ],
    ids=["ridge", "softmax", "full batch", "case 1", "mini-batches"],
)
def test_a_classifier_has_the_bits_of_this_process(client, changes):
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, **changes}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    there = ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    assert_same_bits(here, there)
    with on(client):
        for p, q in zip(here.predict_proba(X), there.predict_proba(X), strict=True):
            np.testing.assert_array_equal(p, q)


def test_values_and_feedback_have_the_bits_of_this_process(client):
    X, Y = toys.echoes(sequences=20)
    settings = {**SMALL, "epochs": 1}
    for changes in ({}, {"feedback": True}):
        here = ESNRegressor(**grouped(settings, changes)).fit(X, Y)
        there = ESNRegressor(**grouped(settings, changes))
        with on(client):
            there.fit(X, Y)
            assert_same_bits(here, there)
            assert here.score(X, Y) == there.score(X, Y)


def test_whole_series_are_fitted_in_this_process_and_predicted_anywhere(client):
    X, y = toys.rising(sequences=20)
    here = SeriesClassifier(10).fit(X, y)
    with on(client):
        there = here.predict_proba(X)
        with pytest.raises(ValueError, match="SeriesClassifier is fitted in this process, not on a cluster"):
            SeriesClassifier(10).fit(X, y)
    np.testing.assert_array_equal(there, here.predict_proba(X))


def test_few_long_sequences_whose_last_steps_are_held_out(client, monkeypatch):
    passes.work_on_frames(monkeypatch, 4096)  # no sequence is cut: the workers do not cut any
    X, Y = toys.echoes(sequences=3)
    few = [np.tile(x, (5, 1)) for x in X], [np.tile(y, (5, 1)) for y in Y]
    settings = {**SMALL, "epochs": 1}
    assert_same_bits(
        ESNRegressor(**grouped(settings)).fit(*few), ESNRegressor(**grouped(settings)).fit(*few, engine=client)
    )


@pytest.mark.parametrize("batch_size", [SMALL["batch_size"], None])
def test_large_networks_have_the_bits_of_this_process(client, monkeypatch, batch_size):
    """As if 20 units were large: conjugate gradients, sketches, a readout that is updated step by step."""
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 20)
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, "refine_epochs": 1, "batch_size": batch_size}
    there = ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    assert_same_bits(ESNClassifier(**grouped(settings)).fit(X, y), there)


@pytest.mark.parametrize("changes", [{"ignore_label": "?"}, {}], ids=["ignored", ""])
def test_the_descent_of_a_softmax_readout_stays_on_the_workers(client, monkeypatch, changes):
    """As if the data were too large for Newton's method: no state and no probability comes to the client."""
    monkeypatch.setattr(softmax, "MAX_KEPT_NUMBERS", 0)
    monkeypatch.setattr(softmax, "FRAMES_PER_BATCH", 20)
    monkeypatch.setattr(executor, "MAX_CHAINED_STEPS", 5)
    X, y = toys.labels(sequences=30, steps=(40, 60))
    if "ignore_label" in changes:
        y = [np.where(np.arange(len(labels)) % 4 == 1, "?", labels) for labels in y]
    settings = {**SMALL, "learn": "none", "validation_fraction": 0.0, **changes}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    sizes, result = [], ClusterExecutor.result

    def measured(self, future):
        value = result(self, future)
        sizes.append(len(pickle.dumps(value)))
        return value

    monkeypatch.setattr(ClusterExecutor, "result", measured)
    assert_same_bits(here, ESNClassifier(**grouped(settings)).fit(X, y, engine=client))
    M = here.network_.readout.U.shape[0]
    assert max(sizes) < 8 * M * (M + 4) + 4000  # G and Q; all states are more
    assert 8 * M * sum(map(len, X)) > 10 * max(sizes)


def test_a_killed_worker_does_not_change_a_fold(client, three_workers, monkeypatch):
    _, running, _ = three_workers
    alive = [process for process in running if process.poll() is None]
    X, _ = toys.echoes(sequences=30)
    here = Dataset.place(X, (), None, per_step=True, dtype="float64")
    items = [([i, (i + 7) % 30], i) for i in range(30)]

    def prepare(data, which, factor):
        return factor * sum(data.X[i].sum() for i in which)

    def advance(state, value):
        time.sleep(0.02)
        return np.sin(state + value)

    expected = LOCAL.fold(here, prepare, items, advance, np.array(0.0))
    submit, folds = ClusterExecutor.submit, []

    def deadly(self, name, function, *arguments, **where):
        if name == "fold":
            folds.append(name)
            if len(folds) == 15:
                alive.pop().send_signal(signal.SIGKILL)
        return submit(self, name, function, *arguments, **where)

    monkeypatch.setattr(ClusterExecutor, "submit", deadly)
    for whole in (True, False):
        monkeypatch.setattr(ClusterExecutor, "holds", lambda self, data, whole=whole: whole)
        with on(client) as used:
            there = Dataset.place(X, (), None, per_step=True, dtype="float64")
            assert used.fold(there, prepare, items, advance, np.array(0.0)) == expected
    assert len(folds) == 60


def test_a_wide_gram_matrix_does_not_depend_on_the_workers(client, monkeypatch):
    """More than WIDE columns are added in another order, which is the same for any number of workers."""
    for module in (statistics, ridge):
        monkeypatch.setattr(module, "MAX_COLUMNS_PER_THREAD", 10)
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, "learn": "none", "readout": "ridge"}
    three_workers = ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    with on(client) as used:
        monkeypatch.setattr(type(used), "slots", property(lambda self: [min(self.client.nthreads())]))
        one_worker = ESNClassifier(**grouped(settings)).fit(X, y)
    assert_same_bits(three_workers, one_worker)
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    there_U, here_U = three_workers.network_.readout.U, here.network_.readout.U
    assert (there_U != here_U).any()  # the other order was taken
    np.testing.assert_allclose(there_U, here_U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kills", [1, 2])
def test_killed_workers_change_nothing(client, three_workers, monkeypatch, kills):
    _, running, _ = three_workers
    X, y = toys.labels(sequences=60)
    settings = {**SMALL, "batch_size": None, "readout": "ridge", "epochs": 4}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    alive = [process for process in running if process.poll() is None]
    tasks, submit = [], ClusterExecutor.submit

    def deadly(self, name, function, *arguments, **where):
        """In the middle of a pass of learning, workers die one after another, by the number of tasks sent."""
        future = submit(self, name, function, *arguments, **where)
        if function is work:
            tasks.append(name)
            if len(tasks) in (20, 30)[:kills]:
                alive.pop().send_signal(signal.SIGKILL)
        return future

    monkeypatch.setattr(ClusterExecutor, "submit", deadly)
    assert_same_bits(here, ESNClassifier(**grouped(settings)).fit(X, y, engine=client))
    assert len(tasks) > 40
    assert len(alive) == 3 - kills


def test_tasks_do_not_carry_the_data(client, monkeypatch):
    """What a pass sends has the size of the weights, however many sequences there are."""
    sent = {5: [], 40: []}
    submit = ClusterExecutor.submit

    def counted(self, name, function, *arguments, **where):
        if name != "part":
            sent[count].append(max((len(a) for a in arguments if isinstance(a, bytes)), default=0))
        return submit(self, name, function, *arguments, **where)

    monkeypatch.setattr(ClusterExecutor, "submit", counted)
    for count in sent:
        X, y = toys.labels(sequences=count, steps=(50, 51))
        settings = {**SMALL, "epochs": 1, "batch_size": 20, "refine_epochs": 1}
        ESNClassifier(validation_fraction=0.0, **grouped(settings)).fit(X, y, engine=client)
    assert abs(max(sent[40]) - max(sent[5])) < 200
    assert max(sent[40]) < 20_000  # 40 sequences are 32 kB


def test_a_fit_of_this_process_resumes_on_a_cluster(client, tmp_path):
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, "refine_epochs": 0}
    whole = ESNClassifier(**grouped(settings)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(settings)).fit(X, y, checkpoint=tmp_path, callback=toys.interrupt_at(1))
    assert_same_bits(whole, ESNClassifier(**grouped(settings)).fit(X, y, checkpoint=tmp_path, engine=client))


def test_a_fingerprint_does_not_depend_on_where_the_data_are(client):
    X, y = toys.echoes(sequences=20)
    here = Dataset.place(X, y, None, per_step=True, dtype="float32")
    with on(client):
        there = Dataset.place(X, y, None, per_step=True, dtype="float32")
    assert isinstance(there.executor, ClusterExecutor)
    assert here.fingerprint() == there.fingerprint()


def test_remote_sequences_are_cut_and_fetched_like_arrays(client):
    X, y = toys.echoes(sequences=20)
    with on(client):
        data = Dataset.place(X, y, None, per_step=True, dtype="float32")
    for x, remote in zip((*X, *y), (*data.X, *data.y), strict=True):
        assert (len(remote), remote.shape) == (len(x), x.shape)
        np.testing.assert_array_equal(remote, x)
        np.testing.assert_array_equal(remote[3:][:5], x[3:8])
    assert len({x.part.key for x in data.X}) > 1
    assert list(data.executor.place(data.X)) == data.X  # data that are there are not sent again


def test_kept_results_stay_on_the_workers(client):
    X, y = toys.echoes(sequences=6)
    with on(client) as used:
        data = Dataset.place(X, y, None, per_step=True, dtype="float64")
        kept = used.keep(data, lambda data, which: sum(x.sum() for x in data.X), [[i] for i in range(6)])
        totals = list(used.map_kept(lambda total: 2 * total, kept))
        np.testing.assert_array_equal(totals, [2 * x.sum() for x in X])
        there = used.sum_kept(np.array, kept)
    assert there == pytest.approx(sum(x.sum() for x in X))


def test_a_failure_on_a_worker_reaches_the_caller(client):
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, "learn": "none", "activation": "relu", "spectral_radius": 1e4, "leak": 1.0}
    with (
        pytest.warns(EchoStateWarning, match="never forgets"),
        pytest.raises(FloatingPointError, match="NaN or infinity"),
    ):
        ESNClassifier(**grouped(settings)).fit(
            [np.tile(x, (20, 1)) for x in X], [np.tile(t, 20) for t in y], engine=client
        )


def test_work_waits_for_workers_but_not_for_ever(three_workers, client, monkeypatch):
    _, running, _ = three_workers
    monkeypatch.setattr(executor, "WORKERLESS_SECONDS", 1)
    X, y = toys.labels(sequences=30)

    def kill():
        for process in running:
            process.kill()

    timer = threading.Timer(0.3, kill)
    timer.start()
    try:
        with pytest.raises(ClusterError, match="no worker for 1 s"):
            ESNClassifier(**grouped({**SMALL, "epochs": 1000, "patience": None})).fit(X, y, engine=client)
    finally:
        timer.cancel()


@pytest.mark.parametrize(
    "changes",
    [
        {"learn": "none", "readout": "ridge"},
        {"refine_epochs": 1},
        {"readout": "ridge", "batch_size": None, "case": 1},
    ],
    ids=["ridge", "mini-batches", "full batch"],
)
def test_weights_and_missing_targets_have_the_bits_of_this_process(client, changes):
    X, y = toys.labels(sequences=30)
    marked = [np.where(np.arange(len(labels)) % 4 == 1, "?", labels) for labels in y]
    w = [np.arange(len(labels)) % 3.0 + (i % 5) for i, labels in enumerate(y)]
    settings = {**SMALL, "ignore_label": "?", "class_weight": "balanced", **changes}
    here = ESNClassifier(**grouped(settings)).fit(X, marked, sample_weight=w)
    there = ESNClassifier(**grouped(settings)).fit(X, marked, sample_weight=w, engine=client)
    assert_same_bits(here, there)


def test_weights_of_large_networks_and_of_sequences_have_the_bits_of_this_process(client, monkeypatch):
    X, Y = toys.echoes(sequences=20)
    w = np.arange(20) % 4
    settings = {**SMALL, "epochs": 1}
    here = ESNRegressor(**grouped(settings)).fit(X, Y, sample_weight=w)
    assert_same_bits(here, ESNRegressor(**grouped(settings)).fit(X, Y, sample_weight=w, engine=client))
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 20)
    missing = [np.where(np.arange(len(y))[:, None] % 3 == 0, np.nan, y) for y in Y]
    for batch_size in (8, None):
        settings = {**SMALL, "epochs": 2, "batch_size": batch_size}
        here = ESNRegressor(**grouped(settings)).fit(X, missing, sample_weight=w)
        assert_same_bits(here, ESNRegressor(**grouped(settings)).fit(X, missing, sample_weight=w, engine=client))
