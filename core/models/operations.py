"""The transformer, written down once: every operation that one token runs through, in the order of modelling code.

Parameters, weight matrices, FLOPs, a rank's share, saved activations, and the KV cache are sums over this list.
Operations are named as in transformers. How they are executed (fused kernels, dropout, saved copies) is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from core.models.mixer import Mixer
from core.models.spec import Experts, LatentAttention, TransformerSpec

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

    window: last tokens that each token attends to; 0 without a window. cached: what decoding stores of each token.
    """

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int
    cached: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Convolution(Op):
    """A short causal convolution, each channel with its own ``kernel`` weights."""

    kernel: int


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Op):
    """The state moved on by one token and read.

    state: numbers of the state per channel, each of which takes ``flop`` FLOPs. groups: heads that write and read it.
    """

    state: int
    flop: int
    groups: int


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
        self, kind: type[Op], name: str, makes: Tensor, *reads: Tensor, weights: tuple[Weight, ...] = ()
    ) -> Tensor:
        """Write an operation that needs no more than what it reads and makes."""
        self.written.append(kind(name, self.block, self.layers, self.copies, reads, (makes,), weights))
        return makes

    def lookup(self, name: str, rows: int, width: int, split: Split, *, shared: bool = False) -> Tensor:
        """Write the lookup of a table's row."""
        weight = Weight(name, rows, width, 1, split, "embedding", shared)
        return self.apply(Lookup, name, self.tensor(name, width, stream=True), weights=(weight,))

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


def attention(net: Writer, spec: TransformerSpec, x: Tensor) -> Tensor:
    """Write multi-head, grouped-query, or multi-query attention."""
    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    q = net.linear("self_attn.q_proj", x, queries, "tensor", bias=spec.attention_bias)
    k = net.linear("self_attn.k_proj", x, keys, "kv", bias=spec.attention_bias)
    v = net.linear("self_attn.v_proj", x, keys, "kv", bias=spec.attention_bias)
    if spec.qk_norm != "none":
        gain = spec.head_dim if spec.qk_norm == "head" else 0
        q = net.norm("self_attn.q_norm", q, gain=gain)
        k = net.norm("self_attn.k_norm", k, gain=gain)
    if spec.position_kind == "rotary":
        q = net.apply(Rope, "self_attn.q_rope", net.tensor("q_rope", q.width, "tensor"), q)
        k = net.apply(Rope, "self_attn.k_rope", net.tensor("k_rope", k.width, "kv"), k)
    y = attention_core(net, spec, (q, k, v), cached=(k, v))
    if spec.attention_gate:
        gate = net.linear("self_attn.g_proj", x, queries, "tensor", bias=spec.attention_bias)
        y = net.apply(Multiply, "self_attn.gate", net.tensor("gated", queries, "tensor"), y, gate)
    return net.linear("self_attn.o_proj", y, spec.hidden, bias=spec.output_bias)


def latent_attention(net: Writer, spec: TransformerSpec, low: LatentAttention, x: Tensor) -> Tensor:
    """Write multi-head latent attention."""
    up, queries = net.inside("mla_up_proj"), spec.heads * spec.score_dim
    if low.query_rank:
        q = net.linear("self_attn.q_a_proj", x, low.query_rank, bias=spec.attention_bias)
        q = net.norm("self_attn.q_a_layernorm", q)
        q = up.linear("self_attn.q_b_proj", q, queries, "tensor")
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
    y = attention_core(net, spec, (q, k, v), cached=(latent, k_rope))
    return net.linear("self_attn.o_proj", y, spec.hidden, bias=spec.output_bias)


def attention_core(net: Writer, spec: TransformerSpec, reads: tuple[Tensor, ...], cached: tuple[Tensor, ...]) -> Tensor:
    """Write the score and value matmuls, once for layers that see everything and once for windowed ones."""
    y = net.tensor("attn_output", spec.heads * spec.value_dim, "tensor", "core_attn")
    sinks = (Weight("self_attn.sinks", spec.heads, 1, 1, "tensor", "vector"),) if spec.attention_sinks else ()
    windowed = 0 if net.block == "mtp" else spec.windowed_layers
    for layers, window in ((net.layers - windowed, 0), (windowed, spec.window.size if spec.window else 0)):
        if layers:
            net.written.append(
                AttentionCore(
                    "self_attn",
                    net.block,
                    layers,
                    1,
                    reads,
                    (y,),
                    sinks,
                    heads=spec.heads,
                    kv_heads=spec.heads if spec.latent else spec.kv_heads,
                    key_dim=spec.score_dim,
                    value_dim=spec.value_dim,
                    window=window,
                    cached=cached,
                )
            )
    return y


