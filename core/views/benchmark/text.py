"""Sentences of a measurement: what it found, what casts doubt on it, and how it runs and ended."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Literal

from core.benchmark.best import (
    best_squares,
    headline_square,
    is_spread,
    lowered_clocks,
    sustained,
)
from core.benchmark.datasheet import comparable_peak, datasheet_of, match, peak_of
from core.benchmark.device import DeviceKind, Machine
from core.benchmark.formulas import achieved_bandwidth, achieved_rate, share_of_peak
from core.benchmark.points import Item, Kind, Point, clip
from core.benchmark.programme import Programme
from core.benchmark.record import Record
from core.benchmark.roofline import Roof
from core.formula import Explanation
from core.hardware.accelerators import rate_kind
from core.messages import Message, message, pick_message
from core.products import matmul_flop
from core.wording import Amount

LAUNCH_S = 2e-5
"""On a GPU, runs shorter than this are mostly the launching of a kernel."""

SUSTAINED_S = 10.0
"""Timed seconds from which a rate counts as sustained: by then power and temperature limits show."""

Range = float | tuple[float, float]


def rate_amount(rate: Range, dtype: str = "") -> Amount:
    """Return a rate, or a range of rates, for a message; of int8 in OP/s."""
    return Amount(rate, "measured_integer" if rate_kind(dtype) == "op_per_s" else "measured")


def rate_of(point: Point) -> Amount:
    """Return the rate of a point for a message."""
    return rate_amount(point.rate, point.item.name)


def range_of(point: Point) -> Amount:
    """Return the P10–P90 range of a point's rates for a message."""
    return rate_amount((point.p10_rate, point.p90_rate), point.item.name)


def points_of(record: Record, kind: Kind) -> tuple[Point, ...]:
    """Return the points of a kind, in order."""
    return tuple(point for point in record.points if point.item.kind == kind)


def subject(record: Record) -> Message:
    """Return the device that was measured, as the subject of a sentence."""
    if record.programme.device == "cpu":
        return message("device.this_cpu")
    name = record.facts.name if record.facts else ""
    return message("device.this_gpu", gpu=name or message("device.unnamed_gpu"))


# ------------------------------------------------------------------------------ before, while, and after it runs


def device_lines(machine: Machine) -> list[str]:
    """Return what is measured here, and why it is no GPU."""
    if machine.kind == "cpu":
        cpu = machine.cpu
        dtypes = [dtype for dtype, instructions in (("bf16", cpu.bf16), ("fp16", cpu.fp16)) if instructions]
        line = "device.cpu_16bit" if dtypes else "device.cpu"
        return [machine.why_not_cuda, pick_message(line, cpu=cpu.name, threads=float(cpu.threads), dtypes=dtypes)]
    gpu, count = machine.gpus[0], float(len(machine.gpus))
    sheet = match(gpu.name, gpu.memory_bytes, gpu.power_limit_w)
    known = "device.gpu_no_memory" if gpu.memory_bytes is None else "device.gpu"
    lines = [
        pick_message(known, gpu=gpu.name or message("device.unnamed_gpu"), memory=gpu.memory_bytes),
        message("device.datasheet.unknown", reason=sheet.reason)
        if sheet.reason
        else message("device.datasheet.known", sheet=sheet.name),
    ]
    return [*lines, message("device.first_of", gpus=count)] if count > 1 else [*lines]


_INVITATIONS = {
    "dtypes": "measure.invitation.dtypes",
    "lecture": "measure.invitation.lecture",
    "memory": "measure.invitation.memory",
    "attention": "measure.invitation.attention",
    "layer": "measure.invitation.layer",
    "plan": "measure.invitation.plan",
    "all": "measure.invitation.all",
}


def invitation(choice: str, programme: Programme, seconds: float) -> Message:
    """Return what a measurement will show, and about how long it takes."""
    return pick_message(_INVITATIONS[choice], seconds=float(round(seconds)), dtypes=programme.dtypes)


def progress_text(item: Item | None, place: int, items: int, left_s: float) -> list[Message]:
    """Return what a running measurement does and how long it still takes. place: of the item, from 1."""
    doing = message("measure.progress.starting")
    if item:
        name = message("measure.chart.item", item=item.name, variant=item.label)
        doing = message("measure.progress.item", item=name, place=float(place), items=float(items))
    if left_s <= 0:
        return [doing, message("measure.progress.late")]
    return [doing, message("measure.progress.left", seconds=float(math.ceil(left_s)))]


def waiting_text(place: int, left_s: float) -> Message:
    """Return that a measurement waits. place: 1 is next, 0 waits for another server. left_s: of the running one."""
    if place == 0:
        return message("measure.waiting.server")
    if place == 1:
        return message("measure.waiting.next", seconds=float(math.ceil(max(left_s, 1))))
    return message("measure.waiting.queue", ahead=float(place - 1))


