"""Every question of the budget answers the others: solved values put back give the inputs again."""

from __future__ import annotations

import math

import pytest
from core.planning.answer.outlook import (
    FINDS,
    Find,
    Limits,
    Outlook,
    ask_outlook,
    at_mfu,
    found_value,
    outlook,
    parse_mfu,
    parse_within,
    peers_of,
    published_mfu,
)

from core.hardware.accelerators import accelerators, find
from core.planning.budget.errors import BudgetError
from core.planning.budget.interval import Interval
from core.planning.budget.rule import Plan, budget
from core.planning.evidence.rows import base_peak
from core.units import QuantityError

H100 = find("H100 SXM")
GIVEN = {"parameters": 70e9, "tokens": 15e12, "accelerators": 1024.0}
NAMES = {"time": "days", "tokens": "tokens", "parameters": "parameters", "accelerators": "accelerators", "MFU": "mfu"}


def solve(
    find_: Find, mfu: Interval | None = None, limits: Limits | None = None, prices: tuple[float, float] = (3.0, 3.5)
) -> Outlook:
    span = mfu or Interval(0.3, 0.4, 0.5)
    return outlook(find_, **GIVEN, peak=H100.peak("bf16"), mfu=span, prices=prices, limits=limits)


def test_time_is_the_budget_of_the_plan() -> None:
    o = solve("time")
    made = budget(Plan(70e9, 15e12, 1024, H100.peak("bf16"), 0.4, 3.0, 3.5))
    assert o.over("days").mid * 86400 == pytest.approx(made.seconds)
    assert o.over("days").low * 86400 == pytest.approx(made.seconds * 0.4 / 0.5)
    assert o.usd.low == pytest.approx(made.usd_low * 0.4 / 0.5)
    assert o.usd.high == pytest.approx(made.usd_high * 0.4 / 0.3)


@pytest.mark.parametrize("find_", [f for f in FINDS if f not in ("time", "cost")])
def test_a_solved_quantity_put_back_takes_the_time_it_was_given(find_: Find) -> None:
    o = solve(find_, Interval.point(0.4), Limits(180.0, math.nan))
    again = outlook(
        "time",
        parameters=o.plan.params,
        tokens=o.plan.tokens,
        accelerators=o.plan.accelerators,
        peak=o.plan.peak,
        mfu=Interval.point(o.plan.mfu),
        prices=(3.0, 3.5),
    )
    assert again.over("days").mid == pytest.approx(180.0)


@pytest.mark.parametrize("find_", ["tokens", "parameters"])
def test_money_buys_what_it_costs(find_: Find) -> None:
    o = solve(find_, Interval.point(0.4), Limits(math.nan, 5e6))
    assert float(o.middle.hours) * 3.25 == pytest.approx(5e6)
    assert o.usd == Interval.point(5e6)
    assert o.over(find_).low < o.over(find_).mid < o.over(find_).high  # the price is a range


@pytest.mark.parametrize("find_", FINDS)
def test_the_plan_at_its_own_mfu_is_the_answer(find_: Find) -> None:
    o = solve(find_, Interval(0.3, 0.4, 0.5), Limits(180.0, math.nan))
    assert at_mfu(o, o.plan.mfu) == pytest.approx(found_value(o))
    if find_ in ("time", "tokens", "parameters", "accelerators"):
        over = o.over(NAMES[find_])
        assert sorted([at_mfu(o, 0.3), at_mfu(o, 0.5)]) == pytest.approx([over.low, over.high])


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(BudgetError, match="money alone does not say how many"):
        solve("accelerators", limits=Limits(math.nan, 5e6))
    with pytest.raises(BudgetError, match="without a price"):
        solve("tokens", limits=Limits(math.nan, 5e6), prices=(math.nan, math.nan))
    with pytest.raises(BudgetError, match="MFU of 1,439"):
        solve("MFU", limits=Limits(5.0, math.nan))
    with pytest.raises(BudgetError, match="how long the run may take"):
        solve("tokens")


@pytest.mark.parametrize("find_", FINDS)
def test_answer_and_comparable_runs_agree(find_: Find) -> None:
    o, seen = ask_outlook(
        find_,
        **GIVEN,
        device=H100,
        dtype="bf16",
        experts=False,
        mfu=None,
        prices=(3.0, 3.5),
        limits=parse_within("90 days"),
    )
    assert published_mfu(H100, "bf16", o.plan.params, o.plan.tokens, experts=False).peers.rows == seen.peers.rows
    peers = peers_of(o, seen)
    assert len(peers) == len(seen.peers.rows) >= 9
    if find_ == "time":
        inside = sum(o.over("days").low <= peer.value <= o.over("days").high for peer in peers)
        assert inside / len(peers) >= 0.7
        for peer in peers:
            plan = Plan(70e9, 15e12, 1024, H100.peak("bf16"), peer.mfu)
            assert peer.value * 86400 == pytest.approx(budget(plan).seconds)


@pytest.mark.parametrize("device", accelerators(), ids=lambda d: d.name)
def test_published_mfus_never_pass_the_peak(device: object) -> None:
    for dtype, peak in device.peaks:  # type: ignore[attr-defined]
        seen = published_mfu(device, dtype, 70e9, 15e12, experts=False)  # type: ignore[arg-type]
        assert 0 < seen.mfu.low <= seen.mfu.high < 1
        if dtype == "fp8" and peak > base_peak(device.name):  # type: ignore[attr-defined]
            assert seen.mfu.mid * peak == pytest.approx(seen.peers.utilisation.mid * base_peak(device.name))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.4", 0.4, 0.4),
        ("40%", 0.4, 0.4),
        ("35-45%", 0.35, 0.45),
        ("35% to 45%", 0.35, 0.45),
        ("0.45–0.35", 0.35, 0.45),
    ],
)
def test_mfu_as_typed(text: str, low: float, high: float) -> None:
    found = parse_mfu(text)
    assert found
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.low <= found.mid <= found.high


def test_mfu_from_published_runs() -> None:
    assert parse_mfu("published") is parse_mfu(" Published ") is parse_mfu("") is None


@pytest.mark.parametrize("text", ["1.5", "0", "-0.3", "lots", "1-2-3", "nan", "1e999", "%"])
def test_bad_mfu_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_mfu(text)


def test_limits_as_typed() -> None:
    assert parse_within("90 days") == Limits(90.0, pytest.approx(math.nan, nan_ok=True))
    assert parse_within("12 weeks").days == 84
    assert parse_within("$5M").dollars == 5e6
    assert parse_within("$5M").in_money


@pytest.mark.parametrize("text", ["90", "", "soon", "$", "-3 days", "1e999 days", "0 s", "$1e999"])
def test_bad_limits_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"example|Empty|out of range"):
        parse_within(text)
