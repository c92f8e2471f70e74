"""Names that a program uses and nobody defines: what they seem to be, and a value to begin with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, TypeAlias, cast

Role: TypeAlias = Literal["number", "tensor", "device"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A name to be given. text: ``4`` for a number, ``2, 3`` for the sizes of a tensor. meant: a name much like it."""

    name: str
    role: Role
    text: str
    meant: str = ""


_SIZES: Sequence[tuple[str, str]] = (
    (r"b|bs|bsz|batch|batch_?size|num_?batches", "2"),
    (r"h|nh|heads?|n_?heads?|num_?heads|n_?kv_?heads", "2"),
    (r"t|s|l|n|seq|seq_?len(gth)?|len(gth)?|block_?size|context_?length|q_?len|k_?len|m", "3"),
    (
        r"d|c|e|dim|hidden|d_?model|n_?embd|embed_?dim|hidden_?(dim|size)|in_?(features|dim)|input_?dim|d_in|channels",
        "8",
    ),
    (r"d_?ff|intermediate_?size|hidden_?features", "16"),
    (r"k|out_?(features|dim)|output_?dim|d_out|head_?(dim|size)|d_?head|d_?k|d_?v|dh|hd|hs", "4"),
    (r"v|vocab|vocab_?size|num_?(classes|embeddings)", "10"),
    (r"n_?layers?|num_?layers|steps|num_?(train_?)?steps|r|p", "2"),
    (r"w|width|height", "4"),
    (r"lr|learning_?rate|eps|epsilon|dropout|scale|temperature|alpha|beta[12]?|momentum|weight_?decay", "0.1"),
    (r"i|j|layer|start|start_?pos|offset|pad(ding)?|diagonal|seed", "0"),
)
"""Names of sizes as papers and repositories use them, and a small value for each."""

_SIZED = (
    *("zeros", "ones", "empty", "rand", "randn", "full", "arange", "eye", "randint", "randperm", "linspace", "range"),
    *("view", "reshape", "expand", "repeat", "unflatten", "split", "chunk", "narrow", "roll", "tile", "rearrange"),
)
"""Calls whose arguments are sizes."""


