"""What device is here, found without importing torch: NVML for NVIDIA GPUs, /proc for the processor."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

DeviceKind: TypeAlias = Literal["cpu", "cuda"]
"""Where tensors go, as torch spells it; ROCm goes by cuda."""

_BF16_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")
_FP16_FLAGS = ("amx_fp16", "avx512_fp16", "asimdhp")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML names it. ``power_limit_w`` is the board's default limit, None when it tells none."""

    name: str
    memory_bytes: float
    power_limit_w: float | None


@dataclass(frozen=True, slots=True)
class GpuState:
    """A GPU at one moment, and its board's default power limit; None for what nothing reports."""

    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_limit_w: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor: its name, what it has for short floats, logical processors, memory (None when unknown)."""

    name: str
    detail: str
    threads: int
    memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class Machine:
    """What can be measured here. ``why_not_cuda`` says in words why the CPU is measured, empty when a GPU is."""

    gpus: tuple[Gpu, ...]
    cpu: Cpu
    why_not_cuda: str

    @property
    def kind(self) -> DeviceKind:
        """What the page measures: the GPU when there is one that torch can use."""
        return "cpu" if self.why_not_cuda else "cuda"

    @property
    def name(self) -> str:
        """The device to be measured."""
        return self.cpu.name if self.kind == "cpu" else self.gpus[0].name

    def has(self, kind: DeviceKind, name: str) -> bool:
        """Whether a device of that name is here, as far as anything tells."""
        known = (self.cpu.name,) if kind == "cpu" else tuple(gpu.name for gpu in self.gpus)
        return name in known


def _nvml() -> Any | None:
    try:
        import pynvml  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return None
    return pynvml


@contextlib.contextmanager
def _driver() -> Generator[Any]:
    """NVML as long as it is asked; what it does not tell ends the block. Raises `_SilentError` where it is missing."""
    if (nvml := _nvml()) is None:
        raise _SilentError
    try:
        nvml.nvmlInit()
        try:
            yield nvml
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as problem:
        raise _SilentError from problem


class _SilentError(Exception):
    """Nothing tells."""


def gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs of this machine in NVML's order, none where the driver is missing."""
    with contextlib.suppress(_SilentError), _driver() as nvml:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return tuple(
            Gpu(
                _text(nvml.nvmlDeviceGetName(handle)),
                float(nvml.nvmlDeviceGetMemoryInfo(handle).total),
                _watts(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle),
            )
            for handle in handles
        )
    return ()


def hold_nvml() -> None:
    """Keep NVML ready until this process ends: starting it looks at every GPU anew, each time it is asked."""
    if (nvml := _nvml()) is not None:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlInit()


def nvml_state(uuid: str) -> GpuState:
    """Clock, temperature and power of the GPU with CUDA's ``uuid``; unknown where NVML is silent."""
    if not uuid:
        return GpuState()
    with contextlib.suppress(_SilentError), _driver() as nvml:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
        return GpuState(
            float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            _watts(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle),
            _watts(nvml, "nvmlDeviceGetPowerUsage", handle),
        )
    return GpuState()


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _watts(nvml: Any, ask: str, handle: object) -> float | None:
    try:
        return float(getattr(nvml, ask)(handle)) / 1000
    except nvml.NVMLError:
        return None


def cpu() -> Cpu:
    """The processor, from /proc where there is one."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    name, detail = describe_cpuinfo(text)
    return Cpu(name or platform.processor() or platform.machine(), detail, _threads(), memory_bytes())


def describe_cpuinfo(text: str) -> tuple[str, str]:
    """Name of the processor, and what it has for bf16 and fp16, from the text of /proc/cpuinfo.

    The second matters because a CPU without instructions for a short float runs it a hundred times slower.
    """
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    name = re.sub(r"\((?:R|TM|tm|r)\)", "", model[1]).strip() if model else ""
    if flags is None:
        return name, ""
    has = set(flags[1].split())
    parts: list[str] = []
    for dtype, wanted in (("bf16", _BF16_FLAGS), ("fp16", _FP16_FLAGS)):
        flag = next((flag for flag in wanted if flag in has), "")
        parts.append(f"{dtype} instructions: {flag}" if flag else no_instructions(dtype))
    return name, ", ".join(parts)


def no_instructions(dtype: str) -> str:
    """What a `Cpu`'s detail says of a dtype that it has no instructions for."""
    return f"{dtype} instructions: none"


def _threads() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def _meminfo(field: str) -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{field}:"):
                return float(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None
    return None


def memory_bytes() -> float | None:
    """Memory of the machine, None when nothing tells."""
    return _meminfo("MemTotal")


def available_bytes() -> float:
    """Memory that a new process can have: the smaller of the machine's and the container's; infinite if unknown."""
    room = _meminfo("MemAvailable")
    left = [math.inf if room is None else room]
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # no version 2 control group, or "max": no cap
        left.append(float((group / "memory.max").read_text()) - float((group / "memory.current").read_text()))
    return max(min(left), 0.0)


def torch_has_cuda() -> bool:
    """Whether the installed torch was built for CUDA, read from its version file without importing it."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"]", text, re.MULTILINE) is not None


def why_not_cuda(here: tuple[Gpu, ...], has_cuda: bool, visible: str | None) -> str:
    """Why torch cannot use a GPU here, in words; empty when it can.

    visible: the environment's ``CUDA_VISIBLE_DEVICES``, None when unset.
    """
    if not here:
        return "There is no CUDA GPU on this machine, so Napkin measures the CPU."
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES hides the {here[0].name} from this process, so Napkin measures the CPU."
    if not has_cuda:
        return f"There is an {here[0].name}, but the installed torch is built without CUDA, so Napkin measures the CPU."
    return ""


@lru_cache(maxsize=1)
def machine() -> Machine:
    """This machine, looked at once per process."""
    result = gpus()
    return Machine(result, cpu(), why_not_cuda(result, torch_has_cuda(), os.environ.get("CUDA_VISIBLE_DEVICES")))
