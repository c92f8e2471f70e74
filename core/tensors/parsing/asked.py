"""Names that a program uses and nobody defines: what they seem to be, and a value to begin with."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["number", "tensor"]


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
    (r"k|out_?(features|dim)|output_?dim|d_out|head_?dim|d_?head|d_?k|d_?v|dh|hd|hs", "4"),
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


_ALIKE = 0.75
"""How much of two names is the same where one may be a slip of the other."""


def free_names(statements: Sequence[ast.stmt], known: set[str]) -> dict[str, list[ast.AST]]:
    """Names that are read before anything sets them, in their order, each with the nodes that it stands in."""
    free: dict[str, list[ast.AST]] = {}
    parents: dict[ast.AST, ast.AST] = {}
    bound = set(known)
    for statement in statements:
        for node in ast.walk(statement):
            for child in ast.iter_child_nodes(node):
                parents[child] = node
        _walk(statement, bound, free, parents)
    return free


def _walk(node: ast.AST, bound: set[str], free: dict[str, list[ast.AST]], parents: Mapping[ast.AST, ast.AST]) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            parent = parents.get(node)
            if name not in bound and not (isinstance(parent, ast.Call) and parent.func is node):
                free.setdefault(name, []).append(node if parent is None else parent)
        case ast.Name(id=name):
            bound.add(name)
        case ast.Assign(targets=targets, value=value):
            for part in (value, *targets):
                _walk(part, bound, free, parents)
        case ast.AugAssign(target=ast.Name(id=name) as target, value=value):
            if name not in bound:
                free.setdefault(name, []).append(node)
            _walk(value, bound, free, parents)
            _walk(target, bound, free, parents)
        case ast.AnnAssign(target=ast.Name(id=name) as target, value=None, annotation=annotation):
            if name not in bound:
                free.setdefault(name, []).append(annotation)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _walk(value, bound, free, parents)
            _walk(target, bound, free, parents)
        case ast.For(target=target, iter=over, body=body):
            for part in (over, target, *body):
                _walk(part, bound, free, parents)
        case ast.ListComp(elt=elt, generators=[part]) | ast.GeneratorExp(elt=elt, generators=[part]):
            _walk(part.iter, bound, free, parents)
            inner = bound | {name.id for name in ast.walk(part.target) if isinstance(name, ast.Name)}
            for item in (elt, *part.ifs):
                _walk(item, inner, free, parents)
        case ast.Lambda(args=arguments, body=body):
            _walk(body, bound | {item.arg for item in arguments.args}, free, parents)
        case ast.ExceptHandler(name=name, body=body):
            bound |= {name} if name else set()
            for part in body:
                _walk(part, bound, free, parents)
        case _:
            for child in ast.iter_child_nodes(node):
                _walk(child, bound, free, parents)


def asked(statements: Sequence[ast.stmt], known: set[str]) -> tuple[Asked, ...]:
    """What has to be given, with the role that each name's use shows and a value that its name suggests."""
    result: list[Asked] = []
    free = free_names(statements, known)
    nodes = [node for statement in statements for node in ast.walk(statement)]
    written = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(getattr(node, "ctx", None), ast.Store)
    }
    sizes: dict[str, str] = {}
    for name, places in free.items():
        role = _role(name, places)
        if role == "number":
            text = suggested(name)
            sizes[name] = text
        else:
            text = _shape(name, places, statements, sizes)
        meant = get_close_matches(name, written, 1, _ALIKE) if len(name) > 2 else []
        result.append(Asked(name, role, text, "".join(meant)))
    return tuple(result)


def suggested(name: str) -> str:
    """A small value for a size of this name."""
    return next((text for pattern, text in _SIZES if re.fullmatch(pattern, name.lower())), "4")


def _role(name: str, places: Sequence[ast.AST]) -> Role:
    for place in places:
        match place:
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


def _shape(name: str, places: Sequence[ast.AST], statements: Sequence[ast.stmt], sizes: Mapping[str, str]) -> str:
    """The sizes of a tensor: by its annotation, by how it is unpacked, by a pattern; else two dimensions."""
    for place in places:
        dims = next(
            (part.value for part in ast.walk(place) if isinstance(part, ast.Constant) and isinstance(part.value, str)),
            "",
        )
        if isinstance(place, ast.Subscript) and "Tensor" in ast.unparse(place) and dims:
            names = ["batch" if part == "..." else part.lstrip("*#?") for part in dims.split()]
            return ", ".join(part if part.isdecimal() else sizes.get(part, suggested(part)) for part in names) or "()"
    for statement in statements:
        for node in ast.walk(statement):
            match node:
                case (
                    ast.Assign(
                        targets=[ast.Tuple(elts=names)], value=ast.Attribute(value=ast.Name(id=owner), attr="shape")
                    )
                    | ast.Assign(
                        targets=[ast.Tuple(elts=names)],
                        value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="size"), args=[]),
                    )
                ) if owner == name:
                    return ", ".join(suggested(ast.unparse(part)) for part in names)
                case ast.Call(
                    func=ast.Name(id="rearrange" | "reduce"),
                    args=[ast.Name(id=owner), ast.Constant(value=str() as text), *_],
                ) if owner == name:
                    inner = text.partition("->")[0]
                    given = {k.arg: 2 for k in node.keywords}
                    groups = re.findall(r"\([^)]*\)|[\w.]+", inner)
                    return ", ".join(_group(group, given) for group in groups)
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr="transpose" | "permute"), args=parts
                ) if owner == name:
                    numbers = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, int)]
                    rank = max((*(n + 1 for n in numbers), 2), default=2)
                    return ", ".join(["2", "3", "4", "8", "2", "2", "2", "2"][:rank])
                case _:
                    pass
    return "2, 3"


def _group(text: str, given: Mapping[str | None, int]) -> str:
    names = re.findall(r"[\w.]+", text)
    size = 1
    for name in names:
        size *= 2 if name in given or name == "..." else int(float(suggested(name)) or 2)
    return str(size)