_LISTED = 6


def ended_text(record: Record, items: Sequence[Item]) -> tuple[Literal["note", "error"], list[Message]] | None:
    """Return how an incomplete measurement ended, and which results remain; None for a complete one."""
    if record.stage not in ("cancelled", "failed"):
        return None
    done = {outcome.item.key for outcome in record.outcomes}
    lost = list(dict.fromkeys(item.name for item in items if item.key not in done))
    lines = [
        message("measure.ended.cancelled", seconds=record.elapsed_s)
        if record.stage == "cancelled"
        else message("measure.ended.failed", seconds=record.elapsed_s, problem=clip(record.message, 600)),
        message("measure.ended.kept", results=float(len(record.points)), items=float(len(items))),
    ]
    if lost:
        names = lost if len(lost) <= _LISTED else [*lost[: _LISTED - 1], "…"]
        lines.append(message("measure.ended.lost", names=names))
    return ("note" if record.stage == "cancelled" else "error"), lines


def when_text(record: Record) -> Message:
    """Return when a record was measured, with which torch, and by which method."""
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started))
    return message("measure.when", date=date, torch=record.torch, method=record.method)


# ------------------------------------------------------------------------------ matmuls


def answer(record: Record) -> tuple[Message, list[Message]]:
    """Return the headline of a record's matmuls, and the line under it. Needs at least one matmul."""
    top = headline_square(record)
    assert top is not None  # noqa: S101 - the caller has looked
    share = share_of_peak(top.rate, comparable_peak(datasheet_of(record), top))
    uneven = is_spread(top)
    headline = pick_message(
        "measure.answer_spread" if uneven else "measure.answer" if math.isnan(share) else "measure.answer_share",
        device=subject(record),
        dtype=top.item.name,
        n=float(top.shape[0]),
        rate=rate_of(top),
        range=range_of(top),
        share=share,
    )
    if uneven:
        return headline, [message("measure.doubt.busy")]
    threads = float(record.facts.threads) if record.facts else 0.0
    lines = [
        pick_message(
            "measure.detail.cpu" if threads else "measure.detail.gpu",
            range=range_of(top),
            runs=float(top.runs),
            seconds=top.duration_s,
            threads=threads,
        )
    ]
    long = sustained(record.points, top.item.name)
    lines += [
        message("measure.detail.sustained", seconds=p.duration_s, rate=rate_of(p), n=float(p.shape[0])) for p in long
    ]
    if not long and top.duration_s < SUSTAINED_S:
        lines.append(message("measure.detail.burst"))
    return headline, lines


def doubts(record: Record) -> list[Message]:
    """Return what casts doubt on the matmuls and is not in the headline: rates that vary."""
    top = headline_square(record)
    varying = [p for p in best_squares(record) if is_spread(p)]
    if not varying or (top and is_spread(top)):
        return []
    ranges = [message("measure.doubt.range", dtype=p.item.name, range=range_of(p)) for p in varying]
    return [message("measure.doubt.spread", rates=ranges), message("measure.doubt.busy")]


_REASONS = (
    (4, "measure.clock.power"),
    (32 | 64, "measure.clock.temperature"),
    (8 | 128, "measure.clock.hardware"),
)
"""Why a clock is held down, by NVML's bits."""


def notices(record: Record) -> list[Message]:
    """Return what a reader must know of the matmuls: launch overhead, lowered clocks, a peak that does not count."""
    points, sheet = points_of(record, "matmul"), datasheet_of(record)
    bests, result = best_squares(record), list[Message]()
    short = [p for p in bests if record.programme.device != "cpu" and p.median_s < LAUNCH_S]
    if short:
        dtypes = [p.item.name for p in short]
        result.append(message("measure.notice.launch", dtypes=dtypes, seconds=max(p.median_s for p in short)))
    top, lowered = lowered_clocks(points)
    if lowered:
        bits = [p.after.clock_reasons or 0 for p in points]
        reasons = [message(reason) for mask, reason in _REASONS if any(each & mask for each in bits)]
        notice = "measure.notice.clock_why" if reasons else "measure.notice.clock"
        result.append(pick_message(notice, share=min(lowered.values()), top=top, dtypes=list(lowered), reasons=reasons))
    for p in bests:
        peak = peak_of(sheet, p.item.name)
        if math.isnan(comparable_peak(sheet, p)) and not math.isnan(peak):
            result.append(message("measure.notice.int8", rate=rate_of(p), peak=rate_amount(peak, p.item.name)))
    return result


# ------------------------------------------------------------------------------ other kinds


def takeaway(record: Record, kind: Kind) -> list[Message]:
    """Return the finding of a kind of items; empty if none of them was measured."""
    points = points_of(record, kind)
    if kind == "matmul":
        return [answer(record)[0]] if best_squares(record) else []
    return {"memory": _memory, "attention": _attention, "layer": _layer}[kind](record, points) if points else []


