"""The tensors of a trace that there is something to see of, each under the name that it has at the end."""

from __future__ import annotations

from dataclasses import dataclass

from core.tensors.layout import Layout
from core.tensors.tracing.steps import Step, Trace


@dataclass(frozen=True, slots=True)
class Drawn:
    """One tensor of the picture: that of a step, or one of the several that a split made."""

    step: Step
    layout: Layout
    is_contiguous: bool
    name: str


def drawn(trace: Trace) -> list[Drawn]:
    """Every tensor to draw: new ones, all pieces of a split, and the one that a refused view would have needed."""
    figures: list[Drawn] = []
    for step in trace.steps:
        if step.pieces and step.picked is None and step.kind in ("view", "copy"):
            for number, piece in enumerate(step.pieces):
                named = (s for s in trace.steps if s.name and s.inputs == (step.number,) and s.layout == piece.layout)
                name = next(map(trace.label, named), f"{trace.label(step)}[{number}]")
                figures.append(Drawn(step, piece.layout, piece.is_contiguous, name))
        elif (step.kind in ("start", "view", "copy") and step.storage >= 0) or (
            step.kind == "refused" and step.verdict is not None and step.verdict.hops is not None
        ):
            figures.append(Drawn(step, step.layout, step.is_contiguous, trace.label(step)))
    return figures
