"""The names of answers that go back as a Series or a data frame: those of the targets, or of the classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from echolearn.sequences.forms import is_pandas
from echolearn.validation.array_types import Answers

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "prediction"  # the name of a Series of answers where y had none


def target_names(y: object) -> list[str]:
    """Return the name of a Series of targets, or the columns of a data frame of them; [] where they have none."""
    if isinstance(y, (list, tuple)) and y:
        y = y[0]
    if not is_pandas(y):
        return []
    names = list(cast("pd.DataFrame", y).columns) if hasattr(y, "columns") else [cast("pd.Series", y).name]
    return names if all(isinstance(name, str) for name in names) else []


def with_names(answers: Answers, names: Sequence[Hashable]) -> Answers:
    """Return answers whose Series and data frames have these names, as far as their number fits."""
    parts: Sequence[object] = [answers]
    if isinstance(answers, Mapping):
        parts = list(answers.values())
    elif isinstance(answers, list):
        parts = answers
    for part in parts:
        if not is_pandas(part):
            continue
        if not hasattr(part, "columns"):
            if len(names) == 1:
                cast("pd.Series", part).name = names[0]
        elif len(cast("pd.DataFrame", part).columns) == len(names):
            cast("pd.DataFrame", part).columns = list(names)
    return answers
