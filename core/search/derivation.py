"""How a plan's numbers come about: days from steps, MFU from a step, and every formula that its step is made of."""

from __future__ import annotations

from core.budget.equations import days_of_steps, mfu_needed
from core.formula import Explanation, explain_run
from core.models.flops import flops_per_token
from core.search.request import SearchRequest
from core.search.result import LayoutResult


def explain(request: SearchRequest, result: LayoutResult, tokens: float) -> list[Explanation]:
    """From the days of all steps down to the formulas of one, each with all the numbers that it was used with."""
    device = request.cluster.accelerator
    length = request.timed_length
    flop = float(flops_per_token(request.spec, length, "causal").training) * result.tokens
    peak = device.peak(request.running.dtype)
    return [
        days_of_steps.explain(tokens=tokens, seconds=result.seconds, sequences=result.tokens / length, seq_len=length),
        mfu_needed.explain(flop=flop, accelerators=request.cluster.count, peak=peak, seconds=result.seconds),
        *explain_run(lambda: request.step(result.layout)),
    ]
