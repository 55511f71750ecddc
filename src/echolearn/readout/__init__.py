"""Statistics of the states, and the readouts that are fitted to them; `RLS` and `LMS` learn frame by frame."""

from echolearn.readout.online import LMS, RLS

__all__ = ["LMS", "RLS"]
