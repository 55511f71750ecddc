"""Early answers of a SeriesClassifier: readouts and calibration by series left out, and when it decides."""

import numpy as np
import pytest

import reference as ref
from echolearn import SeriesClassifier
from echolearn.exceptions import ModelFileError
from echolearn.fitting import summaries
from echolearn.streams._early import cheapest, safest

UNITS = 12


def levels(count, seed, steps=(40, 41)):
    """Return noise about a level that is the class: the more steps are seen, the surer an answer can be."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    return [rng.standard_normal((rng.integers(*steps), 1)) + 0.5 * k for k in y], np.array(["low", "high"])[y]


X, Y = levels(100, 0)
X_NEW, Y_NEW = levels(200, 1)
MODEL = SeriesClassifier(UNITS).fit(X, Y)


@pytest.fixture(scope="module")
def early():
    return MODEL.stream(training=(X, Y))


def answers(stream, X, steps):
    """Return the answers after so many steps of each series."""
    found = []
    for x in X:
        stream.reset()
        for frame in x[:steps]:
            P = stream.step(frame)
        found.append(P)
    return np.array(found)


@pytest.mark.parametrize("seed", range(5))
def test_without_training_every_answer_is_that_of_the_series_so_far(seed):
    rng = np.random.default_rng(seed)
    channels, washout = int(rng.integers(1, 4)), int(rng.integers(0, 4))
    series = [rng.standard_normal((rng.integers(8, 30), channels)).cumsum(axis=0) for _ in range(12)]
    model = SeriesClassifier(UNITS, washout=washout).fit(series[:10], np.arange(10) % 3)
    stream = model.stream()
    for x in series[10:]:
        stream.reset()
        given = [stream.step(frame) for frame in x][washout:]
        expected = model.predict_proba([x[:steps] for steps in range(washout + 1, len(x) + 1)])
        np.testing.assert_allclose(given, expected, atol=1e-5)


def test_the_readout_of_a_length_is_that_of_series_cut_there():
    """Against statistics of the states by loops, and ridge regressions solved by their normal equations."""
    some, labels = levels(24, 2, steps=(30, 50))
    model = SeriesClassifier(UNITS, readout="ridge", ridge=20.0, washout=2, dtype="float64").fit(some, labels)
    stream, r, summary = model.stream(training=(some, labels)), model.reservoir_, model.network_.view.summary
    assert (len(stream.lengths), stream.lengths[-1]) == (summaries.PREFIX_LENGTHS, max(map(len, some)))
    steps = stream.lengths[9]
    w, rows = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": None, "leak": r.leak}, []
    for x in some:
        seen = ref.seen((x[:steps] - model.input_mean_) / model.input_scale_, summary.delays)
        H = ref.states_both_ways(w, np.zeros(r.N, bool), seen, "tanh").T
        rows.append(ref.summarize(H, summary.thresholds, 2))
    T = (labels[:, None] == model.classes_).astype(float)
    outputs = ref.mean_of_readouts(np.array(rows).reshape(24, -1, r.N), T, np.ones(24), 20.0)[1]
    expected = np.clip((outputs[:, 1] - outputs[:, 0] + 1) / 2, 0, 1)  # the nearest distribution of two classes
    np.testing.assert_allclose(answers(stream, some, steps)[:, 1], expected, atol=1e-6)


def test_at_the_end_the_answer_is_that_of_predict(early):
    np.testing.assert_allclose(answers(early, X_NEW[:20], None), MODEL.predict_proba(X_NEW[:20]), atol=1e-5)


@pytest.mark.parametrize("steps", [4, 10])
def test_early_probabilities_are_about_as_sure_as_they_are_right(early, steps):
    """Those for whole series are not, for prefixes."""
    truth = Y_NEW[:, None] == MODEL.classes_
    losses, excess = [], []
    for stream in (early, MODEL.stream()):
        P = answers(stream, X_NEW, steps)
        losses.append(-np.log(P[truth]).mean())
        excess.append(P.max(axis=1).mean() - truth[np.arange(len(P)), P.argmax(axis=1)].mean())
    assert abs(excess[0]) < 0.1
    assert abs(excess[0]) < excess[1] / 3
    assert losses[0] < min(np.log(2), losses[1] - 0.1)


def test_one_factor_for_all_lengths_would_be_worse(monkeypatch):
    """Outputs are calibrated for each length; the factor of whole series is too large or too small."""
    truth, found, calibration = Y_NEW[:, None] == MODEL.classes_, [], summaries.calibration
    monkeypatch.setattr(summaries, "calibration", lambda *given: found.append(calibration(*given)) or found[-1])
    own = MODEL.stream(training=(X, Y))
    monkeypatch.setattr(summaries, "calibration", lambda *given: found[-1])
    same = MODEL.stream(training=(X, Y))
    losses = [-np.log(answers(stream, X_NEW, 4)[truth]).mean() for stream in (own, same)]
    assert losses[0] < losses[1] - 0.02


def test_it_is_decided_at_the_first_length_with_a_sure_answer(early):
    stream, plain = MODEL.stream(training=(X, Y), stop_when=0.8), early
    ends = []
    for x in X_NEW[:40]:
        stream.reset()
        plain.reset()
        for steps, frame in enumerate(x, 1):
            P = plain.step(frame)
            assert stream.predict(frame) == MODEL.classes_[P.argmax()]
            assert not plain.decided
            assert stream.decided == (steps in stream.lengths and (P.max() >= stream.stop_when or steps == 40))
            if stream.decided:
                break
        ends.append(steps)
    assert min(ends) < 20
    assert max(ends) == 40


def drawn_prefixes(rng, count, surer=0.0):
    """Return probabilities of series left out (4, count, 3), surer of the truth at every length, and their prefixes."""
    labels, steps = rng.integers(0, 3, count), rng.integers(8, 21, count)
    logits = rng.standard_normal((4, count, 3)) + surer * np.arange(1, 5)[:, None, None] * (labels[:, None] == range(3))
    P = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return P, summaries.Prefixes(np.array([5, 10, 15, 20]), (), P, steps, labels, rng.uniform(1, 2, count))


def decided(P, prefixes, probability):
    """Return pairs, for each series: the number of its steps at the decision, whether that is wrong. By loops."""
    found = []
    for i, length in enumerate(prefixes.steps):
        k = next(k for k, n in enumerate(prefixes.lengths) if P[k, i].max() >= probability or n >= length)
        found.append((min(prefixes.lengths[k], length), P[k, i].argmax() != prefixes.labels[i]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_safest_probability_is_the_smallest_whose_decisions_hold_what_was_asked(seed):
    rng = np.random.default_rng(seed)
    P, prefixes = drawn_prefixes(rng, 60, surer=rng.uniform(0.5, 2))
    right = rng.choice([0.6, 0.7, 0.8, 0.9])

    def holds(probability):
        early = [
            wrong for (n, wrong), end in zip(decided(P, prefixes, probability), prefixes.steps, strict=True) if n < end
        ]
        return 1 + sum(early) <= (1 - right) * (1 + len(early))

    chosen = safest(P, prefixes, right)
    assert chosen >= right
    assert chosen == np.inf or holds(chosen)
    assert not any(holds(p) for p in np.linspace(0, 1, 201) if right <= p < chosen)


def test_few_series_prove_nothing_and_wait_for_the_end():
    some = [*range(0, 4), *range(50, 54)]
    stream = MODEL.stream(training=([X[i] for i in some], Y[some]), stop_when=0.9)
    assert stream.stop_when == np.inf
    stream.predict(X_NEW[0][0])
    for frame in X_NEW[0][1:]:
        assert not stream.decided
        stream.predict(frame)
    assert stream.decided


def test_a_cost_of_waiting_is_the_cheapest_probability_for_series_left_out():
    """Against loops; series that end before a length are decided at their end."""
    P, prefixes = drawn_prefixes(np.random.default_rng(0), 30)

    def mean_cost(probability, cost):
        found = decided(P, prefixes, probability)
        return sum(w * (wrong + cost * n) for w, (n, wrong) in zip(prefixes.w, found, strict=True))

    for cost in (0.0, 0.01, 0.1):
        best = min(mean_cost(p, cost) for p in np.linspace(0, 1, 201))
        assert mean_cost(cheapest(P, prefixes, cost), cost) == pytest.approx(best)


def test_a_cost_of_waiting_is_cheaper_than_a_fixed_length_on_new_series():
    cost = 0.01
    stream = MODEL.stream(training=(X, Y), stop_when={"cost_per_step": cost})
    assert stream.stop_when > MODEL.stream(training=(X, Y), stop_when={"cost_per_step": 1}).stop_when
    paid = []
    for x, label in zip(X_NEW, Y_NEW, strict=True):
        stream.reset()
        for frame in x:
            answer = stream.predict(frame)
            if stream.decided:
                break
        paid.append((answer != label) + cost * stream.steps)
    for steps in (stream.lengths[0], 20, 40):
        wrong = MODEL.classes_[answers(stream, X_NEW, steps).argmax(axis=1)] != Y_NEW
        assert np.mean(paid) < wrong.mean() + cost * steps


def test_it_is_saved_resumed_and_copied(early, tmp_path):
    stream = MODEL.stream(training=(X, Y), stop_when=0.8)
    for frame in X_NEW[0][:5]:
        stream.step(frame)
    stream.save(tmp_path / "state")
    again = MODEL.stream(training=(X, Y), stop_when=0.8).resume(tmp_path / "state")
    copied, P = stream.copy(), stream.step(X_NEW[0][5])
    np.testing.assert_array_equal(again.step(X_NEW[0][5]), P)
    np.testing.assert_array_equal(copied.step(X_NEW[0][5]), P)
    for other in (MODEL.stream(), early.reset()):
        with pytest.raises(ModelFileError, match="another model"):
            other.resume(tmp_path / "state")


@pytest.mark.parametrize("value", [0, 1.5, "0.9", {"cost_per_step": -1}, {"cost": 0.1}, {}])
def test_other_rules_are_refused(value):
    with pytest.raises(ValueError, match=r"stop_when=.*expected a probability in \(0, 1\], or"):
        MODEL.stream(training=(X, Y), stop_when=value)


def test_what_a_rule_needs_is_named():
    with pytest.raises(ValueError, match="stop_when= needs training"):
        MODEL.stream(stop_when=0.9)
    with pytest.raises(ValueError, match="training: its y must be of the same kind"):
        MODEL.stream(training=(X, [np.full(len(x), label) for x, label in zip(X, Y, strict=True)]))
    sets = SeriesClassifier(UNITS).fit(X, np.column_stack([Y == "low", np.arange(100) % 2]).astype(int))
    with pytest.raises(ValueError, match="needs one label per series"):
        sets.stream(training=(X, Y))
