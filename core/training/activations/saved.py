"""Which tensors the forward pass of one layer keeps for the backward pass, by name, for named implementations.

No operation says what is kept. One rule for each kind says what its backward pass reads, and each tensor that is read
is kept once.

The policy is torchtitan's: kept are a layer's input, what the attention kernel gives, the first, third, fifth ...
matrix product, and what collectives bring in. The rest is done again while backward goes through the layer: norms,
rotation, gates, the other products, the router, and routed experts, whose grouped products are no plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import mul
from typing import Any

from core.models import operation as ops
from core.models.operations import collapse_streams, operations
from core.models.spec import Kept, TransformerSpec, modelled
from core.training.activations.tensors import (
    DELTA_CHUNK,
    FP32,
    NOTHING,
    Implementation,
    LayerKind,
    Part,
    SavedTensor,
    Split,
    written_as_gpt2,
)
from core.training.layout import MODULES, LayerModule
from core.training.trained import class_of, most_ranks

_INDEX = 8
_MASK = 1

_NAMES: Mapping[str, str] = {
    "input_layernorm": "norm 1",
    "pre_feedforward_layernorm": "norm 2",
    "post_attention_layernorm": "norm 3",
    "post_feedforward_layernorm": "norm 4",
    "norm": "final norm",
    "self_attn.q_norm": "query norm",
    "self_attn.k_norm": "key norm",
    "self_attn.v_norm": "value norm",
    "self_attn.q_a_layernorm": "query latent norm",
    "self_attn.kv_a_layernorm": "key/value latent norm",
    "self_attn.g_proj": "attention gate",
    "attn_output": "attention output",
    "gated": "gated output",
    "mamba.in_proj": "state: first projection",
    "mamba.conv1d": "state: convolution",
    "mamba.scan": "state: output",
    "mamba.gate": "state: gated output",
    "dispatched": "expert inputs",
    "mlp.experts.down_proj": "expert outputs",
    "mlp.shared_expert.down_proj": "shared experts’ output",
}
"""Norm, or tensor, by its name in the list of operations → the name that is displayed."""

_NETWORK: Mapping[bool, Mapping[str, str]] = {
    True: {"gate_proj": "gate", "up_proj": "up", "act": "silu(gate)", "glu": "product"},
    False: {"up_proj": "activation input", "act": "activation output"},
}
"""The same inside a feed-forward network, gated or not."""

ATTENTION_BLOCKS = ("layer", "mixer")
_DROPPED = ("layernorm", "act", "mla_up_proj")
"""Modules each of whose outputs is dropped and made again; of the others what is read outside of them stays."""


def layer_operations(spec: TransformerSpec, kind: LayerKind) -> tuple[ops.Op, ...]:
    """Return the operations of a layer, of attention and of a state where some layers have either."""
    fed = "moe" if kind == "experts" else "dense" if spec.ffn or spec.networks else ""
    return tuple(op for op in operations(spec) if op.block in (*ATTENTION_BLOCKS, fed))


def saved_tensors(
    spec: TransformerSpec,
    implementation: Implementation,
    kind: LayerKind = "dense",
    *,
    width: int = 2,
    residual: int | None = None,
) -> tuple[SavedTensor, ...]:
    """The tensors that one layer of ``spec`` keeps, in the order in which they are made.

    kind: "experts" for a layer with a mixture of experts.  width: bytes of an element of the format computed in.
    residual: of the residual stream; wider than that under autocast, where products cast what they read. None: as wide.
    """
    saved = _Saved(modelled(spec), implementation, width, residual or width, layer_operations(spec, kind))
    if spec.kept and implementation.written_out and not implementation.partly:
        flash = implementation.flash
        return tuple(_as_recorded(one, width) for one in spec.kept if one.part != "keys" or not flash)
    if (partly := implementation.partly) is None:
        return saved.tensors()
    added = (
        SavedTensor(name, "feed-forward" if _inside(target) else "attention", elements, each, by=_inside(target))
        for name, target, elements, each in partly.adapter_tensors(width, kind == "experts")
    )
    return (*saved.tensors(), *added)


def _inside(target: str) -> LayerModule:
    """The module of the feed-forward part that a class of matrices is in; none of attention's."""
    if target.startswith(("expert ", "shared experts", "router")):
        return LayerModule.MOE
    return LayerModule.MLP if target.startswith("feed-forward") else NOTHING


