"""What one layer multiplies, moves and sends per token, by what divides it over the ranks.

All of a layer's work is linear in the tokens of a rank, with a part per layer beside it (weights to be read). So it is
counted once per model, as plain numbers, and only their combination with the degrees is an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from core.hardware.operations import product_bytes
from core.models.flops import attention_products
from core.models.mixer import Mixer, MixerKind
from core.models.spec import Experts, LatentAttention, TransformerSpec, modelled
from core.products import matmul_flop
from core.training.activations.tensors import DELTA_CHUNK, FP32, Implementation, written_as_gpt2

Divided: TypeAlias = Literal["whole", "tensor", "heads"]
"""By nothing, by the tensor-parallel ranks, or by those of them that hold key/value heads of their own."""

BYTES_16BIT = 2.0
"""Bytes of what is computed in 16 bits."""


_CHUNK: Mapping[MixerKind, float] = {"mamba": 1.0, "mamba2": 128.0, "delta": DELTA_CHUNK}
"""Tokens of a chunk, after each of which a kernel writes the state: those of Nemotron-H's Mamba-2, and of
flash-linear-attention."""

_SINGLE_OPERATIONS = 2.0
"""Traffic of gates and norms of a mixer written out in single operations over that of one kernel each."""


@dataclass(frozen=True, slots=True)
class ElementTraffic:
    """Bytes per element that operations on single elements move forward: of the hidden width by a layer's two norms
    and residuals, of a gated product and an ungated one by its activation, of queries and keys by rotary positions, of
    the hidden width by sorting a token to one expert and back. back: those of backward over forward."""

    norms: float
    gated: float
    ungated: float
    rotary: float
    sorted: float
    back: float


RESIDUALS = 12.0
"""Bytes per element of those of norms and residuals that a layer's two residuals take: two read, one written."""

_ONE_KERNEL = ElementTraffic(norms=20.0, gated=6.0, ungated=4.0, rotary=6.0, sorted=8.0, back=1.5)
"""One kernel each: a norm reads its input beside the gradient, a gate both of its inputs; dropout, rotary and the
residual move no more backward than forward [Korthikanti et al. 2022, section 4.2]."""

_WRITTEN_OUT = ElementTraffic(norms=85.0, gated=10.0, ungated=8.0, rotary=20.0, sorted=12.0, back=2.2)
"""As transformers writes layers: inputs and results of every operation of its Llama and Qwen3-MoE layers on bf16 that
is no product, view or attention, forward and backward, added up [transformers 5.23, torch 2.13]."""

_GELU_IN_STEPS: Mapping[bool, float] = {False: 92.0, True: 194.0}
"""Bytes per element that GELU in single operations moves forward and backward, counted so; with True where powers are
taken in fp32."""


def traffic_of(implementation: Implementation) -> ElementTraffic:
    """What an implementation moves per element."""
    return _WRITTEN_OUT if implementation.written_out else _ONE_KERNEL


def norm_traffic(spec: TransformerSpec, implementation: Implementation) -> float:
    """Bytes per element of two norms and residuals; LayerNorm is one kernel in torch, however layers are written."""
    return (traffic_of(implementation) if spec.norm == "rmsnorm" else _ONE_KERNEL).norms


def _activation(spec: TransformerSpec, implementation: Implementation) -> float:
    each = traffic_of(implementation)
    if written_as_gpt2(spec, implementation):
        return _GELU_IN_STEPS[implementation.autocasts] / (1 + each.back)
    return each.gated if spec.glu else each.ungated


@dataclass(slots=True)
class DividedAmount:
    """An amount by what divides it."""

    whole: float = 0.0
    tensor: float = 0.0
    heads: float = 0.0

    def add(self, by: Divided, amount: float) -> None:
        """Add an amount divided so."""
        setattr(self, by, getattr(self, by) + amount)

    def on(self, tensor: Any, heads: Any) -> Any:
        """The amount on one of ``tensor`` ranks, ``heads`` of which hold key/value heads of their own."""
        own = self.tensor / tensor + self.whole
        return own + self.heads / heads if self.heads else own


