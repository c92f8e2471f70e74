"""Lines that offer hardware: every way to write one, what a bad one says, and that any offer reads back."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.hardware.accelerators import accelerators, find_accelerator_name
from core.hardware.offers import OfferError, OfferTerms, Price, read_offer
from core.limits import LIMITS, limit
from tests.every import every

NAMES = tuple(device.name for device in accelerators())
FROM, TO = date(2027, 3, 1), date(2027, 9, 1)


def of(accelerator: str, count: int | None = None, **more: Any) -> OfferTerms:
    return OfferTerms(accelerator, count, is_ceiling=count is not None, **more)


def per_hour(low: float, high: float | None = None) -> Price:
    return Price(low, low if high is None else high)


@every(
    ("line", "offer"),
    [
        ("256 own H100", of("H100 SXM", 256, contract="owned")),
        ("we own 256 H100", of("H100 SXM", 256, contract="owned")),
        ("512 rented H200 at $2.8/h", of("H200 SXM", 512, contract="rented", price=per_hour(2.8))),
        ("256 GB200 (NVL72)", of("GB200", 256, per_node=72)),
        ("256x H100", of("H100 SXM", 256)),
        ("256 × H100 SXM", of("H100 SXM", 256)),
        ("- H100 x 256", of("H100 SXM", 256)),
        ("2k H100", of("H100 SXM", 2000)),
        ("RTX 4090 x 8", of("RTX 4090", 8)),
        ("64 nodes of 8 H100", of("H100 SXM", 512, per_node=8)),
        ("64 servers with 4x H100", of("H100 SXM", 256, per_node=4)),
        ("32x8 H200", of("H200 SXM", 256, per_node=8)),
        ("64 H100 nodes", of("H100 SXM", 512)),
        ("4 racks of GB200 NVL72", of("GB200", 288, per_node=72)),
        (
            "reserved 1024 B200 for 90 days at $3.10/GPU-hour",
            of("B200", 1024, contract="reserved", price=per_hour(3.1), days=90),
        ),
        ("spot A100 80GB $1.10", of("A100 SXM 80 GB", contract="spot", price=per_hour(1.1))),
        ("at least 512 H200", OfferTerms("H200 SXM", 512)),
        ("512 H200 or more", OfferTerms("H200 SXM", 512)),
        ("512+ H200", OfferTerms("H200 SXM", 512)),
        ("H200 (any number)", of("H200 SXM")),
        ("GB200 NVL72", of("GB200", per_node=72)),
        ("512 H200 in eu-west-1, $24/node-hour", of("H200 SXM", 512, price=Price(24, 24, "node"))),
        ("512 H200, $1,500 per month", of("H200 SXM", 512, price=Price(1500, 1500, "accelerator", "month"))),
        ("256 H100, owned, $30k each", of("H100 SXM", 256, contract="owned", capital=30_000)),
        ("256 H100 from 1 Mar 2027 until 2027-09-01", of("H100 SXM", 256, first=FROM, last=TO)),
    ],
)
def test_read_offer_reads_what_people_write(line: str, offer: OfferTerms) -> None:
    assert read_offer(line) == offer


@every(
    "price",
    [
        "@ 2.80", "at 2.80", "$2.80/h", "$2.80", "$2.80 per GPU hour", "2.8 USD/h", "USD 2.80 per hour", "2,80/h",
        "US$2.80/hr", "$2.80 an hour", "$2.80 hourly", "$2.80/GPU/h", "$2.80 per GPU per hour", "$2.80 per GPU-h",
        "for $2.80/h", "$2.80/hour/accelerator", "$2.80/GPUh", "2.80 dollars/h",
    ],
)  # fmt: skip
def test_read_offer_reads_an_hourly_price_in_every_writing(price: str) -> None:
    assert read_offer(f"512 H200 {price}") == of("H200 SXM", 512, price=per_hour(2.8))


@every(
    ("text", "name"),
    [
        ("H100", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100 94GB", "H100 NVL"),
        ("H100 PCIe", "H100 PCIe"),
        ("HGX H100", "H100 SXM"),
        ("A100", "A100 SXM 80 GB"),
        ("A100-SXM4-40GB", "A100 SXM 40 GB"),
        ("A100 PCIe", "A100 PCIe 80 GB"),
        ("B200 192GB", "B200"),
        ("MI300", "MI300X"),
        ("Gaudi2", "Gaudi 2"),
        ("TPUv5p", "TPU v5p"),
        ("TPU v5p", "TPU v5p"),
        ("H100s", "H100 SXM"),
        ("L40S", "L40S"),
        *((name, name) for name in NAMES),
        *((name.lower().replace(" ", "-"), name) for name in NAMES),
    ],
)
def test_a_name_is_its_usual_variant_unless_it_says_another(text: str, name: str) -> None:
    found = find_accelerator_name(f"512 {text}, rented")
    assert found
    assert found.name == name


@every(
    ("line", "quoted"),
    [
        ("12 H900 rented $2/h", "H900"),
        ("12 A100 64GB", "A100 64GB"),
        ("512 H200 €2.80/h", "dollars"),
        ("p5.48xlarge", "p5.48xlarge"),
        ("4 x a3-highgpu-8g", "a3-highgpu-8g"),
        ("512 H200 from next week", "from next week"),
        ("512 H100 and 256 H200", "H200"),
        ("64 x H100 nodes", "64 nodes of 8 H100"),
        ("512 H200 $2/h, $3/h", "price"),
        ("512 H200 $500", "$500"),
        ("16 H100, 2 spare nodes", "16"),
        ("16 H100 from 2027-05-01 to 2027-02-01", "2027-02-01"),
        ("0 H100", "0"),
        ("", "accelerator"),
        ("x" * 5000, "5,000"),
    ],
)
def test_a_bad_line_is_quoted_with_what_to_write(line: str, quoted: str) -> None:
    with pytest.raises(OfferError) as problem:
        read_offer(line)
    message = str(problem.value)
    assert line[: limit("number_chars") - 1] in message
    assert quoted in message.replace(f"“{line}”", "", 1)
    assert problem.value.remedy or "For example" in problem.value.reason


_JUNK = st.text(max_size=limit("offer_chars"))
_NEARLY = """512 H100 H200 GB200 A100 80GB rented owned spot $ 2.80 /h per GPU node nodes of x × at least up to or more
from 2027-05-01 for 90 days , ; : ( ) - @ in Oslo 64 out on idle over 4 years 0.05 interruptions/h each any number ¤ + k
€ ² ½"""


@given(_JUNK | st.lists(st.sampled_from(_NEARLY.split()), max_size=60).map(" ".join))
@settings(max_examples=150)
def test_whatever_is_written_is_read_or_refused_with_a_reason(text: str) -> None:
    problem, offer = "", None
    try:
        offer = read_offer(text)
    except OfferError as refused:
        problem = str(refused)
    assert (offer is None) == (0 < len(problem) < 500)


@every("piece", ["1", "1 ", "1,", "1x", "a.", "a ", "a-1-", "in ", "own ", "H100 ", "$1 ", "1 out on 2027-05-01 ", "("])
def test_reading_grows_with_the_length_and_not_with_its_square(piece: str) -> None:
    """Of the processor's time, not the clock's: a text eight times as long takes less than thirty times as much."""

    def seconds(length: int) -> float:
        text, tries = (piece * length)[:length], list[float]()
        for _ in range(2):
            begin = time.process_time()
            with suppress(OfferError):
                read_offer(text)
            tries.append(time.process_time() - begin)
        return min(tries)

    with patch.dict(LIMITS, offer_chars=replace(LIMITS["offer_chars"], value=100_000)):
        assert seconds(8_000) < 30 * seconds(1_000) + 0.02


def test_a_price_of_a_node_is_shared_by_its_accelerators() -> None:
    assert read_offer("512 H200 $24/node-hour").hourly == (3, 3)
    assert read_offer("512 H200 $24/node-hour, 4 per node").hourly == (6, 6)
    month = read_offer("512 H200 $1,500-1,800/month").hourly
    assert month
    assert month == pytest.approx((1500 / 730.5, 1800 / 730.5))
    assert read_offer("512 H200").hourly is None
