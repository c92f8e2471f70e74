"""The lecture's claims, each with the call into core that checks it.

>>> from core.lecture.catalogue import CLAIMS
>>> CLAIMS["C7"].check().value
'6.3 × 10²⁴ FLOP, 143.9 days'
"""

from functools import lru_cache

from core.lecture.claims import GROUPS, VERDICTS, Claim, Finding, Link, Verdict, summary
from core.lecture.compute import COMPUTE
from core.lecture.memory import MEMORY
from core.lecture.numbers import NUMBERS
from core.lecture.tensors import TENSORS

CLAIMS: dict[str, Claim] = {claim.id: claim for claim in (*NUMBERS, *TENSORS, *COMPUTE, *MEMORY)}
"""Every checked claim by its id, in the lecture's order."""


@lru_cache(maxsize=1)
def findings() -> dict[str, Finding]:
    """What every check finds, by claim id; computed once per process."""
    return {claim.id: claim.check() for claim in CLAIMS.values()}


__all__ = ["CLAIMS", "GROUPS", "VERDICTS", "Claim", "Finding", "Link", "Verdict", "findings", "summary"]
