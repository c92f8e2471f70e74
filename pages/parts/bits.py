"""What the Float formats page draws by hand: the bit strip, a code's facts, and one number in every format."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import streamlit as st

from core.floats import FORMATS, FloatFormat
from core.floats.compare import Stored
from core.floats.decimals import brief, power_form, raised, rounded
from core.floats.view import CodeView, bits, describe
from core.units import scientific
from pages.parts import show
from pages.parts.components import component
from pages.parts.show import rich

_KEY = "floats:bits"
_SEEN = "floats:bits:seq"
_FOLD_FROM = 130
"""Exact decimals with more characters than this are folded."""


def flipped() -> tuple[int, FloatFormat] | None:
    """Inside the strip's callback: the code it sent, or None when that is no code of a known format."""
    sent: Any = getattr(st.session_state.get(_KEY), "flip", None)
    if not isinstance(sent, dict):
        return None
    fmt = FORMATS.get(str(sent.get("format")))
    text, seq = sent.get("code"), sent.get("seq")
    if fmt is None or not isinstance(text, str) or not isinstance(seq, int) or len(text) > fmt.hex_digits:
        return None
    try:
        code = int(text, 16)
    except ValueError:
        return None
    if code < 0 or code >> fmt.bits:
        return None
    st.session_state[_SEEN] = seq
    return code, fmt


def bit_strip(view: CodeView, on_flip: Callable[[], None]) -> None:
    """The bits of ``view``, to be flipped by mouse and keyboard; ``on_flip`` then reads `flipped`."""
    fmt = view.fmt
    component("bits")(
        data={
            "format": fmt.name,
            "title": fmt.title,
            "code": f"{view.code:x}",
            "seq": st.session_state.get(_SEEN, 0),
            "bits": [
                {"field": b.field, "index": b.index, "weight": b.weight, "effect": b.effect, "flipped": b.flipped}
                for b in bits(view.code, fmt)
            ],
            "below": None if view.below is None else f"{view.below:x}",
            "above": None if view.above is None else f"{view.above:x}",
            "below_text": _neighbour(view.below, fmt),
            "above_text": _neighbour(view.above, fmt),
        },
        key=_KEY,
        on_flip_change=on_flip,
    )


def _neighbour(code: int | None, fmt: FloatFormat) -> str:
    if code is None:
        return "none"
    view = describe(code, fmt)
    return brief(view.value, fmt.decimal_digits + 3) if view.value is not None else view.decimal.replace("-", "−")


def facts(stored: Stored) -> None:
    """The exact value, code, hexadecimal value and spacing of one stored number."""
    view = stored.view
    value = "NaN" if view.kind == "nan" else view.decimal
    rows = [
        ("Exact value" if view.ulp else "Value", _long(value)),
        ("Code", _mono(view.hex_code)),
        ("Bits", _mono(view.binary)),
    ]
    if view.ulp is not None:
        rows += [
            ("As a hexfloat", _mono(view.hexfloat)),
            ("Step here (1 ULP)", f"{_mono(rich(raised(power_form(view.ulp))))} = {_mono(rich(rounded(view.ulp, 6)))}"),
        ]
    body = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    st.html(f'<dl class="np-facts">{body}</dl>')


def format_rows(stored: Sequence[Stored], here: FloatFormat) -> None:
    """One number in every format, a row each: its bits, what is stored, and the exact rounding error."""
    rows = "".join(_format_row(s, lit=s.fmt is here) for s in stored)
    head = "".join(
        f'<th scope="col"{" class=num" if numeric else ""}>{name}{f"<small>{below}</small>" if below else ""}</th>'
        for name, below, numeric in (
            ("Format", "sign · exponent · fraction", False),
            ("Bits", "code", False),
            ("Stored value", "class", True),
            ("Relative error", "absolute error", True),
            ("Error in ULP", "", True),
        )
    )
    _table("np-formats", "The same number in every format, each rounded once from its exact value", head, rows)


