"""The steps that training programs print: nanoGPT, Megatron-LM, torchtitan, and the Trainer of transformers.

The formats are those of nanoGPT's train.py, of `training_log` in Megatron-LM's training.py, and of torchtitan's
components/metrics.py. Whatever precedes them, such as a timestamp or a rank, is ignored.

The Trainer prints no times of steps. What times them is a timestamp before each, the progress bars between them, or
``train_runtime``, which the last one has, and every one if input tokens are counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import numpy as np

from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.actuals.logged_run import (
    LAST_MOMENT,
    Array,
    Clock,
    Line,
    LoggedRun,
    Measure,
    checked,
    logged_run,
    read_number,
    read_worded_time,
)

_COLOR = re.compile(r"\x1b?\[[0-9;]{1,20}m")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_RANK = re.compile(r"\s{0,9}\[?(?:default|rank)?(\d{1,6})\]?:(?!\d)")
_NANOGPT = re.compile(r"\biter (\S{1,60}): loss \S{1,60}, time (\S{1,60}?)ms")
_MEGATRON = re.compile(r"\biteration {1,12}(\S{1,60})/ {0,12}\S{1,60} {0,12}\|")
_BEFORE = 300
"""Characters before a step in which its timestamp is searched."""


@dataclass(frozen=True, slots=True)
class PrintedStep:
    """One printed line of a log.

    seconds: time of one step, or the inverse of tokens per second and accelerator. tokens, samples: trained so far; NaN
    if unknown. start: position in its line.
    """

    step: float
    seconds: float
    start: int
    tokens: float = math.nan
    samples: float = math.nan


def _count(text: str) -> float:
    return read_number(text, float(limit("tokens")))


def _positive(text: str, unit: float = 1.0) -> float:
    value = unit * read_number(text, LAST_MOMENT / unit)
    if not value:
        raise ValueError(f"{text} is 0")
    return value


def _nanogpt(line: str) -> PrintedStep | None:
    """Read ``iter 10: loss 8.1258, time 118.91ms, mfu 12.3%``: the time of this step."""
    if "iter " not in line or not (match := _NANOGPT.search(line)):
        return None
    return PrintedStep(_count(match[1]), _positive(match[2], 1e-3), match.start())


def _megatron(line: str) -> PrintedStep | None:
    """Read ``iteration 20/ 500000 | consumed samples: 5120 | elapsed time per iteration (ms): 1234.5 |``, a mean."""
    if "iteration " not in line or not (match := _MEGATRON.search(line)):
        return None
    parts = (part.partition(":") for part in line[match.end() :].split("|"))
    values: Mapping[str, str] = {name.strip(): value.strip() for name, _, value in parts}
    if (time := values.get("elapsed time per iteration (ms)")) is None:
        return None
    tokens, samples = (
        _count(values[name]) if name in values else math.nan for name in ("consumed tokens", "consumed samples")
    )
    return PrintedStep(_count(match[1]), _positive(time, 1e-3), match.start(), tokens, samples)


def _torchtitan(line: str) -> PrintedStep | None:
    """Read ``step: 10  loss:  8.1  tps: 7,000``: tokens per second and accelerator since the last line."""
    start, rate = line.find("step:"), line.find("tps:")
    if not 0 <= start < rate or line[:start].rstrip().endswith("validate"):
        return None
    (step, *_), (tps, *_) = (line[at:].split(None, 1) or [""] for at in (start + 5, rate + 4))
    return PrintedStep(_count(step), 1 / _positive(tps), start)


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that trains. read: reads a line of it, None for another. time, counts: what its lines call the time and
    what they count. is_mean: whether the time is that of all steps since the line before."""

    name: str
    read: Callable[[str], PrintedStep | None]
    time: str
    counts: Mapping[Measure, str]
    is_mean: bool
    clock: Clock = "steps"


_PROGRAMS = (
    _Program("nanoGPT", _nanogpt, "time", {"steps": "iter"}, is_mean=False),
    _Program(
        "Megatron-LM",
        _megatron,
        "elapsed time per iteration (ms)",
        {"steps": "iteration", "samples": "consumed samples", "tokens": "consumed tokens"},
        is_mean=True,
    ),
    _Program("torchtitan", _torchtitan, "tps", {"steps": "step"}, is_mean=True, clock="rates"),
)


def without_colors(line: str) -> str:
    """Return a line without terminal colors."""
    return _COLOR.sub("", line) if "[" in line else line


def moment_before(line: str, start: int) -> float:
    """Return the last moment before a place in a line, in seconds since 1970; NaN for none."""
    moment = math.nan
    for stamp in _STAMP.finditer(line[max(0, start - _BEFORE) : start]):
        try:
            moment = read_worded_time(f"{stamp[1]} {stamp[2]}") + float(f"0.{stamp[3] or 0}")
        except ValueError:
            continue
    return moment if 0 < moment <= LAST_MOMENT else math.nan


