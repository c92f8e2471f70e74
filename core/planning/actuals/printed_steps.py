"""The steps that training programs print: nanoGPT, Megatron-LM, torchtitan, and the Trainer of transformers.

The formats are those of nanoGPT's train.py, of `training_log` in Megatron-LM's training.py, and of torchtitan's
components/metrics.py. Whatever stands before them, such as a timestamp or a rank, is no part of them.

They time nothing but the run as a whole. What times them is a timestamp before each, the progress bars between them, or
``train_runtime``, which the last one has, and every one where input tokens are counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from core.limits import limit
from core.planning.actuals.logged_run import (
    LAST_MOMENT,
    Array,
    Clock,
    LoggedRun,
    Measure,
    UnreadableError,
    checked,
    in_order,
    quoted,
    read_number,
    read_worded_time,
)
from core.units import QuantityError

_COLOR = re.compile(r"\x1b?\[[0-9;]{1,20}m")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_RANK = re.compile(r"\s{0,9}\[?(?:default|rank)?(\d{1,6})\]?:(?!\d)")
_NANOGPT = re.compile(r"\biter (\S{1,60}): loss \S{1,60}, time (\S{1,60}?)ms")
_MEGATRON = re.compile(r"\biteration {1,12}(\S{1,60})/ {0,12}\S{1,60} {0,12}\|")
_BEFORE = 300
"""Characters before a step in which its timestamp is sought."""


@dataclass(frozen=True, slots=True)
class PrintedStep:
    """One line. step: its number. seconds: of one step; of torchtitan, 1 over tokens per second and accelerator, which
    tokens of a step and accelerator make seconds of. tokens, samples: trained so far, NaN where it does not say.
    start: where it begins in its line."""

    step: float
    seconds: float
    start: int
    tokens: float = math.nan
    samples: float = math.nan


def _count(text: str, what: str = "count") -> float:
    return read_number(text, what, float(limit("tokens")))


def _seconds(text: str, unit: float) -> float:
    seconds = unit * read_number(text, "time", math.inf)
    if not seconds:
        raise UnreadableError("its time is 0")
    return checked(seconds, "time", LAST_MOMENT)


def _nanogpt(line: str) -> PrintedStep | None:
    """``iter 10: loss 8.1258, time 118.91ms, mfu 12.3%``: the time of this step alone."""
    if "iter " not in line or not (match := _NANOGPT.search(line)):
        return None
    return PrintedStep(_count(match[1], "step"), _seconds(match[2], 1e-3), match.start())


def _megatron(line: str) -> PrintedStep | None:
    """``iteration 20/ 500000 | consumed samples: 5120 | elapsed time per iteration (ms): 1234.5 | …``, a mean."""
    if "iteration " not in line or not (match := _MEGATRON.search(line)):
        return None
    parts = (part.partition(":") for part in line[match.end() :].split("|"))
    values: Mapping[str, str] = {name.strip(): value.strip() for name, _, value in parts}
    if "elapsed time per iteration (ms)" not in values:
        return None
    tokens, samples = (
        _count(values[name]) if name in values else math.nan for name in ("consumed tokens", "consumed samples")
    )
    seconds = _seconds(values["elapsed time per iteration (ms)"], 1e-3)
    return PrintedStep(_count(match[1], "step"), seconds, match.start(), tokens, samples)


def _torchtitan(line: str) -> PrintedStep | None:
    """``step: 10  loss:  8.1  grad_norm: …  tps: 7,000  …``: tokens per second and accelerator since the last line."""
    start, rate = line.find("step:"), line.find("tps:")
    if not 0 <= start < rate or line[:start].rstrip().endswith("validate"):
        return None
    (step, *_), (tps, *_) = (line[at:].split(None, 1) or [""] for at in (start + 5, rate + 4))
    tokens_per_second = read_number(tps, "rate", math.inf)
    if not tokens_per_second:
        raise UnreadableError("its rate is 0")
    return PrintedStep(_count(step, "step"), 1 / tokens_per_second, start)


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that trains. read: a line of it, None for another. time: what its lines say of the time.
    is_mean: whether that is of all steps since the line before."""

    name: str
    read: Callable[[str], PrintedStep | None]
    time: str
    is_mean: bool
    clock: Clock = "steps"


_PROGRAMS = (
    _Program("nanoGPT", _nanogpt, "time", is_mean=False),
    _Program("Megatron-LM", _megatron, "elapsed time per iteration (ms)", is_mean=True),
    _Program("torchtitan", _torchtitan, "tps", is_mean=True, clock="rates"),
)


