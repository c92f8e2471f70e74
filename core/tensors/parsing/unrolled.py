"""Comprehensions, loops and ``map`` over a few items, written out; names that an import gave, in full.

``q, k, v = map(lambda t: t.transpose(1, 2), (q, k, v))`` becomes one expression for each of q, k and v.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import cast

from core.limits import limit
from core.tensors.operations.values import ExpressionError


def opened(node: ast.stmt, longer: Mapping[str, str]) -> list[ast.stmt]:
    """The statements that ``node`` stands for. longer: names that an import gave → what they stand for.

    Raises `ExpressionError` where writing it out would be too long.
    """
    opener = _Opener(longer)
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return _one_by_one(node, longer)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
        each = _each(node.value)
        if each is not None and not _are_short(each.over):
            return _over_several(node, node.targets[0].elts, each, opener)
    return [cast(ast.stmt, opener.visit(node))]


def _one_by_one(node: ast.Assign, longer: Mapping[str, str]) -> list[ast.stmt]:
    """``a = b = x.t()``: the first name takes the value, the others the first name."""
    first, *others = node.targets
    if not all(isinstance(target, ast.Name) for target in node.targets):
        raise ExpressionError(
            "Only names are assigned at once, y = z = x.t(); write anything else as lines of its own."
        )
    results = opened(ast.copy_location(ast.Assign([first], node.value), node), longer)
    for target in others:
        name = ast.copy_location(ast.Name(ast.unparse(first), ast.Load()), target)
        results.append(ast.copy_location(ast.Assign([target], name), target))
    return results


def numbers_of(node: ast.expr) -> list[ast.expr] | None:
    """The numbers of ``range(3)``, as nodes at its place; ``None`` for what is no range of numbers that stand there."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_] as parts, keywords=[]) if len(parts) < 4:
            given = [_whole(part) for part in parts]
        case _:
            return None
    known = [number for number in given if number is not None]
    if len(known) < len(given) or (len(known) == 3 and not known[2]):
        return None
    result, most = range(*known), limit("expression_lines")
    if len(result) > most:
        raise ExpressionError(f"`{ast.unparse(node)[:60]}`: at most {most} rounds are written out.")
    return [ast.copy_location(ast.Constant(number), node) for number in result]


def _whole(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (number := _whole(operand)) is not None:
            return -number
        case _:
            return None


class _Each:
    """An expression made once for each item: ``body`` with ``name`` for the items of ``over``."""

    def __init__(self, name: str, body: ast.expr, over: ast.expr) -> None:
        self.name = name
        self.body = body
        numbers = numbers_of(over)
        self.over = over if numbers is None else ast.copy_location(ast.Tuple(numbers, ast.Load()), over)

    def of(self, items: Sequence[ast.expr]) -> list[ast.expr]:
        """The body for each of ``items``, which are names, numbers or short chains of them."""
        most = limit("expression_nodes")
        if len(items) * sum(1 for _ in ast.walk(self.body)) > most:
            raise ExpressionError(f"Written out, this has more than {most:,} syntax nodes; write less at once.")
        return [cast(ast.expr, _Filled(self.name, item).visit(deepcopy(self.body))) for item in items]


def _each(node: ast.expr) -> _Each | None:
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[]):
            return _each(inner)
        case ast.Call(
            func=ast.Name(id="map"),
            args=[ast.Lambda(args=ast.arguments(args=[parameter], defaults=[]), body=body), over],
            keywords=[],
        ):
            return _Each(parameter.arg, body, over)
        case (
            ast.ListComp(
                elt=body, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[], is_async=0)]
            )
            | ast.GeneratorExp(
                elt=body, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[], is_async=0)]
            )
        ):
            return _Each(name, body, over)
        case _:
            return None


def _over_several(
    node: ast.Assign, targets: Sequence[ast.expr], each: _Each, opener: ast.NodeTransformer
) -> list[ast.stmt]:
    """``q, k = [t.t() for t in x.chunk(2)]``: the several tensors first, under names of their own, then each."""
    taken = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names = [name for number in range(99) if (name := f"{each.name}{number}") not in taken][: len(targets)]
    if len(names) < len(targets) or any(isinstance(target, ast.Starred) for target in targets):
        raise ExpressionError(f"`{ast.unparse(node)[:60]}`: one name for each tensor, without a star.")
    place = each.over
    first = ast.Assign(
        [
            ast.copy_location(
                ast.Tuple([ast.copy_location(ast.Name(n, ast.Store()), place) for n in names], ast.Store()), place
            )
        ],
        each.over,
    )
    items = each.of([ast.copy_location(ast.Name(name, ast.Load()), place) for name in names])
    then = ast.Assign(node.targets, ast.copy_location(ast.Tuple(items, ast.Load()), node.value))
    return [cast(ast.stmt, opener.visit(ast.copy_location(assignment, node))) for assignment in (first, then)]


def filled(name: str, item: ast.expr, body: ast.expr) -> ast.expr:
    """``body`` with ``item`` in the place of ``name``."""
    return cast(ast.expr, _Filled(name, item).visit(deepcopy(body)))


class _Filled(ast.NodeTransformer):
    """Puts ``item`` in the place of a name."""

    def __init__(self, name: str, item: ast.expr) -> None:
        self.name = name
        self.item = item

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(deepcopy(self.item), node) if node.id == self.name else node


class _Opener(ast.NodeTransformer):
    def __init__(self, longer: Mapping[str, str]) -> None:
        self.longer = longer

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Written out where ``node`` is a comprehension over items that stand there; inner ones first."""
        super().generic_visit(node)
        each = _each(node) if isinstance(node, ast.expr) else None
        if each is None or not isinstance(each.over, ast.Tuple | ast.List) or not _are_short(each.over):
            return node
        return ast.copy_location(ast.List(each.of(each.over.elts), ast.Load()), cast(ast.expr, node))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.longer or not isinstance(node.ctx, ast.Load):
            return node
        module, _, name = self.longer[node.id].rpartition(".")
        return ast.copy_location(ast.Attribute(ast.copy_location(ast.Name(module), node), name), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``torch.nn.functional.softmax`` and ``nn.functional.softmax`` are ``F.softmax``; ``torch.nn`` is ``nn``."""
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="torch"), attr="nn"), attr="functional"):
                return ast.copy_location(ast.Name("F", ast.Load()), node)
            case ast.Attribute(value=ast.Name(id="nn"), attr="functional"):
                return ast.copy_location(ast.Name("F", ast.Load()), node)
            case ast.Attribute(value=ast.Name(id="torch"), attr="nn"):
                return ast.copy_location(ast.Name("nn", ast.Load()), node)
            case _:
                return self.generic_visit(node)


def _are_short(node: ast.expr) -> bool:
    """Whether items stand there that may stand several times: nothing is worked out twice for them."""
    return isinstance(node, ast.Tuple | ast.List) and all(isinstance(i, ast.Name | ast.Constant) for i in node.elts)
