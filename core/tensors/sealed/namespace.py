# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""The names that a program finds without importing them, and what is put in place of what a sealed process lacks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

_LOADING = threading.Lock()

EINOPS = ("rearrange", "reduce", "repeat", "einsum")


def load_torch() -> Any:
    """Import torch, once per process and by one thread at a time; about a second the first time."""
    with _LOADING:
        import torch

    return torch


class Kind:
    """An annotation such as ``Float[Tensor, "batch seq"]``; shapes are compared with it where a name is bound."""

    def __class_getitem__(cls, item: object) -> type[Kind]:
        return cls


def same_storage(one: Any, other: Any) -> bool:
    """Return whether two tensors share a storage."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def memory_usage(tensor: Any) -> int:
    """Return the bytes of the elements of a tensor."""
    return tensor.numel() * tensor.element_size()


def namespace() -> dict[str, Any]:
    """Return the names that a program can use, with their objects."""
    import math

    import einops
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional

    names: dict[str, Any] = {
        "__name__": "__main__",
        "torch": torch,
        "nn": nn,
        "F": functional,
        "np": np,
        "numpy": np,
        "math": math,
        "einops": einops,
        "Tensor": torch.Tensor,
        "same_storage": same_storage,
        "get_memory_usage": memory_usage,
        **dict.fromkeys(("Float", "Int", "Bool", "Shaped", "Num", "Int64", "Float32", "BFloat16", "Float16"), Kind),
    }
    return names | {name: getattr(einops, name) for name in EINOPS}


@contextmanager
def in_place_of(
    watch: Callable[[Callable[..., Any]], Callable[..., Any]], others: Iterable[tuple[Any, str, Any]]
) -> Generator[None]:
    """Let functions of einops be watched, and compilers give back what they are given: none can run here.

    others: an owner, a name in it, and what stands there meanwhile.
    """
    import einops
    import torch

    def as_it_is(model: Any = None, *_: object, **__: object) -> Any:
        return (lambda function: function) if model is None else model  # pyright: ignore[reportUnknownLambdaType]

    changes = [(einops, name, watch(getattr(einops, name))) for name in EINOPS]
    changes += [(torch, "compile", as_it_is), (torch.jit, "script", as_it_is), *others]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
