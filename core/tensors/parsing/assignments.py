"""Reads assignments, writes and gradients: what a line binds to a name, or changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS, find
from core.tensors.operations.table import GRADIENT, NAMING, PIECE, UPDATING, WRITING
from core.tensors.operations.values import MODULES, Count, CountQuestion, Device, DType, ExpressionError, Index, Slot
from core.tensors.parsing.asked import Asked, suggested
from core.tensors.parsing.counts import SYMBOLS, CountKind
from core.tensors.parsing.evaluated import bounded, combined
from core.tensors.parsing.facts import HELPERS, Fact, Machine, written_value
from core.tensors.parsing.numbers import BUILTINS
from core.tensors.parsing.plan import PlanStep
from core.tensors.parsing.questions import FactReader
from core.tensors.parsing.text import read_shape

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_NAMED_LITERALS = ("dtype", "format", "text", "bool", "none", "device")
"""Kinds of values besides numbers and tensors that a name may stand for."""


def is_name(name: str) -> bool:
    """Whether a line may give something this name."""
    return len(name) <= limit("expression_name") and "__" not in name and _NAME.fullmatch(name) is not None


class AssignmentReader(FactReader):
    """Binds names. facts: what lines said that are no tensors."""

    def __init__(self, text: str, machine: Machine | None = None) -> None:
        super().__init__(text, machine)
        self.facts: list[Fact] = []

    # ----------------------------------------------------------------------------------------- statements

    def _name_count(
        self, name: str, node: ast.Assign | ast.AugAssign, kind: CountKind | None, count: Count | None
    ) -> None:
        if kind is None or count is None:
            raise ExpressionError(f"{self.quote(node)}: `{name[:40]}` is a number here, and this is none.")
        self._rename(name, node)
        self.bind_count(name, count, kind)

    def _rename(self, name: str, node: ast.Assign | ast.AugAssign) -> None:
        """Take ``name`` for a number; whatever tensor it stood for keeps its step."""
        self._check_name(name)
        self._forget_others(name)
        if self.names.pop(name, None) is not None and self.steps:
            self._forgotten(name)

    def _forgotten(self, name: str) -> None:
        """From the last step on, ``name`` stands for no tensor."""
        self.steps[-1] = replace(self.steps[-1], forgets=(*self.steps[-1].forgets, name))
        if self.machine is not None:
            self.machine.forget(len(self.steps), name)

    def _show(self, node: ast.Name) -> None:
        """A line that is only a name: shown as a step, unless that is what the step before has just shown."""
        number = self.named(node)
        if number != len(self.steps):
            self._alias(number, node, node.id)

    def _value(self, node: ast.expr) -> None:
        """A line that is an expression: shown as a step, also where it only picks from a list."""
        before = len(self.steps)
        number = self.result(node)
        if number <= before:
            self._alias(number, node, "")

    def _alias(self, number: int, node: ast.expr | ast.stmt, name: str, text: str = "") -> None:
        text = text or self.segment(node)
        added = self.add(PlanStep(NAMING, "name", (number,), text, text, node.lineno, name=name))
        if name:
            self._bind_tensor(name, added)
        if number in self.bundles:
            self.bundles.add(added)

    def _assign(self, node: ast.Assign) -> None:
        match node.targets[0]:
            case ast.Name(id=name):
                self._check_name(name)
                if self.kind(node.value) is not None:
                    self._name_count(name, node, self.kind(node.value), self.count(node.value))
                    if isinstance(self.counts[name], CountQuestion):
                        self.run()
                        if self.machine is not None:
                            value = written_value(self.machine.number(self.counts[name]))
                            self.facts.append(Fact(node.lineno, name, value))
                else:
                    self._assign_name(name, node)
            case ast.Subscript() as target:
                self._write(target, node.value, "=", node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, node)
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
                    "x[0][0] = 100."
                )

    def _assign_name(self, name: str, node: ast.Assign) -> None:
        """``y = …`` of a tensor, several tensors, a list of them, a dtype or a pattern."""
        value = node.value
        if isinstance(value, ast.Name) and value.id in self.names:
            self._alias(self.named(value), node, name)
            return
        result = self.literal(value) if not self._is_answer(value) else None
        if result is None and self.is_fact(value) and not isinstance(value, ast.Name | ast.Constant):
            found = self.fact(value)
            if hasattr(found, "untyped_storage"):
                raise ExpressionError(f"{self.quote(node)}: write the tensor on a line of its own.")
            self._rename(name, node)
            self._keep(name, found, node)
            return
        if result is not None and result[0] in _NAMED_LITERALS:
            self._rename(name, node)
            self.literals[name] = result
            return
        listed = self.listed(value) if isinstance(value, ast.List | ast.Tuple | ast.Name) else None
        if listed is not None and not set(listed) & self.bundles:
            self._rename(name, node)
            self.lists[name] = listed
            self.listings.append((len(self.steps), name, tuple(listed)))
            return
        before = len(self.steps)
        number = self.result(value)
        if number <= before:  # picked from a list: the tensor has a name or none of its own
            self._alias(number, node, name)
        else:
            self._bind(name, number)

    def _keep(self, name: str, found: Any, node: ast.stmt) -> None:
        """Let ``name`` stand for an answer, as a literal where it is one, else as a value."""
        kinds: list[tuple[type, Any]] = [(bool, "bool"), (str, "text"), (DType, "dtype"), (Device, "device")]
        kind: Any = "none" if found is None else next((kind for cls, kind in kinds if isinstance(found, cls)), "")
        if kind:
            self.literals[name] = cast("tuple[Any, Any]", (kind, found))
        elif isinstance(found, int | float):
            self.bind_count(name, found, "number")
        elif isinstance(found, tuple) and all(isinstance(n, int | float) for n in cast("tuple[Any, ...]", found)):
            self.bind_count(name, cast("tuple[int, ...]", found), "sizes")
        else:
            self.values[name] = found
        self.facts.append(Fact(node.lineno, name, written_value(found)))

    def _bind_tensor(self, name: str, number: int) -> None:
        self._forget_others(name)
        self.names[name] = number

    def _forget_others(self, name: str) -> None:
        self.kinds.pop(name, None)
        self.values.pop(name, None)
        self.lists.pop(name, None)
        self.literals.pop(name, None)

    def _bind(self, name: str, number: int) -> None:
        self._bind_tensor(name, number)
        self.steps[number - 1] = replace(self.steps[number - 1], name=name)

    def _unpack(self, elements: Sequence[ast.expr], node: ast.Assign) -> None:
        opened = [element.value if isinstance(element, ast.Starred) else element for element in elements]
        names = [element.id for element in opened if isinstance(element, ast.Name)]
        stars = [place for place, element in enumerate(elements) if isinstance(element, ast.Starred)]
        if len(names) != len(elements) or not names or len(stars) > 1:
            raise ExpressionError("Unpack into names, for example y, z = x.chunk(2).")
        for name in names:
            self._check_name(name)
        if self.kind(node.value) == "sizes":
            self._unpack_sizes(names, next(iter(stars), None), node)
            return
        if isinstance(node.value, ast.Tuple | ast.List) and not stars:
            self._bind_each(names, node.value.elts, node)
            return
        is_list = isinstance(node.value, ast.Tuple | ast.List) or (
            isinstance(node.value, ast.Name) and node.value.id in self.lists
        )
        listed = self.listed(node.value) if is_list else None
        if listed is not None:
            self._unpack_list(names, listed, next(iter(stars), None), node)
        else:
            number = self.named(node.value) if isinstance(node.value, ast.Name) else self.result(node.value)
            self._unpack_several(names, number, next(iter(stars), None), node)

    def _unpack_list(self, names: Sequence[str], listed: Sequence[int], star: int | None, node: ast.Assign) -> None:
        """The tensors of a list that a line made, each under its name."""
        if star is not None:
            raise ExpressionError(f"{self.quote(node)}: a name with a star takes sizes, or what a split made.")
        if len(names) != len(listed):
            raise ExpressionError(f"{self.quote(node)}: {len(names)} names for {len(listed)} values.")
        for place, (name, number) in enumerate(zip(names, listed, strict=True)):
            self._alias(number, node, name, f"{name} = {self.segment(node.value)}[{place}]")

    def _unpack_several(self, names: Sequence[str], number: int, star: int | None, node: ast.Assign) -> None:
        """What a split made, or the rows of a single tensor, which Python unpacks as ``unbind(0)`` does."""
        text = self.segment(node.value)
        if number not in self.bundles:
            number = self.rows(number, node)
        least = len(names) if star is None else 1 - len(names)
        if self.machine is not None and self.machine.has_run(number):
            step = PlanStep(NAMING, "name", (number,), text, text, node.lineno, unpack=least)
            if not self.machine.unpacks(number, least):
                self.add(step)  # which Python refuses
        else:
            self.steps[number - 1] = replace(self.steps[number - 1], unpack=least)
        for place, name in enumerate(names):
            behind = len(names) - 1 - place
            if place == star:
                self._bind_tensor(name, self.some(node.value, number, slice(place, -behind or None), name))
                continue
            pick = place if star is None or place < star else -behind - 1
            step = PlanStep(PIECE, "piece", (number,), name, f"{text}[{pick}]", node.lineno, pick=pick, name=name)
            self._bind_tensor(name, self.add(step))

    def _bind_each(self, names: Sequence[str], values: Sequence[ast.expr], node: ast.Assign) -> None:
        """``q, k = x[0], x[1]``: every value first, as Python does, then every name."""
        if len(names) != len(values):
            raise ExpressionError(f"{self.quote(node)}: {len(names)} names for {len(values)} values.")
        read: list[tuple[CountKind | None, Count | None]] = [(self.kind(value), self.count(value)) for value in values]
        before = range(len(self.steps) + 1)
        results = [None if kind else self.result(value) for value, (kind, _) in zip(values, read, strict=True)]
        numbers = [number for number in results if number is not None]
        for name, value, (kind, count), number in zip(names, values, read, results, strict=True):
            if number is None:
                self._name_count(name, node, kind, count)
            elif number in before or isinstance(value, ast.Name):
                self._alias(number, node, name, f"{name} = {self.segment(value)}")
            else:
                self._bind(name, number)
                self.steps[number - 1] = replace(self.steps[number - 1], bound=max(before[-1], *numbers))

    def _unpack_sizes(self, names: Sequence[str], star: int | None, node: ast.Assign) -> None:
        """``b, *rest, d = x.shape``: the sizes as one count, the names as its items."""
        text = self.segment(node)
        sizes = combined("unpack", [self.count(node.value), len(names), star], text, several=True)
        if isinstance(sizes, CountQuestion):
            self.questions.append(sizes)
            sizes = replace(sizes, what="name", parts=(), step=len(self.questions) - 1)
        for place, name in enumerate(names):
            self._rename(name, node)
            kind: CountKind = "sizes" if place == star else "number"
            self.bind_count(name, combined("item", [sizes, place], text, several=place == star), kind)

    def _check_name(self, name: str) -> None:
        most = limit("expression_name")
        if name != "_" and not is_name(name):
            raise ExpressionError(
                f"`{name[:40]}` cannot be a name here: a letter, then letters, digits and _, at most {most} in all."
            )
        if (
            name in (*MODULES, *BUILTINS, "len", "list", "tuple", "map", "range", *HELPERS)
            or ("bare", name) in OPERATIONS
        ):
            raise ExpressionError(f"`{name}` is already the name of something else; call the tensor y or z.")

    def _update(self, node: ast.AugAssign) -> None:
        symbol = SYMBOLS.get(type(node.op), "")
        if not symbol:
            known = ", ".join(f"{known}=" for known in SYMBOLS.values())
            raise ExpressionError(f"{self.quote(node)}: {known} are understood.")
        if isinstance(node.target, ast.Attribute) and node.target.attr not in ("data", "grad"):
            raise ExpressionError(f"{self.quote(node)}: only a name or square brackets can be written to.")
        if isinstance(node.target, ast.Name) and node.target.id in self.kinds:
            value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self._name_count(node.target.id, node, self.kind(value), self.count(value))
            return
        self._write(node.target, node.value, f"{symbol}=", node)

    def _write(
        self, target: ast.Name | ast.Subscript | ast.Attribute, value: ast.expr, symbol: str, node: ast.stmt
    ) -> None:
        base = self.tensor(target.value if isinstance(target, ast.Subscript) else target)
        inputs = [base]
        index: Index | None = None
        text = f" {symbol} {self.segment(value)}"
        if isinstance(target, ast.Subscript):
            index = self.index(target, inputs)
            text = self.brackets(target) + text
        read = len(self.steps)
        count = self.count(value) if self.kind(value) == "number" else None
        if count is None:
            inputs.append(self.tensor(value))
        step = PlanStep(
            WRITING if symbol == "=" else UPDATING,
            "write",
            tuple(inputs),
            text.strip(),
            self.segment(node),
            node.lineno,
            args=(Slot(len(inputs) - 1) if count is None else count,),
            index=index,
            symbol=symbol,
            reads=None if symbol == "=" or index is None else read,
        )
        number_ = self.add(step)
        if isinstance(target, ast.Name):
            self._bind(target.id, number_)

    # ------------------------------------------------------------------------------------------ gradients

    def _backward(self, owner: ast.expr, node: ast.Call) -> None:
        """``loss.backward()``: a step for itself, and one for every gradient that it leaves."""
        number = self.tensor(owner)
        inputs = [number]
        operation = find("method", "backward")
        args = self.arguments(operation, node.args, inputs)
        keywords = self.keywords(operation, node.keywords, inputs)
        end = self.span(node)[1]
        at = self.span(cast(ast.Attribute, node.func))[1] - len("backward")
        text = self.segment(node)
        self.run()
        reached = [] if self.machine is None else self.machine.reached(number)
        before = {leaf: self.machine.gradient(leaf) for leaf in reached} if self.machine is not None else {}
        step = PlanStep(operation, "method", tuple(inputs), f".{self.cut(at, end)}", text, node.lineno)
        self.add(replace(step, args=tuple(args), keywords=tuple(keywords), at=(at, end)))
        self.run()
        for leaf in reached:
            name = f"{self._called_now(leaf)}.grad"
            earlier = before[leaf]
            source = leaf if earlier is None else earlier
            made = self.add(PlanStep(GRADIENT, "grad", (source,), name, text, node.lineno, name=name))
            self.run()
            if earlier is None:
                self.names[name] = made

    def _called_now(self, number: int) -> str:
        """A name that stands for the tensor of a step now, else what made it."""
        if self.machine is None:
            return "x"
        tensor = self.machine.tensor(number)
        named = (name for name, known in self.names.items() if self.machine.tensor(known) is tensor)
        return next(named, self.steps[number - 1].expression[:24] if number else "x")

    def gradient(self, node: ast.Attribute) -> int:
        """``w.grad`` where there is one."""
        number = self.tensor(node.value)
        self.run()
        found = None if self.machine is None else self.machine.gradient(number)
        if found is None:
            raise ExpressionError(
                f"{self.quote(node)} is None here: only a tensor that asks for a gradient has one, and only after "
                "backward()."
            )
        return found

    def _set_field(self, owner: ast.expr, field: str, node: ast.Assign) -> None:
        """``w.requires_grad = True``, ``w.grad = None``."""
        number = self.tensor(owner)
        value = node.value.value if isinstance(node.value, ast.Constant) else ...
        text = self.segment(node)
        if field == "requires_grad" and isinstance(value, bool):
            operation = find("method", "requires_grad_")
            self.add(PlanStep(operation, "method", (number,), text, text, node.lineno, args=(value,)))
        elif field == "grad" and value is None:
            self.run()
            if self.machine is not None:
                self.machine.clear(number)
            self.facts.append(Fact(node.lineno, f"{self.segment(owner)}.grad", "None"))
        else:
            raise ExpressionError(f"{self.quote(node)}: write requires_grad = True, or grad = None.")

    def give(self, item: Asked, dtype: str) -> None:
        """Let a name that nothing defines stand for a number, or for a tensor that counts as x does."""
        try:
            if item.role == "number" or not re.search(r"[,()\s×x]", item.text.strip()):
                value = float(item.text)
                self.bind_count(item.name, bounded(int(value) if value.is_integer() else value, item.name), "number")
                return
        except (ValueError, OverflowError):
            if item.role == "number":
                raise ExpressionError(f"{item.name} is a number, such as {suggested(item.name)}.") from None
        self._check_name(item.name)
        shape = read_shape(item.text, "counted_elements")
        text = f"{item.name} = torch.randn{shape}"
        args = (shape,)
        named = (("dtype", DType(dtype if dtype.startswith(("float", "bfloat")) else "float32")),)
        step = PlanStep(find("torch", "randn"), "torch", (), text, text, 0, args=args, keywords=named, name=item.name)
        self.names[item.name] = self.add(step)
        self.run()
