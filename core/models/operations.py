"""The transformer, written down once: every operation that one token runs through, in the order of modelling code.

Parameters, weight matrices, FLOPs, a rank's share, saved activations, and the KV cache are sums over this list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from core.limits import cached
from core.models.mixer import Mixer
from core.models.operation import (
    Activation,
    Add,
    AttentionCore,
    ChannelDeltaRule,
    Combine,
    Convolution,
    DeltaRule,
    Dispatch,
    GroupedLinear,
    IndexCore,
    LayerLookup,
    Linear,
    Logits,
    Loss,
    Multiply,
    Op,
    Rope,
    Route,
    Scan,
    Split,
    Tensor,
    Tower,
    View,
    Weight,
    Writer,
)
from core.models.spec import (
    CompressedAttention,
    Experts,
    Indexer,
    KeyValues,
    LatentAttention,
    SlidingWindow,
    TransformerSpec,
)

KeysAndValues: TypeAlias = "dict[tuple[int, int], tuple[Tensor, Tensor]]"
"""Keys and values of earlier layers, by key/value heads and width of a head."""


def attention(
    net: Writer, spec: TransformerSpec, x: Tensor, earlier: KeysAndValues | None = None, keys: KeyValues = "own"
) -> Tensor:
    """Write multi-head, grouped-query, or multi-query attention. keys: where keys and values come from."""
    queries, results = spec.heads * spec.head_dim, spec.heads * spec.value_dim
    size, known = (spec.kv_heads, spec.head_dim), {} if earlier is None else earlier
    q = net.linear("self_attn.q_proj", x, queries, "tensor", bias=spec.attention_bias)
    k = v = q
    if keys != "earlier":
        k = v = net.linear("self_attn.k_proj", x, spec.kv_heads * spec.head_dim, "kv", bias=spec.attention_bias)
    if keys == "own":
        v = net.linear("self_attn.v_proj", x, spec.kv_heads * spec.value_dim, "kv", bias=spec.attention_bias)
    if spec.qk_norm != "none":
        gain = spec.head_dim if spec.qk_norm == "head" else 0
        q = net.norm("self_attn.q_norm", q, gain=gain)
        k = k if keys == "earlier" else net.norm("self_attn.k_norm", k, gain=gain)
    if spec.values_normed and keys != "earlier":
        v = net.norm("self_attn.v_norm", v, 0)
    if spec.position_kind == "rotary":
        q = net.apply(Rope, "self_attn.q_rope", net.tensor("q_rope", q.width, "tensor"), q)
        if keys != "earlier":
            k = net.apply(Rope, "self_attn.k_rope", net.tensor("k_rope", k.width, "kv"), k)
    k, v = known[size] if keys == "earlier" else (k, v)
    known[size] = k, v
    if spec.indexer:
        write_indexer(net, spec, spec.indexer, x, x)
    y = attention_core(net, spec, (q, k, v), cached=() if keys == "earlier" else (k, v))
    return attention_output(net, spec, x, y, results)


def attention_output(net: Writer, spec: TransformerSpec, x: Tensor, y: Tensor, results: int) -> Tensor:
    """Write the gate of attention, where it has one, and the projection back to the hidden width."""
    if spec.attention_gate:
        width = spec.heads if spec.gate_per_head else results
        gate = net.linear("self_attn.g_proj", x, width, "tensor", bias=spec.attention_bias)
        y = net.apply(Multiply, "self_attn.gate", net.tensor("gated", results, "tensor"), y, gate)
    return net.linear("self_attn.o_proj", y, spec.hidden, bias=spec.output_bias)


def latent_attention(net: Writer, spec: TransformerSpec, low: LatentAttention, x: Tensor) -> Tensor:
    """Write multi-head latent attention."""
    up, queries = net.inside("mla_up_proj"), spec.heads * spec.score_dim
    q_latent = x
    if low.query_rank:
        q = net.linear("self_attn.q_a_proj", x, low.query_rank, bias=spec.attention_bias)
        q_latent = net.norm("self_attn.q_a_layernorm", q)
        q = up.linear("self_attn.q_b_proj", q_latent, queries, "tensor")
    else:
        q = up.linear("self_attn.q_proj", x, queries, "tensor")
    low_rank = net.linear("self_attn.kv_a_proj_with_mqa", x, low.kv_rank + low.rope_dim, bias=spec.attention_bias)
    latent, k_rope = net.parts(low_rank, low.kv_rank, low.rope_dim)
    latent = net.norm("self_attn.kv_a_layernorm", latent)
    kv = up.linear("self_attn.kv_b_proj", latent, spec.heads * (low.nope_dim + low.value_dim), "tensor")
    k, v = up.parts(kv, spec.heads * low.nope_dim, spec.heads * low.value_dim)
    if spec.position_kind == "rotary":
        q = up.apply(Rope, "self_attn.q_rope", up.tensor("q_rope", queries, "tensor"), q)
        k_rope = net.apply(Rope, "self_attn.k_rope", net.tensor("k_rope", low.rope_dim), k_rope)
    k = up.apply(View, "self_attn.k", up.tensor("k", queries, "tensor"), k, k_rope)
    if spec.indexer:
        write_indexer(net, spec, spec.indexer, x, q_latent)
    y = attention_core(net, spec, (q, k, v), cached=(latent, k_rope))
    return attention_output(net, spec, x, y, spec.heads * spec.value_dim)


def attention_core(net: Writer, spec: TransformerSpec, reads: tuple[Tensor, ...], cached: tuple[Tensor, ...]) -> Tensor:
    """Write the score and value matmuls, once for layers that see everything and once for windowed ones.

    Layers that choose tokens are written apart: with an indexer and latent attention all do, without a latent its own.
    """
    y = net.tensor("attn_output", spec.heads * spec.value_dim, "tensor", "core_attn")
    sinks = (Weight("self_attn.sinks", spec.heads, 1, 1, "tensor", "vector"),) if spec.attention_sinks else ()
    windowed = 0 if net.block == "mtp" else spec.windowed_layers
    chooses, everywhere = 0, net.layers - windowed
    if spec.indexer:
        chooses = everywhere if spec.latent or not spec.indexer.layers else min(spec.indexer.layers, everywhere)
    window, chosen = spec.window.size if spec.window else 0, spec.indexer.chosen if spec.indexer else 0
    kv_heads = spec.heads if spec.latent else spec.kv_heads
    sizes = {"heads": spec.heads, "kv_heads": kv_heads, "key_dim": spec.score_dim, "value_dim": spec.value_dim}
    for layers, last, most in ((everywhere - chooses, 0, 0), (windowed, window, 0), (chooses, 0, chosen)):
        if layers:
            seen: dict[str, Any] = {**sizes, "window": last, "chosen": most, "cached": cached}
            replace(net, layers=layers).apply(AttentionCore, "self_attn", y, *reads, weights=sinks, **seen)
    return y


def write_indexer(net: Writer, spec: TransformerSpec, indexer: Indexer, x: Tensor, q_latent: Tensor) -> None:
    """Write what chooses the tokens that attention sees. With latent attention its heads are weighed."""
    at = net.at(net.block, net.layers if net.block == "mtp" or not indexer.layers else indexer.layers)
    q = at.linear("self_attn.indexer.wq_b", q_latent, indexer.heads * indexer.head_dim)
    k = at.linear("self_attn.indexer.wk", x, indexer.head_dim)
    if indexer.normed:
        q = at.norm("self_attn.indexer.q_norm", q, gain=indexer.head_dim)
    k = at.norm("self_attn.indexer.k_norm", k, 1 if indexer.normed else 2)
    reads = (q, k)
    if spec.latent:
        reads = (q, k, at.linear("self_attn.indexer.weights_proj", x, indexer.heads))
    sizes: dict[str, Any] = {
        "heads": indexer.heads,
        "kv_heads": 1,
        "key_dim": indexer.head_dim,
        "value_dim": len(reads) - 2,
    }
    made = at.tensor("chosen tokens", indexer.chosen)
    at.apply(IndexCore, "self_attn.indexer", made, *reads, cached=(k,), **sizes)


def compressed_attention(net: Writer, spec: TransformerSpec, low: CompressedAttention, x: Tensor) -> Tensor:
    """Write attention to a window and to compressed entries, with queries and outputs of low rank."""
    queries, sinks = spec.heads * spec.head_dim, (Weight("self_attn.sinks", spec.heads, 1, 1, "tensor", "vector"),)
    q_latent = net.norm("self_attn.q_a_layernorm", net.linear("self_attn.q_a_proj", x, low.query_rank))
    q = net.norm("self_attn.q_norm", net.linear("self_attn.q_b_proj", q_latent, queries, "tensor"), 0)
    kv = net.norm("self_attn.k_norm", net.linear("self_attn.k_proj", x, spec.head_dim))
    q = net.apply(Rope, "self_attn.q_rope", net.tensor("q_rope", queries, "tensor"), q)
    kv = net.apply(Rope, "self_attn.k_rope", net.tensor("k_rope", spec.head_dim), kv)
    y = net.tensor("attn_output", queries, "tensor", "core_attn")
    sizes: dict[str, Any] = {"heads": spec.heads, "kv_heads": 1, "key_dim": spec.head_dim, "value_dim": spec.head_dim}
    size = spec.window.size if spec.window else 0
    net.apply(AttentionCore, "self_attn", y, q, kv, kv, weights=sinks, **sizes, window=size, cached=(kv,))
    predicts = net.block == "mtp"
    for layers, rate, indexer in ((low.sparse, low.sparse_rate, spec.indexer), (low.heavy, low.heavy_rate, None)):
        if layers and not predicts:
            at = net.at(net.block, layers)
            entry = compress(at, "self_attn.compressor", x, spec.head_dim, rate, 1 + bool(indexer))
            if indexer:
                heads = at.linear("self_attn.indexer.wq_b", q_latent, indexer.heads * indexer.head_dim)
                key = compress(at, "self_attn.indexer", x, indexer.head_dim, rate, 2)
                reads = (heads, key, at.linear("self_attn.indexer.weights_proj", x, indexer.heads))
                index: dict[str, Any] = {
                    "heads": indexer.heads,
                    "kv_heads": 1,
                    "key_dim": indexer.head_dim,
                    "value_dim": 1,
                }
                chosen = at.tensor("chosen tokens", indexer.chosen)
                at.apply(IndexCore, "self_attn.indexer", chosen, *reads, **index, cached=(key,), every=rate)
            most = indexer.chosen if indexer else 0
            at.apply(AttentionCore, "self_attn", y, q, entry, entry, **sizes, chosen=most, cached=(entry,), every=rate)
    # Each group of heads has a rank of its own: a matmul with a diagonal of blocks.
    rank = low.output_groups * low.output_rank
    y = net.linear("self_attn.o_a_proj", y, rank, "tensor", inputs=queries // low.output_groups)
    return net.linear("self_attn.o_proj", y, spec.hidden)


def compress(net: Writer, name: str, x: Tensor, width: int, rate: int, overlap: int) -> Tensor:
    """Write the entries that stand for ``rate`` tokens each: a weighted sum of what each token gives."""
    given = net.linear(f"{name}.kv_proj", x, overlap * width)
    gate = net.linear(f"{name}.gate_proj", x, overlap * width)
    bias = Weight(f"{name}.position_bias", rate, overlap * width, 1, "whole", "matrix")
    y = net.apply(Multiply, f"{name}.pool", net.tensor("entries", width), given, gate, weights=(bias,))
    return net.norm(f"{name}.kv_norm", y)


def collapse_streams(net: Writer, spec: TransformerSpec, x: Tensor, mixes: int) -> Tensor:
    """Write the sum of residual streams that a block reads; without several, the stream itself."""
    if spec.streams == 1:
        return x
    y = net.linear("hyper_connection.fn", x, mixes)
    learned = Weight("hyper_connection.base", mixes + (3 if mixes > spec.streams else 1), 1, 1, "whole", "vector")
    made = net.tensor("collapsed", spec.hidden)
    return net.apply(Multiply, "hyper_connection.collapse", made, x, y, weights=(learned,))


def state_mixer(net: Writer, spec: TransformerSpec, mixer: Mixer, x: Tensor) -> Tensor:
    """Write what replaces attention in some layers: Mamba, Mamba-2, or the gated delta rule."""
    inner, channels, state = mixer.inner, mixer.inner + mixer.pairs, mixer.state
    ranked = mixer.kind == "kda"
    low_ranks = (mixer.rank,) * (1 + mixer.gate_ranked) if ranked else ()
    gate_width = 0 if len(low_ranks) == 2 else inner
    wide = net.linear(
        "mamba.in_proj", x, gate_width + channels + mixer.rates + sum(low_ranks), "tensor", bias=mixer.bias
    )
    gate, values, steps, *low = net.parts(wide, gate_width, channels, mixer.rates, *low_ranks)
    mixed = convolution(net, mixer, values)
    reads: tuple[Tensor, ...] = (mixed, steps)
    learned = (Weight("mamba.A_log,D,dt_bias", mixer.heads, 1, mixer.learned, "tensor", "vector"),)
    if mixer.kind == "mamba":
        selected = net.linear("mamba.x_proj", mixed, mixer.rank + 2 * state)
        steps, b, c = net.parts(selected, mixer.rank, state, state)
        if mixer.normed:
            steps = net.norm("mamba.dt_layernorm", steps)
            b, c = net.norm("mamba.b_layernorm", b), net.norm("mamba.c_layernorm", c)
        reads = (mixed, net.linear("mamba.dt_proj", steps, inner, "tensor", bias=True), b, c)
        learned = (
            Weight("mamba.A_log", inner, state, 1, "tensor", "matrix"),
            Weight("mamba.D", inner, 1, 1, "tensor", "vector"),
        )
    if low:
        reads = (mixed, steps, net.linear("mamba.f_b_proj", low[0], inner, "tensor", bias=True))
        for gate_rank in low[1:]:
            gate = net.linear("mamba.g_b_proj", gate_rank, inner, "tensor")
    kind = {"delta": DeltaRule, "kda": ChannelDeltaRule}.get(mixer.kind, Scan)
    sizes = {"state": state, "flop": mixer.operations, "heads": mixer.heads, "groups": mixer.groups}
    y = net.apply(kind, "mamba.scan", net.tensor("mamba.scan", inner, "tensor"), *reads, weights=learned, **sizes)
    if mixer.kind != "mamba" and mixer.gate_normed:
        y = net.norm("mamba.norm", y, gain=mixer.width if mixer.kind in ("delta", "kda") else 0)
    y = net.apply(Multiply, "mamba.gate", net.tensor("mamba.gate", inner, "tensor", "act"), y, gate)
    return net.linear("mamba.out_proj", y, spec.hidden, bias=mixer.bias)


def convolution(net: Writer, mixer: Mixer, x: Tensor) -> Tensor:
    """Write the short convolution of each channel over the last tokens."""
    kernel = Weight("mamba.conv1d", x.width, mixer.conv, 1, "tensor", "matrix")
    bias = (Weight("mamba.conv1d.bias", x.width, 1, 1, "tensor", "vector"),) if mixer.conv_bias else ()
    y = net.tensor("mamba.conv1d", x.width, "tensor")
    return net.apply(Convolution, "mamba.conv1d", y, x, weights=(kernel, *bias), kernel=mixer.conv)


def gated_convolution(net: Writer, spec: TransformerSpec, mixer: Mixer, x: Tensor) -> Tensor:
    """Write the short convolution that replaces attention in LFM2, with a gate before and one after it."""
    wide = net.linear("mamba.in_proj", x, 3 * mixer.inner, "tensor", bias=mixer.bias)
    before, after, values = net.parts(wide, mixer.inner, mixer.inner, mixer.inner)
    y = net.apply(Multiply, "mamba.gate", net.tensor("mamba.gated", mixer.inner, "tensor"), before, values)
    y = convolution(net, mixer, y)
    y = net.apply(Multiply, "mamba.gate", net.tensor("mamba.gate", mixer.inner, "tensor", "act"), y, after)
    return net.linear("mamba.out_proj", y, spec.hidden, bias=mixer.bias)


def mlp(net: Writer, spec: TransformerSpec, name: str, x: Tensor, width: int, scalars: int = 0) -> Tensor:
    """Write a feed-forward network, gated or not: a dense one, shared experts, or routed experts."""
    routed, bias = x.split == "expert", spec.ffn_bias
    split: Split = "expert tensor" if routed else "tensor"
    kind, held = (GroupedLinear, "expert matrix") if routed else (Linear, "matrix")
    gate = None
    if spec.glu:
        gate = net.linear(f"{name}.gate_proj", x, width, split, bias=bias, kind=kind, held=held)
    up = net.linear(f"{name}.up_proj", x, width, split, bias=bias, kind=kind, held=held)
    learned = (Weight(f"{name}.act_fn", 1, 1, scalars, "whole", "vector"),) if scalars else ()
    y = net.apply(Activation, f"{name}.act_fn", net.tensor("act", width, split, "act"), gate or up, weights=learned)
    if gate:
        y = net.apply(Multiply, f"{name}.glu", net.tensor("glu", width, split, "act"), up, y)
    return net.linear(f"{name}.down_proj", y, x.width, x.split, bias=bias, kind=kind, held=held)


def mixture_of_experts(net: Writer, spec: TransformerSpec, moe: Experts, x: Tensor) -> Tensor:
    """Write router, routed experts, and shared experts, which are one wide network, as transformers and Megatron-LM
    make them."""
    net = net.inside("moe")
    read = x
    if moe.router_scaled:
        read = net.norm("mlp.gate_norm", x)
    logits = net.linear("mlp.gate", read, moe.count, bias=moe.router_bias)
    scales = (Weight("mlp.gate.scale", moe.count, 1, 1, "whole", "vector"),) if moe.router_scaled else ()
    chosen = net.apply(Route, "mlp.route", net.tensor("chosen experts", moe.per_token), logits, weights=scales)
    routed = replace(net, networks=moe.count, copies=moe.per_token)
    y = net.linear("mlp.latent_in_proj", x, moe.latent, bias=spec.ffn_bias) if moe.latent else x
    width = moe.latent or spec.hidden
    y = routed.apply(Dispatch, "mlp.dispatch", routed.tensor("dispatched", width, "expert"), y, chosen)
    y = mlp(routed, spec, "mlp.experts", y, moe.width)
    y = net.apply(Combine, "mlp.combine", net.tensor("combined", width), y, chosen)
    if moe.latent:
        y = net.norm("mlp.latent_norm", y) if moe.latent_norm else y
        y = net.linear("mlp.latent_out_proj", y, spec.hidden, bias=spec.ffn_bias)
    if moe.shared:
        shared = mlp(net, spec, "mlp.shared_expert", x, moe.shared * (moe.shared_width or moe.width))
        if moe.shared_gate:
            gate = net.linear("mlp.shared_expert_gate", x, 1)
            shared = net.apply(Multiply, "mlp.shared_gate", net.tensor("gated", spec.hidden), shared, gate)
        y = net.apply(Add, "mlp.add", net.tensor("moe", spec.hidden), y, shared)
    return y


def attention_kinds(spec: TransformerSpec) -> tuple[tuple[int, TransformerSpec, KeyValues], ...]:
    """Return the layers of each kind of attention: how many, a spec with their sizes, and where their keys are from."""
    kinds: list[tuple[int, TransformerSpec, KeyValues]] = [(spec.own_attention_layers, spec, "own")]
    for one in sorted(spec.others, key=lambda one: one.keys == "earlier"):
        sizes = {name: getattr(one, name) for name in ("heads", "kv_heads", "head_dim")}
        window = SlidingWindow(one.window) if one.window else None
        bare = replace(spec, layers=one.layers, others=(), networks=(), bare_layers=0, experts=None, mixer=None, ffn=1)
        of_kind = replace(bare, **sizes, value_width=one.value_dim, window=window, attention_sinks=one.sinks)
        kinds.append((one.layers, of_kind, one.keys))
    return tuple(kind for kind in kinds if kind[0])


def attention_layers(net: Writer, spec: TransformerSpec, x: Tensor) -> Tensor:
    """Write attention: in a module that predicts tokens, of the spec's own kind; elsewhere every kind of it."""
    if spec.latent:
        return latent_attention(net, spec, spec.latent, x)
    if spec.compressed:
        return compressed_attention(net, spec, spec.compressed, x)
    if net.block == "mtp" or not spec.others:
        return attention(net, spec, x)
    earlier: KeysAndValues = {}
    kinds = [attention(net.at("layer", n), of_kind, x, earlier, keys) for n, of_kind, keys in attention_kinds(spec)]
    return net.apply(View, "self_attn.any", net.tensor("self_attn.any", spec.hidden), *kinds)


