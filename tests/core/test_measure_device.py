"""What device is here, and which datasheet it has."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from core.benchmark import device
from core.benchmark.datasheet import match, peak_of
from core.benchmark.device import Gpu, GpuState, Machine, describe_cpuinfo, taken_by_cuda, why_not_cuda
from core.messages import Message
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
MIB = 2**20


def said(text: object) -> Message:
    assert isinstance(text, Message)
    return text


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
    ("NVIDIA GH200 144G HBM3e", 146831, 900, "GH200 144 GB"),
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
    ("NVIDIA H100 80GB HBM3 MIG", 81559, 700),
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
    assert said(either.reason).values["rows"] == ["H100 PCIe", "H100 SXM"]
    assert math.isnan(either.peak("bf16"))
    same = match("NVIDIA A100", 40960 * MIB, None)
    assert len(same.rows) == 2
    assert same.peak("bf16") == 312e12


def test_matrix_units_take_fp64_on_an_h200_nvl() -> None:
    assert peak_of(match("NVIDIA H200 NVL", 143771 * MIB, 600), "fp64") == 60e12


X86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz\nflags\t\t: fpu {}\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd asimdhp sve bf16 i8mm\n"
XEON = "Intel Xeon Platinum 8481C CPU @ 2.70GHz"


@every(
    ("text", "name", "bf16", "fp16"),
    [
        (X86.format("avx512_bf16 avx512_fp16 amx_bf16"), XEON, "amx_bf16", "avx512_fp16"),
        (X86.format("avx2"), XEON, "", ""),
        (ARM, "", "bf16", "asimdhp"),
    ],
)
def test_reading_cpuinfo(text: str, name: str, bf16: str, fp16: str) -> None:
    assert describe_cpuinfo(text) == (name, bf16, fp16)


@pytest.mark.process
def test_the_build_of_torch_is_read_without_importing_it() -> None:
    assert device.torch_cuda() == (torch.version.cuda or "")
    code = (
        "import sys\nfrom core.benchmark import device\nfrom core.benchmark.running import jobs\n"
        "from core.views.benchmark import text\ndevice.machine()\n"
        "print([m for m in ('torch', 'streamlit', 'pandas', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]", done.stderr


GPU = Gpu("NVIDIA H200", 143771.0 * MIB, 700.0, "GPU-1234")
OTHER = Gpu("NVIDIA T4", 15360.0 * MIB, 70.0, "GPU-1299")
SLICED = Gpu("NVIDIA A100-SXM4-40GB MIG", None, 400.0, "GPU-77")
NAMELESS = Gpu("", None, None)


@every(
    ("gpus", "built_for", "visible", "driver", "kind"),
    [
        ((), "13.0", None, None, "cpu"),
        ((GPU,), "", None, None, "cpu"),
        ((GPU,), "13.0", "", None, "cpu"),
        ((GPU,), "13.0", "-1", None, "cpu"),
        ((GPU,), "13.0", "1,0", None, "cpu"),  # CUDA takes none after an unknown entry
        ((GPU,), "13.0", "0,1", None, "cuda"),
        ((NAMELESS,), "13.0", None, None, "cuda"),
        ((GPU,), "13.0", None, 12080, "cpu"),
        ((GPU,), "13.2", None, 13000, "cuda"),  # within a major version any driver serves
        ((GPU,), "12.6", None, 13000, "cuda"),
        ((GPU,), "12.6", None, 11080, "cpu"),
    ],
)
def test_a_usable_gpu_is_measured(
    gpus: tuple[Gpu, ...], built_for: str, visible: str | None, driver: int | None, kind: str
) -> None:
    assert Machine(gpus, device.cpu(), why_not_cuda(gpus, built_for, visible, driver)).kind == kind


def test_an_old_driver_is_named_with_the_torch_that_it_can_serve() -> None:
    old, older = (said(why_not_cuda((GPU,), "13.0", None, driver)) for driver in (12040, 11080))
    assert (old.id, old.values["has"], old.values["needed"]) == ("device.cpu_only.driver_12", "12.4", 13.0)
    assert old.values["wheels"] == "https://download.pytorch.org/whl/cu126"
    assert older.id == "device.cpu_only.driver", "no torch of today serves it"


@every(
    ("visible", "taken"),
    [
        (None, (GPU, OTHER, SLICED)),
        ("1", (OTHER,)),
        (" 1 , 0", (OTHER, GPU)),
        ("2,-1,0", (SLICED,)),
        ("9,0", ()),
        ("", ()),
        ("GPU-1299", (OTHER,)),
        ("GPU-129,GPU-1234", (OTHER, GPU)),
        ("GPU-5,GPU-1234", ()),
        ("MIG-0a1b", (SLICED,)),
        ("none", ()),
    ],
)
def test_the_gpu_that_is_named_is_the_one_that_cuda_takes(visible: str | None, taken: tuple[Gpu, ...]) -> None:
    assert taken_by_cuda((GPU, OTHER, SLICED), visible) == taken


def test_without_uuids_cuda_decides() -> None:
    for visible in ("GPU-1", "MIG-1", "0"):
        assert taken_by_cuda((NAMELESS,), visible) == (NAMELESS,)


def test_a_measurement_is_of_this_machine_by_its_name() -> None:
    here = Machine((OTHER, SLICED), device.cpu(), "")
    assert here.has("cuda", "NVIDIA T4")
    assert here.has("cuda", "NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    for other in ("NVIDIA A100-SXM4-40GB", "NVIDIA T4 MIG 1g.5gb", "NVIDIA H200", ""):
        assert not here.has("cuda", other)
    assert Machine((NAMELESS,), device.cpu(), "").has("cuda", "NVIDIA GB10"), "nothing tells it otherwise"


class FakeNvmlError(Exception):
    """NVML's own exception."""


