"""Plans beside each other: how far apart they are, in which inputs, who leads, and what cannot be compared."""

from __future__ import annotations

import math
import re
from itertools import permutations, product

import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.hardware.accelerators import accelerators
from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import (
    QUANTITIES,
    QUANTITY,
    ComparedPlan,
    change,
    changed_results,
    compare_plan,
    compare_plans,
    differing_fields,
    distinct,
    effective_fields,
    lead,
    least,
    middles,
    result,
    short_names,
    sooner_probability,
    suggested,
    unique,
    with_saved_results,
)
from core.planning.comparison.entry import Entry, entry_of, examples
from core.planning.form.layout import KEPT_FIELDS, OWN_LAYOUT_FIELDS
from core.planning.form.plan_form import PLAN_FORM
from core.planning.form.training import OWN_FIELDS
from core.planning.plan import FINDS, OWN_POLICY
from core.planning.presets import MEMORY_PRESETS, PRESETS
from core.units import QuantityText
from core.views.common.markup import rich, safe_text
from core.views.common.palette import LIGHT
from core.views.comparison import text as comparison_text
from core.views.comparison.charts import bars
from core.views.plan import text as plan_text
from core.views.sweep import text as sweep_text
from core.wording import apart_as_shown, dollars, rent
from pages.common.figures import wire

PAIRS = list(product({**PRESETS, **MEMORY_PRESETS}.items(), accelerators()))
UNPRICED = next(device.name for device in accelerators() if math.isnan(device.price_low))
ODD = (
    {"gpu": UNPRICED},
    {"find": "tokens", "gpu": UNPRICED, "within": "$5M"},
    {"tp": "7", "count": "1,024"},
    {"price": "0"},
    {"mfu": "99%"},
    {"find": "accelerators", "within": "20 min"},
    {"n": "junk"},
)


def of(texts: dict[str, str], name: str = "plan") -> ComparedPlan:
    return compare_plan(entry_of(name, texts))


def told(plans: list[ComparedPlan], base: int) -> list[str]:
    """Everything that is said of a comparison."""
    differings = differing_fields([plan.reading for plan in plans])
    rows = [*comparison_text.result_rows(plans, base), *comparison_text.input_rows(differings)]
    assert all(len(cells) == len(plans) for _, cells in rows)
    return [
        *comparison_text.answer(plans, base),
        comparison_text.bars_alt(plans, base),
        *comparison_text.notices(plans),
        *(text for _, cells in rows for cell in cells for text in cell),
        *(comparison_text.in_short(plan) for plan in plans),
    ]


def check(plans: list[ComparedPlan]) -> None:
    """Every sentence and picture can be made of these plans, whichever is the baseline, and none says nan."""
    for base in range(len(plans)):
        for text in told(plans, base):
            assert not any(word in text.split() for word in ("nan", "inf", "None")), text
        go.Figure(wire(bars(plans, base, LIGHT)))


# ------------------------------------------------------------------------------------------ one plan and itself


@pytest.mark.parametrize("name", PRESETS)
def test_a_plan_differs_from_itself_in_nothing(name: str) -> None:
    plan, same = of(dict(PRESETS[name]), "a"), of(dict(PRESETS[name]), "b")
    assert differing_fields([plan.reading, same.reading]) == ()
    for quantity in QUANTITIES:
        a, b = middles((plan, same), quantity)
        assert math.isnan(a) or change(a, b) == 0
        assert least((a, b)) == ()
        assert lead((a, b), 0) is None


def test_numbers_written_otherwise_are_the_same_inputs() -> None:
    assert differing_fields([of({"count": "1,024"}).reading, of({"count": "1024"}).reading]) == ()


def test_fields_that_do_not_count_do_not_differ() -> None:
    """A typed size beside a model of the catalogue, types beside a named precision, a deadline nobody asked for."""
    idle = {"model": "Llama 3 70B", "n": "8B", "pace": "steady steps", "within": "10 days", "shape": "layers=2"}
    assert differing_fields([of({"model": "Llama 3 70B"}).reading, of(idle).reading]) == ()
    own = of({"prec": OWN_POLICY, "pw": "fp8"}).reading
    assert {item.id for item in OWN_FIELDS.values()} <= effective_fields(own)
    (row,) = [row for row in differing_fields([of({}).reading, own]) if row.field.id == "pw"]
    assert row.texts == (None, "fp8")


@pytest.mark.parametrize("find", FINDS)
def test_what_is_found_is_no_input(find: str) -> None:
    by_name = {"tokens": "tokens", "parameters": "n", "accelerators": "count", "MFU": "mfu", "time": "within"}
    assert by_name[find] not in effective_fields(of({"find": find}).reading)


