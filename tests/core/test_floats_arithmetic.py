"""Sums, products and fused multiply-adds against processors and exact fractions, and the bits that show them."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.errors import TypedOperation, condition_of_sum, explain_work, total_error, work
from core.floats.arithmetic.operations import OPERATORS, FloatOperation, Operator, add_up, cut_exact, operate, overflows
from core.floats.codec import classify, decode_exact, encode_exact
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.rounding import ROUNDINGS, Rounding
from core.floats.typed_numbers import parse
from core.views.floats.charts_arithmetic import GAP, ROLES, ArithmeticRow, CharacterGrid, stages
from core.views.floats.text_arithmetic import mode_rows, value_text
from tests.core.floats_oracle import described, rounded_value
from tests.every import every

OWN = tuple(
    parse_custom(text)
    for text in ("e4m3_nosub", "e3m0f", "e1m2", "e4m3f_unsigned", "e2m3f_unsigned_nosub", "e4m3_nonegzero", "e11m52")
)
EVERY = (*(fmt for fmt in FORMATS.values() if fmt.zero), *OWN)
TINY = tuple(fmt for fmt in EVERY if fmt.bits <= 6)
VECTORS: tuple[tuple[str, Any, Any], ...] = (
    ("fp64", np.float64, np.uint64),
    ("fp32", np.float32, np.uint32),
    ("fp16", np.float16, np.uint16),
)
EIGHT: tuple[tuple[str, Any], ...] = (
    ("fp8_e4m3fn", ml_dtypes.float8_e4m3fn),
    ("fp8_e5m2", ml_dtypes.float8_e5m2),
    ("fp8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    ("fp8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    ("fp8_e3m4_ieee", ml_dtypes.float8_e3m4),
)


def named(fmt: FloatFormat) -> str:
    return fmt.name


@st.composite
def operations(draw: st.DrawFn, formats: tuple[FloatFormat, ...] = EVERY) -> FloatOperation | None:
    """Operands where adders go wrong: any codes, ends of the range, nearly cancelling ones; None where NaN has no
    code."""
    fmt = draw(st.sampled_from(formats))
    operator: Operator = draw(st.sampled_from(OPERATORS))
    whole = st.integers(0, (1 << fmt.bits) - 1)
    ends = [0, 1, fmt.max_code, fmt.last_code, fmt.sign_mask, 1 << fmt.fraction_bits, encode_exact(Fraction(1), fmt)]
    near = st.tuples(st.sampled_from(ends), st.integers(-2, 2)).map(lambda p: max(0, sum(p)) & ((1 << fmt.bits) - 1))
    code = whole | near
    codes = [draw(code) for _ in range(3 if operator == "fma" else 2)]
    if fmt.signed and draw(st.booleans()):  # the last one nearly takes the others away
        values = [decode_exact(one, fmt) for one in codes]
        rest = values[0] if operator == "add" else values[0] and values[1] and values[0] * values[1]
        if rest:
            codes[-1] = max(0, encode_exact(-rest, fmt, "saturate") + draw(st.integers(-2, 2))) & ((1 << fmt.bits) - 1)
    try:
        return operate(
            operator,
            codes,
            fmt,
            rounding=draw(st.sampled_from(ROUNDINGS)),
            overflow=draw(st.sampled_from(fmt.overflows)),
            seed=1,
        )
    except FormatError:
        assert not fmt.has_nan
        return None


def whole(operation: FloatOperation) -> Fraction | None:
    """The exact result, from the operands' values alone."""
    values = [one.value for one in operation.operands]
    if None in values:
        return None
    a, b, *c = [value for value in values if value is not None]
    return a + b if operation.operator == "add" else a * b + sum(c)


@given(operations())
def test_three_bits_find_what_rounding_the_exact_result_finds(made: FloatOperation | None) -> None:
    exact = whole(made) if made else None
    if made is None or not exact:
        return
    want = encode_exact(exact, made.fmt, made.overflow, rounding=made.rounding, seed=1)
    assert made.exact == exact
    assert made.code == want
    assert made.value == decode_exact(want, made.fmt)


