"""The limits of a plan: kept or missed by how much, how surely, and the nearest plan that keeps them."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.budget.equations import Interval
from core.number_text import QuantityError
from core.planning.comparison.comparison import compare_plan
from core.planning.comparison.entry import entry_of
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import plan_from
from core.planning.form.whole_run import BUDGET, DEADLINE, POWER_LIMIT
from core.planning.layout import search_request
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import CERTAINTIES, PlanLimits
from core.planning.plan_limits import (
    SURE,
    Check,
    all_checks,
    all_met,
    changed_to_keep,
    checks,
    limit_report,
    surer_of_deadline,
)
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import Sweep, SweptAxis, recommend, sweep_plan, sweep_within
from core.search.fastest import searched
from core.search.request import SearchResult
from core.views.comparison import text as comparison_text
from core.views.plan import text_limits, text_memory
from core.views.report.rows import plan_rows
from core.views.sweep import text as sweep_text
from tests.every import every

MEETING = {"gpu": "H200 SXM", "count": "1,536", "until": "120 days", "spend": "$12M", "mw": "2 MW"}


def of(**texts: str) -> dict[str, Check]:
    a = estimate(plan_from(texts))
    return {check.id: check for check in checks(a, a.memory)}


def test_each_limit_is_held_against_what_the_plan_comes_to() -> None:
    a, found = estimate(plan_from(MEETING)), of(**MEETING)
    assert found["deadline"].over == pytest.approx(a.middle.days - 120)
    assert found["money"].over == pytest.approx(a.dollars.mid - 12e6)
    assert found["power"].over == pytest.approx(192 * 10_200 * 1.1 - 2e6)
    assert found["memory"].over == pytest.approx(a.memory.total - 0.92 * 143_771 * 2**20)
    assert [check.met for check in found.values()] == [False, False, False, True]
    assert set(of()) == {"memory"}


def line_of(a: PlanEstimate) -> str:
    return text_limits.limits_line(a, limit_report(a))


def amounts_over(texts: dict[str, str]) -> dict[str, str]:
    """By how much a plan misses or meets its deadline at P50, as each page, table, and export writes it."""
    entry = entry_of("Ours", texts)
    compared, a = compare_plan(entry), estimate(plan_from(texts))
    (line,) = (line for line in plan_rows(a) if line.key == "limit_deadline")
    (_, cells) = comparison_text.limit_rows([compared])[0]
    return {
        "line": line_of(a),
        "table of a report": line.note,
        "compare": cells[0][0],
    }


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(20))
def test_every_page_misses_or_meets_one_deadline_by_one_amount(seed: int) -> None:
    """Deadlines of hours, days, and parts of a day, around the days that the plan takes."""
    draw = random.Random(seed)
    for _ in range(10):
        texts = {
            "n": f"{10 ** draw.uniform(8, 10.5):.0f}",
            "tokens": f"{10 ** draw.uniform(10, 12):.0f}",
            "count": "64",
        }
        days = estimate(plan_from(texts)).middle.days
        until = f"{float(f'{days * draw.choice([0.1, 0.5, 0.97, 1.02, 2]):.3g}'):g} days"
        a = estimate(plan_from({**texts, "until": until}))
        (check,) = (check for check in text_limits.limit_checks(a) if check.id == "deadline")
        by = text_limits.difference(check)
        pages = amounts_over({**texts, "until": until})
        assert [page for page, said in pages.items() if said and f" {by}" not in said.replace("*", " ")] == [], pages


@pytest.mark.parametrize(
    "asked", [{"count": "1,024", "until": "280 days"}, {"find": "accelerators", "within": "90 days"}]
)
def test_a_deadline_that_may_well_be_missed_says_how_many_are_sure_of_it(asked: dict[str, str]) -> None:
    texts = {"until": "90 days", **asked}
    a, (deadline, _) = estimate(plan_from(texts)), of(**texts).values()
    assert deadline.met
    found = surer_of_deadline(a, deadline)
    assert found
    now, sure = found
    assert now.count == a.count
    again = {"until": texts["until"], "sure": SURE}
    assert of(**again, count=str(sure.count))["deadline"].met
    assert not of(**again, count=str(sure.count - 16))["deadline"].met
    (way,) = limit_report(a).ways
    assert (way.kind, way.changed.count if way.changed else 0) == ("surer", sure.count)


@every("more", [{}, {"price": "3", "spend": "$3.5M"}])
def test_a_number_that_is_surer_of_the_deadline_misses_a_power_limit_and_does_not_keep_it_less_surely(
    more: dict[str, str],
) -> None:
    texts = {"gpu": "MI355X", "count": "512", "model": "Llama 3 70B", "tokens": "4.5T", "until": "90 days", **more}
    a = estimate(plan_from({**texts, "mw": "1.2 MW"}))
    (way,) = [way for way in limit_report(a).ways if way.kind == "surer"]
    assert way.changed
    assert of(**{**texts, "count": str(way.changed.count)}, mw="1.2 MW")["power"].met is False
    assert "power" in {check.id for check in way.misses}
    assert "power" not in {check.id for check in way.risks}


def test_no_chance_is_given_for_limits_of_which_one_is_certainly_missed_or_unknown() -> None:
    """Power, memory and the host's memory do not depend on how a run goes."""
    texts = {"until": "330 days", "spend": "$24M"}
    for more, holds in (({}, True), ({"mw": "100 MW"}, True), ({"mw": "1 kW"}, False), ({"ram": "1 GiB"}, True)):
        a = estimate(plan_from({**texts, **more}))
        every_check = checks(a, a.memory)
        chances = [check.probability for check in every_check if check.id in ("deadline", "money")]
        assert all(math.isnan(check.probability) for check in every_check if check.id not in ("deadline", "money"))
        assert text_limits.together(every_check) == pytest.approx(min(chances) if holds else math.nan, nan_ok=True)
        assert text_limits.verdict(every_check).id.endswith("_chance") == holds
    unknown = of(gpu="MI355X", until="330 days", spend="$24M")
    assert math.isnan(text_limits.together(list(unknown.values())))


