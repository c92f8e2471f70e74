"""Days as people type them, and as they are shown."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from core.limits import limit
from core.messages import message
from core.number_text import QuantityError

_EXAMPLE = "2027-01-15"
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_FIRST, _LAST = date(2000, 1, 1), date(2199, 12, 31)
_NAMED = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_WRITINGS = tuple(
    re.compile(writing, re.ASCII | re.IGNORECASE)
    for writing in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[- ]{_NAMED},?[- ](?P<year>\d{{4}})",
        rf"{_NAMED} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})",
    )
)
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
"""The day first in most of the world, the month first in the United States."""

_SHORT = re.compile(r"(\d{1,2}\.\s?\d{1,2}\.\s?)(\d{2})", re.ASCII)


def is_day(text: str) -> bool:
    """Return whether ``text`` has the form of a date, even if that date does not exist."""
    stripped = text.strip()
    return bool(
        _SLASHES.fullmatch(stripped)
        or _SHORT.fullmatch(stripped)
        or any(writing.fullmatch(stripped) for writing in _WRITINGS)
    )


def parse_day(text: str) -> date:
    """Return the date that ``text`` names, such as 2027-01-15, 15.01.2027, 15 Jan 2027, or Jan 15, 2027.

    Raises `QuantityError` with the rule and an example for any other text, and for dates such as 5/1/2027 that have two
    readings.
    """
    stripped = text.strip()
    if slashes := _SLASHES.fullmatch(stripped):
        return _either_order(stripped, *(int(part) for part in slashes.groups()))
    match = next((found for writing in _WRITINGS if (found := writing.fullmatch(stripped))), None)
    if short := _SHORT.fullmatch(stripped):
        raise QuantityError(message("date.error.short", entered=stripped, meant=f"{short[1]}20{short[2]}"))
    if match is None:
        raise QuantityError(message("date.error.other", entered=stripped[: limit("number_chars")], example=_EXAMPLE))
    month = match["month"].capitalize()
    return _day(
        stripped, int(match["year"]), int(month) if month.isdigit() else _MONTHS.index(month) + 1, int(match["day"])
    )


def refuse_day(text: str) -> None:
    """Raise `QuantityError` for a date in a field for a time, with the number of days from today."""
    if is_day(text):
        days = (parse_day(text) - datetime.now(UTC).date()).days
        raise QuantityError(message("date.error.no_start", entered=text.strip(), days=float(days)))


def _either_order(text: str, first: int, second: int, year: int) -> date:
    if first <= 12 and second <= 12 and first != second:
        either = [str(_day(text, year, second, first)), str(_day(text, year, first, second))]
        raise QuantityError(message("date.error.ambiguous", entered=text, days=either))
    return _day(text, year, *((second, first) if first > 12 else (first, second)))


def _day(text: str, year: int, month: int, day: int) -> date:
    if not _FIRST.year <= year <= _LAST.year:
        raise QuantityError(message("date.error.range", entered=text, first=str(_FIRST), last=str(_LAST)))
    try:
        return date(year, month, day)
    except ValueError:
        raise QuantityError(message("date.error.calendar", entered=text, example=_EXAMPLE)) from None


def format_day(day: date, year: bool = True) -> str:
    """Return ``3 Oct 2027``."""
    return f"{day.day} {_MONTHS[day.month - 1]}{f' {day.year}' if year else ''}"
