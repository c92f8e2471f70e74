"""Names of a step's parts and of layouts, which pictures, tables, and sentences share."""

from __future__ import annotations

from collections.abc import Mapping

from core.messages import Message, message
from core.training.layout import Layout, named_modules, recompute_name
from core.views.common.palette import Palette
from core.wording import listed

_PARTS: Mapping[str, tuple[str, str]] = {
    "matmul": ("search.part.matmul", "fraction"),
    "attention": ("search.part.attention", "accent"),
    "elementwise": ("search.part.elementwise", "gradients"),
    "recompute": ("search.part.recompute", "activations"),
    "tensor": ("search.part.tensor", "master"),
    "context": ("search.part.context", "accent"),
    "expert": ("search.part.expert", "sign"),
    "transfer": ("search.part.transfer", "buffers"),
    "bubble": ("search.part.bubble", "buffers"),
    "data": ("search.part.data", "exponent"),
    "optimizer": ("search.part.optimizer", "optimizer"),
    "fixed": ("search.part.fixed", ""),
    "jitter": ("search.part.jitter", ""),
}
"""Part of a step → its name, and the role whose color it has (none: quiet)."""

_KEYS: Mapping[str, str] = {
    "transfer": "search.key.pipeline",
    "bubble": "search.key.pipeline",
    "fixed": "search.key.host",
    "jitter": "search.key.host",
}
"""Parts that share a color → the name of both."""


def part_name(part: str) -> Message:
    """Return the name of a part of a step."""
    return message(_PARTS[part][0])


def key_name(part: str) -> Message:
    """Return the name of the color of a part of a step."""
    return message(_KEYS[part]) if part in _KEYS else part_name(part)


def part_color(part: str, palette: Palette) -> str:
    """Return the color of a part of a step."""
    role = _PARTS[part][1]
    return palette.role(role) if role else palette.muted


_DEGREES: Mapping[str, str] = {
    "tensor": "search.degree.tensor",
    "pipeline": "search.degree.pipeline",
    "context": "search.degree.context",
    "expert": "search.degree.expert",
    "expert_tensor": "search.degree.expert_tensor",
    "data": "search.degree.data",
}


def layout_label(layout: Layout) -> str:
    """Return a layout in words: ``tensor 8 · pipeline 16 · data 128 · ZeRO-1 · 8 chunks per stage``."""
    degrees = {name: float(getattr(layout, name)) for name in _DEGREES}
    named = [message(_DEGREES[name], degree=degree) for name, degree in degrees.items() if degree > 1]
    if layout.zero and layout.data * layout.context > 1:
        named.append(message("search.degree.zero", stage=float(layout.zero)))
    if layout.interleave > 1:
        named.append(message("search.degree.interleave", chunks=float(layout.interleave)))
    return " · ".join(named) if layout.accelerators > 1 else message("search.degree.single")


_LETTERS = {"TP": "tensor", "PP": "pipeline", "CP": "context", "EP": "expert", "ETP": "expert_tensor", "DP": "data"}


def short_layout(layout: Layout) -> str:
    """Return the degrees of a layout in letters: ``TP8 PP16 DP128``."""
    degrees = ((letters, int(getattr(layout, name))) for letters, name in _LETTERS.items())
    named = [f"{letters}{degree}" for letters, degree in degrees if degree > 1]
    return " ".join(named) or message("search.degree.single")


def table_layout(layout: Layout) -> str:
    """Return the degrees of a layout with its chunks per stage and its ZeRO stage: ``TP8 PP16×8 DP128 ZeRO-2``."""
    pipeline = f"PP{int(layout.pipeline)}"
    named = short_layout(layout)
    if layout.interleave > 1:
        named = named.replace(pipeline, f"{pipeline}×{int(layout.interleave)}")
    group = f"/{int(layout.shard_group)}" if layout.shard_group else ""
    return f"{named} ZeRO-{int(layout.zero)}{group}" if layout.zero else named


def recompute_label(layout: Layout) -> str:
    """Return what backward recomputes: the name of the mode, or the modules."""
    return listed(named_modules(layout.recompute)) or recompute_name(layout.recompute)