class Products:
    """Products with weights: per token FLOPs, bytes and elements read; per layer bytes of weights and sides.

    number: of products. sides: inner and outer sides of all of them, summed.
    """

    def __init__(self, element: float) -> None:
        self.element = element
        self.flop, self.moved, self.read, self.weights, self.sides = (
            DividedAmount(),
            DividedAmount(),
            DividedAmount(),
            DividedAmount(),
            DividedAmount(),
        )
        self.number = 0.0

    def add(self, inner: int, columns: int, by: Divided = "whole", *, row: bool = False, again: bool = False) -> None:
        """A product of so many inner elements and columns; ``by`` divides its columns, or with ``row`` its rows.

        again: reads what the product before it has read, at once with it.
        """

        def moved(m: float, n: float, k: float) -> float:
            return product_bytes(m, n, k, 1, self.element, BYTES_16BIT)

        self.flop.add(by, matmul_flop(1, columns, inner))
        self.weights.add(by, moved(0, columns, inner))
        self.moved.add("whole" if row else by, moved(1, columns, 0))
        self.sides.add("whole" if row else by, columns)
        if not again:
            self.moved.add(by if row else "whole", moved(1, 0, inner))
            self.read.add(by if row else "whole", inner)
            self.sides.add(by if row else "whole", inner)
            self.number += 1

    def parameters(self, tensor: Any, heads: Any) -> Any:
        """Weights on one of ``tensor`` ranks."""
        return self.weights.on(tensor, heads) / self.element


@dataclass(frozen=True, slots=True)
class LayerWork:
    """Work of one layer, the mean over all of them, prediction modules among them: what only some layers have counts by
    their share, but for ``routed``, ``routed_last`` and ``router``, which are of a layer that has experts.

    layers: how many. moe_share: of them, those with experts. dense: products with weights other than the routed
    experts’, which are in ``routed``, of a single expert. router, head: what is computed in 16 bits, the latter of the
    model. network, shared, up: of the dense ones those of dense layers' feed-forward network, of shared experts, and of
    the projection up from latents. gated, gated_mixture: bytes per token of activation functions in dense layers, and
    in those with experts. last, routed_last: the product that dense layers, or an expert, end with, in ``dense``, or
    ``routed``, too. norms: bytes per token of what sequence parallelism divides; inner: of the other operations on
    single elements. qkvo: elements per token that the attention core reads and writes. scan_flop, scan_bytes: per
    token, of moving a state on.
    """

    layers: float
    moe_share: float
    dense: Products
    routed: Products
    router: Products
    head: Products
    network: Products
    shared: Products
    up: Products
    last: Products
    routed_last: Products
    norms: float
    inner: DividedAmount
    qkvo: DividedAmount
    scan_flop: float
    scan_bytes: float
    gated: float
    gated_mixture: float


def _network(products: Products, spec: TransformerSpec, width: int) -> Products:
    products.add(spec.hidden, (spec.ffn_matrices - 1) * width, "tensor")
    products.add(width, spec.hidden, "tensor", row=True)
    return products


def _projections(products: Products, spec: TransformerSpec) -> Products:
    low = spec.latent
    if low is None:
        products.add(spec.hidden, spec.heads * spec.head_dim, "tensor")
        products.add(spec.hidden, 2 * spec.kv_heads * spec.head_dim, "heads", again=True)
    else:
        if low.query_rank:
            products.add(spec.hidden, low.query_rank)
        products.add(spec.hidden, low.kv_rank + low.rope_dim)
        _up(products, spec, low)
    if spec.attention_gate:
        products.add(spec.hidden, spec.heads * spec.head_dim, "tensor", again=True)
    products.add(spec.heads * spec.value_dim, spec.hidden, "tensor", row=True)
    return products


def _up(products: Products, spec: TransformerSpec, low: LatentAttention) -> Products:
    products.add(low.query_rank or spec.hidden, spec.heads * spec.score_dim, "tensor")
    products.add(low.kv_rank, spec.heads * (low.nope_dim + low.value_dim), "tensor")
    return products


def _state_projections(products: Products, spec: TransformerSpec, mixer: Mixer) -> Products:
    products.add(spec.hidden, 2 * mixer.inner + mixer.pairs + mixer.rates, "tensor")
    products.add(mixer.inner, spec.hidden, "tensor", row=True)
    return products


def _scan(mixer: Mixer | None) -> tuple[float, float, float]:
    """Per token of a layer with a state: FLOPs and bytes of moving it on, and bytes of what stands around that.

    One kernel makes the state that each chunk adds, a second carries states on, a third reads them: values, keys and
    queries are read twice, outputs written, and states, in fp32, pass memory four times, the products of keys and
    queries within a chunk twice [mamba_ssm, ops/triton/ssd_combined.py]. Around it are the convolution, which reads
    and writes its channels, and the gate and its norm.
    """
    if mixer is None:
        return 0.0, 0.0, 0.0
    flop = mixer.operations * mixer.inner * mixer.state
    chunk = _CHUNK[mixer.kind]
    states = FP32 * (4 * mixer.inner * mixer.state / chunk + 2 * mixer.groups * chunk)
    moved = BYTES_16BIT * (3 * mixer.inner + 2 * (mixer.pairs + mixer.rates)) + states
    beside = 2 * BYTES_16BIT * (mixer.inner + mixer.pairs) + 3 * BYTES_16BIT * mixer.inner
    return flop, moved, beside


