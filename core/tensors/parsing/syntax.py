"""The syntax tree of a program: parsed, never evaluated, and capped before anything walks it."""

from __future__ import annotations

import ast
import re
from contextlib import suppress

from core.limits import limit
from core.tensors.operations.lookup import REFUSED
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.facts import HELPERS
from core.tensors.parsing.text import EXAMPLE

_BLOCK = re.compile(r"^ *(async|elif|else|except|finally|match|while)\b[^\n]*:", re.MULTILINE)
"""A line that heads a block which is not understood; its lines may have lost their indentation by then."""


def parsed(text: str) -> ast.Module:
    """The syntax tree of ``text``. Raises `ExpressionError` for what Python does not read, and beyond the caps."""
    try:
        module = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        block = _BLOCK.search(text)
        if block:
            raise ExpressionError(no_statement(block[0].strip().removesuffix(":"))) from None
        reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
        raise ExpressionError(f"This is not a complete expression: {reason}. For example: {EXAMPLE}.") from None
    module.body = [part for part in module.body if not (isinstance(part, ast.FunctionDef) and part.name in HELPERS)]
    _check_tree(module)
    return module


def _tree(text: str) -> ast.Module:
    """What Python parses, which runs nothing; once more where another thread's parsing came between.

    Python 3.11 counts the depth of what it parses for all threads at once, and takes the sum for an error of its own.
    """
    for _ in range(20):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def uncalled(module: ast.Module) -> set[str]:
    """Functions and classes of the outermost level that no other line names."""
    made = [part for part in module.body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    found: set[str] = set()
    for part in made:
        others = (node for other in module.body if other is not part for node in ast.walk(other))
        if not any(isinstance(node, ast.Name) and node.id == part.name for node in others):
            found.add(part.name)
    return found


def no_statement(text: str) -> str:
    """What to say of a statement that is not understood."""
    return (
        f"`{text.splitlines()[0][:60]}` is not run here. What is: assignments, expressions, `if`, `for`, `try`, "
        f"`assert`, `print`, functions, classes, and `with torch.no_grad()`. For example: {EXAMPLE}."
    )


def _check_tree(module: ast.Module) -> None:
    """Cap the number of nodes and how deep they lie, and refuse what is left out by design, naming the reason."""
    nodes = deepest = 0
    asked: set[int] = set()
    level: list[ast.AST] = [module]
    while level:
        nodes += len(level)
        deepest += 1
        if nodes > limit("expression_nodes") or deepest > limit("expression_levels"):
            what = f"More than {limit('expression_nodes')} syntax nodes"
            if deepest > limit("expression_levels"):
                what = f"More than {limit('expression_levels')} syntax nodes inside one another"
            raise ExpressionError(f"{what}; write less at once.")
        for node in level:
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if isinstance(node, ast.Attribute) and node.attr in ("data_ptr", "nbytes"):
                asked |= {id(part) for part in ast.walk(node.value)}  # where a storage lies, or how large it is
            if name in REFUSED and not (name == "untyped_storage" and id(node) in asked):
                raise ExpressionError(f"`{name}` is refused here by design: {REFUSED[name]}.")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
