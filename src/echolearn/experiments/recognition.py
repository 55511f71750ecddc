"""The work behind `echolearn train --for recognition` and `echolearn recognize`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from echolearn.estimators.classifier import ESNClassifier
from echolearn.exceptions import CorpusError, Problem
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.speech._typing import Frames
from echolearn.speech.audio import read_channels
from echolearn.speech.corpus import Corpus
from echolearn.speech.formats.results import Recognised
from echolearn.speech.phones import split_state
from echolearn.speech.recognition import (
    Lexicon,
    Recognizer,
    Transcription,
    learn_recognizer,
    load_recognizer,
    read_arpa,
    read_lexicon,
)
from echolearn.speech.recognition._recognizer import valid_part
from echolearn.speech.recognition._tuning import evaluate_phones, evaluate_words
from echolearn.speech.scoring import Evaluation
from echolearn.speech.utterances import AUDIO_ENDINGS, pair_files

StageProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class RecognitionSettings:
    """How a recogniser is made of a network: the files of its words, and the order of its n-grams."""

    lexicon: Path | None = None
    language_model: Path | None = None
    order: int = 2

    def check(self) -> None:
        """Read the files, before anything slow begins; CorpusError for what is wrong with them."""
        if self.lexicon is not None:
            read_lexicon(self.lexicon)
        if self.language_model is not None:
            read_arpa(self.language_model)


def settings_for(
    purpose: str, lexicon: Path | None, language_model: Path | None, order: int
) -> RecognitionSettings | None:
    """Return checked settings, None for a network of states; ValueError for files that such a network does not need."""
    if purpose == "recognition":
        settings = RecognitionSettings(lexicon, language_model, order)
        settings.check()
        return settings
    useless = lexicon or language_model
    if useless:
        raise ValueError(f"{useless} is for recognition of words; add --for recognition")
    return None


def words_for(corpus: Corpus, settings: RecognitionSettings) -> Lexicon | None:
    """Return the lexicon of the settings, or else that of the corpus.

    ValueError if it has a phone without a frame in the training part: no network can learn such a phone.
    """
    path = settings.lexicon or (Path(corpus.lexicon) if corpus.lexicon else None)
    if path is None:
        if settings.language_model is not None:
            raise ValueError(f"{settings.language_model} is a language model of words; --lexicon FILE must say them")
        return None
    lexicon = read_lexicon(path)
    states = {int(k) for utterance in corpus.which("train") for k in corpus.labels[utterance]}
    try:
        lexicon.with_phones_of(sorted({split_state(corpus.state_names[k])[0] for k in states}))
    except ValueError as problem:
        raise ValueError(
            f"{path}: {problem}. A phone can be learned only if it occurs in the training part: use more training data "
            "(of synthetic speech: more --frames), or a lexicon without words that have these phones."
        ) from problem
    return lexicon


def recognizer_for(
    corpus: Corpus, settings: RecognitionSettings, progress: StageProgress, network: ESNClassifier
) -> Recognizer:
    """Return a recogniser of a fitted network, with the words of the settings or else those of the corpus."""
    return learn_recognizer(
        network,
        corpus,
        order=settings.order,
        lexicon=words_for(corpus, settings),
        language_model=None if settings.language_model is None else read_arpa(settings.language_model),
        progress=progress,
    )


def recognition_summary(recognizer: Recognizer, corpus: Corpus) -> str:
    """Return phone error and, where words are known, word error on the validation part, one line each."""
    part = valid_part(corpus)
    inputs = {corpus.utterances[k]: corpus.features[k] for k in corpus.which("valid")}
    found = recognizer.recognize_all(inputs)
    kind = " (synthetic speech)" if corpus.synthetic else ""
    phones = evaluate_phones(part.phones, {n: t.phones for n, t in found.items()}, speakers=part.speakers)
    lines = [f"phone error{kind}: valid {counts_text(phones, 'phones')}"]
    if recognizer.words is not None and part.words:
        words = evaluate_words(part.words, {n: found[n].words or () for n in part.words}, speakers=part.speakers)
        lines.append(f"word error{kind}: valid {counts_text(words, 'words')}")
    elif recognizer.words is not None:
        lines.append("word error: unknown, because the words of the valid part are not known (see --transcripts)")
    return "\n".join(lines)


def counts_text(evaluation: Evaluation, of: str) -> str:
    """Return `12.8 % (S 64, D 56, I 24 of 1,127 phones)`."""
    total = evaluation.total
    return (
        f"{100 * total.error_rate:.1f} % (S {total.substitutions:,}, D {total.deletions:,}, I {total.insertions:,} "
        f"of {total.reference:,} {of})"
    )


def is_recognizer(path: Path) -> bool:
    """Return whether a file is that of a recogniser."""
    return file_kind(path) == RECOGNIZER


def open_recognizer(path: Path) -> Recognizer:
    """Load a recogniser; ValueError for a plain network, with what to do."""
    if path.is_file() and file_kind(path) not in (RECOGNIZER, None):
        raise ValueError(
            f"{path} is a network without a decoder; make a recogniser with: echolearn train NEW.safetensors "
            "--for recognition"
        )
    return load_recognizer(path)


def with_words(
    recognizer: Recognizer, lexicon: Path | None, language_model: Path | None, words_list: Path | None
) -> Recognizer:
    """Return the recogniser with the words of other files."""
    if lexicon is not None or language_model is not None:
        recognizer = recognizer.with_words(
            None if lexicon is None else read_lexicon(lexicon),
            None if language_model is None else read_arpa(language_model),
        )
    return recognizer if words_list is None else recognizer.with_word_list(read_word_list(words_list))


def read_word_list(path: Path) -> list[str]:
    """Return the words of a text file, separated by blanks or line breaks; lines that begin with # do not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a list of words that can be read ({error})") from error
    words = [word for line in lines if not line.lstrip().startswith("#") for word in line.split()]
    if not words:
        raise CorpusError.one(path, "holds no word; expected one word per line")
    return words