def final_tensors(
    spec: TransformerSpec, implementation: Implementation, *, width: int = 2, residual: int | None = None
) -> tuple[SavedTensor, ...]:
    """What stands between the last layer and the logits: the final norm, whose output is the head's input.

    Models without a final norm are counted as if they had one.
    """
    head = ops.Writer([], "head")
    streams = head.tensor("residual", spec.stream_width, stream=True)
    read = head.norm("norm", collapse_streams(head, spec, streams, spec.streams), spec.norm_vectors)
    head.linear("lm_head", read, spec.vocab, "tensor")
    return _Saved(spec, implementation, width, residual or width, tuple(head.written)).tensors()


class _Saved:
    """Collects what the backward passes of operations read: each tensor once, whatever number of them reads it."""

    def __init__(
        self, spec: TransformerSpec, how: Implementation, width: int, residual: int, written: tuple[ops.Op, ...]
    ) -> None:
        self.spec, self.how, self.width, self.residual, self.ops = spec, how, width, residual, written
        self.maker = {made: op for op in written for made in op.makes}
        self.seen: set[ops.Tensor] = set()
        self.rows: dict[tuple[str, Split], SavedTensor] = {}
        self.gpt2 = written_as_gpt2(spec, how)
        self.scans = [op for op in written if isinstance(op, ops.Scan)]

    def tensors(self) -> tuple[SavedTensor, ...]:
        """Return what all operations keep, without tensors that partial training leaves empty."""
        for op in self.ops:
            self.read(op)
        return tuple(row for row in self.rows.values() if row.elements)

    def read(self, op: ops.Op) -> None:
        """Keep what the backward pass of one operation reads."""
        match op:
            case ops.Norm() if op.block != "mixer":
                self.norm(op)
            case ops.Linear():
                self.matmul(op)
            case ops.IndexCore():
                pass  # It is trained apart, on what it chose.
            case ops.AttentionCore():
                self.attention(op)
            case ops.Convolution():
                self.keep(self.source(op.reads[0]), op)
                if self.how.written_out or any(isinstance(scan, ops.DeltaRule) for scan in self.scans):
                    self.keep(op.makes[0], op)
            case ops.Scan():
                if isinstance(op, ops.DeltaRule):
                    self.add("state: products of keys in a chunk", op, DELTA_CHUNK * op.heads, self.width)
                self.keep(op.makes[0], op)
                for decay in op.reads[2:]:
                    self.keep(decay, op)
            case ops.Activation():
                self.activation(op)
            case ops.Multiply() if op.block != "mixer":
                self.multiply(op)
            case ops.Multiply() if all(isinstance(scan, ops.ChannelDeltaRule) for scan in self.scans):
                for x in op.reads:
                    self.keep(self.source(x), op)
            case ops.Route():
                self.add("router probabilities", op, op.reads[0].width, FP32, "sequence", part="router")
                self.add("weights of the chosen experts", op, op.makes[0].width, FP32, "sequence", part="router")
                self.add("chosen experts", op, op.makes[0].width, _INDEX, "sequence", part="router")
            case ops.Dispatch():
                self.add("token order", op, op.copies, _INDEX, "expert", part="router")
            case ops.Combine():
                (y, _) = op.reads
                if not self.how.weighs_inside:
                    self.keep(y, op)
                if self.how.written_out and not self.how.grouped_experts:
                    self.add("weighted outputs", op, y.copies * y.width, self.residual, "expert")
            case ops.Add() if self.how.dropout and op.makes[0].stream and op.block != "mixer":
                self.add(f"{part_of(op)} dropout mask", op, op.makes[0].width, _MASK, "sequence")
            case _:
                pass

    def norm(self, op: ops.Op) -> None:
        """Its input; written out, an RMSNorm keeps a copy in fp32 and the normed value before the gain in its place."""
        (x,), name = op.reads, _NAMES.get(op.name) or class_of(op.name)
        given = self.residual if x.stream else self.width
        if not self.how.written_out or self.spec.norm != "rmsnorm":
            self.keep(x, op, f"{name} input", each=given, part=part_of(op))
            return
        fed = 1.0 - self.how.partly.unfed_share if self.how.partly and name == "norm 1" else 1
        # A norm that is done again starts from its input as it was given.
        self.add(f"{name} input in fp32", op, x.width, FP32, x.split, kept=given / FP32, share=fed)
        if op.weights:
            share = self.trained(op.weights[0].name)
            self.add(f"{name} before the gain", op, x.width, given, x.split, share=share)

    def matmul(self, op: ops.Op) -> None:
        """Its input, for the gradient of its weight; under autocast a cast for each matmul, unless they share it."""
        x = op.reads[0]
        if x in self.seen:
            return
        readers = [other for other in self.ops if isinstance(other, ops.Linear) and x in other.reads]
        often = [self.layers(reader) for reader in readers]
        casts = sum(often) / self.layers(x)
        if self.gpt2 and op.block == "layer":
            casts = max(1, casts - 2)  # Queries, keys, and values are one matrix.
        if self.residual == self.width or self.how.shares_casts or isinstance(op, ops.GroupedLinear):
            casts = 1
        maker = self.maker.get(x)
        normed = maker if isinstance(maker, ops.Norm) else None
        name = (
            f"{_NAMES.get(normed.name) or class_of(normed.name)} output"
            if normed
            else f"{part_of(op)} input"
            if x.stream
            else self.name(x)
        )
        trained = [self.trained(reader.weights[0].name) for reader in readers]
        share = max(trained)
        if casts > 1 and self.how.partly:
            share = sum(map(mul, trained, often)) / self.layers(x) / casts
        name += f", a cast for each of {casts:.3g} products" * (casts > 1)
        self.keep(x, op, name, part=part_of(normed or op), share=share, times=casts)

    def attention(self, op: ops.AttentionCore) -> None:
        """Queries, keys, and values, with scores or, from a flash kernel, with the output and a number per head."""
        q, k, v = op.reads
        (y,), width, flash = op.makes, self.width, self.how.flash
        if self.how.written_out and flash and isinstance(self.maker[v], ops.View):
            v = self.maker[v].reads[0]  # a view of a matmul that also holds keys, and keeps it alive
        for x, name in ((q, "queries"), (k, "keys"), (v, "values")):
            self.keep(x, op, name, by=self.modules(x, op) & LayerModule.MLA_UP_PROJ)
        if flash and op.every > 1:
            return
        if flash:
            self.add("log-sum-exp", op, op.heads, FP32)
            if self.how.written_out and self.spec.latent:
                # Queries joined from two parts lie head by head, and so does the output, which is then copied token by
                # token for the next product.
                self.add("attention output by head", op, y.width, width)
            self.keep(y, op, by=NOTHING)
            return
        if op.kv_heads != op.heads:
            self.add("keys and values, repeated", op, op.heads * (op.key_dim + op.value_dim) - k.width - v.width, width)
        # GPT-2's softmax is in the format of its scores, which autocast's mask turns into fp32.
        if self.how.written_out and (self.residual > width or not self.gpt2) and width < FP32:
            self.add("softmax in fp32", op, op.heads, FP32, per_key=True)
        self.add("softmax", op, op.heads, width, per_key=True)
        if self.how.dropout:
            self.add("weights’ dropout mask", op, op.heads, _MASK, per_key=True)
            self.add("weights after dropout", op, op.heads, width, per_key=True)

    def activation(self, op: ops.Op) -> None:
        """Its input; GELU in single steps keeps more."""
        (x,) = op.reads
        width = self.element(x)
        if self.spec.glu:
            self.keep(x, op)
            return
        # The third power is taken of a cast, and all that follows from it is as wide. The input stays, whatever is
        # computed again.
        wide = FP32 if self.gpt2 and self.how.autocasts else width
        self.keep(x, op, each=wide, by=self.modules(x, op) | LayerModule.ACT, kept=width / wide)
        if self.gpt2:
            owner, elements = owner_of(x), x.copies * x.width
            self.add(f"{owner}half of GELU’s input", op, elements, width, x.split)
            self.add(f"{owner}steps of GELU", op, 2 * elements, wide, x.split)

    def multiply(self, op: ops.Op) -> None:
        """Both factors; one kernel for a gate computes the activation function again."""
        wide = [x for x in op.reads if x.width == op.makes[0].width] or op.reads
        for x in wide:
            maker = self.maker.get(x)
            if self.how.written_out or not isinstance(maker, ops.Activation):
                # Scores in memory leave the output to the next matmul, even where a gate reads it first.
                square = isinstance(maker, ops.AttentionCore) and not self.how.flash
                share = self.trained("self_attn.o_proj") if square else 1
                self.keep(x, op, share=share)

    def layers(self, of: ops.Op | ops.Tensor) -> float:
        """In how many layers it is, were the network of all layers of the kind at hand."""
        if isinstance(of, ops.Tensor) and of.stream:
            norms = (op for op in self.ops if isinstance(op, ops.Norm) and of in op.reads)
            return min(sum(map(self.layers, norms)) or self.spec.layers, self.spec.layers)
        if of.block in ATTENTION_BLOCKS:
            return of.layers
        return self.spec.layers * (of.layers / self.spec.dense_layers if of.block == "dense" else 1)

    def trained(self, weight: str) -> float:
        """The share of layers in which the gradient of a weight, or an adapter, reads what the weight multiplies."""
        return self.how.partly.read_share(class_of(weight)) if self.how.partly else 1

    def modules(self, x: ops.Tensor, op: ops.Op) -> LayerModule:
        """The modules whose recomputation regenerates a tensor for ``op``."""
        names = () if x.stream else (name for name in x.modules if name in _DROPPED or name in op.makes[0].modules)
        return LayerModule(sum(MODULES[name] for name in names))

    def element(self, x: ops.Tensor) -> int:
        """Bytes of an element; autocast leaves PyTorch's grouped matmuls in fp32."""
        return self.residual if x.split.startswith("expert") and self.how.grouped_experts else self.width

    def name(self, x: ops.Tensor) -> str:
        """The displayed name of a tensor."""
        inside = _NETWORK[self.spec.glu].get(x.name.rpartition(".")[2])
        return _NAMES.get(x.name) or (owner_of(x) + inside if inside else class_of(x.name))

    def source(self, x: ops.Tensor) -> ops.Tensor:
        """The tensor that ``x`` is a part of, or ``x`` itself."""
        maker = self.maker.get(x)
        return maker.reads[0] if isinstance(maker, ops.View) else x

    def keep(
        self, x: ops.Tensor, op: ops.Op, name: str = "", *, each: int = 0, by: LayerModule | None = None, **rest: Any
    ) -> None:
        """Keep a tensor that ``op`` reads, unless something keeps it already."""
        if x not in self.seen:
            self.seen.add(x)
            by = self.modules(x, op) if by is None else by
            elements, layers = x.copies * x.width, self.layers(x)
            self.add(name or self.name(x), op, elements, each or self.element(x), x.split, by=by, layers=layers, **rest)

    def add(
        self,
        name: str,
        op: ops.Op,
        elements: int,
        each: int,
        split: ops.Split = "tensor",
        *,
        part: Part | None = None,
        by: LayerModule | None = None,
        kept: float = 0.0,
        per_key: bool = False,
        layers: float = 0,
        share: float = 1,
        times: float = 1,
    ) -> None:
        """Keep what ``op`` reads or makes for its backward pass, in some layers of all."""
        mean = elements * share * times * (layers or self.layers(op)) / self.spec.layers
        by = self.modules(op.makes[0], op) if by is None else by
        # Expert parallelism divides the tokens of experts.
        divided: Split = "sequence"
        if split not in ("sequence", "whole", "expert"):
            divided = most_ranks(split, self.ops[self.ops.index(op) :])
        if earlier := self.rows.get((name, divided)):
            mean += earlier.elements
        self.rows[name, divided] = SavedTensor(
            name, part or part_of(op), mean, each, divided, by, kept, per_key, split.startswith("expert")
        )