def test_what_layouts_keep_to_is_an_input() -> None:
    plans = [of({}), of({"ktp": "8"})]
    assert [row.field.id for row in differing_fields([plan.reading for plan in plans])] == ["ktp"]


def test_degrees_of_a_layout_that_no_plan_has_are_no_rows() -> None:
    """A layout of one's own beside the fastest: what it is, and none of the twenty fields that do nothing."""
    plans = [of({}).reading, of({"lay": "own", "tp": "8"}).reading]
    for order in (plans, plans[::-1]):
        assert {row.field.id for row in differing_fields(order)} == {"lay", "zero", "mbs", "rc", "tp"}


def test_what_a_search_is_not_kept_from_is_no_difference_to_a_layout_of_ones_own() -> None:
    own = of({"lay": "own"})
    for searched, kept in (({}, []), ({"ktp": "8"}, ["ktp"])):
        for plans in ([own, of(searched)], [of(searched), own]):
            found = {row.field.id for row in differing_fields([plan.reading for plan in plans])}
            assert sorted(found & {field.id for field in KEPT_FIELDS}) == kept
            assert found & {field.id for field in OWN_LAYOUT_FIELDS}


FIELD_TEXTS = {field.id: field.options or (field.default, "2", "7", "") for field in PLAN_FORM.fields}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_change_of_a_field_that_does_not_count_changes_no_result(data: st.DataObject) -> None:
    texts = dict(PLAN_FORM.parse(data.draw(st.sampled_from(list(PRESETS.values())))).texts)
    plan = of(texts)
    silent = sorted({field.id for field in PLAN_FORM.fields} - effective_fields(plan.reading))
    name = data.draw(st.sampled_from(silent))
    other = of({**texts, name: data.draw(st.sampled_from(FIELD_TEXTS[name]))})
    for quantity in QUANTITIES:
        assert result(plan, quantity) == result(other, quantity) or math.isnan(result(plan, quantity).mid)


# ------------------------------------------------------------------------------------------ order


def test_the_order_of_plans_changes_only_their_order() -> None:
    plans = [*compare_plans(examples()), of({"gpu": UNPRICED}, "unpriced")]
    base = plans[1]
    rows = {cell for _, cells in comparison_text.result_rows(plans, 1) for cell in cells}
    for order in permutations(plans):
        at = order.index(base)
        assert comparison_text.answer(order, at) == comparison_text.answer(plans, 1)
        assert {cell for _, cells in comparison_text.result_rows(order, at) for cell in cells} == rows
        differings = differing_fields([plan.reading for plan in order])
        assert [row.field for row in differings] == [
            row.field for row in differing_fields([plan.reading for plan in plans])
        ]
        assert sorted(comparison_text.notices(order)) == sorted(comparison_text.notices(plans))


# ------------------------------------------------------------------------------------------ the net


@pytest.mark.sweep(2)
@pytest.mark.parametrize("part", range(6))
def test_every_preset_compares_on_every_accelerator(part: int) -> None:
    pairs = PAIRS[part::6]
    most = limit("compared_plans")
    for start in range(0, len(pairs), most):
        chosen = pairs[start : start + most]
        plans = [of({**preset, "gpu": device.name}, f"{name} on {device.name}") for (name, preset), device in chosen]
        told(plans, start % len(plans))
        if start % (7 * most) == 0:
            check(plans)


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_plans_keep_their_column_and_say_why(odd: dict[str, str]) -> None:
    plan = of(odd, "odd")
    check([plan])
    check([of({}, "usual"), plan])
    check([plan, of(odd, "again"), of({}, "usual")])
    ids = {said.id.rpartition(".")[2] for said in comparison_text.notices([plan])}
    if plan.answer is None:
        with pytest.raises(BudgetError, match=re.escape(plan.problem)):
            _ = plan.entry.answer
        assert ids == {"no_answer"}
        return
    assert ("price" in ids) == math.isnan(plan.answer.dollars.mid)
    assert ("layout" in ids) == (plan.memory is None)


def test_results_are_those_of_the_answer() -> None:
    for example in map(compare_plan, examples()):
        a = example.entry.answer
        assert result(example, QUANTITY["days"]) == a.range_of("days")
        assert result(example, QUANTITY["dollars"]) == a.dollars
        assert result(example, QUANTITY["watt_hours"]) == a.energy
        assert result(example, QUANTITY["memory_bytes"]).mid == a.memory.total


# ------------------------------------------------------------------------------------------ who leads

