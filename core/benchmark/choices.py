"""What a user can choose to measure, each a program of a minute or two at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.benchmark.device import DeviceKind
from core.benchmark.points import Kind
from core.benchmark.programme import CPU_DTYPES, DTYPES, KINDS, SIZES, SUSTAINED_S, LayerShape, Programme


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of what to measure: its name in links, and the kinds of items.

    dtypes: dtypes of the matmuls; empty for all. one_size: whether only the largest square is measured.
    """

    name: str
    kinds: tuple[Kind, ...]
    dtypes: tuple[str, ...] = ()
    one_size: bool = False

    @property
    def has_layer(self) -> bool:
        """Whether a layer's shape decides what is measured."""
        return "attention" in self.kinds or "layer" in self.kinds


CHOICES: Mapping[str, Choice] = {
    "dtypes": Choice("Matmul by dtype", ("matmul",)),
    "lecture": Choice("The lecture’s experiment", ("matmul",), ("fp32", "bf16"), one_size=True),
    "memory": Choice("Memory", ("memory",)),
    "attention": Choice("Attention", ("attention",)),
    "layer": Choice("One layer’s training step", ("layer",)),
    "plan": Choice("Rates for a plan", ("matmul", "memory"), ("fp32", "bf16", "fp16", "fp8", "nvfp4")),
    "all": Choice("Everything", KINDS),
}
"""By id, in the order in which they are offered; the first is the default."""


def programme(
    choice: str, device: DeviceKind, largest: int, seconds: float, layer: LayerShape | None = None
) -> Programme:
    """Return the program of a choice. largest: n of the largest square; seconds: timed per item."""
    item = CHOICES[choice]
    known = CPU_DTYPES if device == "cpu" else DTYPES
    below = () if item.one_size else tuple(n for n in SIZES[device] if n < largest)
    matmul = "matmul" in item.kinds
    return Programme(
        device=device,
        kinds=item.kinds,
        dtypes=tuple(dtype for dtype in known if matmul and dtype in (item.dtypes or known)),
        sizes=(*below, largest) if matmul else (),
        seconds=seconds,
        sustained_s=SUSTAINED_S[device] if matmul and not item.one_size else 0.0,
        layer=layer,
    )
