"""The synthetic corpus on disk: its layout, its reproducibility, and failures while it is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import ENGLISH, read_audio, read_phn
from echolearn.speech._features import frame_count
from echolearn.speech._synthetic import tree
from echolearn.speech._synthetic.synthesis import LEXICON
from echolearn.speech._synthetic.tree import part_frames, read_marker, synthetic_tree
from echolearn.speech._transcripts import check_segments, read_word_file
from echolearn.speech.recognition import read_lexicon


def test_parts_have_the_proportions_of_the_paper() -> None:
    assert part_frames(1_124_823) == {"train": 1_124_823, "valid": 122_487, "test": 57_919}
    assert part_frames(20_000) == {"train": 20_000, "valid": 3_000, "test": 10_000}
    assert part_frames(100_000) == {"train": 100_000, "valid": 15_000, "test": 15_000}
    with pytest.raises(ValueError, match="at least 1000"):
        part_frames(10)


def test_the_tree_is_laid_out_like_timit(small_tree: Path) -> None:
    marker = read_marker(small_tree)
    phones: Counter[str] = Counter()
    sentences: dict[str, set[str]] = {"train": set(), "valid": set(), "test": set()}
    frames = dict.fromkeys(sentences, 0)
    for wav in small_tree.rglob("*.WAV"):
        side, region, speaker, _ = wav.relative_to(small_tree).parts
        part = marker["parts"][speaker]
        assert (side == "TRAIN") == (part == "train")
        assert region in ("DR1", "DR2")
        samples, segments = read_audio(wav), read_phn(wav.with_suffix(".PHN"))
        closed, problems = check_segments(segments, len(samples) / 16_000, ENGLISH, wav)
        assert problems == []
        assert closed == segments
        assert segments[0].name == segments[-1].name == "sil"
        assert all(s.end > s.start for s in segments)
        phones.update(s.name for s in segments)
        first, last, sentence = wav.with_suffix(".TXT").read_text().split(maxsplit=2)
        assert (int(first), int(last)) == (0, len(samples))
        sentences[part].add(sentence)
        frames[part] += frame_count(len(samples))
    assert frames == marker["frames"]
    for part, wanted in marker["settings"]["frames"].items():
        assert frames[part] == pytest.approx(wanted, abs=200 + 0.05 * wanted)
    assert not sentences["test"] & sentences["train"]
    assert not sentences["valid"] & sentences["train"]
    assert set(phones) == set(ENGLISH), "every American English phone occurs"


def test_the_same_seed_gives_the_same_files_on_any_number_of_processes(tmp_path: Path) -> None:
    trees = [synthetic_tree(1_000, seed=7, cache=tmp_path / str(n), processes=n) for n in (1, 2)]
    assert read_marker(trees[0]) == read_marker(trees[1])
    for one in sorted(trees[0].rglob("*.*")):
        if one.is_file():
            assert one.read_bytes() == (trees[1] / one.relative_to(trees[0])).read_bytes()
    other = synthetic_tree(1_000, seed=8, cache=tmp_path / "1")
    assert read_marker(other)["sha256"] != read_marker(trees[0])["sha256"]


def test_a_corpus_that_exists_is_not_synthesised_again(
    small_tree: Path, small_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_synthesise_all", None)
    assert synthetic_tree(12_000, seed=1, cache=small_cache) == small_tree


def test_a_changed_or_unfinished_tree_is_refused(tmp_path: Path) -> None:
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


def test_a_seed_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seed is -1, expected 0 or more"):
        synthetic_tree(1_000, seed=-1, cache=tmp_path)


@pytest.fixture
def replace_espeak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let the processes that synthesise import this code instead of espeak-ng."""

    def replace(code: str) -> None:
        (tmp_path / "espeakng_loader.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    return replace


def test_espeak_missing_in_the_process_that_synthesises_is_named(
    replace_espeak: Callable[[str], None], tmp_path: Path
) -> None:
    replace_espeak("raise ImportError('no espeak here')")
    with pytest.raises(CorpusError, match=r"espeak-ng: .*no espeak here"):
        synthetic_tree(1_000, cache=tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_process_that_dies_is_named(replace_espeak: Callable[[str], None], tmp_path: Path) -> None:
    replace_espeak("import os; os._exit(9)")
    with pytest.raises(CorpusError, match=r"the synthesiser stopped \(exit status 9\)"):
        synthetic_tree(1_000, cache=tmp_path / "cache")


def test_a_cache_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match="cannot be written"):
        synthetic_tree(1_000, cache=tmp_path / "file" / "cache")


LIMITED = """
import json, resource, sys
from pathlib import Path
{before}
from echolearn.speech._synthetic.tree import synthetic_tree
from echolearn.speech._text import CorpusError
try:
    synthetic_tree(1_000, cache=sys.argv[1])
except CorpusError as error:
    print(json.dumps([[p.file, p.what] for p in error.problems]))
"""


def problems_in_a_limited_process(before: str, cache: Path) -> list[list[str]]:
    """Return file and text of each problem in a process that runs the code `before` first."""
    code = LIMITED.format(before=before)
    done = subprocess.run([sys.executable, "-c", code, str(cache)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    problems: list[list[str]] = json.loads(done.stdout)
    return problems


def test_a_full_disk_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ((file, what),) = problems_in_a_limited_process(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))", tmp_path / "cache"
    )
    assert "disk is full" in what
    assert os.listdir(tmp_path / "cache") == [], "nothing half-written stays"
    assert file


def test_a_cache_that_may_only_be_read_is_named() -> None:
    # Permissions do not bind the superuser, so become somebody else where needed, who may not enter pytest's folders.
    drop = "import os, echolearn.speech._synthetic.tree\nif os.getuid() == 0:\n    os.setuid(65534)"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        ((_, what),) = problems_in_a_limited_process(drop, Path(folder))
    assert "cannot be written (Permission denied)" in what
    assert "ECHOLEARN_CACHE" in what


def test_words_are_those_of_the_sentences_and_spoken_as_the_lexicon_says(small_tree: Path) -> None:
    lexicon = read_lexicon(small_tree / LEXICON)
    spoken = listed = 0
    for wav in small_tree.rglob("*.WAV"):
        words, phones = read_phn(wav.with_suffix(".WRD")), read_phn(wav.with_suffix(".PHN"))
        assert tuple(word.name for word in words) == read_word_file(wav.with_suffix(".TXT"))
        assert set(lexicon.words) >= {word.name for word in words}
        for word in words:
            own = tuple(p.name for p in phones if word.start - 1e-4 <= p.start and p.end <= word.end + 1e-4)
            spoken += 1
            listed += own in lexicon.pronunciations[word.name]
    assert listed / spoken > 0.9, "words run into each other, and one accent drops sounds; most are as listed"
