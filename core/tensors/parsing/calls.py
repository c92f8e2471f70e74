"""Calls: of operations, which run as steps, of functions and classes of the program, and of Python's own."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from core.tensors.operations.lookup import find, no_layer
from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.table import GRADIENT
from core.tensors.operations.values import Device, DType, ExpressionError
from core.tensors.parsing.access import PYTHON_CALLS
from core.tensors.parsing.arguments import Arguments, Given
from core.tensors.parsing.numbers import FUNCTIONS
from core.tensors.parsing.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Named,
    PythonError,
    Ref,
    Super,
    named_in,
    tensors_in,
)
from core.tensors.parsing.questions import QuestionReader

_FORMS: Mapping[str, Written] = {"torch": "torch", "F": "F", "nn": "nn", "nn.init": "init", "einops": "bare"}
_SEEDS = ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "np.random.seed", "random.seed")


_Outer: TypeAlias = "ast.Subscript | ast.Attribute | None"
"""What stands around a call and may pick one of its results."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What a call passes by its place and by name, each value with its text."""

    args: list[tuple[Any, str]]
    named: dict[str, tuple[Any, str]]

    @property
    def values(self) -> list[Any]:
        return [value for value, _ in self.args]

    @property
    def by_name(self) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.named.items()}


class CallReader(QuestionReader):
    """Makes calls."""

    def call(self, node: ast.Call, outer: _Outer = None) -> tuple[Any, bool]:
        callee = self._callee(node)
        mark = len(self.held)
        try:
            self.held.append(callee)
            passed = self._passed(node)
            if isinstance(callee, Bound) and isinstance(callee.owner, Ref):
                return self._method(callee.owner, callee.name, passed, node, outer)
            if isinstance(callee, Named):
                return self._named(callee, passed, node, outer)
            if not isinstance(callee, Class | Instance):  # whose call, unlike a function's, holds what it was given
                del self.held[mark:]
            return self.apply(callee, passed.values, passed.by_name, node), False
        finally:
            del self.held[mark:]

    def _callee(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Attribute(value=value, attr=name):
                owner = self.value(value)
                if isinstance(owner, Ref):
                    return Bound(self.one(owner, value), name)
                if isinstance(owner, Named):
                    find("torch" if owner.module == "torch" else "bare", owner.name)
                return self.attribute(owner, node.func)
            case ast.Name(id=name) if self.frame.find(name) is None:
                return Named("", name)
            case ast.Lambda() | ast.Name() | ast.Call() | ast.Subscript():
                return self.value(node.func)
            case _:
                raise ExpressionError(f"{self.quote(node.func)} cannot be called. For example: x.t().view(2, 3).")

    def _passed(self, node: ast.Call) -> Passed:
        """The arguments of a call with their texts; each is held until it is made."""
        args: list[tuple[Any, str]] = []
        for item in node.args:
            inner = item.value if isinstance(item, ast.Starred) else item
            values = [self.value(inner)] if inner is item else self.items(self.value(inner), inner)
            self.held += values
            args += [(value, self.quote(item)) for value in values]
        named: dict[str, tuple[Any, str]] = {}
        for item in node.keywords:
            value = self.value(item.value)
            self.held.append(value)
            pairs: Any = {item.arg: value} if item.arg is not None else value
            if not isinstance(pairs, dict) or not all(isinstance(key, str) for key in cast("dict[Any, Any]", pairs)):
                raise ExpressionError(f"{self.quote(node)}: `**` opens a dictionary of arguments.")
            named |= {key: (given, self.quote(item.value)) for key, given in cast("dict[str, Any]", pairs).items()}
        return Passed(args, named)

    def apply(self, callee: Any, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        """A call of what is neither a method of a tensor nor a function of torch or Python."""
        match callee:
            case Function():
                return self.invoke(callee, args, named, node)
            case Bound(function=Function() as function, owner=owner):
                return self.invoke(function, [owner, *args], named, node)
            case Bound(owner=Super()):
                return self.of_base(callee.owner, callee.name, args, named, node)
            case Bound(owner=Instance()):
                return self.of_layer(callee.owner, callee.name, args, node)
            case Bound():
                return self.of_plain(callee.owner, callee.name, args, node)
            case Class():
                return self.new(callee, args, named, node)
            case Instance():
                forward = callee.cls.find("forward") or callee.cls.find("__call__")
                if isinstance(forward, Function):
                    return self.invoke(forward, [callee, *args], named, node)
                raise ExpressionError(f"{self.quote(node)}: `{callee.cls.name}` has no `forward`.")
            case Device() if not args and not named:  # what `get_device()` was given
                return callee
            case Named():
                passed = Passed(
                    [(value, "the argument") for value in args], {key: (value, key) for key, value in named.items()}
                )
                return self._named(callee, passed, node, None)[0]
            case _:
                raise PythonError("TypeError", f"{self.quote(node)}: this is no function that could be called.")

    def _method(self, owner: Ref, name: str, passed: Passed, node: ast.Call, outer: _Outer) -> tuple[Any, bool]:
        if self.is_question(name):
            return self.asked_of(owner, name, passed.values, list(passed.by_name.values()), node), False
        if name == "type" and passed.args:
            name = "to"
        if name == "__getitem__" and len(passed.args) == 1:
            inputs: list[int] = []
            index = tuple(self.index_items(passed.values[0], node.args[0], inputs))
            return self._picked(owner, index, self._added(node, name), self.segment(node), node, inputs), False
        operation = find("method", name)
        given = self._arguments(operation, passed, [owner], node)
        if name == "backward":
            self._backward(owner, given, node)
            return None, False
        given.device = given.device or {"cuda": "cuda:0", "cpu": "cpu"}.get(name, "")
        if name == "to" and not given.args and not given.keywords:  # a device keeps the type
            dtype = str(self.machine.tensor(owner.number).dtype).removeprefix("torch.")
            given.args.append(DType(dtype))
        return self._run("method", operation, given, passed, node, outer)

    def _named(self, callee: Named, passed: Passed, node: ast.expr, outer: _Outer) -> tuple[Any, bool]:
        args, named, values, by_name = passed.args, passed.named, passed.values, passed.by_name
        path = callee.path
        if path in _SEEDS:
            return self._seed(path, values, node), False
        if path in FUNCTIONS or (not callee.module and callee.name in PYTHON_CALLS):
            return self.by_python(path, values, by_name, node), False
        if self.answers(path):
            return self.by_torch(path, values, by_name, node), False
        if not callee.module and callee.name == "super":
            return self.super_of(node), False
        form = _FORMS.get(callee.module, "bare")
        name = callee.name
        if form == "nn" and name in ("ModuleList", "ParameterList"):
            return list(self.items(values[0], node)) if values else [], False
        if form == "nn" and name != "Parameter":
            raise ExpressionError(no_layer(name))
        if path == "torch.where" and len(args) == 1 and not named:
            name, named = "nonzero", {"as_tuple": (True, "`as_tuple=True`")}
        if callee.module not in ("", *_FORMS):
            raise ExpressionError(f"`{path[:60]}(…)` is not an operation here.")
        operation = find(form, name)
        subject: list[Any] = []
        if operation.subject:
            if not args and "input" in named and form != "bare":
                args, named = [named["input"]], {key: value for key, value in named.items() if key != "input"}
            if not args or (isinstance(args[0][0], list | tuple) and (form != "bare" or not args[0][0])):
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            subject, args = [args[0]], args[1:]
        first, rest = [value for value, _ in subject], Passed(args, named)
        if subject and not isinstance(first[0], Ref | list | tuple):
            raise ExpressionError(f"{subject[0][1]} stands for no tensor here. For example: {operation.example}.")
        given = self._arguments(operation, rest, first, node)
        if not given.inputs and {"tensor", "tensors"} & set(operation.takes) and "float" not in operation.takes:
            raise ExpressionError(f"{name} needs at least one tensor, for example {operation.example}.")
        return self._run(form, operation, given, rest, node, outer)

    def _arguments(self, operation: Operation, passed: Passed, subject: Sequence[Any], node: ast.expr) -> Arguments:
        """The arguments of an operation; ``subject``: the tensor it works on, or for einops a list of them."""
        given = Arguments(operation, self.notes)
        for item in subject:
            if isinstance(item, list | tuple):
                given.args.append(tuple(given.slot(self.one(part, node)) for part in cast("list[Any]", item)))
            elif item.several and "bare" in operation.forms:
                given.args.append((given.slot(item),))
            else:
                given.slot(self.one(item, node))
        pairs: Given = [("", value, text) for value, text in passed.args]
        for name, (value, text) in passed.named.items():
            if value is not None or name not in ("dtype", "device"):
                pairs.append((name, value, text))
        given.take(pairs)
        return given

    def _run(
        self, form: Written, operation: Operation, given: Arguments, passed: Passed, node: ast.expr, outer: _Outer
    ) -> tuple[Any, bool]:
        """Run an operation, with one of several results picked by what stands around the call."""
        several = operation.gives_several(passed.values, passed.by_name)
        pick = self._pick(operation, outer) if several and outer is not None else None
        whole = node if pick is None or outer is None else outer
        name = operation.name
        at = (-1, -1)
        if self.typed and isinstance(node, ast.Call):
            at = (self.span(node.func)[1] - len(name), self.span(whole)[1])
        if operation.subject and given.args and isinstance(given.args[0], tuple) and form == "bare":
            operation = replace(operation, subject=False)
        same = self._same_as(given.inputs[0]) if operation.restrides else []
        result = self.step(
            operation,
            form,
            given.inputs,
            whole,
            self._added(whole, name) if form == "method" else "",
            args=tuple(given.args),
            keywords=tuple(given.keywords),
            pick=pick,
            at=at,
            device=given.device,
        )
        for ref in same:
            ref.number = result.number
        if same:
            self.machine.rename(result.number, self.called(result.number))
        return (result if pick is not None else self.severally(result)), pick is not None

    def _added(self, node: ast.expr, name: str) -> str:
        """What a method adds to the text of its tensor."""
        if not self.typed:
            text = ast.unparse(node)
            return text[text.rfind(f".{name}(") :]
        inner = node
        while not isinstance(inner, ast.Call):
            inner = cast("ast.Attribute | ast.Subscript", inner).value
        start = self.span(inner.func)[1] - len(cast(ast.Attribute, inner.func).attr)
        return f".{self.cut(start, self.span(node)[1])}"

    def _pick(self, operation: Operation, outer: ast.Subscript | ast.Attribute) -> int | None:
        if isinstance(outer, ast.Attribute):
            return operation.fields.index(outer.attr) if outer.attr in operation.fields else None
        return None if isinstance(outer.slice, ast.Slice) else self.whole(self.value(outer.slice), outer)

    def _same_as(self, number: int) -> list[Ref]:
        """Everything that stands for the very tensor of a step."""
        tensor, seen = self.machine.tensor(number), set[int]()
        found = [ref for frame in self.frames for ref in tensors_in(frame, seen)]
        found += tensors_in(self.held, seen)
        return [ref for ref in found if self.machine.tensor(ref.number) is tensor]

    def called(self, number: int) -> str:
        """A name that stands for the tensor of a step now; empty for none."""
        tensor = self.machine.tensor(number)
        names = {**named_in(self.frames[0].names), **named_in(self.frame.names)}
        return next((name for name, ref in names.items() if self.machine.tensor(ref.number) is tensor), "")

    def _backward(self, owner: Ref, given: Arguments, node: ast.Call) -> None:
        """``loss.backward()``: a step for itself, and one for every gradient that it leaves."""
        reached = self.machine.reached(owner.number)
        before = {leaf: self.machine.gradient(leaf) for leaf in reached}
        at = (self.span(node.func)[1] - len("backward"), self.span(node)[1]) if self.typed else (-1, -1)
        args, keywords = tuple(given.args), tuple(given.keywords)
        operation, source = find("method", "backward"), self._added(node, "backward")
        self.step(operation, "method", given.inputs, node, source, args=args, keywords=keywords, at=at)
        for leaf in reached:
            name = f"{self.called(leaf) or self.machine.name(leaf)}.grad"
            earlier = before[leaf]
            self.step(GRADIENT, "grad", (leaf if earlier is None else earlier,), node, name, name=name)

    def _seed(self, path: str, values: list[Any], node: ast.expr) -> None:
        """``torch.manual_seed(0)``: from here on, random numbers are those that torch draws on a CPU."""
        seed = values[0] if len(values) == 1 else None
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ExpressionError(f"{self.quote(node)}: a seed is one whole number from 0.")
        if path.startswith("torch"):
            self.machine.seed(seed)
            self.notes["From `manual_seed` on, random numbers are those that torch draws on a CPU."] = None

    @abstractmethod
    def invoke(self, function: Function, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any: ...

    @abstractmethod
    def new(self, cls: Class, args: list[Any], named: dict[str, Any], node: ast.expr) -> Instance: ...

    @abstractmethod
    def super_of(self, node: ast.expr) -> Super: ...

    @abstractmethod
    def of_base(self, owner: Super, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any: ...

    @abstractmethod
    def of_layer(self, owner: Instance, name: str, args: list[Any], node: ast.expr) -> Any: ...
