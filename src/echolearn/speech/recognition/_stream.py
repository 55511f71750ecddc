"""Recognition of sound while it arrives, in pieces of any size, with a hypothesis after each piece.

A stream computes features, states and the search frame by frame, so that it gives the same tokens however the sound is
cut into pieces. A frame is used as soon as its features are complete. For sound this is five frames later (two
differences over two frames each, and one frame of context), 62.5 ms after the middle of the frame.

Tokens become final when no live path disagrees with them: up to the latest record that all live paths go through.
Records that no live path refers to are removed, so that memory does not grow with the length of a stream. At a pause,
all paths that disagree with the best one about what was said before it are given up, and the tokens before it are final
at once. Whether there is a pause is looked at every tenth of a second of the stream, however it is cut into pieces.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.execution.compilation import cached_njit
from echolearn.speech._audio import FULL_SCALE, RATE_HZ, Resampler, as_samples, scale_problem
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import FRAME_SECONDS, Frames
from echolearn.speech._phone_set import SILENCES
from echolearn.speech.recognition._decoder import Decoder
from echolearn.speech.recognition._search import Search, Token
from echolearn.speech.recognition._transcription import Update, text_of
from echolearn.streams._estimator import ClassifierStream
from echolearn.validation import Array

PAUSE_SECONDS = 0.5  # of silence
NO_RATE = "samples do not say how many there are per second; give rate=16000, or the rate at which they were recorded"
PAUSE_GRID_FRAMES = 10  # between two looks for a pause
_MAX_TEXT_TOKENS = 1000  # without a pause
_SCALE_CHECK_SAMPLES = 2 * RATE_HZ  # after which their scale is looked at
_MAX_SPARE_RECORDS = 10_000  # before those that nobody needs are removed


class RecognitionStream:
    """A stream that recognises sound piece by piece, as `Recognizer.stream` returns it; `Recognizer` has an example.

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
    pause
        As in `stream`.
    rate, full_scale
        As in `recognize`.
    """

    def __init__(
        self,
        network: ClassifierStream,
        recipe: FeatureRecipe,
        decoder: Decoder,
        silent_states: Iterable[int],
        *,
        inputs: int,
        pause: float | None = PAUSE_SECONDS,
        rate: int | None = None,
        full_scale: float = FULL_SCALE,
    ) -> None:
        self._network, self._recipe, self._decoder = network, recipe, decoder
        self._features, self._inputs = recipe.stream(), inputs
        self._resampler, self._full_scale = None if rate is None else Resampler(rate), full_scale
        self._search = StreamSearch(decoder.search(), list(silent_states), pause_frames(pause))
        self._segment: deque[Token] = deque(maxlen=_MAX_TEXT_TOKENS)
        self._first_samples, self._scale_checked = np.empty(0, dtype=np.float32), False
        self._ended = False

    def push(self, samples: ArrayLike) -> Update:
        """Take the next samples and return the hypothesis so far.

        Parameters
        ----------
        samples : array of shape (n_samples,)
            Any number of samples of one channel, as integers or floats.

        Returns
        -------
        Update
            The tokens that have become final, and the hypothesis after them.
        """
        self._check_open()
        if not self._recipe.audio:
            raise ValueError(f"this recogniser takes frames ({self._recipe.describe()}); use push_frames")
        if self._resampler is None:
            raise ValueError(NO_RATE)
        values = as_samples(samples, self._full_scale)
        self._check_scale(values)
        return self._update(self._features.push_samples(self._resampler.push(values)))

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
        """End the stream and return an `Update` with the remaining tokens, all of which are final."""
        self._check_open()
        self._ended = True
        if self._resampler is not None and self._recipe.audio:
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

    def _check_scale(self, samples: NDArray[np.float32]) -> None:
        """Warn, once, if the first two seconds are far too quiet for their scale."""
        if self._scale_checked:
            return
        self._first_samples = np.concatenate([self._first_samples, samples])
        if len(self._first_samples) >= _SCALE_CHECK_SAMPLES:
            problem = scale_problem(self._first_samples)
            self._first_samples, self._scale_checked = np.empty(0, dtype=np.float32), True
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
    """Return a pause, given in seconds, in frames."""
    if pause is None:
        return None
    if not pause > 0:
        raise ValueError(f"pause is {pause}, expected seconds above 0, or None")
    return max(1, round(pause / FRAME_SECONDS))


@cached_njit()
def _common(records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32]) -> int:
    """Return the latest record that all live paths go through; -1 if there is none."""
    marked = np.zeros(count, dtype=np.bool_)
    paths = 0
    for node in range(len(scores)):
        if scores[node] > -np.inf:
            r = record[node]
            if r < 0:
                return -1
            if not marked[r]:
                marked[r] = True
                paths += 1
    for r in range(count - 1, -1, -1):  # a record comes after the one before it
        if marked[r]:
            if paths == 1:
                return r
            before = records[r, 0]
            if before < 0:
                return -1
            if marked[before]:
                paths -= 1
            marked[before] = True
    return -1


@cached_njit()
def _trimmed(
    records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32], root: int
) -> int:
    """Keep the records between `root` and the live paths, numbered anew; return how many there are. The root becomes
    record 0, without a token; its frame is where the next token begins."""
    kept = np.zeros(count, dtype=np.bool_)
    for node in range(len(scores)):
        if scores[node] > -np.inf and record[node] >= 0:
            kept[record[node]] = True
    for r in range(count - 1, root, -1):
        if kept[r] and records[r, 0] >= 0:
            kept[records[r, 0]] = True
    number = np.full(count, -1, dtype=np.int64)
    n_kept = 0
    for r in range(max(root, 0), count):
        if kept[r] or r == root:
            before = records[r, 0]
            number[r] = n_kept
            records[n_kept] = records[r]
            records[n_kept, 0] = number[before] if before >= 0 and r != root else -1
            if r == root:
                records[n_kept, 1] = -1
            n_kept += 1
    for node in range(len(scores)):
        record[node] = number[record[node]] if scores[node] > -np.inf and record[node] >= 0 else -1
    return n_kept


@cached_njit()
def _give_up(
    records: NDArray[np.int64], count: int, record: NDArray[np.int64], scores: NDArray[np.float32], through: int
) -> None:
    """Give up all live paths that do not go through a record."""
    descends = np.zeros(count, dtype=np.bool_)
    for r in range(through, count):
        descends[r] = r == through or (records[r, 0] >= 0 and descends[records[r, 0]])
    for node in range(len(scores)):
        if scores[node] > -np.inf and (record[node] < 0 or not descends[record[node]]):
            scores[node] = -np.inf


class StreamSearch:
    """A search that hands out tokens as soon as they are final; pause: frames of silence after which they are. Without
    a pause all tokens together are those of the best path of a search over the whole."""

    def __init__(self, search: Search, silent_states: Collection[int], pause: int | None = None) -> None:
        self.search, self.pause = search, pause
        self._silent = np.isin(search.graph.emission, sorted(silent_states))
        self._spoken = np.array([name not in SILENCES for name in search.graph.tokens])
        self._root = -1
        # where the last spoken token ends: of the final ones, and of those before the last pause
        self._end_of_speech = self._paused = 0

    def advance(self, frames: NDArray[np.float32]) -> tuple[list[Token], bool]:
        """Take more scaled log probabilities; return tokens that became final, and whether a pause was found."""
        final: list[Token] = []
        paused = False
        while len(frames):
            size = min(len(frames), PAUSE_GRID_FRAMES - self.search.frame % PAUSE_GRID_FRAMES)
            self.search.advance(frames[:size])
            frames = frames[size:]
            if self.search.frame % PAUSE_GRID_FRAMES == 0 and self._commit_at_a_pause():
                paused = True
                final += self._committed()
            elif self.search.count > _MAX_SPARE_RECORDS:
                final += self._committed()
        return final + self._committed(), paused

    def partial(self) -> list[Token]:
        """Return the tokens of the best live path after those that are final, without a token in progress."""
        return self.search.tokens(int(self.search.record[self._best()]))

    def finish(self) -> list[Token]:
        """Return the last tokens: of the best path that ends here, or else of the best live path."""
        tokens, score = self.search.best()
        return self.partial() if score == -np.inf else tokens

    def _best(self) -> int:
        return int(np.argmax(self.search.scores[: self.search.graph.emitting]))

    def _commit_at_a_pause(self) -> bool:
        """Return whether the best path has come to a pause; if so, give up paths with other tokens before it."""
        if self.pause is None:
            return False
        s, best = self.search, self._best()
        if not self._silent[best]:
            return False
        r = int(s.record[best])
        while r >= 0 and not (s.records[r, 1] >= 0 and self._spoken[s.records[r, 1]]):
            r = int(s.records[r, 0])
        end = int(s.records[r, 2]) if r >= 0 else self._end_of_speech
        if end == self._paused or s.frame - end < self.pause:
            return False
        self._paused = end
        if r >= 0:
            _give_up(s.records, s.count, s.record, s.scores, r)
        return True

    def _committed(self) -> list[Token]:
        """Return tokens that have become final, and forget the records that are no longer needed."""
        s = self.search
        common = _common(s.records, s.count, s.record, s.scores)
        tokens = s.tokens(common) if common > self._root else []
        self._end_of_speech = max([self._end_of_speech, *(token.end for token in tokens if token.name not in SILENCES)])
        if common > self._root or s.count > _MAX_SPARE_RECORDS:
            s.count = _trimmed(s.records, s.count, s.record, s.scores, common)
            self._root = min(common, 0)
        return tokens
