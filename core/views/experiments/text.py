"""What each experiment says: what is expected, what was found, a table of both, and how it is worked out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.experiments import gradient, initialisation, linear_bytes, transfer
from core.experiments.found import Found
from core.formula import Explanation
from core.tensors.cost import tensor_bytes
from core.units import format_quantity, significant

Row = tuple[str, ...]

_UNKNOWN = "not yet"


@dataclass(frozen=True, slots=True)
class ExperimentText:
    """An experiment in words. expected: true before it has run. headings, rows: of its table, None where not run.

    figures: whether its cells are.
    code: the lines that run, where they are worth reading; explanations: the formulas behind what is expected.
    """

    expected: str
    headings: Row
    rows: Callable[[Found | None], list[Row]]
    found: Callable[[Found], str]
    explanations: Callable[[], list[Explanation]]
    code: str = ""
    figures: bool = False


def _three(value: float) -> str:
    return str(significant(value, 3))


# ---------------------------------------------------------------------------------------- initialisation


def _init_rows(found: Found | None) -> list[Row]:
    return [
        (
            way,
            *(
                f"{_three(initialisation.predicted(way, width))} · "
                f"{_three(found.series[way][place]) if found else _UNKNOWN}"
                for place, width in enumerate(initialisation.WIDTHS)
            ),
        )
        for way in initialisation.DEVIATIONS
    ]


def _init_found(found: Found) -> str:
    first, last = found.series["unit normal"][0], found.series["unit normal"][-1]
    kaiming = found.series["Kaiming"]
    return (
        f"Measured: from {initialisation.WIDTHS[0]} to {initialisation.WIDTHS[-1]:,} wide unit normal weights take the "
        f"outputs from **{_three(first)}** to **{_three(last)}**; Kaiming’s stay between {_three(min(kaiming))} and "
        f"{_three(max(kaiming))}."
    )


# ---------------------------------------------------------------------------------------- gradient and loop


def _loop_rows(found: Found | None) -> list[Row]:
    whose = {
        "w.grad": "asks for one: (6 − 5) · x",
        "x.grad": "a leaf that asks for none",
        "(x @ w).grad": "no leaf: a result in between",
        "loss.grad": "no leaf: a result",
    }
    return [(name, found.words[name] if found else _UNKNOWN, why) for name, why in whose.items()]


def _loop_found(found: Found) -> str:
    losses = found.series["loss"]
    return (
        f"Measured with torch {found.words['torch']}: the loss falls from **{_three(losses[0])}** to "
        f"**{format_quantity(losses[-1], 'number')}** in {len(losses)} steps, and x·w ends at "
        f"{_three(found.numbers['x·w'])}."
    )


# ---------------------------------------------------------------------------------------- deep linear model


def _bytes_cell(value: float) -> str:
    return f"{value:,.0f} B"


def _deep_rows(found: Found | None) -> list[Row]:
    rows: list[Row] = []
    for name in linear_bytes.OPTIMIZERS:
        counted = linear_bytes.predicted(name)
        total = sum(counted.values())
        measured = sum(found.numbers[f"{name}, {part}"] for part in linear_bytes.PARTS) if found else None
        rows.append(
            (
                name,
                *(_bytes_cell(counted[part]) for part in linear_bytes.PARTS),
                _bytes_cell(total),
                _UNKNOWN if measured is None else _bytes_cell(measured),
            )
        )
    return rows


def _deep_found(found: Found) -> str:
    off = [
        abs(found.numbers[f"{name}, {part}"] - size)
        for name in linear_bytes.OPTIMIZERS
        for part, size in linear_bytes.predicted(name).items()
    ]
    agrees = "to the byte" if max(off) == 0 else f"within {max(off):,.0f} B"
    return f"Measured: torch {found.words['torch']} holds what was counted, part by part, **{agrees}**."


# ---------------------------------------------------------------------------------------- transfer


def _time(seconds: float) -> str:
    return str(format_quantity(seconds, "seconds"))


def _send_rows(found: Found | None) -> list[Row]:
    return [
        (
            f"{side:,} × {side:,}",
            f"{transfer.size_of(side):,.0f} B",
            *(_time(found.numbers[f"{side} {way}"]) if found else _UNKNOWN for way in ("made", "sent")),
            f"{significant(transfer.size_of(side) / found.numbers[f'{side} sent'] / 1e9, 3)} GB/s"
            if found
            else _UNKNOWN,
        )
        for side in transfer.SIDES
    ]


def _send_found(found: Found) -> str:
    side = transfer.SIDES[-1]
    made, sent = found.numbers[f"{side} made"], found.numbers[f"{side} sent"]
    if not found.numbers["cuda"]:
        return (
            f"This machine has **no GPU**, so nothing crosses a bus: a copy within memory takes {_time(sent)} at "
            f"{side:,} × {side:,}, making the tensor {_time(made)}."
        )
    return (
        f"On {found.words['device']} making {side:,} × {side:,} takes **{_time(made)}**, sending it from the CPU "
        f"**{_time(sent)}**: {sent / made:.0f} times as long."
    )


EXPERIMENT_TEXTS: Mapping[str, ExperimentText] = {
    "init": ExperimentText(
        f"Outputs of x @ w with unit normal weights grow as the root of the width, to "
        f"**{_three(initialisation.predicted('unit normal', 1024))}** at 1,024; divided by that root they stay.",
        (
            f"Way to draw w, into {initialisation.OUTPUTS} outputs: expected · measured",
            *(f"{width:,} wide" for width in initialisation.WIDTHS),
        ),
        _init_rows,
        _init_found,
        lambda: [
            initialisation.output_scale.explain(deviation=draw(1024), width=1024).about(way)
            for way, draw in initialisation.DEVIATIONS.items()
        ],
    ),
    "loop": ExperimentText(
        "½(x·w − 5)² at x = (1, 2, 3) and w = 1 has the gradient **(1, 2, 3)**; each step of 0.02 times that takes "
        f"**{1 - (1 - 14 * gradient.RATE):.0%}** of what x·w is off by.".replace("%", " %"),
        ("Tensor", ".grad after backward", "Why"),
        _loop_rows,
        _loop_found,
        lambda: [gradient.loss_after.explain(rate=gradient.RATE, step=gradient.STEPS - 1)],
        gradient.LOOP,
    ),
    "deep": ExperimentText(
        f"D = {linear_bytes.WIDTH}, L = {linear_bytes.LAYERS}, B = {linear_bytes.ROWS}: under AdaGrad "
        f"**{sum(linear_bytes.predicted('AdaGrad').values()):,.0f} B**, 4 for each of {linear_bytes.PARAMETERS} "
        f"parameters, gradients and sums of squares and of {linear_bytes.ACTIVATIONS} activations.",
        ("Optimizer", "Parameters", "Activations", "Gradients", "Optimizer state", "Counted", "torch holds"),
        _deep_rows,
        _deep_found,
        lambda: [
            tensor_bytes.explain(elements=count, element_bytes=4).about(name)
            for name, count in (("parameters", linear_bytes.PARAMETERS), ("activations", linear_bytes.ACTIVATIONS))
        ],
        figures=True,
    ),
    "send": ExperimentText(
        f"A 32 × 32 fp32 tensor is **{transfer.size_of(32):,.0f} B**: made on the device it needs no transfer; made on "
        "the CPU it crosses the bus, and each small one waits for its turn.",
        ("fp32 tensor", "Size", "Made there", "Sent there", "Rate of sending"),
        _send_rows,
        _send_found,
        lambda: [tensor_bytes.explain(elements=32 * 32, element_bytes=4)],
        figures=True,
    ),
}
"""Experiment → what it says."""


def alt(title: str, text: ExperimentText, found: Found) -> str:
    """What its picture shows, in plain words."""
    return f"{title}. {text.found(found)}".replace("**", "")


def waiting(seconds: float, *, queued: bool) -> str:
    """What is going on while an experiment has not ended."""
    return (
        "In line behind another experiment." if queued else f"Running in a process of its own, {seconds:.0f} s so far."
    )
