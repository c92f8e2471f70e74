"""Seconds of one step in plain numbers, product by product: what `step_over` does for arrays, written the long way."""

from __future__ import annotations

import math

from core.hardware.cluster import Cluster
from core.models.spec import TransformerSpec
from core.step_time.constants import constants_of, family_of
from core.step_time.parts import Running
from core.training.layout import Layout

RECOMPUTED = {0: "none", 1: "selective", 2: "full", 3: "per operation"}
MODULES = ("core_attn", "layernorm", "act", "mla_up_proj", "mlp", "moe")


def ring(size: float, ranks: float) -> float:
    return size * (ranks - 1) / ranks


def waited(time: float, share: float, behind: float) -> float:
    return share * time + max(0.0, (1 - share) * time - behind)


class Reference:
    """One plan of bf16 with fused kernels and AdamW in mixed precision; ``of`` holds its parts in seconds."""

    def __init__(self, spec: TransformerSpec, cluster: Cluster, layout: Layout, seq_len: int, running: Running) -> None:
        self.spec, self.cluster, self.layout, self.running = spec, cluster, layout, running
        self.c = constants_of(family_of(cluster.accelerator))
        self.peak = cluster.accelerator.peak("bf16")
        self.rate = self.peak * self.c.matmul16
        self.memory = cluster.accelerator.bandwidth * self.c.bandwidth
        self.inside, self.between = cluster.link_inside * self.c.inside, cluster.link_between * self.c.between
        self.host = 0.87 * {"5.0 x16": 63.0e9, "4.0 x16": 31.5e9}[cluster.accelerator.pcie]
        self.tokens = layout.micro_batch * seq_len / layout.context
        self.of = self._parts(seq_len)

    def group(self, ranks: float, stride: float) -> float:
        if ranks * stride <= self.cluster.per_node:
            return self.inside
        here = min(max(self.cluster.per_node / stride, 1), ranks)
        return min(self.inside, self.between * here) if here > 1 else self.between

    def product(self, m: float, n: float, k: float) -> float:
        """Forward of one product, its share of the idle ends of all three with it."""
        flop = 2 * m * n * k + 2 / 3 * self.c.tail * (m + n + k)
        return flop / self.rate + self.c.operands * 2 * (m * k + k * n + m * n) / self.memory

    def layer(self, mixed: bool, seq_len: int) -> dict[str, float]:
        """Seconds of a layer, forward and backward; what is waited for beside it."""
        s, lay, c = self.spec, self.layout, self.c
        t, tokens = lay.tensor, self.tokens
        kv = s.kv_heads / min(t, s.kv_heads)
        queries = s.heads * s.head_dim / t
        forward = self.product(tokens, queries + 2 * kv * s.head_dim, s.hidden)
        forward += self.product(tokens, s.hidden, queries)
        weights = s.hidden * (queries * 2 + 2 * kv * s.head_dim)
        pairs, attending = s.ffn_matrices - 1, forward
        inner = last = 0.0
        if not mixed:
            last = self.product(tokens, s.hidden, s.ffn / t)
            forward += self.product(tokens, pairs * s.ffn / t, s.hidden) + last
            weights += s.ffn_matrices * s.hidden * s.ffn / t
            inner = s.ffn / t
        moved = 0.0
        if mixed:
            moe = s.experts
            assert moe
            spread = self.running.expert_tensor if lay.expert > 1 else t
            width, experts = moe.width / spread, moe.count / lay.expert
            shared = moe.shared * (moe.shared_width or moe.width) / t
            if shared:
                forward += self.product(tokens, pairs * shared, s.hidden) + self.product(tokens, s.hidden, shared)
            forward += self.product(tokens, moe.count / t, s.hidden)
            here = tokens * moe.per_token * spread / t
            rate = self.rate * (c.expert_bias if s.ffn_bias and self.running.software in ("", "mature") else 1.0)
            each = 2 * s.ffn_matrices * s.hidden * width
            ends = 2 / 3 * c.tail * (s.hidden + pairs * width + width + s.hidden)
            forward += ((here + experts * c.expert_half16) * each + ends) / rate
            forward += c.operands * 2 * here * (2 * s.hidden + (pairs + 1) * width) / self.memory
            weights += s.ffn_matrices * s.hidden * (shared + experts * width)
            inner = moe.per_token * moe.width / t + shared
            moved = c.permutation * 8 * s.hidden * tokens * moe.per_token / t
        seen = seq_len
        if s.window and s.windowed_layers == s.layers:
            w = min(s.window.size, seq_len)
            seen = 2 * (w - w * w / (2 * seq_len))
        core = 2 * tokens * seen * queries / (self.peak * c.attention)
        core += 2 * lay.context * tokens * 2 * (queries + kv * s.head_dim) / self.memory
        narrow = t if lay.sequence_parallel else 1
        turned = 6 if s.position_kind == "rotary" else 4
        gated = 6 if s.glu else 4
        elements = c.elementwise * tokens * (20 * s.hidden / narrow)
        elements += c.elementwise * tokens * (turned * (queries + 2 * kv * s.head_dim) + gated * inner)
        elements = (elements + moved) / self.memory
        merged = {"forward": 0.0, "both": 0.0}
        if lay.context > 1:
            each, given = c.elementwise * tokens / self.memory, queries + 2 * kv * s.head_dim
            front = 6 * lay.context * queries + (lay.context - 1) * given
            back = 6 * lay.context * given + (lay.context - 1) * (given + 2 * queries)
            merged = {"forward": each * front, "both": each * (front + back)}
        layers, way = divmod(int(lay.recompute), 128)
        again, share = RECOMPUTED.get(way, "modules"), min(1.0, layers * lay.pipeline / s.layers) if layers > 0 else 1.0
        moving = c.elementwise * tokens / self.memory
        apart = {
            "core_attn": core,
            "layernorm": 8 * s.hidden / narrow * moving,
            "act": gated * inner * moving,
            "mlp": 0.0 if mixed else forward - attending + gated * inner * moving,
            "moe": forward - attending + gated * inner * moving + moved / self.memory if mixed else 0.0,
        }
        named = [name for i, name in enumerate(MODULES) if again == "modules" and (way - 3) >> i & 1]
        repeat = (
            share
            * {
                "none": 0.0,
                "modules": sum(apart[name] for name in named),
                "selective": 0.7 * elements,
                "full": forward + core + elements + merged["forward"],
                "per operation": 0.5 * forward + elements,
            }[again]
        )
        added = 6 * weights / self.memory if lay.micro_batches > 1 else 0.0
        passes = 2 + share * (again == "full")
        other = share * (("moe" if mixed else "mlp") in named)
        times = 4 - (2 if mixed and lay.expert > 1 and not (s.experts and s.experts.shared) else 0)
        size = 2 * s.hidden * tokens
        tensor = (
            times * (passes + other / 2) * (ring(size, t) / self.group(t, 1) + c.hop_inside * math.log2(t))
            if t > 1
            else 0.0
        )
        tensor *= c.tensor_overlap if self.running.overlap else 1.0
        context = 0.0
        if lay.context > 1:
            passed = (passes + 1) * (lay.context - 1) * tokens * 2 * 2 * kv * s.head_dim
            near = lay.context * t <= self.cluster.per_node
            share = c.context_wait if self.running.overlap else 1.0
            context = waited(passed / (self.inside if near else self.between), share, 3.5 * core)
        expert = 0.0
        if mixed and lay.expert > 1:
            assert s.experts
            nodes = max(1.0, lay.expert * self.running.expert_tensor / self.cluster.per_node)
            sent = 2 * ring(size / t * s.experts.per_token, lay.expert) / self.inside
            met = nodes * (1 - (1 - 1 / nodes) ** s.experts.per_token)
            far = 2 * ring(size / t * met, nodes) / self.between if nodes > 1 else 0.0
            hop = c.hop_between if nodes > 1 else c.hop_inside
            expert = c.expert_wait * (passes + other) * (max(sent, far) + 2 * hop * math.log2(lay.expert))
        return {
            "forward": forward + elements + merged["forward"] + (core if lay.context == 1 else 0.0),
            "matmul": 3 * forward,
            "attention": 3.5 * core,
            "elementwise": 2.5 * elements + merged["both"],
            "added": added,
            "recompute": repeat,
            "tensor": tensor,
            "context": context,
            "expert": expert,
            "fixed": c.per_layer + (c.per_expert * s.experts.count / lay.expert if mixed and s.experts else 0.0),
        }

    def _parts(self, seq_len: int) -> dict[str, float]:
        s, lay, c = self.spec, self.layout, self.c
        dense, mixed = self.layer(False, seq_len) if s.dense_layers else {}, {}
        if s.moe_layers:
            mixed = self.layer(True, seq_len)
        layer = {
            name: (s.dense_layers * dense.get(name, 0.0) + s.moe_layers * mixed.get(name, 0.0)) / s.layers
            for name in (dense or mixed)
        }
        forward, products = layer.pop("forward"), layer["matmul"] / 3
        layer["elementwise"] += math.hypot(products, layer.pop("added")) - products
        p, v, many = lay.pipeline, lay.interleave, lay.micro_batches
        here = s.layers / p
        head = 3 * self.product(self.tokens, s.vocab / lay.tensor, s.hidden)
        logits = c.elementwise * 12 * self.tokens * s.vocab / lay.tensor / self.memory
        stage = here * sum(layer.values())
        by_name = {name: many * here * value for name, value in layer.items()}
        by_name["matmul"] += many * head / p
        by_name["elementwise"] += many * logits / p
        by_name["fixed"] += c.per_step
        transfer = 0.0
        if p > 1:
            far = lay.accelerators > self.cluster.per_node
            share = lay.tensor if lay.sequence_parallel else 1
            sent = self.tokens * 2 * s.hidden / share / (self.between if far else self.inside)
            transfer = 2 * v * (sent + (c.hop_between if far else c.hop_inside))
        by_name["transfer"] = many * c.transfer_wait * transfer
        chunk = s.layers / (p * v)
        if chunk == math.ceil(chunk):
            uneven = (head + logits) * (1 - 1 / p)
        else:
            uneven = max(0.0, (math.ceil(chunk) - chunk) * v * sum(layer.values()) - (head + logits) / p)
        by_name["bubble"] = (p - 1) / v * (stage + transfer) + many * uneven
        beside = ("matmul", "elementwise", "recompute", "fixed", *(("attention",) if lay.context == 1 else ()))
        computing = here * sum(layer[name] for name in beside)
        by_name["data"], by_name["optimizer"] = self._shared(here * forward, computing - here * forward)
        doublings = math.log2(max(1.0, lay.accelerators / self.cluster.per_node))
        beside = c.contention * (1 - 1 / lay.accelerators)
        by_name["jitter"] = (c.jitter * doublings + beside) * sum(by_name.values())
        return by_name

    def _shared(self, forward: float, backward: float) -> tuple[float, float]:
        """Data-parallel communication and the update, of a dense model whose ends are not tied."""
        s, lay, c = self.spec, self.layout, self.c
        t, kv = lay.tensor, s.kv_heads / min(lay.tensor, s.kv_heads)
        layer = s.hidden * s.head_dim * (2 * s.heads / t + 2 * kv) + 2 * s.hidden
        routed = 0.0
        if s.experts:
            share = s.moe_layers / s.layers
            layer += share * s.hidden * s.experts.count
            spread = self.running.expert_tensor if lay.expert > 1 else t
            routed = share * s.experts.count / lay.expert * s.ffn_matrices * s.hidden * s.experts.width / spread
            shared = s.experts.shared * (s.experts.shared_width or s.experts.width)
            layer += share * s.ffn_matrices * s.hidden * shared / t
            layer += (1 - share) * s.ffn_matrices * s.hidden * s.ffn / t
        else:
            layer += s.ffn_matrices * s.hidden * s.ffn / t
        layers = math.ceil(s.layers / lay.pipeline)
        own, routed = layers * layer + s.hidden * s.vocab / t, layers * routed
        ranks = lay.data * lay.context
        shards = lay.shard_group or ranks
        routed_shards, stride = shards, t
        if lay.expert > 1:
            stride = lay.expert * self.running.expert_tensor
            routed_shards = max(1, shards * t / stride)
        once = ring(2 * own, shards) / self.group(shards, t) if shards > 1 else 0.0
        if routed and routed_shards > 1:
            once += ring(2 * routed, routed_shards) / self.group(routed_shards, stride)
        alone = lay.pipeline == 1
        reduces = lay.micro_batches if lay.zero >= 2 and alone else 1
        share, front, behind, ahead = c.data_wait, once, reduces * once, 1
        if lay.zero == 3 and alone:
            far = shards * t > self.cluster.per_node
            late = layers * (shards - 1) * (c.ring if far else 0.0) * lay.micro_batches
            share, ahead = c.gather_wait, lay.micro_batches
            front = ahead * once + late
            if lay.offload > 1:
                front += 2 * (own / shards + routed / routed_shards) / self.host * lay.micro_batches
            behind += front + late
        share = share if self.running.overlap else 1.0
        data = waited(front, share, ahead * forward) + waited(behind, share, reduces * backward)
        if shards < ranks:
            groups = ranks / shards
            across = ring(2 * 2 * (own / shards + routed / routed_shards), groups)
            data += share * across / self.group(groups, t * shards)
        split = (shards, routed_shards) if lay.zero else (1, 1)
        moved = (2 * 12 + 2 + 2) * (own / split[0] + routed / split[1])
        host = c.host * min(4.5, 8 / min(lay.accelerators, self.cluster.per_node))
        return data, 8 * (own + routed) / self.memory + moved / (host if lay.offload else self.memory)