class _Free:
    """Walks a program with the names that are bound so far.

    free: names that are read before anything sets them, in their order, each with the nodes that it stands in.
    """

    def __init__(self, statements: Sequence[ast.stmt], known: set[str]) -> None:
        self.free: dict[str, list[ast.AST]] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        for statement in statements:
            for node in ast.walk(statement):
                self.parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
        self.alone = uncalled(ast.Module(list(statements), []))
        self.known = known
        self.every = {
            node.id for node in self.parents if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.every |= {node.name for node in statements if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        bound = set(known)
        for statement in statements:
            self.walk(statement, bound)

    def add(self, name: str, place: ast.AST) -> None:
        self.free.setdefault(name, []).append(place)

    def walk(self, node: ast.AST | None, bound: set[str]) -> None:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if "self" not in bound:
                parent = self.parents.get(node)
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    self.add(f"self.{name}", parent or node)
            case ast.Name(id="self"):
                pass
            case ast.Name(id=name, ctx=ast.Load()):
                parent = self.parents.get(node)
                called = isinstance(parent, ast.Call) and parent.func is node
                if name not in bound and (not called or (is_device(name) and not cast(ast.Call, parent).args)):
                    self.add(name, parent or node)
            case ast.Name(id=name):
                bound.add(name)
            case ast.Assign(targets=targets, value=value):
                self.each((value, *targets), bound)
            case ast.AugAssign(target=target, value=value):
                if isinstance(target, ast.Name) and target.id not in bound:
                    self.add(target.id, node)
                self.each((value, target), bound)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                if value is None and isinstance(target, ast.Name) and target.id not in bound:
                    self.add(target.id, annotation)
                self.each((value, target), bound)
            case ast.For(target=target, iter=over, body=body):
                self.each((over, target, *body), bound)
            case ast.ListComp(generators=parts) | ast.GeneratorExp(generators=parts) | ast.DictComp(generators=parts):
                inner = set(bound)
                for part in parts:
                    self.each((part.iter, part.target, *part.ifs), inner)
                made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                self.each(made, inner)
            case ast.Lambda(args=arguments, body=body):
                self.walk(body, bound | {item.arg for item in _parameters(arguments)})
            case ast.ExceptHandler(name=name, body=body):
                bound |= {name} if name else set()
                self.each(body, bound)
            case ast.FunctionDef(name=name):
                self.function(node, bound, name in self.alone)
                bound.add(name)
            case ast.ClassDef(name=name, body=body):
                for part in body:
                    if isinstance(part, ast.FunctionDef):
                        self.function(part, bound, name in self.alone and part.name in ("__init__", "forward"), True)
                bound.add(name)
            case None:
                pass
            case _:
                self.each(ast.iter_child_nodes(node), bound)

    def each(self, nodes: Iterable[ast.AST | None], bound: set[str]) -> None:
        for node in nodes:
            self.walk(node, bound)

    def function(self, node: ast.FunctionDef, bound: set[str], alone: bool, method: bool = False) -> None:
        """Read the lines of a function. alone: no call is known, so its parameters are asked for unless they have
        values."""
        arguments = node.args
        every = _parameters(arguments)
        defaults = {item.arg for item in [*arguments.posonlyargs, *arguments.args][::-1][: len(arguments.defaults)]}
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults |= {item.arg for item, value in pairs if value is not None}
        inner = set(bound) if alone else bound | self.every
        for item in every:
            if not alone or item.arg in defaults or (item.arg == "self" and method):
                inner.add(item.arg)
            elif item.arg not in inner and item.arg != "self":
                self.add(item.arg, item.annotation or item)
        self.each(node.body, inner)


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*every, *(item for item in (arguments.vararg, arguments.kwarg) if item is not None)]


def asked(statements: Sequence[ast.stmt], known: set[str], shape: Sequence[int] = ()) -> tuple[Asked, ...]:
    """Return the names that a program uses without a definition, each with the role of its use and a suggested value.

    shape: of x, which also determines the sizes in a view of x.
    """
    result: list[Asked] = []
    free = _Free(statements, known).free
    nodes = [node for statement in statements for node in ast.walk(statement)]
    written = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    sizes: dict[str, str] = {}
    for full, places in free.items():
        owner, _, name = full.rpartition(".")
        role = _role(name, places)
        if role == "device":
            text = "cpu"
        elif role == "number":
            text = suggested(name)
            sizes[name] = text
        else:
            text = _shape(name, places, nodes, sizes)
        meant = get_close_matches(name, written, 1, 0.75) if len(name) > 2 and not owner else []
        result.append(Asked(full, role, text, "".join(meant)))
    fitting = _fitting(nodes, {item.name: item.text for item in result if item.role == "number"}, shape)
    return tuple(replace(item, text=fitting.get(item.name, item.text)) for item in result)


def _fitting(nodes: Sequence[ast.AST], texts: Mapping[str, str], shape: Sequence[int]) -> dict[str, str]:
    """Return the sizes of ``x.view(B, N, H, D)`` as x has them: the first ones each its own, the others share the
    last."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="x"), attr="view" | "reshape"), args=args):
                names = [arg.id for arg in args if isinstance(arg, ast.Name) and arg.id in texts]
                if not shape or len(names) < len(args) or len(set(names)) < max(len(args), len(shape)):
                    continue
                found, left = [str(size) for size in shape[:-1]], shape[-1]
                for name in names[len(found) : -1]:
                    size = int(texts[name]) if texts[name].isdecimal() and int(texts[name]) else 1
                    found.append(str(size if left % size == 0 else 1))
                    left //= int(found[-1])
                return dict(zip(names, [*found, str(left)], strict=True))
            case _:
                pass
    return {}


def suggested(name: str) -> str:
    """Return a small value for a size of this name."""
    return next((text for pattern, text in _SIZES if re.fullmatch(pattern, name.lower())), "4")


def is_device(name: str) -> bool:
    """Return whether a name is one of a device, or of what finds one."""
    return re.fullmatch(r"(get_)?(the_)?dev(ice)?", name.lower()) is not None


def _role(name: str, places: Sequence[ast.AST]) -> Role:
    if is_device(name):
        return "device"
    for place in places:
        match place:
            case ast.Name(id="int" | "float"):  # an annotation
                return "number"
            case ast.Attribute() | ast.Subscript(ctx=ast.Store()):
                return "tensor"
            case ast.BinOp(op=ast.MatMult()):
                return "tensor"
            case ast.Subscript(value=ast.Name(id=other)) if other == name:
                return "tensor"
            case ast.Subscript() if "Tensor" in ast.unparse(place):
                return "tensor"
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)) if called in _SIZED:
                first = place.args[:1] if called == "rearrange" else []
                return "tensor" if any(isinstance(arg, ast.Name) and arg.id == name for arg in first) else "number"
            case ast.keyword() | ast.Slice() | ast.FloorDiv():
                return "number"
            case ast.BinOp(left=left, op=op, right=right):
                others = [side for side in (left, right) if not (isinstance(side, ast.Name) and side.id == name)]
                if isinstance(op, ast.FloorDiv) or all(isinstance(side, ast.Constant) for side in others):
                    return "number" if name.isupper() or _is_size(name) else "tensor"
            case _:
                pass
    if name.isupper() and name not in ("Q", "K", "V", "W", "X", "Y"):
        return "number"
    return "number" if len(name) > 1 and _is_size(name) else "tensor"


def _is_size(name: str) -> bool:
    return any(re.fullmatch(pattern, name.lower()) for pattern, _ in _SIZES)


def _shape(name: str, places: Sequence[ast.AST], nodes: Sequence[ast.AST], sizes: Mapping[str, str]) -> str:
    """Return the sizes of a tensor: by its annotation, by how it is unpacked, by a pattern; else two dimensions."""
    for place in places:
        dims = next(
            (part.value for part in ast.walk(place) if isinstance(part, ast.Constant) and isinstance(part.value, str)),
            "",
        )
        if isinstance(place, ast.Subscript) and "Tensor" in ast.unparse(place) and dims:
            names = ["batch" if part == "..." else part.lstrip("*#?") for part in dims.split()]
            return ", ".join(part if part.isdecimal() else sizes.get(part, suggested(part)) for part in names) or "()"
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=names)],
                value=ast.Attribute(value=ast.Name(id=owner), attr="shape")
                | ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="size"), args=[]),
            ) if owner == name:
                return ", ".join(suggested(ast.unparse(part)) for part in names)
            case ast.Call(
                func=ast.Name(id="rearrange" | "reduce"),
                args=[ast.Name(id=owner), ast.Constant(value=str() as text), *_],
            ) if owner == name:
                given = {keyword.arg for keyword in node.keywords}
                groups = re.findall(r"\([^)]*\)|[\w.]+", text.partition("->")[0])
                return ", ".join(_group(group, given) for group in groups)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="transpose" | "permute"), args=parts) if (
                owner == name
            ):
                numbers = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, int)]
                rank = max((*(n + 1 for n in numbers), 2))
                return ", ".join(["2", "3", "4", "8", "2", "2", "2", "2"][:rank])
            case _:
                pass
    return "2, 3"


def _group(text: str, given: set[str | None]) -> str:
    names = re.findall(r"[\w.]+", text)
    size = 1
    for name in names:
        size *= 2 if name in given or name == "..." else int(float(suggested(name)) or 2)
    return str(size)


def uncalled(module: ast.Module) -> set[str]:
    """Return the functions and classes of the outermost level that no other line names; none where the program uses one
    itself."""
    made = [part for part in module.body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    names = {part.name for part in made}
    uses = {
        part: {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} & names - {getattr(part, "name", "")}
        for part in module.body
    }
    if any(uses[part] for part in module.body if part not in made):
        return set()
    return names.difference(*uses.values())
