"""Families of models as Hugging Face transformers knows them: what a config.json calls things, and what it leaves out.

A row of ``assets/data/model_families.csv`` for each ``model_type``. Defaults are those of the family's configuration
class, so a field that a file omits means here what it means there; what the class builds whatever the file says is
``fixed``. What depends on several fields is a rule, below, that a row names. Keys, defaults and shapes were read in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.models.configs.json_text import NoClosedFormError
from core.models.configs.keys import Family, keys
from core.models.mixer import Mixer
from core.models.spec import Experts
from core.models.spec_error import SpecError
from core.rows import read_rows, read_values

if TYPE_CHECKING:
    from core.models.configs.fields import Fields


def expert_groups(f: Fields) -> dict[str, Any]:
    """Return the fields of `Experts` that limit routing to groups; DeepSeek-V2’s greedy method ignores them."""
    if f.routing == "greedy" or not (f.route_groups and f.groups_per_token):
        return {}
    return {"route_groups": f.route_groups, "groups_per_token": f.groups_per_token}


def _every(_: Fields, layer: int) -> bool:
    return layer >= 0


def _alternate(_: Fields, layer: int) -> bool:
    return layer % 2 == 0


def _three_of_four(_: Fields, layer: int) -> bool:
    return (layer + 1) % 4 != 0


def _but_every_nth(f: Fields, layer: int) -> bool:
    return (layer + 1) % (f.window_every or 1) != 0


def _above(f: Fields, layer: int) -> bool:
    return layer >= (f.window_from or 0)


def _alternate_below(f: Fields, layer: int) -> bool:
    return layer % 2 == 0 and layer < (f.window_from or 0)


def _without_rotation(f: Fields, layer: int) -> bool:
    if f.rotary_layers is not None:
        return layer < len(f.rotary_layers) and not f.rotary_layers[layer]
    return (layer + 1) % (f.rotary_every or 1) == 0


def _falcon(f: Fields) -> Mapping[str, Any]:
    """Falcon 40B and 180B group keys and values; the 7B shares one; older ones have as many as queries."""
    own = f.norms_in_parallel or (2 if f.grouped else 1)
    return {
        "kv_heads": (f.kv_heads or f.heads) if f.grouped else 1 if f.multi_query else f.heads,
        "norms_per_layer": min(own, 2) if f.parallel else 2,
        "positions": "alibi" if f.alibi else "",
    }


def _opt(f: Fields) -> Mapping[str, Any]:
    """OPT has two position rows beyond the longest sequence; the 350M norms last and narrows its token table."""
    return {
        "position_rows": (f.max_seq or 0) + 2,
        "norms_outside": int(f.norm_first and not f.norm_removed),
        "norm_vectors": 2 if f.norm_learned else 0,
    }


def _learned_positions(f: Fields) -> Mapping[str, Any]:
    return {"position_rows": f.max_seq or 0}


def _one_norm(f: Fields) -> Mapping[str, Any]:
    """Blocks that run attention and feed-forward network side by side norm their input once."""
    return {"norms_per_layer": 1 if f.parallel else 2, "qk_norm": "full" if f.qk_normed else "none"}


def _qk_norm(f: Fields) -> Mapping[str, Any]:
    return {"qk_norm": "full" if f.qk_normed else "none"}


def _glm_mixture(f: Fields) -> Mapping[str, Any]:
    """Heads are as wide as fit where nothing says how wide, though some of the width is then left over."""
    return {"qk_norm": "head" if f.qk_normed else "none", "head_dim": f.head_dim or max(f.hidden // f.heads, 1)}


def _learned_activation(f: Fields) -> Mapping[str, Any]:
    """xIELU learns two numbers; other activation functions learn none."""
    return {"activation_scalars": 2 if f.activation == "xielu" else 0}


def _mamba(f: Fields, layers: int, *, normed: bool = False) -> Mixer:
    """A Mamba mixer, its inner width and the rank of its step size as the config says or as they follow."""
    rank = math.ceil(f.hidden / 16) if f.step_rank == "auto" else f.step_rank
    return Mixer(
        kind="mamba",
        layers=layers,
        heads=f.state_inner or (f.state_expand or 0) * f.hidden,
        width=1,
        state=f.state_rows or 0,
        conv=f.state_conv or 0,
        rank=int(rank or 0),
        bias=f.state_bias,
        conv_bias=f.conv_bias,
        normed=normed,
    )


def _mamba_alone(f: Fields) -> Mapping[str, Any]:
    return {"mixer": _mamba(f, f.layers)}


def _mamba2(f: Fields) -> Mapping[str, Any]:
    heads, width = f.state_heads or 0, f.state_width or 0
    if heads * width != (f.state_expand or 0) * f.hidden:
        raise SpecError("state_heads", heads, f"with a width of {width:,} they must add up to expand · hidden_size.")
    mixer = Mixer(
        kind="mamba2",
        layers=f.layers,
        heads=heads,
        width=width,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
        bias=f.state_bias,
        conv_bias=f.conv_bias,
    )
    return {"mixer": mixer}


def _jamba(f: Fields) -> Mapping[str, Any]:
    """Attention once in a period, experts once in another; a single expert is an ordinary network."""
    period, offset = f.attention_every or 1, f.attention_offset or 0
    for name, at, of in (("attention_offset", offset, period), ("moe_offset", f.moe_offset or 0, f.moe_every or 1)):
        if at >= of:
            raise SpecError(name, at, f"it is less than the period of {of}.", 0)
    states = sum(layer % period != offset for layer in range(f.layers))
    parts: dict[str, Any] = {"mixer": _mamba(f, states, normed=True) if states else None}
    return parts if (f.experts or 0) > 1 else {**parts, "experts": None}


_LAYER_KINDS = {"linear_attention": True, "full_attention": False}


def _qwen3_next(f: Fields) -> Mapping[str, Any]:
    if f.layer_types is None:
        states = sum((layer + 1) % (f.attention_every or 4) != 0 for layer in range(f.layers))
    elif len(f.layer_types) != f.layers or not set(f.layer_types) <= set(_LAYER_KINDS):
        raise SpecError("layer_types", f.layer_types, f"it has {f.layers} of {' and '.join(_LAYER_KINDS)}.")
    else:
        states = sum(_LAYER_KINDS[kind] for kind in f.layer_types)
    if not states:
        return {}
    mixer = Mixer(
        kind="delta",
        layers=states,
        heads=f.state_heads or 0,
        width=f.state_width or 0,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
    )
    return {"mixer": mixer}


_BLOCKS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "moe": "E", "mlp": "-"}
"""What Nemotron-H's list of blocks calls each, and the letter of it in the pattern that older files have."""


