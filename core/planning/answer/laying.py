"""How a plan's step lies over its accelerators: the data-parallel degree that is left, and what cannot be laid out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from core.models.spec import TransformerSpec
from core.training.layout import Layout


class LayoutError(ValueError):
    """A layout that cannot be. ``field`` is the id of the degree at fault; the message says why, and what would do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def laid(layout: Layout, accelerators: int, spec: TransformerSpec | None, seq_len: int) -> Layout:
    """``layout`` with the data-parallel degree that ``accelerators`` leave.

    spec: of a model whose layers are known, else None.  Raises `LayoutError` for the first thing that cannot be.
    """
    model = math.prod((int(layout.tensor), int(layout.pipeline), int(layout.context)))
    if model > accelerators:
        raise LayoutError(
            _largest(layout),
            f"{_degrees(layout)} takes {model:,} accelerators; there {'is' if accelerators == 1 else 'are'} only "
            f"{accelerators:,}.",
        )
    if accelerators % model:
        fewer = accelerators - accelerators % model
        raise LayoutError(
            _largest(layout),
            f"{accelerators:,} accelerators are not a whole number of times {_degrees(layout)} = {model:,}. "
            f"For example: {fewer:,} or {fewer + model:,}.",
        )
    made = replace(layout, data=accelerators // model)
    for field, message in (*_of_ranks(made), *(_of_model(made, spec) if spec else ()), *_of_tokens(made, seq_len)):
        raise LayoutError(field, message)
    return made


def _degrees(layout: Layout) -> str:
    named = (("tensor", layout.tensor), ("pipeline", layout.pipeline), ("context", layout.context))
    return " · ".join(f"{name} {degree:,}" for name, degree in named if degree > 1)


def _largest(layout: Layout) -> str:
    degrees = {"tp": int(layout.tensor), "pp": int(layout.pipeline), "cp": int(layout.context)}
    return max(degrees, key=degrees.__getitem__)


def _of_ranks(made: Layout) -> Iterator[tuple[str, str]]:
    inside = int(made.tensor * made.context * made.data)
    sharing = int(made.data * made.context)
    if inside % int(made.expert):
        yield (
            "ep",
            f"Experts are spread over accelerators of one pipeline stage, which are {inside:,} here; {made.expert:,} "
            "do not divide them.",
        )
    if made.shard_group and sharing % int(made.shard_group):
        yield (
            "hsdp",
            f"{sharing:,} accelerators work on different data; groups of {made.shard_group:,} do not divide them.",
        )
    if made.interleave > 1 and made.pipeline == 1:
        yield "vpp", "Only a stage of a pipeline has chunks: with one stage there is one."
    if made.interleave > 1 and int(made.micro_batches) % int(made.pipeline):
        yield (
            "acc",
            f"An interleaved pipeline takes micro-batches in groups of its {made.pipeline:,} stages; "
            f"{made.micro_batches:,} are no whole number of them.",
        )


def _of_model(made: Layout, spec: TransformerSpec) -> Iterator[tuple[str, str]]:
    stages = int(made.pipeline * made.interleave)
    if spec.heads % int(made.tensor):
        yield "tp", f"Its {spec.heads:,} query heads cannot be split evenly over {made.tensor:,}."
    if stages > spec.layers:
        yield (
            ("vpp" if made.pipeline <= spec.layers else "pp"),
            f"{stages:,} stages need as many layers; it has {spec.layers:,}.",
        )
    if made.expert > 1 and not spec.experts:
        yield "ep", "It has no experts that could be spread."
    if made.expert > 1 and spec.experts and spec.experts.count % int(made.expert):
        yield "ep", f"Its {spec.experts.count:,} experts cannot be spread evenly over {made.expert:,}."


def _of_tokens(made: Layout, seq_len: int) -> Iterator[tuple[str, str]]:
    if made.context > seq_len:
        yield "cp", f"A sequence of {seq_len:,} tokens cannot be split over {made.context:,}."
