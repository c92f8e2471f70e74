"""The parameter tensors of a transformer by class: what an optimizer sees, with the shape of each.

A projection is one matrix here, even where a library fuses several into one; of Q, K and V or of gate and up there
are three and two. Nothing is counted twice: a tied head is the embedding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from core.models.mixer import Mixer
from core.models.spec import TransformerSpec

TensorKind: TypeAlias = Literal["matrix", "vector", "embedding", "head", "expert matrix"]
"""What an optimizer may treat apart: weights of two dimensions, those of one (norms, biases), tables, experts."""


@dataclass(frozen=True, slots=True)
class ParameterTensor:
    """``count`` tensors of one shape. A vector of n elements has n rows and one column."""

    name: str
    rows: int
    columns: int
    count: int
    kind: TensorKind

    @property
    def elements(self) -> int:
        """Parameters of all of them together."""
        return self.rows * self.columns * self.count


def _matrix(name: str, out: int, into: int, count: int, bias: int = 0) -> Iterator[ParameterTensor]:
    """A linear layer ``into`` → ``out``, with a bias for each output where there is one."""
    yield ParameterTensor(name, out, into, count, "matrix")
    yield _vector(f"{name} bias", out, count * bias)


def _vector(name: str, elements: int, count: int) -> ParameterTensor:
    return ParameterTensor(name, elements, 1, count, "vector")


def _attention(s: TransformerSpec, layers: int) -> Iterator[ParameterTensor]:
    bias = int(s.attention_bias)
    if low := s.latent:
        queries = s.heads * s.score_dim
        if low.query_rank:
            yield from _matrix("queries down", low.query_rank, s.hidden, layers, bias)
            yield _vector("norm of the query rank", low.query_rank, layers)
            yield from _matrix("queries up", queries, low.query_rank, layers)
        else:
            yield from _matrix("queries", queries, s.hidden, layers)
        yield from _matrix("keys and values down", low.kv_rank + low.rope_dim, s.hidden, layers, bias)
        yield _vector("norm of the key/value rank", low.kv_rank, layers)
        yield from _matrix("keys and values up", s.heads * (low.nope_dim + low.value_dim), low.kv_rank, layers)
    else:
        yield from _matrix("queries", s.heads * s.head_dim, s.hidden, layers, bias)
        yield from _matrix("keys", s.kv_heads * s.head_dim, s.hidden, layers, bias)
        yield from _matrix("values", s.kv_heads * s.head_dim, s.hidden, layers, bias)
    if s.qk_norm != "none":
        each = s.qk_norm == "head"
        yield _vector("norm of queries", s.head_dim * (1 if each else s.heads), layers)
        yield _vector("norm of keys", s.head_dim * (1 if each else s.kv_heads), layers)
    yield from _matrix("attention gate", s.heads * s.head_dim, s.hidden, layers * s.attention_gate, bias)
    yield _vector("attention sinks", s.heads, layers * s.attention_sinks)
    yield from _matrix("attention output", s.hidden, s.heads * s.value_dim, layers, int(s.output_bias))


def _network(s: TransformerSpec, name: str, width: int, count: int) -> Iterator[ParameterTensor]:
    bias = int(s.ffn_bias)
    for part in ("gate", "up") if s.glu else ("up",):
        yield from _matrix(f"{name} {part}", width, s.hidden, count, bias)
    yield from _matrix(f"{name} down", s.hidden, width, count, bias)


def _experts(s: TransformerSpec, layers: int) -> Iterator[ParameterTensor]:
    if not (moe := s.experts):
        return
    yield from _matrix("router", moe.count, s.hidden, layers, int(moe.router_bias))
    for tensor in _network(s, "expert", moe.width, layers * moe.count):
        yield replace(tensor, kind="expert matrix") if tensor.kind == "matrix" else tensor
    width = moe.shared_width or moe.width
    if s.ffn_bias:
        yield from _network(s, "shared expert", width, layers * moe.shared)
    else:  # without biases, one network as wide as all of them is the same, and what models build
        yield from _network(s, "shared experts", width * moe.shared, layers)
    yield ParameterTensor("gate of the shared experts", 1, s.hidden, layers * moe.shared_gate, "matrix")


def _mixer(s: TransformerSpec, mixer: Mixer) -> Iterator[ParameterTensor]:
    bias, layers, channels = int(mixer.bias), mixer.layers, mixer.inner + mixer.pairs
    yield from _matrix("state: first projection", 2 * mixer.inner + mixer.pairs + mixer.rates, s.hidden, layers, bias)
    yield ParameterTensor("state: convolution", channels, mixer.conv, layers, "matrix")
    yield _vector("state: convolution bias", channels, layers * mixer.conv_bias)
    if mixer.kind == "mamba":
        yield from _matrix("state: step size, B and C", mixer.rank + 2 * mixer.state, mixer.inner, layers)
        yield from _matrix("state: step size", mixer.inner, mixer.rank, layers, bias=1)
        yield ParameterTensor("state: decay", mixer.inner, mixer.state, layers, "matrix")
        yield _vector("state: skip", mixer.inner, layers)
        widths = {"step size": mixer.rank, "B": mixer.state, "C": mixer.state} if mixer.normed else {}
    else:
        yield _vector("state: decay, step size and skip", mixer.heads, layers * mixer.learned)
        widths = {"output": mixer.normed_width}
    for name, width in widths.items():
        yield _vector(f"state: norm of {name}", width, layers)
    yield from _matrix("state: output", s.hidden, mixer.inner, layers, bias)


def _layers(s: TransformerSpec, dense: int, mixed: int) -> Iterator[ParameterTensor]:
    yield from _attention(s, dense + mixed - (s.mixer.layers if s.mixer else 0))
    if s.mixer:
        yield from _mixer(s, s.mixer)
    yield from _network(s, "feed-forward", s.ffn, dense)
    yield _vector("number of the activation function", 1, dense * s.activation_scalars)
    yield from _experts(s, mixed)
    bare = dense if s.experts and not s.ffn else 0
    yield _vector(
        "norm", s.hidden, ((dense + mixed) * s.norms_per_layer - bare * (s.norms_per_layer // 2)) * s.norm_vectors
    )


def _prediction(s: TransformerSpec) -> Iterator[ParameterTensor]:
    mixed = int(s.moe_layers > 0)
    for tensor in _layers(s, 1 - mixed, mixed):
        yield replace(tensor, name=f"prediction: {tensor.name}", count=tensor.count * s.mtp_modules)
    yield ParameterTensor("prediction: projection", s.hidden, 2 * s.hidden, s.mtp_modules, "matrix")
    yield _vector("prediction: norm of the module", s.hidden, 3 * s.norm_vectors * s.mtp_modules)


def _all(s: TransformerSpec) -> Iterator[ParameterTensor]:
    yield ParameterTensor("token embedding", s.vocab, s.table_width, 1, "embedding")
    if s.table_width != s.hidden:
        yield ParameterTensor("embedding to layers", s.hidden, s.table_width, 1, "matrix")
        yield ParameterTensor("layers to embedding", s.table_width, s.hidden, 1, "matrix")
    yield ParameterTensor("position table", s.position_rows, s.hidden, 1, "embedding")
    yield from _layers(s, s.dense_layers, s.moe_layers)
    yield _vector("norm outside the layers", s.hidden, s.norms_outside * s.norm_vectors)
    yield from _prediction(s)
    yield ParameterTensor("output head", s.vocab, s.table_width, int(not s.tied_head), "head")
    yield _vector("bias of the head", s.vocab, int(s.head_bias))


@lru_cache(maxsize=512)
def tensors_of(spec: TransformerSpec) -> tuple[ParameterTensor, ...]:
    """The parameter tensors of ``spec``, in the order in which a token meets them; what it lacks is not listed."""
    return tuple(tensor for tensor in _all(spec) if tensor.elements)
