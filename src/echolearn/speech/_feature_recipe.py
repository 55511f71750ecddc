"""The steps from sound to the inputs of a network, for recordings and for streams; a recogniser is saved with them.

    samples -> 13 MFCC -> 39 with differences -> normalised -> stacked with their context

The features of a frame in a stream depend on a fixed number of later frames, for the differences and the context.
Normalisation by the mean and deviation of the whole utterance depends on all frames. So a stream requires those of the
training part ("corpus"), or of the frames so far ("running").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import one_line
from echolearn.modelfile.layout import Facts
from echolearn.modelfile.values import as_count, as_truth
from echolearn.speech._features import (
    CEPSTRA,
    CONTEXT_FRAMES,
    DELTA_FRAMES,
    FRAME_SECONDS,
    SHIFT_SAMPLES,
    WINDOW_SAMPLES,
    Frames,
    RunningScale,
    frame_count,
    mfcc,
    normalised,
    slopes,
    with_context,
    with_differences,
)

NORMALISATIONS = {
    "utterance": "normalised per utterance",
    "corpus": "normalised by the training part",
    "running": "normalised by the frames so far",
    "none": "not normalised",
}
Scale = tuple[NDArray[np.float64], NDArray[np.float64]]  # mean and deviation of the training part


@dataclass(frozen=True, eq=False)
class FeatureRecipe:
    """The steps that turn sound at 16 kHz (with `audio`), or else frames, into the inputs of a network. Mean and
    deviation are those of the whole utterance, of the training part ("corpus"), or of the frames so far."""

    audio: bool = True
    differences: bool = True
    normalise: str = "utterance"
    context: int = CONTEXT_FRAMES
    scale: Scale | None = None

    def __repr__(self) -> str:
        return one_line(self, [self.describe()])

    def __post_init__(self) -> None:
        if self.normalise not in NORMALISATIONS:
            raise ValueError(f"normalise is {self.normalise!r}, expected one of {', '.join(NORMALISATIONS)}")
        if (self.scale is not None) != (self.normalise in ("corpus", "running")):
            raise ValueError(f"normalise={self.normalise!r} needs {'no' if self.scale else 'a'} mean and deviation")
        if self.context < 1 or self.context % 2 == 0:
            raise ValueError(f"context is {self.context}, expected an odd number of frames such as 1, 3 or 5")
        if self.audio and not self.differences:
            raise ValueError("a recipe that begins with sound appends differences")

    @classmethod
    def ready(cls) -> FeatureRecipe:
        """Return the recipe without any step, of features that are used as they are."""
        return cls(audio=False, differences=False, normalise="none", context=1)

    def facts(self) -> Facts:
        """Return the recipe as plain values for a model's file, which `from_facts` takes."""
        plain: Facts = {name: getattr(self, name) for name in ("audio", "differences", "normalise", "context")}
        return plain if self.scale is None else {**plain, "scale": [part.tolist() for part in self.scale]}

    @classmethod
    def from_facts(cls, facts: Facts) -> FeatureRecipe:
        """Return the recipe from the values that `facts` returned; ValueError if they do not describe a recipe."""
        try:
            scale = None
            if "scale" in facts:
                mean, deviation = (np.asarray(part, np.float64) for part in facts["scale"])
                finite = mean.shape == deviation.shape and np.isfinite([mean, deviation]).all()
                if mean.ndim != 1 or not finite or deviation.min(initial=0) < 0:
                    raise ValueError("mean and deviation of the features are not usable")
                scale = mean, deviation
            audio, differences = as_truth(facts["audio"]), as_truth(facts["differences"])
            return cls(audio, differences, facts["normalise"], as_count(facts["context"]), scale)
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"the model does not say how its features are made: {problem}") from problem

    @property
    def look_ahead(self) -> int:
        """The number of later frames that the features of a frame depend on, apart from normalisation by utterance."""
        return 2 * DELTA_FRAMES * self.differences + self.context // 2

    @property
    def latency(self) -> float:
        """The time in seconds from the middle of a frame until its features can be computed."""
        return self.look_ahead * FRAME_SECONDS + (
            WINDOW_SAMPLES / SHIFT_SAMPLES * FRAME_SECONDS / 2 if self.audio else 0.0
        )

    @property
    def columns(self) -> int | None:
        """The number of columns of the frames that the recipe begins with; None if it is not known."""
        if self.audio:
            return CEPSTRA
        return None if self.scale is None else len(self.scale[0]) // (3 if self.differences else 1)

    def describe(self) -> str:
        """Return a description of the recipe in one line."""
        if self.look_ahead == 0 and self.normalise == "none" and not self.audio:
            return "ready features, used as they are"
        first = "13 MFCC of sound at 16 kHz" if self.audio else "given frames"
        differences = " with differences" if self.differences else ""
        return f"{first}{differences}, {NORMALISATIONS[self.normalise]}, context of {self.context}"

    def of_samples(self, samples: NDArray[np.float32]) -> Frames:
        """Return the features of a recording at 16 kHz on the 16-bit scale."""
        if not self.audio:
            raise ValueError(f"samples were given, but this recogniser begins with frames ({self.describe()})")
        if frame_count(len(samples)) == 0:
            raise ValueError(f"the recording holds {len(samples)} samples, a frame needs {WINDOW_SAMPLES}")
        return self.of_frames(mfcc(samples))

    def of_frames(self, frames: Frames) -> Frames:
        """Return the features of the frames of one utterance, which are MFCC if the recipe begins with sound."""
        rows = with_differences(frames) if self.differences else frames
        if self.normalise == "utterance":
            rows = normalised(rows)
        elif self.scale is not None:
            running = self.normalise == "running"
            rows = RunningScale(*self.scale).apply(rows) if running else normalised(rows, *self.scale)
        return with_context(rows, self.context)

    def stream(self) -> FeatureStream:
        """Return a stream that computes features piece by piece, which normalisation per utterance does not allow."""
        if self.normalise == "utterance":
            raise ValueError(
                "features are normalised by mean and deviation of the whole utterance, which no stream has seen; "
                "train with normalise='running' or 'corpus' (echolearn train --normalise running) to stream"
            )
        return FeatureStream(self)


