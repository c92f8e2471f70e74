"""The roofline of a layer in words and table cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.messages import Message, message, pick_message
from core.planning.measured import rates_origin
from core.planning.plan import Plan
from core.sources import DEEPSEEK_V3
from core.step_time.layer_roofline import LayerOperation, matmul_share
from core.units import format_duration, format_quantity, significant
from core.views.common.table import Table, table_of
from core.wording import percent_of_whole, plain

_ATTENTION = ("attention", "scores", "softmax", "values")


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """One operation with its phases together. per: the layer, or the model or step that it belongs to instead."""

    name: str
    matmul: bool
    flop: float
    seconds: float
    intensity: float
    bound: str
    per: Literal["layer", "step", "model"]


def rows_of(result: Sequence[LayerOperation]) -> list[RooflineRow]:
    """Return operations with forward and backward together; the intensity and the limit are those of the first
    phase."""
    merged: dict[str, RooflineRow] = {}
    for o in result:
        before = merged.get(o.row)
        merged[o.row] = RooflineRow(
            o.name,
            o.kind == "matmul",
            float(o.flop) + (before.flop if before else 0.0),
            float(o.seconds) + (before.seconds if before else 0.0),
            before.intensity if before else float(o.placed.intensity),
            before.bound if before else o.placed.bound,
            "model" if not o.in_layer else "step" if o.phase == "update" else "layer",
        )
    return list(merged.values())


def operation_table(result: Sequence[LayerOperation]) -> Table:
    """Return the operations. Shares are of the layer's two passes; what is beside them says how often."""
    rows = rows_of(result)
    flop, seconds = (sum(getattr(r, what) for r in rows if r.per == "layer") for what in ("flop", "seconds"))

    def share(row: RooflineRow, part: float) -> str:
        return percent_of_whole(part) if row.per == "layer" else message(_ONCE[row.per])

    return table_of(
        {
            message("roofline.table.operation"): [r.name for r in rows],
            message("roofline.table.flop"): [format_quantity(r.flop, "flop") for r in rows],
            message("roofline.table.flop_share"): [share(r, r.flop / flop) for r in rows],
            message("roofline.table.intensity"): [significant(r.intensity, 3) for r in rows],
            message("roofline.table.limit"): [message(f"roofline.table.{r.bound}") for r in rows],
            message("roofline.table.time"): [format_duration(r.seconds, 3) for r in rows],
            message("roofline.table.time_share"): [share(r, r.seconds / seconds) for r in rows],
        }
    )


_ONCE = {"step": "roofline.table.per_step", "model": "roofline.table.per_model"}
"""In place of a share, for what is done beside the layer."""


def layer_text(result: Sequence[LayerOperation], device: str, tokens: int) -> list[Message]:
    """Return the share of matmuls in the layer's FLOPs and time, and the operations outside the layer."""
    rows = rows_of(result)
    layer = sum(r.seconds for r in rows if r.per == "layer")
    starved = [r.name for r in rows if r.matmul and r.bound == "memory"]
    first = pick_message(
        "roofline.takeaway_bound" if starved else "roofline.takeaway",
        matmul=sum(r.seconds for r in rows if r.per == "layer" and r.matmul) / layer,
        flop=matmul_share([o for o in result if o.in_layer and o.phase != "update"]),
        device=device,
        tokens=float(tokens),
        bound=starved,
    )
    update, head = (sum(r.seconds for r in rows if r.per == per) / layer for per in ("step", "model"))
    return [first, pick_message("roofline.outside" if head else "roofline.outside_update", update=update, head=head)]


def device_name(name: str, plan: Plan) -> Message | str:
    """Return the accelerator, and the origin of measured rates if there are any."""
    if rates_origin(plan) not in ("own", "stands in"):
        return name
    origin = plan.measured.device
    return pick_message("roofline.measured_on" if origin else "roofline.measured", device=name, origin=origin)


def chart_alt(device: str, takeaway: Message) -> str:
    """Return what the chart shows."""
    return plain(message("roofline.alt", device=device, takeaway=takeaway))


def method_notes() -> tuple[Message, Message]:
    """Return what the roofline includes and excludes."""
    return message("roofline.bytes"), message("roofline.time")


def attention_seconds(result: Sequence[LayerOperation]) -> float:
    """Return the time at best of the attention matmuls and the softmax between them, forward and backward."""
    return sum(float(o.seconds) for o in result if o.row in _ATTENTION)


def fused_text(with_fusion: Sequence[LayerOperation], without: Sequence[LayerOperation]) -> Message:
    """Return what fusing attention saves."""
    return message("roofline.fused", fused=attention_seconds(with_fusion), unfused=attention_seconds(without))


def below_16bit(dtype: str, wide: str, *, mixture: bool) -> Message | str:
    """Return what runs in a dtype below 16 bits and what does not; empty if there is no such division."""
    if dtype == wide:
        return ""
    way = "roofline.low_precision_router" if mixture else "roofline.low_precision"
    return message(way, dtype=dtype, wide=wide)


LOW_PRECISION_SOURCE = DEEPSEEK_V3.at("section 3.3.1")
"""Where the division of `below_16bit` is from."""
