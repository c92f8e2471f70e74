"""Logs of programs that print a line for each step: nanoGPT, Megatron-LM, and torchtitan.

The formats are those of nanoGPT's train.py, of `training_log` in Megatron-LM's training.py, and of torchtitan's
components/metrics.py. Whatever stands before them, such as a timestamp or a rank, is no part of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
