"""What the names of a program stand for, besides numbers, texts, tuples, lists and dictionaries of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Any, cast

from core.tensors.operations.values import ExpressionError


@dataclass(eq=False, slots=True)
class Ref:
    """A tensor, by the step that gave it; ``several``: all that a split gave, of which none is picked yet."""

    number: int
    several: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """A module, by its path: ``torch``, ``torch.cuda``."""

    path: str


@dataclass(frozen=True, slots=True)
class Named:
    """A function of a module, ``module.name``; without a module one of Python or einops."""

    module: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(eq=False, slots=True)
class Frame:
    """Names of the program, of a call or of a comprehension; ``sizes``: of the dimensions that annotations named."""

    names: dict[str, Any] = field(default_factory=dict[str, Any])
    outer: Frame | None = None
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    def around(self) -> list[Frame]:
        """The frames around this one, outermost first, and itself."""
        return [*(self.outer.around() if self.outer else ()), self]

    def find(self, name: str) -> Frame | None:
        """The innermost frame that has ``name``."""
        return next((frame for frame in reversed(self.around()) if name in frame.names), None)


@dataclass(eq=False, slots=True)
class Function:
    """A function of the program. typed: the visitor typed it; it is not one of the layers written out here."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame
    defaults: dict[str, Any]
    typed: bool = True
    cls: Class | None = None

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "lambda"

    @property
    def signature(self) -> Signature:
        """Its parameters. Raises ``ValueError`` where one stands twice."""
        spec = self.node.args
        rows = (spec.posonlyargs, spec.args, [spec.vararg], spec.kwonlyargs, [spec.kwarg])
        kinds = zip(type(Parameter.VAR_KEYWORD), rows, strict=True)
        pairs = [(arg.arg, kind) for kind, row in kinds for arg in row if arg is not None]
        default = self.defaults.get
        return Signature([Parameter(name, kind, default=default(name, Parameter.empty)) for name, kind in pairs])


@dataclass(eq=False, slots=True)
class Class:
    """A class. bases: its own first; ``Named`` for one of torch."""

    name: str
    bases: tuple[Any, ...]
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    def find(self, name: str) -> Any:
        """What the class or a base of it calls ``name``; ``None`` for nothing."""
        if name in self.fields:
            return self.fields[name]
        found = (base.find(name) for base in self.bases if isinstance(base, Class))
        return next((item for item in found if item is not None), None)

    def is_a(self, name: str) -> bool:
        """Whether this is, or builds on, the class of this name."""
        return self.name == name or any(
            base.is_a(name) if isinstance(base, Class) else base.name == name for base in self.bases
        )


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a class of the program."""

    cls: Class
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """A method of a value. start: the class behind which ``super()`` looks for it."""

    owner: Any
    name: str
    function: Function | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Super:
    """``super()``: the instance, and the class whose bases are meant."""

    owner: Instance
    cls: Class


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a tensor or its storage begins, to be compared only."""

    storage: int
    byte: int


@dataclass(frozen=True, slots=True)
class Storage:
    """``x.untyped_storage()``, which may be asked where it begins and how long it is."""

    ref: Ref
    typed: bool = False


def tensors_in(value: Any, seen: set[int] | None = None) -> Iterable[Ref]:
    """Every tensor that can be reached from ``value``."""
    known: set[int] = set() if seen is None else seen
    if isinstance(value, Ref):
        yield value
        return
    if isinstance(value, int | float | str | bytes | None) or id(value) in known:
        return
    known.add(id(value))
    inner: Sequence[Any] = ()
    match value:
        case tuple() | list():
            inner = cast("Sequence[Any]", value)
        case dict():
            inner = list(cast("dict[Any, Any]", value).values())
        case Instance():
            inner = list(value.fields.values())
        case Frame():
            inner = [*value.names.values(), value.outer]
        case Function():
            inner = [value.frame, *value.defaults.values()]
        case Bound() | Super():
            inner = [value.owner]
        case Storage():
            inner = [value.ref]
        case _:
            pass
    for item in inner:
        yield from tensors_in(item, known)


def named_in(names: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Ref]:
    """Tensors by the names that stand for them: ``w``, ``layer.weight``."""
    found: dict[str, Ref] = {}
    for name, value in names.items():
        if isinstance(value, Ref):
            found[prefix + name] = value
        elif isinstance(value, Instance) and depth < 4:
            found |= named_in(value.fields, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list) and depth < 4:
            items = {str(at): item for at, item in enumerate(cast("list[Any]", value)) if isinstance(item, Instance)}
            found |= named_in(items, f"{prefix}{name}.", depth + 1)
    return found


class PythonError(ExpressionError):
    """What Python itself would raise; ``kind`` is the name of its class, so that ``except`` may take it."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