def _nemotron_h(f: Fields) -> Mapping[str, Any]:
    """A state or attention and the mixture after it are one layer; where none follows, the layer is a bare one."""
    pattern = "".join(_BLOCKS.get(block, "?") for block in f.layer_types or ()) or f.pattern or ""
    states, layers, mixed = pattern.count("M"), pattern.count("M") + pattern.count("*"), pattern.count("E")
    if layers + mixed != len(pattern) or not 0 < mixed <= layers or not states:
        rule = "Nemotron-H is counted with states, attention and no more mixtures than there are of both."
        raise NoClosedFormError("nemotron_h", "hybrid_override_pattern", pattern, rule, '"MEM*E"')
    mixer = Mixer(
        kind="mamba2",
        layers=states,
        heads=f.state_heads or 0,
        width=f.state_width or 0,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
        bias=f.state_bias,
        conv_bias=f.conv_bias,
    )
    experts = Experts(
        count=f.experts or 0,
        per_token=f.per_token or 0,
        width=f.expert_width or 0,
        shared=1,
        dense_layers=layers - mixed,
        shared_width=f.shared_width or 0,
        **expert_groups(f),
    )
    return {"layers": layers, "mixer": mixer, "experts": experts}


_WINDOWS: Mapping[str, Callable[[Fields, int], bool]] = {
    "every": _every,
    "alternate": _alternate,
    "three_of_four": _three_of_four,
    "but_every_nth": _but_every_nth,
    "above": _above,
    "alternate_below": _alternate_below,
    "without_rotation": _without_rotation,
}
"""Which layers have the sliding window, by the name in the table."""

_RULES: Mapping[str, Callable[[Fields], Mapping[str, Any]]] = {
    "": lambda _: {},
    "learned_positions": _learned_positions,
    "opt": _opt,
    "falcon": _falcon,
    "one_norm": _one_norm,
    "qk_norm": _qk_norm,
    "glm_mixture": _glm_mixture,
    "learned_activation": _learned_activation,
    "mamba": _mamba_alone,
    "mamba2": _mamba2,
    "jamba": _jamba,
    "qwen3_next": _qwen3_next,
    "nemotron_h": _nemotron_h,
}
"""What follows from a config's fields, by the name in the table."""


def _family(row: Mapping[str, str]) -> Family:
    return Family(
        row["name"],
        keys(row["keys"]),
        read_values(row["defaults"]),
        read_values(row["fixed"]),
        _RULES[row["rule"]],
        _WINDOWS[row["window"]] if row["window"] else None,
        read_values(row["only"]),
        row["note"],
        tuple(row["inert"].split()),
        read_values(row["built"]),
    )


FAMILIES: Mapping[str, Family] = {row["model_type"]: _family(row) for row in read_rows("model_families")}
"""Every family read, by its ``model_type``."""
