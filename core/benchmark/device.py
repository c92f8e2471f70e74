"""What device is here, found without importing torch: NVML for NVIDIA GPUs, /proc for the processor."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from core.limits import cached
from core.messages import Message, message, pick_message

DeviceKind: TypeAlias = Literal["cpu", "cuda"]
"""Where tensors go, as torch spells it."""

_Told = TypeVar("_Told")

_BF16_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")
_CLOCK_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"
_FP16_FLAGS = ("amx_fp16", "avx512_fp16", "asimdhp")

MIG = " MIG"
_IN_USE_PERCENT = 10
"""Utilization from which a GPU is in use; a desktop's takes less."""
_DEVICES, _CARDS = Path("/dev"), Path("/sys/class/drm")
_WHEELS = "https://download.pytorch.org/whl/cu126"
"""Where the torch that Napkin asks for lies for drivers with any CUDA 12."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML names it, with the board's default power limit; empty or None for what nothing tells.

    One in MIG mode has `MIG` after its name: CUDA takes one of its slices, whose memory is not that of the whole.
    """

    name: str
    memory_bytes: float | None
    power_limit_w: float | None
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class GpuState:
    """State of a GPU at one moment, with the default power limit of its board; None for values that are not reported.

    enforced_limit_w: the current power limit. energy_j: energy since the driver was loaded. clock_reasons: NVML's bits
    for the reasons of a lowered clock.
    """

    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_limit_w: float | None = None
    power_w: float | None = None
    enforced_limit_w: float | None = None
    energy_j: float | None = None
    clock_reasons: int | None = None


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor: its name, its instructions for bf16 and fp16 (empty without any), logical processors, memory.

    A processor without instructions for a 16-bit format runs it up to a hundred times slower.
    """

    name: str
    bf16: str
    fp16: str
    threads: int
    memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices of this machine.

    gpus: the GPUs that CUDA can use, in its order; all GPUs if it can use none. why_not_cuda: the reason why the CPU is
    measured; empty if a GPU is.
    """

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
        """Return whether a device of that name is here, as far as anything tells. CUDA names a slice after its GPU."""
        if kind == "cpu":
            return name == self.cpu.name
        return any(gpu.name in ("", re.sub(f"(?<={MIG}) .*", "", name)) for gpu in self.gpus)


def _nvml() -> Any | None:
    with contextlib.suppress(ImportError):
        import pynvml  # pyright: ignore[reportMissingTypeStubs]

        return pynvml
    return None


def _told(ask: Callable[[Any], _Told], otherwise: _Told) -> _Told:
    """Return what NVML answers, and ``otherwise`` where it is missing or rejects."""
    if (nvml := _nvml()) is None:
        return otherwise
    try:
        nvml.nvmlInit()
        try:
            return ask(nvml)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError:
        return otherwise


def gpus() -> tuple[Gpu, ...]:
    """Return the NVIDIA GPUs of this machine in NVML's order; nameless GPUs for the device files if NVML reports
    none."""

    def ask(nvml: Any) -> tuple[Gpu, ...]:
        handles = (_ask(nvml, "nvmlDeviceGetHandleByIndex", i) for i in range(nvml.nvmlDeviceGetCount()))
        return tuple(_gpu(nvml, handle) for handle in handles if handle is not None)

    return _told(ask, ()) or (Gpu("", None, None),) * len(list(_DEVICES.glob("nvidia[0-9]*")))


def _gpu(nvml: Any, handle: object) -> Gpu:
    sliced = (_ask(nvml, "nvmlDeviceGetMigMode", handle) or (0,))[0]
    memory = None if sliced else _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return Gpu(
        _text(_ask(nvml, "nvmlDeviceGetName", handle)) + MIG * bool(sliced),
        None if memory is None else float(memory.total),
        _amount(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle, unit=1000),
        _text(_ask(nvml, "nvmlDeviceGetUUID", handle)),
    )


def hold_nvml() -> None:
    """Keep NVML ready until this process ends: starting it looks at every GPU again, each time it is asked."""
    if (nvml := _nvml()) is not None:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlInit()


