"""Parameters of a transformer by component, exact to the last one.

Each component is one formula over all layers; ``parameters(spec)`` puts them together. The counts are those of the
tensors a framework allocates; buffers (rotary tables, router balancing offsets) are no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from core.formula import Explanation, Formula, Source, Symbol, formula
from core.models.spec import TransformerSpec
from core.sources import DEEPSEEK_V2, MIXTRAL

_GPT2 = Source("Radford et al. 2019, GPT-2; shapes in nanoGPT", "model.py", "https://github.com/karpathy/nanoGPT")
_LLAMA = Source("Touvron et al. 2023, LLaMA", "section 2.2", "https://arxiv.org/abs/2302.13971")
_GQA = Source("Ainslie et al. 2023, GQA", "section 2", "https://arxiv.org/abs/2305.13245")
_GLU = Source("Shazeer 2020, GLU Variants Improve Transformer", "section 2", "https://arxiv.org/abs/2002.05202")
_DEEPSEEK_V2 = DEEPSEEK_V2.at("sections 2.1 and 3.1.2")
_QK_NORM = Source("Dehghani et al. 2023, ViT-22B", "section 2", "https://arxiv.org/abs/2302.05442")
_GPT_OSS = Source("OpenAI 2025, gpt-oss", "model card, section 2", "https://arxiv.org/abs/2508.10925")


def count(latex: str, meaning: str) -> Symbol:
    """A symbol that counts things."""
    return Symbol(latex, meaning, "count")


LAYERS = count("L", "layers")
HIDDEN = count("h", "hidden width")
HEADS = count("a", "query heads")
KV_HEADS = count("k", "key/value heads")
HEAD_DIM = count("d", "head width")
FFN = count("f", "feed-forward width")
VOCAB = count("V", "vocabulary")
MATRICES = count("m", "matrices per feed-forward network: 3 gated, 2 plain")
_BIAS = count("b", "1 with biases, 0 without")
_RESULT = count("N", "parameters")


@formula(
    r"\v{vocab} \cdot \v{hidden}",
    result=_RESULT,
    symbols={"vocab": VOCAB, "hidden": HIDDEN},
    sources=(_GPT2,),
)
def embedding_parameters(vocab: float, hidden: float) -> float:
    """Token embedding, or an output head of its own: one row of width h per token of the vocabulary."""
    return vocab * hidden


@formula(
    r"\v{rows} \cdot \v{hidden}",
    result=_RESULT,
    symbols={"rows": count("p", "rows of the position table"), "hidden": HIDDEN},
    sources=(_GPT2,),
)
def position_parameters(rows: float, hidden: float) -> float:
    """Learned positions: one row of width h per position."""
    return rows * hidden


@formula(
    r"\v{layers} \cdot (\v{hidden} + \v{bias}) \cdot (\v{heads} + 2 \cdot \v{kv_heads}) \cdot \v{head_dim}",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "bias": _BIAS,
        "heads": HEADS,
        "kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
    },
    sources=(_GQA,),
)
def qkv_parameters(layers: float, hidden: float, bias: float, heads: float, kv_heads: float, head_dim: float) -> float:
    """Query, key and value projections.

    Grouped-query attention keeps one key and one value head for several query heads, so keys and values shrink
    while queries do not.
    """
    return layers * (hidden + bias) * (heads + 2 * kv_heads) * head_dim


@formula(
    r"\v{layers} \cdot (\v{hidden} \cdot \v{rank} + \v{rank} \cdot \v{heads} \cdot \v{score_dim})",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "rank": count("r_q", "rank of the query path"),
        "heads": HEADS,
        "score_dim": count("d_{qk}", "head width of queries and keys"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_query_parameters(layers: float, hidden: float, rank: float, heads: float, score_dim: float) -> float:
    """Query projection of latent attention: down to a rank, up to the heads."""
    return layers * (hidden * rank + rank * heads * score_dim)


@formula(
    r"\v{layers} \cdot (\v{hidden} \cdot (\v{rank} + \v{rope_dim})"
    r" + \v{rank} \cdot \v{heads} \cdot (\v{nope_dim} + \v{value_dim}))",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "rank": count("r_{kv}", "rank of the key/value path"),
        "rope_dim": count("d_r", "rotary width, shared by all heads"),
        "heads": HEADS,
        "nope_dim": count("d_n", "head width without rotation"),
        "value_dim": count("d_v", "head width of values"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_kv_parameters(
    layers: float, hidden: float, rank: float, rope_dim: float, heads: float, nope_dim: float, value_dim: float
) -> float:
    """Key and value projections of latent attention: down to a rank and one rotary key, up to the heads."""
    return layers * (hidden * (rank + rope_dim) + rank * heads * (nope_dim + value_dim))


@formula(
    r"\v{layers} \cdot (\v{heads} \cdot \v{head_dim} + \v{bias}) \cdot \v{hidden}",
    result=_RESULT,
    symbols={"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "bias": _BIAS, "hidden": HIDDEN},
    sources=(_LLAMA,),
)
def output_parameters(layers: float, heads: float, head_dim: float, bias: float, hidden: float) -> float:
    """Output projection of attention, from all query heads back to the hidden width."""
    return layers * (heads * head_dim + bias) * hidden


@formula(
    r"\v{layers} \cdot \v{networks} \cdot (\v{matrices} \cdot \v{hidden} \cdot \v{width}"
    r" + \v{bias} \cdot ((\v{matrices} - 1) \cdot \v{width} + \v{hidden}))",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "networks": count("n", "networks per layer"),
        "matrices": MATRICES,
        "hidden": HIDDEN,
        "width": FFN,
        "bias": _BIAS,
    },
    sources=(_GLU, MIXTRAL),
)
def ffn_parameters(layers: float, networks: float, matrices: float, hidden: float, width: float, bias: float) -> float:
    """Feed-forward networks.

    A gated network (SwiGLU) has three matrices: gate, up and down; a plain one has two. With experts, every
    expert is such a network.
    """
    return layers * networks * (matrices * hidden * width + bias * ((matrices - 1) * width + hidden))


@formula(
    r"\v{layers} \cdot (\v{hidden} + \v{bias}) \cdot \v{experts}",
    result=_RESULT,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "bias": _BIAS, "experts": count("E", "routed experts")},
    sources=(MIXTRAL,),
)
def router_parameters(layers: float, hidden: float, bias: float, experts: float) -> float:
    """Router: one row of width h per expert."""
    return layers * (hidden + bias) * experts


@formula(
    r"(\v{layers} \cdot \v{per_layer} + \v{outside}) \cdot \v{vectors} \cdot \v{hidden}",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "per_layer": count("n", "norms per layer"),
        "outside": count("n_0", "norms outside the layers"),
        "vectors": count("w", "vectors per norm: 2 with gain and bias, 1 with gain, 0 with neither"),
        "hidden": HIDDEN,
    },
    sources=(_LLAMA,),
)
def norm_parameters(layers: float, per_layer: float, outside: float, vectors: float, hidden: float) -> float:
    """Norms of the hidden width: RMSNorm has a gain, LayerNorm a gain and mostly a bias."""
    return (layers * per_layer + outside) * vectors * hidden


@formula(
    r"\v{layers} \cdot (\v{first} + \v{second})",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "first": count("g_1", "width of the first gain"),
        "second": count("g_2", "width of the second gain"),
    },
    sources=(_QK_NORM, _DEEPSEEK_V2),
)
def inner_norm_parameters(layers: float, first: float, second: float) -> float:
    """Norms inside attention: of queries and keys, or of the two latent vectors."""
    return layers * (first + second)


@formula(
    r"\v{layers} \cdot \v{heads}",
    result=_RESULT,
    symbols={"layers": LAYERS, "heads": HEADS},
    sources=(_GPT_OSS,),
)
def sink_parameters(layers: float, heads: float) -> float:
    """Attention sinks: one learned logit per query head."""
    return layers * heads


@dataclass(frozen=True, slots=True)
class Component:
    """One component's formula with its values; ``active`` is what one token runs through."""

    name: str
    total: int
    active: int
    formula: Formula[...]
    values: Mapping[str, float]

    def explain(self) -> Explanation:
        """The formula with these values substituted, under the component's name."""
        return replace(self.formula.explain(**self.values), title=self.name)


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters by component, in the order a token meets them. ``active`` differs from ``total`` with experts."""

    components: tuple[Component, ...]

    @property
    def total(self) -> int:
        return sum(component.total for component in self.components)

    @property
    def active(self) -> int:
        """Parameters one token runs through, input embedding included."""
        return sum(component.active for component in self.components)


def _component(name: str, rule: Formula[...], *, run: int | None = None, **values: int) -> Component:
    """A component; ``run`` says how many of its feed-forward networks one token runs, where not all."""
    total = int(rule(**values))
    active = total if run is None else int(rule(**{**values, "networks": run}))
    return Component(name, total, active, rule, values)


def _attention(spec: TransformerSpec) -> list[Component]:
    size: dict[str, int] = {"layers": spec.layers, "hidden": spec.hidden, "heads": spec.heads}
    parts: list[Component] = []
    inner: tuple[int, int] | None = None
    if low := spec.latent:
        query = {"rank": low.query_rank, "score_dim": spec.score_dim}
        widths = {"rope_dim": low.rope_dim, "nope_dim": low.nope_dim, "value_dim": low.value_dim}
        parts.append(_component("Queries", latent_query_parameters, **size, **query))
        parts.append(_component("Keys and values", latent_kv_parameters, **size, rank=low.kv_rank, **widths))
        inner = (low.query_rank, low.kv_rank)
    else:
        heads = {"kv_heads": spec.kv_heads, "head_dim": spec.head_dim, "bias": int(spec.attention_bias)}
        parts.append(_component("Q, K, V", qkv_parameters, **size, **heads))
    if spec.qk_norm == "head":
        inner = (spec.head_dim, spec.head_dim)
    elif spec.qk_norm == "full":
        inner = (spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim)
    if inner:
        gains = {"first": inner[0], "second": inner[1]}
        parts.append(_component("Norms inside attention", inner_norm_parameters, layers=spec.layers, **gains))
    if spec.attention_sinks:
        parts.append(_component("Attention sinks", sink_parameters, layers=spec.layers, heads=spec.heads))
    output = {"head_dim": spec.value_dim, "bias": int(spec.output_bias)}
    parts.append(_component("Attention output", output_parameters, **size, **output))
    return parts


def dense_name(spec: TransformerSpec) -> str:
    """What the ordinary feed-forward networks are called: only beside experts do they need an adjective."""
    return "Dense feed-forward" if spec.experts else "Feed-forward"


def _feed_forward(spec: TransformerSpec) -> list[Component]:
    shape: dict[str, int] = {"matrices": spec.ffn_matrices, "hidden": spec.hidden, "bias": int(spec.ffn_bias)}
    parts: list[Component] = []
    if spec.dense_layers:
        dense = {"layers": spec.dense_layers, "networks": 1, "width": spec.ffn}
        parts.append(_component(dense_name(spec), ffn_parameters, **dense, **shape))
    if moe := spec.experts:
        router = {"layers": spec.moe_layers, "hidden": spec.hidden, "bias": int(moe.router_bias)}
        parts.append(_component("Router", router_parameters, **router, experts=moe.count))
        expert = {"layers": spec.moe_layers, "width": moe.width, **shape}
        parts.append(_component("Routed experts", ffn_parameters, run=moe.per_token, networks=moe.count, **expert))
        parts.append(_component("Shared experts", ffn_parameters, networks=moe.shared, **expert))
    return parts


@lru_cache(maxsize=512)
def parameters(spec: TransformerSpec) -> ParameterCount:
    """Parameters of ``spec`` by component, total and active."""
    table = {"vocab": spec.vocab, "hidden": spec.hidden}
    parts = [_component("Token embedding", embedding_parameters, **table)]
    if spec.position_rows:
        positions = {"rows": spec.position_rows, "hidden": spec.hidden}
        parts.append(_component("Position table", position_parameters, **positions))
    parts += _attention(spec) + _feed_forward(spec)
    norms = {"layers": spec.layers, "per_layer": spec.norms_per_layer, "outside": spec.norms_outside}
    parts.append(_component("Norms", norm_parameters, **norms, vectors=spec.norm_vectors, hidden=spec.hidden))
    if not spec.tied_head:
        parts.append(_component("Output head", embedding_parameters, **table))
    return ParameterCount(tuple(part for part in parts if part.total))
