"""What a claim is: its wording, the computation that checks it, the verdict, and where to play with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from core.formula import Explanation

Verdict: TypeAlias = Literal["exact", "holds", "rule of thumb", "convention", "needs care"]
"""exact; holds to the precision given; rule of thumb, error quantified; true under one of several conventions;
wrong or dated as stated, with the correction."""

VERDICTS: Mapping[Verdict, str] = {
    "exact": "true to the last digit",
    "holds": "true to the precision given",
    "rule of thumb": "close, with the error shown",
    "convention": "true under one of several conventions",
    "needs care": "wrong or dated as stated; the correction is shown",
}

Group: TypeAlias = Literal["Numbers in memory", "Tensors", "Compute", "Training memory"]

GROUPS: tuple[Group, ...] = ("Numbers in memory", "Tensors", "Compute", "Training memory")


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check found: the recomputed value in words, whether it confirms the row, and its formulas.

    confirms: for ``needs care``, that the correction (and not the claim as stated) is what the computation gives.
    """

    value: str
    confirms: bool
    explanations: tuple[Explanation, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """The page (by id) that shows the claim, and the inputs (field name → text) that set it up there."""

    page: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the lecture or of students' notes on it, in our words.

    remark: the correction, the error or the condition behind the verdict; may be empty for ``exact``.
    """

    id: str
    group: Group
    text: str
    verdict: Verdict
    check: Callable[[], Finding]
    link: Link
    remark: str = ""
