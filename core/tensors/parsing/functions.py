"""Functions and classes of the program, and the layers of torch that are written out here."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

from core.limits import cached
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.annotations import annotated
from core.tensors.parsing.calls import CallReader
from core.tensors.parsing.facts import Fact
from core.tensors.parsing.layers import LAYERS
from core.tensors.parsing.objects import (
    Bound,
    Class,
    Frame,
    Function,
    Instance,
    Named,
    PythonError,
    Ref,
    Super,
    named_in,
)

_DEEPEST = 12
_MODULE = (
    *("parameters", "named_parameters", "state_dict", "register_buffer", "register_parameter", "to", "cuda", "train"),
    *("eval", "zero_grad", "requires_grad_", "children", "modules", "float", "half", "bfloat16", "append"),
)
"""What every module of ``torch.nn`` can be asked."""


@cached("tables_kept")
def _layers() -> Mapping[str, ast.ClassDef]:
    classes = [node for node in ast.parse(LAYERS).body if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in classes}


class FunctionReader(CallReader):
    """Runs functions. made: layers of torch that the program uses; open: functions that are being run."""

    def __init__(self, text: str, machine: Any) -> None:
        super().__init__(text, machine)
        self.made: dict[str, Class] = {}
        self.open: list[tuple[Function, Any]] = []

    def invoke(self, function: Function, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        """Run a function of the program."""
        if len(self.open) >= _DEEPEST:
            raise ExpressionError(f"{self.quote(node)}: calls inside one another are followed {_DEEPEST} deep.")
        names = self._bound(function, args, named, node)
        line, typed = self.line, self.typed
        instance = args[0] if function.cls is not None and args else None
        self.open.append((function, instance))
        try:
            with self.inside(Frame(names, function.frame)):
                self.typed = function.typed
                self._checked(function.node.args, names)
                if isinstance(function.node, ast.Lambda):
                    return self.value(function.node.body)
                return self.body_of(function.node)
        finally:
            self.open.pop()
            self.typed, self.line = typed, line

    @abstractmethod
    def body_of(self, node: ast.FunctionDef) -> Any:
        """What the lines of a function return."""

    def _bound(self, function: Function, args: list[Any], named: dict[str, Any], node: ast.expr) -> dict[str, Any]:
        """What a call gives each parameter. Raises `PythonError` where something lacks or is left over."""
        try:
            bound = function.signature.bind(*args, **named)
        except (TypeError, ValueError) as problem:
            raise PythonError("TypeError", f"{self.quote(node)}: `{function.name[:40]}`: {problem}.") from None
        bound.apply_defaults()
        return bound.arguments

    def _checked(self, spec: ast.arguments, names: Mapping[str, Any]) -> None:
        """Parameters held against what their annotations say of shapes."""
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if arg.annotation is not None and arg.arg in names:
                self.annotate(arg.arg, arg.annotation, names[arg.arg], arg.lineno)

    def annotate(self, name: str, annotation: ast.expr, value: Any, line: int) -> None:
        """``x: Float[torch.Tensor, "batch seq"]``: the names held against the shape."""
        match annotation:
            case ast.Subscript(value=kind, slice=ast.Tuple(elts=[_, ast.Constant(value=str() as dims)])):
                tensor = self.machine.tensor(value.number) if isinstance(value, Ref) else ()
                if isinstance(tensor, tuple | list):
                    return
                dtype = str(tensor.dtype).removeprefix("torch.")
                shape = tuple(tensor.shape)
                wrong = annotated(ast.unparse(kind).split(".")[-1], dims, shape, dtype, self.frame.sizes)
                found = wrong or f"shape {shape}"
                self.facts.append(Fact(line, f"{name}: {ast.unparse(kind)}[{dims.strip()}]", found, not wrong))
            case _:
                return

    def layer(self, name: str) -> Class | None:
        """A layer of torch, written out here; ``None`` for one that is not."""
        if name not in self.made and name in _layers():
            frame, typed = self.frame, self.typed
            self.frame, self.typed = Frame(), False
            try:
                self.made[name] = self.class_of(_layers()[name])
            finally:
                self.frame, self.typed = frame, typed
        return self.made.get(name)

    def class_of(self, node: ast.ClassDef) -> Class:
        """A class of the program: its functions, and what its lines assign."""
        bases = tuple(self.value(base) for base in node.bases)
        if not all(isinstance(base, Class | Named) for base in bases) or node.keywords:
            raise ExpressionError(
                f"`class {node.name[:40]}`: a class builds on nn.Module or another class of the text."
            )
        made = Class(node.name, bases)
        for part in node.body:
            match part:
                case ast.FunctionDef():
                    made.fields[part.name] = self.function(part, made)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    made.fields[name] = self.value(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    made.fields[name] = self.value(value)
                case ast.AnnAssign() | ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise ExpressionError(f"{self.quote(part)}: a class holds functions and plain values here.")
        return made

    def new(self, cls: Class, args: list[Any], named: dict[str, Any], node: ast.expr) -> Instance:
        instance = Instance(cls)
        if cls.is_a("Module"):
            instance.fields["training"] = True
        start = cls.find("__init__")
        if isinstance(start, Function):
            with self.holding() as held:
                held.append(instance)
                self.invoke(start, [instance, *args], named, node)
        elif args or named:
            raise PythonError("TypeError", f"{self.quote(node)}: `{cls.name[:40]}` takes nothing.")
        return instance

    def super_of(self, node: ast.expr) -> Super:
        function, instance = self.open[-1] if self.open else (None, None)
        if function is None or function.cls is None or not isinstance(instance, Instance):
            raise ExpressionError(f"{self.quote(node)} stands in no method.")
        return Super(instance, function.cls)

    def of_super(self, owner: Super, name: str, node: ast.Attribute) -> Any:
        found = (base.find(name) for base in owner.cls.bases if isinstance(base, Class))
        function = next((item for item in found if item is not None), None)
        return Bound(owner.owner, name, function) if isinstance(function, Function) else Bound(owner, name)

    def of_base(self, owner: Super, name: str, args: list[Any], named: dict[str, Any], node: ast.expr) -> Any:
        """``super().__init__(…)`` of a class of torch."""
        if name == "__init__":
            if owner.cls.is_a("Optimizer"):
                params, defaults = [*args, *named.values()][:2]
                groups = self.items(params, node)
                settings = cast("dict[str, Any]", defaults)
                owner.owner.fields["param_groups"] = [{"params": groups, **settings}]
                owner.owner.fields["state"] = defaultdict[Any, dict[Any, Any]](dict)
            return None
        return self.of_layer(owner.owner, name, args, node)

    def of_instance(self, owner: Instance, name: str, node: ast.Attribute) -> Any:
        if name in owner.fields:
            return owner.fields[name]
        found = owner.cls.find(name)
        if isinstance(found, Function):
            if any(ast.unparse(item) == "property" for item in cast(ast.FunctionDef, found.node).decorator_list):
                return self.invoke(found, [owner], {}, node)
            if any(ast.unparse(item) == "staticmethod" for item in cast(ast.FunctionDef, found.node).decorator_list):
                return found
            return Bound(owner, name, found)
        if found is not None:
            return found
        if name in _MODULE:
            return Bound(owner, name)
        if owner.cls.name == "self":
            raise ExpressionError(f"`self.{name[:40]}`: there is no self here; give its class, or a function instead.")
        raise PythonError("AttributeError", f"{self.quote(node)}: this {owner.cls.name[:40]} has no `{name[:40]}`.")

    def of_layer(self, owner: Instance, name: str, args: list[Any], node: ast.expr) -> Any:
        """What every module, and every optimizer, of torch can be asked."""
        kept = {
            key: ref for key, ref in named_in(owner.fields).items() if self.machine.tensor(ref.number).requires_grad
        }
        match name:
            case "parameters":
                return list(kept.values())
            case "named_parameters":
                return list(kept.items())
            case "state_dict":
                return dict(named_in(owner.fields))
            case "register_buffer" | "register_parameter" if len(args) > 1 and isinstance(args[0], str):
                owner.fields[args[0]] = args[1]
                return None
            case "zero_grad":
                groups: Any = owner.fields.get("param_groups", [{"params": list(kept.values())}])
                for ref in (ref for group in groups for ref in group["params"]):
                    self.machine.clear(ref.number)
                return None
            case "children" | "modules":
                return [value for value in owner.fields.values() if isinstance(value, Instance)]
            case "append" if "layers" in owner.fields:
                owner.fields["layers"].append(args[0])
                return None
            case _:
                return owner
