"""A recogniser from a fitted network and a corpus: learned on the training part, tuned on the validation part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from echolearn.display.progress import StageProgress
from echolearn.speech._corpus import Corpus
from echolearn.speech.recognition._decoder import learn_phone_task, word_task
from echolearn.speech.recognition._lexicon import Lexicon
from echolearn.speech.recognition._ngrams import NGramModel, estimate
from echolearn.speech.recognition._phone_models import spoken_phones
from echolearn.speech.recognition._recognizer import Recognizer, StateClassifier, batches
from echolearn.speech.recognition._tuning import calibrate, tune_phones, tune_words
from echolearn.validation import Array, check_path

MAX_UNSPOKEN_WORDS = 5000  # that a lexicon makes possible though nobody said them: a larger one is for all purposes


def learn_recognizer(
    model: StateClassifier,
    corpus: Corpus,
    *,
    order: int = 2,
    lexicon: Lexicon | None = None,
    language_model: NGramModel | None = None,
    progress: StageProgress | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Recognizer:
    """Return a recogniser made from a network that was fitted to the states of a corpus.

    Durations, n-grams and priors are learned from the labels of the training part, and the weights of the decoders are
    chosen by phone and word error on the validation part. The test part is not used. `Recognizer` has an example.

    Parameters
    ----------
    model : ESNClassifier or DeepESNClassifier
        The fitted network. Its classes are names of states, or their indices in `corpus.state_names`.
    corpus : Corpus
        The corpus that the network was fitted to.
    order : int, default 2
        Order of the n-grams of phones, and of words if no language model is given. Try 3 if the training
        part has 100,000 phones or more.
    lexicon : Lexicon, optional
        Pronunciations of words. By default only phones are recognised.
    language_model : NGramModel, optional
        The probabilities of sequences of words. By default it is estimated from the words of the training part. Other
        words of the lexicon are possible too if the lexicon has at most 5,000 words. All words are equally probable if
        no words of the training part are known.
    progress : callable, optional
        Called as `progress(text, done, total)`.
    checkpoint : str or path-like, optional
        A folder where the errors of all weights tried so far are kept; the same call, made again after it was stopped,
        resumes from there.

    Returns
    -------
    Recognizer
        The recogniser.
    """
    records: dict[str, Path | None] = {"phones": None, "words": None}
    if checkpoint is not None:
        folder = check_path("checkpoint", checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        records = {level: folder / f"decoder-{level}.json" for level in records}
    states = network_states(model, corpus.state_names)
    phones = learn_phone_task(_labels_in(states, corpus), states, order=order)
    part = valid_part(corpus)
    base = Recognizer(model, phones, None, corpus.recipe)
    inputs = [corpus.features[k] for k in corpus.which("valid")]
    outputs = [P.astype(np.float32) for batch in batches(inputs) for P in base.probabilities(batch)]
    probabilities = dict(zip(part.phones, outputs, strict=True))
    decoder, _ = tune_phones(
        base.phone_decoder, part.phones, probabilities, progress=_of("phones", progress), record=records["phones"]
    )
    decoder, _ = calibrate(decoder, part.phones, probabilities)
    phones = replace(phones, weights=decoder.weights)
    words = None
    if lexicon is not None:
        if language_model is None:
            language_model = _trained_words(corpus, lexicon, order)
        words = word_task(phones, lexicon, language_model)
        if part.words:
            with_words = {name: probabilities[name] for name in part.words}
            spoken = {name: _spelled(one, lexicon) for name, one in part.words.items()}
            best, _ = tune_words(
                words.decoder(phones), spoken, with_words, progress=_of("words", progress), record=records["words"]
            )
            words = replace(words, weights=calibrate(best, spoken, with_words)[0].weights)
    return Recognizer(model, phones, words, corpus.recipe)


def _of(level: str, progress: StageProgress | None) -> StageProgress | None:
    """Return the progress of work that is done for phones and for words, under two names."""
    return None if progress is None else lambda what, done, total: progress(f"{level}: {what}", done, total)


@dataclass(frozen=True)
class SpokenPart:
    """The words and phones that were spoken in a part of a corpus."""

    phones: dict[str, list[str]]
    words: dict[str, tuple[str, ...]]
    speakers: dict[str, str]


def valid_part(corpus: Corpus) -> SpokenPart:
    """Return the words and phones that were spoken in the validation part."""
    which = corpus.which("valid")
    if not which:
        raise ValueError(f"{corpus.name} has no utterances of the valid part, on which the decoder is tuned")
    return SpokenPart(
        {corpus.utterances[k]: spoken_phones(corpus.labels[k], corpus.state_names) for k in which},
        {corpus.utterances[k]: corpus.words[k] for k in which if corpus.words[k]},
        {corpus.utterances[k]: corpus.speakers[k] for k in which},
    )


def network_states(model: StateClassifier, state_names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a network's classes, in their order."""
    classes = model.classes_
    if classes.dtype.kind in "iu" and 0 <= classes.min() <= classes.max() < len(state_names):
        return tuple(state_names[k] for k in classes.tolist())
    if classes.dtype.kind != "U":
        raise ValueError(f"the network's classes are {classes.dtype}; expected names of phone states such as aa_s2")
    return tuple(classes.tolist())


def _labels_in(states: Sequence[str], corpus: Corpus) -> list[Array]:
    """Return the labels of the training part as indices into a network's states."""
    place = {name: k for k, name in enumerate(states)}
    index = np.array([place.get(name, -1) for name in corpus.state_names])
    labels = [index[corpus.labels[k]] for k in corpus.which("train")]
    unknown = {
        corpus.state_names[s] for k in corpus.which("train") for s in np.unique(corpus.labels[k]) if index[s] < 0
    }
    if unknown:
        some = ", ".join(sorted(unknown)[:5])
        raise ValueError(
            f"the network does not know {len(unknown)} states of the training part of {corpus.name}, such as {some}; "
            "was it fitted to another corpus?"
        )
    return labels


def _spelled(words: Iterable[str], lexicon: Lexicon) -> list[str]:
    """Return words in the case of the lexicon, those that it has in some."""
    spelling = {word.upper(): word for word in lexicon.words}
    return [word if word in lexicon.pronunciations else spelling.get(word.upper(), word) for word in words]


def _trained_words(corpus: Corpus, lexicon: Lexicon, order: int) -> NGramModel | None:
    """Return a language model of the words of the training part, if they are known, spelled as in the lexicon."""
    spoken = [_spelled(corpus.words[k], lexicon) for k in corpus.which("train") if corpus.words[k]]
    others = lexicon.words if len(lexicon.words) <= MAX_UNSPOKEN_WORDS else ()
    return estimate(spoken, order=order, vocabulary=others) if spoken else None
