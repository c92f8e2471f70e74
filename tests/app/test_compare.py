"""Compare and the tray: plans come from three pages and by a link, are changed in place, and nothing is lost."""

from __future__ import annotations

import datetime
import json

import pytest
from streamlit.testing.v1 import AppTest

from core.limits import limit
from core.planning.comparison.comparison import compare_plan, compare_plans, suggested, with_saved_results
from core.planning.comparison.entry import Entry, entry_of, examples, pack, unpack
from core.planning.form.links import link_texts, texts_as_given
from core.planning.form.plan_form import PLAN_FORM
from core.planning.presets import MEMORY_PRESETS, PRESETS
from core.views.comparison import text as comparison_text
from core.views.report.data import PlansFileError, as_json, read_json
from core.views.report.report import Report
from pages.common import show
from pages.common.comparison_list import IN_LINK
from pages.common.links import key_of
from pages.common.registry import COMPARE, COMPUTE, HOME, MEMORY, PARALLEL, PageSpec
from pages.compare.columns import COPY, EDIT, LEFT, PIN, REMOVE, RIGHT
from tests.app.plan_pages import bodies, linked, next_pages, opened, shown, stripped
from tests.app.plan_pages import words as said_on
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

THREE = (COMPUTE, MEMORY, PARALLEL)
ADD = dict.fromkeys(THREE, "plan:add")


def with_plans(entries: tuple[Entry, ...] | str, page: PageSpec = COMPARE, **fields: str) -> AppTest:
    """``page`` by a link that carries these plans."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(page.path)
    app.query_params["v"] = str(PLAN_FORM.version)
    app.query_params[IN_LINK] = entries if isinstance(entries, str) else pack(entries)
    for name, text in fields.items():
        app.query_params[key_of(page, name)] = text
    app.run()
    assert not app.exception
    return app


def plans(app: AppTest) -> tuple[Entry, ...]:
    """The tray, as the page's own link carries it."""
    entries, said = unpack(linked(app).get(IN_LINK, ""))
    assert not said
    return entries


def names(app: AppTest) -> list[str]:
    return [one.name for one in plans(app)]


def base(app: AppTest) -> str:
    """Which plan the link calls the baseline."""
    return names(app)[int(linked(app)["k_base"]) - 1]


def choose(app: AppTest, place: int, what: str) -> None:
    """Choose from the menu of the plan in a column, counted from 0."""
    app.menu_button[place].set_value(what).run()
    assert not app.exception


def numbers(app: AppTest) -> list[str]:
    """The number of each column's plan."""
    return [(button.key or "").rpartition("_")[2] for button in app.menu_button]


def answer(app: AppTest) -> str:
    (said,) = bodies(app, "np-answer")
    return stripped(said.partition("<small>")[0])


def texts_of(entries: tuple[Entry, ...]) -> list[dict[str, str]]:
    """The texts in force; types that a named precision decides are as it has them."""
    return [dict(one.reading.texts) for one in entries]


# ------------------------------------------------------------------------------------------ adding


@pytest.mark.parametrize("page", THREE, ids=lambda page: page.id)
def test_the_plan_on_screen_is_added_as_it_stands(page: PageSpec) -> None:
    app = opened(page, {"count": "512", "n": "8B", "model": "Typed parameters"})
    assert IN_LINK not in linked(app)
    app.button(key=ADD[page]).click().run()
    (one,) = plans(app)
    onward = next_pages(app, COMPUTE if page is not COMPUTE else MEMORY)[-1]
    there = entry_of(one.name, link_texts({name: text for name, text in onward.items() if name != IN_LINK}))
    assert one.texts == there.reading.texts
    assert compare_plan(one).answer is compare_plan(there).answer
    assert one.results == pytest.approx(with_saved_results(one).results, rel=1e-5)
    assert (one.texts["count"], one.texts["n"], one.texts["find"]) == ("512", "8B", "time")
    assert one.name == suggested(one.texts)


def test_training_memory_adds_the_accelerators_that_it_names_whatever_another_page_finds() -> None:
    app = opened(MEMORY, {"find": "accelerators", "count": "64", "n": "8B"})
    app.button(key=ADD[MEMORY]).click().run()
    (one,) = plans(app)
    assert (one.texts["find"], one.texts["count"]) == ("time", "64")
    assert texts_as_given(dict(one.texts))["find"] == "time"


