"""Passes on a Dask cluster of real processes: the bits of this process, whatever the workers do or suffer."""

import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from click.testing import CliRunner

import clusters
import smallcorpus
import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.cli.main import main
from echolearn.cluster import executor as cluster
from echolearn.cluster.connection import on
from echolearn.cluster.executor import ClusterExecutor
from echolearn.execution import threads as engine
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import softmax
from echolearn.readout import statistics as readout
from echolearn.reservoir.spectrum import EchoStateWarning

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("default")  # what Dask and its loops warn of is theirs

SMALL = {"hidden_units": 20, "connections": 4, "epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A client of three workers, their processes, and a function that starts one more."""
    with clusters.cluster(tmp_path_factory.mktemp("cluster"), 3) as started:
        yield started


@pytest.fixture
def client(three):
    client, running, more = three
    for _ in range(3 - sum(process.poll() is None for process in running)):
        more()
    client.wait_for_workers(3, timeout=60)
    return client


@pytest.fixture(autouse=True)
def many_parts(monkeypatch):
    """Small data in many parts and groups."""
    monkeypatch.setattr(passes, "FRAMES", 60)
    monkeypatch.setattr(cluster, "FRAMES", 50)
    monkeypatch.setattr(softmax, "LEAST_STEPS", 5)


def speech(sequences=30):
    return toys.labels(sequences=sequences)


def assert_same(one, other):
    np.testing.assert_array_equal(one._U, other._U)
    for name in ("W", "bias", "leak"):
        np.testing.assert_array_equal(getattr(one.reservoir_, name), getattr(other.reservoir_, name))
    np.testing.assert_array_equal(one.recurrent_weights_.data, other.recurrent_weights_.data)


@pytest.mark.parametrize(
    "changes",
    [
        {"learn": "none", "readout": "ridge"},
        {"learn": "none", "washout": 3},
        {"readout": "ridge", "batch_size": None},
        {"readout": "ridge", "batch_size": None, "case": 1, "targets": "last", "lookback": 4},
        {"refine_epochs": 1},
        {"blocks": 2, "readout": "ridge"},
    ],
    ids=["ridge", "softmax", "full batch", "case 1", "mini-batches", "blocks"],
)
def test_a_classifier_has_the_bits_of_this_process(client, changes):
    X, y = speech()
    settings = {**SMALL, "blocks": 1, **changes}
    here = ESNClassifier(**settings).fit(X, y)
    there = ESNClassifier(**settings).fit(X, y, engine=client)
    assert_same(here, there)
    with on(client):
        for p, q in zip(here.predict_proba(X), there.predict_proba(X), strict=True):
            np.testing.assert_array_equal(p, q)


def test_other_targets_too(client):
    X, Y = toys.echoes(sequences=20)
    settings = {**SMALL, "epochs": 1}
    for data, changes in (((X, Y), {}), ((X, Y), {"feedback": True}), ((X, [y[-1] for y in Y]), {"pooling": 2})):
        here = ESNRegressor(**settings, **changes).fit(*data)
        there = ESNRegressor(**settings, **changes)
        with on(client):
            there.fit(*data)
            assert_same(here, there)
            assert here.score(*data) == there.score(*data)
    labels = toys.rising(sequences=20)
    there = ESNClassifier(**SMALL, blocks=1).fit(*labels, engine=client)
    assert_same(ESNClassifier(**SMALL, blocks=1).fit(*labels), there)


def test_few_long_sequences(client, monkeypatch):
    """Their last steps are held out."""
    monkeypatch.setattr(passes, "FRAMES", 4096)  # as on the workers: a sequence is cut into pieces of so many
    X, Y = toys.echoes(sequences=3)
    few = [np.tile(x, (5, 1)) for x in X], [np.tile(y, (5, 1)) for y in Y]
    settings = {**SMALL, "epochs": 1}
    assert_same(ESNRegressor(**settings).fit(*few), ESNRegressor(**settings).fit(*few, engine=client))


def test_large_networks(client, monkeypatch):
    """As if 20 units were large: conjugate gradients, sketches, a U that follows."""
    monkeypatch.setattr(iterative, "FROM", 20)
    X, y = speech()
    for changes in ({}, {"batch_size": None}):
        settings = {**SMALL, "blocks": 1, "refine_epochs": 1, **changes}
        there = ESNClassifier(**settings).fit(X, y, engine=client)
        assert_same(ESNClassifier(**settings).fit(X, y), there)


def test_a_wide_gram_does_not_depend_on_the_workers(client, monkeypatch):
    """More than WIDE columns are added in an order of their own; that is the same for any number of workers."""
    monkeypatch.setattr(readout, "WIDE", 10)
    X, y = speech()
    settings = {**SMALL, "learn": "none", "readout": "ridge"}
    three_workers = ESNClassifier(**settings).fit(X, y, engine=client)
    with on(client) as used:
        monkeypatch.setattr(type(used), "slots", property(lambda self: [min(self.client.nthreads())]))
        one_worker = ESNClassifier(**settings).fit(X, y)
    assert_same(three_workers, one_worker)
    np.testing.assert_allclose(three_workers._U, ESNClassifier(**settings).fit(X, y)._U, rtol=1e-6, atol=1e-9)


def test_files_bags_and_delayed_sequences(client, tmp_path):
    import dask.bag

    X, y = speech()
    settings = {**SMALL, "learn": "none", "readout": "ridge"}
    here = ESNClassifier(**settings).fit(X, y)
    both, of_x, of_y = [], [], []
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        both.append(tmp_path / f"{i}.npz")
        np.savez(both[-1], X=x, y=labels)
        of_x.append(str(tmp_path / f"{i}.npy"))
        np.save(of_x[-1], x)
        of_y.append(str(tmp_path / f"{i}-labels.npy"))
        np.save(of_y[-1], labels)
    later = [dask.delayed(np.load)(path) for path in of_x]
    pairs = dask.bag.from_sequence(zip(X, y, strict=True), npartitions=7)
    with on(client):
        for data in ((both, None), (of_x, of_y), (of_x, y), (pairs, None), (pairs.map(lambda p: p[0]), y), (later, y)):
            assert_same(here, ESNClassifier(**settings).fit(*data))
        for given in (both, of_x, later, pairs.map(lambda p: p[0])):
            for p, q in zip(here.predict(X), here.predict(given), strict=True):
                np.testing.assert_array_equal(p, q)
        assert here.score(of_x, y) == here.score(X, y)
        with pytest.raises(FileNotFoundError, match=r"nowhere\.npy is not there on a worker"):
            here.predict([*of_x, "nowhere.npy"])
        with pytest.raises(ValueError, match="expected pairs"):
            ESNClassifier(**settings).fit(later, None)
        np.savez(tmp_path / "x.npz", X=X[0])
        with pytest.raises(ValueError, match=r"holds .* expected an array named y"):
            ESNClassifier(**settings).fit([tmp_path / "x.npz"], None)
    with pytest.raises(ValueError, match=r"cluster\.on"):
        here.predict(of_x)


@pytest.mark.parametrize("kills", [1, 2])
def test_killed_workers_change_nothing(client, three, monkeypatch, kills):
    _, running, _ = three
    X, y = speech(60)
    settings = {**SMALL, "blocks": 1, "batch_size": None, "readout": "ridge", "epochs": 4}
    here = ESNClassifier(**settings).fit(X, y)
    alive = [process for process in running if process.poll() is None]
    tasks, task = [], ClusterExecutor._task

    def deadly(self, *arguments):
        """In the middle of a pass of learning, workers die: one after another, by the number of tasks sent."""
        future = task(self, *arguments)
        tasks.append(arguments[1].__name__)
        if len(tasks) in (20, 30)[:kills]:
            alive.pop().send_signal(signal.SIGKILL)
        return future

    monkeypatch.setattr(ClusterExecutor, "_task", deadly)
    assert_same(here, ESNClassifier(**settings).fit(X, y, engine=client))
    assert len(tasks) > 40
    assert len(alive) == 3 - kills


def test_tasks_do_not_carry_the_data(client, monkeypatch):
    """What a pass sends is the size of the weights, however many sequences there are."""
    sent = {5: [], 40: []}
    submit = ClusterExecutor.submit

    def counted(self, name, function, *arguments, **where):
        if name != "part":
            bytes_of = [a for a in arguments if isinstance(a, bytes)]
            sent[count].append(max(map(len, bytes_of), default=0))
        return submit(self, name, function, *arguments, **where)

    monkeypatch.setattr(ClusterExecutor, "submit", counted)
    for count in sent:
        X, y = toys.labels(sequences=count, steps=(50, 51))
        settings = {**SMALL, "epochs": 1, "batch_size": 20, "refine_epochs": 1}
        ESNClassifier(**settings, blocks=1, validation_fraction=0.0).fit(X, y, engine=client)
    assert abs(max(sent[40]) - max(sent[5])) < 200
    assert max(sent[40]) < 20_000  # 40 sequences are 32 kB


def test_checkpoints_go_on_there(client, tmp_path):
    X, y = speech()
    settings = {**SMALL, "blocks": 1, "refine_epochs": 0}
    whole = ESNClassifier(**settings).fit(X, y)

    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**settings).fit(X, y, checkpoint=tmp_path, callback=stop)
    assert_same(whole, ESNClassifier(**settings).fit(X, y, checkpoint=tmp_path, engine=client))


