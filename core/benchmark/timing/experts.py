"""The feed-forward network of a layer with routed experts: router, one grouped product for all experts, and back.

Tokens go to experts in turn, so that every expert has as many, as predictions suppose; picking the best of the router's
scores is therefore not part of the time, and nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.benchmark.programme import LayerShape
from core.benchmark.timing.bench import SkippedError


def checked(shape: LayerShape) -> None:
    """Raise `SkippedError` for a mixture whose tokens have no expert to go to."""
    if shape.experts and not 0 < shape.experts_per_token <= shape.experts:
        raise SkippedError(f"a token cannot go to {shape.experts_per_token:,} of {shape.experts:,} experts")


def sizes(shape: LayerShape) -> Mapping[str, tuple[int, ...]]:
    """The weights by name, matrices as (outputs, inputs), those of all experts as one."""
    many = (shape.experts,) if shape.experts else ()
    router = {"router": (shape.experts, shape.hidden)} if shape.experts else {}
    return {
        **router,
        "up": (*many, (2 if shape.gated else 1) * shape.ffn, shape.hidden),
        "down": (*many, shape.hidden, shape.ffn),
    }


def routes(torch: Any, shape: LayerShape, place: str) -> tuple[Any, ...]:
    """Where tokens go: the experts of each (tokens, experts of a token), the rows that have a token at its experts,
    expert after expert, and where the rows of each end. Nothing for a dense layer."""
    if not shape.experts:
        return ()
    each = shape.experts_per_token
    experts = torch.arange(shape.tokens * each, device=place) % shape.experts
    ends = torch.bincount(experts, minlength=shape.experts).cumsum(0).to(torch.int32)
    return experts.view(-1, each), experts.argsort(stable=True), ends


def mixed(
    torch: Any, weights: Mapping[str, Any], x: Any, route: tuple[Any, ...], activated: Callable[[Any], Any]
) -> Any:
    """The network on ``x`` (tokens, width). activated: from what leaves "up" to what enters "down"."""
    experts, order, ends = route
    tokens, each = experts.shape
    scores = torch.nn.functional.linear(x, weights["router"]).gather(1, experts)
    inner = activated(_grouped(torch, x[order // each], weights["up"], ends))
    out = _grouped(torch, inner, weights["down"], ends)[order.argsort()].view(tokens, each, -1)
    return (out * scores.softmax(-1)[..., None]).sum(1)


def _grouped(torch: Any, rows: Any, weights: Any, ends: Any) -> Any:
    """Each expert's rows times its matrix. In float64, which the grouped kernel lacks, one by one."""
    if rows.dtype is not torch.float64:
        return torch.nn.functional.grouped_mm(rows, weights.transpose(-2, -1), offs=ends)
    bounds = [0, *ends.tolist()]
    parts = zip(bounds, bounds[1:], weights, strict=False)
    return torch.cat([rows[start:end] @ weight.t() for start, end, weight in parts])
