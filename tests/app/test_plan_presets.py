"""Presets of the pages of planning: each is a whole new plan, which takes nothing of the one before and loses none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamlit.testing.v1 import AppTest

from core.fields import Form
from core.planning.form.plan_form import PLAN_FIELDS
from core.store.store import Store
from pages.common.registry import COMPUTE, DECIDE, HOME, MEMORY, PARALLEL, WHAT_IF, PageSpec
from pages.compute.form import FORM as COMPUTE_FORM
from pages.compute.form import PAGE_PRESETS as COMPUTE_PRESETS
from pages.decide.form import FORM as DECIDE_FORM
from pages.decide.form import PAGE_PRESETS as DECIDE_PRESETS
from pages.home.form import PAGE_PRESETS as HOME_PRESETS
from pages.memory.form import FORM as MEMORY_FORM
from pages.memory.form import PAGE_PRESETS as MEMORY_PRESETS
from pages.parallel.form import FORM as SEARCH_FORM
from pages.parallel.form import PAGE_PRESETS as SEARCH_PRESETS
from pages.what_if.form import FORM as WHAT_IF_FORM
from pages.what_if.form import PAGE_PRESETS as WHAT_IF_PRESETS
from tests.app.plan_pages import bodies, current_preset, fold, linked, opened, take_preset
from tests.app.test_saved import only, press, save

PAGES: dict[PageSpec, tuple[Form, Mapping[str, Mapping[str, str]]]] = {
    COMPUTE: (COMPUTE_FORM, COMPUTE_PRESETS),
    MEMORY: (MEMORY_FORM, MEMORY_PRESETS),
    PARALLEL: (SEARCH_FORM, SEARCH_PRESETS),
    WHAT_IF: (WHAT_IF_FORM, WHAT_IF_PRESETS),
    DECIDE: (DECIDE_FORM, DECIDE_PRESETS),
}
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
SAVING = pytest.mark.parametrize("page", [COMPUTE, MEMORY, PARALLEL], ids=lambda page: page.id)

MINE = {
    "model": "Llama 3.1 8B", "tokens": "3T", "count": "96", "gb": "960", "seq": "4,096", "price": "4", "opt": "Lion",
    "tp": "2", "pp": "4", "vpp": "2", "mbs": "2", "acc": "12", "zero": "1", "rc": "selective", "rate1k": "0.9",
    "kpp": "4", "prec": "own", "pg": "fp32",
}  # fmt: skip
"""A plan of one's own: presets name few of these fields."""


def plan_on(app: AppTest, page: PageSpec) -> dict[str, str]:
    """The plan that the page's own link carries."""
    link = {name.partition("_")[2]: text for name, text in linked(app).items()}
    return {one.id: link.get(one.id, "") for one in PLAN_FIELDS}


def choose(app: AppTest, page: PageSpec, preset: str) -> None:
    take_preset(app, f"{page.prefix}:presets", preset)


@pytest.mark.parametrize("preset", HOME_PRESETS)
def test_preset_of_home_takes_no_price_of_another_accelerator(preset: str) -> None:
    app = opened(HOME, {"gpu": "H200 SXM", "price": "2.80"})
    choose(app, HOME, preset)
    plan = plan_on(app, HOME)
    assert (plan["gpu"], plan["price"]) == (HOME_PRESETS[preset]["gpu"], "")


def test_a_preset_names_every_field_of_a_plan() -> None:
    for form, presets in PAGES.values():
        for texts in presets.values():
            assert texts.keys() >= {one.id for one in PLAN_FIELDS}
            reading = form.parse(texts)
            assert not reading.problems
            assert not reading.derived, "a field that another one decides would never let the preset be lit"


@pytest.mark.sweep(3)
@EACH
def test_a_preset_takes_nothing_of_the_plan_before(page: PageSpec) -> None:
    _, presets = PAGES[page]
    for name in list(presets)[-2:]:
        fresh, used = opened(page, {}), opened(page, MINE)
        for app in (fresh, used):
            choose(app, page, name)
        assert plan_on(used, page) == plan_on(fresh, page) == {one.id: presets[name][one.id] for one in PLAN_FIELDS}
        assert bodies(used, "np-answer") == bodies(fresh, "np-answer")
        assert not any("cannot be laid out" in said for said in bodies(used, "np-error"))
        assert current_preset(used, f"{page.prefix}:presets") == name


@EACH
def test_the_plan_before_comes_back(page: PageSpec) -> None:
    _, presets = PAGES[page]
    first, second = list(presets)[-2:]
    app = opened(page, MINE)
    before = plan_on(app, page)
    assert before["vpp"] == "2"
    for name in (first, second):  # from preset to preset, what was typed stays to be had
        choose(app, page, name)
    for _ in range(2):
        press(app, "plan:undo")
    assert plan_on(app, page) == before


@SAVING
def test_a_preset_lets_go_of_the_saved_plan(store: Store, page: PageSpec) -> None:
    _, presets = PAGES[page]
    app = opened(page, MINE)
    save(app, page, "Ours")
    saved = only(store)
    choose(app, page, next(iter(presets)))
    assert not {"r_plan", "r_rev"} & set(app.query_params)
    fold(app, f"{page.id}:saving", open=True)
    assert f"{page.prefix}_save_changes" not in {one.key for one in app.button}
    press(app, f"{page.prefix}_save")  # which is a plan of its own
    assert store.find().total == 2
    assert store.get(saved.id).entry.texts == saved.entry.texts


@SAVING
def test_the_saved_plan_comes_back_with_the_plan(store: Store, page: PageSpec) -> None:
    _, presets = PAGES[page]
    app = opened(page, MINE)
    save(app, page, "Ours")
    saved = only(store)
    app.text_input(key="p_tokens").set_value("4T").run()
    choose(app, page, next(iter(presets)))
    press(app, "plan:undo")
    assert app.query_params["r_plan"] == saved.id
    fold(app, f"{page.id}:saving", open=True)
    assert f"{page.prefix}_save_changes" in {one.key for one in app.button}
