"""Parsing what people type and showing what formulas give."""

from __future__ import annotations

import contextlib
import math
import random
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formula import latex_exact, latex_quantity
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.units import (
    UNIT,
    Kind,
    QuantityText,
    format_bytes,
    format_count,
    format_duration,
    format_money,
    format_quantity,
    scientific,
    significant,
)
from tests.every import every

PARSED: list[tuple[str, Kind, float]] = [
    ("70B", "count", 70e9),
    ("6e24", "count", 6e24),
    ("3 × 10^8", "count", 3e8),
    ("6.3 × 10²⁴", "count", 6.3e24),
    ("2^20", "count", 1048576),
    ("40%", "ratio", 0.4),
    ("80GB", "bytes", 80e9),
    ("80 GiB", "bytes", 80 * 2**30),
    ("80 GiB", "bytes_binary", 80 * 2**30),
    ("$2.50", "usd_per_hour", 2.5),
    ("2.50/h", "usd_per_hour", 2.5),
    ("5 M $", "usd", 5e6),
    ("2.50/h $", "usd_per_hour", 2.5),
    ("989.4 TFLOP/s", "flop_per_s", 989.4e12),
    ("１６，３８４", "count", 16384),
    ("80\u00a0GB", "bytes", 80e9),
    ("6.4 accelerators", "accelerators", 6.4),
    ("1.206M tokens/s", "tokens_per_s", 1.206e6),
    ("400,000 × 1,024 × 1,024 tokens", "tokens", 400000 * 1024 * 1024),
    ("8 * 80 GB", "bytes", 640e9),
    ("-2*3", "number", -6),
]


@every(("text", "kind", "value"), PARSED, ids=[f"{t!r} {k}" for t, k, _ in PARSED])
def test_understood(text: str, kind: Kind, value: float) -> None:
    assert parse_quantity(text, kind, low=-math.inf if value < 0 else 0.0) == value


