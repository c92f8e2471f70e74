"""How steps are run: the parts of a step, the speeds of an accelerator and its links, and training software."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from core.budget.equations import BudgetError
from core.hardware.accelerators import Accelerator
from core.hardware.cluster import Cluster, Rates
from core.messages import message
from core.models.spec import TransformerSpec
from core.rows import number, read_rows, whole
from core.step_time.formulas import Constants
from core.training.activations.tensors import FUSED, IMPLEMENTATIONS, Implementation, Loss
from core.training.layout import Counts

Software: TypeAlias = Literal["megatron", "compiled", "eager", "deepspeed 2021", "megatron tuned", "internevo", "jax"]
"""Whose steps are counted: Megatron’s; those of torch’s own sharding with compiled or hand-fused layers; of torch
operation by operation; of DeepSpeed as measured in 2021; of Megatron-Core for mixtures of experts from mid 2026; of
InternEvo, with kernels of its own; of MaxText, one program that XLA compiled."""

GROUPED: tuple[Software, ...] = ("compiled", "eager")
"""Software that multiplies by all experts of a rank in one grouped product: none is started by itself
[torch.nn.functional.grouped_mm, in transformers and torchtitan]."""

Tuning: TypeAlias = Literal["writers", "users", "nobody"]
"""Who made a run fast: those who wrote its software, those who run it, or nobody."""

TUNINGS: tuple[Tuning, ...] = get_args(Tuning)

Kernel: TypeAlias = Literal["newest", "fa2", "triton"]
"""Kernel of fused attention: the newest of the accelerator's vendor, FlashAttention-2, or its first form in Triton."""


@dataclass(frozen=True, slots=True)
class Running:
    """How a step is run, as far as its layout does not say.

    dtype: format of the products with weights; attention's own products, router and head stay in 16 bits. overlap:
    share of tensor- and data-parallel communication that runs beside computing; a number or an array. overlap_tensor:
    the same of tensor parallelism alone, where it differs. attention: see `Kernel`.  software: see `Software`.
    imbalance: tokens of the busiest rank's experts over their even share.  graphs: 0 where the host launches every
    kernel of a layer with experts by itself, as dropless routing without CUDA graphs makes it.  skips_last_product: 1
    where full recomputation ends with the last tensor that backward reads, so that a layer's last product, and what
    experts send back, is not done again, as torch's non-reentrant checkpoints do; Megatron's repeat the layer.
    scattered: see `handed_on`.  tuned_by: see `Tuning`; it decides how far off a step may be, not how long it takes.
    """

    dtype: str = "bf16"
    overlap: Counts | float = 1
    overlap_tensor: Counts | None = None
    attention: Kernel = "newest"
    software: Software = "megatron"
    imbalance: float = 1.0
    graphs: Counts = 1
    skips_last_product: Counts = 0
    scattered: Counts = 0
    tuned_by: Tuning = "users"

    def __post_init__(self) -> None:
        """Raise `BudgetError` for a kernel or software that is not known."""
        for field, kind in (("attention", Kernel), ("software", Software)):
            given, known = getattr(self, field), get_args(kind)
            if given not in known:
                raise BudgetError(field, message("step.error.unknown", field=field, given=given, known=known))


