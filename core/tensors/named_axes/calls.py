"""The calls of einops and einsum in a program, each with what it became on the layouts that it met."""

from __future__ import annotations

from typing import TypeAlias

from einops import EinopsError

from core.tensors.named_axes.einsums import EinsumPlan, explain_einsum
from core.tensors.named_axes.patterns import PatternPlan, explain_pattern
from core.tensors.tracing.steps import Trace, TraceStep

Plan: TypeAlias = PatternPlan | EinsumPlan


def plans_of(trace: Trace) -> tuple[tuple[TraceStep, Plan], ...]:
    """Return the einops and einsum steps of a trace, each with its plan; steps that torch or einops rejected have
    none."""
    rows: list[tuple[TraceStep, Plan]] = []
    for step in trace.steps[1:]:
        texts = [value for value in step.args if isinstance(value, str)]
        bare = step.form == "bare"
        if step.kind == "refused" or not texts or not step.inputs:
            continue
        taken = [trace[number] for number in step.inputs]
        try:
            if step.operation == "einsum":
                layouts = [item.layout for item in taken]
                rows.append((step, explain_einsum(texts[0], layouts, step, words=bare)))
            elif bare and step.operation in ("rearrange", "reduce", "repeat"):
                reduction = str(step.named.get("reduction", "".join(texts[1:])))
                sizes = {name: size for name, size in step.named.items() if isinstance(size, int)}
                rows.append((step, explain_pattern(texts[0], taken[0], step, sizes, reduction)))
        except (EinopsError, ValueError, LookupError, ArithmeticError):
            continue  # written as the explanation does not take it, or forged
    return tuple(rows)
