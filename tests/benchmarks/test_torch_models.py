"""The networks of PyTorch that echolearn is compared with; skipped where PyTorch is not installed."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import torch_models  # noqa: E402
import torch_peers  # noqa: E402

TCN = {"channels": 8, "blocks": 3, "second_kernel": 2}
KINDS = {
    "tcn": TCN,
    "tcn_batch": TCN | {"norm": "batch"},
    "tcn_both": TCN | {"kind": "tcn_both"},
    **{kind: {"units": 6, "layers": 2} for kind in ("rnn", "gru", "lstm", "bgru", "blstm")},
}
CAUSAL = ("tcn", "tcn_batch", "rnn", "gru", "lstm")


def network_of(name):
    settings = torch_models.DEFAULTS | {"kind": name.split("_")[0]} | KINDS[name]
    return torch_models.network_of(settings, 5, 4, seed=0).eval()


def outputs(network, frames, lengths):
    with torch.inference_mode():
        return network(frames, torch.tensor(lengths))


@pytest.fixture
def frames():
    return torch.from_numpy(np.random.default_rng(1).standard_normal((20, 3, 5)).astype(np.float32))


@pytest.mark.parametrize("name", KINDS)
def test_only_networks_of_both_directions_look_ahead(name, frames):
    network, changed = network_of(name), frames.clone()
    changed[12:] += 1.0
    before, after = outputs(network, frames, [20] * 3), outputs(network, changed, [20] * 3)
    assert torch.equal(before[:12], after[:12]) == (name in CAUSAL)
    assert not torch.equal(before[12:], after[12:])


@pytest.mark.parametrize("name", KINDS)
def test_earlier_frames_matter(name, frames):
    network, changed = network_of(name), frames.clone()
    changed[5] += 1.0
    assert not torch.equal(outputs(network, frames, [20] * 3)[9], outputs(network, changed, [20] * 3)[9])


@pytest.mark.parametrize("name", KINDS)
def test_padding_does_not_change_outputs(name, frames):
    network = network_of(name)
    together = outputs(network, frames, [20, 14, 9])
    for i, length in enumerate([20, 14, 9]):
        alone = outputs(network, frames[:length, i : i + 1], [length])
        torch.testing.assert_close(together[:length, i : i + 1], alone, rtol=1e-5, atol=1e-6)


def test_blstm_is_that_of_pytorch(frames):
    network = network_of("blstm")
    whole = torch.nn.LSTM(5, 6, num_layers=2, bidirectional=True)
    for i, directions in enumerate(network.layers):
        for layer, suffix in zip(directions, ("", "_reverse"), strict=True):
            for name, weights in layer.named_parameters():
                getattr(whole, f"{name[:-1]}{i}{suffix}").data = weights.data
    with torch.inference_mode():
        expected = network.output(whole(frames)[0])
    torch.testing.assert_close(outputs(network, frames, [20] * 3), expected)


def test_a_convolution_is_that_of_pytorch(frames):
    ours = torch_models.Convolution(5, 7, kernel=3, dilation=2, causal=True)
    theirs = torch.nn.Conv1d(5, 7, 3, dilation=2, padding=4)
    theirs.weight.data = ours.taps.weight.data.view(7, 3, 5).transpose(1, 2)
    theirs.bias.data = ours.taps.bias.data
    expected = theirs(frames.permute(1, 2, 0))[:, :, :20].permute(2, 0, 1)
    torch.testing.assert_close(ours(frames), expected, rtol=1e-5, atol=1e-6)


def test_dropout_keeps_the_mean():
    dropout = torch_models.Dropout(0.25, np.random.default_rng(0))
    found = dropout(torch.ones(400, 500))
    assert abs((found == 0).float().mean().item() - 0.25) < 0.01
    assert abs(found.mean().item() - 1) < 0.01
    assert torch.equal(dropout.eval()(found), found)


def test_warped_features_are_those_of_warped_cepstra():
    cepstra = [np.random.default_rng(2).standard_normal((30, 13)).astype(np.float32)]
    warped = torch_models.Warped(cepstra, 0.1, np.random.default_rng(0))
    matrix = torch_models.warp_matrix(1.1 ** (50 / 100), **torch_models.FILTER_BANK).T.astype(np.float32)
    expected = torch_models.prepared([cepstra[0] @ matrix])[0]
    torch.testing.assert_close(warped.warped(0, 150), expected, rtol=1e-4, atol=1e-5)


def test_the_step_size_rises_and_falls_to_zero():
    for schedule in ("cosine", "linear"):
        settings = torch_models.DEFAULTS | {"schedule": schedule, "warm_up": 0.1}
        rates = [torch_models.rate(settings, done) for done in np.linspace(0, 1, 101)]
        assert np.argmax(rates) == 10
        assert rates[10] == pytest.approx(1.0)
        assert rates[-1] == pytest.approx(0.0)


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (5, 9), (9, 5)])
def test_a_first_step_of_muon_is_the_orthogonal_factor_of_the_gradient(rows, columns):
    torch.manual_seed(0)
    matrix, gradient = torch.nn.Parameter(torch.zeros(rows, columns)), torch.randn(rows, columns)
    matrix.grad = gradient.clone()
    torch_models.Muon([matrix], step_size=1.0, weight_decay=0.0).step()
    U, _, V = torch.linalg.svd(gradient, full_matrices=False)
    step = -matrix.detach() / max(1.0, rows / columns) ** 0.5
    found = torch.linalg.svdvals(step)
    assert ((found > 0.7) & (found < 1.3)).all()
    torch.testing.assert_close(U.T @ step @ V.T, torch.diag(torch.diagonal(U.T @ step @ V.T)), atol=1e-4, rtol=0)


def test_muon_takes_the_matrices_of_the_blocks_alone():
    settings = torch_models.DEFAULTS | {"kind": "tcn", "muon": 0.02} | KINDS["tcn"]
    network = torch_models.network_of(settings, 5, 4, seed=0)
    adam, muon = torch_models.optimizers_of(network, settings)
    names = {id(p): name for name, p in network.named_parameters()}
    assert {names[id(p)] for group in muon.param_groups for p in group["params"]} == {
        name for name, p in network.named_parameters() if name.startswith("blocks") and p.ndim > 1
    }
    assert sum(len(g["params"]) for o in (adam, muon) for g in o.param_groups) == len(names)


def toy_data():
    """Return utterances whose labels say which of three cepstra is the largest."""
    rng = np.random.default_rng(3)
    cepstra = [rng.standard_normal((n, 13)).astype(np.float32) for n in (40, 30, 35, 25, 40, 30)]
    labels = [c[:, :3].argmax(axis=1) for c in cepstra]
    return {"train": (cepstra[:4], labels[:4]), "valid": (cepstra[4:], labels[4:])}


class Ticks:
    """A clock that advances by a hundredth of a second whenever it is read."""

    count = 0

    def seconds(self):
        self.count += 1
        return self.count / 100

    def stop(self):
        pass

    resume = stop


def test_training_keeps_the_best_epoch(monkeypatch):
    errors = iter([50.0, 20.0, 30.0, *[40.0] * 1000])
    monkeypatch.setattr(torch_models, "Clock", Ticks)
    seen = []

    def frame_error(network, padded):
        seen.append(network.output.weight.detach().clone())
        return next(errors)

    monkeypatch.setattr(torch_models, "frame_error", frame_error)
    data, settings = toy_data(), {"kind": "lstm", "units": 4, "step_size": 0.01, "batch_size": 2}
    predict, facts = torch_models.train(data, settings, 1.0, seed=0)
    assert len(seen) >= 4
    assert facts["valid_error"] == 20.0
    kept = predict.args[0].output.weight
    assert torch.equal(kept, seen[1])
    assert not torch.equal(kept, seen[-1])


@pytest.mark.parametrize("more", [{}, {"average": 0.9}, {"warp": 0.1, "mask_frames": 5, "smoothing": 0.1}])
def test_training_spends_its_seconds_and_learns(more):
    data = toy_data()
    predict, facts = torch_models.train(data, {"kind": "tcn", "channels": 16, "blocks": 2, "dropout": 0.0} | more, 1.0)
    assert 1.0 <= facts["core_seconds"] < 1.5
    found = pickle.loads(pickle.dumps(predict))(data["valid"][0])
    assert [p.shape for p in found] == [(40, 3), (30, 3)]
    np.testing.assert_allclose(np.concatenate(found).sum(axis=1), 1, rtol=1e-5)
    wrong = np.concatenate([p.argmax(axis=1) != y for p, y in zip(found, data["valid"][1], strict=True)])
    assert 100 * wrong.mean() == pytest.approx(facts["valid_error"], abs=1e-3)
    assert facts["valid_error"] < 60


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # PyTorch: CSR tensors are a beta, their checks are off
@pytest.mark.parametrize("form", ["dense", "CSR"])
@pytest.mark.parametrize("direct", [False, True])
def test_a_detached_readout_gives_the_same_gradients(form, direct):
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((n, 4)) for n in (9, 14, 5, 11, 7)]
    T = [rng.standard_normal((len(x), 3)) for x in X]
    W, W_rec = rng.standard_normal((4, 12)), 0.3 * rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.4)
    given = W, sparse.csr_array(W_rec) if form == "CSR" else W_rec, X, T, 0.5
    settings = {"activation": "tanh", "leak": 0.4, "direct": direct, "dtype": "float64"}
    whole = torch_peers.ridge_epoch(*given, **settings)
    parts = torch_peers.ridge_epoch_detached(*given, **settings, group=2)
    for name in ("loss", "dE_dW", "dE_dW_rec"):
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-9, atol=1e-10)