def state_mixer(net: Writer, spec: TransformerSpec, mixer: Mixer, x: Tensor) -> Tensor:
    """Write what replaces attention in some layers: Mamba, Mamba-2, or the gated delta rule."""
    inner, channels, state = mixer.inner, mixer.inner + mixer.pairs, mixer.state
    wide = net.linear("mamba.in_proj", x, inner + channels + mixer.rates, "tensor", bias=mixer.bias)
    gate, values, steps = net.parts(wide, inner, channels, mixer.rates)
    kernel = Weight("mamba.conv1d", channels, mixer.conv, 1, "tensor", "matrix")
    bias = (Weight("mamba.conv1d.bias", channels, 1, 1, "tensor", "vector"),) if mixer.conv_bias else ()
    mixed = net.tensor("mamba.conv1d", channels, "tensor")
    place = (net.block, net.layers, 1)
    net.written.append(Convolution("mamba.conv1d", *place, (values,), (mixed,), (kernel, *bias), kernel=mixer.conv))
    reads: tuple[Tensor, ...] = (mixed, steps)
    learned = (Weight("mamba.A_log,D,dt_bias", mixer.heads, 1, mixer.learned, "tensor", "vector"),)
    if mixer.kind == "mamba":
        low = net.linear("mamba.x_proj", mixed, mixer.rank + 2 * state)
        steps, b, c = net.parts(low, mixer.rank, state, state)
        if mixer.normed:
            steps = net.norm("mamba.dt_layernorm", steps)
            b, c = net.norm("mamba.b_layernorm", b), net.norm("mamba.c_layernorm", c)
        reads = (mixed, net.linear("mamba.dt_proj", steps, inner, "tensor", bias=True), b, c)
        learned = (
            Weight("mamba.A_log", inner, state, 1, "tensor", "matrix"),
            Weight("mamba.D", inner, 1, 1, "tensor", "vector"),
        )
    y = net.tensor("mamba.scan", inner, "tensor")
    scanned = {"state": state, "flop": mixer.operations, "groups": mixer.groups}
    net.written.append(Scan("mamba.scan", *place, reads, (y,), learned, **scanned))
    if mixer.kind != "mamba":
        y = net.norm("mamba.norm", y, gain=mixer.width if mixer.kind == "delta" else 0)
    y = net.apply(Multiply, "mamba.gate", net.tensor("mamba.gate", inner, "tensor", "act"), y, gate)
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
    return net.linear(f"{name}.down_proj", y, spec.hidden, x.split, bias=bias, kind=kind, held=held)


def mixture_of_experts(net: Writer, spec: TransformerSpec, moe: Experts, x: Tensor) -> Tensor:
    """Write router, routed experts, and shared experts. Without biases, shared experts are one wide network."""
    net = net.inside("moe")
    logits = net.linear("mlp.gate", x, moe.count, bias=moe.router_bias)
    chosen = net.apply(Route, "mlp.route", net.tensor("chosen experts", moe.per_token), logits)
    routed = replace(net, networks=moe.count, copies=moe.per_token)
    y = routed.apply(Dispatch, "mlp.dispatch", routed.tensor("dispatched", spec.hidden, "expert"), x, chosen)
    y = mlp(routed, spec, "mlp.experts", y, moe.width)
    y = net.apply(Combine, "mlp.combine", net.tensor("combined", spec.hidden), y, chosen)
    if moe.shared:
        networks, width = (moe.shared, 1) if spec.ffn_bias else (1, moe.shared)
        beside = replace(net, networks=networks, copies=networks)
        shared = mlp(beside, spec, "mlp.shared_expert", x, width * (moe.shared_width or moe.width))
        if moe.shared_gate:
            gate = net.linear("mlp.shared_expert_gate", x, 1)
            shared = net.apply(Multiply, "mlp.shared_gate", net.tensor("gated", spec.hidden), shared, gate)
        y = net.apply(Add, "mlp.add", net.tensor("moe", spec.hidden), y, shared)
    return y


