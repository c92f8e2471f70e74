"""What a record's matmuls say: the answer, the doubts, a bar and a row per dtype, and every number opened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.benchmark.best import NOTICEABLE, above_the_squares, fastest, is_spread, reversed_dtypes, squares, sustained
from core.benchmark.datasheet import Datasheet, best_by_others, datasheet_of, peak_of
from core.benchmark.formulas import achieved_rate, share_of_peak, speed_ratio
from core.benchmark.points import Point, Refusal, clip
from core.benchmark.record import Record
from core.formula import Explanation
from core.hardware.accelerators import rate_kind
from core.products import matmul_flop
from core.units import QuantityText, format_duration, format_exact, format_quantity, scientific, significant
from core.views.benchmark.common import (
    OVER,
    SUSTAINED_S,
    device_phrase,
    measured_line,
    of_kind,
    point_rate_text,
    rate_text,
    spread,
    subject,
)
from core.wording import listed

PLAUSIBLE = 0.5
"""int8 below this share of its peak did not run on the units that the peak is of."""

THROTTLED = 0.9
"""A clock below this share of the highest one seen has been lowered by something."""

LAUNCH_S = 2e-5
"""On a GPU, runs shorter than this are mostly the launching of a kernel."""

_REASONS = {4: "the power limit", 32 | 64: "the temperature limit", 8 | 128: "a hardware slowdown"}
"""Why a clock is held down, by NVML's bits."""

