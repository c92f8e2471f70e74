"""Our small markup, and that a visitor's own text is never taken for it."""

from __future__ import annotations

import pytest

from core.floats import FORMATS, FormatError, parse_custom
from core.floats.text import FloatTextError, parse
from core.units import QuantityError, parse_quantity
from pages.parts.show import literal, rich

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