def find_recordings(given: Sequence[Path]) -> dict[str, Path]:
    """Return the recordings among files and below folders by their names: paths without ending and without blanks."""
    found: list[tuple[Path, Path]] = []  # file, and its name from the folder on
    for path in given:
        if path.is_dir():
            inside = [audio for audio, _ in pair_files(path).values() if audio is not None]
            if not inside:
                raise ValueError(f"{path} holds no recordings; expected files that end in {', '.join(AUDIO_ENDINGS)}")
            found += [(audio, audio.relative_to(path)) for audio in inside]
        else:
            found.append((path, Path(path.name)))
    counts = Counter(_name(short) for _, short in found)
    names = [_name(short if counts[_name(short)] == 1 else path) for path, short in found]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is given twice; give each recording once")
    return dict(zip(names, (path for path, _ in found), strict=True))


def _name(path: Path) -> str:
    return "_".join(path.with_suffix("").as_posix().lstrip("/.").split()) or "recording"


@dataclass
class Recognition:
    """The words or phones recognised in recordings, and the problems of those that could not be read."""

    level: str
    results: list[Recognised] = field(default_factory=list)
    nbest: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class RecognitionOptions:
    """How recordings are recognised: channels ("mix", "split", a number or None), words or phones, what is added."""

    channels: int | str | None = None
    level: str | None = None
    confidences: bool = False
    nbest: int = 0

    def level_of(self, recognizer: Recognizer) -> str:
        """Return what is recognised: words or phones."""
        return self.level or ("phones" if recognizer.words is None else "words")


def recognize_recordings(
    recognizer: Recognizer, recordings: Mapping[str, Path], options: RecognitionOptions, progress: StageProgress
) -> Recognition:
    """Recognise recordings. One that cannot be read is among the problems, and the others are recognised."""
    if not recognizer.features.audio:
        raise ValueError(
            f"this recogniser takes features, not sound ({recognizer.features.describe()}); recognise a part of a "
            "corpus of features with --corpus features:FILE.npz --part valid"
        )
    done = Recognition(options.level_of(recognizer))

    def inputs() -> Iterator[tuple[tuple[str, int], Frames]]:
        for name, path in recordings.items():
            try:
                for channel, samples in enumerate(read_channels(path, options.channels), 1):
                    number = options.channels if isinstance(options.channels, int) else channel
                    yield (name, number), recognizer.inputs(samples)
            except CorpusError as error:
                done.problems += [_several_channels(problem) for problem in error.problems]
            except ValueError as error:
                done.problems.append(Problem(str(path), str(error)))

    _recognize(recognizer, inputs(), options, done, lambda count: progress("recognising", count, len(recordings)))
    return done


def recognize_features(
    recognizer: Recognizer,
    features: tuple[Sequence[str], Sequence[Frames]],
    options: RecognitionOptions,
    progress: StageProgress,
) -> Recognition:
    """Recognise utterances, by name, of which the features are ready."""
    done = Recognition(options.level_of(recognizer))

    def inputs() -> Iterator[tuple[tuple[str, int], Frames]]:
        for name, frames in zip(*features, strict=True):
            yield ("_".join(name.split()), 1), recognizer.inputs(frames)

    _recognize(recognizer, inputs(), options, done, lambda count: progress("recognising", count, len(features[0])))
    return done


def _recognize(
    recognizer: Recognizer,
    inputs: Iterable[tuple[tuple[str, int], Frames]],
    options: RecognitionOptions,
    done: Recognition,
    counted: Callable[[int], None],
) -> None:
    """Add the results of some utterances, named by recording and channel, to those that are done."""
    words = None if options.level is None else options.level == "words"
    kept: dict[str, Frames] = {}

    def named() -> Iterator[tuple[str, Frames]]:
        for (name, channel), frames in inputs:
            key = f"{name} {channel}"
            if options.nbest:
                kept[key] = frames
            yield key, frames

    found: dict[str, Transcription] = recognizer.recognize_all(
        named(), words=words, confidences=options.confidences, progress=lambda what, count, total: counted(count)
    )
    for key, transcription in found.items():
        name, _, channel = key.rpartition(" ")
        done.results.append(transcription.as_result(name, level=options.level, channel=int(channel)))
        if options.nbest:
            done.nbest[name if channel == "1" else key] = recognizer.nbest(kept[key], options.nbest, words=words)


def _several_channels(problem: Problem) -> Problem:
    if "channels, expected 1" not in problem.what:
        return problem
    return Problem(
        problem.file, problem.what.split(",")[0] + "; give --channels mix, --channels split, or the number of one"
    )
