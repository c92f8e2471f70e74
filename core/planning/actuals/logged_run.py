"""What a running job had trained, and when: the result of every reader of logs, and the numbers that they share."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.number_text import QuantityError
from core.units import parse_quantity

Array = npt.NDArray[np.float64]
Measure: TypeAlias = Literal["tokens", "samples", "steps"]
"""What a log counts; samples and steps become tokens by the plan's length and batch."""

Clock: TypeAlias = Literal["wall", "steps", "rates"]
"""What the seconds of a log are: of the clock on the wall; step times added up; or steps divided by tokens per second
and accelerator, which the tokens of a step and accelerator make seconds of."""

CSV = "CSV"
EPOCH, LAST_MOMENT = 9e8, 7.2e9
"""A time of at least so many seconds is a moment since 1970, not a time since the start; the other is in 2198."""
_CLOCK = re.compile(r"(?:(\d{1,4}) days?, {0,4})?(\d{1,4}):(\d{2}):(\d{2}(?:\.\d{1,9})?)")
_HOLDS_BACK = 0.5
"""Share of what was gained that rows in the order of their time may go back together, before the times are doubted."""


@dataclass(frozen=True, eq=False, slots=True)
class LoggedRun:
    """What a job had trained by when, in the order of time.

    seconds: since the job began, or since its first row, by ``clock``. amounts: of ``measure``. began: moment of second
    0 since 1970; NaN where times alone were logged. columns: names of time and amount as the file has them. rows: in
    the file, or lines of it. missing, unreadable: rows left out; bad: line, text, and fault of the first that cannot be
    read. resets: how often the logger's time began anew. format: what wrote the file. skipped: lines of something else.
    rates: of ``measure`` per second, by the time of single steps; empty where none is logged. earlier: line and text of
    the first row that is earlier than the one before it; empty for none.
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
    format: str = CSV
    skipped: int = 0
    clock: Clock = "wall"
    rates: Array = field(default_factory=lambda: np.zeros(0))
    earlier: str = ""


class UnreadableError(ValueError):
    """A number of a log that cannot be used; the message says why."""


def quoted(line: int, text: str, why: str = "") -> str:
    """Return a line of a log as messages quote it."""
    return f"line {line:,}, “{' '.join(text[:400].split())[:60]}”{f' ({why})' if why else ''}"


def read_number(text: str, what: str, most: float) -> float:
    """Return a finite number of 0 to ``most``; raises `UnreadableError`, and ``ValueError`` for what is no number."""
    value = float(text.replace(",", ""))
    if not math.isfinite(value):
        raise UnreadableError(f"its {what} is not finite")
    return checked(value, what, most)


def checked(value: float, what: str, most: float) -> float:
    """Return ``value``, from 0 to ``most``; raises `UnreadableError`."""
    if not value >= 0:
        raise UnreadableError(f"its {what} is negative")
    if value > most:
        raise UnreadableError(f"its {what} is more than {most:.3g}")
    return value


def read_worded_time(text: str) -> float:
    """Return the seconds of ``1:23:45``, of a date and time, or of ``3 h``; raises ``ValueError``."""
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return parse_quantity(text, "seconds")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def check_size(text: str) -> list[str]:
    """Return the lines of a log; raises `QuantityError` for more of them, or for longer ones, than are read."""
    most, widest, rows = limit("upload_bytes"), limit("log_line_chars"), limit("log_rows")
    if len(text) > most:
        raise QuantityError(f"The log has {len(text):,} characters; at most {most:,} are read. Leave rows out.")
    lines = text.lstrip("\ufeff").splitlines()
    if len(lines) > rows:
        raise QuantityError(f"The log has {len(lines):,} rows; at most {rows:,} are read. Leave some out.")
    longest = max(range(len(lines)), key=lambda at: len(lines[at]), default=0)
    if lines and len(lines[longest]) > widest:
        raise QuantityError(
            f"Line {longest + 1:,} of the log has {len(lines[longest]):,} characters; at most {widest:,} are read. "
            "Leave columns out."
        )
    return lines


def in_order(rows: Array, *, absolute: bool) -> tuple[Array, Array, int]:
    """Times, amounts, and how often the time began anew.

    Rows are put in the order of time. Where amounts then go back again and again, the time was that of processes, one
    after another: each goes on where the one before it ended. absolute: the times are moments, which never begin anew.
    """
    if not len(rows):
        return np.zeros(0), np.zeros(0), 0
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    seconds, amounts = rows[order].T
    back = -np.minimum(np.diff(amounts), 0).sum()
    starts = np.flatnonzero(np.diff(rows[:, 0]) < 0)
    if len(starts) and not absolute and back > _HOLDS_BACK * (amounts.max() - amounts.min()):
        ended = np.zeros(len(rows))
        ended[starts + 1] = rows[starts, 0]
        own = rows[:, 0] + np.cumsum(ended)
        if -np.minimum(np.diff(rows[:, 1]), 0).sum() < back:
            return own, rows[:, 1].copy(), len(starts)
    return seconds, amounts, 0
