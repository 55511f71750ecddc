"""Recognition of sound while it arrives, in pieces of any size, with a hypothesis after each piece.

A stream computes features, states and the search frame by frame, so that it gives the same tokens however the sound is
cut into pieces. A frame is used as soon as its features are complete. For sound this is five frames later (two
differences over two frames each, and one frame of context), 62.5 ms after the middle of the frame.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection, Iterable

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from echolearn.estimators.streams import ClassifierStream
from echolearn.speech._typing import Frames
from echolearn.speech.audio import FULL_SCALE, RATE
from echolearn.speech.features import FRAME_SECONDS
from echolearn.speech.phones import SILENCES
from echolearn.speech.recipe import FeatureRecipe
from echolearn.speech.recognition._decoder import Decoder
from echolearn.speech.recognition._search import Search, Token
from echolearn.speech.recognition._transcription import Update, text_of
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
    >>> from echolearn.speech.recognition._recognizer import Recognizer
    >>> from echolearn.speech.recognition._parts import learn_phone_task
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


# ---------------- A search over a stream


GRID = 10  # frames between two looks for a pause
_SPARE = 10_000  # records that may be there before those that nobody needs are removed


@njit(cache=True)
def _common(records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32]) -> int:
    """Return the latest record that all live paths go through; -1 if there is none."""
    marked = np.zeros(count, dtype=np.bool_)
    paths = 0
    for node in range(len(scores)):
        if scores[node] > -np.inf:
            own = record[node]
            if own < 0:
                return -1
            if not marked[own]:
                marked[own] = True
                paths += 1
    for own in range(count - 1, -1, -1):  # a record comes after the one before it
        if marked[own]:
            if paths == 1:
                return own
            before = records[own, 0]
            if before < 0:
                return -1
            if marked[before]:
                paths -= 1
            marked[before] = True
    return -1


@njit(cache=True)
def _trimmed(
    records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32], root: int
) -> int:
    """Keep the records between `root` and the live paths, numbered anew; return how many there are.

    The root becomes record 0, without a token; its frame is where the next token begins.
    """
    kept = np.zeros(count, dtype=np.bool_)
    for node in range(len(scores)):
        if scores[node] > -np.inf and record[node] >= 0:
            kept[record[node]] = True
    for own in range(count - 1, root, -1):
        if kept[own] and records[own, 0] >= 0:
            kept[records[own, 0]] = True
    number = np.full(count, -1, dtype=np.int64)
    found = 0
    for own in range(max(root, 0), count):
        if kept[own] or own == root:
            before = records[own, 0]
            number[own] = found
            records[found] = records[own]
            records[found, 0] = number[before] if before >= 0 and own != root else -1
            if own == root:
                records[found, 1] = -1
            found += 1
    for node in range(len(scores)):
        record[node] = number[record[node]] if scores[node] > -np.inf and record[node] >= 0 else -1
    return found


@njit(cache=True)
def _give_up(
    records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32], through: int
) -> None:
    """Give up all live paths that do not go through a record."""
    descends = np.zeros(count, dtype=np.bool_)
    for own in range(through, count):
        descends[own] = own == through or (records[own, 0] >= 0 and descends[records[own, 0]])
    for node in range(len(scores)):
        if scores[node] > -np.inf and (record[node] < 0 or not descends[record[node]]):
            scores[node] = -np.inf


class CommittingSearch:
    """A search that hands out tokens as soon as they are final.

    Parameters
    ----------
    search : Search
        A search that has taken no frame yet.
    silent_states : collection of int
        The states of silence, as nodes of the graph emit them.
    pause : int, optional
        Frames of silence after which what was said before is final. By default tokens are final only when no live path
        disagrees with them, and together they are those of the best path of a search over the whole.
    """

    def __init__(self, search: Search, silent_states: Collection[int], pause: int | None = None) -> None:
        self.search, self.pause = search, pause
        self._silent = np.isin(search.graph.emission, sorted(silent_states))
        self._spoken = np.array([name not in SILENCES for name in search.graph.tokens])
        self._root = -1
        self._said = self._paused = 0  # ends of the last spoken tokens: that is final, and that a pause was found after

    def advance(self, frames: NDArray[np.float32]) -> tuple[list[Token], bool]:
        """Take more frames.

        Parameters
        ----------
        frames : array of shape (n_frames, n_states), float32
            Scaled log probabilities, as `Decoder.emissions` returns them.

        Returns
        -------
        final : list of Token
            The tokens that have become final.
        pause : bool
            Whether a pause was found in these frames: once after everything that was said.
        """
        final: list[Token] = []
        paused = False
        while len(frames):
            size = min(len(frames), GRID - self.search.frame % GRID)
            self.search.advance(frames[:size])
            frames = frames[size:]
            if self.pause is not None and self.search.frame % GRID == 0 and self._commit_at_a_pause(self.pause):
                paused = True
                final += self._committed()
            elif self.search.count > _SPARE:
                final += self._committed()
        return final + self._committed(), paused

    def partial(self) -> list[Token]:
        """Return the tokens of the best live path after those that are final.

        Returns
        -------
        list of Token
            The tokens; later frames may change them. A token in progress is not among them.
        """
        return self.search.tokens(int(self.search.record[self._best()]))

    def finish(self) -> list[Token]:
        """End the stream.

        Returns
        -------
        list of Token
            The tokens of the best path that ends here after those that are final; if the beam has lost all paths that
            can end, those of the best live path.
        """
        tokens, score = self.search.best()
        return self.partial() if score == -np.inf else tokens

    def _best(self) -> int:
        return int(np.argmax(self.search.scores[: self.search.graph.emitting]))

    def _commit_at_a_pause(self, pause: int) -> bool:
        """Return whether the best path has just come to a pause; if so, give up paths with other tokens before it."""
        s, best = self.search, self._best()
        if not self._silent[best]:
            return False
        own = int(s.record[best])
        while own >= 0 and not (s.records[own, 1] >= 0 and self._spoken[s.records[own, 1]]):
            own = int(s.records[own, 0])
        end = int(s.records[own, 2]) if own >= 0 else self._said
        if end == self._paused or s.frame - end < pause:
            return False
        self._paused = end
        if own >= 0:
            _give_up(s.records, s.count, s.record, s.scores, own)
        return True

    def _committed(self) -> list[Token]:
        """Return tokens that have become final, and forget the records that are no longer needed."""
        s = self.search
        common = _common(s.records, s.count, s.record, s.scores)
        tokens = s.tokens(common) if common > self._root else []
        self._said = max([self._said, *(token.end for token in tokens if token.name not in SILENCES)])
        if common > self._root or s.count > _SPARE:
            s.count = _trimmed(s.records, s.count, s.record, s.scores, common)
            self._root = min(common, 0)
        return tokens
