"""What backward recomputes, in a few words."""

from __future__ import annotations

from core.messages import Message, message
from core.training.layout import Recompute, layers_of, named_modules, way_of

_MODES = {
    Recompute.NONE: "memory.recompute.none",
    Recompute.SELECTIVE: "memory.recompute.selective",
    Recompute.PER_OPERATION: "memory.recompute.per_operation",
    Recompute.FULL: "memory.recompute.full",
}
_SELECTIVE = {True: "memory.recompute.selective_flash", False: "memory.recompute.selective_attention"}


def recomputed(recompute: int, flash: bool | None = None) -> Message:
    """Return what backward recomputes. flash: whether attention is fused, which decides what is meant by selective."""
    what, layers = _what(recompute, flash), int(layers_of(recompute))
    if not layers:
        return what
    key = "memory.recompute.layers" if layers > 0 else "memory.recompute.blocks"
    return message(key, what=what, layers=float(abs(layers)))


def _what(recompute: int, flash: bool | None) -> Message:
    mode = int(way_of(recompute))
    if mode == Recompute.SELECTIVE and flash is not None:
        return message(_SELECTIVE[flash])
    if mode in _MODES:
        return message(_MODES[Recompute(mode)])
    modules = [message(f"memory.module.{name}") for name in named_modules(recompute)]
    return message("memory.recompute.modules", modules=modules)
