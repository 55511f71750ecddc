"""Deep networks in C: the answers of the estimator and of the runtime's twin in whole numbers, resumption, refusals."""

import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import exported
from echolearn import DeepESNClassifier, DeepESNRegressor
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.c.header import c_header
from echolearn.export.c.weights import answers_in
from reference.plans import evaluate
from reliability.exports import SANITIZED, Drawn, compiled, difference, in_c

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
# By how much of the largest one answers may differ: sums in another order round a number in 16 bits the other way.
FLIPS = 3e-4
TARGETS = ("labels", "values", "label sets")


def fitted(kind, *size, **settings):
    """Return a deep network after one epoch, and frames."""
    X, rng = [(x - 100) / 5 for x in exported.X], np.random.default_rng(0)
    if settings.get("missing"):
        X = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    y = {"labels": exported.LABELS, "values": [v - 100 for v in exported.VALUES]}.get(kind)
    y = y or [rng.integers(0, 2, (len(x), 3)) for x in X]
    model = DeepESNRegressor if kind == "values" else DeepESNClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are no better than a constant answer
        return model(*size, epochs=1, ridge=1.0, **settings).fit(X, y), X[0]


def random_network(kind, rng):
    """Return a random deep network with frames and its own answers."""

    def some(*values):
        return values[rng.integers(len(values))]

    settings = {"ensemble": some(1, 2, 3), "standardize": some(True, False), "dtype": some("float32", "float64")}
    settings |= {"readout": some("softmax", "ridge")} if kind == "labels" else {}
    settings |= some({}, {"missing": "carry"}, {"missing": "mean"})
    model, x = fitted(kind, 2 * some(*range(1, 17)), some(*range(1, 6)), random_state=some(*range(9)), **settings)
    drawn = exported.drawn(model, x)
    return Drawn(kind, settings, model, drawn.plan, drawn.x, drawn.expected)


@pytest.fixture(scope="module")
def deep():
    """Return networks of 2 to 32 units, 1 to 5 layers and 1 to 3 stacks."""
    rng = np.random.default_rng(1)
    return [random_network(TARGETS[i % 3], rng) for i in range(12)]


def test_the_drawn_networks_differ(deep):
    networks = [one.plan.network for one in deep]
    assert {len(network.stacks) for network in networks} == {1, 2, 3}
    assert {len(network.stacks[0].blocks) for network in networks} >= {1, 3, 5}
    assert {network.stacks[0].units for network in networks} >= {2, 32}
    assert {one.settings.get("missing") for one in deep} == {None, "carry", "mean"}
    assert {one.plan.answer.kind for one in deep} == {"softmax", "nearest", "values", "independent"}


@needs_gcc
@pytest.mark.parametrize("numbers", [None, "float32", "float64"])
def test_answers_are_those_of_the_estimator(deep, numbers):
    for one, found in zip(deep, in_c(deep, numbers), strict=True):
        assert difference(one, found) < 1e-5


@needs_gcc
def test_float64_is_exact_where_the_estimator_is(deep):
    exact = [one for one in deep if one.plan.precision == "float64"]
    for one, found in zip(exact, in_c(exact, "float64"), strict=True):
        assert difference(one, found) <= 2**-24  # the rounding of an answer to float


