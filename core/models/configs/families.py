"""Families of models as Hugging Face transformers knows them: what a config.json calls things, and what it leaves out.

Rows of ``assets/data/model_families.csv``. Defaults are the configuration class's; ``fixed`` is what it always builds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from core.messages import message
from core.models.configs.json_text import NoClosedFormError
from core.models.configs.keys import Family, keys
from core.models.mixer import Mixer
from core.models.spec import (
    AttentionLayers,
    CompressedAttention,
    DenseLayers,
    Experts,
    Indexer,
    KeyValues,
    QKNorm,
    SlidingWindow,
)
from core.models.spec_error import SpecError
from core.rows import read_rows, read_values

if TYPE_CHECKING:
    from core.models.configs.fields import Fields


def expert_groups(f: Fields) -> dict[str, Any]:
    """Return the fields of `Experts` that limit routing to groups; DeepSeek-V2’s greedy method ignores them."""
    if f.routing == "greedy" or not (f.route_groups and f.groups_per_token):
        return {}
    return {"route_groups": f.route_groups, "groups_per_token": f.groups_per_token}


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


def _qk_norm(f: Fields, kind: QKNorm = "full") -> Mapping[str, Any]:
    return {"qk_norm": kind if f.qk_normed else "none"}


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


def _mamba2(f: Fields, layers: int, *, parallel: bool = False) -> Mixer:
    """A Mamba-2 mixer whose heads add up to its inner width, or to the multiple of the hidden width that is said."""
    heads = f.state_heads or 0
    inner = f.state_inner or (f.state_expand or 0) * f.hidden
    width = inner // max(heads, 1) if f.state_width in ("auto", None) else int(f.state_width)
    if inner and heads * width != inner:
        rule = message("spec.mamba_heads", heads=float(heads), width=float(width), inner=float(inner))
        raise SpecError("state_heads", heads, rule)
    return Mixer(
        kind="mamba2",
        layers=layers,
        heads=heads,
        width=width,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
        bias=f.state_bias,
        conv_bias=f.conv_bias,
        parallel=parallel,
        gate_normed=f.state_normed,
    )


def _jamba(f: Fields) -> Mapping[str, Any]:
    """Attention once in a period, experts once in another; a single expert is an ordinary network."""
    period, offset = f.attention_every or 1, f.attention_offset or 0
    for name, at, of in (("attention_offset", offset, period), ("moe_offset", f.moe_offset or 0, f.moe_every or 1)):
        if at >= of:
            raise SpecError(name, at, message("spec.period", period=float(of)), 0)
    states = sum(layer % period != offset for layer in range(f.layers))
    parts: dict[str, Any] = {"mixer": _mamba(f, states, normed=True) if states else None}
    return parts if (f.experts or 0) > 1 else {**parts, "experts": None}


_STATES = {
    "linear_attention": True,
    "mamba": True,
    "conv": True,
    "full_attention": False,
    "attention": False,
    "sliding_attention": False,
}
"""Kinds of layers as configs list them, and whether a state replaces attention."""


def _states(f: Fields, usual: Callable[[int], bool]) -> int:
    """How many layers have a state: those that the config lists, or where ``usual`` says so of a layer."""
    if f.layer_types is None:
        return sum(map(usual, range(f.layers)))
    if len(f.layer_types) != f.layers or not set(f.layer_types) <= set(_STATES):
        raise SpecError(
            "layer_types", f.layer_types, message("spec.layer_types", layers=float(f.layers), kinds=list(_STATES))
        )
    return sum(_STATES[kind] for kind in f.layer_types)


def _qwen3_next(f: Fields) -> Mapping[str, Any]:
    states = _states(f, lambda layer: (layer + 1) % (f.attention_every or 4) != 0)
    if not states:
        return {}
    mixer = Mixer(
        kind="delta",
        layers=states,
        heads=f.state_heads or 0,
        width=int(f.state_width or 0),
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
    )
    return {"mixer": mixer}


def _kimi_linear(f: Fields) -> Mapping[str, Any]:
    """Latent attention without rotation in some layers, a delta rule gated by channel in the others."""
    states = _states(f, lambda layer: not layer or layer % 4 != 0)
    if f.attending is not None:
        states = f.layers - len(f.attending)
    width, heads = int(f.state_width or 0), f.state_heads or 0
    mixer = Mixer(
        "kda",
        max(states, 1),
        heads,
        width,
        width,
        heads,
        f.state_conv or 0,
        width,
        gate_ranked=not f.full_gate,
    )
    return {"mixer": mixer if states else None, "attention_gate": f.gated}


def _lfm2(f: Fields) -> Mapping[str, Any]:
    """Short convolutions, with attention in the layers that are listed; widths of networks are rounded up."""
    attending = range(f.layers) if f.attending is None else f.attending
    states = _states(f, lambda layer: layer not in attending)
    biases: dict[str, Any] = {"bias": f.conv_bias, "conv_bias": f.conv_bias}
    mixer = Mixer("convolution", states, f.hidden, 1, 1, conv=f.state_conv or 0, **biases) if states else None
    if not f.adjusted:
        return {"mixer": mixer}
    multiple = f.multiple or 1
    width = int(int(2 * (f.ffn or 0) / 3) * min(f.ffn_multiplier or 1, 64))
    return {"mixer": mixer, "ffn": multiple * math.ceil(width / multiple)}


def _granite_hybrid(f: Fields) -> Mapping[str, Any]:
    """Mamba-2 and attention, with a network that every token runs in addition to the experts, or alone."""
    states = _states(f, lambda _: True)
    parts: dict[str, Any] = {"mixer": _mamba2(f, states) if states else None}
    if not f.experts:
        return {**parts, "experts": None, "ffn": f.shared_width or 0}
    wide: dict[str, Any] = {"shared": 1, "shared_width": f.shared_width or 0}
    return {**parts, "experts": Experts(f.experts, f.per_token or 0, f.ffn or 0, **wide)}


_BLOCKS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "moe": "E", "mlp": "-"}
"""What Nemotron-H's list of blocks calls each, and the letter of it in the pattern that older files have."""