def without_colors(line: str) -> str:
    """Return a line without the codes that color it on a terminal."""
    return _COLOR.sub("", line) if "[" in line else line


def moment_before(line: str, start: int) -> float:
    """Return the last moment that stands before a place in a line, in seconds since 1970; NaN for none."""
    moment = math.nan
    for stamp in _STAMP.finditer(line[max(0, start - _BEFORE) : start]):
        try:
            moment = read_worded_time(f"{stamp[1]} {stamp[2]}") + float(f"0.{stamp[3] or 0}")
        except ValueError:
            continue
    return moment if 0 < moment <= LAST_MOMENT else math.nan


def read_printed_steps(lines: Sequence[str]) -> LoggedRun | None:
    """Return the log that ``lines`` are, as the program wrote it of which there are most; None for none of these.

    Raises `QuantityError` where its lines are too few.
    """
    plain = [without_colors(line) for line in lines]
    found = [(program, _read(program, plain)) for program in _PROGRAMS]
    program, (steps, faults) = max(found, key=lambda one: len(one[1][0]) + len(one[1][1]))
    return _logged(program, plain, steps, faults) if steps or faults else None


def _read(program: _Program, lines: Sequence[str]) -> tuple[dict[int, PrintedStep], dict[int, str]]:
    """The steps of a program by the numbers of their lines, and why others cannot be read."""
    steps: dict[int, PrintedStep] = {}
    faults: dict[int, str] = {}
    for at, line in enumerate(lines):
        try:
            step = program.read(line)
        except ValueError as problem:
            faults[at] = str(problem) if isinstance(problem, UnreadableError) else "it has no number"
        else:
            if step:
                steps[at] = step
    return steps, faults


def _of_one_rank(lines: Sequence[str], steps: Mapping[int, PrintedStep]) -> dict[int, PrintedStep]:
    """The steps that one rank printed, where several print the same."""
    ranks = {at: match[1] for at in steps if (match := _RANK.match(lines[at]))}
    first = next(iter(ranks.values()), "")
    kept: dict[int, PrintedStep] = {}
    last = -1.0
    for at, step in steps.items():
        if ranks.get(at, first) == first and step.step != last:
            kept[at] = step
            last = step.step
    return kept


def _logged(
    program: _Program, lines: Sequence[str], steps: Mapping[int, PrintedStep], faults: Mapping[int, str]
) -> LoggedRun:
    kept = _of_one_rank(lines, steps)
    at = list(kept)
    numbers, own = (np.array([getattr(step, name) for step in kept.values()]) for name in ("step", "seconds"))
    moments = np.array([moment_before(lines[line], step.start) for line, step in kept.items()])
    measure, amounts = _counted(list(kept.values()), numbers)
    bad = next((quoted(line + 1, lines[line], why) for line, why in faults.items()), "")
    rates = _rates(numbers, amounts, own)
    dated = np.isfinite(moments)
    clock: Clock = "wall" if np.count_nonzero(dated) > 1 and dated.mean() > 0.5 else program.clock
    earlier = ""
    if clock == "wall":
        rows = np.column_stack([moments, amounts])[dated]
        falls = np.flatnonzero(np.diff(rows[:, 0]) < 0)
        if len(falls):
            line = int(np.array(at)[dated][falls[0] + 1])
            earlier = quoted(line + 1, lines[line])
        seconds, amounts, _ = in_order(rows, absolute=True)
        rates = np.zeros(0) if program.clock == "rates" else rates
    else:
        seconds = _added_up(numbers, own, is_mean=program.is_mean)
    if len(seconds) < 2 or seconds[-1] <= seconds[0] or amounts[-1] <= amounts[0]:
        fault = f" Napkin cannot use {bad}." if bad else ""
        raise QuantityError(
            f"Napkin needs two steps of {program.name}’s log, the second one further on, and read {len(kept):,} of "
            f"them.{fault} Paste more of the log."
        )
    began = float(seconds[0]) if clock == "wall" else math.nan
    return LoggedRun(
        seconds - seconds[0],
        amounts,
        measure,
        began,
        ("timestamp" if clock == "wall" else program.time, _NAMES[program.name][measure]),
        len(lines),
        len(kept) - len(seconds),
        len(faults),
        bad,
        0,
        program.name,
        len(lines) - len(kept) - len(faults),
        clock,
        rates,
        earlier,
    )


_NAMES: Mapping[str, Mapping[Measure, str]] = {
    "nanoGPT": {"steps": "iter"},
    "Megatron-LM": {"steps": "iteration", "samples": "consumed samples", "tokens": "consumed tokens"},
    "torchtitan": {"steps": "step"},
}
"""What lines call that which they count."""


