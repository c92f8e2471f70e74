"""What a job found, in words, rows and explanations. Everything a page says about a measurement is made here."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.formula import Explanation
from core.measure.datasheet import NO_CPU_DATASHEET, Datasheet, match
from core.measure.device import Machine, no_instructions
from core.measure.events import Refusal, Result, clip
from core.measure.formulas import achieved_rate, share_of_peak, speed_ratio
from core.measure.jobs import Snapshot
from core.measure.spec import METHOD, DeviceKind, Spec
from core.products import matmul_flop
from core.units import format_bytes, format_duration, format_quantity, scientific, significant

SUSTAINED_S = 10.0
"""Timed seconds per dtype from which a rate counts as sustained: by then power and temperature limits show."""

WIDE = 1.5
"""Runs whose p90 rate is this many times their p10 rate did not have the device to themselves."""

THROTTLED = 0.9
"""A clock below this share of the highest one seen has been lowered by something."""

LAUNCH_S = 2e-5
"""On a GPU, runs shorter than this are mostly the launching of a kernel."""

NOTICEABLE = 1.2
"""Two dtypes closer than this factor are not worth a sentence."""

METHODS: Mapping[DeviceKind, tuple[str, ...]] = {
    "cpu": (
        "Each run is one torch matmul of two square matrices of random normal numbers into a preallocated output; "
        "a wall clock brackets the call. Zeros would draw less power and run faster than real data does.",
        "The caches are left as the previous run left them, and torch uses as many threads as it takes by default.",
    ),
    "cuda": (
        "Each run is one torch matmul of two square matrices of random normal numbers into a preallocated output, "
        "between two CUDA events. Zeros would draw less power and run up to a tenth faster than real data does.",
        "Before each run the L2 cache is overwritten. fp32 runs with TF32 switched off, tf32 with it switched on; "
        "all else is torch's default.",
    ),
}
COMMON_METHOD = (
    "Before timing, 48 × 48 entries of the result are compared with a float64 product, and a dtype that is wrong is "
    "refused. Sizes are probed from small to large: a dtype so slow that five runs do not fit into its seconds is "
    "timed at the largest size that allows them.",
    "Warm-up is by time. The headline is the rate at the median time; best, p10 and p90 show the spread: a tenth of "
    "the runs were slower than p10, a tenth faster than p90.",
    f"Under {SUSTAINED_S:g} s per dtype a rate is a burst: the device may not hold it for hours. "
    f"Method version {METHOD}; results of different versions are not comparable.",
)

_SCALES = {"FLOP/s": 1.0, "kFLOP/s": 1e3, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the chart. Rates in FLOP/s, NaN where unknown; ``note`` says what there is instead of a rate."""

    dtype: str
    size: str
    rate: float
    low: float
    high: float
    peak: float
    note: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table, as text. share: None where no datasheet is known, and the table has no such column."""

    dtype: str
    n: str
    median: str
    best: str
    spread: str
    runs: str
    duration: str
    share: str | None
    error: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the table shows it, left to right."""
        shares = () if self.share is None else (self.share,)
        return (
            *(self.dtype, self.n, self.median, self.best, self.spread),
            *(self.runs, self.duration, *shares, self.error),
        )


def rate_text(rate: float) -> str:
    """A rate to three digits: 790 TFLOP/s."""
    return format_quantity(rate, "flop_per_s", 3)


def method(kind: DeviceKind) -> tuple[str, ...]:
    """How things are measured on this kind of device, one paragraph each."""
    return (*METHODS[kind], *COMMON_METHOD)


def datasheet_of(snapshot: Snapshot) -> Datasheet:
    """The datasheet of the device that ``snapshot`` measured."""
    facts = snapshot.facts
    if snapshot.spec.device == "cpu":
        return NO_CPU_DATASHEET
    if facts is None:
        return Datasheet((), "the device has not said yet what it is")
    return match(facts.name, facts.memory_bytes, facts.power_limit_w)


