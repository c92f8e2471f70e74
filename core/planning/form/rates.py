"""Rates that were measured on the accelerator, as fields: each empty, and left out of links then, or in force."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.fields import Field, optional
from core.hardware.rates import RateName, Rates
from core.limits import limit
from core.planning.plan import NOT_MEASURED, CarriedRates
from core.units import Kind, QuantityError, parse_quantity

RATES = "rates"
"""The part of the form."""

_LEAST = 1e6
_MEANT = (
    "Measured on the accelerator, in place of what its datasheet leads one to expect. Step times of layouts and the "
    "roofline of a layer are of these rates; empty: of the datasheet’s."
)

_ONE_WAY = " Bus bandwidth of large collectives, one way, of one accelerator: between nodes its share of the network."


def _read(kind: Kind, high: float, example: str) -> Callable[[str], float]:
    return lambda text: parse_quantity(text, kind, low=_LEAST, high=high, example=example)


def _rate(id: str, label: str, kind: Kind, high: float, example: str, more: str = "") -> Field:
    field = optional(
        id,
        label,
        _read(kind, high, example),
        nothing=NOT_MEASURED,
        placeholder="datasheet’s",
        part=RATES,
        help=_MEANT + more,
    )
    return replace(field, omit_if_empty=True)


_FLOP_PER_S, _BYTES_PER_S = float(limit("measured_flop_per_s")), float(limit("measured_bytes_per_s"))

RATE_FIELDS: Mapping[RateName, Field] = {
    "matmul16": _rate("r16", "Measured, 16-bit", "flop_per_s", _FLOP_PER_S, "662 TFLOP/s"),
    "matmul8": _rate("r8", "Measured, 8-bit", "flop_per_s", _FLOP_PER_S, "1.2 PFLOP/s"),
    "matmul4": _rate("r4", "Measured, 4-bit", "flop_per_s", _FLOP_PER_S, "4 PFLOP/s"),
    "memory": _rate("rmem", "Measured, memory", "bytes_per_s", _BYTES_PER_S, "3 TB/s"),
    "inside": _rate("rin", "Measured, links", "bytes_per_s", _BYTES_PER_S, "370 GB/s", _ONE_WAY),
    "between": _rate("rnet", "Measured, network", "bytes_per_s", _BYTES_PER_S, "46 GB/s", _ONE_WAY),
}
"""What of `Rates` is measured, and its field."""


_UNSAID = re.compile(r"[^A-Za-z0-9 .,:+/()-]")
"""What a device's name and a date do without, and text that is shown might mean something by."""


def origin_text(device: str, day: str) -> str:
    """The origin of rates as text, ``H100 80GB HBM3, 22 Nov 2026``: a device as it calls itself, and a day."""
    named = " ".join(_UNSAID.sub(" ", device.replace("NVIDIA", "")).replace(",", " ").split())
    return f"{named[: limit('rates_origin') - len(day) - 2].rstrip()}, {day}"


def _origin(text: str) -> str:
    if wrong := _UNSAID.search(text):
        raise QuantityError(
            f"“{wrong[0]}” is in no device’s name and no date. For example: H100 80GB HBM3, 22 Nov 2026."
        )
    return " ".join(text.split())


ORIGIN = Field(
    "rof",
    "Measured on",
    "",
    _origin,
    part=RATES,
    placeholder="device, date",
    max_chars=limit("rates_origin"),
    help="The device by the name it gives itself, a comma, and when. Rates of an accelerator of the catalogue count "
    "for that accelerator alone.",
    omit_if_empty=True,
)

MEASURED_FIELDS: tuple[Field, ...] = (*RATE_FIELDS.values(), ORIGIN)
"""All of them, in the order in which a link spells them."""


def measured_of(values: Mapping[str, Any]) -> CarriedRates:
    """What was measured, by the values of a form."""
    return CarriedRates(Rates(**{name: values[field.id] for name, field in RATE_FIELDS.items()}), values[ORIGIN.id])
