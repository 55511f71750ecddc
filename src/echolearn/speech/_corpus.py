"""Corpora of speech, opened by name with features and one state label per frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import counted, one_line
from echolearn.display.progress import StageProgress
from echolearn.exceptions import Problem
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import CEPSTRA, FEATURE_COLUMNS, FRAME_SECONDS, FrameList, Frames, Labels
from echolearn.speech._labels import Segment, read_mlf, write_mlf
from echolearn.speech._phone_set import state_names
from echolearn.speech._preparation import default_cache, prepare
from echolearn.speech._sources.feature_file import prepare_arrays, read_feature_file
from echolearn.speech._sources.folder import find_folder
from echolearn.speech._sources.kaldi_folder import find_kaldi, read_aligned_features, transcripts_of
from echolearn.speech._sources.timit import CORE_TEST, find_timit, frame_notes
from echolearn.speech._sources.utterances import PARTS, CorpusFiles, match_labels
from echolearn.speech._synthetic.tree import DEFAULT_FRAMES, find_synthetic, synthetic_tree
from echolearn.speech._text import raise_any
from echolearn.speech._transcripts import Words, match_transcripts, read_transcripts, read_word_file, word_file

CORPUS_WORDS = "synthetic, timit:PATH, features:FILE.npz, kaldi:DIR or wav:DIR"


@dataclass(frozen=True)
class Corpus:
    """A corpus of speech: utterances with features and one state label per frame, as `open_corpus` returns it.

    Parameters
    ----------
    name : str
        The word that the corpus was opened by.
    features : FrameList
        Features of each utterance, arrays of shape (n_frames, n_columns) that are computed when they are accessed.
    labels : list of array of shape (n_frames,), int16
        Labels of each utterance, indices into `state_names`.
    split, utterances, speakers : tuple of str
        Part (train, valid or test), name and speaker of each utterance.
    state_names : tuple of str
        Name of each state.
    synthetic : bool, default False
        Whether the speech was synthesised.
    notes : tuple of str, default ()
        Sentences about the corpus for its users, for instance on files that were left out.
    audio : tuple of str, default ()
        Path of each audio file; "" where there is none.
    transcripts : tuple of str, default ()
        Lists of transcripts that have the words of the utterances, instead of the .wrd and .txt files beside the audio.
    lexicon : str, default ""
        Path of the pronunciation dictionary that comes with the corpus; "" if there is none.
    recipe : FeatureRecipe, optional
        The steps by which the features were computed from sound, or from the frames in a file; by default none.

    See Also
    --------
    open_corpus : Open a corpus; it has an example.
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
    transcripts: tuple[str, ...] = ()
    lexicon: str = ""
    recipe: FeatureRecipe = field(default_factory=FeatureRecipe.ready)

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {len(self.which(part)):,}" for part in dict.fromkeys(self.split))
        facts = [
            self.name,
            f"{counted(len(self.labels), 'utterance')} ({parts})",
            counted(sum(map(len, self.labels)), "frame"),
            counted(len(self.state_names), "state"),
            counted(len(set(self.speakers)), "speaker"),
            "synthetic" if self.synthetic else "",
        ]
        return one_line(self, facts)

    @cached_property
    def words(self) -> tuple[Words, ...]:
        """The words of each utterance, as a tuple of tuples of str; () for an utterance without a file of words.

        They are read at the first access, from the lists of transcripts or else from the .wrd or .txt files beside the
        audio. A CorpusError names files that have been removed since the corpus was opened.
        """
        if self.transcripts:
            listed = [item for path in self.transcripts for item in read_transcripts(path).items()]
            return tuple(match_transcripts(self.utterances, dict(listed), ", ".join(self.transcripts)))
        files = [word_file(Path(audio)) if audio else None for audio in self.audio]
        lost = [
            # Of the synthetic corpus, which has all words, the sentence; otherwise the audio.
            Path(audio).with_suffix(".WRD") if self.synthetic else audio
            for audio, file in zip(self.audio, files, strict=True)
            if audio and file is None and (self.synthetic or not Path(audio).is_file())
        ]
        where = ", perhaps with the cache folder" if self.synthetic else ""
        what = f"was removed after the corpus was opened{where}; open the corpus again to use its words"
        raise_any(Problem(str(place), what) for place in lost)
        return tuple(() if file is None else read_word_file(file) for file in files)

    def which(self, part: str) -> list[int]:
        """Return the indices of a part's utterances.

        Parameters
        ----------
        part : {"train", "valid", "test"}
            The part.

        Returns
        -------
        list of int
            The indices into `features`, `labels` and `utterances`.
        """
        if part not in PARTS:
            raise ValueError(f"part is {part!r}, expected one of {', '.join(PARTS)}")
        return [k for k, name in enumerate(self.split) if name == part]

    def part(self, part: str, *, lazy: bool = False) -> tuple[Sequence[Frames], list[Labels]]:
        """Return the features and labels of a part, in the form that estimators take.

        Parameters
        ----------
        part : {"train", "valid", "test"}
            The part.
        lazy : bool, default False
            Whether to return the features as a sequence that computes each array when it is accessed. Use it for a
            corpus that does not fit in memory.

        Returns
        -------
        X : sequence of array of shape (n_frames, n_columns), float32
            Features of each utterance.
        y : list of array of shape (n_frames,), int16
            Labels of each utterance.
        """
        which = self.which(part)
        X = self.features.take(which)
        return (X if lazy else list(X)), [self.labels[k] for k in which]

    @property
    def frames(self) -> dict[str, int]:
        """The number of frames of each part, as a dict."""
        return {part: sum(len(self.labels[k]) for k in self.which(part)) for part in PARTS}

    @property
    def columns(self) -> int:
        """The number of features per frame: 117 for speech."""
        return int(self.features[0].shape[1])

    def write_mlf(self, path: str | Path) -> None:
        """Write the state labels as an HTK master label file, in which frame k begins at k * 10 ms.

        Parameters
        ----------
        path : str or Path
            The file; one that exists is replaced.
        """
        names = np.array(self.state_names)
        write_mlf(path, {u: state_segments(names[y]) for u, y in zip(self.utterances, self.labels, strict=True)})