CHECK = "over 100%: check the peak"


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the chart. Rates in operations per second, NaN where unknown; ``note`` says what there is instead of a
    rate, ``no_peak`` instead of a peak.

    others: rates at the other sizes, each with its size in words.
    """

    dtype: str
    size: str
    rate: float
    low: float
    high: float
    peak: float
    note: str
    no_peak: str
    others: tuple[tuple[str, float], ...] = ()


def best_square(record: Record, dtype: str) -> Point | None:
    """The square at which a dtype runs fastest; None without one."""
    return fastest(squares(record.points, dtype))


def bests(record: Record) -> tuple[Point, ...]:
    """The best square of each dtype, in the order of measuring."""
    results = (best_square(record, dtype) for dtype in record.programme.dtypes)
    return tuple(point for point in results if point is not None)


def headline(record: Record) -> Point | None:
    """The point to lead with: bf16 on a GPU, or fp16, and fp32 on a CPU; else the fastest dtype; None without any."""
    tops = bests(record)
    wanted = ("fp32",) if record.programme.device == "cpu" else ("bf16", "fp16")
    return next((p for dtype in wanted for p in tops if p.item.name == dtype), fastest(tops))


def answer(record: Record) -> tuple[str, str]:
    """The finding in one sentence, and the quieter line with its circumstances. Needs at least one matmul."""
    top, tops = headline(record), bests(record)
    assert top is not None  # noqa: S101 - the caller has looked
    who = subject(record)
    if is_spread(top):
        text = spread(top)
        return (
            f"{who} ran **too unevenly to say how fast it is**: {top.item.name} at {_size(top)} went at {text} "
            "(p10–p90 of its runs).",
            "Something else probably used it meanwhile: measure again when nothing else runs. The best of "
            f"{top.runs:,} runs reached {rate_text(top.best_rate, top.item.name)}; "
            f"one run is no rate that a plan can count on. {' '.join(_about(record))}",
        )
    sheet = datasheet_of(record)
    sentence = f"{who} reached **{point_rate_text(top)}** in {top.item.name} at {_size(top)}"
    share = share_of_peak(top.rate, _peak(sheet, top))
    if not math.isnan(share):
        sentence += f", **{format_quantity(share, 'ratio', 3)}** of its datasheet peak"
    fast, slow = max(tops, key=lambda p: p.rate), min(tops, key=lambda p: p.rate)
    for other, word in ((fast, "as fast"), (slow, "slower")):
        if other is top or is_spread(other) or disturbed(record):
            continue
        if apart := _apart(max(top.rate, other.rate), min(top.rate, other.rate)):
            sentence += f"; {other.item.name} is **{apart} {word}**"
    return f"{sentence}.", " ".join((*_circumstances(record, top), *_about(record)))


def error_text(point: Point) -> str:
    """How far the result was from float64, relative to it."""
    if point.relative_error is None:
        return "not compared"
    return scientific(point.relative_error, 2) if point.relative_error else "none"


def _size(point: Point) -> str:
    return f"n = {point.shape[0]:,}"


def _apart(fast: float, slow: float) -> str:
    """ "about 15 times": two digits, and from a hundred on half of the leading one; empty for rates nearly alike."""
    ratio = speed_ratio(fast, slow)
    if ratio < NOTICEABLE:
        return ""
    if ratio >= 100:
        step = 10 ** math.floor(math.log10(ratio)) / 2
        return f"about {round(ratio / step) * step:,.0f} times"
    return f"about {significant(ratio, 2)} times"


def _circumstances(record: Record, top: Point) -> list[str]:
    threads = record.facts.threads if record.facts else 0
    on = f" on {threads} thread{'s' if threads != 1 else ''}" if threads else ""
    sentences = [
        f"Median of {top.runs:,} runs in {format_duration(top.duration_s, 2)}{on}; best "
        f"{rate_text(top.best_rate, top.item.name)}."
    ]
    long = [p for dtype in record.programme.dtypes for p in sustained(record.points, dtype)]
    for point in long:
        burst = next((p for p in squares(record.points, point.item.name) if p.shape == point.shape), None)
        text = f", {format_quantity(speed_ratio(point.rate, burst.rate), 'ratio', 3)} of its burst" if burst else ""
        lasted = format_duration(point.duration_s, 2)
        sentences.append(
            f"Kept up for {lasted}, {point.item.name} at {_size(point)} ran at {point_rate_text(point)}{text}."
        )
    if not long and top.duration_s < SUSTAINED_S:
        sentences.append("A burst: for hours a device may not hold it.")
    return sentences


def _about(record: Record) -> list[str]:
    """The datasheet it is held against, when it was measured, and with what."""
    sheet = datasheet_of(record)
    if not sheet.rows:
        sentences = [f"Peak unknown: {sheet.reason}."]
    elif sheet.reason:
        sentences = [f"{sheet.reason}; a peak is shown where they agree."]
    else:
        sentences = [f"Peaks are the dense datasheet rates of {sheet.name}."]
    return [*sentences, measured_line(record)]


def warning(record: Record) -> str:
    """What casts doubt on the matmuls, empty when nothing does or when the answer says it already."""
    top = headline(record)
    doubtful = [p for p in bests(record) if is_spread(p)]
    if not doubtful or (top is not None and is_spread(top)):
        return ""
    text = listed([f"{p.item.name} p10–p90 {spread(p)}" for p in doubtful])
    return f"**The runs spread widely** ({text}): something else probably used this device meanwhile; measure again."


def disturbed(record: Record) -> str:
    """That some rates contradict others, which they do not on a free device; empty where none do."""
    reasons = [
        f"{a.item.name} ran {significant(speed_ratio(a.rate, b.rate), 3)} times as fast as {b.item.name}"
        for a, b in reversed_dtypes(record).values()
    ]
    reasons += [
        f"{p.item.name} reached {rate_text(p.rate, top.item.name)} in {top.item.name}, the fastest square "
        f"{point_rate_text(top)}"
        for p, top in above_the_squares(record)
    ]
    text = f"**Something disturbed this measurement**: {'; '.join(reasons)}. Measure again when nothing else runs."
    return text if reasons else ""


def bars(record: Record, *, doing: str = "") -> tuple[Bar, ...]:
    """One bar per dtype of the programme, measured or not, in order. doing: the dtype being measured now."""
    sheet, result, nan = datasheet_of(record), list[Bar](), math.nan
    for dtype in record.programme.dtypes:
        top = best_square(record, dtype)
        if top is not None:
            rest = tuple((_size(p), p.rate) for p in squares(record.points, dtype) if p is not top)
            ends = (top.rate, top.p10_rate, top.p90_rate)
            result.append(Bar(dtype, _size(top), *ends, _peak(sheet, top), "", _no_peak(sheet, top), rest))
            continue
        text = _missing(record, dtype, doing)
        # What cannot be measured has nothing to stand beside a peak, and its reason needs the room.
        waits = text in ("waiting", "measuring …")
        result.append(Bar(dtype, "", nan, nan, nan, peak_of(sheet, dtype) if waits else nan, text, ""))
    return tuple(result)


def _peak(sheet: Datasheet, point: Point) -> float:
    """The peak that a rate is shown as a share of; NaN where none is known, or the rate is not of its units."""
    peak = peak_of(sheet, point.item.name)
    return math.nan if point.item.name == "int8" and point.rate < PLAUSIBLE * peak else peak


def _no_peak(sheet: Datasheet, point: Point) -> str:
    """What is said instead of a peak, or of a share of one."""
    return "peak unknown" if math.isnan(peak_of(sheet, point.item.name)) else "not compared with its peak"


def _refused(record: Record, dtype: str) -> list[Refusal]:
    return [r for r in record.refusals if r.item.kind == "matmul" and r.item.name == dtype]


def _missing(record: Record, dtype: str, doing: str) -> str:
    if refusals := _refused(record, dtype):
        return f"{refusals[0].why}: {clip(' '.join(refusals[0].text.split()), 90)}"
    if record.stage != "running":
        return "not measured"
    return "measuring …" if dtype == doing else "waiting"


def headings(record: Record) -> tuple[str, ...]:
    """The headings over the cells of `rows`; the first is over words, the others over figures."""
    shares = ("Of the peak", "Of others’ best") if datasheet_of(record).rows else ()
    return ("dtype", "Best n", "Median", "p10–p90", "Runs", *shares, "Times fp32", "Error")


def rows(record: Record) -> tuple[tuple[str, ...], ...]:
    """The table behind the chart: each dtype at the square where it is fastest."""
    sheet, base, wrong = datasheet_of(record), best_square(record, "fp32"), reversed_dtypes(record)
    result: list[tuple[str, ...]] = []
    for p in bests(record):
        dtype = p.item.name
        share = share_of_peak(p.rate, _peak(sheet, p))
        text = "unknown" if math.isnan(peak_of(sheet, dtype)) else "not compared"
        if not math.isnan(share):
            text = format_quantity(share, "ratio", 3)
        if isinstance(text, QuantityText) and share > OVER:
            text = text.written(f"{text} ({CHECK})")
        others = format_quantity(share_of_peak(p.rate, best_by_others(sheet, dtype)), "ratio", 3)
        shares = (text, others) if sheet.rows else ()
        times = f"{significant(speed_ratio(p.rate, base.rate), 3)} ×" if base and _sure(p, base) else "unknown"
        times += " (disturbed)" if dtype in wrong else ""
        error = error_text(p)
        median = point_rate_text(p)
        ends = spread(p)
        result.append((dtype, format_exact(p.shape[0]), median, ends, format_exact(p.runs), *shares, times, error))
    return tuple(result)


def _sure(point: Point, base: Point) -> bool:
    """Whether the runs of both agree well enough to be held against each other."""
    return point is base or not (is_spread(point) or is_spread(base))


def remarks(record: Record) -> tuple[str, ...]:
    """What the table has no column for: refusals in the library's own words, clocks, temperatures and power."""
    points = of_kind(record, "matmul")
    return (
        *_refusals(record),
        *_launches(record, points),
        *_conditions(record, points),
        *_not_compared(record),
        *_notes(points),
    )


