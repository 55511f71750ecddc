"""The parts of the deep network: every variant computes what it says, with the exact gradient, and changes back."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import deep_parts
import measured_tables
import results
import table_text
from deep_parts import BASE, BELOW_READOUT, UNITS_BY_DEPTH, VARIANTS, changed_library, learned
from deepnets import bounds_of, draw, frames
from echolearn import DeepESNClassifier
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.states import _scans
from echolearn.states.deep import Buffers, Dropout, run
from echolearn.training.objectives.deep_network import FlatBatch, deep_gradient
from echolearn.training.optimizers import ADAM_SHARE, WEIGHT_DECAY, Adam, Muon
from reference.deep import normalized, scan

SETTINGS_ONLY = [name for name in VARIANTS if name in ("base", "one-layer") or name.startswith("depth")]
COMPUTED = ["base", *(name for name in VARIANTS if name not in SETTINGS_ONLY)]  # all others compute what the base does
FORMS = {  # what the features of a variant are, where they are not those of the base
    "no-residual": {"residual": False},
    "no-normalisation": {"normalisation": False},
    "tanh": {"activation": np.tanh},
}


def relu(x):
    return np.maximum(x, 0)


def expected_features(weights, X, layers, *, residual=True, normalisation=True, activation=relu):
    """Return the features of one sequence, from the equations."""
    norm = (lambda x: np.array([normalized(row) for row in x])) if normalisation else (lambda x: x)
    x = X @ weights["W_0"] + weights["b_0"]
    for layer in range(1, layers + 1):
        w = {name: weights[f"{layer}/{name}"] for name in ("W_in", "alpha", "theta", "b", "W_out", "b_out")}
        a = 1 / (1 + np.exp(-w["alpha"]))
        H = scan(a, w["theta"], norm(x) @ w["W_in"], np.zeros(x.shape[1]), len(a))
        added = activation(H + w["b"]) @ w["W_out"] + w["b_out"]
        x = x + added if residual else added
    return activation(norm(x) + weights["c"])


def network():
    """Return a network with every weight random, its readout too, and a batch of two sequences."""
    stack, X, rng = draw(5, units=4, layers=2, n_in=2), frames(5, [6, 4], 2), np.random.default_rng(5)
    weights = {**stack.weights, "V": rng.normal(size=(4, 3)), "v": rng.normal(size=3)}
    return stack, weights, FlatBatch(np.concatenate(X), bounds_of(X), rng.integers(3, size=10), None, True)


def library():
    """Return the attributes that variants replace, all of the library that they may touch."""
    return {
        (owner.__name__, name): value for owner in (_scans, Muon, DeepReservoir) for name, value in vars(owner).items()
    }


def speech(count, seed=0):
    """Return sequences and one label per step."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((int(rng.integers(20, 40)), 3)).astype(np.float32) for _ in range(count)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def small(name):
    """Return a variant with few units and layers, for short runs."""
    variant = VARIANTS[name]
    sizes = {"units": 8, "layers": 2} if variant.estimator == "DeepESNClassifier" else {"hidden_units": 8}
    return replace(variant, settings={**variant.settings, **sizes, "epochs": 2})


@pytest.mark.parametrize("name", COMPUTED)
def test_the_features_are_those_of_the_equations(name):
    stack, weights, batch = network()
    with changed_library(VARIANTS[name]):
        seen = run(weights, batch.X, batch.bounds, layers=stack.layers, forward_pairs=stack.units // 2)
    parts = np.split(batch.X, batch.bounds[1:-1])
    expected = [expected_features(weights, X, stack.layers, **FORMS.get(name, {})) for X in parts]
    np.testing.assert_allclose(seen.q, np.concatenate(expected), atol=1e-12)


@pytest.mark.parametrize("name", COMPUTED)
def test_the_gradient_by_finite_differences(name):
    stack, weights, batch = network()

    def error(weights):
        return deep_gradient(weights, stack, batch, Dropout(), Buffers(), softmax=True)

    e = 1e-5
    with changed_library(VARIANTS[name]):
        found = error(weights).gradients
        for weight, value in weights.items():
            expected = np.empty(value.shape)
            for place in np.ndindex(value.shape):
                losses = []
                for s in (e, -e, 2 * e, -2 * e):
                    moved = value.copy()
                    moved[place] += s
                    losses.append(error({**weights, weight: moved}).loss)
                ahead, behind, two_ahead, two_behind = losses
                expected[place] = (8 * (ahead - behind) - (two_ahead - two_behind)) / (12 * e)
            limit = 1e-8 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found[weight], expected, rtol=0, atol=limit, err_msg=weight)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_library_is_as_it_was(name):
    before = library()
    with suppress(RuntimeError), changed_library(VARIANTS[name]):
        untouched = library() == before
        raise RuntimeError
    assert library() == before
    assert untouched == (name in SETTINGS_ONLY)


