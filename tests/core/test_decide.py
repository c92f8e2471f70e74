"""Tables of offers and runs, the matrix of both, links, and calendars of older links."""

from __future__ import annotations

import base64
import json
import math
import zlib
from datetime import date

import pytest

from core.fields import LINK_VERSION, VERSION
from core.limits import limit
from core.messages import Message
from core.planning.comparison.entry import entry_of
from core.planning.decide.decision import DECIDE_FORM, DecisionResult, decide, decision_results, packed_texts
from core.planning.decide.matrix import SIDES, Cell
from core.planning.decide.offers import OFFER_COLUMNS, Offer, read_offers, read_table, write_table
from core.planning.decide.record import PREFIX, RecordError, dropped_parts, is_packed, unpack
from core.planning.decide.runs import RUN_COLUMNS, read_runs
from core.planning.decide.schedule import Span, schedule
from core.planning.estimate import estimate
from core.planning.form.links import link_texts
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.planning.plan_limits import all_checks
from core.store.rows import read_plan

START = date(2027, 1, 15)
BASE = PLAN_FORM.parse({"n": "32B", "tokens": "8T", "gb": "4M tokens"})
PLAN = plan_of(BASE)

TEAM = {"n": "32B", "tokens": "8T", "gb": "4M tokens", "until": "150 days", "spend": "$12M", "mw": "3 MW"}
FOUR = ("256 own H100 $30,000 over 4 years", "512 rented H200 at $2.80", "256 GB200", "512 MI355X")


def texts(offers: tuple[str, ...], runs: tuple[dict[str, str], ...], **plan: str) -> dict[str, str]:
    """Texts of a decision: offers as lines, runs as rows."""
    rows = [{"accelerator": line} for line in offers]
    return {**plan, "offers": write_table(rows, OFFER_COLUMNS), "train": write_table(runs, RUN_COLUMNS)}


def decided(offers: tuple[str, ...], runs: tuple[dict[str, str], ...], **plan: str) -> DecisionResult:
    return decide(DECIDE_FORM.parse(texts(offers, runs, **plan)))


# ------------------------------------------------------------------------------------------ offers


def one_offer(**cells: str) -> Offer:
    table = read_offers([cells], PLAN, START)
    assert not table.problems
    return table.offers[0]


def test_offer_needs_accelerator_and_count_alone() -> None:
    offer = one_offer(accelerator="H200", count="512")
    assert (offer.name, offer.count, offer.unit, offer.contract) == ("H200 SXM", 512, 8, "rented")
    assert (offer.prices, offer.or_more, offer.uptime) == (None, False, 1.0)
    assert (offer.opens(START), offer.closes(START)) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("line", "count", "contract", "prices"),
    [
        ("256 own H100", 256, "owned", None),
        ("512 rented H200 at $2.80", 512, "rented", (2.8, 2.8)),
        ("burst: at least 64 H200, $2-3/h, from 2027-03-01 for 90 days", 64, "rented", (2.0, 3.0)),
        ("1,024 B200 reserved $3/h until 2027-12-31", 1024, "reserved", (3.0, 3.0)),
        ("64 spot H100 at $1.20, 0.05 interruptions/h", 64, "spot", (1.2, 1.2)),
    ],
)
@pytest.mark.parametrize("column", ["accelerator", "name", "count"])
def test_line_in_one_cell_fills_its_row(
    line: str, count: int, contract: str, prices: tuple[float, float] | None, column: str
) -> None:
    table = read_offers([{column: line}], PLAN, START)
    assert not table.problems
    (offer,) = table.offers
    assert (offer.count, offer.contract, offer.prices) == (count, contract, prices)
    assert read_offers(table.rows, PLAN, START).offers == table.offers


