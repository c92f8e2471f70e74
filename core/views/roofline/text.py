"""The roofline of a layer in words and table cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.models.spec import TransformerSpec
from core.sources import DEEPSEEK_V3
from core.step_time.layer_roofline import LayerKind, LayerOperation, matmul_share
from core.units import format_duration, format_quantity, significant
from core.wording import percent, percent_of_whole

OPERATIONS = ("operation", "FLOP", "share of FLOPs", "FLOP/B forward", "limit", "time at best", "share of time")
"""Headings of the table of `operations`."""

_ATTENTION = ("attention", "scores", "softmax", "values")
_ONCE = {"step": "per step", "model": "per model"}
"""What stands in place of a share for what is done beside the layer."""


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """One operation, its phases together; per: the layer, or what it stands beside the layer for."""

    name: str
    matmul: bool
    flop: float
    seconds: float
    intensity: float
    bound: str
    per: Literal["layer", "step", "model"]


def rows_of(result: Sequence[LayerOperation]) -> list[RooflineRow]:
    """Operations with forward and backward together; the intensity and the limit are those of the first phase."""
    merged: dict[str, RooflineRow] = {}
    for o in result:
        before = merged.get(o.id)
        merged[o.id] = RooflineRow(
            o.name,
            o.kind == "matmul",
            float(o.flop) + (before.flop if before else 0.0),
            float(o.placed.seconds) + (before.seconds if before else 0.0),
            before.intensity if before else float(o.placed.intensity),
            before.bound if before else o.placed.bound,
            "model" if not o.in_layer else "step" if o.phase == "update" else "layer",
        )
    return list(merged.values())


def operations(result: Sequence[LayerOperation]) -> list[tuple[str, ...]]:
    """Rows of the table of operations. Shares are of the layer's two passes; what is beside them says how often."""
    rows = rows_of(result)
    flop, seconds = (sum(getattr(r, what) for r in rows if r.per == "layer") for what in ("flop", "seconds"))
    return [
        (
            r.name,
            format_quantity(r.flop, "flop"),
            _ONCE.get(r.per) or percent_of_whole(r.flop / flop),
            significant(r.intensity, 3),
            "compute" if r.bound == "compute" else "**memory**",
            format_duration(r.seconds, 3),
            _ONCE.get(r.per) or percent_of_whole(r.seconds / seconds),
        )
        for r in rows
    ]


def no_account(spec: TransformerSpec) -> str:
    """Why there is no roofline of a layer of ``spec``."""
    return f"Napkin draws no roofline here, because it does not model the memory traffic of {spec.unlisted}."


def layered(result: Sequence[LayerOperation], device: str, tokens: int) -> str:
    """Takeaway of the roofline: what matrix products are of the layer's FLOPs and of its time; and what is beside."""
    rows = rows_of(result)
    layer = sum(r.seconds for r in rows if r.per == "layer")
    matmul = sum(r.seconds for r in rows if r.per == "layer" and r.matmul) / layer
    flop = matmul_share([o for o in result if o.in_layer and o.phase != "update"])
    starved = [r.name for r in rows if r.matmul and r.bound == "memory"]
    least = significant(min(r.intensity for r in rows if r.matmul), 3)
    text = (
        f"**Matrix products wait for memory here**, at {least} FLOP/B and more: "
        f"{', '.join(name.replace(',', '') for name in starved).lower()}."
        if starved
        else f"Every matrix product is limited by compute, at {least} FLOP/B and more."
    )
    update = sum(r.seconds for r in rows if r.per == "step") / layer
    head = sum(r.seconds for r in rows if r.per == "model") / layer
    beside = f"AdamW on its parameters adds **{percent(update)}** to that time once per step"
    if head:
        beside += (
            f"; the output head, its loss and its update take as long as **{significant(head, 3)}** such layers, "
            "once in the model"
        )
    return (
        f"With **{tokens:,}** tokens at once, matrix products are **{_nearly(flop)}** of a layer’s FLOPs, forward and "
        f"backward, and at best **{percent(matmul)}** of its time on {device}: the rest moves bytes. {text} {beside}."
    )


