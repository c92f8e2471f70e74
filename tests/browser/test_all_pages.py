"""Every page in a real browser: no exception box, no console error, no serious axe violation, in both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import cycle
from urllib.parse import urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from core.fields import LINK_VERSION
from core.messages import message
from pages.common.registry import COMPUTE, HOME, MEASURE, MEMORY, PAGES, TENSORS, PageSpec
from tests.app.plan_pages import fields_of, linked, opened
from tests.browser.conftest import open_from_menu, settle, still

pytestmark = pytest.mark.browser

IDS = [page.id for page in PAGES]
CUT = """() => [...document.querySelectorAll('.katex-display')]
  .filter(e => e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth).map(e => e.innerText)"""
"""Formulas that do not fit their boxes, which clip."""

LOGO = "[data-testid=stSidebarLogo], [data-testid=stHeaderLogo]"


SERIOUS = """async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .flatMap(v => v.nodes.map(n => `${v.id}: ${n.target} ${n.any.length ? n.any[0].message : v.help}`))"""


def serious(page: Page) -> list[str]:
    """Axe findings that keep somebody from using the page, as rule, first target and first reason.

    Filtered in the page: all that axe has to say about one is megabytes.
    """
    page.evaluate(Axe().axe_script)
    return page.evaluate(SERIOUS)


def clean(page: Page, spec: PageSpec, theme: str) -> None:
    """Nothing is broken, cut off, unreadable or wider than the page."""
    expect(page.locator("h1")).to_have_text(spec.h1)
    expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
    still(page)
    background = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert background == {"light": "rgb(251, 247, 238)", "dark": "rgb(23, 34, 44)"}[theme]
    assert overflow(page) <= 0, "the page scrolls sideways"
    assert serious(page) == []
    assert page.problems == []  # type: ignore[attr-defined]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    boxes = "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
    return page.evaluate(f"Math.max(...{boxes}.map(box => box.scrollWidth - box.clientWidth))")


def fields(link: str) -> dict[str, str]:
    """The inputs that a permalink spells out or packs."""
    query = fields_of(urlsplit(link).query)
    assert query.pop("v") == str(LINK_VERSION)
    return query


def own_link(page: Page) -> str:
    return page.locator("button[data-link]").get_attribute("data-link") or ""


LOOKS = (("light", 1280), ("dark", 1600))
SEEN = [
    pytest.param(spec, *look, id=f"{spec.id} {look[0]}", marks=marks)
    for turn, marks in enumerate([[pytest.mark.journey], []])
    for spec, look in zip(PAGES, cycle([*LOOKS[turn:], *LOOKS[:turn]]))
]
"""Every page in one look, and in the other for those who have time: a browser takes seconds to open all there is."""


def everything(spec: PageSpec) -> dict[str, str]:
    """The fields of a link to a page with all its panels open."""
    return {name: text.replace("false", "true") for name, text in linked(opened(spec, {})).items()}


@pytest.mark.parametrize(("spec", "theme", "width"), SEEN)
def test_everything_open_is_clean(open_page: Callable[..., Page], spec: PageSpec, theme: str, width: int) -> None:
    """Every panel that the address can open; then derivations, and a projector."""
    texts = everything(spec)
    page = open_page(f"{spec.url_path}?{urlencode(texts)}", theme=theme, width=width)
    clean(page, spec, theme)
    link = own_link(page)
    told = {name: text for name, text in texts.items() if name != "v"}
    assert told.items() <= fields(link).items()
    assert all(name.startswith((f"{spec.prefix}_", "p_")) for name in fields(link))
    expect(page.locator(LOGO).first).to_be_visible()
    closed = page.locator("details:not([open]) > summary").filter(has_text="computed")
    while closed.count():
        closed.evaluate_all("all => all.forEach(one => one.click())")
        settle(page)
    still(page)
    assert page.evaluate(CUT) == []
    expect(page.locator(".katex-error")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator(".np-bar h1")).to_have_text(spec.h1)
    settle(page)
    still(page)
    assert overflow(page) <= 0
    assert page.problems == []  # type: ignore[attr-defined]
    assert page.warnings == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", [page for page in PAGES if not page.plans], ids=lambda spec: spec.id)
def test_a_permalink_to_everything_open_opens_to_it(open_page: Callable[..., Page], spec: PageSpec) -> None:
    """Those of the pages of planning, without a browser: `tests.app.test_plan_pages`."""
    page = open_page(f"{spec.url_path}?{urlencode(everything(spec))}")
    link, answers = own_link(page), page.locator(".np-answer").all_inner_texts()
    page.goto(link)
    settle(page)
    assert own_link(page) == link
    assert page.locator(".np-answer").all_inner_texts() == answers


NUMBER, LONG = "W" * 64, "W" * 300
ECHOED: dict[str, list[dict[str, str]]] = {
    "home": [{**dict.fromkeys(("p_n", "p_mfu", "p_gpu", "h_k"), NUMBER), "p_tokens": "9" * 64, "h_x": LONG}],
    "compute": [
        {
            **dict.fromkeys(("p_n", "p_tokens", "p_count", "p_gpu", "p_mfu", "p_seq", "p_price", "p_find"), NUMBER),
            "p_model": "Typed parameters",
        },
        {"p_model": "Own (config.json)", "p_shape": f"layers={LONG}"},
    ],
    "floats": [
        {
            "f_x": LONG,
            "f_sums": "true",
            "f_start": NUMBER,
            "f_block": "true",
            "f_vals": LONG,
            "f_rot": "true",
            "f_rout": NUMBER,
            "f_arith": "true",
            "f_aa": LONG,
            "f_aop": NUMBER,
        }
    ],
    "tensors": [
        {"t_x": f"x.{LONG}", **dict.fromkeys(("t_shape", "t_stride", "t_dtype"), NUMBER)},
        {"t_x": f"x.reshape({'1,' * 200}2, 3)"},
        {
            **dict.fromkeys(("t_named", "t_shared"), "true"),
            **dict.fromkeys(("t_vshape",), NUMBER),
            **dict.fromkeys(("t_call", "t_sizes", "t_view"), LONG),
        },
        {
            "t_named": "true",
            "t_shape": NUMBER,
            "t_call": f"rearrange(x, '{LONG} b -> b {LONG}')",
            "t_sizes": "2, 3",
        },
    ],
    "memory": [{"p_n": NUMBER, "p_count": "9" * 64, "p_gpu": NUMBER}],
    "what_if": [{"w_xs": LONG, "w_ys": NUMBER, "w_due": NUMBER, "p_n": NUMBER, "w_x": LONG}],
    "decide": [
        {
            "y_start": NUMBER,
            "y_train": "\n".join([f"{LONG}\t{NUMBER}\t8T", *[f"{NUMBER}\t8B"] * 8]),
            "y_offers": "\n".join([f"{LONG}\t{NUMBER}\t{NUMBER}", *[f"{NUMBER}\tH100\t512"] * 7]),
        }
    ],
    "compare": [{"plans": f"{LONG}~n.{NUMBER}~~{NUMBER}~gpu.{LONG}~{NUMBER}.1"}],
    "measure": [{"d_n": NUMBER, "d_s": NUMBER}],
}
"""Page → text without a blank in whatever quotes it, which must not scroll the page sideways."""


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_every_field_survives_hostile_values(open_page: Callable[..., Page], server: str, spec: PageSpec) -> None:
    """Nonsense in every query parameter leaves a working page that shows messages, not exceptions, and never scrolls
    sideways; a link from a version to come says so.
    """
    names = linked(opened(spec, {})).keys() - {"v"}
    nonsense = ("1e999", "<script>alert(1)</script>", "-1", "9" * 300)
    for shift, echoed in enumerate(ECHOED.get(spec.id, [{}])):
        hostile = {name: nonsense[(i + shift) % 4] for i, name in enumerate(sorted(names))}
        path = f"{spec.url_path}?{urlencode({'v': 7, **hostile, **echoed})}"
        if not shift:
            page = open_page(path)
        else:
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(f"{server}/{path}")
            settle(page)
        expect(page.locator("h1")).to_have_text(spec.h1)
        expect(page.get_by_role("alert").filter(has_text="newer Napkin")).to_be_visible()
        expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
        expect(page.locator("button[data-link]")).to_have_count(1)
        assert page.problems == []  # type: ignore[attr-defined]
        for width in (1280, 640) if echoed else ():
            page.set_viewport_size({"width": width, "height": 900})
            still(page)
            assert overflow(page) <= 0, (echoed, width)


def test_a_fresh_server_answers_a_deep_link_and_shows_a_frame_before_torch(
    open_page: Callable[..., Page], fresh_server: Callable[..., object]
) -> None:
    """Its inputs stand before torch is there, with a spinner that says what is happening."""
    with fresh_server() as base:  # type: ignore[attr-defined]
        page = open_page(COMPUTE.url_path, base=base)
        expect(page.locator("h1")).to_have_text(COMPUTE.h1)
        # Only app.py puts the navigation there: a page run without it would have none.
        expect(page.locator('.st-key-np-menu [class*="st-key-np-"] a')).to_have_count(len(PAGES))
        expect(page.locator('[data-testid="stException"], .np-failed')).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)  # "Page not found" would be one
        assert page.problems == []  # type: ignore[attr-defined]

        # What the server sent, and when: a browser that is short of time never draws what soon goes again.
        sent: list[bytes] = []
        page.on(
            "websocket",
            lambda socket: socket.on(
                "framereceived", lambda got: sent.append(bytes(got, "utf-8") if isinstance(got, str) else got)
            ),
        )
        page.goto(f"{base}/{TENSORS.url_path}", wait_until="commit")
        page.locator(".np-answer").wait_for()
        expect(page.get_by_text("Starting PyTorch")).to_have_count(0)
        first = {
            part: next(i for i, frame in enumerate(sent) if part in frame)
            for part in (b"Code on x", b"Starting PyTorch", b'class="np-answer')
        }
        assert first[b"Code on x"] <= first[b"Starting PyTorch"] < first[b'class="np-answer']


def test_permalink_round_trip_with_changed_inputs(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path)
    box = page.get_by_label("Parameters", exact=True)
    box.fill("13B")
    box.press("Enter")
    expect(page.locator(".np-answer").first).to_contain_text("13B")
    settle(page)
    answer = page.locator(".np-answer").first.inner_text()
    page.get_by_role("button", name="Copy link to this page").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "13B" in link
    page.goto(link)
    settle(page)
    assert page.locator(".np-answer").first.inner_text() == answer


def test_back_leaves_the_page_and_finds_the_plan_of_its_address_again(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path)

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
    home = answer().partition(".")[0]
    open_from_menu(page, COMPUTE)
    page.wait_for_url("**/compute-budget*")
    type_into("Tokens", "3T")
    type_into("MFU", "30%")
    compute = answer()
    open_from_menu(page, MEASURE)
    page.wait_for_url("**/measure*")
    page.go_back()
    page.wait_for_url("**/compute-budget*")
    expect(page.locator(".np-answer").first).to_have_text(compute, use_inner_text=True)
    settle(page)  # its run writes the address to the end
    page.go_back()
    expect(page.locator("h1")).to_have_text(HOME.h1)
    expect(page.locator(".np-answer").first).to_contain_text(home, use_inner_text=True)


def test_a_link_carries_its_inputs_past_what_was_typed_there(open_page: Callable[..., Page]) -> None:
    page = open_page(COMPUTE.url_path)

    def type_tokens(tokens: str) -> None:
        box = page.get_by_label("Tokens", exact=True)
        box.fill(tokens)
        box.press("Enter")
        expect(page.locator(".np-answer").first).to_contain_text(tokens)
        settle(page)

    type_tokens("3T")
    open_from_menu(page, HOME)
    expect(page.locator("h1")).to_have_text(HOME.h1)
    type_tokens("2T")
    said = page.locator(".np-answer").first.inner_text().partition(".")[0]
    page.get_by_role("link", name=message("home.long.link")).click()
    expect(page.locator("h1")).to_have_text(COMPUTE.h1)
    settle(page)
    assert "2T" in said
    expect(page.locator(".np-answer").first).to_contain_text(said, use_inner_text=True)
    page.go_back()
    expect(page.locator("h1")).to_have_text(HOME.h1)


def drawn(page: Page, background: str) -> str:
    """Charts wear the theme's colours, and no placeholder of pages.common.theme. Gives the logo."""
    chart = page.locator(".js-plotly-plot")
    expect(chart.locator(".main-svg").first).to_have_attribute("style", re.compile(background))
    settle(page)
    assert "rgb(0, 0, " not in chart.first.inner_html().lower().replace("rgb(0, 0, 0)", "")
    return page.locator(LOGO).first.get_attribute("src") or ""


