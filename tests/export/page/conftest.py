"""One Chromium for all tests of pages, or Node; tests are skipped where there is none."""

import shutil
from pathlib import Path

import pytest

from reliability.browser import NodeTab, browser, find_chromium


@pytest.fixture(scope="session")
def microphone_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording that the browser's microphone plays over and over; write it before a microphone is started."""
    return tmp_path_factory.mktemp("microphone") / "sound.wav"


@pytest.fixture(scope="session")
def chromium(microphone_file):
    """Return an open browser with a microphone that everyone may use."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if find_chromium() is None:
        pytest.skip("there is no Chromium here; name one in ECHOLEARN_CHROMIUM")
    flags = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with browser(*flags, f"--use-file-for-fake-audio-capture={microphone_file}") as opened:
        yield opened


@pytest.fixture(scope="session")
def node():
    """Return a tab of Node, in which the scripts of a page run and nothing is drawn."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node here")
    return NodeTab()
