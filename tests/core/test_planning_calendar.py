"""Runs on one fleet: laws of every calendar, dates against a plain reference, and what cannot be placed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.dates import parse_day
from core.formula import derivation
from core.limits import limit
from core.models.configs.custom import NAME, read_model
from core.planning.calendar.dates import Closed, between, moment, parse_closed, pauses_from, quarter, when
from core.planning.calendar.form import CALENDAR_FIELDS, RUN_FIELDS, calendar_request, described, texts_of
from core.planning.calendar.presets import PRESETS
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.cost.bill import Prices, costs
from core.planning.cost.form import MONEY_FIELDS
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_form, plan_from
from core.planning.plan import Plan
from core.units import QuantityError
from core.views.calendar import text as calendar_text
from core.views.calendar.charts import calendar
from core.views.common.markup import rich
from core.views.common.palette import LIGHT
from core.views.cost.text import fleet_text
from core.views.plan.text_memory import gib
from tests.core.plan_cases import in_use
from tests.core.sentence_facts import says
from tests.every import every

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
START = date(2027, 1, 15)
BASE = plan_from({"n": "1B", "tokens": "20B", "count": "64", "seq": "4,096"})
SIDES = ("low", "middle", "high")

# ------------------------------------------------------------------------------------------ laws of every calendar


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    days = st.integers(0, 60).map(lambda n: START + timedelta(days=n))
    closed = [Closed(first, first + timedelta(days=draw(st.integers(0, 9)))) for first in draw(st.lists(days))]
    return Fleet("H100 SXM", 256, draw(st.sampled_from((0, 8, 64))), tuple(closed), draw(st.sampled_from((0, 8, 48.5))))


@st.composite
def many(draw: st.DrawFn) -> list[Run]:
    count = draw(st.integers(1, limit("calendar_runs")))
    order = draw(st.permutations(range(count)))  # who waits for whom goes by this order, so never in a circle
    runs: list[Run] = [Run("", BASE)] * count
    for place, i in enumerate(order):
        plan = replace(
            BASE,
            tokens=draw(st.sampled_from((1e9, 2e10, 3e11))),
            accelerators=draw(st.sampled_from((8.0, 64.0, 100.0, 192.0))),
        )
        after = draw(st.sampled_from((None, *order[:place])))
        earliest = draw(st.sampled_from((None, START + timedelta(days=11))))
        runs[i] = Run(f"run {i}", plan, after, earliest)
    return runs


@given(fleets(), many())
@settings(max_examples=60, deadline=None)
def test_no_run_breaks_a_law(fleet: Fleet, runs: list[Run]) -> None:
    """It takes the days of its plan's answer, waits as told, rests in maintenance, and takes what is free."""
    s = schedule(fleet, runs, START)
    for run in s.runs:
        days = run.answer.range_of("days")
        assert run.answer is estimate(run.run.plan)
        for side, work in zip(SIDES, (days.low, days.mid, days.high), strict=True):
            span = getattr(run, side)
            assert span.end - span.begin - span.paused == pytest.approx(work, abs=1e-9)
            assert all(span.begin >= getattr(s.runs[j], side).end for j in run.waits)
            assert not any(a <= span.begin < b for a, b in s.times.times)
            assert not run.run.earliest or s.day(span.begin) >= run.run.earliest
        assert run.run.after is None or run.run.after in run.waits or run.queued
    for side in SIDES:
        for here in (getattr(run, side) for run in s.runs):
            busy = [
                run.accelerators for run in s.runs if getattr(run, side).begin <= here.begin < getattr(run, side).end
            ]
            assert sum(busy) <= fleet.usable
    moments, counts = in_use(s)
    assert max(counts) <= fleet.usable
    assert counts[-1] == 0
    steps = sum(count * (b - a) for a, b, count in zip(moments, moments[1:], counts, strict=False))
    assert 24 * steps == pytest.approx(s.used_hours.mid, rel=1e-9)
    assert s.held_hours.mid >= s.used_hours.mid * (1 - 1e-12)


def later(before: Schedule, after: Schedule) -> bool:
    """Whether no run of ``after`` begins or ends sooner."""
    pairs = zip(before.runs, after.runs, strict=True)
    return all(
        getattr(b, side).begin >= getattr(a, side).begin - 1e-9 and getattr(b, side).end >= getattr(a, side).end - 1e-9
        for a, b in pairs
        for side in SIDES
    )


