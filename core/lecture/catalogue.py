"""The claims, rows of ``assets/data/lecture_claims.csv``, each with the function that checks it.

>>> from core.lecture.catalogue import CLAIMS
>>> CLAIMS["C7"].check().value
'6.3 × 10²⁴ FLOP take 143.9 days.'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qsl

from core.fields import Link
from core.lecture import compute, examples, hardware, memory, numbers, optimizers, tensors
from core.lecture.claims import GROUPS, Claim, Example, Finding, Group, Verdict
from core.limits import cached
from core.rows import read_rows

_MODULES = (numbers, tensors, compute, hardware, memory, optimizers)
_CHECKS: Mapping[str, Any] = {name: check for module in _MODULES for name, check in vars(module).items()}


def _read(row: Mapping[str, str], place: int) -> Claim:
    return Claim(
        id=row["id"],
        number=f"{GROUPS.index(cast(Group, row['chapter'])) + 1}.{place}",
        group=cast(Group, row["chapter"]),
        name=row["name"],
        text=row["text"],
        verdict=cast(Verdict, row["verdict"]),
        check=_CHECKS[row["check"]],
        link=Link(row["page"], dict(parse_qsl(row["fields"])), row["at"]) if row["page"] else None,
        remark=row["remark"],
        stands_in=row["stands_in"],
        example=Example(vars(examples)[row["example"]]) if row["example"] else None,
    )


def _claims() -> dict[str, Claim]:
    places: Counter[str] = Counter()
    claims: dict[str, Claim] = {}
    for row in read_rows("lecture_claims"):
        places[row["chapter"]] += 1
        claims[row["id"]] = _read(row, places[row["chapter"]])
    return claims


CLAIMS: dict[str, Claim] = _claims()
"""Every claim by its id, in the lecture's order."""


@cached("tables_kept")
def findings() -> dict[str, Finding]:
    """Return the finding of every check by claim id, computed once per process."""
    return {claim.id: claim.check() for claim in CLAIMS.values()}
