"""Four rates from a measurement: which points they are of, what is left aside and why, and the plan that uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from core.benchmark.datasheet import datasheet_of
from core.benchmark.points import DeviceFacts, Outcome, Point, Refusal, Regime
from core.benchmark.rates import COPY_BYTES, MeasuredRates, measured_rates
from core.benchmark.record import Record
from core.messages import Message
from core.planning.form.measured_rates import with_measured_rates
from core.planning.form.plan_form import plan_from
from core.planning.form.whole_run import ORIGIN
from core.planning.measured import rates_of, rates_origin
from core.step_time import predicted_measured
from tests.core import measured_cases
from tests.core.measured_cases import item, point

H100 = DeviceFacts(
    name="NVIDIA H100 80GB HBM3", detail="", threads=0, memory_bytes=85_045_968_896.0, power_limit_w=700.0
)
CPU = DeviceFacts(
    name="AMD EPYC 7763 (64-Core), Processor", detail="", threads=8, memory_bytes=None, power_limit_w=None
)
STARTED = 1_795_350_000.0  # 22 November 2026


def square(dtype: str, n: int, rate: float, spread: float = 1.02, regime: Regime = "burst") -> Point:
    """Its p90 takes ``spread`` times its p10."""
    return measured_cases.square(dtype, n, rate, spread=max(1.0, 0.95 * spread), regime=regime)


def copy(moved: float, rate: float, spread: float = 1.02) -> Point:
    of = item("memory", "copy", f"{moved}", (int(moved),))
    return point(of, moved / rate, bytes=moved, spread=max(1.0, 0.95 * spread))


def record(outcomes: Sequence[Outcome], facts: DeviceFacts | None = H100) -> Record:
    return measured_cases.record("cpu" if facts is CPU else "cuda", *outcomes, facts=facts, started=STARTED)


def of(*outcomes: Outcome, facts: DeviceFacts = H100) -> MeasuredRates:
    return measured_rates(record(outcomes, facts))


def reasons(found: MeasuredRates) -> list[Message]:
    return [reason for one in found.selected for reason in one.reasons]


def test_the_fastest_of_the_large_squares_is_the_rate() -> None:
    squares = [
        square("bf16", n, rate) for n, rate in ((256, 9e14), (4095, 1e14), (4096, 6e14), (8192, 7e14), (16384, 6.6e14))
    ]
    found = of(*squares, square("fp8", 8192, 1.2e15), square("nvfp4", 4096, 4e15), copy(2e9, 2.9e12), copy(1e9, 5e12))
    assert found.rates.matmul16 == pytest.approx(7e14)
    assert found.rates.matmul8 == pytest.approx(1.2e15)
    assert found.rates.matmul4 == pytest.approx(4e15)
    assert found.rates.memory == pytest.approx(2.9e12)
    assert found.selected[0].point is not None
    assert found.selected[0].point.shape[0] == 8192
    assert reasons(found) == []


def test_a_dtype_that_the_device_refuses_is_told_from_one_that_was_not_tried() -> None:
    no = measured_cases.refusal("fp8", 8192, "no")
    tried, not_tried = (reasons(of(square("bf16", 8192, 7e14), *more))[0] for more in ((no,), ()))
    assert (tried.id, not_tried.id) == ("measure.rate.refused", "measure.rate.no_matmul")


def test_the_sustained_rate_counts_before_the_others() -> None:
    found = of(square("bf16", 8192, 7e14), square("bf16", 8192, 6e14, regime="sustained"))
    assert found.rates.matmul16 == pytest.approx(6e14)
    spread = of(square("bf16", 8192, 7e14), square("bf16", 8192, 6e14, 1.6, regime="sustained"))
    assert spread.rates.matmul16 == pytest.approx(7e14)


def test_a_burst_is_predicted_by_bursts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan takes sustained rates, and says of each how long; one layer's step is as short as a burst."""
    burst, kept = ([("bf16", 7e14), ("fp8", 1.3e15), ("nvfp4", 5e15)], [("bf16", 6e14), ("fp8", 1.1e15)])
    step = point(item("layer", "training step", "eager", (1, 8192)), 0.01, flop=1e12)
    both = record(
        [
            *(square(dtype, 8192, rate) for dtype, rate in burst),
            *(square(dtype, 16_384, rate, regime="sustained") for dtype, rate in kept),
            step,
        ]
    )
    plain, short = measured_rates(both), measured_rates(both, "burst")
    assert [rate for _, rate in plain.rates.known] == pytest.approx([6e14, 1.1e15, 5e15])
    assert [rate for _, rate in short.rates.known] == pytest.approx([7e14, 1.3e15, 5e15])
    assert [one.point and one.point.item.regime for one in plain.selected] == ["sustained", "sustained", "burst", None]
    used: list[Any] = []
    monkeypatch.setattr(predicted_measured, "predict_layer", lambda *_, rates, **__: used.append(rates))
    predicted_measured.predicted_against_measured(both)
    assert used == [short.rates]


