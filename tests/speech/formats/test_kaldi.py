"""Kaldi archives and script files, compared with kaldiio and with bytes written by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import kaldiio
import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.formats import open_scp, read_ark, write_ark

RNG = np.random.default_rng(0)
ARRAYS = {
    "matrix": RNG.standard_normal((12, 5)).astype(np.float32),
    "double": RNG.standard_normal((3, 2)),
    "vector": RNG.standard_normal(7).astype(np.float32),
    "ann-états": np.array([0, -3, 2**31 - 1, -(2**31)], np.int32),
}


def saved(path: Path, arrays: dict[str, np.ndarray], **options: object) -> Path:
    """Write an archive by kaldiio."""
    kaldiio.save_ark(str(path), arrays, **options)
    return path


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], *, exactly: bool = True) -> None:
    """Compare archives; the type counts unless text was read, which is float32."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype or not exactly
        np.testing.assert_allclose(found[name], array, rtol=0 if exactly else 1e-6, strict=exactly)


def test_binary_archives_are_those_of_kaldiio(tmp_path: Path) -> None:
    write_ark(tmp_path / "ours.ark", ARRAYS, scp=tmp_path / "ours.scp")
    saved(tmp_path / "theirs.ark", ARRAYS)
    assert (tmp_path / "ours.ark").read_bytes() == (tmp_path / "theirs.ark").read_bytes()
    assert_same(read_ark(tmp_path / "theirs.ark"), ARRAYS)
    assert_same(dict(kaldiio.load_ark(str(tmp_path / "ours.ark"))), ARRAYS)
    theirs = kaldiio.load_scp(str(tmp_path / "ours.scp"))
    assert_same(dict(theirs.items()), ARRAYS)
    ours = open_scp(tmp_path / "ours.scp")
    assert_same(dict(ours), ARRAYS)
    assert len(ours) == 4
    ours["matrix"][0, 0] = 1.0  # users may write to what they have read


def test_text_archives_are_those_of_kaldiio(tmp_path: Path) -> None:
    arrays = {name: array for name, array in ARRAYS.items() if name != "double"}
    write_ark(tmp_path / "ours.ark", arrays, scp=tmp_path / "ours.scp", text=True)
    assert_same(read_ark(tmp_path / "ours.ark"), arrays)
    assert_same(dict(open_scp(tmp_path / "ours.scp")), arrays)
    assert_same(dict(kaldiio.load_ark(str(tmp_path / "ours.ark"))), arrays, exactly=False)
    saved(tmp_path / "theirs.ark", ARRAYS, text=True)
    assert_same(read_ark(tmp_path / "theirs.ark"), ARRAYS, exactly=False)


@pytest.mark.parametrize("method", [2, 3, 4, 5, 6, 7])
def test_compressed_matrices_are_read_as_kaldiio_reads_them(tmp_path: Path, method: int) -> None:
    matrices = {f"m{n}": np.abs(RNG.standard_normal((n, 6))).astype(np.float32) for n in (1, 3, 9, 40)}
    path = saved(tmp_path / "a.ark", matrices, compression_method=method)
    kind = {2: b"CM ", 3: b"CM2 ", 4: b"CM2 ", 5: b"CM3 ", 6: b"CM3 ", 7: b"CM3 "}[method]
    assert path.read_bytes().count(b"\0B" + kind) == 4
    for name, theirs in kaldiio.load_ark(str(path)):
        ours = read_ark(path)[name]
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=name)


def test_a_matrix_compressed_by_hand(tmp_path: Path) -> None:
    """The quantiles of the one column are 0, 1, 2 and 3; codes 0, 64, 128, 192 and 255 are 0, 1, 1.5, 2 and 3."""
    head = struct.pack("<ffii4H", 0.0, 3.0, 5, 1, 0, 21845, 43690, 65535)
    (tmp_path / "a.ark").write_bytes(b"u \0BCM " + head + bytes([0, 64, 128, 192, 255]))
    np.testing.assert_allclose(read_ark(tmp_path / "a.ark")["u"], [[0], [1], [1.5], [2], [3]], rtol=1e-6)