class FakeNvml:
    """As much of NVML as is used, for one H200; ``broken`` names a call that fails."""

    NVMLError = FakeNvmlError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *broken: str) -> None:
        self.broken = broken
        self.open = 0
        self.sliced, self.busy, self.names = 0, 3, [b"NVIDIA H200"]
        self.computing, self.drawing = list[int](), list[int]()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "broken"):
            raise FakeNvmlError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.names)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        if not self.names[index]:
            raise FakeNvmlError("no permission")
        return f"handle {index}"

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return "GPU-1234"

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:  # noqa: N802
        return [self.sliced, 0]

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self.busy)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.computing]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.drawing]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        assert uuid == "GPU-1234"
        return "handle 0"

    def nvmlDeviceGetName(self, handle: str) -> bytes:  # noqa: N802
        return self.names[int(handle.split()[1])]

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(total=143771 * MIB)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: str) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 300_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:  # noqa: N802
        return 500_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return 9_000_500

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return 41


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeNvml]:
    fake = FakeNvml()
    monkeypatch.setattr(device, "_nvml", lambda: fake)
    monkeypatch.setattr(device, "_DEVICES", tmp_path / "dev")
    monkeypatch.setattr(device, "_CARDS", tmp_path / "cards")
    yield fake
    assert fake.open == 0, "every session with the driver is closed"


def test_gpus_come_from_nvml(nvml: FakeNvml) -> None:
    assert device.gpus() == (GPU,)
    assert device.nvml_state("1234") == GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)
    assert device.nvml_state("GPU-1234") == GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)
    assert device.nvml_state("") == GpuState()


@pytest.mark.parametrize(
    ("broken", "gpus", "state"),
    [
        ("nvmlInit", (), GpuState()),
        ("nvmlDeviceGetCount", (), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetHandleByUUID", (GPU,), GpuState()),
        (
            "nvmlDeviceGetPowerManagementDefaultLimit",
            (replace(GPU, power_limit_w=None),),
            GpuState(1980.0, 41.0, None, 300.5, 500.0, 9000.5, 4),
        ),
        ("nvmlDeviceGetPowerUsage", (GPU,), GpuState(1980.0, 41.0, 700.0, None, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetClockInfo", (GPU,), GpuState(None, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetTemperature", (GPU,), GpuState(1980.0, None, 700.0, 300.5, 500.0, 9000.5, 4)),
        (
            "nvmlDeviceGetMemoryInfo",
            (replace(GPU, memory_bytes=None),),
            GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4),
        ),
        ("nvmlDeviceGetName", (replace(GPU, name=""),), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetUUID", (replace(GPU, uuid=""),), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetMigMode", (GPU,), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5, 4)),
        ("nvmlDeviceGetEnforcedPowerLimit", (GPU,), GpuState(1980.0, 41.0, 700.0, 300.5, None, 9000.5, 4)),
        ("nvmlDeviceGetTotalEnergyConsumption", (GPU,), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, None, 4)),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", (GPU,), GpuState(1980.0, 41.0, 700.0, 300.5, 500.0, 9000.5)),
    ],
)
def test_what_nvml_does_not_tell_is_unknown(
    nvml: FakeNvml, broken: str, gpus: tuple[Gpu, ...], state: GpuState
) -> None:
    nvml.broken = (broken,)
    assert device.gpus() == gpus
    assert device.nvml_state("1234") == state


