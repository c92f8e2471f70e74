"""One rank's share of a layer's work, as seconds for each token and once for the layer: all but the accumulation of
gradients is linear in the tokens."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from core.models.spec import TransformerSpec
from core.step_time.constants import Constants
from core.step_time.formulas import adding_seconds, padded_tokens, product_seconds, tail_flop
from core.step_time.links import BITS, Speeds
from core.step_time.parts import Running
from core.step_time.work import (
    BYTES_16BIT,
    LayerWork,
    Products,
    layer_work,
    square_flop,
    traffic_of,
)
from core.training.activations.tensors import FP32, Implementation
from core.training.layout import Degrees, LayerModule, pick

_SCORE_BYTES = 13.0
"""Moved for each score that is written out: the score, softmax, mask and dropout."""

_FLASH_BACK = 2.5
"""Backward of fused attention over forward: five products for its two, the scores among them once more."""

_SCAN_BACK = 3.0
"""Backward of a scan over forward: two gradients of each product, and the states worked out once more."""

_SCORE_RATE = 0.6
"""Share of a large product's rate that products of one head's scores reach."""

_ACCUMULATED = 6.0
"""Bytes per weight and micro-batch of accumulating its gradient in fp32, read and written by the product itself, beyond
the two bytes that are counted as the product's result."""

_ACCUMULATED_16BIT = 2.0
"""Bytes per weight and micro-batch of accumulating its gradient in 16 bits, as training in fp16 does it."""

_ACCUMULATED_DEEPSPEED = 20.0
"""Bytes per weight and micro-batch where DeepSpeed casts gradients, adds them to those it shards, and clears them, one
after the other."""

_RING_MERGED = 3.0 * BYTES_16BIT
"""Bytes per element in which ring attention adds what a pass made to what earlier ones did: both read, the sum written.
Its outputs forward, gradients of queries, keys and values backward, in kernels of their own [Transformer Engine,
context_parallel.py]."""

_RING_COPIED = 2.0 * BYTES_16BIT / 4.0
"""Bytes per element in which later passes of ring attention copy half of the queries, or of keys and values, so that
they lie together: read and written, of each in half of the passes; backward outputs and their gradients go with the
queries."""

_ONE_BY_ONE = 0.64
"""Speed of experts in fp32, one after another as PyTorch has no grouped kernel for it, over that of large products
[make gpu on an H100, torch 2.11: 0.273 s for 4 × 2,048 tokens of 32 experts, 0.623 for 8 × 2,048 recomputed]."""

_SCALED, _SUMMED = 2.0, 3.0
"""Times that scaling a tensor, and adding two, read or write one of its size."""

_CAST_BYTES = 4.0

TokenAndLayer: TypeAlias = tuple[Any, Any]
"""Seconds for each token, and those that a layer takes once, however many tokens it has."""

BothPasses: TypeAlias = tuple[Any, Any]
"""Seconds forward, and backward."""


