"""C: compiled without a warning in C and C++, sizes, closed loops, whole numbers, names."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import exported
from echolearn import ESNForecaster, ESNRegressor
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.c.header import c_header
from reference.plans import evaluate
from reliability.exports import SANITIZED, compiled, difference, in_c
from toys import grouped

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", ["-O3"]), ("g++", ["-O2"]), ("clang", ["-O3"]), ("clang", SANITIZED), ("clang++", ["-O2"])],
    ids=["gcc", "g++", "clang", "clang with sanitizers", "clang++"],
)
def test_every_compiler_gives_the_same_answers_without_a_warning(some, compiler, flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    for one, found in zip(some, in_c(some, None, *flags, compiler=compiler), strict=True):
        assert difference(one, found) < 1e-5


def test_a_matrix_that_is_more_than_half_full_is_a_dense_one():
    some = [exported.drawn(exported.classifier(units=9, topology="orthogonal"))]
    text = c_header(some[0].plan)
    assert "esn_W_rec1[81]" in text
    assert "esn_from1" not in text
    assert difference(some[0], in_c(some)[0]) < 1e-5
    np.testing.assert_allclose(in_c(some, "int16")[0], evaluate(some[0].plan, some[0].x, "int16"), atol=1e-4)


LIMITS = """
#include <math.h>
#include <stdio.h>
#include "esn.h"
int main(void)
{
    static const float y[6] = {0.0f, -1000.0f, -86.9f, -3.0e38f, -20.0f, -0.5f};
    float p[6], q[3] = {0.0f, NAN, 1.0f};
    double worst = 0.0, x;
    int i;
    for (i = 0; i < 6; i++)
        p[i] = y[i];
    esn_softmax(p, 6);
    esn_softmax(q, 3);
    for (x = -87.0; x <= 0.0; x += 0.001)
        worst = fmax(worst, fabs((double)esn_exp((float)x) / exp((double)(float)x) - 1.0));
    for (i = 0; i < 6; i++)
        printf("%.9g ", (double)p[i]);
    printf("%.9g %d\\n", worst, q[0] != q[0] && q[2] != q[2]);
    return 0;
}
"""


def test_probabilities_of_small_logits_are_exact_too(tmp_path, some):
    """What a decoder takes the logarithm of must be right at 1e-9; what is not a number stays none."""
    program = compiled({"esn": c_header(some[0].plan)}, LIMITS, tmp_path, *SANITIZED)
    *found, worst, lost = map(float, subprocess.run([program], capture_output=True, check=True).stdout.split())
    total = 1 + np.exp(-0.5)
    expected = np.exp([0, -np.inf, -86.9, -np.inf, -20, -0.5]) / total
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-38)
    assert worst < 3e-7
    assert lost == 1


def test_float64_is_exact_where_float32_is_not(some):
    exact, rough = in_c(some[2:3], "float64")[0], in_c(some[2:3], "float32")[0]
    assert difference(some[2], exact) <= 2**-24  # the rounding of an answer to float
    assert 0 < np.abs(rough - exact).max() / np.abs(exact).max() < 1e-5


def test_sums_of_bytes_do_not_overflow():
    """600 units with the largest states and weights: 600 * 127 * 32767 is more than an int holds."""
    esn = exported.regressor(units=600)
    assert "summed in long long" in c_header(plan_of(esn), numbers="int8")
    assert "summed in int;" in c_header(plan_of(exported.regressor()), numbers="int8")


def test_memory_is_said_in_the_first_lines(some):
    text = c_header(some[0].plan)
    constants, state = map(int, re.search(r"constants: (\d+) bytes; one esn_state: (\d+) bytes", text).groups())
    assert text.index("constants") < 300
    W, N, n_out = some[0].plan.layer.W, 20, 3
    weights = W.size + len(some[0].plan.layer.W_rec.data) + 2 * N + (N + 3 + 1) * n_out
    indices = len(some[0].plan.layer.W_rec.data) + N // 4 + 1  # of every weight, and of every four units
    scales = 3 * 3 if "mean_rest" in text else 2 * 3
    assert constants == 4 * (weights + scales) + 2 * indices
    assert state == 4 * (N + N + 3 + n_out)


def test_only_math_is_included_and_nothing_is_allocated(some):
    text = c_header(some[0].plan)
    assert re.findall(r"#include.*", text) == ["#include <math.h>"]
    assert not re.search(r"malloc|calloc|alloca|double", text.split("*/", 1)[1])


LOOP = """
#include <stdio.h>
#include "esn.h"
int main(void)
{
    esn_state state;
    float out[1];
    float e[2] = {0.0f, 0.0f};
    int t;
    esn_resume(&state);
    for (t = 0; t < 15; t++) {
        e[0] = e[0] + 0.0f;
        NEXT
        printf("%.9g\\n", (double)out[0]);
    }
    return 0;
}
"""


def test_a_forecast_continues_the_training_series(tmp_path):
    esn = exported.forecaster()
    source = LOOP.replace("NEXT", "esn_next(&state, out);")
    program = compiled({"esn": c_header(plan_of(esn))}, source, tmp_path, *SANITIZED)
    found = np.array(subprocess.run([program], capture_output=True, check=True).stdout.split(), float)
    np.testing.assert_allclose(found, esn.predict(15), atol=1e-6)


def test_a_forecast_with_exogenous_inputs(tmp_path):
    e = np.random.default_rng(2).normal(5, 2, (200, 2))
    esn = ESNForecaster(20, learn="none", ridge=1e-3, method="closed_loop").fit(exported.SERIES, exogenous=e)
    source = LOOP.replace("NEXT", "e[1] = (float)t; esn_next(&state, e, out);")
    program = compiled({"esn": c_header(plan_of(esn))}, source, tmp_path, *SANITIZED)
    found = np.array(subprocess.run([program], capture_output=True, check=True).stdout.split(), float)
    known = np.column_stack([np.zeros(15), np.arange(15)])
    np.testing.assert_allclose(found, esn.predict(15, exogenous=known), atol=1e-6)


def test_a_stream_continues_where_training_ended(tmp_path):
    esn = ESNRegressor(10, feedback=True, missing="carry", **grouped(exported.FIXED)).fit(
        exported.X[0], exported.VALUES[0][:, 0]
    )
    source = LOOP.replace("NEXT", "{ const float x[3] = {101.0f, 99.0f, 100.5f}; esn_step(&state, x, out); }")
    program = compiled({"esn": c_header(plan_of(esn))}, source, tmp_path, *SANITIZED)
    found = np.array(subprocess.run([program], capture_output=True, check=True).stdout.split(), float)
    stream = esn.stream()
    np.testing.assert_allclose(found, [stream.predict([101.0, 99.0, 100.5]) for _ in range(15)], rtol=1e-5)


def test_the_measured_loss_is_in_the_header(some):
    one = some[0]
    text = c_header(one.plan, numbers="int8", X=one.x)
    worst = np.abs(evaluate(one.plan, one.x, "int8") - evaluate(one.plan, one.x)).max()
    assert f"measured on {len(one.x)} frames" in text
    assert f"probabilities by at most {worst:.2g}" in text
    assert "of their standard deviation" in c_header(some[2].plan, numbers="int16", X=some[2].x)


HOSTILE = ['"; system("rm -rf /"); //', "*/ int x; /*", "??/", "\\", "\n#error", "$N $R", "é\u2028", "%s"]


def test_hostile_class_names_are_strings(tmp_path):
    labels = [np.array(HOSTILE)[np.arange(len(x)) % 8] for x in exported.X]
    text = c_header(plan_of(exported.classifier(labels=labels)))
    source = """
