"""What backward computes again, in a few words."""

from __future__ import annotations

from core.training.layout import Recompute, layers_of, named_modules, way_of
from core.wording import listed

_SELECTIVE = {True: "norms and activation functions", False: "the core of attention", None: "selectively"}
_MODULES = {
    "core_attn": "the core of attention",
    "layernorm": "norms",
    "act": "activation functions",
    "mla_up_proj": "projections up from latents",
    "mlp": "feed-forward networks",
    "moe": "mixtures",
}


def recomputed(recompute: int, flash: bool | None = None) -> str:
    """What backward computes again. flash: whether attention is fused, which decides what is meant by selective."""
    ways: dict[int, str] = {
        Recompute.NONE: "nothing",
        Recompute.SELECTIVE: _SELECTIVE[flash],
        Recompute.PER_OPERATION: "every second matrix product",
        Recompute.FULL: "layers",
    }
    what = ways.get(int(way_of(recompute))) or listed([_MODULES[name] for name in named_modules(recompute)])
    some = int(layers_of(recompute))
    where = f", {some} of each stage" if some > 0 else f", {-some} from one input" if some < 0 else ""
    return f"{what} recomputed{where}"