def _counted(steps: Sequence[PrintedStep], numbers: Array) -> tuple[Measure, Array]:
    """What all of the steps count, the most direct of it."""
    for measure in ("tokens", "samples"):
        amounts = np.array([getattr(step, measure) for step in steps], dtype=np.float64)
        if len(amounts) and np.isfinite(amounts).all():
            return measure, amounts
    return "steps", numbers.astype(np.float64)


def _rates(numbers: Array, amounts: Array, own: Array) -> Array:
    """What is trained per second, by the time of a step, where one step follows another."""
    steps, gained = np.diff(numbers), np.diff(amounts)
    good = (steps > 0) & (gained > 0)
    return gained[good] / steps[good] / own[1:][good]


def _added_up(numbers: Array, own: Array, *, is_mean: bool) -> Array:
    """Seconds since the first line: of each line's steps, and of those between that no line times, by the median."""
    if len(numbers) < 2:
        return np.zeros(len(numbers))
    gaps = np.diff(numbers)
    usual = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    gaps = np.where(gaps > 0, gaps, usual)  # a job that starts again from a checkpoint goes on printing as often
    timed = np.minimum(gaps, usual if is_mean else 1.0)
    return np.concatenate(([0.0], np.cumsum(timed * own[1:] + (gaps - timed) * np.median(own))))


NAME = "the Hugging Face Trainer"
_RECORD = re.compile(r"\{[^{}]{1,4000}\}|(\d{1,15})/(\d{1,15}) \[(\d{1,4}(?::\d\d){1,2})<")
"""A dictionary without others inside, or what a progress bar counts: steps, all of them, and the time so far."""
_STEPS = ("step", "global_step", "current_steps")
_TOKENS = ("num_input_tokens_seen", "num_tokens", "total_tokens")
_ELAPSED = ("train_runtime", "elapsed_time")
_TRAINING = frozenset({"learning_rate", "lr", "epoch"})

_Times: TypeAlias = Literal["timestamp", "train_runtime", "progress bar"]


@dataclass(frozen=True, slots=True)
class _Bar:
    """A progress bar as it stood: steps done, all of them, and seconds since it began."""

    step: float
    all: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Record:
    """A dictionary of training. values: its texts by name. bar: the last progress bar before it."""

    line: int
    text: str
    values: Mapping[str, str]
    moment: float
    bar: _Bar | None


def _values(body: str) -> dict[str, str]:
    parts = (part.partition(":") for part in body.strip("{}").split(","))
    return {name.strip(" '\"\r\n\t"): value.strip(" '\"\r\n\t") for name, _, value in parts}


def _is_training(values: Mapping[str, str]) -> bool:
    return "train_runtime" in values or ("loss" in values and bool(_TRAINING & set(values)))


def _records(text: str) -> list[_Record]:
    """The dictionaries of training in a text, in its order."""
    records: list[_Record] = []
    bar: _Bar | None = None
    line, counted = 1, 0
    for match in _RECORD.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        if match[1]:
            seconds = sum(60.0**at * int(part) for at, part in enumerate(reversed(match[3].split(":"))))
            bar = _Bar(float(match[1]), float(match[2]), seconds)
        elif _is_training(values := _values(match[0])):
            begins = text.rfind("\n", max(0, match.start() - 300), match.start()) + 1
            moment = moment_before(text[begins : match.start()], match.start() - begins) if begins else math.nan
            records.append(_Record(line, match[0], values, moment, bar))
    # Bars of something else, such as evaluation or tokenization, stand still from one dictionary to the next.
    moving = Counter(all_steps for all_steps, _ in {(r.bar.all, r.bar.step) for r in records if r.bar})
    usual = max(moving, key=moving.__getitem__, default=0.0)
    known = usual if moving[usual] > 1 else math.nan
    return [replace(r, bar=r.bar if r.bar and r.bar.all == known else None) for r in records]


def _number(values: Mapping[str, str], names: Sequence[str], what: str) -> float:
    """The first of ``names`` that is there; NaN for none. Raises ``ValueError``."""
    text = next((values[name] for name in names if name in values), "")
    if not text:
        return math.nan
    if ":" in text:
        return checked(read_worded_time(text), what, LAST_MOMENT)
    return read_number(text, what, LAST_MOMENT if what == "time" else float(limit("tokens")))


@dataclass(frozen=True, slots=True)
class _Point:
    """What a record says: seconds by each thing that times it, and what was trained by then; NaN where it says none."""

    line: int
    text: str
    seconds: Mapping[_Times, float]
    amounts: Mapping[Measure, float]


