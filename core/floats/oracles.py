"""The same rounding by torch, ml_dtypes and gfloat, beside ours, and why they differ where they do.

The three libraries are imported only when asked, because torch alone takes a second and 200 MB.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from core.floats.codec import classify, decode_exact, encode_exact
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.typed_numbers import Typed, typed_code
from core.limits import cached
from core.messages import Message, message

TORCH = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    "e8m0fnu": "float8_e8m0fnu",
}
"""Our name → torch's dtype."""

ML_DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    "fp8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "fp8_e4m3_ieee": "float8_e4m3",
    "fp8_e3m4_ieee": "float8_e3m4",
    "fp6_e3m2fn": "float6_e3m2fn",
    "fp6_e2m3fn": "float6_e2m3fn",
    "fp4_e2m1fn": "float4_e2m1fn",
    "e8m0fnu": "float8_e8m0fnu",
}
"""Our name → numpy's or ml_dtypes' dtype."""

GFLOAT = {
    "fp64": "binary64",
    "fp32": "binary32",
    "fp16": "binary16",
    "bf16": "bfloat16",
    "fp8_e5m2": "ocp_e5m2",
    "fp8_e4m3fn": "ocp_e4m3",
    "p3109_k8p3se": "p3109_k8p3se",
    "p3109_k8p4se": "p3109_k8p4se",
    "p3109_k4p2sf": "p3109_k4p2sf",
    "fp6_e3m2fn": "ocp_e3m2",
    "fp6_e2m3fn": "ocp_e2m3",
    "fp4_e2m1fn": "ocp_e2m1",
    "e8m0fnu": "ocp_e8m0",
    "mxint8": "ocp_int8",
}
"""Our name → gfloat's; any other format is built for gfloat from its parameters."""


STORAGE_ONLY = frozenset({"fp4_e2m1fn"})
"""Our names of the formats that torch stores, two codes to a byte, but into which it cannot convert."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Conversion of a number by one library.

    library: with its version. dtype: its name for the format, empty if it has none. code: its result, None if it has no
    such format. agrees: whether the code is the same as ours, or both are NaN. why: one sentence.
    """

    library: str
    dtype: str
    code: int | None
    agrees: bool
    why: Message


def ask(typed: Typed, fmt: FloatFormat, overflow: Overflow = "format") -> tuple[Verdict, ...]:
    """Return what torch, ml_dtypes, and gfloat make of ``typed`` in ``fmt``, after Napkin's own codec.

    The codec follows ``overflow``; the libraries follow their own rules. They take float64, so that a finer number
    reaches them rounded once already; the verdict says so.
    """
    ours = typed_code(typed, fmt, overflow)
    value = as_float64(typed)
    finer = typed.value is not None and Fraction(value) != typed.value if np.isfinite(value) else False
    verdicts = [Verdict("Napkin", fmt.name, ours, True, message("oracles.exact"))]
    for library, table, call in _ASKED:
        name = table.get(fmt.name, "custom" if library == "gfloat" else "")
        text = f"{library} {_version(library)}"
        if not name:
            stores = library == "torch" and fmt.name in STORAGE_ONLY
            why = message("oracles.stores_only" if stores else "oracles.no_format", library=library)
            verdicts.append(Verdict(text, "", None, False, why))
            continue
        try:
            code = call(value, name, fmt)
        except (ValueError, AssertionError, OverflowError):
            # gfloat refuses where a format has no code for the outcome, such as NaN in FP4.
            verdicts.append(Verdict(text, name, None, False, message("oracles.fails", library=library)))
            continue
        agrees = same(code, ours, fmt)
        if agrees:
            why = message("oracles.agrees" if code == ours else "oracles.other_nan")
        else:
            why = reason(library, code, ours, value, finer=finer, fmt=fmt, overflow=overflow)
        verdicts.append(Verdict(text, name, code, agrees, why))
    return tuple(verdicts)


def as_float64(typed: Typed) -> float:
    """Return the float64 handed to the libraries: the number rounded once, or infinity or NaN."""
    if typed.nan:
        return float("nan")
    if typed.value is None:
        return float("-inf" if typed.negative else "inf")
    magnitude = decode_exact(encode_exact(abs(typed.value), FORMATS["fp64"]), FORMATS["fp64"])
    size = float("inf") if magnitude is None else float(magnitude)
    return -size if typed.negative else size


def same(first: int, second: int, fmt: FloatFormat) -> bool:
    """Return whether two codes mean the same: equal, or both NaN."""
    return first == second or (classify(first, fmt) == "nan" == classify(second, fmt))