def device_phrase(kind: DeviceKind, name: str) -> str:
    """ "This CPU" or "This NVIDIA H200"."""
    return f"This {name}" if kind == "cuda" and name else ("This GPU" if kind == "cuda" else "This CPU")


def machine_line(machine: Machine) -> str:
    """What would be measured here, and why not a GPU, in a line or two."""
    if machine.kind == "cuda":
        gpu = machine.gpus[0]
        sheet = match(gpu.name, gpu.memory_bytes, gpu.power_limit_w)
        known = f"datasheet {sheet.name}" if sheet.name else f"datasheet unknown: {sheet.reason}"
        more = f"; {len(machine.gpus)} GPUs here, the first one CUDA names is measured" if len(machine.gpus) > 1 else ""
        return f"**{gpu.name}**, {format_bytes(gpu.memory_bytes, system='binary', digits=3)}; {known}{more}."
    cpu = machine.cpu
    threads = f"{cpu.threads} logical processor{'s' if cpu.threads != 1 else ''}"
    return f"**{machine.why_not_cuda}** {' · '.join(part for part in (cpu.name, threads, cpu.detail) if part)}."


def invitation(machine: Machine, spec: Spec) -> tuple[str, str]:
    """Before the first run: what pressing the button will bring, how long it takes, on which device."""
    thing = device_phrase(spec.device, machine.name).replace("This", "this", 1)
    sentence = (
        f"In about **{format_duration(spec.expected_s, 2)}** you will know how fast {thing} really multiplies matrices."
    )
    return sentence, f"Nothing has been measured since this server started. {_listed(spec.dtypes)} will be tried."


def steps(spec: Spec) -> tuple[tuple[str, str, str], ...]:
    """What a run does, step by step: name, what happens, about how long it takes in all."""
    each = f"for each of {_listed(spec.dtypes)}"
    many = len(spec.dtypes)
    return (
        ("Start", "a process of its own loads torch, so that it can be stopped at any time", _about(spec.startup_s)),
        (
            "Check",
            f"{each}: multiply two {spec.n:,} × {spec.n:,} matrices of random numbers and compare with float64",
            _about(many * spec.setup_s),
        ),
        (
            "Warm\u00a0up",
            f"{each}: repeat it untimed until clocks and caches have settled",
            _about(many * spec.warm_up_s),
        ),
        ("Time", f"{each}: repeat it, one time per run; the median is the headline", _about(many * spec.seconds)),
    )


def _about(seconds: float) -> str:
    return f"≈ {seconds:.1f} s"


def answer(snapshot: Snapshot) -> tuple[str, str]:
    """The finding in one sentence, and the quieter line with its circumstances. Needs at least one result."""
    results = snapshot.results
    sheet = datasheet_of(snapshot)
    fast, slow = max(results, key=lambda r: r.rate), min(results, key=lambda r: r.rate)
    top = headline(snapshot)
    name = snapshot.facts.name if snapshot.facts else ""
    sentence = f"{device_phrase(snapshot.spec.device, name)} reached **{rate_text(top.rate)}** in {top.dtype}"
    share = sheet.share(top.dtype, top.rate)
    if not math.isnan(share):
        sentence += f", **{format_quantity(share, 'ratio', 3)}** of its datasheet peak"
    apart = _apart(fast, slow)
    if apart and not _doubts(snapshot, fast, slow):
        than = fast.dtype if fast is top else f"{fast.dtype}, the fastest with {rate_text(fast.rate)}"
        sentence += f"; {slow.dtype} is **{apart} slower** than {than}"
    return f"{sentence}.", " ".join(_circumstances(snapshot, top, sheet))


def _apart(fast: Result, slow: Result) -> str:
    """ "about 15 times": two digits, and from a hundred on half of the leading one, which is what timing can tell.

    Empty for dtypes about as fast as each other.
    """
    ratio = speed_ratio(fast.rate, slow.rate)
    if ratio < NOTICEABLE:
        return ""
    if ratio >= 100:
        step = 10 ** math.floor(math.log10(ratio)) / 2
        return f"about {round(ratio / step) * step:,.0f} times"
    return f"about {significant(ratio, 2)} times"


