"""What a plan's cluster trains at, on any number of accelerators: of the steps alone, and of the whole run.

Both are logarithms of the accelerators' number times the MFU, by 6 N over the plan's dense peak, at the accelerators of
`COUNTS`, joined by straight lines. They never fall with more accelerators, some of which may stay idle, and change with
parameters by no more than the square root: so more work never takes less time, and every question has one answer.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from core.budget.errors import BudgetError
from core.hardware.matmul import ceiling_of
from core.models.catalog import CatalogModel
from core.models.spec import SpecError
from core.models.stand_in import stand_in
from core.planning.own_runs import OwnRun
from core.planning.plan import BY_AGE, FIRST_RUN, TYPED, CarriedRates, Plan
from core.planning.resolved_layout import search_request, timed_request
from core.runs.goodput import Reliability, interruptions
from core.runs.share import Shares, is_new, published_shares, usable_matmul
from core.runs.utilisation import Width, base_peak
from core.search.fastest import COUNTS, fastest, normalised
from core.search.request import SearchRequest
from core.training.layout import LayoutError
from core.training.memory import CheckpointSize
from core.training.trained import EVERYTHING, TrainedError

Array = npt.NDArray[np.float64]

LN_COUNTS = np.log(COUNTS)
WIDTHS: dict[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}

_OCTAVES = 3
"""Sizes of stand-ins lie so many doublings apart: 1.1B, 8.6B, 69B, 550B."""

_SMALLEST, _USUAL, _LARGEST = 8, 12, 15
"""The first of them, a usual one, and the last: 17M, 69B and 35T; beyond, MFU stays as there."""

_TINY_GOODPUT = 1e-9
"""Keeps logarithms finite where failures leave no progress, which is said elsewhere."""

_SAME_SIZE = 0.1
"""Share by which a run of one's own may be larger or smaller than the plan's model and still be of its layers."""

_STEEPEST = 0.5
"""Power of the parameters that MFU changes with at most, so that hours rise with a power of 0.5 to 1.5."""


@lru_cache(maxsize=4096)
def _steps_of_size(request: SearchRequest, batch: float, size: int, seq_len: int, peak: float) -> Array | None:
    """The steps alone of the stand-in of this size: logarithms of accelerators times MFU, for each of `COUNTS`."""
    count = 2.0 ** (_OCTAVES * size)
    spec = stand_in(count, seq_len)
    try:
        rates = fastest(replace(request, spec=spec), batch)
    except TrainedError:  # a rank above its width, say
        return None
    return None if rates is None else rates + math.log(6 * count * request.work_share_of(spec) / peak)


def untrainable(plan: Plan) -> BudgetError | None:
    """Why what a plan trains cannot be trained; None where it can be, or the model's layers are not known."""
    if plan.trained.everything:
        return None
    try:
        with suppress(SpecError):
            search_request(plan)
    except BudgetError as problem:
        return problem
    return None


@lru_cache(maxsize=1024)
def plan_work_share(plan: Plan) -> float:
    """FLOPs of a step of the plan over those of one that trains everything; 1 where what it trains cannot be."""
    if plan.trained.everything or untrainable(plan):
        return 1.0
    with suppress(LayoutError, SpecError):
        request = search_request(plan)
        return request.work_share_of(request.spec)
    return 1.0


