"""The wall before the seal: what a program may name, so that all else is refused in words.

It is no boundary: a text can reach what no name in it says. It runs where programs run, after their libraries have
been imported, and asks those what they have.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from core.rows import read_rows

_NAMES: Mapping[str, str] = {row["of"]: row["names"] for row in read_rows("program_names")}
"""What may be used of Python and of modules, by the table ``program_names``; ``*`` for every public name."""

MODULES = {of.removeprefix("module "): frozenset(names.split()) for of, names in _NAMES.items() if of[:7] == "module "}

_SYNTAX, _BUILTINS, _PRIVATE, _ANNOTATIONS = (
    frozenset(_NAMES[of].split()) for of in ("syntax", "builtins", "private", "annotations")
)
"""Nodes of the syntax tree; functions of Python; names with an underscore, to which a program adds its own; and
libraries of which only annotations are imported, which nothing reads."""

FOUND = {"nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy", "numpy": "numpy"} | {
    name: name for name in ("torch", "math", "einops")
}
"""Names that stand for modules in every program, and which."""

_PARTS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.pattern)


@dataclass(frozen=True, slots=True)
class WallRefusal:
    """Why a program does not run. kind: of `WALL_MESSAGES` of the client, which has the sentence; name: what is not
    available; near: what may be meant. line, column: where, counted from 1; 0 for the whole program."""

    kind: str
    name: str
    near: str = ""
    line: int = 0
    column: int = 0


def refusal(source: str) -> WallRefusal | None:
    """Return the first reason why a program does not run, or None. Syntax errors are left to Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    walk = _Names(tree)
    nodes = (node for node in ast.walk(tree) if hasattr(node, "lineno"))
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):  # type: ignore[attr-defined]
        for fault in walk.faults(node):
            return replace(fault, line=getattr(node, "lineno", 0), column=getattr(node, "col_offset", -1) + 1)
    return None


class _Names:
    """What the names of a program stand for.

    modules: names that stand for modules, and which. own: names that it binds or defines, attributes too.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.modules = dict(FOUND)
        self.own: set[str] = set()
        imports: list[ast.Import | ast.ImportFrom] = []
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    self.own.add(name)
                    self.modules.pop(name, None)
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    self.own.add(name)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    self.own.add(name)
                case ast.Import() | ast.ImportFrom():
                    imports.append(node)
                case _:
                    pass
        for node in imports:
            self.modules.update(_bound(node))

    def faults(self, node: ast.AST) -> Iterator[WallRefusal]:
        """Yield why ``node`` is rejected."""
        kind = type(node).__name__
        if kind not in _SYNTAX and not isinstance(node, _PARTS):
            yield WallRefusal("name", _WORDS.get(kind, kind))
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _import_faults(alias.name)
            case ast.ImportFrom(module=module, names=names):
                path = module or ""
                yield from _import_faults(path or "." * node.level)
                for alias in names:
                    if path in MODULES and alias.name != "*":
                        yield from _name_faults(path, alias.name)
            case ast.Attribute(value=value, attr=name):
                module = self.module_of(value)
                if module:
                    yield from _name_faults(module, name)
                elif name[0] == "_" and name not in self.own | _PRIVATE and not name.startswith("_saved_"):
                    yield WallRefusal("private", f".{name}")
            case ast.Name(id=name, ctx=ast.Load()) if name not in self.own and name not in self.modules:
                known = getattr(builtins, name, None)
                error = isinstance(known, type) and issubclass(known, BaseException)
                if name not in _BUILTINS and not error and hasattr(builtins, name):
                    yield WallRefusal("name", name)
            case _:
                pass

    def module_of(self, node: ast.AST) -> str:
        """Return the module that an expression such as ``torch.nn`` stands for, or an empty text."""
        match node:
            case ast.Name(id=name):
                return self.modules.get(name, "")
            case ast.Attribute(value=value, attr=name) if owner := self.module_of(value):
                return path if (path := f"{owner}.{name}") in MODULES else ""
            case _:
                return ""


_WORDS = {"AsyncFunctionDef": "async def", "AsyncFor": "async for", "AsyncWith": "async with", "Await": "await"}


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds to modules."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            path = f"{node.module}.{alias.name}"
            if path in MODULES:
                yield alias.asname or alias.name, path
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            top = alias.name.partition(".")[0]
            yield top, top


def _import_faults(path: str) -> Iterator[WallRefusal]:
    top = path.partition(".")[0]
    if path in MODULES or top in _ANNOTATIONS:
        return
    if top in MODULES and top != path:
        yield WallRefusal("name", path)
        return
    near = get_close_matches(top, [name for name in MODULES if "." not in name], 1, 0.8)
    yield WallRefusal("near", path, near[0]) if near else WallRefusal("import", path)


def _name_faults(path: str, name: str) -> Iterator[WallRefusal]:
    """Yield why a name of a module is rejected. One that the module lacks is left to Python's own error."""
    if f"{path}.{name}" in MODULES or name in MODULES[path]:
        return
    module = sys.modules.get(path)
    names = vars(module) if module else {}
    if name in names and not _is_allowed(path, name, names[name]):
        yield WallRefusal("name", f"{path}.{name}")


def _is_allowed(path: str, name: str, value: object) -> bool:
    if name.startswith("_"):
        return name == "__version__"
    if "*" in MODULES[path]:
        return not isinstance(value, ModuleType)
    module: Any = sys.modules[path]
    if path == "torch":  # its functions of tensors, by its own lists of them
        functions = hasattr(module._C._VariableFunctions, name) or name in module.functional.__all__
        return functions or isinstance(value, module.dtype | module.layout | module.memory_format)
    if path == "numpy":
        scalar = isinstance(value, type) and issubclass(value, module.generic)
        return scalar or isinstance(value, module.ufunc | type(module.concatenate))
    return False