@pytest.mark.parametrize(
    ("name", "memory"),
    [("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9728), ("NVIDIA H100 80GB HBM3", 9728), ("NVIDIA A100-SXM4-40GB", 4864)],
)
def test_a_slice_gives_no_plan_its_rates(name: str, memory: int) -> None:
    part = H100.model_copy(update={"name": name, "memory_bytes": memory * 2.0**20})
    found = record([square("bf16", 8192, 9e13), copy(2e9, 3e11)], part)
    assert measured_rates(found).rates.known
    assert with_measured_rates(found) == {}
    assert datasheet_of(found).is_slice
    assert not datasheet_of(record([square("bf16", 8192, 9e13)])).is_slice


def test_fp16_stands_where_bf16_was_not_measured_and_nothing_else_does() -> None:
    assert of(square("fp16", 8192, 6e14)).rates.matmul16 == pytest.approx(6e14)
    doubtful = of(square("bf16", 8192, 6e14, 2.0), square("fp16", 8192, 5e14))
    assert math.isnan(doubtful.rates.matmul16), "another dtype's rate would pass for bf16's"
    others = of(square("fp32", 8192, 5e13))
    assert others.rates.known == ()
    shapes = point(item("matmul", "bf16", "a shape", (8192, 8192, 1024)), 1e-3, flop=1e12, bytes=1e9)
    assert of(shapes).rates.known == ()


@pytest.mark.parametrize(
    "outcome",
    [
        square("fp8", 8192, 1e15, spread=1.51),
        square("fp8", 2048, 1e15),
        copy(2e9, 3e12, spread=1.6),
        copy(COPY_BYTES / 2, 9e12),
        Refusal(item=square("fp8", 8192, 1e15).item, why="refused", text="no fp8 here"),
    ],
)
def test_what_is_left_aside_is_said(outcome: Outcome) -> None:
    found = of(outcome)
    assert found.rates.known == ()
    assert all(one.reasons for one in found.selected)


def test_on_a_cpu_the_fastest_square_and_the_largest_copy_count() -> None:
    found = of(square("bf16", 512, 2e11), square("bf16", 1024, 1e11), copy(1e7, 2e10), copy(2e7, 1e10), facts=CPU)
    assert found.rates.matmul16 == pytest.approx(2e11)
    assert found.rates.memory == pytest.approx(1e10)


def test_a_plan_uses_a_measurement_by_value() -> None:
    texts = with_measured_rates(record([square("bf16", 8192, 6.6234e14), copy(2e9, 2.913e12)]))
    assert texts == {
        "r16": "662.3 TFLOP/s",
        "rmem": "2.913 TB/s",
        "rof": "H100 80GB HBM3, 22 Nov 2026",
        "gpu": "H100 SXM",
    }
    plan = plan_from(texts)
    assert rates_origin(plan) == "own"
    rates = rates_of(plan)
    assert rates
    assert (rates.matmul16, rates.memory) == (662.3e12, 2.913e12)


def test_a_device_without_a_datasheet_names_no_accelerator() -> None:
    texts = with_measured_rates(record([square("bf16", 1024, 1e11)], CPU))
    assert "gpu" not in texts
    assert ORIGIN.parse(texts["rof"]) == "AMD EPYC 7763 (64-Core) Processor, 22 Nov 2026"
    assert rates_origin(plan_from(texts)) == "stands in"


def test_a_measurement_without_rates_gives_no_plan() -> None:
    assert with_measured_rates(record([])) == {}
    assert with_measured_rates(record([square("fp32", 8192, 5e13)], None)) == {}
