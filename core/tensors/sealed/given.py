"""A pasted text as a whole program: what stands before it gives it tensors, what stands after it calls what it defines.

So code that is a function, a class, or the body of a ``forward`` runs as it stands, on values that its names suggest.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.limits import limit
from core.messages import message
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.asked import Asked, asked, suggested, uncalled
from core.tensors.parsing.text import parsed, read_shape, readable
from core.tensors.sealed.program import SPLIT

_NAMES = (
    *("torch", "nn", "F", "np", "numpy", "math", "einops", "rearrange", "reduce", "repeat", "einsum", "Tensor"),
    *("same_storage", "get_memory_usage", "Float", "Int", "Bool", "Shaped", "Num", "Int64", "Float32", "BFloat16"),
    *("Float16", "display", "text", "__name__", "__file__"),
)
"""Names that a program finds without defining them; see `core.tensors.sealed.namespace`."""


@dataclass(frozen=True, slots=True)
class Start:
    """What ``x`` is: its layout over ``torch.arange`` of an element type."""

    layout: TensorLayout
    dtype: str

    @property
    def source(self) -> str:
        """The line that makes x."""
        layout, span = self.layout, self.layout.span
        cells = layout.offset if span is None else span[1] + 1
        made = f"x = torch.arange({cells}, dtype=torch.{self.dtype})"
        if layout == TensorLayout.contiguous(layout.shape):
            return f"{made}.view({layout.shape})"
        return f"{made}.as_strided({layout.shape}, {layout.stride}, {layout.offset})"


def names_in(text: str, shape: Sequence[int] = ()) -> tuple[Asked, ...]:
    """Return what ``text`` uses and does not define, x among it, with what each name suggests. Nothing runs."""
    module = parsed(readable(text[: 2 * limit("expression_chars")]))
    body = module.body if module else []
    known = {*_NAMES, *dir(builtins)}
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                known |= {(item.asname or item.name).split(".")[0] for item in part.names}
    names = asked(body, known, shape)
    return tuple(item for item in names if item.name.removeprefix("self.").isidentifier())[
        : limit("expression_lines") // 2
    ]


def filled(names: Sequence[Asked], given: Mapping[str, str]) -> tuple[Asked, ...]:
    """Return ``names`` with the texts that were entered for them, x left out."""
    return tuple(replace(item, text=given.get(item.name, item.text)) for item in names if item.name != "x")


def whole_program(text: str, start: Start | None, names: Sequence[Asked]) -> str:
    """Return ``text`` with what it is given. Raises `ExpressionError` for a value that is none."""
    lines = [] if start is None else [start.source]
    if any(item.name.startswith("self.") for item in names):
        lines += ["class self:", "    pass"]
    lines += [f"{item.name} = {_value(item, 'float32' if start is None else start.dtype)}" for item in names]
    return "\n".join([*lines, SPLIT, text, *_calls(text, {item.name for item in names} | {"x"}), ""])


def _value(item: Asked, dtype: str) -> str:
    """Return what a name is given, as Python."""
    text = item.text.strip()
    if item.role == "device":
        device = text.strip("'\"")
        if not re.fullmatch(r"[a-z]{2,8}(:\d{1,2})?", device):
            raise ExpressionError(message("tensors.problem.device", name=item.name))
        return f"torch.device({device!r})"
    if re.fullmatch(r"[-+]?[0-9][0-9_]{0,30}(\.[0-9]{0,30})?(e[-+]?[0-9]{1,3})?", text):
        return text
    if item.role == "number":
        raise ExpressionError(message("tensors.problem.number", name=item.name, example=suggested(item.name)))
    kind = dtype if dtype.startswith(("float", "bfloat")) else "float32"
    return f"torch.randn({read_shape(text)}, dtype=torch.{kind})"


def _calls(text: str, names: set[str]) -> list[str]:
    """Return the calls of the functions and classes that nothing else calls, where the given names fill their
    parameters."""
    module = parsed(text) or ast.Module([], [])
    alone = uncalled(module)
    lines: list[str] = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in alone:
            lines += _call(node.name, node, names, "self" in {item.split(".")[0] for item in names})
        elif isinstance(node, ast.ClassDef) and node.name in alone:
            methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
            forward, start = methods.get("forward"), methods.get("__init__")
            made = [f"{node.name}()"] if start is None else _call(node.name, start, names, True, given=True)
            if forward is not None and made:
                name = node.name.lower() + "_"
                lines += [f"{name} = {made[0]}", *_call(name, forward, names, True, given=True)]
    return lines


def _call(name: str, node: ast.FunctionDef, names: set[str], has_self: bool, given: bool = False) -> list[str]:
    """Return the call, nothing if a parameter has no value. given: ``self`` is the instance itself."""
    spec = node.args
    every = [item.arg for item in (*spec.posonlyargs, *spec.args)]
    required = every[: len(every) - len(spec.defaults)]
    required += [item.arg for item, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value is None]
    first = ["self"] if every[:1] == ["self"] else []
    args = ["self"] if first and not given else []
    rest = [item for item in required if item not in first]
    optional = [item for item in (*every, *(a.arg for a in spec.kwonlyargs)) if item not in required and item in names]
    if not set(rest) <= names or (args and not has_self):
        return []
    tensors = [item for item in optional if item == "x"]
    return [f"{name}({', '.join([*args, *(f'{item}={item}' for item in (*rest, *tensors))])})"]