@given(operations())
def test_the_register_and_the_cut_are_those_of_the_exact_result(made: FloatOperation | None) -> None:
    """No stage loses what a later one needs: the register is exact but for its last bit, the cut wherever it is."""
    if made is None or not made.exact or made.special:
        return
    if made.register is not None:
        held, unit = made.register, Fraction(2) ** made.register.low
        assert held.negative == (made.exact < 0)
        if held.fell:
            assert held.total & 1 or held.total * unit == abs(made.exact)
            assert abs(held.total * unit - abs(made.exact)) < unit
        else:
            assert held.total * unit == abs(made.exact)
    if made.cut is not None and made.rounding != "stochastic":
        alone = cut_exact(made.exact, made.fmt, made.rounding)
        assert alone is not None
        stages = ("last", "kept", "guard", "round_", "sticky", "up", "carried", "chance", "tie", "inexact")
        assert [getattr(made.cut, name) for name in stages] == [getattr(alone, name) for name in stages]
        assert made.overflowed == overflows(alone, made.fmt)
        bits = Fraction(made.cut.guard, 2) + Fraction(made.cut.round_, 4)
        assert bits <= made.cut.chance < bits + Fraction(1, 4)
        assert bool(made.cut.sticky) == (made.cut.chance > bits)


@every("fmt", TINY, ids=named)
@every("operator", ["add", "multiply"])
def test_every_pair_of_the_smallest_formats(fmt: FloatFormat, operator: Operator) -> None:
    """Against a search along the line of values, which shares nothing with the codec."""
    codes = [code for code in range(1 << fmt.bits) if classify(code, fmt) not in ("inf", "nan")]
    for a in codes:
        for b in codes:
            made = operate(operator, (a, b), fmt)
            if made.exact:
                assert described(made.code, fmt) == rounded_value(made.exact, fmt, "nearest_even", "format"), (a, b)
            else:
                assert made.value == 0


def same(made: int, got: int, fmt: FloatFormat) -> bool:
    """The same code, any NaN for any NaN."""
    return made == got or classify(made, fmt) == classify(got, fmt) == "nan"


def codes_of(dtype: Any, word: Any, bits: int, count: int) -> np.ndarray:
    """Random codes, half of them of about one size so that sums cancel."""
    rng = np.random.default_rng(bits)
    anything = rng.integers(0, 1 << bits, size=count, dtype=np.uint64).astype(word)
    close = rng.normal(1, 0.3, size=count).astype(dtype).view(word)
    return np.where(rng.random(count) < 0.5, anything, close)


@pytest.mark.parametrize(("name", "dtype", "word"), VECTORS, ids=[row[0] for row in VECTORS])
@pytest.mark.parametrize(("operator", "does"), [("add", np.add), ("multiply", np.multiply)])
def test_sums_and_products_are_those_of_the_processor(
    name: str, dtype: Any, word: Any, operator: Operator, does: Callable[..., Any]
) -> None:
    fmt = FORMATS[name]
    a, b = codes_of(dtype, word, fmt.bits, 600).reshape(2, 300)
    with np.errstate(all="ignore"):
        got = does(a.view(dtype), b.view(dtype)).view(word)
    for left, right, result in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert same(operate(operator, (left, right), fmt).code, result, fmt), (hex(left), hex(right))


def c_fma(name: str, dtype: Any, word: Any, codes: tuple[int, ...]) -> int:
    """The C library's fused multiply-add of three codes of fp64 or fp32."""
    kind = {"fp64": ctypes.c_double, "fp32": ctypes.c_float}[name]
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    fma = library.fma if name == "fp64" else library.fmaf
    fma.restype, fma.argtypes = kind, [kind] * 3
    return int(dtype(fma(*(float(word(code).view(dtype)) for code in codes))).view(word))


@pytest.mark.parametrize(("name", "dtype", "word"), VECTORS[:2], ids=[row[0] for row in VECTORS[:2]])
def test_fused_multiply_add_is_that_of_the_c_library(name: str, dtype: Any, word: Any) -> None:
    fmt = FORMATS[name]
    a, b, c = codes_of(dtype, word, fmt.bits, 900).reshape(3, 300)
    with np.errstate(all="ignore"):
        nearly = (-(a.view(dtype) * b.view(dtype))).view(word)
        c = np.where(np.arange(300) % 3 == 0, nearly, c)
        for codes in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
            assert same(operate("fma", codes, fmt).code, c_fma(name, dtype, word, codes), fmt), [hex(c) for c in codes]


