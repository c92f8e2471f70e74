"""Our small markup, and that a visitor's own text is never taken for it."""

from __future__ import annotations

import re

import pytest

from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FormatError
from core.floats.typed_numbers import FloatTextError, parse
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.units import format_count, format_duration, format_quantity
from core.wording import percent
from pages.common.show import Column, column_cells, literal, remarked, rich

TYPED = ["**0.1**", "`0.1`", "<b>1</b>", "“**1**”", "a” `b` “c", "2^k **2** `3`"]


@pytest.mark.parametrize("typed", TYPED)
def test_quoted_input_shows_as_it_was_typed(typed: str) -> None:
    messages: list[str] = []
    for read in (lambda: parse(typed, FORMATS["fp16"]), lambda: parse_custom(typed)):
        with pytest.raises((FloatTextError, FormatError)) as caught:
            read()
        messages.append(str(caught.value))
    with pytest.raises(QuantityError) as refused:
        parse_quantity(typed, "count")
    messages.append(str(refused.value))
    shown = typed.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for message in messages:
        assert f"“{shown}”" in literal(f"Number: {message} Still using 2**3 + 2**4.")
        assert "<b>" not in literal(message)


def test_what_is_left_standing_shows_as_it_was_typed() -> None:
    assert literal("“x” is no number. Still using 2**3 + 2**4.") == "“x” is no number. Still using 2**3 + 2**4."
    assert literal("“never closed **x**") == "“never closed **x**"


def test_markup() -> None:
    assert rich("**8** `x`") == '<b>8</b> <code class="np-mono">x</code>'
    assert rich("**a `x` b**") == '<b>a <code class="np-mono">x</code> b</b>'
    assert rich("`x**2**3`") == '<code class="np-mono">x**2**3</code>'
    assert rich("10⁻⁸ & 2^k, 2^⌊log₂ amax⌋ and 2^(E − bias)") == (
        "10<sup>−8</sup> &amp; 2<sup>k</sup>, 2<sup>⌊log₂ amax⌋</sup> and 2<sup>E − bias</sup>"
    )
    assert literal("no `.view` here, “`x`”") == 'no <code class="np-mono">.view</code> here, “`x`”'


def test_a_figure_carries_its_plain_number() -> None:
    texts = [
        format_count(1024),
        format_quantity(1.9794e15, "flop_per_s"),
        percent(3e-8),
        "—",
        remarked(format_count(8), "9 of them"),
    ]
    cells = column_cells(Column("x", numeric=True), texts)
    assert [re.findall(r'data-value="([^"]*)"', cell) for cell in cells] == [
        ["1024"],
        ["1.9794e+15"],
        ["1e-06"],
        [],
        ["8"],
    ]
    assert ["data-bound" in cell for cell in cells] == [False, False, True, False, False]
    assert 'data-unit="FLOP/s"' in cells[1]
    assert column_cells(Column("x"), [format_count(1024)]) == ["<td>1,024</td>"]


def test_times_of_a_column_share_a_unit_where_they_are_written_in_one() -> None:
    def plain(*seconds: float) -> list[str]:
        cells = column_cells(Column("x", numeric=True), [format_duration(time) for time in seconds])
        return [" ".join(re.findall(r'data-(?:value|unit)="([^"]*)"', cell)) for cell in cells]

    assert plain(86400, 1000 * 86400 - 43200) == ["1 days", "999.5 days"]
    assert plain(0.5e-3, 86400) == ["0.0005 s", "86400 s"]
