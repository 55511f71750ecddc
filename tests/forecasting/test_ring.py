"""Networks that serve every block of points on a ring: against loops over points, and against whole networks."""

import numpy as np
import pytest
from sklearn.base import clone

from echolearn import ESNForecaster, load
from echolearn.datasets import lorenz_96
from echolearn.exceptions import ExportError
from echolearn.export import export_model
from toys import grouped

FIELD = lorenz_96(230, dims=12, discard=100)
HOW = {
    "hidden_units": 25, "connections": 4, "washout": 10, "solver": "qr", "learn": "none", "spectral_radius": 0.3,
    "leak": 0.9, "input_scaling": 0.2, "bias_scaling": 0.5, "validation_fraction": 0.3, "ridge": 1e-6,
}  # fmt: skip


def fitted(series=FIELD, **settings):
    return ESNForecaster(**grouped({**HOW, **settings})).fit(series)


def plain_loop(esn, series, steps, size, reach):
    """Return predict(steps, warm_up=series) by loops over points: each block has a network of its own, all alike."""
    r, U = esn.reservoir_, esn.network_.readout.U
    z = (series - esn.target_mean_) / esn.target_scale_
    dims, blocks = z.shape[1], range(0, z.shape[1], size)
    h, out = {b: np.zeros(r.N) for b in blocks}, []
    for t in range(len(z) - 1 + steps):
        x = z[t] if t < len(z) else out[-1]
        new = np.empty(dims)
        for b in blocks:
            v = np.array([x[(b + i) % dims] for i in range(-reach, size + reach)])
            h[b] = (1 - r.leak) * h[b] + r.leak * np.tanh(r.W.T @ v + r.W_rec.toarray() @ h[b] + r.bias)
            new[b : b + size] = U.T @ np.concatenate([h[b], v, [1.0]])
        if t >= len(z) - 1:
            out.append(new)
    return np.array(out) * esn.target_scale_ + esn.target_mean_


@pytest.mark.parametrize(
    ("neighbourhood", "size", "reach"), [(np.int64(2), 1, 2), (0, 1, 0), ((3, 2), 3, 2), ([4, 4], 4, 4)]
)
@pytest.mark.parametrize("solver", ["qr", "gram"])
def test_a_forecast_is_a_loop_over_points(neighbourhood, size, reach, solver):
    esn = fitted(neighbourhood=neighbourhood, solver=solver)
    np.testing.assert_allclose(esn.predict(8), plain_loop(esn, FIELD, 8, size, reach), atol=1e-6)
    other = FIELD[50:150]
    np.testing.assert_allclose(esn.predict(8, warm_up=other), plain_loop(esn, other, 8, size, reach), atol=1e-6)
    assert esn.method_ == "closed_loop"
    assert esn.n_features_in_ == 12


def test_a_turned_ring_is_forecast_turned():
    for neighbourhood, by in ((2, 5), ((3, 2), 6)):
        esn, turned = (fitted(series, neighbourhood=neighbourhood) for series in (FIELD, np.roll(FIELD, by, axis=1)))
        np.testing.assert_allclose(turned.predict(5), np.roll(esn.predict(5), by, axis=1), atol=1e-6)
        np.testing.assert_allclose(turned.residuals_, np.roll(esn.residuals_, by, axis=1), atol=1e-9)
    whole, turned = (fitted(series) for series in (FIELD, np.roll(FIELD, 5, axis=1)))
    assert not np.allclose(turned.predict(5), np.roll(whole.predict(5), 5, axis=1))


def test_one_block_that_sees_everything_is_the_whole_network():
    # one scale for all columns is the only difference, and a field of equal columns has none
    t = np.arange(200)[:, None]
    field = np.sin(2 * np.pi * (t / 20 + np.arange(4) / 4)) + 0.3 * np.sin(2 * np.pi * (t / 10 + np.arange(4) / 4))
    whole, block = fitted(field), fitted(field, neighbourhood=(4, 0))
    np.testing.assert_allclose(block.predict(30), whole.predict(30), atol=1e-8)
    np.testing.assert_allclose(block.recurrent_weights_.toarray(), whole.recurrent_weights_.toarray())


def test_learning_lowers_the_error_around_the_ring():
    esn = fitted(neighbourhood=2, learn="both", epochs=10, ridge="auto", loop_steps=3)
    rows = esn.history_
    assert {row["loop_steps"] for row in rows} == {0.0, 1.0, 3.0}
    assert min(row["error"] for row in rows) < 0.5 * rows[0]["error"]
    assert max(row["valid_time"] for row in rows) > rows[0]["valid_time"]


def test_updates_scores_and_intervals_follow_the_ring():
    esn = fitted(FIELD[:200], neighbourhood=2)
    later = clone(esn).fit(FIELD[:200]).update(FIELD[200:210]).update(FIELD[210:220])
    np.testing.assert_allclose(later.predict(5), esn.predict(5, warm_up=FIELD[:220]), atol=1e-8)
    forecasts = [plain_loop(esn, FIELD[:t], 2, 1, 2)[-1] for t in range(212, 229)]
    errors, _ = esn.forecast_.errors(FIELD, None, 2)
    np.testing.assert_allclose(errors[-17:] * esn.target_scale_, forecasts - FIELD[213:230], atol=1e-6)
    lower, upper = esn.forecast_interval(5, 0.8, n_paths=40)
    paths = esn.forecast_paths(5, 40)
    assert paths.shape == (40, 5, 12)
    np.testing.assert_allclose(lower, np.quantile(paths, 0.1, axis=0), atol=1e-9)
    assert (lower < upper).all()
    assert len(fitted([FIELD[:100], FIELD[100:]], neighbourhood=2).predict(3)) == 2


def test_files_clones_and_settings_keep_the_neighbourhood(tmp_path):
    esn = fitted(neighbourhood=(3, 2))
    esn.save(tmp_path / "ring.safetensors")
    again = load(tmp_path / "ring.safetensors")
    np.testing.assert_array_equal(again.predict(9), esn.predict(9))
    np.testing.assert_array_equal(again.update(FIELD[:3]).predict(9), esn.update(FIELD[:3]).predict(9))
    assert tuple(again.get_params()["neighbourhood"]) == (3, 2)
    changed = clone(esn).set_params(neighbourhood=1).fit(FIELD)
    assert changed.input_weights_.shape == (3, 25)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"neighbourhood": -1}, "neighbourhood=-1; expected None, a whole number"),
        ({"neighbourhood": (0, 1)}, "neighbourhood="),
        ({"neighbourhood": (5, 1)}, "blocks that divide the columns"),
        ({"neighbourhood": 6}, "at most all of them"),
        ({"neighbourhood": 1, "method": "direct"}, "leave it out, or set method='closed_loop'"),
    ],
)
def test_neighbourhoods_that_do_not_fit_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        fitted(**settings)


def test_what_has_no_neighbours_is_refused(tmp_path):
    with pytest.raises(ValueError, match="exogenous is given with neighbourhood="):
        ESNForecaster(**grouped({**HOW, "neighbourhood": 1})).fit(FIELD, exogenous=FIELD[:, :1])
    with pytest.raises(ValueError, match="columns of the series differ in scale"):
        fitted(FIELD * np.arange(1, 13), neighbourhood=1)
    esn = fitted(neighbourhood=1)
    for name in ("ring.h", "ring.onnx"):
        with pytest.raises(ExportError, match="neighbourhood= cannot be exported"):
            export_model(esn, tmp_path / name)