def nvml_state(uuid: str) -> GpuState:
    """Return clock, temperature and power of the GPU with CUDA's ``uuid``; unknown if NVML is silent."""

    def ask(nvml: Any) -> GpuState:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
        return GpuState(
            _amount(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
            _amount(nvml, "nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            _amount(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle, unit=1000),
            _amount(nvml, "nvmlDeviceGetPowerUsage", handle, unit=1000),
            _amount(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle, unit=1000),
            _amount(nvml, "nvmlDeviceGetTotalEnergyConsumption", handle, unit=1000),
            _ask(nvml, _CLOCK_REASONS, handle),
        )

    return _told(ask, GpuState()) if uuid else GpuState()


def other_users(gpu: Gpu) -> Message | str:
    """Return what else uses a GPU, asked before this process does; empty if nothing does or NVML is silent."""

    def ask(nvml: Any) -> Message | str:
        handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        computing, drawing = (
            {process.pid for process in _ask(nvml, f"nvmlDeviceGet{kind}RunningProcesses", handle) or ()}
            for kind in ("Compute", "Graphics")
        )
        count, rates = float(len(computing - drawing)), _ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
        users = [message("device.users.processes", count=count)] if count else []
        if rates and rates.gpu >= _IN_USE_PERCENT:
            users.append(message("device.users.utilization", share=rates.gpu / 100))
        return message("device.users", users=users) if users else ""

    nothing: Message | str = ""
    return _told(ask, nothing) if gpu.uuid and not gpu.name.endswith(MIG) else ""  # a slice's neighbors do not matter


def _ask(nvml: Any, what: str, *of: object) -> Any | None:
    """Return what one call tells, None if it tells nothing: a container or a device may refuse it alone."""
    try:
        return getattr(nvml, what)(*of)
    except nvml.NVMLError:
        return None


def _text(name: str | bytes | None) -> str:
    return name.decode() if isinstance(name, bytes) else name or ""


def _amount(nvml: Any, what: str, *of: object, unit: int = 1) -> float | None:
    told = _ask(nvml, what, *of)
    return None if told is None else float(told) / unit


def cpu() -> Cpu:
    """Return the processor, from /proc where there is one."""
    text = ""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    name, bf16, fp16 = describe_cpuinfo(text)
    return Cpu(name or platform.processor() or platform.machine(), bf16, fp16, _threads(), _meminfo("MemTotal"))


def describe_cpuinfo(text: str) -> tuple[str, str, str]:
    """Return a processor's name and its instructions for bf16 and fp16, from the text of /proc/cpuinfo."""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    name = re.sub(r"\((?:R|TM|tm|r)\)", "", model[1]).strip() if model else ""
    has = set(flags[1].split()) if flags else set[str]()
    bf16, fp16 = (next((flag for flag in wanted if flag in has), "") for wanted in (_BF16_FLAGS, _FP16_FLAGS))
    return name, bf16, fp16


def _threads() -> int:
    here = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(here(0)) if here else os.cpu_count() or 1


def _meminfo(field: str) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        if line := re.search(rf"^{field}:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE):
            return float(line[1]) * 1024
    return None


def available_bytes() -> float:
    """Return memory that a new process can have: the smaller of the machine's and the container's; infinite if
    unknown."""
    room = _meminfo("MemAvailable")
    left = [math.inf if room is None else room]
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # no version 2 control group, or "max": no cap
        left.append(float((group / "memory.max").read_text()) - float((group / "memory.current").read_text()))
    return max(min(left), 0.0)


def torch_cuda() -> str:
    """Return the CUDA version that the installed torch was built for, read from its version file without importing
    it."""
    with contextlib.suppress(OSError):
        if (spec := find_spec("torch")) and spec.origin:
            text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
            if built := re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"]([^'\"]*)", text, re.MULTILINE):
                return built[1]
    return ""


def driver_cuda() -> int | None:
    """Return the CUDA version that the driver has, 12040 for 12.4; None if NVML is silent."""
    return _told(lambda nvml: _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2"), None)


def amd_gpu() -> str:
    """Return the name of the AMD GPU that ROCm could use, "AMD GPU" if it has none; empty without such a GPU."""
    if not (_DEVICES / "kfd").exists():
        return ""
    names = [file.read_text(errors="replace").strip() for file in sorted(_CARDS.glob("card*/device/product_name"))]
    return next(filter(None, names), "AMD GPU")


def taken_by_cuda(here: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA uses, in its order: all, or those of ``CUDA_VISIBLE_DEVICES`` up to the first unknown
    entry.

    An entry is an index in NVML's order, which the measuring process sets, or the beginning of a UUID. If no UUID is
    known, CUDA decides.
    """
    if visible is None:
        return here
    entries = map(str.strip, visible.split(","))
    fits = ([gpu for place, gpu in enumerate(here) if _is_meant(entry, place, gpu)] for entry in entries)
    return tuple(gpus[0] for gpus in takewhile(bool, fits))


def _is_meant(entry: str, place: int, gpu: Gpu) -> bool:
    if entry.isdecimal():
        return int(entry) == place
    if entry.startswith("MIG-"):
        return not gpu.uuid or gpu.name.endswith(MIG)
    return entry.startswith("GPU-") and (not gpu.uuid or gpu.uuid.startswith(entry))


def why_not_cuda(
    here: tuple[Gpu, ...], built_for: str, visible: str | None, driver: int | None = None, amd: str = ""
) -> Message | str:
    """Return why torch cannot use a GPU here; empty if it can.

    Args:
        built_for, driver: CUDA versions, see `torch_cuda` and `driver_cuda`.
        visible: ``CUDA_VISIBLE_DEVICES`` of the environment, None if unset.
        amd: See `amd_gpu`.
    """
    if not here:
        return message("device.cpu_only.amd", gpu=amd) if amd else message("device.cpu_only.no_gpu")
    taken = taken_by_cuda(here, visible)
    name = (taken or here)[0].name or message("device.unnamed_gpu")
    if not taken:
        return message("device.cpu_only.hidden", gpu=name, visible=visible)
    if not built_for:
        return message("device.cpu_only.no_cuda", gpu=name)
    needed = int(built_for.split(".")[0])
    if driver is not None and driver // 1000 < needed:
        has = f"{driver // 1000}.{driver % 1000 // 10}"
        old = "device.cpu_only.driver_12" if driver // 1000 == 12 else "device.cpu_only.driver"
        return pick_message(old, gpu=name, has=has, needed=float(needed), wheels=_WHEELS)
    return ""


@cached("tables_kept")
def machine() -> Machine:
    """Return this machine, looked at once per process."""
    here, visible = gpus(), os.environ.get("CUDA_VISIBLE_DEVICES")
    why = why_not_cuda(here, torch_cuda(), visible, driver_cuda(), amd_gpu())
    return Machine(taken_by_cuda(here, visible) or here, cpu(), why)
