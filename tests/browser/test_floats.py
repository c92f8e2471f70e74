"""The Float formats page in a real browser: bits, grid, table and blocks by mouse and keyboard, and bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from core.floats.formats import FORMATS
from pages.floats.inputs import COMMON
from tests.browser.conftest import settle, still

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def bits(page: Page) -> Locator:
    return page.get_by_role("toolbar", name=" bits of ").get_by_role("button")


def shows(page: Page, code: str) -> None:
    """The drawn bits come to be these: a rerun draws them after the fields."""
    expect(bits(page)).to_have_text(list(code))


def number(page: Page) -> Locator:
    return page.get_by_label("Number", exact=True)


def answer(page: Page) -> Locator:
    return page.locator(".np-answer")


def choose(page: Page, field: str, option: str) -> None:
    page.locator(f".st-key-f_{field}").get_by_role("radio", name=option, exact=True).click()


def put(page: Page, number: str, fmt: str) -> None:
    """Choose a format and type a number."""
    settle(page)
    choose(page, "fmt", fmt)
    settle(page)
    box = page.get_by_label("Number", exact=True)
    box.fill(number)
    box.press("Enter")
    settle(page)


def parameters(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


MISTAKES = ("0.1.2", "0x3c000", "1e999")


def test_bits_flip_and_the_grid_loads_codes(open_page: OpenPage) -> None:
    """One click, several in one breath, a NaN that keeps its payload as a code, bad text; then by keyboard."""
    page = open_page("float-formats?f_x=1&f_fmt=fp16")
    expect(bits(page)).to_have_count(16)
    shows(page, "0011110000000000")
    page.get_by_role("button", name="fraction bit 9, weight 2^-1, now 0").click()
    expect(number(page)).to_have_value("1.5")
    expect(answer(page)).to_contain_text("fp16 stores 1.5 exactly")
    shows(page, "0011111000000000")
    expect(page.get_by_role("button", name="fraction bit 9, weight 2^-1, now 1")).to_be_focused()
    page.get_by_role("button", name="sign bit, weight (-1)^S, now 0").click()
    expect(number(page)).to_have_value("-1.5")
    page.wait_for_function("location.search.includes('f_x=-1.5')")
    assert parameters(page)["f_fmt"] == ["fp16"]

    put(page, "1", "fp16")
    expect(bits(page)).to_have_count(16)
    page.evaluate(
        """() => {
            const root = [...document.querySelectorAll("*")].map(e => e.shadowRoot)
                .find(r => r?.querySelector('[role="toolbar"]'))
            const bits = root.querySelectorAll('[role="toolbar"] button')
            bits[6].click(); bits[7].click(); bits[15].click()
        }"""
    )
    expect(number(page)).to_have_value("1.7509765625")
    shows(page, "0011111100000001")
    for place in (6, 7, 15):
        bits(page).nth(place).click()
    expect(number(page)).to_have_value("1")
    shows(page, "0011110000000000")

    put(page, "0.75", "fp16")
    rejects_bad_text(page)

    put(page, "nan", "fp16")
    bits(page).last.click()
    expect(number(page)).to_have_value("0x7e01")
    expect(answer(page)).to_contain_text("0x7e01")
    choose(page, "fmt", "bf16")
    expect(number(page)).to_have_value("nan")
    shows(page, "0111111111000000")

    put(page, "0x3c01", "fp16")
    expect(answer(page)).to_contain_text("1.0009765625")
    choose(page, "fmt", "fp32")
    expect(number(page)).to_have_value("1.0009765625")
    expect(answer(page)).to_contain_text("fp32 stores 1.0009765625 exactly")
    by_keyboard(page)
    page.locator("summary", has_text="Range and precision").click()
    settle(page)
    by_grid(page)
    assert page.problems == []  # type: ignore[attr-defined]


def rejects_bad_text(page: Page) -> None:
    """Each is said, and the last number stays."""
    for bad in MISTAKES:
        number(page).fill(bad)
        number(page).press("Enter")
        settle(page)
        expect(page.get_by_role("alert")).to_contain_text(f"“{bad}”")
        expect(answer(page)).to_contain_text("stores 0.75 exactly")
        shows(page, "0011101000000000")
    bits(page).last.click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(number(page)).to_have_value("0.75048828125")


def by_keyboard(page: Page) -> None:
    """Along one row of bits, and between the two rows of 64."""
    put(page, "1", "bf16")
    shows(page, "0011111110000000")
    bits(page).first.focus()
    page.keyboard.press("End")
    expect(bits(page).last).to_be_focused()
    page.keyboard.press("Space")
    expect(number(page)).to_have_value("1.0078125")
    settle(page)
    expect(bits(page).last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(number(page)).to_have_value("1.0234375")
    settle(page)
    page.keyboard.press("Home")
    page.keyboard.press("1")
    expect(number(page)).to_have_value("-1.0234375")
    expect(bits(page).first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(bits(page).first).to_be_focused()
    assert [b.get_attribute("tabindex") for b in bits(page).all()].count("0") == 1

    put(page, "0.1", "fp64")
    expect(bits(page)).to_have_count(64)
    still(page)
    tops = {round(box["y"]) for b in bits(page).all() if (box := b.bounding_box())}
    assert len(tops) == 2
    bits(page).nth(40).focus()
    page.keyboard.press("ArrowUp")
    expect(bits(page).nth(8)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    expect(number(page)).to_have_value("0.10000000000000002")


def by_grid(page: Page) -> None:
    put(page, "448", "fp8 E4M3")
    expect(page.get_by_role("button", name="next value none")).to_be_disabled()
    for _ in range(3):
        page.get_by_role("button", name="previous value").click()
    expect(number(page)).to_have_value("352")
    page.get_by_role("button", name="next value 384").click()
    expect(number(page)).to_have_value("384")

    cells = page.get_by_role("group", name="All 256 codes").get_by_role("button")
    expect(cells).to_have_count(256)
    cells.nth(0x7E).click()
    expect(number(page)).to_have_value("448")
    expect(cells.nth(0x7E)).to_have_attribute("aria-pressed", "true")
    settle(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(answer(page)).to_contain_text("NaN")
    settle(page)
    expect(cells.nth(0x7F)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(cells.nth(0x6F)).to_be_focused()
    choose(page, "paint", "Value")
    page.wait_for_function("location.search.includes('f_paint=value')")


def test_a_trap_in_the_address_the_microscope_and_the_table(open_page: OpenPage) -> None:
    """An unknown format in the link is named, and bf16 in its place."""
    page = open_page("float-formats?f_x=0.1&f_fmt=bf17")
    expect(page.get_by_role("alert")).to_contain_text("“bf17”")
    page.get_by_role("button", name="Double rounding").click()
    expect(number(page)).to_have_value("1 + 2^-8 + 2^-40")
    expect(answer(page)).to_contain_text("becomes 1.0078125 in bf16")
    number(page).fill("**0.1**")
    number(page).press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("“**0.1**” is not a number")

    put(page, "0.1", "bf16")
    expect(page.locator(".np-scope .row")).to_have_count(7)
    table = page.get_by_role("table", name="Rounded to nearest")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(len(COMMON))
    page.get_by_text(f"All {len(FORMATS)} formats").click()
    expect(rows).to_have_count(len(FORMATS))
    choose(page, "fmt", "More")
    choose(page, "more", "MXINT8")
    expect(answer(page)).to_contain_text("in MXINT8")
    expect(page.locator("tr.np-here")).to_contain_text("MXINT8")
    assert page.problems == []  # type: ignore[attr-defined]


ON_A_PHONE = """() => {
  const found = [], box = e => e.getBoundingClientRect()
  for (const e of document.querySelectorAll('.stMain .katex-html .base, .stMain .np-scope b'))
    if (box(e).left < 0 || box(e).right > innerWidth) found.push(`cut: ${e.textContent}`)
  const strip = document.querySelector('.st-key-floats-bits .stBidiComponent, .st-key-floats-bits [class*=Bidi]')
  const letters = [...strip.querySelectorAll('*')].flatMap(e => [...e.shadowRoot?.querySelectorAll('.letter') ?? []])
  const said = letters.filter(e => e.innerText.trim()).map(e => [e.innerText, box(e)])
  found.push(...said.slice(1).flatMap(([text, b], i) => {
    const [before, a] = said[i]
    return a.top < b.bottom && b.top < a.bottom && a.right > b.left ? [`${before} runs into ${text}`] : []
  }))
  return said.length ? found : ['no letters']
}"""
"""What a phone cuts off, and which names of fields overlap."""


def test_a_phone_shows_all_of_a_number(open_page: OpenPage, server: str) -> None:
    page = open_page("float-formats", width=390)
    for fields in ("f_x=0.1&f_fmt=bf16", "f_x=0.1&f_fmt=fp64", "f_x=0.1&f_fmt=fp32", "f_x=-1.25e-3&f_fmt=fp8_e4m3fn"):
        page.goto(f"{server}/float-formats?{fields}")
        settle(page)
        still(page)
        assert page.evaluate(ON_A_PHONE) == [], fields


def test_a_block_is_dragged_and_typed(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_block=true&f_vals=normal&f_rule=even")
    expect(page.locator(".st-key-f_rule").get_by_role("radio", checked=True)).to_have_text("round to even exponent")
    bars = page.get_by_role("slider", name="element")
    expect(bars).to_have_count(32)
    bars.nth(3).focus()
    before = float(bars.nth(3).get_attribute("aria-valuenow") or "nan")
    page.keyboard.press("PageUp")
    own = page.get_by_label("Custom values", exact=True)
    expect(own).not_to_have_value("")
    expect(bars.nth(3)).to_have_attribute("aria-valuenow", f"{before * 10:.4g}")
    expect(bars.nth(3)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(bars.nth(4)).to_be_focused()
    settle(page)
    bars.nth(5).scroll_into_view_if_needed()
    still(page)
    box = bars.nth(5).bounding_box()
    assert box
    was = bars.nth(5).get_attribute("aria-valuenow")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.up()
    expect(bars.nth(5)).not_to_have_attribute("aria-valuenow", was or "")
    settle(page)  # the answer to the drag writes into the field
    own.fill("1, 2, spam")
    own.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("“spam” is not a number")
    settle(page)
    own.fill("1, -1, 600")
    own.press("Enter")
    expect(alert).to_have_count(0)
    expect(bars.nth(2)).to_have_attribute("aria-valuenow", "600")
    settle(page)
    page.get_by_role("button", name="Reset values").click()
    expect(bars).to_have_count(32)
    quick_keys(page)
    choose(page, "blk", "NVFP4")
    expect(page.locator(".st-key-f_rule").get_by_role("radio")).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth <= 390")
    assert page.problems == []  # type: ignore[attr-defined]


def quick_keys(page: Page) -> None:
    """Keys pressed faster than the server answers all count."""
    settle(page)
    bars = page.get_by_role("slider", name="element")
    bars.nth(3).focus()
    first, second = (float(bars.nth(i).get_attribute("aria-valuenow") or "nan") for i in (3, 4))
    for key in ["ArrowUp"] * 10 + ["ArrowRight"] + ["PageDown"] * 3:
        page.keyboard.press(key)
    own = page.get_by_label("Custom values", exact=True)
    expect(own).to_have_value(re.compile(f", {first + 0.1:.4g}, {second / 1000:.4g}, "))
    expect(bars.nth(3)).to_have_attribute("aria-valuenow", f"{first + 0.1:.4g}")
    settle(page)