def test_the_base_is_the_estimator_itself():
    data, variant = {"train": speech(12), "valid": speech(4, 1)}, small("base")
    model = DeepESNClassifier(**variant.settings, random_state=1).fit(*data["train"])
    found = learned(variant, data, 1)
    assert found["valid_error"] == 100 * (1 - model.score(*data["valid"]))
    assert found["weights"] == found["learned_weights"]
    assert (found["epochs"], found["warnings"]) == (2, [])
    assert found["cpu_seconds"] > 0


@pytest.mark.parametrize("name", ["drawn-leaks", "drawn-angles", "drawn-both", "no-rotation", "readout-only"])
def test_drawn_weights_stay_and_all_others_are_learned(name):
    stack, weights, batch = network()
    with changed_library(VARIANTS[name]):
        found = deep_gradient(weights, stack, batch, Dropout(), Buffers(), softmax=True).gradients
        new, _ = Muon(stack.matrices).step(weights, found, 0.02)
    fixed = VARIANTS[name].fixed
    for weight, value in weights.items():
        assert np.array_equal(new[weight], value) == (weight.rpartition("/")[2] in fixed), weight


def test_names_of_fixed_weights_are_those_of_the_network():
    assert {name.rpartition("/")[2] for name in draw(0).weights} == set(BELOW_READOUT)


def test_adam_learns_all_weights():
    stack, weights, batch = network()
    variant = VARIANTS["adam-0.002"]
    alpha = variant.settings["learning"]["step_size"]
    with changed_library(variant):
        found = deep_gradient(weights, stack, batch, Dropout(), Buffers(), softmax=True).gradients
        new, _ = Muon(stack.matrices).step(weights, found, alpha)
    assert alpha * ADAM_SHARE == pytest.approx(0.002)
    moved, _ = Adam().step(weights, found, 0.002)
    for name, value in weights.items():
        decay = WEIGHT_DECAY * 0.002 * value if value.ndim == 2 else 0
        np.testing.assert_allclose(new[name], moved[name] - decay, atol=1e-12)


def test_without_rotation_all_angles_are_zero():
    with changed_library(VARIANTS["no-rotation"]):
        model = DeepESNClassifier(**small("no-rotation").settings).fit(*speech(12))
    angles = [value for name, value in model.network_.reservoir.weights.items() if name.endswith("/theta")]
    assert len(angles) == 2
    assert not np.any(angles)


def test_networks_of_all_depths_have_about_as_many_weights():
    def weights(units, layers, n_in=117, n_out=102):
        return (n_in + 2) * units + layers * (2 * units**2 + 3 * units) + (units + 1) * n_out

    base = weights(BASE["units"], BASE["layers"])
    for layers, units in UNITS_BY_DEPTH.items():
        assert units % 2 == 0
        assert weights(units, layers) == pytest.approx(base, rel=0.02)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_learns(name):
    data = {"train": speech(12), "valid": speech(4, 1)}
    found = learned(small(name), data, 0)
    assert 0 <= found["valid_error"] <= 100
    assert 0 < found["learned_weights"] <= found["weights"]
    is_timed = name in SETTINGS_ONLY or name.startswith("adam")
    assert (found["cpu_seconds"] is not None) == is_timed


