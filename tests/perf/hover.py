"""How long a browser takes to light what shares memory with the element under the pointer, of few and of many."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from pages.common.registry import TENSORS
from tests.browser.chromium import ensure
from tests.browser.conftest import FLAGS, running_server

SHAPES = ((2, 3), (20, 25))

MEDIAN = """() => {
    const roots = [...document.querySelectorAll("*")].map(element => element.shadowRoot)
    const root = roots.find(shadow => shadow?.querySelector(".storages"))
    const cells = [...root.querySelectorAll(".card .c")].filter((_, i, all) => i % Math.ceil(all.length / 200) === 0)
    const times = cells.map(cell => {
        const start = performance.now()
        cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, composed: true }))
        void root.querySelector(".readout").offsetHeight // style and layout are done now
        return performance.now() - start
    })
    return [root.querySelectorAll(".c").length, times.sort((a, b) => a - b)[times.length >> 1]]
}"""


def main() -> None:
    """Measure and print; a frame lasts 16.7 ms."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "log.txt") as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=ensure(), args=FLAGS)
        page = browser.new_page()
        found: list[tuple[int, float]] = []
        for shape in SHAPES:
            page.goto(f"{base}/{TENSORS.url_path}?t_shape={quote(str(shape).strip('()'))}&t_x=x.t()")
            page.locator(".storages .c").first.wait_for()
            found.append(page.evaluate(MEDIAN))
        browser.close()
    (few, fast), (many, slow) = found
    print(
        f"pointer to lit cells: {fast:.2f} ms with {few} cells, {slow:.2f} ms with {many:,}, "
        f"ratio {slow / max(fast, 0.01):.1f}, {slow / 16.7:.2f} of a frame"
    )


if __name__ == "__main__":
    main()