def test_the_tray_stays_from_page_to_page_and_in_every_link() -> None:
    app = opened(COMPUTE, {})
    app.button(key=ADD[COMPUTE]).click().run()
    for page in (MEMORY, PARALLEL):
        app.switch_page(page.path).run()
        app.session_state["p_lay"] = "own"
        app.run()
        app.button(key=ADD[page]).click().run()
    app.session_state["p_lay"] = "fastest"
    app.run()
    app.switch_page(HOME.path).run()
    assert IN_LINK not in linked(app)
    assert unpack(next_pages(app, COMPUTE)[0][IN_LINK])[0]
    for page in (*THREE, COMPARE):
        app.switch_page(page.path).run()
        assert len(plans(app)) == len(set(names(app))) == 2, "two pages have the same plan"
        carried_by_address = app.query_params[IN_LINK]
        assert linked(app)[IN_LINK] in (carried_by_address, *carried_by_address)
    again = with_plans(linked(app)[IN_LINK])
    assert linked(again) == linked(app)
    assert answer(again) == answer(app)


def test_the_same_plan_is_added_once() -> None:
    app = opened(COMPUTE, {})
    for _ in range(2):
        app.button(key=ADD[COMPUTE]).click().run()
    assert len(plans(app)) == 1
    assert names(app)[0] in said_on(app)


def test_a_seventh_plan_is_refused_and_nothing_is_lost() -> None:
    six = tuple(entry_of(name, preset) for name, preset in list(PRESETS.items())[: limit("compared_plans")])
    app = with_plans(six, COMPUTE, n="3B")
    assert not bodies(app, "np-error")
    app.button(key=ADD[COMPUTE]).click().run()
    assert stripped(bodies(app, "np-error")[0]).strip() == shown(comparison_text.full())
    assert texts_of(plans(app)) == texts_of(six)
    app.switch_page(COMPARE.path).run()
    assert app.button(key="k_add_it").disabled
    choose(app, 0, COPY)
    assert texts_of(plans(app)) == texts_of(six)


# ------------------------------------------------------------------------------------------ a file


def written(entries: tuple[Entry, ...], **changed: object) -> str:
    """The file of these plans, with something in it changed."""
    report = Report(compare_plans(entries), "", datetime.date(2026, 1, 1))
    return json.dumps({**json.loads(as_json(report)), **changed})


def choose_file(app: AppTest, text: str) -> list[str]:
    """Choose a file of this text; what is said about it."""
    app.file_uploader(key="k_file").set_value(("plans.json", text.encode(), "application/json")).run()
    assert not app.exception
    return [stripped(body) for body in bodies(app, "np-error")]


def test_a_file_that_was_taken_away_opens_as_the_same_comparison() -> None:
    entries = tuple(with_saved_results(one) for one in examples())
    app = opened(COMPARE, {})
    assert choose_file(app, written(entries)) == []
    assert (names(app), texts_of(plans(app))) == ([one.name for one in entries], texts_of(entries))
    assert answer(app) == shown(" ".join(comparison_text.answer(compare_plans(entries), 0)))


def test_a_file_loses_no_plan_that_is_there() -> None:
    presets = list({**PRESETS, **MEMORY_PRESETS}.items())
    there = tuple(entry_of(name, preset) for name, preset in presets[: limit("compared_plans") - 2])
    new = tuple(entry_of(f"new {count}", {"n": "3B", "count": str(count)}) for count in (1, 2, 3))
    app = with_plans(there)
    said = choose_file(app, written((there[1], *new)))
    assert texts_of(plans(app)) == texts_of((*there, *new[:2]))
    assert any(there[1].name in line for line in said)
    assert any("new 3" in line for line in said)
    assert not any("new 1" in line or "new 2" in line for line in said)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "other"}', "x" * 200_000])
def test_a_file_of_no_plans_changes_nothing(text: str) -> None:
    app = with_plans(examples())
    before = plans(app)
    (said,) = choose_file(app, text)
    with pytest.raises(PlansFileError) as refused:
        read_json(text)
    assert said.strip() == stripped(show.rich(str(refused.value)))
    assert plans(app) == before


# ------------------------------------------------------------------------------------------ the page


@pytest.mark.parametrize("count", range(2, limit("compared_plans") + 1))
def test_a_link_alone_opens_the_comparison(count: int) -> None:
    presets = list({**MEMORY_PRESETS, **PRESETS}.items())[-count:]
    entries = tuple(entry_of(name, preset) for name, preset in presets)
    app = with_plans(entries, base=str(count))
    assert (names(app), texts_of(plans(app))) == ([one.name for one in entries], texts_of(entries))
    assert base(app) == presets[-1][0]
    assert answer(app) == shown(" ".join(comparison_text.answer(compare_plans(entries), count - 1)))
    (table,) = [body for body in bodies(app, "np-tabled") if "End-to-end time" in body]
    assert all(comparison_text.plan_name(compare_plan(one)) in said_on(app) for one in entries)
    assert table.count('<th scope="col"') == count + 1