@pytest.mark.parametrize("missing", [True, False])
def test_without_nvml_the_devices_files_tell_of_gpus(
    nvml: FakeNvml, missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.broken = ("nvmlInit",)
    if missing:
        monkeypatch.setattr(device, "_nvml", lambda: None)
    assert device.gpus() == ()
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    assert device.gpus() == (NAMELESS, NAMELESS)
    assert device.driver_cuda() is None
    assert device.other_users(NAMELESS) == ""
    assert Machine(device.gpus(), device.cpu(), why_not_cuda(device.gpus(), "13.0", None, None)).kind == "cuda"


def test_a_gpu_that_may_not_be_looked_at_is_none_of_this_process(nvml: FakeNvml) -> None:
    nvml.names = [b"", b"NVIDIA H200"]
    assert device.gpus() == (GPU,)


def test_a_gpu_in_slices_has_neither_the_memory_nor_the_datasheet_of_the_whole(nvml: FakeNvml) -> None:
    nvml.sliced, nvml.busy, nvml.computing = 1, 90, [4]
    (gpu,) = device.gpus()
    assert gpu == Gpu("NVIDIA H200 MIG", None, 700.0, "GPU-1234")
    assert match(gpu.name, gpu.memory_bytes, gpu.power_limit_w).rows == ()
    assert device.other_users(gpu) == "", "of other slices"


@pytest.mark.parametrize(
    ("computing", "drawing", "busy", "processes", "share"),
    [
        ([], [], 3, 0, 0),
        ([], [7], 9, 0, 0),
        ([7], [7], 3, 0, 0),  # a desktop
        ([7, 8], [8], 3, 1, 0),
        ([7, 8], [], 87, 2, 0.87),
        ([], [], 10, 0, 0.1),
    ],
)
def test_who_uses_a_gpu_is_asked(
    nvml: FakeNvml, computing: list[int], drawing: list[int], busy: int, processes: int, share: float
) -> None:
    nvml.computing, nvml.drawing, nvml.busy = computing, drawing, busy
    found = device.other_users(GPU)
    values = [one.values for one in said(found).values["users"]] if found else []
    assert values == [{"count": processes}] * bool(processes) + [{"share": share}] * bool(share)
    nvml.broken = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetUtilizationRates")
    assert device.other_users(GPU) == ""


def test_an_amd_gpu_is_named_and_not_taken_for_none(nvml: FakeNvml, tmp_path: Path) -> None:
    nvml.broken = ("nvmlInit",)
    assert device.amd_gpu() == ""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    assert device.amd_gpu() == "AMD GPU"
    for card, name in (("card0", "\n"), ("card1", "AMD Instinct MI300X OAM\n")):
        (tmp_path / "cards" / card / "device").mkdir(parents=True)
        (tmp_path / "cards" / card / "device" / "product_name").write_text(name)
    found = device.amd_gpu()
    assert said(why_not_cuda((), "", None, None, found)).values == {"gpu": "AMD Instinct MI300X OAM"}
    assert why_not_cuda((GPU,), "13.0", None, None, found) == "", "an NVIDIA one is there too"


def test_the_machine_is_the_gpu_that_cuda_takes(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.names = [b"NVIDIA T4", b"NVIDIA H200"]
    monkeypatch.setattr(device, "torch_cuda", lambda: "13.0")
    for visible, name, kind in (("1", "NVIDIA H200", "cuda"), ("0", "NVIDIA T4", "cuda"), ("5", "NVIDIA T4", "cpu")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        here = device.machine.__wrapped__()
        assert (here.gpus[0].name, here.kind) == (name, kind)


def test_the_names_used_of_nvml_exist() -> None:
    import pynvml

    assert issubclass(pynvml.NVMLError, Exception)
    for name in vars(FakeNvml):
        if name.startswith(("nvml", "NVML_")):
            assert hasattr(pynvml, name), name