def decoder_layer(
    net: Writer, spec: TransformerSpec, x: Tensor, *, attended: int, states: int, dense: int, mixed: int
) -> Tensor:
    """Write the layers: so many with attention, with a state in its place, with a dense network, and with experts.

    Half of a layer's norms, rounded up, belong to attention. The first of each half is before its block, others after.
    """
    mixer, moe, vectors = spec.mixer, spec.experts, spec.norm_vectors
    late = spec.norms_per_layer // 2
    early, start = spec.norms_per_layer - late, x
    both, mixes = attended if mixer and mixer.parallel else attended + states, (2 + spec.streams) * spec.streams
    read = collapse_streams(net.at("layer", both), spec, start, mixes)
    read = net.at("layer", both).norm("input_layernorm", read, vectors) if early else read
    for layers, block in ((attended, "layer"), (states, "mixer")):
        if layers:
            at = net.at("mixer" if block == "mixer" else "layer", layers)
            if mixer and block == "mixer":
                y = (gated_convolution if mixer.kind == "convolution" else state_mixer)(at, spec, mixer, read)
            else:
                y = attention_layers(at, spec, read)
            if early > 1:
                y = net.at("layer", layers * (early - 1)).norm("post_attention_layernorm", y, vectors)
            x = at.add(start, y)
    before = start if spec.parallel_blocks else x
    widths = [(one.layers, one.width) for one in spec.networks] if net.block != "mtp" else []
    own = (dense - sum(layers for layers, _ in widths), spec.ffn)
    for layers, width in (own, *widths, (mixed, -1)):
        experts = moe if width < 0 else None
        if layers and (width or (not moe and not spec.networks)):
            at = net.at("moe" if experts else "dense", layers)
            given = collapse_streams(at, spec, before, mixes)
            if late:
                read = at.norm("pre_feedforward_layernorm", given, vectors)
            elif not spec.parallel_blocks:
                read = given
            if experts:
                y = mixture_of_experts(at, spec, experts, read)
            else:
                y = mlp(at.inside("mlp"), spec, "mlp", read, width, spec.activation_scalars) if width else read
            further = max(0, late - 1) + (experts.norms if experts else 0)
            if further:
                y = net.at(at.block, layers * further).norm("post_feedforward_layernorm", y, vectors)
            x = at.add(x, y)
    return x