def test_what_is_sure_enough_or_missed_names_no_surer_number() -> None:
    for texts in ({"until": "2 years"}, {"until": "90 days"}, {"spend": "$23M"}):
        a = estimate(plan_from(texts))
        assert not any(surer_of_deadline(a, check) for check in checks(a, a.memory))
        assert "surer" not in {way.kind for way in limit_report(a).ways}


def test_the_memory_of_a_plan_without_a_layout_is_unknown() -> None:
    texts = {"count": "512", "lay": "own", "tp": "7", "mfu": "40%", "until": "9 years"}
    plan = compare_plan(entry_of("", texts))
    assert plan.layout_problem
    assert all_met(plan.limits) is None
    assert comparison_text.answer([plan], 0)[0].id == "comparison.limits.unknown"
    assert all_met(text_limits.limit_checks(estimate(plan_from(texts)))) is None


def test_a_surer_limit_is_held_against_more_of_the_range() -> None:
    days = estimate(plan_from({})).range_of("days")
    values = [of(until="300 days", sure=sure)["deadline"].value for sure in CERTAINTIES]
    assert values[0] == days.mid
    assert values == sorted(values)
    assert values[-1] == pytest.approx(days.high)
    assert of(until=f"{days.high} days")["deadline"].probability == pytest.approx(0.9)
    assert of(until=f"{days.low} days")["deadline"].probability == pytest.approx(0.1)
    assert of(until=f"{days.mid} days")["deadline"].probability == pytest.approx(0.5)


@given(low=st.floats(0.01, 1), high=st.floats(1, 100), level=st.floats(0.01, 0.99))
def test_a_quantile_is_the_inverse_of_its_probability(low: float, high: float, level: float) -> None:
    over = Interval(low * 7, 7, high * 7)
    value = over.quantile(level)
    end = over.high if level > 0.5 else over.low
    if abs(math.log(end / 7)) > 1e-3:
        assert over.below(value) == pytest.approx(level, abs=1e-6)
    assert over.quantile(0.9) == pytest.approx(over.high)
    assert over.quantile(0.1) == pytest.approx(over.low)


@every("sure", CERTAINTIES)
def test_the_nearest_plan_keeps_the_limit(sure: str) -> None:
    a = estimate(plan_from({**MEETING, "sure": sure}))
    for check in checks(a, None):
        result = changed_to_keep(a, check)
        assert result is not None
        (again,) = (other for other in checks(result, None) if other.id == check.id)
        assert again.met
        assert again.value == pytest.approx(check.limit, rel=0.02)


def test_what_is_unknown_is_neither_kept_nor_missed() -> None:
    found = of(gpu="TPU v6e", price="0", until="9 years", spend="$1M", mw="1 MW", count="8,192")
    assert [found[name].met for name in ("deadline", "money", "power")] == [True, None, None]
    assert all_met([found["deadline"], found["money"]]) is None
    impossible = estimate(plan_from({"find": "MFU", "within": "80 days", "until": "90 days"}))
    assert impossible.impossible
    assert [check.met for check in checks(impossible, None)] == [False]
    assert of(until="10 days", mfu="40%")["deadline"].probability != of(until="10 days")["deadline"].probability