def _memory(record: Record, points: Sequence[Point]) -> list[Message]:
    large, fast = max(points, key=lambda p: p.bytes), max(points, key=lambda p: p.bandwidth)
    share = share_of_peak(large.bandwidth, datasheet_of(record).bandwidth)
    lines = [
        pick_message(
            "measure.memory" if math.isnan(share) else "measure.memory_share",
            device=subject(record),
            size=large.item.label,
            bandwidth=Amount(large.bandwidth, "bandwidth"),
            share=share,
        )
    ]
    if fast.bandwidth > 1.2 * large.bandwidth:
        factor = fast.bandwidth / large.bandwidth
        lines.append(message("measure.memory.cache", size=fast.item.label, factor=factor))
    return lines


def _attention(_: Record, points: Sequence[Point]) -> list[Message]:
    best = max(points, key=lambda p: p.rate)
    return [message("measure.attention", backend=best.item.name, rate=rate_of(best), variant=best.item.label)]


def _layer(record: Record, points: Sequence[Point]) -> list[Message]:
    best, layer = min(points, key=lambda p: p.median_s), record.programme.layer
    sequences, length = (float(size) for size in best.shape)
    lines = [
        pick_message(
            "measure.layer_model" if layer else "measure.layer",
            model=layer.model if layer else "",
            seconds=best.median_s,
            variant=best.item.label,
            sequences=sequences,
            length=length,
            rate=rate_of(best),
        )
    ]
    if layer and sequences * length < layer.tokens:
        lines.append(message("measure.layer.fewer", sequences=float(layer.micro_batch), length=float(layer.seq_len)))
    return lines


def roofline_text(record: Record, roof: Roof, sheet: Roof) -> Message:
    """Return the ridge point, as measured and by the datasheet."""
    return pick_message(
        "measure.roofline" if math.isnan(sheet.ridge) else "measure.roofline_sheet",
        device=subject(record),
        ridge=roof.ridge,
        sheet=sheet.ridge,
        rate=rate_amount(roof.top),
        bandwidth=Amount(roof.bandwidth, "bandwidth"),
    )


# ------------------------------------------------------------------------------ how it was measured

_METHODS: dict[DeviceKind, str] = {"cpu": "measure.method.cpu", "cuda": "measure.method.cuda"}


def method_notes(kind: DeviceKind, record: Record | None) -> list[Message]:
    """Return how a kind of device is measured, and how the device was while ``record`` was made."""
    return [
        message(_METHODS[kind]),
        message("measure.method.check"),
        message("measure.method.skip"),
        message("measure.method.median"),
        message("measure.method.attention"),
        *(_conditions(record) if record else []),
    ]


def _conditions(record: Record) -> list[Message]:
    """Return clock, temperature, and power while the matmuls ran."""
    points, result = points_of(record, "matmul"), list[Message]()
    states = [state for p in points for state in (p.before, p.after)]
    if clocks := [each for state in states if (each := state.clock_mhz) is not None]:
        result.append(message("measure.conditions.clock", low=min(clocks), high=max(clocks)))
    if temperatures := [each for state in states if (each := state.temperature_c) is not None]:
        result.append(message("measure.conditions.temperature", low=min(temperatures), high=max(temperatures)))
    limit = record.facts and (record.facts.enforced_limit_w or record.facts.power_limit_w)
    powers = "measure.conditions.power_limit" if limit else "measure.conditions.power"
    return result + [
        pick_message(powers, dtype=p.item.name, power=p.mean_power_w, limit=limit)
        for p in points
        if p.mean_power_w is not None
    ]


def explanations(record: Record) -> list[Explanation]:
    """Return the formulas behind the rates: of matmuls by dtype, of everything else by item."""
    sheet, bests = datasheet_of(record), best_squares(record)
    sizes = dict.fromkeys(p.shape[0] for p in bests)
    result = [matmul_flop.explain(m=n, n=n, k=n, groups=1).about(f"n = {n:,}") for n in sizes]
    for p in (*bests, *(p for p in record.points if p.item.kind != "matmul")):
        about = message("measure.chart.item", item=p.item.name, variant=p.item.label)
        kind = rate_kind(p.item.name)
        if p.flop:
            result.append(achieved_rate.explain({"": kind}, flop=p.flop, seconds=p.median_s).about(about))
        elif p.bytes:
            result.append(achieved_bandwidth.explain(size=p.bytes, seconds=p.median_s).about(about))
        if p.item.kind == "matmul" and not math.isnan(peak := comparable_peak(sheet, p)):
            share = share_of_peak.explain({"rate": kind, "peak": kind}, rate=p.rate, peak=peak)
            result.append(share.about(message("measure.how.peak", dtype=p.item.name, sheet=sheet.name)))
    return result
