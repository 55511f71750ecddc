"""A pipeline of transformers and a network as one model, and the arrays and facts of its steps in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sklearn.base import BaseEstimator

from echolearn.fitting.model import FittedModel
from echolearn.modelfile.layout import Entry, Facts
from echolearn.modelfile.schema import arrays_of, check_contents
from echolearn.modelfile.values import as_truth
from echolearn.persistence.transformers import check_transformer, outputs, restore_transformer, transformer_parts
from echolearn.validation import Array


class Step(NamedTuple):
    """A fitted transformer of scikit-learn; framewise: whether `FrameWise` applies it to each sequence."""

    name: str
    transformer: BaseEstimator
    framewise: bool


@dataclass(frozen=True)
class FittedPipeline:
    """Transformers and the model of the network after them; name: of the network among the steps."""

    steps: Sequence[Step]
    name: str
    model: FittedModel


def step_parts(steps: Sequence[Step]) -> tuple[dict[str, Array], list[Facts]]:
    """Return the arrays of all steps under their numbers, and the facts of each."""
    arrays: dict[str, Array] = {}
    facts: list[Facts] = []
    for number, step in enumerate(steps):
        fitted, known = transformer_parts(step.transformer)
        arrays |= {f"{number}/{array}": value for array, value in fitted.items()}
        facts.append({"name": step.name, "framewise": step.framewise, **known})
    return arrays, facts


def check_file(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those of a network or a pipeline with these facts."""
    check_contents(entries, facts, check_transformer)


def restore_steps(tensors: Mapping[str, Array], facts: Facts) -> list[Step]:
    """Return the fitted transformers; refuse those that do not take what the one before gives."""
    steps: list[Step] = []
    for number, known in enumerate(facts["steps"]):
        transformer = restore_transformer(arrays_of(str(number), tensors), known)
        passed_on = outputs(steps[-1].transformer) if steps else known["features"]
        if known["features"] != passed_on:
            raise ValueError(f"step {number} takes {known['features']} features; the one before gives {passed_on}")
        steps.append(Step(step_name(known["name"]), transformer, as_truth(known["framewise"])))
    return steps


def checked_pipeline(pipeline: FittedPipeline) -> FittedPipeline:
    """Return the pipeline if its network takes what its steps give, and no two steps have one name."""
    model = pipeline.model
    if pipeline.steps:
        passed_on = outputs(pipeline.steps[-1].transformer)
        if model.inputs.n_features != passed_on:
            raise ValueError(f"the network takes {model.inputs.n_features} features; the steps give {passed_on}")
    names = [step.name for step in pipeline.steps] + [pipeline.name]
    if len(set(names)) != len(names):
        raise ValueError("two steps have one name")
    return pipeline


def step_name(name: object) -> str:
    """Return the name of a step, or raise ValueError."""
    if not isinstance(name, str) or not name or "__" in name:
        raise ValueError(f"{name!r:.40} is not the name of a step")
    return name
