"""Pasted text as Python takes it, without prompts and fences, flush left; and sizes as a person types them."""

from __future__ import annotations

import ast
import re
import textwrap

from core.limits import limit
from core.messages import message
from core.tensors.operations.values import ExpressionError

_PROMPT = re.compile(r"\s*(>>>|\.\.\.|In \[\d*\]:|\s*\.\.\.:)( |$)")


def plain_code(text: str) -> str:
    """Return a paste without fences, prompts, and the output between them. Every line keeps its number."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if re.match(r"\s*(```|~~~)", line)]
    if fences:
        first, last = fences[0], fences[1] if len(fences) > 1 else len(lines)
        lines = [line if first < number < last else "" for number, line in enumerate(lines)]
    if any(re.match(r"\s*(>>>|In \[\d*\]:)", line) for line in lines):
        lines = [line[found.end() :] if (found := _PROMPT.match(line)) else "" for line in lines]
    return "\n".join(lines)


def readable(text: str) -> str:
    """Return ``text`` as Python reads it, as far as that is certain; lines keep their numbers."""
    lines = [line.rstrip() for line in text.replace("\t", "    ").splitlines()]
    code = plain_code("\n".join(lines)).rstrip()
    flush = textwrap.dedent(code)
    first, _, rest = code.partition("\n")  # whose indentation is often not selected
    return flush if parsed(flush) else next(filter(parsed, (f"{first.strip()}\n{textwrap.dedent(rest)}",)), flush)


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of ``text``, None if Python cannot read it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_shape(text: str) -> tuple[int, ...]:
    """Return the sizes or strides that a user typed: ``2, 3``, ``(2, 3)``, ``2 × 3`` or ``()`` for a single number.

    Raises `ExpressionError` for anything else.
    """
    inner = text.strip()
    if not inner:
        raise ExpressionError(message("tensors.problem.no_sizes"))
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1]
        if not inner.strip():
            return ()
    sizes = re.split(r"\s*[,×x]\s*|\s+", inner.strip().removesuffix(","))
    if len(text) > limit("number_chars") or not all(re.fullmatch(r"[0-9]{1,12}", size) for size in sizes):
        raise ExpressionError(message("tensors.problem.sizes", text=text.strip()[:40]))
    return tuple(int(size) for size in sizes)
