"""Pools: offers as pools, one message on lines that are left out, no overbooking, what is out, and what each costs."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.fields import ParsedForm
from core.hardware.accelerators import accelerators
from core.hardware.offers import CONTRACTS, EXAMPLES, offer_line
from core.limits import limit
from core.planning.calendar.dates import Closed
from core.planning.calendar.form import CALENDAR_FIELDS, calendar_request, pool_texts, texts_of
from core.planning.calendar.pools import Pool, PoolEvent, parse_pools, plan_on
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.cost.bill import Prices
from core.planning.cost.choose_pools import PoolLine, choose_pools, compare_pools
from core.planning.cost.form import MONEY_FIELDS
from core.planning.cost.pool_bill import PoolCost, pool_costs, ways_to_pay
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_form, plan_from
from core.planning.plan_limits import all_checks, changed_to_keep
from core.units import QuantityError, parse_quantity
from core.views.calendar import text as calendar_text
from core.views.calendar import text_fit, text_pools
from core.views.cost import text as cost_text
from core.views.plan.text_memory import gib
from core.wording import amount, rent
from tests.core.plan_cases import in_use
from tests.core.sentence_facts import says
from tests.every import every

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
START = date(2027, 1, 15)
BASE = plan_from({"n": "1B", "tokens": "20B", "count": "64", "seq": "4,096"})
SIDES = ("low", "middle", "high")
FLEET = """ours: 512 H100 SXM owned $30,000 over 4 years, 2 spare nodes, 64 out from 2027-05-01 to 2027-05-03, in Oslo
burst: 1,024 H200 rented $2.60/h from 2027-03-01 to 2027-09-01
held: 512 B200 reserved $3.10/h, idle $0.40/h
cheap: 256 h100 spot $1.20-1.50/h; 0.05 interruptions/h"""


def listed(text: str) -> tuple[Pool, ...]:
    """The pools of lines, all of which can be read."""
    every_line = parse_pools(text)
    assert not every_line.problem
    return every_line.pools(64, START)


OURS, BURST, HELD, CHEAP = listed(FLEET)


def only(line: str) -> Pool:
    return listed(line)[0]


# ------------------------------------------------------------------------------------------ lines


def test_an_offer_is_a_pool_on_its_terms() -> None:
    held = {"spares": 16, "capital": 30_000, "years": 4, "place": "Oslo"}
    out = PoolEvent(64, Closed(date(2027, 5, 1), date(2027, 5, 3)))
    assert Pool("ours", "H100 SXM", 512, "owned", events=(out,), **held) == OURS  # type: ignore[arg-type]
    assert Pool("burst", "H200 SXM", 1024, prices=(2.6, 2.6), first=date(2027, 3, 1), last=date(2027, 9, 1)) == BURST
    assert (HELD.holding, HELD.prices, HELD.idle) == ("reserved", (3.1, 3.1), 0.4)
    assert (CHEAP.accelerator, CHEAP.prices, CHEAP.interruptions) == ("H100 SXM", (1.2, 1.5), 0.05)
    racks = only("rack: 144 GB200 rented, 1 node out from 2027-05-01 for 6 days, 1.2 interruptions a day")
    assert racks.events == (PoolEvent(72, Closed(date(2027, 5, 1), date(2027, 5, 6))),)
    assert racks.interruptions == pytest.approx(0.05)
    assert listed(FLEET.replace("\n", "; ")) == (OURS, BURST, HELD, CHEAP)


def test_an_offer_without_a_number_has_no_ceiling_and_one_with_a_number_has() -> None:
    assert [(p.accelerators, p.most) for p in listed("x: H200\ny: 512 H200\nz: at least 512 H200")] == [
        (64, math.inf),
        (512, 512),
        (512, math.inf),
    ]
    assert only("x: H200, 2 spare nodes").usable == 64


def test_a_term_begins_with_the_calendar_unless_the_offer_says_a_day() -> None:
    assert only("64 H100 reserved for 90 days").last == START + timedelta(days=89)
    assert only("64 H100 reserved for 90 days from 2027-03-01").last == date(2027, 5, 29)


def test_offers_without_names_have_names_of_their_own() -> None:
    names = [pool.name for pool in listed("64 H100\n32 own H100\nH100 SXM 2: 8 H200\n8 MI300X")]
    assert names == ["H100 SXM", "H100 SXM 3", "H100 SXM 2", "MI300X"]


LEFT_OUT = ("a: 12 H900 rented $2/h", "a: 12 H100 rented €2/h", "the plan’s cluster: 12 H100", "a: 12 H100 spot $1/h")


@every("line", LEFT_OUT)
def test_a_bad_line_is_quoted_and_the_others_stay(line: str) -> None:
    pools = parse_pools(f"{EXAMPLES[0]}\n\n{line}\n{EXAMPLES[1]}")
    assert [offer.name for offer in pools.offers] == ["ours", "burst"]
    assert f"“{line}”" in pools.problem


def test_lines_with_the_same_problem_are_said_once() -> None:
    lines = [f"p{i}: 12 H100 rented €2/h" for i in range(limit("pools"))]
    one, many = (parse_pools("\n".join(some)).problem for some in (lines[:1], lines))
    reason = one.partition("”: ")[2]
    assert reason
    assert many.count(reason) == 1
    assert many.startswith(f"{len(lines)} pools")
    mixed = parse_pools("\n".join([*lines, *LEFT_OUT, "", "nothing", "more nothing"])).problem
    assert len(mixed) < 3 * 200, "an answer has to stay on the first screen"


def test_too_many_lines_and_names_twice_are_left_out() -> None:
    twice = parse_pools(f"{EXAMPLES[0]}\nOurs: 8 H100 rented")
    assert (len(twice.offers), "“Ours: 8 H100 rented”" in twice.problem) == (1, True)
    many = parse_pools("\n".join(f"p{i}: 8 H100 rented" for i in range(limit("pools") + 2)))
    assert (len(many.offers), many.problem[:2]) == (limit("pools"), "2 ")
    with pytest.raises(QuantityError, match="characters"):
        parse_pools("x" * 1000)


@given(st.text(alphabet="aH10:,$/ h.-\n€owned rented spot2027", max_size=80))
@settings(max_examples=200, deadline=None)
def test_whatever_is_typed_is_read_or_said(text: str) -> None:
    pools = parse_pools(text)
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(pools.offers) <= len(lines)
    assert bool(pools.problem) == (len(pools.offers) < len(lines))
    assert len(pools.pools(64, START)) == len(pools.offers)


@every("name", [device.name for device in accelerators()])
def test_any_accelerator_is_a_pool(name: str) -> None:
    pool = only(f"x: 256 {name} rented")
    assert (pool.accelerators, pool.accelerator) == (256, name)


@every("word", CONTRACTS)
def test_what_small_fields_write_is_read(word: str) -> None:
    paid = "$3 over 4 years" if word == "owned" else "$3/h"
    pool = only(offer_line("x", "64", "B200", word, paid, "0.1 interruptions/h" * (word == "spot"), "from 2027-03-01"))
    assert (pool.accelerators, pool.accelerator, pool.first) == (64, "B200", date(2027, 3, 1))
    assert (pool.capital if word == "owned" else pool.prices) == (3 if word == "owned" else (3, 3))


@given(st.integers(1, 496), st.integers(0, 512), st.integers(0, 512))
def test_the_part_of_a_pool_and_what_is_left_are_the_pool(count: int, first: int, second: int) -> None:
    days = (Closed(START, START), Closed(START + timedelta(days=3), START + timedelta(days=9)))
    events = tuple(PoolEvent(out, when) for out, when in zip((first, second), days, strict=True) if out)
    pool = replace(OURS, events=events)
    part = pool.part(count)
    rest = pool.without(part)
    assert part.usable == count
    assert part.accelerators + (rest.accelerators if rest else 0) == pool.accelerators
    for when, out in zip(days, (first, second), strict=True):
        both = [event for one in (part, rest) if one for event in one.events if event.days == when]
        assert sum(event.accelerators for event in both) == out
    assert replace(pool, is_ceiling=False).without(part) is None


# ------------------------------------------------------------------------------------------ the schedule

POOLS = (
    Pool("one", "H100 SXM", 128, spares=8),
    Pool("two", "H100 SXM", 96, first=START + timedelta(days=20), last=START + timedelta(days=90)),
)


@st.composite
def many(draw: st.DrawFn) -> tuple[Fleet, list[Run]]:
    pools = [
        replace(
            pool,
            events=tuple(
                PoolEvent(out, Closed(START + timedelta(days=first), START + timedelta(days=first + days)))
                for out, first, days in draw(
                    st.lists(st.tuples(st.integers(1, 90), st.integers(0, 60), st.integers(0, 9)), max_size=3)
                )
            ),
        )
        for pool in POOLS
    ]
    runs: list[Run] = []
    for i in range(draw(st.integers(1, limit("calendar_runs")))):
        pool = draw(st.sampled_from((None, *pools)))
        count = draw(st.sampled_from((8.0, 40.0, 64.0)))
        plan = replace(BASE, tokens=draw(st.sampled_from((1e9, 2e10, 2e11))), accelerators=count)
        after = draw(st.sampled_from((None, *range(i))))
        runs.append(Run(f"run {i}", plan_on(pool, plan) if pool else plan, after, pool=pool))
    return Fleet("H100 SXM", 64, pools=tuple(pools)), runs


def usable_at(pool: Pool, at: float) -> int:
    """Accelerators that runs may have at a moment: by the day alone, event by event."""
    day = START + timedelta(days=math.floor(at + 1e-9))
    out = sum(event.accelerators for event in pool.events if event.days.first <= day <= event.days.last)
    return max(0, min(pool.accelerators - pool.spares, pool.accelerators - out))


@given(many())
@settings(max_examples=80, deadline=None)
def test_no_pool_is_overbooked_and_no_run_begins_before_its_pool(case: tuple[Fleet, list[Run]]) -> None:
    fleet, runs = case
    s = schedule(fleet, runs, START)
    for run in s.runs:
        pool = s.pool_of(run)
        assert run.middle.days - run.middle.paused == pytest.approx(run.answer.middle.days, abs=1e-9)
        assert pool.first is None or s.day(run.low.begin + 1e-9) >= pool.first
        assert s.days_beyond(run, run.middle.end) == (
            max(0, (s.day(run.middle.end) - pool.last).days) if pool.last else 0
        )
    for pool in s.pools:
        moments, counts = in_use(s, pool)
        for a, b, count in zip(moments, moments[1:], counts, strict=False):
            for part in (0.01, 0.25, 0.5, 0.75, 0.99):
                assert count <= usable_at(pool, a + part * (b - a)) or b - a < 1e-6


@given(many(), st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_that_takes_time_brings_anything_forward(case: tuple[Fleet, list[Run]], data: st.DataObject) -> None:
    fleet, runs = case
    s = schedule(fleet, runs, START)
    i = data.draw(st.integers(0, len(runs) - 1))
    longer = list(runs)
    longer[i] = replace(runs[i], plan=replace(runs[i].plan, tokens=runs[i].plan.tokens * 1.7))
    after = schedule(fleet, longer, START)
    for a, b in zip(s.runs, after.runs, strict=True):
        assert all(getattr(b, side).end >= getattr(a, side).end - 1e-9 for side in SIDES)


def test_a_run_on_a_pool_is_the_plan_on_its_accelerators() -> None:
    reading = read(
        {"runs": "2", "r1p": "burst", "r2p": "OURS", "r2c": "50%", "pools": FLEET, "net": "400 Gb/s", "node": "4"}
    )
    request = calendar_request(reading)
    s = request.schedule()
    first, second = s.runs
    assert (first.run.plan.accelerator, first.accelerators, first.run.plan.network) == ("H200 SXM", 1024, None)
    assert (second.accelerators, second.run.plan.owned, second.run.plan.network is not None) == (248, True, True)
    assert (first.run.plan.per_node, second.run.plan.per_node) == (None, 4)
    assert first.answer is estimate(replace(first.run.plan))
    assert str(s.day(first.middle.begin)) == "2027-03-01"
    assert first.waits == second.waits == ()
    for run in s.runs:
        assert estimate(plan_from(texts_of(reading, run.run))).middle.days == pytest.approx(run.answer.middle.days)


def read(texts: dict[str, str]) -> ParsedForm:
    reading = FORM.parse({"n": "1B", "tokens": "20B", "count": "64", **texts})
    assert not reading.problems, reading.problems
    return reading


def test_a_pool_that_is_none_and_one_too_small_are_said() -> None:
    with pytest.raises(BudgetError, match="Did you mean burst"):
        calendar_request(read({"r1p": "brust", "pools": FLEET}))
    with pytest.raises(BudgetError, match="the pools are none"):
        calendar_request(read({"r1p": "ours"}))
    with pytest.raises(BudgetError, match="“ours” has 496 after 16 spares"):
        calendar_request(read({"r1p": "ours", "r1c": "512", "pools": FLEET})).schedule()


def test_spares_stand_in_for_what_is_out_and_the_rest_pauses_later_rows() -> None:
    days = Closed(START + timedelta(days=1), START + timedelta(days=2))
    plan = replace(BASE, tokens=2e12)

    def paused(out: int) -> list[float]:
        pool = Pool("p", "H100 SXM", 128, spares=16, events=(PoolEvent(out, days),))
        runs = [Run(str(i), replace(plan, accelerators=56.0), pool=pool) for i in range(2)]
        return [run.middle.paused for run in schedule(Fleet("H100 SXM", 64, pools=(pool,)), runs, START).runs]

    assert paused(16) == [0, 0]
    assert paused(17) == [0, 2]
    assert paused(73) == [2, 2]


def test_what_does_not_fit_before_the_pool_ends_is_said() -> None:
    pool = only("burst: 64 H100 rented $2/h to 2027-02-01")
    run = Run("long", plan_on(pool, replace(BASE, tokens=1e13)), pool=pool)
    s = schedule(Fleet("H100 SXM", 64, pools=(pool,)), [run], START)
    (late,), perhaps = calendar_text.beyond(s)
    assert "does not fit before its pool ends" in late
    assert not perhaps
    assert calendar_text.beyond(schedule(s.fleet, [replace(run, plan=plan_on(pool, BASE))], START)) == ([], [])


def test_interruptions_lengthen_a_run_and_more_of_them_more() -> None:
    days = [estimate(plan_on(replace(CHEAP, interruptions=rate), BASE)).middle.days for rate in (0, 0.01, 0.1, 1)]
    assert days == sorted(days)
    assert days[-1] > days[0]
    stops = estimate(plan_on(replace(CHEAP, interruptions=1.0), BASE)).interruptions
    assert float(stops.mtbf) == pytest.approx(1 / (1 / 3600 + 0.474 * 64 / 86.4e6), rel=1e-9)


# ------------------------------------------------------------------------------------------ money


def placed(pool: Pool, tokens: float = 2e11) -> Schedule:
    run = Run("one", plan_on(pool, replace(BASE, tokens=tokens)), pool=pool)
    return schedule(Fleet("H100 SXM", 64, pools=(pool,)), [run], START)


def cost(s: Schedule, **prices: float) -> PoolCost:
    (result,) = pool_costs(s, replace(Prices(), **prices))
    return result


def test_each_pool_costs_what_it_says() -> None:
    """Worked out once more by hand, from days and hours alone."""
    s = placed(only("x: 128 H100 owned $30,000 over 4 years, idle $0.40/h"))
    days, hours = s.ends.mid, s.used_hours.mid
    owned = cost(s, kwh=0.1)
    assert owned.work.mid + owned.idling.mid == pytest.approx(
        30_000 * 128 * days / (4 * 365.25) + 0.4 * (128 * 24 * days - hours)
    )
    assert owned.power.mid == pytest.approx(s.runs[0].answer.energy.mid / 1000 * 0.1)
    s = placed(only("x: 128 H100 rented $2/h"))
    assert (cost(s).work, cost(s).idling.mid) == (s.runs[0].answer.dollars, 0)
    s = placed(only("x: 128 H100 reserved $2/h to 2027-12-31"))
    assert cost(s).total.mid == pytest.approx(2 * 128 * 24 * (date(2028, 1, 1) - START).days)
    assert cost(s).work.mid == pytest.approx(2 * s.used_hours.mid)
    for line in ("x: 128 H100 owned", "x: 128 H100 reserved"):
        assert not cost(placed(only(line))).total.known


def test_the_bill_is_the_sum_of_its_pools_and_says_what_is_missing() -> None:
    reading = read({"runs": "2", "r1p": "burst", "r2p": "ours", "pools": FLEET, "tokens": "2T"})
    s = calendar_request(reading).schedule()
    p = replace(Prices(), kwh=0.1)
    (way,) = ways_to_pay(s, p)
    costs = pool_costs(s, p)
    assert [item.pool.name for item in costs] == ["ours", "burst", "held", "cheap"]
    assert way.total.mid == pytest.approx(sum(item.total.mid for item in costs))
    assert {len(row) for row in cost_text.rows([way])} == {len(cost_text.heading([way]))}
    assert {len(row) for row in cost_text.pool_rows(costs)} == {len(cost_text.POOLS)}
    assert "**cost unknown**" not in calendar_text.detail(s, way, cost_text.fleet_text(s, p))
    slow = "ours: 64 H100 SXM owned $30,000 over 4 years\nburst: 512 H100 SXM rented $3/h"
    s = calendar_request(read({"runs": "2", "r1p": "ours", "r2p": "burst", "pools": slow})).schedule()
    for paid in (p, replace(p, held=True)):
        shown = [item for item in pool_costs(s, paid) if item.idling.mid or item.pool.holding != "rented"]
        idle = f"**{amount(sum(item.hours.idle.mid for item in shown), 3)}** held outside them"
        assert idle in cost_text.fleet_text(s, paid)
    assert cost_text.fleet_text(s, p) != cost_text.fleet_text(s, replace(p, held=True))
    (unknown,) = ways_to_pay(placed(only("x: 128 H100 owned")), p)
    assert not unknown.total.known
    assert "capital" in cost_text.unknown(unknown)


# ------------------------------------------------------------------------------------------ which pool

PLAN = plan_from({"n": "30B", "tokens": "5T", "count": "512"})
DUE = date(2027, 4, 30)
WITHIN = float((DUE - START).days + 1)
OPEN = tuple(replace(pool, events=(), first=None, last=None) for pool in (OURS, BURST, HELD))


def lines(fleet: Fleet | None = None, due: date = DUE, **keeps: Any) -> tuple[PoolLine, ...]:
    fleet = fleet or Fleet("H100 SXM", 512, pools=OPEN)
    plan = replace(PLAN, limits=replace(PLAN.limits, **keeps))
    return choose_pools((Run("", plan),), fleet, START, due, replace(Prices(), kwh=0.08))


def only_pool(line: str, **keeps: Any) -> PoolLine:
    return lines(Fleet("H100 SXM", 512, pools=(only(line),)), **keeps)[1]


def test_every_choice_is_the_plan_on_so_many_of_its_pool_and_own_ones_come_first() -> None:
    found = lines()
    assert [line.pool.name for line in found] == ["the plan’s cluster", "ours", "held", "burst"]
    for line in found:
        counts = [choice.accelerators for choice in line.choices]
        assert counts == sorted(set(counts))
        assert line.pool.usable in counts
        assert line.pool.name == "burst" or counts[-1] == line.pool.usable
        for choice in line.choices:
            assert choice.schedule
            plan = choice.schedule.runs[0].run.plan
            assert choice.days == pytest.approx(estimate(plan).middle.days)
            assert plan.accelerators == choice.accelerators
    whole = next(choice for choice in found[3].choices if choice.accelerators == BURST.usable)
    assert whole.dollars == estimate(replace(plan_on(BURST, PLAN), accelerators=1024.0)).dollars


@pytest.mark.parametrize("sure", ["P50", "P75", "P90"])
def test_the_fewest_of_each_term_are_the_least_nodes_that_keep_it(sure: str) -> None:
    level = PLAN.limits.level if sure == "P50" else int(sure[1:]) / 100
    for line in lines(certainty=sure):

        def chance(accelerators: int, days: float, pool: Pool = line.pool) -> float:
            on = PLAN if pool.name == "the plan’s cluster" else plan_on(pool, PLAN)
            return estimate(replace(on, find="time", accelerators=float(accelerators))).range_of("days").below(days)

        asked = [(choice, share, WITHIN) for share, choice in line.in_time.items()]
        for choice, share, days in (*asked, (line.later, level, WITHIN + 7)):
            assert choice
            assert chance(choice.accelerators, days) >= share - 1e-9
            assert chance(choice.accelerators - 8, days) < share
        counts = [choice.accelerators for choice in line.in_time.values() if choice]
        assert counts == sorted(counts)
        assert level in line.in_time


def test_the_most_that_keep_money_and_power_are_the_last_node_that_does() -> None:
    line = lines()[-1]
    assert math.isnan(line.affordable)
    assert math.isnan(line.powered)
    end = line.choices[-1]
    assert end.schedule
    watts = end.schedule.runs[0].answer.middle.peak_watts
    half = lines(watts=watts / 2)[-1]
    assert half.powered == end.accelerators // 16 * 8
    middle = line.choices[len(line.choices) // 2]
    some = lines(dollars=middle.dollars.mid)[-1]
    assert middle.accelerators <= some.affordable < end.accelerators
    assert (lines(dollars=1.0)[-1].affordable, lines(dollars=1e12)[-1].affordable) == (0, math.inf)
    assert math.isnan(only_pool("x: 512 H100 owned", dollars=1e6).affordable)  # nobody typed its capital


@pytest.mark.parametrize("accelerator", ["GB200", "H100", "B200"])
def test_one_number_of_accelerators_keeps_a_power_limit_however_large_the_pool_is(accelerator: str) -> None:
    """The same on owned, reserved and rented pools, of the catalogue, and for the plan that misses the limit."""
    kinds = ("144 {} owned", "512 {} reserved $3/h", "4,096 {} rented $3/h", "64 {} reserved $3/h")
    pools = [only_pool("x: " + kind.format(accelerator), watts=1.2e6) for kind in kinds]
    device = pools[0].pool.accelerator
    limits = replace(PLAN.limits, watts=1.2e6)
    over = estimate(replace(PLAN, accelerator=device, accelerators=2304.0, limits=limits))
    (check,) = (check for check in all_checks(over) if check.id == "power")
    keeping = changed_to_keep(over, check)
    assert keeping is not None
    assert {line.powered for line in pools} == {keeping.count}
    rented = lines(Fleet("H100 SXM", 576), watts=1.2e6)
    assert {line.powered for line in rented if line.pool.accelerator == device} <= {keeping.count}


def test_what_is_out_is_made_up_for_by_what_the_plan_does_not_take() -> None:
    line = only_pool("x: 512 H100 reserved $2/h, 64 out from 2027-02-01 to 2027-02-10")
    (plain,) = (choice for choice in line.choices if choice.accelerators == 512)
    assert plain.schedule
    assert plain.schedule.runs[0].middle.paused == 10
    for choice in line.choices:
        if choice.schedule and choice.accelerators <= 512 - 64:
            assert choice.schedule.runs[0].middle.paused == 0


def test_maintenance_and_a_late_opening_take_more_accelerators() -> None:
    def fewest(closed: tuple[Closed, ...] = (), first: date | None = None) -> int:
        fleet = Fleet("H100 SXM", 512, closed=closed, pools=(replace(BURST, first=first),))
        choice = lines(fleet)[-1].in_time[0.5]
        return choice.accelerators if choice else 0

    closed = (Closed(date(2027, 2, 1), date(2027, 2, 14)),)
    assert fewest() < fewest(closed) < fewest(closed, date(2027, 3, 1))
    assert fewest(first=date(2027, 5, 1)) == 0  # after the deadline


def test_without_a_pool_to_rent_the_best_of_the_catalogue_are_some() -> None:
    found = lines(Fleet("H100 SXM", 512, pools=(OURS,)))
    catalogued = [line for line in found if line.pool.name == line.pool.accelerator]
    assert len(catalogued) == 5
    assert all(line.best for line in catalogued)


def test_a_limit_that_nothing_meets_names_the_nearest() -> None:
    for keeps in ({"dollars": 1.0}, {"due": START}, {"dollars": 1.0, "watts": 1.0, "due": START}):
        found = lines(**keeps)  # pyright: ignore[reportArgumentType]
        assert text_pools.sentence(found, PLAN).startswith("No pool meets every limit. The nearest is")
    says(text_pools.sentence(lines(), PLAN), "pools meet every limit", "the best is")
    endless = replace(PLAN, tokens=PLAN.tokens * 200)
    far = choose_pools((Run("x", endless),), Fleet("H100 SXM", 512, pools=(BURST,)), START, DUE, Prices())
    some = [choice for line in far for choice in line.choices if choice.problem]
    assert some
    assert not any(line.nearest.problem for line in far if any(choice.schedule for choice in line.choices))
    sentences = text_pools.terms(lines(), PLAN)
    says(sentences, "A week more", "In time with 90%")
    line = min((line for line in lines() if line.best), key=lambda line: line.nearest.dollars.mid)
    now = line.in_time[PLAN.limits.level]
    assert now
    parts = zip(sentences.split("**: ")[1:], (line.later, line.in_time[max(line.in_time)]), strict=True)
    for words, other in parts:
        assert other
        if other.accelerators > other.pool.most:
            assert f"{other.accelerators - other.pool.usable:,} more than there are" in words
            continue
        usd = [parse_quantity(rent(choice.dollars.mid), "usd") for choice in (now, other)]
        assert f", {rent(abs(usd[0] - usd[1]))} {'more' if usd[1] > usd[0] else 'less'}." in words


OFFERS = "512 rented H200 at $2.8/h\n256 GB200 (NVL72)\nB200, $4.5/h\nat least 64 H100\n128 own H100"


@pytest.mark.parametrize("keeps", [{}, {"dollars": 9e6, "certainty": "P90"}, {"watts": 5e5}])
def test_no_more_accelerators_are_proposed_than_are_offered(keeps: dict[str, Any]) -> None:
    """In the plan that a button makes, in what meets all limits, in the chart and in words."""
    offered = listed(OFFERS)
    found = lines(Fleet("H100 SXM", 512, pools=offered), **keeps)
    most = {"the plan’s cluster": 512.0} | {pool.name: pool.most for pool in offered}
    assert [line.pool.name for line in found if math.isinf(most[line.pool.name])] == ["B200", "H100 SXM"]
    for line in found:
        ceiling = most[line.pool.name]
        assert {*line.choices, line.nearest} == set(line.choices)
        assert max(choice.accelerators for choice in line.choices) <= ceiling
    plan = replace(PLAN, limits=replace(PLAN.limits, **keeps))
    told = [text_pools.sentence(found, plan), *(cell for row in text_pools.rows(found, plan) for cell, _ in row[1:])]
    said = re.findall(r"([\d,]+) (H200 SXM|GB200)\b", " ".join(told))
    assert all(int(count.replace(",", "")) <= {"H200 SXM": 512, "GB200": 256}[name] for count, name in said)
    for line, row in zip(found, text_pools.rows(found, plan), strict=True):
        for cell, _ in row[2:]:
            numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", cell)]
            assert all(number <= most[line.pool.name] for number in numbers), cell


def test_a_number_that_is_not_offered_is_said_with_how_many_are_missing() -> None:
    line = only_pool("64 rented H200 at $2.8/h")
    (choice,) = (line.in_time[0.5],)
    assert choice
    assert choice.accelerators > 64
    cell = text_pools.rows([line], PLAN)[0][2]
    assert f"{choice.accelerators:,}" not in cell[0]
    assert f"{choice.accelerators - 64:,} more" in cell[1]


def test_what_a_pool_costs_that_has_no_price_is_unknown_and_meets_no_budget() -> None:
    """No rent of this accelerator is known, as Compute budget says of it; without a budget that is no limit."""
    fleet = Fleet("H100 SXM", 512, pools=listed("512 MI355X"))
    for count in (512, 64):
        assert estimate(replace(plan_on(fleet.pools[0], PLAN), accelerators=float(count))).dollars.known is False
    limited, free = (lines(fleet, **keeps)[1] for keeps in ({"dollars": 6e6}, {}))
    assert limited.best is None
    assert limited.nearest.meets is None
    assert math.isnan(limited.affordable)
    assert free.best
    plan = replace(PLAN, limits=replace(PLAN.limits, dollars=6e6))
    assert text_pools.rows([limited], plan)[0][-1][0].startswith("?")
    assert text_pools.rows([free], PLAN)[0][-1][0].startswith("✓")
    assert "MI355X" in text_pools.sentence([limited], plan).partition("known")[2]
    late = lines(fleet, START + timedelta(days=2), dollars=6e6)[1]
    assert late.nearest.meets is False, "what is missed is missed, whatever is unknown"


def test_a_run_without_a_layout_is_not_called_one_that_fits() -> None:
    own = plan_from({"n": "30B", "tokens": "5T", "count": "512", "lay": "own", "tp": "7", "mfu": "40%"})
    (line,) = choose_pools((Run("", own),), Fleet("H100 SXM", 512, pools=(only("64 H200"),)), START, DUE, Prices())[1:]
    assert line.best is None
    assert not any(choice.meets for choice in line.choices)


OPEN_LATER = "burst: 512 H200, $2.6/h from 2027-02-01 to 2027-12-31"


@pytest.mark.parametrize("line", [FLEET.partition("\n")[0], OPEN_LATER, "512 B200 reserved $3/h"])
def test_a_choice_that_becomes_the_plan_comes_to_what_it_was_chosen_for(line: str) -> None:
    """Its days and dollars stay, its pool is paid for once, and what is left of the pool is a pool."""
    pool = only(line)
    texts = {"n": "30B", "tokens": "5T", "count": "64", "pools": line, "due": "2027-06-30"}
    reading = read(texts)
    found = compare_pools(reading, calendar_request(reading))
    assert found
    choice = found.lines[1].nearest
    now = read(texts | pool_texts(pool, "H100 SXM") | {"count": f"{choice.accelerators}", "cpool": pool.name.upper()})
    request = calendar_request(now)
    s = request.schedule()
    assert choice.schedule
    assert s.ends == choice.schedule.ends
    assert s.fleet.source == pool
    cluster, *rest = pool_costs(s, replace(Prices(), kwh=0.0806))
    assert cluster.total.mid == pytest.approx(choice.dollars.mid)
    assert sum(one.accelerators for one in s.pools) == pool.accelerators
    assert [one.pool.name for one in rest] == [pool.name] * (choice.accelerators < pool.usable)
    again = compare_pools(now, request)
    assert again
    assert [line.pool for line in again.lines] == [pool, *(one.pool for one in again.lines[1:])]
    assert again.lines[0].nearest.accelerators == choice.accelerators
    other = calendar_request(read(texts | {"cpool": pool.name}))
    assert other.fleet.source is None, "the plan is another than on this pool"
    assert other.fleet.others == (pool,)


@pytest.mark.parametrize("keeps", [{}, {"dollars": 9e6}, {"certainty": "P90"}, {"watts": 5e5, "dollars": 9e6}])
def test_a_choice_meets_all_where_its_checks_say_so(keeps: dict[str, Any]) -> None:
    """Deadline, money, power and memory kept free, all of them with its own dollars."""
    plan = replace(PLAN, limits=replace(PLAN.limits, **keeps))
    found = lines(**keeps)
    for line, row in zip(found, text_pools.rows(found, plan), strict=True):
        assert len(row) == len(text_pools.headings(plan))
        for choice in line.choices:
            assert {"deadline", "memory"} <= {check.id for check in choice.checks}
            known = [check.met for check in choice.checks]
            assert choice.meets == (False if False in known else None if None in known else True)
            assert choice.in_time(plan.limits.level) == choice.keeps("deadline")
        meets = [choice.meets for choice in line.choices]
        assert row[-1][0].startswith("✓" if True in meets else "?" if line.nearest.meets is None else "✗")


# ------------------------------------------------------------------------------------------ memory


def test_a_run_that_its_accelerators_do_not_hold_is_marked_with_by_how_much() -> None:
    texts = {"n": "30B", "count": "512", "runs": "2", "r2s": "131,072", "r2n": "128k", "r2a": "run 1", "lay": "own"}
    s = calendar_request(read(texts)).schedule()
    h = s.runs[1].answer.memory
    assert text_fit.fit(s.runs[0]) == (f"✓ {gib(s.runs[0].answer.memory.spare)}", "free")
    assert text_fit.fit(s.runs[1]) == (f"✗ {gib(h.total - h.usable)}", "too much")
    assert text_fit.unfit_count(s) == "**✗ 1 of 2 runs does not fit as laid out**"
    assert text_fit.unfit_count(s) in calendar_text.detail(s, ways_to_pay(s, Prices())[0], "")
    held = calendar_request(read({**texts, "tp": "8"})).schedule()
    assert text_fit.unfit_count(held) == ""
    refused = calendar_request(read({**texts, "tp": "7", "mfu": "40%"})).schedule()
    assert text_fit.fit(refused.runs[0])[0] == "✗ no layout"


def test_what_is_wrong_with_several_runs_is_said_once_with_their_names() -> None:
    long = {"n": "30B", "count": "512", "runs": "3", "r1n": "A", "r2n": "B", "r3n": "C", "lay": "own"}
    every_run = {f"r{k}s": "131,072" for k in (1, 2, 3)}
    said = [
        message
        for some in calendar_text.unfitting(calendar_request(read(long | every_run)).schedule())
        for message in some
    ]
    assert len(said) == 1
    assert said[0].startswith("“A”, “B”, and “C”: ")
    two = [
        message
        for some in calendar_text.unfitting(
            calendar_request(read(long | {"r2s": "131,072", "r3s": "65,536"})).schedule()
        )
        for message in some
    ]
    assert len(two) == len({message.partition(": ")[2] for message in two}) == 2