def test_offer_reads_every_column() -> None:
    cells = ("ours", "GB200", "256 or more", "144", "owned", "$40,000 over 4 years", "2027-02-01", "2027-12-31")
    row: dict[str, str] = dict(zip(OFFER_COLUMNS, (*cells, "0.6 MW", "73.05", ""), strict=True))
    offer = one_offer(**row)
    assert (offer.unit, offer.per_node, offer.or_more) == (144, None, True)
    assert (offer.capital, offer.years, offer.watts) == (40_000, 4, 600_000)
    assert offer.uptime == pytest.approx(0.9)
    assert (offer.opens(START), offer.closes(START)) == (17, 351)
    assert offer.parts() == (144,)
    assert one_offer(accelerator="H100", count="64", unit="4").per_node == 4
    assert read_table(write_table([row], OFFER_COLUMNS), OFFER_COLUMNS)[0] == {k: v for k, v in row.items() if v}


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("accelerator", "Z900"),
        ("count", "many"),
        ("count", "-3"),
        ("unit", "half"),
        ("contract", "stolen"),
        ("price", "cheap"),
        ("first", "soon"),
        ("last", "2020-01-01"),
        ("power", "strong"),
        ("maintenance", "5000"),
        ("interruptions", "often"),
    ],
)
def test_bad_cell_is_marked_and_other_rows_answer(column: str, cell: str) -> None:
    good = {"accelerator": "H200", "count": "512"}
    bad = {"accelerator": "H100", "count": "8", "first": "2026-01-01", column: cell}
    table = read_offers([bad, {}, good], PLAN, START)
    assert [(problem.row, problem.column) for problem in table.problems] == [(0, column)]
    assert [offer.row for offer in table.offers] == [2]


def test_missing_cells_and_spot_without_interruptions_are_marked() -> None:
    rows = [{"name": "100 unobtanium"}, {"name": "x"}, {"accelerator": "H100", "count": "8", "contract": "spot"}]
    marked = [(problem.row, problem.column) for problem in read_offers(rows, PLAN, START).problems]
    assert marked == [(0, "name"), (1, "accelerator"), (2, "interruptions")]
    own = plan_of(PLAN_FORM.parse({"spot": "0.1"}))
    assert read_offers(rows[2:], own, START).offers[0].interruptions == 0.1


def test_offers_beyond_the_limit_are_marked_and_names_are_unique() -> None:
    rows = [{"accelerator": "H100", "count": "8"}] * (limit("pools") + 1)
    table = read_offers(rows, PLAN, START)
    assert len({offer.name for offer in table.offers}) == len(table.offers) == limit("pools")
    assert [problem.row for problem in table.problems] == [limit("pools")]


# ------------------------------------------------------------------------------------------ runs


def test_first_row_is_the_plan_and_empty_cells_are_its() -> None:
    table = read_runs((), BASE, START)
    assert [dict(run.texts) for run in table.runs] == [{}]
    table = read_runs([{}, {"tokens": "1T", "deadline": "2027-01-24", "first": "2027-01-20"}], BASE, START)
    assert [run.name for run in table.runs] == ["32B", "32B 2"]
    assert (dict(table.runs[1].texts), table.runs[1].deadline, table.runs[1].first) == ({"tokens": "1T"}, 10, 5)


CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "intermediate_size": 512,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("model", "parameters", "active"),
    [
        ("32B", 32e9, 32e9),
        ("llama 3 70b", 70.6e9, 70.6e9),
        ("120B-A13B", 120e9, 13e9),
        (json.dumps(CONFIG), 3.14e6, 3.14e6),
    ],
)
def test_model_cell_is_a_name_a_count_or_a_config(model: str, parameters: float, active: float) -> None:
    table = read_runs([{"model": model}], BASE, START)
    assert not table.problems
    plan = plan_of(PLAN_FORM.parse({**BASE.texts, **table.runs[0].texts}))
    found = plan.catalog_model
    total, used = (found.parameters, found.active) if found else (plan.parameters, plan.parameters)
    assert total == pytest.approx(parameters, rel=0.03)
    assert used == pytest.approx(active, rel=0.03)
    assert "{" not in table.rows[0]["model"]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("model", "Lama 9"),
        ("model", '{"model_type": "unheard"}'),
        ("model", "13B-A120B"),
        ("tokens", "few"),
        ("seq", "long"),
        ("batch", "big"),
        ("after", "nobody"),
        ("first", "soon"),
        ("deadline", "90"),
        ("deadline", "2020-01-01"),
    ],
)
def test_bad_cell_of_a_run_is_marked_and_others_answer(column: str, cell: str) -> None:
    table = read_runs([{}, {column: cell}], BASE, START)
    assert [(problem.row, problem.column) for problem in table.problems] == [(1, column)]
    assert [run.row for run in table.runs] == [0]


