"""Seconds of one layer and one micro-batch on one rank: products, attention, the rest, and what it sends meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from core.models.spec import TransformerSpec
from core.step_time.formulas import (
    Constants,
    adding_seconds,
    exposed_seconds,
    latency_seconds,
    nodes_met,
    padded_tokens,
    product_seconds,
    started_seconds,
    tail_flop,
)
from core.step_time.running import BITS, GROUPED, Running, Speeds
from core.step_time.work import (
    BYTES_16BIT,
    RESIDUALS,
    LayerWork,
    Products,
    layer_work,
    norm_traffic,
    square_flop,
    traffic_of,
)
from core.training.activations.tensors import COMPILED_WHOLE, FP32, Implementation, rank_tokens
from core.training.device.traffic import gathered_tokens, outputs_sent, passed_bytes, ring_bytes, sent_widths
from core.training.layout import Degrees, LayerModule, Recompute, modules_of, pick, share_again, way_of

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
        if module == LayerModule.LAYERNORM:
            divided = pick(self.d.sequence_parallel > 0, t, 1.0)
            return self._moved((1.0 - RESIDUALS / norm_traffic(self.spec, self.how)) * work.norms / divided), 0.0
        if module == LayerModule.ACT:
            return self._moved((work.gated["mlp"] + self.widened * work.gated["moe"]) / t), 0.0
        if module == LayerModule.MLA_UP_PROJ:
            return self.dense(work.inside["mla_up_proj"], self.speeds.weight_matmul)
        if module == LayerModule.MLP:
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
        seconds = self._moved(work.norms / divided + work.inner.on(d.tensor) + again) + self._sorted()
        if self.bits >= 16:
            return seconds
        read = work.dense.read.on(d.tensor)
        if moe:
            routed = work.routed.read.on(d.expert_split) * d.expert_split
            read = read + routed * work.moe_share * moe.per_token / d.tensor
        slow = self.c.written_out if self.how.written_out else 1.0
        return seconds + slow * self.c.casts * _CAST_BYTES * read / self.speeds.memory


_AGAIN = 0.7
"""Share of the operations on single elements that selective recomputation does again, with fused attention."""

_EVERY_SECOND = 0.5
"""Share of a layer's products that recomputation per operation does again: every second one."""

_LAST_SCATTER, _SENT_BACK = 0.25, 0.5
"""What recomputation without each last product leaves out: the last of a layer's two gathers and two scatters along the
sequence, and of what goes to experts and back the way back."""

_LOGIT_BYTES, _LOGIT_BYTES_WRITTEN_OUT = 12.0, 32.0
"""Moved for each logit by cross-entropy, forward and backward: in one kernel, and where logits are copied into fp32,
their log-softmax is written, and both have gradients."""

_SEPARATE_LOSS, _COMPILED_LOSS, _READ_AGAIN, _LARGE_VOCAB = 36.0, 8.0, 12.0, 48_000
"""The same where the loss is named: torch’s own with the zeroed gradient of its log-likelihood; compiled with the
model; and what log-softmax reads again, for maximum, sum, and sum of the gradient, where rows at work, two a
multiprocessor in fp32, outgrow an L2 of 50 MB [aten/src/ATen/native/cuda/SoftMax.cu]. Dense cross-entropy of 32,768
tokens and a vocabulary of 201,088 took 107 ms with its products [Noumena-Network/nmoe pull request 10]."""

_PASS, _PASS_ADAPTER, _PASS_QUANTISED = 1.6e-3, 0.08, 0.11
"""Seconds in which a host starts one pass of a layer operation by operation; what each adapter adds to that, and one
beside a weight in few bits. Measured on three hosts of an H100 or H200: 1.3 to 2.5 ms a pass of a Llama layer."""

