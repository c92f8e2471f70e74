"""Float formats, panels about one rounding: the microscope, the same number everywhere, who agrees."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import streamlit as st

from core.fields import choice, switch
from core.floats import code_description
from core.floats.comparison import Stored, explain_error, percent, store_everywhere
from core.floats.decimals import brief, exact_decimal, rounded
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.oracles import Verdict, ask, summary
from core.floats.rounding_cases import (
    WORDS,
    Microscope,
    ModeResult,
    asked_text,
    explain,
    explainable,
    magnify,
    overflows,
    shares,
    takeaway,
)
from core.floats.typed_numbers import Typed
from core.formula import Explanation
from core.limits import cached
from pages.common import show
from pages.common.components import component
from pages.common.server.torch_import import torch_ready
from pages.common.show import rich
from pages.floats.inputs import COMMON, FloatInputs, NumberInputs

SORTS = ("format", "code", "value", "relative error", "error in ULP")
_TABLE = "floats:everywhere"
_ENDS = (8.0, 92.0)
"""Where the two neighbours stand on the line, in percent of its width."""


def heading(title: str, sentence: str) -> str:
    """HTML of a panel's heading and its takeaway."""
    return f'<h2 class="np-section">{html.escape(title)}</h2><p class="np-takeaway">{rich(sentence)}</p>'


def section(title: str, sentence: str) -> None:
    """A panel's heading and its takeaway."""
    st.html(heading(title, sentence))


def microscope(inputs: NumberInputs, stored: Stored) -> None:
    """The number between its two neighbours, and where every rounding mode sends it; then how all is computed."""
    value, fmt = inputs.typed.value, inputs.fmt
    scope = magnify(value, fmt, inputs.overflow) if value is not None else None
    if scope is None:
        section("Rounding microscope", _nowhere(value, fmt))
    else:
        _magnified(scope)
    parts: list[tuple[str, Callable[[], Sequence[Explanation]]]] = []
    if code_description.explainable(stored.view):
        parts.append(("The value", lambda: (*code_description.explain(stored.view), *explain_error(stored))))
    if scope is not None and explainable(scope):
        parts.append(("Tie and chance", lambda: explain(scope)))
    with show.slot():  # there for NaN too: else all that follows would be mounted anew, without the keyboard's focus
        if parts:
            show.how(lambda: [item for name, text in parts for item in (name, *text())], key="floats:how")


def _magnified(scope: Microscope) -> None:
    drawn = heading("Rounding microscope", takeaway(scope))
    if not scope.exact:
        modes = "".join(_mode(choice, scope) for choice in scope.choices)
        drawn += f'<div class="np-scope">{_line(scope)}{modes}</div>{_grs(scope)}'
    # One element: each costs the server and the browser more than all that is in this one.
    st.html(drawn + _detour(scope))


def _nowhere(value: Fraction | None, fmt: FloatFormat) -> str:
    if value is None:
        return "Infinity and NaN are not rounded: there is nothing between neighbours to look at."
    low, high = brief(fmt.min_subnormal), brief(fmt.max_finite)
    if not fmt.signed and value <= 0:
        missing = "sign" if fmt.zero else "neither sign nor zero"
        return (
            f"{fmt.title} has {missing}: only numbers from {0 if fmt.zero else low} to {high} can be rounded into it."
        )
    if abs(value) > fmt.max_finite:
        return f"A whole step or more beyond the largest finite value, {high}: overflow decides, not rounding."
    return f"Below the smallest value of {fmt.title}, {low}, there is no neighbour to round down to."


def _number(value: Fraction, scope: Microscope) -> str:
    digits = scope.fmt.decimal_digits + 3
    exact = exact_decimal(value)
    return rich(exact.replace("-", "−") if len(exact) <= 16 else rounded(value, digits))


def _x(position: Fraction) -> float:
    return _ENDS[0] + float(position) * (_ENDS[1] - _ENDS[0])


def _line(scope: Microscope) -> str:
    ends = []
    for at, value, code in ((0, scope.low, scope.low_code), (1, scope.high, scope.high_code)):
        name = f"0x{code:0{scope.fmt.hex_digits}x}" if code is not None else "no finite value"
        ends.append(
            f'<span class="end" style="left:{_ENDS[at]}%"><i></i><b>{_number(value, scope)}</b>'
            f"<small>{name}</small></span>"
        )
    here = _x(scope.position)
    typed = asked_text(scope)
    return (
        '<div class="row head"><span class="name"></span><div class="axis">'
        f'<span class="asked" style="left:{here:.3f}%"><b style="transform:translateX(-{here:.0f}%)">{rich(typed)}</b>'
        f'<i></i></span>{"".join(ends)}<span class="end tie" style="left:50%"><i></i><small>tie</small></span></div>'
        '<span class="to"></span></div>'
    )