def _nemotron_h(f: Fields) -> Mapping[str, Any]:
    """A state or attention and the network or mixture after it are one layer; where none follows, it is a bare one."""
    pattern = "".join(_BLOCKS.get(block, "?") for block in f.layer_types or ()) or f.pattern or ""
    states, mixed, dense = (pattern.count(letter) for letter in "ME-")
    layers = states + pattern.count("*")
    if layers + mixed + dense != len(pattern) or not 0 < mixed + dense <= layers:
        rule = message("spec.nemotron_h")
        raise NoClosedFormError("nemotron_h", "hybrid_override_pattern", pattern, rule, '"MEM*E"')
    wide: dict[str, Any] = {"shared": 1, "shared_width": f.shared_width or 0, "latent": f.latent or 0}
    experts = Experts(f.experts or 0, f.per_token or 0, f.expert_width or 0, **wide, **expert_groups(f))
    bare = layers - mixed - dense
    networks = (DenseLayers(bare, 0),) if bare and dense else ()
    return {
        "layers": layers,
        "mixer": _mamba2(f, states) if states else None,
        "experts": replace(experts, dense_layers=layers - mixed) if mixed else None,
        "ffn": (f.ffn or 0) if dense else 0,
        "networks": networks,
    }


def _object(value: object) -> dict[str, object]:
    """A value of a config where it is an object; elsewhere an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _nemotron_nas(f: Fields) -> Mapping[str, Any]:
    """A search left each layer its own width, or no attention, or no network."""
    attended, widths = Counter[int](), Counter[int]()
    for block in f.blocks or ():
        attention, network = (_object(block.get(part)) for part in ("attention", "ffn"))
        if attention.get("replace_with_linear") or network.get("replace_with_linear"):
            raise NoClosedFormError("nemotron-nas", "block_configs", "replace_with_linear", message("spec.linear"))
        group, times = attention.get("n_heads_in_group") or 1, network.get("ffn_mult") or 0
        if not isinstance(group, int) or not isinstance(times, int | float) or not 0 <= times < f.hidden:
            raise SpecError("blocks", str(block)[:60], message("spec.block_numbers"))
        if not 1 <= group <= f.heads:
            raise SpecError("blocks", str(block)[:60], message("spec.block_heads", heads=float(f.heads)))
        attended[0 if attention.get("no_op") else f.heads // group] += 1
        widths[0 if network.get("no_op") else 256 * math.ceil(int(2 * times * f.hidden / 3) / 256)] += 1
    if sum(widths.values()) != f.layers or not {*attended} - {0}:
        raise SpecError("blocks", sum(widths.values()), message("spec.blocks", layers=float(f.layers)))
    (kv_heads, _), *other = sorted((item for item in attended.items() if item[0]), key=lambda item: -item[1])
    (ffn, _), *networks = sorted((item for item in widths.items() if item[0]), key=lambda item: -item[1])
    head_dim = f.hidden // f.heads
    return {
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "ffn": ffn,
        "bare_layers": attended[0],
        "others": tuple(AttentionLayers(layers, f.heads, keys, head_dim) for keys, layers in other),
        "networks": tuple(DenseLayers(layers, width) for width, layers in [*networks, (0, widths[0])] if layers),
    }


def _windowed_layers(f: Fields, usual: Callable[[int], bool]) -> list[bool]:
    """Which layers have the sliding window."""
    if f.window_marks is not None:
        return [bool(mark) for mark in f.window_marks[: f.layers]]
    kinds = f.layer_types[: f.layers] if f.layer_types else None
    return [kind == "sliding_attention" for kind in kinds] if kinds else [usual(i) for i in range(f.layers)]


def _gemma4(f: Fields) -> Mapping[str, Any]:
    """Windowed layers with heads of one width, and layers that see everything with heads of another."""
    windowed = _windowed_layers(f, lambda layer: (layer + 1) % 6 != 0)
    windowed[-1:] = [False]
    if f.layer_embedding and f.layer_vocab not in (None, f.vocab):
        raise SpecError("layer_vocab", f.layer_vocab, message("spec.layer_vocab"), f.vocab)
    if f.sharing >= f.layers:
        raise SpecError("sharing", f.sharing, message("spec.sharing", layers=float(f.layers)), 0)
    own = f.layers - f.sharing
    other = next(iter(f.per_layer.values())) if f.per_layer else {}
    keys, width = other.get("num_key_value_heads", f.global_kv_heads), other.get("head_dim", f.global_head_dim)
    wide = (f.heads, (keys if f.keys_are_values else None) or f.kv_heads or f.heads, width or 0)
    narrow = (f.heads, f.kv_heads or f.heads, f.head_dim or 0)
    layers: list[tuple[int, tuple[int, int, int], int, KeyValues]] = [
        (windowed[:own].count(False), wide, 0, "one" if f.keys_are_values else "own"),
        (windowed[own:].count(True), narrow, f.window or 0, "earlier"),
        (windowed[own:].count(False), wide, 0, "earlier"),
    ]
    mixture: dict[str, Any] = {"experts": None}
    if f.moe_on and f.experts:
        dense: dict[str, Any] = {"shared": 1, "shared_width": f.ffn or 0, "router_scaled": True, "norms": 3}
        mixture = {"experts": Experts(f.experts, f.per_token or 0, f.expert_width or 0, **dense)}
    return {
        **mixture,
        "window": SlidingWindow(f.window) if f.window else None,
        "others": tuple(
            AttentionLayers(count, *sizes, window=window, keys=keys) for count, sizes, window, keys in layers if count
        ),
        "networks": (DenseLayers(f.sharing, 2 * (f.ffn or 0)),) if f.double_wide and f.sharing else (),
        "layer_embedding": f.layer_embedding or 0,
    }


def _other_windows(f: Fields, times: int = 1) -> Mapping[str, Any]:
    """Windowed layers whose heads are other than those of layers that see everything (MiMo-V2, Step 3)."""
    windowed = _windowed_layers(f, lambda layer: bool(layer) and (layer + 1) % 6 != 0 and bool(f.window)).count(True)
    heads, head_dim = f.window_heads or f.heads, f.head_dim or 0
    kv_heads = f.window_kv_heads or times * (f.kv_heads or heads)
    window = (f.window or 0) if f.window_size is None else f.window_size + 1
    sizes: dict[str, Any] = {"value_dim": f.value_dim or 0, "window": window, "sinks": f.window_sinks}
    others = (AttentionLayers(windowed, heads, kv_heads, head_dim, **sizes),) if windowed else ()
    return {"others": others, "value_width": f.value_dim or 0, "window": None, "latent": None}


def _sparse(f: Fields) -> Mapping[str, Any]:
    """An indexer in every layer, in those that are marked, or in every few, whose choice the following ones use."""
    if not f.index_heads or not f.index_dim or not f.index_chosen:
        return {}
    every, start = f.index_every or 1, f.index_from or 0
    layers = sum(max(i - start + 1, 0) % every == 0 for i in range(f.layers))
    if f.index_types is not None:
        layers = f.index_types[: f.layers].count("full")
    return {"indexer": Indexer(f.index_heads, f.index_dim, f.index_chosen, layers % f.layers) if layers else None}


_COMPRESSED = {
    "compressed_sparse_attention": "sparse",
    "heavily_compressed_attention": "heavy",
    4: "sparse",
    128: "heavy",
}


def _deepseek_v4(f: Fields) -> Mapping[str, Any]:
    """Layers that see a window, entries that an indexer chooses, or all entries of many tokens each."""
    usual = ["heavy" if i < 2 or i % 2 == 0 else "sparse" for i in range(f.layers)]
    listed = [_COMPRESSED.get(kind, "") for kind in f.layer_types or f.compress_ratios or ()][: f.layers]
    kinds = listed or usual
    low = (f.query_rank or 0, f.output_groups or 0, f.output_rank or 0)
    return {
        "compressed": CompressedAttention(*low, sparse=kinds.count("sparse"), heavy=kinds.count("heavy")),
        "indexer": Indexer(f.index_heads or 0, f.index_dim or 0, f.index_chosen or 0),
        "window": SlidingWindow(f.window or 0),
        "streams": f.streams,
        "latent": None,
    }


def _minimax_m3(f: Fields) -> Mapping[str, Any]:
    """Experts are as wide as other configs' dense networks, and dense ones have a width of their own."""
    kinds = [kind == "minimax_m3_sparse" for kind in f.layer_types or ()]
    layers = sum(map(bool, (f.index_marks or kinds)[: f.layers]))
    chosen = (f.index_chosen or 0) * (f.multiple or 1)
    indexer = Indexer(f.index_heads or 0, f.index_dim or 0, chosen, layers % f.layers, normed=True) if layers else None
    return {"ffn": f.dense_ffn or f.ffn or 0, "indexer": indexer}