def _nearly(share: float) -> str:
    """A share close to one, which three digits would round to all of it."""
    return f"{100 * share:.2f} %" if share > 0.99 else percent(share)


LAYER_NOTES = (
    "**Bytes:** each operation reads its operands once, writes its result once and keeps nothing for the next one; a "
    "cast to another dtype is part of the operation before it. Fused kernels move less: with fused "
    "attention the softmax is not counted.",
    "**Time at best:** the longer of arithmetic at peak and traffic at full bandwidth. No kernel that runs one "
    "operation alone, from memory and as it is counted here, is faster, and most are slower; a kernel that fuses "
    "neighbours saves the traffic between them. The update stands once per step, so more micro-batches per step make "
    "it less of the time.",
)
"""What the roofline holds and leaves out."""


def windows(kinds: Sequence[LayerKind]) -> str:
    """How many layers have a window, where some have and some do not; else empty."""
    having = sum(kind.layers for kind in kinds if kind.window)
    size = max(kind.window for kind in kinds)
    return _some(having, kinds, f"see a window of {size:,}")


def mixtures(kinds: Sequence[LayerKind]) -> str:
    """How many layers have experts, where some have and some do not; else empty."""
    return _some(sum(kind.layers for kind in kinds if kind.mixture), kinds, "have experts")


def _some(having: int, kinds: Sequence[LayerKind], what: str) -> str:
    layers = sum(kind.layers for kind in kinds)
    return f"{having} of {layers} layers {what}" if 0 < having < layers else ""


def kind_name(kind: LayerKind, kinds: Sequence[LayerKind]) -> str:
    """A window and what sets a kind of layer apart, and how many layers of the model have it; empty for neither."""
    sentences: list[str] = []
    if kind.window or windows(kinds):
        name = f"window of {kind.window:,}" if kind.window else "full attention"
        sentences.append(f"{name}, {_among(kinds, lambda k: k.window == kind.window)}")
    if mixtures(kinds):
        name = "experts" if kind.mixture else "dense"
        sentences.append(f"{name}, {_among(kinds, lambda k: k.mixture == kind.mixture)}")
    return "; ".join(sentences) + " layers" if sentences else ""


def _among(kinds: Sequence[LayerKind], like: Callable[[LayerKind], bool]) -> str:
    having, layers = sum(kind.layers for kind in kinds if like(kind)), sum(kind.layers for kind in kinds)
    return f"{having} of {layers}" if having < layers else f"all {layers}"


def attention_seconds(result: Sequence[LayerOperation]) -> float:
    """Time at best of attention's products of activations and the softmax between them, forward and backward."""
    return sum(float(o.placed.seconds) for o in result if o.id in _ATTENTION)


def fused(with_fusion: Sequence[LayerOperation], without: Sequence[LayerOperation]) -> str:
    """What fusing attention saves."""
    fast, slow = (format_duration(attention_seconds(result), 3) for result in (with_fusion, without))
    return (
        f"Scores, softmax and values of this layer, forward and backward, take at best **{fast}** fused and **{slow}** "
        "unfused: then the scores go to memory and back, and those that the mask hides are computed too."
    )


def below_16bit(dtype: str, wide: str, *, mixture: bool) -> str:
    """What runs in a dtype below 16 bits and what does not; empty where there is no such division."""
    if dtype == wide:
        return ""
    recipe = "as in" if dtype == "fp8" else "as with fp8 in"
    return (
        f"**Only the products with a layer’s weights run in {dtype}**, and they write {wide}; scores, softmax and "
        f"values, norms{', the router' if mixture else ''} and the output head stay in {wide} or wider, {recipe} "
        "DeepSeek-V3."
    )


LOW_PRECISION_SOURCE = DEEPSEEK_V3.at("section 3.3.1")
"""Where the division of `below_16bit` is from."""
