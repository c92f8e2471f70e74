"""The sentences and pictures of a budget say the numbers of the formulas, and nothing they cannot know."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from core.planning.deadline import node_size
from core.planning.figures import flops_by_component, flops_treemap, hours_of_a_run
from core.planning.interval import Interval
from core.planning.lengths import work_of
from core.planning.outlook import Find, Outlook, ask_outlook, outlook, parse_within, published_mfu
from core.planning.runs import Comparison, compare, compare_all, full_runs
from core.planning.words_long import long_sequences

from core.hardware.accelerators import accelerators, find
from core.models import catalog, flops_per_token, model_named
from core.models.catalog import CatalogModel, nearest_dense
from core.palette import LIGHT
from core.planning import words, words_device, words_panels, words_runs
from core.planning.budget import Plan, count_every_way
from tests.core.said import says

H100 = find("H100 SXM")
PLAN = Plan(70e9, 15e12, 1024, H100.peak("bf16"), 0.5, 3.0, 3.5)


def comparison(name: str, mfu: float = 0.41) -> Comparison:
    return compare(full_runs(name)[0], model_named(name), mfu, 8192)


LECTURE = {"parameters": 70e9, "tokens": 15e12, "accelerators": 1024, "peak": H100.peak("bf16"), "prices": (3.0, 3.5)}
HALF, SPREAD = Interval.point(0.5), Interval(0.3, 0.4, 0.5)


def planned(find: Find = "time", mfu: Interval = HALF, within: str = "", **changes: object) -> Outlook:
    limits = parse_within(within) if within else None
    return outlook(find, mfu=mfu, limits=limits, **{**LECTURE, **changes})  # type: ignore[arg-type]


def test_answer_of_the_lecture() -> None:
    says(
        words.answer(planned(), None, H100),
        *("70B parameters", "15T tokens", "143.9 days", "1,024 H100 SXM", "$11.5 M", "$10.6–12.4 M"),
    )
    line = words.assumptions(planned(), H100, "bf16")
    for part in ("6.3 × 10²⁴ FLOP", "3.537M", "$3.00–3.50/h", "1.206M", "989.4 TFLOP/s"):
        assert part in line


@pytest.mark.parametrize(
    ("find", "within", "parts"),
    [
        ("time", "", ("180 days", "P10–P90: 144–240 days", "1,024 H100 SXM", "$14.4 M", "$10.6–20.6 M")),
        ("cost", "", ("$14.4 M", "$10.6–20.6 M", "4.42M accelerator-hours", "P10–P90: 3.54M–5.9M", "H100 SXM")),
        ("tokens", "180 days", ("15T tokens", "P10–P90: 11.3T–18.8T", "180 days")),
        ("tokens", "$5M", ("P10–P90: 3.63T–7.07T", "62.6 days", "$5 M")),
        ("parameters", "180 days", ("70B parameters", "P10–P90: 52.5B–87.5B", "15T tokens", "180 days")),
        ("accelerators", "180 days", ("180 days", "1,024 H100 SXM", "P10–P90: 819–1,365")),
        ("MFU", "180 days", ("180 days", "MFU of 40 %", "1,024 H100 SXM")),
    ],
)
def test_answer_of_every_question(find: Find, within: str, parts: tuple[str, ...]) -> None:
    o = planned(find, SPREAD, within)
    says(words.answer(o, None, H100, "P10–P90"), *parts)
    if find not in ("time", "cost"):
        label, text = words.in_its_field(find, o)
        assert label.endswith(", found")
        assert f"**{text}**" in words.answer(o, None, H100, "P10–P90")
    exact = words.answer(planned(find, HALF, within), None, H100, "P10–P90")
    assert "P10" not in exact


def test_long_sequences_lengthen_the_answer_and_ordinary_ones_do_not() -> None:
    """Llama 3.1 8B at 1M tokens: attention's causal half over the rest, against 8,192, counted here by hand."""
    model = model_named("Llama 3.1 8B")
    spec = model.spec
    weights = model.active - spec.vocab * spec.hidden - spec.hidden * (2 * spec.layers + 1)

    def work(seq_len: int) -> float:
        return 6 * weights + 6 * spec.layers * spec.heads * spec.head_dim * seq_len

    def days(seq_len: int, of: CatalogModel | None = model) -> Outlook:
        return ask_outlook(
            "time",
            parameters=8e9,
            tokens=1e12,
            accelerators=256,
            device=H100,
            dtype="bf16",
            experts=False,
            mfu=None,
            prices=(3.0, 3.5),
            length=lambda n: work_of(of or nearest_dense(n), seq_len, stand_in=of is None),
        )[0]

    short, usual, million = (days(n) for n in (1024, 8192, 1_048_576))
    assert short.over("days") == usual.over("days")
    ratio = million.over("days").mid / usual.over("days").mid
    assert ratio == pytest.approx(work(1_048_576) / work(8192), rel=1e-9)
    assert ratio > 15
    assert long_sequences(usual, model, 8192) == ""
    said = long_sequences(million, model, 1_048_576)
    assert "16.9 times the work" in said
    assert "built for at most 131,072" in said
    assert "× **16.9** for long sequences" in words.assumptions(million, H100, "bf16")
    assert million.work
    assert million.by_rule.mfu == pytest.approx(usual.plan.mfu / ratio)
    assert usual.by_rule == usual.plan
    assert million.work.explanations[0].value == pytest.approx(float(million.middle.per_parameter))
    stand_in = long_sequences(days(1_048_576, None), None, 1_048_576)
    assert "as a stand-in" in stand_in


