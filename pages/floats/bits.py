"""What the Float formats page draws by hand about one number: the bit strip, a code's facts, every format's limits."""

from __future__ import annotations

import html
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import streamlit as st

from core.floats.code_description import CodeView, bits
from core.floats.codec import encode_exact
from core.floats.comparison import Stored
from core.floats.decimals import brief, power_form, raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.messages import message, messages, pick_message
from core.units import QuantityText, format_exact, scientific
from core.views.floats.text import answer_text, bit_effect, code_value
from pages.common import show
from pages.common.components import component
from pages.common.show import rich

_KEY = "floats:bits"
_BESIDE = "floats:bits:beside"
_SEEN = "floats:bits:seq"
_FOLD_FROM = 130
"""Exact decimals with more characters than this are folded."""


def flipped(fmt: FloatFormat) -> int | None:
    """Return the code of ``fmt`` that the strip sent, or None if it is not such a code (callback)."""
    sent: Any = getattr(st.session_state.get(_KEY), "flip", None)
    if not isinstance(sent, dict) or sent.get("format") != fmt.name:
        return None
    text, seq = sent.get("code"), sent.get("seq")
    if not isinstance(text, str) or not isinstance(seq, int) or len(text) > fmt.hex_digits:
        return None
    try:
        code = int(text, 16)
    except ValueError:
        return None
    if code < 0 or code >> fmt.bits:
        return None
    st.session_state[_SEEN] = seq
    return code


def bit_strip(view: CodeView, on_flip: Callable[[], None]) -> None:
    """Draw the bits of ``view``, to be flipped by mouse and keyboard; ``on_flip`` then reads `flipped`."""
    component("bits")(
        data=_strip(view) | {"seq": st.session_state.get(_SEEN, 0)},
        key=_KEY,
        on_flip_change=on_flip,
    )


def still_strip(stored: Stored) -> None:
    """Draw what another format makes of the number, in a sentence and in bits that cannot be flipped."""
    show.takeaway(answer_text(stored))
    component("bits")(data=_strip(stored.view) | {"seq": 0, "still": True}, key=_BESIDE)


def _strip(view: CodeView) -> dict[str, object]:
    fmt = view.fmt
    return {
        "format": fmt.name,
        "title": fmt.title,
        "code": f"{view.code:x}",
        "bits": [
            {
                "field": bit.field,
                "index": bit.index,
                "weight": bit.weight,
                "effect": bit_effect(bit),
                "flipped": message("floats.bit.flipped", value=bit.flipped),
            }
            for bit in bits(view.code, fmt)
        ],
        "below": None if view.below is None else f"{view.below:x}",
        "above": None if view.above is None else f"{view.above:x}",
        "below_text": _neighbor(view.below, fmt),
        "above_text": _neighbor(view.above, fmt),
        "hint": message("floats.bit.hint"),
        "previous": message("floats.bit.previous"),
        "next": message("floats.bit.next"),
    }


def colored_bits(view: CodeView) -> str:
    """Return the bits of a code as HTML in the colors of their fields, which may break after each 32."""
    drawn = [f'<b style="color:var(--np-{bit.field})">{bit.value}</b>' for bit in bits(view.code, view.fmt)]
    return (
        f'<span class="np-mono">{"<br>".join("".join(drawn[at : at + 32]) for at in range(0, len(drawn), 32))}</span>'
    )


def _neighbor(code: int | None, fmt: FloatFormat) -> str:
    return message("floats.bit.no_neighbor") if code is None else code_value(code, fmt)


def facts(stored: Stored, about: str) -> None:
    """Draw the exact value, code, and spacing of one stored number, then ``about`` its format."""
    view, fmt = stored.view, stored.fmt
    rows = [
        (message("floats.fact.value"), _long("NaN" if view.kind == "nan" else view.decimal)),
        (message("floats.fact.code"), _mono(view.hex_code)),
    ]
    if view.word:
        rows.append((message("floats.fact.word", bits=float(fmt.word_bits)), _mono(view.word)))
    if view.ulp is not None:
        rows.append((message("floats.fact.ulp"), _step(view.ulp)))
    rows.append((message("floats.fact.format"), rich(about)))
    body = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    st.html(f'<dl class="np-facts">{body}</dl>')