AS_USUAL = Running()
"""16 bits, overlapped, the newest kernels."""


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step on the rank that takes longest; numbers, or arrays that broadcast.

    matmul, attention, elementwise: forward and backward of all micro-batches.  recompute: what backward computes
    again.  tensor, context, expert, data: communication that nothing hides.  transfer: activations from stage to stage.
    bubble: the pipeline's wait, and that for its fullest stage.  optimizer: the update.  fixed: launches and whatever
    else each layer, micro-batch and step costs whatever its size.  jitter: contention and stragglers.
    """

    matmul: Any
    attention: Any
    elementwise: Any
    recompute: Any
    tensor: Any
    context: Any
    expert: Any
    transfer: Any
    bubble: Any
    data: Any
    optimizer: Any
    fixed: Any
    jitter: Any

    @cached_property
    def total(self) -> Any:
        """Seconds of the whole step."""
        return added_up(getattr(self, field.name) for field in fields(self))

    @property
    def largest_overhead(self) -> str:
        """The part that takes most time and does not compute."""
        return max((name for name in PARTS if name not in COMPUTE), key=lambda name: float(getattr(self, name)))


PARTS: tuple[str, ...] = tuple(field.name for field in fields(StepTime))
"""The parts of a step, in order."""

COMPUTE = ("matmul", "attention", "elementwise")
"""Parts that are no overhead."""


def added_up(parts: Iterable[Any]) -> Any:
    """The sum of numbers and arrays that broadcast, small ones first: few additions then run over the whole."""
    return sum(sorted(parts, key=np.size))


BITS = {"bf16": 16, "fp16": 16, "fp8": 8, "fp4": 4}
"""Formats in which a step can be computed, with their bits."""

_CAP_WATTS, _FULL_HOPPER = 600.0, 9e14
"""A Hopper of full nominal peak, in FLOP/s, that draws less than so many watts does not hold its clocks."""


_PINNED = 0.87
"""Share of a slot's bytes that copies from pinned memory reach: 54.6 of 63.0 GB/s, measured on one H100 with 256 MiB at
a time; 51 with 16 MiB, and 46 each way where both ways are busy. From memory that is not pinned it was 7 to 13."""


def check_peak(device: Accelerator, dtype: str) -> None:
    """Raise `BudgetError` for a format in which no step is timed, or whose peak on ``device`` is unknown."""
    if dtype not in BITS:
        raise BudgetError("dtype", message("step.error.dtype", dtype=dtype, known=list(BITS)))
    if math.isnan(device.peak(dtype)):
        raise BudgetError("dtype", message("step.error.no_peak", dtype=dtype, device=device.name))


@dataclass(frozen=True, slots=True)
class Speeds:
    """Rates of one accelerator, FLOP/s and bytes per second, NaN when unknown.

    weight_matmul, matmul16, matmul32: products with weights in the step's format, in 16 bits, and in fp32, whose peak
    is taken for that of 16 bits where nobody prints it.  peak16: of 16 bits. inside, between: collectives over the
    links of a node, or domain, and over the network.  domain: accelerators of a node.  host: of one accelerator, from
    its host's memory.
    """

    weight_matmul: float
    matmul16: float
    matmul32: float
    attention: float
    peak16: float
    memory: float
    inside: float
    between: float
    domain: int
    host: float

    def in_fp32(self) -> Speeds:
        """The same where all products are in fp32, attention's no nearer to the peak than in 16 bits.

        What moves over memory and links stays counted as in 16 bits: a few percent of a step that is so slow.
        """
        attention = self.matmul32 * (self.attention / self.matmul16)
        return replace(self, weight_matmul=self.matmul32, matmul16=self.matmul32, attention=attention)

    def group(self, ranks: Any, stride: Any) -> Any:
        """Bytes per second of one rank of a group whose ranks lie ``stride`` apart; without end where it is alone.

        Beyond one node all of the group's ranks in it share its network.
        """
        here = np.clip(self.domain / stride, 1.0, ranks)
        far = np.where(here > 1, np.minimum(self.inside, self.between * here), self.between)
        return np.where(ranks > 1, np.where(ranks * stride <= self.domain, self.inside, far), np.inf)

    def neighbour(self, ranks: Any, stride: Any) -> Any:
        """Bytes per second from one rank to the next of such a group."""
        return np.where(ranks > 1, np.where(ranks * stride <= self.domain, self.inside, self.between), np.inf)


def wide_peak(accelerator: Accelerator) -> float:
    """Dense 16-bit peak: bf16, or fp16 where there is no bf16."""
    bf16 = accelerator.peak("bf16")
    return accelerator.peak("fp16") if math.isnan(bf16) else bf16


def speeds_of(cluster: Cluster, running: Running, constants: Constants, rates: Rates | None) -> Speeds:
    """What the cluster's accelerator reaches; ``rates`` replace what they have."""
    device, c, measured = cluster.accelerator, constants, rates or Rates()
    factor = _factor(device, c)
    half = wide_peak(device) * factor
    bits = BITS[running.dtype]
    weights = half if bits == 16 else device.peak(running.dtype) * factor
    share = {16: c.matmul16, 8: c.matmul8, 4: c.matmul4}
    attention = {"newest": c.attention, "fa2": c.attention_fa2, "triton": c.attention_triton}[running.attention]
    return Speeds(
        weight_matmul=measured.product(running.dtype, weights * share[bits]),
        matmul16=measured.product("bf16", half * share[16]),
        matmul32=np.fmin(half, device.peak("fp32") * factor) * share[16],
        attention=half * attention,
        peak16=half,
        memory=measured.of("memory", device.bandwidth * c.bandwidth),
        inside=measured.of("inside", cluster.link_inside * c.inside),
        between=measured.of("between", cluster.link_between * c.between),
        domain=cluster.per_node,
        host=c.host if math.isnan(cluster.link_host) else _PINNED * cluster.link_host,
    )


def _factor(device: Accelerator, c: Constants) -> Any:
    """What a part reaches of its nominal peak beside its family: more power, a cap on it, or units half idle."""
    if device.half_rate:
        return c.half_rate
    if device.family == "Blackwell" and device.id.endswith("b300"):
        return c.ultra
    full = device.family == "Hopper" and device.peak("bf16") > _FULL_HOPPER
    return c.capped if full and device.tdp_watts < _CAP_WATTS else 1.0


Captured: TypeAlias = Literal["step", "parts", "none"]
"""What CUDA graphs capture of a mixture's step: all of it, parts, or nothing."""


def launches_hidden(captured: str, accelerator: str) -> int:
    """Whether the host's launches of a mixture's kernels do not show; graphs of parts are enough for a Grace."""
    return int(captured == "step" or (captured == "parts" and accelerator.startswith("GB")))


