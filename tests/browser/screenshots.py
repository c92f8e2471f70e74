"""``make screenshots``: every page in both themes at 1280 and 1600 px, full height, into ``screenshots/``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from playwright.sync_api import sync_playwright

from pages.common.registry import PAGES
from tests.browser.chromium import ensure
from tests.browser.conftest import FLAGS, ROOT, running_server, settle

FOLDER = ROOT / "screenshots"


def main() -> None:
    """Write one PNG per page, theme and width, and print its path."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"NAPKIN_DATA": folder}),
        running_server(Path(folder) / "log.txt") as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=ensure(), args=FLAGS)
        for spec in PAGES:
            for theme in ("light", "dark"):
                for width in (1280, 1600):
                    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
                    page = context.new_page()
                    page.goto(f"{base}/{spec.url_path}")
                    settle(page)
                    # The page scrolls inside stMain: the window grows to its height for a full picture.
                    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
                    page.set_viewport_size({"width": width, "height": max(900, min(height, 5000))})
                    page.wait_for_timeout(1200)
                    path = FOLDER / f"{spec.id}-{theme}-{width}.png"
                    page.screenshot(path=str(path))
                    print(path.relative_to(ROOT))
                    context.close()


if __name__ == "__main__":
    main()
