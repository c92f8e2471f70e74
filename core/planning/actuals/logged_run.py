"""What a running job had trained by when: the result of every reader of logs, and what the readers share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.messages import Message, message
from core.number_text import QuantityError
from core.quantities import parse_quantity

Array = npt.NDArray[np.float64]
Measure: TypeAlias = Literal["tokens", "samples", "steps"]
"""What a log counts. Samples and steps become tokens by the plan's sequence length and batch."""

Clock: TypeAlias = Literal["wall", "steps", "rates"]
"""What the seconds of a log are: wall-clock time, step times added up, or steps ÷ tokens per second and accelerator,
which the tokens of a step and accelerator turn into seconds."""

Line: TypeAlias = tuple[int, str]
"""A line of a log: its number and text."""

CSV = "CSV"
EPOCH, LAST_MOMENT = 9e8, 7.2e9
"""A time from this many seconds on is a moment since 1970 instead of a time since the start; the last is in 2198."""
_CLOCK = re.compile(r"(?:(\d{1,4}) days?, {0,4})?(\d{1,4}):(\d{2}):(\d{2}(?:\.\d{1,9})?)")
_MOST_BACK = 0.5
"""Share of the gain by which rows sorted by time may go back in total before the times are doubted."""


@dataclass(frozen=True, eq=False, slots=True)
class LoggedRun:
    """What a job had trained by when, sorted by time.

    seconds: since the job or its first row began, by ``clock``. amounts: of ``measure``. began: moment of second 0
    since 1970; NaN without moments. columns: names of time and amount. rows: of the file. missing, unreadable: rows
    left out. bad: the first that cannot be read. resets: how often the time started over. format: what wrote the file.
    skipped: lines of something else. rates: of ``measure`` per second of single steps; empty without step times.
    """

    seconds: Array
    amounts: Array
    measure: Measure
    began: float
    columns: tuple[str, str]
    rows: int
    missing: int
    unreadable: int
    bad: Message | str
    resets: int
    format: str = CSV
    skipped: int = 0
    clock: Clock = "wall"
    rates: Array = field(default_factory=lambda: np.zeros(0))


def logged_run(
    rows: Array,
    measure: Measure,
    columns: tuple[str, str],
    bad: Sequence[Line],
    *,
    absolute: bool,
    of: int,
    missing: int,
    **more: Any,
) -> LoggedRun | None:
    """Return the run of rows of time and amount; None if these do not rise.

    Args:
        bad: The rows that cannot be read.
        absolute: Whether the times are moments since 1970.
        of: Number of rows of the file.
    """
    seconds, amounts, resets = in_order(rows, absolute=absolute)
    if len(seconds) < 2 or seconds[-1] <= seconds[0] or amounts[-1] <= amounts[0]:
        return None
    began = float(seconds[0]) if absolute else math.nan
    seconds = seconds - (began if absolute else 0.0)
    found = (measure, began, columns, of, missing, len(bad), quoted_line(*bad[0]) if bad else "", resets)
    return LoggedRun(seconds, amounts, *found, **more)


def quoted_line(line: int, text: str) -> Message:
    """Return a line of a log as messages quote it."""
    return message("actuals.line", line=float(line), text=" ".join(text[:400].split())[:60])


def read_number(text: str, most: float) -> float:
    """Return a finite number from 0 to ``most``. Raises ``ValueError``."""
    return checked(float(text.replace(",", "")), most)


def checked(value: float, most: float) -> float:
    """Return a finite ``value`` from 0 to ``most``. Raises ``ValueError``."""
    if not (math.isfinite(value) and 0 <= value <= most):
        raise ValueError(f"{value} is not within 0 and {most}")
    return value


def read_worded_time(text: str) -> float:
    """Return the seconds of ``1:23:45``, of a date and time, or of ``3 h``. Raises ``ValueError``."""
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return parse_quantity(text, "seconds")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def lines_of(text: str) -> list[str]:
    """Return the lines of a log. Raises `QuantityError` for too many, or too long ones."""
    most, widest, rows = float(limit("upload_bytes")), float(limit("log_line_chars")), float(limit("log_rows"))
    if len(text) > most:
        raise QuantityError(message("actuals.error.long", characters=float(len(text)), most=most))
    lines = text.lstrip("\ufeff").splitlines()
    if len(lines) > rows:
        raise QuantityError(message("actuals.error.rows", rows=float(len(lines)), most=rows))
    longest = max(range(len(lines)), key=lambda at: len(lines[at]), default=0)
    if lines and len(lines[longest]) > widest:
        characters = float(len(lines[longest]))
        raise QuantityError(message("actuals.error.wide", line=longest + 1.0, characters=characters, most=widest))
    return lines


def in_order(rows: Array, *, absolute: bool) -> tuple[Array, Array, int]:
    """Return times, amounts, and how often the time started over.

    Rows are sorted by time. If amounts then fall repeatedly, the times belong to successive processes, and each process
    continues where the previous one ended. Absolute times (``absolute``) never start over.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0), 0
    seconds, amounts = rows[np.lexsort((rows[:, 1], rows[:, 0]))].T
    back = -np.minimum(np.diff(amounts), 0).sum()
    starts = np.flatnonzero(np.diff(rows[:, 0]) < 0)
    if len(starts) and not absolute and back > _MOST_BACK * (amounts.max() - amounts.min()):
        ended = np.zeros(len(rows))
        ended[starts + 1] = rows[starts, 0]
        continued = rows[:, 0] + np.cumsum(ended)
        if -np.minimum(np.diff(rows[:, 1]), 0).sum() < back:
            return continued, rows[:, 1].copy(), len(starts)
    return seconds, amounts, 0