def _doubts(snapshot: Snapshot, fast: Result, slow: Result) -> list[str]:
    """Why these two rates should not be compared; nothing where they may be."""
    doubts = [f"at n = {slow.n:,} against {fast.n:,}"] * (slow.n != fast.n)
    return doubts + ["in runs that spread widely"] * bool(warning(snapshot))


def headline(snapshot: Snapshot) -> Result:
    """The result to lead with: fp32 on a CPU, bf16 on a GPU, the fastest where that is missing."""
    wanted = "fp32" if snapshot.spec.device == "cpu" else "bf16"
    results = snapshot.results
    return next((r for r in results if r.dtype == wanted), max(results, key=lambda r: r.rate))


def _circumstances(snapshot: Snapshot, top: Result, sheet: Datasheet) -> list[str]:
    facts = snapshot.facts
    threads = facts.threads if facts else 0
    on = f" on {threads} thread{'s' if threads != 1 else ''}" if threads else ""
    short = f"a burst (under {SUSTAINED_S:g} s, and a device may not hold its rate for longer)"
    kind = "sustained" if top.duration_s >= SUSTAINED_S else short
    parts = [
        f"Median of {top.runs:,} runs at n = {top.n:,} in {format_duration(top.duration_s, 2)}{on}, {kind}; "
        f"best {rate_text(top.best_rate)}."
    ]
    for result in snapshot.results:
        if result.note:
            lacks = facts is not None and no_instructions(result.dtype) in facts.detail
            why = f"; this processor has no instructions for {result.dtype}" if lacks else ""
            parts.append(f"{result.dtype} was {result.note}{why}.")
    fast, slow = max(snapshot.results, key=lambda r: r.rate), min(snapshot.results, key=lambda r: r.rate)
    if (apart := _apart(fast, slow)) and (doubts := _doubts(snapshot, fast, slow)):
        found = f"{slow.dtype} came out {apart} slower than {fast.dtype}, the fastest with {rate_text(fast.rate)}"
        parts.append(f"{found}, but {', and '.join(doubts)}.")
    if not sheet.rows:
        parts.append(f"Peak unknown: {sheet.reason}.")
    elif sheet.reason:
        parts.append(f"{sheet.reason}; a peak is shown where they agree.")
    else:
        parts.append(f"Peaks are the dense datasheet rates of {sheet.name}.")
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(snapshot.started))
    parts.append(f"Measured {when} with torch {snapshot.torch}, method {snapshot.method}.")
    return parts


def warning(snapshot: Snapshot) -> str:
    """What casts doubt on the results, empty when nothing does."""
    wide = [r for r in snapshot.results if r.p90_rate >= WIDE * r.p10_rate]
    if not wide:
        return ""
    spread = _listed([f"{r.dtype} p10–p90 {_spread(r)}" for r in wide])
    return f"**The runs spread widely** ({spread}): something else probably used this device meanwhile; measure again."


def earlier(snapshot: Snapshot, spec: Spec) -> str:
    """When and with what inputs the shown job was measured, where these are not the ones of ``spec``; else empty."""
    if snapshot.spec == spec:
        return ""
    today = time.strftime("%Y-%m-%d", time.gmtime()) == time.strftime("%Y-%m-%d", time.gmtime(snapshot.started))
    when = time.strftime("%H:%M UTC" if today else "%Y-%m-%d %H:%M UTC", time.gmtime(snapshot.started))
    seconds = significant(snapshot.spec.seconds, 3)
    return f"**Last measured on this server:** {when}, n = {snapshot.spec.n:,}, {seconds} s per dtype."


def estimate(spec: Spec) -> str:
    """About how long a run of ``spec`` takes."""
    return f"A run takes about {format_duration(spec.expected_s, 2)}."


