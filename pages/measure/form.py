"""What Measure asks: what to measure, up to which size, how long, and whose layer."""

from __future__ import annotations

from collections.abc import Sequence

from core.benchmark.choices import CHOICES
from core.benchmark.device import DeviceKind
from core.benchmark.programme import SECONDS, SIZES
from core.fields import Field, Form, choice, quantity, switch, with_decimal_lengths
from core.limits import limit
from core.messages import message
from core.models.catalog import catalog

_MIN_N, _MIN_SECONDS = 64, 0.02

_NAMES = {
    "dtypes": "measure.choice.dtypes",
    "lecture": "measure.choice.lecture",
    "memory": "measure.choice.memory",
    "attention": "measure.choice.attention",
    "layer": "measure.choice.layer",
    "plan": "measure.choice.plan",
    "all": "measure.choice.all",
}

WHAT = choice(
    "what",
    message("measure.field.what"),
    tuple(one.name for one in CHOICES.values()),
    "Matmul by dtype",
    short=tuple(message(_NAMES[key]) for key in CHOICES),
)
MODEL = choice(
    "model",
    message("measure.field.model"),
    tuple(m.name for m in catalog() if not m.counted and not m.spec.mixer),
    "Llama 3 8B",
    part="layer",
)
LENGTH = quantity(
    "seq",
    message("measure.field.length"),
    "4096",
    "length",
    low=16,
    high=131_072,
    whole=True,
    part="layer",
    help=message("quantity.lengths"),
)
MICRO_BATCH = quantity(
    "mb", message("measure.field.micro_batch"), "1", "count", low=1, high=256, whole=True, part="layer"
)
ROOFLINE = switch("roof", message("measure.section.roofline"), False, part="panels")

_GONE = frozenset({"nodes=1", "gpus=8", "past=false", "several=false", "file=false", "every"})


def measure_form(device: DeviceKind, prefix: str, others: Sequence[Field] = ()) -> Form:
    """Return everything asked, with defaults that suit the device. others: fields of the page's experiments."""
    size = quantity(
        "n",
        message("measure.field.size"),
        str(SIZES[device][-1]),
        "count",
        low=_MIN_N,
        high=limit("matmul_size"),
        whole=True,
        help=message("measure.field.size_help"),
    )
    seconds = quantity(
        "each",
        message("measure.field.seconds"),
        f"{SECONDS[device]:g} s",
        "seconds",
        low=_MIN_SECONDS,
        high=limit("measure_dtype_seconds"),
        help=message("measure.field.seconds_help"),
    )
    model, length = MODEL, LENGTH
    if device == "cpu":
        model, length = model.with_default("GPT-2 124M"), length.with_default("512")
    fields = (WHAT, size, seconds, model, length, MICRO_BATCH, ROOFLINE, *others)
    return Form(prefix, fields, older={4: lambda texts: with_decimal_lengths(texts, (LENGTH.id,))}, gone=_GONE)
