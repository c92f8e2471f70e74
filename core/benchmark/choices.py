"""What a visitor may choose to have measured, each a programme of a minute or two at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.benchmark.device import DeviceKind
from core.benchmark.points import Kind
from core.benchmark.programme import CPU_DTYPES, DTYPES, KINDS, SECONDS, SIZES, SUSTAINED_S, LayerShape, Programme


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to choose: its name, what it tells, with {it} for the device, and the kinds that it measures.

    dtypes: of matmuls, where not all. one_size: only the largest square.
    """

    name: str
    tells: str
    kinds: tuple[Kind, ...]
    dtypes: tuple[str, ...] = ()
    one_size: bool = False


CHOICES: Mapping[str, Choice] = {
    "dtypes": Choice("Matmul by dtype", "how fast {it} multiplies matrices, in every dtype and size", ("matmul",)),
    "lecture": Choice(
        "The lecture’s experiment",
        "what x @ w reaches on {it} in fp32 and then in bf16, and the MFU of each",
        ("matmul",),
        ("fp32", "bf16"),
        one_size=True,
    ),
    "memory": Choice("Memory", "how fast {it} moves bytes", ("memory",)),
    "attention": Choice("Attention", "which attention is fastest on {it}, forward and backward", ("attention",)),
    "layer": Choice(
        "One layer’s training step", "how long a real training step of one layer takes on {it}", ("layer",)
    ),
    "plan": Choice(
        "Rates for a plan",
        "the rates of {it} that a plan can use in place of a datasheet’s",
        ("matmul", "memory"),
        ("fp32", "bf16", "fp16", "fp8", "nvfp4"),
    ),
    "all": Choice("Everything", "all of this about {it}", KINDS),
}
"""By id, in the order in which they are offered; the first is the default."""

LARGEST: Mapping[DeviceKind, int] = {"cpu": 2048, "cuda": 16_384}
"""The largest square to start from."""


def programme(
    choice: str, device: DeviceKind, largest: int, seconds: float, layer: LayerShape | None = None
) -> Programme:
    """The programme of a choice. largest: n of the largest square; seconds: timed per item."""
    item = CHOICES[choice]
    usual = CPU_DTYPES if device == "cpu" else DTYPES
    dtypes = tuple(dtype for dtype in usual if not item.dtypes or dtype in item.dtypes)
    below = () if item.one_size else tuple(n for n in SIZES[device] if n < largest)
    matmul = "matmul" in item.kinds
    return Programme(
        device=device,
        kinds=item.kinds,
        dtypes=dtypes if matmul else (),
        sizes=(*below, largest) if matmul else (),
        seconds=seconds,
        sustained_s=SUSTAINED_S[device] if matmul and not item.one_size else 0.0,
        layer=layer,
    )


def usual_seconds(device: DeviceKind) -> float:
    """Seconds per item to start from."""
    return SECONDS[device]