def test_a_plan_without_typed_limits_says_nothing_of_them() -> None:
    assert not limit_report(estimate(plan_from({}))).entered
    assert estimate(plan_from({})).middle == estimate(plan_from({"until": "3 days"})).middle


@every(
    ("field", "text", "rule"),
    [
        (DEADLINE, "$5M", "input.not_a_deadline"),
        (DEADLINE, "120", "input.no_unit"),
        (DEADLINE, "2 MW", "quantity.other"),
        (BUDGET, "12", "input.no_unit"),
        (BUDGET, "120 days", "quantity.other"),
        (POWER_LIMIT, "2", "input.no_unit"),
        (POWER_LIMIT, "2 GB", "quantity.other"),
    ],
)
def test_mixed_up_units_are_refused_with_an_example(field: object, text: str, rule: str) -> None:
    with pytest.raises(QuantityError) as refused:
        field.parse(text)  # type: ignore[attr-defined]
    assert refused.value.args[0].id == rule
    assert text in str(refused.value)


def test_training_memory_says_when_too_little_stays_free() -> None:
    plan = plan_from({"free": "0%", "lay": "own"})
    free = memory_estimate(plan).spare / plan.device.memory_bytes
    for share, enough in ((0.0, True), (free - 1e-6, True), (free + 1e-6, False)):
        h = memory_estimate(replace(plan, limits=PlanLimits(free=share)))
        assert h.fits == "fits"
        assert h.lacks != enough
        assert (text_memory.sentence(h).id == "memory.headline.headroom") != enough


def swept(**texts: str) -> Sweep:
    across = SweptAxis(AXES["accelerators"], ("512", "1024", "2048"))
    up = SweptAxis(AXES["accelerator kind"], ("H100 SXM", "B200"))
    return sweep_plan(texts, across, up, sweep_within(None, plan_from(texts)))


@every("sure", CERTAINTIES)
def test_a_cell_of_a_sweep_keeps_the_limits_that_its_plan_does(sure: str) -> None:
    texts = {"until": "400 days", "spend": "$60M", "mw": "2 MW", "sure": sure}
    result = swept(**texts)
    for row, plans in enumerate(result.plans):
        for column, plan in enumerate(plans):
            a = estimate(plan)
            met = {check.id: check.met for check in checks(a, a.memory)}
            assert result.meets_limits[row, column] == all(met[name] for name in ("deadline", "money", "power"))
            assert result.leaves_free[row, column] == met["memory"]
    assert 0 < result.meets_limits.sum() < 6
    assert sweep_text.limit_names(result)[0].id == "sweep.within.all"
    confidence = [said.values["confidence"] for said in sweep_text.notices(result) if "confidence" in said.values]  # type: ignore[attr-defined]
    assert confidence == [sure] * (sure != "P50")


@every(
    "more",
    [{"spend": "$60M"}, {"spend": "$60M", "until": "400 days"}, {"spend": "$60M", "until": "200 days", "mw": "6 MW"}],
)
def test_a_cell_whose_cost_is_unknown_is_said_to_be_unknown(more: dict[str, str]) -> None:
    """As the limits of its plan are: of an accelerator whose rent nobody knows, and of one that is owned."""
    counts = SweptAxis(AXES["accelerators"], ("512", "1024", "2048"))
    for texts, kinds in (({}, ("H100 SXM", "MI355X")), ({"price": "0"}, ("H100 SXM",))):
        result = sweep_plan(
            {**texts, **more}, counts, SweptAxis(AXES["accelerator kind"], kinds), sweep_within(None, plan_from(more))
        )
        for row, plans in enumerate(result.plans):
            for column, plan in enumerate(plans):
                a = estimate(plan)
                met = all_met(checks(a, a.memory))
                verdict = sweep_text.verdict(result, (row, column))
                assert result.satisfies[row, column] == (met is True)
                assert result.may_meet_limits[row, column] == (met is None)
                assert verdict.id.rpartition(".")[2] == {True: "meets", False: "misses", None: "unknown"}[met]
        assert result.may_meet_limits.any()
        if not result.satisfies.any():
            assert sweep_text.answer(result, recommend(result))[0].id == "sweep.answer.unknown"


