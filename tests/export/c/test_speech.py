"""Features of speech in C beside those of Python, and the example that listens."""

import shutil
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import toyspeech
from echolearn.cli.main import main
from echolearn.exceptions import ExportError
from echolearn.export import export_model
from echolearn.export.c.speech import c_features
from echolearn.speech import mfcc
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech.recognition import Recognizer
from reliability.exports import SANITIZED, compiled

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
EXAMPLE = Path(__file__).parents[3] / "examples" / "c" / "listen.c"
RNG = np.random.default_rng(1)
SCALE = (RNG.normal(size=39), RNG.uniform(0.5, 5, 39))
PROGRAM = """
#include <stdio.h>
#include "esn_features.h"
int main(void)
{
    static short samples[400000];
    static esn_features f;
    float x[esn_features_columns];
    const int n = (int)fread(samples, sizeof *samples, 400000, stdin);
    int i, pass;
    esn_features_reset(&f);
    for (pass = 1; pass <= esn_features_passes; pass++) {
        const int last = pass == esn_features_passes;
        for (i = 0; i < n; i++)
            if (esn_features_add(&f, samples[i], x) && last)
                fwrite(x, sizeof *x, esn_features_columns, stdout);
        while (esn_features_end(&f, x))
            if (last)
                fwrite(x, sizeof *x, esn_features_columns, stdout);
        if (!last)
            esn_features_measured(&f);
    }
    fprintf(stderr, "%d", (int)sizeof f);
    return 0;
}
"""


def sound(seconds):
    """Return noise and tones with digital silence and an offset, as 16-bit samples."""
    t = np.arange(round(16000 * seconds)) / 16000
    tones = 3000 * np.sin(2 * np.pi * 220 * t * (1 + 0.1 * np.sin(t))) * (np.sin(3 * t) > 0)
    found = np.round(tones + RNG.normal(size=len(t)) * 200 * (1 + np.sin(5 * t)) + 40).astype(np.int16)
    found[5000:8000] = 0
    return found


def recipe_of(normalise, context=3):
    return FeatureRecipe(
        normalise=normalise, context=context, scale=SCALE if normalise in ("corpus", "running") else None
    )


def in_c(program, recipe, samples):
    """Return the rows (frames, features) that the program writes, and the bytes of its state."""
    done = subprocess.run([str(program)], input=samples.tobytes(), capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.float32).reshape(-1, 39 * recipe.context), int(done.stderr)


