"""What a program asks its tensors, as Python values: ``assert``, ``print``, ``if``, and lines that are no tensor.

Only the questions named here are understood; each is answered on the tensors as they are when its line runs. Nothing
is evaluated by Python itself.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.values import DTYPES, CountQuestion, Device, DType, ExpressionError
from core.tensors.parsing.counts import SYMBOLS
from core.tensors.parsing.evaluated import bounded
from core.tensors.parsing.expressions import ExpressionReader
from core.tensors.parsing.facts import HELPERS, MOST_SHOWN, Cell, Machine, written_value

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_TENSOR_METHODS = ("is_contiguous", "tolist", "is_floating_point", "is_complex", "data_ptr", "get_device")
_TENSOR_FIELDS = (
    "requires_grad",
    "is_leaf",
    "grad_fn",
    "is_cuda",
    "nbytes",
    "itemsize",
    "device",
    "dtype",
    "retains_grad",
)
_TORCH = ("equal", "allclose", "is_tensor", "Size", "device", "is_grad_enabled", "get_default_dtype", "numel")
_CUDA = ("is_available", "device_count", "memory_allocated", "max_memory_allocated", "current_device")
_PYTHON = ("str", "repr", "isinstance", "type", "bool", "hasattr", "any", "all", "sorted")
_STORAGES = ("storage", "untyped_storage")
_CLASSES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "tuple": (tuple,),
    "list": (tuple,),
}
_SPEC = re.compile(r"[<>^=+, ]?\d{0,2},?(\.\d{1,2})?[a-zA-Z%]?")


class FactReader(ExpressionReader):
    """Answers questions; tensors in them are steps like others, run on the way."""

    def __init__(self, text: str, machine: Machine | None = None) -> None:
        super().__init__(text)
        self.machine = machine
        self.values: dict[str, Any] = {}
        """Names that stand for an answer, a caught error among them."""

    @abstractmethod
    def run(self) -> None:
        """Run the steps that have been read."""

    # ------------------------------------------------------------------------------------------ what is asked

    def is_fact(self, node: ast.expr) -> bool:
        """Whether ``node`` is a question, and no tensor."""
        match node:
            case ast.Constant(value=value):
                return not isinstance(value, bytes) and value is not ...
            case ast.JoinedStr() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Name(id=name):
                return name in self.values or name in self.literals or name in self.kinds
            case ast.Compare(left=left, ops=[symbol], comparators=[right]) if type(symbol) in _COMPARED:
                return self._is_scalar(left) and self._is_scalar(right)
            case ast.Compare():
                return True
            case ast.Subscript(value=owner):
                return self._is_answer(owner)
            case ast.Call() | ast.Attribute() if self._is_answer(node):
                return True
            case ast.BinOp(left=left, right=right):
                return self.kind(node) is not None or (self._is_scalar(left) and self._is_scalar(right))
            case _:
                return self.kind(node) is not None

    def _is_scalar(self, node: ast.expr) -> bool:
        return self.is_fact(node) or (isinstance(node, ast.Tuple | ast.List) and all(map(self._is_scalar, node.elts)))

    def _is_answer(self, node: ast.expr) -> bool:
        """Whether a call, field or name gives a value that is no tensor and no number known by its syntax."""
        match node:
            case ast.Name(id=name):
                return name in self.values or name == "torch.Size"
            case ast.Call(func=ast.Name(id=name)):
                return (
                    name in _PYTHON
                    or name in HELPERS
                    or (name == "len" and self._is_scalar(node.args[0]) if node.args else False)
                )
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)):
                return name in _TORCH
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="torch"), attr="cuda"), attr=name)):
                return name in _CUDA
            case ast.Call(
                func=ast.Attribute(attr="data_ptr" | "nbytes" | "size", value=ast.Call(func=ast.Attribute(attr=name)))
            ) if name in _STORAGES:
                return True
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return name in _TENSOR_METHODS or self._is_answer(owner)
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return name in DTYPES or name == "Tensor"
            case ast.Attribute(value=owner, attr="grad"):
                return self._has_no_gradient(owner)
            case ast.Attribute(value=owner, attr=name):
                return (name in _TENSOR_FIELDS and not self._is_answer(owner)) or self._is_answer(owner)
            case ast.Subscript(value=owner):
                return self._is_answer(owner)
            case _:
                return False

    def _has_no_gradient(self, owner: ast.expr) -> bool:
        """Whether ``owner.grad`` is None at this point; of names alone, which takes no step."""
        number = self.names.get(owner.id) if isinstance(owner, ast.Name) else None
        if number is None or self.machine is None or number in self.bundles:
            return False
        self.run()
        return self.machine.gradient(number) is None

    # ---------------------------------------------------------------------------------------------- answers

    def truth(self, node: ast.expr) -> bool:
        """Whether ``node`` counts as true. Raises `ExpressionError` where that hangs on values that are not there."""
        value = self.fact(node)
        try:
            return bool(value)
        except (RuntimeError, NotImplementedError) as problem:
            raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:200]}.") from None

    def shown(self, node: ast.expr) -> str:
        return written_value(self.fact(node))

    def fact(self, node: ast.expr) -> Any:
        """The value of ``node``: one of Python, or a tensor."""
        match node:
            case ast.Constant(value=value) if not isinstance(value, bytes | complex):
                whole = isinstance(value, int | float) and not isinstance(value, bool)
                return bounded(value, self.segment(node)) if whole else value
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part) for part in parts)[:MOST_SHOWN]
            case ast.BoolOp(op=symbol, values=parts):
                for part in parts[:-1]:
                    if self.truth(part) == isinstance(symbol, ast.Or):
                        return self.fact(part)
                return self.fact(parts[-1])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.truth(operand)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.fact(body if self.truth(test) else other)
            case ast.Compare() if self.is_fact(node) or len(node.ops) > 1:
                return self._compared(node)
            case _ if self._is_answer(node):
                return self._answered(node)
            case _ if self.kind(node) is not None:
                return self._numbered(node)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.fact(item) for item in items)
            case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in SYMBOLS and self.is_fact(node):
                return self._put_together(node, self.fact(left), SYMBOLS[type(symbol)], self.fact(right))
            case _:
                known = self.literal(node)
                if known is not None:
                    value = known[1]
                    return self._dtype_of(value) if isinstance(value, CountQuestion) else value
                return self._tensor_of(node)

    def _tensor_of(self, node: ast.expr) -> Any:
        number = self.tensor(node)
        self.run()
        if self.machine is None:
            raise ExpressionError(f"{self.quote(node)} is known once the lines before it have run.")
        return self.machine.tensor(number)

    def _numbered(self, node: ast.expr) -> Any:
        count = self.count(node)
        self.run()
        if self.machine is None:
            if isinstance(count, CountQuestion):
                raise ExpressionError(f"{self.quote(node)} is known once the lines before it have run.")
            return count
        return self.machine.number(count)

    def _dtype_of(self, value: CountQuestion) -> Any:
        self.run()
        return self.machine.number(value) if self.machine is not None else value

    def _part(self, node: ast.expr) -> str:
        """A piece of an f-string."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.FormattedValue(value=inner, format_spec=spec):
                value = self.fact(inner)
                how = "".join(self._part(part) for part in spec.values) if isinstance(spec, ast.JoinedStr) else ""
                if not how or not isinstance(value, int | float | str):
                    value = value.item() if hasattr(value, "item") and how and value.numel() == 1 else value
                if not how or not isinstance(value, int | float | str):
                    return written_value(value)
                if not _SPEC.fullmatch(how):
                    raise ExpressionError(f"`:{how[:20]}` is no format that is understood; :.2f and :, are.")
                try:
                    return format(value, how)[:MOST_SHOWN]
                except ValueError as problem:
                    raise ExpressionError(f"`:{how}`: {problem}.") from None
            case _:
                raise ExpressionError(f"{self.quote(node)} is not understood in an f-string.")

    def _compared(self, node: ast.Compare) -> Any:
        left: Any = self.fact(node.left)
        for symbol, other in zip(node.ops, node.comparators, strict=True):
            right = self.fact(other)
            match symbol:
                case ast.Is():
                    result: Any = left is right
                case ast.IsNot():
                    result = left is not right
                case ast.In() | ast.NotIn():
                    if not isinstance(right, str | tuple) or (isinstance(right, str) and not isinstance(left, str)):
                        raise ExpressionError(f"{self.quote(node)}: `in` looks into a text or a tuple.")
                    try:
                        result = (left in cast("Any", right)) == isinstance(symbol, ast.In)
                    except (TypeError, RuntimeError) as problem:
                        raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}.") from None
                case _:
                    try:
                        result = _COMPARED[type(symbol)](_plain(left), _plain(right))
                    except (TypeError, RuntimeError) as problem:
                        raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}.") from None
            if node.comparators[-1] is other:
                return result
            try:
                if not bool(result):
                    return False
            except (RuntimeError, NotImplementedError) as problem:
                raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}.") from None
            left = cast("Any", right)
        return True

    def _put_together(self, node: ast.expr, left: Any, symbol: str, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str) and symbol == "+":
            return (left + right)[:MOST_SHOWN]
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise ExpressionError(f"{self.quote(node)} is not worked out here.")
        if symbol == "**" and (abs(left) > 1e3 or abs(right) > 30):
            raise ExpressionError(f"{self.quote(node)} is too large a power.")
        functions = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}
        try:
            return bounded(getattr(operator, functions[symbol])(left, right), self.segment(node))
        except (ArithmeticError, ValueError) as problem:
            raise ExpressionError(f"{self.quote(node)}: {problem}.") from None

    def _answered(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return self.values[name]
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return "torch.Tensor" if name == "Tensor" else DType(DTYPES[name])
            case ast.Attribute(attr="grad"):
                return None
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._by_name(name, args, node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=args):
                return self._by_torch(name, args, node)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="torch"), attr="cuda"), attr=name)):
                return self._by_cuda(name)
            case ast.Call(
                func=ast.Attribute(attr=name, value=ast.Call(func=ast.Attribute(value=owner, attr=inner)))
            ) if inner in _STORAGES:
                tensor, number = self._of(owner)
                nbytes = tensor.untyped_storage().nbytes()
                return (
                    Cell(number, 0)
                    if name == "data_ptr"
                    else nbytes
                    if inner == "untyped_storage"
                    else nbytes // tensor.element_size()
                )
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args) if self._is_answer(owner):
                return self._of_text(self.fact(owner), name, args, node)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=[]):
                return self._of_tensor(owner, name, args, node)
            case ast.Attribute(value=owner, attr=name) if self._is_answer(owner):
                return self._field_of(self.fact(owner), name, node)
            case ast.Attribute(value=owner, attr=name):
                return self._of_tensor(owner, name, (), node)
            case ast.Subscript(value=owner, slice=index):
                value, at = self.fact(owner), self.fact(index)
                several = cast("Any", value) if isinstance(value, tuple | str) else ()
                if isinstance(at, int) and -len(several) <= at < len(several):
                    return several[at]
            case _:
                pass
        raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _of(self, node: ast.expr) -> tuple[Any, int]:
        """The tensor of ``node`` and the number of its storage."""
        number = self.tensor(node)
        self.run()
        if self.machine is None:
            raise ExpressionError(f"{self.quote(node)} is known once the lines before it have run.")
        return self.machine.tensor(number), self.machine.storage(number)

    def _by_name(self, name: str, args: list[ast.expr], node: ast.Call) -> Any:
        if name in HELPERS:
            if len(args) != HELPERS[name]:
                raise ExpressionError(f"{self.quote(node)}: `{name}` takes {HELPERS[name]} of the tensors.")
            found = [self._of(arg) for arg in args]
            if name == "same_storage":
                return found[0][1] == found[1][1]
            return found[0][0].numel() * found[0][0].element_size()
        if name in ("isinstance", "type", "hasattr"):
            return self._classed(name, args, node)
        given: list[Any] = [self.fact(arg) for arg in args]
        try:
            if name in ("str", "repr") and len(given) == 1:
                return written_value(given[0])
            if name == "len":
                return len(given[0])
            if name in ("any", "all", "bool", "sorted"):
                result: Any = getattr(builtins, name)(*given)
                return tuple(result) if name == "sorted" else result
        except (TypeError, ValueError, RuntimeError) as problem:
            raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}.") from None
        raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _classed(self, name: str, args: list[ast.expr], node: ast.Call) -> Any:
        value: Any = self.fact(args[0]) if args else None
        kind: str = type(value).__name__
        if name == "type" and len(args) == 1:
            return (
                f"torch.{'Tensor' if kind == 'Tensor' else 'nn.Parameter'}" if kind in ("Tensor", "Parameter") else kind
            )
        if name != "isinstance" or len(args) != 2:
            raise ExpressionError(f"{self.quote(node)} is not worked out here.")
        classes = args[1].elts if isinstance(args[1], ast.Tuple) else [args[1]]
        return any(_is_of(value, ast.unparse(item)) for item in classes)

    def _by_torch(self, name: str, args: list[ast.expr], node: ast.Call) -> Any:
        if name == "Size" and len(args) == 1:
            return tuple(self.fact(args[0]))
        if name == "device":
            parts = [str(self.fact(arg)) for arg in args]
            return Device(":".join(parts)) if parts else Device("cpu")
        if name == "is_grad_enabled":
            return self.tracked
        if name == "get_default_dtype":
            return DType("float32")
        given: list[Any] = [self.fact(arg) for arg in args]
        named: dict[str, Any] = {item.arg or "": self.fact(item.value) for item in node.keywords}
        try:
            if name == "is_tensor":
                return hasattr(given[0], "untyped_storage")
            if name == "numel":
                return given[0].numel()
            import torch

            if name in ("equal", "allclose") and len(given) >= 2:
                if any(tensor.is_meta for tensor in given[:2]):
                    raise ExpressionError(
                        f"{self.quote(node)} hangs on values, and tensors of this size have none here."
                    )
                return bool(getattr(torch, name)(*given, **named))
        except (TypeError, RuntimeError, AttributeError, IndexError) as problem:
            raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}.") from None
        raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _by_cuda(self, name: str) -> Any:
        self.notes["One GPU, cuda:0, is assumed: moves to it are followed and their bytes counted."] = None
        if name == "is_available":
            return True
        if name.endswith("memory_allocated"):
            self.run()
            return 0 if self.machine is None else self.machine.allocated("cuda")
        return 1 if name == "device_count" else 0

    def _of_tensor(self, owner: ast.expr, name: str, args: Any, node: ast.expr) -> Any:
        try:
            return self._asked_of_tensor(owner, name, args, node)
        except RuntimeError as problem:  # torch keeps the node of some views to itself once their base was written
            raise ExpressionError(f"{self.quote(node)}: {str(problem).splitlines()[0][:160]}") from None

    def _asked_of_tensor(self, owner: ast.expr, name: str, args: Any, node: ast.expr) -> Any:
        tensor, storage = self._of(owner)
        match name:
            case "device":
                return Device(self._where(owner))
            case "is_cuda":
                return self._where(owner).startswith("cuda")
            case "get_device":
                return 0 if self._where(owner).startswith("cuda") else -1
            case "data_ptr":
                return Cell(storage, tensor.storage_offset() * tensor.element_size())
            case "dtype":
                return DType(str(tensor.dtype).removeprefix("torch."))
            case "grad_fn":
                return None if tensor.grad_fn is None else f"<{type(tensor.grad_fn).__name__}>"
            case "tolist":
                if tensor.is_meta or tensor.numel() > limit("storage_cells_drawn"):
                    raise ExpressionError(f"{self.quote(node)}: too many values to write out.")
                return _tuples(tensor.tolist())
            case _ if name in _TENSOR_FIELDS:
                return getattr(tensor, name)
            case _ if not args:
                return getattr(tensor, name)()
            case _:
                raise ExpressionError(f"{self.quote(node)}: `{name}` takes nothing here.")

    def _where(self, owner: ast.expr) -> str:
        return self.device_of(self.tensor(owner))

    def device_of(self, number: int) -> str:
        self.run()
        return "cpu" if self.machine is None else self.machine.device(number)

    def _of_text(self, value: Any, name: str, args: list[ast.expr], node: ast.expr) -> Any:
        if value is None:
            raise ExpressionError(f"{self.quote(node)}: what stands before `.{name}` is None here.")
        if isinstance(value, str) and name in ("startswith", "endswith", "lower", "upper", "strip", "count"):
            given = [self.fact(arg) for arg in args]
            if all(isinstance(item, str) for item in given):
                return getattr(value, name)(*given)
        raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _field_of(self, value: Any, name: str, node: ast.expr) -> Any:
        if isinstance(value, Device) and name in ("type", "index"):
            kind, _, index = value.name.partition(":")
            return kind if name == "type" else int(index or 0) if kind != "cpu" else None
        if isinstance(value, Exception) and name == "args":
            return (str(value),)
        if isinstance(value, str) and name == "__name__":
            return value
        if isinstance(value, DType) and name == "itemsize":
            import torch

            return getattr(torch, value.name).itemsize
        raise ExpressionError(f"{self.quote(node)} is not worked out here.")


def _plain(value: Any) -> Any:
    """``value`` as it compares: a device without its number stands for the first."""
    if isinstance(value, Device):
        return "cuda:0" if value.name == "cuda" else value.name
    return tuple(cast("Any", value)) if isinstance(value, tuple) else value


def _is_of(value: Any, name: str) -> bool:
    short = name.removeprefix("torch.").removeprefix("nn.")
    if hasattr(value, "untyped_storage"):
        return short == "Tensor" or (short == "Parameter" and type(value).__name__ == "Parameter")
    return isinstance(value, _CLASSES.get(name, ()))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in cast("list[Any]", value)) if isinstance(value, list) else value
