"""Checks of claims on accelerators: peaks, work per clock, and how much of the peak is reached."""

from __future__ import annotations

from core.budget.equations import training_seconds
from core.formula import Explanation
from core.hardware.accelerators import best_matmul, find
from core.hardware.operations import explain_device, peak_from_clock
from core.lecture.claims import Finding, titled
from core.messages import message
from core.runs.published import printed_mfu
from core.units import format_quantity, significant

H100, A100 = "H100 SXM", "A100 SXM 80 GB"


def _clocks(*names: str) -> tuple[Explanation, ...]:
    """Explain the dense bf16 peaks of these accelerators by their clocks, where those are known."""
    return tuple(
        titled(f"{name}: {step.title[0].lower()}{step.title[1:]}", step)
        for name in names
        for step in explain_device(find(name), "bf16")
        if step.name == peak_from_clock.name
    )


def _peaks(*dtypes: str) -> tuple[float, ...]:
    return tuple(find(H100).peak(dtype) for dtype in dtypes)


def _written(*peaks: float) -> tuple[str, ...]:
    return tuple(str(format_quantity(peak, "flop_per_s")) for peak in peaks)


def _times(peak: float, other: float) -> str:
    return f"{significant(peak / other, 3)}×"


def check_flop_and_rate() -> Finding:
    (peak,) = _peaks("bf16")
    day = training_seconds.explain(flop=peak * 86400, accelerators=1, peak=peak, mfu=1.0)
    found = message("lecture.C18.found", peak=peak, flop=peak * 86400)
    return Finding(found, day.value == 86400, (day,), message("lecture.C18.how"), shown=_written(peak))


def check_peaks() -> Finding:
    h100, a100 = (find(name).peak("bf16") for name in (H100, A100))
    explained = _clocks(H100, A100)
    return Finding(
        message("lecture.C11.found", h100=h100, a100=a100, clock=explained[0].value),
        abs(explained[0].value / h100 - 1) < 1e-3,
        explained,
        shown=(*_written(h100), _times(h100, a100)),
    )


def check_tensor_core() -> Finding:
    clock = find(H100).clock
    per_clock = clock.fma_per_clock if clock else 0
    return Finding(
        message("lecture.C12.found", per_clock=float(per_clock)),
        per_clock == 512,
        _clocks(H100),
        message("lecture.C12.how"),
        shown=(f"{per_clock} multiply-adds",),
    )


def check_good_mfu() -> Finding:
    spread = printed_mfu()
    return Finding(
        spread.text,
        0.3 < spread.median < 0.55 and spread.highest < 0.9,
        how=message("lecture.C13.how"),
        shown=(str(format_quantity(spread.median, "ratio")),),
    )


def check_best_matmul() -> Finding:
    a100, h100 = (best_matmul(name, "bf16") for name in (A100, H100))
    return Finding(
        message("lecture.C22.found", a100=a100.share, h100=h100.share),
        a100.measured and h100.measured and max(a100.share, h100.share) < 0.9,
        how=message("lecture.C22.how"),
        shown=(str(format_quantity(h100.share, "ratio")),),
    )


def check_faster() -> Finding:
    bf16, fp32 = _peaks("bf16", "fp32")
    a100 = find(A100).peak("bf16")
    return Finding(
        message("lecture.C14.found", bf16=bf16, a100=a100, fp32=fp32, by_a100=bf16 / a100, by_fp32=bf16 / fp32),
        bf16 / a100 > 3 and bf16 / fp32 > 14,
        _clocks(H100, A100),
        message("lecture.C14.how"),
        shown=(*_written(bf16, fp32), _times(bf16, a100)),
    )


def check_price_of_precision() -> Finding:
    bf16, fp32, fp64, tf32, fp64_tensor = _peaks("bf16", "fp32", "fp64", "tf32", "fp64_tensor")
    return Finding(
        message("lecture.C23.found", bf16=bf16, fp32=fp32, fp64=fp64, tf32=tf32, fp64_tensor=fp64_tensor),
        bf16 > tf32 > fp32 == fp64_tensor > fp64,
        _clocks(H100),
        message("lecture.C23.how"),
        shown=_written(bf16, fp32, fp64),
    )


def check_tensor_core_dtypes() -> Finding:
    bf16, tf32, fp64_tensor, fp32, fp64 = _peaks("bf16", "tf32", "fp64_tensor", "fp32", "fp64")
    return Finding(
        message("lecture.C21.found", bf16=bf16, tf32=tf32, fp64_tensor=fp64_tensor, fp32=fp32, fp64=fp64),
        tf32 > fp64_tensor > fp64,
        _clocks(H100),
        message("lecture.C21.how"),
        shown=_written(bf16, tf32, fp64_tensor, fp32, fp64),
    )