@pytest.mark.parametrize(
    ("normalise", "context", "compiler"),
    [("none", 1, "gcc"), ("corpus", 3, "clang"), ("running", 5, "g++"), ("utterance", 3, "clang++")],
)
def test_features_are_those_of_the_recipe(tmp_path, normalise, context, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    recipe = recipe_of(normalise, context)
    header = c_features(recipe)
    program = compiled({"esn_features": header}, PROGRAM, tmp_path, *SANITIZED, compiler=compiler)
    for seconds in (17, 0.5, 0.04, 0.025, 0.02):  # more than the counters, and fewer than the differences need
        samples = sound(seconds)
        rows, size = in_c(program, recipe, samples)
        if seconds < 0.025:
            assert len(rows) == 0
            continue
        expected = recipe.of_samples(samples.astype(np.float32))
        assert rows.shape == expected.shape
        np.testing.assert_allclose(rows, expected, atol=2e-5 * max(np.abs(expected).max(), 1))
    assert f"one esn_features: {size} bytes" in header


def test_cepstra_are_those_of_kaldi(tmp_path):
    """Samples at the ends of their range, and one frame: the differences of which are 0."""
    program = compiled({"esn_features": c_features(recipe_of("none", 1))}, PROGRAM, tmp_path, *SANITIZED)
    samples = RNG.choice([32767, -32768], 400).astype(np.int16)
    (row,), _ = in_c(program, recipe_of("none", 1), samples)
    np.testing.assert_allclose(row[:13], mfcc(samples.astype(np.float32))[0], rtol=1e-5, atol=1e-4)
    assert not row[13:].any()


def test_features_that_do_not_begin_with_sound_are_refused():
    with pytest.raises(ExportError, match="begin with frames, not with sound"):
        c_features(FeatureRecipe.ready())


def recorded(path, samples, rate=16000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return path


def listener(folder, recogniser, *flags, compiler="gcc"):
    """Return the example, compiled with what the recogniser is exported to."""
    export_model(recogniser, folder / "esn.h")
    headers = {name: (folder / f"{name}.h").read_text() for name in ("esn", "esn_features")}
    return compiled(headers, EXAMPLE.read_text(), folder, *(flags or SANITIZED), compiler=compiler)


def recognised(program, *words, samples=b""):
    return subprocess.run([str(program), *map(str, words)], input=samples, capture_output=True)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("normalise", ["running", "utterance"])
def test_the_example_that_listens(tmp_path, normalise, deep):
    known = toyspeech.recognizer(deep=deep)
    recogniser = known
    if normalise == "utterance":
        recogniser = Recognizer(known.model, known.phones, known.words, FeatureRecipe())
    program = listener(tmp_path, recogniser)
    samples = np.round(toyspeech.speech()[0][1]).astype(np.int16)
    file = recorded(tmp_path / "speech.wav", samples)
    done = recognised(program, file)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    expected = recogniser.model.predict_proba(recogniser.features.of_samples(samples.astype(np.float32)))
    assert [line[0] for line in lines] == [f"{t / 100:.2f}" for t in range(len(expected))]
    assert [line[1] for line in lines] == [recogniser.phones.states[k] for k in expected.argmax(axis=1)]
    np.testing.assert_allclose([float(line[2]) for line in lines], expected.max(axis=1), atol=5e-4)
    live = recognised(program, "-", samples=samples.tobytes())
    if normalise == "running":
        assert live.stdout == done.stdout
    else:
        assert (live.returncode, live.stderr) == (2, b"expected a WAV file\n")


def test_the_example_says_what_is_wrong_with_a_file(tmp_path):
    program = listener(tmp_path, toyspeech.recognizer())
    samples = np.zeros(1000, np.int16)
    (tmp_path / "text").write_text("no sound")
    cut = recorded(tmp_path / "cut.wav", samples).read_bytes()[:30]
    (tmp_path / "cut.wav").write_bytes(cut)
    for words, message in (
        ([tmp_path / "text"], "this is not a WAV file"),
        ([recorded(tmp_path / "slow.wav", samples, 8000)], "expected one channel of 16-bit samples at 16000 Hz"),
        ([recorded(tmp_path / "two.wav", samples, channels=2)], "expected one channel of 16-bit samples at 16000 Hz"),
        ([tmp_path / "cut.wav"], "this WAV file has no samples"),
        ([tmp_path / "nothing.wav"], "expected a WAV file, or - for samples from standard input"),
        ([], "expected a WAV file, or - for samples from standard input"),
    ):
        done = recognised(program, *words)
        assert done.returncode in (1, 2)
        assert message in done.stderr.decode()


@pytest.mark.parametrize("compiler", ["g++", "clang", "clang++"])
def test_the_example_compiles_elsewhere(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    listener(tmp_path, toyspeech.recognizer(), "-O2", compiler=compiler)


def test_the_command_writes_both_headers(tmp_path):
    model, out = tmp_path / "toy.safetensors", tmp_path / "toy.h"
    toyspeech.recognizer().save(model)
    done = CliRunner().invoke(main, ["export", str(model), "--out", str(out), "--name", "toy"])
    assert done.exit_code == 0, done.output
    assert f"written: {out}" in done.output
    assert f"written: {tmp_path / 'toy_features.h'}" in done.output
    assert "toy_features_add" in (tmp_path / "toy_features.h").read_text()
    assert '"ow_s3"' in out.read_text()


def test_a_recogniser_of_ready_features_has_one_header(tmp_path):
    known = toyspeech.recognizer()
    assert export_model(Recognizer(known.model, known.phones), tmp_path / "esn.h") == [tmp_path / "esn.h"]
