"""The bit strip in a real browser: every way to flip a bit, and what a bad number leaves standing."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def bits(page: Page) -> Locator:
    return page.get_by_role("toolbar").get_by_role("button")


def code(page: Page) -> str:
    return "".join(bits(page).all_inner_texts())


def number(page: Page) -> Locator:
    return page.get_by_label("Number", exact=True)


def answer(page: Page) -> Locator:
    return page.locator(".np-answer")


def parameters(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_a_click_flips_a_bit_and_the_address_follows(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=1&f_fmt=fp16")
    expect(bits(page)).to_have_count(16)
    assert code(page) == "0011110000000000"
    page.get_by_role("button", name="fraction bit 9, weight 2^-1, now 0").click()
    expect(number(page)).to_have_value("1.5")
    expect(answer(page)).to_contain_text("1.5 is stored exactly in fp16")
    assert code(page) == "0011111000000000"
    expect(page.get_by_role("button", name="fraction bit 9, weight 2^-1, now 1")).to_be_focused()
    page.get_by_role("button", name="sign bit, weight (-1)^S, now 0").click()
    expect(number(page)).to_have_value("-1.5")
    page.wait_for_function("location.search.includes('f_x=-1.5')")
    assert parameters(page)["f_fmt"] == ["fp16"]
    assert page.problems == []  # type: ignore[attr-defined]


def test_the_keyboard_moves_and_flips(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=1&f_fmt=bf16")
    bits(page).first.focus()
    page.keyboard.press("End")
    expect(bits(page).last).to_be_focused()
    page.keyboard.press("Space")
    expect(number(page)).to_have_value("1.0078125")
    expect(bits(page).last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(number(page)).to_have_value("1.0234375")
    page.keyboard.press("Home")
    page.keyboard.press("1")
    expect(number(page)).to_have_value("-1.0234375")
    expect(bits(page).first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(bits(page).first).to_be_focused()
    assert [b.get_attribute("tabindex") for b in bits(page).all()].count("0") == 1


def test_rapid_clicks_all_arrive(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=1&f_fmt=fp16")
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
    assert code(page) == "0011111100000001"
    for place in (6, 7, 15):
        bits(page).nth(place).click()
    expect(number(page)).to_have_value("1")
    assert code(page) == "0011110000000000"


def test_neighbours_are_one_step_away(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=448&f_fmt=fp8_e4m3fn")
    expect(page.get_by_role("button", name="next value none")).to_be_disabled()
    for _ in range(3):
        page.get_by_role("button", name="previous value").click()
    expect(number(page)).to_have_value("352")
    page.get_by_role("button", name="next value 384").click()
    expect(number(page)).to_have_value("384")


def test_hover_and_focus_tell_what_a_bit_weighs(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=0.15625&f_fmt=fp32")
    bits(page).nth(1).hover()
    expect(page.get_by_text("exponent bit 7")).to_be_visible()
    bits(page).nth(10).focus()
    page.mouse.move(0, 0)
    expect(page.get_by_text("fraction bit 21")).to_be_visible()
    expect(page.get_by_text("is worth 2−2 in 1.M, here 0.03125 in the value. Flip it: 0.125")).to_be_visible()


def test_a_nan_keeps_its_payload_as_a_code(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=nan&f_fmt=fp16")
    bits(page).last.click()
    expect(number(page)).to_have_value("0x7e01")
    expect(answer(page)).to_contain_text("payload 1")
    page.get_by_role("radio", name="bf16", exact=True).click()
    expect(number(page)).to_have_value("nan")
    assert code(page) == "0111111111000000"


def test_a_code_becomes_its_number_in_another_format(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=0x3c01&f_fmt=fp16")
    expect(answer(page)).to_contain_text("1.0009765625")
    page.get_by_role("radio", name="fp32", exact=True).click()
    expect(number(page)).to_have_value("1.0009765625")
    expect(answer(page)).to_contain_text("stored exactly in fp32")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("0.1.2", "is not a number"),
        ("0x3c000", "longer than a code of fp16"),
        ("0b0101", "has 4 bits; fp16 has 16"),
        ("1e999", "beyond every format"),
    ],
)
def test_bad_text_says_why_and_the_last_number_stays(open_page: OpenPage, bad: str, reason: str) -> None:
    page = open_page("float-formats?f_x=0.75&f_fmt=fp16")
    number(page).fill(bad)
    number(page).press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(reason)
    expect(page.get_by_role("alert")).to_contain_text("or example")
    expect(page.get_by_role("alert")).to_contain_text("Still using 0.75")
    expect(answer(page)).to_contain_text("0.75 is stored exactly")
    assert code(page) == "0011101000000000"
    bits(page).last.click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(number(page)).to_have_value("0.75048828125")


def test_64_bits_fit_in_two_rows(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=0.1&f_fmt=fp64")
    expect(bits(page)).to_have_count(64)
    tops = {round(box["y"]) for b in bits(page).all() if (box := b.bounding_box())}
    assert len(tops) == 2
    bits(page).nth(40).focus()
    page.keyboard.press("ArrowUp")
    expect(bits(page).nth(8)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    expect(number(page)).to_have_value("0.10000000000000002")


def test_a_chip_tells_its_story(open_page: OpenPage) -> None:
    page = open_page("float-formats?f_x=65520&f_fmt=fp16&f_over=saturate")
    expect(answer(page)).to_contain_text("clipped to the largest finite value")
    page.get_by_role("radio", name="65520 does not").click()
    expect(answer(page)).to_contain_text("65520 becomes infinity in fp16: the largest finite value is 65504.")
    page.get_by_role("radio", name="1e-8 vanishes in fp16").click()
    expect(answer(page)).to_contain_text("1e-8 becomes 0 in fp16: the smallest fp16 subnormal is 5.96 × 10−8.")
    expect(page.locator("tr.np-here")).to_contain_text("underflow: zero")