def test_ranges_include_their_ends_as_those_of_kaldiio(tmp_path: Path) -> None:
    write_ark(tmp_path / "a.ark", {"u": ARRAYS["matrix"], "v": ARRAYS["vector"]}, scp=tmp_path / "a.scp")
    lines = (tmp_path / "a.scp").read_text().split("\n")
    ranged = [f"{k} {lines[k == 'v'].split()[1]}{r}" for k, r in (("u", "[2:4,1:1]"), ("v", "[0:2]"))]
    (tmp_path / "b.scp").write_text("\n".join(ranged) + "\n")
    found = open_scp(tmp_path / "b.scp")
    np.testing.assert_array_equal(found["u"], ARRAYS["matrix"][2:5, 1:2])
    np.testing.assert_array_equal(found["v"], ARRAYS["vector"][:3])
    for name, theirs in kaldiio.load_scp(str(tmp_path / "b.scp")).items():
        np.testing.assert_array_equal(found[name], theirs)
    (tmp_path / "c.scp").write_text(ranged[0].replace("[2:4,1:1]", "[,0:1]") + "\n")
    np.testing.assert_array_equal(open_scp(tmp_path / "c.scp")["u"], ARRAYS["matrix"][:, :2])
    (tmp_path / "d.scp").write_text(ranged[0].replace("2:4", "2:12") + "\n")
    with pytest.raises(CorpusError, match=r"a.ark: at offset 2: 12 rows; expected at least 13"):
        open_scp(tmp_path / "d.scp")["u"]


def test_files_are_looked_for_beside_the_script_file_and_files_of_one_object_are_read(tmp_path: Path) -> None:
    write_ark(tmp_path / "a.ark", {"u": ARRAYS["vector"]})
    (tmp_path / "one.mat").write_bytes((tmp_path / "a.ark").read_bytes()[2:])
    (tmp_path / "a.scp").write_text("u a.ark:2\nv one.mat\n")
    found = open_scp(tmp_path / "a.scp")
    np.testing.assert_array_equal(found["u"], ARRAYS["vector"])
    np.testing.assert_array_equal(found["v"], ARRAYS["vector"])
    with (tmp_path / "one.mat").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CorpusError, match="continues after its object"):
        found["v"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("u copy-feats scp:a ark:- |", "line 1: names a command, .*never run; write its output"),
        ("u | cat", "names a command"),
        ("u -", "names the standard input"),
        ("u", "line 1: 'u' stands alone"),
        ("u a.ark:0[5:2]", "'5:2' is no range"),
        ("u a.ark:0[x]", "'x' is no range"),
        ("u a.ark:0[0:1:2]", "'0:1:2' is no range"),
        ("u a.ark:0]", "is no range"),
        ("u a.ark:2\nu a.ark:2", "line 2: 'u' occurs twice"),
        ("", "line 1: the file is empty"),
    ],
)
def test_damaged_script_files_are_refused_with_the_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.scp").write_text(line + "\n")
    with pytest.raises(CorpusError, match=message):
        open_scp(tmp_path / "a.scp")


def test_places_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    write_ark(tmp_path / "a.ark", {"u": ARRAYS["vector"]})
    for place, message in (("a.ark:99", "a.ark: has 40 bytes"), ("b.ark:2", "b.ark: cannot be read"), (".:3", "read")):
        (tmp_path / "a.scp").write_text(f"u {place}\n")
        with pytest.raises(CorpusError, match=message):
            open_scp(tmp_path / "a.scp")["u"]


