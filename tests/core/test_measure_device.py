"""What device is here, and which datasheet it has."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from core.benchmark import device
from core.benchmark.datasheet import match
from core.benchmark.device import Gpu, GpuState, Machine, describe_cpuinfo, why_not_cuda
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
MIB = 2**20

KNOWN: list[tuple[str, int, float | None, str]] = [
    # name by NVML, memory it reports in MiB, default power limit in W, row of the accelerator table
    ("NVIDIA H100 80GB HBM3", 81559, 700, "H100 SXM"),
    ("NVIDIA H100 80GB HBM3", 81559, None, "H100 SXM"),
    ("NVIDIA H100 PCIe", 81559, 350, "H100 PCIe"),
    ("NVIDIA H100 NVL", 95830, 400, "H100 NVL"),
    ("NVIDIA H100", 97871, 500, "H100 96 GB (OCP)"),
    ("NVIDIA H100", 81559, 350, "H100 PCIe"),
    ("NVIDIA H200", 143771, 700, "H200 SXM"),
    ("NVIDIA H200 NVL", 143771, 600, "H200 NVL"),
    ("NVIDIA GH200 480GB", 97871, 900, "GH200 96 GB"),
    ("NVIDIA A100-SXM4-40GB", 40960, 400, "A100 SXM 40 GB"),
    ("NVIDIA A100-PCIE-40GB", 40960, 250, "A100 PCIe 40 GB"),
    ("NVIDIA A100 80GB PCIe", 81920, 300, "A100 PCIe 80 GB"),
    ("NVIDIA A100-SXM4-80GB", 81920, 400, "A100 SXM 80 GB"),
    ("Tesla V100-SXM2-16GB", 16160, 300, "V100 SXM 16 GB"),
    ("Tesla T4", 15360, 70, "T4"),
    ("NVIDIA A10G", 23028, 300, "A10G"),
    ("NVIDIA L4", 23034, 72, "L4"),
    ("NVIDIA L40S", 46068, 350, "L40S"),
    ("NVIDIA RTX A6000", 49140, 300, "RTX A6000"),
    ("NVIDIA GeForce RTX 3090", 24576, 350, "RTX 3090"),
    ("NVIDIA GeForce RTX 4090", 24564, 450, "RTX 4090"),
    ("NVIDIA RTX 6000 Ada Generation", 49140, 300, "RTX 6000 Ada"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, 600, "RTX PRO 6000 Workstation"),
    ("NVIDIA B200", 183359, 1000, "B200"),
    ("NVIDIA GB200", 189471, 1200, "GB200"),
]

UNKNOWN: list[tuple[str, int, float | None]] = [
    ("", 81559, 700),
    ("NVIDIA A100-SXM-64GB", 65536, 400),
    ("NVIDIA GeForce RTX 3090 Ti", 24564, 450),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, None),
    ("NVIDIA GeForce RTX 4090 D", 24564, 425),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, 300),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9728, 700),
    ("NVIDIA H100 80GB HBM3", 9728, 700),  # a slice that carries the name of the whole
    ("Tesla V100S-PCIE-32GB", 32510, 250),
    ("GRID A100-10C", 10240, None),
    ("Quadro RTX 6000", 24220, 260),
    ("AMD Instinct MI300X", 196592, 750),
]


@every(("name", "mebibytes", "watts", "row"), KNOWN)
def test_a_gpu_finds_its_datasheet(name: str, mebibytes: int, watts: float | None, row: str) -> None:
    sheet = match(name, mebibytes * MIB, watts)
    assert sheet.name == row
    assert sheet.reason == ""
    # torch reports a little less memory than NVML does.
    assert match(name, 0.993 * mebibytes * MIB, watts).name == row


@every(("name", "mebibytes", "watts"), UNKNOWN)
def test_an_unknown_gpu_stays_unknown(name: str, mebibytes: int, watts: float | None) -> None:
    sheet = match(name, mebibytes * MIB, watts)
    assert sheet.rows == ()
    assert sheet.reason
    assert math.isnan(sheet.peak("bf16"))


def test_an_ambiguous_gpu_has_the_peaks_on_which_its_rows_agree() -> None:
    either = match("NVIDIA H100", 81559 * MIB, None)
    assert either.name == "H100 PCIe or H100 SXM"
    assert "may be" in either.reason
    assert math.isnan(either.peak("bf16"))
    same = match("NVIDIA A100", 40960 * MIB, None)
    assert len(same.rows) == 2
    assert same.peak("bf16") == 312e12


X86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz\nflags\t\t: fpu {}\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd asimdhp sve bf16 i8mm\n"
XEON = "Intel Xeon Platinum 8481C CPU @ 2.70GHz"


@every(
    ("text", "name", "bf16", "fp16"),
    [
        (X86.format("avx512_bf16 avx512_fp16 amx_bf16"), XEON, "amx_bf16", "avx512_fp16"),
        (X86.format("avx2"), XEON, "none", "none"),
        (ARM, "", "bf16", "asimdhp"),
    ],
)
def test_reading_cpuinfo(text: str, name: str, bf16: str, fp16: str) -> None:
    assert describe_cpuinfo(text) == (name, f"bf16 instructions: {bf16}, fp16 instructions: {fp16}")


@pytest.mark.process
def test_the_build_of_torch_is_read_without_importing_it() -> None:
    assert device.torch_has_cuda() == (torch.version.cuda is not None)
    code = (
        "import sys\nfrom core.benchmark import device\nfrom core.benchmark.running import jobs\n"
        "from core.views.benchmark import matmul\ndevice.machine()\n"
        "print([m for m in ('torch', 'streamlit', 'pandas', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]", done.stderr


GPU = Gpu("NVIDIA H200", 143771.0 * MIB, 700.0)


@every(
    ("gpus", "has_cuda", "visible", "kind"),
    [
        ((), True, None, "cpu"),
        ((GPU,), False, None, "cpu"),
        ((GPU,), True, "", "cpu"),
        ((GPU,), True, "-1", "cpu"),
        ((GPU,), True, "1,0", "cuda"),
    ],
)
def test_a_usable_gpu_is_measured(gpus: tuple[Gpu, ...], has_cuda: bool, visible: str | None, kind: str) -> None:
    assert Machine(gpus, device.cpu(), why_not_cuda(gpus, has_cuda, visible)).kind == kind


class FakeNvmlError(Exception):
    """NVML's own exception."""


