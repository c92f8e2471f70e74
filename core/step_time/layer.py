"""Seconds of one layer and one micro-batch on one rank: products, attention, the rest, and what it sends meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.models.spec import TransformerSpec
from core.step_time.constants import Constants
from core.step_time.formulas import exposed_seconds, latency_seconds, nodes_met, started_seconds
from core.step_time.links import Speeds
from core.step_time.parts import GROUPED, Running
from core.step_time.rank import RankTimes
from core.step_time.work import BYTES_16BIT, Products
from core.training.activations.formulas import rank_tokens
from core.training.activations.tensors import Implementation
from core.training.device.traffic import gathered_tokens, outputs_sent, passed_bytes, ring_bytes, sent_widths
from core.training.layout import Degrees, LayerModule, Recompute, modules_of, share_again, way_of

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
    logit_bytes = _LOGIT_BYTES_WRITTEN_OUT if how.written_out else _LOGIT_BYTES
    logits = c.elementwise * logit_bytes * work.logits / d.tensor / speeds.memory
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
    seconds = seconds + here[LayerModule.CORE] * attention
    for module in (item for item in LayerModule if item != LayerModule.CORE and np.any(here[item])):
        per_token, per_layer = rank.recomputed(module)
        seconds = seconds + here[module] * (tokens * per_token + per_layer)
    # Of a layer's two blocks one gathers and scatters again.
    gathered = full + 0.5 * (
        (1.0 - work.moe_share) * here[LayerModule.NETWORK] + work.moe_share * here[LayerModule.MIXTURE]
    )
    return _ComputedAgain(seconds, full, gathered, full + here[LayerModule.MIXTURE])


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
    hop = np.where(t <= speeds.domain, c.hop_inside, c.hop_between)
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
    hop = np.where(nodes > 1, c.hop_between, c.hop_inside)
    late = latency_seconds.over(times=2.0, hop=hop, ranks=e)
    share = c.expert_wait * rank.work.moe_share * passes
    return share * (tokens * np.maximum(inside, across) + late)
