"""Matrix products: what is rounded how, what is tried and skipped, and what a wrong kernel is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark import choices
from core.benchmark.points import Item, Outcome, Point, Refusal
from core.benchmark.programme import CPU_DTYPES, DTYPES, SIZES
from core.benchmark.timing import matmul
from core.benchmark.timing.bench import MIN_RUNS, Bench, SkippedError
from core.benchmark.timing.numerics import NUMERICS, KernelOperand, e2m1_codes, e2m1_values, rounded
from core.products import matmul_flop
from tests.core import measured_cases
from tests.core.timing_bench import bench, measured, programme, stand_in

pytestmark = pytest.mark.usefixtures("one_thread")

FLOATS = st.floats(-7, 7, width=32)


PROGRAMME = programme(None)


def measure(here: Bench, asked: Item) -> Outcome:
    return measured(matmul, asked, PROGRAMME, here)


def item(dtype: str, n: int = 96, **more: Any) -> Item:
    given: dict[str, Any] = {"label": f"n = {n:,}", "shape": (n, n, n), "seconds": 0.02}
    return Item(kind="matmul", name=dtype, **(given | more))


# ------------------------------------------------------------------------------------------ on this CPU

AS_WRONG_AS = {
    "fp64": (0, 1e-14),
    "fp32": (1e-8, 2e-6),
    "bf16": (1e-3, 6e-3),
    "fp16": (1e-4, 1e-3),
    "int8": (5e-3, 3e-2),
    "fp8": (2e-2, 6e-2),
    "nvfp4": (5e-2, 0.2),
}
"""Error of a product of normal numbers: √2 times what rounding one of them costs, and a little for the result."""


@pytest.mark.parametrize("dtype", CPU_DTYPES)
def test_measuring_on_this_cpu(dtype: str) -> None:
    point = measure(bench(), item(dtype))
    assert isinstance(point, Point), point
    assert point.runs >= MIN_RUNS
    assert point.relative_error is not None
    low, high = AS_WRONG_AS[dtype]
    assert low <= point.relative_error < high
    assert (point.flop, point.shape) == (2 * 96**3, (96, 96, 96))
    assert point.bytes == pytest.approx(96**2 * (2 * NUMERICS[dtype].element_bytes + NUMERICS[dtype].result_bytes), 0.1)


# ------------------------------------------------------------------------------------------ rounding


@given(st.lists(FLOATS | st.sampled_from([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]), min_size=1, max_size=64))
def test_four_bits_are_those_of_an_independent_library(values: list[float]) -> None:
    both = np.array([*values, *(-value for value in values)], np.float32) + np.float32(0)
    codes = e2m1_codes(torch, torch.from_numpy(both)).numpy()
    theirs = np.clip(both, -6, 6).astype(ml_dtypes.float4_e2m1fn)
    assert (e2m1_values(torch, torch.from_numpy(codes)).numpy() == theirs.astype(np.float32)).all()
    nonzero = both != 0
    assert (codes[nonzero] == theirs.view(np.uint8)[nonzero]).all()


def normal(rows: int, k: int) -> Any:
    torch.manual_seed(1)
    return torch.randn(rows, k) * torch.logspace(-3, 1, rows)[:, None]


def unswizzled(flat: Any, rows: int, blocks: int) -> Any:
    """The scales in rows again, each fetched from where the vendor's guide says that it lies."""
    r, c = np.indices((rows, blocks))
    tile = r // 128 * -(-blocks // 4) + c // 4
    return flat[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4]


def e4m3(values: Any) -> Any:
    return values.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)


def decoded(dtype: str, operand: Any) -> Any:
    """What the bytes of a scaled operand stand for, read by an independent library."""
    raw = operand.data.view(torch.uint8).numpy()
    if dtype == "nvfp4":
        pairs = np.stack((raw & 15, raw >> 4), axis=2).reshape(len(raw), -1)
        scales = unswizzled(operand.scales.view(torch.uint8).numpy(), len(raw), pairs.shape[1] // 16)
        wide = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32).repeat(16, axis=1)
        return pairs.view(ml_dtypes.float4_e2m1fn).astype(np.float32) * wide
    values = raw.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    return values * operand.scales.numpy()


