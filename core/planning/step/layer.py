"""Seconds of one layer and one micro-batch on one rank: products, attention, the rest, and what it sends meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.models.spec import TransformerSpec
from core.planning.step.constants import Constants
from core.planning.step.formulas import (
    collective_seconds,
    exposed_seconds,
    nodes_met,
    padded_tokens,
    product_seconds,
    tail_flop,
)
from core.planning.step.links import BITS, Speeds
from core.planning.step.parts import Running
from core.planning.step.work import WIDE, LayerWork, Products, layer_work, square_flop
from core.training.activations.formulas import rank_tokens
from core.training.activations.tensors import Implementation
from core.training.layout import Degrees, Recompute, pick
from core.training.traffic import passed_bytes, ring_bytes

_SCORE_BYTES = 13.0
"""Moved for each score that is written out: the score, softmax, mask and dropout."""

_FLASH_BACK = 2.5
"""Backward of fused attention over forward: five products for its two, the scores among them once more."""

_BACK = 1.5
"""Traffic of operations on single elements backward over forward: a norm reads its input beside the gradient, a gate
both of its inputs; dropout, rotary and the residual move no more than forward."""

_SCORE_RATE = 0.6
"""Share of a large product's rate that products of one head's scores reach."""

_AGAIN = 0.7
"""Share of the operations on single elements that selective recomputation does again, with fused attention."""

_SECOND = 0.5
"""Share of a layer's products that recomputation per operation does again: every second one."""

_ADDED = 6.0
"""Bytes per weight and micro-batch of adding its gradient in fp32, read and written where the product does it, beyond
the two that are counted as the product's result."""

_ADDED_NARROW = 2.0
"""The same in 16 bits, as training in fp16 does it."""

_ADDED_APART = 20.0
"""The same where DeepSpeed casts gradients, adds them to those it shards, and clears them, one after the other."""

_CAST_BYTES = 4.0
_SORT_BYTES = 8.0
_LOGIT_BYTES = 12.0

