"""The what-if sweep: each cell is what its plan comes to alone; lists, frontiers and the choice follow from that."""

from __future__ import annotations

import math
import random
from itertools import combinations, product

import numpy as np
import pytest

from core.budget.equations import BudgetError
from core.limits import limit
from core.messages import Message
from core.number_text import QuantityError
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import PLAN_FORM, changes_on
from core.planning.layout import resolved_plan
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import Plan, PlanLimits, Within
from core.planning.presets import PRESETS, SWEEP_PRESETS
from core.planning.sweep.axes import AXES, Axis, default_values, parse_values
from core.planning.sweep.form import SWEEP_FIELDS, X_VALUES, Y_VALUES
from core.planning.sweep.sweep import (
    RESULTS,
    Sweep,
    SweptAxis,
    plan_of_texts,
    recommend,
    sweep_plan,
    sweep_within,
)
from core.training.layout import LayoutError
from core.views.sweep import text as sweep_text
from core.views.sweep.charts import cell_text, edges, grid, shares_of, unit_of
from tests.every import every

PAIRS = list(combinations(AXES.values(), 2))
STARTS = {**PRESETS, **SWEEP_PRESETS}
LIMITS = Within(90.0)


def texts_of(preset: str) -> dict[str, str]:
    return dict(PLAN_FORM.parse({k: v for k, v in STARTS[preset].items() if k not in ("x", "y")}).texts)


def some(axis: Axis, preset: str, count: int, seed: int) -> SweptAxis:
    """A few of the values around a preset's own."""
    texts = texts_of(preset)
    values = default_values(axis, plan_of_texts(texts), texts)
    chosen = sorted(random.Random(seed).sample(range(len(values)), min(count, len(values))))
    return SweptAxis(axis, tuple(values[i] for i in chosen))


def of_story(preset: str) -> Sweep:
    by_name = SWEEP_PRESETS[preset]
    texts, plan = texts_of(preset), plan_of_texts(texts_of(preset))
    sides = [AXES[by_name[side]] for side in ("x", "y")]
    lists = [parse_values(axis, by_name[name]) for axis, name in zip(sides, (X_VALUES.id, Y_VALUES.id), strict=True)]
    axises = [
        SweptAxis(axis, values or default_values(axis, plan, texts)) for axis, values in zip(sides, lists, strict=True)
    ]
    return sweep_plan(texts, *axises, LIMITS)


def notices_of(sweep: Sweep) -> list[Message]:
    return [said for said in sweep_text.notices(sweep) if isinstance(said, Message)]


def same(value: float, alone: float) -> bool:
    return math.isclose(value, alone, rel_tol=1e-9) or (math.isnan(value) and math.isnan(alone))


def asked_alone(plan: Plan) -> tuple[PlanEstimate | None, MemoryEstimate | None, str]:
    """What a plan comes to, what its fullest accelerator holds, and why there is none of the one or the other."""
    try:
        a = estimate(plan)
    except BudgetError as problem:
        return None, None, str(problem)
    try:
        return a, memory_estimate(resolved_plan(plan, a.stored_parameters, a.middle.accelerators)), ""
    except LayoutError as problem:
        return a, None, str(problem)


def assert_cell(sweep: Sweep, cell: tuple[int, int], plan: Plan) -> None:
    """What the sweep says of a cell is what its plan comes to alone."""
    a, h, why = asked_alone(plan)
    assert sweep.reasons[cell[0]][cell[1]] == why
    if a is None:
        assert all(math.isnan(float(sweep[result.quantity][cell])) for result in RESULTS.values())
        assert not sweep.fits[cell]
        assert not sweep.meets_limits[cell]
        return
    m = a.middle
    alone = (
        m.days,
        a.dollars.mid,
        a.energy.mid,
        a.carbon.mid,
        m.hours,
        m.mfu,
        m.tokens_per_second,
        m.goodput,
    )
    named = ("days", "dollars", "watt_hours", "kg_co2", "hours", "mfu", "tokens_per_second", "goodput")
    for name, value in zip(named, alone, strict=True):
        assert same(float(sweep[name][cell]), value), (name, cell)
    assert sweep.impossible[cell] == a.impossible
    holds = a.dollars.mid <= sweep.within.dollars if sweep.within.in_money else m.days <= sweep.within.days
    assert sweep.meets_limits[cell] == (holds and not a.impossible)
    assert same(float(sweep["memory"][cell]), h.total if h else math.nan)
    assert same(float(sweep["usable"][cell]), plan.device.memory_bytes)
    assert sweep.fits[cell] == (h is not None and h.fits == "fits")


