"""Answers as JSON, in the form in which the question came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.export.service.models import About, Json, NetworkModel
from echolearn.export.service.parsing import Given
from echolearn.export.service.refusals import not_acceptable
from echolearn.validation import Array


def answer(model: NetworkModel, given: Given) -> Json:
    """Return the answer to a request; what the model refuses is a Refusal."""
    try:
        if model.forecast is not None:
            assert given.steps is not None
            rows = model.forecast(given.sequences, given.many, given.steps)
            many = given.many or (given.sequences is None and len(rows) > 1)
        else:
            assert model.respond is not None
            assert given.sequences is not None
            rows, many = model.respond(given.sequences, given.many), given.many
    except (ValueError, FloatingPointError) as problem:
        raise not_acceptable(str(problem)) from problem
    found = [described(model.about, one) for one in rows]
    return {**classes_of(model.about), **(_side_by_side(found) if many else found[0])}


def classes_of(about: About) -> Json:
    """Return the classes, where there are any."""
    return {"classes": list(about.classes)} if about.classes else {}


def described(about: About, rows: Array) -> Json:
    """Return labels and probabilities, or values, of the rows (k, n_out) of one sequence."""
    if not np.isfinite(rows).all():
        raise not_acceptable("the answers are not finite: X holds numbers that are too large for this model.")
    if about.task not in ("classes", "labels"):
        values = (rows[:, 0] if rows.shape[1] == 1 else rows).tolist()
        return {"values": values if about.per_step else values[0]}
    labels = labels_of(about, rows)
    if about.per_step:
        return {"labels": labels, "probabilities": rows.tolist()}
    return {"labels": labels[0], "probabilities": rows[0].tolist()}


def labels_of(about: About, rows: Array) -> list[object]:
    """Return the most probable class of each row, or the labels that are more probable than not."""
    if about.task == "labels":
        return [[label for label, p in zip(about.classes, row, strict=True) if p > 0.5] for row in rows.tolist()]
    return [about.classes[k] for k in rows.argmax(axis=1).tolist()]


def stream_answer(about: About, step: int, rows: Array, single: bool) -> Json:
    """Return the answer to one frame, or to a chunk of them; step: the number of the first of these frames."""
    key = "probabilities" if about.task in ("classes", "labels") else "values"
    numbers: Json = {key: rows[0].tolist() if single else rows.tolist()}
    if key == "probabilities":
        labels = labels_of(about, rows)
        numbers = {"label": labels[0], **numbers} if single else {"labels": labels, **numbers}
    return {"step": step, **numbers}


def _side_by_side(found: Sequence[Json]) -> Json:
    return {key: [one[key] for one in found] for key in found[0]}
