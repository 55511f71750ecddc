"""Streams of a reservoir and a readout, frame by frame."""

import numpy as np
import pytest

import reference as ref
from echolearn import Reservoir
from echolearn.readout import RLS
from echolearn.streams import Stream


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu", "identity"])
@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("direct", [True, False])
def test_a_bare_stream_against_loops(activation, feedback, direct):
    rng = np.random.default_rng(3)
    w = ref.network(rng, N=5, n_in=2, n_out=3, feedback=feedback)
    if feedback:
        w["W_fb"] *= 0.3
    U, h0, x = 0.3 * rng.normal(size=(6 + 2 * direct, 3)), rng.normal(size=5), rng.normal(size=(9, 2))
    stream = Stream(Reservoir(**w, activation=activation, initial_state=h0), U, direct=direct)
    slow = ref.run_with_feedback(
        {**w, "W_fb": w["W_fb"] if feedback else np.zeros((5, 3))}, x, U, activation, direct=direct, h0=h0
    )
    np.testing.assert_allclose(stream.predict(x), slow, rtol=1e-10, atol=1e-12)
    if not feedback:
        np.testing.assert_allclose(stream.state, ref.states(w, x, activation, h0=h0)[:, -1], rtol=1e-10)


def test_wrong_readouts_are_named():
    r = Reservoir.random(2, 4, n_feedback=2, random_state=0)
    with pytest.raises(ValueError, match=r"U has shape \(5, 2\); expected \(7, outputs\)"):
        Stream(r, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="W_fb takes 2 outputs, but U gives 1"):
        Stream(r, np.zeros((7, 1)))


def test_a_readout_that_diverges_stops_before_it_is_spoiled():
    r = Reservoir(W=np.ones((1, 2)), W_rec=np.eye(2), activation="identity")
    stream = Stream.untrained(r, 1, online=RLS(forgetting=1e-200, ridge=1.0))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="has diverged; nothing was learned"):
        stream.learn(np.ones((50, 1)), np.ones(50))
    assert np.isfinite(stream.readout_weights).all()
