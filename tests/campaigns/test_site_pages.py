"""The look at the site finds what is broken, and nothing on a page that is not."""

import pytest

from reliability.browser import browser, find_chromium
from reliability.site_pages import look_at_all

FRAME = "<!doctype html><meta name=viewport content='width=device-width'><article>{}</article>"
PICTURE = "<img alt='a dot' src='data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=='>"
BROKEN = {
    "cut off: table": "<table><tr><td style='min-width: 1500px'>wide</td></tr></table>",
    "cut off: pre": "<pre style='overflow: hidden; width: 100px'>" + "x" * 300 + "</pre>",
    "does not load": "<img alt='a curve' src='missing.png'>",
    "without a description": PICTURE.replace("alt='a dot'", ""),
    "contrast 1.6": "<p style='color: #ccc'>pale</p>",
    "script: ": "<script>throw new Error('broken')</script>",
    "fetched: http://127.0.0.1:9/": "<img alt='a logo' src='http://127.0.0.1:9/logo.png'>",
}


@pytest.fixture(scope="module")
def chromium():
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if find_chromium() is None:
        pytest.skip("there is no Chromium here; name one in ECHOLEARN_CHROMIUM")
    with browser() as opened:
        yield opened


def findings(chromium, folder, content, capsys):
    page = folder / "page.html"
    page.write_text(FRAME.format(content), encoding="utf-8")
    count = look_at_all(chromium, folder, [page], None)
    return count, capsys.readouterr().out


def test_broken_pages_are_reported(chromium, tmp_path, capsys):
    for name, content in BROKEN.items():
        assert name in findings(chromium, tmp_path, content, capsys)[1], name


def test_a_good_page_has_no_findings(chromium, tmp_path, capsys):
    wide = "<div style='overflow-x: auto'><table><tr><td style='min-width: 1500px'>wide</td></tr></table></div>"
    assert findings(chromium, tmp_path, f"<p>text</p>{wide}{PICTURE}", capsys) == (0, "")