def test_circle_is_named_in_each_of_its_runs() -> None:
    rows = [{"name": "a"}, {"name": "b", "after": "c"}, {"name": "c", "after": "2"}, {"name": "d", "after": "A"}]
    table = read_runs(rows, BASE, START)
    said = [problem.reason for problem in table.problems]
    assert [(problem.row, problem.column) for problem in table.problems] == [(1, "after"), (2, "after")]
    assert all(isinstance(reason, Message) and reason.id == "decision.circle" for reason in said)
    assert [list(reason.values["names"]) for reason in said if isinstance(reason, Message)] == [
        ["b", "c", "b"],
        ["c", "b", "c"],
    ]
    assert [(run.name, run.after) for run in table.runs] == [("a", None), ("d", 0)]


# ------------------------------------------------------------------------------------------ matrix


def same_as_compute_budget(cell: Cell) -> bool:
    """Whether a link with the cell's texts gives the same plan, answer, and limits."""
    link = {PLAN_FORM.key(k): (v,) for k, v in link_texts({**BASE.texts, **TEAM, **cell.texts}).items()}
    linked, about = PLAN_FORM.from_address({**link, VERSION: (str(LINK_VERSION),)})
    a, mine = estimate(plan_of(PLAN_FORM.parse(linked))), cell.answer
    assert mine
    names = [*type(a.middle).__slots__, "energy", "carbon", "dollars"]
    values = [(getattr(a, end), getattr(mine, end)) for end in ("low", "middle", "high")]
    limits = [check for check in all_checks(a) if check.id != "money"]
    own = [check for check in cell.checks if check.id != "money"]
    assert not about
    return (
        all(str(getattr(x, name, 0)) == str(getattr(y, name, 0)) for x, y in values for name in names)
        and (str(a.dollars), str(a.energy), str(a.carbon)) == (str(mine.dollars), str(mine.energy), str(mine.carbon))
        and (limits == own or cell.accelerators < cell.offer.count)
    )


def test_cells_equal_compute_budget_in_every_value() -> None:
    runs = ({}, {"model": "120B-A13B", "tokens": "12T", "batch": "8M tokens"})
    d = decided((*FOUR, "64 spot H100 at $1.20, 0.05 interruptions/h"), runs, **TEAM)
    cells = [cell for cell in d.matrix.every if cell.answer]
    assert len(cells) > 10
    assert all(map(same_as_compute_budget, cells))


def test_cost_of_a_cell_is_rent_or_capital_and_energy() -> None:
    d = decided(FOUR, ({},), **TEAM)
    owned, rented, cataloged, unpriced = (d.matrix.at(0, j) for j in range(4))
    assert owned.answer
    hours, energy = owned.answer.range_of("hours"), owned.answer.energy
    for side in SIDES:
        capital = 30_000 * getattr(hours, side) / (24 * 365.25 * 4)
        assert getattr(owned.cost, side) == pytest.approx(capital + getattr(energy, side) / 1000 * 0.0806)
    assert rented.answer
    assert rented.cost.mid == pytest.approx(2.8 * rented.answer.middle.hours)
    assert cataloged.cost.known
    assert not unpriced.cost.known
    assert [check.met for check in unpriced.checks if check.id == "money"] == [None]


def test_deadline_of_a_cell_is_what_offer_and_maintenance_leave() -> None:
    rows = [
        {"accelerator": "H200", "count": "512", "first": "2027-02-04", "last": "2027-04-24", "maintenance": "73.05"}
    ]
    d = decide(DECIDE_FORM.parse({**TEAM, "offers": write_table(rows, OFFER_COLUMNS)}))
    cell = d.matrix.at(0, 0)
    assert cell.answer
    assert cell.answer.plan.limits.days == pytest.approx(80 * 0.9)
    assert cell.calendar_days.mid == pytest.approx(cell.days.mid / 0.9)
    assert cell.mfu_needed == pytest.approx(cell.answer.middle.mfu * cell.days.mid / 72)


def test_offer_with_more_is_taken_until_it_is_in_time() -> None:
    few, more = (decided((line,), ({},), **TEAM) for line in ("64 H100 at $2", "at least 64 H100 at $2"))
    assert not few.matrix.parts
    assert few.answer.reasons
    assert more.answer.best
    assert more.answer.best.placements[0].cell.accelerators > 64
    assert more.answer.best.met


