"""One Chromium for all tests of pages; they are skipped where there is none."""

import pytest

from reliability.browser import browser, find_chromium


@pytest.fixture(scope="session")
def chromium():
    """Return an open browser."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if find_chromium() is None:
        pytest.skip("there is no Chromium here; name one in ECHOLEARN_CHROMIUM")
    with browser() as opened:
        yield opened
