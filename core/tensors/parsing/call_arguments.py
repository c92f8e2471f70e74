"""The arguments of a call: numbers, dtypes, patterns, tensors, lists of tensors; what is left out, and said."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.operations.operation import Operation, Takes
from core.tensors.operations.values import CountQuestion, Device, DType, ExpressionError, Slot, Value
from core.tensors.parsing.arguments import Literal, literal
from core.tensors.parsing.counts import CountReader
from core.tensors.parsing.plan import PlanStep

_TAKES: dict[Takes, str] = {
    "int": "whole numbers",
    "ints": "whole numbers",
    "data": "lists of numbers",
    "float": "numbers",
    "bool": "True or False",
    "none": "None",
    "dtype": "a dtype",
    "format": "a memory format",
    "text": "a pattern in quotes",
    "tensor": "a tensor",
    "tensors": "a list of tensors",
}
_DEVICE = re.compile(r"(cuda|cpu|mps|xpu|meta)(:[0-9]+)?")

IGNORED: Mapping[str, str] = {
    "device": "",
    "pin_memory": "every tensor here lies in the memory of the CPU",
    "non_blocking": "every tensor here lies in the memory of the CPU",
}
"""Arguments that change no shape, stride or value, and why they are left out."""

_NUMPY: Mapping[str, str] = {"axis": "dim", "keepdims": "keepdim"}
"""Names that numpy gives to arguments and torch takes as well."""

_PYTHON = ("split", "unflatten", "norm", "unique", "tensordot", "meshgrid")
"""Operations that torch has in Python, which take no names of numpy."""

_MATRICES = (("mat1",), ("batch1",), ("mat",), ("vec1",), ("tensor1",))
"""First parameters of operations that once took a number there, and warn of it."""

_MAKERS = ("_like", "new_", "Parameter")


class ArgumentReader(CountReader):
    """Reads the arguments of a call. The tensors among them are read by the subclass."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[PlanStep] = []
        self.names: dict[str, int] = {"x": 0}
        self.bundles: set[int] = set()
        """Steps whose result is several tensors of which none is picked yet."""
        self.lists: dict[str, tuple[int, ...]] = {}
        self.listings: list[tuple[int, str, tuple[int, ...]]] = []
        """Names that stand for a list of tensors, and their steps."""
        self.literals: dict[str, Literal] = {}
        """Names that stand for a dtype, a pattern, a truth value, None or a device."""
        self.notes: dict[str, None] = {}
        """What was left out."""
        self.device = ""
        """Where the call that is being read puts its result."""
        self.tracked = True
        """Whether the lines that are read stand outside of ``torch.no_grad()``."""

    @abstractmethod
    def quote(self, node: ast.expr | ast.stmt) -> str: ...

    def add(self, step: PlanStep) -> int:
        if len(self.steps) >= limit("expression_steps"):
            raise ExpressionError(f"More than {limit('expression_steps')} operations; each one is shown.")
        self.steps.append(step if self.tracked else replace(step, tracked=False))
        return len(self.steps)

    # ------------------------------------------------------------------------------------------- literals

    def literal(self, node: ast.expr) -> Literal | None:
        """The kind and value of what is no tensor; ``None`` for a node that may be one."""
        match node:
            case ast.Name(id=name) if name in self.literals:
                return self.literals[name]
            case ast.Attribute(value=ast.Name(id="torch")):
                pass
            case ast.Attribute(value=owner, attr="dtype"):
                return "dtype", CountQuestion("dtype", step=self.tensor(owner), text=self.segment(node))
            case ast.Attribute(value=owner, attr="device"):
                return "device", Device(self.device_of(self.tensor(owner)))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="device"), args=[ast.Constant(value=str() as name)]
            ):
                return "device", Device(name)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="device"),
                args=[ast.Constant(value=str() as name), ast.Constant(value=int() as index)],
            ):
                return "device", Device(f"{name}:{index}")
            case _:
                pass
        return literal(node, self.count)

    def dtype(self, node: ast.expr) -> DType | CountQuestion:
        result = self.literal(node)
        if result is None or not isinstance(result[1], DType | CountQuestion) or result[0] != "dtype":
            raise ExpressionError(f"{self.quote(node)} is no dtype; torch.float32 and x.dtype are.")
        return result[1]

    # ---------------------------------------------------------------------------------- several tensors

    def listed(self, node: ast.expr) -> tuple[int, ...] | None:
        """The steps of a list of tensors, some of which may be several themselves; ``None`` for no list."""
        match node:
            case ast.Name(id=name) if name in self.lists:
                return self.lists[name]
            case ast.Name(id=name) if self.names.get(name) in self.bundles:
                return (self.names[name],)
            case ast.Call() | ast.Subscript() if opens(node) or self.gives_several(node):
                return (self.result(node),)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                numbers: list[int] = []
                for item in items:
                    if isinstance(item, ast.Starred):
                        inner = self.listed(item.value)
                        if inner is None:
                            raise ExpressionError(f"{self.quote(item)}: a star opens several tensors, *x.chunk(2).")
                        numbers += inner
                    else:
                        numbers.append(self.tensor(item))
                return tuple(numbers)
            case _:
                return None

    @abstractmethod
    def device_of(self, number: int) -> str: ...

    @abstractmethod
    def gives_several(self, node: ast.expr) -> bool: ...

    def slots(self, numbers: Sequence[int], inputs: list[int]) -> tuple[Slot, ...]:
        """Steps as the inputs of a call, counted on from those there are."""
        first = len(inputs)
        inputs += numbers
        return tuple(Slot(slot) for slot in range(first, len(inputs)))

    # ------------------------------------------------------------------------------------------ arguments

    def arguments(self, operation: Operation, nodes: Sequence[ast.expr], inputs: list[int]) -> list[Value]:
        """Arguments by their places, without a device, which every tensor here has."""
        values = [self._positional(operation, node, inputs) for node in nodes]
        if values and operation.keywords[:1] in _MATRICES and not isinstance(values[0], Slot):
            raise ExpressionError(f"{operation.name} takes its tensors first, for example {operation.example}.")
        selected: list[Value] = [value for value in values if not isinstance(value, Device)]
        if values and not selected:  # x.to(device) keeps the type
            selected.append(CountQuestion("dtype", step=inputs[0]))
        return selected

    def keywords(
        self, operation: Operation, nodes: Sequence[ast.keyword], inputs: list[int]
    ) -> list[tuple[str, Value]]:
        """Arguments by their names, without those that are ignored."""
        return [self._keyword(operation, node, inputs) for node in nodes if not self._is_ignored(operation, node)]

    def _is_ignored(self, operation: Operation, node: ast.keyword) -> bool:
        makes = not operation.subject or any(part in operation.name for part in _MAKERS) or operation.name == "to"
        if (
            node.arg is None
            or node.arg not in IGNORED
            or node.arg in operation.keywords
            or not makes
            or "dtype" not in operation.takes
        ):
            return False
        if node.arg == "device":
            self._place(node.value)
            return True
        if isinstance(node.value, ast.Constant):
            self.notes[f"`{node.arg}=` is left out: {IGNORED[node.arg]}."] = None
            return True
        return False

    def _place(self, node: ast.expr) -> None:
        """Take the device that ``node`` names for where the result of the present call lies."""
        result = self.literal(node)
        if result is None or result[0] not in ("device", "text", "none"):
            raise ExpressionError(f"{self.quote(node)} is no device; 'cuda:0' and x.device are.")
        value = result[1]
        name = value.name if isinstance(value, Device) else str(value or "cpu")
        if not _DEVICE.fullmatch(name):
            raise ExpressionError(f"{self.quote(node)} is no device; 'cuda:0' and 'cpu' are.")
        self.device = "cpu" if name in ("cpu", "meta") else name if ":" in name else f"{name}:0"
        if self.device != "cpu":
            self.notes[
                f"`{self.device}` is assumed: what moves there is followed and its bytes counted; the values are "
                "worked out on the CPU."
            ] = None

    def _positional(self, operation: Operation, node: ast.expr, inputs: list[int]) -> Value:
        """An argument by its place, which may be sizes with a star, ``x.view(*x.shape[:2], -1)``."""
        if isinstance(node, ast.Starred) and self.kind(node.value) == "sizes" and "int" in operation.takes:
            return CountQuestion("star", (self.count(node.value),), text=self.segment(node), several=True)
        return self._argument(operation, node, inputs)

    def _argument(self, operation: Operation, node: ast.expr, inputs: list[int]) -> Value:
        if "tensors" in operation.takes and (numbers := self.listed(node)) is not None:
            return self.slots(numbers, inputs)
        result = self.literal(node)
        if result is None and "tensor" in operation.takes and not isinstance(node, ast.List | ast.Tuple):
            inputs.append(self.tensor(node))
            return Slot(len(inputs) - 1)
        if result is None:
            raise ExpressionError(self._no_argument(operation, node, known=False))
        kind, value = result
        if operation.name == "to" and (kind == "device" or (kind == "text" and _DEVICE.fullmatch(str(value)))):
            self._place(node)
            return Device(self.device)
        allowed = {"int": ("int", "float"), "ints": ("ints", "data")}.get(kind, (kind,))
        if not set(allowed) & set(operation.takes):
            raise ExpressionError(self._no_argument(operation, node, known=True))
        return value

    def _no_argument(self, operation: Operation, node: ast.expr, known: bool) -> str:
        """What to say of an argument that ``operation`` does not take. known: it is a literal of a kind understood."""
        example = f"For example: {operation.example}."
        if not known:
            return f"{self.quote(node)} is not a number, a tuple of numbers, a dtype or a pattern. {example}"
        takes = list(dict.fromkeys(_TAKES[kind] for kind in operation.takes)) or ["nothing"]
        words = " or ".join(part for part in (", ".join(takes[:-1]), takes[-1]) if part)
        return f"{self.quote(node)} is no argument of `{operation.name}`, which takes {words} here. {example}"

    def _keyword(self, operation: Operation, node: ast.keyword, inputs: list[int]) -> tuple[str, Value]:
        name = node.arg or "**"
        if name not in operation.keywords and operation.name not in _PYTHON:
            name = _NUMPY.get(name, name)
        if name not in operation.keywords and (operation.keywords != ("*",) or name.startswith("_") or not node.arg):
            text = node.arg or "**"
            raise ExpressionError(f"{operation.name} takes no `{text[:40]}=` here. For example: {operation.example}.")
        return name, self._argument(operation, node.value, inputs)


def opens(node: ast.expr) -> bool:
    """Whether ``node`` is ``list(x)`` or ``tuple(x)``."""
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[_], keywords=[]):
            return True
        case _:
            return False
