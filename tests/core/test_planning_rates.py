"""Measured rates of a plan: whose they are, what they change, and that what follows from them agrees everywhere."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.budget.equations import BudgetError
from core.hardware.accelerators import find
from core.hardware.cluster import Rates, cluster
from core.models.catalog import CATALOG
from core.number_text import QuantityError
from core.planning.comparison.entry import entry_of, pack, unpack
from core.planning.form.links import link_texts
from core.planning.form.plan_form import PLAN_FORM, plan_from, plan_of
from core.planning.form.whole_run import MEASURED_FIELDS, RATE_FIELDS
from core.planning.layout import evaluate_layout, search_request
from core.planning.measured import KIND_OF, TOO_GOOD, CarriedRates, rates_of, rates_origin, replaced_rates
from core.planning.plan import Plan
from core.planning.presets import PRESETS, SEARCH_PRESETS
from core.search.fastest import searched
from core.step_time.formulas import constants_of, family_of
from core.step_time.layer_roofline import layer_roofline, peaks_of
from core.step_time.running import Running, speeds_of
from core.step_time.step import step_time
from core.training.layout import Layout
from core.units import UNIT
from core.views.common.palette import LIGHT
from core.views.plan import text_rates
from core.views.roofline.charts import roofline

H100 = "H100 80GB HBM3, 22 Nov 2026"
SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4,096", "tokens": "1T", "gpu": "H100 SXM"}
GIVEN = {"r16": "662 TFLOP/s", "r8": "1.2 PFLOP/s", "rmem": "2.9 TB/s", "rof": H100}


def with_rates(**given: str) -> Plan:
    return plan_from({**SMALL, **given})


def reached(plan: Plan) -> Rates:
    """What the plan's accelerator is taken to reach without a measurement."""
    device = plan.device
    speeds = speeds_of(cluster(device, 8), Running(plan.peak_dtype), constants_of(family_of(device)), None)
    narrow = {"fp8": "matmul8", "fp4": "matmul4"}.get(plan.peak_dtype)
    links = {"inside": speeds.inside, "between": speeds.between}
    return Rates(
        matmul16=speeds.matmul16, memory=speeds.memory, **links, **({narrow: speeds.weight_matmul} if narrow else {})
    )


# ------------------------------------------------------------------------------------------ texts and links


def test_links_of_plans_without_rates_are_what_they_were() -> None:
    named = {PLAN_FORM.key(field.id) for field in MEASURED_FIELDS}
    for preset in (*PRESETS.values(), *SEARCH_PRESETS.values()):
        assert not named & PLAN_FORM.write(preset).keys()
        assert not {field.id for field in MEASURED_FIELDS} & link_texts(PLAN_FORM.parse(preset).texts).keys()
        assert plan_from(preset).measured == CarriedRates()
    packed = pack([entry_of("a", {}), entry_of("b", {"r16": "1 TFLOP/s"}), entry_of("c", {"n": "8B"})])
    assert packed.count("r16") == 1


def test_rates_stand_in_links_and_comparisons_as_values() -> None:
    texts = {**SMALL, **GIVEN}
    address = parse_qs(urlencode(PLAN_FORM.write(texts)))
    given, sentences = PLAN_FORM.from_address(address)
    assert sentences == ()
    assert plan_of(PLAN_FORM.parse(given)) == plan_from(texts)
    assert rates_of(plan_from(texts)) == Rates(662e12, 1.2e15, math.nan, 2.9e12)
    entries = (entry_of("without", SMALL), entry_of("with", texts), entry_of("again", SMALL))
    for order in (entries, entries[1:], entries[::-1]):
        assert unpack(pack(order))[0] == order


@pytest.mark.parametrize(
    "texts",
    [{"r16": "fast"}, {"r16": "1"}, {"rmem": "3 PFLOP/s"}, {"r8": "1e30 FLOP/s"}, {"rof": "[x](y)"}, {"rof": "**x**"}],
)
def test_what_is_no_rate_is_refused(texts: dict[str, str]) -> None:
    with pytest.raises(QuantityError):
        plan_from(texts)
    reading = PLAN_FORM.parse(texts)
    assert "as empty" in reading.problems[0].message
    assert plan_of(reading) == plan_from({})


# ------------------------------------------------------------------------------------------ whose rates


