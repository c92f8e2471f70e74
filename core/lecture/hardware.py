"""Claims about accelerators: their peaks, what a clock cycle does, and what of it is reached."""

from __future__ import annotations

from core.budget.equations import training_seconds
from core.formula import Explanation
from core.hardware.accelerators import best_matmul, find
from core.hardware.operations import explain_device, peak_from_clock
from core.lecture.claims import Finding, titled
from core.runs.published import printed_mfu
from core.units import format_quantity

H100, A100 = "H100 SXM", "A100 SXM 80 GB"


def _clocks(*names: str) -> tuple[Explanation, ...]:
    """The dense bf16 peaks of these accelerators from their clocks, where those are known."""
    return tuple(
        titled(f"{name}: {step.title[0].lower()}{step.title[1:]}", step)
        for name in names
        for step in explain_device(find(name), "bf16")
        if step.name == peak_from_clock.name
    )


def peaks() -> Finding:
    device = find(H100)
    explained = _clocks(H100, A100)
    text = (
        f"dense bf16: H100 {format_quantity(device.peak('bf16'), 'flop_per_s')}, "
        f"A100 {format_quantity(find(A100).peak('bf16'), 'flop_per_s')}; from the clock {explained[0].text}"
    )
    shown = tuple(format_quantity(find(name).peak("bf16"), "flop_per_s") for name in (H100, A100))
    return Finding(text, abs(explained[0].value / device.peak("bf16") - 1) < 1e-3, explained, shown=shown)


def tensor_core() -> Finding:
    clock = find(H100).clock
    per_clock = clock.fma_per_clock if clock else 0
    return Finding(
        f"{per_clock} multiply-adds per clock and tensor core; a 4 × 4 × 4 product is 64",
        per_clock == 512,
        _clocks(H100),
        "A 4 × 4 × 4 product is 4 · 4 · 4 = 64 multiply-adds. With so many per clock and unit (w below) the peak would "
        "be an eighth of the datasheet’s.",
        shown=(f"{per_clock} multiply-adds",),
    )


def good_mfu() -> Finding:
    spread = printed_mfu()
    how = (
        "No formula but a survey: all rows of the table of published runs and benchmarks whose source prints an MFU, "
        "each as printed, and the quantiles of these figures. Benchmarks of one source are many rows, so this is no "
        "fair sample of training runs."
    )
    median = f"half below {100 * spread.median:.0f}%"
    return Finding(spread.text, 0.3 < spread.median < 0.55 and spread.highest < 0.9, how=how, shown=(median,))


def faster() -> Finding:
    h100, a100 = find(H100), find(A100)
    fast, slow, wide = h100.peak("bf16"), a100.peak("bf16"), h100.peak("fp32")
    newer, older, single = (format_quantity(peak, "flop_per_s") for peak in (fast, slow, wide))
    how = "Dense peaks of the datasheets; fp32 is without the matrix units."
    return Finding(
        f"H100 in bf16 {newer}, {fast / slow:.1f} × A100 ({older}) and {fast / wide:.1f} × its own fp32 ({single})",
        fast / slow > 3 and fast / wide > 14,
        _clocks(H100, A100),
        how,
        shown=(newer, older, single),
    )


def rate_and_amount() -> Finding:
    peak = find(H100).peak("bf16")
    day = training_seconds.explain(flop=peak * 86400, accelerators=1, peak=peak, mfu=1.0)
    rate = format_quantity(peak, "flop_per_s")
    return Finding(
        f"an H100 at its dense peak of {rate} does {format_quantity(peak * 86400, 'flop')} in a day",
        day.value == 86400,
        (day,),
        "An amount divided by a rate is a time; of two amounts or two rates it is not.",
        shown=(rate,),
    )


def adds_in_fp32() -> Finding:
    device = find(H100)
    multiplied, beside = ("bf16", "tf32", "fp64_tensor"), ("fp32", "fp64")
    peaks = {name: format_quantity(device.peak(name), "flop_per_s") for name in (*multiplied, *beside)}
    on, without = (
        ", ".join(f"{name.partition('_')[0]} {peaks[name]}" for name in names) for names in (multiplied, beside)
    )
    return Finding(
        f"H100 on tensor cores: {on}; on CUDA cores: {without}",
        device.peak("tf32") > device.peak("fp64_tensor") > device.peak("fp64"),
        _clocks(H100),
        "Dense peaks of the datasheet. A product of two bf16 numbers fits into fp32 unrounded, and sums are kept "
        "there. GeForce cards halve the rate for it.",
        shown=tuple(map(str, peaks.values())),
    )


def alone() -> Finding:
    names = [name for name in (A100, H100) if best_matmul(name, "bf16").measured]
    shares = {name: best_matmul(name, "bf16").share for name in names}
    text = ", ".join(f"{name} {format_quantity(share, 'ratio')}" for name, share in shares.items())
    return Finding(
        f"the best bare matmul measured on one accelerator, which exchanges nothing, reaches of its peak: {text}",
        bool(shares) and max(shares.values()) < 0.9,
        how="The table of measured matmuls, each the best of many shapes. Clocks fall under load, and a matrix’s edges "
        "leave units idle: no training run on it can reach more.",
        shown=(format_quantity(shares[H100], "ratio"),),
    )


def wider_is_more() -> Finding:
    device = find(H100)
    rows = {name: (size, device.peak(name)) for name, size in (("bf16", 2), ("fp32", 4), ("fp64", 8))}
    text = "; ".join(f"{name} {size} B, {format_quantity(peak, 'flop_per_s')}" for name, (size, peak) in rows.items())
    sizes, peaks = zip(*rows.values(), strict=True)
    tensor = {name: device.peak(name) for name in ("tf32", "fp64_tensor")}
    on = ", ".join(f"{name.partition('_')[0]} {format_quantity(peak, 'flop_per_s')}" for name, peak in tensor.items())
    falls = list(sizes) == sorted(sizes) and list(peaks) == sorted(peaks, reverse=True)
    return Finding(
        f"per element and on an H100: {text}; on tensor cores {on}",
        falls and tensor["tf32"] > device.peak("fp32") == tensor["fp64_tensor"],
        _clocks(H100),
        "Dense peaks of the datasheet. The first fp32 and fp64 are those of CUDA cores.",
        shown=tuple(format_quantity(peak, "flop_per_s") for peak in peaks),
    )
