"""Feature files of HTK, compared with bytes written by hand from the description in the HTK Book."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech.errors import CorpusError
from echolearn.speech.formats.htk import HtkFeatures, read_htk, write_htk

VALUES = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
MFCC_E_D = 6 + 0o100 + 0o400


def by_hand(code: int = MFCC_E_D, frames: int = 7, period: int = 100_000, size: int = 12) -> bytes:
    """Return a file with `VALUES`."""
    body = b"".join(struct.pack(">f", value) for row in VALUES for value in row)
    return struct.pack(">iihH", frames, period, size, code) + body


def read(tmp_path: Path, content: bytes, **options: bool) -> HtkFeatures:
    """Write a file and read it."""
    (tmp_path / "a.mfc").write_bytes(content)
    return read_htk(tmp_path / "a.mfc", **options)


def test_a_file_written_by_hand_is_read_and_written(tmp_path: Path) -> None:
    found = read(tmp_path, by_hand())
    assert (found.kind, found.frame_seconds) == ("MFCC_E_D", 0.01)
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, VALUES)
    write_htk(tmp_path / "b.mfc", HtkFeatures(VALUES, "MFCC_E_D"))
    assert (tmp_path / "b.mfc").read_bytes() == by_hand()


def test_compressed_files_written_by_hand_are_read(tmp_path: Path) -> None:
    """Two columns with A = 2, 4 and B = 10, -8: the codes 0 and -20 are 5 and -5, 8 and 0 are 0 and -2."""
    content = struct.pack(">iihH", 6, 50_000, 4, 9 + 0o2000) + struct.pack(">4f4h", 2, 4, 10, -8, 0, 8, -20, 0)
    found = read(tmp_path, content)
    assert (found.kind, found.frame_seconds) == ("USER", 0.005)
    np.testing.assert_array_equal(found.values, [[5, 0], [-5, -2]])


def test_compression_keeps_four_digits_and_constant_columns(tmp_path: Path) -> None:
    values = np.column_stack([VALUES, np.full(7, 3.25, np.float32)])
    write_htk(tmp_path / "a.mfc", HtkFeatures(values, "FBANK_C_Z"))
    found = read_htk(tmp_path / "a.mfc")
    assert found.kind == "FBANK_Z"
    np.testing.assert_allclose(found.values, values, atol=np.ptp(VALUES) / 65534)
    assert (tmp_path / "a.mfc").stat().st_size == 12 + 8 * 4 + 2 * 4 * 7


def test_a_checksum_is_refused_or_ignored(tmp_path: Path) -> None:
    content = by_hand(code=MFCC_E_D + 0o10000) + b"xx"
    with pytest.raises(CorpusError, match="SAVEWITHCRC = F"):
        read(tmp_path, content)
    found = read(tmp_path, content, ignore_checksum=True)
    assert found.kind == "MFCC_E_D"
    np.testing.assert_array_equal(found.values, VALUES)
    with pytest.raises(CorpusError, match="cut short"):
        read(tmp_path, content[:-2], ignore_checksum=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (by_hand()[:-1], "has 95 bytes; it is cut short"),
        (by_hand() + b"\0", "has 97 bytes"),
        (by_hand(frames=8), "promises 8 frames of 12 bytes"),
        (by_hand(frames=-7, size=-12), "promises -7 frames"),
        (by_hand(frames=14, size=6), "promises 14 frames of 6 bytes"),
        (by_hand(period=0), "one every 0 units"),
        (by_hand(code=0), "of the kind 0"),
        (by_hand(code=10), r"of the kind 12 \(octal\)"),
        (by_hand(code=13), "of the kind"),
        (by_hand(code=6 + 0o40000), "of the kind"),
        (by_hand()[:12] + struct.pack(">f", np.nan) + by_hand()[16:], "NaN or infinity"),
        (struct.pack(">iihH", 5, 1, 2, 9 + 0o2000) + struct.pack(">2fh", 0, 1, 1), "NaN or infinity"),
        (struct.pack(">iihH", 4, 1, 2, 9 + 0o2000) + struct.pack(">2f", 1, 1), "promises 4 frames"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (HtkFeatures(VALUES[0]), "of shape"),
        (HtkFeatures(VALUES * np.nan), "finite"),
        (HtkFeatures(VALUES[:0]), "of shape"),
        (HtkFeatures(VALUES, "WAVEFORM"), "expected one such as MFCC"),
        (HtkFeatures(VALUES, "MFCC_K"), "without _K"),
        (HtkFeatures(VALUES, ""), "expected one such as"),
        (HtkFeatures(VALUES, frame_seconds=0), "too much for the header"),
        (HtkFeatures(np.zeros((1, 9000))), "too much for the header"),
    ],
)
def test_what_a_file_cannot_hold_is_not_written(tmp_path: Path, features: HtkFeatures, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_htk(tmp_path / "a.mfc", features)
    assert not list(tmp_path.iterdir())
