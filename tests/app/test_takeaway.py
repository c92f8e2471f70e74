"""Export: on every page of planning the same files of the plan in force, made when somebody asks for one."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.fields import LINK_VERSION, VERSION
from core.limits import limit
from core.planning.comparison.entry import entry_of, pack, results_of
from core.planning.form.plan_form import PLAN_FORM, plan_from
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.views.plan import text
from core.views.report.data import read_json
from pages.common.registry import COMPARE, COMPUTE, MEMORY, PARALLEL, PageSpec
from pages.common.takeaway import stem_of
from tests.app.plan_pages import downloads, linked, next_pages, opened
from tests.app.test_pages import APP
from tests.core.report_cases import HOSTILE
from tests.patience import PATIENCE_S

ENDINGS = {"html", "csv", "md", "json"}
PAGES = {
    COMPUTE: next(iter(PRESETS.values())),
    MEMORY: MEMORY_PRESETS["8B on one node"],
    PARALLEL: SEARCH_PRESETS["13B on one node"],
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_a_page_offers_its_plan_in_every_format(page: PageSpec) -> None:
    """The plan of the file has the answer of the plan that the page's link to another page carries."""
    with downloads() as made:
        app = opened(page, {**PAGES[page], "take": "true"})
    assert set(made) == ENDINGS
    ((entry,), said) = read_json(made["json"]().decode())
    assert said == ()
    assert entry.answer.plan == plan_from(PAGES[page] if page is COMPUTE else next_pages(app, COMPUTE)[0])
    assert entry.results == results_of(entry.answer)
    files = {ending: file().decode() for ending, file in made.items()}
    assert text.headline(entry.answer) in files["md"]
    assert entry.name in files["html"].replace("\u00a0", " ")
    assert all(name in files["md"] for name in linked(app) if name != f"{page.prefix}_take")


def test_a_folded_panel_offers_nothing() -> None:
    with downloads() as made:
        opened(COMPUTE, {"take": "false"})
    assert made == {}


def test_a_plan_has_the_name_that_was_typed() -> None:
    with downloads() as made:
        app = opened(COMPUTE, {"take": "true"})
        app.text_input(key="c_take_name").set_value("  Ours | <b>  ").run()
        assert read_json(made["json"]().decode())[0][0].name == "Ours | <b>"
        assert "Ours &lt;b" not in made["md"]().decode()
        app.text_input(key="c_take_name").set_value(" ").run()
        assert "70B" in read_json(made["json"]().decode())[0][0].name


def test_a_plan_without_an_answer_is_taken_away_with_its_reason() -> None:
    with downloads() as made:
        opened(COMPUTE, {"take": "true", "find": "tokens", "within": "$5M", "gpu": "V100 SXM 32 GB"})
    assert all("price" in made[ending]().decode() for ending in ("html", "csv", "md", "json"))


def compared(names: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The files of Compare by a link that carries these plans."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    app.query_params[VERSION] = str(LINK_VERSION)
    app.query_params["plans"] = pack([entry_of(name, texts) for name, texts in names.items()])
    with downloads() as made:
        app.run().switch_page(COMPARE.path)
        app.query_params["k_take"] = "true"
        app.run()
    assert not app.exception
    return {ending: file().decode() for ending, file in made.items()}


def test_compare_offers_its_plans() -> None:
    three = dict(list(PRESETS.items())[:3])
    files = compared(three)
    assert set(files) == ENDINGS
    entries, _ = read_json(files["json"])
    assert [one.name for one in entries] == list(three)
    assert all({one.id: e.texts[one.id] for one in PLAN_FORM.fields if one.id in texts} == dict(texts)
               for e, texts in zip(entries, three.values(), strict=True))  # fmt: skip
    assert all(text.headline(one.answer) in files["md"] for one in entries)


@given(st.text(max_size=limit("plan_name")) | st.sampled_from(HOSTILE))
def test_a_file_name_is_one_on_every_system(name: str) -> None:
    assert re.fullmatch(r"napkin(-[a-z0-9][a-z0-9.]*)*", stem_of(name))
    assert len(stem_of(name)) <= 80


def test_a_file_name_says_what_the_plan_is() -> None:
    assert stem_of("70B · 15T · 1,024 × H100 SXM") == "napkin-70b-15t-1024-h100-sxm"
    assert stem_of("Llama 3.1 405B / ../../etc") == "napkin-llama-3.1-405b-etc"
