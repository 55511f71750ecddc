"""How a cluster is reached: addresses, clients, certificates, versions, and what each failure reports."""

import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

import clusters
import smallcorpus
import toys
from clusters import SMALL, assert_same_bits
from echolearn import ESNClassifier, load
from echolearn.cli.main import main
from echolearn.cluster import connection, executor, on
from echolearn.exceptions import ClusterError
from echolearn.execution.executor import LOCAL, active_executor
from toys import grouped

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("many_parts")


def test_dask_is_not_imported_by_a_fit_in_this_process():
    program = (
        "import sys; from echolearn import ESNClassifier; import numpy as np; "
        "X = np.random.default_rng(0).normal(size=(60, 2)); ESNClassifier(5, learn='none').fit(X, X[:, 0] > 0); "
        "sys.exit(any(name in sys.modules for name in ('dask', 'distributed')))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_engines_that_cannot_be_reached_are_refused(monkeypatch):
    X, y = toys.labels(sequences=30)
    esn = ESNClassifier(**grouped(SMALL))
    with pytest.raises(ClusterError, match=r"engine=3; expected 'dask', a scheduler's address"):
        esn.fit(X, y, engine=3)
    with pytest.raises(ClusterError, match="there is none"):
        esn.fit(X, y, engine="dask")
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        esn.fit(X, y, engine="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'echolearn\[dask\]'"):
        esn.fit(X, y, engine="tcp://127.0.0.1:9")
    assert active_executor() is LOCAL


def test_another_version_is_refused(client, monkeypatch):
    X, y = toys.labels(sequences=30)
    esn = ESNClassifier(**grouped(SMALL))
    monkeypatch.setattr(connection, "__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"has echolearn .*, here is 0\.0\.1"):
        esn.fit(X, y, engine=client)
    # A worker that has joined after the check finds out by itself.
    monkeypatch.setattr(connection, "_check", lambda client: None)
    monkeypatch.setattr(executor, "__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"the client 0\.0\.1"):
        esn.fit(X, y, engine=client)
    assert active_executor() is LOCAL


def test_the_current_client_is_used_and_left_open(client):
    X, y = toys.labels(sequences=30)
    with client.as_current():
        ESNClassifier(**grouped(SMALL)).fit(X, y, engine="dask")
    assert client.status == "running"


def test_the_commands_take_the_address_of_a_scheduler(client, tmp_path, monkeypatch):
    corpus = f"features:{smallcorpus.write(tmp_path / 'small.npz')}"
    options = ["--corpus", corpus, "--units", "10", "--epochs", "1", "--set", "readout=ridge"]
    for model, more in (("here", []), ("there", ["--scheduler", client.scheduler.address])):
        result = CliRunner().invoke(main, ["train", "--out", str(tmp_path / model), *options, *more])
        assert result.exit_code == 0, result.output
    assert_same_bits(load(tmp_path / "here"), load(tmp_path / "there"))
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    for command in (["train", "--corpus", "synthetic", "--out", str(tmp_path / "nowhere")], ["table1"]):
        result = CliRunner().invoke(main, [*command, "--scheduler", "tcp://127.0.0.1:9"])
        assert result.exit_code == 2
        assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.output


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_certificates_open_an_encrypted_cluster(tmp_path):
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
    X, y = toys.labels(sequences=30)
    settings = {**SMALL, "learn": "none", "readout": "ridge"}
    here = ESNClassifier(**grouped(settings)).fit(X, y)
    with clusters.processes(tmp_path, 1, options) as (file, _, _):
        address = clusters.address(file)
        assert address.startswith("tls://")
        with on(address, security):
            assert_same_bits(here, ESNClassifier(**grouped(settings)).fit(X, y))
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            ESNClassifier(**grouped(settings)).fit(X, y, engine=address)  # without the certificate
