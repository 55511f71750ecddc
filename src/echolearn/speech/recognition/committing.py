"""A search over a stream: tokens become final when no live path disagrees with them, or at a pause.

Paths of a search share their beginnings. The latest record that all live paths go through (their common ancestor) ends
the part of the hypothesis that can no longer change: its tokens are final. Records that no live path refers to are
removed, so that memory does not grow with the length of a stream.

At a pause, all paths that disagree with the best one about what was said before the pause are given up. Then the
tokens before it are final at once. Whether there is a pause is looked at every tenth of a second of the stream, however
the stream is cut into pieces, so that a recording gives the same tokens in one piece and in many.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numba import njit
from numpy.typing import NDArray

from echolearn.speech.phones import SILENCES
from echolearn.speech.recognition.search import Search, Token

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
