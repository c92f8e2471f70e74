"""The sentences of a plan say the numbers of the formulas, and nothing they cannot know."""

from __future__ import annotations

import re

import numpy as np
import pytest

from core.hardware.accelerators import Accelerator, accelerators, find
from core.messages import Message
from core.models.catalog import catalog, model_named
from core.models.flops import flops_per_token, rule_gap
from core.models.spec_text import EXAMPLE
from core.planning.estimate import PlanEstimate, estimate, timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import memory_estimate, under_each_optimizer
from core.planning.plan import OWN_LAYOUT, OWN_SHAPE
from core.planning.presets import PRESETS
from core.runs.published import Comparison, compare, full_runs
from core.runs.run_efficiency import published_shares
from core.runs.scores import predictions, score
from core.views.common.palette import LIGHT
from core.views.flops import text as flops_text
from core.views.flops.charts import flops_by_component
from core.views.hardware import text as hardware_text
from core.views.plan import text as plan_text
from core.views.plan import text_memory
from core.views.plan.memory_rows import memory_rows
from core.views.report.rows import MAIN, main_rows, plan_rows
from core.views.runs import text as runs_text
from core.views.runs import text_goodput as words_whole
from core.views.search import text as search_text
from core.views.training.charts_device import state_bars
from core.views.training.text_precision import unsharded
from core.wording import plain
from tests.every import every

H100 = find("H100 SXM")


def comparison(name: str, mfu: float = 0.41) -> Comparison:
    return compare(full_runs(name)[0], model_named(name), mfu, 8192)


def planned(**texts: str) -> PlanEstimate:
    return estimate(plan_from(texts))


@pytest.mark.parametrize(
    ("find_", "within", "id", "values"),
    [
        ("time", "90 days", "time_cost", {"days": 179.9, "accelerators": 1024, "dollars": 14.4e6}),
        ("tokens", "180 days", "tokens_cost", {"tokens": 15e12, "limit": "180 days"}),
        ("tokens", "$5M", "tokens_budget", {"days": 62.6, "limit": "$5M", "price": 3.25}),
        ("parameters", "180 days", "parameters_cost", {"parameters": 70e9, "tokens": 15e12}),
        ("accelerators", "180 days", "accelerators_cost", {"accelerators": 1024, "days": 179.9}),
        ("MFU", "180 days", "mfu_cost", {"mfu": 0.4}),
    ],
)
def test_answer_of_every_question(find_: str, within: str, id: str, values: dict[str, object]) -> None:
    """At 30 to 50% the middle takes 179.9 days; half a percent more where the limit is the round 180."""
    a = planned(find=find_, within=within, mfu="30-50%")
    headline = plan_text.headline(a)
    assert headline.id == f"plan.headline.{id}"
    for name, value in values.items():
        made = headline.values[name]
        assert made == (value if isinstance(value, str) else pytest.approx(value, rel=6e-3)), name
    published = planned(find=find_, within="300 days")
    assert ("P10" in plan_text.range_text(published)) == (find_ != "MFU")
    exact = planned(find=find_, within="300 days", mfu="40%", price="2")
    assert plan_text.range_text(exact) == ""


def test_accelerators_come_in_whole_nodes() -> None:
    a = planned(find="accelerators", within="60 days", n="30B", tokens="6T", mfu="40%")
    again = planned(n="30B", tokens="6T", mfu="40%", count=str(a.count))
    assert a.count % 8 == 0
    assert a.middle == again.middle
    assert plan_text.headline(a).values["days"] == again.middle.days
    fewer = planned(n="30B", tokens="6T", mfu="40%", count=str(a.count - 8))
    assert again.middle.days <= 60 < fewer.middle.days
    ranged = planned(find="accelerators", within="60 days", n="30B", tokens="6T")
    typed = planned(n="30B", tokens="6T", count=str(ranged.count))
    assert len({plan_text.headline(one).values["dollars"] for one in (ranged, typed)}) == 1
    assert plan_text.range_text(ranged) == plan_text.range_text(typed), "of the number that was found, as days are"
    few = planned(find="accelerators", within="60 days", n="1B", tokens="100B", mfu="40%")
    assert 1 <= few.count < 8


