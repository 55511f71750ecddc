"""The features of speech in C: a `FeatureRecipe` as one header, from 16-bit samples to the inputs of a network.

It computes what `echolearn.speech._features` computes with kaldi-native-fbank: windows of 25 ms without their mean, the
log energy, pre-emphasis, Kaldi's window, 23 mel bands of the power spectrum, and 12 liftered cepstra; then differences,
normalisation and context.
"""

from __future__ import annotations

import numpy as np

from echolearn import __version__
from echolearn.exceptions import ExportError
from echolearn.export.c.text import Constants, Struct, check_name, fill_in, templates
from echolearn.speech._audio import RATE_HZ
from echolearn.speech._augmentation import mel
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import (
    CEPSTRA,
    DELTA_FRAMES,
    FEATURE_COLUMNS,
    LIFTER,
    LOWEST_HZ,
    MAX_MEMORY_FRAMES,
    MEL_BANDS,
    PRIOR_FRAMES,
    SHIFT_SAMPLES,
    SMALLEST_DEVIATION,
    WINDOW_SAMPLES,
)
from echolearn.validation import Array

FEATURES_TEMPLATES = templates("features.h")
FFT_SAMPLES = 512  # the power of two above a window
PRE_EMPHASIS = 0.97  # of high frequencies: every sample less this share of the one before
WINDOW_POWER = 0.85  # of Hann's window: Kaldi's own
DIFFERENCE_FRAMES = 2 * DELTA_FRAMES + 1  # that a difference is computed from


def c_features(recipe: FeatureRecipe, *, name: str = "esn") -> str:
    """Return the header of the features; name: that of the network, to which _features is appended."""
    check_name(name)
    if not recipe.audio:
        raise ExportError(
            f"the features of this recogniser begin with frames, not with sound ({recipe.describe()}); compute them in "
            "your program as you did for training, and export the network alone."
        )
    constants, state = Constants(f"{name}_features"), Struct()
    _add_constants(constants)
    if recipe.scale is not None:
        mean, deviation = recipe.scale
        constants.add("mean", mean, "double")
        constants.add("deviation", deviation, "double")
    _add_fields(state, recipe)
    passes = 2 if recipe.normalise == "utterance" else 1
    tokens = {
        "TITLE": f"From sound to the inputs of a network, by echolearn {__version__}",
        "RECIPE": recipe.describe(),
        "CONSTANTS": str(constants.size),
        "STATE": str(state.size()),
        "USE": FEATURES_TEMPLATES["two passes"] if passes == 2 else "",
        "PASSES": str(passes),
        "CONSTANT_TEXT": "\n\n".join(constants.text),
        "FIELDS": state.lines(),
        "SCALING": FEATURES_TEMPLATES[f"scaling {recipe.normalise}"],
        "MOMENTS": FEATURES_TEMPLATES[f"moments {recipe.normalise}"],
        "MEASURED": FEATURES_TEMPLATES[f"measured {passes}"],
        "COLUMNS": str(FEATURE_COLUMNS),
        "CONTEXT": str(recipe.context),
        "SIDE": str(recipe.context // 2),
        "AHEAD": str(2 * DELTA_FRAMES),
        "SPREAD": str(DELTA_FRAMES),
        "KEPT": str(DIFFERENCE_FRAMES),
        "NORM": f"{2 * sum(k * k for k in range(1, DELTA_FRAMES + 1))}.0f",
        "WINDOW": str(WINDOW_SAMPLES),
        "SHIFT": str(SHIFT_SAMPLES),
        "RATE": str(RATE_HZ),
        "HALF": str(FFT_SAMPLES // 2),
        "EMPHASIS": f"{PRE_EMPHASIS}f",
        "CEPSTRA": str(CEPSTRA),
        "BANDS": str(MEL_BANDS),
        "PRIOR": f"{PRIOR_FRAMES}",
        "LONGEST": f"{MAX_MEMORY_FRAMES}",
        "STILL": f"{SMALLEST_DEVIATION}",
        "N": name,
    }
    return fill_in(fill_in(FEATURES_TEMPLATES["header"], tokens), tokens)


def _add_constants(constants: Constants) -> None:
    """Add the window, the turns of the Fourier transform, the mel bands and the cosine transform."""
    n = np.arange(WINDOW_SAMPLES)
    constants.add("window", (0.5 - 0.5 * np.cos(2 * np.pi * n / (WINDOW_SAMPLES - 1))) ** WINDOW_POWER, "float")
    turns = 2 * np.pi * np.arange(FFT_SAMPLES // 2) / FFT_SAMPLES
    constants.add("cosine", np.cos(turns), "float")
    constants.add("sine", np.sin(turns), "float")
    weights = mel_weights()
    used = [np.flatnonzero(row) for row in weights]
    constants.add("first", np.array([places[0] for places in used]), "unsigned short")
    constants.add("start", np.append(0, np.cumsum([len(places) for places in used])), "unsigned short")
    constants.add("mel", np.concatenate([row[places] for row, places in zip(weights, used, strict=True)]), "float")
    k = np.arange(1, CEPSTRA)[:, None]
    cosines = np.sqrt(2 / MEL_BANDS) * np.cos(np.pi / MEL_BANDS * k * (np.arange(MEL_BANDS) + 0.5))
    constants.add("cepstra", cosines * (1 + LIFTER / 2 * np.sin(np.pi * k / LIFTER)), "float")


def mel_weights() -> Array:
    """Return the triangles (BANDS, FFT_SAMPLES / 2) of Kaldi's mel bands over the bins of the power spectrum."""
    edges = np.linspace(mel(LOWEST_HZ), mel(RATE_HZ / 2), MEL_BANDS + 2)
    bins = mel(np.arange(FFT_SAMPLES // 2) * RATE_HZ / FFT_SAMPLES)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.asarray(np.clip(np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)), 0, None))


def _add_fields(state: Struct, recipe: FeatureRecipe) -> None:
    if recipe.normalise in ("running", "utterance"):
        state.add("double", "mean", FEATURE_COLUMNS, "of every column: mean, or sum in the first pass")
        state.add("double", "square", FEATURE_COLUMNS, "mean of squares, or their sum")
        state.add("double", "seen", 0, "frames that the means stand for")
    state.add("float", "re", FFT_SAMPLES // 2, "work space")
    state.add("float", "im", FFT_SAMPLES // 2, "work space")
    state.add("float", "cepstra", DIFFERENCE_FRAMES * CEPSTRA, "of the last frames")
    state.add("float", "slopes", DIFFERENCE_FRAMES * CEPSTRA, "their first differences")
    state.add("float", "rows", recipe.context * FEATURE_COLUMNS, "the last normalised rows")
    state.add("int", "samples", 0, "samples in the window")
    state.add("int", "now", 0, "frames so far, those that are repeated at the end included")
    state.add("int", "last", 0, "the last frame, or -1 before the end")
    state.add("int", "measuring", 0, "whether this is the first of two passes")
    state.add("short", "window", WINDOW_SAMPLES, "the newest samples")
