"""Ensembles on a cluster: every network is fitted whole, by one worker, with the bits of this process."""

import asyncio
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import toys
from clusters import SMALL, assert_same_bits
from echolearn import DeepESNClassifier, DeepESNRegressor, ESNClassifier, SeriesClassifier
from echolearn.cluster import executor, on
from echolearn.cluster import tasks as dealing
from echolearn.cluster.executor import ClusterExecutor
from echolearn.cluster.tasks import Dealer
from echolearn.cluster.worker import Inbox, do_piece, work
from echolearn.exceptions import CheckpointError, EchoStateWarning
from echolearn.fitting.ensemble import Overseer
from echolearn.sequences.dataset import Dataset
from echolearn.tuning import tune
from toys import grouped

pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("small_parts")

ENSEMBLE = {**SMALL, "hidden_units": 40, "ensemble": 4}


@pytest.fixture
def small_parts(monkeypatch):
    """Let small data be placed in many parts; groups are not made smaller, because the workers would not know of it."""
    monkeypatch.setattr(executor, "MIN_FRAMES_PER_PART", 50)


@pytest.fixture
def tasks(monkeypatch):
    """The functions of all tasks that are submitted."""
    found, submit = [], ClusterExecutor.submit

    def noted(self, name, function, *arguments, **where):
        found.append(function)
        return submit(self, name, function, *arguments, **where)

    monkeypatch.setattr(ClusterExecutor, "submit", noted)
    return found


@pytest.mark.parametrize("changes", [{"refine_epochs": 1}, {"readout": "ridge", "batch_size": None}])
def test_every_network_is_one_task_with_the_bits_of_this_process(client, tasks, changes):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, **changes}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    there = ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    assert_same_bits(here, there)
    assert tasks.count(do_piece) == 4
    names = [name for name in here.history_[0] if name != "seconds"]
    assert [[row[n] for n in names] for row in here.history_] == [[row[n] for n in names] for row in there.history_]


def test_weights_and_validation_data_travel_with_the_networks(client):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "ensemble": 2, "refine_epochs": 0}
    given = {"sample_weight": np.arange(20) % 4, "validation": (X[20:], y[20:])}
    here = ESNClassifier(**grouped(settings)).fit(X[:20], y[:20], **given)
    assert_same_bits(here, ESNClassifier(**grouped(settings)).fit(X[:20], y[:20], **given, engine=client))


def test_data_that_no_worker_can_hold_are_passed_over_instead(client, tasks, monkeypatch):
    monkeypatch.setattr(ClusterExecutor, "holds", lambda self, *data: False)
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "ensemble": 2, "epochs": 1, "readout": "ridge"}
    assert_same_bits(
        ESNClassifier(**grouped(settings)).fit(X, y), ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    )
    assert do_piece not in tasks
    assert work in tasks


def test_the_memory_that_workers_have_for_the_data(client, monkeypatch):
    X, y = toys.labels(sequences=30)
    numbers = sum(x.size + len(x) for x in X)

    with on(client) as used:
        data = Dataset.place(X, y, 4, per_step=True, dtype="float32")
        assert used.holds(data)  # these workers have no limit
        for limit, fits in (
            (8 * numbers / executor.WHOLE_MEMORY_SHARE, True),
            (8 * numbers / executor.WHOLE_MEMORY_SHARE - 100, False),
        ):
            workers = {"a": {"memory_limit": 1e12}, "b": {"memory_limit": limit}, "c": {"memory_limit": 0}}
            monkeypatch.setattr(used.client, "scheduler_info", lambda n_workers, w=workers: {"workers": w})
            assert used.holds(data) == fits


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_network_whose_worker_is_killed_is_fitted_again(client, three_workers, tmp_path, monkeypatch, checkpoint):
    _, running, _ = three_workers
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "epochs": 4, "patience": None, "refine_epochs": 0, "random_state": 0}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    alive = [process for process in running if process.poll() is None]
    rows, received, receive = [], [], Overseer.receive

    def noted(self, number, message):
        received.append((number, *message[:1], *(row["epoch"] for row in message[1:] if isinstance(row, dict))))
        return receive(self, number, message)

    def kill_two(row):
        rows.append((row["network"], row["epoch"]))
        if len(rows) == 5:  # of three workers, at least two are at work
            for process in alive[:2]:
                process.send_signal(signal.SIGKILL)

    monkeypatch.setattr(Overseer, "receive", noted)
    more = {"checkpoint": tmp_path} if checkpoint else {}
    there = ESNClassifier(**grouped(settings)).fit(X, y, callback=kill_two, engine=client, **more)
    assert_same_bits(here, there)
    assert len(rows) == len(set(rows))  # no epoch is passed on to the callback twice
    # With a checkpoint, the epoch of a worker that dies between saving and reporting is not repeated, and not reported.
    assert 16 - 2 * checkpoint <= len(rows) <= 16
    assert sum(kind == "begin" for _, kind, *_ in received) > 4  # a network has begun again,
    epochs = [h for h in received if h[1] == "epoch"]
    assert checkpoint or len(epochs) > len(set(epochs))  # from its start, or from its checkpoint
    if checkpoint:
        assert len(epochs) <= len(set(epochs)) + 2
        assert_same_bits(here, ESNClassifier(**grouped(settings)).fit(X, y, checkpoint=tmp_path))