@pytest.mark.parametrize(
    ("origin", "gpu", "expected"),
    [
        (H100, "H100 SXM", "own"),
        (H100, "H100 PCIe", "other"),
        ("A100-SXM4-80GB, 1 May 2026", "A100 SXM 80 GB", "own"),
        ("A100-SXM4-80GB, 1 May 2026", "A100 SXM 40 GB", "other"),
        ("GH200 480GB, 1 May 2026", "GH200 96 GB", "own"),
        ("H100 SXM", "H100 SXM", "own"),
        ("our own chip, 2026", "H100 SXM", "stands in"),
        ("", "MI300X", "stands in"),
    ],
)
def test_rates_count_for_their_own_accelerator(origin: str, gpu: str, expected: str) -> None:
    plan = with_rates(gpu=gpu, r16="500 TFLOP/s", rof=origin)
    assert rates_origin(plan) == expected
    assert rates_of(plan) == (None if expected == "other" else plan.measured.rates)
    ids = {said.id for said in text_rates.rates_text(plan)}
    assert ("rates.not_used" in ids) == (expected == "other")
    assert bool(ids & {"rates.unknown_device", "rates.no_device"}) == (expected == "stands in")
    assert bool(text_rates.change(plan)) == (expected != "other")


def test_no_rates_are_none_whatever_their_origin() -> None:
    plan = with_rates(rof=H100)
    assert (rates_origin(plan), rates_of(plan), text_rates.rates_text(plan), text_rates.change(plan)) == (
        "none",
        None,
        [],
        "",
    )


def test_rates_beyond_the_datasheet_are_doubted_and_count() -> None:
    peak = find("H100 SXM").peak("bf16")
    for share, doubted in ((TOO_GOOD * 1.001, True), (TOO_GOOD * 0.999, False), (0.7, False)):
        plan = with_rates(r16=f"{share * peak!r} FLOP/s", rof=H100)
        (rate,) = replaced_rates(plan)
        assert (rate.id, rate.datasheet, rate.doubtful) == ("matmul16", peak, doubted)
        assert any(said.id == "rates.doubtful" for said in text_rates.rates_text(plan)) == doubted
        assert rates_of(plan) is not None
    assert replaced_rates(with_rates(gpu="T4", r16="60 TFLOP/s"))[0].datasheet == find("T4").peak("fp16")


# ------------------------------------------------------------------------------------------ what they change


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_rates_as_expected_of_the_datasheet_change_no_number(dtype: str) -> None:
    plan = with_rates(dtype=dtype)
    same = {RATE_FIELDS[name].id: f"{rate!r} {UNIT[KIND_OF[name]]}" for name, rate in reached(plan).known}
    measured = with_rates(dtype=dtype, rof=H100, **same)
    assert rates_of(measured) == reached(plan)
    result, other = (searched(search_request(each)) for each in (plan, measured))
    assert result.best == other.best
    assert result.pareto == other.pareto


def test_clearing_the_rates_brings_the_first_answer_back() -> None:
    texts = {**SMALL, **GIVEN}
    before, cleared = plan_from(SMALL), plan_from(texts | dict.fromkeys((field.id for field in MEASURED_FIELDS), ""))
    assert cleared == before
    assert search_request(cleared) == search_request(before)
    assert search_request(plan_from(texts)) != search_request(before)


RATE = st.floats(1e13, 5e15)


FASTER = st.floats(1, 4)


@given(
    st.tuples(RATE, RATE, st.floats(1e11, 1e13)), st.tuples(FASTER, FASTER, FASTER), st.integers(0, 3), st.booleans()
)
def test_higher_rates_never_take_longer(
    rates: tuple[float, float, float], faster: tuple[float, float, float], zero: int, mixture: bool
) -> None:
    spec = CATALOG["Mixtral 8x7B" if mixture else "Llama 3.1 8B"].spec
    layout = Layout(tensor=2, pipeline=2, data=4, micro_batches=8, zero=zero, sequence_parallel=1)
    seconds = [
        step_time(
            spec,
            cluster(find("H100 SXM"), 16),
            layout,
            seq_len=4096,
            running=Running("fp8"),
            rates=Rates(matmul16=times[0], matmul8=times[1], memory=times[2]),
        ).total
        for times in (rates, tuple(r * f for r, f in zip(rates, faster, strict=True)))
    ]
    assert seconds[1] <= seconds[0] * (1 + 1e-12)


def test_every_page_that_times_steps_takes_the_same_rates() -> None:
    """The search, one typed layout, and step time by itself."""
    plan = with_rates(**GIVEN)
    query = search_request(plan)
    best = searched(query).best
    assert best
    alone = step_time(
        query.spec,
        query.cluster,
        best.layout,
        seq_len=query.seq_len,
        running=query.running,
        policy=query.policy,
        rates=rates_of(plan),
    )
    assert evaluate_layout(query, best.layout).step == best.step
    assert alone.total == pytest.approx(best.seconds)
    slower = searched(search_request(with_rates(**GIVEN | {"r16": "300 TFLOP/s"}))).best
    assert slower
    assert slower.seconds > 1.5 * best.seconds


