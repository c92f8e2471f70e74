"""The text a visitor typed, before any parser sees it: capped in length, characters, lines and bracket depth."""

from __future__ import annotations

import re
import textwrap
from typing import Literal

from core.limits import limit
from core.tensors.operations.guards import check_length, check_size
from core.tensors.operations.values import ExpressionError

EXAMPLE = "x.t().view(2, 3)"

_FOREIGN = re.compile(r"""[^A-Za-z0-9_ .,:()\[\]{}'"+\-*/%@=<>!&|~;\n]""")

_RUN_ON = re.compile(r"(?<![A-Za-z_0-9])[0-9][0-9a-fA-FoxOX_.]*(and|else|for|if|in|is|or|not)")
"""A number that runs into a word, ``0or``; Python's parser only warns, on the server's own console."""


_QUOTED = re.compile(r"""('''|\"\"\")(?:.|\n)*?(?:\1|\Z)|'[^'\n]*'?|"[^"\n]*"?|#[^\n]*""")
"""A string in quotes, closed or not, or a comment outside of one."""


def code_of(text: str) -> str:
    """``text`` with spaces in place of its comments, so that every step keeps its line."""
    return _QUOTED.sub(lambda match: " " * len(match[0]) if match[0][0] == "#" else match[0], text)


def _outside_strings(code: str) -> str:
    """``code`` with ``s`` for every character of a closed string: those of messages and patterns are free."""
    return _QUOTED.sub(lambda match: ("s" if _closed(match[0]) else " ") * len(match[0]), code)


def _closed(quoted: str) -> bool:
    mark = quoted[:3] if quoted[:3] in ("'''", '"""') else quoted[:1]
    return len(quoted) >= 2 * len(mark) and quoted.endswith(mark)


_UNCOUNTED = re.compile(r"\s*(import|from|print|assert)\b")


def tidy(text: str) -> str:
    """``text`` without white space around its lines, where no block needs it; comments stay, of printable characters.

    Raises `ExpressionError` beyond the caps. Lines that only import, comment, print or assert are not counted.
    """
    check_length(len(text) // 2)
    tidied = aligned(text)
    code = code_of(tidied)
    if not code.strip():
        raise ExpressionError(f"Empty. Type an expression on x, for example {EXAMPLE}.")
    outside = _outside_strings(code)
    check_lines(sum(not _UNCOUNTED.match(line) for line in outside.split("\n") if line.strip(" )],s")))
    check_length(len(tidied))
    foreign = _FOREIGN.search(outside) or next(
        (re.match(".", c) for c in tidied if not (c.isprintable() or c == "\n")), None
    )
    if foreign:
        raise ExpressionError(
            f"The character {foreign.group()!r} has no place in an expression on x. For example: {EXAMPLE}."
        )
    run_on = _RUN_ON.search(outside)
    if run_on:
        raise ExpressionError(f"`{run_on.group()[:40]}`: a number runs into a word. For example: {EXAMPLE}.")
    depth = deepest = 0
    for character in code:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > limit("expression_depth"):
        raise ExpressionError(f"{deepest} brackets inside one another; at most {limit('expression_depth')} are read.")
    return tidied


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


def check_lines(count: int) -> None:
    """Refuse more lines, or statements on them, than are run."""
    if count > limit("expression_lines"):
        raise ExpressionError(f"{count} lines; at most {limit('expression_lines')} are run.")


def read_shape(text: str, cap: str = "tensor_elements") -> tuple[int, ...]:
    """The start shape a person typed: ``2, 3``, ``(2, 3)``, ``2 × 3`` or ``()`` for a single number.

    cap: the entry of core.limits that caps its elements; ``counted_elements`` where `trace` takes it.

    Raises `ExpressionError` with an example for anything else, and beyond the caps on rank and elements.
    """
    shape = _sizes(text, "shape")
    check_size(shape, "The start tensor", cap)
    return shape


def read_stride(text: str) -> tuple[int, ...]:
    """The start strides a person typed, written as a shape is. Raises `ExpressionError` for anything else."""
    return _sizes(text, "stride")


def _sizes(text: str, what: Literal["shape", "stride"]) -> tuple[int, ...]:
    inner = text.strip()
    example = f"A {what} is whole numbers with commas, or () for a single number. For example: 2, 3."
    if not inner:
        raise ExpressionError(f"Empty. {example}")
    if len(inner) > limit("number_chars"):
        raise ExpressionError(f"A {what} of {len(inner):,} characters is too long. {example}")
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1]
        if not inner.strip():
            return ()
    sizes = re.split(r"\s*[,×x]\s*|\s+", inner.strip().removesuffix(","))
    if not all(re.fullmatch(r"[0-9]{1,12}", size) for size in sizes):
        raise ExpressionError(f"“{text.strip()}” is not a {what}. {example}")
    return tuple(int(size) for size in sizes)
