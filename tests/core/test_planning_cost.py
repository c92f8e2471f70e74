"""The bill of a calendar: Compute budget's dollars and energy, each line worked out anew, and what is missing."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.formula import derivation
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.cost.bill import (
    COST_OPTIONS,
    BillLine,
    CostOption,
    Prices,
    costs,
    energy_of,
    explain,
    idle_of,
    peak_of,
)
from core.planning.cost.form import MONEY_FIELDS, prices_of
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_form, plan_from
from core.views.cost import text as cost_text
from tests.every import every

START = date(2027, 1, 15)
PLAN = plan_from({"n": "8B", "tokens": "2T", "count": "256", "seq": "4,096"})
FULL = Prices(
    held=True,
    reserved=2.0,
    term=365.25,
    capital=35_000,
    years=5,
    kwh=0.08,
    staff=2e6,
    space=1e6,
)


def made(*runs: Run, accelerators: int = 256, spares: int = 0) -> Schedule:
    return schedule(Fleet(PLAN.accelerator, accelerators, spares), runs or [Run("one", PLAN)], START)


def way(s: Schedule, p: Prices, name: str) -> CostOption:
    return next(cost for cost in costs(s, p) if cost.id == name)


def line_of(option: CostOption, name: str) -> BillLine | None:
    return next((line for line in option.lines if line.id == name), None)


def amount(s: Schedule, p: Prices, name: str, line: str) -> float:
    result = line_of(way(s, p, name), line)
    assert result is not None
    return result.amount.mid


@every("price", ["", "2.5", "2-3.5"])
@every("mfu", ["published", "40%", "35-45%"])
def test_rent_and_energy_are_those_of_compute_budget(price: str, mfu: str) -> None:
    plan = plan_from({"n": "8B", "tokens": "2T", "count": "256", "price": price, "mfu": mfu})
    s = made(Run("one", plan))
    assert way(s, Prices(), "rented").total == estimate(plan).dollars
    assert energy_of(s) == estimate(plan).energy


def test_each_line_is_what_it_says() -> None:
    """Worked out here once more by hand, from days and hours alone."""
    s = made(accelerators=320, spares=64)
    days, hours = s.ends.mid, s.used_hours.mid
    years, price = days / 365.25, s.runs[0].answer.middle.price
    assert amount(s, FULL, "rented", "idle") == pytest.approx((320 * 24 * days - hours) * price)
    assert amount(s, FULL, "reserved", "reservation") == pytest.approx(2 * 320 * 365.25 * 24 * math.ceil(years))
    assert amount(s, FULL, "owned", "capital") == pytest.approx(35_000 * 320 * years / 5)
    assert peak_of(s) == pytest.approx(320 * 1275 * 1.1)
    assert amount(s, FULL, "owned", "power") == pytest.approx(hours * 1275 * 0.76 * 1.1 / 1000 * 0.08)
    assert amount(s, FULL, "owned", "staff") == pytest.approx(2e6 * years)
    for option in COST_OPTIONS:
        lines = way(s, FULL, option).lines
        assert way(s, FULL, option).total.mid == pytest.approx(sum(line.amount.mid for line in lines))


def test_a_reservation_is_as_many_whole_terms_as_hold_the_calendar() -> None:
    s = made()
    year = amount(s, replace(FULL, term=s.ends.mid + 1), "reserved", "reservation")
    short = amount(s, replace(FULL, term=(s.ends.mid + 1) / 2), "reserved", "reservation")
    over = amount(s, replace(FULL, term=(s.ends.mid - 0.1) / 2), "reserved", "reservation")
    assert short == pytest.approx(year)
    assert over > year * 1.3


@given(
    st.floats(1.01, 30),
    st.sampled_from([field.name for field in fields(Prices) if field.name not in ("held", "years", "term")]),
)
@settings(max_examples=40, deadline=None)
def test_more_work_and_higher_prices_never_cost_less(factor: float, name: str) -> None:
    s = made()
    more = made(Run("one", replace(PLAN, tokens=PLAN.tokens * factor)))
    dearer = replace(FULL, **{name: getattr(FULL, name) * factor})
    for option in COST_OPTIONS:
        before = way(s, FULL, option).total
        for after in (way(more, FULL, option).total, way(s, dearer, option).total):
            assert after.low >= before.low * (1 - 1e-12)
            assert after.mid >= before.mid * (1 - 1e-12)
            assert after.high >= before.high * (1 - 1e-12)


def test_what_is_owned_is_neither_rented_nor_least() -> None:
    s = made(Run("one", replace(PLAN, prices=(0.0, 0.0))))
    for p in (FULL, Prices(), replace(FULL, held=False)):
        ways = costs(s, p)
        assert not ways[0].total.known
        sentences = [cost_text.compared(ways), *(part for row in cost_text.rows(ways) for cell in row for part in cell)]
        assert not any("$0.00" in text or "**rented**" in text for text in sentences)
        assert any("is 0, for what is owned" in text for text in sentences)


def test_idle_hours_are_what_is_held_and_not_used() -> None:
    after = Run("second", PLAN, after=0, earliest=START + timedelta(days=200))
    s = made(Run("first", PLAN), after)
    assert idle_of(s).mid == pytest.approx(256 * 24 * (s.runs[1].middle.begin - s.runs[0].middle.end))
    assert idle_of(made()).mid == pytest.approx(0, abs=1e-6)
    option, free = way(s, FULL, "rented"), way(s, replace(FULL, held=False), "rented")
    assert option.total.mid > free.total.mid
    assert line_of(free, "idle") is None


@every(
    ("name", "unknown"),
    [
        ("reserved", {"reserved": "reservation"}),
        ("term", {"reserved": "reservation"}),
        ("capital", {"owned": "capital"}),
        ("years", {"owned": "capital"}),
        ("kwh", {"owned": "power"}),
        ("staff", {"owned": "staff"}),
        ("space", {"owned": "space"}),
    ],
)
def test_an_empty_field_leaves_its_line_unknown_and_the_total_says_so(name: str, unknown: dict[str, str]) -> None:
    s = made()
    p = replace(FULL, **{name: math.nan})
    for option in COST_OPTIONS:
        full, result = way(s, FULL, option), way(s, p, option)
        assert result.without == ((unknown[option],) if option in unknown else ())
        if option not in unknown:
            assert result.total == full.total
            continue
        line = line_of(result, unknown[option])
        assert line is not None
        assert line.needs == (name,)
        if line.main:
            assert not result.total.known
            assert not cost_text.missing(result)
        else:
            assert cost_text.missing(result) == f"without {cost_text.NAMES[line.id]}"
            assert result.total.mid < full.total.mid
    table = [cell for row in cost_text.rows(costs(s, p)) for cell in row]
    assert ("unknown", "") in table


def test_without_a_price_the_rent_is_unknown() -> None:
    s = made(Run("one", replace(PLAN, accelerator="TPU v4")))
    option = way(s, FULL, "rented")
    assert not option.total.known
    assert option.without == ("rent", "idle")
    assert "Price" in cost_text.compared(costs(s, FULL))


def test_the_least_is_the_least() -> None:
    s = made()
    ways = costs(s, FULL)
    least = min(ways, key=lambda option: option.total.mid).id
    assert f"least **{least}**" in cost_text.compared(ways)
    assert "least" not in cost_text.compared(costs(s, replace(FULL, staff=math.nan)))  # which only an own fleet has


@pytest.mark.parametrize("p", [Prices(), FULL, replace(FULL, held=False, capital=math.nan)])
def test_tables_and_formulas_hold_every_line(p: Prices) -> None:
    ways = costs(made(), p)
    assert {len(row) for row in cost_text.rows(ways)} == {len(cost_text.heading(ways))}
    values = [step.value for step in explain(ways)]
    for line in (line for option in ways for line in option.lines if line.known):
        assert any(value == pytest.approx(line.amount.mid) for value in values), line.id
    assert derivation(explain(ways))


def test_empty_fields_are_unknown_and_defaults_have_their_source() -> None:
    """What has a default says in its help where it is from."""
    form = plan_form("y", *MONEY_FIELDS)
    p = prices_of(form.parse({}))
    given = {field.name for field in fields(p) if not math.isnan(getattr(p, field.name))} - {"held"}
    assert given == {"term", "years", "kwh"}
    for field in MONEY_FIELDS:
        if field.default and field.kind == "text":
            assert any(name in field.help for name in ("Amazon", "AWS", "Energy Information Administration")), field.id
    assert p.term == pytest.approx(365.25)
    assert form.parse({"rprice": "-1", "kwh": "x"}).problems


def test_fields_that_the_bill_had_are_named_where_they_said_something() -> None:
    form = plan_form("y", *MONEY_FIELDS)
    link = {"y_keep": ("",), "y_gbm": ("0.023",), "y_data": ("60 TB",), "y_parts": ("true",), "y_space": ("1M",)}
    texts, said = form.from_address(link)
    assert texts == {"space": "1M"}
    assert [(one.id, one.values) for one in said] == [("input.link_unknown", {"names": ["y_data"]})]  # type: ignore[attr-defined]