def test_switching_the_theme_redraws_charts_and_logo(open_page: Callable[..., Page], server: str) -> None:
    page = open_page(MEMORY.url_path)
    light = drawn(page, "251, 247, 238")
    page.get_by_test_id("stMainMenu").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    expect(page.locator(LOGO).first).not_to_have_attribute("src", light)
    dark = drawn(page, "23, 34, 44")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menuitemradio", name="Dark")).to_have_count(0)
    page.get_by_test_id("stMainMenu").click()
    page.get_by_role("menuitemradio", name="Light").click()
    expect(page.locator(LOGO).first).to_have_attribute("src", light)
    drawn(page, "251, 247, 238")
    # Logo and page are drawn in the theme that the browser named at first, whatever it names a moment later.
    page.evaluate("localStorage.clear()")
    page.goto(f"{server}/{COMPUTE.url_path}", wait_until="commit")
    page.wait_for_selector(".np-answer")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(LOGO).first).to_have_attribute("src", dark)


IN_A_BOX = """box => {
  const painted = (place, name) => {
    const probe = place.appendChild(document.createElement('i'))
    probe.style.color = `var(--np-${name})`
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
  return [painted(box, 'accent'), painted(document.querySelector('.stApp'), 'accent')]
}"""


@pytest.mark.journey
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_box_over_the_page_has_the_colours_of_the_page(open_page: Callable[..., Page], theme: str) -> None:
    """It stands outside of the app, where neither the palette nor the colour scheme would reach it."""
    page = open_page(COMPUTE.url_path, theme=theme)
    page.get_by_role("button", name="Save").first.click()
    inside, outside = page.locator("[data-testid=stPopoverBody]").evaluate(IN_A_BOX)
    assert inside == outside