def assert_cells(sweep: Sweep) -> None:
    own = plan_of_texts(sweep.base)
    for i, j in product(*map(range, sweep.shape)):
        sets = {**sweep.x.axis.changes(sweep.x.texts[j], own), **sweep.y.axis.changes(sweep.y.texts[i], own)}
        sets = changes_on(own.accelerator, sets)
        assert sweep.cell_overrides(i, j) == sets
        plan = plan_of_texts({**sweep.base, **sets})
        assert sweep.plans[i][j] == plan
        assert_cell(sweep, (i, j), plan)


# ------------------------------------------------------------------------------------------ each cell as if alone


@pytest.mark.sweep(3)
@pytest.mark.parametrize("preset", SWEEP_PRESETS)
def test_a_preset_says_of_each_cell_what_its_plan_comes_to(preset: str) -> None:
    assert_cells(of_story(preset))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("part", range(8))
def test_every_pair_of_axes_says_of_each_cell_what_its_plan_comes_to(part: int) -> None:
    for n, (x, y) in list(enumerate(PAIRS))[part::8]:
        preset = list(STARTS)[n % len(STARTS)]
        sweep = sweep_plan(texts_of(preset), some(x, preset, 2, n), some(y, preset, 2, n + 1), LIMITS)
        assert_cells(sweep)
        picked = recommend(sweep)
        assert sweep_text.answer(sweep, picked)
        for result in RESULTS.values():
            drawn = grid(sweep, result, picked)
            assert [len(row) for row in drawn["rows"]] == [sweep.shape[1]] * sweep.shape[0]
            assert all(cell["text"] and cell["label"] for row in drawn["rows"] for cell in row)


def test_money_as_the_limit() -> None:
    sweep = of_story("H100, H200 or B200, and how many")
    other = sweep_plan(sweep.base, sweep.x, sweep.y, Within(math.nan, 10e6))
    assert_cells(other)
    assert np.array_equal(other.meets_limits, other["dollars"] <= 10e6)


def test_plans_without_an_answer_keep_their_reason() -> None:
    texts = {**texts_of("70B: accelerators × MFU"), "rate1k": "MTBF 5 min", "back": "1 h", "pace": "steady steps"}
    sweep = sweep_plan(
        texts, SweptAxis(AXES["accelerators"], ("64", "1,000,000")), SweptAxis(AXES["MFU"], ("30%", "40%")), LIMITS
    )
    assert_cells(sweep)
    assert all(why for row in sweep.reasons for why in row)
    assert recommend(sweep) is None
    (notice,) = (said for said in notices_of(sweep) if said.id == "sweep.notice.no_result")
    assert (notice.values["cells"], notice.values["all"]) == (4, 4)


# ------------------------------------------------------------------------------------------ what must hold of all


@pytest.mark.sweep(3)
@pytest.mark.parametrize("preset", PRESETS)
def test_swapping_the_sides_transposes(preset: str) -> None:
    x, y = some(AXES["accelerators"], preset, 3, 1), some(AXES["sequence length"], preset, 3, 2)
    sweep, other = sweep_plan(texts_of(preset), x, y, LIMITS), sweep_plan(texts_of(preset), y, x, LIMITS)
    for result in RESULTS.values():
        np.testing.assert_array_equal(sweep[result.quantity], other[result.quantity].T)
    np.testing.assert_array_equal(sweep.satisfies, other.satisfies.T)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("preset", PRESETS)
def test_more_accelerators_are_quicker_and_more_tokens_take_longer(preset: str) -> None:
    texts = texts_of(preset)
    count, tokens = (default_values(AXES[name], plan_of_texts(texts), texts) for name in ("accelerators", "tokens"))
    sweep = sweep_plan(texts, SweptAxis(AXES["accelerators"], count), SweptAxis(AXES["tokens"], tokens), LIMITS)
    known = ~np.isnan(sweep["days"][0])  # a layout of one's own needs as many as it names
    assert known.sum() >= len(count) - 2
    assert np.all(np.diff(sweep["days"][:, known], axis=1) < 0)
    assert np.all(np.diff(sweep["days"][:, known], axis=0) > 0)
    assert np.all(np.diff(sweep["hours"][:, known], axis=0) > 0)
    assert np.array_equal(sweep.meets_limits, (sweep["days"] <= 90) & ~sweep.impossible)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("preset", STARTS)