@every(("name", "dtype"), EIGHT, ids=[row[0] for row in EIGHT])
@every("operator", ["add", "multiply"])
def test_fp8_agrees_with_float32_and_one_rounding(name: str, dtype: Any, operator: Operator) -> None:
    """A sum or product of two fp8 values has fewer bits than float32 can hold twice over, so one rounding is left."""
    fmt, rng = FORMATS[name], np.random.default_rng(8)
    a, b = rng.integers(0, 256, size=(2, 400), dtype=np.uint8)
    with np.errstate(all="ignore"):
        left, right = a.view(dtype).astype(np.float32), b.view(dtype).astype(np.float32)
        got = (left + right if operator == "add" else left * right).astype(dtype).view(np.uint8)
    for one, other, result in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert same(operate(operator, (one, other), fmt).code, result, fmt), (one, other)


def test_bf16_agrees_with_float32_and_one_rounding() -> None:
    """24 bits are at least twice 8 and two more: rounding twice is rounding once (Figueroa 1995), while normal."""
    fmt, kind = FORMATS["bf16"], ml_dtypes.bfloat16
    a, b = codes_of(kind, np.uint16, 16, 1200).reshape(2, 600)
    with np.errstate(all="ignore"):
        for operator, got in (("add", a.view(kind) + b.view(kind)), ("multiply", a.view(kind) * b.view(kind))):
            for left, right, result in zip(a.tolist(), b.tolist(), got.view(np.uint16).tolist(), strict=True):
                if classify(result, fmt) != "subnormal":
                    made = operate(operator, (left, right), fmt)  # type: ignore[arg-type]
                    assert same(made.code, result, fmt), (hex(left), hex(right))


@every("rounding", ROUNDINGS)
@every("fmt", [FORMATS["fp16"], FORMATS["fp8_e5m2"]], ids=named)
def test_zeros_infinities_and_nans_follow_the_standard(fmt: FloatFormat, rounding: Rounding) -> None:
    """IEEE 754-2019, 6.1 to 6.3 and 7.2."""
    inf, minus, one = fmt.max_code + 1, fmt.sign_mask, encode_exact(Fraction(1), fmt)
    nan, down = fmt.nan_code, fmt.sign_mask if rounding == "down" else 0

    def does(operator: Operator, *codes: int) -> int:
        return operate(operator, codes, fmt, rounding=rounding, seed=1).code

    assert does("add", one, one | minus) == down
    assert does("add", 0, minus) == does("add", minus, 0) == down
    assert does("add", minus, minus) == minus
    assert does("multiply", minus, one) == does("multiply", 0, one | minus) == minus
    assert does("fma", one, one, one | minus) == does("fma", 0, one, minus) == down
    assert does("fma", minus, one, minus) == minus
    assert does("add", inf, inf | minus) == does("multiply", inf, 0) == does("fma", inf, one, inf | minus) == nan
    assert does("fma", 0, inf, one) == does("add", nan, one) == does("fma", one, one, nan) == nan
    assert does("add", inf, one | minus) == does("fma", one, one, inf) == inf
    assert does("multiply", inf | minus, one) == does("fma", inf, one | minus, one) == inf | minus


@given(operations())
def test_what_lemmas_promise(made: FloatOperation | None) -> None:
    """Sterbenz, exact subnormal sums, the bound of half a step, commuting, and signs going through."""
    if made is None or made.value is None or not made.exact:
        return
    fmt, a, b = made.fmt, *made.operands[:2]
    if made.operator == "add" and fmt.gradual and a.value and b.value:
        largest, least = max(abs(a.value), abs(b.value)), min(abs(a.value), abs(b.value))
        if (made.subtracts and largest <= 2 * least and fmt.signed) or 0 < abs(made.exact) < fmt.min_normal:
            assert made.error == 0 or (made.exact < 0 and not fmt.signed)
    if made.cut is not None and not made.overflowed and made.error is not None:
        step = Fraction(2) ** made.cut.last
        assert abs(made.error) < step
        if made.rounding.startswith("nearest"):
            assert abs(made.error) <= step / 2
    if made.rounding not in ("stochastic",):
        swapped = (b.code, a.code, *(one.code for one in made.operands[2:]))
        again = operate(made.operator, swapped, fmt, rounding=made.rounding, overflow=made.overflow)
        assert again.code == made.code
        assert again.cancelled == made.cancelled


