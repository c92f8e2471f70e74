"""The sentences about an accelerator: its peaks and where they come from, its datasheet."""

from __future__ import annotations

import math
import re

from core.hardware.accelerators import Accelerator, find, rate_kind
from core.hardware.operations import peak_from_clock, ridge_point
from core.messages import Message, message, pick_message
from core.units import format_quantity
from core.views.common.table import Table, table_of
from core.wording import format_value

YARDSTICK = "A100 SXM 80 GB"
"""The accelerator that others are compared with."""


def peak_table(device: Accelerator) -> Table:
    """Return the peaks: dtype, dense rate, its ratio to that of `YARDSTICK`, ridge point."""
    usual, rates = find(YARDSTICK), [rate for _, rate in device.peaks]
    ratios = [
        "" if math.isnan(usual.peak(dtype)) else format_value(rate / usual.peak(dtype), "factor")
        for dtype, rate in device.peaks
    ]
    ridges = [format_quantity(ridge_point(rate, device.bandwidth), "flop_per_byte") for rate in rates]
    return table_of(
        {
            message("flops.peaks.dtype"): [dtype.replace("_", " ") for dtype, _ in device.peaks],
            message("hardware.peaks.rate"): [format_quantity(rate, rate_kind(dtype)) for dtype, rate in device.peaks],
            message("hardware.peaks.ratio", device=YARDSTICK): ratios,
            message("hardware.peaks.ridge"): ridges,
        }
    )


def datasheet(device: Accelerator) -> list[Message]:
    """Return the maker, memory, power, and price of the device."""
    reported = "hardware.memory" if math.isnan(device.reported_mib) else "hardware.memory_reported"
    prices = (device.price_low, device.price_high)
    return [
        message("hardware.device", vendor=device.vendor, form=device.form_factor, year=device.year),
        pick_message(
            reported,
            size=device.sheet_bytes,
            reported=device.memory_bytes,
            kind=device.memory_type,
            bandwidth=format_quantity(device.bandwidth, "bytes_per_s"),
        ),
        message("hardware.power", power=power(device)),
        pick_message(
            "hardware.price_sourced" if device.price_source else "hardware.price",
            price=prices,
            source=device.price_source,
        ),
    ]


def power(device: Accelerator) -> str:
    """Return ``700 W``, or a range or remark of the catalog: ``450–1,000 W (of the module with its CPU)``."""
    watts, _, remark = device.tdp_note.partition(" ")
    text = "–".join(f"{float(end):,.0f}" for end in watts.split("-") if end)
    grouped = re.sub(r"\d{4,}(?= with)", lambda number: f"{int(number[0]):,}", remark)
    return f"{text} W {grouped}".rstrip() if text else "unknown"


_EXACT = 5e-4
"""A rate from the clock within this share of the peak is that of the datasheet."""


def peak_origin(device: Accelerator, dtype: str) -> list[Message]:
    """Return where the peak comes from, and its caveats."""
    lines: list[Message] = []
    if (clock := device.clock) and clock.dtype == dtype:
        derived = peak_from_clock(clock.hertz, clock.fma_per_clock, clock.units)
        off = derived / device.peak(dtype) - 1
        lines.append(
            pick_message(
                "hardware.clock" if abs(off) < _EXACT else "hardware.clock_off",
                clock=clock.hertz / 1e6,
                multiply_adds=float(clock.fma_per_clock),
                units=float(clock.units),
                unit=clock.unit,
                rate=format_quantity(derived, "flop_per_s"),
                off=off,
            )
        )
    best = device.best_measured(dtype)
    if not math.isnan(best):
        rate = format_quantity(best, "flop_per_s")
        lines.append(message("hardware.best_matmul", rate=rate, share=best / device.peak(dtype)))
    if device.traps:
        lines.append(message("hardware.caveat", caveat=device.traps))
    return lines
