"""Tensor views, the panel on named axes: an einops pattern as operations, an einsum as the matmul it becomes."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from core.messages import message
from core.tensors.named_axes.calls import plans_of
from core.tensors.named_axes.contraction import OperandPlan, Pair
from core.tensors.named_axes.einsums import EinsumPlan
from core.tensors.named_axes.patterns import PatternPlan, PatternStage
from core.tensors.tracing.steps import Trace
from pages.common import show
from pages.common.show import rich
from pages.tensors.inputs import TensorInputs, presets_of, why_of

_COLOURS = 6
_BADGES = {"view": "optimizer", "copy": "activations", "new": "activations"}


def named_axes(inputs: TensorInputs, run: Trace) -> None:
    """Draw every call of einops or einsum in the page's code, on the layouts that its tensors really had."""
    if lit := inputs.presets(presets_of("named"), into=show.slot(), key="calls"):
        show.note(why_of(lit))
    plans = plans_of(run)
    if not plans:
        show.note(message("axes.none"))
    for step, plan in plans:
        show.note(message("axes.code", call=step.source.removeprefix(".")))
        if isinstance(plan, PatternPlan):
            pattern(plan)
        else:
            einsum(plan)
    if plans:
        show.how(lambda: plans[-1][1].explanations, key="t:named:how", label=message("axes.how"))


class _Ink:
    """One color per axis name, in the order in which the names appear."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self.order.setdefault(name, len(self.order)) % _COLOURS

    def axis(self, name: str, size: int | None, kind: str = "") -> str:
        """Return one axis as a box: its name, and its size where it is known."""
        count = "" if size is None else f"<b>{size}</b>"
        return f'<span class="axis a{self.of(name)} {kind}">{html.escape(name)}{count}</span>'


def pattern(plan: PatternPlan) -> None:
    """Draw the pattern drawn as axes, and every operation that it becomes, each a view or a copy."""
    ink = _Ink()
    rows = "".join(_stage(stage, plan.sizes, ink) for stage in plan.stages)
    show.takeaway(" ".join(plan.headline))
    st.html(f'<div class="np-axes">{rows}</div>')


def _stage(stage: PatternStage, sizes: Mapping[str, int], ink: _Ink) -> str:
    dims = "".join(
        f'<span class="dim">{"".join(ink.axis(name, sizes.get(name)) for name in _names(dim))}</span>'
        for dim in stage.dims
    )
    dims = dims or message("axes.drawn.element")
    facts = message("axes.drawn.layout", shape=stage.layout.shape, strides=stage.layout.stride)
    cost = "" if stage.effect == "start" else _badge(stage.effect, stage.bytes)
    return (
        f'<div class="row"><code>{html.escape(stage.call)}</code><span class="dims">{dims}</span>'
        f'<span class="facts">{rich(facts)}</span>{cost}<small>{rich(stage.reason)}</small></div>'
    )


def _names(dim: str) -> Sequence[str]:
    return dim.strip("()").split()


_EFFECTS = {"view": "axes.drawn.view", "copy": "axes.drawn.copy", "new": "axes.drawn.new"}


def _badge(effect: str, size: int) -> str:
    word = message(_EFFECTS[effect], bytes=float(size))
    return f'<span class="np-badge" style="color:var(--np-{_BADGES[effect]})">{word}</span>'


def einsum(plan: EinsumPlan) -> None:
    """Draw the equation drawn as axes, the names it sums, and each product as the matmul that torch runs."""
    ink = _Ink()
    summed = set(plan.summed)
    rows = [
        _operand(message("axes.drawn.operand", number=float(number)), names, plan.sizes, ink, summed)
        for number, names in enumerate(plan.operands)
    ]
    rows.append(_operand(message("axes.drawn.result"), plan.output, plan.sizes, ink, ()))
    if summed:
        over = "".join(ink.axis(name, plan.sizes[name], "gone") for name in plan.summed)
        rows.append(
            f'<div class="row"><code>{message("axes.drawn.summed")}</code><span class="dims">Σ {over}</span></div>'
        )
    rows += [_pair(pair, plan, ink) for pair in plan.pairs]
    show.takeaway(" ".join(plan.headline))
    st.html(f'<div class="np-axes">{"".join(rows)}</div>')


def _operand(label: str, names: Iterable[str], sizes: Mapping[str, int], ink: _Ink, summed: Iterable[str]) -> str:
    gone = set(summed)
    boxes = "".join(
        f'<span class="dim">{ink.axis(name, sizes[name], "gone" if name in gone else "")}</span>' for name in names
    )
    shape = message("axes.drawn.shape", shape=[sizes[name] for name in names])
    return (
        f'<div class="row"><code>{label}</code><span class="dims">{boxes or message("axes.drawn.element")}</span>'
        f'<span class="facts">{rich(shape)}</span></div>'
    )


def _pair(pair: Pair, plan: EinsumPlan, ink: _Ink) -> str:
    if not pair.sides:
        return (
            f'<div class="row"><code>multiply</code><span class="dims">{message("axes.drawn.elementwise")}</span>'
            f'<span class="facts">{rich(message("axes.drawn.flop", flop=float(pair.flop)))}</span></div>'
        )
    roles = "".join(
        f'<span class="role"><em>{role}</em>{"".join(ink.axis(name, plan.sizes[name]) for name in names) or "1"}</span>'
        for role, names in (("B", pair.batch), ("M", pair.rows), ("K", pair.inner), ("N", pair.columns))
    )
    sides = "".join(
        f'<div class="row"><code>{message(name)}</code><span class="dims">{_ready(side)}</span>'
        f"{_badge('copy' if side.copied else 'view', side.layout.numel * plan.element_size * side.copied)}"
        f"<small>{rich(side.reason)}</small></div>"
        for name, side in zip(("axes.drawn.left", "axes.drawn.right"), pair.sides, strict=True)
    )
    call = message("axes.drawn.call", call=pair.call, flop=float(pair.flop))
    return (
        f'<div class="row"><code>{"bmm" if pair.sizes[0] > 1 else "mm"}</code><span class="dims">{roles}</span>'
        f'<span class="facts">{rich(call)}</span></div>{sides}'
    )


def _ready(side: OperandPlan) -> str:
    order = f".permute{side.permute}" if side.permute else ""
    return f"<code>{html.escape(order)}.reshape{side.layout.shape}</code>"