@needs_gcc
@pytest.mark.parametrize(
    ("compiler", "flags"), [("gcc", ["-O3", "-march=native"]), ("g++", ["-O2"]), ("clang", ["-O3"])]
)
def test_compilers_warn_of_nothing_and_agree(deep, compiler, flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    for one, found in zip(deep, in_c(deep, None, *flags, compiler=compiler), strict=True):
        assert difference(one, found) < 1e-5


@needs_gcc
@pytest.mark.parametrize(("numbers", "loss"), [("int16", 1e-3), ("int8", 0.15)])
def test_whole_numbers_are_those_of_the_twin(deep, numbers, loss):
    for one, found in zip(deep, in_c(deep, numbers), strict=True):
        spread, expected = np.abs(one.expected).max(), answers_in(one.plan, one.x, numbers)
        assert np.abs(expected - one.expected).max() / spread < loss
        assert np.abs(found - expected).max() / spread < FLIPS


@pytest.mark.parametrize("numbers", ["float32", "float64", "int16", "int8"])
def test_the_twin_is_the_slow_version(deep, numbers):
    for one in deep:
        expected = evaluate(one.plan, one.x, numbers)
        limit = 1e-5 if numbers.startswith("float") else FLIPS
        assert np.abs(answers_in(one.plan, one.x, numbers) - expected).max() / np.abs(one.expected).max() < limit


RESUMED = """
#include <stdio.h>
#include "esn.h"
int main(void)
{
    static float x[esn_inputs], out[esn_outputs];
    esn_state state;
    esn_resume(&state);
    while (fread(x, sizeof x, 1, stdin) == 1) {
        esn_step(&state, x, out);
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""


@needs_gcc
@pytest.mark.parametrize(("numbers", "limit"), [("float32", 1e-5), ("int8", 0.05)])
def test_a_stream_continues_where_training_ended(tmp_path, numbers, limit):
    """All layers of all stacks begin in their own states, and the gaps with the last known values."""
    x, y = exported.X[0].copy(), exported.VALUES[0][:, 0] - 100
    x[-3:, 1] = np.nan
    model = DeepESNRegressor(6, 3, epochs=1, ensemble=2, leak=(0.05, 0.1), ridge=0.1, missing="carry").fit(x, y)
    program = compiled({"esn": c_header(plan_of(model), numbers=numbers)}, RESUMED, tmp_path, *SANITIZED)
    frames = exported.X[1].astype(np.float32)
    frames[:2, 1] = np.nan
    done = subprocess.run([program], input=frames.tobytes(), capture_output=True, check=True)
    stream = model.stream()
    expected = np.array([stream.predict(frame) for frame in frames.astype(float)]).ravel()
    found = np.frombuffer(done.stdout, np.float32)
    assert np.abs(found - expected).max() < limit * np.abs(expected).max()
    cold = model.predict(frames.astype(float), warm_up="cold").ravel()
    assert np.abs(cold - expected).max() > 0.1 * np.abs(expected).max()  # where it begins matters


def test_memory_is_said_in_the_first_lines():
    model, _ = fitted("labels", 8, 3, ensemble=2)
    C, n_in, n_out, stacks, layers = 8, 3, 3, 2, 3
    per_layer = 2 * C * C + 3 * C // 2 + 2 * C
    weights = stacks * (n_in * C + 2 * C + layers * per_layer) + stacks * C * n_out + n_out
    text = c_header(plan_of(model))
    scaling = 3 * n_in if "mean_rest" in text else 2 * n_in
    assert f"constants: {4 * (weights + scaling)} bytes" in text
    assert f"one esn_state: {4 * (stacks * layers * C + stacks * C + 3 * C + n_in + n_out)} bytes" in text
    small = int(re.search(r"constants: (\d+) bytes", c_header(plan_of(model), numbers="int8"))[1])
    scales = stacks * C * (1 + 2 * layers) + n_out
    matrices = stacks * C * (n_in + 2 * layers * C + n_out)
    assert small == 4 * (weights + scaling - matrices + scales) + matrices


def test_code_does_not_grow_with_depth():
    """One function serves all layers; a header has more constants, not more statements."""
    texts = [c_header(plan_of(fitted("labels", 4, layers)[0])) for layers in (1, 5)]
    code = [text[text.index("typedef struct") :].count("\n") for text in texts]
    assert code[0] == code[1]


def test_sums_of_bytes_do_not_overflow():
    """Three stacks of 200 features: 600 * 127 * 32767 is more than an int holds."""
    assert "summed in int;" in c_header(plan_of(fitted("labels", 200, 1)[0]), numbers="int8")
    assert "summed in long long;" in c_header(plan_of(fitted("labels", 200, 1, ensemble=3)[0]), numbers="int8")


def test_the_loss_is_measured_on_frames(deep):
    one = next(one for one in deep if one.plan.answer.kind == "softmax")
    worst = np.abs(evaluate(one.plan, one.x, "int8") - evaluate(one.plan, one.x)).max()
    found = re.search(r"probabilities by at most (\S+)", c_header(one.plan, numbers="int8", X=one.x))[1]
    np.testing.assert_allclose(float(found), worst, rtol=0.3)


def test_networks_that_need_the_end_of_a_sequence_are_refused():
    with pytest.raises(ExportError, match="bidirectional=True cannot be exported to C"):
        c_header(plan_of(fitted("labels", 4, 2, bidirectional=True)[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pooled = DeepESNClassifier(4, 2, epochs=1).fit(exported.X, list("ababab"))
    with pytest.raises(ExportError, match="DeepESNClassifier cannot be exported to C: its readout sees whole series"):
        c_header(plan_of(pooled))