def reason(
    library: str,
    code: int,
    ours: int,
    value: float,
    *,
    finer: bool,
    fmt: FloatFormat,
    overflow: Overflow = "format",
) -> Message:
    """Return why ``library`` gives ``code`` where the exact answer is ``ours``.

    finer: whether ``value``, which the library was given, is not the number itself.
    """
    theirs, exact = decode_exact(code, fmt), decode_exact(ours, fmt)
    if finer and same(code, _code_of(value, fmt, overflow), fmt):
        return message("oracles.float64", library=library)
    # gfloat computes with float64 throughout.
    if np.isfinite(value) and library != "gfloat" and through_fp32(value, fmt, overflow) == code:
        return message("oracles.fp32", library=library)
    if abs(np.frexp(value)[0]) == 0.75 and fmt.fraction_bits == 0 and theirs is not None and exact is not None:
        return message("oracles.tie", library=library)
    if not fmt.zero:
        return message("oracles.scale", library=library, fmt=fmt.title)
    if theirs is None or exact is None:
        return message("oracles.overflow", library=library)
    if theirs == exact:
        return message("oracles.zero", library=library)
    return message("oracles.spare" if fmt.twos_complement else "oracles.rounds", library=library)


def through_fp32(value: float, fmt: FloatFormat, overflow: Overflow = "format") -> int:
    """Return the code of a finite ``value`` rounded to fp32 first."""
    wide = FORMATS["fp32"]
    between = decode_exact(encode_exact(Fraction(abs(value)), wide), wide)
    negative = bool(np.signbit(value))
    if between is None:
        return typed_code(Typed("", None, negative), fmt, overflow)
    return typed_code(Typed("", -between if negative else between, negative), fmt, overflow)


def _code_of(value: float, fmt: FloatFormat, overflow: Overflow) -> int:
    """Return the exact codec's code of a float64 that is not NaN."""
    negative = bool(np.signbit(value))
    exact = Fraction(value) if np.isfinite(value) else None
    return typed_code(Typed("", exact, negative), fmt, overflow)


@cached("results_kept")
def _version(library: str) -> str:
    return importlib.metadata.version(library).partition("+")[0]


_BITS: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def _torch(value: float, name: str, fmt: FloatFormat) -> int:
    torch: Any = importlib.import_module("torch")
    raw = torch.tensor([value], dtype=torch.float64).to(getattr(torch, name))
    integer = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[fmt.bits]
    return int(raw.view(integer).item()) & ((1 << fmt.bits) - 1)


def _ml_dtypes(value: float, name: str, fmt: FloatFormat) -> int:
    library: Any = importlib.import_module("ml_dtypes")
    dtype = np.dtype(getattr(library, name, name))
    # The libraries warn of overflow and of NaN; here both are answers.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stored = np.array([value], dtype=np.float64).astype(dtype)
    return int(stored.view(_BITS[8 * dtype.itemsize])[0]) & ((1 << fmt.bits) - 1)


def _gfloat(value: float, name: str, fmt: FloatFormat) -> int:
    library: Any = importlib.import_module("gfloat")
    info = _gfloat_format(name, fmt)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = int(library.encode_float(info, library.round_float(info, value)))
    if code < 0 or code >> fmt.bits:
        raise ValueError(code)
    return code


@cached("results_kept")
def _gfloat_format(name: str, fmt: FloatFormat) -> Any:
    """Return gfloat's own format of that name, or one made from the parameters of ``fmt``."""
    formats: Any = importlib.import_module("gfloat.formats")
    for info in (*formats.sample_formats, *formats.p3109_binary8_formats):
        if info.name == name:
            return info
    high_nans = {"ieee": fmt.fraction_mask + (not fmt.infinity), "all_ones": 1}.get(fmt.nan, 0)
    return formats.FormatInfo(
        fmt.name,
        fmt.bits,
        fmt.fraction_bits + 1,
        bias=fmt.bias,
        is_signed=fmt.signed,
        domain=formats.Domain.Extended if fmt.infinity else formats.Domain.Finite,
        has_nz=fmt.negative_zero,
        num_high_nans=high_nans,
        has_subnormals=fmt.subnormals,
        is_twos_complement=fmt.twos_complement,
    )


Ask: TypeAlias = Callable[[float, str, FloatFormat], int]

_ASKED: tuple[tuple[str, dict[str, str], Ask], ...] = (
    ("torch", TORCH, _torch),
    ("ml_dtypes", ML_DTYPES, _ml_dtypes),
    ("gfloat", GFLOAT, _gfloat),
)