def test_accelerators_come_in_whole_nodes() -> None:
    o = planned("accelerators", SPREAD, "60 days", parameters=30e9, tokens=6e12)
    said = words.whole_nodes(o, H100)
    count = int(re.search(r"\(([\d,]+)\)", said)[1].replace(",", ""))  # type: ignore[index]
    assert count % 8 == 0
    assert 0 <= count - float(o.middle.accelerators) < 8
    assert said in words.assumptions(o, H100, "bf16")
    assert words.whole_nodes(planned(), H100) == ""
    assert [node_size(find(n)) for n in ("H100 SXM", "GB200", "TPU v4", "L4", "A100 PCIe 40 GB")] == [8, 72, 1, 1, 1]


def test_answer_names_a_model_and_its_active_parameters() -> None:
    mixtral = model_named("Mixtral 8x7B")
    plan = planned(parameters=float(mixtral.active), tokens=1e12)
    assert "(12.88B active of 46.7B parameters)" in words.answer(plan, mixtral, H100)
    llama = model_named("Llama 3 8B")
    assert "**Llama 3 8B** (8.03B parameters)" in words.answer(planned(parameters=8.03e9), llama, H100)


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    tpu = find("TPU v4")
    plan = planned(prices=(math.nan, math.nan), peak=tpu.peak("bf16"))
    says(words.assumptions(plan, tpu, "bf16"), "price of TPU v4 unknown")
    assert "$" not in words.assumptions(plan, tpu, "bf16") + words.answer(plan, None, tpu)


def test_an_mfu_beyond_every_measured_matmul_is_cautioned() -> None:
    beyond = Plan(70e9, 15e12, 1024, H100.peak("bf16"), 0.85)
    assert "80.3 %" in words_device.ceiling(beyond, H100, "bf16")
    assert words_device.ceiling(PLAN, H100, "bf16") == ""
    tpu = find("TPU v4")
    assert words_device.ceiling(Plan(1e9, 1e9, 1, tpu.peak("bf16"), 0.99), tpu, "bf16") == ""