def read_printed_steps(lines: Sequence[str]) -> LoggedRun | None:
    """Return the log as the program wrote it that has most lines; None for none of these programs.

    Raises `QuantityError` for too few steps.
    """
    plain = [without_colors(line) for line in lines]
    found = [(program, *_read(program, plain)) for program in _PROGRAMS]
    program, steps, bad = max(found, key=lambda one: len(one[1]) + len(one[2]))
    return _logged(program, plain, steps, bad) if steps or bad else None


def _read(program: _Program, lines: Sequence[str]) -> tuple[dict[int, PrintedStep], list[Line]]:
    """Return the steps of a program by line, and the lines that cannot be read."""
    steps, bad = dict[int, PrintedStep](), list[Line]()
    for at, line in enumerate(lines):
        try:
            if step := program.read(line):
                steps[at] = step
        except ValueError:
            bad.append((at + 1, line))
    return steps, bad


def _of_one_rank(lines: Sequence[str], steps: Mapping[int, PrintedStep]) -> dict[int, PrintedStep]:
    """Return the steps that one rank printed, if several print the same."""
    ranks = {at: match[1] for at in steps if (match := _RANK.match(lines[at]))}
    first, last = next(iter(ranks.values()), ""), -1.0
    kept: dict[int, PrintedStep] = {}
    for at, step in steps.items():
        if ranks.get(at, first) == first and step.step != last:
            kept[at], last = step, step.step
    return kept


def _logged(
    program: _Program, lines: Sequence[str], steps: Mapping[int, PrintedStep], bad: Sequence[Line]
) -> LoggedRun:
    kept = _of_one_rank(lines, steps)
    numbers, each = (np.array([getattr(step, name) for step in kept.values()]) for name in ("step", "seconds"))
    moments = np.array([moment_before(lines[line], step.start) for line, step in kept.items()])
    measure, amounts = _counted(list(kept.values()), numbers)
    rates, dated = _rates(numbers, amounts, each), np.isfinite(moments)
    clock: Clock = "wall" if np.count_nonzero(dated) > 1 and dated.mean() > 0.5 else program.clock
    if absolute := clock == "wall":
        rows = np.column_stack([moments, amounts])[dated]
        rates = np.zeros(0) if program.clock == "rates" else rates
    else:
        rows = np.column_stack([_added_up(numbers, each, is_mean=program.is_mean), amounts])
    run = logged_run(
        rows,
        measure,
        ("timestamp" if absolute else program.time, program.counts[measure]),
        bad,
        absolute=absolute,
        of=len(lines),
        missing=len(kept) - len(rows),
        format=program.name,
        skipped=len(lines) - len(kept) - len(bad),
        clock=clock,
        rates=rates,
    )
    if run is None:
        raise QuantityError(message("actuals.error.steps", program=program.name, steps=float(len(kept))))
    return run


def _counted(steps: Sequence[PrintedStep], numbers: Array) -> tuple[Measure, Array]:
    """Return what all steps count, tokens if they can."""
    for measure in ("tokens", "samples"):
        amounts = np.array([getattr(step, measure) for step in steps], dtype=np.float64)
        if len(amounts) and np.isfinite(amounts).all():
            return measure, amounts
    return "steps", numbers.astype(np.float64)


def _rates(numbers: Array, amounts: Array, seconds: Array) -> Array:
    """Return what is trained per second, by the time of a step, where steps increase."""
    steps, gained = np.diff(numbers), np.diff(amounts)
    good = (steps > 0) & (gained > 0)
    return gained[good] / steps[good] / seconds[1:][good]


def _added_up(numbers: Array, seconds: Array, *, is_mean: bool) -> Array:
    """Return seconds since the first line; steps between lines that no line times count as the median."""
    if len(numbers) < 2:
        return np.zeros(len(numbers))
    gaps = np.diff(numbers)
    usual = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    gaps = np.where(gaps > 0, gaps, usual)  # a job that restarts from a checkpoint goes on printing as often
    timed = np.minimum(gaps, usual if is_mean else 1.0)
    return np.concatenate(([0.0], np.cumsum(timed * seconds[1:] + (gaps - timed) * np.median(seconds))))


NAME = "the Hugging Face Trainer"
_RECORD = re.compile(r"\{[^{}]{1,4000}\}|(\d{1,15})/(\d{1,15}) \[(\d{1,4}(?::\d\d){1,2})<")
"""A dictionary without others inside, or what a progress bar counts: steps, all of them, and the time so far."""
_TRAINING = frozenset({"learning_rate", "lr", "epoch"})

_Times: TypeAlias = Literal["timestamp", "train_runtime", "progress bar"]
_TIMES: tuple[_Times, ...] = ("timestamp", "train_runtime", "progress bar")
_COUNTED: Mapping[Measure, str] = {"tokens": "tokens", "samples": "samples", "steps": "step"}


@dataclass(frozen=True, slots=True)
class _Bar:
    """A progress bar: steps done, all of them, and seconds since it began."""

    step: float = math.nan
    all_steps: float = math.nan
    seconds: float = math.nan


@dataclass(frozen=True, slots=True)
class _Record:
    """A dictionary of training: its line, text, and values, the moment before it, and the last progress bar."""

    line: int
    text: str
    values: Mapping[str, str]
    moment: float
    bar: _Bar


