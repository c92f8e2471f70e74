"""The wall before the seal: what a program may name, so that it is refused in words. It is not a boundary."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a program does not run. line, column: where, counted from 1; 0 for the whole program."""

    message: str
    line: int = 0
    column: int = 0


def refusal(source: str) -> Refusal | None:
    """Return why the program does not run, or None if it may."""
    try:
        ast.parse(source)
    except SyntaxError as problem:
        return Refusal(f"{type(problem).__name__}: {problem.msg}", problem.lineno or 0, problem.offset or 0)
    return None
