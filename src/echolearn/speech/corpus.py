"""One word -> a corpus: `synthetic`, `timit:PATH`, `features:FILE.npz`, `wav:DIR`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echolearn.speech import folder, synthetic, timit
from echolearn.speech.cache import default_cache
from echolearn.speech.errors import Problem, raise_any
from echolearn.speech.featurefile import read_feature_file
from echolearn.speech.features import SHIFT
from echolearn.speech.framelist import FrameList
from echolearn.speech.labels import Segment, read_mlf, write_mlf
from echolearn.speech.phones import ENGLISH, TIMIT_61, state_names
from echolearn.speech.preparation import PhoneList, prepare
from echolearn.speech.utterances import PARTS, Utterance, match_labels, pair_up

Progress = Callable[[str, int, int], None]
Frames = NDArray[np.float32]
Labels = NDArray[np.int16]

WORDS = "synthetic, timit:PATH, features:FILE.npz or wav:DIR"
_FRAME_SECONDS = SHIFT / 16_000


@dataclass(frozen=True)
class Corpus:
    """Utterances with a state label a frame.

    features[k] is (frames, n), made when asked for; labels[k] is (frames,), an index into
    state_names; split, utterances, speakers and audio (a path, or "") have an entry an utterance.
    """

    name: str
    features: FrameList
    labels: list[Labels]
    split: tuple[str, ...]
    utterances: tuple[str, ...]
    speakers: tuple[str, ...]
    state_names: tuple[str, ...]
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    audio: tuple[str, ...] = ()

    def which(self, part: str) -> list[int]:
        """Indices of a part's utterances."""
        if part not in PARTS:
            raise ValueError(f"part is {part!r}, expected one of {', '.join(PARTS)}")
        return [k for k, own in enumerate(self.split) if own == part]

    def part(self, part: str, *, lazy: bool = False) -> tuple[Sequence[Frames], list[Labels]]:
        """(X, y) of a part. lazy: X stays a list that makes each array when it is asked for."""
        which = self.which(part)
        X = self.features.take(which)
        return (X if lazy else list(X)), [self.labels[k] for k in which]

    @property
    def frames(self) -> dict[str, int]:
        """Frames of each part."""
        return {part: sum(len(self.labels[k]) for k in self.which(part)) for part in PARTS}

    @property
    def columns(self) -> int:
        """Features a frame: 117 for speech."""
        return int(self.features[0].shape[1])

    def write_mlf(self, path: str | Path) -> None:
        """The state labels as an HTK master label file; frame k is k * 10 ms to the next."""
        written = {name: self._state_segments(y) for name, y in zip(self.utterances, self.labels, strict=True)}
        write_mlf(path, written)

    def _state_segments(self, y: Labels) -> list[Segment]:
        edges = np.flatnonzero(np.r_[True, np.diff(y) != 0, True])
        return [
            Segment(a * _FRAME_SECONDS, b * _FRAME_SECONDS, self.state_names[y[a]])
            for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]


def open_corpus(
    word: str,
    *,
    frames: int | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
    labels: str | Path | None = None,
    normalise: str = "utterance",
    progress: Progress | None = None,
) -> Corpus:
    """The corpus a word names, with features and state labels.

    frames: training frames of the synthetic corpus; cache: where synthetic speech, features and
    alignments are kept ($ECHOLEARN_CACHE or the user's cache folder); labels: an HTK master label
    file instead of the corpus's own labels; normalise: "utterance" or "corpus".
    Raises CorpusError with everything that is wrong with the corpus.
    """
    if normalise not in ("utterance", "corpus"):
        raise ValueError(f"normalise is {normalise!r}, expected 'utterance' or 'corpus'")
    kind, _, place = word.partition(":")
    if kind not in ("synthetic", "timit", "features", "wav") or (kind == "synthetic") == bool(place):
        raise ValueError(f"corpus is {word!r}, expected {WORDS}")
    if frames is not None and kind != "synthetic":
        raise ValueError(f"frames={frames} sizes the synthetic corpus; {word!r} has the size it has")
    home = Path(cache) if cache is not None else default_cache()
    if kind == "features":
        if labels is not None:
            raise ValueError(f"labels={labels} needs audio; a features file brings its own labels")
        return _from_features(Path(place))
    if kind == "synthetic":
        if labels is not None:
            raise ValueError(f"labels={labels} needs audio of one's own; the synthetic corpus has its labels")
        size = synthetic.DEFAULT_FRAMES if frames is None else frames
        tree = synthetic.synthetic_tree(size, seed, home, progress)
        spoken = _from_audio(word, _find_synthetic(tree, seed), home, None, normalise, progress)
        return replace(spoken, synthetic=True)
    found = _find_timit(place, labels is None) if kind == "timit" else _find_wav(place, seed, labels is None)
    corpus = _from_audio(word, found, home, labels, normalise, progress)
    if kind == "timit":
        counts = {part: len(corpus.which(part)) for part in PARTS}
        corpus = replace(corpus, notes=corpus.notes + tuple(timit.frame_notes(corpus.frames, counts)))
    return corpus


