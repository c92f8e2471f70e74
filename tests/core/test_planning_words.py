"""The sentences of a plan say the numbers of the formulas, and nothing they cannot know."""

from __future__ import annotations

import re

import numpy as np
import pytest

from core.hardware.accelerators import Accelerator, accelerators, find
from core.models.catalog import catalog, model_named
from core.models.flops import flops_per_token
from core.models.spec_text import EXAMPLE
from core.planning.estimate import PlanEstimate, estimate, timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import memory_estimate, under_each_optimizer
from core.planning.plan import OWN_LAYOUT, OWN_SHAPE
from core.planning.presets import LECTURE, PRESETS
from core.runs.published import Comparison, compare, full_runs
from core.runs.run_efficiency import published_shares
from core.runs.scores import predictions, score
from core.units import format_count, format_duration
from core.views.common.palette import LIGHT
from core.views.flops import text as flops_text
from core.views.flops.charts import flops_by_component
from core.views.hardware import text as hardware_text
from core.views.plan import text as plan_text
from core.views.plan import text_memory
from core.views.report.plan_table import plan_lines
from core.views.runs import text as runs_text
from core.views.runs import text_goodput as words_whole
from core.views.search import text as search_text
from core.views.training.charts_device import state_bars
from core.wording import percent
from tests.core.sentence_facts import says
from tests.every import every

H100 = find("H100 SXM")


def comparison(name: str, mfu: float = 0.41) -> Comparison:
    return compare(full_runs(name)[0], model_named(name), mfu, 8192)


def planned(**texts: str) -> PlanEstimate:
    return estimate(plan_from(texts))


@pytest.mark.parametrize(
    ("find_", "within", "parts"),
    [
        ("time", "90 days", ("180 days", "144–240 days", "1,024 H100 SXM", "$14.4 M", "$10.6–20.6 M")),
        ("tokens", "180 days", ("15T tokens", "11.3T–18.8T", "180 days")),
        ("tokens", "$5M", ("3.63T–7.07T", "62.6 days", "$5 M")),
        ("parameters", "180 days", ("70B parameters", "52.5B–87.5B", "15T tokens", "180 days")),
        ("accelerators", "180 days", ("180 days", "1,024 H100 SXM", "824–1,368")),
        ("MFU", "180 days", ("180 days", "MFU of 40 %", "1,024 H100 SXM")),
    ],
)
def test_answer_of_every_question(find_: str, within: str, parts: tuple[str, ...]) -> None:
    """At 30 to 50 % the middle takes 179.9 days; half a percent more where the limit is the round 180."""
    a = planned(find=find_, within=within, mfu="30-50%")
    says(plan_text.sentence(a), *parts)
    assert "P10" not in plan_text.sentence(a), "the range is the visitor’s"
    published = planned(find=find_, within="300 days")
    assert ("P10" in plan_text.sentence(published)) == (find_ != "MFU")
    exact = planned(find=find_, within="300 days", mfu="40%", price="2")
    assert "–" not in plan_text.sentence(exact)


def test_accelerators_come_in_whole_nodes() -> None:
    a = planned(find="accelerators", within="60 days", n="30B", tokens="6T", mfu="40%")
    again = planned(n="30B", tokens="6T", mfu="40%", count=str(a.count))
    assert a.count % 8 == 0
    assert a.middle == again.middle
    days = format_duration(86400 * again.middle.days, 3)
    says(plan_text.sentence(a), f"{a.count:,} H100 SXM: {days}, for")
    assert f"**{a.count // 8}** whole nodes of 8" in plan_text.assumptions(a)
    fewer = planned(n="30B", tokens="6T", mfu="40%", count=str(a.count - 8))
    assert again.middle.days <= 60 < fewer.middle.days
    ranged = planned(find="accelerators", within="60 days", n="30B", tokens="6T")
    typed = planned(n="30B", tokens="6T", count=str(ranged.count))
    costs = {plan_text.sentence(one).partition(", for ")[2] for one in (ranged, typed)}
    assert len(costs) == 1
    assert "–" in costs.pop(), "dollars are of the number that was found, as days are"
    few = planned(find="accelerators", within="60 days", n="1B", tokens="100B", mfu="40%")
    assert 1 <= few.count < 8
    for other in (planned(), few):
        assert plan_text.whole_nodes(other) == ""


def test_a_shape_of_ones_own_is_called_the_same_everywhere() -> None:
    shape = f"{EXAMPLE} experts.count=64 experts.per_token=4 experts.width=2560"
    plan = plan_from({"model": OWN_SHAPE, "shape": shape, "tokens": "3T", "count": "256"})
    assert plan.catalog_model
    name = f"{plan.catalog_model.name} ({plan.catalog_model.sized})"
    assert " active of " in name
    says(plan_text.sentence(estimate(plan)), name)
    says(text_memory.sentence(memory_estimate(plan)), name)
    says(search_text.sentence(timed_estimate(plan)), name)


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        ({"mfu": "85%", "pace": "steady steps"}, ("Impossible", "80.3 %", "bf16", "H100 SXM")),
        ({"mfu": "85%"}, ("Impossible", "80.3 %", "85 %")),
        ({"mfu": "40%", "rate1k": "400"}, ("Impossible", "40 %", "3.52 min")),
        ({"mfu": "100%", "dtype": "int8", "rate1k": "9"}, ("Impossible", "100 %")),
        ({"find": "MFU", "within": "80 days"}, ("Impossible", "80.3 %", "90 %")),
    ],
)
def test_what_is_impossible_says_why(texts: dict[str, str], parts: tuple[str, ...]) -> None:
    says(plan_text.impossible(planned(**texts)), *parts)
    assert plan_text.impossible(planned(mfu="40%")) == ""


