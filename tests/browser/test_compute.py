"""Compute budget in a real browser: answers, the published run beside the plan, bad input, sources and the link."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.parts.registry import COMPUTE
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]

LLAMA = "compute-budget?v=1&c_model=Llama+3.1+405B&c_tokens=15.6T&c_gpu=H100+SXM&c_count=16,384&c_mfu=41%25&c_seq=8192"


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")


def answers(page: Page, *parts: str) -> None:
    """The answer shows every one of ``parts``, at once or as soon as the run under way has ended."""
    for part in parts:
        expect(page.locator(".np-answer")).to_contain_text(part)


def refuses(page: Page, text: str) -> None:
    """One message about a bad input is on the page, and it says ``text``."""
    expect(page.locator(".np-error")).to_have_count(1)
    expect(page.locator(".np-error")).to_contain_text(text)


def fill(page: Page, label: str, text: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")
    settle(page)


def chip(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name).or_(page.get_by_role("button", name=name)).first.click()
    settle(page)


def unfold(page: Page, label: str) -> None:
    page.locator("summary", has_text=label).click()
    settle(page)


def table_row(page: Page, first: str) -> str:
    return plain(page.locator("tr", has=page.locator("td", has_text=first)).first.inner_text())


def test_first_sight_is_the_lectures_answer(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    answers(page, "Training 70B parameters on 15T tokens takes 143.9 days on 1,024 H100 SXM.")
    answers(page, "6.3 × 1024 FLOP", "3.537M accelerator-hours", "$10.6 M to $12.4 M at $3.00–3.50/h")
    expect(page.locator(".np-note").first).to_contain_text("layers of Llama 3 70B")
    expect(page.get_by_role("figure")).to_have_count(1)
    assert page.problems == []  # type: ignore[attr-defined]


def test_llama_405b_stands_beside_its_published_figures(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    chip(page, "Llama 3.1 405B as trained")
    answers(page, "Llama 3.1 405B (405.9B parameters) on 15.6T tokens takes 66.15 days on 16,384 H100 SXM.")
    expect(page.get_by_role("figure")).to_have_count(2)
    assert "c_model=Llama" in page.url
    for first, parts in {
        "Training compute": ("3.799 × 1025 FLOP", "3.8 × 1025 FLOP"),
        "Accelerator-hours": ("26.01M h", "30.84M h", "15.7 %"),
        "MFU of steady steps": ("41 %", "38–43 %"),
        "Utilisation over all these hours": ("34.6 %", "18.6 %"),
        "by layer, causal attention": ("3.937 × 1025 FLOP", "+3.65 %", "68.57 days"),
    }.items():
        for part in parts:
            assert part in table_row(page, first), first
    said = plain(" ".join(page.locator(".np-note").all_inner_texts()))
    assert "All hours of the run come to 34.6 % of the peak" in said
    assert "long context" in said
    assert page.problems == []  # type: ignore[attr-defined]


def test_chips_tell_their_story(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    for name, sentence in {
        "Lecture: 70B on 1,024 H100": "70B parameters on 15T tokens takes 143.9 days on 1,024 H100 SXM.",
        "GPT-3 175B": "(174.6B parameters) on 300B tokens takes 13.66 days on 10,000 V100 SXM 32 GB.",
        "Llama 2 70B": "(68.98B parameters) on 2T tokens takes 37.48 days on 2,048 A100 SXM 80 GB.",
        "GPT-2 124M on one node": "(124.4M parameters) on 10B tokens takes 1.662 h on 8 A100 SXM 80 GB.",
    }.items():
        chip(page, name)
        answers(page, sentence)
        expect(page.locator(".np-error")).to_have_count(0)
    assert page.problems == []  # type: ignore[attr-defined]


def test_bad_input_is_explained_and_the_last_good_value_stays(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    for label, good, bad in (
        ("MFU", "41%", {"1.5": "“1.5” is out of range: from 0.1 % to 100 %."}),
        ("How many", "16,384", {"0": "“0” is out of range", "2.5": "“2.5” is not a whole number"}),
        (
            "Tokens",
            "15.6T",
            {"-3": "“-3” is out of range", "1e400": "Still using 15.6T", "lots": "For example: 15T"},
        ),
    ):
        for text, said in bad.items():
            fill(page, label, text)
            refuses(page, said)
            answers(page, "on 15.6T tokens takes 66.15 days on 16,384 H100 SXM.")
        fill(page, label, good)
        expect(page.locator(".np-error")).to_have_count(0)
    assert page.problems == []  # type: ignore[attr-defined]


def test_price_can_be_typed_and_a_bad_one_is_refused(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    unfold(page, "More")
    box = "Price per accelerator-hour, or a range"
    fill(page, box, "2-2.5")
    answers(page, "$52 M to $65 M at $2.00–2.50/h")
    fill(page, box, "cheap")
    refuses(page, "“cheap” is not a price per hour")
    answers(page, "$52 M to $65 M")
    fill(page, box, "-2")
    refuses(page, "“-2” is neither a price nor a range of prices, and a price is not negative.")


def test_attention_convention_lights_its_row(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    assert "causal" in page.locator(".np-here").last.inner_text()
    unfold(page, "More")
    page.get_by_role("radio", name="full").or_(page.get_by_role("button", name="full")).first.click()
    settle(page)
    expect(page.locator(".np-here").last).to_contain_text("full attention square")


def test_a_missing_peak_is_said_and_replaced(open_page: OpenPage) -> None:
    page = open_page("compute-budget?v=1&c_gpu=V100+SXM+32+GB")
    refuses(page, "No dense bf16 peak of V100 SXM 32 GB is known. Using its fp16 peak.")
    answers(page, "dense fp16", "price of V100 SXM 32 GB unknown, type one under More")


def test_the_peaks_source_is_one_click_away(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    expect(page.locator("summary", has_text="The peak")).to_contain_text(
        "989.4 TFLOP/s dense bf16, H100 SXM, read in the source"
    )
    unfold(page, "The peak")
    for part in ("1,830 MHz × 512 multiply-adds × 528 tensor cores", "WITH SPARSITY", "794.5 TFLOP/s"):
        expect(page.locator(".np-note", has_text=part)).to_be_visible()
    expect(page.locator('.np-note a[href="https://github.com/stas00/ml-engineering"]').first).to_be_visible()


def test_every_formula_is_shown_with_its_numbers(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    unfold(page, "How is this computed")
    expect(page.locator(".np-kicker").last).to_contain_text("Ridge point")
    titles = page.locator(".np-kicker").all_inner_texts()
    for title in ("6ND rule", "steady MFU", "Accelerator-hours", "Effective utilisation", "Feed-forward"):
        assert any(title.lower() in t.lower() for t in titles), titles
    assert page.locator(".katex-error").count() == 0
    assert page.locator(".katex").count() > 2 * len(titles)


def test_parameters_by_component_add_up(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    unfold(page, "Parameters of Llama 3.1 405B")
    expect(page.locator("tr", has_text="Sum")).to_contain_text("405,853,388,800")


def test_typed_parameters_have_one_answer(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?v=1&c_n=1.5T")
    answers(page, "Training 1.5T parameters", "takes 8.445 years")
    assert "8.445 years" in table_row(page, "6ND, N all parameters")
    expect(page.locator(".np-note", has_text="scaled by 1.5T / 405.9B")).to_contain_text("The shares are only rough")
    fill(page, "Parameters", "1.5")
    refuses(page, "“1.5” is not a whole number")


def test_a_mixture_shows_both_counts_and_its_run_in_fp8(open_page: OpenPage) -> None:
    page = open_page(
        f"{COMPUTE.url_path}?v=1&c_model=DeepSeek-V3&c_tokens=14.8T&c_gpu=H800+SXM&c_count=2048&c_mfu=41%25"
    )
    expect(page.get_by_role("textbox", name="Active parameters")).to_have_value("37.55B of 671B")
    assert "2.788M h" in table_row(page, "Accelerator-hours")
    said = plain(" ".join(page.locator(".np-note").all_inner_texts()))
    assert "trained mostly in fp8" in said
    assert "Published: 37B" in said


def test_a_run_that_is_no_evidence_is_not_drawn(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    chip(page, "GPT-3 175B")
    answers(page, "13.66 days")
    expect(page.locator(".np-note", has_text="Not evidence: hours derived from an assumed count.")).to_be_visible()
    expect(page.get_by_role("figure")).to_have_count(1)


def test_a_model_without_a_published_run_says_so(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?v=1&c_model=Mixtral+8x7B")
    expect(page.locator(".np-note", has_text="No published full run of Mixtral 8x7B")).to_be_visible()


@pytest.mark.parametrize("width", [640, 1280, 1600])
@pytest.mark.parametrize("address", [LLAMA, "compute-budget?v=1&c_model=DeepSeek-V3&c_seq=1000000"])
def test_no_label_of_the_pictures_is_cut_off(open_page: OpenPage, address: str, width: int) -> None:
    page = open_page(address, width=width)
    expect(page.locator(".js-plotly-plot").last).to_be_visible()
    for plot in page.locator(".js-plotly-plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        frame = plot.bounding_box()
        assert frame
        for text in plot.locator(".bartext, .annotation-text-g, .ytick text, .xtitle").all():
            box = text.bounding_box()
            assert box
            assert box["x"] >= frame["x"] - 1, text.text_content()
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, text.text_content()
            assert box["y"] + box["height"] <= frame["y"] + frame["height"] + 1, text.text_content()


def test_the_link_opens_to_the_same_picture(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    chip(page, "GPT-3 175B")
    fill(page, "MFU", "0.25")
    answers(page, "takes 11.64 days on 10,000 V100 SXM 32 GB.")
    link = page.get_by_role("button", name="Copy link").get_attribute("data-link")
    assert link
    query = urlsplit(link).query
    for name in ("c_model", "c_tokens", "c_gpu", "c_count", "c_mfu", "c_dtype", "c_seq", "c_attn", "c_price", "v"):
        assert f"{name}=" in query
    again = open_page(f"{COMPUTE.url_path}?{query}", theme="dark")
    answers(again, "takes 11.64 days on 10,000 V100 SXM 32 GB.", "MFU 25 %")
    assert again.locator(".np-error").count() == 0
    assert again.problems == []  # type: ignore[attr-defined]
