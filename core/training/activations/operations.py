"""Per-operation recomputation: every second matrix product of a layer is kept, the rest is done again.

The policy is torchtitan's: kept are a layer's input, what the attention kernel gives, the first, third, fifth ...
matrix product, and what collectives bring in. The rest is done again while backward goes through the layer: norms,
rotation, gates, the other products, the router, and routed experts, whose grouped products are no plain ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from core.limits import cached
from core.models.components import weight_flop
from core.models.operation import (
    AttentionCore,
    Dispatch,
    GroupedLinear,
    Linear,
    Op,
    Route,
    ends_block,
    until_ends,
)
from core.models.spec import TransformerSpec
from core.training.activations.saved import ATTENTION_BLOCKS, layer_operations, part_of
from core.training.activations.tensors import FP32, Implementation, LayerKind, SavedTensor, Split
from core.training.layout import Layout
from core.training.trained import class_of, most_ranks

Sent: TypeAlias = Literal["", "tensor", "expert"]
"""What brings a tensor in: nothing, tensor parallelism, expert parallelism."""

_ROUNDED = 1e-9
"""Share of layers that is none."""


def _layers(spec: TransformerSpec, kind: LayerKind) -> Iterator[tuple[float, list[Linear]]]:
    """Yield the matmuls that a layer runs one after the other, without the router and the gate of shared experts.

    Once for each kind of attention, or of a state in its place, with each network, and the share of layers that are so.
    """
    ops = layer_operations(spec, kind)
    chosen = {op.reads[0] for op in ops if isinstance(op, Route)}
    matmuls = [op for op in ops if isinstance(op, Linear) and op.makes[0].width > 1 and op.makes[0] not in chosen]
    *attended, last = until_ends(op for op in matmuls if op.block in ATTENTION_BLOCKS)
    *networks, _ = until_ends(op for op in matmuls if op.block == "dense")
    if kind == "experts":
        networks = [[op for op in matmuls if op.block == "moe"]]
    if spec.mixer and spec.mixer.parallel:
        attended = [[op for part in attended for op in part]]
    for share, first in _shared(spec, attended):
        for also, second in _shared(spec, networks):
            yield share * also, [*first, *second, *last]


def _shared(spec: TransformerSpec, parts: list[list[Linear]]) -> Iterator[tuple[float, list[Linear]]]:
    """Yield each part with the share of layers that run it, and an empty one for layers that run none."""
    rest = 1.0
    for part in parts:
        rest -= _share(spec, part[-1])
        yield _share(spec, part[-1]), part
    if rest > _ROUNDED:
        yield rest, []


def _kept(spec: TransformerSpec, kind: LayerKind, *, last: bool = False) -> dict[Op, float]:
    """Return the share of its layers in which each matmul is kept. last: that a layer ends with counts as kept, too."""
    kept, run = defaultdict[Op, float](float), defaultdict[Op, float](float)
    for share, matmuls in _layers(spec, kind):
        plain = [op for op in matmuls if not isinstance(op, GroupedLinear)][::2]
        for op in matmuls:
            run[op] += share
            kept[op] += share * (op in plain or (last and op is matmuls[-1]))
    return {op: kept[op] / share for op, share in run.items()}


def _share(spec: TransformerSpec, op: Op) -> float:
    """Share of the layers of a kind that have an operation."""
    there = spec.dense_layers if op.block == "dense" else spec.moe_layers if op.block == "moe" else spec.layers
    return op.layers / there


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """A tensor that per-operation recomputation keeps, and what brings it in."""

    tensor: SavedTensor
    sent: Sent = ""

    def present(self, layout: Layout) -> Any:
        """1 where the layout has it: what is brought in there is only where ranks share the work."""
        if self.sent == "tensor":
            # Without sequence parallelism sums come from all-reduces, which the policy does again.
            return np.greater(layout.tensor, 1) * np.asarray(layout.sequence_parallel)
        return np.greater(layout.expert, 1) * 1 if self.sent else 1


@cached("results_kept")
def kept_by_operation(
    spec: TransformerSpec, implementation: Implementation, kind: LayerKind, width: int, residual: int | None = None
) -> tuple[KeptTensor, ...]:
    """What one layer keeps under per-operation recomputation. width, residual: as `saved_tensors` has them."""

    def one(op: Op, name: str, split: Split, share: float, *, routed: bool = False) -> SavedTensor:
        (made,) = op.makes
        return SavedTensor(name, part_of(op), made.width * made.copies * share, width, split, routed=routed)

    ops = layer_operations(spec, kind)
    tensors = [KeptTensor(SavedTensor("layer input", "norms", spec.stream_width, residual or width, "sequence"))]
    if implementation.flash:
        cores = [op for op in ops if type(op) is AttentionCore and op.every == 1]
        heads = sum(_share(spec, op) * op.heads for op in cores)
        given = sum(_share(spec, op) * op.makes[0].width for op in cores)
        tensors.append(KeptTensor(SavedTensor("log-sum-exp", "attention", heads, FP32)))
        tensors.append(KeptTensor(SavedTensor("attention kernel’s output", "attention", given, width)))
    kept = _kept(spec, kind)
    for op in (op for op in ops if kept.get(op) and not isinstance(op, GroupedLinear)):
        split, share = most_ranks(op.makes[0].split, ops[ops.index(op) :]), kept[op] * _share(spec, op)
        tensors.append(KeptTensor(one(op, class_of(op.name), split, share)))
    summed = [op for op in ops if ends_block(op)]
    tensors += [
        KeptTensor(one(op, f"{class_of(op.name)}, summed", "sequence", _share(spec, op)), "tensor") for op in summed
    ]
    for op in (op for op in ops if isinstance(op, Dispatch)):
        both = (one(op, f"expert {way}", "sequence", 1.0, routed=True) for way in ("inputs", "outputs"))
        tensors += [KeptTensor(tensor, "expert") for tensor in both]
    return tuple(tensors)


def flop_again(spec: TransformerSpec) -> float:
    """FLOPs of matrix products that per-operation recomputation does again, per token, over all layers.

    The last product of a layer is spared even where it is not kept: backward through the layer never reads it.
    """
    kinds: tuple[tuple[LayerKind, int], ...] = (("dense", spec.dense_layers), ("experts", spec.moe_layers))
    return sum(
        layers * _share(spec, op) * weight_flop(op) * (1.0 - kept)
        for kind, layers in kinds
        if layers
        for op, kept in _kept(spec, kind, last=True).items()
    )