def test_the_405b_beside_its_published_figures() -> None:
    rows = {row[0]: row[1:] for row in words_runs.beside(comparison("Llama 3.1 405B"), 16_384, 0.41)}
    assert rows["Training compute"] == ("3.799 × 10²⁵ FLOP", "3.8 × 10²⁵ FLOP", "−0.032 %")
    assert rows["Accelerator-hours"] == ("26.01M h", "30.84M h", "−15.7 %")
    assert rows["Time on 16,384 at once"] == ("66.15 days", "78.43 days", "")
    assert rows["MFU of steady steps"] == ("41 %", "38–43 %", "")
    assert rows["Utilisation over all these hours"] == ("41 %", "34.6 %", "+18.6 %")
    says(" | ".join(words_runs.beside_headings(comparison("Llama 3.1 405B"), 0.41, "bf16")), "6ND at 41 %", "published")


def test_headings_name_the_dtype_where_the_plans_peak_is_another() -> None:
    run = comparison("DeepSeek-V3", mfu=0.24)
    said = words_runs.beside_headings(run, 0.12, "fp8")[1]
    says(said, "6ND", "24 % MFU of bf16", "12 % of fp8")


@pytest.mark.parametrize(
    ("find", "mfu", "said"),
    [
        ("MFU", HALF, "Yours is found: 40 %."),
        ("time", HALF, "Yours is typed: 50 %."),
        ("time", Interval(0.35, 0.4, 0.45), "Yours is typed: 35–45 %."),
    ],
)
def test_an_mfu_of_ones_own_is_typed_or_found(find: Find, mfu: Interval, said: str) -> None:
    seen = published_mfu(H100, "bf16", 70e9, 15e12, experts=False)
    o = planned(find, mfu, "180 days" if find == "MFU" else "")
    assert words_runs.comparables(o, seen, published=False).endswith(said)
    assert "Yours" not in words_runs.comparables(o, seen, published=True)
    assert "may differ" in words_runs.given_up(seen)


def test_reasons_of_the_405b() -> None:
    text = " ".join(words_runs.reasons(comparison("Llama 3.1 405B")))
    for part in ("34.6 %", "38–43 %", "4.17 %", "12.1 % of the published", "long context", "over 90 %"):
        assert part in text


def test_a_run_faster_than_assumed_is_said_to_be_faster() -> None:
    text = " ".join(words_runs.reasons(comparison("Llama 3.1 405B", mfu=0.3)))
    says(text, "better than your MFU of 30 %")
    assert "Restarts" not in text
    tipped = " ".join(words_runs.reasons(comparison("Llama 2 7B")))  # 39.1 % by 6ND, above 41 % with attention
    says(tipped, "your MFU of 41 %", "attention")


def test_a_large_remainder_is_not_explained_away() -> None:
    text = " ".join(words_runs.reasons(comparison("Llama 3 8B")))
    says(text, "738,931 hours", "56.8 % of the published", "remain")
    assert "unknown" in text
    assert "Restarts" not in text
    assert "at 15.6 % MFU" in text


def test_a_remainder_close_to_nothing_is_no_difference() -> None:
    exact = comparison("Llama 3.1 405B", mfu=0.36)
    assert abs(exact.other_hours) < 0.02 * exact.hours.value
    assert "meets the published hours" in " ".join(words_runs.reasons(exact))


def test_hours_of_steps_alone_hold_no_restarts() -> None:
    for name in ("Pythia 12B", "OLMo 2 32B"):
        text = " ".join(words_runs.reasons(comparison(name)))
        assert "These hours hold training steps only" in text
        assert "Restarts" not in text
    assert "above any published for its steps" in " ".join(words_runs.reasons(comparison("OLMo 2 32B")))


def test_gpt_3s_assumed_count_is_no_evidence() -> None:
    c = comparison("GPT-3 175B", mfu=0.213)
    text = " ".join(words_runs.reasons(c))
    says(text, "Not evidence", "assumed count")
    assert "circular" in text
    assert "Restarts" not in text
    rows = {row[0]: row[1:] for row in words_runs.beside(c, 10_000, 0.2)}
    assert rows["Accelerator-hours, derived from an assumed count"][2] == "not evidence"
    assert rows["Utilisation over all these hours"][2] == "not evidence"


