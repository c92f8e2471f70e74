"""What one layer multiplies, moves and sends per token, by what divides it over the ranks.

All of a layer's work is linear in the tokens of a rank, with a part per layer beside it (weights to be read). So it is
counted once per model, as plain numbers, and only their combination with the degrees is an array.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.limits import cached
from core.models import operation as ops
from core.models.components import weight_flop
from core.models.flops import attention_products
from core.models.operations import operations
from core.models.spec import TransformerSpec, modelled
from core.products import matmul_flop
from core.training.activations.tensors import COMPILED_WHOLE, DELTA_CHUNK, FP32, Implementation, written_as_gpt2
from core.training.trained import DividedAmount, most_ranks

BYTES_16BIT = 2.0
"""Bytes of what is computed in 16 bits."""


_CHUNK = 128.0
"""Tokens of a chunk, after each of which a kernel writes the state: those of Nemotron-H's Mamba-2. Those of
flash-linear-attention are `DELTA_CHUNK`."""

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


class Products:
    """Products with weights: how many, elements read and written per token, and weights, of ``element`` bytes each."""

    def __init__(self, element: float) -> None:
        self.element, self.number = element, 0.0
        self.read, self.written, self.weights = DividedAmount(), DividedAmount(), DividedAmount()

    def add(self, op: ops.Linear, times: float, ranks: tuple[float, float], *, again: bool = False) -> None:
        """Add a product ``times`` over. ranks: the most that divide what it reads, and what it writes.

        again: reads what the product before it has read, at once with it.
        """
        weight, (x, y) = op.weights[0], ranks
        self.weights[max(ranks)] += times * weight.rows * weight.columns
        self.written[y] += times * weight.rows
        if not again:
            self.read[x] += times * weight.columns
            self.number += times

    def flop(self, ranks: Any) -> Any:
        """FLOPs per token on one of ``ranks`` ranks."""
        return matmul_flop(1, 1, self.weights.on(ranks))

    def moved(self, ranks: Any) -> Any:
        """Bytes read and written per token on one of ``ranks`` ranks."""
        return self.element * self.read.on(ranks) + BYTES_16BIT * self.written.on(ranks)

    def sides(self, ranks: Any) -> Any:
        """Inner and outer sides of all products on one of ``ranks`` ranks, summed."""
        return self.read.on(ranks) + self.written.on(ranks)


class LayerWork:
    """Work of one layer, the mean over all of them, prediction modules among them: what only some layers have counts by
    their share, but for ``routed``, ``routed_last``, ``router`` and ``dispatched``, which are of one that has experts.

    layers: how many. moe_share: of them, those with experts. dense: products with weights other than the routed
    experts’, which are in ``routed``, of a single expert. router, head: what is computed in 16 bits, the latter of the
    model and its prediction modules, with so many logits. inside: of the dense ones those of dense layers' feed-forward
    network, of shared experts, and of the projection up from latents. last, routed_last: the product that dense layers,
    or an expert, end with, in ``dense``, or ``routed``, too. norms: bytes per token of what sequence parallelism
    divides; inner: of the other operations on single elements; gated: of activation functions among them, in networks
    and in experts. qkv, result: elements per token that the attention core reads and writes. heads: of attention.
    whole_tiles: whether their width is a multiple of 8. scan_flop, scan_bytes: per token, of moving a state on.
    dispatched: elements of a token on its way to all its experts.
    """

    def __init__(self, layers: int, moe_share: float, element: float) -> None:
        self.layers, self.moe_share, self.whole_tiles = layers, moe_share, True
        self.dense, self.routed, self.last, self.routed_last = (Products(element) for _ in range(4))
        self.inside = {module: Products(element) for module in ("mlp", "moe", "mla_up_proj")}
        self.router, self.head = Products(BYTES_16BIT), Products(BYTES_16BIT)
        self.inner, self.qkv, self.gated = DividedAmount(), DividedAmount(), {"mlp": 0.0, "moe": 0.0}
        self.logits = self.norms = self.result = self.heads = self.scan_flop = self.scan_bytes = self.dispatched = 0.0


@cached("results_kept")
def layer_work(spec: TransformerSpec, implementation: Implementation, element: float) -> LayerWork:
    """The work of a mean layer of ``spec``, its products of ``element`` bytes."""
    written = operations(modelled(spec))
    layers, mixed = spec.layers + spec.mtp_modules, sum(op.layers for op in written if isinstance(op, ops.Route))
    work, each = LayerWork(layers, mixed / layers, element), traffic_of(implementation)
    single = (_SINGLE_OPERATIONS if implementation.written_out else 1.0) * BYTES_16BIT
    maker = {made: op for op in written for made in op.makes}
    routers = {op.reads[0] for op in written if isinstance(op, ops.Route)}
    multiplied = {op.block for op in written if isinstance(op, ops.Linear)}
    read: ops.Tensor | None = None
    for i, op in enumerate(written):
        y, share = op.makes[0], op.layers / layers
        most = most_ranks(y.split, written[i:])
        match op:
            case ops.Logits():
                work.head.add(op, op.layers, (1, most))
                work.logits += op.layers * y.width
            case _ if op.block in ("embedding", "head"):
                pass
            case ops.Linear() if y in routers:
                # Sequence parallelism divides its tokens.
                work.router.add(op, op.layers / mixed, (1, math.inf))
            case ops.Linear(reads=(x,)) if _is_timed(op, maker[x]):
                ranks, routed = (most_ranks(x.split, ()), most), isinstance(op, ops.GroupedLinear)
                into = [products for module, products in work.inside.items() if module in y.modules]
                into, times = ([work.routed], op.layers / mixed) if routed else ([work.dense, *into], share)
                if (last := ranks[0] > most) and (routed or "mlp" in y.modules):
                    into.append(work.routed_last if routed else work.last)
                for products in into:
                    products.add(op, times, ranks, again=x is read and x.split != y.split)
                read = None if last else x
            case ops.IndexCore():
                pass
            case ops.AttentionCore(reads=(q, k, _)) if op.every == 1:
                turned = each.rotary if isinstance(maker[q], ops.Rope) else 4.0
                # Values count as wide as keys, and as turned with them.
                for amount, factor in ((work.inner, turned * share), (work.qkv, share)):
                    amount[math.inf] += factor * q.width
                    amount[most_ranks(k.split, (op,))] += factor * 2 * k.width
                work.result += share * y.width
                work.heads += share * op.heads
                work.whole_tiles &= op.key_dim % 8 == 0
            case ops.Activation():
                moved = _activation(spec, implementation) * share * op.copies * y.width
                work.inner[most] += moved
                work.gated["moe" if "moe" in y.modules else "mlp"] += moved
            case ops.Multiply() if not {"mlp", "moe"} & {*y.modules}:
                work.inner[most] += single * share * 3 * y.width
            case ops.Convolution():
                work.inner[most] += single * share * 2 * y.width
            case ops.Scan():
                work.scan_flop += share * weight_flop(op)
                work.scan_bytes += share * _scan_bytes(op, DELTA_CHUNK if isinstance(op, ops.DeltaRule) else _CHUNK)
            case ops.Add() if y.stream and op.block in multiplied:
                # A norm for each: those of queries and keys, of latents, and after blocks move nothing.
                work.norms += share * y.width * (norm_traffic(spec, implementation) / 2 + implementation.dropout)
            case ops.Dispatch():
                work.dispatched += op.layers / mixed * op.copies * y.width
            case _:
                pass
    return work


def _is_timed(op: ops.Linear, before: ops.Op) -> bool:
    """Whether a product is: neither the gate of shared experts nor the first projection of a prediction module is."""
    (x,), (y,) = op.reads, op.makes
    joins = op.block == "mtp" and isinstance(before, ops.View)
    return not joins and (y.width > 1 or x.split != y.split)


def _scan_bytes(op: ops.Scan, chunk: float) -> float:
    """Bytes per token of moving a state on.

    One kernel makes the state that each chunk adds, a second carries states on, a third reads them: values, keys and
    queries are read twice, outputs written, and states, in fp32, pass memory four times, the products of keys and
    queries within a chunk twice [mamba_ssm, ops/triton/ssd_combined.py].
    """
    inner = op.makes[0].width
    states = FP32 * (4 * inner * op.state / chunk + 2 * op.groups * chunk)
    return BYTES_16BIT * (inner + 2 * sum(x.width for x in op.reads)) + states


def square_flop(spec: TransformerSpec, seq_len: Any, *, flash: bool) -> Any:
    """FLOPs per token of attention's products of activations in a mean layer: what the mask leaves, or all of them.

    Those of a state are no part of it.
    """
    products = attention_products(spec, seq_len, "causal" if flash else "eager")
    given = ((formula, values) for _, formula, values in products if np.any(values["layers"]))
    return sum(formula.over(**values) for formula, values in given) / (spec.layers + spec.mtp_modules)


_LOGIT_BYTES, _LOGIT_BYTES_WRITTEN_OUT = 12.0, 32.0
"""Moved for each logit by cross-entropy, forward and backward: in one kernel, and where logits are copied into fp32,
their log-softmax is written, and both have gradients."""

_SEPARATE_LOSS, _COMPILED_LOSS, _READ_AGAIN, _LARGE_VOCAB = 36.0, 8.0, 12.0, 48_000
"""The same where the loss is named: torch’s own with the zeroed gradient of its log-likelihood; compiled with the
model; and what log-softmax reads again, for maximum, sum, and sum of the gradient, where rows at work, two a
multiprocessor in fp32, outgrow an L2 of 50 MB [aten/src/ATen/native/cuda/SoftMax.cu]. Dense cross-entropy of 32,768
tokens and a vocabulary of 201,088 took 107 ms with its products [Noumena-Network/nmoe pull request 10]."""


def logit_bytes(how: Implementation, vocab: int) -> float:
    """Return the bytes that cross-entropy moves for each logit, forward and backward."""
    if how.timed_loss is None:
        return _LOGIT_BYTES_WRITTEN_OUT if how.written_out else _LOGIT_BYTES
    if how.timed_loss == "fused":
        return _LOGIT_BYTES
    if how.timed_loss == COMPILED_WHOLE:
        return _COMPILED_LOSS
    return _SEPARATE_LOSS + _READ_AGAIN * (vocab > _LARGE_VOCAB)
