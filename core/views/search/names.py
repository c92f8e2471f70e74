"""Names of a step's parts, and of layouts in a few letters, for pictures and sentences alike."""

from __future__ import annotations

from dataclasses import fields

from core.step_time.running import StepTime
from core.training.layout import Layout

PARTS: dict[str, tuple[str, str]] = {
    "matmul": ("matrix products", "fraction"),
    "attention": ("attention", "accent"),
    "elementwise": ("element-wise", "gradients"),
    "recompute": ("recomputing", "activations"),
    "tensor": ("tensor parallel", "master"),
    "context": ("context parallel", "accent"),
    "expert": ("expert parallel", "sign"),
    "transfer": ("stage to stage", "buffers"),
    "bubble": ("pipeline’s wait", "buffers"),
    "data": ("data parallel", "exponent"),
    "optimizer": ("optimizer", "optimizer"),
    "fixed": ("waiting for the host", ""),
    "jitter": ("contention", ""),
}
"""Part of a step → its name, and the role whose colour it wears (none: quiet)."""

KEYS: dict[str, str] = {
    "recompute": "recomputing",
    "tensor": "tensor",
    "context": "context",
    "expert": "expert",
    "transfer": "pipeline",
    "bubble": "pipeline",
    "data": "data",
    "fixed": "waiting",
    "jitter": "waiting",
}
"""Part of a step that can take most beside computing → the word for its colour, one for parts that share it."""

NAMES: tuple[str, ...] = tuple(field.name for field in fields(StepTime))
"""The parts by the index that `Columns.bound` has."""


def short(layout: Layout) -> str:
    """A layout in a few letters, as people write it: ``TP8 PP16 DP128``."""
    degrees = (
        ("TP", layout.tensor),
        ("PP", layout.pipeline),
        ("CP", layout.context),
        ("EP", layout.expert),
        ("ETP", layout.expert_tensor),
        ("DP", layout.data),
    )
    return " ".join(f"{name}{int(degree)}" for name, degree in degrees if degree > 1) or "one accelerator"