def status(snapshot: Snapshot) -> tuple[Literal["", "note", "error"], str]:
    """How an ended job that did not finish ended, and what is left of it. Empty for a finished or running one."""
    if snapshot.state in ("running", "finished"):
        return "", ""
    have = [r.dtype for r in snapshot.results]
    missing = [d for d in snapshot.spec.dtypes if d not in {o.dtype for o in snapshot.outcomes}]
    kept = f" Kept: {_listed(have)}." if have else " Nothing had been measured yet."
    lost = f" Not measured: {_listed(missing)}." if missing else ""
    when = f" after {format_duration(snapshot.elapsed_s, 2)}"
    if snapshot.state == "cancelled":
        return "note", f"**Cancelled**{when}.{kept}{lost}"
    return "error", f"**Failed**{when}. {clip(snapshot.message, 600)}{kept}{lost}"


def progress_line(snapshot: Snapshot) -> str:
    """What a running job is doing and how long it will still take."""
    left = f"about {max(math.ceil(snapshot.left_s), 1)} s left"
    here = snapshot.progress
    if here is None:
        over = len(snapshot.outcomes) == len(snapshot.spec.dtypes)
        doing = (
            "finishing" if over else "preparing the next dtype" if snapshot.method else "starting the measuring process"
        )
        return f"{doing}, {left}"
    place = snapshot.spec.dtypes.index(here.dtype) + 1
    return f"{here.dtype} ({place} of {len(snapshot.spec.dtypes)}): {here.phase}, {left}"


def bars(snapshot: Snapshot) -> tuple[Bar, ...]:
    """One bar per dtype of the job, measured or not, in the order of measuring."""
    sheet = datasheet_of(snapshot)
    outcomes = {outcome.dtype: outcome for outcome in snapshot.outcomes}
    made: list[Bar] = []
    for dtype in snapshot.spec.dtypes:
        outcome, peak = outcomes.get(dtype), sheet.peak(dtype)
        if isinstance(outcome, Result):
            size = f"n = {outcome.n:,}"
            made.append(Bar(dtype, size, outcome.rate, outcome.p10_rate, outcome.p90_rate, peak, ""))
            continue
        nan = math.nan
        # What cannot be measured has nothing to stand beside a peak, and its reason needs the room.
        wanted = nan if outcome else peak
        made.append(Bar(dtype, "", nan, nan, nan, wanted, _missing(snapshot, dtype, outcome)))
    return tuple(made)


def _missing(snapshot: Snapshot, dtype: str, outcome: Refusal | None) -> str:
    if outcome is not None:
        return f"{outcome.kind}: {clip(' '.join(outcome.text.split()), 90)}"
    if not snapshot.running:
        return "not measured"
    here = snapshot.progress
    return f"{here.phase} …" if here is not None and here.dtype == dtype else "waiting"


def headings(snapshot: Snapshot) -> tuple[str, ...]:
    """The headings over the cells of `rows`; the first is over words, the others over figures."""
    share = ("Of datasheet peak",) if datasheet_of(snapshot).rows else ()
    return ("dtype", "n", "Median", "Best", "p10–p90", "Runs", "Duration", *share, "Error")


def rows(snapshot: Snapshot) -> tuple[Row, ...]:
    """The table behind the chart."""
    sheet = datasheet_of(snapshot)
    return tuple(
        Row(
            r.dtype,
            f"{r.n:,}",
            rate_text(r.rate),
            rate_text(r.best_rate),
            _spread(r),
            f"{r.runs:,}",
            format_duration(r.duration_s, 2),
            format_quantity(sheet.share(r.dtype, r.rate), "ratio") if sheet.rows else None,
            scientific(r.relative_error, 2),
        )
        for r in snapshot.results
    )


def remarks(snapshot: Snapshot) -> tuple[str, ...]:
    """What the table has no column for: refusals in the library's own words, clocks and temperatures."""
    refused = [f"**{o.dtype} {o.kind}**: {clip(o.text, 900)}" for o in snapshot.outcomes if isinstance(o, Refusal)]
    states = [text for r in snapshot.results if (text := _conditions(r))]
    clocks = [f"Before and after: {'; '.join(states)}.{_throttled(snapshot.results)}"] if states else []
    return (*refused, *_launches(snapshot), *clocks)


