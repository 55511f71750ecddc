"""The test part of AN4 has one door, and it stays shut until settings and code are committed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import an4
import protocol
import results
from small_contest import Repository

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "ROOT", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "benchmarks" / "results")
    repository = Repository(tmp_path)
    repository.write("benchmarks/frozen/some.toml", "units = 100\n")
    (tmp_path / "src").mkdir()
    repository.write("src/code.py", "")
    return repository


def commit(repository):
    repository.git("add", "src")
    repository.commit()


def test_committed_settings_open_the_door_and_are_recorded(repository):
    commit(repository)
    (X, y), record = protocol.open_test("some", repository.data, seeds=[0, 1])
    assert (len(X), len(y)) == (10, 10)
    assert all(x[:, 2].all() for x in X)  # the test part
    assert record["commit"] == repository.git("rev-parse", "HEAD")
    assert record["blob"] == repository.git("rev-parse", "HEAD:benchmarks/frozen/some.toml")
    assert record["data_sha256"] == protocol.file_digest(repository.data)
    assert record["seeds"] == [0, 1]
    assert record["versions"]["numpy"]
    assert record["machine"]["cores"]
    protocol.open_test("some", repository.data, seeds=[0])
    (reading,) = repository.results("test_readings")["readings"]
    assert (reading["experiment"], reading["times"]) == ("some", 2)


def test_candidates_may_stand_in_files_of_their_own_and_those_are_frozen_too(repository):
    repository.write("benchmarks/frozen/some.toml", 'include = ["ours"]\ncandidate = [{ name = "a" }]\n')
    repository.write("benchmarks/frozen/ours.toml", '[[candidate]]\nname = "b"\n')
    commit(repository)
    assert protocol.read_frozen("some") == {"candidate": [{"name": "a"}, {"name": "b"}]}
    blob = repository.git("rev-parse", "HEAD:benchmarks/frozen/ours.toml")
    assert protocol.require_frozen("some")["included"] == {"benchmarks/frozen/ours.toml": blob}
    repository.git("update-index", "--assume-unchanged", "benchmarks/frozen/ours.toml")
    repository.write("benchmarks/frozen/ours.toml", '[[candidate]]\nname = "c"\n')
    with pytest.raises(protocol.NotFrozen, match=re.escape("ours.toml differs")):
        protocol.require_frozen("some")


def test_results_may_differ_from_the_commit(repository):
    commit(repository)
    (repository.folder / "benchmarks/results").mkdir()
    repository.write("benchmarks/results/some.json", "{}")
    protocol.open_test("some", repository.data, seeds=[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("benchmarks/frozen/some.toml", "units = 200\n"), "some.toml differs from the commit"),
        (("src/code.py", "later = 1\n"), "src/code.py"),
        (("src/new.py", ""), "src/new.py"),
        (("benchmarks/an4.py", ""), "benchmarks/an4.py"),
        (("benchmarks/new.py", ""), "benchmarks/new.py"),
        (("benchmarks/frozen/other.toml", ""), "other.toml"),
    ],
)
def test_a_change_since_the_commit_shuts_the_door(repository, change, words):
    commit(repository)
    repository.write(*change)
    with pytest.raises(protocol.NotFrozen, match=re.escape(words)):
        protocol.open_test("some", repository.data, seeds=[0])
    assert repository.results("test_readings") == {}


def test_a_change_that_is_staged_or_hidden_shuts_the_door(repository):
    commit(repository)
    repository.write("src/code.py", "later = 1\n")
    repository.git("add", "src/code.py")
    with pytest.raises(protocol.NotFrozen, match=r"code\.py"):
        protocol.open_test("some", repository.data, seeds=[0])
    repository.git("reset", "--quiet", "--hard")
    repository.git("update-index", "--assume-unchanged", "benchmarks/frozen/some.toml")
    repository.write("benchmarks/frozen/some.toml", "units = 200\n")
    with pytest.raises(protocol.NotFrozen, match="differs"):
        protocol.open_test("some", repository.data, seeds=[0])


def test_settings_that_are_not_in_the_commit_shut_the_door(repository):
    with pytest.raises(protocol.NotFrozen, match="not a git repository with a commit"):
        protocol.open_test("some", repository.data, seeds=[0])
    commit(repository)
    with pytest.raises(protocol.NotFrozen, match=re.escape("other.toml is not in the commit")):
        protocol.open_test("other", repository.data, seeds=[0])
    repository.git("rm", "--quiet", "--cached", "benchmarks/frozen/some.toml")
    repository.git("commit", "--quiet", "--message", "not frozen")
    with pytest.raises(protocol.NotFrozen, match=re.escape("some.toml is not in the commit")):
        protocol.open_test("some", repository.data, seeds=[0])


def test_a_package_of_another_tree_shuts_the_door(repository):
    (repository.folder / "src/echolearn").mkdir()
    repository.write("src/echolearn/__init__.py", "")
    commit(repository)
    with pytest.raises(protocol.NotFrozen, match="is imported from"):
        protocol.open_test("some", repository.data, seeds=[0])


def test_no_benchmark_gets_at_the_test_part_by_another_way(repository):
    assert list(an4.load_cepstra(repository.data)) == ["train", "valid"]
    for path in BENCHMARKS.glob("*.py"):
        text = path.read_text()
        if path.name not in ("an4.py", "protocol.py"):
            assert "read_parts" not in text, path
            assert "TEST" not in re.findall(r"an4\.(\w+)", text), path
            opens = "features:" not in text.replace("n_features:", "") or 'protocol.open_test("table1"' in text
            assert opens, path  # the command of Table 1 reads the file itself, after the door has been passed
            assert not re.search(r"np\.load\([^)]*npz", text), path


def test_a_corpus_without_the_test_part_has_none_of_its_utterances(repository, tmp_path):
    with np.load(repository.data) as file:
        arrays = dict(file)
    names = np.array([f"u{k}" for k in range(len(arrays["lengths"]))])
    states = np.array([f"p{k}_s2" for k in range(arrays["labels"].max() + 1)])
    arrays |= {"utterances": names, "speakers": names, "state_names": states}
    np.savez(tmp_path / "whole.npz", **arrays)
    first = an4.load_cepstra(tmp_path / "whole.npz")["train"][1][0]
    corpus = an4.corpus_without_test(tmp_path / "whole.npz", tmp_path, "utterance")
    tested = set(arrays["utterances"][arrays["split"] == "test"].tolist())
    assert tested.isdisjoint(corpus.utterances)
    assert [len(corpus.which(part)) for part in ("train", "valid", "test")] == [
        *((arrays["split"] == part).sum() for part in ("train", "valid")),
        1,
    ]
    np.testing.assert_array_equal(corpus.labels[-1], first)


@pytest.mark.parametrize("program", ["contest", "an4_errors"])
def test_without_its_data_a_benchmark_stops_and_says_how_to_get_them(program, tmp_path):
    """It ends before anything is measured, and nothing is written."""
    command = [sys.executable, str(BENCHMARKS / f"{program}.py"), "--data", str(tmp_path / "none.npz")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "build_an4.py" in done.stderr


def test_data_that_are_not_there(tmp_path):
    for path in (None, tmp_path / "none.npz"):
        with pytest.raises(SystemExit, match=r"build_an4\.py"):
            an4.load_an4(path)


def test_the_fingerprint_of_code_leaves_out_what_python_does_not_run(repository):
    def fingerprint(text):
        repository.write("src/code.py", text)
        return protocol.code_fingerprint(["src"])

    first = fingerprint('"""A docstring."""\n\n\ndef f(x):\n    return x\n')
    assert fingerprint('"""Another."""\ndef f(x):\n    """And this."""\n    return x  # a comment\n') == first
    assert fingerprint("def f(x):\n    return x + 1\n") != first
    with pytest.raises(FileNotFoundError, match="nowhere"):
        protocol.code_fingerprint(["nowhere"])
