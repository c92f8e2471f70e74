"""Pasted text as Python takes it: without prompts and fences, flush left."""

from __future__ import annotations

import ast
import re
import textwrap

from core.tensors.parsing.text import aligned

_PROMPT = re.compile(r"^\s*(>>>|\.\.\.|In \[\d+\]:|   \.\.\.:) ?")
_FENCE = re.compile(r"^\s*```\w*\s*$")


def readable(text: str) -> str:
    """``text`` as Python reads it, as far as that is certain: lines keep their numbers, but for fences at the ends."""
    lines = [line.rstrip() for line in text.replace("\t", "    ").replace("\r\n", "\n").splitlines()]
    while lines and (not lines[0] or _FENCE.match(lines[0])):
        del lines[0]
    while lines and (not lines[-1] or _FENCE.match(lines[-1])):
        del lines[-1]
    if any(line.lstrip().startswith(">>>") for line in lines):  # what a session printed is left out
        lines = [_PROMPT.sub("", line) if _PROMPT.match(line) else "" for line in lines]
    flush = textwrap.dedent("\n".join(lines))
    return flush if _parses(flush) else next(filter(_parses, (aligned("\n".join(lines)),)), flush)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
