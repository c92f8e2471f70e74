"""What a user enters after a click that sets many fields stays: one edit after the other, and edits in a rush."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.messages import message
from core.planning.comparison.entry import entry_of
from core.planning.form.plan_form import COUNT
from core.store.locations import plan_store
from core.store.plans import SavedPlan
from pages.common.registry import (
    COMPUTE,
    DECIDE,
    EXERCISES,
    FLOATS,
    HOME,
    LECTURE,
    MEMORY,
    PARALLEL,
    TENSORS,
    WHAT_IF,
    PageSpec,
)
from pages.home.form import LECTURES
from tests.browser.conftest import OpenPage, choose, enter, open_preset, option_shown, running_server, settle

pytestmark = pytest.mark.browser

Edits = Sequence[tuple[str, str]]

PLAN: Edits = [
    ("p_tokens", "1.5T"),
    ("p_count", "2,000"),
    ("p_seq", "1,024"),
    ("p_mfu", "31%"),
    ("p_spend", "$77M"),
    ("p_until", "400 days"),
]


@dataclass(frozen=True)
class Example:
    """An example and six edits after it. opened: the query of the page; "Examples" is opened where it is empty."""

    page: PageSpec
    name: str
    edits: Edits = tuple(PLAN)
    opened: str = ""


EXAMPLES = {
    "Home": Example(HOME, LECTURES),
    "Compute budget": Example(COMPUTE, "GPT-3 175B"),
    "Training memory": Example(MEMORY, "70B on one node"),
    "Parallel plan": Example(PARALLEL, "8B on 64 H100"),
    "What if": Example(WHAT_IF, "70B: accelerators × MFU"),
    "Decide": Example(DECIDE, "Llama 3 405B: 8k, then 128k"),
    "Home, what is counted": Example(
        HOME, message("home.preset.states"), [("h_k", "16"), ("h_of", "everything"), *PLAN[:4]], "h_k=9"
    ),
    "Float formats": Example(
        FLOATS,
        "Double rounding",
        [("f_x", "0.3"), ("f_over", "saturate"), ("f_fmt", "fp32"), ("f_x", "7"), ("f_over", "nan"), ("f_fmt", "fp16")],
        "f_x=5",
    ),
    "Float formats, sums": Example(
        FLOATS,
        "0.01 a thousand times",
        [("f_start", "2"), ("f_add", "0.25"), ("f_times", "77"), ("f_sum", "fp16"), ("f_x", "0.3"), ("f_start", "3")],
        "f_sums=true",
    ),
    "Tensor views": Example(
        TENSORS,
        "What a copy costs",
        [("t_x", "x.t()"), ("t_shape", "4, 5"), ("t_stride", "5, 1"), ("t_dtype", "int8"), ("t_shape", "5, 4"),
         ("t_x", "x + 1")],
        "t_shape=7, 7",
    ),
    "Exercises": Example(
        EXERCISES,
        message("exercises.preset.all"),
        [("e_sheet", "7"), ("e_topics", "views"), ("e_sheet", "9"), ("e_topics", "floats"), ("e_sheet", "8"),
         ("e_topics", "memory, views")],
        "e_sheet=3",
    ),
    "The lecture, sizes": Example(
        LECTURE,
        "One example",
        [("l_lb", "512"), ("l_ld", "128"), ("l_lk", "32"), ("l_lb", "64"), ("l_ld", "16"), ("l_lk", "8")],
        "l_linear=true",
    ),
}  # fmt: skip


def fields(query: str) -> dict[str, str]:
    found = parse_qs(urlsplit(query).query, keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def linked(page: Page) -> dict[str, str]:
    """What the page's own link says of its fields."""
    return fields(page.get_by_role("button", name="Copy link").get_attribute("data-link") or "")


def shows(page: Page, key: str, text: str) -> bool:
    """Whether the field of this key shows ``text``, where it is drawn."""
    field = page.locator(f".st-key-{key}")
    text = option_shown(key.removeprefix("p_"), text)
    chosen = field.get_by_role("radio", name=text, exact=True)
    if chosen.count():
        return chosen.is_checked()
    return not field.count() or field.locator("input, textarea").first.input_value() == text


def check(page: Page, wanted: dict[str, str]) -> None:
    """The fields, the page's link and its address say what is wanted, and a reload says the same."""
    full, seen = linked(page), fields(page.url)
    assert {name: full[name] for name in wanted} == wanted
    assert all(full[name] == text for name, text in seen.items() if not name.startswith("r_")), seen
    assert [key for key, text in wanted.items() if not shows(page, key, text)] == []
    page.reload()
    settle(page)
    assert linked(page) == full
    assert page.problems == []  # type: ignore[attr-defined]


