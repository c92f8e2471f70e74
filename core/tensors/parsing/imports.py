"""Imports: which are understood, and what the names they give stand for. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.numbers import CONSTANTS, FUNCTIONS

MODULES: Mapping[str, str] = {
    **{name: name for name in ("torch", "einops", "math", "np", "np.random", "random", "sys", "F", "nn")},
    **{name: name for name in ("nn.init", "nn.utils")},
    **{f"torch.{name}": f"torch.{name}" for name in ("cuda", "accelerator", "amp", "autograd", "optim")},
    "torch.nn": "nn",
    "torch.nn.functional": "F",
    "nn.functional": "F",
    "torch.nn.init": "nn.init",
    "numpy": "np",
}
"""Modules as they are imported or reached, and what they are called here."""

_TYPES = ("typing", "__future__", "collections.abc", "collections", "jaxtyping", "dataclasses", "abc")
"""Modules that only name types, which are not read."""


def read_import(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    """Names that an import gives, each with a module and the name there, which is empty for the module itself.

    Raises `ExpressionError` for a module, or a name of it, that is not there.
    """
    module = node.module or "." if isinstance(node, ast.ImportFrom) else ""
    found: dict[str, tuple[str, str]] = {}
    for alias in node.names:
        path, name = f"{module}.{alias.name}" if module else alias.name, alias.asname or alias.name
        known = MODULES.get(module, "")
        if module in _TYPES or path in _TYPES:
            found[name] = ("typing", alias.name)
        elif path in MODULES:
            if alias.asname or "." not in name:
                found[name] = (MODULES[path], "")
        elif known and _is_known(known, alias.name):
            found[name] = ("" if known == "einops" else known, alias.name)
        else:
            raise ExpressionError(
                f"`{ast.unparse(node)[:60]}`: only torch, einops, math, numpy, random and torch.nn are there, and the "
                "functions of them that are understood."
            )
    return found


def _is_known(module: str, name: str) -> bool:
    form = {"torch": "torch", "F": "F", "einops": "bare", "nn.init": "init"}.get(module, "")
    path = f"{module}.{name}"
    layer = module in ("nn", "torch.optim") and name[:1].isupper()
    return layer or path in (*CONSTANTS, *FUNCTIONS, "torch.Tensor") or (form, name) in OPERATIONS