def _point(record: _Record) -> _Point:
    bar, nan = record.bar, math.nan
    elapsed, steps = _number(record.values, _ELAPSED, "time"), _number(record.values, _STEPS, "count")
    return _Point(
        record.line,
        record.text,
        {"timestamp": record.moment, "train_runtime": elapsed, "progress bar": bar.seconds if bar else nan},
        {
            "tokens": _number(record.values, _TOKENS, "count"),
            "steps": bar.step if bar and not steps >= 0 else steps,
            "samples": elapsed * _number(record.values, ("train_samples_per_second",), "rate"),
        },
    )


def _whole_run(points: Sequence[_Point]) -> tuple[Measure, float, float] | None:
    """What was trained in all and in how many seconds, by the last record; None where it does not say."""
    seconds = points[-1].seconds["train_runtime"] if points else math.nan
    for measure in ("tokens", "steps", "samples"):
        amount = max((a for point in points if (a := point.amounts[measure]) > 0), default=math.nan)
        if seconds > 0 and amount <= limit("tokens"):
            return measure, amount, seconds
    return None


def read_trainer_records(lines: Sequence[str]) -> LoggedRun | None:
    """Return the log of the Trainer in ``lines``; None where they have no dictionary of training.

    Raises `QuantityError` where nothing times them, or nothing counts.
    """
    text = "\n".join(map(without_colors, lines))
    if "{" not in text or not (records := _records("\n" + text)):
        return None
    points: list[_Point] = []
    bad = ""
    for record in records:
        try:
            points.append(_point(record))
        except ValueError as problem:
            why = str(problem) if isinstance(problem, UnreadableError) else "it has no number"
            bad = bad or quoted(record.line - 1, record.text, why)
    chosen = _chosen(points)
    unreadable, skipped = len(records) - len(points), max(0, len(lines) - len(records))
    rows_read = skipped + len(records)
    if chosen:
        when, measure, rows, earlier = chosen
        absolute = when == "timestamp"
        seconds, amounts, resets = in_order(rows, absolute=absolute)
        if seconds[-1] > seconds[0] and amounts[-1] > amounts[0]:
            began = float(seconds[0]) if absolute else math.nan
            since = seconds - (began if absolute else 0.0)
            found = (measure, began, (when, _COUNTED[measure]), rows_read, len(points) - len(rows), unreadable, bad)
            return LoggedRun(since, amounts, *found, resets, NAME, skipped, earlier="" if resets else earlier)
    if whole := _whole_run(points):
        measure, amount, runtime = whole
        ends = np.array([0.0, runtime]), np.array([0.0, amount])
        columns = ("train_runtime", "num_tokens" if measure == "tokens" else f"train_{measure}_per_second")
        found = (measure, math.nan, columns, rows_read, len(points) - 1, unreadable, bad)
        return LoggedRun(*ends, *found, 0, NAME, skipped)
    raise QuantityError(_lacking(points, bad))


_COUNTED: Mapping[Measure, str] = {"tokens": "tokens", "samples": "samples", "steps": "step"}


def _chosen(points: Sequence[_Point]) -> tuple[_Times, Measure, Array, str] | None:
    """The most direct time and count that at least two records have: their rows, and the first that is too early."""
    times: tuple[_Times, ...] = ("timestamp", "train_runtime", "progress bar")
    measures: tuple[Measure, ...] = ("tokens", "steps")
    for when in times:
        for measure in measures:
            usable = [p for p in points if math.isfinite(p.seconds[when] + p.amounts[measure])]
            if len(usable) < 2:
                continue
            rows = np.array([(p.seconds[when], p.amounts[measure]) for p in usable], dtype=np.float64)
            falls = np.flatnonzero(np.diff(rows[:, 0]) < 0)
            first = usable[int(falls[0]) + 1] if len(falls) else None
            return when, measure, rows, quoted(first.line - 1, first.text) if first else ""
    return None


def _lacking(points: Sequence[_Point], bad: str) -> str:
    """What a log of the Trainer lacks, and how it gets that."""
    timed = sum(any(map(math.isfinite, point.seconds.values())) for point in points)
    needs = (
        "a count. Set include_num_input_tokens_seen in TrainingArguments, or paste the progress bars between them too."
        if timed > 1
        else "a time. Paste the progress bars between them too, or the last dictionary, which has train_runtime, or "
        "put a timestamp before each."
    )
    fault = f" Napkin cannot use {bad}." if bad else ""
    return f"These {len(points):,} dictionaries of {NAME} lack {needs}{fault}"
