"""Open every page of the built site in Chromium, at 1280 and 400 pixels, light and dark, and report what is broken.

    python -m reliability.site_pages [--site docs/_build/html] [--pictures runs/site] [--only howto/]

Reported are content wider than the page, tables and code that are cut off, pictures that do not load or have no
description, text with too little contrast, errors of scripts, and everything that is fetched from elsewhere. With
--pictures every page is saved as a PNG to look at. Ends with status 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reliability.browser import browser, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
WIDTHS = (1280, 400)
THEMES = ("light", "dark")
BROKEN = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def look(page: Page, path: Path, picture: Path | None) -> list[str]:
    """Return what is broken on one page, and save its picture."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"script: {error}"))
    page.on("request", lambda request: errors.extend(_fetched(request.url)))
    page.goto(path.as_uri(), wait_until="load")
    found = page.evaluate(BROKEN) + errors
    if picture:
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(picture), full_page=True)
    return found


def _fetched(url: str) -> list[str]:
    """Return a line if an address is not a file of the site."""
    return [] if url.startswith(("file:", "data:", "blob:")) else [f"fetched: {url}"]


def look_at_all(opened: Browser, site: Path, pages: list[Path], pictures: Path | None) -> int:
    """Print what is broken, page by page; return how many findings there are."""
    count = 0
    for width in WIDTHS:
        for theme in THEMES:
            context = opened.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
            for path in pages:
                name = path.relative_to(site).with_suffix("")
                page = context.new_page()
                found = look(page, path, pictures and pictures / f"{width}-{theme}" / f"{'-'.join(name.parts)}.png")
                page.close()
                count += len(found)
                for line in found:
                    print(f"{name}, {width} pixels, {theme}: {line}", flush=True)
            context.close()
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=ROOT / "docs" / "_build" / "html")
    parser.add_argument("--pictures", type=Path, help="a folder for a PNG of every page")
    parser.add_argument("--only", default="", help="pages whose path begins so")
    chosen = parser.parse_args()
    site = chosen.site.resolve()
    pages = [path for path in sorted(site.rglob("*.html")) if str(path.relative_to(site)).startswith(chosen.only)]
    if not pages or find_chromium() is None:
        print("There is no built site: run `make docs` first." if not pages else "Chromium was not found.")
        return 2
    with browser() as opened:
        count = look_at_all(opened, site, pages, chosen.pictures)
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(THEMES)} themes: {count} findings.")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