class _Window:
    """Applies a function of frames and their neighbours to frames as they come; the first and last are repeated."""

    def __init__(self, spread: int, function: Callable[[Frames], Frames]) -> None:
        self.spread, self.function = spread, function
        self.kept: Frames | None = None

    def push(self, rows: Frames) -> Frames:
        """Return the values that are complete."""
        if self.kept is None:
            if len(rows) == 0:
                return self.function(np.zeros((2 * self.spread, rows.shape[1]), dtype=np.float32))
            self.kept = np.repeat(rows[:1], self.spread, axis=0)
        rows = np.concatenate([self.kept, rows])
        if len(rows) < 2 * self.spread:
            self.kept = rows
            return self.function(np.zeros((2 * self.spread, rows.shape[1]), dtype=np.float32))
        self.kept = rows[len(rows) - 2 * self.spread :]
        return self.function(rows)

    def finish(self, columns: int) -> Frames:
        """Return the values at the end."""
        last = np.zeros((0, columns), np.float32) if self.kept is None else self.kept[-1:].repeat(self.spread, axis=0)
        return self.push(last)


class FeatureStream:
    """Computes the features of sound or frames piece by piece; all pieces together give those of the whole."""

    def __init__(self, recipe: FeatureRecipe) -> None:
        self.recipe = recipe
        self._samples = np.empty(0, dtype=np.float32)
        self._running = RunningScale(*recipe.scale) if recipe.normalise == "running" and recipe.scale else None
        self._columns: int | None = recipe.columns
        self._windows: list[_Window] = []

    def push_samples(self, samples: NDArray[np.float32]) -> Frames:
        """Take the next samples at 16 kHz on the 16-bit scale and return the features that they complete."""
        samples = np.concatenate([self._samples, samples])
        count = frame_count(len(samples))
        self._samples = samples[count * SHIFT_SAMPLES :]
        return self.push_frames(mfcc(samples) if count else np.empty((0, CEPSTRA), dtype=np.float32))

    def push_frames(self, frames: Frames) -> Frames:
        """Take the next frames (MFCC if the recipe begins with sound) and return the features that they complete."""
        if self._columns is None:
            self._columns = frames.shape[1]
        if not self._windows:
            self._windows = self._made(self._columns)
        rows = frames
        for window in self._windows[:-1]:
            rows = window.push(rows)
        return self._windows[-1].push(self._normalised(rows))

    def finish(self) -> Frames:
        """End the stream and return its last features; the last frame is repeated beyond the end."""
        if not self._windows:
            return np.empty((0, 0), dtype=np.float32)
        rows = np.empty((0, self._columns or 0), dtype=np.float32)
        for window in self._windows[:-1]:
            more = window.push(rows)
            rows = np.concatenate([more, window.finish(rows.shape[1])])
        last = self._windows[-1]
        rows = self._normalised(rows)
        return np.concatenate([last.push(rows), last.finish(rows.shape[1])])

    def _normalised(self, rows: Frames) -> Frames:
        if self._running is not None:
            return self._running.apply(rows)
        return rows if self.recipe.scale is None else normalised(rows, *self.recipe.scale)

    def _made(self, columns: int) -> list[_Window]:
        """Return the windows of the recipe: two of differences, if there are any, and the context."""
        side = self.recipe.context // 2

        def sloped(rows: Frames) -> Frames:
            inside = rows[DELTA_FRAMES : len(rows) - DELTA_FRAMES]
            return np.concatenate([inside, slopes(rows[:, -columns:])], axis=1)

        def stacked(rows: Frames) -> Frames:
            count = len(rows) - 2 * side
            return np.concatenate([rows[k : k + count] for k in range(self.recipe.context)], axis=1)

        differences = [_Window(DELTA_FRAMES, sloped) for _ in range(2 * self.recipe.differences)]
        return [*differences, _Window(side, stacked)]