def decoder_layer(
    net: Writer, spec: TransformerSpec, x: Tensor, *, attended: int, states: int, dense: int, mixed: int
) -> Tensor:
    """Write the layers: so many with attention, with a state in its place, with a dense network, and with experts.

    Half of a layer's norms, rounded up, belong to attention. The first of each half is before its block, others after.
    """
    low, mixer, moe, vectors = spec.latent, spec.mixer, spec.experts, spec.norm_vectors
    late = spec.norms_per_layer // 2
    early, start = spec.norms_per_layer - late, x
    read = net.at("layer", attended + states).norm("input_layernorm", start, vectors) if early else start
    for layers, block in ((attended, "layer"), (states, "mixer")):
        if layers:
            at = net.at("mixer" if block == "mixer" else "layer", layers)
            if mixer and block == "mixer":
                y = state_mixer(at, spec, mixer, read)
            else:
                y = latent_attention(at, spec, low, read) if low else attention(at, spec, read)
            if early > 1:
                y = net.at("layer", layers * (early - 1)).norm("post_attention_layernorm", y, vectors)
            x = at.add(start, y)
    before = start if spec.parallel_blocks else x
    for layers, block in ((dense, "dense"), (mixed, "moe")):
        if layers and (block == "moe" or spec.ffn or not moe):
            at = net.at("moe" if block == "moe" else "dense", layers)
            if late:
                read = at.norm("pre_feedforward_layernorm", before, vectors)
            elif not spec.parallel_blocks:
                read = before
            if moe and block == "moe":
                y = mixture_of_experts(at, spec, moe, read)
            elif spec.ffn:
                y = mlp(at.inside("mlp"), spec, "mlp", read, spec.ffn, spec.activation_scalars)
            else:
                y = read
            if late > 1:
                y = net.at(at.block, layers * (late - 1)).norm("post_feedforward_layernorm", y, vectors)
            x = at.add(x, y)
    return x


def output_head(net: Writer, spec: TransformerSpec, x: Tensor, *, shared: bool) -> None:
    """Write logits and loss."""
    bias, inputs = spec.head_bias and net.block == "head", spec.table_width
    logits = net.linear(
        "lm_head", x, spec.vocab, "tensor", bias=bias, kind=Logits, held="head", inputs=inputs, shared=shared
    )
    net.apply(Loss, "loss", net.tensor("loss", 1), logits)


def multi_token_prediction(net: Writer, spec: TransformerSpec, x: Tensor) -> None:
    """Write the modules that predict further tokens, each one more layer with the model's embedding and head."""
    modules, mixed = net.layers, spec.mtp_modules if spec.moe_layers else 0
    token = net.lookup("embed_tokens", spec.vocab, spec.table_width, "tensor", shared=True)
    token = net.norm("mtp.enorm", token, spec.norm_vectors, gain=spec.hidden)
    last = net.norm("mtp.hnorm", x, spec.norm_vectors)
    both = net.apply(View, "mtp.cat", net.tensor("mtp.cat", 2 * spec.hidden), token, last)
    y = net.linear("mtp.eh_proj", both, spec.hidden)
    y = decoder_layer(net, spec, y, attended=modules, states=0, dense=modules - mixed, mixed=mixed)
    output_head(net, spec, net.norm("mtp.norm", y, spec.norm_vectors), shared=True)


def write_operations(spec: TransformerSpec) -> tuple[Op, ...]:
    """Return every operation of ``spec``; see `operations`, which keeps them."""
    net = Writer([])
    narrow, outside = spec.table_width != spec.hidden, spec.norms_outside
    x = net.lookup("embed_tokens", spec.vocab, spec.table_width if narrow else spec.hidden, "tensor")
    if narrow:
        x = net.linear("project_in", x, spec.hidden)
    if spec.position_rows:
        x = net.add(x, net.lookup("embed_positions", spec.position_rows, spec.hidden, "whole"))
    if outside > 1:
        x = net.at("embedding", outside - 1).norm("embed_layernorm", x, spec.norm_vectors)
    states = spec.mixer.layers if spec.mixer else 0
    layers = {"attended": spec.attention_layers, "states": states, "dense": spec.dense_layers}
    x = decoder_layer(net, spec, x, **layers, mixed=spec.moe_layers)
    head = net.at("head", 1)
    y = head.norm("norm", x, spec.norm_vectors) if outside else x
    if narrow:
        y = head.linear("project_out", y, spec.table_width)
    if spec.mtp_modules:
        multi_token_prediction(net.at("mtp", spec.mtp_modules), spec, x)
    output_head(head, spec, y, shared=spec.tied_head)
    return tuple(net.written)


@lru_cache(maxsize=512)
def operations(spec: TransformerSpec) -> tuple[Op, ...]:
    """Return every operation that one token of ``spec`` runs through, in the order of modelling code."""
    return write_operations(spec)
