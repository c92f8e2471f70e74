"""What the page of measuring asks: what to measure, up to which size, how long each, and whose layer."""

from __future__ import annotations

from collections.abc import Sequence

from core.benchmark.choices import CHOICES, LARGEST, usual_seconds
from core.benchmark.device import DeviceKind
from core.fields import Field, Form, choice, quantity, switch, with_decimal_lengths
from core.limits import limit
from core.models.catalog import catalog
from core.units import LENGTHS

MIN_N = 64
MIN_SECONDS = 0.02

WHAT = choice("what", "What to measure", tuple(item.name for item in CHOICES.values()), "Matmul by dtype")
MODEL = choice(
    "model",
    "Layer of",
    tuple(m.name for m in catalog() if not m.counted and not m.spec.unlisted),
    "Llama 3 8B",
    part="layer",
)
LENGTH = quantity(
    "seq", "Sequence length", "4096", "length", low=16, high=131_072, whole=True, part="layer", help=LENGTHS
)
MICRO_BATCH = quantity("mb", "Micro-batch", "1", "count", low=1, high=256, whole=True, part="layer")

PANELS = (
    switch("roof", "Measured roofline", False, part="panels"),
    switch("every", "Every matmul, the plan’s own shapes too", False, part="panels"),
)
"""The folded parts, in the order in which they stand."""


_GONE = frozenset({"nodes=1", "gpus=8", "past=false", "several=false", "file=false"})


def largest(device: DeviceKind) -> Field:
    """The largest square's n, beginning with what suits the device."""
    top = limit("matmul_size")
    return quantity("n", "Largest n", str(LARGEST[device]), "count", low=MIN_N, high=top, whole=True)


def each(device: DeviceKind) -> Field:
    """Seconds timed per size and dtype."""
    top = limit("measure_dtype_seconds")
    usual = f"{usual_seconds(device):g} s"
    return quantity("each", "Seconds each", usual, "seconds", low=MIN_SECONDS, high=top)


def measure_form(device: DeviceKind, prefix: str, others: Sequence[Field] = ()) -> Form:
    """Everything asked, beginning with what suits the device. others: fields of what stands beside."""
    model, length = MODEL, LENGTH
    if device == "cpu":
        model, length = model.with_default("GPT-2 124M"), length.with_default("512")
    fields = (WHAT, largest(device), each(device), model, length, MICRO_BATCH, *PANELS, *others)
    return Form(prefix, fields, older={4: lambda texts: with_decimal_lengths(texts, (LENGTH.id,))}, gone=_GONE)