def _step(width: Fraction) -> str:
    return f"{_mono(rich(raised(power_form(width))))} = {_mono(rich(rounded(width, 6)))}"


def format_table(first: FloatFormat) -> None:
    """Draw what every format can hold; ``first`` and those as wide begin."""
    formats = sorted(FORMATS.values(), key=lambda fmt: (fmt is not first, fmt.bits != first.bits))
    headings = messages("formats.limits", "largest normal subnormal eps finite infinity nan")
    columns = [show.Column(message("formats.limits.format")), *(show.Column(name, numeric=True) for name in headings)]
    cells = [
        show.column_cells(column, [_limit(text, remark) for text, remark in limits])
        for column, limits in zip(columns[1:], zip(*map(_limits, formats), strict=True), strict=True)
    ]
    rows = "".join(
        f"<tr><th scope=row>{fmt.title}<small class=np-mono>{_layout(fmt)}</small>"
        f"<small>{html.escape(fmt.used)} ({html.escape(_cited(fmt))})</small></th>{''.join(row)}</tr>"
        for fmt, row in zip(formats, zip(*cells, strict=True), strict=True)
    )
    show.table_html(columns, rows, caption=message("formats.limits.caption"), kind="np-formats np-limits")


def _limits(fmt: FloatFormat) -> tuple[tuple[str, str], ...]:
    """Return the cells of a format's row: text and remark."""
    return (
        _extreme(fmt.max_finite, 5, fmt),
        _extreme(fmt.min_normal, 4, fmt),
        _extreme(fmt.min_subnormal, 4, fmt) if fmt.has_subnormals else ("—", ""),
        (
            QuantityText(raised(power_form(fmt.eps)), float(fmt.eps)),
            message("formats.limits.digits", digits=float(fmt.decimal_digits)).replace(" ", "\u00a0"),
        ),
        (_count(fmt.finite_values), ""),
        (message("formats.limits.no" if fmt.inf_code is None else "formats.limits.yes"), ""),
        (_count(fmt.nan_codes), ""),
    )


def _cited(fmt: FloatFormat) -> str:
    """Return the works that define a format, such as of whom and which year."""
    return "; ".join(source.title.partition(",")[0] for source in fmt.sources)


def _layout(fmt: FloatFormat) -> str:
    name = "formats.limits.bias" if fmt.exponent_bits else "formats.limits.fixed"
    return pick_message(
        name,
        sign=float(fmt.signed),
        exponent=float(fmt.exponent_bits),
        fraction=float(fmt.fraction_bits),
        bias=str(fmt.bias),
    ).replace(" ", "\u00a0")


def _limit(text: str, remark: str) -> show.Html:
    """Return a cell of the table of formats."""
    return show.cell_of(text, rich(text) + _small(remark))


def _small(remark: str) -> str:
    return "".join(f"<small>{html.escape(line)}</small>" for line in remark.split(" ") if line)


def _extreme(value: Fraction, digits: int, fmt: FloatFormat) -> tuple[str, str]:
    return QuantityText(brief(value, digits), float(value)), _hex(encode_exact(value, fmt), fmt)


def _hex(code: int, fmt: FloatFormat) -> str:
    """Return a code in hex; those of more than eight digits take two lines."""
    digits = f"{code:0{fmt.hex_digits}x}"
    return f"0x{digits[:8]}{' ' * (len(digits) > 8)}{digits[8:]}"


def _count(number: int) -> str:
    return format_exact(number) if number < 10**6 else scientific(number)


def _long(text: str) -> str:
    if len(text) <= _FOLD_FROM:
        return _mono(text)
    mantissa, _, exponent = text.partition("e")
    digits = sum(c.isdigit() for c in mantissa.lstrip("-0."))
    start = f"{text[:40]}…{'e' + exponent if exponent else ''}"
    label = message("floats.fact.digits", digits=float(digits))
    return (
        f'<details><summary><span class="np-mono">{html.escape(start)}</span> {label}</summary>{_mono(text)}</details>'
    )


def _mono(safe: str) -> str:
    return f'<span class="np-mono">{safe}</span>'
