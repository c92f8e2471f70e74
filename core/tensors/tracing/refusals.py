"""Why torch refuses a step, in words: which strides a view cannot walk, and what backward lacks.

Where torch's own message says it all, nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import message
from core.tensors.operations.values import integers
from core.tensors.tracing.steps import TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view


def refused_view(step: TraceStep, inputs: Sequence[TraceStep]) -> ViewVerdict | None:
    """Return the verdict on a rejected ``view`` to another shape, None for anything else."""
    given = (*step.args, *step.named.values())
    retyped = any(isinstance(value, dict) and "dtype" in value for value in given)
    if step.form != "method" or retyped or not inputs:
        return None
    if step.operation == "view":
        return explain_view(inputs[0].layout, integers(given))
    return (
        explain_view(inputs[0].layout, inputs[1].layout.shape) if step.operation == "view_as" and inputs[1:] else None
    )


_MEANINGS = {
    "step must be greater than zero": "tensors.why.backwards",
    "does not require grad": "tensors.why.no_gradient",
    "implicitly created only for scalar": "tensors.why.scalar",
    "leaf Variable that requires grad": "tensors.why.leaf",
}
"""Part of torch's message → what it means."""


def error_reason(steps: Sequence[TraceStep]) -> str:
    """Return why torch rejects the last step by its error, as the end of a sentence; empty if that says it all."""
    *before, refused = steps
    error = refused.error_message
    if "backward through the graph a second time" in error:
        done = [step for step in before if step.operation == "backward"]
        if not done:
            return message("tensors.why.freed_before")
        return message("tensors.why.freed", call=done[-1].expression, line=float(done[-1].line))
    if "modified by an inplace operation" in error:
        writes = [step for step in before if step.kind == "write"]
        for write in reversed(writes):
            for step in reversed(before[: write.number]):
                if any(saved.storage == write.storage for saved in step.keeps):
                    return message(
                        "tensors.why.changed",
                        write=write.expression,
                        line=float(write.line),
                        saver=step.expression,
                        saver_line=float(step.line),
                    )
    return next((message(why) for part, why in _MEANINGS.items() if part in error), "")