_COPIED = 2.0
"""Times that torch moves all of a gather or scatter along the sequence, beside sending it: ranks' parts come, and go,
one after the other, and `torch.cat` reads and writes them for each sequence [torch.distributed._functional_collectives;
eleven copies a layer with full recomputation, counted under DTensor on torch 2.13]."""


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
    rank, c, partly = RankTimes(spec, how, d, running, speeds, constants), constants, how.partly
    work = rank.work
    tokens = rank_tokens.over(micro_batch=d.micro_batch, seq_len=np.asarray(seq_len), context=d.context)
    matmul = _products(rank, tokens, work.dense, work.routed, router=True)
    core, core_back = rank.core_attention(seq_len)
    attention, elements = tokens * core, tokens * rank.elementwise()
    both_attentions = (
        tokens * (core + core_back) if partly is None else tokens * (core + partly.active_share * core_back)
    )
    merging, merging_back = rank.ring_merges()
    forward = matmul + attention + elements + tokens * merging
    again = _computed_again(rank, tokens, forward, matmul, attention, elements)
    # Of the passes through a layer: all products are three where everything is trained, else as many as there are.
    backward_passes = partly.active_share if partly else 1.0
    matmul_passes = partly.flop_over_forward if partly else 3.0
    adapters, adapters_back = rank.adapter_additions()
    recompute = again.seconds * backward_passes + tokens * again.full * adapters
    elementwise = (1.0 + rank.traffic.back * backward_passes) * elements
    computing = matmul_passes * matmul + elementwise + both_attentions + recompute
    host_passes = 1.0 + backward_passes * (1.0 + again.full)
    dequantising: Any = 0.0
    if partly and partly.quantised_bytes_per_parameter:
        moved = (partly.quantised_bytes_per_parameter + BYTES_16BIT) * work.dense.weights.on(d.tensor)
        dequantising = host_passes * moved / speeds.memory
    head, head_once = rank.dense(work.head, speeds.matmul16)
    head_products = 2.0 + partly.head_share if partly else 3.0
    logits = c.elementwise * _logit_bytes(how, spec.vocab) * work.logits / d.tensor / speeds.memory
    ring = (d.context > 1) * 1.0
    skipped = running.skips_last_product
    return LayerTime(
        forward=forward - ring * attention,
        matmul=matmul_passes * matmul,
        attention=both_attentions,
        elementwise=elementwise
        + tokens * (merging + merging_back + adapters + adapters_back)
        + (rank.accumulation(matmul) if partly is None else dequantising),
        recompute=recompute,
        tensor=_tensor(rank, tokens, 2.0 + again.gathered - again.full * _LAST_SCATTER * skipped),
        context=_context(rank, tokens, 3.0 + again.full, both_attentions),
        expert=_expert(rank, tokens, 2.0 + again.dispatched - again.full * _SENT_BACK * skipped)
        if work.moe_share
        else 0.0,
        fixed=_fixed(rank, computing, host_passes),
        head=head_products * (tokens * head + head_once),
        head_elementwise=tokens * logits,
        ring=ring,
    )


def _logit_bytes(how: Implementation, vocab: int) -> float:
    if how.timed_loss is None:
        return _LOGIT_BYTES_WRITTEN_OUT if how.written_out else _LOGIT_BYTES
    if how.timed_loss == "fused":
        return _LOGIT_BYTES
    if how.timed_loss == COMPILED_WHOLE:
        return _COMPILED_LOSS
    return _SEPARATE_LOSS + _READ_AGAIN * (vocab > _LARGE_VOCAB)


def _products(rank: RankTimes, tokens: Any, dense: Products, routed: Products, *, router: bool = False) -> Any:
    """Seconds of a mean layer's products, those of routed experts by the share of layers that have any."""
    work = rank.work
    each, once = rank.dense(dense, rank.speeds.weight_matmul)
    if work.moe_share:
        parts = [rank.routed_experts(routed)] + ([rank.dense(work.router, rank.speeds.matmul16)] if router else [])
        for per_token, per_layer in parts:
            each, once = each + work.moe_share * per_token, once + work.moe_share * per_layer
    return tokens * each + once


@dataclass(frozen=True, slots=True)
class _ComputedAgain:
    """What backward computes again. full: share of the layers that are computed again whole. gathered, dispatched: of
    a layer's gathers along the sequence, and of its exchanges between experts, how many are done again."""

    seconds: Any
    full: Any
    gathered: Any
    dispatched: Any


def _computed_again(
    rank: RankTimes, tokens: Any, forward: Any, matmul: Any, attention: Any, elements: Any
) -> _ComputedAgain:
    """What backward computes again of a layer's forward, by each layout's recomputation."""
    d, how, running, work = rank.d, rank.how, rank.running, rank.work
    mode, recomputed_share = way_of(d.recompute), share_again(d.recompute, work.layers / d.pipeline)
    full, selective, by_one = (
        (mode == item) * recomputed_share for item in (Recompute.FULL, Recompute.SELECTIVE, Recompute.PER_OPERATION)
    )
    if np.any(running.skips_last_product):
        forward = forward - running.skips_last_product * _products(rank, tokens, work.last, work.routed_last)
    core = _AGAIN * elements if how.flash else attention
    seconds = full * forward + selective * core + by_one * (_EVERY_SECOND * matmul + elements)
    if not np.any(mode > Recompute.PER_OPERATION):
        return _ComputedAgain(seconds, full, full, full)
    modules = modules_of(d.recompute, flash=how.flash) * (mode > Recompute.PER_OPERATION)
    here = {module: (modules & module > 0) * recomputed_share for module in LayerModule}
    seconds = seconds + here[LayerModule.CORE_ATTN] * attention
    for module in (item for item in LayerModule if item != LayerModule.CORE_ATTN and np.any(here[item])):
        per_token, per_layer = rank.recomputed(module)
        seconds = seconds + here[module] * (tokens * per_token + per_layer)
    # Of a layer's two blocks one gathers and scatters again.
    gathered = full + 0.5 * ((1.0 - work.moe_share) * here[LayerModule.MLP] + work.moe_share * here[LayerModule.MOE])
    return _ComputedAgain(seconds, full, gathered, full + here[LayerModule.MOE])