@dataclass(frozen=True)
class _Found:
    """What lies on disk: utterances, remarks, what is wrong so far, and which phones to expect."""

    utterances: list[Utterance]
    notes: list[str]
    problems: list[Problem]
    phones: PhoneList
    depends_on: str = ""


def _find_timit(place: str, own_labels: bool) -> _Found:
    return _Found(*timit.find_timit(place, own_labels), phones=lambda used: TIMIT_61)


def _find_wav(place: str, seed: int, own_labels: bool) -> _Found:
    listed = Path(place) / folder.PHONE_LIST
    return _Found(
        *folder.find_folder(place, seed, own_labels),
        phones=lambda used: folder.phone_list(place, used),
        depends_on=listed.read_text(encoding="utf-8") if listed.is_file() else "",
    )


def _find_synthetic(tree: Path, seed: int) -> _Found:
    parts = {speaker.lower(): part for speaker, part in synthetic.marker(tree)["parts"].items()}
    utterances = []
    for side in ("TRAIN", "TEST"):
        for key, (audio, phn) in pair_up(tree / side, (".phn",)).items():
            speaker = key.split("/")[-2]
            if audio is not None:
                utterances.append(Utterance(f"{side.lower()}/{key}", speaker, parts[speaker], audio, phn))
    note = f"synthetic speech by espeak-ng: {len(parts)} voices, {len(utterances)} sentences, seed {seed}"
    return _Found(utterances, [note], [], phones=lambda used: ENGLISH)


def _from_audio(
    word: str,
    found: _Found,
    cache: Path,
    labels: str | Path | None,
    normalise: str,
    progress: Progress | None,
) -> Corpus:
    utterances, problems, master = found.utterances, found.problems, None
    if not utterances:
        raise_any(problems)
    if labels is not None:
        master, missing = match_labels(utterances, read_mlf(labels), labels)
        problems = problems + missing
    ready = prepare(
        utterances,
        found.phones,
        cache,
        master=master,
        normalise=normalise,
        problems=problems,
        depends_on=found.depends_on,
        progress=progress,
    )
    return Corpus(
        name=word,
        features=ready.features,
        labels=ready.labels,
        split=tuple(u.part for u in utterances),
        utterances=tuple(u.name for u in utterances),
        speakers=tuple(u.speaker for u in utterances),
        state_names=state_names(ready.phones),
        notes=tuple(found.notes),
        audio=tuple(str(u.audio) for u in utterances),
    )


def _from_features(path: Path) -> Corpus:
    features, arrays, note = read_feature_file(path)
    edges = np.cumsum(arrays["lengths"])[:-1]
    return Corpus(
        name=f"features:{path}",
        features=features,
        labels=np.split(arrays["labels"].astype(np.int16), edges),
        split=tuple(arrays["split"].tolist()),
        utterances=tuple(arrays["utterances"].tolist()),
        speakers=tuple(arrays["speakers"].tolist()),
        state_names=tuple(arrays["state_names"].tolist()),
        notes=(note,),
        audio=("",) * len(arrays["lengths"]),
    )
