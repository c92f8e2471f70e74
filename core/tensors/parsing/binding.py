"""Assignments, writes and unpacking: what a line lets a name stand for, or changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS, find
from core.tensors.operations.table import NAMING, PIECE, UPDATING, WRITING
from core.tensors.operations.values import Device, DType, ExpressionError, Index, Slot, Value
from core.tensors.parsing.access import PYTHON
from core.tensors.parsing.asked import ARITHMETIC, Asked, suggested
from core.tensors.parsing.facts import HELPERS, Fact
from core.tensors.parsing.functions import FunctionReader
from core.tensors.parsing.imports import MODULES
from core.tensors.parsing.numbers import SYMBOLS, worked_out
from core.tensors.parsing.objects import Class, Frame, Instance, PythonError, Ref, Storage, tensors_in
from core.tensors.parsing.plan import PlanStep
from core.tensors.parsing.text import read_shape

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def is_name(name: str) -> bool:
    """Whether a line may give something this name."""
    return len(name) <= limit("expression_name") and "__" not in name and _NAME.fullmatch(name) is not None


class BindingReader(FunctionReader):
    """Binds names, and writes through brackets and attributes."""

    def _alias(self, ref: Ref, node: ast.expr | ast.stmt, name: str, text: str = "") -> Ref:
        added = self.step(NAMING, "name", (ref.number,), node, text, text, name=name)
        added.several = ref.several
        return added

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, node: ast.stmt) -> None:
        before = self.machine.last()
        found = self.value(value)
        if isinstance(found, Storage):
            raise ExpressionError(f"{self.quote(node)}: a storage is no tensor; ask its data_ptr() or nbytes().")
        self.held.append(found)
        for number, target in enumerate(targets):
            if number and isinstance(found, Ref):
                text = f"{self.segment(target)} = {self.segment(targets[0])}"
                found = self._named_as(self.segment(target), found, node, text, self.machine.last())
                self._set(self.segment(target), found) if isinstance(target, ast.Name) else self.bind(
                    target, found, node
                )
            else:
                self._bind(target, found, node, value, before)

    def bind(self, target: ast.expr, value: Any, node: ast.expr | ast.stmt) -> None:
        self._bind(target, value, node, None, self.machine.last())

    def _bind(
        self, target: ast.expr, value: Any, node: ast.expr | ast.stmt, source: ast.expr | None, before: int
    ) -> None:
        """Let ``target`` be ``value``. source: the expression it came from; before: the last step before that."""
        match target:
            case ast.Name(id=name):
                self._check_name(name)
                if isinstance(value, Ref) and source is not None:
                    value = self._named_as(name, value, node, "", before)
                elif isinstance(value, Ref) and not self.machine.name(value.number):
                    self.machine.rename(value.number, name)
                self._set(name, value)
                self._note_value(name, value, source, node)
            case ast.Attribute(value=owner, attr=name):
                self._field(self.value(owner), name, value, target, node, before)
            case ast.Subscript():
                self._item(target, value, node, source, before)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, value, node, source, before)
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
                    "x[0][0] = 100."
                )

    def _named_as(self, name: str, ref: Ref, node: ast.expr | ast.stmt, text: str, before: int) -> Ref:
        """``ref`` under a name: that of its step where it is new, else a step of its own."""
        if (
            ref.number > before
            and self.called(ref.number) in ("", name)
            and self.machine.operation(ref.number) is not None
        ):
            self.machine.rename(ref.number, name)
            return ref
        return self._alias(ref, node, name, text)

    def _set(self, name: str, value: Any) -> None:
        self.frame.names[name] = value

    def _note_value(self, name: str, value: Any, source: ast.expr | None, node: ast.expr | ast.stmt) -> None:
        """What a line worked out, where that is a number or a text of one's own."""
        plain = source is None or isinstance(source, ast.Constant | ast.Name | ast.List | ast.Dict | ast.Tuple)
        plain = plain or (isinstance(source, ast.UnaryOp) and isinstance(source.operand, ast.Constant))
        is_value = isinstance(value, int | float | str | Device | DType | tuple | list) and not list(tensors_in(value))
        if is_value and not plain and not self.open and not (isinstance(value, list) and not value):
            self.facts.append(Fact(self.line, name, self.shown(value)))

    def _check_name(self, name: str) -> None:
        most = limit("expression_name")
        if name != "_" and not is_name(name):
            raise ExpressionError(
                f"`{name[:40]}` cannot be a name here: a letter, then letters, digits and _, at most {most} in all."
            )
        known = name in (*(module for module in MODULES if "." not in module), *HELPERS) or ("bare", name) in OPERATIONS
        if known or (name in PYTHON and name not in ("text", "display", "type", "filter", "min", "max", "sum")):
            raise ExpressionError(f"`{name}` is already the name of something else; call the tensor y or z.")

    def _field(
        self, owner: Any, name: str, value: Any, target: ast.Attribute, node: ast.expr | ast.stmt, before: int
    ) -> None:
        """``self.weight = …``, ``w.requires_grad = True``, ``w.grad = None``."""
        owner = self.one(owner, target.value) if isinstance(owner, Ref) else owner
        if isinstance(owner, Instance):
            if not is_name(name):
                raise ExpressionError(f"`{name[:40]}` cannot be a name here.")
            whole = self.segment(target)
            if isinstance(value, Ref) and value.number > before and self.called(value.number) == "":
                self.machine.rename(value.number, whole)
            owner.fields[name] = value
        elif isinstance(owner, Ref) and name == "requires_grad" and isinstance(value, bool):
            self.step(find("method", "requires_grad_"), "method", (owner.number,), node, args=(value,))
        elif isinstance(owner, Ref) and name == "grad" and value is None:
            self.machine.clear(owner.number)
            self.facts.append(Fact(self.line, f"{self.segment(target)}", "None"))
        elif isinstance(owner, Ref) and name in ("requires_grad", "grad"):
            raise ExpressionError(f"{self.quote(node)}: write requires_grad = True, or grad = None.")
        else:
            raise ExpressionError(
                f"{self.quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
                "x[0][0] = 100."
            )

    def _item(
        self, target: ast.Subscript, value: Any, node: ast.expr | ast.stmt, source: ast.expr | None, before: int
    ) -> None:
        """``x[0] = 1``, of a tensor, a list or a dictionary."""
        owner = self.value(target.value)
        if isinstance(owner, dict):
            cast("dict[Any, Any]", owner)[self.key(self.value(target.slice), target)] = value
        elif isinstance(owner, list):
            at = self.value(target.slice)
            items = cast("list[Any]", owner)
            if not isinstance(at, int) or not -len(items) <= at < len(items):
                raise PythonError("IndexError", f"{self.quote(node)}: list assignment index out of range.")
            items[at] = value
        elif isinstance(owner, Ref):
            inputs: list[int] = []
            index = self.index(target.slice, inputs)
            text = f"{self.after(target, target.value)} = {self.segment(source) if source else '…'}"
            self._write(self.one(owner, target.value), index, inputs, value, "=", text, source or target, node, None)
        else:
            what = "a number" if isinstance(owner, int | float) else "no tensor"
            raise ExpressionError(f"{self.quote(target.value)} stands for {what} here, and takes no value.")

    def _write(
        self,
        base: Ref,
        index: Index | None,
        picked: Sequence[int],
        value: Any,
        symbol: str,
        text: str,
        source: ast.expr,
        node: ast.expr | ast.stmt,
        reads: int | None,
    ) -> Ref:
        inputs = [base.number, *picked]
        given: Value
        if isinstance(value, Ref):
            inputs.append(self.one(value, source).number)
            given = Slot(len(inputs) - 1)
        elif isinstance(value, int | float):
            given = value
        else:
            raise ExpressionError(f"{self.quote(source)}: a number or a tensor is written into a tensor.")
        operation = WRITING if symbol == "=" else UPDATING
        return self.step(operation, "write", inputs, node, text, args=(given,), index=index, symbol=symbol, reads=reads)

    def _unpack(
        self, elements: Sequence[ast.expr], value: Any, node: ast.expr | ast.stmt, source: ast.expr | None, before: int
    ) -> None:
        stars = [place for place, element in enumerate(elements) if isinstance(element, ast.Starred)]
        if len(stars) > 1 or not elements:
            raise ExpressionError("Unpack into names, for example y, z = x.chunk(2).")
        star = next(iter(stars), None)
        opened = [element.value if isinstance(element, ast.Starred) else element for element in elements]
        if isinstance(value, Ref):
            self._unpack_several(opened, value, star, node, source)
            return
        items = self.items(value, source or cast(ast.expr, node))
        if wrong := _misfit(len(items), len(opened), star):
            raise PythonError("ValueError", f"{self.quote(node)}: {wrong}.")
        if star is not None:
            rest = len(items) - len(opened) + 1
            items = [*items[:star], items[star : star + rest], *items[star + rest :]]
        nodes = source.elts if isinstance(source, ast.Tuple | ast.List) and len(source.elts) == len(items) else None
        pairs = list(zip(opened, items, strict=True))
        refs: list[Any] = []
        for place, (target, item) in enumerate(pairs):
            if isinstance(item, Ref) and isinstance(target, ast.Name) and source is not None:
                text = self.segment(nodes[place]) if nodes else f"{self.segment(source)}[{place}]"
                fresh = (
                    item.number > before
                    and self.called(item.number) == ""
                    and not isinstance(nodes[place] if nodes else None, ast.Name)
                )
                if fresh:
                    self.machine.rename(item.number, target.id)
                else:
                    item = self._alias(item, node, target.id, f"{target.id} = {text}")
            refs.append(item)
        for target, item in zip(opened, refs, strict=True):
            self._bind(target, item, node, None, before)

    def _unpack_several(
        self,
        targets: Sequence[ast.expr],
        ref: Ref,
        star: int | None,
        node: ast.expr | ast.stmt,
        source: ast.expr | None,
    ) -> None:
        """What a split made, or the rows of a single tensor, which Python unpacks as ``unbind(0)`` does."""
        text = self.segment(source or node)
        if not ref.several:
            ref = self.rows(ref, source or node)
        if wrong := _misfit(self.count(ref) if ref.several else 1, len(targets), star):
            raise PythonError("ValueError", f"{self.quote(node)}: {wrong}.")
        pieces: list[Ref] = []
        for place, target in enumerate(targets):
            behind = len(targets) - 1 - place
            name = self.segment(target)
            if place == star:
                part = slice(place, -behind or None)
                some = self.step(PIECE, "piece", (ref.number,), node, name, name, index=(part,), name=name)
                pieces.append(self.severally(some))
                continue
            pick = place if star is None or place < star else -behind - 1
            pieces.append(self.piece(ref, pick, f"{text}[{pick}]", node, name if isinstance(target, ast.Name) else ""))
            if isinstance(target, ast.Name):
                self._check_name(name)
                self._set(name, pieces[-1])
        for target, piece in zip(targets, pieces, strict=True):
            self._bind(target, piece, node, None, self.machine.last())

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name | ast.Attribute):
            raise ExpressionError(f"{self.quote(node)}: only a name takes an annotation.")
        if node.value is not None:
            self._assign([node.target], node.value, node)
            name = self.segment(node.target)
            self.annotate(name, node.annotation, self.value(node.target), self.line)

    def _update(self, node: ast.AugAssign) -> None:
        symbol = SYMBOLS[type(node.op)]
        target = node.target
        reads = self.machine.last()
        inputs: list[int] = []
        index: Index | None = None
        if isinstance(target, ast.Subscript):
            owner = self.value(target.value)
            if isinstance(owner, Ref):
                index = self.index(target.slice, inputs)
                reads = self.machine.last()
            else:
                at = self.value(target.slice)
                owner = self.plain_item(owner, at, target)
        else:
            if isinstance(target, ast.Attribute) and target.attr not in ("data", "grad"):
                base = self.value(target.value)
                if not isinstance(base, Instance):
                    raise ExpressionError(f"{self.quote(node)}: only a name or square brackets can be written to.")
            owner = self.value(target)
        self.held.append(owner)
        value = self.value(node.value)
        if isinstance(owner, Ref):
            before = self.after(target, target.value) if isinstance(target, ast.Subscript) else ""
            text = f"{before} {symbol}= {self.segment(node.value)}".strip()
            base = self.one(owner, target)
            wrote = self._write(
                base, index, inputs, value, f"{symbol}=", text, node.value, node, None if index is None else reads
            )
            if isinstance(target, ast.Name):
                self.machine.rename(wrote.number, target.id)
                self._set(target.id, wrote)
            return
        if isinstance(owner, int | float) and not isinstance(value, int | float):
            if not isinstance(value, Ref):
                raise ExpressionError(f"{self.quote(node)}: `{self.segment(target)[:40]}` is a number here.")
            result = self.put_together(node.value, target, owner, symbol, node.value, value)
        else:
            if isinstance(owner, list) and isinstance(value, list | tuple) and symbol == "+":
                cast("list[Any]", owner).extend(cast("list[Any]", value)[:256])
                return
            if isinstance(value, Ref):
                raise ExpressionError(f"{self.quote(node)} is not worked out here.")
            with self.raising(node):
                result = worked_out(symbol, owner, value, self.segment(node))
        if isinstance(target, ast.Name):
            if isinstance(result, Ref):
                self.machine.rename(result.number, target.id)
            self._set(target.id, result)
            self._note_value(target.id, result, node.value if isinstance(node.value, ast.Constant) else target, node)
        elif isinstance(target, ast.Attribute):
            cast(Instance, self.value(target.value)).fields[target.attr] = result
        else:
            self._item(target, result, node, None, self.machine.last())

    def _forget(self, targets: Sequence[ast.expr], node: ast.stmt) -> None:
        """``del y``: the name stands for nothing any more; its tensor keeps its step."""
        for target in targets:
            name = target.id if isinstance(target, ast.Name) else ""
            if name not in self.frame.names:
                raise ExpressionError(f"{self.quote(node)}: `{name[:40]}` is not known.")
            del self.frame.names[name]

    def give(self, item: Asked, dtype: str) -> None:
        """Let a name that nothing defines stand for a number, a device, or a tensor that counts as x does."""
        if item.name.startswith("self."):
            names = self.frame.names
            owner: Instance = names.setdefault("self", Instance(Class("self", ())))
            name = item.name.removeprefix("self.")
            outer, self.frame = self.frame, Frame(owner.fields)
            try:
                self.give(replace(item, name=name), dtype)
            finally:
                self.frame = outer
            return
        text = item.text.strip()
        if item.role == "device":
            self._set(item.name, Device(text.strip("'\"")))
            return
        if item.role == "number" or not re.search(r"[,()\s×x]", text):
            try:
                tree = ast.parse(text, mode="eval").body
                number = self.value(tree) if all(isinstance(part, ARITHMETIC) for part in ast.walk(tree)) else None
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                number = None
            if isinstance(number, int | float):
                self._set(item.name, number)
                return
            if item.role == "number":
                raise ExpressionError(f"{item.name} is a number, such as {suggested(item.name)}.")
        self._check_name(item.name)
        shape = read_shape(text, "counted_elements")
        line = f"{item.name} = torch.randn{shape}"
        named = (("dtype", DType(dtype if dtype.startswith(("float", "bfloat")) else "float32")),)
        step = PlanStep(find("torch", "randn"), "torch", (), line, line, 0, (shape,), named, name=item.name)
        self._set(item.name, self.add(step))


def _misfit(count: int, targets: int, star: int | None) -> str:
    """What Python says of so many values for so many names, one of which takes the rest; empty where they fit."""
    wanted, least = (targets, "") if star is None else (targets - 1, "at least ")
    if count >= wanted and (star is not None or count == wanted):
        return ""
    if count < wanted:
        return f"not enough values to unpack (expected {least}{wanted}, got {count})"
    return f"too many values to unpack (expected {wanted})"