def _refusals(record: Record) -> list[str]:
    """One remark per dtype: each reason with the sizes that it holds for."""
    sentences: list[str] = []
    for dtype in record.programme.dtypes:
        alike: dict[tuple[str, str], list[str]] = {}
        for refusal in _refused(record, dtype):
            alike.setdefault((refusal.why, clip(refusal.text, 900)), []).append(refusal.item.label)
        whole = len(alike) == 1 and not squares(record.points, dtype)
        parts = [f"{why}{'' if whole else f' at {listed(at)}'}: {text}" for (why, text), at in alike.items()]
        if parts:
            sentences.append(f"**{dtype}** {'; '.join(parts)}.")
    return sentences


def _launches(record: Record, points: Sequence[Point]) -> list[str]:
    """That the best run of a dtype is so short that it says little about arithmetic."""
    short = [p for p in bests(record) if record.programme.device != "cpu" and p.median_s < LAUNCH_S]
    if not short or not points:
        return []
    longest = format_duration(max(p.median_s for p in short), 2)
    text = f"**A run of {listed([p.item.name for p in short])} takes {longest} or less**, about as long as launching it"
    return [f"{text}: larger sizes would show how fast this GPU multiplies."]


def _conditions(record: Record, points: Sequence[Point]) -> list[str]:
    """Clock, temperature and power over all runs, and whether the clock was lowered."""
    states = [state for p in points for state in (p.before, p.after)]
    sentences: list[str] = []
    for name, unit in (("clock_mhz", "MHz"), ("temperature_c", "°C")):
        seen = [value for state in states if (value := getattr(state, name)) is not None]
        if seen:
            sentences.append(f"{min(seen):,.0f}–{max(seen):,.0f} {unit}")
    limit = record.facts and (record.facts.enforced_limit_w or record.facts.power_limit_w)
    capped = f", limit {limit:,.0f} W" if limit else ""
    drawn = [f"{p.item.name} drew {p.mean_power_w:,.0f} W{capped}." for p in points if p.mean_power_w is not None]
    return [*([f"Before and after runs: {', '.join(sentences)}.{_throttled(points)}"] if sentences else []), *drawn]


