"""A running job's log: read alike however it is written, and held against the range of its plan."""

from __future__ import annotations

import contextlib
import math
import random

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.number_text import QuantityError
from core.planning.actuals.log import parse_log
from core.planning.actuals.logged_run import LoggedRun
from core.planning.actuals.progress import JobProgress, own_run_text, progress
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.measured import parse_own_runs
from core.planning.plan import FINDS, Plan
from core.planning.presets import PRESETS
from core.views.actuals import text
from core.views.actuals.charts import drawn_rows, tokens_over_days
from core.views.common.palette import LIGHT
from tests.core.plan_walk import wrong
from tests.every import every

PLAN = estimate(Plan())
BEGAN = 1_767_571_200


def job(rows: list[tuple[float, float]], head: str = "days,tokens") -> LoggedRun:
    return parse_log("\n".join([head, *(f"{day!r},{tokens!r}" for day, tokens in rows)]))


curves = st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), min_size=2, max_size=12).map(
    lambda steps: [(float(day), tokens * 1e9) for day, tokens in np.cumsum([(0, 0), *steps], axis=0).tolist()]
)
"""Days and tokens that rise from 0."""

UNITS = {
    "hours,consumed_tokens (B)": (24.0, 1e-9),
    "Relative Time (Process),run-7 - train/tokens": (86400.0, 1.0),
    "elapsed_min,Mtokens": (1440.0, 1e-6),
    "days,tokens/1e9": (1.0, 1e-9),
}


@settings(max_examples=25)
@given(curves, st.randoms(use_true_random=False), st.sampled_from(sorted(UNITS)))
def test_order_units_and_moments_read_the_same(
    rows: list[tuple[float, float]], chance: random.Random, head: str
) -> None:
    plain = job(rows)
    mixed = rows[:]
    chance.shuffle(mixed)
    days, tokens = UNITS[head]
    for other in (
        job(mixed),
        job([(day * days, count * tokens) for day, count in mixed], head),
        job([(BEGAN + 86400 * day, count) for day, count in mixed], "_timestamp,tokens_seen"),
        job([(1000 * (BEGAN + 86400 * day), count) for day, count in mixed], "wall time,consumed_tokens"),
        parse_log("tokens;date\n" + "\n".join(f"{count / 1e9}B;{_moment(day)}" for day, count in mixed)),
    ):
        np.testing.assert_allclose(other.seconds, plain.seconds, atol=1e-3)
        np.testing.assert_allclose(other.amounts, plain.amounts)


def _moment(day: float) -> str:
    return str(np.datetime64(int(BEGAN + 86400 * day), "s"))