def test_deepseek_v3_trained_in_fp8_against_the_bf16_peak() -> None:
    text = " ".join(words_runs.reasons(comparison("DeepSeek-V3")))
    assert "**35.1 %** of the peak" in text
    assert "trained mostly in fp8" in text
    assert "these hours are 17.6 %" in text
    assert "2.664M hours are the pre-training" in text


def test_a_model_without_a_run_says_so() -> None:
    assert "No published full run of Mixtral 8x7B" in words_runs.no_run(model_named("Mixtral 8x7B"))
    assert "DeepSeek-V3" in words_runs.runs_to_compare()
    assert "Mixtral 8x7B" not in words_runs.runs_to_compare()


def test_published_active_counts_stand_beside_the_exact_ones() -> None:
    text = words.active_counts(model_named("DeepSeek-V3"))
    for part in ("37.55B", "36.63B without the input embedding", "Published: 37B", "36.7B", "+1.49 %"):
        assert part in text
    assert words.active_counts(model_named("Llama 3 8B")) == ""
    assert words.fixed_parameters(model_named("DeepSeek-V3")) == ("Active of all", "37.55B of 671B")
    assert words.fixed_parameters(model_named("Llama 3 8B")) == ("Parameters", "8.03B")


def test_stand_in_is_scaled_and_called_rough_where_it_is() -> None:
    near = words.stand_in(model_named("Llama 3 70B"), 70e9)
    assert "scaled by 70B / 70.55B" in near
    assert "rough" not in near
    says(words.stand_in(model_named("Llama 3.1 405B"), 1.5e12), "rough", "1.5T")


def test_tiny_runs_read_as_sentences() -> None:
    tiny = planned(parameters=1.0, tokens=1.0)
    says(words.answer(tiny, None, H100), "1 parameter ", "1 token ", "under $0.01")
    says(words.assumptions(tiny, H100, "bf16"), "3.37 × 10⁻¹⁸ accelerator-hours")


def test_confidence_in_words() -> None:
    says(words.known("verified"), "source")
    says(words.known("recalled"), "recalled")
    says(words.price_kept(math.nan, math.nan), "unknown")
    says(words.price_kept(2.0, 2.5), "$2.00–2.50/h")


def test_impossible_published_hours_are_called_impossible() -> None:
    line = words_runs.reasons(comparison("GPT-3 small 125M"))[0]
    assert "**105 %** of the peak" in line
    assert "impossible" in line


def test_runs_without_steady_mfu_say_so() -> None:
    assert "no MFU of its steady steps is published" in words_runs.reasons(comparison("Llama 2 70B"))[0]
    rows = {row[0]: row[1:] for row in words_runs.beside(comparison("Llama 2 70B"), 2048, 0.4)}
    assert rows["MFU of steady steps"][1] == "unknown"
    assert rows["Training compute"][1] == "unknown"


def test_further_runs_are_named() -> None:
    both = compare_all(model_named("GPT-2 124M"), 0.5, 1024, "A100 SXM 80 GB")
    assert "nanoGPT" in words_runs.other_runs(both[1:])[0]
    assert words_runs.other_runs([]) == []


@pytest.mark.parametrize("model", catalog(), ids=lambda m: m.name)
def test_every_model_can_be_talked_about(model: object) -> None:
    for attention in ("causal", "full"):
        assert attention in words.gap(model, 4096, attention)  # type: ignore[arg-type]
    headings, rows = words.components(model)  # type: ignore[arg-type]
    assert all(len(row) == len(headings) for row in rows)
    assert "equals the" in words.model_origin(model)  # type: ignore[arg-type]


def test_gap_of_a_tied_model_charges_no_embedding() -> None:
    text = words.gap(model_named("Llama 3.2 1B"), 8192, "causal")
    assert "looked up" not in text
    assert "also the output head" in text
    assert "position table" in words.gap(model_named("GPT-2 124M"), 1024, "causal")


