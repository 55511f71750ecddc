"""The corpus ``synthetic``: speech of espeak-ng, written once to the cache folder as a TIMIT tree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from echolearn.display.progress import StageProgress
from echolearn.exceptions import CorpusError, EspeakError
from echolearn.speech._phone_set import ENGLISH
from echolearn.speech._preparation import atomic_folder, default_cache
from echolearn.speech._sources.utterances import PARTS, CorpusFiles, Utterance, pair_files
from echolearn.speech._synthetic.espeak import INSTALL
from echolearn.speech._synthetic.synthesis import LEXICON, Speaker, SpeakerReport, SynthesisJob, draw_speakers

DEFAULT_FRAMES = 100_000
PAPER_FRAMES = 1_124_823  # the paper's training set; the tree's names and sentences suffice for more
MARKER_FILE = "corpus.json"
_TREE_VERSION = 2  # raised whenever the same settings would give other files
_JOBS = 4  # fixed: what espeak-ng produces depends on the job, and must not depend on the machine


class Marker(TypedDict):
    """What is read from the description in the folder of a corpus: its files, their bytes, the part of each speaker."""

    files: int
    bytes: int
    parts: dict[str, str]


def part_frames(frames: int) -> dict[str, int]:
    """Return the frames of each part, in the proportions of the paper, but at least 15,000 test frames; with fewer than
    30,000 training frames, the test part is half as large and the validation part 15 % of it."""
    if frames < 1_000:
        raise ValueError(f"frames is {frames}, expected at least 1000 training frames (10 seconds)")
    valid = max(round(frames * 122_487 / PAPER_FRAMES), min(15_000, round(0.15 * frames)))
    test = max(round(frames * 57_919 / PAPER_FRAMES), min(15_000, frames // 2))
    return {"train": frames, "valid": valid, "test": test}


def synthetic_tree(
    frames: int = DEFAULT_FRAMES,
    seed: int = 0,
    cache: str | Path | None = None,
    progress: StageProgress | None = None,
    processes: int | None = None,
) -> Path:
    """Return the folder of a synthetic corpus, and write it first if it does not exist: the same seed, the same bytes.
    `progress` is called from other threads."""
    if seed < 0:
        raise ValueError(f"seed is {seed}, expected 0 or more")
    parts = part_frames(frames)
    settings = {"version": _TREE_VERSION, "frames": parts, "seed": seed}
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    parent = Path(cache) if cache is not None else default_cache()
    tree = parent / f"synthetic-{frames}-{seed}-{key}"
    if tree.exists():
        content, (count, size) = read_marker(tree), _measure(tree)
        if (count, size) != (content.get("files"), content.get("bytes")):
            raise CorpusError.one(
                tree,
                f"holds {count} files of {size} bytes, its marker says {content.get('files')} of "
                f"{content.get('bytes')}; it was changed since: remove the folder and run again",
            )
        return tree
    try:
        with atomic_folder(tree) as building:
            speakers = draw_speakers(parts, seed)
            shares = {part: parts[part] / sum(s.part == part for s in speakers) for part in PARTS}
            jobs = [
                SynthesisJob(str(building), seed, tuple(speakers[k::_JOBS]), shares, lexicon=k == 0)
                for k in range(_JOBS)
            ]
            reports = _synthesise_all(jobs, sum(parts.values()), progress, processes)
            _write_marker(building, settings, speakers, [reports[speaker.name] for speaker in speakers])
    except EspeakError as error:
        raise CorpusError.one("espeak-ng", str(error)) from error
    return tree


def read_marker(tree: Path) -> Marker:
    """Read the description in the folder of a synthetic corpus."""
    try:
        content: Marker = json.loads((tree / MARKER_FILE).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not isinstance(content.get("parts"), dict):
            raise ValueError("it names no parts")
    except (OSError, ValueError, RecursionError) as error:
        what = f"has no readable {MARKER_FILE} ({error}); it is not complete: remove the folder and run again"
        raise CorpusError.one(tree, what) from error
    return content


def find_synthetic(tree: Path, seed: int) -> CorpusFiles:
    """Find the utterances of a synthetic corpus."""
    parts = {speaker.lower(): part for speaker, part in read_marker(tree)["parts"].items()}
    utterances = []
    for side in ("TRAIN", "TEST"):
        for key, (audio, phn) in pair_files(tree / side, (".phn",)).items():
            speaker = key.split("/")[-2]
            if audio is not None:
                utterances.append(Utterance(f"{side.lower()}/{key}", speaker, parts[speaker], audio, phn))
    note = f"synthetic speech by espeak-ng: {len(parts)} voices, {len(utterances)} sentences, seed {seed}"
    return CorpusFiles(utterances, lambda used: ENGLISH, [note], lexicon=str(tree / LEXICON))


def _synthesise_all(
    jobs: Sequence[SynthesisJob], total: int, progress: StageProgress | None, processes: int | None
) -> dict[str, SpeakerReport]:
    """Write the files of all speakers; return their reports by name. total: frames, for the progress."""
    reports: dict[str, SpeakerReport] = {}
    lock = threading.Lock()

    def on_report(report: SpeakerReport) -> None:
        with lock:
            reports[report["speaker"]] = report
            if progress:
                progress("synthesising speech", min(total, sum(r["frames"] for r in reports.values())), total)

    children: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(processes or min(_JOBS, os.cpu_count() or 1)) as pool:
        try:
            for done in [pool.submit(_run_in_process, job, on_report, children) for job in jobs if job.speakers]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.kill()
            raise
    return reports


def _run_in_process(
    job: SynthesisJob, on_report: Callable[[SpeakerReport], None], children: list[subprocess.Popen[str]]
) -> None:
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "echolearn.speech._synthetic.synthesis"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        children.append(child)
        with child:
            _exchange(child, job, on_report)
        if child.returncode != 0:
            errors.seek(0)
            last = (errors.read().strip() or f"exit status {child.returncode}").splitlines()[-1]
            raise EspeakError(f"the synthesiser stopped ({last}); {INSTALL}")


def _exchange(child: subprocess.Popen[str], job: SynthesisJob, on_report: Callable[[SpeakerReport], None]) -> None:
    """Send the job to the process and read its reports until it ends."""
    if child.stdin is None or child.stdout is None:
        raise AssertionError("opened with pipes")
    with suppress(BrokenPipeError):  # a child that died at once is reported by its exit status
        child.stdin.write(job.to_json())
        child.stdin.close()
    for line in child.stdout:
        report = json.loads(line)
        if "errno" in report:
            raise OSError(report["errno"], report["error"], report["file"] or job.root)
        if "error" in report:
            raise EspeakError(report["error"])
        on_report(report)


def _write_marker(
    root: Path, settings: Mapping[str, object], speakers: Sequence[Speaker], reports: Sequence[SpeakerReport]
) -> None:
    files, size = _measure(root)
    parts = {speaker.name: speaker.part for speaker in speakers}
    content = {
        "synthetic": True,
        "settings": settings,
        "frames": {part: sum(r["frames"] for r in reports if parts[r["speaker"]] == part) for part in PARTS},
        "files": files,
        "bytes": size,
        "sha256": hashlib.sha256("".join(r["sha256"] for r in reports).encode()).hexdigest(),
        "parts": parts,
    }
    with (root / MARKER_FILE).open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _measure(root: Path) -> tuple[int, int]:
    """Return the number and bytes of the tree's files, without the marker and what readers keep beside it."""
    sizes = [p.stat().st_size for side in ("TRAIN", "TEST") for p in (root / side).rglob("*.*")]
    return len(sizes), sum(sizes)