VALUES = st.one_of(st.just(math.nan), st.just(math.inf), st.floats(0.01, 1e6), st.sampled_from([1.0, 2.0, 3.0]))


@given(st.lists(VALUES, min_size=1, max_size=6), st.data())
def test_a_lead_is_over_the_baseline_or_else_over_the_next(values: list[float], data: st.DataObject) -> None:
    base = data.draw(st.integers(0, len(values) - 1))
    known = sorted(value for value in values if math.isfinite(value))
    results = lead(values, base)
    if results is None:
        assert len(known) < 2 or math.isclose(known[0], known[1], rel_tol=1e-3)
        return
    assert values[results.plan] == known[0]
    less = values[results.against] - values[results.plan]
    assert less > 0
    assert math.isclose(results.share * values[results.against], less)
    if results.plan != base and math.isfinite(values[base]):
        assert results.against == base
    else:
        assert values[results.against] == known[1]


def test_the_sentence_names_who_is_sooner_and_cheaper() -> None:
    slow, fast = of({"count": "512", "price": "2"}, "slow"), of({"count": "2,048", "price": "3"}, "fast")
    a, b = slow.entry.answer, fast.entry.answer
    for base in (0, 1):
        faster, cheaper = comparison_text.answer([slow, fast], base)
        assert (faster.values["plan"], faster.values["against"]) == ("fast", "slow")
        assert faster.values["days"] == apart_as_shown(a.middle.days, b.middle.days)
        assert (cheaper.values["plan"], cheaper.values["against"]) == ("slow", "fast")
        assert cheaper.values["dollars"] == apart_as_shown(b.dollars.mid, a.dollars.mid)


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_what_plans_are_apart_by_is_what_a_reader_finds_who_subtracts(a: float, b: float) -> None:
    values = [float(f"{value:.3g}") for value in (a, b)]
    assert apart_as_shown(a, b) == (abs(values[0] - values[1]) if values[0] != values[1] else abs(a - b))
    assert math.isclose(apart_as_shown(a, b), abs(a - b), abs_tol=0.01 * max(a, b))
    assert comparison_text.shown("days", apart_as_shown(235.7, 110.49)) == "126 days"


def test_bars_are_the_answers_with_their_ranges() -> None:
    plans = compare_plans(examples())
    days, rent = bars(plans, 0, LIGHT)["data"]
    for results, name in ((days, "days"), (rent, "dollars")):
        for i, plan in enumerate(plans):
            interval = result(plan, QUANTITY[name])
            scale = interval.mid / results["x"][i]
            assert math.isclose((results["x"][i] + results["error_x"]["array"][i]) * scale, interval.high)
            assert math.isclose((results["x"][i] - results["error_x"]["arrayminus"][i]) * scale, interval.low)


# ------------------------------------------------------------------------------------------ what was kept


def test_results_that_moved_are_both_said() -> None:
    entry = with_saved_results(entry_of("kept", {}))
    assert changed_results(compare_plan(entry)) == ()
    assert comparison_text.changed_text(compare_plan(entry)) == []
    days = entry.results["days"]
    for off, seen in ((1 + 5e-4, False), (1.05, True)):
        old = compare_plan(Entry(entry.name, entry.texts, {**entry.results, "days": days * off}))
        assert [row[0] for row in changed_results(old)] == ["days"] * seen
        changes = [(said.values["before"], said.values["now"]) for said in comparison_text.changed_text(old)]
        assert changes == [tuple(comparison_text.shown("days", value) for value in (days * off, days))] * seen
    assert with_saved_results(entry_of("none", {"find": "tokens", "gpu": UNPRICED, "within": "$5M"})).results == {}


# ------------------------------------------------------------------------------------------ names


def test_a_suggested_name_says_what_the_plan_is() -> None:
    assert suggested({}) == "70B · 15T · 1,024 × H100 SXM"
    assert suggested({"n": "70e9", "tokens": "15e12"}) == suggested({})
    first = entry_of(suggested({}), {})
    assert "40%" in suggested({"mfu": "40%"}, [first])
    assert suggested({}, [first]) != first.name
    for find in FINDS:
        assert suggested({"find": find}).count("H100 SXM") == 1


@given(st.lists(st.lists(st.sampled_from("ABC"), min_size=1, max_size=4).map(" · ".join), max_size=5))
def test_short_names_tell_apart_what_names_do(names: list[str]) -> None:
    short = short_names(names)
    assert all(name.endswith(text) and text for name, text in zip(names, short, strict=True))
    assert [[a == b for b in short] for a in short] == [[a == b for b in names] for a in names]