def _mode(choice: ModeResult, scope: Microscope) -> str:
    here = _x(scope.position)
    if choice.chance is not None:
        up, down = shares(choice.chance)
        arrows = _arrow(here, _ENDS[0], "dash") + _arrow(here, _ENDS[1], "dash")
        to = f"up {rich(up)}\u00a0%, down {rich(down)}\u00a0%"
    else:
        arrows = _arrow(here, _ENDS[int(choice.upper)], "")
        to = _number(choice.value, scope) if choice.value is not None else overflows(choice.code, scope.fmt)
    return (
        f'<div class="row"><span class="name">{html.escape(WORDS[choice.rounding])}</span>'
        f'<div class="axis">{arrows}</div><span class="to">{to}</span></div>'
    )


def _arrow(start: float, end: float, kind: str) -> str:
    low, high = sorted((start, end))
    way = "right" if end > start else "left"
    return f'<i class="arrow {way} {kind}" style="left:{low:.3f}%;width:{high - low:.3f}%"></i>'


def _grs(scope: Microscope) -> str:
    cells = "".join(
        f'<span class="{name}"><b class="np-mono">{bits}</b><small>{name}</small></span>'
        for name, bits in (
            ("kept", scope.kept),
            ("guard", scope.guard),
            ("round", scope.round_),
            ("sticky", scope.sticky),
        )
    )
    return (
        f'<p class="np-grs">{cells}<span class="say">Hardware keeps three bits of all that is cut off. Guard 0: '
        "nearer to zero’s side; guard 1 with round or sticky 1: nearer to the other; guard 1 alone: a tie.</span></p>"
    )


def _detour(scope: Microscope) -> str:
    detour = scope.detour
    if detour is None:
        return ""
    if not detour.differs:
        same = rich("**Through fp32 first**, as many libraries go: here it ends at the same value.")
        return f'<p class="np-note np-detour">{same}</p>'
    between = brief(detour.between, 10) if detour.between is not None else "overflow"
    ends = (
        overflows(detour.code, scope.fmt) if detour.value is None else brief(detour.value, scope.fmt.decimal_digits + 3)
    )
    trap = rich(
        f"**Double rounding.** Through fp32 the number first becomes {between}, and that rounds to **{ends}**: the "
        "wrong neighbour. The bits that would have decided were lost on the way."
    )
    return f'<div class="np-error np-detour" role="alert">{trap}</div>'


# ------------------------------------------------------------------------------------------ everywhere


@cached("results_kept")
def _everywhere(
    typed: Typed, formats: tuple[FloatFormat, ...], overflow: Overflow
) -> tuple[tuple[Stored, Mapping[str, object]], ...]:
    """What ``typed`` becomes in each format, and its row of the table; a class that clicks one preset shares it."""
    return tuple((stored, _row(stored)) for stored in store_everywhere(typed, formats, overflow))


