"""Decide as a visitor sees it: every preset, bad cells, old links, the record, saved decisions, and files."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import CHOSEN, DECIDE_FORM, DecisionResult, decide, packed_texts
from core.planning.decide.offers import OFFER_COLUMNS, write_table
from core.planning.decide.record import unpack
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.form.whole_run import DEADLINE, POWER_LIMIT
from core.planning.presets import DECISION_PRESETS
from core.store.store import Store
from core.views.decide import tables, text
from core.views.plan import text as plan_text
from core.views.report.decide import CSV_COLUMNS
from pages.common.inputs import PACKED
from pages.common.registry import COMPUTE, DECIDE, SAVED
from pages.decide.tables import cell_here, plan_cells, sidebar_row, sidebar_texts
from tests.app.plan_pages import bodies, downloads, fold, linked, opened, said_by, shown, stripped
from tests.app.test_pages import APP
from tests.app.test_saved import press, save
from tests.core.plan_walk import NO_NUMBER
from tests.patience import PATIENCE_S

TWO = {**DECISION_PRESETS["Two models, four offers"], "goal": "cost"}
SMALL = {"n": "1B", "tokens": "200B", "count": "64", "seq": "4,096", "until": "60 days"}


def told(app: AppTest) -> str:
    return stripped(bodies(app, "np-answer")[0].partition("<small>")[0])


def decided(texts: Mapping[str, str]) -> DecisionResult:
    return decide(DECIDE_FORM.parse(texts))


def best_of(texts: Mapping[str, str]) -> Assignment:
    best = decided(texts).answer.best
    assert best
    return best


@pytest.mark.parametrize("name", DECISION_PRESETS)
def test_every_preset_is_told_by_the_form_alone(name: str) -> None:
    app = opened(DECIDE, DECISION_PRESETS[name])
    d = decided(DECISION_PRESETS[name])
    assert told(app) == shown(text.answer(d))
    assert [stripped(error) for error in bodies(app, "np-error")] == [*filter(None, [shown(text.reasons(d))])]
    (chart,) = app.get("plotly_chart")
    go.Figure(json.loads(chart.proto.spec))
    said = stripped("\n".join(block.proto.body for block in app.get("html") if "np-table" in block.proto.body))
    assert not NO_NUMBER.search(said)


def test_an_empty_page_is_the_plan_on_its_own_cluster() -> None:
    app = opened(DECIDE, SMALL)
    d = decided(SMALL)
    (cell,) = d.matrix.cells.values()
    assert cell.answer
    assert (cell.accelerators, cell_here(d, linked_texts(app))) == (64, (0, 0))
    assert told(opened(COMPUTE, SMALL)) == shown(plan_text.headline(cell.answer))
    assert said_by(app, "decide.page.own_cluster")


def linked_texts(app: AppTest) -> dict[str, str]:
    fields = {name.partition("_")[2]: typed for name, typed in linked(app).items()}
    return dict(DECIDE_FORM.parse(fields).texts)


def test_a_cell_that_cannot_be_read_is_marked_and_the_others_answer() -> None:
    offers = [{"accelerator": "H900", "count": "12"}, {"accelerator": "H200", "count": "64"}, {"accelerator": "512 x"}]
    runs = [{}, {"name": "a", "after": "b"}, {"name": "b", "after": "a"}, {"name": "c", "tokens": "many"}]
    texts = {**SMALL, "offers": write_table(offers, OFFER_COLUMNS), "train": write_table(runs, RUN_COLUMNS)}
    app, d = opened(DECIDE, texts), decided(texts)
    assert next((problem.row, problem.column) for problem in d.offers.problems) == (0, "accelerator")
    assert {problem.row for problem in d.runs.problems} == {1, 2, 3}
    errors = [stripped(error) for error in bodies(app, "np-error")]
    assert errors == [
        shown(text.problem_text(problem)).replace("\u2060", "") for problem in (*d.offers.problems, *d.runs.problems)
    ]
    assert told(app) == shown(text.answer(d))
    assert len(d.matrix.cells) == 1
    assert linked_texts(app).items() >= {name: texts[name] for name in ("offers", "train")}.items()


def test_cells_are_the_plans_of_compute_budget_in_every_value() -> None:
    for cell in decided(TWO).matrix.cells.values():
        there = opened(COMPUTE, {**linked_texts(opened(DECIDE, TWO)), **cell.texts})
        assert cell.answer
        assert told(there) == shown(plan_text.headline(cell.answer))
        break


def test_the_plan_of_the_sidebar_is_the_run_that_says_nothing_else() -> None:
    assert [sidebar_row(rows) for rows in ([{}], [{"model": "8B"}, {"name": "x"}], [{"model": "8B"}, {}])] == [0, 1, 0]
    assert plan_cells(DECIDE_FORM.parse({"model": "Typed parameters", "n": "8B"}).texts)["model"] == "8B"
    (cell, *_) = decided(TWO).matrix.cells.values()
    assert not {DEADLINE.id, POWER_LIMIT.id} & sidebar_texts(cell).keys()


def test_a_link_of_four_offers_and_three_runs_is_short_and_opens_to_itself() -> None:
    runs = f"{TWO['train']}\n{write_table([{'name': 'long', 'seq': '65,536', 'after': '1'}], RUN_COLUMNS)}"
    texts = {**TWO, "train": runs}
    link = linked_texts(opened(DECIDE, texts))
    assert linked_texts(opened(DECIDE, link)) == link == dict(DECIDE_FORM.parse(texts).texts)
    packed = packed_texts(DECIDE_FORM.parse(texts).texts)
    assert len(f"https://napkin.example.org/{DECIDE.url_path}?v=5&{PACKED}={packed}") < 2000
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(DECIDE.path)
    app.query_params[PACKED] = packed
    app.run()
    assert told(app) == shown(text.answer(decided(texts)))
    assert linked_texts(app)["train"] == runs


def test_a_damaged_link_says_so_and_the_page_stands() -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(DECIDE.path)
    app.query_params[PACKED] = "1.nonsense"
    app.run()
    assert said_by(app, "decision.link")
    assert told(app)


def test_an_old_calendar_link_opens_with_its_runs_and_pools() -> None:
    old = {**SMALL, "runs": "2", "r2n": "second", "r2t": "1T", "r2a": "run 1", "pools": "burst: 128 H200, $2.60/h"}
    app = opened(DECIDE, old)
    d = decided(linked_texts(app))
    assert [run.name for run in d.runs.runs] == ["Run 1", "second"]
    assert [(offer.name, offer.count) for offer in d.offers.offers] == [("H100 SXM", 64), ("burst", 128)]
    assert told(app) == shown(text.answer(d))


def test_a_choice_is_recorded_undone_and_saved_with_the_decision(store: Store) -> None:
    app = opened(DECIDE, TWO)
    press(app, "y_choose0")
    app.text_area(key="y_because").set_value("it is cheapest").run()
    app.text_input(key="y_by").set_value("Ada").run()
    assert linked_texts(app)[CHOSEN.id] == best_of(TWO).key
    assert said_by(app, "decide.record")
    save(app, DECIDE, "Ours")
    (plan,) = store.find(kind="decision").plans
    assert plan.entry.texts.items() >= {CHOSEN.id: best_of(TWO).key, "because": "it is cheapest", "by": "Ada"}.items()
    assert plan.entry.results["days"] == best_of(TWO).ends.mid
    link = re.findall(rf"\b{PACKED}=([^&\"\\]+)", str([block.proto for block in app.get("bidi_component")]))
    assert set(link) == {plan.id}
    again = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(DECIDE.path)
    again.query_params[PACKED] = plan.id
    again.run()
    assert (told(again), said_by(again, "decide.record")) == (told(app), said_by(app, "decide.record"))
    press(app, "y_choose")
    assert not said_by(app, "decide.record")
    press(app, "plan:undo")
    assert said_by(app, "decide.record")
    listed = opened(SAVED, {"plan": plan.id})
    assert said_by(listed, "decide.record")
    (there,) = set(
        re.findall(rf'href="{DECIDE.url_path}\?([^"]+)"', "\n".join(b.proto.body for b in listed.get("html")))
    )
    assert dict(parse_qsl(html.unescape(there), keep_blank_values=True))["r_plan"] == plan.id


def test_files_hold_tables_matrix_and_record() -> None:
    name = "<b>bold</b> | $x$"
    runs = write_table([{"name": name}, {"name": "b", "tokens": "1T"}], RUN_COLUMNS)
    texts = {**SMALL, "train": runs, "because": "of us", "by": "Ada", "on": "2027-01-01"}
    texts |= {CHOSEN.id: best_of(texts).key}
    with downloads() as files:
        fold(opened(DECIDE, texts), "y_fold_take", open=True)
    page, marked, rows = (files[kind]().decode() for kind in ("html", "md", "csv"))
    assert name not in page
    assert html.escape(name, quote=False) in page
    assert page.count(" data-figure=") == 1
    for said in ("of us", "Ada", PACKED + "="):
        assert said in page
        assert said in marked
    heads, *cells = csv.reader(io.StringIO(rows))
    assert tuple(heads) == CSV_COLUMNS
    d = decided(texts)
    assert {cell[0] for cell in cells} == {name, "b"}
    assert float(dict(zip(heads, cells[0], strict=True))["days"]) == best_of(texts).placements[0].cell.days.mid
    assert len(tables.matrix_table(d).rows) == len(d.matrix.runs)


def test_a_log_moves_the_bar_of_its_run() -> None:
    app = opened(DECIDE, SMALL)
    before = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["x"]
    fold(app, "decide:log:fold", open=True)
    app.text_area(key="decide:log:text").set_value("days,tokens\n0,0\n1,4B\n2,8B\n3,12B").run()
    assert said_by(app, "decide.page.log_used")
    after = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["x"]
    assert (before, after) != (after, before)
    press(app, "y_log_remove")
    assert json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["x"] == before


def test_pack_names_every_field_that_is_not_as_it_begins() -> None:
    reading = DECIDE_FORM.parse(TWO)
    again = DECIDE_FORM.parse(unpack(packed_texts(reading.texts)))
    assert decide(again).answer.best
    assert best_of(again.texts).key == best_of(TWO).key
