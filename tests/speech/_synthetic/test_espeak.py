"""espeak-ng that is missing, and voices that it does not have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from echolearn.exceptions import EspeakError
from echolearn.speech._synthetic.espeak import Espeak


def test_missing_library_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(EspeakError, match=r"espeak-ng, which is missing .* pip install 'echolearn\[speech\]'"):
        Espeak()


def test_voices_that_do_not_exist_are_refused() -> None:
    code = (
        "from echolearn.speech._synthetic.espeak import *\ne = Espeak()\n"
        "for v in (Voice('en-us', 'nobody', 150, 50, 50), Voice('xx', 'f1', 150, 50, 50)):\n"
        "    try: e.use(v)\n    except EspeakError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "no voice variant 'nobody'" in out
    assert "no voice 'xx+f1'" in out
