"""Streams of the runtime, one or many."""

import re

import numpy as np
import pytest

import exported
from echolearn import ESNClassifier, ESNRegressor
from exported import DOUBLE, LIMIT
from toys import grouped


@pytest.mark.parametrize("units", [30, 400])
def test_streams_answer_as_predict_does(through_file, units):
    esn = ESNClassifier(units, washout=3, **grouped(DOUBLE, connections=3)).fit(exported.X, exported.LABELS)
    model = through_file(esn)
    stream, many = model.stream(), model.streams(6)
    assert [stream.predict(frame) for frame in exported.X[0]] == esn.predict(exported.X[0]).tolist()
    stream.reset()
    found = [stream.step(frame) for frame in exported.X[0]]
    np.testing.assert_allclose(found, esn.predict_proba(exported.X[0]), **LIMIT)
    found = [many.step(frames) for frames in np.stack(exported.X, axis=1)]
    np.testing.assert_allclose(np.stack(found, axis=1), esn.predict_proba(exported.X), **LIMIT)


def test_streams_can_be_reset_one_by_one(through_file):
    model = through_file(
        ESNRegressor(10, feedback=True, missing="carry", **grouped(DOUBLE)).fit(exported.X, exported.VALUES)
    )
    many, frames = model.streams(3), np.stack(exported.X[:3], axis=1)
    first = [many.step(f) for f in frames[:4]]
    many.reset([1])
    assert many.steps.tolist() == [4, 0, 4]
    again = many.step(frames[0])
    np.testing.assert_allclose(again[1], first[0][1], **LIMIT)
    assert np.abs(again[0] - first[0][0]).max() > 1e-6
    many.reset()
    np.testing.assert_allclose(many.step(frames[0]), first[0], **LIMIT)


def test_a_refused_frame_leaves_the_stream_where_it_is(through_file):
    model = through_file(
        ESNRegressor(10, standardize=False, input_scaling=9.0, **grouped(DOUBLE, activation="identity")).fit(
            exported.X, exported.VALUES
        )
    )
    stream = model.stream(warm_up=exported.X[0][:5])
    before = stream.states[0]
    for bad, message in (([np.nan] * 3, "NaN"), ([1.0], "shape"), (["a"] * 3, "numbers"), ([[1], [2, 3]], "numbers")):
        with pytest.raises(ValueError, match=message):
            stream.step(bad)
    with pytest.raises(FloatingPointError, match="not moved"):
        stream.step([1.7e308, -1.7e308, 1.7e308])
    assert (stream.states[0] == before).all()
    assert stream.steps == 5
    expected = model.predict(exported.X[0], warm_up="cold")[5]
    np.testing.assert_allclose(stream.step(exported.X[0][5]), expected, **LIMIT)


def test_what_needs_the_end_of_a_sequence_has_no_stream(through_file):
    for esn, message in (
        (exported.classifier(bidirectional=True), "bidirectional=True"),
        (exported.deep_classifier(labels=["up", "down"] * 3), "whole series"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            through_file(esn).stream()
