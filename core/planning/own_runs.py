"""Runs that a team trained itself, as it types or pastes them: they say more of its next run than those of others.

One run a line: parameters, tokens, accelerators, how long. ``7B, 2T tokens, 256 H100 SXM, 19 days``; the cells of a CSV
are read as well. A time is of the clock (days, h), or of accelerators (GPU-hours); a rate (tokens/s) is that of steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.budget.run import effective_utilisation
from core.hardware.accelerators import accelerators
from core.hardware.accelerators import find as find_accelerator
from core.hardware.matmul import ceiling_of
from core.limits import limit
from core.models.flops import train_flop_6nd
from core.runs.utilisation import peak_16bit
from core.suggest import suggestions
from core.units import QuantityError, format_quantity, parse_quantity

EXAMPLE = "7B, 2T tokens, 256 H100 SXM, 19 days"

_SLOWEST = 0.02
"""MFU below which a run is taken to be mistyped: the slowest published one reached more than twice as much."""

_COMMA = re.compile(r"[;\t]|(?<!\d),|,(?!\d{3}(?:\D|$))")
_CLUSTER = re.compile(r"([\d.,]+ ?[kM]?) ?(?:×|x|\*)? ?(\D.*)", re.IGNORECASE)
_RATE = re.compile(r"(.+?) ?tok(?:en)?s? ?(?:/|per) ?s(?:ec(?:ond)?)?", re.IGNORECASE)
_BILLED = re.compile(r"(.+?) ?(?:gpu|accelerator|device)s?[- ]{0,3}h(?:ou)?rs?", re.IGNORECASE)
"""Of cells with single blanks."""


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A run that somebody trained. hours: accelerator-hours. steady: whether these are of steps alone."""

    parameters: float
    tokens: float
    accelerator: str
    accelerators: float
    hours: float
    steady: bool

    @property
    def mfu(self) -> float:
        """6 N D over the hours and the dense 16-bit peak."""
        flop = train_flop_6nd(self.parameters, self.tokens)
        return effective_utilisation(flop, self.hours, peak_16bit(self.accelerator))


def _count(text: str, most: str) -> float:
    return parse_quantity(text, "count", low=1, high=limit(most), whole=True, example=EXAMPLE)


def _named(text: str) -> str:
    names = {device.name.lower(): device.name for device in accelerators()}
    name = names.get(" ".join(text.split()).lower())
    if name is None:
        close = suggestions(text, list(names.values()))
        meant = f" Did you mean {' or '.join(close)}?" if close else ""
        raise QuantityError(f"No accelerator is called “{text.strip()}”.{meant}")
    return name


def _cluster(cells: list[str]) -> tuple[float, str]:
    """Accelerators and their name, in one cell or in two of any order."""
    match = _CLUSTER.fullmatch(" ".join(sorted(cells, key=lambda cell: not cell.strip()[:1].isdigit())).strip())
    if not match:
        raise QuantityError(f"“{', '.join(cells).strip()}” names no accelerators. For example: {EXAMPLE}.")
    return _count(match[1], "accelerators"), _named(match[2])


def _hours(text: str, tokens: float, count: float) -> tuple[float, bool]:
    """Accelerator-hours, and whether they are of steps alone."""
    if rate := _RATE.fullmatch(text):
        return tokens / _count(rate[1], "tokens") / 3600 * count, True
    if billed := _BILLED.fullmatch(text):
        return parse_quantity(billed[1], "count", low=1, high=1e15, example="116,000 GPU-hours"), False
    return parse_quantity(text, "seconds", low=1.0, high=1e10, example="19 days") / 3600 * count, False


def _run(line: str) -> OwnRun:
    cells = [" ".join(cell.split()) for cell in _COMMA.split(line)]
    if len(cells) not in (4, 5):
        raise QuantityError(f"It has {len(cells)} cells, and a run has 4. For example: {EXAMPLE}.")
    parameters = _count(cells[0], "parameters")
    tokens = _count(re.sub(r"(?i) ?tokens?$", "", cells[1]), "tokens")
    count, name = _cluster(cells[2:-1])
    run = OwnRun(parameters, tokens, name, count, *_hours(cells[-1], tokens, count))
    device = find_accelerator(name)
    most = ceiling_of(device, device.usable("bf16"))
    share = format_quantity(run.mfu, "ratio", 2)
    if run.mfu > most:
        best = format_quantity(most, "ratio", 2)
        raise QuantityError(
            f"It comes to {share} of the peak, and the best matmul of {name} reaches {best}. Are the hours those of "
            "all accelerators, or days taken for hours?"
        )
    if run.mfu < _SLOWEST:
        raise QuantityError(
            f"It comes to {share} of the peak, and no published run is below {format_quantity(_SLOWEST, 'ratio', 2)}. "
            "Are hours taken for days, or a number of tokens left out?"
        )
    return run


def parse_own_runs(text: str) -> tuple[OwnRun, ...]:
    """Runs as typed, one a line; a first line without a number is a heading.

    Raises `QuantityError`, which names the line, for what cannot be read, for an unknown accelerator, for more runs
    than are taken, and for a run that is faster than its best matmul or ten times slower than usual.
    """
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and not re.search(r"\d", lines[0][1]):
        lines = lines[1:]
    if len(lines) > limit("own_runs"):
        raise QuantityError(f"These are {len(lines)} runs, and {limit('own_runs')} are taken: leave the oldest out.")
    runs: list[OwnRun] = []
    for at, line in lines:
        try:
            runs.append(_run(line))
        except QuantityError as problem:
            raise QuantityError(f"Line {at}: {problem}") from problem
    return tuple(runs)
