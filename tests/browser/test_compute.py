"""Compute budget in a real browser: answers, every panel in both themes, own shapes, bad input, links. Few visits."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import COMPUTE
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]

LLAMA = "compute-budget?v=1&c_model=Llama+3.1+405B&c_tokens=15.6T&c_gpu=H100+SXM&c_count=16,384&c_mfu=41%25&c_seq=8192"
PANELS = ("whole", "moves", "runs", "flops", "roof", "split", "parts", "table", "take")
ALL = "&".join(f"c_{name}=true" for name in PANELS)
CONFIG = {
    "model_type": "mixtral",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


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


def press(page: Page, name: str) -> None:
    """A chip, or one of the options that stand side by side."""
    page.get_by_role("radio", name=name).or_(page.get_by_role("button", name=name)).first.click()
    settle(page)


def unfold(page: Page, label: str) -> None:
    page.locator("summary", has_text=label).first.click()
    settle(page)


def table_row(page: Page, first: str) -> str:
    return plain(page.locator("tr", has=page.locator("td", has_text=first)).first.inner_text())


def test_first_sight_and_every_story(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    answers(page, "Training 70B parameters on 15T tokens takes", "(P10–P90:", "on 1,024 H100 SXM, for about $")
    answers(page, "6.3 × 1024 FLOP", "of 989.4 TFLOP/s dense bf16")
    expect(page.locator(".np-takeaway")).to_contain_text("published ones")
    expect(page.get_by_role("figure")).to_have_count(1)
    press(page, "Lecture: 70B on 1,024 H100")
    answers(
        page,
        "Training 70B parameters on 15T tokens takes 144 days on 1,024 H100 SXM, for about $11.5 M ($10.6–12.4 M).",
    )
    answers(page, "6.3 × 1024 FLOP", "3.54M accelerator-hours", "rented at $3.00–3.50/h")
    expect(page.locator(".np-note").first).to_contain_text("143.9 days")
    press(page, "Llama 3.1 405B as trained")
    answers(page, "Llama 3.1 405B (405.9B parameters) on 15.6T tokens takes 71.3 days on 16,384 H100 SXM")
    assert "c_model=Llama" in page.url
    for first, parts in {
        "Training compute": ("3.799 × 1025 FLOP", "3.8 × 1025 FLOP"),
        "Accelerator-hours": ("28.04M h", "30.84M h", "9.07 %"),
        "MFU of steady steps": ("41 %", "38–43 %"),
        "Utilisation over all these hours": ("38 %", "34.6 %"),
    }.items():
        for part in parts:
            assert part in table_row(page, first), first
    unfold(page, "Why the published hours and 6ND differ")
    expect(page.get_by_role("figure")).to_have_count(2)
    said = plain(" ".join(page.locator(".np-note").all_inner_texts()))
    assert "All hours of the run come to 34.6 % of the peak" in said
    assert "long context" in said
    for name, sentence in {
        "GPT-3 175B": "(174.6B parameters) on 300B tokens takes 13.7 days on 10,000 V100 SXM 32 GB",
        "Llama 2 70B": "(68.98B parameters) on 2T tokens takes 37.5 days on 2,048 A100 SXM 80 GB",
        "GPT-2 124M on one node": "(124.4M parameters) on 10B tokens takes 1.66 h on 8 A100 SXM 80 GB",
        "DeepSeek-V3": "(37.55B active of 671B parameters) on 14.8T tokens takes",
    }.items():
        press(page, name)
        answers(page, sentence)
        expect(page.locator(".np-error")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Active of all")).to_have_value("37.55B of 671B")
    assert "2.664M h" in table_row(page, "Accelerator-hours")
    press(page, "Our next model")
    answers(page, "512 H100 SXM train Your model", "within 60 days")
    page.wait_for_function("location.search.includes('c_within=60') && location.search.includes('c_shape=layers')")
    assert page.problems == []  # type: ignore[attr-defined]


def test_every_panel_speaks(open_page: OpenPage) -> None:
    page = open_page(f"{LLAMA}&{ALL}")
    expect(page.get_by_role("figure")).to_have_count(10)
    whole_labels(page)
    said = plain(page.locator("[data-testid=stMain]").inner_text())
    for part in (
        "They overtake the rest at 195,578 tokens",  # where the FLOPs go
        "are an MFU of",  # which MFU
        "(median of ",  # evidence
        "moves the answer most",
        "matrix products are 99.",  # roofline
        "goodput",
        "Chinchilla, approach 3",
        "405,853,388,800",  # parameters
        "1,830 MHz × 512 multiply-adds × 528 tensor cores",
        "are with sparsity; dense",
        "training compute, 6ND",  # table
    ):
        assert part in said, part
    unfold(page, "Predicted against published")
    assert "%" in table_row(page, "Llama-3.1 405B")
    expect(page.locator('.np-note a[href="https://github.com/stas00/ml-engineering"]').first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Table as CSV").click()
    rows = saved.value.path().read_text().splitlines()
    assert rows[0] == "quantity,pessimistic,median,optimistic,unit,note"
    assert sum(row.lstrip('"').startswith("training compute, 6ND") for row in rows) == 1
    page.locator("summary", has_text="How is this computed").last.click()
    settle(page)
    expect(page.locator(".katex-display").first).to_be_visible()
    expect(page.locator("[data-testid=stMain]")).to_contain_text("Ridge point")
    assert page.locator(".katex-error").count() == 0
    assert page.problems == []  # type: ignore[attr-defined]


def whole_labels(page: Page) -> None:
    """No label of any picture is cut off by its frame."""
    for plot in page.locator(".js-plotly-plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    cut = page.evaluate("""() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
        const frame = plot.getBoundingClientRect()
        return [...plot.querySelectorAll('.bartext, .annotation-text-g, .ytick text, .xtitle, .ytitle')].filter(t => {
            const b = t.getBoundingClientRect()
            return b.width && (b.left < frame.left - 1 || b.right > frame.right + 1 || b.bottom > frame.bottom + 1)
        }).map(t => t.textContent)})""")
    assert cut == []


def test_no_label_of_the_pictures_is_cut_off(open_page: OpenPage) -> None:
    """Narrow and wide, with long names and a sequence that makes every figure large."""
    page = open_page(f"compute-budget?v=1&c_model=DeepSeek-V3&c_seq=1000000&{ALL}", width=640)
    expect(page.get_by_role("figure")).to_have_count(10)
    whole_labels(page)
    page.set_viewport_size({"width": 1600, "height": 900})
    page.wait_for_timeout(600)
    whole_labels(page)


def test_a_kind_of_layer_is_kept_from_model_to_model(open_page: OpenPage) -> None:
    """The link says a window or none; models without the choice show no question, and no model takes offence."""
    page = open_page("compute-budget?v=1&c_model=Gemma+3+12B+text+decoder&c_win=full+attention&c_roof=true")
    drawn = page.locator(".st-key-c_roof caption")
    expect(drawn).to_contain_text("(full attention, 8 of 48 layers)")
    expect(page.locator(".st-key-c_roof")).to_contain_text("40 of 48 layers see a window of 1,024")
    for name, said in (
        ("gpt-oss 20B", "(full attention, 12 of 24 layers)"),
        ("DeepSeek-V3", "(experts, 58 of 61 layers)"),
        ("Llama 3.1 8B", "One layer of Llama 3.1 8B, forward"),
        ("OLMo 3 7B", "of 32 layers)"),
    ):
        box = page.get_by_role("combobox", name="Model").first
        box.fill(name)
        page.get_by_role("option", name=name, exact=True).click()
        settle(page)
        expect(drawn).to_contain_text(said)
        expect(page.locator(".np-error")).to_have_count(0)
    press(page, "window")
    expect(drawn).to_contain_text("(window of 4,096, 24 of 32 layers)")
    settle(page)  # a change made while the answer to the last one still comes in can miss the address
    page.get_by_role("switch", name="Fused attention").or_(
        page.get_by_role("checkbox", name="Fused attention")
    ).first.uncheck(force=True)
    settle(page)
    assert "memory" in table_row(page, "Attention scores")
    expect(page.locator('button[data-link*="c_flash=false"]')).to_have_count(1)
    assert page.problems == []  # type: ignore[attr-defined]


def test_bad_input_is_explained_and_the_last_good_value_stays(open_page: OpenPage) -> None:
    page = open_page(LLAMA)
    for label, good, bad in (
        ("MFU", "41%", {"1.5": "“1.5” is out of range: from 0.1 % to 100 %."}),
        ("How many", "16,384", {"0": "“0” is out of range", "2.5": "“2.5” is not a whole number"}),
        ("Tokens", "15.6T", {"1e400": "Still using 15.6T", "lots": "For example: 15T"}),
    ):
        for text, said in bad.items():
            fill(page, label, text)
            refuses(page, said)
            answers(page, "on 15.6T tokens takes 66.2 days on 16,384 H100 SXM")
        fill(page, label, good)
        expect(page.locator(".np-error")).to_have_count(0)
    unfold(page, "More")
    box = "Your price, $/h"
    fill(page, box, "2-2.5")
    answers(page, "for about $58.5 M ($52–65 M).", "rented at $2.00–2.50/h")
    fill(page, box, "cheap")
    refuses(page, "“cheap” is not a price per hour")
    answers(page, "for about $58.5 M ($52–65 M).")
    fill(page, box, "")
    press(page, "MFU")
    fill(page, "Within", "3 days")
    refuses(page, "Cannot be met: it would take an MFU of")
    fill(page, "Within", "90 days")
    answers(page, "within 90 days takes an MFU of 30.1 % on 16,384 H100 SXM")
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_config_becomes_a_shape_that_a_link_carries(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?v=1&c_model=Own+(config.json)&c_gpu=V100+SXM+32+GB&c_mfu=0.25")
    refuses(page, "V100 SXM 32 GB has no bf16 matrix units. Using its fp16 peak, 125 TFLOP/s")
    answers(page, "Your model (8.03B parameters)", "price of V100 SXM 32 GB unknown")
    unfold(page, "Read a Hugging Face config.json")
    paste = page.get_by_label("Paste it here")
    paste.fill(json.dumps(CONFIG))
    paste.press("Control+Enter")
    expect(page.locator(".np-good")).to_contain_text("Read as Mixtral")
    settle(page)
    answers(page, "Your model (12.88B active of 46.7B parameters)")
    heads = page.get_by_label("Heads", exact=True)
    heads.fill("33")
    heads.press("Enter")
    expect(page.locator(".np-error", has_text="33 query heads cannot share 8")).to_have_count(1)
    settle(page)
    expect(heads).to_have_value("32")
    press(page, "tokens")
    fill(page, "Within", "30 days")
    expect(page.get_by_label("Tokens, found")).to_be_disabled()
    answer = plain(page.locator(".np-answer").inner_text())
    link = page.get_by_role("button", name="Copy link").get_attribute("data-link")
    assert link
    fields = parse_qs(urlsplit(link).query, keep_blank_values=True)
    for name in ("model", "n", "tokens", "gpu", "count", "mfu", "dtype", "seq", "attn", "price", "find", "within"):
        assert f"c_{name}" in fields
    assert "experts.count=8" in fields["c_shape"][0]
    again = open_page(f"{COMPUTE.url_path}?{urlsplit(link).query}", theme="dark")
    assert plain(again.locator(".np-answer").inner_text()) == answer
    assert again.problems == []  # type: ignore[attr-defined]


def test_two_changes_at_once_leave_link_address_and_page_agreeing(open_page: OpenPage) -> None:
    """The second comes before the answer to the first: neither is lost, and the copied link says what is shown."""
    page = open_page(COMPUTE.url_path)
    page.get_by_role("radio", name="GPT-3 175B").or_(page.get_by_role("button", name="GPT-3 175B")).first.click()
    page.locator("summary", has_text="What moves the answer").first.click()
    expect(page.locator('button[data-link*="c_moves=true"]')).to_have_count(1)
    settle(page)
    answers(page, "GPT-3 175B (174.6B parameters) on 300B tokens")
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    linked = parse_qs(urlsplit(page.locator("button[data-link]").get_attribute("data-link") or "").query)
    assert (linked["c_model"], linked["c_tokens"], linked["c_moves"]) == (["GPT-3 175B"], ["300B"], ["true"])
    for name, values in parse_qs(urlsplit(page.url).query).items():
        assert linked[name] == values, name
    assert page.problems == []  # type: ignore[attr-defined]
