"""What a page ran, as a Python script that runs on its own: every step printed with its layout and storage."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.values import MODULES
from core.tensors.parsing.call_arguments import IGNORED
from core.tensors.parsing.counts import CountKind, kind_of
from core.tensors.parsing.facts import HELPERS
from core.tensors.parsing.numbers import about_dtype, infinite, written
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.trace import start_layout, trace

_EINOPS = ("rearrange", "reduce", "repeat", "einsum")

_SHOW = '''

_storages = {}
_kept = []  # a storage keeps its identity as long as a tensor uses it


def _show(name, tensor):
    """Print what a tensor is, and in whose storage it lies: A is that of x."""
    if not isinstance(tensor, torch.Tensor):  # the several tensors of a split
        for number, piece in enumerate(tensor):
            _show(f"{name}[{number}]", piece)
        return
    _kept.append(tensor)
    storage = tensor.untyped_storage()
    letter = _storages.setdefault(storage._cdata, chr(ord("A") + len(_storages)))
    print(name)
    print(f"    shape {tuple(tensor.shape)}, strides {tensor.stride()}, offset {tensor.storage_offset()}, ", end="")
    print(f"{'contiguous' if tensor.is_contiguous() else 'not contiguous'}, {tensor.dtype}, ", end="")
    print(f"storage {letter} ({storage.nbytes()} B)")
    if not tensor.is_meta:
        print("   ", tensor.flatten()[:24].tolist())


'''


def script(
    source: str,
    shape: Sequence[int],
    dtype: str = "int64",
    stride: Sequence[int] | None = None,
    *,
    counted: bool = False,
    given: Mapping[str, str] | None = None,
) -> str:
    """A stand-alone script that makes x, runs ``source`` operation by operation and prints each result.

    counted: on torch's meta device, which allocates nothing, as it is anyway where x is too large to be made. Errors
    are caught and printed. Raises `ExpressionError` when the expression reader would not take ``source``.
    """
    layout = start_layout(shape, stride, "counted_elements")
    run = trace(source, shape, stride, dtype, given)
    numbers = [item.name for item in run.asked if not _is_shape(item.text) or item.role == "number"]
    body = _Unrolled(run.executed, numbers)
    imports = ["import math"] if "math" in body.taken else []
    imports += ["import numpy as np"] if "np" in body.taken else []
    imports.append("import torch")
    if "nn" in body.taken:
        imports.append("from torch import nn")
    imports += ["import random"] if "random" in body.taken else []
    if "F" in body.taken:
        imports.append("import torch.nn.functional as F")
    if body.einops:
        imports.append(f"from einops import {', '.join(sorted(body.einops))}")
    if counted or max(layout.numel, (layout.span or (0, 0))[1]) > limit("tensor_elements"):
        imports += ["", 'torch.set_default_device("meta")  # shapes, strides and bytes; nothing is allocated']
    head = "\n".join(imports) + _SHOW
    head += "".join(_HELPERS[name] for name in HELPERS if name in body.taken)
    if run.starts_with_x:
        head += _start(layout, dtype) + '_show("x", x)\n'
    for item in run.asked:
        sizes = item.name not in numbers
        line = f"{item.name} = torch.randn({read_shape(item.text, 'counted_elements')})" if sizes else ""
        head += f"{line}\n_show({item.name!r}, {item.name})\n" if sizes else f"{item.name} = {item.text.strip()}\n"
    if not body.lines:  # nothing but imports
        return head
    lines = textwrap.indent("\n".join(body.lines), "    ")
    return f"{head}\ntry:\n{lines}\nexcept Exception as error:\n    print(f'{{type(error).__name__}}: {{error}}')\n"


_HELPERS = {
    "get_memory_usage": "def get_memory_usage(x):\n    return x.numel() * x.element_size()\n\n\n",
    "same_storage": (
        "def same_storage(x, y):\n    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()\n\n\n"
    ),
}


def _is_shape(text: str) -> bool:
    """Whether what a name was given are sizes of a tensor."""
    return re.search(r"[,()\s×x]", text.strip()) is not None


def _start(layout: Layout, dtype: str) -> str:
    span = layout.span
    cells = layout.offset if span is None else span[1] + 1
    if layout == Layout.contiguous(layout.shape):
        return f"x = torch.arange({layout.numel}, dtype=torch.{dtype}).view({layout.shape})\n"
    return f"x = torch.arange({cells}, dtype=torch.{dtype}).as_strided({layout.shape}, {layout.stride})\n"


class _Unrolled:
    """The statements of a program, every operation on a line of its own with its result shown.

    The program has passed the reader, so its syntax is known. Names s1, s2, … are those the program does not use.
    """

    def __init__(self, statements: Sequence[tuple[ast.stmt, bool]], numbers: Sequence[str]) -> None:
        tree = ast.Module([statement for statement, _ in statements], [])
        self.taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.einops: set[str] = set()
        self.lines: list[str] = []
        self.count = 0
        self.kinds: dict[str, CountKind] = dict.fromkeys(numbers, "number")
        """The names that stand for numbers."""
        self.others: set[str] = set()
        """The names that stand for a list of tensors, a dtype or a pattern."""
        for statement, alone in statements:
            if alone:
                self._alone(statement)
            else:
                self._statement(statement)

    def _alone(self, statement: ast.stmt) -> None:
        """A statement that makes no tensor, as it stands; what is only asked is printed."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward" | "retain_grad" | "manual_seed" | "seed"))):
                self._run(statement)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                self._run(statement)
            case ast.Expr(value=value):
                self._run(ast.Expr(ast.Call(ast.Name("print"), [value], [])))
            case _:
                self._run(statement)

    def _statement(self, statement: ast.stmt) -> None:
        text = ast.unparse(statement)
        match statement:
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._statement(ast.copy_location(ast.Assign([target], value), statement))
            case ast.AnnAssign():
                pass
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if self._is_other(value):
                self.kinds.pop(name, None)
                self._run(ast.Assign([target], self._arguments(value)))
                self.others.add(name)
            case ast.Assign(targets=[target], value=value) if self._kind(value) and not isinstance(
                target, ast.Subscript
            ):
                self._run(ast.Assign([target], self._number(value)))
                self._name_counts(target, self._kind(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=symbol, value=value) if name in self.kinds:
                self._run(ast.AugAssign(target, symbol, self._number(value)))
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                result = self._simple(value)
                self.kinds.pop(name, None)
                self.others.discard(name)
                self._run(ast.Assign([target], result))
                self._show(text, name)
            case ast.Assign(targets=[ast.Tuple(elts=names) | ast.List(elts=names) as target], value=value):
                items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                kinds: list[CountKind | None] = [self._kind(item) for item in items]
                kinds += [None] * (len(names) - len(kinds))
                self._run(ast.Assign([target], self._arguments(value) if items else self._simple(value)))
                for name, kind in zip((ast.unparse(name).lstrip("*") for name in names), kinds, strict=True):
                    self.kinds.pop(name, None)
                    self.others.discard(name)
                    if kind is None:
                        self._show(name, name)
                    else:
                        self.kinds[name] = kind
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                part = self._part(target)
                self._run(ast.Assign([part], self._arguments(value)))
                self._show(text, ast.unparse(part.value))
            case ast.AugAssign(target=ast.Subscript() as target, op=symbol, value=value):
                part = self._part(target)
                self._run(ast.AugAssign(part, symbol, self._arguments(value)))
                self._show(text, ast.unparse(part.value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=symbol, value=value):
                self._run(ast.AugAssign(target, symbol, self._arguments(value)))
                self._show(text, name)
            case ast.Expr(value=ast.Name(id=name)):
                self._show(name, name)
            case ast.Expr(value=value):
                self._tensor(value)
            case _:
                self.lines.append(text)

    def _kind(self, node: ast.expr) -> CountKind | None:
        return kind_of(node, self.kinds)

    def _is_other(self, node: ast.expr) -> bool:
        """Whether what is assigned is a list of tensors, a dtype, a device, a pattern, a truth value or None."""
        match node:
            case ast.Name(id=name):
                return name in self.others
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="device")):
                return True
            case (
                ast.List()
                | ast.Tuple()
                | ast.Constant()
                | ast.Attribute(value=ast.Name(id="torch"))
                | ast.Attribute(attr="dtype" | "device")
            ):
                return self._kind(node) is None
            case _:
                return False

    def _name_counts(self, target: ast.expr, kind: CountKind | None) -> None:
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for node in names:
            whole = names == [target] or isinstance(node, ast.Starred)
            name = ast.unparse(node.value if isinstance(node, ast.Starred) else node)
            self.kinds[name] = kind if kind is not None and whole else "number"

    def _number(self, node: ast.expr) -> ast.expr:
        """A number, or sizes, with the tensors that it asks replaced by variables."""
        match node:
            case _ if infinite(node) is not None or written(node):
                return node
            case ast.Attribute(value=ast.Call(func=info, args=[attribute]), attr=name) if about_dtype(node) is not None:
                return ast.Attribute(ast.Call(info, [self._arguments(attribute)], []), name)
            case ast.Call(func=function, args=parts) if written(function):
                return ast.Call(function, self._all(parts), [])
            case ast.Call(func=ast.Name(), args=[counted]):
                return ast.Call(node.func, [self._arguments(counted)], [])
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                attribute = ast.Attribute(ast.Name(self._tensor(owner)), name)
                return ast.Call(attribute, self._all(node.args), self._keywords(node.keywords))
            case ast.Attribute(value=owner, attr=name):
                return ast.Attribute(ast.Name(self._tensor(owner)), name)
            case ast.BinOp(left=left, op=symbol, right=right):
                return ast.BinOp(self._number(left), symbol, self._number(right))
            case ast.UnaryOp(op=symbol, operand=operand):
                return ast.UnaryOp(symbol, self._number(operand))
            case ast.Subscript(value=owner, slice=index):
                return ast.Subscript(self._number(owner), self._arguments(index))
            case ast.Tuple() | ast.List():
                return type(node)([self._number(item) for item in node.elts], ast.Load())
            case ast.Starred(value=value):
                return ast.Starred(self._number(value))
            case _:
                return node

    def _part(self, target: ast.Subscript) -> ast.Subscript:
        """What a write writes to, its tensor as a variable."""
        return ast.Subscript(ast.Name(self._tensor(target.value)), self._index(target.slice))

    def _run(self, statement: ast.stmt) -> None:
        """Write a statement. Whole, because ``ast.unparse`` puts an index that stands alone into round brackets."""
        self.lines.append(ast.unparse(ast.fix_missing_locations(statement)))

    def _show(self, name: str, variable: str) -> None:
        self.lines.append(f"_show({name!r}, {variable})")

    def _tensor(self, node: ast.expr) -> str:
        """The variable that holds the tensor ``node``; its operations are written before."""
        if isinstance(node, ast.Name) or self._is_item(node):
            return ast.unparse(node)
        text = ast.unparse(node)
        result = self._simple(node)
        self.count += 1
        while f"s{self.count}" in self.taken:
            self.count += 1
        name = f"s{self.count}"
        self._run(ast.Assign([ast.Name(name)], result))
        self._show(text, name)
        return name

    def _is_item(self, node: ast.expr) -> bool:
        """Whether ``node`` picks one tensor of a list."""
        return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.others

    def _simple(self, node: ast.expr) -> ast.expr:
        """``node`` with the tensors it works on replaced by variables, so that it is one operation."""
        match node:
            case ast.Call(func=ast.Name(id=function)):
                self.einops.update({function} & set(_EINOPS))
                return ast.Call(node.func, self._all(node.args), self._keywords(node.keywords))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="einops"), attr=function)):
                self.einops.add(function)
                return ast.Call(ast.Name(function), self._all(node.args), self._keywords(node.keywords))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch" | "F" | "nn") | ast.Attribute(value=ast.Name(id="nn")))
            ):
                return ast.Call(node.func, self._all(node.args), self._keywords(node.keywords))
            case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                attribute = ast.Attribute(ast.Name(self._tensor(owner)), method)
                return ast.Call(attribute, self._all(node.args), self._keywords(node.keywords))
            case ast.Subscript() if self._is_item(node):
                return node
            case ast.Subscript(value=ast.Call() as several, slice=index) if _splits(several):
                return ast.Subscript(self._simple(several), self._number(index))
            case ast.Attribute(value=ast.Call() as several, attr=name) if _splits(several):
                return ast.Attribute(self._simple(several), name)
            case ast.Subscript(value=owner, slice=index):
                return ast.Subscript(ast.Name(self._tensor(owner)), self._index(index))
            case ast.Attribute(value=owner, attr=name) if not _is_module(owner):
                return ast.Attribute(ast.Name(self._tensor(owner)), name)
            case ast.BinOp(left=left, op=symbol, right=right):
                return ast.BinOp(self._arguments(left), symbol, self._arguments(right))
            case ast.Compare(left=left, ops=symbols, comparators=others):
                return ast.Compare(self._arguments(left), symbols, self._all(others))
            case ast.UnaryOp(op=symbol, operand=operand) if _has_tensor(operand):
                return ast.UnaryOp(symbol, self._arguments(operand))
            case _:
                return node

    def _index(self, node: ast.expr) -> ast.expr:
        """What stands in square brackets; a nested list as one item, which torch would else take for a tuple."""
        result = self._arguments(node)
        nested = isinstance(result, ast.List) and any(isinstance(item, ast.List) for item in result.elts)
        return ast.Tuple([result], ast.Load()) if nested else result

    def _arguments(self, node: ast.expr) -> ast.expr:
        """An argument: a tensor becomes its variable, a literal stays, numbers, lists and tuples are opened."""
        if isinstance(node, ast.Starred) and self._kind(node.value) is None:
            return ast.Starred(self._arguments(node.value))
        if self._kind(node) is not None or isinstance(node, ast.Starred):
            return self._number(node)
        if isinstance(node, ast.Attribute) and node.attr in ("dtype", "device") and not _is_module(node.value):
            return ast.Attribute(ast.Name(self._tensor(node.value)), node.attr)
        if isinstance(node, ast.Slice):
            bounds = [None if b is None else self._arguments(b) for b in (node.lower, node.upper, node.step)]
            return ast.Slice(*bounds)
        if isinstance(node, ast.Tuple | ast.List):
            return type(node)([self._arguments(item) for item in node.elts], ast.Load())
        return ast.Name(self._tensor(node)) if _has_tensor(node) else node

    def _all(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        return [self._arguments(node) for node in nodes]

    def _keywords(self, keywords: Sequence[ast.keyword]) -> list[ast.keyword]:
        """Arguments by name, without those that the trace leaves out."""
        results = [keyword for keyword in keywords if keyword.arg not in IGNORED]
        return [ast.keyword(keyword.arg, self._arguments(keyword.value)) for keyword in results]


_SEVERAL = {row.name: row for row in OPERATIONS.values() if row.several or row.several_with}
"""Operations that can give several tensors."""


def _splits(node: ast.Call) -> bool:
    """Whether a call gives several tensors, of which brackets or a field pick one."""
    match node.func:
        case ast.Attribute(value=owner, attr=name) if name in _SEVERAL:
            rest = node.args[1:] if _is_module(owner) else node.args
            return _SEVERAL[name].gives_several(rest, node.keywords, lambda item: not _has_tensor(item))
        case _:
            return False


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in MODULES


def _has_tensor(node: ast.expr) -> bool:
    """Whether a tensor stands in ``node``: a name that is no module, or a call of a module's function."""
    return any(
        (isinstance(part, ast.Name) and not _is_module(part)) or isinstance(part, ast.Call) for part in ast.walk(node)
    )