def layer_embeddings(net: Writer, spec: TransformerSpec, x: Tensor) -> Tensor:
    """Write what each layer looks up of every token for itself, and adds to the residual stream through a gate."""
    width, layers, outside = spec.layer_embedding, spec.layers, net.at("embedding", 1)
    table = outside.lookup("embed_tokens_per_layer", spec.vocab, layers * width, "whole", kind=LayerLookup)
    projected = outside.linear("per_layer_model_projection", x, layers * width)
    projected = outside.norm("per_layer_projection_norm", projected, gain=width)
    inputs = outside.tensor("per_layer_inputs", layers * width)
    inputs = outside.apply(Add, "per_layer_inputs", inputs, table, projected)
    at = net.at("layer", layers)
    gate = at.linear("per_layer_input_gate", x, width)
    gate = at.apply(Activation, "per_layer_act_fn", at.tensor("act", width, "sequence", "act"), gate)
    (own,) = at.parts(inputs, width)
    y = at.apply(Multiply, "per_layer_gate", at.tensor("per_layer_gate", width), gate, own)
    y = at.norm("post_per_layer_input_norm", at.linear("per_layer_projection", y, spec.hidden), spec.norm_vectors)
    return at.add(x, y)


def further_operations(net: Writer, spec: TransformerSpec, x: Tensor) -> None:
    """Write what layers have beyond the other fields, whole on each rank: nothing says how it could be divided."""
    for one in spec.further:
        at = net.at("layer", one.layers)
        if one.kind == "matmul":
            (read,) = at.parts(x, one.columns)
            at.linear("further.proj", read, one.rows)
        elif one.kind == "norm":
            (read,) = at.parts(x, one.rows)
            at.norm("further.norm", read, gain=one.columns)
        else:
            learned = Weight("further.vector", one.rows, 1, 1, "whole", "vector")
            at.apply(View, "further.vector", at.tensor("further", 1), x, weights=(learned,))