def test_numbers_are_changed_in_place_and_bad_ones_keep_the_last_good() -> None:
    app = with_plans(examples())
    before = plans(app)
    choose(app, 1, EDIT)
    assert texts_of(plans(app)) == texts_of(before)
    app.text_input(key="p_count").set_value("4096").run()
    after = plans(app)
    assert texts_of((after[0], after[2])) == texts_of((before[0], before[2]))
    assert after[1].texts == {**before[1].texts, "count": "4096"}
    assert after[1].results == pytest.approx(with_saved_results(after[1]).results, rel=1e-5)
    assert answer(app) == shown(" ".join(comparison_text.answer(compare_plans(after), 0)))
    said = answer(app)
    app.text_input(key="p_count").set_value("many").run()
    (message,) = bodies(app, "np-error")
    assert "many" in message
    assert (plans(app), answer(app)) == (after, said)
    app.switch_page(COMPUTE.path).run()
    app.switch_page(COMPARE.path).run()
    assert app.text_input(key="p_count").value == "many"
    assert plans(app) == after


def test_the_column_that_is_the_plan_is_the_one_that_the_sidebar_changes() -> None:
    app = opened(COMPUTE, {"n": "8B"})
    app.button(key="plan:add").click().run()
    app.switch_page(COMPARE.path).run()
    app.text_input(key="p_tokens").set_value("3T").run()
    assert [(one.texts["n"], one.texts["tokens"]) for one in plans(app)] == [("8B", "3T")]
    choose(app, 0, COPY)
    choose(app, 1, EDIT)
    app.text_input(key="p_tokens").set_value("4T").run()
    assert [one.texts["tokens"] for one in plans(app)] == ["3T", "4T"]


def test_names_are_changed_kept_apart_and_never_empty() -> None:
    app = with_plans(examples())
    first, second, _ = numbers(app)
    app.text_input(key=f"k_name_{first}").set_value("<b>**mine**</b> =1+1").run()
    assert names(app)[0] == "<b>**mine**</b> =1+1"
    assert "<b>**mine" not in "".join(block.proto.body for block in app.get("html"))
    assert "**mine" not in stripped(bodies(app, "np-answer")[0])
    app.text_input(key=f"k_name_{second}").set_value(names(app)[0]).run()
    assert len(set(names(app))) == 3
    app.text_input(key=f"k_name_{second}").set_value("  ").run()
    assert names(app)[1] == suggested(plans(app)[1].texts)


def test_columns_are_moved_copied_and_removed() -> None:
    app = with_plans(examples())
    a, b, c = names(app)
    choose(app, 0, RIGHT)
    assert names(app) == [b, a, c]
    assert base(app) == a
    choose(app, 2, LEFT)
    choose(app, 0, LEFT)
    assert names(app) == [b, c, a]
    choose(app, 1, COPY)
    assert names(app)[:2] == [b, c]
    assert names(app)[3] == a
    assert plans(app)[2].texts == plans(app)[1].texts
    assert base(app) == a
    choose(app, 1, PIN)
    assert base(app) == c
    assert f"{c}, baseline" in said_on(app)


def test_a_baseline_that_is_removed_leaves_the_first_plan_as_one() -> None:
    app = with_plans(examples(), base="2")
    a, b, c = names(app)
    assert base(app) == b
    choose(app, 1, REMOVE)
    assert (names(app), base(app)) == ([a, c], a)
    choose(app, 0, REMOVE)
    choose(app, 0, REMOVE)
    assert IN_LINK not in linked(app)
    assert IN_LINK not in app.query_params
    assert app.button(key="k_examples")


def test_plans_that_have_no_answer_keep_their_column() -> None:
    bad = entry_of("bad", {"find": "tokens", "within": "$5M", "gpu": "T4"})
    lay = entry_of("lay", {"tp": "7"})
    app = with_plans((entry_of("good", {}), bad, lay))
    assert names(app) == ["good", "bad", "lay"]
    said = said_on(app)
    assert shown(compare_plan(bad).problem) in stripped(said)
    assert shown(compare_plan(lay).problem) in stripped(said)
    assert len(app.menu_button) == 3


def test_results_of_an_older_link_are_shown_beside_those_of_now() -> None:
    kept = with_saved_results(examples()[0])
    old = Entry(kept.name, kept.texts, {**kept.results, "days": 2 * kept.results["days"]})
    app = with_plans((old, examples()[1]))
    (change,) = comparison_text.changed_text(compare_plan(old))
    assert shown(change) in stripped(said_on(app))
    assert plans(app)[0].results["days"] == pytest.approx(old.results["days"], rel=1e-5)


def test_what_a_link_says_badly_is_said_and_the_rest_opens() -> None:
    app = with_plans("a~count.many~gpu.H100~zzz.1~~b~count.64")
    said = "".join(bodies(app, "np-error"))
    assert all(wrong in said for wrong in ("many", "“H100”", "zzz"))
    assert [one.texts["count"] for one in plans(app)] == [PLAN_FORM["count"].default, "64"]
