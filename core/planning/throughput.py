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
from core.planning.resolved_layout import estimable_request, search_request
from core.runs.goodput import Reliability, interruptions
from core.runs.share import Shares, is_new, published_shares, usable_matmul
from core.runs.utilisation import Width, peak_16bit
from core.search.fastest import COUNTS, fastest, normalised
from core.search.request import SearchRequest
from core.training.layout import LayoutError
from core.training.memory import CheckpointSize
from core.training.trained import EVERYTHING, TrainedError

Array = npt.NDArray[np.float64]

LN_COUNTS = np.log(COUNTS)
WIDTHS: dict[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}

_DOUBLINGS = 3
"""Point i of the grid of sizes is a stand-in of 2 ** (3 i) parameters: so many doublings from one to the next, as 1.1B,
8.6B, 69B, 550B."""

_FIRST_POINT, _USUAL_POINT, _LAST_POINT = 8, 12, 15
"""The first point of the grid, a usual one, and the last: 17M, 69B and 35T; beyond, MFU stays as there."""

_USUAL_PARAMETERS = 7e10
"""Parameters whose checkpoint the goodput is of where no step is timed, one number for all sizes."""

_TINY_GOODPUT = 1e-9
"""Keeps logarithms finite where failures leave no progress, which is said elsewhere."""

_SAME_SIZE = 0.1
"""Share by which a run of one's own may be larger or smaller than the plan's model and still be of its layers."""

_STEEPEST = 0.5
"""Power of the parameters that MFU changes with at most, so that hours rise with a power of 0.5 to 1.5."""


