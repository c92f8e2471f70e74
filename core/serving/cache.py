"""What a decoder keeps of the tokens it has read: keys and values, a latent, or a state of fixed size.

Symbols: L layers, k key/value heads, d head width, s tokens, e bytes per number. A layer with full attention keeps all
tokens, one with a window the last w, one with a state the same bytes whatever the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Formula, Source, Symbol, formula
from core.limits import cached
from core.models.catalog import CatalogModel
from core.models.operation import AttentionCore, Convolution, IndexCore, Scan
from core.models.operations import operations
from core.models.spec import SlidingWindow, TransformerSpec
from core.models.symbols import LAYERS, count
from core.sources import DEEPSEEK_V2

Tokens: TypeAlias = "int | float | npt.NDArray[Any]"
"""Tokens of one user, or an array of them."""

VLLM_CACHE = Source(
    "vLLM",
    "vllm/v1/kv_cache_interface.py, page_size_bytes, 2026",
    "https://github.com/vllm-project/vllm/blob/001cabc1be16a59a70d720ed61a13b678c060a18/vllm/v1/kv_cache_interface.py",
)
_VLLM_STATES = Source(
    "vLLM",
    "vllm/model_executor/layers/mamba/mamba_utils.py, 2026",
    "https://github.com/vllm-project/vllm/blob/02d710837549a368073552333f66d714477415d2/vllm/model_executor/layers/mamba/mamba_utils.py",
)
_TRANSFORMERS = Source(
    "Hugging Face transformers 5.23",
    "cache_utils.py",
    "https://github.com/huggingface/transformers/blob/main/src/transformers/cache_utils.py",
)
_SHAZEER = Source("Shazeer 2019, Fast Transformer Decoding", "section 2.4", "https://arxiv.org/abs/1911.02150")
_GROUPED = Source("Ainslie et al. 2023, GQA", "section 2.2", "https://arxiv.org/abs/2305.13245")
_MAMBA = Source("Gu and Dao 2023, Mamba", "section 3.4", "https://arxiv.org/abs/2312.00752")

_BYTES = Symbol("K", "bytes of one user’s cache", "bytes")
_TOKENS = count("s", "tokens that are kept")
_ELEMENT = Symbol("e", "bytes per number", "number")
_STATES = count("L", "layers with a state")


@formula(
    r"\v{layers} \cdot \v{kv_heads} \cdot (\v{key_dim} + \v{value_dim}) \cdot \v{tokens} \cdot \v{element}",
    result=_BYTES,
    symbols={
        "layers": LAYERS,
        "kv_heads": count("k", "key/value heads that are stored: all heads, a group’s one, or a single one"),
        "key_dim": count("d_k", "width of a key"),
        "value_dim": count("d_v", "width of a value"),
        "tokens": _TOKENS,
        "element": _ELEMENT,
    },
    sources=(_SHAZEER, _GROUPED, VLLM_CACHE),
)
def key_value_bytes(
    layers: float, kv_heads: float, key_dim: float, value_dim: float, tokens: float, element: float
) -> float:
    """Keys and values of every token.

    Multi-head attention stores them for each head, grouped-query attention for each group of heads, multi-query
    attention once. A layer with a sliding window stores those of its last tokens alone.
    """
    return layers * kv_heads * (key_dim + value_dim) * tokens * element


@formula(
    r"\v{layers} \cdot (\v{rank} + \v{rope_dim}) \cdot \v{tokens} \cdot \v{element}",
    result=_BYTES,
    symbols={
        "layers": LAYERS,
        "rank": count("r", "rank of keys and values"),
        "rope_dim": count("d_R", "width of the rotated part of a key, which all heads share"),
        "tokens": _TOKENS,
        "element": _ELEMENT,
    },
    sources=(DEEPSEEK_V2.at("section 2.1.3, table 1"), VLLM_CACHE),
)
def latent_bytes(layers: float, rank: float, rope_dim: float, tokens: float, element: float) -> float:
    """One latent for all heads, from which keys and values are made again, and the rotated part of the key."""
    return layers * (rank + rope_dim) * tokens * element


@formula(
    r"2 \cdot \v{layers} \cdot \v{kv_heads} \cdot \v{tokens} \cdot \v{scale}",
    result=_BYTES,
    symbols={
        "layers": LAYERS,
        "kv_heads": count("k", "key/value heads that are stored; one with a latent"),
        "tokens": _TOKENS,
        "scale": Symbol("c", "bytes of a scale", "number"),
    },
    sources=(VLLM_CACHE,),
)
def scale_bytes(layers: float, kv_heads: float, tokens: float, scale: float) -> float:
    """Scales of quantised keys and values, one each for every token and head.

    A format with one scale for a whole tensor keeps a few bytes a layer, which are not counted.
    """
    return 2 * layers * kv_heads * tokens * scale


@formula(
    r"\v{layers} \cdot \v{columns} \cdot (\v{inner} + \v{pairs}) \cdot \v{element}",
    result=_BYTES,
    symbols={
        "layers": _STATES,
        "columns": count("c", "tokens that the convolution still needs"),
        "inner": count("i", "width of the values, all heads together"),
        "pairs": count("g", "width of keys and queries (B and C), all groups together; 0 with Mamba"),
        "element": _ELEMENT,
    },
    sources=(_MAMBA, _VLLM_STATES, _TRANSFORMERS),
)
def convolution_bytes(layers: float, columns: float, inner: float, pairs: float, element: float) -> float:
    """Inputs of the short convolution that the next token still needs."""
    return layers * columns * (inner + pairs) * element


@formula(
    r"\v{layers} \cdot \v{inner} \cdot \v{state} \cdot \v{element}",
    result=_BYTES,
    symbols={
        "layers": _STATES,
        "inner": count("i", "width of the values, all heads together"),
        "state": count("n", "rows of the state"),
        "element": _ELEMENT,
    },
    sources=(_MAMBA, _VLLM_STATES, _TRANSFORMERS),
)
def state_bytes(layers: float, inner: float, state: float, element: float) -> float:
    """The state that stands in place of all tokens read so far, whatever their number."""
    return layers * inner * state * element


@dataclass(frozen=True, slots=True)
class CacheType:
    """A number format of keys and values. element: bytes per number. scale: bytes of a scale for each token and head,
    0 where one scale serves a whole tensor."""

    name: str
    element: float
    scale: float
    note: str


CACHE_TYPES: Mapping[str, CacheType] = MappingProxyType(
    {
        item.name: item
        for item in (
            CacheType("bf16", 2.0, 0.0, "as computed"),
            CacheType("fp8", 1.0, 0.0, "E4M3, one scale for a tensor"),
            CacheType("int8", 1.0, 4.0, "an fp32 scale for each token and head"),
        )
    }
)
"""The formats by name, as vLLM has them: ``auto``, ``fp8`` and ``int8_per_token_head``."""


@dataclass(frozen=True, slots=True)
class CacheConvention:
    """What a program stores of what it could.

    latent: of latent attention the latent itself, or keys and values expanded from it for every head.  heads: keys and
    values once for a group of heads, or repeated for each of them, as transformers does for Falcon.  window: tokens
    that a window holds less than its size between two tokens.  convolution: tokens that the convolution holds less
    than it sees.  state: bytes per number of a state, which is kept in fp32 whatever keys and values are in.
    """

    latent: Literal["compressed", "expanded"] = "compressed"
    heads: Literal["grouped", "repeated"] = "grouped"
    window: int = 0
    convolution: int = 1
    state: float = 4.0


ENGINE = CacheConvention()
"""As serving engines store it: while a token is made, the window holds its own key and value too."""

TRANSFORMERS = CacheConvention(window=1, convolution=0)
"""As transformers' ``DynamicCache`` stores it between two tokens, but for Falcon's heads."""

CachePart: TypeAlias = Literal[
    "keys and values", "keys of the indexer", "windowed", "latent", "scales", "convolution", "state"
]


@dataclass(frozen=True, slots=True)
class CachedPart:
    """What layers of one kind keep of one user: a formula with its values, all but the tokens.

    most: tokens that it keeps at most; infinite without a window, 0 where its bytes are the same for every length.
    """

    kind: CachePart
    formula: Formula[...]
    values: Mapping[str, float]
    most: float

    def _values(self, tokens: Tokens) -> dict[str, Any]:
        return {**self.values, **({"tokens": np.minimum(tokens, self.most)} if self.most else {})}

    def bytes(self, tokens: Tokens) -> Any:
        """Bytes after so many tokens, or after each of an array of them."""
        return self.formula.over(**self._values(tokens))

    def explain(self, tokens: int) -> Explanation:
        """The formula with these values substituted."""
        return self.formula.explain(**{name: float(value) for name, value in self._values(tokens).items()})


@dataclass(frozen=True, slots=True)
class Cache:
    """What one user's tokens take on one accelerator."""

    parts: tuple[CachedPart, ...]

    def bytes(self, tokens: Tokens) -> Any:
        """Bytes after so many tokens; an array of tokens gives an array."""
        return sum((part.bytes(tokens) for part in self.parts), np.zeros(np.shape(tokens)))

    @property
    def per_token(self) -> float:
        """Bytes of each further token where every window is full."""
        return float(sum(part.bytes(1) for part in self.parts if np.isinf(part.most)))

    @property
    def fixed(self) -> float:
        """Bytes that do not grow any more: full windows, and states."""
        return float(sum(part.bytes(part.most) for part in self.parts if not np.isinf(part.most)))

    def explain(self, tokens: int) -> list[Explanation]:
        """Every part with its values, after so many tokens."""
        return [part.explain(tokens).about(part.kind) for part in self.parts]


