"""Operations of a model: what each reads, makes, and multiplies by, and the writer that puts them in a list.

Operations are named as in transformers. How they are executed (fused kernels, dropout, saved copies) is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

Split: TypeAlias = Literal["whole", "sequence", "tensor", "kv", "expert", "expert tensor"]
"""What divides a tensor or a weight: nothing, sequence parallelism, tensor parallelism, those of its ranks that hold
different key/value heads, expert parallelism, or expert and expert-tensor parallelism."""

Block: TypeAlias = Literal["embedding", "layer", "mixer", "dense", "moe", "mtp", "head"]
"""Part of the model that repeats an operation. Attention and the norms around it are in ``layer``, what replaces
attention in ``mixer``, and feed-forward networks with their norms in ``dense`` or ``moe``."""

Module: TypeAlias = Literal["core_attn", "layernorm", "act", "mla_up_proj", "mlp", "moe"]
"""Part of a layer that recomputation can regenerate, as Megatron-Core names it."""

WeightKind: TypeAlias = Literal["matrix", "vector", "embedding", "head", "expert matrix"]
"""Weights that an optimizer may treat differently: matrices, norms and biases, both ends, and routed experts."""


@dataclass(frozen=True, slots=True)
class Weight:
    """``count`` learned tensors of one shape in each layer that runs the operation. A vector has one column.

    shared: another operation holds the same tensor, as with a tied output head.
    """

    name: str
    rows: int
    columns: int
    count: int
    split: Split
    kind: WeightKind
    shared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An activation. Two operations that read the same tensor read the same object.

    width: elements per token, in each of ``copies`` (one for each expert that a token runs). layers: layers that have
    it. stream: whether it is the residual stream. modules: parts of the layer whose recomputation regenerates it.
    """

    name: str
    width: int
    split: Split
    block: Block
    layers: int
    copies: int
    stream: bool
    modules: tuple[Module, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An operation. layers: how often the model runs it for one token, in each of ``copies``."""

    name: str
    block: Block
    layers: int
    copies: int
    reads: tuple[Tensor, ...]
    makes: tuple[Tensor, ...]
    weights: tuple[Weight, ...]


class Lookup(Op):
    """One row of a table."""


class LayerLookup(Lookup):
    """One row of a table that layers look up for themselves, beside that of tokens. None of it is active."""


class Tower(Op):
    """What reads images or sound. No token of text runs through it, and what it computes is not counted."""


class Linear(Op):
    """A matmul with a weight, the first of its weights, and perhaps a bias."""


class GroupedLinear(Linear):
    """A matmul with the weights of those routed experts that the token runs."""


class Logits(Linear):
    """The matmul of the output head."""


class Norm(Op):
    """RMSNorm or LayerNorm."""


class Rope(Op):
    """Rotary position embedding."""


class Activation(Op):
    """The activation function of a feed-forward network."""


class Multiply(Op):
    """An elementwise product, as of a gate."""


class Add(Op):
    """An elementwise sum, as of the residual stream."""


class View(Op):
    """Parts of a tensor, or several side by side."""


class Route(Op):
    """The choice of experts from the router's logits."""


class Dispatch(Op):
    """Each token sent to its experts."""


class Combine(Op):
    """The weighted sum of what a token's experts return."""


class Loss(Op):
    """Cross-entropy."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCore(Op):
    """Attention score and value matmuls with the softmax between them.

    window: last tokens that each token attends to; 0 without a window. chosen: tokens that an indexer leaves it, 0 for
    all. every: tokens that one key stands for. cached: what decoding stores of each token.
    """

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    cached: tuple[Tensor, ...]
    window: int = 0
    chosen: int = 0
    every: int = 1


class IndexCore(AttentionCore):
    """The scores by which a token chooses the tokens that it attends to."""


@dataclass(frozen=True, slots=True, eq=False)
class Convolution(Op):
    """A short causal convolution, each channel with its own ``kernel`` weights."""

    kernel: int


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Op):
    """The state moved on by one token and read.

    state: numbers of the state per channel, each of which takes ``flop`` FLOPs. heads: of the values. groups: heads
    that write and read it.
    """

    state: int
    flop: int
    heads: int
    groups: int


class DeltaRule(Scan):
    """The gated delta rule, with a decay per head."""


class ChannelDeltaRule(DeltaRule):
    """The gated delta rule with a decay per channel (Kimi Linear)."""


AnyOp = TypeVar("AnyOp", bound=Op)


def ends_block(op: Op) -> bool:
    """Whether a row-parallel matmul brings a block back to the hidden width."""
    return isinstance(op, Linear) and (op.reads[0].split, op.makes[0].split) == ("tensor", "sequence")


def until_ends(ops: Iterable[AnyOp]) -> list[list[AnyOp]]:
    """Return the operations up to each that ends a block, and the rest."""
    parts: list[list[AnyOp]] = [[]]
    for op in ops:
        parts[-1].append(op)
        if ends_block(op):
            parts.append([])
    return parts


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes operations into one list, for one block and number of layers.

    networks: networks of a layer, each with weights of its own, of which a token runs ``copies``.
    """

    written: list[Op]
    block: Block = "embedding"
    layers: int = 1
    modules: tuple[Module, ...] = ()
    networks: int = 1
    copies: int = 1

    def at(self, block: Block, layers: int) -> Writer:
        """Return a writer for another block. Blocks of a multi-token prediction module belong to the module."""
        return Writer(self.written, self.block if self.block == "mtp" else block, layers)

    def inside(self, module: Module) -> Writer:
        """Return a writer for a part of the block that recomputation can regenerate."""
        return replace(self, modules=(*self.modules, module))

    def tensor(
        self, name: str, width: int, split: Split = "sequence", *modules: Module, stream: bool = False
    ) -> Tensor:
        """Return a new tensor of this block."""
        inside = (*self.modules, *modules) if modules else self.modules
        stream = stream or self.block == "embedding"
        return Tensor(name, width, split, self.block, self.layers, self.copies, stream, inside)

    def apply(
        self, kind: type[Op], name: str, makes: Tensor, *reads: Tensor, weights: tuple[Weight, ...] = (), **sizes: Any
    ) -> Tensor:
        """Write an operation with one result. sizes: fields that its kind has beside those of every operation."""
        self.written.append(kind(name, self.block, self.layers, self.copies, reads, (makes,), weights, **sizes))
        return makes

    def lookup(
        self, name: str, rows: int, width: int, split: Split, *, shared: bool = False, kind: type[Lookup] = Lookup
    ) -> Tensor:
        """Write the lookup of a table's row."""
        weight = Weight(name, rows, width, 1, split, "embedding", shared)
        return self.apply(kind, name, self.tensor(name, width, stream=True), weights=(weight,))

    def linear(
        self,
        name: str,
        x: Tensor,
        width: int,
        split: Split = "sequence",
        *,
        bias: bool = False,
        kind: type[Linear] = Linear,
        held: WeightKind = "matrix",
        inputs: int = 0,
        shared: bool = False,
    ) -> Tensor:
        """Write a matmul: column-parallel where its output is divided, row-parallel where only its input is.

        inputs: columns of the weight where they are not the width of ``x``.
        """
        divided = x.split if split in ("sequence", "expert") and x.split != "sequence" else split
        weight = Weight(name, width, inputs or x.width, self.networks, _held(divided), held, shared)
        added = (Weight(f"{name}.bias", width, 1, self.networks, _held(split), "vector"),) if bias else ()
        return self.apply(kind, name, self.tensor(name, width, split), x, weights=(weight, *added))

    def norm(self, name: str, x: Tensor, vectors: int = 1, gain: int = 0) -> Tensor:
        """Write a norm with so many learned vectors, as wide as ``x``, or a ``gain`` that its heads share."""
        weight = Weight(name, gain or x.width, 1, vectors, "whole" if gain else _held(x.split), "vector")
        y = self.tensor(name, x.width, x.split, "layernorm")
        return self.apply(Norm, name, y, x, weights=(weight,) if vectors else ())

    def parts(self, x: Tensor, *widths: int) -> tuple[Tensor, ...]:
        """Write the division of a tensor into parts side by side."""
        made = tuple(self.tensor(x.name, width, x.split) for width in widths)
        self.written.append(View(x.name, self.block, self.layers, self.copies, (x,), made, ()))
        return made

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Write the sum of the residual stream and a block's output."""
        return self.apply(Add, "residual", self.tensor("residual", x.width, stream=True), x, y)


def _held(split: Split) -> Split:
    """Return how a weight is divided that belongs to a tensor: sequence parallelism divides no weight."""
    return "whole" if split == "sequence" else split