def test_dask_is_not_imported_unasked():
    program = (
        "import sys; from echolearn import ESNClassifier; import numpy as np; "
        "X = np.random.default_rng(0).normal(size=(60, 2)); ESNClassifier(5, learn='none').fit(X, X[:, 0] > 0); "
        "sys.exit(any(name in sys.modules for name in ('dask', 'distributed')))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_what_cannot_work_is_said(client, monkeypatch):
    X, y = speech()
    esn = ESNClassifier(**SMALL)
    with pytest.raises(cluster.ClusterError, match=r"engine=3; expected 'dask', a scheduler's address"):
        esn.fit(X, y, engine=3)
    with pytest.raises(cluster.ClusterError, match="there is none"):
        esn.fit(X, y, engine="dask")
    monkeypatch.setattr(cluster, "CONNECT", 1)
    with pytest.raises(cluster.ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        esn.fit(X, y, engine="tcp://127.0.0.1:9")
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "__version__", "0.0.1")
        with pytest.raises(cluster.ClusterError, match=r"has echolearn .*, here is 0\.0\.1"):
            esn.fit(X, y, engine=client)
        patch.setattr(cluster, "_check", lambda client: None)  # a worker that has come later says it itself
        with pytest.raises(cluster.ClusterError, match=r"the client 0\.0\.1"):
            esn.fit(X, y, engine=client)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        with pytest.raises(cluster.ClusterError, match=r"pip install 'echolearn\[dask\]'"):
            esn.fit(X, y, engine="tcp://127.0.0.1:9")
    assert engine.CLUSTER.get() is None
    with client.as_current():
        esn.fit(X, y, engine="dask")


def test_the_command(client, tmp_path, monkeypatch):
    corpus = f"features:{smallcorpus.write(tmp_path / 'small.npz')}"
    words = ["--corpus", corpus, "--units", "10", "--epochs", "1", "--set", "readout=ridge"]
    for model, more in (("here", []), ("there", ["--scheduler", client.scheduler.address])):
        result = CliRunner().invoke(main, ["train", str(tmp_path / model), *words, *more])
        assert result.exit_code == 0, result.output
    assert_same(load(tmp_path / "here"), load(tmp_path / "there"))
    monkeypatch.setattr(cluster, "CONNECT", 1)
    for command in (["train", str(tmp_path / "nowhere")], ["table1"]):
        result = CliRunner().invoke(main, [*command, "--scheduler", "tcp://127.0.0.1:9"])
        assert result.exit_code == 2
        assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.output


def test_errors_of_a_part_come_home(client):
    X, y = speech()
    settings = {**SMALL, "learn": "none", "activation": "relu", "spectral_radius": 1e4, "leak": 1.0}
    with (
        pytest.warns(EchoStateWarning, match="never forgets"),
        pytest.raises(FloatingPointError, match="NaN or infinity"),
    ):
        ESNClassifier(**settings).fit([np.tile(x, (20, 1)) for x in X], [np.tile(t, 20) for t in y], engine=client)


def test_nobody_left(three, client, monkeypatch):
    """Work waits for workers, but not for ever."""
    _, running, _ = three
    monkeypatch.setattr(cluster, "ALONE", 1)
    X, y = speech()

    def kill():
        for process in running:
            process.kill()

    timer = threading.Timer(0.3, kill)
    timer.start()
    try:
        with pytest.raises(cluster.ClusterError, match="no worker for 1 s"):
            ESNClassifier(**{**SMALL, "epochs": 1000, "patience": None}, blocks=1).fit(X, y, engine=client)
    finally:
        timer.cancel()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_tls(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    options = ("--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key))
    security = distributed.Security(
        tls_ca_file=str(certificate), tls_client_cert=str(certificate), tls_client_key=str(key), require_encryption=True
    )
    X, y = speech()
    settings = {**SMALL, "learn": "none", "readout": "ridge"}
    with clusters.processes(tmp_path, 1, options) as (file, _, _):
        address = clusters.address(file)
        assert address.startswith("tls://")
        with on(address, security):
            assert_same(ESNClassifier(**settings).fit(X, y), ESNClassifier(**settings).fit(X, y))
        with pytest.raises(cluster.ClusterError, match="no Dask scheduler answers"):
            ESNClassifier(**settings).fit(X, y, engine=address)  # without the certificate
