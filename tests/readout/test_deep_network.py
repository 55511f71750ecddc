"""The fitted deep network: outputs, states and ends beside loops over the equations; ensembles; running on."""

from dataclasses import replace

import numpy as np
import pytest

import reference.deep as ref
from deepnets import draw, forward_pairs, frames
from echolearn.readout import deep_network as module
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Readout
from echolearn.sequences.dataset import Dataset
from echolearn.states.closed_loop import Start
from threadpools import thread_pool

LENGTHS = (7, 1, 12, 4)


def data(X, dtype="float64"):
    return Dataset(X, (), None, True, np.dtype(dtype))


def network(*stacks, seed=0, n_out=2, per_step=True):
    U = np.random.default_rng([17, seed]).normal(size=(sum(s.units for s in stacks) + 1, n_out))
    return DeepNetwork(stacks, Readout(U, False, 0.1), per_step)


def by_hand(net, X, h0=None):
    """Return outputs and states of each sequence, from the equations."""
    found, first = [], 0
    for stack in net.stacks:
        part = None if h0 is None else h0[:, first : first + stack.N]
        first += stack.N
        how = {"layers": stack.layers, "forward_pairs": forward_pairs(stack), "h0": part}
        found.append(ref.deep(stack.weights, X, **how))
    U, outputs = net.readout.U, []
    for i in range(len(X)):
        q = np.hstack([one[i][0] for one in found])
        outputs.append((q if net.per_step else ref.pooled_mean(q)) @ U[:-1] + U[-1])
    return outputs, [np.hstack([one[i][1] for one in found]) for i in range(len(X))]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("per_step", [True, False])
@pytest.mark.parametrize(
    "stacks",
    [
        [draw(1)],
        [draw(2, bidirectional=True)],
        [draw(3, units=4), draw(4, units=4), draw(5, units=4)],
        [draw(6, units=4, layers=1), draw(7, units=6, layers=3)],
    ],
    ids=["one", "both directions", "three", "unlike"],
)
def test_outputs_and_states_are_those_of_the_equations(stacks, per_step, dtype):
    net, X, limit = network(*stacks, per_step=per_step), frames(1, LENGTHS), 1e-12 if dtype == "float64" else 2e-5
    h0 = np.random.default_rng(1).normal(size=(len(X), net.N))
    for start in (None, h0):
        outputs, states = by_hand(net, X, start)
        given = None if start is None else Start(start)
        found = (*net.outputs(data(X, dtype), given), *net.states(data(X, dtype), given))
        for a, b in zip(found, (*outputs, *states), strict=True):
            assert a.dtype == dtype
            np.testing.assert_allclose(a, b, atol=limit * max(1, np.abs(b).max()))
        ends = net.end(data(X, dtype), given).h
        np.testing.assert_allclose(ends, [H[-1] for H in states], atol=limit * max(1, np.abs(ends).max()))


def test_what_continues_from_an_end_is_what_runs_on():
    net, X = network(draw(8), draw(9)), frames(2, (20, 30, 25))
    cuts = (5, 29, 1)
    whole = net.outputs(data(X))
    begin = net.end(data([x[:n] for x, n in zip(X, cuts, strict=True)]))
    rest = net.outputs(data([x[n:] for x, n in zip(X, cuts, strict=True)]), begin)
    for a, b, n in zip(whole, rest, cuts, strict=True):
        np.testing.assert_allclose(b, a[n:], atol=1e-12)
    further = net.end(data([x[n:] for x, n in zip(X, cuts, strict=True)]), begin)
    np.testing.assert_allclose(further.h, net.end(data(X)).h, atol=1e-12)


@pytest.mark.parametrize("per_step", [True, False])
def test_an_ensemble_is_the_mean_of_its_members(per_step):
    members = [network(draw(seed), seed=seed, per_step=per_step) for seed in (1, 2, 3)]
    U = np.vstack([*(one.readout.U[:-1] / 3 for one in members), np.mean([one.readout.U[-1:] for one in members], 0)])
    both = DeepNetwork(tuple(one.stacks[0] for one in members), Readout(U, False, 0.0), per_step)
    X = data(frames(3, LENGTHS))
    for i, Y in enumerate(both.outputs(X)):
        np.testing.assert_allclose(Y, np.mean([one.outputs(X)[i] for one in members], axis=0), atol=1e-12)
    assert sum(one.N for one in members) == both.N
    assert both.reservoir is members[0].stacks[0]


def test_groups_and_threads_change_no_answer(monkeypatch):
    net, X = network(draw(4)), data(frames(4, [9, 3, 30, 1, 12] * 3), "float32")
    alone = [net.outputs(data([x], "float32"))[0] for x in X.X]
    found = []
    for frames_at_once in (5, 40, 4096):
        monkeypatch.setattr(module, "MAX_FRAMES_PER_GROUP", frames_at_once)
        for count in (1, 2):
            with thread_pool(count):
                found.append(net.outputs(X))
        for a, b in zip(found[-1], found[-2], strict=True):
            np.testing.assert_array_equal(a, b)
    for one in found:
        for a, b in zip(one, alone, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_its_line_says_what_it_is():
    one, several = network(draw(1)), network(draw(1), draw(2), per_step=False)
    assert repr(one) == "<DeepNetwork: 2 layers, 8 units, 3 inputs, 2 outputs>"
    assert "2 networks" in repr(several)
    assert "one answer per sequence" in repr(several)
    assert "8 units" in repr(one.reservoir)
    each = 3 * 8 + 8 + 2 * (8 * 8 + 4 + 4 + 8 + 8 * 8 + 8) + 8 + 8 * 2  # W_0, b_0, layers, c, V
    assert (one.size, several.size) == (each + 2, 2 * each + 2)
    assert replace(one, per_step=False).view.washout == 0
