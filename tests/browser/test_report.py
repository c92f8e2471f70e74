"""A report opened from disk without a network: whole, quiet, and readable on a screen and on paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from core.views.plan.text import headline
from core.views.report.document import as_html
from core.wording import plain
from pages.common.registry import COMPUTE
from tests.browser.conftest import watch
from tests.browser.test_all_pages import serious
from tests.core.report_cases import PAGE_PRESETS, report

pytestmark = pytest.mark.browser

LARGEST_BYTES = 6_000_000
"""Of the file of one plan, with plotly.js; it goes as an attachment."""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of six plans as a file."""
    file = tmp_path_factory.mktemp("report") / "several.html"
    file.write_text(as_html(report(*list(PAGE_PRESETS.values())[:6])), encoding="utf-8")
    return file


def pages(paper: Path) -> int:
    """Pages of a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))


@contextmanager
def opened(browser: Browser, file: Path, width: int, theme: str = "light") -> Iterator[Page]:
    """The file in a browser that is offline, where every request beside it is a fault."""
    context = browser.new_context(color_scheme=theme, offline=True, bypass_csp=False)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    problems: list[str] = []
    watch(page, problems, [])

    def asked(request: Request) -> None:
        if not request.url.startswith(file.as_uri()):
            problems.append(f"request: {request.url}")

    page.on("request", asked)
    page.goto(file.as_uri())
    yield page
    assert problems == []
    context.close()


def readable(page: Page) -> None:
    """Nothing is wider than the window or clipped, and and every picture is drawn in the colors of paper."""
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(251, 247, 238)"
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator("[data-figure]").count() == page.locator("[data-figure]:has(.main-svg .points)").count() > 0
    inside = """() => [...document.querySelectorAll('[data-figure]')].flatMap(place => {
      const box = place.getBoundingClientRect()
      return [...place.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect()
        return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1 })
        .map(t => t.textContent) })"""
    assert page.evaluate(inside) == []


def test_a_downloaded_report_opens_offline(open_page: Callable[..., Page], browser: Browser, tmp_path: Path) -> None:
    page = open_page(f"{COMPUTE.url_path}?c_take=true&p_n=8B&p_count=64")
    said = page.locator(".np-answer").inner_text().partition("\n")[0]
    with page.expect_download() as saved:
        page.get_by_role("button", name="HTML report").click()
    assert re.fullmatch(r"napkin-[a-z0-9.-]+\.html", saved.value.suggested_filename)
    file = tmp_path / "report.html"
    saved.value.save_as(file)
    assert page.problems == []  # type: ignore[attr-defined]
    assert file.stat().st_size < LARGEST_BYTES
    for theme in ("light", "dark"):
        with opened(browser, file, 1280, theme) as again:
            expect(again.locator(".answer")).to_have_text(said.replace("\u00a0", " "))
            readable(again)
            assert again.locator("a.open").get_attribute("href").startswith("http://127.0.0.1:")  # type: ignore[union-attr]
            paper = tmp_path / f"{theme}.pdf"
            again.pdf(path=paper, format="A4", print_background=True)
            assert pages(paper) <= 4
            again.locator("summary").click()
            again.pdf(path=paper, format="A4", print_background=True)
            assert 4 < pages(paper) <= 10, "the appendix prints where it is open"
            again.emulate_media(media="print")
            assert again.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_comparison_reads_on_every_screen(several: Path, browser: Browser, width: int) -> None:
    with opened(browser, several, width) as page:
        first = next(iter(PAGE_PRESETS.values()))
        expect(page.locator(".answer").nth(1)).to_contain_text(plain(headline(first.answer))[:30])
        readable(page)


def test_a_report_of_three_plans_prints_on_four_pages(browser: Browser, tmp_path: Path) -> None:
    file, paper = tmp_path / "three.html", tmp_path / "three.pdf"
    file.write_text(as_html(report(*list(PAGE_PRESETS.values())[:3])), encoding="utf-8")
    with opened(browser, file, 1280) as page:
        page.pdf(path=paper, format="A4", print_background=True)
    assert pages(paper) <= 4


def test_a_report_has_no_barrier(several: Path, browser: Browser) -> None:
    """Read by axe, which has to be put into the page: in a copy without the rule that forbids scripts."""
    text = several.read_text(encoding="utf-8")
    free = several.with_name("free.html")
    free.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text), encoding="utf-8")
    with opened(browser, free, 1280) as page:
        assert serious(page) == []


def test_the_rule_of_a_report_forbids_other_scripts(several: Path, browser: Browser) -> None:
    """Were something to come into it all the same, it would not run."""
    bad = several.with_name("bad.html")
    text = several.read_text(encoding="utf-8")
    bad.write_text(text.replace("<main>", "<main><script>document.title = 'ran'</script>"), encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(bad.as_uri())
    assert page.title() != "ran"
    context.close()
