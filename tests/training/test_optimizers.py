"""FISTA, Adam, Muon, clipping and renormalisation against witnesses of a few lines."""

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.exact import Gradients
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.training.optimizers import (
    Adam,
    Fista,
    LearnedWeights,
    Muon,
    clip_gradients,
    default_step_size,
    finite_norms,
    learned_weights,
    logistic,
    logit,
    minimize_log,
    orthogonalized,
    with_learned,
)

A = np.diag([1.0, 3.0, 10.0])


def grad(w):
    return A @ (w - [1.0, -2.0, 0.5])


def run(optimizer, steps, alpha):
    w = {"W": np.zeros(3)}
    for _ in range(steps):
        w, optimizer = optimizer.step(w, {"W": grad(w["W"])}, alpha)
    return w["W"]


@pytest.mark.parametrize("momentum", ["fista", "printed"])
def test_fista_against_the_formulas(momentum):
    w = before = np.zeros(3)
    m_old = 1.0
    for _ in range(25):
        m_new = (1 + np.sqrt(1 + 4 * m_old**2)) / 2
        beta = m_old / m_new if momentum == "printed" else (m_old - 1) / m_new
        w, before = w - 0.03 * grad(w) + beta * (w - before), w
        m_old = m_new
    np.testing.assert_allclose(run(Fista(momentum), 25, 0.03), w, rtol=1e-12)


def test_adam_against_the_formulas():
    w, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for t in range(1, 26):
        g = grad(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        w = w - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-12)
    np.testing.assert_allclose(run(Adam(), 25, 0.05), w, rtol=1e-12)


def test_both_optimizers_reach_the_minimum():
    for optimizer, alpha in ((Fista("fista"), 0.05), (Adam(), 0.02)):
        np.testing.assert_allclose(run(optimizer, 800, alpha), [1, -2, 0.5], atol=0.02)


@pytest.mark.parametrize("optimizer", [Fista("fista"), Fista("printed"), Adam()])
def test_a_kept_optimizer_resumes_to_the_bit(optimizer):
    w, straight = {"W": np.zeros(3)}, optimizer
    for step in range(6):
        if step == 3:
            number, kept = straight.state()
            resumed, other = type(optimizer)() if isinstance(optimizer, Adam) else optimizer, dict(w)
            resumed = resumed.resume(number, kept)
        if step >= 3:
            other, resumed = resumed.step(other, {"W": grad(other["W"])}, 0.1)
        w, straight = straight.step(w, {"W": grad(w["W"])}, 0.1)
    np.testing.assert_array_equal(other["W"], w["W"])


def test_steps_do_not_change_their_arguments():
    for optimizer in (Fista("fista"), Adam()):
        w = {"W": np.ones(3)}
        g = {"W": np.ones(3)}
        new, later = optimizer.step(w, g, 0.1)
        later.step(new, g, 0.1)
        np.testing.assert_array_equal(w["W"], 1)
        np.testing.assert_array_equal(g["W"], 1)


def matrix(seed, rows, columns, condition=None):
    """Return a random matrix, or one whose singular values fall evenly in logarithm by a factor `condition`."""
    M = np.random.default_rng([9, seed]).normal(size=(rows, columns))
    if condition is None:
        return M
    U, s, V = np.linalg.svd(M, full_matrices=False)
    return U * condition ** -np.linspace(0, 1, len(s)) @ V


