"""What a handout of Tensor views holds: the code, what it did to storage, and every step."""

from __future__ import annotations

from core.tensors.tracing.steps import Trace, TraceStep
from core.views.report.handout import Handout, HandoutTable
from core.views.tensors.inside import memory
from core.views.tensors.sizes import bytes_text
from core.views.tensors.text import explanations, headline, layout_texts, shape_text, word


def tensors_handout(trace: Trace) -> Handout:
    """The handout of one program."""
    answer, detail = headline(trace)
    start = trace[0]
    given = f"# x: {start.dtype}, shape {shape_text(start.layout.shape)}, strides {shape_text(start.layout.stride)}"
    return Handout(
        "What these lines do to storage",
        answer,
        detail,
        code=f"{given}\n{trace.text}" if trace.starts_with_x else trace.text,
        tables=(
            HandoutTable(
                "Step by step",
                ("step", "what it is", "shape", "strides", "offset", "new storage", "inside, freed"),
                tuple(_row(step) for step in trace),
                f"Strides and offsets in elements. {memory(trace)}".replace("**", "").replace("`", "").strip(),
            ),
        ),
        explanations=explanations(trace),
    )


def _row(step: TraceStep) -> tuple[str, ...]:
    shape, strides = layout_texts(step)
    name = step.source or "x"
    refused = step.kind == "refused"
    return (
        name,
        word(step),
        shape or "–",
        strides or "–",
        "–" if refused else f"{step.layout.offset:,}",
        bytes_text(step.bytes_allocated) if step.bytes_allocated else "none",
        bytes_text(step.bytes_inside) if step.bytes_inside else "none",
    )
