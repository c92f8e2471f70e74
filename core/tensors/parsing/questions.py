"""What a program asks its tensors, as Python values, and the functions of Python and torch that give no tensor.

Only the questions named here are understood; each is answered on the tensors as they are when its line runs.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS, find
from core.tensors.operations.values import Device, DType, ExpressionError
from core.tensors.parsing.expressions import ExpressionReader
from core.tensors.parsing.facts import HELPERS, Fact, written_value
from core.tensors.parsing.numbers import FUNCTIONS, MOST_ITEMS, bounded
from core.tensors.parsing.objects import Bound, Cell, Class, Instance, Named, Ref, Storage

_METHODS = (
    *("size", "stride", "numel", "nelement", "dim", "ndimension", "storage_offset", "element_size", "is_contiguous"),
    *("tolist", "item", "is_floating_point", "is_complex", "data_ptr", "get_device", "storage", "untyped_storage"),
    *("__len__", "register_hook"),
)
_FIELDS = ("requires_grad", "is_leaf", "nbytes", "itemsize", "retains_grad", "ndim")
_TORCH = (
    *("equal", "allclose", "is_tensor", "Size", "device", "is_grad_enabled", "get_default_dtype", "numel"),
    *("finfo", "iinfo", "save", "is_floating_point", "set_default_device", "set_float32_matmul_precision"),
)
_CUDA: Mapping[str, Any] = {
    **dict.fromkeys(("is_available", "is_bf16_supported"), True),
    **dict.fromkeys(("synchronize", "empty_cache", "reset_peak_memory_stats", "set_device")),
    "device_count": 1,
    "current_device": 0,
    "current_accelerator": Device("cuda:0"),
    **dict.fromkeys(("memory_allocated", "max_memory_allocated"), "bytes"),
}
"""What is asked of a GPU, or of ``torch.accelerator``, and what one GPU answers."""

_CLASSES = ("int", "float", "bool", "str", "tuple", "list", "dict")
_TEXT = ("startswith", "endswith", "lower", "upper", "strip", "count", "split", "join", "replace")


class QuestionReader(ExpressionReader):
    """Answers questions."""

    def is_question(self, name: str) -> bool:
        """Whether a method of a tensor gives no tensor."""
        return name in _METHODS

    def is_method(self, name: str) -> bool:
        return name in _METHODS or ("method", name) in OPERATIONS

    def apply(self, callee: Any, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------- of a tensor

    def asked_of(self, owner: Ref, name: str, args: list[Any], named: list[Any], node: ast.expr) -> Any:
        """What a method of a tensor answers."""
        tensor = self.machine.tensor(owner.number)
        match name:
            case "data_ptr":
                return Cell(self.machine.storage(owner.number), tensor.storage_offset() * tensor.element_size())
            case "get_device":
                return 0 if self.machine.device(owner.number).startswith("cuda") else -1
            case "storage" | "untyped_storage":
                return Storage(owner, name == "storage")
            case "tolist" | "item":
                if tensor.is_meta or tensor.numel() > limit("storage_cells_drawn"):
                    raise ExpressionError(f"{self.quote(node)} hangs on values, and there are none, or too many.")
            case _:
                pass
        with self.raising(node):
            result = getattr(tensor, name)(*args, *named)
        if isinstance(result, complex):
            return written_value(str(result))
        return tuple(result) if name in ("size", "stride") and not isinstance(result, int) else result

    def of_tensor(self, owner: Ref, node: ast.Attribute) -> Any:
        name, tensor = node.attr, self.machine.tensor(owner.number)
        match name:
            case "shape":
                return tuple(tensor.shape)
            case "dtype":
                return DType(str(tensor.dtype).removeprefix("torch."))
            case "device":
                return Device(self.machine.device(owner.number))
            case "is_cuda":
                return self.machine.device(owner.number).startswith("cuda")
            case "grad":
                found = self.machine.gradient(owner.number)
                return None if found is None else Ref(found)
            case "grad_fn" | "is_leaf":
                with self.raising(node):  # torch keeps the node of some views to itself once their base was written
                    found = getattr(tensor, name)
                return found if isinstance(found, bool | None) else f"<{type(found).__name__}>"
            case _ if name in _FIELDS:
                return getattr(tensor, name)
            case _ if self.is_method(name):
                return Bound(owner, name)
            case _:
                return self._property(owner, node)

    def _property(self, owner: Ref, node: ast.Attribute) -> Ref:
        return self.step(find("property", node.attr), "property", (owner.number,), node, f".{node.attr}")

    def number(self, value: Any, node: ast.expr) -> Any:
        """``value``, of a tensor of one element that element, as Python asks it for."""
        if not isinstance(value, Ref):
            return value
        tensor = self.machine.tensor(value.number)
        if isinstance(tensor, tuple) or tensor.is_meta or tensor.numel() != 1 or tensor.is_complex():
            raise ExpressionError(
                f"{self.quote(node)}: only a tensor of one element, whose value is known, is a number."
            )
        return tensor.item()

    # ------------------------------------------------------------------------------------------ of Python

    def by_python(self, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        """A function of plain values."""
        with self.raising(node):
            if name in HELPERS:
                return self._helper(name, args, node)
            if name in FUNCTIONS:
                return self._plain(name, args, named, node)
            return self._of_python(name, args, named, node)

    def _plain(self, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        if name == "abs" and isinstance(args[0], Ref):
            return self.step(find("method", "abs"), "method", (args[0].number,), node)
        if name in ("sum", "max", "min") and len(args) == 1:
            items = self.items(args[0], node)
            if any(isinstance(item, Ref) for item in items) and name == "sum":
                total = items[0]
                for item in items[1:]:
                    total = self.put_together(node, node, total, "+", node, item)
                return total
            args = [[self.number(item, node) for item in items]]
        given = [self.number(value, node) for value in args]
        if not all(isinstance(value, int | float | str | tuple | list | range | None) for value in given):
            raise ExpressionError(f"{self.quote(node)} is not worked out here.")
        result = FUNCTIONS[name](*given, **named)
        if isinstance(result, float) and result != result and name != "float":
            raise ExpressionError(f"{self.quote(node)}: this is not a number.")
        return result if isinstance(result, range) else bounded(result, self.segment(node))

    def _helper(self, name: str, args: list[Any], node: ast.expr) -> Any:
        if len(args) != HELPERS[name] or not all(isinstance(arg, Ref) for arg in args):
            raise ExpressionError(f"{self.quote(node)}: `{name}` takes {HELPERS[name]} of the tensors.")
        if name == "same_storage":
            return self.machine.storage(args[0].number) == self.machine.storage(args[1].number)
        tensor = self.machine.tensor(args[0].number)
        return tensor.numel() * tensor.element_size()

    def _of_python(self, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        match name, args:
            case "isinstance", [value, kinds]:
                several = cast("tuple[Any, ...]", kinds if isinstance(kinds, tuple) else (kinds,))
                return any(self._is_of(value, kind) for kind in several)
            case "type", [value]:
                return self._type(value)
            case "hasattr", [Instance() as value, str() as field]:
                return field in value.fields or value.cls.find(field) is not None
            case "len", [Ref() as ref]:
                return len(self.machine.tensor(ref.number))
            case "len", [Instance() as value]:
                return len(self.items(value, node))
            case "len", [value]:
                return len(value)
            case "str" | "repr", [value]:
                return self.shown(value)
            case "list" | "tuple", [Ref(several=True) as ref]:
                return ref
            case "list" | "tuple", [Ref() as ref]:
                return self.rows(ref, node)
            case "list", []:
                return []
            case "list" | "tuple", [value]:
                items = self.items(value, node)
                return items if name == "list" else tuple(items)
            case "dict", []:
                return dict(named)
            case "dict", [value]:
                return {self.key(key, node): item for key, item in self.items(value, node)} | named
            case "zip", [_, *_]:
                return list(zip(*(self.items(part, node) for part in args), strict=False))
            case "enumerate", [value, *rest]:
                return list(enumerate(self.items(value, node), *rest, **named))
            case "reversed", [value]:
                return self.items(value, node)[::-1]
            case "map" | "filter", [function, *parts]:
                rows = list(zip(*(self.items(part, node) for part in parts), strict=False))
                made: list[Any] = []
                self.held.append(made)
                made += (self.apply(function, list(row), {}, node) for row in rows)
                return made if name == "map" else [row[0] for row, keep in zip(rows, made, strict=True) if keep]
            case "any" | "all", [value]:
                truths = [bool(self.number(item, node)) for item in self.items(value, node)]
                return getattr(builtins, name)(truths)
            case _:
                raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _type(self, value: Any) -> Any:
        if isinstance(value, Ref):
            kind = type(self.machine.tensor(value.number)).__name__
            return Named("nn", kind) if kind == "Parameter" else Named("torch", "Tensor")
        return value.cls if isinstance(value, Instance) else Named("", type(value).__name__)

    def _is_of(self, value: Any, kind: Any) -> bool:
        if isinstance(value, Instance):
            return value.cls.is_a(kind.name) if isinstance(kind, Class | Named) else False
        if isinstance(value, Ref):
            return isinstance(kind, Named) and (kind.path == "torch.Tensor" or kind == self._type(value))
        known = isinstance(kind, Named) and kind.path in _CLASSES
        return known and isinstance(value, getattr(builtins, kind.path))

    def of_plain(self, owner: Any, name: str, args: list[Any], node: ast.expr) -> Any:
        """A method of a text, a list, a dictionary, sizes or a storage."""
        match owner, name, args:
            case Storage(ref=ref), "data_ptr", []:
                return Cell(self.machine.storage(ref.number), 0)
            case Storage(ref=ref, typed=typed), "nbytes" | "size" | "__len__", []:
                tensor = self.machine.tensor(ref.number)
                nbytes = tensor.untyped_storage().nbytes()
                return nbytes // tensor.element_size() if typed and name == "size" else nbytes
            case str(), _, _ if name in _TEXT and all(isinstance(item, str | list) for item in args):
                return bounded(getattr(owner, name)(*args), self.segment(node))
            case list(), "append" | "extend", [value]:
                items = [value] if name == "append" else self.items(value, node)
                if len(cast("list[Any]", owner)) + len(items) > MOST_ITEMS:
                    raise ExpressionError(f"{self.quote(node)}: more than {MOST_ITEMS} items.")
                cast("list[Any]", owner).extend(items)
                return None
            case list(), "pop", _ if owner and all(isinstance(item, int) for item in args) and len(args) < 2:
                with self.raising(node):
                    return cast("list[Any]", owner).pop(*args)
            case (tuple(), "numel", []) if all(isinstance(n, int) for n in cast("tuple[Any, ...]", owner)):
                return bounded(FUNCTIONS["math.prod"](owner), self.segment(node))
            case ((tuple() | list()), "count" | "index", [int() | str()]) if args[0] in owner or name == "count":
                return getattr(cast("Any", owner), name)(*args)
            case dict(), "items", []:
                return list(cast("dict[Any, Any]", owner).items())
            case dict(), "keys" | "values", []:
                return list(getattr(cast("dict[Any, Any]", owner), name)())
            case dict(), "get" | "setdefault", [key, *rest] if len(rest) < 2:
                found = self.key(key, node)
                return getattr(cast("dict[Any, Any]", owner), name)(found, *rest)
            case dict(), "update", [dict()]:
                cast("dict[Any, Any]", owner).update(args[0])
                return None
            case _:
                what = ""
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    what = self.what(owner, node.func.value)
                raise ExpressionError(f"{self.quote(node)}: `.{name[:40]}(…)` is not an operation here; {what}.")

    # ------------------------------------------------------------------------------------------- of torch

    def answers(self, path: str) -> bool:
        """Whether a function of a module gives no tensor."""
        module, _, name = path.rpartition(".")
        return (
            (module == "torch" and name in _TORCH)
            or module in ("torch.cuda", "torch.accelerator")
            or (path in ("sys.getsizeof", "torch.autograd.set_detect_anomaly"))
        )

    def by_torch(self, path: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        module, _, name = path.rpartition(".")
        if module in ("torch.cuda", "torch.accelerator"):
            return self._of_gpu(name, node)
        with self.raising(node):
            return self._of_torch(name, args, named, node)

    def _of_torch(self, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        import torch

        match name, args:
            case "Size", [sizes]:
                return tuple(self.items(sizes, node))
            case "device", _:
                parts = [str(self.shown(arg)) for arg in (*args, *named.values())]
                return Device(":".join(parts)) if parts else Device("cpu")
            case "is_grad_enabled", []:
                return self.tracked
            case "get_default_dtype", []:
                return DType("float32")
            case "is_tensor", [value]:
                return isinstance(value, Ref)
            case "numel", [Ref() as ref]:
                return self.machine.tensor(ref.number).numel()
            case "finfo" | "iinfo", [DType() as dtype]:
                info = getattr(torch, name)(getattr(torch, dtype.name))
                names = ("min", "max", "bits", "eps", "tiny", "smallest_normal", "resolution")
                return {key: getattr(info, key) for key in names if hasattr(info, key)}
            case (("equal" | "allclose"), [Ref() as one, Ref() as other, *rest]):
                tensors = [self.machine.tensor(ref.number) for ref in (one, other)]
                if any(tensor.is_meta for tensor in tensors):
                    raise ExpressionError(
                        f"{self.quote(node)} hangs on values, and tensors of this size have none here."
                    )
                return bool(getattr(torch, name)(*tensors, *rest, **named))
            case "save", [Ref() as ref, *_]:
                return self._saved(self.machine.tensor(ref.number), node)
            case "getsizeof", [Ref() as ref]:
                nbytes = self.machine.tensor(ref.number).untyped_storage().nbytes()
                self.notes[
                    f"`sys.getsizeof` of a tensor is Python's own object; its storage has {nbytes:,} B more."
                ] = None
                return sys.getsizeof(self.machine.tensor(ref.number))
            case "getsizeof", [Storage(ref=ref)]:
                return sys.getsizeof(self.machine.tensor(ref.number).untyped_storage())
            case "set_float32_matmul_precision" | "set_detect_anomaly", _:
                return None
            case _:
                raise ExpressionError(f"{self.quote(node)} is not worked out here.")

    def _saved(self, tensor: Any, node: ast.expr) -> None:
        """What ``torch.save`` would write of a tensor: its whole storage."""
        nbytes: int = tensor.untyped_storage().nbytes()
        whole = "" if tensor.numel() * tensor.element_size() == nbytes else ", its whole storage; a clone saves less"
        self.facts.append(Fact(self.line, self.segment(node), f"{nbytes:,} B of numbers{whole}"))

    def _of_gpu(self, name: str, node: ast.expr) -> Any:
        if name not in _CUDA:
            raise ExpressionError(f"{self.quote(node)} is not an operation here: no GPU is asked.")
        self.notes["One GPU, cuda:0, is assumed: moves to it are followed and their bytes counted."] = None
        return self.machine.allocated("cuda") if _CUDA[name] == "bytes" else _CUDA[name]