def test_short_names_leave_out_what_all_begin_with() -> None:
    assert short_names(["30B · 10T · 512 × B200", "30B · 10T · 64 × B200"]) == ("512 × B200", "64 × B200")
    assert short_names(["30B · 10T"]) == ("30B · 10T",)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(list({**PRESETS, **MEMORY_PRESETS}.values())), min_size=2, max_size=6))
def test_no_two_plans_have_one_name(presets: list[dict[str, str]]) -> None:
    taken: list[Entry] = []
    for preset in presets:
        taken.append(entry_of(suggested(preset, taken), preset))
    assert len({entry.name for entry in taken}) == len(taken)
    same = distinct(entry_of("n" * 200, preset) for preset in presets)
    assert len({entry.name for entry in same}) == len(same)
    assert all(len(entry.name) <= limit("plan_name") for entry in (*taken, *same))
    assert unique("free", [entry.name for entry in same]) == "free"


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=80))
def test_a_name_is_text_and_no_markup(name: str) -> None:
    plan = of({}, name)
    unseen = str.maketrans("", "", "\0\u2060\u2068\u2069")
    assert rich(comparison_text.plan_name(plan)).translate(unseen) == safe_text(plan.name).translate(unseen)
    figure = bars([plan, of({}, "other")], 0, LIGHT)
    ticks = figure["layout"]["yaxis"]["ticktext"]
    inner = ticks[0].removeprefix("<b>").removesuffix("</b><br>baseline").replace("<br>", "")
    assert "<" not in inner


def test_what_a_plan_costs_reads_alike_wherever_it_stands() -> None:
    plan = compare_plan(entry_of("Small", {"n": "8B", "tokens": "301B", "count": "64", "mfu": "41%", "price": "2.51"}))
    assert plan.answer
    a, money = plan.answer, rent(plan.answer.dollars.mid)
    assert money != dollars(a.dollars.mid)  # whole dollars, of which three digits leave some out
    assert isinstance(money, QuantityText)
    assert money.value == a.dollars.mid, "a table takes all of them away"
    results = (
        plan_text.headline(a),
        sweep_text.plan_text(a),
        *comparison_text.answer([plan], 0),
        comparison_text.bars_alt([plan], 0),
    )
    assert all(money in text for text in results), results


def test_a_lead_has_its_probability_and_unproven_accelerators_a_notice() -> None:
    near = [of({"model": "Llama 3 70B", "gpu": gpu}, gpu) for gpu in ("H100 SXM", "MI300X", "H200 SXM")]
    faster = comparison_text.answer(near, 0)[0]
    assert (faster.id, faster.values["chance"] < 0.95) == ("comparison.fastest_likely", True)
    assert [said.values["device"] for said in comparison_text.notices(near)] == ["MI300X"]
    chance = sooner_probability(near[0], near[2])
    assert chance + sooner_probability(near[2], near[0]) == pytest.approx(1)
    assert math.isnan(sooner_probability(near[0], of({"mfu": "40%"}, "typed")))
    apart = [of({"count": count}, count) for count in ("512", "2,048")]
    assert comparison_text.answer(apart, 0)[0].id == "comparison.fastest"


def test_idle_accelerators_are_shown_with_the_layout() -> None:
    odd, even = (
        compare_plan(entry_of("", {"n": n, "tokens": "4T", "count": count}))
        for n, count in (("70B", "257"), ("2B", "256"))
    )
    cells = dict(comparison_text.result_rows([odd, even], 1))[message("row.layout")]
    assert odd.memory
    assert cells[0][1] == message("comparison.cell.idle", idle=257.0 - int(odd.memory.layout.accelerators))
    assert cells[1][1] == ""


def test_a_leading_plan_that_does_not_fit_is_marked() -> None:
    two, small = (of({"n": n, "count": count, "mfu": "40%"}, n) for n, count in (("80B", "16"), ("70B", "8")))
    leads = comparison_text.answer([two, small], 1)[0].values["plan"]
    assert (leads.id, leads.values["doubt"].id) == ("comparison.doubted", "comparison.doubt.memory")


def test_equal_and_single_plans_have_answers_of_their_own() -> None:
    plan, same = of({}, "one"), of({}, "same")
    none = of({"find": "tokens", "gpu": UNPRICED, "within": "$5M"}, "none")
    ids = {
        (plan, same): ["comparison.tied.days", "comparison.tied.dollars"],
        (plan,): ["comparison.single"],
        (none, none): ["comparison.no_answers"],
        (none, plan): ["comparison.single"],
    }
    assert {plans: [said.id for said in comparison_text.answer(plans, 0)] for plans in ids} == ids
