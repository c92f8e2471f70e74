"""What each experiment says: what is expected, what was found, a table of both, and how it is worked out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.experiments import gradient, initialisation, linear_bytes, transfer
from core.experiments.found import Found
from core.experiments.seeds import SEEDED
from core.formula import Explanation
from core.tensors.cost import tensor_bytes
from core.training.memory import token_bytes
from core.units import format_bytes, format_quantity, significant

Row = tuple[str, ...]

_LLAMA_TOKENS = 1.4e12
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


# ---------------------------------------------------------------------------------------- tokens on disk


def _disk_rows(found: Found | None) -> list[Row]:
    ways = {
        "written": "as they were drawn, below 32,000",
        "memmap of uint16": "right",
        "memmap of int32": "two tokens read as one number, and half as many of them",
        "memmap of the .npy": "the header of the file, read as tokens",
        "np.load of the .npy": "right: it knows the header",
    }
    return [(way, found.words[way] if found else _UNKNOWN, why) for way, why in ways.items()]


def _disk_found(found: Found) -> str:
    n = found.numbers
    if not n["before"]:
        return "This system does not say how much memory a process holds."
    grown = {name: max(n[name] - n["before"], 0.0) for name in ("opened", "batch read", "all read")}
    size = {name: str(format_bytes(value, system="binary", digits=3)) for name, value in grown.items()}
    return (
        f"Measured: opening a file of **{format_bytes(n['bytes'], system='binary', digits=3)}** takes "
        f"**{size['opened']}** of memory, a batch of {format_bytes(n['batch bytes'], system='binary', digits=3)} of it "
        f"brings it to {size['batch read']}, with what the system maps beside it, and only reading all of it to "
        f"{size['all read']}."
    )


def _disk_expected() -> str:
    narrow, wide = (token_bytes(tokens=_LLAMA_TOKENS, each=each) for each in (2, 4))
    return (
        f"LLaMA’s 1.4T tokens take **{format_quantity(narrow, 'bytes')}** in uint16 and "
        f"**{format_quantity(wide, 'bytes')}** in int32. memmap opens them without reading; its dtype must be the "
        "file’s, and an .npy wants np.load."
    )


# ---------------------------------------------------------------------------------------- seeds


def _seed_rows(found: Found | None) -> list[Row]:
    word = {1.0: "repeats", 0.0: "goes on"}
    return [
        (
            f"{seeded}’s seed",
            *(word[found.numbers[f"{seeded} → {drawn}"]] if found else _UNKNOWN for drawn in SEEDED),
        )
        for seeded in SEEDED
    ]


def _seed_found(found: Found) -> str:
    n = found.numbers
    return (
        f"Measured: a generator of its own with seed 0 draws **{n['own draw']:.4f}**, and again. What no seed repeats "
        f"is an order: the same 20,000 numbers in fp32 add up to {n['sum forwards']:.4f} forwards and "
        f"{n['sum backwards']:.4f} backwards, as threads and GPUs add them in any."
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
    "disk": ExperimentText(
        _disk_expected(),
        ("Read as", "First four", "What that is"),
        _disk_rows,
        _disk_found,
        lambda: [token_bytes.explain(tokens=_LLAMA_TOKENS, each=each) for each in (2, 4)],
    ),
    "seeds": ExperimentText(
        "torch, numpy and random have a generator each: **a seed set in one moves no other**, so a program sets all "
        "three.",
        ("Set to 0 twice", *(f"a draw of {name}" for name in SEEDED)),
        _seed_rows,
        _seed_found,
        list,
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
