"""Square matmuls of every dtype and of several sizes.

Random normal inputs, for zeros draw less power and run faster than real data. Each product is checked before it is
timed: a right kernel gives what the values as rounded to the dtype give in float64. What is reported as
`Point.relative_error` is the error against the float64 product of the values before rounding, which is how wrong a
product in that dtype is. Plain products have a preallocated output; scaled ones come from torch's public
``scaled_mm``, of fp8 with fast accumulation off and, where that differs, on. The second operand lies transposed, as a
linear layer keeps its weight and as 8-bit kernels want it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from core.benchmark.best import fastest
from core.benchmark.device import DeviceKind
from core.benchmark.points import Item, Outcome, Point
from core.benchmark.programme import Programme
from core.benchmark.timing.accuracy import FP16, checked, error_of, exact, format_of, picked
from core.benchmark.timing.bench import MIN_RUNS, Bench, PreparedItem, RefusedError, SkippedError
from core.benchmark.timing.numerics import NUMERICS, KernelOperand, Numeric, rounded
from core.hardware.operations import product_bytes
from core.messages import message
from core.products import matmul_flop

PATIENCE_S = 1.0
"""`MIN_RUNS` runs may take this long even where fewer seconds are asked for."""

ONE_SIZE_S = 20.0
"""The same where a programme has one size: without it nothing would be measured in that dtype."""

SMALLEST = matmul_flop(128, 128, 128)
"""What is tried untested: on the slowest device, in the slowest dtype, a few milliseconds."""

_FAST = 9
"""Major compute capability whose tensor cores add fp8 products faster with fewer bits; the first for which
``torch._int_mm`` may have no kernel [pytorch/pytorch issue 187094]."""

_FP8 = (8, 9)
"""The first compute capability with fp8 tensor cores."""

_GRAIN = 32
_LOOKS = 3
_QUICK_S = 0.1
_WORK_COPIES = 4
"""Rounding to a scaled dtype takes at most about so many copies of the drawn matrix."""

Shape = tuple[int, int, int]


def headline(programme: Programme) -> str:
    """Return the dtype in which this device would train, or the first requested one."""
    wanted = "fp32" if programme.device == "cpu" else "bf16"
    return wanted if wanted in programme.dtypes or not programme.dtypes else programme.dtypes[0]


def items(programme: Programme) -> tuple[Item, ...]:
    """Return the squares by dtype, small ones first."""
    return tuple(
        Item(kind="matmul", name=dtype, label=f"n = {n:,}", shape=(n, n, n), seconds=programme.seconds)
        for dtype in programme.dtypes
        for n in sorted(programme.sizes)
    )


def sustained(programme: Programme) -> tuple[Item, ...]:
    """Return the largest squares of the headline dtype and of the others that a plan uses, timed long enough for
    throttling."""
    if not (programme.sustained_s and programme.dtypes and programme.sizes):
        return ()
    n = max(programme.sizes)
    given: dict[str, Any] = {"seconds": programme.sustained_s, "regime": "sustained", "shape": (n, n, n)}
    dtypes = (headline(programme), *(dtype for dtype in ("fp8", "nvfp4") if dtype in programme.dtypes))
    return tuple(Item(kind="matmul", name=dtype, label=f"n = {n:,}", **given) for dtype in dict.fromkeys(dtypes))


def instead(item: Item, outcomes: Sequence[Outcome]) -> Item:
    """Return a sustained bf16 ``item`` in fp16 or fp32, whichever was faster, if the device rejected all bf16."""
    if (item.kind, item.name, item.regime) != ("matmul", "bf16", "sustained"):
        return item
    tried = [outcome for outcome in outcomes if (outcome.item.kind, outcome.item.name) == ("matmul", "bf16")]
    if not tried or any(isinstance(outcome, Point) or outcome.why != "refused" for outcome in tried):
        return item
    found = fastest(one for one in outcomes if isinstance(one, Point) and one.item.name in ("fp16", "fp32"))
    return item.model_copy(update={"name": found.item.name if found else "fp32"})


@contextlib.contextmanager
def fp32_precision(torch: Any, device: DeviceKind, value: str) -> Generator[None]:
    """Set the arithmetic of float32 matmuls on ``device`` ("ieee" or "tf32"), and put the old setting back."""
    backend = torch.backends.cuda.matmul if device == "cuda" else torch.backends.mkldnn.matmul
    before = backend.fp32_precision
    backend.fp32_precision = value
    try:
        yield
    finally:
        backend.fp32_precision = before


@dataclass(frozen=True, slots=True)
class PreparedProduct:
    """a·bᵀ, ready to be called. drawn: some rows of a and of b before rounding. scale: of the result, 1 mostly."""

    call: Callable[[], Any]
    a: KernelOperand
    b: KernelOperand
    drawn: tuple[Any, Any]
    picked: tuple[Any, Any]
    scale: float

    def errors(self, torch: Any) -> tuple[float, float]:
        """Call it once. Relative errors against the values as rounded, and as drawn, in float64 on a slice."""
        out, (rows, columns) = self.call(), self.picked
        got = exact(torch, out[rows][:, columns]) * self.scale
        as_rounded = self.a.restored(rows), self.b.restored(columns)
        kernel, whole = (error_of(torch, got, exact(torch, a) @ exact(torch, b).T) for a, b in (as_rounded, self.drawn))
        return kernel, whole


def product(bench: Bench, numeric: Numeric, shape: Shape) -> PreparedProduct:
    """Draw and round the operands of a product (m, n, k). Raises `SkippedError` if they do not fit."""
    torch, (m, n, k) = bench.torch, shape
    width = 8 if numeric.drawn == "float64" else 4
    working = max(m, n) * k * width * (1 if numeric.scaling == "none" else _WORK_COPIES)
    bench.need(moved(numeric, shape) + working)
    torch.manual_seed(0)
    operands: list[KernelOperand] = []
    drawn: list[Any] = []
    places = [picked(torch, rows).to(bench.place) for rows in (m, n)]
    for rows, some in zip((m, n), places, strict=True):
        values = torch.randn(rows, k, dtype=getattr(torch, numeric.drawn), device=bench.place)
        drawn.append(values[some])
        operands.append(rounded(torch, numeric, values))
        del values
    a, b = operands
    scale = float(a.scales) * float(b.scales) if numeric.scaling == "integer" else 1.0
    call = _call(bench, numeric, a, b, (m, n))
    return PreparedProduct(call, a, b, (drawn[0], drawn[1]), (places[0], places[1]), scale)


def _call(
    bench: Bench, numeric: Numeric, a: KernelOperand, b: KernelOperand, size: tuple[int, int]
) -> Callable[[], Any]:
    torch = bench.torch
    result = getattr(torch, numeric.result)
    if numeric.scaling in ("none", "integer"):
        out = torch.empty(size, dtype=result, device=bench.place)
        return partial(torch.mm if numeric.scaling == "none" else torch._int_mm, a.data, b.data.t(), out=out)
    functional = torch.nn.functional
    recipe = getattr(functional.ScalingType, numeric.scaling)
    layout: dict[str, Any] = {"use_fast_accum": True} if numeric.fast else {}
    if numeric.scaling == "BlockWise1x16":
        layout = dict.fromkeys(("swizzle_a", "swizzle_b"), functional.SwizzleType.SWIZZLE_32_4_4)
    given = (a.data, b.data.t(), a.scales, recipe, b.scales, recipe)
    return partial(functional.scaled_mm, *given, output_dtype=result, **layout)


def moved(numeric: Numeric, shape: Shape) -> float:
    """Return the bytes of a product: each operand read once with its scales, the result written once."""
    m, n, k = shape
    scales = numeric.scale_bytes(m, k) + numeric.scale_bytes(n, k)
    return product_bytes(m, n, k, 1, numeric.element_bytes, numeric.result_bytes) + scales


def rungs(shape: Shape) -> tuple[Shape, ...]:
    """Return smaller products on the way up to ``shape``, each about an eighth of the next, the first at most
    `SMALLEST`."""
    shapes = [shape]
    while matmul_flop(*shapes[-1]) > SMALLEST:
        m, n, k = (min(max(each // 2 // _GRAIN * _GRAIN, _GRAIN), each) for each in shapes[-1])
        shapes.append((m, n, k))
    return tuple(reversed(shapes[1:]))


def _once(bench: Bench, run: Callable[[], Any]) -> float:
    """Return the seconds of a run. The first may load a kernel, so there are more, unless it was slow enough to
    count."""
    first = bench.timer(run, 1)[0]
    return min(first, *bench.timer(run, 3)) if first < _QUICK_S else first


def afford(item: Item, shape: Shape, once: Callable[[Shape], float], patience: float = PATIENCE_S) -> None:
    """Raise `SkippedError` if `MIN_RUNS` runs are expected to take much longer than the item's seconds.

    Smaller products are run first, each only if it is expected to fit itself, by the one before in proportion to the
    work. Small products run below the full rate, so it errs on the high side and nothing runs much longer.
    """
    budget = max(item.seconds, patience)
    for size, more in pairwise((*rungs(shape), shape)):
        seconds, flop = once(size), matmul_flop(*size)
        for _ in range(_LOOKS):  # hiccups of a busy machine must not decide
            if seconds / flop * matmul_flop(*more) * MIN_RUNS > budget:
                seconds = min(seconds, once(size))
        if seconds / flop * matmul_flop(*more) * MIN_RUNS > budget:
            expected = seconds / flop * matmul_flop(*shape)
            raise SkippedError(
                message("measure.skipped.slow", seconds=expected, runs=float(MIN_RUNS), limit=float(budget))
            )


def _note(bench: Bench, dtype: str) -> str:
    """Return what of a dtype's kernel its name does not say."""
    if dtype == "int8" and bench.capability[0] >= _FAST:
        return message("measure.kernel.int8")
    return message(_NOTES[dtype]) if dtype in _NOTES else ""