@settings(max_examples=25)
@given(curves, st.data())
def test_rows_that_are_missing_change_no_pace_and_no_end(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    """At one pace the ends are the same whichever rows are logged, and no silence is a gap."""
    level = [(day, day * 60e9) for day, _ in rows]
    some = [level[0], *(row for row in level[1:-1] if data.draw(st.booleans())), level[-1]]
    whole, few = progress(job(level), PLAN), progress(job(some), PLAN)
    assert few.ends == pytest.approx(whole.ends)
    assert few.steady == pytest.approx(60e9)
    assert whole.gaps == few.gaps == ()


@settings(max_examples=25)
@given(curves, st.floats(1.0, 5.0))
def test_more_tokens_never_end_later(rows: list[tuple[float, float]], more: float) -> None:
    """More by the last row, or more all along."""
    ends = progress(job(rows), PLAN).ends
    last = [*rows[:-1], (rows[-1][0], rows[-1][1] * more)]
    for better in (last, [(day, tokens * more) for day, tokens in rows]):
        assert all(a <= b * (1 + 1e-9) for a, b in zip(progress(job(better), PLAN).ends, ends, strict=True))


@every("find", FINDS)
def test_the_band_ends_where_the_answer_does(find: str) -> None:
    a = estimate(plan_from({"find": find, "within": "200 days"}))
    p = progress(job([(0.0, 0.0), (10.0, 1e11)]), a)
    figure = tokens_over_days(p, LIGHT)
    (band,) = (shape["path"] for shape in figure["layout"]["shapes"] if shape["type"] == "path")
    low, high = (float(part.split(",")[0]) for part in band.split(" L ")[1:])
    assert p.goal == pytest.approx(a.middle.tokens)
    assert (low, high) == pytest.approx((p.planned.low, p.planned.high), rel=1e-6)
    if find == "time":
        assert p.planned == a.range_of("days")
    assert p.planned.contains(a.middle.days * (1 + 1e-9)) or p.planned.mid == pytest.approx(a.middle.days, rel=1e-3)
    go.Figure(figure)


def test_gaps_restarts_and_repeated_work_are_counted() -> None:
    rows = [(day / 24, day / 24 * 60e9) for day in range(240)]
    after = [(13.0 + day / 24, 9.5 * 60e9 + day / 24 * 60e9) for day in range(240)]
    p = progress(job(rows + after), PLAN)
    assert p.steady == pytest.approx(60e9, rel=1e-6)
    assert p.restarts == 1
    assert p.repeated == pytest.approx((239 / 24 - 9.5) * 60e9)
    (gap,) = p.gaps
    assert gap.days == pytest.approx(13 - 239 / 24)
    assert p.gap_days + p.repeated / p.steady == pytest.approx(p.day - p.trained / p.steady)


def test_processes_whose_time_begins_anew_follow_each_other() -> None:
    log = job([(float(day), day * 1e9) for day in range(10)] + [(float(day), (9 + day) * 1e9) for day in range(10)])
    assert log.resets == 1
    assert log.seconds[-1] == 18 * 86400
    assert [said.values["times"] for said in text.read(progress(log, PLAN)) if said.id == "actuals.read.resets"] == [1]


def test_a_file_of_steps_or_samples_counts_by_the_plan() -> None:
    tokens = progress(parse_log("hours,tokens\n0,0\n24,15998976000"), PLAN).trained
    assert progress(parse_log("hours,step\n0,0\n24,1000"), PLAN).trained == tokens
    assert progress(parse_log("hours,consumed_samples,step\n0,0,0\n24,1953000,7"), PLAN).trained == tokens
    assert parse_log("Wall time,Step,Value\n1767571200,1,2.5\n1767657600,2,2.1").measure == "steps"
    assert parse_log("Wall time,Step,Value\n1767571200,1,4e6\n1767657600,2,9e6").columns[1] == "Value"


def test_what_is_left_out_is_said_and_the_rest_is_kept() -> None:
    p = progress(
        parse_log(
            "time (d),tokens,tokens/s,eval tokens\n0,0,5,9\n1,,5,9\n2,120B,5,9\nsoon,1,5,9\n3,-4,5,9\n4,240B,5,9"
        ),
        PLAN,
    )
    assert (p.day, p.trained) == (4.0, 240e9)
    found = {said.id.rpartition(".")[2]: said.values for said in text.read(p)}
    assert (found["csv"]["rows"], found["csv"]["all"], found["csv"]["what"]) == (3, 6, "tokens")
    assert (found["missing"]["rows"], found["unreadable"]["rows"]) == (1, 2)
    assert found["unreadable"]["bad"].values["line"] == 5


@every(
    "log, error, line",
    [
        ("", "empty", 0),
        ("days,loss\n0,1\n1,2", "no_count", 0),
        ("step,tokens\n0,1\n1,2", "no_time", 0),
        ("days,tokens\n0,1", "no_rows", 0),
        ("days,tokens\n0,5\n1,5", "no_rows", 0),
        ("1,2\n3,4", "no_time", 0),
        ("days,tokens\n" + "1,2\n" * 50_001, "rows", 0),
        ("x" * ((1 << 20) + 1), "long", 0),
        ("days,tokens" + 1_000_000 * ",", "wide", 0),
        ('days,tokens\n"' + 20 * ("1" * 10_000 + "\n"), "csv", 0),
        ("time,tokens\n1e309,1\n2,3", "bad_rows", 2),
        ("time,tokens\n-inf,1\n2,3", "bad_rows", 2),
        ("time,tokens\nnan,1\n2,3", "no_rows", 0),
        ("time,tokens\n1,1e309\n2,3", "bad_rows", 2),
        ("time,tokens\n-1,1\n2,3", "bad_rows", 2),
        ("time,tokens\n1,1\n2,1e40", "bad_rows", 3),
        ("time,tokens\n1,1\n1e40,2", "bad_rows", 3),
        ("date,tokens\n2026-01-02,1\n2026-01-01,3", "no_rows", 0),
    ],
    ids=lambda row: str(row)[:40],
)
def test_a_log_that_cannot_be_used_is_refused_with_the_reason(log: str, error: str, line: int) -> None:
    with pytest.raises(QuantityError) as raised:
        parse_log(log)
    (said,) = raised.value.args
    assert said.id == f"actuals.error.{error}"
    assert not line or said.values["bad"].values["line"] == line


@settings(max_examples=25)
@given(st.text(max_size=200), st.sampled_from(["days,tokens\n", "timestamp;step\n", ""]))
def test_no_text_breaks_the_reader(log: str, head: str) -> None:
    with contextlib.suppress(QuantityError):
        progress(parse_log(head + log), PLAN)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", PRESETS)
def test_the_example_of_every_preset_is_told_and_drawn(name: str) -> None:
    a = estimate(plan_from(PRESETS[name]))
    p = progress(parse_log(text.example(a)), a)
    said = [*text.verdict(p), text.own(p), text.chart_alt(p), *text.read(p), *sum(text.changed(p), ())]
    assert [line for line in said if wrong(line)] == []
    assert 0.44 < p.trained / p.goal < 0.46
    assert len(text.example(a)) <= 900
    go.Figure(tokens_over_days(p, LIGHT))


def at_day(day: float, share: float, **texts: str) -> JobProgress:
    a = estimate(plan_from(texts))
    return progress(job([(0.0, 0.0), (day, share * a.middle.tokens)]), a)


def test_the_verdict_names_side_end_and_deadline() -> None:
    days = PLAN.middle.days
    still = progress(job([(0.0, 0.0), (10.0, 1e12), (20.0, 1e12)]), estimate(plan_from({"until": "400 days"})))
    assert math.isinf(still.ends[1])
    for p, ids in (
        (at_day(0.5 * days, 0.55), "progress ahead ends"),
        (at_day(0.5 * days, 0.2, until="200 days"), "progress slower ends after_deadline"),
        (at_day(0.2 * days, 0.6, until="200 days"), "progress faster ends before_deadline"),
        (at_day(90.0, 1.0), "all faster ended"),
        (still, "progress behind stands_still around_deadline_never"),
    ):
        assert [said.id.rpartition(".")[2] for said in text.verdict(p)] == ids.split()
    assert text.verdict(at_day(0.5 * days, 0.55))[0].values["share"] == 0.55
    go.Figure(tokens_over_days(still, LIGHT))


def test_a_job_far_along_counts_as_a_run_of_ones_own_and_narrows_the_range() -> None:
    p = at_day(0.45 * PLAN.middle.days, 0.4)
    assert p.own is not None
    line = text.with_own_run(p, "")
    assert parse_own_runs(line)[0].tokens == pytest.approx(p.trained, rel=1e-5)
    assert text.with_own_run(p, line) == line == own_run_text(p.own)
    days, told = PLAN.range_of("days"), estimate(plan_from({"ownruns": line})).range_of("days")
    assert told.high / told.low < days.high / days.low
    assert at_day(5.0, 0.02).own is None
    assert text.own(at_day(5.0, 0.9)).id == "actuals.custom.invalid"


def test_a_picture_keeps_the_ends_of_gaps() -> None:
    days = np.concatenate([np.linspace(0, 10, 20_000), np.linspace(12, 40, 20_000)])
    at = drawn_rows(days)
    assert len(at) <= 601
    assert {0, 19_999, 20_000, 39_999} <= set(at.tolist())
