"""espeak-ng by ctypes: a sentence -> samples and sample-exact phone times."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

INSTALL = "install it with: pip install 'echolearn[speech]'"
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _NEVER_EXIT = 0x0001, 0x8000
_CHARS_UTF8 = 1
_END_OF_EVENTS, _PHONEME = 0, 7
_RATE, _PITCH, _RANGE = 1, 3, 4


class EspeakError(RuntimeError):
    """espeak-ng is missing or refuses to work."""


class _Id(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_void_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
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
    """One speaker: a language and variant of espeak-ng with a rate (words a minute), pitch and range."""

    language: str
    variant: str
    rate: int
    pitch: int
    range: int


class Espeak:
    """The synthesiser; one a process, because the library keeps its state in globals."""

    def __init__(self) -> None:
        self._library, data = _load()
        self._variants = Path(data) / "voices" / "!v"
        self.rate = self._library.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _PHONEME_EVENTS | _NEVER_EXIT)
        if self.rate <= 0:
            raise EspeakError(f"espeak-ng found no voices in {data}; {INSTALL}")
        self._chunks: list[NDArray[np.int16]] = []
        self._phones: list[tuple[int, str]] = []
        # Kept as an attribute: the library holds the only other reference, which Python cannot see.
        self._callback = _Callback(self._collect)
        self._library.espeak_SetSynthCallback(self._callback)

    def use(self, voice: Voice) -> None:
        # espeak-ng falls back to its plain voice without a word when the variant does not exist.
        if not (self._variants / voice.variant).is_file():
            raise EspeakError(f"espeak-ng has no voice variant {voice.variant!r}; {INSTALL}")
        name = f"{voice.language}+{voice.variant}"
        if self._library.espeak_SetVoiceByName(name.encode()) != 0:
            raise EspeakError(f"espeak-ng has no voice {name!r}; {INSTALL}")
        for parameter, value in ((_RATE, voice.rate), (_PITCH, voice.pitch), (_RANGE, voice.range)):
            self._library.espeak_SetParameter(parameter, value, 0)

    def say(self, text: str, seed: int) -> tuple[NDArray[np.int16], list[tuple[int, str]]]:
        """Samples at `rate`, and (first sample, espeak's phone name) of every phone.

        The seed is espeak's own noise's, otherwise taken from the clock.
        """
        self._chunks, self._phones = [], []
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        raw = text.encode()
        status = self._library.espeak_Synth(raw, len(raw) + 1, 0, 1, 0, _CHARS_UTF8, None, None)
        if status != 0 or self._library.espeak_Synchronize() != 0 or not self._chunks:
            raise EspeakError(f"espeak-ng could not say {text!r} (status {status})")
        return np.concatenate(self._chunks), self._phones

    def _collect(self, samples: Any, count: int, events: Any) -> int:
        if count > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        at = 0
        while events[at].type != _END_OF_EVENTS:
            event = events[at]
            if event.type == _PHONEME:
                self._phones.append((event.sample, event.id.string.decode("utf-8", "replace")))
            at += 1
        return 0


def _load() -> tuple[Any, str]:
    try:
        import espeakng_loader

        library = ctypes.CDLL(espeakng_loader.get_library_path())
        seeded: Callable[..., Any] = library.espeak_ng_SetRandSeed
        data = espeakng_loader.get_data_path()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise EspeakError(f"synthetic speech needs espeak-ng, which is missing ({error}); {INSTALL}") from error
    del seeded
    return library, str(data)