def test_table_and_sentence_show_the_same_figures() -> None:
    a = planned()
    cells = {line.name: line.cells() for line in plan_lines(a)}
    text = plan_text.sentence(a) + plan_text.assumptions(a)
    for name in ("time", "accelerator-hours", "rent", "tokens per second, whole cluster"):
        assert f"**{cells[name][2].removesuffix(' h')}" in text, name
    assert f"**{cells['energy'][2]}**" in words_whole.used(a)
    assert f"**{cells['carbon, CO₂ equivalent'][2]}**" in words_whole.used(a)
    result = planned(find="accelerators", mfu="35-45%")
    count = next(line for line in plan_lines(result) if line.name == "accelerators")
    assert [count.worst, count.value, count.best] == [
        column.accelerators for column in (result.low, result.middle, result.high)
    ]
    assert f"**{format_count(float(count.value))}**" in plan_text.sentence(result)


def test_the_405b_beside_its_published_figures() -> None:
    rows = {row[0]: row[1:] for row in runs_text.published_rows(comparison("Llama 3.1 405B"), 16_384, 0.41)}
    assert rows["Training compute"] == ("3.799 × 10²⁵ FLOP", "3.8 × 10²⁵ FLOP", "−0.032 %")
    assert rows["Accelerator-hours"] == ("26.01M h", "30.84M h", "−15.7 %")
    assert rows["Time on 16,384 at once"] == ("66.15 days", "78.43 days", "")
    assert rows["MFU of steady steps"] == ("41 %", "38–43 %", "")
    assert rows["Utilisation over all these hours"] == ("41 %", "34.6 %", "+18.6 %")
    says(
        " | ".join(runs_text.published_headings(comparison("Llama 3.1 405B"), 0.41, "bf16")), "6ND at 41 %", "published"
    )


@every("model", catalog(), ids=lambda m: m.name)
def test_every_model_can_be_talked_about(model: object) -> None:
    for attention in ("causal", "full"):
        assert attention in flops_text.gap(model, 4096, attention)  # type: ignore[arg-type]
    headings, rows = flops_text.components(model)  # type: ignore[arg-type]
    assert all(len(row) == len(headings) for row in rows)
    assert "equals the" in flops_text.model_origin(model)  # type: ignore[arg-type]


@pytest.mark.parametrize("find_", ["tokens", "parameters", "MFU"])
def test_money_names_the_price_at_which_it_is_spent(find_: str) -> None:
    a = planned(find=find_, within="$30M", price="3-3.50", mfu="30%")
    says(plan_text.sentence(a), "$30 M", "$3.25/h")
    assert a.middle.hours * 3.25 == pytest.approx(30e6, rel=2e-3)
    says(plan_text.assumptions(a), "$3.00–3.50/h", "prices")
    says(plan_text.sentence(planned(find=find_, within="$30M", price="3", mfu="30%")), "$30 M", "$3.00/h")


@every("device", accelerators(), ids=lambda d: d.name)
def test_every_device_has_a_datasheet_line(device: object) -> None:
    dtype = device.usable("bf16")  # type: ignore[attr-defined]
    assert len(hardware_text.peaks(device)) == len(device.peaks)  # type: ignore[attr-defined,arg-type]
    text = hardware_text.datasheet(device) + "".join(hardware_text.peak_origin(device, dtype))  # type: ignore[arg-type]
    assert not re.search(r"\bnan\b", text)
    assert " W;" in text or "W (" in text or "power unknown" in text


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
    assert title == f"{unit} per token of training"
    colours = zip(forward["y"], forward["marker"]["color"], strict=True)
    assert {y for y, colour in colours if colour == LIGHT.activations} == {"Attention scores", "Attention values"}
    scaled = flops_by_component(counted, LIGHT, 0.5)["data"][0]
    assert float(np.sum(scaled["x"])) == pytest.approx(float(np.sum(forward["x"])) / 2)


def test_answer_of_the_lecture() -> None:
    a = estimate(plan_from(PRESETS[LECTURE]))
    says(plan_text.sentence(a), "70B parameters", "15T tokens", "144 days", "1,024 H100 SXM", "$11.5 M", "$10.6–12.4 M")
    says(plan_text.assumptions(a), "6.3 × 10²⁴ FLOP", "3.54M", "$3.00–3.50/h", "1.21M", "50 %", "989.4 TFLOP/s")


