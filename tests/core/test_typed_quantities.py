"""What people write for a number, an amount, a length, a batch or a day: read, or answered with its readings."""

from __future__ import annotations

import math
from datetime import date

import pytest

from core.dates import parse_day
from core.fields import Form
from core.number_text import QuantityError
from core.planning.decide.runs import days_until
from core.planning.form.plan_form import PARAMETERS, PLAN_FORM, PRICE, SEQ_LEN, TRAINED, WITHIN
from core.planning.form.whole_run import BUDGET, DEADLINE
from core.planning.plan import Within, parse_batch
from core.quantities import parse_quantity
from core.units import Kind, format_quantity
from tests.every import every

READ: list[tuple[str, Kind, float]] = [
    ("5 million", "usd", 5e6),
    ("6M", "usd", 6e6),
    ("US$ 6M", "usd", 6e6),
    ("6 Mio. $", "usd", 6e6),
    ("$2.50 per GPU-hour", "usd_per_hour", 2.5),
    ("2,5 $/hr", "usd_per_hour", 2.5),
    ("320亿", "parameters", 32e9),
    ("8万亿", "tokens", 8e12),
    ("1.5千亿", "parameters", 1.5e11),
    ("32 Mrd", "parameters", 32e9),
    ("8 Billionen", "tokens", 8e12),
    ("32 млрд", "parameters", 32e9),
    ("8T tokens", "tokens", 8e12),
    ("1,5T", "tokens", 1.5e12),
    ("~70B", "parameters", 70e9),
    ("90,0 days", "seconds", 90 * 86400),
    ("3 mo", "seconds", 3 * 31557600 / 12),
    ("64k", "length", 65_536),
    ("1M", "length", 1_048_576),
    ("100k", "length", 100_000),
    ("16 384", "count", 16_384),
    ("1.048.576", "count", 1_048_576),
    ("1.234,5", "number", 1_234.5),
    ("6.300 × 10²⁴ FLOP", "flop", 6.3e24),
    ("６４", "count", 64),
    ("seven billion", "parameters", 7e9),
    ("1½T", "tokens", 1.5e12),
    ("7x10^9", "parameters", 7e9),
    ("64x8", "accelerators", 512),
    ("$6MM", "usd", 6e6),
    ("8 Bio.", "tokens", 8e12),
    ("40 percent", "ratio", 0.4),
]


@every(("text", "kind", "value"), READ)
def test_what_people_write_is_read(text: str, kind: Kind, value: float) -> None:
    assert parse_quantity(text, kind) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kind", ["count", "parameters", "tokens", "usd", "seconds", "ratio", "flop_per_s", "watts"])
def test_whatever_is_shown_can_be_typed_again(kind: Kind) -> None:
    for value in (0.25, 1.25, 8.192, 90.0, 1_250.0, 98_765.0, 1.25e6, 8.03e9, 1.5e12):
        shown = format_quantity(value, kind)
        assert parse_quantity(shown, kind) == pytest.approx(value, rel=6e-3), shown


def test_a_batch_of_millions_is_one_of_tokens() -> None:
    assert parse_batch("4M") == parse_batch("4M tokens") == parse_batch("4 million tokens")
    assert parse_batch("2,048") == parse_batch("2,048 sequences")
    for text in ("16k", "512 K"):
        with pytest.raises(QuantityError, match=r"tokens or .* sequences"):
            parse_batch(text)


@every(
    ("text", "day"),
    [
        ("2027-04-15", date(2027, 4, 15)),
        ("15.04.2027", date(2027, 4, 15)),
        ("15 Apr 2027", date(2027, 4, 15)),
        ("April 15th, 2027", date(2027, 4, 15)),
        ("4/15/2027", date(2027, 4, 15)),
        ("5/5/2027", date(2027, 5, 5)),
    ],
)
def test_a_day_is_read_as_people_write_it(text: str, day: date) -> None:
    assert parse_day(text) == day


@every(
    ("text", "says"),
    [
        ("4/5/2027", "ambiguous"),
        ("31.02.2027", "calendar"),
        ("15.04.27", "short"),
        ("tomorrow", "other"),
        ("1.1.1970", "range"),
    ],
)
def test_a_day_that_is_none_or_two_is_said(text: str, says: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_day(text)
    assert refused.value.args[0].id == f"date.error.{says}"


def test_a_deadline_is_a_day_or_a_time_wherever_it_can_be() -> None:
    assert days_until("15.04.2027", date(2027, 1, 15)) == 91
    assert days_until("90 days", date(2027, 1, 15)) == 90
    assert DEADLINE.parse("90 days") == DEADLINE.parse("90,0 days") == 90
    with pytest.raises(QuantityError) as refused:
        DEADLINE.parse("15.04.2199")
    assert refused.value.args[0].id == "date.error.no_start"
    assert BUDGET.parse("USD 6M") == BUDGET.parse("6 million") == 6e6


def test_a_limit_is_a_time_or_money() -> None:
    for text in ("$6M", "USD 6M", "6 million", "6M USD"):
        limits = WITHIN.parse(text)
        assert limits.dollars == 6e6
        assert math.isnan(limits.days)
    assert WITHIN.parse("90,0 days") == Within(90.0, typed="90,0 days")
    for text, meant in (("6M", r"\$6M or 6 months"), ("8B", r"\$8B"), ("90", "90 days")):
        with pytest.raises(QuantityError, match=meant):
            WITHIN.parse(text)


def test_a_bare_number_of_parameters_or_tokens_is_asked_about() -> None:
    for field, text, meant, unit in ((PARAMETERS, "32", "32B", "parameters"), (TRAINED, "8", "8T", "tokens")):
        with pytest.raises(QuantityError, match=meant):
            field.parse(text)
        assert field.parse(f"{text} {unit}") == float(text)
        assert field.parse("1,024") == 1024


def test_an_amount_with_one_reading_is_not_asked_about() -> None:
    assert BUDGET.parse("6000000") == BUDGET.parse("6.000.000") == 6e6
    with pytest.raises(QuantityError, match=r"\$6M"):
        BUDGET.parse("6")
    for text in ("none", "No limit", ""):
        assert math.isnan(BUDGET.parse(text))
        assert math.isnan(DEADLINE.parse(text))
    assert PRICE.parse("$2 per GPU-hour") == (2.0, 2.0)
    assert PRICE.parse("2.5 to 3") == PRICE.parse("2.50-3") == (2.5, 3.0)


def test_a_bare_batch_of_millions_is_asked_about() -> None:
    for text in ("4,000,000", "2^22"):
        with pytest.raises(QuantityError, match=r"Did you mean .* tokens"):
            parse_batch(text)
        assert parse_batch(f"{text} tokens").in_tokens
        assert not parse_batch(f"{text} sequences").in_tokens


def _opened(form: Form, version: int, **texts: str) -> dict[str, str]:
    address = {"v": [str(version)], **{form.key(name): [text] for name, text in texts.items()}}
    return form.from_address(address)[0]


def test_links_of_before_keep_what_a_k_and_a_batch_meant() -> None:
    old = _opened(PLAN_FORM, 3, seq="64k", gb="4M")
    assert SEQ_LEN.parse(old["seq"]) == 64_000
    assert parse_batch(old["gb"]) == parse_batch("4,000,000 sequences")
    new = _opened(PLAN_FORM, PLAN_FORM.version, seq="64k")
    assert SEQ_LEN.parse(new["seq"]) == 65_536
