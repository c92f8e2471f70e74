"""What is shown can be read back as a plain number, whatever its kind."""

from __future__ import annotations

import random

import pytest

from core.units import UNIT, Kind, format_quantity
from core.views.common.shown_units import read_shown
from tests.every import every


@every("kind", UNIT)
def test_a_shown_quantity_reads_back(kind: Kind) -> None:
    rng = random.Random(kind)
    for _ in range(300):
        value = 10 ** rng.uniform(0, 20) * (1e-6 if kind in ("ratio", "number", "seconds") else 1)
        text = format_quantity(value, kind)
        (read,) = read_shown([text])
        assert read is not None, text
        # A second text in another unit of time makes both seconds.
        seconds = read_shown([text, "1 ns" if read.unit == "h" else "1 h"])[0] if kind == "seconds" else read
        assert seconds is not None
        assert seconds.value == pytest.approx(value, rel=6e-3, abs=0.006 if kind.startswith("usd") else 0), text


@every(
    ("text", "value", "unit"),
    [
        ("$1.92 M", 1.92e6, "USD"),
        ("$3.25/h", 3.25, "USD/h"),
        ("−2.98\u00a0%", -0.0298, ""),
        ("+6.12 %", 0.0612, ""),
        ("4.2 × 10^-11", 4.2e-11, ""),
        ("70B", 7e10, ""),
        ("70 B", 70.0, "B"),
        ("80 GiB", 80 * 2**30, "B"),
        ("5.909M h", 5.909e6, "h"),
        ("≈ 2.0 s", 2.0, "s"),
        ("38.5 dB", 38.5, "dB"),
        ("262,144 B (6.25 %)", 262144.0, "B"),
        ("1 token/s", 1.0, "tokens/s"),
    ],
)
def test_what_tables_show(text: str, value: float, unit: str) -> None:
    (read,) = read_shown([text])
    assert read is not None
    assert (read.value, read.unit) == (pytest.approx(value, rel=1e-15), unit)
    assert float(str(read)) == pytest.approx(value, rel=1e-14)


@every("text", ["", "—", "∞", "NaN", "unknown", "2 + 2 + 4 + 8", "180–240 days", "0x3e", "1 × 10^999"])
def test_no_quantity_is_made_up(text: str) -> None:
    assert read_shown([text]) == [None]


def test_a_bound_says_so() -> None:
    small, large = read_shown(["under 0.01 %", "0.01 %"])
    assert small is not None
    assert large is not None
    assert (small.bound, large.bound) == (True, False)
    assert small.value == large.value


def test_times_share_a_unit() -> None:
    assert [f"{one} {one.unit}" for one in read_shown(["12 h", "1,000 h"]) if one] == ["12 h", "1000 h"]
    assert [f"{one} {one.unit}" for one in read_shown(["401 µs", "4.17 ms", "2 days"]) if one] == [
        "0.000401 s",
        "0.00417 s",
        "172800 s",
    ]
