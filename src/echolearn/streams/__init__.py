"""Networks that run continuously, one frame or a chunk of frames at a time."""

from echolearn.streams._stream import Stream

__all__ = ["Stream"]
