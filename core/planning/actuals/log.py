"""A logger's CSV: what a running job had trained, and when. Columns are found by their names; what is left out is
counted, never guessed."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.units import QuantityError, parse_quantity

Array = npt.NDArray[np.float64]
Measure: TypeAlias = Literal["tokens", "samples", "steps"]
"""What a column counts; samples and steps become tokens by the plan's length and batch."""

_EXAMPLE = "For example: a first line “days,tokens”, and under it “1.5,90B”."
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
_MISSING = frozenset({"", "nan", "null", "none", "-", "n/a", "na"})
_CLOCK = re.compile(r"(?:(\d+) days?, *)?(\d{1,4}):(\d{2}):(\d{2}(?:\.\d+)?)")
_EPOCH, _LAST_MOMENT = 9e8, 7.2e9
"""A time of at least so many seconds is a moment since 1970, not a time since the start; the other is in 2198."""
_HOLDS_BACK = 0.5
"""Share of what was gained that rows in the order of their time may go back together, before the times are doubted."""
_RISES = 1e6


@dataclass(frozen=True, eq=False, slots=True)
class LoggedRun:
    """What a job had trained by when, in the order of time.

    seconds: since the job began, or since its first row where moments were logged. amounts: of ``measure``. began:
    moment of second 0 since 1970; NaN where times alone were logged. columns: names of time and amount as the file has
    them. rows: in the file. missing, unreadable: rows left out; bad: line and text of the first that cannot be read.
    resets: how often the logger's time began anew.
    """

    seconds: Array
    amounts: Array
    measure: Measure
    began: float
    columns: tuple[str, str]
    rows: int
    missing: int
    unreadable: int
    bad: str
    resets: int


def parse_log(text: str) -> LoggedRun:
    """The log in a CSV as loggers export it. Raises `QuantityError`, which says what is needed, where it has none."""
    most = limit("upload_bytes")
    if len(text) > most:
        raise QuantityError(f"The log has {len(text):,} characters; at most {most:,} are read. Leave rows out.")
    lines = text.lstrip("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    mark = max(",;\t|", key=first.count)
    try:
        table = [
            (at, row) for at, row in enumerate(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark), 1) if row
        ]
    except csv.Error as problem:
        raise QuantityError(f"The log is no CSV: {problem}. {_EXAMPLE}") from None
    if len(table) > limit("log_rows"):
        raise QuantityError(f"The log has {len(table):,} rows; at most {limit('log_rows'):,} are read. Leave some out.")
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
    for measure, at in counts:
        run = _read(body, heads, times[0][1], at, measure, mark == ";")
        if run and ("value" not in _words(heads[at]) or _tokens_like(run)):
            return run
    if not counts:
        raise QuantityError(f"No column counts tokens, samples or steps: its columns are {names}. {_EXAMPLE}")
    raise QuantityError(f"The log needs two rows with a time and a count that rises between them. {_EXAMPLE}")


def read_log(text: str) -> LoggedRun | None:
    """A log that links carry; None for none."""
    return parse_log(text) if text.strip() else None


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
    body: list[tuple[int, list[str]]], heads: list[str], when: int, what: int, measure: Measure, comma: bool
) -> LoggedRun | None:
    unit = next((_UNITS[word] for word in _words(heads[when]) if word in _UNITS), 0.0)
    size = math.prod(_SIZES.get(word, 1.0) for word in _words(heads[what]))
    size *= 10.0 ** int(match[1]) if (match := re.search(r"1e(\d{1,2})\b", heads[what])) else 1.0
    rows: list[tuple[float, float]] = []
    missing = unreadable = 0
    bad = ""
    for line, row in body:
        cells = [row[at].strip() if at < len(row) else "" for at in (when, what)]
        if any(cell.lower() in _MISSING for cell in cells):
            missing += 1
            continue
        if comma:
            cells = [re.sub(r"^(\d+),(\d+)", r"\1.\2", cell) for cell in cells]
        try:
            rows.append((_seconds(cells[0], unit), _amount(cells[1], size)))
        except (ValueError, OverflowError):
            unreadable += 1
            bad = bad or f"line {line}, “{', '.join(cells)[:60]}”"
    moments = sum(at >= _EPOCH for at, _ in rows)
    absolute = 2 * moments > len(rows)
    kept = [row for row in rows if (row[0] >= _EPOCH) == absolute]
    unreadable += len(rows) - len(kept)
    if unreadable and not bad:
        bad = "times since the start among moments"
    seconds, amounts, resets = _in_order(np.array(kept, dtype=np.float64).reshape(-1, 2))
    if len(seconds) < 2 or seconds[-1] <= seconds[0] or amounts[-1] <= amounts[0]:
        return None
    began = float(seconds[0]) if absolute else math.nan
    columns = (heads[when].strip()[:80], heads[what].strip()[:80])
    base = began if absolute else 0.0
    return LoggedRun(seconds - base, amounts, measure, began, columns, len(body), missing, unreadable, bad, resets)


def _in_order(rows: Array) -> tuple[Array, Array, int]:
    """Times, amounts, and how often the time began anew.

    Rows are put in the order of time. Where amounts then go back again and again, the time was that of processes, one
    after another: each goes on where the one before it ended.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0), 0
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    seconds, amounts = rows[order].T
    back = -np.minimum(np.diff(amounts), 0).sum()
    starts = np.flatnonzero(np.diff(rows[:, 0]) < 0)
    if len(starts) and back > _HOLDS_BACK * (amounts.max() - amounts.min()):
        own = rows[:, 0].copy()
        for at in starts:
            own[at + 1 :] += rows[at, 0]
        if -np.minimum(np.diff(rows[:, 1]), 0).sum() < back:
            return own, rows[:, 1].copy(), len(starts)
    return seconds, amounts, 0


def _amount(text: str, size: float) -> float:
    try:
        value = float(text.replace(",", ""))
        value *= size
    except ValueError:
        value = parse_quantity(text, "tokens")
    if not 0 <= value <= limit("tokens"):
        raise ValueError(text)
    return value


def _seconds(text: str, unit: float) -> float:
    """Seconds since the start, or since 1970. unit: in seconds; 0 where the heading names none."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = _worded(text)
    else:
        if value >= _EPOCH and unit <= 1:
            while value > _LAST_MOMENT:  # in ms, µs or ns
                value /= 1000
        else:
            value *= unit or 1.0
    if not 0 <= value <= _LAST_MOMENT:
        raise ValueError(text)
    return value


def _worded(text: str) -> float:
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return parse_quantity(text, "seconds")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
