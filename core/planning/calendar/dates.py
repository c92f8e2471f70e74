"""Days of the calendar, in UTC: read from ISO texts, shown, and the times at which a cluster is closed.

Moments are days, with fractions, from the midnight that a calendar begins with.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from core.dates import format_day, parse_day
from core.limits import limit
from core.units import QuantityError

_EXAMPLE = "2027-01-15"


@dataclass(frozen=True, slots=True)
class Closed:
    """Days on which nothing runs, the first and the last included."""

    first: date
    last: date


def parse_closed(text: str) -> tuple[Closed, ...]:
    """Days typed as ``2027-07-05 to 2027-07-09, 2027-12-24``; none where nothing is. Raises `QuantityError`."""
    pieces = [piece for piece in re.split(r"[,;\n]", text) if piece.strip()]
    if len(pieces) > limit("closed_windows"):
        raise QuantityError(f"{len(pieces)} windows; {limit('closed_windows')} are the most here.")
    closed_periods: list[Closed] = []
    for piece in pieces:
        ends = [parse_day(end) for end in re.split(r"\s+to\s+|\s*(?:–|/|\.\.)\s*", piece.strip())]
        if len(ends) > 2 or ends[-1] < ends[0]:
            raise QuantityError(
                f"“{piece.strip()[: limit('number_chars')]}” does not run from a day to a later one. "
                f"For example: {_EXAMPLE} to 2027-01-19."
            )
        closed_periods.append(Closed(ends[0], ends[-1]))
    return tuple(closed_periods)


def between(first: date, last: date) -> str:
    """``12 Sep – 20 Nov 2027``; one day where both are the same."""
    if first == last:
        return format_day(first)
    return f"{format_day(first, first.year != last.year)} – {format_day(last)}"


def when(first: date, last: date) -> str:
    """``between 12 Sep and 20 Nov 2027``, or ``on 17 Apr 2027`` where both are the same."""
    if first == last:
        return f"on {format_day(first)}"
    return f"between {format_day(first, first.year != last.year)} and {format_day(last)}"


def lasting(first: date, last: date) -> str:
    """``from 12 Sep 2027 to 20 Nov 2027``, or ``on 17 Apr 2027`` where both are the same."""
    return f"from {format_day(first)} to {format_day(last)}" if first < last else when(first, last)


def quarter(day: date) -> str:
    """``Q4 2027``."""
    return f"Q{(day.month + 2) // 3} {day.year}"


def moment(start: date, at: float) -> datetime:
    """The moment ``at`` days after the midnight of ``start``, in UTC."""
    return datetime(start.year, start.month, start.day, tzinfo=UTC) + timedelta(days=at)


def last_day(start: date, days: float) -> date:
    """The day by whose end so many days have passed since the midnight of ``start``."""
    return start + timedelta(days=max(0, math.ceil(days) - 1))


def day_of(start: date, at: float) -> date:
    """The day on which the moment ``at`` falls."""
    return moment(start, at).date()


def months_from(start: date, most: float) -> list[date]:
    """The first days of the months after ``start``, up to ``most`` days on."""
    months: list[date] = []
    year, month = start.year, start.month
    while True:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        first = date(year, month, 1)
        if (first - start).days > most:
            return months
        months.append(first)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Times at which nothing runs, apart from each other and in order; and the horizon beyond which nothing is known.
    All in days."""

    times: tuple[tuple[float, float], ...]
    horizon: float

    def and_also(self, more: Iterable[tuple[float, float]]) -> Pauses:
        """The same with more times at which nothing runs."""
        return Pauses(_joined((*self.times, *more)), self.horizon)

    def open(self, at: float) -> float:
        """The first moment from ``at`` on that is in no pause."""
        i = bisect_right(self.times, (at, math.inf)) - 1
        return max(at, self.times[i][1]) if i >= 0 else at

    def after(self, begin: float, work: float) -> float:
        """When ``work`` days of work are done that begin at an open moment; infinite beyond the horizon."""
        at, left = begin, work
        for first, last in self.times[bisect_right(self.times, (begin, -math.inf)) :]:
            if at + left <= first:
                break
            left -= first - at
            at = last
        return at + left if at + left <= self.horizon else math.inf

    def within(self, begin: float, end: float) -> tuple[tuple[float, float], ...]:
        """The pauses between two moments."""
        return tuple((max(a, begin), min(b, end)) for a, b in self.times if a < end and b > begin)


def pauses_from(start: date, closed: tuple[Closed, ...], hours: float, horizon: float) -> Pauses:
    """Closed days, and ``hours`` from midnight of every month's first Monday, as times from ``start`` on."""
    times = [(float((item.first - start).days), float((item.last - start).days + 1)) for item in closed]
    if hours > 0:
        for first in (start.replace(day=1), *months_from(start, horizon)):
            monday = (first - start).days + (7 - first.weekday()) % 7
            times.append((float(monday), monday + hours / 24))
    return Pauses(_joined(times), horizon)


def _joined(times: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Times apart from each other and in order, none before the start."""
    joined: list[tuple[float, float]] = []
    for a, b in sorted((max(a, 0.0), b) for a, b in times if b > 0):
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], b))
        else:
            joined.append((a, b))
    return tuple(joined)