def test_a_shape_of_ones_own_is_called_the_same_everywhere() -> None:
    shape = f"{EXAMPLE} experts.count=64 experts.per_token=4 experts.width=2560"
    plan = plan_from({"model": OWN_SHAPE, "shape": shape, "tokens": "3T", "count": "256"})
    assert plan.catalog_model
    name = f"{plan.catalog_model.name} ({plan.catalog_model.sized})"
    assert " active of " in name
    for said in (
        plan_text.headline(estimate(plan)),
        text_memory.sentence(memory_estimate(plan)),
        search_text.headline(timed_estimate(plan)),
    ):
        assert name.lower() in plain(said).lower()


@pytest.mark.parametrize(
    ("texts", "id"),
    [
        ({"mfu": "85%", "pace": "steady steps"}, "impossible"),
        ({"mfu": "85%"}, "impossible"),
        ({"mfu": "40%", "rate1k": "400"}, "impossible_failures"),
        ({"mfu": "100%", "dtype": "int8", "rate1k": "9"}, "impossible"),
        ({"find": "MFU", "within": "80 days"}, "impossible"),
    ],
)
def test_what_is_impossible_says_why(texts: dict[str, str], id: str) -> None:
    a = planned(**texts)
    said = plan_text.impossible(a)
    assert isinstance(said, Message)
    assert said.id == f"plan.notice.{id}"
    assert said.values.get("ceiling", a.ceiling) == a.ceiling
    assert plan_text.headline(a).id == "plan.headline.impossible"
    assert plan_text.impossible(planned(mfu="40%")) == ""


def test_table_and_sentence_show_the_same_figures() -> None:
    a = planned()
    rows = {row.key: row for row in plan_rows(a)}
    headline, energy = plan_text.headline(a), words_whole.energy_text(a)
    assert rows["days"].value == 86400 * headline.values["days"]
    assert rows["dollars"].value == headline.values["dollars"]
    assert (rows["watt_hours"].value, rows["carbon"].value) == (energy.values["energy"], energy.values["carbon"])
    result = planned(find="accelerators", mfu="35-45%")
    count = next(row for row in plan_rows(result) if row.key == "accelerators")
    assert [count.pessimistic, count.value, count.optimistic] == [end.accelerators for end in result.ends]
    assert count.value == plan_text.headline(result).values["accelerators"]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", PRESETS)
def test_rows_have_keys_of_their_own_and_the_main_ones_are_among_them(name: str) -> None:
    a = estimate(plan_from(PRESETS[name]))
    keys = [row.key for row in plan_rows(a)]
    assert len(keys) == len(set(keys))
    assert [row.key for row in main_rows(a)] == list(MAIN)


def test_the_405b_beside_its_published_figures() -> None:
    rows = [row[1:] for row in runs_text.published_rows(comparison("Llama 3.1 405B"), 16_384, 0.41)]
    assert rows == [
        ("3.799 × 10²⁵ FLOP", "3.8 × 10²⁵ FLOP", "−0.032%"),
        ("26.01M h", "30.84M h", "−15.7%"),
        ("66.15 days", "78.43 days", ""),
        ("41%", "38–43%", ""),
        ("41%", "34.6%", "+18.6%"),
    ]


@every("model", catalog(), ids=lambda m: m.name)
def test_every_model_can_be_talked_about(model: object) -> None:
    for attention in ("causal", "full"):
        total = flops_text.gap_text(model, 4096, attention).values["total"]  # type: ignore[arg-type]
        gap = rule_gap(model.spec, 4096, attention)  # type: ignore[attr-defined]
        assert total * gap.rule == pytest.approx(gap.square + gap.again - gap.lookup - gap.vectors, rel=1e-6)
        assert 1 <= len(flops_text.gap_rows(model, 4096, attention)) <= 4  # type: ignore[arg-type]
    headings, rows = flops_text.parameter_rows(model)  # type: ignore[arg-type]
    assert all(len(row) == len(headings) for row in rows)
    assert flops_text.model_origin(model).values["parameters"] == model.parameters  # type: ignore[arg-type,attr-defined]


