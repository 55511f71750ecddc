"""Our side of the contest: its gradients against differences, its windows, its inputs and its budget."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.our_models import Layers, Settings, Utterances, error_rate, train, windows
from echolearn.sequences.batch import pack
from echolearn.speech import normalised, warp_matrix, with_context, with_differences

N_IN, CLASSES = 5, 3


def small(**changes: object) -> tuple[Layers, object]:
    rng = np.random.default_rng(0)
    settings = Settings.of({"units": [8, 6], "connections": 3, "input_scaling": 0.8, "inner_scaling": 0.8, **changes})
    model = Layers.draw(settings, N_IN, CLASSES, rng)
    model.take(model.weights() | {"V": rng.standard_normal(model.V.shape)})
    X = [rng.standard_normal((n, N_IN)).astype(np.float32) for n in (9, 7, 7, 4)]
    return model, pack(X, np.float32, [rng.integers(0, CLASSES, len(x)) for x in X])


def loss(model: Layers, batch: object, starts: list | None = None) -> float:
    logits = (model.run(batch, starts=starts)[0] @ model.V).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    P = np.exp(logits)
    P /= P.sum(axis=1, keepdims=True)
    return float(-np.log(P[np.arange(len(P)), batch.T]).mean())


@pytest.mark.parametrize("name", ["0/W", "0/W_rec", "0/bias", "0/leak", "1/W", "1/W_rec", "1/leak", "V"])
@pytest.mark.parametrize("within", [False, True])
def test_gradient_through_both_layers_is_the_slope(name: str, within: bool) -> None:
    """Along a random direction, also in a window that starts in given states."""
    model, batch = small()
    rng = np.random.default_rng(1)
    starts = [rng.standard_normal((4, r.N)).astype(np.float32) for r in model.reservoirs] if within else None
    found = model.gradients(batch, None, starts)[0][name]
    weights = model.weights()
    direction = rng.standard_normal(weights[name].shape)
    step, errors = 2e-3, []
    for sign in (1, -1):
        model.take(weights | {name: weights[name] + sign * step * direction})
        errors.append(loss(model, batch, starts))
    slope = (errors[0] - errors[1]) / (2 * step)
    assert float((found * direction).sum()) == pytest.approx(slope, rel=0.02, abs=2e-4)


def test_windows_pass_on_the_states_in_which_they_end() -> None:
    model, batch = small()
    whole = model.run(batch)[0]
    rows = 0
    for part, starts in windows(batch, 3):
        H_c, seen = model.run(part, starts=starts)
        np.testing.assert_allclose(H_c, whole[rows : rows + part.frames], atol=1e-5)
        starts[:] = [states.H for _, states, _ in seen]
        rows += part.frames
    assert rows == batch.frames


def test_utterances_are_prepared_as_a_corpus_prepares_them_and_warped_before() -> None:
    rng = np.random.default_rng(0)
    cepstra = np.cumsum(rng.standard_normal((50, 13)), axis=0).astype(np.float32)
    plain = with_context(normalised(with_differences(cepstra)))
    utterances = Utterances([cepstra], 0.2)
    np.testing.assert_allclose(utterances.inputs(0), plain, atol=1e-4)
    warped = utterances.inputs(0, rng)
    expected = [with_context(normalised(with_differences(cepstra @ A.T.astype(np.float32)))) for A in utterances.warps]
    assert min(np.abs(warped - e).max() for e in expected) < 1e-3
    assert np.abs(warped - plain).max() > 0.05
    np.testing.assert_allclose(utterances.warps[0], warp_matrix(1 / 1.2, low=133.33, high=6855.5, lifter=0))


def test_training_keeps_to_its_budget_and_answers_with_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = [np.cumsum(rng.standard_normal((40, 13)), axis=0).astype(np.float32) for _ in range(24)]
    y = [(np.diff(x[:, 1], prepend=0) > 0).astype(np.int64) for x in X]
    settings = {"units": [20], "connections": 4, "dropout": 0.1, "spread": 0.05}
    data = {"train": (X[:20], y[:20]), "valid": (X[20:], y[20:])}
    train(
        data, settings, 0.5, 0
    )  # compiles what the small network inside `train` has not compiled, as the contest does
    began = time.process_time()
    answers, facts = train(data, settings, 1.5, 0)
    assert facts["process_seconds"] < 1.7
    assert time.process_time() - began < 60
    found = answers(X[20:])
    assert [p.shape for p in found] == [(40, 2)] * 4
    np.testing.assert_allclose(found[0].sum(axis=1), 1, atol=1e-4)
    assert facts["valid_error"] == error_rate(found, y[20:]) < 40
    with pytest.raises(ValueError, match="unit"):
        train({}, {"unit": 3}, 1, 0)
