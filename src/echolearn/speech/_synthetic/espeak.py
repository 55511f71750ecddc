"""Speech synthesis with espeak-ng: the samples, phones and words of sentences, and the pronunciation of words."""

from __future__ import annotations

import ctypes
import re
from ctypes import _Pointer
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.exceptions import EspeakError

INSTALL = "install it with: pip install 'echolearn[speech]'"
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _NEVER_EXIT = 0x0001, 0x8000
_CHARS_UTF8 = 1
_END_OF_EVENTS, _WORD, _PHONEME = 0, 1, 7
_SEPARATOR = "_"  # between the phones of a pronunciation; no phone of English has it in its name
_PARAMETERS = {"rate": 1, "pitch": 3, "range": 4}


class _Id(ctypes.Union):
    string: bytes
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_void_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    type: int
    text_position: int
    sample: int
    id: _Id
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True)
class Voice:
    """The voice of a speaker of espeak-ng."""

    language: str  # determines the accent, for instance en-us
    variant: str  # for instance f2
    rate: int  # words per minute
    pitch: int  # 0 to 100
    range: int  # of the pitch, 0 to 100


class Spoken(NamedTuple):
    """A synthesised sentence, as `Espeak.say` returns it."""

    samples: NDArray[np.int16]
    phones: list[tuple[int, str]]  # first sample and espeak-ng's name
    words: list[tuple[int, str]]  # first sample and text


class Espeak:
    """The synthesiser espeak-ng. Make only one per process, because the library keeps its state in global variables."""

    def __init__(self) -> None:
        self._library, data = _load()
        self._variants = Path(data) / "voices" / "!v"
        self.rate = self._library.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _PHONEME_EVENTS | _NEVER_EXIT)
        if self.rate <= 0:
            raise EspeakError(f"espeak-ng found no voices in {data}; {INSTALL}")
        self._chunks: list[NDArray[np.int16]] = []
        self._phones: list[tuple[int, str]] = []
        self._words: list[tuple[int, int]] = []  # first sample, and first character counted from 1
        # Kept as an attribute: the library holds the only other reference, which Python cannot see.
        self._callback = _Callback(self._collect)
        self._library.espeak_SetSynthCallback(self._callback)

    def use(self, voice: Voice) -> None:
        """Select the voice of the sentences that follow."""
        # espeak-ng falls back to its plain voice without an error when the variant does not exist.
        if not (self._variants / voice.variant).is_file():
            raise EspeakError(f"espeak-ng has no voice variant {voice.variant!r}; {INSTALL}")
        name = f"{voice.language}+{voice.variant}"
        if self._library.espeak_SetVoiceByName(name.encode()) != 0:
            raise EspeakError(f"espeak-ng has no voice {name!r}; {INSTALL}")
        for name, parameter in _PARAMETERS.items():
            self._library.espeak_SetParameter(parameter, getattr(voice, name), 0)

    def say(self, text: str, seed: int) -> Spoken:
        """Synthesise a sentence at `rate` in the selected voice; the same seed gives the same noise."""
        self._chunks, self._phones, self._words = [], [], []
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        raw = text.encode()
        status = self._library.espeak_Synth(raw, len(raw) + 1, 0, 1, 0, _CHARS_UTF8, None, None)
        if status != 0 or self._library.espeak_Synchronize() != 0 or not self._chunks:
            raise EspeakError(f"espeak-ng could not say {text!r} (status {status})")
        ends = [first for _, first in self._words[1:]] + [len(text) + 1]
        words = [
            (sample, word)
            for (sample, first), end in zip(self._words, ends, strict=True)
            for word in re.findall(r"[\w']+", text[first - 1 : end - 1])  # "was the" may be spoken as one word
        ]
        return Spoken(np.concatenate(self._chunks), self._phones, words)

    def pronounce(self, text: str) -> list[list[str]]:
        """Return the phones of each word in the selected voice; words that espeak-ng joins are one entry."""
        rest = ctypes.c_char_p(text.encode())
        function = self._library.espeak_TextToPhonemes
        function.restype = ctypes.c_char_p
        words: list[str] = []
        while rest.value:
            clause = function(ctypes.byref(rest), _CHARS_UTF8, ord(_SEPARATOR) << 8)
            words += clause.decode("utf-8", "replace").split()
        return [word.split(_SEPARATOR) for word in words]

    def _collect(self, samples: _Pointer[ctypes.c_short], count: int, events: _Pointer[_Event]) -> int:
        """Keep a chunk of samples and the phones in it; the library calls this for every chunk."""
        if count > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        at = 0
        while events[at].type != _END_OF_EVENTS:
            event = events[at]
            if event.type == _PHONEME:
                self._phones.append((event.sample, event.id.string.decode("utf-8", "replace")))
            elif event.type == _WORD:
                self._words.append((event.sample, event.text_position))
            at += 1
        return 0


def _load() -> tuple[ctypes.CDLL, str]:
    """Return the library and the folder of its data."""
    try:
        import espeakng_loader

        library = ctypes.CDLL(espeakng_loader.get_library_path())
        _ = library.espeak_ng_SetRandSeed  # older versions lack it
        data = espeakng_loader.get_data_path()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise EspeakError(f"synthetic speech needs espeak-ng, which is missing ({error}); {INSTALL}") from error
    return library, str(data)