def output_head(net: Writer, spec: TransformerSpec, x: Tensor, *, shared: bool) -> None:
    """Write logits and loss."""
    bias, inputs = spec.head_bias and net.block == "head", spec.table_width
    logits = net.linear(
        "lm_head", x, spec.vocab, "tensor", bias=bias, kind=Logits, held="head", inputs=inputs, shared=shared
    )
    net.apply(Loss, "loss", net.tensor("loss", 1), logits)


def multi_token_prediction(net: Writer, spec: TransformerSpec, x: Tensor) -> None:
    """Write the modules that predict further tokens, each one more layer with the model's embedding and head.

    Where the token table is narrow, its projections run once more, too.
    """
    modules, mixed = net.layers, spec.mtp_modules if spec.moe_layers else 0
    token = net.lookup("embed_tokens", spec.vocab, spec.table_width, "tensor", shared=True)
    if narrow := spec.table_width != spec.hidden:
        token = net.linear("mtp.project_in", token, spec.hidden, shared=True)
    token = net.norm("mtp.enorm", token, spec.norm_vectors)
    last = net.norm("mtp.hnorm", collapse_streams(net, spec, x, spec.streams), spec.norm_vectors)
    both = net.apply(View, "mtp.cat", net.tensor("mtp.cat", 2 * spec.hidden), token, last)
    y = net.linear("mtp.eh_proj", both, spec.hidden)
    y = decoder_layer(net, spec, y, attended=modules, states=0, dense=modules - mixed, mixed=mixed)
    y = net.norm("mtp.norm", y, spec.norm_vectors)
    if narrow:
        y = net.linear("mtp.project_out", y, spec.table_width, shared=True)
    output_head(net, spec, y, shared=True)