@every(
    ("text", "kind", "reason"),
    [
        ("", "count", "empty"),
        ("70GB", "count", "other"),
        ("$5M$", "usd", "other"),
        ("€5M", "usd", "currency"),
        ("nan", "count", "other"),
        ("1e999", "count", "exponent"),
        ("-3", "count", "small"),
        ("12", "ratio", "range"),
        ("1.2", "ratio", "range_percent"),
        ("1" * 1_000_000, "count", "long"),
        ("40B tokens/s", "parameters", "other"),
        ("2**3", "count", "other"),
        ("80 GB*8", "bytes", "other"),
        ("30.000", "count", "ambiguous"),
        ("2^101", "count", "power"),
        ("*".join("123456789"), "count", "factors"),
        ("*".join(["9999^99"] * 7), "count", "large"),
    ],
)
def test_refused_with_a_reason(text: str, kind: Kind, reason: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_quantity(text, kind, high=0.1 if text == "12" else 1.0 if kind == "ratio" else math.inf)
    assert refused.value.args[0].id == f"quantity.{reason}"


@pytest.mark.parametrize("high", [0.9, 1.0, 3.0])
def test_a_share_too_large_to_be_one_is_in_percent(high: float) -> None:
    """Whatever is understood without a percent sign is the same number with one, or the share itself."""
    for hundredth in range(30_001):
        text = f"{hundredth / 100:g}"
        typed = hundredth / 100
        if typed <= high or 2 * max(1.0, high) <= typed <= 100 * high:
            value = parse_quantity(text, "ratio", high=high)
            assert value == pytest.approx(typed if typed <= high else typed / 100)
        else:
            with pytest.raises(QuantityError) as refused:
                parse_quantity(text, "ratio", high=high)
            assert (refused.value.args[0].id == "quantity.range_percent") == (1 < typed < 2)
    assert parse_quantity("45", "ratio", high=1.0) == parse_quantity("45%", "ratio") == parse_quantity("0.45", "ratio")


@given(st.text(max_size=80), st.sampled_from(["count", "ratio", "bytes", "seconds", "usd", "flop_per_s"]))
def test_never_anything_but_a_quantity_error(text: str, kind: Kind) -> None:
    value = 0.0
    with contextlib.suppress(QuantityError):
        value = parse_quantity(text, kind)
    assert math.isfinite(value)
    assert value >= 0


@given(st.floats(min_value=1, max_value=9.9e22))
def test_counts_survive_showing_and_typing_again(value: float) -> None:
    assert parse_quantity(format_count(value), "count") == pytest.approx(value, rel=5.1e-4)


@given(st.floats(min_value=1, max_value=1e20))
def test_bytes_survive_showing_and_typing_again(value: float) -> None:
    for system in ("decimal", "binary"):
        shown = format_bytes(value, system=system)
        assert parse_quantity(shown, "bytes") == pytest.approx(value, rel=5.1e-4)


@every(
    ("shown", "expected"),
    [
        (format_count(70e9), "70B"),
        (format_count(999_999), "999,999"),
        (format_count(6.3e24), "6.3 × 10²⁴"),
        (format_count(math.inf), "∞"),
        (format_bytes(80e9, system="decimal"), "80 GB"),
        (format_bytes(80e9, system="binary"), "74.51 GiB"),
        (format_duration(143.9 * 86400), "143.9 days"),
        (format_duration(0), "0 s"),
        (format_duration(4e8), "12.68 years"),
        (format_money(5.576e6), "$5.58M"),
        (format_quantity(4096, "flop"), "4,096 FLOP"),
        (format_quantity(989.4e12, "flop_per_s"), "989.4 TFLOP/s"),
        (format_quantity(2.5, "usd_per_hour"), "$2.50/h"),
        (format_quantity(1e-8, "number"), "1 × 10⁻⁸"),
        (format_quantity(1_206_126, "tokens_per_s"), "1.206M tokens/s"),
        (format_quantity(math.inf, "parameters"), "∞"),
        (format_quantity(3.37e-18, "days"), "3.37 × 10⁻¹⁸ days"),
        (scientific(-2.5e-7), "-2.5 × 10⁻⁷"),
        (significant(0.15625), "0.1563"),
        (significant(2.675, 3), "2.68"),
        (significant(2.5, 1), "3"),
        (significant(1e300)[:9], "1,000,000"),
        (significant(5e-324, 1)[-2:], "05"),
        (scientific(math.ulp(0.0), 4), "5 × 10⁻³²⁴"),
        (format_money(0.125), "$0.13"),
    ],
)
def test_shown(shown: str, expected: str) -> None:
    assert shown == expected


@every(
    ("value", "kind", "latex"),
    [
        (16384, "count", "16{,}384"),
        (30.84e6, "accelerator_hours", r"3.084 \times 10^{7}\,\text{h}"),
        (5.576e6, "usd", r"\text{\textdollar}5.576 \times 10^{6}"),
        (2.5, "usd_per_hour", r"\text{\textdollar}2.50\,\text{/h}"),
        (0.0025, "usd_per_hour", r"\text{\textdollar}0.0025\,\text{/h}"),
        (-2.5, "usd_per_hour", r"-\text{\textdollar}2.5\,\text{/h}"),
        (40e9, "parameters", r"40\text{B}\,\text{parameters}"),
        (1_206_126, "tokens_per_s", r"1.206\text{M}\,\text{tokens/s}"),
        (6e15, "parameters", r"6 \times 10^{15}\,\text{parameters}"),
        (math.nan, "bytes", r"\text{unknown}"),
        (math.inf, "count", r"\infty"),
    ],
)
def test_latex(value: float, kind: Kind, latex: str) -> None:
    assert latex_quantity(value, kind) == latex


@every(
    ("value", "kind", "latex", "exact"),
    [
        (1 / 3, "number", "0.3333", False),
        (0.1 + 0.2, "number", "0.3", True),
        (2.0**-26, "number", r"1.49 \times 10^{-8}", False),
        (33_554_432, "flop", r"33{,}554{,}432\,\text{FLOP}", True),
        (405_853_388_800, "count", r"4.058533888 \times 10^{11}", True),
        (2_415_919_104, "bytes", r"2.415919104\,\text{GB}", True),
        (2_415_919_104, "bytes_binary", r"2.25\,\text{GiB}", True),
        (2_415_919_105, "bytes_binary", r"2.25\,\text{GiB}", False),
        (0.4125, "ratio", r"41.25\,\text{\%}", True),
        (2 / 3, "ratio", r"66.7\,\text{\%}", False),
        (2.345, "usd_per_hour", r"\text{\textdollar}2.345\,\text{/h}", True),
        (math.nan, "bytes", r"\text{unknown}", True),
    ],
)
def test_latex_says_whether_it_is_the_whole_number(value: float, kind: Kind, latex: str, exact: bool) -> None:
    assert latex_exact(value, kind, most=10) == (latex, exact)


def test_things_that_come_one_by_one() -> None:
    assert parse_quantity("8", "count", low=1, whole=True) == 8
    for text, said in (("0.5", "quantity.whole"), ("1.024", "quantity.whole_meant")):
        with pytest.raises(QuantityError) as refused:
            parse_quantity(text, "count", low=1, whole=True, example="1024")
        assert refused.value.args[0].id == said


@given(
    st.floats(min_value=1, max_value=9.9e22),
    st.sampled_from(["parameters", "accelerators", "tokens", "days", "tokens_per_s"]),
)
def test_counts_with_their_unit_survive_showing_and_typing_again(value: float, kind: Kind) -> None:
    assert parse_quantity(format_quantity(value, kind), kind) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(("high", "shown"), [(10**16, "10¹⁶"), (10**7, "10⁷"), (16_384, "16,384")])
def test_the_ends_of_a_range_are_written_in_one_style(high: int, shown: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_quantity("1e300", "count", low=1, high=high)
    assert refused.value.args[0].values["high"] == shown


@every("kind", UNIT)
def test_a_quantity_carries_its_plain_number(kind: Kind) -> None:
    rng = random.Random(kind)
    for _ in range(100):
        value = 10 ** rng.uniform(-3, 20)
        text = format_quantity(value, kind)
        assert isinstance(text, QuantityText)
        assert (text.value, text.unit) == (value, "" if kind == "ratio" else UNIT[kind])
        assert copy(text).value == value
        assert copy(copy(text)).unit == text.unit
    assert not isinstance(format_quantity(math.nan, kind), QuantityText)


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [
        (9.999e-4, 3, "1 ms"),
        (9.994e-4, 3, "999 µs"),
        (0.99996, 4, "1 s"),
        (59.996, 4, "1 min"),
        (59.994, 4, "59.99 s"),
    ],
)
def test_a_duration_that_rounds_up_to_one_of_a_unit_is_written_in_it(seconds: float, digits: int, text: str) -> None:
    assert format_duration(seconds, digits) == text
