"""Every code and every tie against ml_dtypes and gfloat, and what a page reports of the libraries."""

from __future__ import annotations

import csv
import subprocess
import sys
import warnings
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import cast

import gfloat
import numpy as np
import pytest
from gfloat import formats as gfloat_formats
from gfloat.types import Domain, RoundMode, Signedness

from core.floats.codec import decode, encode, encode_exact
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.oracles import ask
from core.floats.oracles import same as same_code
from core.floats.rounding import Rounding
from core.floats.typed_numbers import Typed, parse
from core.views.floats.text_rounding import libraries_takeaway
from tests.every import every
from tests.patience import PATIENCE_S
from tests.tools import float_tables

ML_DTYPES = {name: dtype for name, dtype in float_tables.ML_DTYPES.items() if name not in ("fp64", "fp32")}


FORMAT_INFO = {name: info for name, info in float_tables.DEFINED.items() if info.k <= 16}
ROUND_MODES: dict[Rounding, RoundMode] = {
    "nearest_even": RoundMode.TiesToEven,
    "nearest_away": RoundMode.TiesToAway,
    "toward_zero": RoundMode.TowardZero,
    "up": RoundMode.TowardPositive,
    "down": RoundMode.TowardNegative,
}
DIFFERENT_IN_GFLOAT = {"e8m0fnu", "mxint8"}


def codes(fmt: FloatFormat) -> np.ndarray:
    return np.arange(1 << fmt.bits)


@lru_cache(maxsize=32)
def probes(of: str | FloatFormat) -> np.ndarray:
    """Every value of a format, every tie, points beyond the end, below the smallest, and just beside all of them."""
    fmt = FORMATS[of] if isinstance(of, str) else of
    values = decode(codes(fmt), fmt)
    values = np.unique(values[np.isfinite(values)])
    top, step, least = float(fmt.max_finite), float(fmt.quantum_max), float(fmt.min_subnormal)
    ends = np.array([top + step / 2, top + step, top + 1.5 * step, 4 * top, least / 2, least / 4, 0.75 * least])
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, ends, -ends])
    near = [points, points * (1 + 2.0**-20), points * (1 - 2.0**-20)]
    near += [np.nextafter(points, np.inf), np.nextafter(points, -np.inf), np.array([np.inf, -np.inf, 0.0, -0.0])]
    return np.concatenate(near)


def same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Which values are equal, the sign of zero included, NaN by class."""
    equal = (ours == theirs) & (np.signbit(ours) == np.signbit(theirs))
    return equal | (np.isnan(ours) & np.isnan(theirs))


# ------------------------------------------------------------------------------------------ ml_dtypes


def ml_round(values: np.ndarray, name: str) -> np.ndarray:
    """What ml_dtypes stores, as values."""
    with np.errstate(all="ignore"):
        return values.astype(ML_DTYPES[name]).astype(np.float64)


@every("name", ML_DTYPES)
def test_ml_dtypes_decodes_the_same(name: str) -> None:
    fmt = FORMATS[name]
    with np.errstate(invalid="ignore"):  # signalling NaNs among the codes
        theirs = codes(fmt).astype(np.uint16 if fmt.bits == 16 else np.uint8).view(ML_DTYPES[name]).astype(np.float64)
    assert same(decode(codes(fmt), fmt), theirs).all()


@every("name", [n for n in ML_DTYPES if n != "e8m0fnu"])
def test_ml_dtypes_rounds_float32_the_same(name: str) -> None:
    with np.errstate(over="ignore"):
        values = probes(name).astype(np.float32)
    assert same(decode(encode(values, FORMATS[name]), FORMATS[name]), ml_round(values, name)).all()


# ------------------------------------------------------------------------------------------ gfloat


def gfloat_round(values: np.ndarray, name: str, rounding: Rounding, saturate: bool) -> np.ndarray:
    """What gfloat rounds to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(gfloat.round_ndarray(FORMAT_INFO[name], values, ROUND_MODES[rounding], saturate))


@every("name", FORMAT_INFO)
def test_gfloat_decodes_the_same(name: str) -> None:
    fmt = FORMATS[name]
    with np.errstate(all="ignore"):
        theirs = np.asarray(gfloat.decode_ndarray(FORMAT_INFO[name], codes(fmt)))
    assert same(decode(codes(fmt), fmt), theirs).all()


def p3109(k: int, precision: int, signedness: Signedness, domain: Domain) -> FloatFormat:
    """The format of P3109 as one of your own."""
    infinity = "_inf" * (domain == Domain.Extended)
    if signedness == Signedness.Signed:
        return parse_custom(f"e{k - precision}m{precision - 1}fnuz{infinity}")
    return parse_custom(f"e{k - precision + 1}m{precision - 1}b{1 << (k - precision)}fn{infinity}_unsigned")


@every("domain", Domain)
@every("signedness", Signedness)
@every("k", range(3, 9))
def test_every_p3109_format_rounds_as_in_gfloat(k: int, signedness: Signedness, domain: Domain) -> None:
    """Every value, every tie and points beside them; a single digit of precision breaks ties to the even code."""
    for precision in range(1, k + (signedness == Signedness.Unsigned)):
        fmt = p3109(k, precision, signedness, domain)
        theirs = gfloat_formats.format_info_p3109(k, precision, signedness, domain)
        assert same(decode(codes(fmt), fmt), np.asarray(gfloat.decode_ndarray(theirs, codes(fmt)))).all()
        values = probes(fmt)
        values = values if fmt.signed else values[~np.signbit(values)]
        for rounding, mode in ROUND_MODES.items():
            for overflow in cast("tuple[Overflow, ...]", ("format", "saturate")):
                ours = encode(values, fmt, rounding=rounding, overflow=overflow)
                rounded = np.asarray(gfloat.round_ndarray(theirs, values, mode, overflow == "saturate")) + 0.0
                assert same(decode(ours, fmt), rounded).all(), (fmt.title, rounding, overflow)
        ours = encode(values[np.isfinite(values)], fmt)
        assert [encode_exact(Fraction(value), fmt) for value in values[np.isfinite(values)]] == ours.tolist()
        assert (encode_exact(fmt.overflow_threshold, fmt) != fmt.max_code) == fmt.tie_overflows


