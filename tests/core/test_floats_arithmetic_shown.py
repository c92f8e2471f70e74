"""The rows of bits and the sentences of an operation: the numbers in them are those of the operation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.errors import TypedOperation, work
from core.floats.arithmetic.operations import OPERATORS, Operator
from core.floats.codec import decode_exact, encode_exact
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.typed_numbers import parse
from core.views.floats.charts_arithmetic import GAP, ROLES, CharacterGrid, Row, stages, stored_digits
from core.views.floats.text_arithmetic import modes, operation_text

EVERY = (*(fmt for fmt in FORMATS.values() if fmt.zero), parse_custom("e4m3_nosub"), parse_custom("e4m3f_unsigned"))
SPOKEN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
NUMBERS = ("0.1", "0.2", "-0.1", "1", "-1.01", "3*2^-24", "1e-8", "65504", "16", "0", "-0", "1e30", "1e-30", "2.5")


def work_of(operator: Operator, fmt: FloatFormat, *numbers: str) -> TypedOperation:
    return work(operator, [parse(number, fmt) for number in numbers], fmt)


@st.composite
def works(draw: st.DrawFn) -> TypedOperation:
    fmt, operator = draw(st.sampled_from(EVERY)), draw(st.sampled_from(OPERATORS))
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=3, max_size=3))
    return work_of(operator, fmt, *numbers[: 3 if operator == "fma" else 2])


def number(row: Row) -> int:
    """The whole number that a row's bits spell, its sign in front of it; blanks behind the last bit are no zeros."""
    text = row.text.replace(".", "").replace(" ", "").replace("−", "-").replace("·", "")
    return int(text, 2)


def grid(done: TypedOperation, *stage: str) -> CharacterGrid | None:
    return next((one for one in stages(done.operation) if one.stage in stage), None)


@given(works())
def test_rows_are_equally_long_and_every_character_has_its_role(done: TypedOperation) -> None:
    for one in stages(done.operation):
        assert len({len(text) for row in one.rows for text in (row.text, row.roles)}) == 1 or one.stage == "Stored"
        assert all(role in {*ROLES, " "} for row in one.rows for role in row.roles)
        for row in one.rows:
            assert all((text == " ") <= (role == " ") for text, role in zip(row.text, row.roles, strict=True))
        assert all(0 <= at < len(one.rows) for at in one.sums)


@given(works())
def test_a_column_adds_up(done: TypedOperation) -> None:
    """What a reader would add by hand: in the register, after rounding, and in writing."""
    added, rounded, written = grid(done, "Add", "Subtract"), grid(done, "Round"), grid(done, "Multiply")
    if added is not None and GAP not in added.rows[-1].text:
        first, second, total = (number(row) for row in added.rows[-3:])
        assert first + second == total
    cut = done.operation.cut
    if rounded is not None and cut is not None:
        names, line, step, result = rounded.rows
        assert int(step.text.strip("+ ")) == cut.up
        if GAP not in line.text:
            assert number(result) == cut.kept + cut.up
            spelled = "".join(t for t, role in zip(line.text, line.roles, strict=True) if role in "fz" and t != ".")
            assert int(spelled, 2) == cut.kept
        for letter, role, bit in zip("GRS", "gry", (cut.guard, cut.round_, cut.sticky), strict=True):
            cells = [t for t, r in zip(line.text, line.roles, strict=True) if r == role and t in "01"]
            assert ("1" in cells) == bool(bit)
            assert names.roles[names.text.index(letter)] == role
            assert line.roles[names.text.index(letter)] in (role, "z")
    if written is not None:
        a, b, *partial, product = written.rows
        assert int(a.text.strip(), 2) * int(b.text.strip("× "), 2) == int(product.text.strip(), 2)
        end = len(product.text)
        parts = (int(row.text.strip(), 2) << end - len(row.text.rstrip()) for row in partial)
        assert not partial or sum(parts) == int(product.text.strip(), 2)


@given(works())
def test_every_mode_gives_what_the_codec_gives(done: TypedOperation) -> None:
    operation, exact = done.operation, done.operation.exact
    rows = modes(done)
    assert bool(rows) == (operation.cut is not None and operation.cut.inexact)
    names = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
    for mode, row in zip(names, rows, strict=False):
        assert exact is not None
        assert row[2] == operation_text(encode_exact(exact, operation.fmt, rounding=mode), operation.fmt)  # type: ignore[arg-type]


@given(st.sampled_from(EVERY), st.integers(0, 1 << 64))
def test_a_told_value_is_read_back_as_its_code(fmt: FloatFormat, drawn: int) -> None:
    code = drawn & ((1 << fmt.bits) - 1)
    value = decode_exact(code, fmt)
    if value is not None and encode_exact(value, fmt) == code:
        text = operation_text(code, fmt).replace(" × 10", "e").translate(SPOKEN)
        assert encode_exact(Fraction(text), fmt) == code


@given(
    st.fractions(-(10**6), 10**6).filter(bool),
    st.lists(st.sampled_from(EVERY), min_size=1, max_size=3, unique_by=lambda fmt: fmt.name),
)
def test_formats_stand_under_the_digits_at_their_places(value: Fraction, formats: list[FloatFormat]) -> None:
    """Each row spells the stored value, says where it differs, and ends with its last place."""
    codes = [encode_exact(value, fmt, "saturate") for fmt in formats]
    drawn = stored_digits(value, list(zip(formats, codes, strict=True)), [""] * len(formats))
    stored = [decode_exact(code, fmt) for code, fmt in zip(codes, formats, strict=True)]
    if None in stored:
        assert drawn is None
        return
    assert drawn is not None
    if any(GAP in row.text for row in drawn.rows):
        return
    exact, *rows = drawn.rows
    for row, held in zip(rows, stored, strict=True):
        text = row.text.replace("·", "0").replace("−", "-").replace("+", "")
        whole, _, rest = text.partition(".")
        assert Fraction(int(whole + rest, 2), 1 << len(rest)) == held
        for above, bit, role in zip(exact.text[1:], row.text[1:], row.roles[1:], strict=True):
            assert (role == "d") == (bit in "01" and bit != above)
    assert "1" in exact.text


def test_a_mode_without_a_result_is_refused_as_the_codec_refuses_it() -> None:
    own = parse_custom("e4m3f_inf")
    with pytest.raises(FormatError, match="NaN is undefined"):
        work_of("add", own, "inf", "-inf")
