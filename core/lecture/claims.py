"""A claim: its wording, the computation that checks it, its verdict, and a link to the page that shows it."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from core.fields import Link
from core.formula import Explanation
from core.limits import cached
from core.messages import Message

Verdict: TypeAlias = Literal["exact", "holds", "rule of thumb", "convention", "needs care"]
"""exact, of claims with numbers; holds as stated, or to the precision given; rule of thumb, error quantified; true
under one of several conventions; wrong or dated as stated, with the correction."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

Group: TypeAlias = Literal["Numbers in memory", "Tensors", "Compute", "Training memory"]

GROUPS: tuple[Group, ...] = ("Numbers in memory", "Tensors", "Compute", "Training memory")
"""The chapters, in the lecture's order."""

_CLOSE, _ROUNDED = 0.25, 0.005
"""Shares by which a rule of thumb, and a number that was rounded, may be off."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    confirms: whether the computation gives what the row says; for ``needs care``, the correction and not the claim.
    how: what was done where the formulas do not say all of it. There are formulas, words, or both.
    compared: the claimed number and the computed one, where the claim is about one number.
    shown: texts that the claim's link leads to, as the page writes them; each follows from what was found.
    """

    value: Message
    confirms: bool
    explanations: tuple[Explanation, ...] = ()
    how: Message | None = None
    compared: tuple[float, float] | None = None
    shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.explanations or self.how):
            raise ValueError(f"A finding must say how it was found: {self.value}")

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict that follows from two numbers, or None if the verdict is a judgment."""
        if self.compared is None:
            return None
        claimed, found = self.compared
        if claimed == found:
            return "exact"
        off = abs(claimed / found - 1)
        return "holds" if off < _ROUNDED else "rule of thumb" if off < _CLOSE else "needs care"


@dataclass(frozen=True, slots=True)
class Example:
    """A few lines of code that show a claim or a counterexample. run: a function that takes a ``print``."""

    run: Callable[[Callable[..., None]], None]

    @property
    def code(self) -> str:
        """Return the lines, which run anywhere when copied."""
        _, _, body = inspect.getsource(self.run).partition("-> None:\n")
        return textwrap.dedent(body).strip()

    @property
    def on_tensors(self) -> bool:
        """Return whether all lines are tensor operations, which Tensor views can follow one by one."""
        modules = set(re.findall(r"^\s*(?:import|from) (\S+)", self.code, re.MULTILINE))
        return bool(modules) and modules <= {"torch", "torch.nn.functional"} and "optim" not in self.code

    def output(self) -> str:
        """Return what the lines print, computed once per process. Most import torch."""
        return _output(self.run)


@cached("results_kept")
def _output(run: Callable[[Callable[..., None]], None]) -> str:
    lines: list[str] = []

    def show(*values: Any) -> None:
        lines.append(" ".join(map(str, values)))

    run(show)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the lecture, or of students' notes on it, in our words.

    number: chapter and claim, such as ``2.14``. stands_in: the documents and sections that make the claim. link: None
    where no page shows it. remark: the correction, error, or condition behind the verdict; may be empty for ``exact``
    and ``holds``. example: lines that show the claim, or for ``needs care`` a counterexample.
    """

    id: str
    number: str
    group: Group
    name: str
    text: str
    verdict: Verdict
    check: Callable[[], Finding]
    link: Link | None
    remark: str
    stands_in: str
    example: Example | None


def titled(title: str, explanation: Explanation) -> Explanation:
    """Return the same explanation with another title."""
    return replace(explanation, title=title)
