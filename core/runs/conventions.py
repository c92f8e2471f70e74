"""One run scored under every convention: the same tokens per second, and the MFU and HFU that sources would print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.budget.errors import BudgetError
from core.formula import Explanation, Symbol, formula
from core.models.flops import conventions, flops_per_token
from core.models.spec import TransformerSpec
from core.sources import PALM
from core.units import format_quantity

Score: TypeAlias = Literal["MFU", "HFU"]

_PALM = PALM.at("section 4.1 and appendix B")


@formula(
    r"\frac{\v{rate} \cdot \v{per_token}}{\v{accelerators} \cdot \v{peak}}",
    result=Symbol("u", "utilisation", "ratio"),
    symbols={
        "rate": Symbol("r", "tokens per second, whole cluster", "number"),
        "per_token": Symbol("F", "FLOPs per token of training, as the convention counts them", "flop"),
        "accelerators": Symbol("n", "accelerators", "count"),
        "peak": Symbol("P", "dense peak of one accelerator", "flop_per_s"),
    },
    sources=(_PALM,),
)
def utilisation_of_rate(rate: float, per_token: float, accelerators: float, peak: float) -> float:
    """Utilisation from the token rate.

    MFU where the FLOPs are those the model needs, HFU where repeated ones count too.
    """
    return rate * per_token / (accelerators * peak)


@formula(
    r"\frac{\v{batch}}{\v{step}}",
    result=Symbol("r", "tokens per second, whole cluster", "tokens_per_s"),
    symbols={
        "batch": Symbol("B", "tokens of one step, whole cluster", "count"),
        "step": Symbol("t", "time of one step", "seconds"),
    },
    sources=(_PALM,),
)
def rate_of_steps(batch: float, step: float) -> float:
    """Tokens per second from the time of a step."""
    return batch / step


@dataclass(frozen=True, slots=True)
class Scored:
    """A run under one convention. per_token: FLOPs per token counted. per_rule: utilisation over that by 6N."""

    id: str
    name: str
    kind: Score
    per_token: float
    utilisation: float
    per_rule: float
    explanation: Explanation

    @property
    def possible(self) -> bool:
        """Whether it stays within the peak; a rate beyond it, or a wrong peak, does not."""
        return self.utilisation <= 1


def which_mfu(
    spec: TransformerSpec,
    seq_len: int,
    *,
    accelerators: float,
    peak: float,
    tokens_per_second: float | None = None,
    step_seconds: float | None = None,
    batch_tokens: float | None = None,
    scale: float = 1.0,
) -> tuple[Scored, ...]:
    """One run under every convention, 6N first; five MFUs, then HFU with attention or every layer done again.

    Give the tokens per second of the whole cluster, or the time of a step and its tokens. HFU counts the full
    attention square. scale: on every count, where the run has other parameters than ``spec``.
    Raises `BudgetError` for neither or both, and for numbers that are not above 0.
    """
    if tokens_per_second is not None and (step_seconds is not None or batch_tokens is not None):
        raise BudgetError("tokens_per_second", "Give tokens per second or the time of a step, not both.")
    if tokens_per_second is None:
        if step_seconds is None or batch_tokens is None:
            raise BudgetError("tokens_per_second", "Give tokens per second, or the time of a step and its tokens.")
        _positive("step_seconds", step_seconds)
        _positive("batch_tokens", batch_tokens)
        rate = rate_of_steps(batch_tokens, step_seconds)
    else:
        rate = tokens_per_second
    for name, value in (("tokens_per_second", rate), ("accelerators", accelerators), ("peak", peak)):
        _positive(name, value)
    selective = flops_per_token(spec, seq_len, "full", recompute="selective").hardware
    everything = flops_per_token(spec, seq_len, "full", recompute="full").hardware
    counted = conventions(spec, seq_len)
    ways: tuple[tuple[str, str, Score, float], ...] = (
        *((way.id, way.name, "MFU", way.per_token) for way in counted),
        ("hfu_selective", "full attention square, attention done again", "HFU", selective),
        ("hfu_full", "full attention square, every layer done again", "HFU", everything),
    )
    scores: list[Scored] = []
    for way, name, kind, counted_flop in ways:
        per_token = scale * counted_flop
        how = utilisation_of_rate.explain(rate=rate, per_token=per_token, accelerators=accelerators, peak=peak)
        relative = counted_flop / counted[0].per_token
        scores.append(Scored(way, name, kind, per_token, how.value, relative, how.about(name)))
    return tuple(scores)


def _positive(field: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        text = format_quantity(value, "number")
        raise BudgetError(field, f"{field.replace('_', ' ')} is {text}; it must be more than zero and finite.")