class FakeNvml:
    """As much of NVML as is used, for one H200; ``broken`` names a call that fails."""

    NVMLError = FakeNvmlError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.open = 0

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name == object.__getattribute__(self, "broken"):
            raise FakeNvmlError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return f"handle {index}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        assert uuid == "GPU-1234"
        return "handle 0"

    def nvmlDeviceGetName(self, handle: str) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(total=143771 * MIB)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: str) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 300_500

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return 41


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    fake = FakeNvml()
    monkeypatch.setattr(device, "_nvml", lambda: fake)
    yield fake
    assert fake.open == 0, "every session with the driver is closed"


def test_gpus_come_from_nvml(nvml: FakeNvml) -> None:
    assert device.gpus() == (GPU,)
    assert device.nvml_state("1234") == GpuState(1980.0, 41.0, 700.0, 300.5)
    assert device.nvml_state("GPU-1234") == GpuState(1980.0, 41.0, 700.0, 300.5)
    assert device.nvml_state("") == GpuState()


@pytest.mark.parametrize(
    ("broken", "gpus", "state"),
    [
        ("nvmlInit", (), GpuState()),
        ("nvmlDeviceGetCount", (), GpuState(1980.0, 41.0, 700.0, 300.5)),
        ("nvmlDeviceGetHandleByUUID", (GPU,), GpuState()),
        (
            "nvmlDeviceGetPowerManagementDefaultLimit",
            (Gpu(GPU.name, GPU.memory_bytes, None),),
            GpuState(1980.0, 41.0, None, 300.5),
        ),
        ("nvmlDeviceGetPowerUsage", (GPU,), GpuState(1980.0, 41.0, 700.0)),
    ],
)
def test_what_nvml_does_not_tell_is_unknown(
    nvml: FakeNvml, broken: str, gpus: tuple[Gpu, ...], state: GpuState
) -> None:
    nvml.broken = broken
    assert device.gpus() == gpus
    assert device.nvml_state("1234") == state


def test_the_names_used_of_nvml_exist() -> None:
    import pynvml

    assert issubclass(pynvml.NVMLError, Exception)
    for name in vars(FakeNvml):
        if name.startswith(("nvml", "NVML_")):
            assert hasattr(pynvml, name), name