def test_tanh_refuses_dropout():
    h = np.zeros((1, 2))
    with pytest.raises(ValueError, match="dropout=0"):
        deep_parts.tanh(h, h[0], 1, 0, 1.0, h)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of results, and runs that return their number instead of learning."""
    calls = []

    def numbered(function, path, name, seed):
        calls.append((name, seed))
        return row_of(name, seed, 20.0 + len(calls))

    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    monkeypatch.setattr(deep_parts, "in_own_process", numbered)
    monkeypatch.setattr(deep_parts, "data_file", lambda path: path)
    monkeypatch.setattr(deep_parts.protocol, "data_digest", lambda path: "digest")
    monkeypatch.setattr(deep_parts.protocol, "code_fingerprint", lambda code: "code")
    return tmp_path, calls


def row_of(name, seed, error):
    """Return what a run returns."""
    seconds = 30.0 if VARIANTS[name].is_timed else None
    sizes = {"weights": 1000, "learned_weights": 1000, "epochs": 8}
    return {"valid_error": error, **sizes, "cpu_seconds": seconds, "warnings": []}


def measure(*arguments):
    """Run the program and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        deep_parts.main(["--data", "none", *arguments])
    return ended.value.code


def test_runs_that_are_in_the_file_are_not_repeated(folder, monkeypatch, capsys):
    path, calls = folder
    assert measure("--only", "base", "--jobs", "1") == 0
    assert calls == [("base", 0), ("base", 1)]
    assert "base, seed 1: done, 0 min left" in capsys.readouterr().out
    measure("--only", "tanh", "base", "--jobs", "1")
    assert calls[2:] == [("tanh", 0), ("tanh", 1)]
    content = json.loads((path / "deep_parts.json").read_text())
    assert [(row["variant"], row["seed"]) for row in content["rows"]] == calls
    assert {"commit", "versions", "machine", "defaults"} <= set(content)
    monkeypatch.setattr(deep_parts.protocol, "code_fingerprint", lambda code: "other")
    monkeypatch.setattr(results, "PROCESS", "another")
    measure("--only", "tanh", "--jobs", "1")
    content = json.loads((path / "deep_parts.json").read_text())
    assert [row["valid_error"] for row in content["rows"]] == [21.0, 22.0, 25.0, 26.0]
    assert [row["valid_error"] for row in content["superseded"][0]["rows"]] == [23.0, 24.0]


def test_a_run_that_fails_is_reported_and_has_no_row(folder, monkeypatch, capsys):
    def broken(function, path, name, seed):
        raise RuntimeError("no memory")

    monkeypatch.setattr(deep_parts, "in_own_process", broken)
    assert measure("--only", "base") == 1
    assert "no memory" in capsys.readouterr().err
    assert not (folder[0] / "deep_parts.json").exists()


def test_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    assert measured_tables.deep_parts() == "*Not run yet.*"
    errors = {"base": 25.0, "adam-0.0007": 27.0, "adam-0.002": 26.0, "no-residual": 24.5}
    rows = [
        {**row_of(name, seed, error + seed / 10), "variant": name, "seed": seed}
        | {"label": VARIANTS[name].label, "best_of": VARIANTS[name].best_of}
        for name, error in errors.items()
        for seed in (0, 1)
    ]
    rows[-1]["warnings"] = ["epoch 1 diverged"]
    (tmp_path / "deep_parts.json").write_text(json.dumps({"rows": rows}))
    base, adam, residual = measured_tables.deep_parts().splitlines()[2:]
    assert base == "| the base: 6 layers of 96 units | 25.05 (25.00 to 25.10) |  | 1,000 | 8 | 30 |"
    label = "Adam instead of Muon, step size 0.002, the best of 2 on valid"
    assert adam == f"| {label} | 26.05 (26.00 to 26.10) | +1.00 | 1,000 | 8 | 30 |"
    label = "without residual connections, with warnings while learning"
    assert residual == f"| {label} | 24.55 (24.50 to 24.60) | −0.50 | 1,000 | 8 | – |"