@given(st.floats(1e9, 1e12), st.floats(1e9, 1e12), FASTER, st.sampled_from(["inside", "between"]))
def test_faster_links_never_take_longer(inside: float, between: float, faster: float, which: str) -> None:
    links = {"inside": inside, "between": between}
    seconds = [
        step_time(
            CATALOG["Llama 3.1 8B"].spec,
            cluster(find("H100 SXM"), 32),
            Layout(tensor=4, data=8, micro_batches=2, zero=3, sequence_parallel=1),
            seq_len=4096,
            rates=Rates(**links | {which: links[which] * times}),
        ).total
        for times in (1, faster)
    ]
    assert seconds[1] <= seconds[0] * (1 + 1e-12)


def test_slow_links_slow_the_layouts_that_cross_them_and_no_other() -> None:
    plan, slow = with_rates(count="32", gb="256"), with_rates(count="32", gb="256", rnet="1 GB/s", rof=H100)
    assert [rate.id for rate in replaced_rates(slow)] == ["between"]
    assert replaced_rates(slow)[0].datasheet == find("H100 SXM").network
    before, after = (searched(search_request(item)).best for item in (plan, slow))
    assert before
    assert after
    assert after.seconds > 1.1 * before.seconds
    alone = [
        step_time(
            CATALOG["Llama 3.1 8B"].spec, cluster(find("H100 SXM"), 8), Layout(tensor=8), seq_len=4096, rates=each
        )
        for each in (None, rates_of(slow))
    ]
    assert alone[0].total == alone[1].total


def test_a_measured_network_stands_in_where_the_catalogue_has_none() -> None:
    """A layout over nodes of an accelerator whose network is unknown can be timed once somebody measured it."""
    device = replace(find("H100 SXM"), network=math.nan)
    layout = Layout(data=2 * device.node_size, zero=1)
    many = cluster(device, 2 * device.node_size)
    spec = CATALOG["Llama 3.1 8B"].spec
    with pytest.raises(BudgetError, match="network"):
        step_time(spec, many, layout, seq_len=4096)
    rates = Rates(inside=1e11, between=2e10)
    assert step_time(spec, many, layout, seq_len=4096, rates=rates).total > 0


# ------------------------------------------------------------------------------------------ the roofline


def test_the_roofline_stands_on_what_was_measured() -> None:
    device, spec = find("H100 SXM"), CATALOG["Llama 3.1 8B"].spec
    rates = Rates(matmul16=662e12, memory=2.9e12)
    operations = layer_roofline(spec, device, seq_len=4096, tokens=8192.0, rates=rates)
    sheet = layer_roofline(spec, device, seq_len=4096, tokens=8192.0)
    assert peaks_of(device, "bf16", rates) == {"bf16": 662e12}
    assert peaks_of(device, "fp8", rates) == {"fp8": device.peak("fp8"), "bf16": 662e12}
    for operation, other in zip(operations, sheet, strict=True):
        assert operation.placed.bandwidth == 2.9e12
        assert operation.placed.peak == (662e12 if operation.kind == "matmul" else other.placed.peak)
        assert operation.placed.seconds > other.placed.seconds
    same = Rates(matmul16=device.peak("bf16"), memory=device.bandwidth)
    again = layer_roofline(spec, device, seq_len=4096, tokens=8192.0, rates=same)
    assert [operation.placed.seconds for operation in again] == [operation.placed.seconds for operation in sheet]


def test_the_picture_has_measured_roofs_solid_and_the_datasheets_dashed() -> None:
    device, spec = find("H100 SXM"), CATALOG["Llama 3.1 8B"].spec
    rates, tokens = Rates(matmul16=662e12, memory=2.9e12), 2.0 ** np.arange(6)
    up = next(
        operation
        for operation in layer_roofline(spec, device, seq_len=4096, tokens=tokens, rates=rates)
        if operation.row == "up"
    )
    operations = layer_roofline(spec, device, seq_len=4096, tokens=8192.0, rates=rates)
    beside = (peaks_of(device, "bf16"), device.bandwidth)
    figure = roofline(operations, up, tokens, {"bf16": 662e12}, device.peak("fp32"), 2.9e12, LIGHT, beside)
    lines = [line for line in figure["data"] if line.get("hoverinfo") == "skip"]
    roofs = {(line["line"]["dash"], float(max(line["y"]))) for line in lines}
    assert {("solid", 662.0), ("dash", device.peak("bf16") / 1e12)} <= roofs
    notes = [note["text"] for note in figure["layout"]["annotations"]]
    (ridge,) = [text for text in notes if "ridge" in text]
    assert re.search(r"ridge point, (\d+)", ridge)[1] == f"{662e12 / 2.9e12:.0f}"  # type: ignore[index]
    assert {"662 TFLOP/s bf16, measured", "989.4 TFLOP/s bf16, datasheet"} <= set(notes)
