"""Fused attention by back end of torch's ``scaled_dot_product_attention``: causal, forward, and forward with backward.

FLOPs are those of the two products over the causal half of the square, as `core.models.flop_formulas` counts it
(Megatron-LM's convention); backward counts twice forward. Flash kernels multiply the scores once more backward, 2.5
times forward in all, which is recomputation and counts as time only. Bytes are those of fused attention.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from core.benchmark.device import DeviceKind
from core.benchmark.points import Item
from core.benchmark.programme import Programme
from core.benchmark.timing.accuracy import checked, error_of, exact, format_of, picked
from core.benchmark.timing.bench import Bench, PreparedItem
from core.hardware.operations import fused_attention_bytes
from core.models.flop_formulas import square_flop_causal

BACKENDS: Mapping[str, str] = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
"""Back ends by name, as torch.nn.attention.SDPBackend spells them."""

_ON_CPU = ("flash", "math")
"""The other two are kernels for GPUs."""

FORWARD, BOTH = "forward", "forward and backward"

_HEADS = 16
_DEFAULT: Mapping[DeviceKind, tuple[int, int]] = {"cpu": (512, 64), "cuda": (2048, 128)}
"""Sequence length and head width without a layer."""

MOST_FLOP: Mapping[DeviceKind, float] = {"cpu": 1e9, "cuda": 1e13}
"""Of one forward pass at most, so that a few runs take seconds: more is timed with fewer, then shorter sequences."""

_SHORTEST = 16
_SCORES = 20.0
"""Bytes of each score at most where the square is written out, backward too: in fp32, softmax and gradients."""

_GRADIENT_TOLERANCE = 2.0
"""Times that of forward: gradients go through the rounded result."""


def forward_flop(shape: tuple[int, ...]) -> float:
    """Return FLOPs of attention forward at (sequences, heads, key/value heads, length, head width), causal half
    counted."""
    batch, heads, _, length, width = shape
    return 2 * float(square_flop_causal(1, heads, width, length)) * batch * length


def moved_bytes(shape: tuple[int, ...], element: float) -> float:
    """Return the bytes of attention forward: queries, keys, values and result once each."""
    batch, heads, kv_heads, length, width = shape
    return float(fused_attention_bytes(batch * length, heads, kv_heads, 2 * width, element))


def items(programme: Programme) -> tuple[Item, ...]:
    """Return every back end, forward and with backward, at the heads of the program's layer, or at 16 of them."""
    backends = _ON_CPU if programme.device == "cpu" else tuple(BACKENDS)
    shape = _shape(programme)
    return tuple(
        Item(kind="attention", name=name, label=f"{passes}, s = {shape[3]:,}", shape=shape, seconds=programme.seconds)
        for passes in (FORWARD, BOTH)
        for name in backends
    )


def _shape(programme: Programme) -> tuple[int, ...]:
    layer, (length, width) = programme.layer, _DEFAULT[programme.device]
    batch, heads, kv_heads = (layer.micro_batch, layer.heads, layer.kv_heads) if layer else (1, _HEADS, _HEADS)
    if layer:
        length, width = layer.seq_len, layer.head_dim
    most = MOST_FLOP[programme.device]
    while batch > 1 and forward_flop((batch, heads, kv_heads, length, width)) > most:
        batch //= 2
    while length > _SHORTEST and forward_flop((batch, heads, kv_heads, length, width)) > most:
        length //= 2
    return batch, heads, kv_heads, length, width


def prepare(bench: Bench, programme: Programme, item: Item) -> PreparedItem:
    """Return the attention backend on random data, with some rows checked against float64. Raises `RefusedError` if
    wrong.

    A backend that rejects the shape raises torch's error, with the reasons from torch's warnings.
    """
    torch, how, shape = bench.torch, format_of(bench), item.shape
    batch, heads, kv_heads, length, width = shape
    back = item.label.startswith(BOTH)
    moved = moved_bytes(shape, how.bytes)
    scores = _SCORES * batch * heads * length**2 if item.name == "math" else 0.0
    bench.need(4 * moved + scores)
    torch.manual_seed(0)
    options = {"dtype": getattr(torch, how.torch_name), "device": bench.place, "requires_grad": back}
    q, k, v = (torch.randn(batch, each, length, width, **options) for each in (heads, kv_heads, kv_heads))
    attend = _attention(torch, item.name, q, k, v)
    rows = picked(torch, length)
    upstream = torch.zeros(batch, heads, length, width, dtype=q.dtype, device=bench.place)
    upstream[:, :, rows.to(bench.place)] = torch.randn_like(upstream[:, :, : len(rows)])

    out = _heard(attend)
    right = _exact(torch, q, k, v, upstream, rows)
    error = checked(error_of(torch, out[0, : heads // kv_heads][:, rows.to(out.device)], right[0]), how.tolerance)
    if not back:
        work = 1.0
        call: Callable[[], object] = attend
    else:
        # The gradient that arrives is zero but in some rows, so that few rows of the square give every gradient.
        result = torch.autograd.grad(out, (q, k, v), upstream)
        got = (result[0][0, : heads // kv_heads][:, rows.to(out.device)], result[1][0, 0], result[2][0, 0])
        for name, own, exactly in zip(("queries", "keys", "values"), got, right[1:], strict=True):
            wrong = error_of(torch, own, exactly)
            checked(wrong, _GRADIENT_TOLERANCE * how.tolerance, name)
        torch.nn.init.normal_(upstream)
        work = 3.0

        def both() -> object:
            return torch.autograd.grad(attend(), (q, k, v), upstream)

        call = both
    return PreparedItem(
        call,
        shape,
        flop=work * forward_flop(shape),
        bytes=work * moved,
        relative_error=error,
        dtype=how.name,
        timer=bench.queued,  # issuing a short one, backward above all, takes the host longer than the device
    )


def _attention(torch: Any, name: str, q: Any, k: Any, v: Any) -> Callable[[], Any]:
    """Return one forward pass by the back end, and by no other."""
    backend = getattr(torch.nn.attention.SDPBackend, BACKENDS[name])
    grouped = q.shape[1] != k.shape[1]

    def attend() -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)

    return attend


def _heard(attend: Callable[[], Any]) -> Any:
    """Return what ``attend`` gives; where it rejects, its own words and those of its warnings, which hold the
    reasons."""
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        try:
            return attend()
        except RuntimeError as problem:
            reasons = (str(warning.message).partition(" (Triggered internally")[0] for warning in messages)
            raise RuntimeError(" ".join((str(problem), *reasons))) from problem


def _exact(torch: Any, q: Any, k: Any, v: Any, upstream: Any, rows: Any) -> tuple[Any, ...]:
    """Return result, and gradients of queries, keys and values, in float64: of the query heads of the first key/value
    head.

    Results and gradients of queries at ``rows``, where alone ``upstream`` is not zero.
    """
    group = q.shape[1] // k.shape[1]
    queries, sent = (exact(torch, item[0, :group][:, rows.to(item.device)]) for item in (q, upstream))
    keys, values = (exact(torch, item[0, :1]) for item in (k, v))
    given = [item.requires_grad_() for item in (queries, keys, values)]
    seen = torch.arange(k.shape[2])[None, :] <= rows[:, None]
    heads = (each.expand(group, -1, -1) for each in (keys, values))
    out = torch.nn.functional.scaled_dot_product_attention(queries, *heads, attn_mask=seen)
    d_queries, d_keys, d_values = torch.autograd.grad(out, given, sent)
    return out.detach(), d_queries, d_keys[0], d_values[0]