class RankTimes:
    """One rank's share of the work, in seconds."""

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
        self.traffic = traffic_of(how)
        self.experts = spec.experts.count / d.expert if spec.experts else 0.0
        # Times the bytes of 16 bits that routed experts move: what autocast does not know stays in fp32.
        self.widened = FP32 / BYTES_16BIT if how.grouped_experts and how.autocasts else 1.0

    def seconds(self, flop: Any, moved: Any, rate: float) -> Any:
        """Seconds of products."""
        c, memory = self.c, self.speeds.memory
        return product_seconds.over(flop=flop, rate=rate, traffic_factor=c.operands, bytes=moved, bandwidth=memory)

    def dense(self, products: Products, rate: float) -> TokenAndLayer:
        """Products that every token runs through, routed to none."""
        t = self.d.tensor
        per_token = self.seconds(products.flop(t) + self.tail(products.number), products.moved(t), rate)
        read = products.element * products.weights.on(t)
        return per_token, self.seconds(self.tail(products.sides(t)), read, rate)

    def tail(self, sides: Any) -> Any:
        """FLOPs lost in the last tiles of products with such sides: that of the tokens grows by one with each token and
        product, the inner and the outer one are there once a layer."""
        return tail_flop.over(sides=sides, tail=self.c.tail)

    def routed_experts(self, products: Products) -> TokenAndLayer:
        """Products of the routed experts, of a layer that has them."""
        moe = self.spec.experts
        if moe is None:
            return 0.0, 0.0
        c, expert_split = self.c, self.d.expert_split
        # TEGroupedMLP adds biases expert by expert, in fp32; NeMo AutoModel takes no longer for them.
        adds_biases = self.spec.ffn_bias and self.running.software in ("megatron", "megatron tuned")
        rate = self.speeds.weight_matmul * (c.expert_bias if adds_biases else 1.0)
        if self.how.grouped_experts and (self.how.autocasts or self.how.in_fp32):
            rate = _ONE_BY_ONE * self.speeds.matmul32
        routed = moe.per_token * self.running.imbalance * expert_split / self.d.tensor
        half_rate_tokens = c.expert_half16 if self.bits == 16 else c.expert_half8
        flop, moved = products.flop(expert_split), products.moved(expert_split)
        per_token = self.seconds(routed * flop, routed * moved, rate)
        # What reading an expert's weights costs is in the tokens that it is padded by: both are one amount per expert.
        idle = padded_tokens.over(experts=self.experts, half_rate_tokens=half_rate_tokens)
        return per_token, self.seconds(idle * flop + self.tail(products.sides(expert_split)), 0.0, rate)

    def core_attention(self, seq_len: Any) -> BothPasses:
        """Per token: attention's products of activations."""
        work, t, speeds, how = self.work, self.d.tensor, self.speeds, self.how
        scan, scan_back = self.scan()
        flop = square_flop(self.spec, seq_len, flash=how.flash) / t
        if how.flash:
            # Ring attention is as many kernels as ranks, each of which reads and writes its own.
            moved = BYTES_16BIT * self.d.context * (work.qkv.on(t) + work.result / t)
            forward = flop / speeds.attention + moved / speeds.memory
            return forward + scan, _FLASH_BACK * forward + scan_back
        slow = 1.0 if work.whole_tiles else self.c.odd_head**4
        scores = _SCORE_BYTES * work.heads * np.asarray(seq_len) / t / speeds.memory
        products = flop * slow / (_SCORE_RATE * speeds.matmul16)
        return products + scores + scan, 2.0 * products + self.traffic.back * scores + scan_back

    def scan(self) -> BothPasses:
        """Per token: moving states on."""
        work, t = self.work, self.d.tensor
        if not work.scan_flop:
            return 0.0, 0.0
        products = work.scan_flop / t / (self.c.scan * self.speeds.peak16)
        forward = products + work.scan_bytes / t / self.speeds.memory
        return forward, _SCAN_BACK * forward

    def ring_merges(self) -> BothPasses:
        """Per token: ring attention adding up its passes, as many as ranks."""
        d, work = self.d, self.work
        result, given = work.result / d.tensor, work.qkv.on(d.tensor)
        passes, later = _RING_MERGED * d.context * (d.context > 1), _RING_COPIED * (d.context - 1)
        each = self.c.elementwise / self.speeds.memory
        return each * (passes * result + later * given), each * (passes * given + later * (given + 2.0 * result))

    def accumulation(self, product: Any) -> Any:
        """Seconds of a layer in which gradients of weights are accumulated over micro-batches.

        product: seconds of the products that make them, whose kernels add as well; torch and DeepSpeed add in kernels
        of their own.
        """
        work, moe, d = self.work, self.spec.experts, self.d
        own = work.dense.weights.on(d.tensor)
        if moe:
            own = own + work.moe_share * self.experts * work.routed.weights.on(d.expert_split)
        each: Any = _ACCUMULATED_16BIT if self.running.dtype == "fp16" else _ACCUMULATED
        if self.running.software == "deepspeed 2021":
            each = np.where(d.zero >= 1, _ACCUMULATED_DEEPSPEED, each)
        time = each * (d.micro_batches > 1) * own / self.speeds.memory
        in_own_kernels = self.running.software in ("eager", "deepspeed 2021")
        return time if in_own_kernels else adding_seconds.over(product=product, added=time)

    def recomputed(self, module: LayerModule) -> TokenAndLayer:
        """Computing one of a layer's modules again; that of attention's core is in `core_attention`."""
        work, t = self.work, self.d.tensor
        if module == LayerModule.NORMS:
            divided = pick(self.d.sequence_parallel > 0, t, 1.0)
            return self._moved(work.norms / divided), 0.0
        if module == LayerModule.ACTIVATION:
            return self._moved((work.gated["mlp"] + self.widened * work.gated["moe"]) / t), 0.0
        if module == LayerModule.UP_PROJECTION:
            return self.dense(work.inside["mla_up_proj"], self.speeds.weight_matmul)
        if module == LayerModule.NETWORK:
            each, once = self.dense(work.inside["mlp"], self.speeds.weight_matmul)
            return each + self._moved(work.gated["mlp"] / t), once
        parts = (self.routed_experts(work.routed), self.dense(work.router, self.speeds.matmul16))
        shared, shared_once = self.dense(work.inside["moe"], self.speeds.weight_matmul)
        each, once = (work.moe_share * sum(part[i] for part in parts) for i in range(2))
        moved = self._moved(self.widened * work.gated["moe"] / t) + self._sorted()
        return each + shared + moved, once + shared_once

    def _sorted(self) -> Any:
        """Seconds per token of sorting tokens to their experts and back."""
        slow = self.c.written_out if self.how.written_out else 1.0
        size = self.widened * self.traffic.sorted * self.work.moe_share * self.work.dispatched / self.d.tensor
        return slow * self.c.permutation * size / self.speeds.memory

    def _moved(self, size: Any) -> Any:
        """Seconds per token of operations on single elements that move so many bytes."""
        slow = self.c.written_out if self.how.written_out else 1.0
        return slow * self.c.elementwise * size / self.speeds.memory

    def adapter_additions(self) -> BothPasses:
        """Per token: what adapters add to results and to gradients of inputs, each in an operation of its own."""
        partly = self.how.partly
        if partly is None or not self.how.written_out:
            return 0.0, 0.0
        t, size = self.d.tensor, partly.element_bytes or BYTES_16BIT
        width_out, width_in = (
            sum(a.times * getattr(a, side) for a in partly.adapters) for side in ("width_out", "width_in")
        )
        forward = self._moved(size * (_SCALED + _SUMMED) * width_out / t)
        return forward, partly.active_share * self._moved(size * (_SCALED * width_out + _SUMMED * width_in) / t)

    def elementwise(self) -> Any:
        """Seconds per token of operations on single elements, casts and the sorting of tokens."""
        work, d, moe = self.work, self.d, self.spec.experts
        divided = pick(d.sequence_parallel > 0, d.tensor, 1.0)
        again = (self.widened - 1.0) * work.gated["moe"] / d.tensor
        seconds = (
            self._moved((work.norms + work.residuals) / divided + work.inner.on(d.tensor) + again) + self._sorted()
        )
        if self.bits >= 16:
            return seconds
        read = work.dense.read.on(d.tensor)
        if moe:
            routed = work.routed.read.on(d.expert_split) * d.expert_split
            read = read + routed * work.moe_share * moe.per_token / d.tensor
        slow = self.c.written_out if self.how.written_out else 1.0
        return seconds + slow * self.c.casts * _CAST_BYTES * read / self.speeds.memory
