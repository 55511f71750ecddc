"""Recognisers of speech, which turn sound into phones and words, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from echolearn import __version__
from echolearn.display.facts import counted, one_line
from echolearn.display.progress import StageProgress
from echolearn.estimators import DeepESNClassifier, ESNClassifier, load
from echolearn.estimators._functions import AnyEstimator, estimator_of
from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import RECOGNIZER, Facts, entries_of
from echolearn.modelfile.reader import file_kind, read_tensors
from echolearn.modelfile.schema import NETWORK, arrays_of
from echolearn.modelfile.values import from_json, to_json
from echolearn.modelfile.writer import storable, write_tensors
from echolearn.persistence.load import restore_network
from echolearn.persistence.save import model_parts
from echolearn.speech._audio import FULL_SCALE, as_samples, refuse_path, resample, scale_problem
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import Frames
from echolearn.speech.recognition._decoder import Decoder, PhoneTask, WordTask, word_task
from echolearn.speech.recognition._file import check_arrays, restore_tasks, task_parts
from echolearn.speech.recognition._lexicon import Lexicon, restricted
from echolearn.speech.recognition._ngrams import NGramModel, word_list
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._stream import NO_RATE, PAUSE_SECONDS, RecognitionStream, StreamSearch, pause_frames
from echolearn.speech.recognition._transcription import Transcription
from echolearn.validation import Array, check_path

StateClassifier = ESNClassifier | DeepESNClassifier  # a network for phone states
_Item = TypeVar("_Item")
_UTTERANCES_PER_CALL = 32  # of the network
_MISFIT_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


class Recognizer:
    """A recogniser of phones and words in recordings, in features and in streams (docs/howto/recognition.md).

    `learn_recognizer` makes one from a fitted network and a corpus; `load_recognizer` reads one from its file.

    Parameters
    ----------
    model : ESNClassifier or DeepESNClassifier
        A network that was fitted to one phone state per frame. It may be an ensemble, and may run in both directions of
        time.
    phones : PhoneTask
        The phones of the states, the probabilities of their sequences, and the weights of the decoder.
    words : WordTask, optional
        The words that are spelled in these phones. By default only phones are recognised.
    features : FeatureRecipe, optional
        The steps from sound to the inputs of the network. By default the recogniser takes ready features only.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from echolearn import ESNClassifier
    >>> from echolearn.speech import Corpus
    >>> from echolearn.speech.recognition import learn_recognizer, load_recognizer
    >>> states, rng = ("n_s2", "ow_s2", "sil_s2"), np.random.default_rng(0)
    >>> y = [np.repeat([2, 0, 1, 2], rng.integers(4, 9, 4)) for _ in range(20)]
    >>> X = [np.eye(3)[one] + 0.1 * rng.normal(size=(len(one), 3)) for one in y]
    >>> parts, names = ("train",) * 16 + ("valid",) * 4, tuple("abcdefghijklmnopqrst")
    >>> corpus = Corpus("toy", X, y, parts, names, names, states, audio=("",) * 20)
    >>> network = ESNClassifier(10, learn="none", random_state=0).fit(X[:16], [np.array(states)[one] for one in y[:16]])
    >>> recognizer = learn_recognizer(network, corpus)
    >>> recognizer.recognize(X[19]).text
    'n ow'
    >>> stream = recognizer.stream()
    >>> updates = [stream.push_frames(X[19][:10]), stream.push_frames(X[19][10:]), stream.finish()]
    >>> updates[-1].text
    'n ow'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recognizer.save(f"{folder}/toy.safetensors")
    ...     load_recognizer(f"{folder}/toy.safetensors").recognize(X[19]).text
    'n ow'
    """

    def __repr__(self) -> str:
        words = "no words" if self.words is None else counted(len(self.words.lexicon.pronunciations), "word")
        states, phones = counted(len(self.phones.states), "state"), counted(len(self.phones.phones), "phone")
        return one_line(self, [repr(self.model), states, phones, words, self.features.describe()])

    def __init__(
        self,
        model: StateClassifier,
        phones: PhoneTask,
        words: WordTask | None = None,
        features: FeatureRecipe | None = None,
    ) -> None:
        if not isinstance(model, StateClassifier) or not model.per_step_:
            raise ValueError(f"{type(model).__name__} does not classify every frame; expected a classifier of states")
        if len(model.classes_) != len(phones.states):
            raise ValueError(f"the network knows {len(model.classes_)} states, the phones have {len(phones.states)}")
        if model.classes_.dtype.kind == "U" and tuple(model.classes_.tolist()) != phones.states:
            raise ValueError("the states of the phones are not the network's classes in their order")
        self.model, self.phones, self.words = model, phones, words
        self.features = FeatureRecipe.ready() if features is None else features

    @cached_property
    def phone_decoder(self) -> Decoder:
        """The decoder of phones."""
        return self.phones.decoder()

    @cached_property
    def word_decoder(self) -> Decoder | None:
        """The decoder of words; None if the recogniser has no words."""
        return None if self.words is None else self.words.decoder(self.phones)

    def with_words(self, lexicon: Lexicon | None = None, language_model: NGramModel | None = None) -> Recognizer:
        """Return a recogniser of other words with the same network.

        Parameters
        ----------
        lexicon : Lexicon, optional
            The pronunciations of the words. By default those that the recogniser has.
        language_model : NGramModel, optional
            The probabilities of sequences of words. By default the one that the recogniser has. Words of the lexicon
            that it does not contain cannot be recognised. Without any model all words are equally probable.

        Returns
        -------
        Recognizer
            A recogniser of these words. It keeps the weights of the decoder of words, if there was one.
        """
        if language_model is None and self.words is not None:
            language_model = self.words.language_model
        return self._with(self._lexicon() if lexicon is None else lexicon, language_model)

    def _lexicon(self) -> Lexicon:
        if self.words is None:
            raise ValueError("this recogniser knows no words: give a lexicon with their pronunciations")
        return self.words.lexicon

    def _with(self, lexicon: Lexicon, language_model: NGramModel | None) -> Recognizer:
        task = word_task(self.phones, lexicon, language_model)
        words = task if self.words is None else replace(task, weights=self.words.weights)
        return Recognizer(self.model, self.phones, words, self.features)

    def with_word_list(self, words: Iterable[str], *, repeat: bool = True) -> Recognizer:
        """Return a recogniser of a few words, all of the same probability.

        Parameters
        ----------
        words : iterable of str
            The words, such as digits or letters. The lexicon must have them.
        repeat : bool, default True
            Whether an utterance is any sequence of the words. Otherwise it is exactly one of them.

        Returns
        -------
        Recognizer
            A recogniser of these words.
        """
        lexicon = restricted(self._lexicon(), words)
        return self._with(lexicon, word_list(lexicon.words, repeat=repeat))

    def recognize(
        self,
        utterance: ArrayLike,
        *,
        words: bool | None = None,
        confidences: bool = False,
        pause: float | None = None,
        rate: int | None = None,
        full_scale: float = FULL_SCALE,
    ) -> Transcription:
        """Return the phones and words that are recognised in one utterance.

        Parameters
        ----------
        utterance : array of shape (n_samples,) or (n_frames, n_columns)
            Samples of a recording; or ready features with as many columns as the network has inputs; or the frames
            that the recipe of the features begins with, such as 13 MFCC.
        words : bool, optional
            Whether to recognise words beside phones. By default words are recognised if the recogniser has any.
        confidences : bool, default False
            Whether to compute the probability that each token is right. It takes several times as long.
        pause : float, optional
            Seconds of silence after which the tokens before it are final, as in a stream. By default all tokens depend
            on the whole utterance.
        rate : int, optional
            Samples per second, from 8,000 to 192,000; 16,000 for those that `read_audio` returns. It is required for
            samples, which do not say it themselves. Rates other than 16 kHz are resampled.
        full_scale : float, default 32768.0
            The largest value that samples given as floats may have. Use 1.0 for samples between -1 and 1.

        Returns
        -------
        Transcription
            Phones, and words if there are any, with their times.
        """
        inputs = self.inputs(utterance, rate=rate, full_scale=full_scale)
        return self.recognize_all({"": inputs}, words=words, confidences=confidences, pause=pause)[""]

    def recognize_all(
        self,
        utterances: Mapping[str, ArrayLike] | Iterable[tuple[str, ArrayLike]],
        *,
        words: bool | None = None,
        confidences: bool = False,
        pause: float | None = None,
        rate: int | None = None,
        full_scale: float = FULL_SCALE,
        progress: StageProgress | None = None,
        total: int | None = None,
    ) -> dict[str, Transcription]:
        """Return the phones and words that are recognised in many utterances.

        Parameters
        ----------
        utterances : mapping of str to array, or iterable of (str, array)
            The utterances by name, each as `recognize` takes it; an iterable is read 32 at a time.
        words, confidences, pause, rate, full_scale
            As in `recognize`.
        progress : callable, optional
            Called as `progress(text, done, total)`.
        total : int, optional
            The number of utterances, for the progress of an iterable without a length.

        Returns
        -------
        dict of str to Transcription
            The result for each utterance, by its name.
        """
        words = self._wants_words(words)
        if confidences and pause is not None:
            raise ValueError("confidences need the whole utterance; give pause=None")
        if isinstance(utterances, Mapping):
            total, utterances = len(utterances), utterances.items()
        transcriptions: dict[str, Transcription] = {}
        for batch in batches(utterances):
            inputs = {name: self.inputs(utterance, rate=rate, full_scale=full_scale) for name, utterance in batch}
            for name, P in zip(inputs, self.probabilities(list(inputs.values())), strict=True):
                phones = self._tokens(self.phone_decoder, P, confidences, pause)
                decoder = self.word_decoder if words else None
                spoken = None if decoder is None else self._tokens(decoder, P, confidences, pause)
                transcriptions[name] = Transcription(phones, spoken, len(P))
                if progress is not None:
                    progress("recognising", len(transcriptions), total or len(transcriptions))
        return transcriptions

    def nbest(
        self,
        utterance: ArrayLike,
        n: int,
        *,
        words: bool | None = None,
        rate: int | None = None,
        full_scale: float = FULL_SCALE,
    ) -> list[tuple[str, float]]:
        """Return the best hypotheses of one utterance.

        Parameters
        ----------
        utterance
            As in `recognize`.
        n : int
            The largest number of hypotheses to return.
        words : bool, optional
            Whether the hypotheses are of words or of phones. By default they are of words if the recogniser has any.
        rate, full_scale
            As in `recognize`.

        Returns
        -------
        list of (str, float)
            The text and log score of each hypothesis, the best one first. The texts of phones include silences.
        """
        inputs = self.inputs(utterance, rate=rate, full_scale=full_scale)
        lattice = self._decoder(words).lattice(self.probabilities([inputs])[0])
        return [(" ".join(hypothesis.tokens), hypothesis.score) for hypothesis in lattice.nbest(n)]

    def probabilities(self, inputs: Sequence[Frames]) -> list[Array]:
        """Return the probabilities of the states that the network computes for many utterances.

        Parameters
        ----------
        inputs : sequence of array of shape (n_frames, n_features)
            Ready features of each utterance.

        Returns
        -------
        list of array of shape (n_frames, n_states)
            The probabilities, in the order of `phones.states`.
        """
        return list(self.model.predict_proba(list(inputs), warm_up="cold"))

    def inputs(self, utterance: ArrayLike, *, rate: int | None = None, full_scale: float = FULL_SCALE) -> Frames:
        """Return the inputs of the network for one utterance.

        Parameters
        ----------
        utterance, rate, full_scale
            As in `recognize`.

        Returns
        -------
        array of shape (n_frames, n_features), float32
            Ready features.
        """
        refuse_path(utterance)
        values = np.asarray(utterance)
        if values.ndim == 1:
            if rate is None:
                raise ValueError(NO_RATE)
            samples = as_samples(values, full_scale)
            problem = scale_problem(samples)
            if problem is not None:
                raise ValueError(problem)
            return self.features.of_samples(resample(samples, rate))
        expected, columns = self.model.n_features_in_, self.features.columns
        if values.ndim != 2 or values.shape[1] not in (expected, columns):
            also = "" if columns in (None, expected) else f", or (n_frames, {columns})"
            sound = "samples (n_samples,), or " if self.features.audio else ""
            raise ValueError(
                f"the utterance has shape {values.shape}; expected {sound}features (n_frames, {expected}){also}"
            )
        rows = values.astype(np.float32)
        return rows if values.shape[1] == expected else self.features.of_frames(rows)

    def stream(
        self,
        *,
        words: bool | None = None,
        pause: float | None = PAUSE_SECONDS,
        rate: int | None = None,
        full_scale: float = FULL_SCALE,
    ) -> RecognitionStream:
        """Return a stream that recognises sound while it arrives.

        Together the final tokens are those that `recognize` returns with the same `pause`, however the sound is cut
        into pieces. A network that runs in both directions of time, and features that are normalised per utterance,
        require the end of the speech and are refused with a ValueError.

        Parameters
        ----------
        words : bool, optional
            Whether to recognise words or phones. By default it recognises words if the recogniser has any.
        pause : float, default 0.5
            Seconds of silence after which the tokens before it are final. None: tokens are final when all paths of the
            search agree on them.
        rate, full_scale
            As in `recognize`; a stream of frames needs no rate.

        Returns
        -------
        RecognitionStream
            A stream at the start of its input.
        """
        decoder = self._decoder(words)
        return RecognitionStream(
            self.model.stream(warm_up="cold"),
            self.features,
            decoder,
            self.phones.silent_states,
            inputs=self.model.n_features_in_,
            pause=pause,
            rate=rate,
            full_scale=full_scale,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Save the network, phones, words, weights and the recipe of the features to one file.

        Parameters
        ----------
        path : str or path-like
            The file (.safetensors). It appears when it is complete, and replaces one that exists.
        """
        place = check_path("path", path)
        arrays, known = model_parts(self.model.model_)
        tensors, facts = task_parts(self.phones, self.words, self.features)
        tensors = {name: storable(name, value) for name, value in tensors.items()}
        tensors |= {f"{NETWORK}/{name}": value for name, value in arrays.items()}
        facts |= {"echolearn": __version__, NETWORK: known}
        check_arrays(entries_of(tensors), facts)
        _restored(dict(tensors), from_json(to_json(facts)))
        write_tensors(place, tensors, facts, RECOGNIZER)

    def _decoder(self, words: bool | None) -> Decoder:
        """Return the decoder of words, if they are wanted, or else that of phones."""
        return (self.word_decoder if self._wants_words(words) else None) or self.phone_decoder

    def _wants_words(self, words: bool | None) -> bool:
        if words and self.words is None:
            raise ValueError(
                "this recogniser knows no words: train it with a lexicon (echolearn train --for recognition --lexicon "
                "FILE), or give one now"
            )
        return self.words is not None if words is None else words

    def _tokens(self, decoder: Decoder, P: Array, confidences: bool, pause: float | None) -> tuple[Token, ...]:
        """Return the tokens of an utterance with these probabilities; pause: in seconds, as of a stream."""
        if pause is None:
            return tuple(decoder.decode(P, confidences=confidences))
        search = StreamSearch(decoder.search(), self.phones.silent_states, pause_frames(pause))
        final, _ = search.advance(decoder.emissions(P))
        return (*final, *search.finish())