def test_answer_names_a_model_and_its_active_parameters() -> None:
    says(plan_text.sentence(planned(model="Mixtral 8x7B")), "Mixtral 8x7B", "12.88B active of 46.7B")
    says(plan_text.sentence(planned(model="Llama 3 8B")), "Llama 3 8B", "8.03B")


def test_states_that_do_not_fit_are_said_beside_the_answer() -> None:
    says(
        plan_text.memory(planned(model="DeepSeek-V3", gpu="T4", count="8", mfu="40%")), "does not fit", "8 × T4", "GiB"
    )
    assert plan_text.memory(planned()) == ""


def test_long_sequences_are_said_to_lengthen_it() -> None:
    million = planned(model="Llama 3.1 8B", seq="1048576")
    says(plan_text.long_sequences(million), "1,048,576", "16.9 times the work", "131,072")
    assert plan_text.long_sequences(million) in plan_text.cautions(million)
    says(plan_text.assumptions(million), "× 16.9")
    says(plan_text.long_sequences(planned(seq="1048576")), "usual shape")
    assert plan_text.long_sequences(planned()) == ""


def test_score_and_predictions_in_words() -> None:
    item = score()
    says(
        runs_text.scored(item, item),
        "Of ten labs",
        str(item.runs),
        percent(item.error),
        percent(item.half),
        "between P25",
    )
    for timed in (True, False):
        shares = published_shares(timed)
        says(
            runs_text.share_of(shares, 42, has_step_estimate=timed, new_hardware=not timed),
            percent(shares.ends[1]),
            str(shares.labs),
        )
    rows = runs_text.predicted(predictions())
    assert len(rows) == item.runs
    assert all(len(row) == len(runs_text.PREDICTED) for row in rows)


def test_published_active_counts_stand_beside_the_exact_ones() -> None:
    text = flops_text.active_counts(model_named("DeepSeek-V3"))
    for part in ("37.55B", "36.63B without the input embedding", "Published: 37B", "36.7B", "+1.49 %"):
        assert part in text
    assert flops_text.active_counts(model_named("Llama 3 8B")) == ""


def test_stand_in_is_scaled_and_called_rough_where_it_is() -> None:
    near = flops_text.stand_in(model_named("Llama 3 70B"), 70e9)
    assert "scaled by 70B / 70.55B" in near
    assert "rough" not in near
    says(flops_text.stand_in(model_named("Llama 3.1 405B"), 1.5e12), "rough", "1.5T")


def test_another_peak_and_the_states_are_one_sentence() -> None:
    """A T4 multiplies no bf16: its fp16 peak counts, and states in bf16 are only kept there."""
    for policy, holds in (("mixed bf16, fp32 master", True), ("fp32", False)):
        text = " ".join(plan_text.other_peak(planned(gpu="T4", prec=policy)))
        says(text, "T4 has no bf16 matrix units", "fp16 peak", "65 TFLOP/s")
        assert ("in bf16 with fp32 master weights" in text) == holds
    says(" ".join(plan_text.other_peak(planned(gpu="H100 SXM", dtype="fp4"))), "fp4", "H100 SXM")
    assert plan_text.other_peak(planned()) == ("", "")


def test_cautions() -> None:
    (mixture,) = flops_text.cautions(model_named("Mixtral 8x7B"), 4096)
    assert "3.63 times as high" in mixture
    assert "at most 1,024" in flops_text.cautions(model_named("GPT-2 124M"), 2048)[0]
    assert flops_text.cautions(model_named("Llama 3.1 405B"), 8192) == []


def test_clock_and_traps_of_the_h100() -> None:
    text = " ".join(hardware_text.peak_origin(H100, "bf16"))
    assert "1,830 MHz × 512 multiply-adds × 528 tensor cores = 989.4 TFLOP/s" in text
    says(text, "1,979", "3,958", "with sparsity", "989.4")
    assert "794.5 TFLOP/s" in text


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
    found = re.search(
        r"only: ([\d.]+)B parameters.*uses (?:([\d.]+) of the )?([\d.]+) bytes", text_memory.states_alone(h)
    )
    assert found
    bound, kept, whole = (float(text) if text else 0.0 for text in found.groups())
    assert whole == 16
    assert bound * 1e9 * (kept or whole) == pytest.approx(h.usable, rel=0.01)


def test_optimizers_are_compared_before_anything_is_sharded() -> None:
    h = memory_estimate(plan_from({"model": "Llama 3.1 8B", "gpu": "H100 SXM", "count": "1,024", "zero": "3"}))
    rows = {row.optimizer.name: row for row in under_each_optimizer(h)}
    totals = {name: text_memory.unsharded(rows[name]).total for name in ("SGD", "AdaGrad", "AdamW")}
    assert totals == {"SGD": 8, "AdaGrad": 12, "AdamW": 16}
    drawn = state_bars([(name, text_memory.unsharded(rows[name])) for name in totals], LIGHT)
    assert [sum(bar["x"][row] for bar in drawn["data"]) for row in range(3)] == [8, 12, 16]