def test_the_plan_is_a_cell_of_every_axis_around_it(preset: str) -> None:
    for axis in AXES.values():
        texts = texts_of(preset)
        texts |= {name: text for name, text in axis.overrides("").items() if name == "lay"}
        plan = plan_of_texts(texts)
        values = default_values(axis, plan, texts)
        assert axis.plan_text(plan, texts) in values
        assert 2 <= len(set(values)) == len(values) <= limit("sweep_values")
        for text in values:
            axis.field.parse(text)
        other = AXES["price" if axis.name != "price" else "MFU"]
        sweep = sweep_plan(texts, SweptAxis(axis, values), SweptAxis(other, (other.plan_text(plan, texts),)), LIMITS)
        assert sweep.plan_cell == (0, values.index(axis.plan_text(plan, texts)))


@pytest.mark.parametrize("mfu", ["published", "40%"])
def test_a_sweep_over_parameters_passes_through_the_plan_of_every_model(mfu: str) -> None:
    """A mixture among them: the cell of its active parameters is the model itself, and has its days."""
    axis, other = AXES["parameters"], AXES["MFU"]
    for model in ("DeepSeek-V3", "Mixtral 8x7B", "Llama 3.1 70B"):
        texts = dict(PLAN_FORM.parse({"model": model, "mfu": mfu}).texts)
        plan = plan_of_texts(texts)
        up = SweptAxis(axis, default_values(axis, plan, texts))
        sweep = sweep_plan(texts, SweptAxis(other, (mfu,)), up, LIMITS)
        assert sweep.plan_cell is not None
        assert sweep["days"][sweep.plan_cell] == pytest.approx(estimate(plan).middle.days)
        assert sweep.cell_overrides(*sweep.plan_cell) == {"mfu": mfu}
        (notice,) = notices_of(sweep)
        assert (notice.id, notice.values["model"]) == ("sweep.notice.sizes", model)
        elsewhere = sweep_plan(texts, sweep.x, SweptAxis(axis, ("1B", "2B")), LIMITS)
        assert "sweep.notice.not_in" in {said.id for said in notices_of(elsewhere)}


def test_a_sweep_of_a_layout_says_that_the_plan_has_another() -> None:
    texts = dict(PLAN_FORM.parse({"model": "Llama 3.1 70B"}).texts)
    sides = [SweptAxis(AXES[name], ("1", "2")) for name in ("tensor parallel", "pipeline parallel")]
    sweep = sweep_plan(texts, *sides, LIMITS)
    assert sweep.plan_cell is None
    assert "sweep.notice.not_in_layout" in {said.id for said in notices_of(sweep)}
    free = sweep_plan(texts, SweptAxis(sides[0].axis, ("1", "3")), sides[1], Within(math.inf))
    assert any(why for row in free.reasons for why in row)
    assert [line["kind"] for line in grid(free, RESULTS["days"], None)["lines"]] == ["fits"]
    assert notices_of(sweep_plan(texts | {"lay": "own"}, *sides, LIMITS)) == []


def test_the_limit_is_what_was_asked_for_else_the_plans_deadline() -> None:
    assert sweep_within(Within(30), Plan(limits=PlanLimits(60))).days == 30
    assert sweep_within(None, Plan(limits=PlanLimits(60))).days == 60
    assert sweep_within(None, Plan(within=Within(60))).days == math.inf


def test_without_a_limit_none_is_held_against_the_plan() -> None:
    limited = of_story("70B: accelerators × MFU")
    free = sweep_plan(limited.base, limited.x, limited.y, Within(math.inf))
    assert not free.limited
    assert recommend(free) is None
    assert [said.id for said in sweep_text.answer(free, None)] == ["sweep.answer.fit", "sweep.answer.fastest"]
    assert sweep_text.hint(free).id == "sweep.hint"
    assert {sweep_text.verdict(free, cell).id for cell in np.ndindex(free.shape)} == {"sweep.verdict.fits"}
    assert sweep_plan(limited.base | {"spend": "$9M"}, limited.x, limited.y, Within(math.inf)).limited