@dataclass(frozen=True, slots=True)
class _Point:
    """Seconds by each clock, and what was trained by then; NaN if unknown."""

    seconds: Mapping[_Times, float]
    amounts: Mapping[Measure, float]


def _records(text: str) -> list[_Record]:
    """Return the dictionaries of training in a text."""
    records, bar, line, counted = list[_Record](), _Bar(), 1, 0
    for match in _RECORD.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        if match[1]:
            seconds = sum(60.0**at * int(part) for at, part in enumerate(reversed(match[3].split(":"))))
            bar = _Bar(float(match[1]), float(match[2]), seconds)
            continue
        parts = (part.partition(":") for part in match[0].strip("{}").split(","))
        values = {name.strip(" '\"\r\n\t"): value.strip(" '\"\r\n\t") for name, _, value in parts}
        if "train_runtime" in values or ("loss" in values and _TRAINING & set(values)):
            begins = text.rfind("\n", max(0, match.start() - 300), match.start()) + 1
            moment = moment_before(text[begins : match.start()], match.start() - begins) if begins else math.nan
            records.append(_Record(line, match[0], values, moment, bar))
    return records


def _training_bar(records: Sequence[_Record]) -> float:
    """Return the steps of the bar of training. Bars of something else, such as evaluation, stand still from one
    dictionary to the next. NaN for none."""
    moving = Counter(all_steps for all_steps, _ in {(r.bar.all_steps, r.bar.step) for r in records})
    usual = max(moving, key=moving.__getitem__, default=math.nan)
    return usual if moving[usual] > 1 else math.nan


def _number(values: Mapping[str, str], *names: str, is_time: bool = False) -> float:
    """Return the first of ``names`` that is there; NaN for none. Raises ``ValueError``."""
    text = next((values[name] for name in names if name in values), "")
    if not text:
        return math.nan
    if ":" in text:
        return checked(read_worded_time(text), LAST_MOMENT)
    return read_number(text, LAST_MOMENT if is_time else float(limit("tokens")))


def _point(record: _Record, all_steps: float) -> _Point:
    values, bar = record.values, record.bar if record.bar.all_steps == all_steps else _Bar()
    elapsed = _number(values, "train_runtime", "elapsed_time", is_time=True)
    steps = _number(values, "step", "global_step", "current_steps")
    return _Point(
        {"timestamp": record.moment, "train_runtime": elapsed, "progress bar": bar.seconds},
        {
            "tokens": _number(values, "num_input_tokens_seen", "num_tokens", "total_tokens"),
            "steps": steps if steps >= 0 else bar.step,
            "samples": elapsed * _number(values, "train_samples_per_second"),
        },
    )


def read_trainer_records(lines: Sequence[str]) -> LoggedRun | None:
    """Return the log of the Trainer; None without a dictionary of training.

    Raises `QuantityError` if nothing times or counts them.
    """
    text = "\n".join(map(without_colors, lines))
    if "{" not in text or not (records := _records("\n" + text)):
        return None
    all_steps, points, bad = _training_bar(records), list[_Point](), list[Line]()
    for record in records:
        try:
            points.append(_point(record, all_steps))
        except ValueError:
            bad.append((record.line - 1, record.text))
    skipped = max(0, len(lines) - len(records))
    for when, measure, columns, rows in _tables(points):
        run = logged_run(
            rows,
            measure,
            columns,
            bad,
            absolute=when == "timestamp",
            of=skipped + len(records),
            missing=len(points) - (len(rows) if columns[1] in _COUNTED.values() else 1),
            format=NAME,
            skipped=skipped,
        )
        if run:
            return run
    timed = sum(any(map(math.isfinite, point.seconds.values())) for point in points)
    lacks = "actuals.error.trainer_count" if timed > 1 else "actuals.error.trainer_time"
    raise QuantityError(message(lacks, records=float(len(points))))


def _tables(points: Sequence[_Point]) -> list[tuple[_Times, Measure, tuple[str, str], Array]]:
    """Return the most direct time and count that two records have, with their rows; then the whole run by the last."""
    tables: list[tuple[_Times, Measure, tuple[str, str], Array]] = []
    measures: tuple[Measure, ...] = ("tokens", "steps", "samples")
    for when, measure in product(_TIMES, measures[:2]):
        rows = np.array([(p.seconds[when], p.amounts[measure]) for p in points], dtype=np.float64).reshape(-1, 2)
        rows = rows[np.isfinite(rows).all(axis=1)]
        if len(rows) > 1:
            tables.append((when, measure, (when, _COUNTED[measure]), rows))
            break
    seconds = points[-1].seconds["train_runtime"] if points else math.nan
    for measure in measures:
        amount = max((a for point in points if (a := point.amounts[measure]) > 0), default=math.nan)
        if seconds > 0 and amount <= limit("tokens"):
            column = "num_tokens" if measure == "tokens" else f"train_{measure}_per_second"
            whole = np.array([[0.0, 0.0], [seconds, amount]])
            tables.append(("train_runtime", measure, ("train_runtime", column), whole))
            break
    return tables