_ROUTED_NODES = 4.0
"""Nodes that a token's experts may lie on under node-limited routing, as DeepSeek-V3 limits it."""


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one micro-batch: in a mean layer, and of the ends of the model (``head``, forward and backward).

    forward: of computing alone, as far as nothing else runs beside it: ring attention has its own passes beside it.
    matmul, attention, elementwise: forward and backward. ring: 1 where attention is ring attention.
    """

    forward: Any
    matmul: Any
    attention: Any
    elementwise: Any
    recompute: Any
    tensor: Any
    context: Any
    expert: Any
    fixed: Any
    head: Any
    head_elementwise: Any
    ring: Any

    @property
    def backward(self) -> Any:
        """Computing of the backward pass, as far as nothing else runs beside it."""
        return self._computing - self.ring * self.attention - self.forward

    @property
    def _computing(self) -> Any:
        return self.matmul + self.attention + self.elementwise + self.recompute + self.fixed

    @property
    def total(self) -> Any:
        """Forward and backward, with what is waited for."""
        return self._computing + self.tensor + self.context + self.expert


class _Rank:
    """One rank's share of the work, as seconds per token and per layer."""

    def __init__(
        self,
        spec: TransformerSpec,
        how: Implementation,
        d: Degrees,
        running: Running,
        speeds: Speeds,
        c: Constants,
    ) -> None:
        self.spec, self.how, self.d, self.running, self.speeds, self.c = spec, how, d, running, speeds, c
        self.bits = BITS[running.dtype]
        self.work: LayerWork = layer_work(spec, how, self.bits / 8)
        self.heads = np.minimum(d.tensor, spec.kv_heads)
        self.spread = pick(d.expert > 1, float(running.expert_tensor), d.tensor)

    def seconds(self, flop: Any, moved: Any, rate: float) -> Any:
        """Seconds of products."""
        c, memory = self.c, self.speeds.memory
        return product_seconds.over(flop=flop, rate=rate, weight=c.operands, bytes=moved, bandwidth=memory)

    def plain(self, products: Products, rate: float) -> tuple[Any, Any]:
        """Seconds per token and per layer of products that every token runs through."""
        t, heads = self.d.tensor, self.heads
        flop = products.flop.on(t, heads) + self.tail(products.number, 0.0)
        per_token = self.seconds(flop, products.moved.on(t, heads), rate)
        return per_token, self.seconds(self.tail(0.0, products.sides.on(t, heads)), products.weights.on(t, heads), rate)

    def tail(self, tokens: float, sides: Any) -> Any:
        """Work lost at the ends of products with so many tokens, and other sides, in sum."""
        return tail_flop.over(m=tokens, n=sides, k=0.0, tail=self.c.tail)

    def routed(self) -> tuple[Any, Any]:
        """The same of the routed experts of a layer that has them."""
        moe = self.spec.experts
        if moe is None:
            return 0.0, 0.0
        products, c, spread = self.work.routed, self.c, self.spread
        rate = self.speeds.narrow * (c.expert_odd if moe.width % 128 else 1.0)
        routed = moe.per_token * self.running.imbalance * spread / self.d.tensor
        half = c.expert_half16 if self.bits == 16 else c.expert_half8
        experts = moe.count / self.d.expert
        flop, moved = products.flop.on(spread, 1.0), products.moved.on(spread, 1.0)
        per_token = self.seconds(routed * flop, routed * moved, rate)
        # What reading an expert's weights costs is in the tokens that it is padded by: both are one amount per expert.
        idle = padded_tokens.over(tokens=0.0, experts=experts, half=half)
        return per_token, self.seconds(idle * flop + self.tail(0.0, products.sides.on(spread, 1.0)), 0.0, rate)

    def core(self, seq_len: Any) -> tuple[Any, Any]:
        """Seconds per token of attention's products of activations, forward and backward."""
        spec, t, speeds, how = self.spec, self.d.tensor, self.speeds, self.how
        flop = square_flop(spec, seq_len, flash=how.flash) / t
        if how.flash:
            moved = WIDE * self.work.qkvo.on(t, self.heads)
            forward = flop / speeds.attention + moved / speeds.memory
            return forward, _FLASH_BACK * forward
        slow = 1.0 if spec.head_dim % 8 == 0 else self.c.odd_head**4
        scores = _SCORE_BYTES * spec.heads * np.asarray(seq_len) / t / speeds.memory
        products = flop * slow / (_SCORE_RATE * speeds.wide)
        return products + scores, 2.0 * products + _BACK * scores

    def added(self) -> Any:
        """Seconds per layer in which gradients of weights are added to those of earlier micro-batches."""
        work, moe, d = self.work, self.spec.experts, self.d
        own = work.plain.parameters(d.tensor, self.heads)
        if moe:
            own = own + work.mixed * moe.count / d.expert * work.routed.parameters(self.spread, 1.0)
        each: Any = _ADDED_NARROW if self.running.dtype == "fp16" else _ADDED
        if self.running.software == "deepspeed 2021":
            each = np.where(d.zero >= 1, _ADDED_APART, each)
        return each * (d.micro_batches > 1) * own / self.speeds.memory

    def elements(self) -> Any:
        """Seconds per token of operations on single elements, casts and the sorting of tokens."""
        work, d, c = self.work, self.d, self.c
        narrow = pick(d.sequence_parallel > 0, d.tensor, 1.0)
        moved = c.elementwise * (work.norms / narrow + work.inner.on(d.tensor, self.heads))
        moe = self.spec.experts
        if self.bits < 16:
            moved = moved + c.casts * _CAST_BYTES * work.plain.read.on(d.tensor, self.heads)
        if moe:
            chosen = work.mixed * moe.per_token / d.tensor
            moved = moved + c.permutation * _SORT_BYTES * self.spec.hidden * chosen
            if self.bits < 16:
                read = work.routed.read.on(self.spread, 1.0) * self.spread
                moved = moved + c.casts * _CAST_BYTES * read * chosen
        return moved / self.speeds.memory


def layer_time(
    spec: TransformerSpec,
    how: Implementation,
    d: Degrees,
    seq_len: Any,
    running: Running,
    speeds: Speeds,
    constants: Constants,
) -> LayerTime:
    """Seconds of a mean layer and one micro-batch under each layout."""
    rank, c = _Rank(spec, how, d, running, speeds, constants), constants
    work = rank.work
    tokens = rank_tokens.over(micro_batch=d.micro_batch, seq_len=np.asarray(seq_len), context=d.context)
    each, once = rank.plain(work.plain, speeds.narrow)
    if work.mixed:
        for per_token, per_layer in (rank.routed(), rank.plain(work.router, speeds.wide)):
            each, once = each + work.mixed * per_token, once + work.mixed * per_layer
    core, core_back = rank.core(seq_len)
    matmul, attention, elements = tokens * each + once, tokens * core, tokens * rank.elements()
    whole = tokens * (core + core_back)
    forward = matmul + attention + elements
    full, selective, by_one = (
        (d.recompute == one) * 1.0 for one in (Recompute.FULL, Recompute.SELECTIVE, Recompute.PER_OPERATION)
    )
    repeated = _AGAIN * elements if how.flash else attention
    head, head_once = rank.plain(work.head, speeds.wide)
    logits = c.elementwise * _LOGIT_BYTES * spec.vocab / d.tensor / speeds.memory
    heads = 1.0 + spec.mtp_modules
    again = forward
    if np.any(running.stops_early):
        last, last_once = rank.plain(work.last, speeds.narrow)
        again = forward - running.stops_early * (tokens * last + last_once)
    repeat = full * again + selective * repeated + by_one * (_SECOND * matmul + elements)
    fixed: Any = c.per_layer + work.mixed * c.per_mixture
    if work.mixed and np.any(np.equal(running.graphs, 0)):
        computing = 3.0 * matmul + (1.0 + _BACK) * elements + whole + repeat + fixed
        fixed = fixed + work.mixed * (1 - running.graphs) * np.maximum(0.0, c.launches - computing)
    ring = (d.context > 1) * 1.0
    return LayerTime(
        forward=forward - ring * attention,
        matmul=3.0 * matmul,
        attention=whole,
        elementwise=(1.0 + _BACK) * elements + rank.added(),
        recompute=repeat,
        tensor=_tensor(rank, tokens, 2.0 + full * (1.0 - 0.25 * running.stops_early)),
        context=_context(rank, tokens, 3.0 + full, whole),
        expert=_expert(rank, tokens, 2.0 + full) if work.mixed else 0.0,
        fixed=fixed,
        head=3.0 * heads * (tokens * head + head_once),
        head_elementwise=heads * tokens * logits,
        ring=ring,
    )