# ------------------------------------------------------------------------------------------ typed lists


@every(
    ("name", "text", "values"),
    [
        ("accelerators", "512, 1024, 2048", ("512", "1024", "2048")),
        ("accelerators", "512,1024,2048", ("512", "1024", "2048")),
        ("accelerators", "2,048, 1,024", ("1,024", "2,048")),
        ("accelerators", "1,024; 512", ("512", "1,024")),
        ("accelerators", "512, 512, 512", ("512",)),
        ("accelerators", "", ()),
        ("MFU", "45%, published, 0.3", ("published", "0.3", "45%")),
        ("accelerator kind", "h100 sxm, B200", ("H100 SXM", "B200")),
        ("global batch", "2M tokens, 512, 1M tokens", ("1M tokens", "2M tokens", "512")),
    ],
)
def test_typed_lists(name: str, text: str, values: tuple[str, ...]) -> None:
    assert parse_values(AXES[name], text) == values


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("accelerators", "1, two, 3", "two"),
        ("accelerators", "0, 1", "0"),
        ("MFU", "30%, 140%", "140%"),
        ("accelerator kind", "H100 SXM, H1000", "H1000"),
        ("micro-batch", ", ".join(str(n) for n in range(1, 18)), "17"),
        ("tokens", "<b>1</b>; 2", "<b>1</b>"),
    ],
)
def test_bad_lists_are_refused_by_name(name: str, text: str, named: str) -> None:
    with pytest.raises(QuantityError, match=named):
        parse_values(AXES[name], text)


def test_a_long_list_is_refused_by_its_field() -> None:
    most = limit("sweep_chars")
    for field in (X_VALUES, Y_VALUES):
        assert field.parse("1" * most)
        with pytest.raises(QuantityError):
            field.parse("1" * (most + 1))


@every("preset", STARTS)
def test_what_a_click_writes_reads_as_the_same_values(preset: str) -> None:
    texts = texts_of(preset)
    for axis in AXES.values():
        values = default_values(axis, plan_of_texts(texts), texts)
        written = SweptAxis(axis, values).written
        assert len(written) <= limit("sweep_chars")
        assert parse_values(axis, written) == tuple(text for text in values if text)


def test_every_field_that_is_swept_is_one_of_a_plan_and_none_is_of_the_board() -> None:
    ids = [axis.id for axis in AXES.values()]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {field.id for field in PLAN_FORM.fields}
    assert not {field.id for field in SWEEP_FIELDS} & {field.id for field in PLAN_FORM.fields}


# ------------------------------------------------------------------------------------------ what is said and drawn


def test_the_fewest_accelerators_that_are_enough() -> None:
    sweep = of_story("70B: accelerators × MFU")
    picked = recommend(sweep)
    assert picked is not None
    row, column = picked.cell
    assert sweep.satisfies[picked.cell]
    assert not sweep.satisfies[:, :column].any()
    assert not sweep.satisfies[:row, column].any()
    assert (sweep.x.texts[column], sweep.y.texts[row]) == ("2,048", "40%")
    said, smaller = sweep_text.answer(sweep, picked)
    assert (said.id, said.values["result"].values["days"]) == ("sweep.answer.fewest", sweep["days"][picked.cell])
    assert (smaller.values["fewer"], smaller.values["last"]) == ("1,024", "60%")


def test_within_a_sum_of_money_the_soonest_is_picked() -> None:
    """Any number of accelerators costs the same, so the fewest would take years."""
    by_days = of_story("70B: accelerators × MFU")
    sweep = sweep_plan(by_days.base, by_days.x, by_days.y, Within(math.nan, 15e6))
    picked = recommend(sweep)
    assert picked is not None
    assert picked.by == "soonest"
    lowest = int(np.argwhere(sweep.satisfies)[:, 0].min())
    assert picked.cell[0] == lowest
    assert sweep["days"][picked.cell] == sweep["days"][lowest][sweep.satisfies[lowest]].min()
    assert [said.id for said in sweep_text.answer(sweep, picked)] == ["sweep.answer.soonest"]