#include <stdio.h>
#include "esn.h"
int main(void)
{
    int i;
    for (i = 0; i < esn_outputs; i++)
        printf("%s%c", esn_classes[i], 0);
    return 0;
}
"""
    program = compiled({"esn": text}, source, tmp_path)
    found = subprocess.run([program], capture_output=True, check=True).stdout.decode().split("\0")
    assert found[:-1] == sorted(HOSTILE)
    assert text.isascii()


def test_numbers_that_float_cannot_hold_are_refused():
    esn = exported.regressor(dtype="float64")
    codec = type(esn.codec_)(esn.codec_.mean * 1e80, esn.codec_.scale, False, "float64")
    esn.model_ = replace(esn.model_, codec=codec)
    with pytest.raises(ExportError, match="target_mean holds numbers that are too large for float"):
        c_header(plan_of(esn), numbers="float32")
    assert "target_mean" in c_header(plan_of(esn))


def test_unknown_numbers_are_refused():
    with pytest.raises(ExportError, match="numbers='int4' cannot be exported to C"):
        c_header(plan_of(exported.classifier()), numbers="int4")


def test_the_example_in_c(tmp_path):
    example = (Path(__file__).parents[3] / "examples" / "c" / "classify.c").read_text()
    drawn = exported.drawn(exported.classifier())
    program = compiled({"esn": c_header(drawn.plan)}, example, tmp_path)
    frames = "\n".join(" ".join(f"{v:.9g}" for v in x) for x in drawn.x.tolist())
    lines = subprocess.run([program], input=frames, text=True, capture_output=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in lines] == drawn.model.predict(drawn.x).tolist()
    np.testing.assert_allclose([float(line.split()[1]) for line in lines], drawn.expected.max(axis=1), atol=1e-4)


def test_the_example_in_c_refuses_lines_that_are_no_frames(tmp_path):
    example = (Path(__file__).parents[3] / "examples" / "c" / "classify.c").read_text()
    plan = exported.drawn(exported.classifier()).plan
    program = compiled({"esn": c_header(plan)}, example, tmp_path)
    right = ["0.5"] * plan.n_features

    def answer(*lines):
        return subprocess.run([program], input="\n".join(lines), text=True, capture_output=True, check=False)

    good = answer(" ".join(right), "", "\t".join(right) + "\r\n")
    assert (good.returncode, len(good.stdout.splitlines()), good.stderr) == (0, 2, "")
    for line, message in (
        (",".join(right), "line 2: ',' is not part of a number; expected numbers with blanks between"),
        ("x " + " ".join(right), "line 2: 'x' is not part of a number"),
        (" ".join([*right, "1"]), f"line 2 has {len(right) + 1} numbers; expected {len(right)}"),
        (" ".join(right[1:]), f"line 2 has {len(right) - 1} numbers; expected {len(right)}"),
        (" ".join(right) + " " * 10_000, f"line 2 has {len(right)} numbers or more"),
    ):
        bad = answer(" ".join(right), line)
        assert (bad.returncode, len(bad.stdout.splitlines())) == (1, 1)
        assert message in bad.stderr


def test_the_features_are_named_in_a_comment_that_no_name_can_end(tmp_path):
    names = ("load (W)", "*/ int evil; /*", "Wärme\n$N $UNITS ??/\\")
    plan = replace(plan_of(exported.classifier(5)), feature_names=names)
    text = c_header(plan)
    comment = text.split("*/", 1)[0]
    assert "x in this order: load (W), " in comment
    assert comment.isascii()
    assert "/*" not in comment[2:]
    assert "??/" not in comment
    assert "$" not in comment
    assert "C99 or C++" in comment
    (tmp_path / "esn.h").write_text(text)
    (tmp_path / "main.c").write_text('#include "esn.h"\nint main(void) { return esn_inputs - 3; }\n')
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-pedantic", "-Werror"]
    subprocess.run(["gcc", *flags, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "main"], check=True)
    assert "x in this order" not in c_header(replace(plan, feature_names=()))