@given(fleets(), many(), st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_that_takes_time_brings_anything_forward(fleet: Fleet, runs: list[Run], data: st.DataObject) -> None:
    """More tokens, a wait, a later day or more maintenance: no run of the calendar ends sooner for it."""
    s = schedule(fleet, runs, START)
    i = data.draw(st.integers(0, len(runs) - 1))
    longer = list(runs)
    longer[i] = replace(runs[i], plan=replace(runs[i].plan, tokens=runs[i].plan.tokens * 1.7))
    assert later(s, schedule(fleet, longer, START))
    longer[i] = replace(runs[i], earliest=START + timedelta(days=40))
    assert later(s, schedule(fleet, longer, START))
    first = START + timedelta(days=data.draw(st.integers(0, 90)))
    closed = (*fleet.closed, Closed(first, first + timedelta(days=data.draw(st.integers(0, 5)))))
    assert later(s, schedule(replace(fleet, closed=closed), runs, START))
    assert later(s, schedule(replace(fleet, monthly_hours=fleet.monthly_hours + 24), runs, START))


def test_a_delay_does_not_reorder_a_queue() -> None:
    """Where whoever ends first made room, a longer first run would let the last one end sooner."""
    plans = [replace(BASE, accelerators=n, tokens=t) for n, t in ((32.0, 1e9), (32.0, 4e9), (64.0, 1e9), (32.0, 8e9))]
    runs = [Run(str(i), plan) for i, plan in enumerate(plans)]
    s = schedule(Fleet("H100 SXM", 64), runs, START)
    assert [run.queued for run in s.runs] == [(), (), (0, 1), (2,)]
    longer = [replace(runs[0], plan=replace(plans[0], tokens=9e9)), *runs[1:]]
    assert later(s, schedule(Fleet("H100 SXM", 64), longer, START))


# ------------------------------------------------------------------------------------------ dates


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), max_size=6), st.integers(0, 300), st.integers(0, 300)
)
def test_pauses_are_those_of_a_clock_that_goes_hour_by_hour(
    windows: list[tuple[int, int]], begin: int, work: int
) -> None:
    closed = {hour for first, hours in windows for hour in range(24 * first, 24 * (first + -(-hours // 24)))}
    times = pauses_from(
        START,
        tuple(
            Closed(START + timedelta(days=first), START + timedelta(days=first + -(-hours // 24) - 1))
            for first, hours in windows
        ),
        0,
        36525,
    )
    at = 24 * begin
    while at in closed:
        at += 1
    assert times.open(begin) == pytest.approx(at / 24)
    left = work
    while left:
        left -= at not in closed
        at += 1
    assert times.after(times.open(begin), work / 24) == pytest.approx(at / 24)


def test_monthly_hours_are_those_of_first_mondays() -> None:
    times = pauses_from(date(2027, 1, 6), (), 8, 365).times
    days = [moment(date(2027, 1, 6), a) for a, _ in times]
    assert len(days) == 12  # from February on: January's first Monday, the 4th, is over
    assert all((day.weekday(), day.day <= 7, day.hour) == (0, True, 0) for day in days)
    assert all(b - a == pytest.approx(8 / 24) for a, b in times)
    assert days[0] == datetime(2027, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2027-02-30", "calendar"),
        ("2027-13-01", "calendar"),
        ("15.1.27", "short"),
        ("-2027-01-01", "other"),
        ("1999-12-31", "range"),
        ("٢٠٢٧-01-15", "other"),
        ("", "other"),
    ],
)
def test_what_is_no_day_is_refused(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_day(text)
    assert refused.value.args[0].id == f"date.error.{message}"


def test_windows_are_read_as_they_are_typed() -> None:
    closed = parse_closed("2027-07-05 to 2027-07-09, 2027-12-24; 2028-02-29–2028-03-01")
    assert [(item.last - item.first).days for item in closed] == [4, 0, 1]
    assert parse_closed(" ") == ()
    for wrong in ("2027-07-09 to 2027-07-05", "2027-07-01 to 2027-07-02 to 2027-07-03", "summer", "2027-01-01," * 41):
        with pytest.raises(QuantityError):
            parse_closed(wrong)


def test_days_are_those_of_the_calendar() -> None:
    assert quarter(date(2027, 3, 31)) == "Q1 2027"
    assert quarter(date(2027, 10, 1)) == "Q4 2027"
    assert between(date(2027, 9, 12), date(2027, 11, 20)) == "12 Sep – 20 Nov 2027"
    assert between(date(2027, 12, 31), date(2028, 1, 1)) == "31 Dec 2027 – 1 Jan 2028"
    assert when(date(2027, 9, 12), date(2027, 11, 20)) == "between 12 Sep and 20 Nov 2027"
    assert when(date(2027, 12, 31), date(2028, 1, 1)) == "between 31 Dec 2027 and 1 Jan 2028"
    assert when(date(2027, 4, 17), date(2027, 4, 17)) == "on 17 Apr 2027"


@pytest.mark.parametrize(("due", "days"), [("2027-04-15", -15), ("2027-04-01", -1), ("2027-03-29", 2)])
def test_the_deadline_is_the_end_of_its_day(due: str, days: int) -> None:
    s = replaced(PRESETS["Llama 3 405B: 8k, then 128k"], due=due).schedule()
    assert str(s.day(s.ends.mid)) == "2027-04-01"
    late = s.late(s.ends.mid)
    assert days <= late < days + 1
    text = calendar_text.sentence(s, costs(s, Prices())[0])
    assert ("after the deadline" in text, "before the deadline" in text) == (late > 0, late < 0)
    assert bool(calendar_text.missed(s)) == (late > 0)


# ------------------------------------------------------------------------------------------ what cannot be placed


def replaced(texts: dict[str, str] | object, **others: str):
    reading = FORM.parse({**texts, **others})  # type: ignore[dict-item]
    assert not reading.problems, reading.problems
    return calendar_request(reading)


ONE = {"n": "1B", "tokens": "20B", "count": "64"}


@every(
    ("texts", "text"),
    [
        ({"due": "2026-12-01"}, "before the start"),
        ({"runs": "2", "r1a": "run 2", "r2a": "run 1"}, "run 1 after run 2 after run 1"),
        ({"r1a": "run 1"}, "run 1 after run 1"),
        ({"runs": "3", "r2a": "run 3", "r3a": "run 2"}, "run 2 after run 3 after run 2"),
        ({"runs": "2", "r2a": "run 5"}, "only 2 runs"),
        ({"r1c": "65"}, "the fleet has 64"),
        ({"r1c": "60", "spare": "1"}, "the fleet has 56 after 8 spares"),
        ({"spare": "8"}, "leave none"),
        ({"tokens": "1e18"}, "more than 100 years"),
        ({"n": "1e16", "tokens": "1e18", "count": "1"}, "does not fit"),
        ({"closed": "2027-01-01 to 2199-12-31"}, "more than 100 years"),
    ],
)
def test_what_cannot_be_placed_is_said(texts: dict[str, str], text: str) -> None:
    request = replaced(ONE, **texts)
    with pytest.raises(BudgetError, match=text):
        request.schedule()


def test_a_plan_without_an_answer_names_its_run() -> None:
    plan = plan_from({"rate1k": "1 per day", "mfu": "40%", "pace": "steady steps", "back": "1e6 s"})
    with pytest.raises(BudgetError) as problem:
        estimate(plan)
    with pytest.raises(BudgetError, match="Run 2, “second”") as named:
        schedule(Fleet("H100 SXM", 2048), [Run("first", BASE), Run("second", plan)], START)
    assert (named.value.field, str(problem.value) in str(named.value)) == (problem.value.field, True)


@every("field", ["r1t", "r1s", "r1c", "r1m", "spare", "mhours"])
@every("text", ["-5", "x", "1e999", "0.5"])
def test_bad_amounts_are_refused_by_their_field(field: str, text: str) -> None:
    problems = FORM.parse({field: text}).problems
    if (field, text) != ("mhours", "0.5"):
        assert [problem.field for problem in problems] == [field]


def test_a_model_is_a_name_or_a_number() -> None:
    runs = replaced({**ONE, "runs": "3", "r1m": "llama 3.1 8b", "r2m": "8B"}).runs
    assert [run.plan.model for run in runs] == ["Llama 3.1 8B", "Typed parameters", "Typed parameters"]
    assert [run.plan.parameters for run in runs][1:] == [8e9, 1e9]
    (problem,) = FORM.parse({"r1m": "Llama 3.1 9B"}).problems
    assert "Llama 3.1 8B" in problem.message


def test_a_run_has_a_shape_of_its_own() -> None:
    """As text, or as a config.json; the others keep theirs, and a link to one run carries it."""
    own = "layers=64 hidden=5120 heads=40 kv_heads=8 head_dim=128 ffn=25600 vocab=151936 glu=yes tied_head=no"
    config = (
        '{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, '
        '"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu", '
        '"tie_word_embeddings": false, "max_position_embeddings": 8192}'
    )
    reading = FORM.parse({**ONE, "runs": "3", "r1m": own, "r2m": config})
    assert not reading.problems
    first, second, third = calendar_request(reading).runs
    assert first.plan.catalog_model
    assert second.plan.catalog_model
    assert (first.plan.catalog_model, second.plan.catalog_model.parameters) == (read_model(own), 8_030_261_248)
    assert third.plan.parameters == 1e9
    assert described(first).startswith(f"{NAME} ({first.plan.catalog_model.sized}), ")
    assert plan_from(texts_of(reading, first)).catalog_model == first.plan.catalog_model
    for text in (own.replace("64", "0"), config.replace("llama", "unheard of"), '{"model_type": 1', "a=b"):
        (problem,) = FORM.parse({"r1m": text}).problems
        assert problem.field == "r1m"


def test_marks_in_a_name_are_no_markup() -> None:
    request = replaced({**ONE, "r1n": "**x** `=1+1`\n" + "W" * 40})
    assert request.runs[0].name.startswith("**x** `=1+1` W")
    assert len(request.runs[0].name) == limit("run_name")
    assert not re.search("<b>|<code", rich(calendar_text.rows(request.schedule())[0][0]))


# ------------------------------------------------------------------------------------------ one plan, and presets


def test_an_empty_run_is_the_plan_itself() -> None:
    """So the first calendar is Compute budget's answer from its start on, to the last digit."""
    request = replaced(ONE)
    (run,) = request.schedule().runs
    plan = plan_from(ONE)
    assert run.answer.range_of("days") == estimate(plan).range_of("days")
    assert run.middle.end == estimate(plan).middle.days


@pytest.mark.parametrize("name", PRESETS)
def test_every_story_is_told(name: str) -> None:
    reading = FORM.parse(PRESETS[name])
    assert not reading.problems
    s = calendar_request(reading).schedule()
    text = calendar_text.sentence(s, costs(s, Prices())[0])
    assert str(s.day(s.ends.mid).year) in text
    assert {len(row) for row in (*calendar_text.rows(s), *calendar_text.remarks(s))} == {len(calendar_text.TABLE)}
    assert calendar_text.detail(s, costs(s, Prices())[0], fleet_text(s, Prices())).count("**") % 2 == 0
    go.Figure(calendar(s, LIGHT))
    assert len(derivation(step for run in s.runs for step in run.explain())) == 3
    for run in s.runs:
        plan: Plan = plan_from(texts_of(reading, run.run))
        assert estimate(plan).middle.days == pytest.approx(run.answer.middle.days, rel=1e-12)


def test_deepseek_took_hours_before_the_fast_end_of_the_range() -> None:
    """Table 1 of arXiv 2412.19437: 2,664K H800 hours of pre-training, and 119K to extend the context; on software of
    its own, which made them fewer than nine runs in ten take."""
    used = replaced(PRESETS["DeepSeek-V3: 4k, 32k, 128k"]).schedule().used_hours
    assert 0.75 * used.low < 2.664e6 + 0.119e6 < used.mid


def test_llama_pauses_for_its_two_closed_days() -> None:
    s = replaced(PRESETS["Llama 3 405B: 8k, then 128k"]).schedule()
    assert [run.middle.paused for run in s.runs] == pytest.approx([2, 0])


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_that_an_accelerator_does_not_hold_is_said(name: str) -> None:
    """Every stage of a preset that extends the context, by its own length."""
    s = calendar_request(FORM.parse(PRESETS[name])).schedule()
    lost, saved = calendar_text.unfitting(s)
    over = {run.run.name: run.answer.memory for run in s.runs if run.answer.memory.fits == "over"}
    assert not lost  # on the same accelerators another layout holds each of them
    assert [line.split("”")[0].strip("“") for line in saved] == list(over)
    for line, (run, held_) in zip(saved, over.items(), strict=True):
        says(line, run, "does not fit", gib(held_.total), gib(held_.usable), "It would with")


@pytest.mark.parametrize(
    ("changed", "text"),
    [({"n": "10T", "mfu": "40%"}, "The model does not fit"), ({"tp": "7", "mfu": "40%"}, "Invalid layout")],
)
def test_a_run_that_no_layout_of_its_accelerators_holds_is_said(changed: dict[str, str], text: str) -> None:
    lost, saved = calendar_text.unfitting(replaced({**ONE, **changed}).schedule())
    assert not saved
    assert len(lost) == 1
    says(lost[0], "Run 1", text)


def test_the_name_of_a_run_that_does_not_fit_is_no_markup() -> None:
    (line,), _ = calendar_text.unfitting(
        replaced({**ONE, "n": "10T", "mfu": "40%", "r1n": "a **bold** run"}).schedule()
    )
    assert "<b>" not in rich(line).partition("”")[0]


def test_a_run_has_a_field_for_each_of_its_parts() -> None:
    ids = [field.id for fields in RUN_FIELDS.values() for field in fields.values()]
    assert len(set(ids)) == len(ids) == 8 * limit("calendar_runs")