def _fixed(rank: RankTimes, computing: Any, passes: Any) -> Any:
    """Seconds of a layer that no token adds to: what starts its kernels, as far as ``computing`` does not hide it."""
    c, work, running, partly = rank.c, rank.work, rank.running, rank.how.partly
    started = rank.experts * (running.software not in GROUPED)
    fixed: Any = c.per_layer + work.moe_share * c.per_expert * started
    if work.moe_share and np.any(np.equal(running.graphs, 0)):
        hidden = computing + fixed
        fixed = fixed + work.moe_share * (1 - running.graphs) * np.maximum(0.0, c.launches - hidden)
    if running.software == "eager":
        starting = _PASS * passes
        if partly:
            starting = starting * (
                1.0
                + (_PASS_ADAPTER + _PASS_QUANTISED * (partly.quantised_bytes_per_parameter > 0)) * len(partly.adapters)
            )
        hidden = computing + fixed
        fixed = fixed + (1.0 - work.moe_share) * (started_seconds.over(starting=starting, computing=hidden) - hidden)
    return fixed


def _tensor(rank: RankTimes, tokens: Any, passes: Any) -> Any:
    """Reduce-scatters and all-gathers of a layer's two outputs that are waited for.

    Routed experts that are spread over some ranks gather their tokens there.
    """
    d, spec, c, speeds, work = rank.d, rank.spec, rank.c, rank.speeds, rank.work
    t = d.tensor
    times = outputs_sent(spec, 1.0, work.moe_share, d)
    size = BYTES_16BIT * spec.hidden
    sent = ring_bytes.over(times=times * passes, size=size, ranks=t)
    hop = pick(t <= speeds.domain, c.hop_inside, c.hop_between)
    per_token = sent / speeds.group(t, 1.0)
    late = latency_seconds.over(times=times * passes, hop=hop, ranks=t)
    if rank.running.software in GROUPED:
        per_token = per_token + (t > 1) * d.sequence_parallel * times * passes * _COPIED * size / speeds.memory
    gathered = gathered_tokens(work.moe_share * passes, BYTES_16BIT * work.dispatched, d)
    per_token = per_token + gathered / speeds.group(rank.d.expert_split, 1.0)
    beside = rank.running.overlap if rank.running.overlap_tensor is None else rank.running.overlap_tensor
    share = 1.0 + beside * (c.tensor_overlap - 1.0)  # without overlap all of it is waited for
    return share * (tokens * per_token + late)


def _context(rank: RankTimes, tokens: Any, passes: Any, attention: Any) -> Any:
    """Keys and values that pass by every context-parallel rank, as far as attention does not hide them."""
    d, widths, speeds = rank.d, sent_widths(rank.spec), rank.speeds
    if not np.any(d.context > 1):
        return 0.0
    size = tokens * (BYTES_16BIT * widths.kept.on(d.tensor))
    sent = passed_bytes.over(passes=passes, size=size, ranks=d.context)
    time = sent / speeds.neighbour(d.context, d.tensor)
    share = 1.0 + rank.running.overlap * (rank.c.context_wait - 1.0)
    waited = exposed_seconds.over(time=time, share=share, behind=attention)
    if not widths.state:
        return waited
    size = tokens * (BYTES_16BIT * widths.state / d.tensor)
    exchanged = ring_bytes.over(times=passes - 1.0, size=size, ranks=d.context)
    return waited + exchanged / speeds.group(d.context, d.tensor)


def _expert(rank: RankTimes, tokens: Any, passes: Any) -> Any:
    """All-to-alls to the experts and back that are waited for.

    Beyond one domain the network carries one copy of a token to each node that its experts lie on, while the links
    inside carry one for each expert.
    """
    d, c, speeds, moe = rank.d, rank.c, rank.speeds, rank.spec.experts
    if moe is None or not np.any(d.expert > 1):
        return 0.0
    e, span = d.expert, d.expert * rank.d.expert_split
    size = BYTES_16BIT * rank.work.dispatched / d.tensor * rank.running.imbalance
    inside = ring_bytes.over(times=2.0, size=size, ranks=e) / np.where(e > 1, speeds.inside, np.inf)
    nodes = np.maximum(1.0, span / speeds.domain)
    met = nodes_met.over(nodes=nodes, chosen=moe.per_token)
    # A group of experts that several nodes share reaches all of them.
    met = np.minimum(met, moe.groups_per_token * np.maximum(1.0, nodes / moe.route_groups))
    between = ring_bytes.over(times=2.0, size=size * met / moe.per_token, ranks=nodes)
    across = np.where(nodes > 1, between / speeds.between, 0.0)
    hop = pick(nodes > 1, c.hop_between, c.hop_inside)
    late = latency_seconds.over(times=2.0, hop=hop, ranks=e)
    share = c.expert_wait * rank.work.moe_share * passes
    return share * (tokens * np.maximum(inside, across) + late)
