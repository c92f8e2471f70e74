"""Benches on this CPU, and a stand-in for CUDA, for the tests of what is timed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

from core.benchmark import device
from core.benchmark.device import DeviceKind
from core.benchmark.points import Item, Outcome, Refusal, State
from core.benchmark.programme import LayerShape, Programme
from core.benchmark.timing.bench import Bench, RefusedError, SkippedError, attempt
from core.benchmark.timing.timers import cpu_timer
from core.messages import Message

TINY = LayerShape(
    model="tiny", hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=96, gated=True, vocab=100, seq_len=32, micro_batch=2
)  # fmt: skip
"""A layer of 30,720 weights in matrices and 128 gains, with 64 tokens."""


BF16, FP32 = 2, 4
"""Bytes of an element."""


def processor(monkeypatch: pytest.MonkeyPatch, element: int) -> int:
    """Have a processor with, or without, instructions for bf16; gives the bytes that it computes in."""
    bf16 = "amx_bf16" if element == BF16 else ""
    monkeypatch.setattr(device, "cpu", lambda: device.Cpu("a processor", bf16, "", 2, None))
    return element


def programme(layer: LayerShape | None = TINY, device: DeviceKind = "cpu") -> Programme:
    return Programme(device=device, kinds=("layer",), dtypes=(), sizes=(), seconds=0.02, layer=layer)


def bench(library: Any = torch, kind: DeviceKind = "cpu", room: float = 1e10) -> Bench:
    """A bench whose tensors lie on the CPU, whatever it takes itself for."""
    return Bench(library, kind, "cpu", cpu_timer, State, lambda: room)


def measured(module: ModuleType, item: Item, asked: Programme, on: Bench | None = None) -> Outcome:
    """What becomes of one item."""
    here = on or bench()
    said: list[float] = []
    found = attempt(here, item, lambda: module.prepare(here, asked, item), said.append)
    assert said == sorted(said)
    return found


def refusal(module: ModuleType, item: Item, asked: Programme | None = None, on: Bench | None = None) -> Message:
    """Why an item is not measured, which `attempt` keeps as a text."""
    asked, here = asked or programme(), on or bench()
    with pytest.raises((SkippedError, RefusedError)) as raised:
        module.prepare(here, asked, item)
    found = measured(module, item, asked, here)
    why = "skipped" if raised.type is SkippedError else "refused"
    assert isinstance(found, Refusal)
    assert (found.why, found.text) == (why, str(raised.value))
    (reason,) = raised.value.args
    assert isinstance(reason, Message)
    return reason


def stand_in(**instead: Any) -> Any:
    """torch with some names replaced."""

    class Torch:
        def __getattr__(self, name: str) -> Any:
            return instead[name] if name in instead else getattr(torch, name)

    return Torch()


class FakeCuda:
    """As much of torch.cuda as timers need: a device whose kernels take 2 µs each, and what the host asked for.

    launch_cycles: of the device, that the host takes to issue a kernel.
    """

    KERNEL_S = 2e-6

    def __init__(self, launch_cycles: int = 10_000) -> None:
        self.launch_cycles, self.ahead = launch_cycles, 0
        self.log: list[str] = []
        self.clock = 0.0
        self.get_device_properties: Any = None
        outer = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                self.at = -1.0

            def record(self) -> None:
                outer.log.append("record")
                self.at = outer.clock

            def query(self) -> bool:
                return outer.ahead < 0

            def elapsed_time(self, end: Event) -> float:
                assert outer.log[-1] == "synchronize", "read before the device was done"
                return (end.at - self.at) * 1e3

        self.Event = Event

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def _sleep(self, cycles: int) -> None:
        assert cycles > 0
        self.ahead = cycles
        self.log.append("sleep")

    def launch(self) -> None:
        """A kernel."""
        self.ahead -= self.launch_cycles
        self.clock += self.KERNEL_S
        self.log.append("kernel")