@dataclass(frozen=True, slots=True)
class TrainingSoftware:
    """One way to train. id: its name, which links carry.

    dense, mixture: whose steps those of dense models and of mixtures of experts are like. What it does is in its
    field's help, ``field.sw.help`` of the catalog.  attention: its fused kernel on Hopper.  overlap, overlap_tensor,
    skips_last_product: as in `Running`.  weighs_inside: as in `Implementation`; Megatron-Core does since 2025
    [megatron/core/transformer/moe/experts.py, permuted_probs].  regathers: as there. Megatron's FSDP gathers and
    reduces on all micro-batches [megatron/core/distributed/fsdp/mcore_fsdp_adapter.py, fsdp_unit_modules]; torchtitan
    and NeMo AutoModel keep them under a pipeline [reshard_after_forward], torch itself after each backward
    [torch/distributed/pipelining/stage.py, backward_maybe_with_nosync].  layers: how they are written unless one says
    otherwise.  loss: how it computes cross-entropy, where not as its layers are written.
    """

    id: str
    dense: Software
    mixture: Software
    attention: Kernel
    overlap_tensor: int | None
    skips_last_product: int
    captured: Captured
    overlap: float = 1
    weighs_inside: bool = False
    regathers: bool = False
    layers: Implementation = FUSED
    loss: Loss | None = None


def _read(row: Mapping[str, str]) -> TrainingSoftware:
    flags = {name: row[name] == "1" for name in ("weighs_inside", "regathers")}
    known: dict[str, Any] = {**row, **flags, "overlap": number(row["overlap"])}
    known["skips_last_product"] = whole(row["skips_last_product"])
    known["overlap_tensor"] = whole(row["overlap_tensor"]) if row["overlap_tensor"] else None
    known |= {"layers": IMPLEMENTATIONS[row["layers"]], "loss": row["loss"] or None}
    return TrainingSoftware(**known)


SOFTWARE: Mapping[str, TrainingSoftware] = {row["id"]: _read(row) for row in read_rows("training_software")}
"""Every software by its name."""

MEGATRON, MEGATRON_TUNED, COMPILED, EAGER, INTERNEVO, JAX = SOFTWARE.values()

USUAL_SOFTWARE = MEGATRON.id


KERNELS: Mapping[str, Kernel] = MappingProxyType({"FlashAttention-3 or cuDNN": "newest", "FlashAttention-2": "fa2"})
"""Kernels of fused attention by the names that a plan has for them; they differ on Hopper."""

TUNED_BY: Mapping[str, Tuning] = MappingProxyType(
    {"by its writers": "writers", "by us": "users", "by nobody": "nobody"}
)
"""Who made a run fast, as a plan says it."""

USUAL_TUNING = "by us"


def written_with(software: str, implementation: Implementation) -> Implementation:
    """An implementation as a software has it."""
    item = SOFTWARE[software]
    inside = item.weighs_inside and not implementation.written_out
    torch, compiled = item.dense in GROUPED, item.dense == "compiled"
    how = replace(implementation, weighs_inside=inside, regathers=item.regathers)
    by = "FSDP" if compiled else "DeepSpeed" if item.id == EAGER.id else ""
    return replace(how, ring_gathers=torch, shares_casts=compiled, sharded_by=by)


def layers_with(software: str, name: str) -> str:
    """The implementation of that name; for any other name that which a software comes with."""
    return name if name in IMPLEMENTATIONS else SOFTWARE[software].layers.id


def loss_with(software: str, implementation: Implementation) -> Loss:
    """How a software computes cross-entropy unless it is told."""
    return SOFTWARE[software].loss or implementation.loss


def usual_kernel(software: TrainingSoftware, accelerator: Accelerator) -> Kernel:
    """The kernel of fused attention that a software takes by itself: of torch's own choice cuDNN's stands on NVIDIA
    alone."""
    own = software.dense in GROUPED and accelerator.vendor != "NVIDIA"
    return "fa2" if own else software.attention


def running_on(
    software: str,
    spec: TransformerSpec,
    accelerator: Accelerator,
    dtype: str,
    kernel: str = "",
    tuned_by: str = USUAL_TUNING,
) -> Running:
    """How a software runs a step of ``spec`` on an accelerator, its products in ``dtype``.

    kernel: of attention, by its name in `KERNELS`; the software's usual one where it is empty. tuned_by: whom, by a
    name in `TUNED_BY`.
    """
    item = SOFTWARE[software]
    mixed = spec.experts is not None
    return Running(
        dtype=dtype,
        overlap=item.overlap,
        overlap_tensor=item.overlap_tensor,
        attention=KERNELS[kernel] if kernel else usual_kernel(item, accelerator),
        software=item.mixture if mixed else item.dense,
        graphs=launches_hidden(item.captured, accelerator.name) if mixed else 1,
        skips_last_product=item.skips_last_product,
        tuned_by=TUNED_BY[tuned_by],
    )
