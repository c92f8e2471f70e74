"""The sentences about rates that a plan carries: whose they are, what they replace, and what rests on them."""

from __future__ import annotations

from core.hardware.accelerators import find
from core.planning.measured import ReplacedRate, rates_origin, replaced_rates, rows_of
from core.planning.plan import Plan
from core.units import format_quantity
from core.wording import listed, percent


def rates_sentence(plan: Plan) -> str:
    """The rates that count and what they replace, in a line; why those of another accelerator do not; else empty."""
    origin = rates_origin(plan)
    if origin == "none":
        return ""
    whose = plan.measured.origin
    if origin == "other":
        rows = listed(rows_of(plan.measured.device), "or")
        return (
            f"**The rates measured on {whose} are not used:** they are of {rows}, and the plan has {plan.accelerator}, "
            "of which the datasheet counts."
        )
    rates = replaced_rates(plan)
    measured = listed([f"{rate.name} {format_quantity(rate.measured, rate.kind, 3)}" for rate in rates])
    sheet = listed([format_quantity(rate.datasheet, rate.kind, 3) for rate in rates])
    head = f"**Rates measured** on {whose}" if whose else "**Measured rates**"
    ways = " Links and network count one way." if any(rate.id in ("inside", "between") for rate in rates) else ""
    doubts = "".join(map(_doubt, rates))
    return f"{head}: {measured} in place of the datasheet’s {sheet}.{ways}{_unknown(plan)}{doubts}"


def _unknown(plan: Plan) -> str:
    """That nothing says whether the rates are of the plan's accelerator; empty where something does."""
    if rates_origin(plan) != "stands in":
        return ""
    device = plan.measured.device
    whose = f"No datasheet is known of a device named {device}" if device else "Nothing says of which device they are"
    return f" {whose}: they stand in for those of {plan.accelerator}."


def _doubt(rate: ReplacedRate) -> str:
    """That a rate is more than its datasheet has; else empty."""
    if not rate.doubtful:
        return ""
    return (
        f" **{rate.name} is {percent(rate.measured / rate.datasheet)} of the datasheet’s, over 100 %: check the peak.**"
    )


def change(plan: Plan) -> str:
    """What rates that count change, and what not; empty where none count."""
    if rates_origin(plan) not in ("own", "stands in"):
        return ""
    if plan.expects_mfu:
        return "**Measured rates are in every time here**: of the steps, and so of the whole run."
    whose = "that is asked for" if plan.find == "MFU" else "that is typed"
    return (
        "**Measured rates change the step times of layouts and the roofline of a layer.** Days and dollars follow from "
        f"the MFU {whose}, which they leave as it is."
    )


def usual_network(plan: Plan) -> str:
    """The bandwidth between nodes of one accelerator that counts where none is typed."""
    return format_quantity(8 * plan.device.network, "bits_per_s")


def usual_node(plan: Plan) -> str:
    """The accelerators of a node where none are typed."""
    return f"{find(plan.accelerator).node_size:,}"


def by(plan: Plan) -> str:
    """On which measurement a step's time rests, as the end of a clause; empty where it rests on the datasheet."""
    if rates_origin(plan) not in ("own", "stands in"):
        return ""
    return f", with rates measured on {device}" if (device := plan.measured.device) else ", with measured rates"
