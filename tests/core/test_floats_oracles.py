"""What the libraries are reported to give, against the reference table measured from them, and the reasons named."""

from __future__ import annotations

import csv
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from core.floats.custom import custom_format, parse_custom
from core.floats.formats import FORMATS
from core.floats.oracles import Verdict, ask, same, summary
from core.floats.typed_numbers import Typed, parse
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
ROWS = list(csv.DictReader((ROOT / "tests" / "data" / "float_encode.csv").read_text(encoding="utf-8").splitlines()))
COLUMNS = {"torch": "torch_f64_hex", "ml_dtypes": "ml_dtypes_f64_hex", "gfloat": "gfloat_hex"}


def typed(bits: str) -> Typed:
    value = float(np.array([int(bits, 16)], dtype=np.uint64).view(np.float64)[0])
    if np.isfinite(value):
        return Typed(repr(value), "decimal", Fraction(value), bool(np.signbit(value)))
    return Typed(repr(value), "special", None, bool(np.signbit(value)), nan=bool(np.isnan(value)))


def verdicts(text: str, name: str) -> dict[str, Verdict]:
    return {v.library.split()[0]: v for v in ask(parse(text, FORMATS[name]), FORMATS[name])}


@every("name", FORMATS)
def test_libraries_give_what_was_measured(name: str) -> None:
    fmt = FORMATS[name]
    for row in (r for r in ROWS if r["format"] == name and r["expected_hex"]):
        for verdict in ask(typed(row["input_f64_bits"]), fmt)[1:]:
            measured = row[COLUMNS[verdict.library.split()[0]]]
            if not measured.startswith("0x") or verdict.code is None:
                continue
            assert same(verdict.code, int(measured, 16), fmt), (row["input_repr"], verdict, measured)
            assert verdict.agrees == same(int(measured, 16), int(row["expected_hex"], 16), fmt)
            assert verdict.why.endswith(".")
            assert "differently" not in verdict.why, (row["input_repr"], verdict)


@every(
    ("text", "name", "library", "why"),
    [
        ("465", "fp8_e4m3fn", "torch", "Overflow policy: torch saturates at 448"),
        ("0x1.0100000001p+0", "bf16", "torch", "Double rounding"),
        ("65519.999", "fp16", "torch", "Double rounding: torch goes through float32"),
        ("1.00390625000000000001", "bf16", "gfloat", "gfloat takes float64"),
        ("3", "e3m0f_unsigned", "gfloat", "Ties without a fraction"),
        ("0.1", "tf32", "torch", "torch has no tf32."),
        ("0.1", "fp4_e2m1fn", "torch", "torch only stores it, as float4_e2m1fn_x2: it has no conversion."),
        ("nan", "fp16", "gfloat", "Agrees: NaN too, by another of its codes."),
    ],
)
def test_why_a_library_differs_is_named(text: str, name: str, library: str, why: str) -> None:
    fmt = FORMATS.get(name) or parse_custom(name)
    found = {verdict.library.split()[0]: verdict for verdict in ask(parse(text, fmt), fmt)}[library]
    assert found.why.startswith(why)
    assert found.agrees == why.startswith("Agrees")


def test_the_chosen_overflow_is_what_the_libraries_are_compared_with() -> None:
    fmt = FORMATS["fp8_e4m3fn"]
    found = {v.library.split()[0]: v for v in ask(parse("465", fmt), fmt, "saturate")}
    assert found["Napkin"].code == 0x7E
    assert found["torch"].agrees
    assert found["gfloat"].why == "Overflow policy: gfloat gives NaN where the chosen overflow, saturate, keeps 448."


def test_a_library_that_gives_no_code_has_failed() -> None:
    fmt = parse_custom("e4m3_nosub")
    gfloat = ask(parse("1e-8", fmt), fmt)[-1]
    assert (gfloat.code, gfloat.agrees) == (None, False)
    assert gfloat.why == "gfloat fails: its encode_float gives -157, which is no code of 8 bits."
    assert summary(ask(parse("1e-8", fmt), fmt), fmt).startswith("**No library** converts")


def test_agreement_is_counted_among_those_that_convert() -> None:
    fp4, fp16 = FORMATS["fp4_e2m1fn"], FORMATS["fp16"]
    assert summary(ask(parse("464", fp4), fp4), fp4) == (
        "**ml_dtypes**, the only library to convert it into fp4 E2M1, agrees with the exact codec. "
        "gfloat gives no code for it."
    )
    assert summary(ask(parse("0.1", fp16), fp16), fp16).startswith("**All 3 libraries** that convert it")


def test_a_number_finer_than_float64_is_said_to_be() -> None:
    found = verdicts("2049/2048", "fp16")
    assert all(v.agrees for v in found.values() if v.code is not None)
    finer = ask(parse("0.100000000000000005551115123125782702118158340454101562501", FORMATS["fp64"]), FORMATS["fp64"])
    assert all(v.agrees for v in finer if v.code is not None)


def test_gfloat_takes_ones_own_format() -> None:
    fmt = custom_format(3, 4, bias=5, nan="negative_zero", infinity=False)
    found = ask(parse("0.7", fmt), fmt)
    gfloat = next(v for v in found if v.library.startswith("gfloat"))
    assert gfloat.agrees
    assert gfloat.text(fmt)


@pytest.mark.process
def test_nothing_is_imported_before_asking() -> None:
    code = "import sys, core.floats.oracles; print([m for m in ('torch', 'ml_dtypes', 'gfloat') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]", done.stderr