@pytest.mark.parametrize("dtype", ["fp8", "nvfp4"])
def test_bytes_and_scales_stand_for_the_values(dtype: str) -> None:
    """Rounded once, to the nearest, with scales under which the largest magnitude just fits."""
    values = normal(40, 96)
    operand = rounded(torch, NUMERICS[dtype], values)
    found, exact = decoded(dtype, operand), values.numpy()
    some = torch.tensor([3, 39, 3])
    assert (operand.restored(some).numpy() == found[some.numpy()]).all()
    size = 16 if dtype == "nvfp4" else 96
    blocks = np.abs(exact).reshape(40, -1, size).max(axis=2)
    scale = e4m3(blocks / 6) if dtype == "nvfp4" else np.full_like(blocks, blocks.max() / 448)
    wide = np.repeat(scale, size, axis=1).astype(np.float32)
    kind = (ml_dtypes.float4_e2m1fn, 6) if dtype == "nvfp4" else (ml_dtypes.float8_e4m3fn, 448)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.clip(exact / wide, -kind[1], kind[1]).astype(kind[0]).astype(np.float32) * wide
    assert found == pytest.approx(np.where(wide == 0, 0, expected), rel=1e-6)


def scaled_mm(a: Any, b: Any, scale_a: Any, recipe_a: Any, scale_b: Any, recipe_b: Any, **more: Any) -> Any:
    """A device that has block scales: reads bytes, scales and layout as the library's documentation says."""
    assert recipe_a == recipe_b == torch.nn.functional.ScalingType.BlockWise1x16
    assert more.pop("swizzle_a") == more.pop("swizzle_b") == torch.nn.functional.SwizzleType.SWIZZLE_32_4_4
    assert more == {"output_dtype": torch.bfloat16}
    assert (a.is_contiguous(), b.t().is_contiguous()) == (True, True)
    wide = [
        decoded("nvfp4", KernelOperand(data, scales, lambda rows: rows))
        for data, scales in ((a, scale_a), (b.t(), scale_b))
    ]
    return torch.from_numpy(wide[0] @ wide[1].T).to(torch.bfloat16)


def blocked(multiply: Callable[..., Any]) -> Any:
    class Functional:
        ScalingType = torch.nn.functional.ScalingType
        SwizzleType = torch.nn.functional.SwizzleType
        scaled_mm = staticmethod(multiply)

    class Nn:
        functional = Functional

    return stand_in(nn=Nn)


def test_block_scales_are_given_as_a_device_wants_them() -> None:
    point = measure(bench(blocked(scaled_mm)), item("nvfp4", 64))
    assert isinstance(point, Point), point
    assert point.relative_error is not None
    low, high = AS_WRONG_AS["nvfp4"]
    assert low <= point.relative_error < high


# ------------------------------------------------------------------------------------------ right or wrong


@pytest.mark.parametrize("factor", [1.1, math.nan, 0.0])
def test_a_wrong_result_is_refused(factor: float) -> None:
    def mm(a: Any, b: Any, out: Any) -> Any:
        return torch.mm(a, b, out=out).mul_(factor)

    outcome = measure(bench(stand_in(mm=mm)), item("bf16"))
    assert isinstance(outcome, Refusal)
    assert outcome.why == "refused"


def test_tf32_is_measured_where_it_is() -> None:
    """A device that rounds to TF32 while it is asked to, and only then, also while it is timed."""

    def mm(a: Any, b: Any, out: Any) -> Any:
        if torch.backends.cuda.matmul.fp32_precision == "tf32":
            a, b = ((x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b))
        return torch.mm(a, b, out=out)

    here = bench(stand_in(mm=mm), "cuda")
    errors: list[float] = []
    for dtype in ("fp32", "tf32"):
        point = measure(here, item(dtype))
        assert isinstance(point, Point), point
        errors.append(point.relative_error or 0)
    assert errors[0] < NUMERICS["fp32"].tolerance < errors[1] < NUMERICS["tf32"].tolerance


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_fp32_setting_is_put_back(device: Any) -> None:
    backend = torch.backends.cuda.matmul if device == "cuda" else torch.backends.mkldnn.matmul
    before = backend.fp32_precision
    for value in ("ieee", "tf32") if device == "cuda" else ("ieee",):
        with matmul.fp32_precision(torch, device, value):
            assert backend.fp32_precision == value
        assert backend.fp32_precision == before
    with pytest.raises(RuntimeError, match="inside"), matmul.fp32_precision(torch, device, "ieee"):
        raise RuntimeError("inside")
    assert backend.fp32_precision == before