def state_segments(states: NDArray[np.str_]) -> list[Segment]:
    """Return one segment per run of equal states of frames, in which frame k begins at k * 10 ms."""
    edges = np.flatnonzero(np.r_[True, states[1:] != states[:-1], True]).tolist()
    return [Segment(a * FRAME_SECONDS, b * FRAME_SECONDS, str(states[a])) for a, b in pairwise(edges)]


def open_corpus(
    word: str,
    *,
    frames: int | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
    labels: str | Path | None = None,
    normalise: str = "utterance",
    transcripts: Sequence[str | Path] = (),
    progress: StageProgress | None = None,
) -> Corpus:
    """Open a corpus with its features and one state label per frame (docs/howto/speech.md).

    Features and labels are computed by the first call and kept in the cache. Later calls with the same files and
    settings read them from there. A CorpusError lists all problems of the corpus; no file is left out silently.

    Parameters
    ----------
    word : str
        The corpus: ``synthetic`` (speech by espeak-ng), ``timit:PATH`` (TIMIT, or a part of it such as
        NLTK's sample), ``features:FILE.npz`` (features of your own), ``kaldi:DIR`` (data folders of Kaldi: features
        with alignments or, with `labels`, audio) or ``wav:DIR`` (a folder of audio with phone labels).
    frames : int, optional
        Training frames of the synthetic corpus, by default 100,000. It is the only corpus whose size can be chosen.
    seed : int, default 0
        Seed of the synthetic corpus, and of the split by speakers of a folder without parts or of a part of TIMIT.
    cache : str or Path, optional
        Folder in which synthetic speech, features and labels are kept. By default the variable ECHOLEARN_CACHE, or
        `echolearn` in the user's cache folder.
    labels : str or Path, optional
        An HTK master label file to use instead of the label files of a `timit` or `wav` corpus, or the alignments of
        a `kaldi` corpus. Names with a state (`aa_s2`, `aa[2]`) are used unchanged; phones are aligned.
    normalise : {"utterance", "corpus", "running"}, default "utterance"
        Whether each utterance is normalised by its own mean and deviation, all of them by those of the training part,
        or each by its frames so far, beginning with the training part's. Use "corpus" or "running" for a network that
        recognises streams, and "corpus" if utterances are too short to estimate a mean from each. Features of a
        file that are neither 13 nor 39 columns are used unchanged.
    transcripts : sequence of str or Path, default ()
        Lists of transcripts (Kaldi's ``text``, or ``WORDS (NAME)`` on every line) for the words of the utterances. By
        default they come from the .wrd or .txt files beside the audio.
    progress : callable, optional
        Called as `progress(text, done, total)`.

    Returns
    -------
    Corpus
        The corpus.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(
    ...         f"{folder}/mine.npz",
    ...         features=np.zeros((6, 2), np.float32),
    ...         labels=np.array([0, 0, 1, 1, 0, 1]),
    ...         lengths=np.array([2, 2, 2]),
    ...         utterances=np.array(["a", "b", "c"]),
    ...         speakers=np.array(["ann", "bob", "cid"]),
    ...         split=np.array(["train", "valid", "test"]),
    ...         state_names=np.array(["sil", "iy"]),
    ...     )
    ...     corpus = open_corpus(f"features:{folder}/mine.npz")
    >>> X, y = corpus.part("train")
    >>> corpus.frames, X[0].shape
    ({'train': 2, 'valid': 2, 'test': 2}, (2, 2))
    """
    if normalise not in ("utterance", "corpus", "running"):
        raise ValueError(f"normalise is {normalise!r}, expected 'utterance', 'corpus' or 'running'")
    kind, _, place = word.partition(":")
    if kind not in ("synthetic", "timit", "features", "kaldi", "wav") or (kind == "synthetic") == bool(place):
        raise ValueError(f"corpus is {word!r}, expected {CORPUS_WORDS}")
    if frames is not None and kind != "synthetic":
        raise ValueError(f"frames={frames} is the size of the synthetic corpus; that of {word!r} is given")
    if kind == "features" and labels is not None:
        raise ValueError(f"labels={labels} needs audio; a features file brings its own labels")
    if kind == "synthetic" and labels is not None:
        raise ValueError(f"labels={labels} is for audio of your own; the synthetic corpus has its own labels")
    lists = tuple(str(path) for path in ([transcripts] if isinstance(transcripts, str | Path) else transcripts))
    if kind == "features" or (kind == "kaldi" and labels is None):
        corpus = _from_features(word, normalise)
        return replace(corpus, transcripts=lists or (transcripts_of(place) if kind == "kaldi" else ()))
    folder = Path(cache) if cache is not None else default_cache()
    if kind == "synthetic":
        tree = synthetic_tree(DEFAULT_FRAMES if frames is None else frames, seed, folder, progress)
        files = find_synthetic(tree, seed)
    elif kind == "timit":
        files = find_timit(place, seed, labels_required=labels is None)
    elif kind == "kaldi":
        files, lists = find_kaldi(place), lists or transcripts_of(place)
    else:
        files = find_folder(place, seed, labels_required=labels is None)
    corpus = _from_audio(word, files, folder, labels=labels, normalise=normalise, progress=progress)
    if kind == "timit" and not CORE_TEST.isdisjoint(corpus.speakers):  # a part of TIMIT has no usual counts
        counts = {part: len(corpus.which(part)) for part in PARTS}
        corpus = replace(corpus, notes=corpus.notes + tuple(frame_notes(corpus.frames, counts)))
    return replace(corpus, synthetic=kind == "synthetic", lexicon=files.lexicon, transcripts=lists)


