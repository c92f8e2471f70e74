"""Annotations of shapes as jaxtyping reads them: ``Float[Tensor, "batch seq hidden"]`` held against a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.messages import Message, message

_DTYPES: Mapping[str, tuple[str, ...]] = {
    "Float": ("float", "bfloat"),
    "Int": ("int",),
    "UInt": ("uint",),
    "Integer": ("int", "uint"),
    "Bool": ("bool",),
    "Complex": ("complex",),
    "Inexact": ("float", "bfloat", "complex"),
    "Real": ("float", "bfloat", "int", "uint"),
    "Num": ("float", "bfloat", "int", "uint", "complex"),
}
"""Names of jaxtyping, and how the dtypes begin that they stand for; others with a number are those of dtypes."""


def annotated(kind: str, dims: str, shape: Sequence[int], dtype: str, sizes: dict[str, int]) -> Message | None:
    """Return what is wrong with an annotation, or None. sizes: of the names so far; new ones are added."""
    allowed = _DTYPES.get(kind) or ((kind.lower(),) if kind[-1:].isdigit() else None)
    if allowed is not None and not dtype.startswith(allowed):
        return message("tensors.annotation.dtype", dtype=dtype, kind=kind)
    names = dims.split()
    many = [place for place, name in enumerate(names) if name == "..." or name.startswith("*")]
    if len(many) > 1:
        return message("tensors.annotation.several")
    fixed = len(names) - len(many)
    if fixed > len(shape) or (not many and fixed < len(shape)):
        return message("tensors.annotation.rank", names=float(fixed), shape=tuple(shape))
    for place in many:
        names[place : place + 1] = ["_"] * (len(shape) - fixed)
    for name, size in zip(names, shape, strict=True):
        if wrong := _dimension(name, size, sizes):
            return wrong
    return None


def _dimension(written: str, size: int, sizes: dict[str, int]) -> Message | None:
    name = written.rpartition("=")[2]
    broadcasts, name = name.startswith("#"), name.lstrip("#?")
    if name.startswith("_") or (broadcasts and size == 1):
        return None
    if name.isdecimal():
        same = int(name[:12]) == size
        return None if same else message("tensors.annotation.size", asked=name[:12], size=float(size))
    if not name.isidentifier():
        return None  # an expression such as seq-1, which is left to jaxtyping
    known = sizes.setdefault(name, size)
    if known == size:
        return None
    return message("tensors.annotation.changed", name=name[:32], before=float(known), size=float(size))
