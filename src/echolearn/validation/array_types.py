"""Types that every package uses."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array = NDArray[Any]  # an array of any dtype

# Sequences or targets as users hold them: an array, a data frame, a list of arrays of different lengths, or a source of
# sequences on a cluster. `echolearn.sequences.opening` finds out which.
SequencesLike: TypeAlias = object
# What an estimator answers, in the form of X: one array, or one per sequence.
Answers: TypeAlias = Array | list[Array]
