"""The syntax tree of a program: parsed, never evaluated, and capped before anything walks it."""

from __future__ import annotations

import ast
import re

from core.limits import limit
from core.tensors.operations.lookup import REFUSED
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import EXAMPLE

_BLOCK = re.compile(r"^ *(async|class|elif|else|except|finally|if|match|try|while)\b[^\n]*:", re.MULTILINE)
"""A line that heads a block which is not understood; its lines may have lost their indentation by then."""


def parsed(text: str) -> ast.Module:
    """The syntax tree of ``text``. Raises `ExpressionError` for what Python does not read, and beyond the caps."""
    try:
        module = ast.parse(text)  # parses only
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        block = _BLOCK.search(text)
        if block:
            raise ExpressionError(no_statement(block[0].strip().removesuffix(":"))) from None
        reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
        raise ExpressionError(f"This is not a complete expression: {reason}. For example: {EXAMPLE}.") from None
    _check_tree(module)
    return module


def no_statement(text: str) -> str:
    """What to say of a statement that is not understood."""
    return (
        f"`{text.splitlines()[0][:60]}`: expressions on x and assignments are run here, line after line, those of one "
        "function and under torch.no_grad() too, and no other statement: no branch, class or loop but over a range. "
        f"Write out the lines that x goes through. For example: {EXAMPLE}."
    )


def _check_tree(module: ast.Module) -> None:
    """Cap the number of nodes and how deep they lie, and refuse what is left out by design, naming the reason."""
    nodes = deepest = 0
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
            if name in REFUSED:
                raise ExpressionError(f"`{name}` is refused here by design: {REFUSED[name]}.")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
