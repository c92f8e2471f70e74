"""A search request: the model, the cluster, how steps run, and what layouts keep to; and the results it gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError, days_of_steps, mfu_needed
from core.formula import Explanation, explain_run
from core.hardware.cluster import Cluster, Rates
from core.messages import message
from core.models.flops import flops_per_token, train_flop_6nd
from core.models.parameters import parameters
from core.models.spec import TransformerSpec, modelled
from core.step_time.error_ranges import range_of
from core.step_time.running import AS_USUAL, Running, StepTime, check_peak
from core.step_time.step import step_over, step_time
from core.training.activations.tensors import FUSED, Implementation, Loss
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.host import host_lacks
from core.training.device.inputs import partly_trained, usual, written_under
from core.training.device.memory import DeviceMemory, Setup, bytes_over, work_share
from core.training.layout import Layout, LayoutError, Recompute
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.trained import EVERYTHING, Trained


@dataclass(frozen=True, slots=True)
class Range:
    """Range from ``low`` to ``high``, both included; ``high`` is None without an upper bound."""

    low: int = 1
    high: int | None = None

    @property
    def free(self) -> bool:
        """Whether the range allows every degree."""
        return self.low <= 1 and self.high is None

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:,}"
        return f"up to {self.high:,}" if self.low <= 1 else f"{self.low:,} to {self.high:,}"

    def includes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which of the values are in the range."""
        return (values >= self.low) & (values <= (np.inf if self.high is None else self.high))


Pin: TypeAlias = "int | tuple[int, ...] | Range | None"
"""The value, the values or the range that a choice may take; None leaves it free."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What plans have to keep to. Fields but the last are the fields of `Layout` that they pin.

    expert_tensor: as usual, unless it is allowed otherwise.
    shard_group: 0 is all ranks; left free, those of one node are tried beside them.  offload: forbidden unless it is
    allowed, because hosts differ more than accelerators do. micro_batches: of a step, which then has as many sequences
    as these come to; None fills the batch. Only a layout of one's own has it, and values of every other field.
    tensor_in_node: tensor-parallel ranks stay in one node, as in practically every published run: beyond it they wait
    for a link that is ten times slower. Values of ``tensor``, or a range from 2 on, overrule it.
    """

    tensor: Pin = None
    pipeline: Pin = None
    interleave: Pin = None
    context: Pin = None
    expert: Pin = None
    expert_tensor: Pin = 0
    data: Pin = None
    micro_batch: Pin = None
    zero: Pin = None
    shard_group: Pin = None
    sequence_parallel: Pin = None
    recompute: Pin = None
    offload: Pin = 0
    micro_batches: int | None = None
    tensor_in_node: bool = True

    @property
    def one_layout(self) -> bool:
        """Whether the constraints leave a single layout, which is timed whether it fits or not."""
        return all(isinstance(pin, int) for pin in (self.tensor, self.zero, self.shard_group, self.sequence_parallel))

    def allowed(self, field: str, values: Any) -> npt.NDArray[np.bool_]:
        """Return which of the values a field may take."""
        pin, values = getattr(self, field), np.asarray(values)
        if pin is None or isinstance(pin, Range):
            return (pin or Range(-1)).includes(values)
        return np.isin(values, pin)

    def listed(self, field: str) -> tuple[int, ...] | None:
        """Return the values that a field is pinned to; None if it is free or has a range."""
        pin = getattr(self, field)
        return None if pin is None or isinstance(pin, Range) else tuple(np.atleast_1d(pin).tolist())

    @property
    def keeps_tensor_in_node(self) -> bool:
        """Whether tensor-parallel ranks have to stay in one node."""
        pin = self.tensor
        return self.tensor_in_node and (pin is None or (isinstance(pin, Range) and pin.low <= 1))

    def choices(self, field: str, values: Any) -> npt.NDArray[np.int64]:
        """Return the values that a field may take."""
        values = np.asarray(values, dtype=np.int64)
        return values[self.allowed(field, values)]


def only(layout: Layout) -> Constraints:
    """Return constraints that allow only ``layout``, with free data-parallel ranks, and free micro-batches if they are
    0."""
    degrees = ("tensor", "pipeline", "interleave", "context", "expert", "expert_tensor", "micro_batch")
    kept = (*degrees, "zero", "shard_group", "sequence_parallel", "recompute", "offload")
    pins: dict[str, Any] = {name: int(getattr(layout, name)) for name in kept}
    return Constraints(**pins, micro_batches=int(layout.micro_batches) or None)


FREE = Constraints()
"""The usual ones: tensor-parallel ranks in a node, and nothing offloaded."""

