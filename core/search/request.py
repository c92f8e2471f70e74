"""What a search is asked, and the memory and time of layouts under it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.budget.equations import mfu_needed
from core.hardware.cluster import Cluster
from core.hardware.rates import Rates
from core.models.flops import flops_per_token, train_flop_6nd
from core.models.parameters import parameters
from core.models.spec import TransformerSpec, modelled
from core.search.constraints import FREE, Constraints
from core.search.result import LayoutResult
from core.step_time.error_ranges import range_of
from core.step_time.links import check_peak
from core.step_time.parts import AS_USUAL, Running, StepTime
from core.step_time.step import step_over, step_time
from core.training.activations.tensors import FUSED, Implementation, Loss
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.host import host_lacks
from core.training.device.inputs import partly_trained, written_under
from core.training.device.memory import DeviceMemory, bytes_over
from core.training.device.setup import Setup
from core.training.device.work import work_share
from core.training.layout import Layout
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.trained import EVERYTHING, Trained

FREE_MEMORY = 0.08
"""Share of an accelerator's memory that is kept free where nobody says how much."""


@dataclass(frozen=True)
class SearchRequest:
    """Which layouts are searched.

    batch: sequences of a step, as a target.  running: how steps are run.  loss, chunks: how the loss is worked out, and
    in how many pieces.  offloads, trained, in_backward, paged: what is trained, and what saves memory beside that.
    mean_length: tokens that a sequence has on average, whose time counts; longest: tokens of the longest one, whose
    memory counts; both 0 where every sequence has ``seq_len``.  exact: whether a step has exactly ``batch`` sequences.
    memory_bytes: of one accelerator, NaN for the catalogue's.  keep_free: share of it that a plan leaves free, where
    any does.  host_bytes: of a node's host, NaN where nobody said. Without slots, so that what follows from it is
    worked out once.
    """

    spec: TransformerSpec
    cluster: Cluster
    batch: float
    seq_len: int
    policy: PrecisionPolicy
    optimizer: Optimizer
    implementation: Implementation = FUSED
    running: Running = AS_USUAL
    constraints: Constraints = FREE
    runtime: Runtime = MEASURED
    rates: Rates | None = None
    loss: Loss | None = None
    chunks: int = 1
    offloads: bool = False
    trained: Trained = EVERYTHING
    in_backward: bool = False
    paged: bool = False
    memory_bytes: float = math.nan
    keep_free: float = 0.0
    host_bytes: float = math.nan
    mean_length: int = 0
    longest: int = 0
    exact: bool = False

    def __post_init__(self) -> None:
        modelled(self.spec)
        check_peak(self.cluster.accelerator, self.running.dtype)

    def on(self, accelerators: int) -> SearchRequest:
        """The same on so many accelerators."""
        return replace(self, cluster=replace(self.cluster, count=accelerators))

    @property
    def timed_length(self) -> int:
        """Tokens of a sequence on average: what a step takes, and what it trains."""
        return self.mean_length or self.seq_len

    @property
    def usable(self) -> float:
        """Bytes of one accelerator; NaN where unknown."""
        return self.cluster.accelerator.memory_bytes if math.isnan(self.memory_bytes) else self.memory_bytes

    @property
    def budget(self) -> float:
        """Bytes of one accelerator that a plan may take."""
        return self.usable * (1 - self.keep_free)

    @cached_property
    def written(self) -> Implementation:
        """How layers are written, with what of them is trained."""
        return written_under(self.implementation, self.spec, self.policy, self.trained, offloads=self.offloads)

    @cached_property
    def _setup(self) -> Setup:
        """The same as a setup, under no layout yet."""
        return Setup(
            spec=self.spec,
            layout=Layout(),
            policy=self.policy,
            optimizer=self.optimizer,
            seq_len=self.longest or self.seq_len,
            implementation=self.written,
            loss=self.loss,
            chunks=self.chunks,
            imbalance=self.running.imbalance,
            runtime=self.runtime,
            trained=self.trained,
            in_backward=self.in_backward,
            paged=self.paged,
        )

    def work_share_of(self, spec: TransformerSpec) -> float:
        """FLOPs of a step of ``spec`` over those of one that trains everything."""
        if self.trained.everything:
            return 1.0
        return work_share(spec, partly_trained(spec, self.policy, self.trained), self.timed_length)

    def bytes_of(self, layout: Layout) -> npt.NDArray[np.float64]:
        """Bytes that the fullest accelerator has to hold under each layout, and what a node's host lacks beside them:
        more than there are where it does."""
        memory = bytes_over(self.spec, layout, self._setup.states, self._setup.step, runtime=self.runtime)
        if math.isnan(self.host_bytes):
            return memory
        lacks = host_lacks(replace(self._setup, layout=layout), self.cluster.per_node, self.host_bytes)
        return np.where(np.greater(lacks, 0), np.maximum(memory, self.usable) + lacks, memory)

    def memory(self, layout: Layout, stage: int | None = None) -> DeviceMemory:
        """The same by class; or what an accelerator of one pipeline stage holds."""
        return self._setup.account(layout, stage=stage)

    def step(self, layout: Layout) -> StepTime:
        """Seconds of a step under each layout."""
        return step_over(
            self.spec,
            self.cluster,
            layout,
            self._setup.states,
            seq_len=self.timed_length,
            running=self.running,
            implementation=self.written,
            rates=self.rates,
        )

    def known(self, layout: Layout) -> None:
        """Raise `BudgetError` where a peak or a bandwidth that the one plan given needs is not known."""
        step_time(
            self.spec,
            self.cluster,
            Layout(**{field.name: int(np.ravel(getattr(layout, field.name))[0]) for field in fields(Layout)}),
            seq_len=self.seq_len,
            running=self.running,
            implementation=self.written,
            policy=self.policy,
            optimizer=self.optimizer,
            rates=self.rates,
        )

    def mfu(self, tokens: float, seconds: float) -> float:
        """Share of the dense peak that the model FLOPs of so many tokens in so many seconds are; NaN where unknown."""
        device = self.cluster.accelerator
        flop = float(flops_per_token(self.spec, self.timed_length, "causal").training) * tokens
        flop *= self.work_share_of(self.spec)
        peak = device.peak(self.running.dtype)
        if math.isnan(peak) or not seconds > 0:
            return math.nan
        return float(mfu_needed(flop=flop, accelerators=self.cluster.count, peak=peak, seconds=seconds))

    def by_6n(self, mfu: float) -> float:
        """An MFU of `mfu`, attention counted, by 6 N of the parameters that work on each token."""
        return mfu_by_6n(self.spec, self.timed_length, mfu)

    def found(self, layout: Layout) -> tuple[LayoutResult, ...]:
        """Plans one by one, of a layout whose fields are arrays of one length."""
        memory, step = self.memory(layout), self.step(layout)
        size, range_ = np.shape(layout.data), range_of(self.spec, self.cluster, self.running)

        def apart(parts: Any) -> dict[str, list[Any]]:
            return {field.name: np.broadcast_to(getattr(parts, field.name), size).tolist() for field in fields(parts)}

        layouts, memories, steps = apart(layout), apart(memory), apart(step)
        results: list[LayoutResult] = []
        for i in range(size[0]):
            time = StepTime(**{name: values[i] for name, values in steps.items()})
            seconds, layout = float(time.total), Layout(**{name: values[i] for name, values in layouts.items()})
            tokens = int(layout.data * layout.micro_batch * layout.micro_batches) * self.timed_length
            results.append(
                LayoutResult(
                    layout=layout,
                    tokens=tokens,
                    step=time,
                    memory=DeviceMemory(**{name: values[i] for name, values in memories.items()}),
                    usable=self.usable,
                    mfu=self.mfu(tokens, seconds),
                    low=range_.low * seconds,
                    high=range_.high * seconds,
                )
            )
        return tuple(results)


def mfu_by_6n(spec: TransformerSpec, seq_len: int, mfu: float) -> float:
    """An MFU that counts causal attention, by 6 N of the parameters that work on each token."""
    counted = float(flops_per_token(spec, seq_len, "causal").training)
    return mfu * train_flop_6nd(parameters(spec).active, 1.0) / counted