@every("saturate", [False, True], ids=["own overflow", "saturating"])
@every("rounding", ROUND_MODES)
@every("name", [n for n in FORMAT_INFO if n not in DIFFERENT_IN_GFLOAT])
def test_gfloat_rounds_the_same(name: str, rounding: Rounding, saturate: bool) -> None:
    fmt = FORMATS[name]
    values = probes(name)
    if not fmt.has_nan:
        saturate = True  # gfloat raises without a way to overflow; these formats saturate anyway
    ours = encode(values, fmt, rounding=rounding, overflow="saturate" if saturate else "format")
    theirs = gfloat_round(values, name, rounding, saturate)
    theirs[np.isinf(values) & fmt.lost] = np.nan  # as AMD's HIP has it, which gfloat does not know
    if not fmt.has_negative_zero:
        theirs = theirs + 0.0  # gfloat's value keeps a −0 that the format has no code for
    assert same(decode(ours, fmt), theirs).all()


@every("name", [n for n in FORMAT_INFO if n not in DIFFERENT_IN_GFLOAT])
def test_gfloat_encodes_the_same(name: str) -> None:
    fmt = FORMATS[name]
    values = probes(name)[:: 1 if fmt.bits <= 8 else 16]
    rounded = gfloat_round(values, name, "nearest_even", saturate=True)
    theirs = np.asarray(gfloat.encode_ndarray(FORMAT_INFO[name], rounded)).astype(np.uint64)
    if fmt.lost:
        theirs[np.isinf(values)] = fmt.nan_code
    np.testing.assert_array_equal(encode(values, fmt, overflow="saturate"), theirs)


@pytest.mark.parametrize("rounding", ROUND_MODES)
def test_gfloat_agrees_on_the_rest_of_e8m0(rounding: Rounding) -> None:
    fmt, values = FORMATS["e8m0fnu"], probes("e8m0fnu")
    values = values[values >= 2.0**-127]
    if rounding == "nearest_even":
        values = values[np.frexp(values)[0] != 0.75]
    theirs = gfloat_round(values, "e8m0fnu", rounding, saturate=False)
    assert same(decode(encode(values, fmt, rounding=rounding), fmt), theirs).all()


# ------------------------------------------------------------------------------------------ numpy, for the wide formats


@pytest.mark.parametrize(("name", "dtype", "words"), [("fp32", np.float32, np.uint32), ("fp16", np.float16, np.uint16)])
def test_numpy_rounds_float64_the_same(name: str, dtype: type, words: type) -> None:
    raw = np.random.default_rng(7).integers(0, 1 << 64, size=200_000, dtype=np.uint64)
    raw[::2] = raw[::2] & np.uint64((1 << 64) - (1 << 62) - 1) | np.uint64(0x38 << 56)  # half of them near the range
    raw[::4] &= np.uint64(-(1 << 28) & (1 << 64) - 1)  # and many of those values and ties of fp32
    values = raw.view(np.float64)
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore", under="ignore"):
        theirs = values.astype(dtype).view(words)
    np.testing.assert_array_equal(encode(values, FORMATS[name]), theirs)
    np.testing.assert_array_equal(encode(values, FORMATS["fp64"]), values.view(np.uint64))


ROOT = Path(__file__).parents[2]
ROWS = list(csv.DictReader((ROOT / "tests" / "data" / "float_encode.csv").read_text(encoding="utf-8").splitlines()))
COLUMNS = {"torch": "torch_f64_hex", "ml_dtypes": "ml_dtypes_f64_hex", "gfloat": "gfloat_hex"}


def typed(bits: str) -> Typed:
    value = float(np.array([int(bits, 16)], dtype=np.uint64).view(np.float64)[0])
    if np.isfinite(value):
        return Typed(repr(value), Fraction(value), bool(np.signbit(value)))
    return Typed(repr(value), None, bool(np.signbit(value)), nan=bool(np.isnan(value)))


@every("name", FORMATS)
def test_libraries_give_what_was_measured(name: str) -> None:
    fmt = FORMATS[name]
    for row in (r for r in ROWS if r["format"] == name and r["expected_hex"]):
        for verdict in ask(typed(row["input_f64_bits"]), fmt)[1:]:
            measured = row[COLUMNS[verdict.library.split()[0]]]
            if not measured.startswith("0x") or verdict.code is None:
                continue
            assert same_code(verdict.code, int(measured, 16), fmt), (row["input_repr"], verdict, measured)
            assert verdict.agrees == same_code(int(measured, 16), int(row["expected_hex"], 16), fmt)
            assert verdict.why.id != "oracles.rounds", (row["input_repr"], verdict)


def test_a_library_that_gives_no_code_has_failed() -> None:
    fmt = parse_custom("e4m3_nosub")
    gfloat = ask(parse("1e-8", fmt), fmt)[-1]
    assert (gfloat.code, gfloat.agrees) == (None, False)
    assert gfloat.why.id == "oracles.fails"
    assert libraries_takeaway(ask(parse("1e-8", fmt), fmt), fmt).id == "oracles.takeaway.none"


@pytest.mark.process
def test_nothing_is_imported_before_asking() -> None:
    code = "import sys, core.floats.oracles; print([m for m in ('torch', 'ml_dtypes', 'gfloat') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]", done.stderr
