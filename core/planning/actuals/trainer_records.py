"""Logs of the Hugging Face Trainer: the dictionaries that its callbacks print, or write as JSON.

They time nothing but the run as a whole. What times them is a timestamp before each, the progress bars between them, or
``train_runtime``, which the last one has, and every one where input tokens are counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from core.limits import limit
from core.planning.actuals.logged_run import (
    LAST_MOMENT,
    Array,
    LoggedRun,
    Measure,
    UnreadableError,
    checked,
    in_order,
    quoted,
    read_number,
    read_worded_time,
)
from core.planning.actuals.printed_steps import moment_before, without_colors
from core.units import QuantityError

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