def test_bad_cells_leave_the_others_an_answer() -> None:
    d = decided(("512 rented H200 at $2.80", "nothing"), ({}, {"tokens": "x"}), **TEAM)
    assert len(d.matrix.cells) == 1
    assert d.answer.best
    assert (len(d.offers.problems), len(d.runs.problems)) == (2, 1)


# ------------------------------------------------------------------------------------------ schedule


def test_bill_adds_up_and_reservations_are_paid_whole() -> None:
    lines = ("512 reserved H200 at $2 from 2027-01-15 for 200 days",)
    d = decided(lines, ({}, {"tokens": "2T", "after": "1"}), **{**TEAM, "until": "190 days", "mw": ""})
    best = d.answer.best
    assert best
    amounts = {line.id: line.amount.mid for line in best.bill.lines}
    assert amounts["reserved"] == pytest.approx(512 * 200 * 24 * 2)
    used = sum(placement.cell.cost.mid for placement in best.placements)
    assert amounts["idle"] == pytest.approx(amounts["reserved"] - used)
    assert best.cost.mid == pytest.approx(amounts["reserved"]) == best.cost_at(0.5)
    first, second = best.schedule.runs
    assert second.begin == first.end
    assert [watts for *_, watts in best.schedule.power] == [first.cell.watts, second.cell.watts]


def test_running_job_moves_its_bar_and_those_behind_it() -> None:
    d = decided(FOUR[1:2], ({}, {"tokens": "2T", "after": "1"}), **{**TEAM, "until": ""})
    best = d.answer.best
    assert best
    late = best.ends.mid + 30
    moved = schedule(d.matrix, best.placements, {0: Span(2.0, best.ends.through(lambda end: end + 30))})
    assert (moved.runs[0].begin.mid, moved.runs[0].end.mid) == (2.0, late)
    assert moved.runs[1].begin.mid == late


# ------------------------------------------------------------------------------------------ record

THREE = ({}, {"model": "120B-A13B", "tokens": "12T"}, {"model": "8B", "tokens": "15T", "deadline": "40 days"})


def test_link_without_database_is_short_and_opens_to_the_same_decision() -> None:
    reading = DECIDE_FORM.parse({**texts(FOUR, THREE, **TEAM), "because": "It meets every limit. " * 5, "by": "Ada"})
    link = packed_texts(reading.texts)
    assert is_packed(link)
    assert len(link) <= 2_000
    opened = unpack(link)
    address = {DECIDE_FORM.key(k) if k != VERSION else k: (v,) for k, v in opened.items()}
    again, about = DECIDE_FORM.from_address(address)
    assert not about
    assert DECIDE_FORM.parse(again) == reading
    assert decide(DECIDE_FORM.parse(again)).matrix is decide(reading).matrix


@pytest.mark.parametrize(
    "payload",
    [
        b"not zlib",
        zlib.compress(b"[1]"),
        zlib.compress(b'{"n": 3}'),
        zlib.compress(b"\xff"),
        zlib.compress(b"[" * 90_000),
        zlib.compress(b'{"n":"' + b"0" * 200_000 + b'"}'),
        zlib.compress(b'{"n":"1"}')[:-6],
    ],
)
def test_damaged_link_is_refused(payload: bytes) -> None:
    with pytest.raises(RecordError):
        unpack(PREFIX + base64.urlsafe_b64encode(payload).decode())


@pytest.mark.parametrize("link", ["", "a1b2", PREFIX, f"{PREFIX}ä", f"{PREFIX}{'A' * 20_000}"])
def test_text_that_is_no_link_is_refused(link: str) -> None:
    with pytest.raises(RecordError):
        unpack(link)


def test_saved_results_are_those_of_the_chosen_option() -> None:
    reading = DECIDE_FORM.parse(texts(FOUR, THREE[:2], **TEAM))
    d = decide(reading)
    best, other = d.options[:2]
    assert decision_results(reading)["days"] == best.ends.mid
    chosen = DECIDE_FORM.parse({**reading.texts, "chosen": other.key})
    assert decide(chosen).chosen is other
    assert decision_results(chosen)["days"] == other.ends.mid


# ------------------------------------------------------------------------------------------ older calendars

