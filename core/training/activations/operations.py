"""Per-operation recomputation: every second matrix product of a layer is kept, the rest is done again.

The policy is torchtitan's: kept are a layer's input, what the attention kernel gives, the first, third, fifth ...
matrix product, and what collectives bring in. The rest is done again while backward goes through the layer: norms,
rotation, gates, the other products, the router, and routed experts, whose grouped products are no plain ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from core.limits import cached
from core.models.operation import Dispatch, GroupedLinear, Linear, Op
from core.models.spec import TransformerSpec
from core.training.activations.saved import ATTENTION_BLOCKS, layer_operations, owner_of, part_of, split_of
from core.training.activations.tensors import FP32, Implementation, LayerKind, SavedTensor, Split
from core.training.layout import Layout

Sent: TypeAlias = Literal["", "tensor", "expert"]
"""What brings a tensor in: nothing, tensor parallelism, expert parallelism."""


_NAMES: Mapping[str, str] = {
    "self_attn.q_a_proj": "query latent",
    "self_attn.q_proj": "queries",
    "self_attn.q_b_proj": "queries",
    "self_attn.kv_a_proj_with_mqa": "key/value latent",
    "self_attn.kv_b_proj": "keys and values",
    "self_attn.k_proj": "keys",
    "self_attn.v_proj": "values",
    "self_attn.g_proj": "attention gate",
    "self_attn.o_proj": "attention’s output",
    "mamba.in_proj": "state’s first projection",
    "mamba.out_proj": "state’s output",
}


def _matmuls(spec: TransformerSpec, kind: LayerKind) -> list[Linear]:
    """The matmuls of one layer with weights, without the router and the gate of shared experts.

    Where some layers have a state in place of attention, those of both follow each other.
    """
    ops = (op for op in layer_operations(spec, kind) if isinstance(op, Linear))
    return [op for op in ops if op.block != "moe" or {op.reads[0].split, op.makes[0].split} != {"sequence"}]


def _share(spec: TransformerSpec, op: Op) -> float:
    """Share of the layers that have an operation of attention, or of what replaces it."""
    return op.layers / spec.layers if op.block in ATTENTION_BLOCKS else 1.0


def _flop(spec: TransformerSpec, op: Linear) -> float:
    return 2.0 * op.copies * op.reads[0].width * op.makes[0].width * _share(spec, op)


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

    def one(op: Op, name: str, split: Split, *, routed: bool = False) -> SavedTensor:
        (made,) = op.makes
        elements = made.width * made.copies * _share(spec, op)
        return SavedTensor(name, part_of(op), elements, width, split, routed=routed)

    tensors = [KeptTensor(SavedTensor("layer input", "norms", spec.hidden, residual or width, "sequence"))]
    if implementation.flash:
        heads = spec.attention_share * spec.heads
        tensors.append(KeptTensor(SavedTensor("log-sum-exp", "attention", heads, FP32)))
        given = heads * spec.value_dim
        tensors.append(KeptTensor(SavedTensor("attention kernel’s output", "attention", given, width)))
    plain = [op for op in _matmuls(spec, kind) if not isinstance(op, GroupedLinear)]
    for op in plain[::2]:
        split = split_of(spec, op.makes[0].split)
        tensors.append(KeptTensor(one(op, _name(op), "whole" if split == "sequence" else split)))
    summed = [op for op in plain if (op.reads[0].split, op.makes[0].split) == ("tensor", "sequence")]
    tensors += [KeptTensor(one(op, f"{_name(op)}, summed", "sequence"), "tensor") for op in summed]
    for op in (op for op in layer_operations(spec, kind) if isinstance(op, Dispatch)):
        both = (one(op, f"expert {way}", "sequence", routed=True) for way in ("inputs", "outputs"))
        tensors += [KeptTensor(tensor, "expert") for tensor in both]
    return tuple(tensors)


def _name(op: Op) -> str:
    return _NAMES.get(op.name) or owner_of(op.makes[0]) + op.name.rpartition(".")[2].removesuffix("_proj")


def flop_again(spec: TransformerSpec) -> float:
    """FLOPs of matrix products that per-operation recomputation does again, per token, over all layers.

    The last product of a layer is spared even where it is not kept: backward through the layer never reads it.
    """
    total = 0.0
    kinds: tuple[tuple[LayerKind, int], ...] = (("dense", spec.dense_layers), ("experts", spec.moe_layers))
    for kind, layers in kinds:
        result = _matmuls(spec, kind) if layers else []
        spared = {*[op for op in result if not isinstance(op, GroupedLinear)][::2], *result[-1:]}
        total += layers * sum(_flop(spec, op) for op in result if op not in spared)
    return total