def write_operations(spec: TransformerSpec) -> tuple[Op, ...]:
    """Return every operation of ``spec``; see `operations`, which keeps them."""
    net = Writer([])
    narrow, outside = spec.table_width != spec.hidden, spec.norms_outside
    x = net.lookup("embed_tokens", spec.vocab, spec.table_width if narrow else spec.hidden, "tensor")
    if narrow:
        x = net.linear("project_in", x, spec.hidden)
    if spec.position_rows:
        x = net.add(x, net.lookup("embed_positions", spec.position_rows, spec.hidden, "whole"))
    if spec.streams > 1:
        x = net.apply(View, "streams", net.tensor("streams", spec.stream_width, stream=True), x)
    if outside > 1:
        x = net.at("embedding", outside - 1).norm("embed_layernorm", x, spec.norm_vectors)
    if spec.tower:
        weight = Weight("vision_tower", spec.tower, 1, 1, "whole", "vector")
        x = net.apply(Tower, "vision_tower", net.tensor("vision_tower", spec.hidden), x, weights=(weight,))
    states = spec.mixer.layers if spec.mixer else 0
    layers = {"attended": spec.attention_layers, "states": states, "dense": spec.dense_layers}
    x = decoder_layer(net, spec, x, **layers, mixed=spec.moe_layers)
    if spec.layer_embedding:
        x = layer_embeddings(net, spec, x)
    further_operations(net, spec, x)
    head = net.at("head", 1)
    y = collapse_streams(head, spec, x, spec.streams)
    y = head.norm("norm", y, spec.norm_vectors) if outside else y
    if narrow:
        y = head.linear("project_out", y, spec.table_width)
    if spec.mtp_modules:
        multi_token_prediction(net.at("mtp", spec.mtp_modules), spec, x)
    output_head(head, spec, y, shared=spec.tied_head)
    return tuple(net.written)


@cached("small_results_kept")
def operations(spec: TransformerSpec) -> tuple[Op, ...]:
    """Return every operation that one token of ``spec`` runs through, in the order of modelling code."""
    return write_operations(spec)
