"""Float formats, panels about one rounding: the same number everywhere, the microscope, and other libraries."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from fractions import Fraction

import streamlit as st

from core.fields import switch
from core.floats import code_description
from core.floats.comparison import Stored, explain_error, percent, store_everywhere
from core.floats.decimals import rounded
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.oracles import ask
from core.floats.rounding_cases import Microscope, ModeResult, explain, explainable, magnify
from core.floats.typed_numbers import Typed
from core.formula import Explanation
from core.limits import cached
from core.messages import message, messages
from core.units import QuantityText
from core.views.floats.text import count_text, fate_label
from core.views.floats.text_rounding import (
    asked_text,
    libraries_takeaway,
    library_rows,
    mode_label,
    neighbor_text,
    not_rounded,
    result_text,
    takeaway,
)
from pages.common import show
from pages.common.server.torch_import import torch_ready
from pages.common.show import rich
from pages.floats import bits
from pages.floats.inputs import COMMON, FloatInputs, NumberInputs

_ENDS = (8.0, 92.0)
"""Where the two neighbors stand on the line, in percent of its width."""

_SMALL_ERROR = Fraction(1, 10**6)


def section(title: str, sentence: str) -> None:
    """Draw a panel's heading and its takeaway."""
    st.html(_heading(title, sentence))


def _heading(title: str, sentence: str) -> str:
    return f'<h2 class="np-section">{html.escape(title)}</h2><p class="np-takeaway">{rich(sentence)}</p>'


# ------------------------------------------------------------------------------------------ microscope


def microscope(inputs: NumberInputs, stored: Stored) -> None:
    """Draw the number between its two neighbors, where every rounding mode sends it, and how all is computed."""
    value, fmt = inputs.typed.value, inputs.fmt
    scope = magnify(value, fmt, inputs.overflow) if value is not None else None
    title = message("rounding.title")
    if scope is None:
        section(title, not_rounded(value, fmt))
    else:
        drawn = _heading(title, takeaway(scope))
        if not scope.exact:
            modes = "".join(_mode(choice, scope) for choice in scope.choices)
            drawn += f'<div class="np-scope">{_line(scope)}{modes}</div>{_deciding_bits(scope)}'
        st.html(drawn)  # one element: each costs the server and the browser more than all that is in this one
    parts: list[tuple[str, Callable[[], Sequence[Explanation]]]] = []
    if code_description.explainable(stored.view):
        parts.append(
            (
                message("rounding.how.value"),
                lambda: (*code_description.explain(stored.view), *explain_error(stored)),
            )
        )
    if scope is not None and explainable(scope):
        parts.append((message("rounding.how.tie"), lambda: explain(scope)))
    with show.slot():  # there for NaN too: else all that follows would be mounted anew, without the keyboard's focus
        if parts:
            show.how(lambda: [item for name, text in parts for item in (name, *text())], key="floats:how")


def _x(position: Fraction) -> float:
    return _ENDS[0] + float(position) * (_ENDS[1] - _ENDS[0])


def _line(scope: Microscope) -> str:
    ends = []
    for at, value, code in ((0, scope.low, scope.low_code), (1, scope.high, scope.high_code)):
        name = f"0x{code:0{scope.fmt.hex_digits}x}" if code is not None else message("rounding.no_code")
        ends.append(
            f'<span class="end" style="left:{_ENDS[at]}%"><i></i><b>{rich(neighbor_text(value, scope))}</b>'
            f"<small>{name}</small></span>"
        )
    here = _x(scope.position)
    return (
        '<div class="row head"><span class="name"></span><div class="axis">'
        f'<span class="asked" style="left:{here:.3f}%"><b style="transform:translateX(-{here:.0f}%)">'
        f'{rich(asked_text(scope))}</b><i></i></span>{"".join(ends)}<span class="end tie" style="left:50%"><i></i>'
        f'<small>{message("rounding.tie")}</small></span></div><span class="to"></span></div>'
    )


def _mode(choice: ModeResult, scope: Microscope) -> str:
    here = _x(scope.position)
    ends = _ENDS if choice.chance is not None else (_ENDS[int(choice.upper)],)
    arrows = "".join(_arrow(here, end, "dash" if choice.chance is not None else "") for end in ends)
    return (
        f'<div class="row"><span class="name">{mode_label(choice.rounding)}</span>'
        f'<div class="axis">{arrows}</div><span class="to">{rich(result_text(choice, scope))}</span></div>'
    )