# ------------------------------------------------------------------------------------------ memory and time


def test_one_size_out_of_memory_leaves_the_others() -> None:
    def randn(rows: int, *rest: Any, **more: Any) -> Any:
        if rows == 80:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.\nSee documentation")
        return torch.randn(rows, *rest, **more)

    here = bench(stand_in(randn=randn))
    full = measure(here, item("fp32", 80))
    assert isinstance(full, Refusal)
    assert (full.why, full.text) == ("skipped", "CUDA out of memory. Tried to allocate 1 GiB.")
    assert isinstance(measure(here, item("fp32", 64)), Point)


SHAPES = st.tuples(*[st.integers(1, 40_000)] * 3)


@given(st.floats(1e8, 1e15), st.floats(1e-7, 1e-3), st.lists(SHAPES, min_size=1, max_size=4), st.floats(0.02, 60))
def test_nothing_runs_much_longer_than_its_seconds(
    rate: float, launch: float, shapes: list[tuple[int, int, int]], seconds: float
) -> None:
    """On a device of any speed, whatever the order: what is tried fits, and what fits is not given up."""
    taken = list[float]()
    budget = max(seconds, matmul.PATIENCE_S)

    def once(shape: tuple[int, int, int]) -> float:
        taken.append(launch + matmul_flop(*shape) / rate)
        return taken[-1]

    for shape in shapes:
        true = launch + matmul_flop(*shape) / rate
        given_up = False
        try:
            matmul.afford(item("fp16", seconds=seconds), shape, once)
        except SkippedError:
            given_up = True
        low, high = 0.5 * budget, budget * 1.01 + MIN_RUNS * launch
        assert true * MIN_RUNS > low if given_up else true * MIN_RUNS <= high
    smallest = launch + matmul.SMALLEST / rate
    assert max(taken, default=0) * MIN_RUNS <= max(budget * 1.01 + MIN_RUNS * launch, MIN_RUNS * smallest)


def test_a_single_size_is_waited_for() -> None:
    """The lecture's experiment: of a slow dtype the only size is timed, among others it is left out."""

    def slow(run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]:
        run()
        return [0.1] * count  # by the rung below, a run takes 1.6 s

    here = replace(bench(), timer=slow)
    alone, among = (PROGRAMME.model_copy(update={"sizes": sizes}) for sizes in ((160,), (64, 160)))
    assert isinstance(measured(matmul, item("fp32", 160), alone, here), Point)
    skipped = measured(matmul, item("fp32", 160), among, here)
    assert isinstance(skipped, Refusal)
    assert skipped.why == "skipped"
    assert choices.programme("lecture", "cuda", 16_384, 0.1).sizes == (16_384,)


def cuda_of(major: int, minor: int = 0, **more: Any) -> Any:
    """What torch says of an NVIDIA GPU of that compute capability; before 8 its bf16 is emulated."""
    cuda = SimpleNamespace(
        get_device_capability=lambda place: (major, minor),
        is_bf16_supported=lambda including_emulation: including_emulation or major >= 8,
    )
    return bench(stand_in(cuda=cuda, version=SimpleNamespace(cuda="13.0"), **more), "cuda")


def test_emulated_bf16_is_not_measured() -> None:
    refused = measure(cuda_of(7), item("bf16"))
    assert isinstance(refused, Refusal)
    assert refused.why == "refused"
    assert isinstance(measure(cuda_of(7), item("fp16")), Point)
    assert isinstance(measure(cuda_of(8), item("bf16")), Point)


def test_int8_of_newer_devices_says_which_kernels_it_may_have() -> None:
    notes: list[str] = []
    for here in (cuda_of(8), cuda_of(9), cuda_of(10), bench()):
        point = measure(here, item("int8"))
        assert isinstance(point, Point), point
        notes.append(point.note)
    assert [bool(note) for note in notes] == [False, True, True, False]