_NOTES = {"fp8": "measure.kernel.fp8", "fp8 fast": "measure.kernel.fp8_fast"}


def prepare(bench: Bench, programme: Programme, item: Item) -> PreparedItem:
    """Make a product ready: see that it fits memory and time, and that it is right."""
    torch, numeric = bench.torch, NUMERICS[item.name]
    m, n, k = item.shape
    shape = m, n, k
    if item.name == "bf16" and format_of(bench) is FP16:
        raise RefusedError(message("measure.refused.bf16"))
    if numeric.scaling == "TensorWise" and (0, 0) < bench.capability < _FP8:
        raise RefusedError(message("measure.refused.fp8"))
    if numeric.fast and bench.capability[0] != _FAST:
        raise SkippedError(message("measure.skipped.fp8_fast"))
    patience = ONE_SIZE_S if len(programme.sizes) == 1 else PATIENCE_S
    setting = partial(fp32_precision, torch, bench.kind, numeric.fp32_precision)
    with setting():
        afford(item, shape, lambda size: _once(bench, product(bench, numeric, size).call), patience)
        result = product(bench, numeric, shape)
        kernel, whole = result.errors(torch)
        checked(kernel, numeric.tolerance)
        if item.name == "tf32" and kernel < NUMERICS["fp32"].tolerance:
            raise RefusedError(message("measure.refused.tf32"))
    return PreparedItem(
        result.call,
        item.shape,
        matmul_flop(*shape),
        moved(numeric, shape),
        relative_error=whole,
        note=_note(bench, item.name),
        setting=setting,
    )
