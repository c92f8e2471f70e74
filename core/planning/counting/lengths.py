"""Sequences longer than any published run's: how much more work a token is there than 6N has in the runs' hours.

6ND has no sequence length. The utilisation of published runs is by 6ND all the same, so the work of attention at their
lengths is in it already; what longer sequences add on top has to be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from core.formula import Explanation, Symbol, formula
from core.models.catalog import CatalogModel
from core.models.flops import flops_per_token, train_flop_6nd
from core.planning.evidence.rows import evidence


@formula(
    r"6 \cdot \frac{\v{counted}}{\v{usual}}",
    result=Symbol("k", "training FLOPs per token and parameter, 6 by the rule", "number"),
    symbols={
        "counted": Symbol("F_s", "training FLOPs per token at the plan’s sequence length, causal", "flop"),
        "usual": Symbol("F_u", "the same at the longest sequence of any published run in the evidence", "flop"),
    },
    sources=train_flop_6nd.sources,
)
def flop_per_parameter_of_long(counted: float, usual: float) -> float:
    """Training FLOPs per token and parameter of long sequences.

    The rule’s 6, times what a token costs at this length over what it costs at the longest one that a comparable run
    had: the hours of those runs hold attention up to there. The MFU is taken to stay the same.
    """
    return 6 * counted / usual


@lru_cache(maxsize=1)
def usual_length() -> int:
    """The longest sequence of any whole run in the evidence."""
    return max(row.run.seq_len for row in evidence("whole"))


@dataclass(frozen=True, slots=True)
class Work:
    """A token's training FLOPs, causal, at ``seq_len`` and at the usual length; equal up to that length.

    model: whose layers were counted. stand_in: whether they stand in for a number of parameters.
    """

    seq_len: int
    usual_len: int
    counted: float
    usual: float
    model: str
    stand_in: bool

    @property
    def factor(self) -> float:
        """How many times the work of the usual length; 1 up to it."""
        return self.counted / self.usual

    @property
    def per_parameter(self) -> float:
        """Training FLOPs per token and parameter."""
        return flop_per_parameter_of_long(self.counted, self.usual)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The step from 6 to what long sequences take; none where it stays 6."""
        if self.factor == 1:
            return ()
        return (flop_per_parameter_of_long.explain(counted=self.counted, usual=self.usual),)


def work_of(model: CatalogModel, seq_len: int, *, stand_in: bool = False) -> Work:
    """The work of a token of ``model`` at ``seq_len``. Shorter sequences than usual are not made cheaper."""
    usual = usual_length()
    counted, least = (flops_per_token(model.spec, length, "causal").training for length in (max(seq_len, usual), usual))
    return Work(seq_len, usual, float(counted), float(least), model.name, stand_in)
