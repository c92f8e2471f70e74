"""A calendar to take away: its runs, maintenance and deadline as an .ics file that calendar programs open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import sha256

from core.planning.calendar.dates import day_of, when
from core.planning.calendar.schedule import Schedule
from core.views.calendar.text import about, unfit
from core.wording import plain

_LINE = 75
"""Octets of a line, by RFC 5545, section 3.1."""


def as_ics(s: Schedule) -> str:
    """Every run, closed days and the deadline as events of whole days. Source: RFC 5545."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Napkin//Calendar and cost//EN"]
    for i, run in enumerate(s.runs):
        text = f"{plain(about(run))}. Ends {when(s.day(run.low.end), s.day(run.high.end))}."
        if wrong := unfit(run):
            text += f" {plain(wrong)}"
        lines += _event(s, f"run-{i + 1}", s.day(run.middle.begin), s.day(run.middle.end), run.run.name, text)
    for i, closed in enumerate(s.fleet.closed):
        lines += _event(s, f"closed-{i + 1}", closed.first, closed.last, "Cluster closed", "")
    if s.due:
        lines += _event(s, "deadline", s.due, s.due, "Deadline", "")
    lines.append("END:VCALENDAR")
    return "".join(f"{piece}\r\n" for line in lines for piece in _folded(line))


def _event(s: Schedule, id: str, first: date, last: date, summary: str, text: str) -> list[str]:
    described = [f"DESCRIPTION:{_escaped(text)}"] if text else []
    return [
        "BEGIN:VEVENT",
        f"UID:{id}-{_name(s)}@napkin",
        f"DTSTAMP:{day_of(s.start, 0):%Y%m%d}T000000Z",
        f"DTSTART;VALUE=DATE:{first:%Y%m%d}",
        f"DTEND;VALUE=DATE:{last + timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{_escaped(summary)}",
        *described,
        "END:VEVENT",
    ]


def _name(s: Schedule) -> str:
    """Another for every calendar of other runs or days, and the same for the same one, so that a program finds it."""
    # Not of figures: what a plan is worked out with may change from one edition of the data to the next.
    identity: list[object] = [s.start, s.due, [(closed.first, closed.last) for closed in s.fleet.closed]]
    for run in (run.run for run in s.runs):
        plan = run.plan
        identity += [run.name, run.after, run.earliest, plan.model, plan.parameters, plan.tokens]
        identity += [plan.accelerator, plan.accelerators]
    return sha256(repr(identity).encode()).hexdigest()[:16]


def _escaped(text: str) -> str:
    for plain_text, escape in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\n", "\\n"), ("\r", "")):
        text = text.replace(plain_text, escape)
    return text


def _folded(line: str) -> Iterator[str]:
    """A line in pieces of at most 75 octets, each but the first behind a blank."""
    piece = ""
    for letter in line:
        if len((piece + letter).encode()) > _LINE:
            yield piece
            piece = " "
        piece += letter
    yield piece