@pytest.mark.parametrize("find_", ["tokens", "parameters", "MFU"])
def test_money_names_the_price_at_which_it_is_spent(find_: str) -> None:
    a = planned(find=find_, within="$30M", price="3-3.50", mfu="30%")
    values = plan_text.headline(a).values
    assert (values["limit"], values["price"]) == ("$30M", 3.25)
    assert a.middle.hours * 3.25 == pytest.approx(30e6, rel=2e-3)
    assert plan_text.range_text(a).id == "plan.range.price"  # type: ignore[union-attr]


@every("device", accelerators(), ids=lambda d: d.name)
def test_every_device_has_a_datasheet(device: Accelerator) -> None:
    assert len(hardware_text.peak_table(device)[1]) == len(device.peaks)
    said = [*hardware_text.datasheet(device), *hardware_text.peak_origin(device, device.usable("bf16"))]
    assert not [one for one in said if re.search(r"nan", one)]
    (power,) = [one.values["power"] for one in said if one.id == "hardware.power"]
    assert " W" in power or power == "unknown"


@every("device", accelerators(), ids=lambda d: d.name)
def test_remarks_on_a_device_are_sentences(device: Accelerator) -> None:
    """No note to oneself: whole sentences, no arrows, no shorthand, numbers as they are written everywhere."""
    for text in filter(None, (device.traps, device.price_source, device.tdp_note)):
        assert not re.search(r"TRAP|->|!=|~|\bBW\b|\bTDP\b| vs |\bincl\b|\bPF\b|\d-GPU|/ml-eng", text), text
    if device.traps:
        assert device.traps.endswith(".")
        assert not re.search(r"(?<![-\d:v.])\d{5,}", device.traps), device.traps


@pytest.mark.parametrize(("name", "unit"), [("Llama 3.1 405B", "GFLOP"), ("GPT-2 124M", "MFLOP")])
def test_picture_of_components(name: str, unit: str) -> None:
    counted = flops_per_token(model_named(name).spec, 1024)
    forward, backward = flops_by_component(counted, LIGHT)["data"]
    assert len(forward["y"]) == len(set(forward["y"])) == len(counted.parts)
    scale = {"GFLOP": 1e9, "MFLOP": 1e6}[unit]
    assert float(np.sum(forward["x"])) * scale == pytest.approx(counted.forward)
    assert float(np.sum(backward["x"])) * scale == pytest.approx(counted.backward)
    np.testing.assert_allclose(backward["base"], forward["x"])
    title = flops_by_component(counted, LIGHT)["layout"]["xaxis"]["title"]["text"]
    assert f"({unit})" in title
    colours = zip(forward["y"], forward["marker"]["color"], strict=True)
    assert {y for y, colour in colours if colour == LIGHT.activations} == {"Attention scores", "Attention values"}


def test_notice_of_a_plan_that_does_not_fit_has_its_bytes() -> None:
    a = planned(model="DeepSeek-V3", gpu="T4", count="8", mfu="40%")
    said = plan_text.does_not_fit(a)
    assert isinstance(said, Message)
    assert said.id == "plan.notice.states_do_not_fit"
    assert (said.values["needed"], said.values["capacity"]) == (float(a.memory.device_memory.states), a.memory.usable)
    assert plan_text.does_not_fit(planned()) == ""


def test_long_sequences_are_said_to_lengthen_it() -> None:
    million = planned(model="Llama 3.1 8B", seq="1048576")
    found = {notice.id: notice.values for notice in plan_text.cautions(million)}
    assert found["plan.notice.long_sequences"]["factor"] == pytest.approx(16.9, rel=5e-3)
    assert found["plan.notice.too_long"]["most"] == 131_072
    assert plan_text.long_sequences(planned()) == []