def everywhere(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """One number in every format, sortable by every column; the first column chooses the format."""
    own = () if number_inputs.fmt.name in FORMATS else (number_inputs.fmt,)
    formats = tuple(f for f in (*FORMATS.values(), *own) if f.has_nan or not number_inputs.typed.nan)
    everyone = _everywhere(number_inputs.typed, formats, number_inputs.overflow)
    exact = sum(s.exact for s, _ in everyone)
    over = sum(s.overflowed for s, _ in everyone)
    zero = sum(s.fate == "underflow" for s, _ in everyone)
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom", key="floats_head"):
        section(
            "Same number everywhere",
            f"Of {len(everyone)} formats **{exact}** hold it exactly, **{over}** overflow and **{zero}** flush it to "
            "zero.",
        )
        whole = inputs.ask(switch("all", f"All {len(everyone)} formats", False))
        down = inputs.ask(switch("desc", "Largest first", False))
        # Not in a popover: the headings of the table set it too, which a field that is not on screen does not hear.
        with st.container(width=150):
            order = inputs.ask(choice("sort", "Sorted by", SORTS, "format"))
    policy = {
        "format": "",
        "saturate": ", clipped at the largest value",
        "infinity": ", overflowing to infinity where there is one",
        "nan": ", overflowing to NaN where there is one",
    }[number_inputs.overflow]
    key = _sort_key(order)
    rows = (
        sorted(everyone, key=lambda row: key(row[0]), reverse=down)
        if order != "format"
        else everyone[:: -1 if down else 1]
    )

    if not whole:
        rows = [row for row in rows if row[0].fmt.name in {*COMMON, number_inputs.fmt.name}]

    def sort() -> None:
        asked: Any = getattr(st.session_state.get(_TABLE), "sort", None)
        if asked in SORTS:
            st.session_state[inputs.key("desc")] = asked == order and not down
            st.session_state[inputs.key("sort")] = asked

    def pick() -> None:
        asked: Any = getattr(st.session_state.get(_TABLE), "pick", None)
        if asked in FORMATS:
            inputs.choose(FORMATS[asked])

    component("formats")(
        data={
            "caption": f"Each rounded once from the exact number, ties to even{policy}. Choose a format by its name.",
            "columns": [
                {"id": "format", "title": "Format", "below": "sign · exponent · fraction", "numeric": False},
                {"id": "code", "title": "Code", "below": "bits", "numeric": False},
                {"id": "value", "title": "Stored value", "below": "class", "numeric": True},
                {"id": "relative error", "title": "Relative error", "below": "absolute error", "numeric": True},
                {"id": "error in ULP", "title": "Error in ULP", "below": "of the stored value", "numeric": True},
            ],
            "sort": order,
            "down": down,
            "rows": [{**row, "here": row["id"] == number_inputs.fmt.name} for _, row in rows],
        },
        key=_TABLE,
        on_sort_change=sort,
        on_pick_change=pick,
    )


def _sort_key(order: str) -> Callable[[Stored], tuple[bool, Fraction]]:
    def key(stored: Stored) -> tuple[bool, Fraction]:
        if order == "code":
            return False, Fraction(stored.view.code)
        value = stored.view.value
        if order == "value":
            return value is None, value or Fraction(0)
        error = stored.relative if order == "relative error" else stored.ulps
        if error is None:
            return not stored.exact, Fraction(0)
        return False, abs(error)

    return key


def _row(stored: Stored) -> dict[str, object]:
    fmt, view = stored.fmt, stored.view
    if stored.error is None:
        relative, absolute, ulps = ("", "", "") if stored.exact else ("—", "", "—")
    elif stored.error == 0:
        relative, absolute, ulps = "exact", "", "0"
    else:
        relative, absolute, ulps = _relative(stored), _signed(stored.error), _signed(stored.ulps)
    return {
        "id": fmt.name,
        "title": fmt.title,
        "widths": f"{int(fmt.signed)} · {fmt.exponent_bits} · {fmt.fraction_bits}",
        "hex": view.hex_code,
        "bits": _fields(view.code, fmt),
        "cells": [[stored.text, _class(stored)], [relative, absolute], [ulps, ""]],
    }


def _fields(code: int, fmt: FloatFormat) -> list[str]:
    text = f"{code:0{fmt.bits}b}"
    sign, exponent = int(fmt.signed), int(fmt.signed) + fmt.exponent_bits
    return [text[:sign], text[sign:exponent], text[exponent:]]


def _class(stored: Stored) -> str:
    word = {"inf": "infinity", "nan": "not a number"}.get(stored.view.kind, stored.view.kind)
    reasons = {
        "overflow": f"overflow: {word}",
        "clipped": "overflow: clipped",
        "underflow": "underflow: zero",
        "no zero": f"no zero: {word}",
        "no sign": f"no sign: {word}",
        "lifted": "underflow: smallest",
    }
    return reasons.get(stored.fate, word)


def _signed(value: Fraction | None) -> str:
    """Three digits with sign."""
    if value is None:
        return "—"
    return ("+" if value > 0 else "") + rounded(value, 3)


def _relative(stored: Stored) -> str:
    relative = stored.relative
    if relative is None or abs(relative) < Fraction(1, 10**6):
        return _signed(relative)
    return ("+" if relative > 0 else "") + percent(relative)


# ------------------------------------------------------------------------------------------ who agrees


def agree(inputs: NumberInputs) -> None:
    """The same conversion by the libraries, each difference with its reason; torch comes when this opens."""
    with show.fold(
        "Who agrees? torch, ml_dtypes and gfloat on this number", key="floats:agree", icon=":material/groups:"
    ) as panel:
        if not panel.open:
            return
        torch_ready()
        verdicts = ask(inputs.typed, inputs.fmt, inputs.overflow)
        show.note(summary(verdicts, inputs.fmt))
        show.small_table(
            ("Library", "Its name for the format", "Code", "Value", show.Column("Why")),
            [_verdict(v, inputs.fmt) for v in verdicts],
            words=2,
            caption="float64 into the format on this CPU, under each library’s default rules",
            here=0,
        )


def _verdict(verdict: Verdict, fmt: FloatFormat) -> tuple[str, ...]:
    if verdict.code is None:
        return verdict.library, verdict.dtype or "none", "", "", verdict.why
    return (
        verdict.library,
        f"`{verdict.dtype}`",
        f"0x{verdict.code:0{fmt.hex_digits}x}",
        verdict.text(fmt),
        verdict.why,
    )


def two_lines(text: str, small: str) -> show.Html:
    """A cell with a quieter second line."""
    note = "".join(f"<small>{html.escape(line)}</small>" for line in small.split(", ")) if small else ""
    return show.cell_of(text, html.escape(text).replace(" ", "\u00a0") + note)
