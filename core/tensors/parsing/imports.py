"""Imports: which are understood, and what the names they give stand for. Nothing is imported."""

from __future__ import annotations

import ast

from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.numbers import NUMBERS

_MODULES: tuple[tuple[str, str], ...] = (
    ("torch", "torch"),
    ("einops", "einops"),
    ("torch.nn.functional", "F"),
    ("torch.nn", "nn"),
    ("math", "math"),
    ("numpy", "np"),
    ("random", "random"),
)
"""Modules as they may be imported, and the names they have here."""

_TYPES = ("typing", "__future__", "collections.abc", "jaxtyping")
"""Modules that only name types, which are not read."""


def read_import(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Names that an import gives and the longer ones they stand for, ``sqrt`` for ``math.sqrt``.

    Raises `ExpressionError` for a module, or a name of it, that is not there.
    """
    module = node.module or "." if isinstance(node, ast.ImportFrom) else ""
    if module in _TYPES:
        return {}
    by_name: dict[str, str] = {}
    for alias in node.names:
        path, name = f"{module}.{alias.name}" if module else alias.name, alias.asname or alias.name
        if (path, name) in _MODULES or path in _TYPES or (module == "torch" and alias.name == "Tensor"):
            continue
        short = {"torch.nn.functional": "F"}.get(module, module)
        form = {"torch": "torch", "F": "F", "einops": "bare"}.get(short, "")
        if f"{short}.{alias.name}" not in NUMBERS and (form, alias.name) not in OPERATIONS:
            raise ExpressionError(
                f"`{ast.unparse(node)[:60]}`: only torch, einops, math, numpy as np, torch.nn.functional as F and "
                "torch.nn as nn are there, under these names, and the functions of them that are understood."
            )
        if name == alias.name and form == "bare":
            continue
        by_name[name] = f"{short}.{alias.name}"
    return by_name