@dataclass(frozen=True, eq=False)
class Throughput:
    """The throughput of plans that differ in parameters and accelerators alone.

    model: whose layers are counted; None where only parameters are known. checkpoint: bytes for each parameter.
    """

    plan: Plan
    model: CatalogModel | None
    checkpoint: CheckpointSize

    @cached_property
    def _request(self) -> SearchRequest | None:
        """What the fastest layout is searched for; None where the time of a step is not known."""
        request = None if self.model and not self.model.laid_out else timed_request(self.plan)
        return normalised(request) if request else None

    @cached_property
    def _batch(self) -> float:
        return float(self.plan.batch.sequences(self.plan.seq_len))

    @cached_property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.plan.peak_dtype)

    @cached_property
    def _by_matmul(self) -> Array:
        """The same where the time of a step is not known: every accelerator at the rate of its best matmul."""
        dtype, name = self.plan.peak_dtype, self.plan.accelerator
        scale = min(1.0, base_peak(name) / self.peak) if dtype in WIDTHS else 1.0
        return LN_COUNTS + math.log(scale * usable_matmul(name, WIDTHS.get(dtype, "16-bit")))

    @cached_property
    def _of_model(self) -> Array | None:
        if self._request is None or self.model is None:
            return None
        rates = fastest(self._request, self._batch)
        return (
            None if rates is None else rates + math.log(6 * self.model.active * plan_work_share(self.plan) / self.peak)
        )

    @cached_property
    def timed(self) -> bool:
        """Whether the time of a step is known; else the best matmul stands for it."""
        if self.model:
            return self._of_model is not None
        return self._of_size(_USUAL) is not None

    @cached_property
    def shares(self) -> Shares:
        """What published runs reach of it, and the plan's own."""
        own = [self._own_share(run) for run in self.plan.own_runs]
        return published_shares(self.timed, self.new_hardware).given(own)

    @property
    def new_hardware(self) -> bool:
        """Whether the accelerator counts as new."""
        maturity = self.plan.maturity
        return is_new(self.plan.accelerator) if maturity == BY_AGE else maturity == FIRST_RUN

    def _own_share(self, run: OwnRun) -> float:
        """What a run of one's own reached of its steps beside its goodput: of the plan's model where that is as large,
        else of a stand-in, with the plan's batch and software."""
        plan, model = self.plan, self.model
        alike = model is not None and abs(model.active / run.parameters - 1) < _SAME_SIZE
        there = replace(
            plan,
            accelerator=run.accelerator,
            model=plan.model if alike else TYPED,
            measured=plan.measured if run.accelerator == plan.accelerator else CarriedRates(),
            find="time",
            own_runs=(),
            own_layout=False,
            trained=EVERYTHING,
        )
        other = Throughput(there, model if alike else None, self.checkpoint)
        size, count = np.array([run.parameters]), np.array([run.accelerators])
        steps = float(other.steps_mfu_by_6n(size, count)[0]) * other.peak / base_peak(run.accelerator)
        stored = model.parameters if alike and model else run.parameters
        left = interruptions(run.accelerators, self.checkpoint.of(stored), plan.reliability)
        return run.mfu / steps / (1.0 if run.steady else float(left.goodput))

    def _of_size(self, size: int) -> Array | None:
        if self._request is None:
            return None
        return _steps_of_size(self._request, self._batch, size, self.plan.seq_len, self.peak)

    @cached_property
    def _kept(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        return {}

    def _node(self, size: int, columns: int) -> tuple[Array, Array]:
        """Steps alone, and steps times goodput, of the stand-in of a size, no steeper than they may be; valid in the
        first so many columns.

        Other sizes are looked at from the nearest outwards, as long as one that reached all of its peak would count.
        """
        if (size, columns) not in self._kept:
            steepest = _STEEPEST * _OCTAVES * math.log(2)
            steps, whole = self._raw(size)
            for apart in range(1, _LARGEST - _SMALLEST + 1):
                if np.all(whole[:columns] >= LN_COUNTS[:columns] - steepest * apart):
                    break
                for other in {max(size - apart, _SMALLEST), min(size + apart, _LARGEST)} - {size}:
                    less = steepest * abs(other - size)
                    steps, whole = (
                        np.maximum(a, b - less) for a, b in zip((steps, whole), self._raw(other), strict=True)
                    )
            self._kept[size, columns] = steps, whole
        return self._kept[size, columns]

    def _raw(self, size: int) -> tuple[Array, Array]:
        table = self._of_size(size)
        steps = self._by_matmul if table is None else table
        return steps, self._with_goodput(steps, 2.0 ** (_OCTAVES * size))

    def _with_goodput(self, steps: Array, parameters: float) -> Array:
        reliability: Reliability = self.plan.reliability
        goodput = interruptions(COUNTS, self.checkpoint.of(parameters), reliability).goodput
        return np.maximum.accumulate(steps + np.log(np.maximum(goodput, _TINY_GOODPUT)))

    def _tables(self, ln_params: Array, columns: int) -> tuple[Array, Array]:
        """Steps alone, and steps times goodput, for parameters by their logarithms: a row each, or one for all."""
        if self.model is not None:
            steps = self._by_matmul if self._of_model is None else self._of_model
            return steps[None], self._with_goodput(steps, self.model.parameters)[None]
        if not self.timed:
            return self._by_matmul[None], self._with_goodput(self._by_matmul, 7e10)[None]
        at = np.clip(np.nan_to_num(ln_params / (_OCTAVES * math.log(2))), _SMALLEST, _LARGEST)
        below = np.minimum(np.floor(at).astype(int), _LARGEST - 1)
        sizes, row = np.unique(below, return_inverse=True)
        part = (at - below)[:, None]

        def joined(which: int) -> Array:
            low, high = (np.stack([self._node(size + up, columns)[which] for size in sizes.tolist()]) for up in (0, 1))
            return low[row] + part * (high - low)[row]

        return joined(0), joined(1)

    @cached_property
    def _most(self) -> Array:
        """Every accelerator at its best matmul, which no end of a range passes."""
        return LN_COUNTS + math.log(ceiling_of(self.plan.device, self.plan.peak_dtype))

    @cached_property
    def _ends(self) -> Array:
        """Logarithms of the share beside goodput at the low end, the middle and the high end of the range."""
        return np.log(self.shares.ends)

    def steps_mfu_by_6n(self, params: Array, accelerators: Array) -> Array:
        """MFU of the steps alone, by 6 N. The arguments broadcast."""
        params, accelerators = np.broadcast_arrays(params, accelerators)
        ln_count = np.log(accelerators.ravel())
        steps, _ = self._tables(np.log(np.maximum(params, 1.0)).ravel(), _columns_to(ln_count))
        return np.exp(_read(steps, ln_count) - ln_count).reshape(params.shape)

    def _columns(self, params: Array, columns: int) -> list[Array]:
        """The tables of the whole run in each column; ``params`` in the last axis has a value for each, or one."""
        logs = [np.log(np.maximum(column, 1.0)).ravel() for column in np.moveaxis(params, -1, 0)]
        whole = [self._tables(ln_params, columns)[1] for ln_params in logs]
        return [np.minimum(whole[i % len(whole)] + end, self._most) for i, end in enumerate(self._ends)]

    def whole_mfu_by_6n(self, params: Array, accelerators: Array) -> Array:
        """MFU over all hours, by 6 N, at the low end, the middle and the high end of the range: the last axis, in which
        the arguments have a value for each or one for all."""
        shape = np.broadcast_shapes(params.shape[:-1], accelerators.shape[:-1])
        params = np.broadcast_to(params, (*shape, params.shape[-1]))
        ln_counts = np.moveaxis(np.log(np.broadcast_to(accelerators, (*shape, accelerators.shape[-1]))), -1, 0)
        columns: list[Array] = []
        for i, table in enumerate(self._columns(params, _columns_to(ln_counts))):
            ln_count = ln_counts[i % len(ln_counts)].ravel()
            columns.append(np.exp(_read(table, ln_count) - ln_count))
        return np.stack(columns, axis=-1).reshape(*shape, 3)

    def accelerators(self, params: Array, needed: Array) -> Array:
        """The fewest accelerators whose number times MFU, by 6 N over all hours, is ``needed``; infinite where none do.

        In each column (last axis).
        """
        ln_needed = np.log(needed) + np.zeros((*params.shape[:-1], 3))
        columns = [_inverse(table, ln_needed[:, i]) for i, table in enumerate(self._columns(params, len(COUNTS)))]
        return np.exp(np.stack(columns, axis=-1))


def _columns_to(ln_count: Array) -> int:
    """How many columns are needed up to these logarithms of accelerators."""
    most = float(np.max(np.nan_to_num(ln_count)))
    return min(int(np.searchsorted(LN_COUNTS, most, side="right")) + 1, len(COUNTS))


def _read(table: Array, ln_count: Array) -> Array:
    """Rows of a table (or its only one) at these logarithms of accelerators; the last value on more than the most, and
    of a part of one accelerator its rate."""
    after = np.clip(np.searchsorted(LN_COUNTS, ln_count, side="right"), 1, len(LN_COUNTS) - 1)
    row = np.arange(len(ln_count)) if len(table) > 1 else 0
    low, high = table[row, after - 1], table[row, after]
    part = (ln_count - LN_COUNTS[after - 1]) / (LN_COUNTS[after] - LN_COUNTS[after - 1])
    return np.where(part < 0, low + ln_count, low + np.minimum(part, 1.0) * (high - low))


def _inverse(table: Array, wanted: Array) -> Array:
    """The least logarithm of accelerators at which rows of a table reach ``wanted``; infinite where they do not."""
    table = np.broadcast_to(table, (len(wanted), table.shape[1]))
    after = np.clip((table < wanted[:, None]).sum(axis=1), 1, len(LN_COUNTS) - 1)
    row = np.arange(len(wanted))
    low, high = table[row, after - 1], table[row, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (wanted - low) / (high - low)
    found = LN_COUNTS[after - 1] + part * (LN_COUNTS[after] - LN_COUNTS[after - 1])
    found = np.where(wanted < table[:, 0], wanted - table[:, 0], found)  # a part of one, by its rate
    return np.where(wanted <= table[:, -1], found, math.inf)
