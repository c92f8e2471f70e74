"""Names of a step's parts and of layouts, which pictures, tables, and sentences share."""

from __future__ import annotations

from collections.abc import Mapping

from core.messages import Message, message
from core.training.layout import Layout, named_modules, recompute_name
from core.views.common.palette import Palette
from core.wording import listed

_ROLES: Mapping[str, str] = {
    "matmul": "fraction",
    "attention": "accent",
    "elementwise": "gradients",
    "recompute": "activations",
    "tensor": "master",
    "context": "accent",
    "expert": "sign",
    "transfer": "buffers",
    "bubble": "buffers",
    "data": "exponent",
    "optimizer": "optimizer",
}
"""Part of a step → the role whose color it has; others are quiet."""

_KEYS: Mapping[str, str] = {
    "transfer": "search.key.pipeline",
    "bubble": "search.key.pipeline",
    "fixed": "search.key.host",
    "jitter": "search.key.host",
}
"""Parts that share a color → the name of both."""


def part_name(part: str) -> Message:
    """Return the name of a part of a step."""
    return message(f"search.part.{part}")


def key_name(part: str) -> Message:
    """Return the name of the color of a part of a step."""
    return message(_KEYS[part]) if part in _KEYS else part_name(part)


def part_color(part: str, palette: Palette) -> str:
    """Return the color of a part of a step."""
    return palette.role(_ROLES[part]) if part in _ROLES else palette.muted


def layout_label(layout: Layout) -> str:
    """Return a layout in words: ``tensor 8 · pipeline 16 · data 128 · ZeRO-1 · 8 chunks per stage``."""
    degrees = {name: float(getattr(layout, name)) for name in _LETTERS.values()}
    named = [message(f"search.degree.{name}", degree=degree) for name, degree in degrees.items() if degree > 1]
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