FSDP: Mapping[str, Pin] = {
    **dict.fromkeys(("tensor", "pipeline", "interleave", "context", "expert"), 1),
    "zero": (0, 2, 3),
    "recompute": (Recompute.NONE, Recompute.FULL),
    "offload": (0, 2),
}
"""Values of a layout's fields that PyTorch's FSDP runs by itself. It offloads the optimizer with the parameters only,
which no search tries."""


def with_fsdp(pins: Constraints) -> Constraints:
    """Return the constraints with those of `FSDP` added for free fields."""
    free = {name: pin for name, pin in FSDP.items() if is_free(getattr(pins, name))}
    return replace(pins, **free)  # pyright: ignore[reportArgumentType]


def is_free(pin: Pin) -> bool:
    """Return whether a pin allows every value."""
    return pin is None or (isinstance(pin, Range) and pin.free)


class SpaceError(LayoutError):
    """A search space with more layouts than are searched.

    count: number of layouts, or a lower bound. most: the maximum. field: the field that leaves the fewest layouts if it
    is pinned. left: upper bound on these.
    """

    def __init__(self, count: int, most: int, field: str, left: int) -> None:
        named = field.replace("_", " ")
        rule = message("search.error.too_many", layouts=count, most=most, field=named, left=left)
        super().__init__(field, count, rule)
        self.count, self.most, self.left = count, most, left
        self.args = (rule,)


@dataclass(frozen=True)
class LayoutResult:
    """Result of one layout, as plain numbers.

    tokens: tokens of one step, at their mean length. usable: memory capacity in bytes. mfu: model FLOPs of the step
    divided by the dense peak. low, high: 80% range of the step time in seconds.
    """

    layout: Layout
    tokens: int
    step: StepTime
    memory: DeviceMemory
    usable: float
    mfu: float
    low: float
    high: float

    @cached_property
    def seconds(self) -> float:
        """Seconds of one step."""
        return float(self.step.total)

    @property
    def pace(self) -> float:
        """Seconds that a million tokens take, by which plans with steps of unlike many compare."""
        return 1e6 * self.seconds / self.tokens

    @property
    def spare(self) -> float:
        """Free bytes on the accelerator that uses the most memory; negative if capacity is exceeded."""
        return self.usable - float(self.memory.total)


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Layouts as arrays of one length, the fastest first.

    tokens: tokens of one step. bound: index of the largest overhead in the fields of `StepTime`, without matmul,
    attention, and elementwise operations.
    """

    layout: Layout
    tokens: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    memory: npt.NDArray[np.float64]
    bound: npt.NDArray[np.int64]

    @property
    def pace(self) -> npt.NDArray[np.float64]:
        """Seconds that a million tokens take."""
        return 1e6 * self.seconds / self.tokens

    def at(self, place: int) -> Layout:
        """Return one layout, of whole numbers."""
        return Layout(*(int(getattr(self.layout, field.name)[place]) for field in fields(Layout)))

    def fastest(self, slower: float, most: int) -> Columns:
        """Return at most ``most`` layouts, evenly spaced from the fastest to ``slower`` times its step time."""
        inside = np.flatnonzero(self.pace <= slower * self.pace[:1])
        places = inside[np.linspace(0, len(inside) - 1, min(most, len(inside))).astype(np.intp)]
        layout = Layout(*(getattr(self.layout, field.name)[places] for field in fields(Layout)))
        tokens, seconds, memory = self.tokens[places], self.seconds[places], self.memory[places]
        return Columns(layout, tokens, seconds, memory, self.bound[places])


@dataclass(frozen=True, eq=False, slots=True)
class SearchResult:
    """Result of a search.

    best: the fastest layout; None if none fits. pareto: Pareto-optimal layouts in time and memory, the fastest first.
    plans: the fastest layouts that fit, up to a cap. count: number of valid layouts. fitting: number that fit. nearest:
    the layout with the lowest peak memory if none fits. kept_free: memory headroom that all of them leave.
    """

    best: LayoutResult | None
    pareto: tuple[LayoutResult, ...]
    plans: Columns
    count: int
    fitting: int
    nearest: LayoutResult | None
    kept_free: float = 0.0


FREE_MEMORY = 0.08
"""Share of an accelerator's memory that is kept free where nobody says how much."""


