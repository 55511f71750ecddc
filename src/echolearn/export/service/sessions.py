"""One stream of one client: messages in, answers out. Nothing here knows of sockets or tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from echolearn.export.service.models import About, FrameStream, SoundStream
from echolearn.export.service.parsing import command_of, parse_json, parse_message
from echolearn.export.service.predictions import stream_answer
from echolearn.export.service.refusals import malformed, not_acceptable

encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Reply:
    """What is sent back; frames (or samples) that were taken; whether the stream is over; whether it was refused."""

    text: str
    frames: int = 0
    ended: bool = False
    wrong: bool = False


class Session(Protocol):
    """The stream of one client."""

    def take(self, message: str | bytes) -> Reply:
        """Return the answer to the next message; Refusal for a wrong one, after which the stream is as it was."""

    def seconds(self, message: str | bytes, per_frame: float) -> float:
        """Return the time that a message will take at most, if a frame takes `per_frame`."""


class FrameSession:
    """Frames in, probabilities or values out."""

    def __init__(self, about: About, stream: FrameStream) -> None:
        self._about, self._stream, self._step = about, stream, 0

    def take(self, message: str | bytes) -> Reply:
        """Return the answer to a frame, to a chunk of frames, or to a command."""
        found = parse_message(message, self._about.n_features)
        if isinstance(found, str):
            return self._command(found)
        frames, single = found
        try:
            rows = self._stream.step(frames)
            text = encode(stream_answer(self._about, self._step, rows, single))
        except (ValueError, FloatingPointError) as problem:
            raise not_acceptable(str(problem)) from problem
        self._step += len(frames)
        return Reply(text, frames=len(frames))

    def seconds(self, message: str | bytes, per_frame: float) -> float:
        """Return the time of as many frames as the message can hold."""
        smallest = (4 if isinstance(message, bytes) else 2) * self._about.n_features
        return per_frame * (1 + len(message) // smallest)

    def _command(self, name: str) -> Reply:
        if name == "end":
            return Reply(encode({"end": True, "steps": self._step}), ended=True)
        self._stream.reset()
        self._step = 0
        return Reply(encode({"reset": True}))


class SoundSession:
    """Samples in, text out: 16-bit integers, little-endian, one channel."""

    def __init__(self, stream: SoundStream) -> None:
        self._stream = stream

    def take(self, message: str | bytes) -> Reply:
        """Return what is known after a piece of sound, or after its end."""
        if isinstance(message, bytes):
            if len(message) == 0 or len(message) % 2:
                raise not_acceptable(f"the message has {len(message):,} bytes; expected samples of 2 bytes each.")
            samples = np.frombuffer(message, "<i2")
            try:
                return Reply(encode(self._stream.push(samples)), frames=len(samples))
            except (ValueError, FloatingPointError) as problem:
                raise not_acceptable(str(problem)) from problem
        value = parse_json(message)
        if not isinstance(value, dict):
            raise malformed('the message is text; expected bytes of sound, or {"command": "end"}.')
        command_of(value, ("end",))
        return Reply(encode({"end": True, **self._stream.finish()}), ended=True)

    def seconds(self, message: str | bytes, per_frame: float) -> float:
        """Return the time of a frame: sound is always for a thread."""
        return per_frame
