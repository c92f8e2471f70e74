"""A running job's log: what its training program printed, or a logger's CSV, whose columns are found by their names.

What is left out is counted, never guessed.
"""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np

from core.limits import limit
from core.planning.actuals.logged_run import (
    EPOCH,
    LAST_MOMENT,
    Array,
    LoggedRun,
    Measure,
    UnreadableError,
    check_size,
    checked,
    in_order,
    quoted,
    read_number,
    read_worded_time,
)
from core.planning.actuals.printed_steps import read_printed_steps, read_trainer_records
from core.units import QuantityError, parse_quantity

_EXAMPLE = (
    "Paste what nanoGPT, Megatron-LM, torchtitan, or the Hugging Face Trainer prints, or a CSV with a first line "
    "“days,tokens” and lines such as “1.5,90B”."
)
_MEASURES: tuple[tuple[Measure, frozenset[str]], ...] = (
    ("tokens", frozenset({"token", "tokens", "tok", "ntokens", "mtokens", "btokens", "gtokens", "ttokens"})),
    ("samples", frozenset({"sample", "samples", "sequences", "seqs"})),
    ("tokens", frozenset({"value"})),
    ("steps", frozenset({"step", "steps", "iteration", "iterations", "iter", "iters"})),
)
_NOT_COUNTS = frozenset(
    {"per", "s", "sec", "second", "seconds", "rate", "throughput", "speed", "loss", "lr", "gpu", "device", "eval"}
    | {"val", "validation", "test", "batch", "size", "length", "time", "eta", "remaining", "left", "target", "micro"}
    | {"min", "max"}
)
_NOT_TIMES = frozenset(
    {"per", "step", "iteration", "iter", "batch", "eta", "remaining", "left", "gpu", "tokens", "token", "data"}
    | {"forward", "load", "lr"}
)
_SIZES = {
    **dict.fromkeys(("k", "thousand", "thousands"), 1e3),
    **dict.fromkeys(("m", "mn", "million", "millions", "mtokens"), 1e6),
    **dict.fromkeys(("b", "bn", "g", "billion", "billions", "gtokens", "btokens"), 1e9),
    **dict.fromkeys(("t", "tn", "trillion", "trillions", "ttokens"), 1e12),
}
_UNITS = {
    "ms": 1e-3,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_MOMENTS = frozenset({"timestamp", "wall", "date", "datetime"})
_TIMES = frozenset({"time", "elapsed", "relative", "runtime", *_UNITS})
_MISSING = frozenset({"nan", "null", "none", "-", "n/a", "na"})
_RISES = 1e6


def parse_log(text: str) -> LoggedRun:
    """Return what a log says, whichever program wrote it.

    Raises `QuantityError` for a text that is too long, and for one without a time or a count.
    """
    lines = check_size(text)
    return read_printed_steps(lines) or read_trainer_records(lines) or _read_csv(lines)


def read_log(text: str) -> LoggedRun | None:
    """A log that links carry; None for none."""
    return parse_log(text) if text.strip() else None


def _read_csv(lines: list[str]) -> LoggedRun:
    """The log in a CSV as loggers export it."""
    first = next((line for line in lines if line.strip()), "")
    mark = max(",;\t|", key=first.count)
    try:
        table = [
            (at, row) for at, row in enumerate(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark), 1) if row
        ]
    except csv.Error as problem:
        raise QuantityError(f"The log is no CSV: {problem}. {_EXAMPLE}") from None
    if not table:
        raise QuantityError(f"The log is empty. {_EXAMPLE}")
    (_, heads), body = table[0], [row for row in table[1:] if row[1] != table[0][1]]
    names = ", ".join(f"“{head.strip()[:40]}”" for head in heads[:12])
    times = sorted((rank, at) for at, head in enumerate(heads) if (rank := _time_rank(head)) is not None)
    if not times:
        raise QuantityError(f"No column says when: its columns are {names}. {_EXAMPLE}")
    counts: list[tuple[Measure, int]] = [
        (measure, at)
        for measure, nouns in _MEASURES
        for at, head in enumerate(heads)
        if at != times[0][1] and _words(head) & nouns and not _words(head) & _NOT_COUNTS
    ]
    if not counts:
        raise QuantityError(f"No column counts tokens, samples or steps: its columns are {names}. {_EXAMPLE}")
    fault, bad_rows = "", limit("log_bad_rows")
    for measure, at in counts[: 1 + limit("log_cells") // (len(body) + 1)]:
        run, why, unreadable = _read(body, heads, times[0][1], at, measure, bad_rows, comma=mark == ";")
        if run and ("value" not in _words(heads[at]) or _tokens_like(run)):
            return run
        fault, bad_rows = fault or why, bad_rows - unreadable
        if bad_rows < 0:
            break
    raise QuantityError(
        f"The log needs two rows with a time and a count that rises between them. "
        f"{f'Napkin cannot use {fault}. ' if fault else ''}{_EXAMPLE}"
    )


def _words(head: str) -> frozenset[str]:
    """The words of a heading; a run's own name, which exports put before a dash, is left out."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", head.rpartition(" - ")[2]).lower()
    return frozenset(word for word in re.split(r"[^a-z0-9]+", name) if word)


def _time_rank(head: str) -> int | None:
    """How gladly a column is taken for the time: moments first, a process's own time last; None for no time."""
    words = _words(head)
    if words & _NOT_TIMES or not words & (_MOMENTS | _TIMES):
        return None
    if words & _MOMENTS:
        return 0
    return 2 if words & {"runtime", "process"} else 1


def _tokens_like(run: LoggedRun) -> bool:
    """Whether a column of values may count tokens: it rises nearly always, and far."""
    return bool(np.mean(np.diff(run.amounts) >= 0) > 0.95 and run.amounts.max() >= _RISES)


def _read(
    body: list[tuple[int, list[str]]],
    heads: list[str],
    when: int,
    what: int,
    measure: Measure,
    bad_rows: int,
    *,
    comma: bool,
) -> tuple[LoggedRun | None, str, int]:
    """The log of two columns, None where it does not rise; the first row that cannot be used; how many such there are.

    bad_rows: more of them end the reading.
    """
    unit = next((_UNITS[word] for word in _words(heads[when]) if word in _UNITS), 0.0)
    size = math.prod(_SIZES.get(word, 1.0) for word in _words(heads[what]))
    size *= 10.0 ** int(match[1]) if (match := re.search(r"1e(\d{1,2})\b", heads[what])) else 1.0
    rows: list[tuple[float, float]] = []
    texts: list[tuple[int, str]] = []
    missing = unreadable = 0
    bad = lacking = ""
    for line, row in body:
        cells = [row[at].strip() if at < len(row) else "" for at in (when, what)]
        if not all(cells) or not _MISSING.isdisjoint(map(str.lower, cells)):
            missing += 1
            lacking = lacking or quoted(line, ", ".join(cells), "it lacks a time or a count")
            continue
        if comma:
            cells = [re.sub(r"^(\d+),(\d+)", r"\1.\2", cell) for cell in cells]
        try:
            rows.append((_seconds(cells[0], unit), _amount(cells[1], size)))
            texts.append((line, ", ".join(cells)))
        except (ValueError, OverflowError) as problem:
            unreadable += 1
            why = str(problem) if isinstance(problem, UnreadableError) else ""
            bad = bad or quoted(line, ", ".join(cells), why)
            if unreadable > bad_rows:
                return None, bad, unreadable
    absolute = 2 * sum(at >= EPOCH for at, _ in rows) > len(rows)
    of_its_kind = [(at >= EPOCH) == absolute for at, _ in rows]
    kept = [row for row, good in zip(rows, of_its_kind, strict=True) if good]
    unreadable += len(rows) - len(kept)
    if unreadable and not bad:
        line, cell = texts[of_its_kind.index(False)]
        bad = quoted(line, cell, f"its time is {'no moment' if absolute else 'a moment'}, unlike the others")
    values: Array = np.array(kept, dtype=np.float64).reshape(-1, 2)
    seconds, amounts, resets = in_order(values, absolute=absolute)
    falls = np.flatnonzero(np.diff(values[:, 0]) < 0)
    earlier = ""
    if len(falls) and not resets:
        line, cell = [row for row, good in zip(texts, of_its_kind, strict=True) if good][int(falls[0]) + 1]
        earlier = quoted(line, cell)
    if len(seconds) < 2 or seconds[-1] <= seconds[0] or amounts[-1] <= amounts[0]:
        why = bad or lacking or (f"{earlier}, which is earlier than the row before it" if earlier else "")
        return None, why, unreadable
    began = float(seconds[0]) if absolute else math.nan
    columns = (heads[when].strip()[:80], heads[what].strip()[:80])
    seconds = seconds - (began if absolute else 0.0)
    found = (measure, began, columns, len(body), missing, unreadable, bad, resets)
    return LoggedRun(seconds, amounts, *found, earlier=earlier), "", unreadable


def _amount(text: str, size: float) -> float:
    most = float(limit("tokens"))
    try:
        value = size * read_number(text, "count", math.inf)
    except UnreadableError:
        raise
    except ValueError:
        value = parse_quantity(text, "tokens")
    return checked(value, "count", most)


def _seconds(text: str, unit: float) -> float:
    """Seconds since the start, or since 1970. unit: in seconds; 0 where the heading names none."""
    try:
        value = read_number(text, "time", math.inf)
    except UnreadableError:
        raise
    except ValueError:
        value = read_worded_time(text)
    else:
        if value >= EPOCH and unit <= 1:
            for _ in range(3):  # in ms, µs or ns
                value /= 1000 if value > LAST_MOMENT else 1
        else:
            value *= unit or 1.0
    return checked(value, "time", LAST_MOMENT)