def test_components_that_are_many_take_and_one_takes() -> None:
    for name, verb in (("DeepSeek-V3", "Routed experts take "), ("GPT-2 124M", "takes ")):
        counted = flops_per_token(model_named(name).spec, 1024)
        assert verb in words.largest(counted)
        assert verb in words_panels.where(counted).replace("**", "")


def test_cautions() -> None:
    (mixture,) = words.cautions(model_named("Mixtral 8x7B"), 4096)
    assert "3.63 times as high" in mixture
    assert "at most 1,024" in words.cautions(model_named("GPT-2 124M"), 2048)[0]
    assert words.cautions(model_named("Llama 3.1 405B"), 8192) == []


@pytest.mark.parametrize("device", accelerators(), ids=lambda d: d.name)
def test_every_device_has_a_datasheet_line(device: object) -> None:
    dtype = device.usable("bf16")  # type: ignore[attr-defined]
    assert len(words_device.peaks(device)) == len(device.peaks)  # type: ignore[attr-defined,arg-type]
    said = words_device.datasheet(device) + "".join(words_device.peak_origin(device, dtype))  # type: ignore[arg-type]
    assert not re.search(r"\bnan\b", said)


def test_clock_and_traps_of_the_h100() -> None:
    text = " ".join(words_device.peak_origin(H100, "bf16"))
    assert "1,830 MHz × 512 multiply-adds × 528 tensor cores = 989.4 TFLOP/s" in text
    assert "WITH SPARSITY" in text
    assert "794.5 TFLOP/s" in text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.185, "+18.5 %"), (-0.0365, "−3.65 %"), (-0.00032, "−0.032 %"), (1.206, "+120.6 %"), (50.86, "+5,086.0 %")],
)
def test_signed_shares(share: float, text: str) -> None:
    assert words.signed(share) == text


def test_table_of_conventions() -> None:
    rows = words_panels.ways(count_every_way(model_named("Llama 3.1 405B").spec, 8192, PLAN), typed=True)
    assert [row[3] for row in rows] == ["", "−1.04 %", "+3.65 %", "+7.81 %", "+8.33 %"]


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


def test_areas_sum_to_the_whole() -> None:
    counted = flops_per_token(model_named("Mixtral 8x7B").spec, 4096)
    (areas,) = flops_treemap(counted, LIGHT)["data"]
    values = dict(zip(areas["ids"], areas["values"], strict=True))
    outer = sum(v for name, v in values.items() if areas["parents"][areas["ids"].index(name)] == "")
    assert outer == pytest.approx(counted.training)
    assert len(values) == len(areas["ids"])


def test_pictures_write_their_figures_in_one_unit() -> None:
    for c in (comparison("Llama 2 70B"), comparison("Llama 3.1 405B")):
        assert all(text.endswith("M h") for text in hours_of_a_run(c, LIGHT)["data"][0]["customdata"])
    small = hours_of_a_run(comparison("Pythia 12B"), LIGHT)["data"][0]["customdata"]
    assert small[0] == "72,300 h"
    assert not any("M" in text for text in small)
    figure = flops_by_component(flops_per_token(model_named("Llama 3.1 405B").spec, 8192), LIGHT)
    assert all(" GFLOP · " in tick for tick in figure["layout"]["yaxis"]["ticktext"])


@pytest.mark.parametrize("mfu", [0.3, 0.41])
def test_picture_of_hours_ends_at_the_published_figure(mfu: float) -> None:
    c = comparison("Llama 3.1 405B", mfu)
    (bars,) = hours_of_a_run(c, LIGHT)["data"]
    ends = np.asarray(bars["base"]) + np.asarray(bars["x"])
    # From the bottom: published, everything else, attention, 6ND. The stairs end where the published bar ends.
    assert ends[1] == pytest.approx(ends[0])
    assert ends[0] * 1e6 == pytest.approx(30.84e6)
    assert bars["base"][1] == pytest.approx(ends[2])
