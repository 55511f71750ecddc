"""The parts of a recogniser that a page needs beside its network: the recipe of the features and the decoders, as JSON.

Arrays of decoding graphs are compressed (`packed`): a graph of a thousand words has half a million arcs, which repeat
the same few phones. Total weights of arcs are written instead of their parts, because a page does not tune them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from echolearn.exceptions import ExportError
from echolearn.export.c.speech import FFT_SAMPLES, PRE_EMPHASIS, WINDOW_POWER
from echolearn.export.page.payload import Json
from echolearn.speech import _features
from echolearn.speech._audio import RATE_HZ
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._phone_set import SILENCES, split_state
from echolearn.speech.recognition import Recognizer
from echolearn.speech.recognition._decoder import Decoder
from echolearn.speech.recognition._stream import PAUSE_SECONDS, pause_frames
from echolearn.validation import Array

Payload = dict[str, Json]
ENERGY_FLOOR = 1.0  # as `features.mfcc` sets it
BAND_ENERGY_FLOOR = float(np.finfo(np.float32).eps)  # energies below count as this before Kaldi takes their logarithm
MAX_RECORDING_BYTES = 1_000_000
_BEGINNINGS = (b"RIFF", b"NIST_1A", b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_GROUPS = {
    "vowels": "iy ih ix ey eh ae aa ao ow uh uw ux ah ax ax-h er axr ay aw oy ar or ir air ur ia ayr",
    "glides": "w y r l el",
    "nasals": "m em n en nx ng eng",
    "fricatives": "f v th dh s z sh zh hh hv",
    "stops": "p b t d k g ch jh dx q pcl bcl tcl dcl kcl gcl",
}  # phones of one kind stand beside each other on the page; others come after them


def recognizer_payload(recognizer: Recognizer) -> Payload:
    """Return features, states, phones and decoders of a recogniser whose features begin with sound."""
    task, words = recognizer.phones, recognizer.word_decoder
    return {
        **_shared(recognizer.features, task.states),
        "priors": task.priors.tolist(),
        "silent_states": task.silent_states,
        "phone_decoder": _decoder(recognizer.phone_decoder),
        "word_decoder": None if words is None else _decoder(words),
    }


def network_payload(states: Sequence[str], n_features: int) -> Payload:
    """Return features, states and phones of a network saved without a decoder, normalised per utterance."""
    context = n_features // _features.FEATURE_COLUMNS
    return {**_shared(FeatureRecipe(context=context), states), "phone_decoder": None, "word_decoder": None}


def takes_sound(n_features: int) -> bool:
    """Return whether a network has as many inputs as features of sound with a context: an odd multiple of 39."""
    context, rest = divmod(n_features, _features.FEATURE_COLUMNS)
    return rest == 0 and context % 2 == 1


def example_recording(path: Path) -> Payload:
    """Return the name and the bytes of a recording with which a page opens."""
    if not path.is_file():
        raise ExportError(f"there is no recording {path}; check the path.")
    content = path.read_bytes()
    if len(content) > MAX_RECORDING_BYTES:
        raise ExportError(
            f"{path} has {len(content):,} bytes; a recording in a page has at most {MAX_RECORDING_BYTES:,}."
        )
    if not content.startswith(_BEGINNINGS):
        raise ExportError(f"{path} is no recording that a page can play; expected a WAV, FLAC, OGG or MP3 file.")
    return {"name": path.name, "bytes": base64.b64encode(content).decode()}


def names_states(classes: Sequence[str]) -> bool:
    """Return whether classes are the states of phones, such as ``aa_s2``."""
    return len(classes) > 0 and all(split_state(name)[1] is not None for name in classes)


def _shared(recipe: FeatureRecipe, states: Sequence[str]) -> Payload:
    phones = list(dict.fromkeys(split_state(name)[0] for name in states))
    return {
        "recipe": _recipe(recipe),
        "states": list(states),
        "phones": phones,
        "groups": _groups(phones),
        "phone_of_state": [phones.index(split_state(name)[0]) for name in states],
        "silences": sorted(SILENCES),
        "frame_seconds": _features.FRAME_SECONDS,
        "pause": pause_frames(PAUSE_SECONDS),
    }


def _groups(phones: Sequence[str]) -> list[Payload]:
    """Return phones of one kind together, by the names of ARPAbet and TIMIT; silences are the last."""
    kind = {phone: name for name, listed in _GROUPS.items() for phone in listed.split()}
    kind |= {name.lower(): "silence" for name in SILENCES}
    order = {phone: k for k, phone in enumerate(kind)}
    plain = [phone.lower().rstrip("0123456789") for phone in phones]
    members_of: dict[str, list[int]] = {name: [] for name in (*_GROUPS, "others", "silence")}
    for k in sorted(range(len(phones)), key=lambda k: (order.get(plain[k], len(order)), phones[k])):
        members_of[kind.get(plain[k], "others")].append(k)
    return [{"name": name, "phones": members} for name, members in members_of.items() if members]


def _recipe(recipe: FeatureRecipe) -> Payload:
    """Return the settings of the features, all that their computation depends on."""
    if not recipe.audio:
        raise ExportError(
            f"this recogniser takes frames ({recipe.describe()}) and not sound, so that a page cannot listen with it; "
            "train one on a corpus of sound."
        )
    mean, deviation = (None, None) if recipe.scale is None else (values.tolist() for values in recipe.scale)
    return {
        "normalise": recipe.normalise,
        "context": recipe.context,
        "look_ahead": recipe.look_ahead,
        "description": recipe.describe(),
        "scale": {
            "mean": mean,
            "deviation": deviation,
            "still": _features.SMALLEST_DEVIATION,
            "prior_frames": _features.PRIOR_FRAMES,
            "longest_memory": _features.MAX_MEMORY_FRAMES,
        },
        "mfcc": {
            "rate": RATE_HZ,
            "window": _features.WINDOW_SAMPLES,
            "shift": _features.SHIFT_SAMPLES,
            "fft": FFT_SAMPLES,
            "bands": _features.MEL_BANDS,
            "lowest": _features.LOWEST_HZ,
            "lifter": _features.LIFTER,
            "cepstra": _features.CEPSTRA,
            "emphasis": PRE_EMPHASIS,
            "window_power": WINDOW_POWER,
            "floor": ENERGY_FLOOR,
            "smallest": BAND_ENERGY_FLOOR,
        },
    }


def _decoder(decoder: Decoder) -> Payload:
    graph, w = decoder.graph, decoder.weights
    arcs = np.diff(graph.first)
    source = np.repeat(np.arange(len(arcs)), arcs)
    total = graph.weights(duration_weight=w.duration_weight, language_weight=w.language_weight, penalty=w.penalty)
    return {
        "prior_exponent": w.prior_exponent,
        "language_weight": w.language_weight,
        "beam": None if np.isinf(w.beam) else w.beam,
        "start": graph.start,
        "tokens": list(graph.tokens),
        "arrays": {
            "emission": packed(graph.emission),
            "arcs": packed(arcs.astype(np.int32)),
            "step": packed((graph.target - source).astype(np.int32)),
            "token": packed(graph.token),
            "weight": packed(total),
            "final": packed(graph.final[graph.emitting :]),
        },
    }


def packed(values: Array) -> Payload:
    """Return an array of four-byte numbers as text: all lowest bytes first, then the second ones, and so on, which
    compresses well."""
    planes = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, 4).T)
    content = base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()
    return {"type": "float" if values.dtype.kind == "f" else "int", "length": len(values), "bytes": content}