def _from_audio(
    word: str,
    files: CorpusFiles,
    cache: Path,
    *,
    labels: str | Path | None,
    normalise: str,
    progress: StageProgress | None,
) -> Corpus:
    utterances, master = files.utterances, None
    if not utterances:
        raise_any(files.problems)
    if labels is not None:
        master, missing = match_labels(utterances, read_mlf(labels), labels)
        files = replace(files, problems=files.problems + missing)
    features, frame_labels, phones = prepare(files, cache, master=master, normalise=normalise, progress=progress)
    return Corpus(
        name=word,
        features=features,
        labels=frame_labels,
        split=tuple(u.part for u in utterances),
        utterances=tuple(u.name for u in utterances),
        speakers=tuple(u.speaker for u in utterances),
        state_names=state_names(phones),
        notes=tuple(files.notes),
        audio=tuple(str(u.audio) for u in utterances),
        recipe=FeatureRecipe(normalise=normalise, scale=features.scale),
    )


def _from_features(word: str, normalise: str) -> Corpus:
    kind, _, place = word.partition(":")
    if kind == "kaldi":
        arrays = read_aligned_features(place)
        features, note = prepare_arrays(arrays, place, normalise)
    else:
        features, arrays, note = read_feature_file(place, normalise)
    recipe, width = FeatureRecipe.ready(), arrays["features"].shape[1]
    if width in (CEPSTRA, FEATURE_COLUMNS):
        recipe = FeatureRecipe(False, width == CEPSTRA, normalise, scale=features.scale)
    edges = np.cumsum(arrays["lengths"])[:-1]
    return Corpus(
        name=word,
        features=features,
        labels=np.split(arrays["labels"].astype(np.int16), edges),
        split=tuple(arrays["split"].tolist()),
        utterances=tuple(arrays["utterances"].tolist()),
        speakers=tuple(arrays["speakers"].tolist()),
        state_names=tuple(arrays["state_names"].tolist()),
        notes=(note,),
        audio=("",) * len(arrays["lengths"]),
        recipe=recipe,
    )
