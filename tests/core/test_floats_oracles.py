"""What the libraries are reported to give, against the reference table measured from them, and the reasons named."""

from __future__ import annotations

import csv
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from core.floats.custom import parse_custom
from core.floats.formats import FORMATS
from core.floats.oracles import ask, same, summary
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


def test_a_library_that_gives_no_code_has_failed() -> None:
    fmt = parse_custom("e4m3_nosub")
    gfloat = ask(parse("1e-8", fmt), fmt)[-1]
    assert (gfloat.code, gfloat.agrees) == (None, False)
    assert gfloat.why == "gfloat fails: its encode_float gives -157, which is no code of 8 bits."
    assert summary(ask(parse("1e-8", fmt), fmt), fmt).startswith("**No library** converts")


@pytest.mark.process
def test_nothing_is_imported_before_asking() -> None:
    code = "import sys, core.floats.oracles; print([m for m in ('torch', 'ml_dtypes', 'gfloat') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]", done.stderr