def take(page: Page, example: Example) -> None:
    (choose if example.opened else open_preset)(page, example.name)


def edited(open_page: OpenPage, example: Example) -> tuple[Page, dict[str, str]]:
    """The page after the example and its edits, each answered before the next; and what its link is to say of them."""
    page = open_page(f"{example.page.url_path}?{example.opened}")
    take(page, example)
    settle(page)
    link, keys = linked(page), [key for key, _ in example.edits]
    wanted = {key: link.get(key, "") for key in keys}
    for key, text in example.edits:
        assert wanted[key] != text, f"{key} is no edit"
        enter(page, key, text)
        settle(page)
        wanted[key] = text
        link = linked(page)
        assert {key: link.get(key, "") for key in keys} == wanted
    return page, wanted


@pytest.mark.journey
def test_six_edits_after_an_example_stay(open_page: OpenPage) -> None:
    check(*edited(open_page, EXAMPLES["Compute budget"]))


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "Compute budget"])
def test_six_edits_after_an_example_of_any_page_stay(open_page: OpenPage, name: str) -> None:
    check(*edited(open_page, EXAMPLES[name]))


@pytest.mark.parametrize("leave", ["Enter", "Tab"])
def test_typed_text_outlasts_a_reload_that_comes_before_its_answer(open_page: OpenPage, leave: str) -> None:
    page = open_page(COMPUTE.url_path)
    page.evaluate("traffic.held = []")  # the page hears no answer
    for label, text in (("Tokens", "1.5T"), (COUNT.label, "2,000")):
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_label(label, exact=True).press(leave)
    page.reload()
    settle(page)
    check(page, {"p_tokens": "1.5T", "p_count": "2,000"})


# ------------------------------------------------------------------------------------------ in a rush


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a server of whose runs each takes 0.3 s longer."""
    log = tmp_path_factory.mktemp("slow") / "log.txt"
    with running_server(log, module="tests.browser.slow_streamlit") as url:
        yield url


def saved_plan(note: str = "") -> SavedPlan:
    return plan_store().save(entry_of("Both", {"n": "8B", "tokens": "1T"}), note)


def changed_by_somebody_else() -> str:
    """The address of a saved plan with a change of one's own, which somebody else has changed meanwhile."""
    plan = saved_plan()
    plan_store().change(plan.id, plan.revision, entry=entry_of("Both", {"n": "8B", "tokens": "3T"}))
    return urlencode({"v": "3", "c_n": "8B", "c_tokens": "2T", "r_plan": plan.id, "r_rev": "1"})


def edit_first(page: Page) -> None:
    enter(page, "p_tokens", "9T")
    settle(page)


def open_save_box(page: Page) -> None:
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    settle(page)
    page.get_by_role("button", name=message("saved.conflict.take")).wait_for()


def button(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=name, exact=True).click()


@dataclass(frozen=True)
class Rush:
    """A click that sets many fields, one of which it leaves as ``then`` says, and edits right after it."""

    page: PageSpec
    click: Callable[[Page], None]
    then: tuple[str, str]
    opened: Callable[[], str] = str
    before: Callable[[Page], None] = settle
    edits: Edits = (("p_count", "2,000"), ("p_tokens", "1.5T"), ("p_seq", "1,024"))


def preset(name: str) -> Callable[[Page], None]:
    return lambda page: open_preset(page, name)


def click_cell(page: Page) -> None:
    page.locator('.board button[data-id="2,2"]').click()


LLAMA = urlencode({"v": "3", "c_model": "Llama 2 70B", "c_tokens": "2T"})
SWEEP = urlencode(
    {"v": "3", "w_y": "MFU", "w_xs": "512, 1,024, 2,048", "w_ys": "30%, 40%, 50%", "w_count": "1,024", "w_mfu": "40%"}
)
RUSHES = {
    "an example": Rush(COMPUTE, preset("GPT-3 175B"), ("p_model", "GPT-3 175B")),
    "an example of memory": Rush(MEMORY, preset("Lecture: 40B, fp32 AdamW"), ("p_n", "40B")),
    "what is counted on Home": Rush(HOME, button(message("home.preset.states")), ("p_prec", "fp32")),
    "a cell": Rush(WHAT_IF, click_cell, ("p_mfu", "50%"), lambda: SWEEP),
    "Undo": Rush(COMPUTE, button("Undo"), ("p_model", "Llama 2 70B"), lambda: LLAMA, edit_first),
    "New": Rush(COMPUTE, button("New"), ("p_model", "Typed parameters"), lambda: LLAMA),
    "a conflict": Rush(
        COMPUTE, button(message("saved.conflict.take")), ("p_n", "8B"), changed_by_somebody_else, open_save_box
    ),
    "an example of floats": Rush(
        FLOATS, button("Double rounding"), ("f_over", "format"), lambda: "f_over=nan&f_fmt=fp16",
        edits=(("f_x", "0.3"), ("f_fmt", "fp32"), ("f_x", "7")),
    ),
}  # fmt: skip