def part_of(op: ops.Op) -> Part:
    """The part of a layer that an operation belongs to."""
    if isinstance(op, ops.Norm) and not op.name.startswith("self_attn"):
        return "norms"
    return "attention" if op.block in ATTENTION_BLOCKS else "feed-forward"


def owner_of(x: ops.Tensor) -> str:
    """The experts that a tensor of a feed-forward network belongs to, as the first words of its name."""
    return "experts’ " if x.split == "expert tensor" else "shared experts’ " if "moe" in x.modules else ""


_RECORDED: Mapping[str, tuple[str, Part, LayerModule]] = {
    "norms": ("recorded in norms", "norms", LayerModule.LAYERNORM),
    "attention": ("recorded in attention", "attention", NOTHING),
    "keys": ("recorded scores", "attention", LayerModule.CORE_ATTN),
    "network": ("recorded in networks", "feed-forward", LayerModule.MLP | LayerModule.MOE),
}
"""Part of a layer → name, part, and the modules whose recomputation drops what it saves."""


def _as_recorded(one: Kept, width: int) -> SavedTensor:
    """What was recorded of a model that ran, of which no more is known than its part of the layer."""
    name, part, by = _RECORDED[one.part]
    name, each = (f"{name}, in fp32", FP32) if one.wide else (name, width)
    split: Split = "sequence" if one.part == "norms" else math.inf
    return SavedTensor(name, part, one.elements, each, split, by, per_key=one.part == "keys")