def batches(utterances: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield as many utterances at a time as the network sees in one call."""
    rest = iter(utterances)
    while batch := list(islice(rest, _UTTERANCES_PER_CALL)):
        yield batch


def load_recognizer(path: str | PathLike[str]) -> Recognizer:
    """Read a recogniser from the file that its `save` method, or `echolearn train --for recognition`, wrote.

    Parameters
    ----------
    path : str or path-like
        The file. One that is damaged, or not a recogniser that this version can read, is a ModelFileError. No code in
        a file is executed.

    Returns
    -------
    Recognizer
        The recogniser.

    See Also
    --------
    Recognizer : What is returned; it has an example.
    """
    place = check_path("path", path)
    tensors, facts = read_tensors(place, RECOGNIZER, check_arrays)
    try:
        return _restored(tensors, facts)
    except _MISFIT_ERRORS as problem:
        raise ModelFileError(f"{place} is not a recogniser that this version understands: {problem}") from problem


def _restored(tensors: dict[str, Array], facts: Facts) -> Recognizer:
    """Return the recogniser of a file's content, or raise an error of the usual kinds where something does not fit."""
    model = estimator_of(restore_network(arrays_of(NETWORK, tensors), facts[NETWORK]))
    if not isinstance(model, StateClassifier):
        raise ValueError(f"a network of the kind {type(model).__name__}")
    phones, words, recipe = restore_tasks(tensors, facts)
    return Recognizer(model, phones, words, recipe)


def load_any(path: str | PathLike[str]) -> Recognizer | AnyEstimator | Pipeline:
    """Load the recogniser, estimator or pipeline of a file."""
    return load_recognizer(path) if file_kind(check_path("path", path)) == RECOGNIZER else load(path)
