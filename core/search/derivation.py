"""How a plan's numbers come about: days from steps, MFU from a step, and every formula that its step is made of."""

from __future__ import annotations

from core.budget.equations import mfu_needed
from core.formula import Explanation, Symbol, explain_run, formula
from core.models.flops import flops_per_token
from core.search.request import SearchRequest
from core.search.result import LayoutResult
from core.sources import OWN

_SECONDS = Symbol("t", "time of one step", "seconds")


@formula(
    r"\frac{\v{tokens}}{\v{sequences} \cdot \v{seq_len}} \cdot \v{seconds}",
    result=Symbol("T", "time of all steps", "seconds"),
    symbols={
        "tokens": Symbol("D", "training tokens", "count"),
        "sequences": Symbol("B", "sequences of one step", "count"),
        "seq_len": Symbol("s", "tokens of a sequence", "count"),
        "seconds": _SECONDS,
    },
    sources=(OWN,),
)
def seconds_of_steps(tokens: float, sequences: float, seq_len: float, seconds: float) -> float:
    """Time of the steps that all tokens take, nothing between them."""
    return tokens / (sequences * seq_len) * seconds


def explain(request: SearchRequest, result: LayoutResult, tokens: float) -> list[Explanation]:
    """From the days of all steps down to the formulas of one, each with all the numbers that it was used with."""
    device = request.cluster.accelerator
    batch = request.batch * request.seq_len
    flop = float(flops_per_token(request.spec, request.seq_len, "causal").training) * batch
    peak = device.peak(request.running.dtype)
    return [
        seconds_of_steps.explain(
            tokens=tokens, sequences=request.batch, seq_len=request.seq_len, seconds=result.seconds
        ),
        mfu_needed.explain(flop=flop, accelerators=request.cluster.count, peak=peak, seconds=result.seconds),
        *explain_run(lambda: request.step(result.layout, result.running.overlap)),
    ]
