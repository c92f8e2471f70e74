"""Text of each experiment: what is expected, what was measured, and a table of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.experiments import initialization, linear_bytes, transfer
from core.experiments.found import Found
from core.formula import Explanation
from core.messages import Message, message, messages
from core.tensors.cost import tensor_bytes
from core.units import format_quantity
from core.wording import plain

Row = tuple[str, ...]

PENDING = message("experiments.pending")


@dataclass(frozen=True, slots=True)
class ExperimentText:
    """An experiment in words. expected: before it has run. headings, rows: of its table, None if it has not run.

    explanations: the formulas behind the expectation. has_numbers: whether all cells but the first of a row are
    numbers.
    """

    expected: Message
    headings: Row
    rows: Callable[[Found | None], list[Row]]
    found: Callable[[Found], Message]
    explanations: Callable[[], list[Explanation]]
    has_numbers: bool = False


def _initialization_rows(found: Found | None) -> list[Row]:
    rows: list[Row] = []
    for way in initialization.DEVIATIONS:
        expected = [initialization.predicted(way, width) for width in initialization.WIDTHS]
        if found:
            pairs = zip(expected, found.series[way], strict=True)
            cells = [message("experiments.init.cell", expected=e, measured=m) for e, m in pairs]
        else:
            cells = [message("experiments.init.cell_pending", expected=e) for e in expected]
        rows.append((way, *cells))
    return rows


def _initialization_found(found: Found) -> Message:
    normal, kaiming = found.series["unit normal"], found.series["Kaiming"]
    return message(
        "experiments.init.found",
        low=float(initialization.WIDTHS[0]),
        high=float(initialization.WIDTHS[-1]),
        first=normal[0],
        last=normal[-1],
        kaiming=(min(kaiming), max(kaiming)),
    )


def _deep_rows(found: Found | None) -> list[Row]:
    rows: list[Row] = []
    for name in linear_bytes.OPTIMIZERS:
        sizes = list(linear_bytes.predicted(name).values())
        measured = f"{sum(found.numbers[f'{name}, {part}'] for part in linear_bytes.PARTS):,.0f}" if found else PENDING
        rows.append((name, *(f"{size:,.0f}" for size in (*sizes, sum(sizes))), measured))
    return rows


def _deep_found(found: Found) -> Message:
    off = max(
        abs(found.numbers[f"{name}, {part}"] - size)
        for name in linear_bytes.OPTIMIZERS
        for part, size in linear_bytes.predicted(name).items()
    )
    if off:
        return message("experiments.deep.found_off", torch=found.words["torch"], off=off)
    return message("experiments.deep.found", torch=found.words["torch"])


def _send_rows(found: Found | None) -> list[Row]:
    rows: list[Row] = []
    for side in transfer.SIDES:
        size = transfer.size_of(side)
        cells: Sequence[str] = (PENDING,) * 3
        if found:
            made, sent = found.numbers[f"{side} made"], found.numbers[f"{side} sent"]
            cells = [format_quantity(made, "seconds"), format_quantity(sent, "seconds")]
            cells.append(format_quantity(size / sent, "bytes_per_s"))
        rows.append((f"{side:,} × {side:,}", f"{size:,.0f}", *cells))
    return rows


def _send_found(found: Found) -> Message:
    side = transfer.SIDES[-1]
    made, sent = found.numbers[f"{side} made"], found.numbers[f"{side} sent"]
    if not found.numbers["cuda"]:
        return message("experiments.send.found_cpu", side=float(side), sent=sent, made=made)
    return message(
        "experiments.send.found",
        device=found.words["device"],
        side=float(side),
        made=made,
        sent=sent,
        factor=sent / made,
    )


EXPERIMENT_TEXTS: Mapping[str, ExperimentText] = {
    "init": ExperimentText(
        message("experiments.init.expected", size=initialization.predicted("unit normal", 1024)),
        (
            message("experiments.init.way", outputs=float(initialization.OUTPUTS)),
            *(message("experiments.init.width", width=float(width)) for width in initialization.WIDTHS),
        ),
        _initialization_rows,
        _initialization_found,
        lambda: [
            initialization.output_scale.explain(deviation=draw(1024), width=1024).about(way)
            for way, draw in initialization.DEVIATIONS.items()
        ],
    ),
    "deep": ExperimentText(
        message(
            "experiments.deep.expected",
            width=float(linear_bytes.WIDTH),
            layers=float(linear_bytes.LAYERS),
            rows=float(linear_bytes.ROWS),
            bytes=sum(linear_bytes.predicted("AdaGrad").values()),
            parameters=float(linear_bytes.PARAMETERS),
            activations=float(linear_bytes.ACTIVATIONS),
        ),
        messages("experiments.deep", "optimizer parameters activations gradients states predicted measured"),
        _deep_rows,
        _deep_found,
        lambda: [
            tensor_bytes.explain(elements=count, element_bytes=4).about(name)
            for name, count in (("parameters", linear_bytes.PARAMETERS), ("activations", linear_bytes.ACTIVATIONS))
        ],
        has_numbers=True,
    ),
    "send": ExperimentText(
        message("experiments.send.expected", bytes=transfer.size_of(32)),
        messages("experiments.send", "tensor size made sent rate"),
        _send_rows,
        _send_found,
        lambda: [tensor_bytes.explain(elements=32 * 32, element_bytes=4)],
        has_numbers=True,
    ),
}
"""The text of each experiment by id."""


def alt_text(title: str, text: ExperimentText, found: Found) -> str:
    """Return the alternative text of the experiment's picture."""
    return plain(message("experiments.alt", title=title, found=text.found(found)))


def waiting_text(seconds: float, *, queued: bool) -> Message:
    """Return what an experiment is doing that has not ended."""
    return message("experiments.waiting") if queued else message("experiments.running", seconds=seconds)