@lru_cache(maxsize=4096)
def _steps_at_point(request: SearchRequest, batch: float, point: int, seq_len: int, peak: float) -> Array | None:
    """The steps alone of the stand-in at a point of the grid: logarithms of accelerators times MFU, for each of
    `COUNTS`."""
    parameters = 2.0 ** (_DOUBLINGS * point)
    spec = stand_in(parameters, seq_len)
    try:
        ln_rates = fastest(replace(request, spec=spec), batch)
    except TrainedError:  # a rank above its width, say
        return None
    return None if ln_rates is None else ln_rates + math.log(6 * parameters * request.work_share_of(spec) / peak)


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
        request = None if self.model and not self.model.laid_out else estimable_request(self.plan)
        return normalised(request) if request else None

    @cached_property
    def _batch(self) -> float:
        return float(self.plan.batch.sequences(self.plan.seq_len))

    @cached_property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.plan.peak_dtype)

    @cached_property
    def _best_matmul(self) -> Array:
        """Logarithms of accelerators times MFU where no step is timed: every accelerator at the rate of its best
        matmul."""
        dtype, name = self.plan.peak_dtype, self.plan.accelerator
        scale = min(1.0, peak_16bit(name) / self.peak) if dtype in WIDTHS else 1.0
        return LN_COUNTS + math.log(scale * usable_matmul(name, WIDTHS.get(dtype, "16-bit")))

    @cached_property
    def _steps_of_model(self) -> Array | None:
        """Logarithms of accelerators times MFU of the model's steps alone; None where they are not timed."""
        if self._request is None or self.model is None:
            return None
        ln_rates = fastest(self._request, self._batch)
        return (
            None
            if ln_rates is None
            else ln_rates + math.log(6 * self.model.active * plan_work_share(self.plan) / self.peak)
        )

    @cached_property
    def has_step_estimate(self) -> bool:
        """Whether the time of a step can be estimated; else the best matmul stands for it."""
        if self.model:
            return self._steps_of_model is not None
        return self._steps_at(_USUAL_POINT) is not None

    @cached_property
    def shares(self) -> Shares:
        """What published runs, and the plan's own, reach of their steps."""
        own = [self._own_share(run) for run in self.plan.own_runs]
        return published_shares(self.has_step_estimate, self.new_hardware).given(own)

    @property
    def new_hardware(self) -> bool:
        """Whether the accelerator counts as new."""
        maturity = self.plan.maturity
        return is_new(self.plan.accelerator) if maturity == BY_AGE else maturity == FIRST_RUN

    def _own_share(self, run: OwnRun) -> float:
        """The share of its steps that a run of one's own reached without failures: steps of the plan's model where
        that is as large, else of a stand-in, with the plan's batch and software."""
        plan, model = self.plan, self.model
        same_model = model is not None and abs(model.active / run.parameters - 1) < _SAME_SIZE
        its_plan = replace(
            plan,
            accelerator=run.accelerator,
            model=plan.model if same_model else TYPED,
            measured=plan.measured if run.accelerator == plan.accelerator else CarriedRates(),
            find="time",
            own_runs=(),
            own_layout=False,
            trained=EVERYTHING,
        )
        other = Throughput(its_plan, model if same_model else None, self.checkpoint)
        size, count = np.array([run.parameters]), np.array([run.accelerators])
        steps_mfu = float(other.steps_mfu_by_6n(size, count)[0]) * other.peak / peak_16bit(run.accelerator)
        parameters = model.parameters if same_model and model else run.parameters
        lost = interruptions(run.accelerators, self.checkpoint.of(parameters), plan.reliability)
        return run.mfu / steps_mfu / (1.0 if run.steady else float(lost.goodput))

    def _steps_at(self, point: int) -> Array | None:
        """Logarithms of accelerators times MFU of the steps alone of the stand-in at a point; None where they are not
        timed."""
        if self._request is None:
            return None
        return _steps_at_point(self._request, self._batch, point, self.plan.seq_len, self.peak)

    @cached_property
    def _bounded_tables(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        return {}

    def _bounded(self, point: int, used_counts: int) -> tuple[Array, Array]:
        """Steps alone, and steps times goodput, of the stand-in at a point, no steeper than `_STEEPEST` from point to
        point; right for the first so many of `COUNTS`.

        Other points are looked at from the nearest outwards, as long as one that reached all of its peak would count.
        """
        if (point, used_counts) not in self._bounded_tables:
            steepest = _STEEPEST * _DOUBLINGS * math.log(2)
            steps, with_goodput = self._unbounded(point)
            for apart in range(1, _LAST_POINT - _FIRST_POINT + 1):
                if np.all(with_goodput[:used_counts] >= LN_COUNTS[:used_counts] - steepest * apart):
                    break
                for other in {max(point - apart, _FIRST_POINT), min(point + apart, _LAST_POINT)} - {point}:
                    less = steepest * abs(other - point)
                    steps, with_goodput = (
                        np.maximum(a, b - less)
                        for a, b in zip((steps, with_goodput), self._unbounded(other), strict=True)
                    )
            self._bounded_tables[point, used_counts] = steps, with_goodput
        return self._bounded_tables[point, used_counts]

    def _unbounded(self, point: int) -> tuple[Array, Array]:
        """Steps alone, and steps times goodput, of the stand-in at a point, as steep as they are."""
        table = self._steps_at(point)
        steps = self._best_matmul if table is None else table
        return steps, self._with_goodput(steps, 2.0 ** (_DOUBLINGS * point))

    def _with_goodput(self, steps: Array, parameters: float) -> Array:
        reliability: Reliability = self.plan.reliability
        goodput = interruptions(COUNTS, self.checkpoint.of(parameters), reliability).goodput
        return np.maximum.accumulate(steps + np.log(np.maximum(goodput, _TINY_GOODPUT)))

    def _tables(self, ln_params: Array, used_counts: int) -> tuple[Array, Array]:
        """Steps alone, and steps times goodput, for parameters by their logarithms: a row each, or one for all."""
        if self.model is not None:
            steps = self._best_matmul if self._steps_of_model is None else self._steps_of_model
            return steps[None], self._with_goodput(steps, self.model.parameters)[None]
        if not self.has_step_estimate:
            return self._best_matmul[None], self._with_goodput(self._best_matmul, _USUAL_PARAMETERS)[None]
        at = np.clip(np.nan_to_num(ln_params / (_DOUBLINGS * math.log(2))), _FIRST_POINT, _LAST_POINT)
        below = np.minimum(np.floor(at).astype(int), _LAST_POINT - 1)
        points, row = np.unique(below, return_inverse=True)
        part = (at - below)[:, None]

        def joined(which: int) -> Array:
            low, high = (
                np.stack([self._bounded(point + up, used_counts)[which] for point in points.tolist()]) for up in (0, 1)
            )
            return low[row] + part * (high - low)[row]

        return joined(0), joined(1)

    @cached_property
    def _at_ceiling(self) -> Array:
        """Every accelerator at its best matmul, which no end of a range passes."""
        return LN_COUNTS + math.log(ceiling_of(self.plan.device, self.plan.peak_dtype))

    @cached_property
    def _ln_shares(self) -> Array:
        """Logarithms of the share of the steps that runs reach without failures: low end, middle and high end."""
        return np.log(self.shares.ends)

    def steps_mfu_by_6n(self, params: Array, accelerators: Array) -> Array:
        """MFU of the steps alone, by 6 N. The arguments broadcast."""
        params, accelerators = np.broadcast_arrays(params, accelerators)
        ln_count = np.log(accelerators.ravel())
        steps, _ = self._tables(np.log(np.maximum(params, 1.0)).ravel(), _counts_up_to(ln_count))
        return np.exp(_read(steps, ln_count) - ln_count).reshape(params.shape)

    def _whole_tables(self, params: Array, used_counts: int) -> list[Array]:
        """Logarithms of accelerators times MFU of the whole run, a table for each end of its range: rows are
        parameters, of which the last axis has a value for each end, or one; columns the first of `COUNTS`."""
        logs = [np.log(np.maximum(end, 1.0)).ravel() for end in np.moveaxis(params, -1, 0)]
        whole = [self._tables(ln_params, used_counts)[1] for ln_params in logs]
        return [np.minimum(whole[i % len(whole)] + share, self._at_ceiling) for i, share in enumerate(self._ln_shares)]

    def whole_mfu_by_6n(self, params: Array, accelerators: Array) -> Array:
        """MFU over all hours, by 6 N, at the low end, the middle and the high end of the range: the last axis, in which
        the arguments have a value for each or one for all."""
        shape = np.broadcast_shapes(params.shape[:-1], accelerators.shape[:-1])
        params = np.broadcast_to(params, (*shape, params.shape[-1]))
        ln_counts = np.moveaxis(np.log(np.broadcast_to(accelerators, (*shape, accelerators.shape[-1]))), -1, 0)
        ends: list[Array] = []
        for i, table in enumerate(self._whole_tables(params, _counts_up_to(ln_counts))):
            ln_count = ln_counts[i % len(ln_counts)].ravel()
            ends.append(np.exp(_read(table, ln_count) - ln_count))
        return np.stack(ends, axis=-1).reshape(*shape, 3)

    def accelerators(self, params: Array, needed: Array) -> Array:
        """The fewest accelerators whose number times MFU, by 6 N over all hours, is ``needed``, at each end of the
        range (last axis); infinite where none do.
        """
        ln_needed = np.log(needed) + np.zeros((*params.shape[:-1], 3))
        ends = [_inverse(table, ln_needed[:, i]) for i, table in enumerate(self._whole_tables(params, len(COUNTS)))]
        return np.exp(np.stack(ends, axis=-1))


def _counts_up_to(ln_count: Array) -> int:
    """How many of `COUNTS` are needed up to these logarithms of accelerators."""
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