def _arrow(start: float, end: float, kind: str) -> str:
    low, high = sorted((start, end))
    way = "right" if end > start else "left"
    return f'<i class="arrow {way} {kind}" style="left:{low:.3f}%;width:{high - low:.3f}%"></i>'


def _deciding_bits(scope: Microscope) -> str:
    cells = "".join(
        f'<span class="{role}"><b class="np-mono">{digits}</b><small>{label}</small></span>'
        for role, label, digits in (
            ("kept", message("rounding.bits.kept"), scope.kept),
            ("guard", message("rounding.bits.guard"), scope.guard),
            ("round", message("rounding.bits.round"), scope.round_),
            ("sticky", message("rounding.bits.sticky"), scope.sticky),
        )
    )
    return f'<p class="np-grs">{cells}<span class="say">{message("rounding.bits.rule")}</span></p>'


# ------------------------------------------------------------------------------------------ everywhere


@cached("results_kept")
def _everywhere(
    typed: Typed, formats: tuple[FloatFormat, ...], overflow: Overflow
) -> tuple[tuple[Stored, tuple[str, ...]], ...]:
    """Return what ``typed`` becomes in each format, and its row of the table; a class that clicks one preset shares
    it."""
    return tuple((stored, _row(stored)) for stored in store_everywhere(typed, formats, overflow))


def everywhere(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw one number in every format."""
    typed, fmt = number_inputs.typed, number_inputs.fmt
    custom = () if fmt.name in FORMATS else (fmt,)
    rows = _everywhere(typed, (*FORMATS.values(), *custom), number_inputs.overflow)
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom", key="floats_head"):
        section(message("floats.everywhere.title"), count_text(typed.text, [stored for stored, _ in rows]))
        whole = inputs.ask(switch("all", message("floats.everywhere.all", formats=float(len(rows))), False))
    shown = [(s, row) for s, row in rows if whole or s.fmt.name in {*COMMON, fmt.name}]
    show.small_table(
        (
            message("floats.everywhere.format"),
            show.Column(message("floats.everywhere.code")),
            show.Column(message("floats.everywhere.value"), numeric=True),
            show.Column(message("floats.everywhere.error"), numeric=True),
            show.Column(message("floats.everywhere.ulps"), numeric=True),
        ),
        [row for _, row in shown],
        caption=message("floats.everywhere.caption"),
        here=next((i for i, (stored, _) in enumerate(shown) if stored.fmt == fmt), None),
    )


def _row(stored: Stored) -> tuple[str, ...]:
    fmt, view = stored.fmt, stored.view
    widths = f"{int(fmt.signed)} · {fmt.exponent_bits} · {fmt.fraction_bits}"
    value = stored.text if view.value is None else QuantityText(stored.text, float(view.value))
    return (
        show.remarked(fmt.title, widths),
        show.Html(f"{bits.colored_bits(view)}<small class=np-mono>{view.hex_code}</small>"),
        show.remarked(value, fate_label(stored)),
        *_errors(stored),
    )


def _errors(stored: Stored) -> tuple[str, str]:
    if stored.error is None or stored.relative is None:
        unknown = message("floats.everywhere.exact") if stored.exact else "—"
        return unknown, "0" if stored.exact else "—"
    if not stored.error:
        return QuantityText(message("floats.everywhere.exact"), 0.0), QuantityText("0", 0.0)
    relative = stored.relative
    text = _signed(relative) if abs(relative) < _SMALL_ERROR else ("+" * (relative > 0)) + percent(relative)
    ulps = stored.ulps or Fraction(0)
    return QuantityText(text, _clamped(relative)), QuantityText(_signed(ulps), _clamped(ulps))


def _clamped(value: Fraction) -> float:
    """Return an exact value as a float64, the largest where it is beyond."""
    return float(min(max(value, -FORMATS["fp64"].max_finite), FORMATS["fp64"].max_finite))


def _signed(value: Fraction) -> str:
    return ("+" if value > 0 else "") + rounded(value, 3)


# ------------------------------------------------------------------------------------------ other libraries


def libraries(inputs: NumberInputs) -> None:
    """Draw the same conversion by other libraries, each difference with its reason; torch comes when this opens."""
    with show.fold(message("oracles.title"), key="floats:agree", icon=":material/groups:") as panel:
        if not panel.open:
            return
        torch_ready()
        verdicts = ask(inputs.typed, inputs.fmt, inputs.overflow)
        show.takeaway(libraries_takeaway(verdicts, inputs.fmt))
        show.small_table(
            (*messages("oracles.column", "library dtype code value"), show.Column(message("oracles.column.why"))),
            library_rows(verdicts, inputs.fmt),
            words=2,
            here=0,
        )