def _throttled(results: Sequence[Result]) -> str:
    """That clocks fell, which a datasheet peak does not allow for; empty when they held."""
    clocks = [(r.clock_before_mhz, r.clock_after_mhz, r.dtype) for r in results]
    top = max((mhz for *both, _ in clocks for mhz in both if mhz is not None), default=0.0)
    low = {dtype: after / top for _, after, dtype in clocks if after is not None and after < THROTTLED * top}
    if not low:
        return ""
    least = format_quantity(min(low.values()), "ratio", 2)
    return (
        f" The clock fell to {least} of the {top:,.0f} MHz seen here ({_listed(list(low))}), as it does at a power or "
        "temperature limit. A datasheet peak supposes a clock that holds."
    )


def _launches(snapshot: Snapshot) -> list[str]:
    """That runs this short say little about arithmetic; empty where they are longer."""
    short = [r for r in snapshot.results if snapshot.spec.device == "cuda" and r.median_s < LAUNCH_S]
    if not short:
        return []
    longest = format_duration(max(r.median_s for r in short), 2)
    said = f"**A run of {_listed([r.dtype for r in short])} takes {longest} or less**, about as long as launching it"
    return [f"{said}: try a larger n to see how fast this GPU multiplies."]


def _spread(result: Result) -> str:
    """The p10–p90 range of the rates, both ends in the unit of the median."""
    prefix = rate_text(result.rate).split(" ")[1]
    scale = _SCALES[prefix]
    low, high = (significant(rate / scale, 3) for rate in (result.p10_rate, result.p90_rate))
    return f"{low}–{high} {prefix}"


def _conditions(result: Result) -> str:
    parts: list[str] = []
    if result.clock_before_mhz is not None and result.clock_after_mhz is not None:
        parts.append(f"{result.clock_before_mhz:,.0f} → {result.clock_after_mhz:,.0f} MHz")
    if result.temperature_before_c is not None and result.temperature_after_c is not None:
        parts.append(f"{result.temperature_before_c:.0f} → {result.temperature_after_c:.0f} °C")
    return f"{result.dtype} {', '.join(parts)}" if parts else ""


def chart_alt(snapshot: Snapshot) -> str:
    """The chart's takeaway for those who do not see it."""
    sheet = datasheet_of(snapshot)
    said = [
        f"{r.dtype} {rate_text(r.rate)}"
        + ("" if math.isnan(sheet.peak(r.dtype)) else f" of {rate_text(sheet.peak(r.dtype))} peak")
        for r in snapshot.results
    ]
    found = ", ".join(said) if said else "nothing measured yet"
    return f"Achieved matmul rate per dtype as horizontal bars: {found}."


def explanations(snapshot: Snapshot) -> tuple[Explanation, ...]:
    """Every number of the answer and the chart, opened: work, rate, share of peak, and how far dtypes lie apart."""
    sheet = datasheet_of(snapshot)
    results: Sequence[Result] = snapshot.results
    sizes = dict.fromkeys(r.n for r in results)
    made = [matmul_flop.explain(m=n, n=n, k=n, groups=1).about(f"n = {n:,}") for n in sizes]
    for r in results:
        made.append(achieved_rate.explain(flop=r.flop, seconds=r.median_s).about(f"{r.dtype}, median"))
        peak = sheet.peak(r.dtype)
        if not math.isnan(peak):
            made.append(share_of_peak.explain(rate=r.rate, peak=peak).about(f"{r.dtype}, {sheet.name}"))
    if len(results) > 1:
        fast, slow = max(results, key=lambda r: r.rate), min(results, key=lambda r: r.rate)
        ratio = speed_ratio.explain(fast=fast.rate, slow=slow.rate)
        made.append(ratio.about(f"{fast.dtype} and {slow.dtype}"))
    return tuple(made)


def _listed(items: Sequence[str]) -> str:
    """ "fp32, fp16 and bf16"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def preview(spec: Spec) -> tuple[Explanation, ...]:
    """What can be explained before a run: the work of one matmul."""
    return (matmul_flop.explain(m=spec.n, n=spec.n, k=spec.n, groups=1).about(f"n = {spec.n:,}"),)
