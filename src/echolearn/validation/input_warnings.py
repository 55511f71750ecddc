"""The warnings about data that were accepted, but from which something else may have been read than was meant."""

from __future__ import annotations


class InputWarning(UserWarning):
    """Inputs or labels are of a kind or scale that little can be learned from."""


class LayoutWarning(InputWarning):
    """A warning that the axes of X could mean two things: it names the one taken, and how to set the other."""
