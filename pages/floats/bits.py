"""What the Float formats page draws by hand about one number: the bit strip, a code's facts, every format's limits."""

from __future__ import annotations

import html
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import streamlit as st

from core.floats.code_description import CodeView, bits, describe
from core.floats.codec import encode_exact
from core.floats.comparison import Stored
from core.floats.decimals import brief, power_form, raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.units import QuantityText, format_exact, scientific
from core.views.floats.text import describe_outcome
from pages.common import show
from pages.common.components import component
from pages.common.show import rich

_KEY = "floats:bits"
_BESIDE = "floats:bits:beside"
_SEEN = "floats:bits:seq"
_FOLD_FROM = 130
"""Exact decimals with more characters than this are folded."""


def flipped(fmt: FloatFormat) -> int | None:
    """Inside the strip's callback: the code of ``fmt`` it sent, or None when that is no code of it."""
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
    """The bits of ``view``, to be flipped by mouse and keyboard; ``on_flip`` then reads `flipped`."""
    component("bits")(
        data=_strip(view) | {"seq": st.session_state.get(_SEEN, 0)},
        key=_KEY,
        on_flip_change=on_flip,
    )


def still_strip(stored: Stored) -> None:
    """What another format makes of the number, in a sentence and in bits that cannot be flipped."""
    show.takeaway(describe_outcome(stored).answer)
    component("bits")(data=_strip(stored.view) | {"seq": 0, "still": True}, key=_BESIDE)


def _strip(view: CodeView) -> dict[str, object]:
    fmt = view.fmt
    return {
        "format": fmt.name,
        "title": fmt.title,
        "code": f"{view.code:x}",
        "bits": [
            {"field": b.field, "index": b.index, "weight": b.weight, "effect": b.effect, "flipped": b.flipped}
            for b in bits(view.code, fmt)
        ],
        "below": None if view.below is None else f"{view.below:x}",
        "above": None if view.above is None else f"{view.above:x}",
        "below_text": _neighbour(view.below, fmt),
        "above_text": _neighbour(view.above, fmt),
    }


def _neighbour(code: int | None, fmt: FloatFormat) -> str:
    if code is None:
        return "none"
    view = describe(code, fmt)
    return brief(view.value, fmt.decimal_digits + 3) if view.value is not None else view.decimal.replace("-", "−")


def facts(stored: Stored, about: str) -> None:
    """The exact value, code, hexadecimal value and spacing of one stored number, then ``about`` its format."""
    view, fmt = stored.view, stored.fmt
    value = "NaN" if view.kind == "nan" else view.decimal
    rows = [
        ("Exact value" if view.ulp else "Value", _long(value)),
        ("Bits", _mono(view.binary)),
        ("Code", _mono(view.hex_code)),
    ]
    if view.ulp is not None:
        rows.append(("Hexfloat", _mono(view.hexfloat)))
    if view.word:
        rows.append((f"As a {fmt.word_bits}-bit word", f"{_mono(view.word)}, {fmt.word_bits - fmt.bits} low bits zero"))
    if view.ulp is not None:
        rows.append(("1 ULP, the step outwards" if view.inward else "1 ULP", _step(view.ulp)))
    if view.inward is not None:
        rows.append(("Step towards zero", _step(view.inward)))
    rows.append(("Format", rich(about)))
    body = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    st.html(f'<dl class="np-facts">{body}</dl>')


def _step(width: Fraction) -> str:
    return f"{_mono(rich(raised(power_form(width))))} = {_mono(rich(rounded(width, 6)))}"


def format_table(first: FloatFormat) -> None:
    """What every format can hold; ``first`` and those as wide begin."""
    formats = sorted(FORMATS.values(), key=lambda fmt: (fmt is not first, fmt.bits != first.bits))
    headings = ("Largest", "Smallest normal", "Smallest subnormal", "eps", "Finite values", "∞", "NaN codes")
    columns = [show.Column("Format"), *(show.Column(name, numeric=True) for name in headings)]
    cells = [
        show.column_cells(column, [_limit(text, remark) for text, remark in limits])
        for column, limits in zip(columns[1:], zip(*map(_limits, formats), strict=True), strict=True)
    ]
    rows = "".join(
        f"<tr><th scope=row>{fmt.title}<small class=np-mono>{_layout(fmt)}</small>"
        f"<small>{html.escape(fmt.used)} ({html.escape(_cited(fmt))})</small></th>{''.join(row)}</tr>"
        for fmt, row in zip(formats, zip(*cells, strict=True), strict=True)
    )
    caption = (
        "Under each name the bits of sign, exponent, fraction; under each extreme its code; eps: distance from 1 "
        "to the next value, and under it how many significant decimal digits survive a round trip"
    )
    show.table_html(columns, rows, caption=caption, kind="np-formats np-limits")


def _limits(fmt: FloatFormat) -> tuple[tuple[str, str], ...]:
    """The cells of a format's row: text and remark."""
    return (
        _extreme(fmt.max_finite, 5, fmt),
        _extreme(fmt.min_normal, 4, fmt),
        _extreme(fmt.min_subnormal, 4, fmt) if fmt.has_subnormals else ("—", ""),
        (
            QuantityText(raised(power_form(fmt.eps)), float(fmt.eps)),
            f"{fmt.decimal_digits or 'no'}\u00a0digit{'s' * (fmt.decimal_digits != 1)}",
        ),
        (_count(fmt.finite_values), ""),
        ("no" if fmt.inf_code is None else "yes", ""),
        (_count(fmt.nan_codes), ""),
    )


def _cited(fmt: FloatFormat) -> str:
    """The works that define a format, such as of whom and which year."""
    return "; ".join(source.title.partition(",")[0] for source in fmt.sources)


def _layout(fmt: FloatFormat) -> str:
    bias = f"bias\u00a0{fmt.bias}" if fmt.exponent_bits else "fixed point"
    return f"{int(fmt.signed)}\u00a0·\u00a0{fmt.exponent_bits}\u00a0·\u00a0{fmt.fraction_bits}, {bias}"


def _limit(text: str, remark: str) -> show.Html:
    """A cell of the table of formats."""
    return show.cell_of(text, rich(text) + _small(remark))


def _small(remark: str) -> str:
    return "".join(f"<small>{html.escape(line)}</small>" for line in remark.split(" ") if line)


def _extreme(value: Fraction, digits: int, fmt: FloatFormat) -> tuple[str, str]:
    return QuantityText(brief(value, digits), float(value)), _hex(encode_exact(value, fmt), fmt)


def _hex(code: int, fmt: FloatFormat) -> str:
    """A code in hex; those of more than eight digits take two lines."""
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
    return (
        f'<details><summary><span class="np-mono">{html.escape(start)}</span> all {digits} digits</summary>'
        f"{_mono(text)}</details>"
    )


def _mono(safe: str) -> str:
    return f'<span class="np-mono">{safe}</span>'