def test_score_and_predictions_in_words() -> None:
    item = score()
    assert runs_text.score_text(item).values["tenths"] == round(10 * item.inside)
    assert runs_text.score_detail(item, item).values["half"] == item.half
    for timed in (True, False):
        shares = published_shares(timed)
        said = runs_text.efficiency_text(shares, 42, has_step_estimate=timed, new_hardware=not timed)
        assert said.id == ("runs.share.timed" if timed else "runs.share.matmul_new")
        assert (said.values["mid"], said.values["labs"]) == (shares.ends[1], shares.labs)
    rows = runs_text.predicted_table(predictions())[1]
    assert len(rows) == item.runs
    assert all(len(row) == len(runs_text.predicted_table(predictions())[0]) for row in rows)


def test_published_active_counts_stand_beside_the_exact_ones() -> None:
    model = model_named("DeepSeek-V3")
    counted, looked_up = flops_text.active_counts(model)
    assert (counted.values["active"], counted.values["published"]) == (model.active, 37e9)
    assert looked_up.values["active"] == pytest.approx(36.63e9, rel=1e-3)
    assert flops_text.active_counts(model_named("Llama 3 8B")) == []


def test_another_peak_and_the_states_are_one_sentence() -> None:
    """A T4 multiplies no bf16: its fp16 peak counts, and states in bf16 are only kept there."""
    for policy, expected in (("mixed bf16, fp32 master", "no_units_states"), ("fp32", "no_units")):
        said = plan_text.other_peak(planned(gpu="T4", prec=policy))
        assert isinstance(said, Message)
        assert (said.id, said.values["dtype"], said.values["peak"]) == (f"plan.notice.{expected}", "fp16", 65e12)
    assert plan_text.other_peak(planned(gpu="H100 SXM", dtype="fp4")) != ""
    assert plan_text.other_peak(planned()) == ""


def test_cautions() -> None:
    (mixture,) = flops_text.cautions(model_named("Mixtral 8x7B"), 4096)
    assert mixture.values["factor"] == pytest.approx(3.63, rel=1e-2)
    assert flops_text.cautions(model_named("GPT-2 124M"), 2048)[0].values["most"] == 1024
    assert flops_text.cautions(model_named("Llama 3.1 405B"), 8192) == []


def test_clock_and_caveats_of_the_h100() -> None:
    clock, best, caveat = hardware_text.peak_origin(H100, "bf16")
    assert (clock.id, clock.values["clock"], clock.values["units"]) == ("hardware.clock", 1830, 528)
    assert best.values["share"] == pytest.approx(794.5 / 989.4, rel=1e-4)
    assert caveat.values["caveat"] == H100.traps


@every(
    "layout",
    [
        {},
        {"zero": "0"},
        {"zero": "1"},
        {"zero": "2"},
        {"zero": "3"},
        {"zero": "1", "tp": "2", "pp": "2"},
        {"count": "1"},
    ],
)
def test_the_largest_model_by_states_is_memory_over_the_bytes_that_are_stated(layout: dict[str, str]) -> None:
    plan = plan_from({"model": "Llama 3.1 8B", "gpu": "H100 SXM", "count": "8", "lay": OWN_LAYOUT, **layout})
    h = memory_estimate(plan)
    rows = {row.key: row for row in memory_rows(h)}
    states = rows["model_states"].note.values  # type: ignore[attr-defined]
    assert states["total"] == 16
    assert rows["bound"].value * states.get("each", 16) == pytest.approx(h.usable, rel=1e-9)


def test_optimizers_are_compared_before_anything_is_sharded() -> None:
    h = memory_estimate(plan_from({"model": "Llama 3.1 8B", "gpu": "H100 SXM", "count": "1,024", "zero": "3"}))
    rows = {row.optimizer.name: row for row in under_each_optimizer(h)}
    totals = {name: unsharded(rows[name]).total for name in ("SGD", "AdaGrad", "AdamW")}
    assert totals == {"SGD": 8, "AdaGrad": 12, "AdamW": 16}
    drawn = state_bars([(name, unsharded(rows[name])) for name in totals], LIGHT)
    assert [sum(bar["x"][row] for bar in drawn["data"]) for row in range(3)] == [8, 12, 16]
