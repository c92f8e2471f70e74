"""A running job's log: what its training program printed, or a logger's CSV, whose columns are found by their names.

Rows that are left out are counted, never guessed.
"""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np

from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.actuals.logged_run import (
    EPOCH,
    LAST_MOMENT,
    Line,
    LoggedRun,
    Measure,
    checked,
    lines_of,
    logged_run,
    quoted_line,
    read_worded_time,
)
from core.planning.actuals.printed_steps import read_printed_steps, read_trainer_records
from core.quantities import parse_quantity

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

    Raises `QuantityError` for a text that is too long, or without a time or a count.
    """
    lines = lines_of(text)
    return read_printed_steps(lines) or read_trainer_records(lines) or _read_csv(lines)


def read_log(text: str) -> LoggedRun | None:
    """Return the log of a link; None for an empty text."""
    return parse_log(text) if text.strip() else None


def _read_csv(lines: list[str]) -> LoggedRun:
    first = next((line for line in lines if line.strip()), "")
    mark = max(",;\t|", key=first.count)
    try:
        rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=mark)
        table = [(at, row) for at, row in enumerate(rows, 1) if row]
    except csv.Error as problem:
        raise QuantityError(message("actuals.error.csv", problem=str(problem))) from None
    if not table:
        raise QuantityError(message("actuals.error.empty"))
    heads, body = table[0][1], [row for row in table[1:] if row[1] != table[0][1]]
    names = [message("actuals.column", name=head.strip()[:40]) for head in heads[:12]]
    times = sorted((rank, at) for at, head in enumerate(heads) if (rank := _time_rank(head)) is not None)
    if not times:
        raise QuantityError(message("actuals.error.no_time", columns=names))
    counts: list[tuple[Measure, int]] = [
        (measure, at)
        for measure, nouns in _MEASURES
        for at, head in enumerate(heads)
        if at != times[0][1] and _words(head) & nouns and not _words(head) & _NOT_COUNTS
    ]
    if not counts:
        raise QuantityError(message("actuals.error.no_count", columns=names))
    bad = list[Line]()
    for measure, at in counts[: 1 + limit("log_cells") // (len(body) + 1)]:
        run, unreadable = _read(body, heads, times[0][1], at, measure, limit("log_bad_rows") - len(bad), mark == ";")
        if run and ("value" not in _words(heads[at]) or _tokens_like(run)):
            return run
        bad += unreadable
        if len(bad) > limit("log_bad_rows"):
            break
    if bad:
        raise QuantityError(message("actuals.error.bad_rows", bad=quoted_line(*bad[0])))
    raise QuantityError(message("actuals.error.no_rows"))


def _words(head: str) -> frozenset[str]:
    """Return the words of a heading, without the run's name that exports put before a dash."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", head.rpartition(" - ")[2]).lower()
    return frozenset(word for word in re.split(r"[^a-z0-9]+", name) if word)


def _time_rank(head: str) -> int | None:
    """Return the preference of a column as the time: moments first, process time last; None for no time."""
    words = _words(head)
    if words & _NOT_TIMES or not words & (_MOMENTS | _TIMES):
        return None
    if words & _MOMENTS:
        return 0
    return 2 if words & {"runtime", "process"} else 1


def _tokens_like(run: LoggedRun) -> bool:
    """Return whether a column of values may count tokens: it rises nearly always, and far."""
    return bool(np.mean(np.diff(run.amounts) >= 0) > 0.95 and run.amounts.max() >= _RISES)


def _read(
    body: list[tuple[int, list[str]]], heads: list[str], when: int, what: int, measure: Measure, most: int, comma: bool
) -> tuple[LoggedRun | None, list[Line]]:
    """Return the log of two columns, None if it does not rise, and the rows that cannot be read, of which more than
    ``most`` end the reading. comma: whether numbers have a decimal comma."""
    unit = next((_UNITS[word] for word in _words(heads[when]) if word in _UNITS), 0.0)
    size = math.prod(_SIZES.get(word, 1.0) for word in _words(heads[what]))
    size *= 10.0 ** int(match[1]) if (match := re.search(r"1e(\d{1,2})\b", heads[what])) else 1.0
    rows, cells_of, bad = list[tuple[float, float]](), list[Line](), list[Line]()
    missing = 0
    for line, row in body:
        cells = [row[at].strip() if at < len(row) else "" for at in (when, what)]
        if not all(cells) or not _MISSING.isdisjoint(map(str.lower, cells)):
            missing += 1
            continue
        if comma:
            cells = [re.sub(r"^(\d+),(\d+)", r"\1.\2", cell) for cell in cells]
        try:
            rows.append((_seconds(cells[0], unit), _amount(cells[1], size)))
        except (ValueError, OverflowError):
            bad.append((line, ", ".join(cells)))
            if len(bad) > most:
                return None, bad
        else:
            cells_of.append((line, ", ".join(cells)))
    moments = [at >= EPOCH for at, _ in rows]
    absolute = 2 * sum(moments) > len(rows)
    values = np.array(rows, dtype=np.float64).reshape(-1, 2)[np.array(moments, dtype=bool) == absolute]
    bad += [cells for cells, is_moment in zip(cells_of, moments, strict=True) if is_moment != absolute]
    columns = (heads[when].strip()[:80], heads[what].strip()[:80])
    run = logged_run(values, measure, columns, bad, absolute=absolute, of=len(body), missing=missing)
    return run, bad


def _amount(text: str, size: float) -> float:
    try:
        value = size * float(text.replace(",", ""))
    except ValueError:
        value = parse_quantity(text, "tokens")
    return checked(value, float(limit("tokens")))


def _seconds(text: str, unit: float) -> float:
    """Return seconds since the start, or since 1970. unit: in seconds; 0 if the heading names none."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return checked(read_worded_time(text), LAST_MOMENT)
    if value >= EPOCH and unit <= 1:
        for _ in range(3):  # in ms, µs, or ns
            value /= 1000 if value > LAST_MOMENT else 1
    else:
        value *= unit or 1.0
    return checked(value, LAST_MOMENT)