def _plus(into: Products, other: Products, times: float) -> None:
    into.number += times * other.number
    for name in ("flop", "moved", "read", "weights", "sides"):
        for by in ("whole", "tensor", "heads"):
            getattr(into, name).add(by, times * getattr(getattr(other, name), by))


@lru_cache(maxsize=256)
def layer_work(spec: TransformerSpec, implementation: Implementation, element: float) -> LayerWork:
    """The work of a mean layer of ``spec``, its products of ``element`` bytes."""
    layers = modelled(spec).layers + spec.mtp_modules
    moe_share = (spec.moe_layers + (spec.mtp_modules if spec.moe_layers else 0)) / layers
    moe = spec.experts or Experts(1, 1, 1)
    shared = moe.shared * (moe.shared_width or moe.width)
    attention_share, dense = spec.attention_share, Products(element)
    if attention_share:
        _plus(dense, _projections(Products(element), spec), attention_share)
    if spec.mixer:
        _plus(dense, _state_projections(Products(element), spec, spec.mixer), 1 - attention_share)
    network, beside_routed, up = Products(element), Products(element), Products(element)
    if moe_share < 1 and spec.ffn:
        _plus(network, _network(Products(element), spec, spec.ffn), 1 - moe_share)
    if moe_share and shared:
        _plus(beside_routed, _network(Products(element), spec, shared), moe_share)
    for part in (network, beside_routed):
        _plus(dense, part, 1.0)
    if spec.latent:
        _plus(up, _up(Products(element), spec, spec.latent), attention_share)
    last, down, routed_last = Products(element), Products(element), Products(element)
    if spec.ffn:
        down.add(spec.ffn, spec.hidden, "tensor", row=True)
    _plus(last, down, 1 - moe_share)
    routed_last.add(moe.width, spec.hidden, "tensor", row=True)
    router, head = Products(BYTES_16BIT), Products(BYTES_16BIT)
    router.add(spec.hidden, moe.count, "tensor")
    head.add(spec.table_width, spec.vocab, "tensor")
    each = traffic_of(implementation)
    turned = each.rotary if spec.position_kind == "rotary" else 4.0
    single = _SINGLE_OPERATIONS if implementation.written_out else 1.0
    moved_each = _activation(spec, implementation)
    gated = moved_each * (1 - moe_share) * spec.ffn
    gated_mixture = moved_each * moe_share * (moe.per_token * moe.width + shared)
    queries, keys = attention_share * spec.heads * spec.score_dim, attention_share * spec.kv_heads * spec.head_dim
    result = attention_share * spec.heads * spec.value_dim
    flop, moved, beside = _scan(spec.mixer)
    # Two norms a layer, one where there is no feed-forward network.
    blocks = 1.0 if spec.ffn else (1.0 + moe_share) / 2
    by: Divided = "tensor" if spec.latent else "heads"
    inner, qkvo = (
        DividedAmount(tensor=turned * queries + gated + gated_mixture + single * (1 - attention_share) * beside),
        DividedAmount(tensor=queries + result),
    )
    inner.add("tensor", single * 3 * BYTES_16BIT * queries * spec.attention_gate)
    inner.add(by, turned * 2 * keys)
    qkvo.add(by, 2 * keys)
    return LayerWork(
        layers=layers,
        moe_share=moe_share,
        dense=dense,
        routed=_network(Products(element), spec, moe.width),
        router=router,
        head=head,
        network=network,
        shared=beside_routed,
        up=up,
        last=last,
        routed_last=routed_last,
        norms=(norm_traffic(spec, implementation) + 2.0 * implementation.dropout) * spec.hidden * blocks,
        inner=inner,
        qkvo=qkvo,
        scan_flop=(1 - attention_share) * flop,
        scan_bytes=(1 - attention_share) * moved,
        gated=gated,
        gated_mixture=gated_mixture,
    )


def square_flop(spec: TransformerSpec, seq_len: Any, *, flash: bool) -> Any:
    """FLOPs per token of attention's products of activations in a mean layer: what the mask leaves, or all of them.

    Those of a state are no part of it.
    """
    products = attention_products(spec, seq_len, "causal" if flash else "eager")
    given = ((formula, values) for _, formula, values in products if np.any(values["layers"]))
    return sum(formula.over(**values) for formula, values in given) / (spec.layers + spec.mtp_modules)