def _tensor(rank: _Rank, tokens: Any, passes: Any) -> Any:
    """Reduce-scatters and all-gathers of a layer's two outputs that are waited for.

    Blocks that run in parallel have one output. Routed experts that lie whole on their ranks have none; those spread
    over some gather their tokens there.
    """
    d, spec, c, speeds, work = rank.d, rank.spec, rank.c, rank.speeds, rank.work
    t = d.tensor
    moe = spec.experts
    times: Any = 2.0 if spec.parallel_blocks else 4.0
    if moe and not moe.shared:
        times = times - 2.0 * work.mixed * (d.expert > 1)
    size = WIDE * spec.hidden
    sent = ring_bytes.over(times=times * passes, size=size, ranks=t)
    hop = np.where(t <= speeds.domain, c.hop_inside, c.hop_between)
    per_token = sent / speeds.group(t, 1.0)
    late = collective_seconds.over(bytes=0.0, bandwidth=1.0, times=times * passes, hop=hop, ranks=t)
    if moe and rank.running.expert_tensor > 1:
        spread = rank.spread
        routed = ring_bytes.over(times=2.0 * passes, size=size * moe.per_token / t * spread, ranks=spread)
        per_token = per_token + (d.expert > 1) * work.mixed * routed / speeds.group(spread, 1.0)
    beside = rank.running.overlap if rank.running.overlap_tensor is None else rank.running.overlap_tensor
    share = c.tensor_plain + beside * (c.tensor_overlap - c.tensor_plain)
    return share * (tokens * per_token + late)


def _context(rank: _Rank, tokens: Any, passes: Any, attention: Any) -> Any:
    """Keys and values that pass by every context-parallel rank, as far as attention does not hide them."""
    d, spec, speeds = rank.d, rank.spec, rank.speeds
    if not np.any(d.context > 1):
        return 0.0
    low = spec.latent
    kept = (low.kv_rank + low.rope_dim) if low else 2 * spec.kv_heads * spec.head_dim
    size = tokens * (WIDE * kept / (1.0 if low else rank.heads))
    sent = passed_bytes.over(passes=passes, size=size, ranks=d.context)
    time = sent / speeds.neighbour(d.context, d.tensor)
    share = 1.0 + rank.running.overlap * (rank.c.context_wait - 1.0)
    return exposed_seconds.over(time=time, share=share, behind=attention)


def _expert(rank: _Rank, tokens: Any, passes: Any) -> Any:
    """All-to-alls to the experts and back that are waited for.

    Beyond one domain the network carries one copy of a token to each node that its experts lie on, while the links
    inside carry one for each expert.
    """
    d, spec, c, speeds = rank.d, rank.spec, rank.c, rank.speeds
    moe = spec.experts
    if moe is None or not np.any(d.expert > 1):
        return 0.0
    e, span = d.expert, d.expert * rank.spread
    size = WIDE * spec.hidden / d.tensor * rank.running.imbalance
    inside = ring_bytes.over(times=2.0, size=size * moe.per_token, ranks=e) / np.where(e > 1, speeds.inside, np.inf)
    nodes = np.maximum(1.0, span / speeds.domain)
    met = nodes_met.over(nodes=nodes, chosen=moe.per_token)
    met = np.minimum(met, _ROUTED_NODES) if _limited(spec) else met
    between = ring_bytes.over(times=2.0, size=size * met, ranks=nodes)
    across = np.where(nodes > 1, between / speeds.between, 0.0)
    hop = np.where(nodes > 1, c.hop_between, c.hop_inside)
    late = collective_seconds.over(bytes=0.0, bandwidth=1.0, times=2.0, hop=hop, ranks=e)
    share = c.expert_wait * rank.work.mixed * passes
    return share * (tokens * np.maximum(inside, across) + late)


def _limited(spec: TransformerSpec) -> bool:
    """Whether the router limits the nodes of a token: models of DeepSeek's make, by their latent attention."""
    return spec.latent is not None and spec.experts is not None
