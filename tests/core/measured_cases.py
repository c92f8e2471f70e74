"""Measurements made by hand, for all that shows or keeps one."""

from __future__ import annotations

from typing import Any

from core.benchmark.device import DeviceKind
from core.benchmark.points import DeviceFacts, Item, Kind, Outcome, Point, Refusal, State
from core.benchmark.programme import METHOD, Programme
from core.benchmark.record import Record
from core.products import matmul_flop

H200 = DeviceFacts(name="NVIDIA H200", detail="", threads=0, memory_bytes=150.1e9, power_limit_w=700.0)
CPU = DeviceFacts(name="AMD EPYC", detail="fp16 instructions: none", threads=2, memory_bytes=2.5e10, power_limit_w=None)


def item(kind: Kind, name: str, label: str, shape: tuple[int, ...] = (), **options: Any) -> Item:
    """One thing to be timed."""
    return Item(kind=kind, name=name, label=label, shape=shape, seconds=0.2, **options)


def point(
    of: Item, median_s: float, *, flop: float = 0, bytes: float = 0, spread: float = 1.1, **options: Any
) -> Point:
    """A point whose slow tenth takes ``spread`` times its median."""
    return Point(
        item=of,
        shape=of.shape,
        flop=flop,
        bytes=bytes,
        median_s=median_s,
        best_s=0.9 * median_s,
        p10_s=0.95 * median_s,
        p90_s=spread * median_s,
        runs=50,
        duration_s=0.2,
        **options,
    )


def square(dtype: str, n: int, rate: float, *, error: float = 1e-3, spread: float = 1.1, **options: Any) -> Point:
    """A matmul of n × n × n at ``rate`` FLOP/s."""
    flop = matmul_flop(n, n, n)
    given = {"relative_error": error, **options}
    regime = given.pop("regime", "burst")
    of = item("matmul", dtype, f"n = {n:,}", (n, n, n), regime=regime)
    return point(of, flop / rate, flop=flop, bytes=3 * n * n * 2, spread=spread, **given)


def copy(label: str, size: float, bandwidth: float) -> Point:
    """A copy of ``size`` bytes, counted read and written."""
    return point(item("memory", "copy", label, (int(size),)), 2 * size / bandwidth, bytes=2 * size)


def refusal(dtype: str, n: int, text: str, why: Any = "refused") -> Refusal:
    """A matmul that was not measured."""
    return Refusal(item=item("matmul", dtype, f"n = {n:,}", (n, n, n)), why=why, text=text)


def record(device: DeviceKind, *outcomes: Outcome, **options: Any) -> Record:
    """A finished measurement of these outcomes."""
    dtypes = tuple(dict.fromkeys(one.item.name for one in outcomes if one.item.kind == "matmul"))
    sizes = sorted({one.item.shape[0] for one in outcomes if one.item.kind == "matmul"})
    kinds: tuple[Kind, ...] = tuple(dict.fromkeys(one.item.kind for one in outcomes)) or ("matmul",)
    given: dict[str, Any] = {
        "id": "0123456789ab",
        "programme": Programme(device=device, kinds=kinds, dtypes=dtypes, sizes=tuple(sizes), seconds=0.2),
        "stage": "finished",
        "started": 1.79e9,
        "elapsed_s": 20.0,
        "method": METHOD,
        "torch": "2.13.0",
        "facts": H200 if device == "cuda" else CPU,
        "outcomes": outcomes,
        **options,
    }
    return Record(**given)


def on_gpu(**options: Any) -> Record:
    """A measurement of an H200 with most of what can be in one."""
    state: dict[str, Any] = {
        "before": State(clock_mhz=1980, temperature_c=40, power_w=120),
        "after": State(clock_mhz=1400, temperature_c=61, power_w=690),
    }
    math = item("attention", "math, forward", "32 heads × 128, 4,096 tokens", (1, 32, 4096, 128))
    flash = item("attention", "flash, forward", "32 heads × 128, 4,096 tokens", (1, 32, 4096, 128))
    return record(
        "cuda",
        square("fp32", 1024, 2e13, error=1e-7),
        square("fp32", 8192, 5e13, error=1e-7),
        square("bf16", 1024, 2e14),
        square("bf16", 4095, 3e14),
        square("bf16", 8192, 6.7e14, **state),
        square("fp8", 8192, 1.3e15, error=4e-2),
        refusal("nvfp4", 8192, "RuntimeError: not on this device"),
        square("bf16", 8192, 6.2e14, regime="sustained"),
        copy("1 MiB", 2**20, 8e12),
        copy("1 GiB", 2**30, 4e12),
        point(math, 2e-5, flop=8 * 4096**2, bytes=4 * 4096**2, relative_error=3e-3),
        point(flash, 1e-3, flop=2.2e11, bytes=1.3e8, relative_error=1e-3),
        **options,
    )
