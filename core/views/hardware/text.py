"""The sentences about an accelerator: its peaks and where they come from, its datasheet."""

from __future__ import annotations

import math
import re

from core.hardware.accelerators import Accelerator, find, rate_kind
from core.hardware.operations import peak_from_clock, ridge_point
from core.units import format_bytes, format_quantity
from core.wording import price, signed

YARDSTICK = "A100 SXM 80 GB"
"""The accelerator that others are held against."""

PEAKS = ("dense peak", f"times that of an {YARDSTICK}", "ridge point")
"""Headings of the figures of `peaks`."""


def peaks(device: Accelerator) -> list[tuple[str, str, str, str]]:
    """Rows of the table of peaks: dtype, dense rate, the same against the accelerator that all know, ridge point."""
    usual = find(YARDSTICK)
    return [
        (
            dtype.replace("_", " "),
            format_quantity(rate, rate_kind(dtype)),
            times(rate, usual.peak(dtype), dtype),
            format_quantity(ridge_point(rate, device.bandwidth), "flop_per_byte"),
        )
        for dtype, rate in device.peaks
    ]


def times(rate: float, usual: float, dtype: str) -> str:
    """``3.17 × 312 TFLOP/s``; empty where the other one has no such rate."""
    return "" if math.isnan(usual) else f"{rate / usual:.3g} × {format_quantity(usual, rate_kind(dtype))}"


def datasheet(device: Accelerator) -> str:
    """Memory, bandwidth, power and price of the device in one sentence."""
    cost = price(device.price_low, device.price_high)
    origin = f" ({device.price_source})" if device.price_source else ""
    capacity = format_bytes(device.memory_bytes, system="binary", digits=3)
    reported = "" if math.isnan(device.reported_mib) else f" ({capacity} by its driver)"
    return (
        f"{device.vendor} {device.form_factor}, {device.year}: {format_quantity(device.sheet_bytes, 'bytes')} "
        f"{device.memory_type}{reported} at {format_quantity(device.bandwidth, 'bytes_per_s')}; power {power(device)}; "
        f"price {cost}{origin}."
    )


def power(device: Accelerator) -> str:
    """``700 W``; a range or a remark on it as the catalogue has it, ``450–1,000 W (of the module with its CPU)``."""
    watts, _, remark = device.tdp_note.partition(" ")
    text = "–".join(f"{float(end):,.0f}" for end in watts.split("-") if end)
    grouped = re.sub(r"\d{4,}(?= with)", lambda number: f"{int(number[0]):,}", remark)
    return f"{text} W {grouped}".rstrip() if text else "unknown"


def peak_origin(device: Accelerator, dtype: str) -> list[str]:
    """Where the peak comes from and what to beware of."""
    lines: list[str] = []
    if (clock := device.clock) and clock.dtype == dtype:
        derived = peak_from_clock(clock.hertz, clock.fma_per_clock, clock.units)
        off = derived / device.peak(dtype) - 1
        lines.append(
            f"**Cross-check from the clock:** 2 × {clock.hertz / 1e6:,.0f} MHz × {clock.fma_per_clock:,} multiply-adds "
            f"× {clock.units:,} {clock.unit} = {format_quantity(derived, 'flop_per_s')}, "
            f"{'the figure used' if abs(off) < 5e-4 else f'{signed(off)} from the figure used'}."
        )
    best = device.best_measured(dtype)
    if not math.isnan(best):
        lines.append(
            f"**Best matmul measured by others:** {format_quantity(best, 'flop_per_s')}, "
            f"{format_quantity(best / device.peak(dtype), 'ratio')} of the peak: a practical ceiling for MFU."
        )
    if device.traps:
        lines.append(f"**Beware:** {device.traps}")
    return lines
