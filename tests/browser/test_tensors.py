"""Tensor views in a real browser: the answer, the pictures, hover and keyboard, the fix, the chips, bad input."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.parts.registry import TENSORS
from tests.browser.conftest import settle
from tests.browser.test_house import serious

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def opened(open_page: OpenPage, shape: str, expression: str, **options: object) -> Page:
    page = open_page(f"{TENSORS.url_path}?t_shape={quote(shape)}&t_x={quote(expression)}", **options)
    page.locator(".step").first.wait_for()
    return page


def answer(page: Page) -> str:
    return page.locator(".np-answer").first.inner_text().replace("\N{NO-BREAK SPACE}", " ")


def fill(page: Page, label: str, text: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")
    settle(page)


def lit(scope: Locator) -> list[str]:
    return scope.locator(".c.lit").all_inner_texts()


def test_first_sight_shows_why_the_view_fails(open_page: OpenPage) -> None:
    page = open_page(TENSORS.url_path)
    assert "after .t() the strides are (1, 3)" in answer(page)
    assert "dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2" in answer(page)
    steps = page.locator(".step")
    expect(steps).to_have_count(3)
    assert steps.locator(".badge").all_inner_texts() == ["start", "view", "refused"]
    assert steps.nth(1).locator(".facts").inner_text().split("\n") == [
        "shape (3, 2)",
        "strides (1, 3)",
        "offset 0",
        "not contiguous",
        "int64",
        "new storage 0 B",
    ]
    expect(steps.nth(2).locator(".error")).to_have_text(
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous subspaces). Use .reshape(...) instead."
    )
    assert steps.nth(1).locator(".tensor .c").all_inner_texts() == ["0", "3", "1", "4", "2", "5"]
    assert steps.nth(1).locator("svg text").all_text_contents() == ["↓+1", "→+3"]
    assert steps.nth(2).locator("svg text").all_text_contents() == ["+3", "−2"]
    assert steps.nth(2).locator(".strip .c.hop").all_inner_texts() == ["0", "1", "3"]
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [0, 1])
def test_a_fix_is_one_click(open_page: OpenPage, number: int) -> None:
    page = open_page(TENSORS.url_path)
    page.locator(".stButton button").nth(number).click()
    settle(page)
    wanted = ["x.t().reshape(2, 3)", "x.t().contiguous().view(2, 3)"][number]
    expect(page.get_by_label("Expression on x", exact=True)).to_have_value(wanted)
    expect(page.locator(".np-answer")).to_contain_text("48 B")
    expect(page.locator(".badge.copy")).to_have_count(1)
    expect(page.locator(".stButton button")).to_have_count(0)
    assert parse_qs(urlsplit(page.url).query)["t_x"] == [wanted]


def test_pointing_at_an_element_lights_the_same_memory_everywhere(open_page: OpenPage) -> None:
    page = opened(open_page, "2, 3", "x.t().contiguous()")
    steps = page.locator(".step")
    steps.nth(1).locator(".tensor .c").nth(1).hover()  # x.t()[0, 1] is 3, in cell 3
    expect(page.locator(".readout")).to_have_text("x.t()[0, 1] is in cell 0 + 0·1 + 1·3 = 3, value 3")
    assert lit(steps.nth(0)) == ["3", "3"]
    assert lit(steps.nth(1)) == ["3", "3"]
    assert lit(steps.nth(2)) == []  # the copy is another storage
    steps.nth(0).locator(".strip .c").nth(4).hover()
    expect(page.locator(".readout")).to_have_text("cell 4 of storage A, value 4, seen as x[1, 1], x.t()[1, 1]")
    page.mouse.move(5, 5)
    expect(page.locator(".c.lit")).to_have_count(0)


def test_views_of_another_element_size_light_by_bytes(open_page: OpenPage) -> None:
    page = opened(open_page, "4", "x.view(torch.int32)")
    steps = page.locator(".step")
    steps.nth(1).locator(".tensor .c").nth(3).hover()  # bytes 12 to 15, the upper half of cell 1 of x
    assert len(lit(steps.nth(1))) == 2
    assert lit(steps.nth(0)) == ["1", "1"]


def test_the_arrow_keys_walk_through_a_tensor(open_page: OpenPage) -> None:
    page = opened(open_page, "2, 3", "x.t()")
    page.get_by_role("application", name="Elements of x.t(); arrow keys move between them").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".readout")).to_have_text("x.t()[1, 0] is in cell 0 + 1·1 + 0·3 = 1, value 1")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("x.t()[1, 1] is in cell 0 + 1·1 + 1·3 = 4")
    page.keyboard.press("End")
    expect(page.locator(".readout")).to_contain_text("x.t()[2, 1]")
    page.keyboard.press("ArrowRight")  # stays inside
    expect(page.locator(".readout")).to_contain_text("x.t()[2, 1]")
    page.keyboard.press("Tab")
    expect(page.locator(".c.lit")).to_have_count(0)


def test_every_chip_tells_its_story(open_page: OpenPage) -> None:
    page = open_page(TENSORS.url_path)
    told = {
        "Strides of a 4 × 4": "strides (4, 1)",
        "Where is [1, 2]?": "x[1, 2] is storage cell 6 = 0 + 1·4 + 2·1.",
        "A column is a view": "[:, 1] is a view: 0 bytes copied.",
        "Write through a view": "writes storage cell 0, so x shows it too.",
        "contiguous() first: works": ".contiguous() copies 48 B into new storage",
        "What a copy costs": ".reshape(3, 8) copies 96 B into new storage",
        "View without contiguity": ".view(-1) works although x[:, ::2] is not contiguous",
        "Attention-head bug": "dimensions 2 and 3 cannot merge: stride 12 ≠ 1 × 4",
        "Transpose, view: fails": "dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2",
    }
    chips = page.locator('[data-testid="stPills"] button, [data-testid="stButtonGroup"] button')
    for label, words in told.items():
        chips.filter(has_text=label).first.click()
        settle(page)
        expect(page.locator(".np-answer")).to_contain_text(words)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_write_is_marked_in_both_tensors(open_page: OpenPage) -> None:
    page = opened(open_page, "2, 3", "x.transpose(1, 0)[0, 0] = 100")
    last = page.locator(".step").last
    assert last.locator(".c.written").all_inner_texts() == ["100", "100", "100"]  # storage, transpose, x
    assert last.locator(".tensor figcaption").all_inner_texts() == ["x.transpose(1, 0)", "x, now"]


@pytest.mark.parametrize(
    ("label", "text", "words"),
    [
        ("Expression on x", "x.t().veiw(2)", "Did you mean view?"),
        ("Expression on x", "__import__('os')", "is not an operation here"),
        ("Expression on x", "x.expand(1000000000, 2, 3)", "elements"),
        ("Expression on x", "<img src=x onerror=alert(1)>", "has no place in an expression"),
        ("Start shape of x", "2;3", "is not a shape"),
        ("Start shape of x", "1000000000", "1,000,000,000 elements"),
    ],
)
def test_bad_input_says_why_and_keeps_the_last_good(open_page: OpenPage, label: str, text: str, words: str) -> None:
    page = opened(open_page, "2, 3", "x.t()")
    fill(page, label, text)
    expect(page.locator(".np-error")).to_contain_text(words)
    expect(page.locator(".np-error")).to_contain_text("Still showing x.t() on int64 of shape 2, 3")
    expect(page.locator(".step .source").last).to_have_text(".t()")
    link = page.locator("button[data-link]").get_attribute("data-link")
    assert link is not None
    assert parse_qs(urlsplit(link).query)["t_x"] == ["x.t()"]
    assert page.problems == []  # type: ignore[attr-defined]


def test_many_cells_are_drawn_quickly_and_linked(open_page: OpenPage) -> None:
    page = opened(open_page, "64, 64", "x.t()")
    expect(page.locator(".strip .c")).to_have_count(1024)
    spent = page.evaluate(
        """() => {
            const roots = [...document.querySelectorAll("*")].map(element => element.shadowRoot)
            const root = roots.find(shadow => shadow?.querySelector(".steps"))
            const cells = [...root.querySelectorAll(".tensor .c")].slice(0, 200)
            const start = performance.now()
            for (const cell of cells) cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))
            return (performance.now() - start) / cells.length
        }"""
    )
    assert spent < 16  # one frame, with 2,048 cells drawn
    assert page.problems == []  # type: ignore[attr-defined]


def test_the_picture_fits_the_page(open_page: OpenPage) -> None:
    for shape in ("2, 3, 8", "5, 7", "64, 64", "1000"):
        page = opened(open_page, shape, "x.flip(0)")
        wide = page.locator('[data-testid="stMain"]').evaluate("main => main.scrollWidth - main.clientWidth")
        assert wide <= 0, shape


@pytest.mark.parametrize(
    ("shape", "expression"), [("64, 64", "x.t()"), ("2, 3", "x.t()[0] = 7"), ("2, 3", "x.veiw(6)")]
)
def test_accessible_in_every_state(open_page: OpenPage, shape: str, expression: str) -> None:
    assert serious(opened(open_page, shape, expression, theme="dark")) == []


def test_folds_open(open_page: OpenPage) -> None:
    page = open_page(TENSORS.url_path)
    for label in ("The steps as a table", "How is this computed", "What can be typed"):
        page.get_by_text(label, exact=True).click()
        settle(page)
    expect(page.locator(".np-table")).to_have_count(2)
    expect(page.locator(".np-table").first).to_contain_text("(1, 3)")
    expect(page.locator(".katex").first).to_be_visible()
    expect(page.get_by_text("Every step ran on torch")).to_be_visible()
    assert page.problems == []  # type: ignore[attr-defined]


def test_frame_first_then_torch(open_page: OpenPage, fresh_server: Callable[..., object]) -> None:
    """On a fresh server the inputs stand before torch is there, with a spinner that says what is happening."""
    with fresh_server() as base:  # type: ignore[attr-defined]
        page = open_page("", base=base)
        page.goto(f"{base}/{TENSORS.url_path}", wait_until="commit")
        page.get_by_text("Loading torch").wait_for()
        expect(page.get_by_label("Expression on x", exact=True)).to_be_visible()
        expect(page.locator(".np-answer")).to_have_count(0)
        page.locator(".np-answer").wait_for()
        expect(page.get_by_text("Loading torch")).to_have_count(0)