def test_a_cell_that_leaves_too_little_memory_is_not_enough() -> None:
    free = swept(free="0%", lay="own")
    share = 1 - float((free["memory"] / free["usable"])[0, 0])
    tight = swept(free=f"{share + 0.001:.4f}", lay="own")
    assert free.satisfies[0, 0] == free.meets_limits[0, 0]
    assert tight.fits[0, 0]
    assert not tight.satisfies[0, 0]
    assert "sweep.misses.headroom" in {miss.id for miss in sweep_text.verdict(tight, (0, 0)).values["misses"]}


def searched_leaving(free: str) -> SearchResult:
    return searched(search_request(plan_from({"model": "Llama 3 8B", "count": "8", "gb": "128", "free": free})))


def test_the_best_layout_is_the_fastest_that_leaves_memory_free() -> None:
    whole = searched_leaving("0%")
    assert whole.best is not None
    share = whole.best.spare / whole.best.usable + 0.01
    kept = searched_leaving(f"{share:.4f}")
    assert kept.best is not None
    leaving = [one for one in whole.pareto if one.spare >= round(share, 4) * one.usable]
    assert kept.best.seconds == min(one.seconds for one in leaving) > whole.best.seconds
    assert 0 < kept.fitting < whole.fitting


def test_where_no_layout_leaves_as_much_the_fastest_that_fits_is_the_best() -> None:
    whole, none = searched_leaving("0%"), searched_leaving("90%")
    assert none.best is not None
    assert none.best == whole.best


@every("free", ["0%", "8%", "30%"])
def test_days_rest_on_the_layouts_that_leave_memory_free(free: str) -> None:
    """Keeping more of it free never makes a run shorter."""
    texts = {"model": "Llama 3.1 405B", "count": "1,024"}
    assert (
        estimate(plan_from(texts | {"free": free})).middle.days
        >= estimate(plan_from(texts | {"free": "0%"})).middle.days
    )


def test_a_deadline_and_a_cap_change_no_answer() -> None:
    plain = plan_from({})
    limited = replace(plain, limits=plan_from({**MEETING, "sure": "P90"}).limits)
    assert estimate(limited).middle == estimate(plain).middle


def test_a_comparison_leads_with_the_plans_that_meet_all_limits() -> None:
    limits = {"until": "200 days", "mw": "2 MW", "price": "1"}
    small, large, none = (
        compare_plan(entry_of(name, {**texts, **more}))
        for name, texts, more in (
            ("small", {"count": "1,024"}, limits),
            ("large", {"count": "1,408"}, limits),
            ("none", {"count": "512"}, {}),
        )
    )
    met = comparison_text.answer([small, large, none], 0)[0]
    assert (met.id, met.values["plans"], met.values["limited"]) == ("comparison.limits.met", ["large"], 2)
    missed = comparison_text.answer([small, none], 0)[0]
    assert (missed.id, missed.values["plan"]) == ("comparison.limits.missed", "small")
    assert [limit.id for limit in missed.values["missed"]] == ["limits.the.deadline"]
    tight = compare_plan(entry_of("tight", {**limits, "mw": "1 kW"}))
    assert comparison_text.answer([small, tight], 0)[0].values["plan"] == "small"
    assert not any(".limits." in said.id for said in comparison_text.answer([none, none], 0))
    rows = dict(comparison_text.result_rows([small, large, none], 0))
    assert rows["Limit: Deadline"][2] == ("–", "")
    assert (rows["Limit: Deadline"][0][0].id, rows["Limit: Power limit"][1][0].id) == (
        "limits.outcome.missed",
        "limits.outcome.met",
    )
    assert "Limit: Budget" not in rows


def test_limits_are_a_verdict_a_sentence_each_and_what_it_would_take() -> None:
    a = estimate(plan_from(MEETING))
    report = limit_report(a)
    first, *each = text_limits.limits_text(a, report.checks)
    assert (first.id, first.values["missed"], first.values["limits"]) == ("limits.verdict.missed", 3, 4)
    assert [said.id for said in each] == ["limits.check.over_chance"] * 2 + [
        "limits.check.over",
        "limits.check.memory_reserved",
    ]
    assert [way.kind for way in report.ways] == ["accelerators", "tokens", "power"]
    (power,) = (said for said in text_limits.ways_text(report.ways) if said.id.startswith("limits.way.power"))
    assert power.values["accelerators"] == 1424
    for texts, expected in (
        ({"until": "2 years", "sure": "P90"}, "limits.verdict.met"),
        ({"gpu": "TPU v6e", "mw": "1 MW", "count": "9,999"}, "limits.verdict.unknown"),
    ):
        assert text_limits.verdict(all_checks(estimate(plan_from(texts)))).id == expected
    (never,) = limit_report(estimate(plan_from({"until": "1 h"}))).ways
    assert (never.kind, never.changed) == ("none", None)
