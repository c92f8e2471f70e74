"""Every page in a real browser: no exception box, no console error, no serious axe violation, in both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from core.fields import LINK_VERSION
from pages.parts.registry import COMPUTE, DEVICE, HOME, PAGES, PageSpec
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

IDS = [page.id for page in PAGES]
CUT = """() => [...document.querySelectorAll('.katex-display')]
  .filter(e => e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth).map(e => e.innerText)"""
"""Formulas that do not fit their boxes, which clip."""

LOGO = "[data-testid=stSidebarLogo], [data-testid=stHeaderLogo]"


def serious(page: Page) -> list[str]:
    """Axe findings that keep somebody from using the page, as rule, first target and first reason."""
    found = Axe().run(page).response["violations"]
    return [
        f"{v['id']}: {n['target']} {n['any'][0]['message'] if n['any'] else v['help']}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]


def clean(page: Page, spec: PageSpec, theme: str) -> None:
    """Nothing in sight is broken, unreadable or wider than the page."""
    expect(page.locator("h1")).to_have_text(spec.h1)
    expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
    page.wait_for_timeout(600)  # charts and fonts arrive after the script has ended
    background = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert background == {"light": "rgb(251, 247, 238)", "dark": "rgb(23, 34, 44)"}[theme]
    overflow = page.evaluate(
        "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth })()"
    )
    assert overflow <= 0, "the page scrolls sideways"
    assert serious(page) == []
    assert page.problems == []  # type: ignore[attr-defined]


def fields(link: str) -> list[str]:
    """The names of the inputs that a permalink spells out."""
    query = parse_qs(urlsplit(link).query, keep_blank_values=True)
    assert query.pop("v") == [str(LINK_VERSION)]
    return list(query)


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_page_is_clean_and_its_permalink_opens_to_it(open_page: Callable[..., Page], spec: PageSpec) -> None:
    page = open_page(spec.url_path)
    clean(page, spec, "light")
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    assert all(name.startswith(f"{spec.prefix}_") for name in fields(link))
    answers = page.locator(".np-answer").all_inner_texts()
    page.goto(link)
    settle(page)
    assert page.locator("button[data-link]").get_attribute("data-link") == link
    assert page.locator(".np-answer").all_inner_texts() == answers


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_page_with_everything_open_is_clean(open_page: Callable[..., Page], spec: PageSpec) -> None:
    """Every panel that the address can open, in the other theme and on both widths; then the derivations too."""
    page = open_page(spec.url_path, theme="dark", width=1600)
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    page.goto(link.replace("=false", "=true"))
    settle(page)
    clean(page, spec, "dark")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    expect(page.locator(LOGO).first).to_be_visible()
    settle(page)
    clean(page, spec, "light")
    closed = page.locator("details:not([open]) > summary").filter(has_text="computed")
    while closed.count():
        closed.first.click()
        settle(page)
    page.wait_for_timeout(600)  # KaTeX's fonts
    assert page.evaluate(CUT) == []
    page.emulate_media(color_scheme="dark")


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_every_field_survives_hostile_values(open_page: Callable[..., Page], server: str, spec: PageSpec) -> None:
    """Nonsense in every query parameter leaves a working page that shows messages, not exceptions."""
    page = open_page(spec.url_path)
    names = fields(page.locator("button[data-link]").get_attribute("data-link") or "")
    nonsense = ("1e999", "%3Cscript%3Ealert(1)%3C/script%3E", "-1", "9" * 300)
    for shift in (0, 1):
        hostile = "&".join(f"{name}={nonsense[(i + shift) % 4]}" for i, name in enumerate(names))
        page.goto(f"{server}/{spec.url_path}?{hostile}")
        settle(page)
        expect(page.locator("h1")).to_have_text(spec.h1)
        expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
        expect(page.locator("button[data-link]")).to_have_count(1)
        assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", [COMPUTE, DEVICE], ids=lambda spec: spec.id)
def test_deep_link_on_a_fresh_server(
    open_page: Callable[..., Page], fresh_server: Callable[..., object], spec: PageSpec
) -> None:
    with fresh_server() as base:  # type: ignore[attr-defined]
        page = open_page(spec.url_path, base=base)
        expect(page.locator("h1")).to_have_text(spec.h1)
        # Only app.py puts the navigation there: a page run without it would have none.
        expect(page.locator('[data-testid="stSidebar"] [data-testid="stPageLink"] a')).to_have_count(len(PAGES))
        expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)  # "Page not found" would be one
        assert page.problems == []  # type: ignore[attr-defined]


def test_charts_wear_the_themes_colours(open_page: Callable[..., Page]) -> None:
    """The placeholders of pages.parts.theme must be gone from every drawn chart."""
    for theme in ("light", "dark"):
        page = open_page("training-memory", theme=theme)
        page.wait_for_selector(".js-plotly-plot .main-svg")
        drawn = page.locator(".js-plotly-plot").first.inner_html().lower()
        assert "rgb(0, 0, " not in drawn.replace("rgb(0, 0, 0)", "")


def test_permalink_round_trip_with_changed_inputs(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path)
    box = page.locator('[data-testid="stTextInput"] input').first
    box.fill("13B")
    box.press("Enter")
    expect(page.locator(".np-answer").first).to_contain_text("13B")
    settle(page)
    answer = page.locator(".np-answer").first.inner_text()
    page.get_by_role("button", name="Copy link to this page").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "13B" in link
    again = open_page(link.split("/", 3)[3])
    assert again.locator(".np-answer").first.inner_text() == answer


def test_a_link_from_a_newer_version_says_so(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{COMPUTE.url_path}?v=7")
    expect(page.get_by_role("alert").filter(has_text="newer Napkin")).to_be_visible()


def test_back_leaves_the_page_and_finds_the_inputs_again(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path)
    menu = page.locator('[data-testid="stSidebar"]')

    def answer() -> str:
        return page.locator(".np-answer").first.inner_text()

    def type_into(label: str, text: str) -> None:
        box = page.get_by_label(label, exact=True)
        box.fill(text)
        box.press("Enter")
        page.wait_for_function("text => decodeURIComponent(location.search).includes(text)", arg=text)
        settle(page)

    type_into("Parameters", "13B")
    type_into("Tokens", "2T")
    home = answer()
    menu.get_by_role("link", name=COMPUTE.title).click()
    page.wait_for_url("**/compute-budget*")
    settle(page)
    type_into("Tokens", "3T")
    type_into("MFU", "30%")
    compute = answer()
    menu.get_by_role("link", name="Measure").click()
    page.wait_for_url("**/measure*")
    settle(page)
    page.go_back()
    page.wait_for_url("**/compute-budget*")
    expect(page.locator(".np-answer").first).to_have_text(compute, use_inner_text=True)
    page.go_back()
    expect(page.locator("h1")).to_have_text(HOME.h1)
    expect(page.locator(".np-answer").first).to_have_text(home, use_inner_text=True)


def test_a_link_carries_its_inputs_past_what_was_typed_there(open_page: Callable[..., Page]) -> None:
    page = open_page(COMPUTE.url_path)
    box = page.get_by_label("Tokens", exact=True)
    box.fill("3T")
    box.press("Enter")
    expect(page.locator(".np-answer").first).to_contain_text("3T")
    settle(page)
    page.locator('[data-testid="stSidebar"]').get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_have_text(HOME.h1)
    settle(page)
    page.get_by_role("link", name="Where the FLOPs go").click()
    expect(page.locator("h1")).to_have_text(COMPUTE.h1)
    settle(page)
    expect(page.locator(".np-answer").first).to_contain_text("15T")
    page.go_back()
    expect(page.locator("h1")).to_have_text(HOME.h1)


def test_switching_the_theme_redraws_charts_and_logo(open_page: Callable[..., Page]) -> None:
    page = open_page("training-memory", theme="light")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    background = page.locator(".js-plotly-plot .main-svg").first
    assert "251, 247, 238" in (background.get_attribute("style") or "")
    logo = page.locator(LOGO).first
    drawn_light = logo.get_attribute("src") or ""
    page.get_by_test_id("stMainMenu").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_have_attribute("style", re.compile("23, 34, 44"))
    expect(logo).not_to_have_attribute("src", drawn_light)
    page.keyboard.press("Escape")
    page.wait_for_timeout(300)
    if not page.get_by_role("menuitemradio", name="Light").is_visible():
        page.get_by_test_id("stMainMenu").click()
    page.get_by_role("menuitemradio", name="Light").click()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_have_attribute("style", re.compile("251, 247, 238"))
    expect(logo).to_have_attribute("src", drawn_light)


def test_a_theme_switched_while_the_page_loads_reaches_the_logo(open_page: Callable[..., Page]) -> None:
    """Logo and page are drawn in the theme that the browser named at first, whatever it names a moment later."""
    dark = open_page("compute-budget", theme="dark").locator(LOGO).first.get_attribute("src") or ""
    page = open_page("", theme="light")
    page.goto(f"{page.url.rstrip('/')}/compute-budget", wait_until="commit")
    page.wait_for_selector(".np-answer")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(LOGO).first).to_have_attribute("src", dark)


NUMBER, LONG = "W" * 64, "W" * 300
ECHOED: dict[str, list[dict[str, str]]] = {
    "": [{**dict.fromkeys(("h_n", "h_mfu", "h_gpu", "h_k"), NUMBER), "h_tokens": "9" * 64, "h_x": LONG}],
    "compute-budget": [
        {
            **dict.fromkeys(("c_n", "c_tokens", "c_count", "c_gpu", "c_mfu", "c_seq", "c_price", "c_find"), NUMBER),
            "c_model": "Typed parameters",
        },
        {"c_model": "Own (config.json)", "c_shape": f"layers={LONG}"},
    ],
    "float-formats": [{"f_x": LONG, "f_sums": "true", "f_start": NUMBER, "f_block": "true", "f_vals": LONG}],
    "tensor-views": [
        {"t_x": f"x.{LONG}", **dict.fromkeys(("t_shape", "t_stride", "t_dtype"), NUMBER)},
        {"t_x": f"x.reshape({'1,' * 200}2, 3)"},
        {
            **dict.fromkeys(("t_named", "t_shared", "t_typed", "t_moved", "t_quiz"), "true"),
            **dict.fromkeys(("t_vshape", "t_dshape", "t_q", "t_many"), NUMBER),
            **dict.fromkeys(("t_call", "t_sizes", "t_view", "t_names"), LONG),
        },
        {
            **dict.fromkeys(("t_named", "t_typed"), "true"),
            "t_shape": NUMBER,
            "t_call": f"rearrange(x, '{LONG} b -> b {LONG}')",
            "t_sizes": "2, 3",
            "t_names": f"x: {LONG} = 2",
        },
    ],
    "training-memory": [{"m_n": NUMBER, "m_count": "9" * 64, "m_gpu": NUMBER}],
    "measure": [{"d_n": NUMBER, "d_s": NUMBER}],
}
"""Page → text without a blank in whatever quotes it."""


def test_no_text_of_a_visitors_scrolls_the_page_sideways(open_page: Callable[..., Page], server: str) -> None:
    page = open_page("")
    for path, texts in ECHOED.items():
        for typed in texts:
            page.goto(f"{server}/{path}?{urlencode(typed)}")
            settle(page)
            expect(page.locator(".np-error").first).to_be_visible()
            for width in (1280, 640):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_timeout(100)  # the page lays itself out for the new width
                wide = page.evaluate(
                    "() => [document.documentElement, document.querySelector('[data-testid=stMain]')]"
                    ".map(box => box.scrollWidth - box.clientWidth)"
                )
                assert max(wide) <= 0, (path, typed, width, wide)
