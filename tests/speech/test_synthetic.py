from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech import espeak, synthesis, synthetic
from echolearn.speech.audio import read_audio
from echolearn.speech.cache import built_beside
from echolearn.speech.errors import CorpusError
from echolearn.speech.espeak import EspeakError
from echolearn.speech.features import frame_count
from echolearn.speech.labels import checked, read_phn
from echolearn.speech.phones import ENGLISH
from echolearn.speech.sentences import draw_sentence, part_of
from echolearn.speech.speakers import FEMALE, MALE, deal_variants, draw_cast, family
from echolearn.speech.synthesis import Lane, phone_segments
from echolearn.speech.synthetic import marker, part_frames, synthetic_tree


def test_parts_have_the_papers_shares() -> None:
    assert part_frames(1_124_823) == {"train": 1_124_823, "valid": 122_487, "test": 57_919}
    assert part_frames(20_000) == {"train": 20_000, "valid": 3_000, "test": 10_000}
    assert part_frames(100_000) == {"train": 100_000, "valid": 15_000, "test": 15_000}
    with pytest.raises(ValueError, match="at least 1000"):
        part_frames(10)


@pytest.mark.parametrize("seed", range(5))
def test_no_voice_is_heard_in_two_parts(seed: int) -> None:
    dealt = deal_variants(np.random.default_rng(seed))
    families = {part: {family(v) for v in variants} for part, variants in dealt.items()}
    assert sum(len(f) for f in families.values()) == len(set.union(*families.values()))
    assert sorted(v for variants in dealt.values() for v in variants) == sorted(FEMALE + MALE)
    cast = draw_cast(part_frames(1_124_823), seed)
    heard: dict[str, set[str]] = {}
    for part, count in (("train", 469), ("valid", 51), ("test", 24)):
        own = [s for s in cast if s.part == part]
        assert len(own) == count
        assert {s.name[0] for s in own} == {"F", "M"}
        heard[part] = {family(s.voice.variant) for s in own}
    assert sum(len(f) for f in heard.values()) == len(set.union(*heard.values()))
    assert len({s.name for s in cast}) == len(cast)


def test_no_sentence_is_spoken_in_two_parts() -> None:
    rng = np.random.default_rng(0)
    for part in ("train", "valid", "test"):
        assert all(part_of(draw_sentence(rng, part)) == part for _ in range(50))


def test_the_tree_is_as_timit_lays_it_out(small_tree: Path) -> None:
    about = marker(small_tree)
    spoken: Counter[str] = Counter()
    said: dict[str, set[str]] = {"train": set(), "valid": set(), "test": set()}
    frames = dict.fromkeys(said, 0)
    for wav in small_tree.rglob("*.WAV"):
        side, region, speaker, _ = wav.relative_to(small_tree).parts
        part = about["parts"][speaker]
        assert (side == "TRAIN") == (part == "train")
        assert region in ("DR1", "DR2")
        samples, segments = read_audio(wav), read_phn(wav.with_suffix(".PHN"))
        whole, problems = checked(segments, len(samples) / 16_000, ENGLISH, wav)
        assert problems == []
        assert whole == segments
        assert segments[0].name == segments[-1].name == "sil"
        assert all(s.end > s.start for s in segments)
        spoken.update(s.name for s in segments)
        first, last, sentence = wav.with_suffix(".TXT").read_text().split(maxsplit=2)
        assert (int(first), int(last)) == (0, len(samples))
        said[part].add(sentence)
        frames[part] += frame_count(len(samples))
    assert frames == about["frames"]
    for part, wanted in about["settings"]["frames"].items():
        assert frames[part] == pytest.approx(wanted, abs=200 + 0.05 * wanted)
    assert not said["test"] & said["train"]
    assert not said["valid"] & said["train"]
    assert set(spoken) == set(ENGLISH), "every American English phone occurs"


def test_the_same_seed_gives_the_same_files_on_any_number_of_processes(tmp_path: Path) -> None:
    trees = [synthetic_tree(1_000, seed=7, cache=tmp_path / str(n), processes=n) for n in (1, 2)]
    assert marker(trees[0]) == marker(trees[1])
    for one in sorted(trees[0].rglob("*.*")):
        if one.is_file():
            assert one.read_bytes() == (trees[1] / one.relative_to(trees[0])).read_bytes()
    other = synthetic_tree(1_000, seed=8, cache=tmp_path / "1")
    assert marker(other)["sha256"] != marker(trees[0])["sha256"]


def test_a_lane_speaks_in_this_process_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (speaker, *_) = draw_cast(part_frames(1_000), seed=7)
    lane = Lane(str(tmp_path), 7, (speaker,), {"train": 500.0, "valid": 0.0, "test": 0.0})
    assert Lane.from_json(lane.to_json()) == lane
    monkeypatch.setattr(sys, "stdin", io.StringIO(lane.to_json()))
    assert synthesis.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert report["speaker"] == speaker.name
    assert report["frames"] == pytest.approx(500, abs=300)
    assert len(list(tmp_path.rglob("*.WAV"))) == report["utterances"]

    monkeypatch.setattr(sys, "stdin", io.StringIO(lane.to_json()))
    assert synthesis.main() == 1  # the speaker's folder is there already
    assert json.loads(capsys.readouterr().out)["errno"] == errno.EEXIST