def _ernie(f: Fields) -> Mapping[str, Any]:
    """Experts between two layers; biases throughout, that of the head among them, or none."""
    until = f.layers - 1 if f.moe_until in (None, -1) else f.moe_until
    dense = sum(
        not ((i + 1) % (f.moe_every or 1) == 0 and (f.dense_first or 0) <= i <= (until or 0)) for i in range(f.layers)
    )
    wide = (f.shared or 0) * (f.expert_width or 0)
    shared: dict[str, Any] = {"shared": int(wide > 0), "shared_width": wide, "dense_layers": dense, "router_bias": True}
    return {
        "experts": Experts(f.experts or 0, f.per_token or 0, f.expert_width or 0, **shared),
        "head_bias": f.ffn_bias,
    }


_WINDOWS: Mapping[str, Callable[[Fields, int], bool]] = {
    "every": lambda _, layer: layer >= 0,
    "alternate": lambda _, layer: layer % 2 == 0,
    "three_of_four": lambda _, layer: (layer + 1) % 4 != 0,
    "but_every_nth": lambda f, layer: (layer + 1) % (f.window_every or 1) != 0,
    "above": lambda f, layer: layer >= (f.window_from or 0),
    "alternate_below": lambda f, layer: layer % 2 == 0 and layer < (f.window_from or 0),
    "without_rotation": _without_rotation,
}
"""Which layers have the sliding window, by the name in the table."""