def sizes(*numbers: int) -> bytes:
    """Return sizes as Kaldi writes them."""
    return b"".join(b"\4" + struct.pack("<i", number) for number in numbers)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"u \0BFM " + sizes(2, 2) + bytes(15), r"offset 2: an array of shape \(2, 2\) takes 16 bytes and 15 are left"),
        (b"u \0BFM " + sizes(2**31 - 1, 2**31 - 1), "takes 18446744056529682436 bytes and 0 are left"),
        (b"u \0BFM " + sizes(-1, 2), "is no number of rows"),
        (b"u \0BFM \5" + bytes(4), "is no number of rows"),
        (b"u \0BFX " + sizes(1, 1) + bytes(4), "is of the kind b'FX '"),
        (b"u \0BCM4" + bytes(50), "is of the kind b'CM4'"),
        (b"u \0BCM2X" + bytes(50), "is of the kind b'CM2'"),
        (b"u \0BFV " + sizes(1) + struct.pack("<f", np.nan), "NaN or infinity"),
        (b"u \0BDV " + sizes(1) + struct.pack("<d", np.inf), "NaN or infinity"),
        (b"u \0BCM2 " + struct.pack("<ffii", 0, np.nan, 0, 0), "a range of nan"),
        (b"u \0BCM2 " + struct.pack("<ffii", 0, 1, -1, 5), "-1 rows"),
        (b"u \0BCM2 " + struct.pack("<ffii", 0, 1, 2, 2) + bytes(7), "takes 8 bytes and 7 are left"),
        (b"u \0BCM " + struct.pack("<ffii4H", 0, 1, 1, 1, 9, 5, 6, 7) + bytes(1), "quantiles of a column"),
        (b"u \0B" + sizes(2, 7) + b"\5" + bytes(4), "not of 4 bytes"),
        (b"u \0B" + sizes(3, 7), "takes 15 bytes and 5 are left"),
        (b"u \0B", "the kind of the array takes 3 bytes"),
        (b"u", "is no name of an entry"),
        (b"\xff\xfe \0BFV " + sizes(0), "is no name of an entry"),
        (b"u \0BFV " + sizes(0) + b"u \0BFV " + sizes(0), "'u' occurs twice"),
        (b"u  [ 1 2 x ]\n", "line 1: b'x' is no finite number"),
        (b"u  [ 1 nan ]\n", "line 1: b'nan' is no finite number"),
        (b"u  [ 1 1e39 ]\n", "line 1: b'1e39' is no finite number of 32 bits"),
        (b"u  [\n  1 2\n  3 ]\n", "line 3: a row has 1 numbers, the first one 2"),
        (b"u  [\n  1 2\n  3 4\n", "line 3: the file ends inside an array"),
        (b"u  [ 1 2 ] 3\n", "line 1: b' 3' follows the bracket"),
        (b"u 1 2 3", "line 1: the file ends inside an array"),
        (b"u 1 2 2147483648\n", "line 1: b'2147483648' is no whole number of 32 bits"),
        (b"u 1 2\nv 1.5\n", "line 2: b'1.5' is no whole number"),
    ],
)
def test_damaged_archives_are_refused_with_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        read_ark(path)
    assert caught.value.problems[0].file == str(path)


def test_an_archive_is_written_from_pairs_and_must_be_there_to_be_read(tmp_path: Path) -> None:
    write_ark(tmp_path / "a.ark", ARRAYS.items())
    assert_same(read_ark(tmp_path / "a.ark"), ARRAYS)
    with pytest.raises(CorpusError, match="cannot be read"):
        read_ark(tmp_path / "nowhere.ark")


def test_empty_arrays_are_written_and_read(tmp_path: Path) -> None:
    empty = {"m": np.zeros((0, 0), np.float32), "v": np.zeros(0), "i": np.zeros(0, np.int32)}
    write_ark(tmp_path / "a.ark", empty)
    assert_same(read_ark(tmp_path / "a.ark"), empty)
    write_ark(tmp_path / "a.ark", empty, text=True)
    assert [array.size for array in read_ark(tmp_path / "a.ark").values()] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("a b", np.zeros(1), "without blanks"),
        ("", np.zeros(1), "no name"),
        ("u", np.zeros((1, 1, 1)), "expected floats in one or two dimensions"),
        ("u", np.zeros((1, 1), int), "whole numbers in one"),
        ("u", np.array([2**40]), "32 bits"),
        ("u", np.array(["a"]), "expected floats"),
        ("u", np.array([np.nan]), "NaN"),
    ],
)
def test_what_an_archive_cannot_hold_is_not_written(tmp_path: Path, name: str, array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_ark(tmp_path / "a.ark", {name: array})
    assert not list(tmp_path.iterdir())


def test_names_that_occur_twice_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        write_ark(tmp_path / "a.ark", [("u", np.zeros(1)), ("u", np.zeros(1))])