def format_table() -> None:
    """What every format can hold, folded: it explains the others and changes with nothing."""
    with show.fold("What each format can hold", key="floats:formats", icon=":material/table:") as panel:
        if not panel.open:
            return
        columns = (
            "Largest",
            "Smallest normal",
            "Smallest subnormal",
            "eps",
            "Digits",
            "Finite values",
            "∞",
            "NaN codes",
        )
        head = "".join(f'<th scope="col" class="num">{name}</th>' for name in columns)
        rows = "".join(
            f"<tr><th scope=row>{fmt.title}<small>{html.escape(fmt.used)}</small></th>"
            + "".join(f"<td class=num>{rich(text)}</td>" for text in _limits(fmt))
            + "</tr>"
            for fmt in FORMATS.values()
        )
        caption = "Digits: significant decimal digits that survive a round trip; eps: distance from 1 to the next value"
        _table("np-formats np-limits", caption, f'<th scope="col">Format</th>{head}', rows)


def _limits(fmt: FloatFormat) -> tuple[str, ...]:
    return (
        brief(fmt.max_finite, 5),
        brief(fmt.min_normal, 4),
        brief(fmt.min_subnormal, 4),
        raised(power_form(fmt.eps)),
        str(fmt.decimal_digits),
        _count(fmt.finite_values),
        "no" if fmt.inf_code is None else "yes",
        _count(fmt.nan_codes),
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**6 else scientific(number)


def _table(kind: str, caption: str, head: str, rows: str) -> None:
    # On a narrow screen the table scrolls sideways in its box, which the keyboard must be able to reach.
    st.html(
        f'<div class="np-scroll" role="region" aria-label="{caption}" tabindex="0"><table class="np-table {kind}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _format_row(stored: Stored, *, lit: bool) -> str:
    fmt, view = stored.fmt, stored.view
    if stored.error is None:
        relative, absolute, ulps = ("", "", "") if stored.exact else ("—", "", "—")
    elif stored.error == 0:
        relative, absolute, ulps = "exact", "", "0"
    else:
        relative, absolute, ulps = _relative(stored), _signed(stored.error), _signed(stored.ulps)
    return (
        f"<tr{' class=np-here' if lit else ''}><th scope=row>{fmt.title}"
        f"<small>1 · {fmt.exponent_bits} · {fmt.fraction_bits}</small></th>"
        f"<td>{_cells(view)}<small class=np-mono>{view.hex_code}</small></td>"
        f"<td class=num>{rich(stored.text)}<small>{_class(stored)}</small></td>"
        f"<td class=num>{rich(relative)}<small>{rich(absolute)}</small></td>"
        f"<td class=num>{rich(ulps)}</td></tr>"
    )


def _class(stored: Stored) -> str:
    word = {"inf": "infinity", "nan": "not a number"}.get(stored.view.kind, stored.view.kind)
    if stored.overflowed:
        return f"overflow: {word}"
    return "underflow: zero" if stored.view.value == 0 and stored.typed.value else word


def _signed(value: Fraction | None) -> str:
    return "—" if value is None else ("+" if value > 0 else "") + rounded(value, 3)


def _relative(stored: Stored) -> str:
    relative = stored.relative
    if relative is None or abs(relative) < Fraction(1, 10**6):
        return _signed(relative)
    return f"{_signed(100 * relative)} %"


def _cells(view: CodeView) -> str:
    """The bits as small squares, filled where 1; decoration, since the code stands beside them."""
    fmt = view.fmt
    groups = (
        ("sign", f"{view.sign}"),
        ("exponent", f"{view.exponent:0{fmt.exponent_bits}b}"),
        ("fraction", f"{view.fraction:0{fmt.fraction_bits}b}"),
    )
    squares = "".join(
        f'<i class="{name}">' + "".join("<u></u>" if bit == "1" else "<s></s>" for bit in text) + "</i>"
        for name, text in groups
    )
    return f'<span class="np-bits" aria-hidden="true">{squares}</span>'


def _long(text: str) -> str:
    if len(text) <= _FOLD_FROM:
        return _mono(text)
    mantissa, _, exponent = text.partition("e")
    digits = sum(c.isdigit() for c in mantissa.lstrip("-0."))
    start = f"{text[:40]}…{'e' + exponent if exponent else ''}"
    return (
        f'<details><summary><span class="np-mono">{html.escape(start)}</span> all {digits} digits</summary>'
        f"{_mono(text)}</details>"
    )


def _mono(safe: str) -> str:
    return f'<span class="np-mono">{safe}</span>'
