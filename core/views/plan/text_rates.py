"""The sentences about rates that a plan carries: whose they are, what they replace, and what rests on them."""

from __future__ import annotations

from collections.abc import Mapping

from core.hardware.accelerators import find
from core.hardware.cluster import RateName
from core.messages import Message, message, pick_message
from core.planning.measured import ReplacedRate, rates_origin, replaced_rates, rows_of
from core.planning.plan import Plan
from core.units import format_quantity

_NAMES: Mapping[RateName, str] = {
    "matmul16": "rates.name.matmul16",
    "matmul8": "rates.name.matmul8",
    "matmul4": "rates.name.matmul4",
    "memory": "rates.name.memory",
    "inside": "rates.name.link",
    "between": "rates.name.network",
}


def rate_name(rate: ReplacedRate) -> Message:
    """Return the name of a rate, for the middle of a sentence."""
    return message(_NAMES[rate.id])


def rates_text(plan: Plan) -> list[Message]:
    """Return messages about measured rates: which replace the datasheet, or why those of another accelerator do not.

    Empty without measured rates.
    """
    origin, device = rates_origin(plan), plan.accelerator
    if origin == "none":
        return []
    if origin == "other":
        devices = rows_of(plan.measured.device)
        return [message("rates.not_used", origin=plan.measured.origin, devices=devices, device=device)]
    rates, whose = replaced_rates(plan), plan.measured.origin
    way = "rates.used_origin" if whose else "rates.used"
    said = [pick_message(way, origin=whose, rates=[_rate_text(rate) for rate in rates])]
    if any(rate.id in ("inside", "between") for rate in rates):
        said.append(message("rates.one_way"))
    if origin == "stands in":
        unknown = "rates.unknown_device" if plan.measured.device else "rates.no_device"
        said.append(pick_message(unknown, named=plan.measured.device, device=device))
    doubtful = (rate for rate in rates if rate.doubtful)
    return said + [
        message("rates.doubtful", rate=rate_name(rate), share=rate.measured / rate.datasheet) for rate in doubtful
    ]


def _rate_text(rate: ReplacedRate) -> Message:
    measured, datasheet = (format_quantity(value, rate.kind, 3) for value in (rate.measured, rate.datasheet))
    return message("rates.rate", rate=rate_name(rate), measured=measured, datasheet=datasheet)


def change(plan: Plan) -> Message | str:
    """Return which times the measured rates change; empty if the plan uses none."""
    if rates_origin(plan) not in ("own", "stands in"):
        return ""
    return message("rates.in_all_times" if plan.expects_mfu else "rates.in_steps")


def usual_network(plan: Plan) -> str:
    """Return the default network bandwidth of one accelerator."""
    return format_quantity(8 * plan.device.network, "bits_per_s")


def usual_node(plan: Plan) -> str:
    """Return the default number of accelerators per node."""
    return f"{find(plan.accelerator).node_size:,}"