def test_a_sum_of_terms_is_added_from_the_left() -> None:
    """Python's own floats add just so."""
    for terms in (("0.1", "0.2"), ("0.1", "0.2", "0.3"), ("1e16", "1", "-1e16"), ("1e308", "-1e308", "5e-324")):
        total = 0.0
        for term in terms:
            total += float(term)
        code = add_up([Fraction(term) for term in terms], FORMATS["fp64"])
        assert code == int(np.float64(total).view(np.uint64))
    assert add_up([Fraction(1), Fraction(2)], FORMATS["e8m0fnu"]) is None
    assert add_up([Fraction(60000), Fraction(60000)], FORMATS["fp16"]) is None


@given(st.sampled_from(EVERY), st.sampled_from(OPERATORS), st.lists(st.fractions(-9, 9), min_size=3, max_size=3))
def test_errors_add_up(fmt: FloatFormat, operator: Operator, values: list[Fraction]) -> None:
    """Inherited and own error together are the whole one, and the condition bounds what is inherited."""
    typed = [parse(f"{v.numerator}/{v.denominator}", fmt) for v in values[: 3 if operator == "fma" else 2]]
    done = work(operator, typed, fmt)
    if done.errors is None or done.operation.value is None:
        return
    errors, operation = done.errors, done.operation
    a, b, *c = values[: len(typed)]
    wanted = a + b if operator == "add" else a * b + sum(c)
    assert errors.wanted == wanted
    assert errors.total == operation.value - wanted
    if operator == "add":
        assert sum(errors.shares) == errors.inherited
        if wanted and a and b:
            worst = max(abs(share) / abs(value) for share, value in zip(errors.shares, (a, b), strict=True))
            assert float(abs(errors.inherited / wanted)) <= condition_of_sum(float(a), float(b)) * float(worst) * (
                1 + 1e-9
            )
    for one in explain_work(done):
        assert math.isfinite(one.value)
        if one.name == total_error.name:
            assert one.value == pytest.approx(float(errors.total), rel=1e-9, abs=1e-300)


DRAWN = (*(fmt for fmt in FORMATS.values() if fmt.zero), parse_custom("e4m3_nosub"), parse_custom("e4m3f_unsigned"))
SPOKEN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
NUMBERS = ("0.1", "0.2", "-0.1", "1", "-1.01", "3*2^-24", "1e-8", "65504", "16", "0", "-0", "1e30", "1e-30", "2.5")


def work_of(operator: Operator, fmt: FloatFormat, *numbers: str) -> TypedOperation:
    return work(operator, [parse(number, fmt) for number in numbers], fmt)


@st.composite
def works(draw: st.DrawFn) -> TypedOperation:
    fmt, operator = draw(st.sampled_from(DRAWN)), draw(st.sampled_from(OPERATORS))
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=3, max_size=3))
    return work_of(operator, fmt, *numbers[: 3 if operator == "fma" else 2])


def number(row: ArithmeticRow) -> int:
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
    rows = mode_rows(done)
    assert bool(rows) == (operation.cut is not None and operation.cut.inexact)
    names = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
    for mode, row in zip(names, rows, strict=False):
        assert exact is not None
        assert row[1] == value_text(encode_exact(exact, operation.fmt, rounding=mode), operation.fmt)  # type: ignore[arg-type]


@given(st.sampled_from(DRAWN), st.integers(0, 1 << 64))
def test_a_told_value_is_read_back_as_its_code(fmt: FloatFormat, drawn: int) -> None:
    code = drawn & ((1 << fmt.bits) - 1)
    value = decode_exact(code, fmt)
    if value is not None and encode_exact(value, fmt) == code:
        text = value_text(code, fmt).replace(" × 10", "e").translate(SPOKEN)
        assert encode_exact(Fraction(text), fmt) == code


def test_a_mode_without_a_result_is_refused_as_the_codec_refuses_it() -> None:
    own = parse_custom("e4m3f_inf")
    with pytest.raises(FormatError):
        work_of("add", own, "inf", "-inf")