@cached("small_results_kept")
def cache_of(
    spec: TransformerSpec,
    stored: CacheType = CACHE_TYPES["bf16"],
    *,
    tensor: int = 1,
    convention: CacheConvention = ENGINE,
    drafting: int = 0,
) -> Cache:
    """The cache of one user on one of ``tensor`` accelerators that share the heads of ``spec``.

    Key/value heads fewer than the accelerators are kept by several of them, a latent by all. Multi-token prediction
    modules take no part in plain decoding. drafting: further layers that draft, which store as those without a window.
    """
    parts = _parts(spec, stored, tensor, convention)
    return Cache(tuple(_deeper(part, drafting) if np.isinf(part.most) else part for part in parts))


def _deeper(part: CachedPart, layers: int) -> CachedPart:
    return replace(part, values={**part.values, "layers": part.values["layers"] + layers})


def _parts(spec: TransformerSpec, stored: CacheType, tensor: int, convention: CacheConvention) -> Iterator[CachedPart]:
    ops, element, scales = operations(spec), {"element": stored.element}, list[CachedPart]()
    for op in ops:
        if not isinstance(op, AttentionCore) or op.block == "mtp" or not op.cached:
            continue
        indexes = isinstance(op, IndexCore)
        compressed = convention.latent == "compressed" and not {*op.cached} <= {*op.reads}
        layers = {"layers": op.layers}
        most = max(0, op.window - convention.window) if op.window else np.inf
        heads = 1.0 if compressed or indexes else op.heads if convention.heads == "repeated" else op.kv_heads
        kv_heads = {"kv_heads": max(1.0, heads / tensor)}
        if indexes or not compressed:
            made = op.cached if {*op.cached} <= {*op.reads} else op.reads[1:]
            key, *value = (x.width / op.kv_heads / op.every for x in made)
            widths = {**kv_heads, "key_dim": key, "value_dim": sum(value)}
            kind = "keys of the indexer" if indexes else "windowed" if op.window else "keys and values"
            yield CachedPart(kind, key_value_bytes, {**layers, **widths, **element}, most)
        else:
            rank, *rest = (cached.width for cached in op.cached)
            widths = {"rank": rank, "rope_dim": sum(rest)}
            yield CachedPart("latent", latent_bytes, {**layers, **widths, **element}, most)
        if stored.scale and not indexes:
            scales.append(CachedPart("scales", scale_bytes, {**layers, **kv_heads, "scale": stored.scale}, most))
    yield from scales
    scan = next((op for op in ops if isinstance(op, Scan)), None)
    for op in ops:
        if isinstance(op, Convolution):
            width = op.makes[0].width
            inner = scan.makes[0].width if scan else width
            pairs = (width - inner) / min(tensor, scan.groups) if scan else 0
            columns = {"columns": op.kernel - convention.convolution, "inner": inner / tensor, "pairs": pairs}
            yield CachedPart("convolution", convolution_bytes, {"layers": op.layers, **columns, "element": 2.0}, 0)
        elif isinstance(op, Scan):
            states = {"layers": op.layers, "inner": op.makes[0].width / tensor, "state": op.state}
            yield CachedPart("state", state_bytes, {**states, "element": convention.state}, 0)


_CHUNKS: Mapping[str, SlidingWindow] = {"Llama4ForCausalLM": SlidingWindow(8192, (True, True, True, False))}
"""Families whose layers attend within chunks, of which a cache keeps one: the other chunks are never read again.

Counts of FLOPs take such layers as seeing everything, so that the shape itself has no window."""


def cached_spec(model: CatalogModel) -> TransformerSpec:
    """The model's shape as its cache sees it: attention in chunks keeps no more than a window of a chunk's size."""
    chunks = _CHUNKS.get(model.family)
    return replace(model.spec, window=chunks) if chunks and not model.counted else model.spec
