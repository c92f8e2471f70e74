"""What a plan's cluster trains at: of the steps of its layout alone, and of the whole run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from core.budget.errors import BudgetError
from core.hardware.matmul import ceiling_of
from core.limits import cached
from core.models.catalog import CatalogModel
from core.models.spec import SpecError
from core.planning.memory_estimate import resolved_plan
from core.planning.own_runs import OwnRun
from core.planning.plan import BY_AGE, FIRST_RUN, TYPED, CarriedRates, Plan
from core.planning.resolved_layout import estimable_request, found_layout, plan_checkpoint, search_request
from core.runs.goodput import Interruptions, interruptions, most_useful
from core.runs.share import Shares, is_new, published_shares, usable_matmul
from core.runs.utilisation import Width, peak_16bit
from core.search.fastest import FoundLayout
from core.training.layout import LayoutError
from core.training.trained import EVERYTHING

Array = npt.NDArray[np.float64]

WIDTHS: dict[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}

_SAME_SIZE = 0.1
"""Share by which a run of one's own may be larger or smaller than the plan's model and still be of its layers."""


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


@cached("small_results_kept")
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
    """What a plan trains at with any parameters, those that work on each token, on any number of accelerators.

    model: whose layers are counted; None where only parameters are known.
    """

    plan: Plan
    model: CatalogModel | None

    @property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.plan.peak_dtype)

    @cached_property
    def has_step_estimate(self) -> bool:
        """Whether the time of a step can be estimated; else the best matmul stands for it."""
        if self.model and not self.model.laid_out:
            return False
        return estimable_request(self.plan) is not None

    @cached_property
    def work_share(self) -> float:
        """FLOPs of a step over those of one that trains everything."""
        return plan_work_share(self.plan)

    def stored(self, parameters: float) -> float:
        """Parameters that are stored, all experts included, where ``parameters`` work on each token."""
        return parameters * (self.model.parameters / self.model.active) if self.model else parameters

    def found(self, parameters: float, count: float) -> FoundLayout | None:
        """The layout that trains so many parameters on so many accelerators; None where no step is timed, or no layout
        keeps to the constraints."""
        if not self.has_step_estimate:
            return None
        return found_layout(resolved_plan(self.plan, max(1.0, self.stored(parameters)), count))

    def interruptions(self, parameters: float, count: float) -> Interruptions:
        """What checkpoints, failures and restarts leave of the time of the accelerators that take part."""
        size = float(plan_checkpoint(self.plan).of(self.stored(parameters)))
        return interruptions(self._busy(parameters, count, size), size, self.plan.reliability)

    def _busy(self, parameters: float, count: float, checkpoint: float) -> float:
        """Accelerators that take part: those of the layout, or as many as failures leave of use; all where the MFU is
        typed."""
        if not self.plan.expects_mfu:
            return count
        found = self.found(parameters, count)
        return found.busy if found else min(count, most_useful(checkpoint, self.plan.reliability))

    def steps_mfu_by_6n(self, parameters: float, count: float) -> float:
        """MFU of the steps alone, by 6 N; 0 where no layout fits that days would follow from."""
        found = self.found(parameters, count)
        if found is None and not (self.has_step_estimate and self.plan.expects_mfu):
            dtype, name = self.plan.peak_dtype, self.plan.accelerator
            scale = min(1.0, peak_16bit(name) / self.peak) if dtype in WIDTHS else 1.0
            size = float(plan_checkpoint(self.plan).of(self.stored(parameters)))
            part = self._busy(parameters, count, size) / count
            return part * scale * usable_matmul(name, WIDTHS.get(dtype, "16-bit"))
        if found is None or (self.plan.expects_mfu and not self.plan.own_layout and not found.fits):
            return 0.0
        return 6 * parameters * self.work_share * found.tokens_per_second / (count * self.peak)

    def whole_mfu_by_6n(self, parameters: float, count: float) -> Array:
        """MFU over all hours, by 6 N, at the low end, the middle and the high end of what published runs reach of their
        steps; none of them above the best matmul."""
        goodput = float(self.interruptions(parameters, count).goodput)
        whole = self.steps_mfu_by_6n(parameters, count) * goodput * self.shares.ends
        return np.minimum(whole, ceiling_of(self.plan.device, self.plan.peak_dtype))

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
        other = Throughput(its_plan, model if same_model else None)
        steps_mfu = other.steps_mfu_by_6n(run.parameters, run.accelerators) * other.peak / peak_16bit(run.accelerator)
        parameters = model.parameters if same_model and model else run.parameters
        lost = interruptions(run.accelerators, plan_checkpoint(plan).of(parameters), plan.reliability)
        return run.mfu / steps_mfu / (1.0 if run.steady else float(lost.goodput))