CALENDAR = {
    "gpu": "H100 SXM",
    "count": "1,024",
    "start": "2027-01-15",
    "due": "2027-12-31",
    "spare": "4",
    "mhours": "8",
    "most": "$40M",
    "pools": "ours: 512 H200 owned, $30,000 over 4 years, 2 spare nodes\nburst: at least 256 B200, $3/h, for 90 days",
    "runs": "3",
    "r1n": "8B",
    "r1m": "8B",
    "r1a": "the start",
    "r2n": "70B",
    "r2t": "10T",
    "r2a": "run 1",
    "r2p": "burst",
    "r3s": "32,768",
    "r3d": "2027-02-01",
    "rprice": "",
    "held": "true",
}


def check_calendar(texts: dict[str, str]) -> None:
    d = decide(DECIDE_FORM.parse(texts))
    assert not (d.offers.problems)
    assert not (d.runs.problems)
    assert [(o.name, o.accelerator, o.count, o.contract, o.or_more) for o in d.offers.offers] == [
        ("H100 SXM", "H100 SXM", 992, "rented", False),
        ("ours", "H200 SXM", 496, "owned", False),
        ("burst", "B200", 256, "rented", True),
    ]
    assert {o.maintenance for o in d.offers.offers} == {8.0}
    assert d.offers.offers[2].closes(START) == 90
    assert [(run.name, dict(run.texts), run.after, run.first) for run in d.runs.runs] == [
        ("8B", {"model": "Typed parameters", "n": "8B"}, None, 0),
        ("70B", {"tokens": "10T"}, 0, 0),
        ("Run 3", {"seq": "32,768"}, None, 17),
    ]
    assert (d.matrix.limits.days, d.matrix.limits.dollars) == (351, 40e6)


def test_old_calendar_link_opens_with_the_same_runs_and_offers() -> None:
    address = {DECIDE_FORM.key(k): (v,) for k, v in CALENDAR.items()} | {VERSION: (str(LINK_VERSION),)}
    opened, about = DECIDE_FORM.from_address(address)
    (said,) = (said for said in about if isinstance(said, Message))
    assert [part.id.rpartition(".")[2] for part in said.values["parts"]] == ["accelerators", "held"]
    check_calendar(opened)


def test_calendar_link_of_version_3_keeps_its_lengths() -> None:
    address = {DECIDE_FORM.key(k): (v,) for k, v in {**CALENDAR, "r3s": "32k"}.items()} | {VERSION: ("3",)}
    d = decide(DECIDE_FORM.parse(DECIDE_FORM.from_address(address)[0]))
    assert d.runs.runs[2].texts["seq"] == "32,000"


def test_old_saved_calendar_opens_with_the_same_runs_and_offers() -> None:
    row = {"id": "a" * 16, "name": "Ours", "texts": json.dumps(CALENDAR), "kind": "calendar", "form_version": 5}
    plan = read_plan({**row, "note": "", "tags": "", "owner": "", "results": "{}", "knowledge": ""})
    assert (plan.entry.kind, plan.problems) == ("decision", ())
    assert plan.dropped == dropped_parts(CALENDAR)
    check_calendar(dict(plan.entry.texts))
    assert plan.entry == entry_of("Ours", plan.entry.texts, "decision")


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"pools": ""}, ["H100 SXM"]),
        ({"cpool": "ours"}, ["ours", "burst"]),
        ({"r1p": "ours", "r3p": "ours"}, ["ours", "burst"]),
        ({"price": "0", "capital": "35,000", "years": "5", "pools": ""}, ["H100 SXM"]),
    ],
)
def test_cluster_of_an_old_calendar_is_an_offer_unless_no_run_is_on_it(more: dict[str, str], names: list[str]) -> None:
    d = decide(DECIDE_FORM.parse({**CALENDAR, **more}))
    assert [offer.name for offer in d.offers.offers] == names
    if "price" in more:
        assert (d.offers.offers[0].contract, d.offers.offers[0].capital) == ("owned", 35_000)


def test_pool_that_cannot_be_read_is_marked() -> None:
    d = decide(DECIDE_FORM.parse({**CALENDAR, "pools": "256 of something\n64 H200"}))
    assert {problem.row for problem in d.offers.problems} == {1}
    assert [offer.row for offer in d.offers.offers] == [0, 2]
