"""An epoch of mini-batches that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from echolearn._typing import Array
from echolearn.sequences.batching import draw_minibatches


@dataclass
class MiniBatches:
    """Which mini-batches an epoch has, how many are done, and the error so far, summed over n targets.

    before: the state of the random generator from which their order was drawn.
    """

    batches: list[Array]
    before: Any = None
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
    def resume(cls, state: dict[str, Any], lengths: Array, size: int | None, rng: np.random.Generator) -> MiniBatches:
        """Return mini-batches from their `state_dict`; rng is left where their order was drawn."""
        rng.bit_generator.state = state["before"]
        minibatches = cls.draw(lengths, size, rng)
        minibatches.done, minibatches.error, minibatches.n = (
            int(state["done"]),
            float(state["error"]),
            float(state["n"]),
        )
        if not minibatches.between:
            raise ValueError(f"{minibatches.done} of {len(minibatches.batches)} mini-batches are done")
        return minibatches

    def state_dict(self) -> dict[str, Any]:
        return {"before": self.before, "done": self.done, "error": self.error, "n": self.n}

    def left(self) -> Iterator[tuple[float, Array]]:
        """Yield the mini-batches that are not done, each with the share of the epoch before it."""
        for i, which in list(enumerate(self.batches))[self.done :]:
            yield i / len(self.batches), which

    def add(self, error: float, n: float) -> None:
        """Count one more mini-batch as done."""
        self.done, self.error, self.n = self.done + 1, self.error + error, self.n + n

    @property
    def between(self) -> bool:
        """Whether some mini-batches are done and some are left: only then is a checkpoint inside the epoch worth it."""
        return 0 < self.done < len(self.batches)
