"""Types that every package uses."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]  # an array of any dtype