@pytest.mark.parametrize("preset", SWEEP_PRESETS)
def test_what_is_picked_is_enough_and_nothing_that_is_asks_for_less_money_where_kinds_are_swept(preset: str) -> None:
    sweep = of_story(preset)
    picked = recommend(sweep)
    assert picked is not None
    assert sweep.satisfies[picked.cell]
    if picked.by == "cheapest":
        assert sweep["dollars"][picked.cell] <= sweep["dollars"][sweep.satisfies].min() * (1 + 1e-8)
    if picked.by == "roomiest":
        assert sweep["memory"][picked.cell] <= sweep["memory"][sweep.satisfies].min() * (1 + 1e-8)


@every("seed", range(20))
def test_a_frontier_parts_what_holds_from_what_does_not(seed: int) -> None:
    holds = np.random.default_rng(seed).random((5, 7)) < 0.5
    result = set(edges(holds))
    for i, j in product(range(5), range(6)):
        assert ((j + 1, i, j + 1, i + 1) in result) == (holds[i, j] != holds[i, j + 1])
    for i, j in product(range(4), range(7)):
        assert ((j, i + 1, j + 1, i + 1) in result) == (holds[i, j] != holds[i + 1, j])


def test_names_of_frontiers_say_what_holds_where_they_stand() -> None:
    sweep = of_story("Tokens × size in 90 days")
    for line in grid(sweep, RESULTS["days"], recommend(sweep))["lines"]:
        holds = {"fits": sweep.fits, "within": sweep.meets_limits}[line["kind"]][::-1]
        rim = {"top": holds[0], "right": holds[:, -1], "bottom": holds[-1], "left": holds[:, 0]}[line["side"]]
        there = bool(rim[line["at"] - 1 if line["before"] else line["at"]])
        ids = {"fits": ("sweep.fits", "sweep.does_not_fit"), "within": ("sweep.within.one", "sweep.beyond.one")}
        assert line["name"].id == ids[line["kind"]][not there]


@every("name", RESULTS)
def test_cells_are_shaded_in_order_and_written_as_they_are(name: str) -> None:
    sweep = of_story("8B: 8k to 128k × micro-batch")
    values = sweep[RESULTS[name].quantity]
    shares = shares_of(values)
    order = np.argsort(values, axis=None, kind="stable")
    assert np.all(np.diff(shares.ravel()[order]) >= 0)
    assert shares.min() == 0
    assert shares.max() == (1 if values.min() < values.max() else 0)
    _, size = unit_of(values, RESULTS[name].kind)
    for value in values.ravel():
        text = cell_text(float(value) / size)
        read = float(text.rstrip("k").replace(",", "")) * (1000 if text.endswith("k") else 1) * size
        assert read == pytest.approx(value, rel=6e-3)
        assert len(text) <= 5


def test_marks_of_the_grid_are_those_of_the_board() -> None:
    sweep = of_story("8B: 8k to 128k × micro-batch")
    drawn = grid(sweep, RESULTS["memory"], recommend(sweep))
    for row in drawn["rows"]:
        for cell in row:
            at = sweep.cell_of(cell["id"])
            assert at is not None
            assert cell["stuck"] == (not sweep.fits[at])
            assert cell["text"].startswith("✕") == cell["stuck"]
            assert cell["here"] == (at == sweep.plan_cell)
    assert drawn["rows"][0][0]["id"] == f"{sweep.shape[0] - 1},0"


@pytest.mark.parametrize("name", ["", "1", "1,2,3", "-1,0", "0,99", "a,b", "٣,1", "9" * 30 + ",0"])
def test_what_names_no_cell_is_none(name: str) -> None:
    assert of_story("8B: 8k to 128k × micro-batch").cell_of(name) is None


def test_where_nothing_is_enough_the_nearest_is_named() -> None:
    sweep = of_story("70B: accelerators × MFU")
    sweep = sweep_plan(sweep.base, SweptAxis(sweep.x.axis, sweep.x.texts[:3]), sweep.y, LIMITS)
    assert recommend(sweep) is None
    said, nearest = sweep_text.answer(sweep, None)
    assert (said.id, nearest.id) == ("sweep.answer.nothing_meets", "sweep.answer.nearest")
    assert nearest.values["result"].values["days"] == sweep["days"].min()


def test_the_plan_itself_has_its_own_answer() -> None:
    a = estimate(plan_of_texts(texts_of("70B: accelerators × MFU")))
    said = sweep_text.plan_text(a)
    assert (said.values["result"].values["days"], said.values["mfu"]) == (a.middle.days, a.middle.mfu)