_RULES: Mapping[str, Callable[[Fields], Mapping[str, Any]]] = {
    "": lambda _: {},
    "learned_positions": lambda f: {"position_rows": f.max_seq or 0},
    "opt": _opt,
    "falcon": _falcon,
    # Blocks that run attention and feed-forward network side by side norm their input once.
    "one_norm": lambda f: {"norms_per_layer": 1 if f.parallel else 2, **_qk_norm(f)},
    "qk_norm": _qk_norm,
    # Heads are as wide as fit where nothing says how wide, though some of the width is then left over.
    "glm_mixture": lambda f: {**_qk_norm(f, "head"), "head_dim": f.head_dim or max(f.hidden // f.heads, 1)},
    # xIELU learns two numbers; other activation functions learn none.
    "learned_activation": lambda f: {"activation_scalars": 2 if f.activation == "xielu" else 0},
    "mamba": lambda f: {"mixer": _mamba(f, f.layers)},
    "mamba2": lambda f: {"mixer": _mamba2(f, f.layers)},
    "jamba": _jamba,
    "qwen3_next": _qwen3_next,
    "nemotron_h": _nemotron_h,
    "nemotron_nas": _nemotron_nas,
    "kimi_linear": _kimi_linear,
    "lfm2": _lfm2,
    "falcon_h1": lambda f: {"mixer": _mamba2(f, f.layers, parallel=True)},
    "granite_hybrid": _granite_hybrid,
    "gemma4": _gemma4,
    "other_windows": _other_windows,
    "mimo_v2": lambda f: _other_windows(f, 2),
    "sparse": _sparse,
    "ernie": _ernie,
    "minimax_m3": _minimax_m3,
    "bailing": lambda f: _qk_norm(f, "head"),
    "deepseek_v4": _deepseek_v4,
}
"""What follows from a config's fields, by the name in the table."""


def _family(row: Mapping[str, str], like: Family | None) -> Family:
    """Return the family of a row, which may say only what is other than in the family that it is like."""
    return Family(
        row["name"],
        _merged(like.keys if like else {}, keys(row["keys"])),
        {**(like.defaults if like else {}), **read_values(row["defaults"])},
        {**(like.fixed if like else {}), **read_values(row["fixed"])},
        like.derived if like and not row["rule"] else _RULES[row["rule"]],
        _WINDOWS[row["window"]] if row["window"] else like.windowed if like else None,
        {**(like.only if like else {}), **read_values(row["only"])},
        row["note"] or (like.note if like else ""),
        (*(like.inert if like else ()), *row["inert"].split()),
        {**(like.built if like else {}), **read_values(row["built"])},
    )


def _merged(inherited: Mapping[str, tuple[str, ...]], own: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the keys of both, without those that the family does not have (``field=-``)."""
    return {field: names for field, names in {**inherited, **own}.items() if names != ("-",)}


def _families() -> dict[str, Family]:
    families: dict[str, Family] = {}
    for row in read_rows("model_families"):
        families[row["model_type"]] = _family(row, families.get(row["like"]))
    return families


FAMILIES: Mapping[str, Family] = _families()
"""Every family read, by its ``model_type``."""