def test_it_is_found_again_without_speaking(
    small_tree: Path, small_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "_speak_all", None)
    assert synthetic_tree(12_000, seed=1, cache=small_cache) == small_tree


def test_a_changed_or_unfinished_tree_is_named(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    tree = synthetic_tree(1_000, seed=3, cache=tmp_path, progress=lambda *row: seen.append(row))
    assert seen[-1][0] == "synthesising speech"
    assert seen[-1][2] == sum(part_frames(1_000).values())
    assert os.listdir(tmp_path) == [tree.name], "nothing temporary stays"
    next(tree.rglob("*.WAV")).unlink()
    with pytest.raises(CorpusError, match="it was changed since"):
        synthetic_tree(1_000, seed=3, cache=tmp_path)
    (tree / "corpus.json").write_text("{")
    with pytest.raises(CorpusError, match=r"no readable corpus\.json"):
        synthetic_tree(1_000, seed=3, cache=tmp_path)


def test_two_that_write_the_same_at_once_leave_one(tmp_path: Path) -> None:
    for said in ("first", "second"):
        with built_beside(tmp_path / "tree") as building:
            (building / "said").write_text(said)
            (tmp_path / "tree").mkdir(exist_ok=True)
            (tmp_path / "tree" / "said").write_text("theirs")
    assert os.listdir(tmp_path) == ["tree"]
    assert (tmp_path / "tree" / "said").read_text() == "theirs"


def test_a_seed_below_zero(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seed is -1, expected 0 or more"):
        synthetic_tree(1_000, seed=-1, cache=tmp_path)


def test_a_stop_begins_with_its_closure() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = rng.normal(0, 5000, 2205), rng.normal(0, 50, 1100)
    samples = np.concatenate([loud, quiet, loud]).astype(np.int16)
    found = phone_segments([(0, "a"), (3305, "t"), (4000, "_:")], samples, 22_050)
    assert [name for _, _, name in found] == ["ae", "t", "sil"]
    assert found[1][0] == pytest.approx(2205, abs=110)
    with pytest.raises(EspeakError, match="not in the fixed list"):
        phone_segments([(0, "weird")], samples, 22_050)


def test_espeak_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(EspeakError, match=r"espeak-ng, which is missing .* pip install 'echolearn\[speech\]'"):
        espeak.Espeak()


def test_espeak_missing_in_the_speaking_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "espeakng_loader.py").write_text("raise ImportError('no espeak here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CorpusError, match=r"espeak-ng: .*no espeak here"):
        synthetic_tree(1_000, cache=tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_synthesiser_that_dies_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "espeakng_loader.py").write_text("import os; os._exit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CorpusError, match=r"the synthesiser stopped \(exit status 9\)"):
        synthetic_tree(1_000, cache=tmp_path / "cache")


def test_voices_that_do_not_exist() -> None:
    code = (
        "from echolearn.speech.espeak import *\ne = Espeak()\n"
        "for v in (Voice('en-us', 'nobody', 150, 50, 50), Voice('xx', 'f1', 150, 50, 50)):\n"
        "    try: e.use(v)\n    except EspeakError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "no voice variant 'nobody'" in out
    assert "no voice 'xx+f1'" in out


def test_a_cache_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match="cannot be written"):
        synthetic_tree(1_000, cache=tmp_path / "file" / "cache")


LIMITED = """
import json, resource, sys
from pathlib import Path
{before}
from echolearn.speech.synthetic import synthetic_tree
from echolearn.speech.errors import CorpusError
try:
    synthetic_tree(1_000, cache=sys.argv[1])
except CorpusError as error:
    print(json.dumps([[p.file, p.what] for p in error.problems]))
"""


def in_a_limited_process(before: str, cache: Path, **how: object) -> list[list[str]]:
    code = LIMITED.format(before=before)
    done = subprocess.run([sys.executable, "-c", code, str(cache)], capture_output=True, text=True, **how)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    problems: list[list[str]] = json.loads(done.stdout)
    return problems


def test_full_disk(tmp_path: Path) -> None:
    ((file, what),) = in_a_limited_process(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))", tmp_path / "cache"
    )
    assert "disk is full" in what
    assert os.listdir(tmp_path / "cache") == [], "nothing half-written stays"
    assert file


def test_read_only_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o555)
    # Permissions do not bind the superuser, so become somebody else where needed.
    drop = "import os, echolearn.speech.synthetic\nif os.getuid() == 0:\n    os.setuid(65534)"
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if os.getuid() == 0 and parent.name.startswith(("pytest", "test")):
            parent.chmod(0o755)
    ((_, what),) = in_a_limited_process(drop, cache)
    assert "cannot be written (Permission denied)" in what
    assert "ECHOLEARN_CACHE" in what