def _throttled(points: Sequence[Point]) -> str:
    """That clocks fell, which a datasheet peak does not allow for; empty when they held."""
    top = max((mhz for p in points for s in (p.before, p.after) if (mhz := s.clock_mhz) is not None), default=0.0)
    low: dict[str, float] = {}
    for p in points:
        if p.after.clock_mhz is not None and p.after.clock_mhz < THROTTLED * top:
            low[p.item.name] = min(low.get(p.item.name, math.inf), p.after.clock_mhz / top)
    if not low:
        return ""
    least = format_quantity(min(low.values()), "ratio", 2)
    named = [name for bits, name in _REASONS.items() if any((p.after.clock_reasons or 0) & bits for p in points)]
    why = f"the driver names {listed(named)}" if named else "as it does at a power or temperature limit"
    return (
        f" The clock fell to {least} of the {top:,.0f} MHz seen here ({listed(list(low))}), {why}. A datasheet peak "
        "supposes a clock that holds."
    )


def _not_compared(record: Record) -> list[str]:
    """That a rate is not shown as a share of a peak that is known, and why."""
    sheet = datasheet_of(record)
    return [
        f"{p.item.name} reached {point_rate_text(p)} of the {rate_text(peak, p.item.name)} in the datasheet. That is "
        "too little for this device’s int8 units, so Napkin shows no share of their peak."
        for p in bests(record)
        if math.isnan(_peak(sheet, p)) and not math.isnan(peak := peak_of(sheet, p.item.name))
    ]


def _notes(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(f"{p.item.name}: {p.note}." for p in points if p.note))


def chart_alt(record: Record) -> str:
    """The chart's takeaway for those who do not see it."""
    sheet = datasheet_of(record)
    sentences = [
        f"{p.item.name} {point_rate_text(p)}"
        + ("" if math.isnan(peak := _peak(sheet, p)) else f" of {rate_text(peak, p.item.name)} peak")
        for p in bests(record)
    ]
    none = [dtype for dtype in record.programme.dtypes if best_square(record, dtype) is None]
    rest = f"; no rate for {listed(none)}" if none else ""
    name = record.facts.name if record.facts else ""
    where = device_phrase(record.programme.device, name).replace("This", "this", 1)
    return f"Matmul rates on {where}: {', '.join(sentences) or 'none yet'}{rest}."


def explanations(record: Record) -> tuple[Explanation, ...]:
    """Every number of the answer and the chart, opened: work, rate, share of peak, and how far dtypes lie apart."""
    sheet, tops = datasheet_of(record), bests(record)
    sizes = dict.fromkeys(p.shape[0] for p in tops)
    result = [matmul_flop.explain(m=n, n=n, k=n, groups=1).about(f"n = {n:,}") for n in sizes]
    base = best_square(record, "fp32")
    for p in tops:
        dtype, peak = p.item.name, _peak(sheet, p)
        kind = rate_kind(dtype)
        rate = achieved_rate.explain({"": kind}, flop=p.flop, seconds=p.median_s)
        result.append(rate.about(f"{dtype}, median"))
        if not math.isnan(peak):
            result.append(
                share_of_peak.explain({"rate": kind, "peak": kind}, rate=p.rate, peak=peak).about(
                    f"{dtype}, {sheet.name}"
                )
            )
        if base and base is not p and _sure(p, base):
            result.append(speed_ratio.explain({"fast": kind}, fast=p.rate, slow=base.rate).about(f"{dtype} and fp32"))
    return tuple(result)