@pytest.mark.parametrize("shape", [(8, 8), (32, 32), (40, 7), (7, 40), (1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("condition", [None, 1.0, 30.0, 100.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_orthogonalised_matrices_keep_their_singular_vectors(shape, condition, scale):
    """All singular values that are not tiny beside the norm become about 1: the polynomial acts on them alone."""
    M = scale * matrix(len(shape), *shape, condition)
    U, s, V = np.linalg.svd(M, full_matrices=False)
    found = orthogonalized({"W": M})["W"]
    inside = U.T @ found @ V.T
    np.testing.assert_allclose(inside, np.diag(np.diag(inside)), atol=1e-9)
    np.testing.assert_allclose(U @ inside @ V, found, atol=1e-9)  # and it has no others
    there = s > 0.003 * np.linalg.norm(s)
    assert there.sum() >= min(shape) - 1
    assert (np.diag(inside)[there] > 0.6).all()
    assert (np.diag(inside) < 1.3).all()


def test_matrices_are_orthogonalised_each_by_itself():
    many = {"a": matrix(1, 5, 5), "b": matrix(2, 5, 3), "c": matrix(3, 5, 5), "0": np.zeros((5, 5))}
    found = orthogonalized(many)
    assert list(found) == list(many)
    for name in ("a", "b", "c"):
        np.testing.assert_allclose(found[name], orthogonalized({name: many[name]})[name], atol=1e-12)
    np.testing.assert_array_equal(found["0"], 0)
    assert orthogonalized({"a": many["a"].astype("f4")})["a"].dtype == np.float32


def muon_by_hand(weights, gradients, steps, alpha):
    """Return the weights after some steps, from the formulas; "W" is a matrix inside, V and b are not."""
    M, w, adam = np.zeros_like(weights["W"]), dict(weights), Adam()
    for g in gradients[:steps]:
        M = 0.95 * M + g["W"]
        direction = orthogonalized({"W": g["W"] + 0.95 * M})["W"]  # Nesterov's momentum
        rows, columns = direction.shape
        rest = {name: w[name] for name in ("V", "b")}
        moved, adam = adam.step(rest, {name: g[name] for name in rest}, 0.3 * alpha)
        w = {
            "W": w["W"] - 0.1 * alpha * w["W"] - alpha * max(1, columns / rows) ** 0.5 * direction,
            "V": moved["V"] - 0.1 * 0.3 * alpha * rest["V"],
            "b": moved["b"],  # vectors do not decay
        }
    return w


@pytest.mark.parametrize("shape", [(4, 4), (3, 12), (12, 3)])
def test_muon_against_the_formulas(shape):
    rng = np.random.default_rng(5)
    draw = lambda: {"W": rng.normal(size=shape), "V": rng.normal(size=(4, 2)), "b": rng.normal(size=4)}  # noqa: E731
    weights, gradients = draw(), [draw() for _ in range(4)]
    w, muon = weights, Muon(("W",))
    for n, g in enumerate(gradients, 1):
        w, muon = muon.step(w, g, 0.1)
        for name, value in muon_by_hand(weights, gradients, n, 0.1).items():
            np.testing.assert_allclose(w[name], value, atol=1e-12, err_msg=name)


def test_muon_resumes_to_the_bit_and_keeps_precision():
    rng = np.random.default_rng(6)
    draw = lambda: {n: rng.normal(size=s).astype("f4") for n, s in {"W": (5, 5), "V": (5, 2), "b": 5}.items()}  # noqa: E731
    w, straight, other = draw(), Muon(("W",)), None
    assert straight.resume(*straight.state()) == straight
    for step in range(6):
        if step == 3:
            number, kept = straight.state()
            assert set(kept) == set(Muon.memories)
            other, resumed = dict(w), Muon(("W",)).resume(number, kept)
        g = draw()
        if other is not None:
            other, resumed = resumed.step(other, g, 0.1)
        w, straight = straight.step(w, g, 0.1)
    for name, value in w.items():
        np.testing.assert_array_equal(other[name], value)
        assert value.dtype == np.float32


def test_muon_moves_all_directions_of_a_matrix_equally_far():
    """Where one direction has a thousand times the gradient of the others, Adam's step is nearly that one alone."""
    U, _, V = np.linalg.svd(matrix(7, 6, 6))
    g = {"W": U * [1000.0, 30, 30, 30, 30, 30] @ V}
    (by_muon, _), (by_adam, _) = (o.step({"W": np.zeros((6, 6))}, g, 0.1) for o in (Muon(("W",)), Adam()))
    s_muon, s_adam = (np.linalg.svd(w["W"], compute_uv=False) for w in (by_muon, by_adam))
    assert s_muon[-1] > 0.5 * s_muon[0]
    assert s_adam[-1] < 0.3 * s_adam[0]


def test_clipping_shortens_only_what_is_too_long():
    g = {"W": np.array([3.0, 4.0]), "W_rec": np.array([0.3, 0.4])}
    norms = finite_norms(g)
    assert norms == pytest.approx({"W": 5.0, "W_rec": 0.5})
    out = clip_gradients(g, norms, 1.0)
    np.testing.assert_allclose(out["W"], [0.6, 0.8])
    np.testing.assert_array_equal(out["W_rec"], g["W_rec"])
    assert clip_gradients(g, norms, None) is g
    np.testing.assert_allclose(clip_gradients({"W": np.zeros(2)}, {"W": 0.0}, 1.0)["W"], 0)


def test_renormalised_weights_have_the_radius_and_the_directions():
    r = Reservoir(**ref.network(np.random.default_rng(0), N=6))
    learned = LearnedWeights(r, "both", False, Adam())
    learned.renormalize(2.5)
    new = learned.reservoir
    assert spectral_radius_of(new.W_rec) == pytest.approx(2.5)
    np.testing.assert_array_equal(learned.weights["W_rec"], new.W_rec.data)
    ratio = new.W_rec.data / r.W_rec.data
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_array_equal(new.W, r.W)


def test_the_weights_that_are_learned():
    w = ref.network(np.random.default_rng(0), N=4, feedback=True)
    r = Reservoir(**w)
    assert set(learned_weights(r, "input", False)) == {"W", "W_fb", "bias"}
    assert set(learned_weights(r, "both", True)) == {"W", "W_rec", "W_fb", "bias", "leak"}
    bare = Reservoir(W=w["W"], W_rec=w["W_rec"])
    assert set(learned_weights(bare, "both", False)) == {"W", "W_rec"}
    assert learned_weights(r, "none", True) == {}


def test_the_leak_is_learned_as_a_logit():
    w = ref.network(np.random.default_rng(0), N=4)
    r = Reservoir(**w)
    weights = learned_weights(r, "both", True)
    np.testing.assert_allclose(with_learned(r, weights).leak, r.leak, rtol=1e-12)
    # chain rule by differences: leak(logit + e) - leak(logit) = e da/dlogit
    e = 1e-6
    moved = with_learned(r, {**weights, "leak": weights["leak"] + e})
    g = Gradients(w["W"], r.W_rec.data, None, w["bias"], np.ones(4))
    learned = LearnedWeights(r, "both", True, Adam())
    np.testing.assert_allclose(learned.by_weight(g)["leak"], (moved.leak - r.leak) / e, rtol=1e-4)


def test_leaks_stay_between_zero_and_one_without_warnings():
    far = np.array([-1e4, -50.0, 0.0, 50.0, 1e4])
    a = logistic(far)
    assert ((a > 0) & (a < 1)).all()
    assert np.isfinite(logit(np.array([1.0, 1e-12]))).all()


def test_weights_that_are_not_learned_are_not_renormalised():
    r = Reservoir(**ref.network(np.random.default_rng(0), N=6))
    learned = LearnedWeights(r, "input", False, Adam())
    learned.renormalize(2.5)
    assert learned.reservoir is r


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_and_errors_that_are_not_finite_are_an_error(bad):
    with pytest.raises(FloatingPointError, match="the gradient is not finite"):
        finite_norms({"W": np.ones(2), "bias": np.array([0.0, bad])})
    with pytest.raises(FloatingPointError, match="the gradient is not finite"):
        finite_norms({"W": np.ones(2)}, 1.0, bad)


def test_default_step_sizes():
    assert default_step_size("fista", 5000) == 0.07
    assert default_step_size("adam", 10) == default_step_size("adam", 300) == 0.01
    assert default_step_size("adam", 1200) == pytest.approx(0.005)


@pytest.mark.parametrize("learn", ["none", "input", "both"])
def test_learned_weights_take_a_step_and_resume_to_the_bit(learn):
    """Under names with a prefix, beside those of another layer."""
    r = Reservoir(**ref.network(np.random.default_rng(0), N=5, feedback=True))
    g = Gradients(r.W, r.W_rec.data, r.W_fb, r.bias, r.leak)
    straight = LearnedWeights(r, learn, learn != "none", Adam(), prefix="0.")
    straight.step(straight.by_weight(g), 0.1)
    for name, w in learned_weights(r, learn, learn != "none").items():
        np.testing.assert_allclose(straight.weights[name], w - 0.1 * np.sign(straight.by_weight(g)[name]), rtol=1e-6)
    tensors, number = straight.state_dict()
    other, _ = LearnedWeights(r, "both", True, Adam(), prefix="1.").state_dict()
    resumed = LearnedWeights(r, learn, learn != "none", Adam(), prefix="0.")
    resumed.load_state_dict({**other, **tensors}, number)
    for learned in (straight, resumed):
        learned.step(learned.by_weight(g), 0.1)
    for name, value in straight.reservoir.weights().items():
        np.testing.assert_array_equal(resumed.reservoir.weights()[name], value)


def test_the_leak_of_a_reservoir_that_has_not_taken_a_step_is_kept_to_the_bit():
    """Computed from its logit it would be rounded."""
    r = Reservoir(**ref.network(np.random.default_rng(0), N=5))
    start = LearnedWeights(r, "both", True, Adam())
    assert (with_learned(r, start.weights).leak != r.leak).any()
    resumed = LearnedWeights(r, "both", True, Adam())
    resumed.load_state_dict(*start.state_dict())
    np.testing.assert_array_equal(resumed.reservoir.leak, r.leak)


def rosenbrock(weights):
    """1e-12 at the minimum, W = (1, 1); the gradient by the names of the weights."""
    x, y = weights["W"][0], weights["bias"][0]
    value = 1e-12 + (1 - x) ** 2 + 100 * (y - x * x) ** 2
    return value, {"W": np.array([-2 * (1 - x) - 400 * x * (y - x * x)]), "bias": np.array([200 * (y - x * x)])}


def test_l_bfgs_lowers_the_logarithm_to_the_smallest_errors():
    rows = []
    start = {"W": np.array([-1.2]), "bias": np.array([1.0])}
    minimize_log(rosenbrock, start, 200, lambda number, error, weights: rows.append((number, error, weights)))
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[-1][1] < 2e-12
    np.testing.assert_allclose([rows[-1][2]["W"][0], rows[-1][2]["bias"][0]], 1, atol=1e-5)
    np.testing.assert_array_equal(start["W"], [-1.2])  # left as it was


def test_l_bfgs_ends_when_told_and_steps_back_from_errors_that_are_not_finite():
    def fragile(weights):
        if abs(weights["W"][0]) > 1.5:
            raise FloatingPointError
        return rosenbrock(weights)

    rows = []
    start = {"W": np.array([-1.2]), "bias": np.array([1.0])}
    minimize_log(fragile, start, 50, lambda number, error, weights: rows.append(error) or number == 3)
    assert len(rows) == 3
    assert rows == sorted(rows, reverse=True)