@pytest.mark.patched
@pytest.mark.parametrize("pause", [0, 200])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", RUSHES)
def test_edits_right_after_a_click_that_sets_many_fields_stay(
    open_page: OpenPage, slow_server: str, name: str, count: int, pause: int
) -> None:
    """pause: milliseconds between what the user does."""
    rush = RUSHES[name]
    page = open_page(f"{rush.page.url_path}?{rush.opened()}", base=slow_server)
    rush.before(page)
    rush.click(page)
    for key, text in rush.edits[:count]:
        page.wait_for_timeout(pause)
        enter(page, key, text)
    settle(page)
    check(page, dict([rush.then, *rush.edits[:count]]))


@pytest.mark.patched
def test_undo_brings_back_an_edit_right_before_an_example(open_page: OpenPage, slow_server: str) -> None:
    page = open_page(COMPUTE.url_path, base=slow_server)
    before = linked(page)["p_tokens"]
    enter(page, "p_tokens", "1.5T")
    open_preset(page, "GPT-3 175B")
    settle(page)
    assert linked(page)["p_model"] == "GPT-3 175B"
    for tokens in ("1.5T", before):
        button("Undo")(page)
        settle(page)
        assert (linked(page)["p_model"], linked(page)["p_tokens"]) == ("Typed parameters", tokens)


# ------------------------------------------------------------------------------------------ saving


def changed_plan(open_page: OpenPage, base: str | None = None, note: str = "") -> tuple[Page, SavedPlan]:
    """A page of a saved plan with a change, its Save box open."""
    plan = saved_plan(note)
    query = urlencode({"v": "3", "c_n": "8B", "c_tokens": "2T", "r_plan": plan.id, "r_rev": "1"})
    page = open_page(f"{COMPUTE.url_path}?{query}", base=base)
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    page.get_by_role("button", name="Save changes").wait_for()
    settle(page)
    return page, plan


def is_as_saved(plan: SavedPlan) -> bool:
    now = plan_store().get(plan.id)
    return (now.revision, now.entry.name, now.entry.texts) == (plan.revision, plan.entry.name, plan.entry.texts)


def named(name: str) -> list[SavedPlan]:
    return [plan for plan in plan_store().find().plans if plan.entry.name == name]


@pytest.mark.journey
def test_a_plan_under_another_name_is_a_new_plan(open_page: OpenPage) -> None:
    page, plan = changed_plan(open_page)
    page.locator(".st-key-c_save_name input").press_sequentially("Another")
    expect(page.get_by_role("button", name="Save changes")).to_have_count(0)  # before Enter, or a click elsewhere
    button("Save as new")(page)
    settle(page)
    assert is_as_saved(plan)
    (new,) = named("Another")
    assert new.entry.texts["tokens"] == "2T"
    assert fields(page.url)["r_plan"] == new.id
    plan_store().archive(new.id)
    assert page.problems == []  # type: ignore[attr-defined]


def test_save_changes_clicked_while_a_name_is_typed_overwrites_nothing(open_page: OpenPage, slow_server: str) -> None:
    page, plan = changed_plan(open_page, slow_server)
    page.locator(".st-key-c_save_name input").fill("In a rush")
    button("Save changes")(page)
    settle(page)
    assert is_as_saved(plan)
    (new,) = named("In a rush")
    assert new.entry.texts["tokens"] == "2T"
    plan_store().archive(new.id)


def test_save_changes_keeps_the_note_and_adds_what_is_typed(open_page: OpenPage) -> None:
    page, plan = changed_plan(open_page, note="Old note")
    page.locator(".st-key-c_save_note input").fill("New note")
    button("Save changes")(page)
    settle(page)
    now = plan_store().get(plan.id)
    assert now.note.splitlines() == ["Old note", "New note"]
    assert now.entry.texts["tokens"] == "2T"


def test_new_clicked_right_after_save_changes_overwrites_nothing(open_page: OpenPage, slow_server: str) -> None:
    page, plan = changed_plan(open_page, slow_server)
    page.evaluate("""() => {
      const click = name => [...document.querySelectorAll('button')].find(one => one.innerText.trim() === name).click()
      click('Save changes')
      click('New')
    }""")
    settle(page)
    texts = plan_store().get(plan.id).entry.texts
    assert (texts["n"], texts["tokens"]) in (("8B", "1T"), ("8B", "2T"))