@dataclass(frozen=True)
class SearchRequest:
    """Search for layouts.

    batch: target sequences per step. running: how steps run. loss, chunks: implementation of the loss, and loss chunks.
    offloads, trained, in_backward, paged: what is trained, and other memory options. mean_length: mean tokens per
    sequence, which set the time; longest: tokens of the longest sequence, which sets the memory; both 0 if every
    sequence has ``seq_len``. exact: whether a step has exactly ``batch`` sequences. memory_bytes: memory capacity, NaN
    for the catalog's. keep_free: memory headroom, if a layout meets it. host_bytes: host memory per node, NaN without a
    limit. The class has no slots, so that derived values are computed once.
    """

    spec: TransformerSpec
    cluster: Cluster
    batch: float
    seq_len: int
    policy: PrecisionPolicy = field(default_factory=lambda: usual(None, None)[0])
    optimizer: Optimizer = field(default_factory=lambda: usual(None, None)[1])
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
        if self.batch < 1:
            raise BudgetError("batch", message("search.error.at_least_one"))
        check_peak(self.cluster.accelerator, self.running.dtype)

    def on(self, accelerators: int) -> SearchRequest:
        """Return the request for another number of accelerators."""
        return replace(self, cluster=replace(self.cluster, count=accelerators))

    @property
    def timed_length(self) -> int:
        """Mean tokens per sequence, which determine step time and trained tokens."""
        return self.mean_length or self.seq_len

    @property
    def usable(self) -> float:
        """Bytes of one accelerator; NaN if unknown."""
        return self.cluster.accelerator.memory_bytes if math.isnan(self.memory_bytes) else self.memory_bytes

    @property
    def budget(self) -> float:
        """Bytes of one accelerator that a plan may take."""
        return self.usable * (1 - self.keep_free)

    @cached_property
    def written(self) -> Implementation:
        """How layers are written, with what of them is trained."""
        how = replace(self.implementation, timed_loss=self.loss)
        return written_under(how, self.spec, self.policy, self.trained, offloads=self.offloads)

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
        """Return FLOPs of a step of ``spec`` over those of one that trains everything."""
        if self.trained.everything:
            return 1.0
        return work_share(spec, partly_trained(spec, self.policy, self.trained), self.timed_length)

    def bytes_of(self, layout: Layout) -> npt.NDArray[np.float64]:
        """Return the peak memory of each layout in bytes, and what its host lacks; more than the capacity if the host
        lacks memory."""
        memory = bytes_over(self.spec, layout, self._setup.states, self._setup.step, runtime=self.runtime)
        if math.isnan(self.host_bytes):
            return memory
        lacks = host_lacks(replace(self._setup, layout=layout), self.cluster.per_node, self.host_bytes)
        return np.where(np.greater(lacks, 0), np.maximum(memory, self.usable) + lacks, memory)

    def memory(self, layout: Layout, stage: int | None = None) -> DeviceMemory:
        """Return the memory by class; optionally that of an accelerator in one pipeline stage."""
        return self._setup.account(layout, stage=stage)

    def step(self, layout: Layout) -> StepTime:
        """Return the seconds of a step under each layout."""
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
        """Raise `BudgetError` if a peak or a bandwidth that the given layout needs is unknown."""
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
        """Return the MFU of a number of tokens in a number of seconds, relative to the dense peak; NaN if unknown."""
        device = self.cluster.accelerator
        flop = float(flops_per_token(self.spec, self.timed_length, "causal").training) * tokens
        flop *= self.work_share_of(self.spec)
        peak = device.peak(self.running.dtype)
        if math.isnan(peak) or not seconds > 0:
            return math.nan
        return float(mfu_needed(flop=flop, accelerators=self.cluster.count, peak=peak, seconds=seconds))

    def by_6n(self, mfu: float) -> float:
        """Return an MFU of `mfu`, attention counted, by 6 N of the parameters that work on each token."""
        return mfu_by_6n(self.spec, self.timed_length, mfu)

    def found(self, layout: Layout) -> tuple[LayoutResult, ...]:
        """Return plans one by one, of a layout whose fields are arrays of one length."""
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
    """Return an MFU that counts causal attention, by 6 N of the parameters that work on each token."""
    counted = float(flops_per_token(spec, seq_len, "causal").training)
    return mfu * train_flop_6nd(parameters(spec).active, 1.0) / counted


def explain(request: SearchRequest, result: LayoutResult, tokens: float) -> list[Explanation]:
    """Return the formulas from the days of all steps down to those of one step, each with all its values."""
    device = request.cluster.accelerator
    length = request.timed_length
    flop = float(flops_per_token(request.spec, length, "causal").training) * result.tokens
    peak = device.peak(request.running.dtype)
    return [
        days_of_steps.explain(tokens=tokens, seconds=result.seconds, sequences=result.tokens / length, seq_len=length),
        mfu_needed.explain(flop=flop, accelerators=request.cluster.count, peak=peak, seconds=result.seconds),
        *explain_run(lambda: request.step(result.layout)),
    ]