def test_fp8_is_timed_with_both_sums_where_they_differ() -> None:
    asked: list[Any] = []

    def multiply(a: Any, b: Any, scale_a: Any, _: Any, scale_b: Any, __: Any, **more: Any) -> Any:
        asked.append(more.get("use_fast_accum"))
        error = 1.03 if asked[-1] else 1.0  # fewer bits of a sum
        return ((a.float() @ b.float()) * scale_a * scale_b * error).to(torch.bfloat16)

    nn = SimpleNamespace(
        functional=SimpleNamespace(
            ScalingType=torch.nn.functional.ScalingType,
            SwizzleType=torch.nn.functional.SwizzleType,
            scaled_mm=multiply,
        )
    )
    errors: list[float] = []
    for dtype, fast in (("fp8", None), ("fp8 fast", True)):
        asked.clear()
        point = measure(cuda_of(9, nn=nn), item(dtype))
        assert isinstance(point, Point), point
        assert set(asked) == {fast}
        assert point.note
        errors.append(point.relative_error or 0)
    assert errors[0] < errors[1]
    for capability in ((8, 9), (10, 0)):
        skipped = measure(cuda_of(*capability, nn=nn), item("fp8 fast"))
        assert isinstance(skipped, Refusal)
        assert skipped.why == "skipped"
        assert isinstance(measure(cuda_of(*capability, nn=nn), item("fp8")), Point)
    for capability in ((7, 5), (8, 0), (8, 6)):  # T4, A100, A10
        for dtype in ("fp8", "fp8 fast"):
            refused = measure(cuda_of(*capability, nn=nn), item(dtype))
            assert isinstance(refused, Refusal)
            assert refused.why == "refused"


def test_every_dtype_that_a_plan_takes_is_sustained() -> None:
    for choice in ("plan", "dtypes", "all"):
        asked = choices.programme(choice, "cuda", 16_384, 0.1)
        assert [(one.name, one.shape[0], one.seconds) for one in matmul.sustained(asked)] == [
            ("bf16", 16_384, 10.0),
            ("fp8", 16_384, 10.0),
            ("nvfp4", 16_384, 10.0),
        ]
    assert "fp16" in choices.programme("plan", "cuda", 16_384, 0.1).dtypes, "for devices without bf16"
    assert matmul.sustained(choices.programme("all", "cpu", 2048, 0.5)) == ()


def test_a_hiccup_does_not_decide() -> None:
    times = {128: [5.0, 1e-4], 256: [8e-4]}
    matmul.afford(item("fp32"), (512, 512, 512), lambda shape: times[shape[0]].pop(0))
    assert times == {128: [], 256: []}


# ------------------------------------------------------------------------------------------ what there is to measure


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_item_is_told_from_the_others(device: Any) -> None:
    programme = choices.programme("all", device, SIZES[device][-1], 0.1)
    found = matmul.items(programme)
    assert len({one.key for one in found}) == len(found) == len(programme.dtypes) * len(programme.sizes)
    for dtype in programme.dtypes:
        assert [one.shape[0] for one in found if one.name == dtype] == sorted(programme.sizes)
    assert set(NUMERICS) == set(DTYPES)


def test_where_bf16_is_refused_another_dtype_is_sustained() -> None:
    no = Refusal(item=item("bf16"), why="refused", text="no")
    late = Refusal(item=item("bf16"), why="skipped", text="too slow")
    long = item("bf16", regime="sustained")
    assert matmul.instead(long, [no]).name == "fp32"
    assert matmul.instead(item("bf16", 128), [no]).name == "bf16"
    for outcomes in ([no, late], []):
        assert matmul.instead(long, outcomes).name == "bf16"
    for dtype, rates in (("fp16", (8e12, 5e13)), ("fp32", (8e12, 1e11))):
        tried = [measured_cases.square(name, 4096, rate) for name, rate in zip(("fp32", "fp16"), rates, strict=True)]
        assert matmul.instead(long, [no, *tried]).name == dtype
