"""Pasted text as Python takes it, without prompts and fences, flush left; and sizes as a person types them."""

from __future__ import annotations

import ast
import re
import textwrap

from core.limits import limit
from core.messages import message
from core.tensors.operations.values import ExpressionError, check_size

_QUOTED = re.compile(r"""('''|\"\"\")(?:.|\n)*?(?:\1|\Z)|'[^'\n]*'?|"[^"\n]*"?|#[^\n]*""")
"""A string in quotes, closed or not, or a comment outside of one."""


def code_of(text: str) -> str:
    """``text`` with spaces in place of its comments, so that every step keeps its line."""
    return _QUOTED.sub(lambda match: " " * len(match[0]) if match[0][0] == "#" else match[0], text)


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
    """``text`` as Python reads it, as far as that is certain; lines keep their numbers."""
    lines = [line.rstrip() for line in text.replace("\t", "    ").splitlines()]
    code = plain_code("\n".join(lines)).rstrip()
    flush = textwrap.dedent(code)
    return flush if _parses(flush) else next(filter(_parses, (aligned(code),)), flush)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


_HEADS = re.compile(r"^(def|with|for|if|try|while|class|@)", re.MULTILINE)


def aligned(text: str) -> str:
    """``text`` flush left. Indentation stays under the head of a function or ``with``, and only there."""
    lines = [line.rstrip() for line in text.replace("\t", "    ").strip().splitlines()]
    flat = "\n".join(line.strip() for line in lines)
    if not _HEADS.search(code_of(flat)):
        return flat
    if lines and not _HEADS.match(lines[0]):  # the first line of what was pasted has often lost its indentation
        lines[0] = " " * min((len(line) - len(line.lstrip()) for line in lines[1:] if line), default=0) + lines[0]
    return _indented(textwrap.dedent("\n".join(lines)))


_CLAUSE = re.compile(r" *(except|finally|else|elif)\b")


def _indented(text: str) -> str:
    """``text`` with blocks indented where a paste has lost that: up to an empty line or the next clause."""
    lines, codes = text.split("\n"), code_of(text).split("\n")
    result: list[str] = []
    missing = 0
    for number, (line, code) in enumerate(zip(lines, codes, strict=True)):
        if not code.strip():
            missing = missing if line.strip() else 0
        elif missing and _CLAUSE.match(code):
            missing -= 1
        result.append(" " * 4 * missing + line)
        later = next((other for other in codes[number + 1 :] if other.strip()), "")
        depth = len(code) - len(code.lstrip())
        if _HEADS.match(code.strip()) or _CLAUSE.match(code):
            missing += code.rstrip().endswith(":") and bool(later) and len(later) - len(later.lstrip()) <= depth
    return "\n".join(result)


def read_shape(text: str, cap: str = "tensor_elements") -> tuple[int, ...]:
    """Return the shape that a user typed: ``2, 3``, ``(2, 3)``, ``2 × 3`` or ``()`` for a single number.

    cap: the entry of core.limits that caps its elements; ``counted_elements`` where `trace` takes it.

    Raises `ExpressionError` for anything else, and beyond the caps on rank and elements.
    """
    shape = _sizes(text)
    check_size(shape, message("tensors.problem.start"), cap)
    return shape


def read_stride(text: str) -> tuple[int, ...]:
    """Return the strides that a user typed, written as a shape is. Raises `ExpressionError` for anything else."""
    return _sizes(text)


def _sizes(text: str) -> tuple[int, ...]:
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
