"""Recognition of sound while it arrives, in pieces of any size, with a hypothesis after each piece.

A stream computes features, states and the search frame by frame, so that it gives the same tokens however the sound is
cut into pieces. A frame is used as soon as its features are complete. For sound this is five frames later (two
differences over two frames each, and one frame of context), 62.5 ms after the middle of the frame.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.estimators.streams import ClassifierStream
from echolearn.speech._typing import Frames
from echolearn.speech.audio import FULL_SCALE, RATE
from echolearn.speech.features import FRAME_SECONDS
from echolearn.speech.recipe import FeatureRecipe
from echolearn.speech.recognition.committing import CommittingSearch
from echolearn.speech.recognition.decoder import Decoder
from echolearn.speech.recognition.search import Token
from echolearn.speech.recognition.transcription import Update, text_of
from echolearn.speech.samples import Resampler, as_samples, scale_problem
from echolearn.validation import Array

PAUSE = 0.5  # seconds of silence
_SHOWN = 1000  # tokens of a text without a pause
_HEARD = 2 * RATE  # samples after which their scale is looked at


class RecognitionStream:
    """A stream that recognises sound piece by piece, as `Recognizer.stream` returns it.

    Parameters
    ----------
    network : ClassifierStream
        The stream of the network.
    recipe : FeatureRecipe
        The steps from sound to the inputs of the network.
    decoder : Decoder
        The decoder of words or phones.
    silent_states : iterable of int
        The states of silence.
    inputs : int
        Columns of ready features.
    pause : float, optional
        Seconds of silence after which the tokens before it are final. None: tokens are final when all paths of the
        search agree on them.
    rate : int, default 16000
        Samples per second.
    full_scale : float, default 32768.0
        The largest value that samples given as floats may have. Use 1.0 for samples between -1 and 1.

    Examples
    --------
    The recogniser of this example takes ready features:

    >>> import numpy as np
    >>> from echolearn import ESNClassifier
    >>> from echolearn.speech.recognition.recognizer import Recognizer
    >>> from echolearn.speech.recognition.tasks import learn_phone_task
    >>> states, rng = ["n_s2", "ow_s2", "sil_s2"], np.random.default_rng(0)
    >>> y = [np.repeat([2, 0, 1, 2], rng.integers(4, 9, 4)) for _ in range(20)]
    >>> X = [np.eye(3)[one] + 0.1 * rng.normal(size=(len(one), 3)) for one in y]
    >>> network = ESNClassifier(10, learn="none", random_state=0).fit(X, [np.array(states)[one] for one in y])
    >>> stream = Recognizer(network, learn_phone_task(y, states)).stream()
    >>> updates = [stream.push_frames(X[0][:10]), stream.push_frames(X[0][10:]), stream.finish()]
    >>> updates[-1].text
    'n ow'
    """

    def __init__(
        self,
        network: ClassifierStream,
        recipe: FeatureRecipe,
        decoder: Decoder,
        silent_states: Iterable[int],
        *,
        inputs: int,
        pause: float | None = PAUSE,
        rate: int = RATE,
        full_scale: float = FULL_SCALE,
    ) -> None:
        self._network, self._recipe, self._decoder = network, recipe, decoder
        self._features, self._inputs = recipe.stream(), inputs
        self._resampler, self._full_scale = Resampler(rate), full_scale
        self._search = CommittingSearch(decoder.search(), list(silent_states), pause_frames(pause))
        self._segment: deque[Token] = deque(maxlen=_SHOWN)
        self._heard, self._scale_checked = np.empty(0, dtype=np.float32), False
        self._ended = False

    def push(self, samples: ArrayLike) -> Update:
        """Take the next samples and return the hypothesis so far.

        Parameters
        ----------
        samples : array of shape (n_samples,)
            Any number of samples, as integers or floats.

        Returns
        -------
        Update
            The tokens that have become final, and the hypothesis after them.

        Raises
        ------
        ValueError
            If the recogniser takes frames and not sound, the samples are not one channel of finite numbers, or the
            stream has ended.
        """
        self._check_open()
        if not self._recipe.audio:
            raise ValueError(f"this recogniser takes frames ({self._recipe.describe()}); use push_frames")
        found = as_samples(samples, self._full_scale)
        self._look_at_scale(found)
        return self._update(self._features.push_samples(self._resampler.push(found)))

    def push_frames(self, frames: ArrayLike) -> Update:
        """Take the next frames and return the hypothesis so far.

        Parameters
        ----------
        frames : array of shape (n_frames, n_columns)
            Ready features with as many columns as the network has inputs; or the frames that the recipe of the
            features begins with, such as 13 MFCC.

        Returns
        -------
        Update
            The tokens that have become final, and the hypothesis after them.

        Raises
        ------
        ValueError
            If the frames have another number of columns, hold values that are not finite, or the stream has ended.
        """
        self._check_open()
        rows = np.asarray(frames, dtype=np.float32)
        inputs = self._inputs
        if rows.ndim != 2 or rows.shape[1] not in (inputs, self._recipe.columns):
            also = "" if self._recipe.columns in (None, inputs) else f" or (n_frames, {self._recipe.columns})"
            raise ValueError(f"frames have shape {rows.shape}; expected (n_frames, {inputs}){also}")
        if not np.isfinite(rows).all():
            raise ValueError("frames hold NaN or infinity; expected finite numbers")
        if rows.shape[1] == self._recipe.columns:
            rows = self._features.push_frames(rows)
        return self._update(rows)

    def finish(self) -> Update:
        """End the stream and return the last tokens.

        Returns
        -------
        Update
            The remaining tokens, all of which are final.
        """
        self._check_open()
        self._ended = True
        if self._recipe.audio:
            rows = self._features.push_samples(self._resampler.finish())
            rows = np.concatenate([rows, self._features.finish()])
        else:
            rows = self._features.finish()
        final, pause = self._search.advance(self._emissions(rows))
        final += self._search.finish()
        return self._described(final, [], pause)

    def _check_open(self) -> None:
        if self._ended:
            raise ValueError("the stream has ended; start another one with Recognizer.stream()")

    def _look_at_scale(self, samples: NDArray[np.float32]) -> None:
        """Warn, once, if the first two seconds are far too quiet for their scale."""
        if self._scale_checked:
            return
        self._heard = np.concatenate([self._heard, samples])
        if len(self._heard) >= _HEARD:
            problem = scale_problem(self._heard)
            self._heard, self._scale_checked = np.empty(0, dtype=np.float32), True
            if problem is not None:
                warnings.warn(problem, stacklevel=3)

    def _emissions(self, rows: Frames) -> NDArray[np.float32]:
        if len(rows) == 0:
            return np.empty((0, len(self._decoder.priors)), dtype=np.float32)
        probabilities: Array = self._network.predict_proba(rows)
        return self._decoder.emissions(probabilities)

    def _update(self, rows: Frames) -> Update:
        final, pause = self._search.advance(self._emissions(rows))
        return self._described(final, self._search.partial(), pause)

    def _described(self, final: list[Token], partial: list[Token], pause: bool) -> Update:
        self._segment.extend(final)
        seconds = self._search.search.frame * FRAME_SECONDS
        text, stable = text_of([*self._segment, *partial]), text_of(self._segment)
        if pause:
            self._segment.clear()
        return Update(tuple(final), tuple(partial), pause, text, stable, seconds)


def pause_frames(pause: float | None) -> int | None:
    """Return a pause in frames.

    Parameters
    ----------
    pause : float or None
        Seconds, or None.

    Returns
    -------
    int or None
        Frames, or None.
    """
    if pause is None:
        return None
    if not pause > 0:
        raise ValueError(f"pause is {pause}, expected seconds above 0, or None")
    return max(1, round(pause / FRAME_SECONDS))