def test_a_checkpoint_of_this_process_is_resumed_on_the_workers(client, tmp_path):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "ensemble": 2, "epochs": 3, "refine_epochs": 1, "random_state": 0}
    whole = ESNClassifier(**grouped(settings)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(settings)).fit(X, y, checkpoint=tmp_path, callback=toys.interrupt_at(2))
    rows = []
    there = ESNClassifier(**grouped(settings)).fit(X, y, checkpoint=tmp_path, callback=rows.append, engine=client)
    assert_same_bits(whole, there)
    assert rows
    assert len(rows) < 6
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        ESNClassifier(**grouped({**settings, "ridge": 2.0})).fit(X, y, checkpoint=tmp_path, engine=client)


def _echoes():
    """Return small data on the workers."""
    X, y = toys.echoes(sequences=6)
    return Dataset.place(X, y, None, per_step=True, dtype="float64")


def _wait_while(condition):
    """Wait until a condition is false, for a minute at most."""
    deadline = time.monotonic() + 60
    while condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def ctrl_c():
    """A function that sends SIGINT to the main thread, which raises KeyboardInterrupt.

    Python does not raise it by itself where the tests run in the background of a shell, which then ignores SIGINT.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_what_was_learned(client, ctrl_c):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "epochs": 300, "patience": None, "random_state": 0}
    esn = ESNClassifier(**grouped(settings))
    seen = []

    def interrupt_main(row):
        seen.append(row)
        if len(seen) == 3:
            ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, y, callback=interrupt_main, engine=client)
    assert len(esn.predict(X)) == 30
    assert len(seen) == 3


def test_waiting_for_a_report_or_an_answer_is_no_error_of_the_scheduler(client, monkeypatch):
    def piece(number, datasets, report):
        time.sleep(0.3)
        return report(number)

    monkeypatch.setattr(dealing, "REPORT_SECONDS", 0.05)
    with on(client) as used:
        dealer = Dealer(used, lambda number, _: number, stop=threading.Event(), failed=threading.Event())
        assert dealer.deal(piece, [_echoes()], 4) == [0, 1, 2, 3]
        inbox = Inbox("echolearn-nothing", client)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                inbox.next(0.05)
        inbox.queue.put(b"late")
        assert inbox.next(10) == b"late"
        inbox.close()
    lines = [line for _, line in client.get_scheduler_logs() if "queue_get" in line]
    assert not lines


def test_ctrl_c_while_the_client_waits_for_reports(client, ctrl_c):
    stop, waits, received = threading.Event(), threading.Event(), []

    class Waiting:
        """The reports, for which the client waits after the first one until Ctrl-C comes."""

        def __init__(self, inbox):
            self.inbox, self.close = inbox, inbox.close

        def next(self, seconds):
            if stop.is_set() or not received:
                return self.inbox.next(seconds)
            waits.set()
            return self.inbox.queue.client.sync(asyncio.sleep, 600)

    def piece(number, datasets, report):
        while (answer := report(number)) is None:
            pass
        return answer

    def receive(number, message):
        received.append(number)
        return "end" if stop.is_set() else None

    press = threading.Thread(target=lambda: waits.wait() and ctrl_c(), daemon=True)
    press.start()
    with on(client) as used:
        dealer = Dealer(used, receive, stop=stop, failed=threading.Event())
        dealer.reports = Waiting(dealer.reports)
        assert dealer.deal(piece, [_echoes()], 4) == ["end"] * 4
    press.join()
    assert stop.is_set()


@pytest.mark.parametrize("where", ["before", "after"])
def test_ctrl_c_while_a_piece_is_dealt(client, ctrl_c, monkeypatch, where):
    submit, pressed, stop = ClusterExecutor.submit, [], threading.Event()

    def pressing(self, name, *arguments, **more):
        press = name == "piece" and not pressed
        if press and where == "before":
            pressed.append(name)
            ctrl_c()
        future = submit(self, name, *arguments, **more)
        if press and where == "after":
            pressed.append(name)
            ctrl_c()
        return future

    monkeypatch.setattr(ClusterExecutor, "submit", pressing)
    with on(client) as used:
        dealer = Dealer(used, lambda *_: stop.is_set(), stop=stop, failed=threading.Event())
        assert dealer.deal(lambda number, datasets, report: report(number), [_echoes()], 4) == [True] * 4


def test_pieces_end_and_queues_are_forgotten_after_a_second_ctrl_c(client, ctrl_c):
    stop = threading.Event()

    def piece(number, datasets, report):
        while True:
            report(number)

    def receive(number, message):
        ctrl_c()

    with on(client) as used:
        dealer = Dealer(used, receive, stop=stop, failed=threading.Event())
        with pytest.raises(KeyboardInterrupt):
            dealer.deal(piece, [_echoes()], 3)
    assert stop.is_set()

    def pieces(dask_worker):
        return [task.key for task in dask_worker.state.executing if task.key.startswith("echolearn-piece")]

    def queues(name, dask_scheduler):
        return [queue for queue in dask_scheduler.extensions["queues"].queues if queue.startswith(name)]

    _wait_while(lambda: any(client.run(pieces).values()))
    _wait_while(lambda: client.run_on_scheduler(queues, dealer.name))


def test_a_callback_can_end_one_network_and_its_error_ends_all(client):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "epochs": 3, "refine_epochs": 0, "readout": "ridge"}

    def end_second(row):
        return row["network"] == 2

    here = ESNClassifier(**grouped(settings)).fit(X, y, callback=end_second)
    there = ESNClassifier(**grouped(settings)).fit(X, y, callback=end_second, engine=client)
    assert_same_bits(here, there)

    def fail(row):
        raise LookupError("by the callback")

    with pytest.raises(LookupError, match="by the callback"):
        ESNClassifier(**grouped(settings)).fit(X, y, callback=fail, engine=client)


def test_progress_and_warnings_reach_the_client(client, capsys):
    X, y = toys.labels(sequences=30)
    settings = {**ENSEMBLE, "ensemble": 2, "refine_epochs": 0, "readout": "ridge", "verbose": 2}
    settings |= {"spectral_radius": 1.6, "activation": "tanh", "leak": 1.0}
    for _ in range(2):  # a second fit warns again
        with pytest.warns(EchoStateWarning):
            ESNClassifier(**grouped(settings)).fit(X, y, engine=client)
    text = capsys.readouterr().err
    assert "epoch 2/2" in text
    assert "network 2 of 2: done" in text


def test_a_network_that_fails_ends_the_fit(client):
    stop, failed = threading.Event(), threading.Event()

    def piece(number, datasets, report):
        assert len(datasets[0].X) == 6
        if number == 1:
            raise ZeroDivisionError("in a piece")
        while report(number) is None:
            time.sleep(0.05)
        return number

    def receive(number, message):
        assert number == message
        return "end" if failed.is_set() else None

    with on(client) as used:
        data = _echoes()
        with pytest.raises(ZeroDivisionError, match="in a piece"):
            Dealer(used, receive, stop=stop, failed=failed).deal(piece, [data], 3)
        failed.clear()
        found = Dealer(used, lambda *_: 1, stop=stop, failed=failed).deal(
            lambda number, datasets, report: number * report(number), [data], 7
        )
    assert found == list(range(7))


DEEP = {"units": 8, "layers": 2, "ensemble": 3, "epochs": 3, "random_state": 0}


def _assert_same_deep_network(one, other):
    """Compare all weights of two deep networks, and their histories without the seconds."""
    np.testing.assert_array_equal(one.network_.readout.U, other.network_.readout.U)
    for here, there in zip(one.network_.stacks, other.network_.stacks, strict=True):
        assert here.weights.keys() == there.weights.keys()
        for name, value in here.weights.items():
            np.testing.assert_array_equal(value, there.weights[name], err_msg=name)
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in m.history_] for m in (one, other)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "case",
    ["labels, augmented", "values, one long series", "one label per sequence, weighted, validated"],
)
def test_every_deep_network_is_one_task_with_the_bits_of_this_process(client, tasks, case, tmp_path):
    X, y = toys.labels(sequences=24)
    given, kind, settings = {}, DeepESNClassifier, DEEP
    if case == "labels, augmented":
        settings = {
            **DEEP,
            "augment": lambda x, rng: x + 0.01 * rng.standard_normal(x.shape),
            "validation_fraction": 0.25,
        }
        given = {"checkpoint": tmp_path}
    elif case == "values, one long series":
        X = np.random.default_rng(0).standard_normal((500, 2))
        kind, y = DeepESNRegressor, np.roll(X[:, 0], 1)
    else:
        y = [one[-1] for one in y]
        given = {"sample_weight": 1.0 + np.arange(24) % 3, "validation": (X[:6], y[:6])}
    there = kind(**settings)
    rows = []
    with on(client):
        there.fit(X, y, callback=rows.append, **given)
        answers = there.predict(X)
    assert tasks.count(do_piece) == 3
    assert sorted({row["network"] for row in rows}) == [1, 2, 3]
    assert not given.get("checkpoint") or (tmp_path / "network-3").is_dir()
    here = kind(**settings).fit(X, y, **{name: value for name, value in given.items() if name != "checkpoint"})
    _assert_same_deep_network(here, there)
    for mine, theirs in zip(here.predict(X), answers, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_deep_networks_that_a_cluster_cannot_fit_are_refused(client, tasks, monkeypatch, tmp_path):
    X, y = toys.labels(sequences=6)
    files = [tmp_path / f"{number}.npy" for number in range(6)]
    for file, x in zip(files, X, strict=True):
        np.save(file, x)
    with on(client):
        with pytest.raises(ValueError, match=r"\(ensemble=1\) on a cluster.*Fit it without the cluster, or give ens"):
            DeepESNClassifier(8, 1).fit(X, y)
        assert not tasks
        with pytest.raises(ValueError, match="Load them first"):
            DeepESNClassifier(**DEEP).fit(files, y)
        monkeypatch.setattr(ClusterExecutor, "holds", lambda self, *data: False)
        with pytest.raises(ValueError, match="Give the workers more memory"):
            DeepESNClassifier(**DEEP).fit(X, y)


class Lagging(ESNClassifier):
    """Its held-out error is given by its leak, and differs between folds; the first fold is slowest."""

    def fit(self, X, y, *, callback=None, **more):
        shift = float(X[0][0, 0])
        for epoch in range(1, 9):
            time.sleep(0.02 * (shift == FIRST))
            callback({"epoch": epoch, "valid_error": abs(np.sin(9 * self.leak + shift)) + 0.1 / epoch})
        return self

    def score(self, X, y):
        return self.leak


FIRST = float(toys.labels(sequences=9)[0][0][0, 0])


@pytest.mark.parametrize(
    ("estimator", "space", "trials", "refit"),
    [
        (Lagging(leak=0.5), {"leak": (0.01, 1.0)}, 10, False),
        (DeepESNClassifier(8, 1, epochs=2, validation_fraction=0.2), {"layers": [1, 2]}, 2, True),
        (SeriesClassifier(8), {"hidden_units": (4, 12)}, 2, True),
    ],
)
def test_a_search_on_a_cluster_is_that_of_this_process(client, tasks, estimator, space, trials, refit):
    pytest.importorskip("optuna")
    X, y = toys.labels(sequences=9)
    if isinstance(estimator, SeriesClassifier):
        y = [np.where(i % 2, "a", "b") for i in range(9)]
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        search = partial(tune, estimator, X, y, space=space, trials=trials, refit=refit)
        with on(client):
            there = search()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert tasks.count(do_piece) == 3 * trials
    here = search()
    assert [(t.settings, t.score, t.curve) for t in there.trials] == [
        (t.settings, t.score, t.curve) for t in here.trials
    ]
    if not refit:
        assert any(t.score is None for t in here.trials)  # stopped early
    else:
        for mine, theirs in zip(here.estimator.predict(X), there.estimator.predict(X), strict=True):
            np.testing.assert_array_equal(mine, theirs)
