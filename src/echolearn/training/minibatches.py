"""The mini-batches of one epoch, and how many of them are done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from echolearn.modelfile.layout import Facts
from echolearn.sequences.batch import draw_minibatches
from echolearn.validation import Array


@dataclass
class MiniBatches:
    """The mini-batches of one epoch, how many are done, and the error so far, summed over n targets.

    batches: the indices of the sequences of each; before: the state of the generator from which they were drawn.
    """

    batches: list[Array]
    before: Mapping[str, object] | None = None
    done: int = 0
    error: float = 0.0
    n: float = 0.0

    @classmethod
    def draw(cls, lengths: Array, size: int | None, rng: np.random.Generator) -> MiniBatches:
        """Draw the mini-batches of an epoch; with size None, all sequences are one batch and nothing is drawn."""
        if size is None:
            return cls([np.arange(len(lengths))])
        before = rng.bit_generator.state
        return cls(draw_minibatches(lengths, size, rng), before)

    @classmethod
    def resume(cls, state: Facts, lengths: Array, size: int | None, rng: np.random.Generator) -> MiniBatches:
        """Return the mini-batches of a `state_dict`; rng is left in the state after they were drawn."""
        rng.bit_generator.state = state["before"]
        minibatches = cls.draw(lengths, size, rng)
        minibatches.done = int(state["done"])
        minibatches.error, minibatches.n = float(state["error"]), float(state["n"])
        if not minibatches.between:
            raise ValueError(f"{minibatches.done} of {len(minibatches.batches)} mini-batches are done")
        return minibatches

    def state_dict(self) -> Facts:
        """Return the plain values from which `resume` continues."""
        return {"before": self.before, "done": self.done, "error": self.error, "n": self.n}

    def left(self) -> Iterator[tuple[float, Array]]:
        """Yield the mini-batches that are not done, each with the share of the epoch that lies before it."""
        for i, which in list(enumerate(self.batches))[self.done :]:
            yield i / len(self.batches), which

    def add(self, error: float, n: float) -> None:
        """Count one more mini-batch as done, with its total error over n targets."""
        self.done, self.error, self.n = self.done + 1, self.error + error, self.n + n

    @property
    def between(self) -> bool:
        """Whether some mini-batches are done and some are left: only then is there a state inside the epoch to keep."""
        return 0 < self.done < len(self.batches)
