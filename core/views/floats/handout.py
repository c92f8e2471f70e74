"""What a handout of Float formats holds: the number in the chosen format, its bits, and what every format makes."""

from __future__ import annotations

from core.floats import code_description
from core.floats.code_description import CodeView
from core.floats.comparison import Stored, explain_error, percent, store_everywhere
from core.floats.decimals import rounded
from core.floats.formats import Overflow
from core.views.floats.text import as_read, describe_outcome
from core.views.report.handout import Handout, HandoutTable

_LONG = 60
"""Characters of a typed number that a title has room for."""


def floats_handout(stored: Stored, overflow: Overflow) -> Handout:
    """The handout of one number in one format."""
    outcome, view = describe_outcome(stored), stored.view
    name = as_read(stored.typed)
    name = name if len(name) <= _LONG else f"{name[:_LONG]}…"
    explained = (*code_description.explain(view), *explain_error(stored)) if code_description.explainable(view) else ()
    return Handout(
        f"{name} in {stored.fmt.title}",
        outcome.answer,
        outcome.detail,
        tables=(
            HandoutTable("Its bits", ("field", "bits", "as a number"), _fields(view)),
            HandoutTable(
                "In every format",
                ("format", "code", "stored value", "relative error"),
                tuple(map(_row, store_everywhere(stored.typed, overflow=overflow))),
                "Each rounded once from the exact number, ties to even.",
            ),
        ),
        explanations=tuple(explained),
    )


def _fields(view: CodeView) -> tuple[tuple[str, ...], ...]:
    fmt = view.fmt
    widths = {"sign": int(fmt.signed), "exponent": fmt.exponent_bits, "fraction": fmt.fraction_bits}
    values = {"sign": view.sign, "exponent": view.exponent, "fraction": view.fraction}
    rows = [(name, f"{values[name]:0{width}b}", f"{values[name]:,}") for name, width in widths.items() if width]
    return (*rows, ("all of it", f"0x{view.code:0{fmt.hex_digits}x}", view.decimal.replace("-", "−")))


def _row(stored: Stored) -> tuple[str, ...]:
    error = "exact" if stored.exact else percent(stored.relative) if stored.relative is not None else "–"
    fmt = stored.fmt
    value = stored.text if len(stored.text) <= _LONG else rounded(stored.view.value or stored.view.fmt.max_finite, 12)
    return f"{fmt.title}", f"0x{stored.view.code:0{fmt.hex_digits}x}", value, error
