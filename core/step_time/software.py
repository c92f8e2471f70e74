"""Software that trains, as a plan names it, and how it runs a step: each is what its published steps were run with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from core.hardware.accelerators import Accelerator
from core.models.spec import TransformerSpec
from core.step_time.parts import GROUPED, Kernel, Running, Software, Tuning
from core.training.activations.tensors import FUSED, HF_SDPA, IMPLEMENTATIONS, Implementation, Loss

Captured: TypeAlias = Literal["step", "parts", "none"]
"""What CUDA graphs capture of a mixture's step: all of it, parts, or nothing."""


def launches_hidden(captured: str, accelerator: str) -> int:
    """Whether the host's launches of a mixture's kernels do not show; graphs of parts are enough for a Grace."""
    return int(captured == "step" or (captured == "parts" and accelerator.startswith("GB")))


@dataclass(frozen=True, slots=True)
class TrainingSoftware:
    """One way to train. id: its name, which links carry.

    meaning: what it does, and what was published of it.  dense, mixture: whose steps those of dense models and of
    mixtures of experts are like.  attention: its fused kernel on Hopper.  overlap, overlap_tensor, skips_last_product:
    as in `Running`.  weighs_inside: as in `Implementation`; Megatron-Core does since 2025
    [megatron/core/transformer/moe/experts.py, permuted_probs].  regathers: as there. Megatron's FSDP gathers and
    reduces on all micro-batches [megatron/core/distributed/fsdp/mcore_fsdp_adapter.py, fsdp_unit_modules]; torchtitan
    and NeMo AutoModel keep them under a pipeline [reshard_after_forward], torch itself after each backward
    [torch/distributed/pipelining/stage.py, backward_maybe_with_nosync].  layers: how they are written unless one says
    otherwise.  loss: how it computes cross-entropy, where not as its layers are written.
    """

    id: str
    meaning: str
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


MEGATRON = TrainingSoftware(
    id="Megatron-Core",
    meaning="As NVIDIA’s containers published it up to release 26.04: communication overlaps; of a mixture’s step CUDA "
    "graphs capture parts at most, so that on hosts other than Grace small layers wait for their launches.",
    dense="megatron",
    mixture="megatron",
    attention="newest",
    overlap_tensor=None,
    skips_last_product=0,
    captured="parts",
    weighs_inside=True,
    regathers=True,
)
MEGATRON_TUNED = TrainingSoftware(
    id="Megatron-Core, tuned",
    meaning="As NVIDIA tuned it from release 26.06 on: CUDA graphs capture a mixture’s whole step, experts’ products "
    "are fused, and their exchange runs beside other work. All such steps were published on Blackwell; dense models "
    "take no less than before.",
    dense="megatron",
    mixture="megatron tuned",
    attention="newest",
    overlap_tensor=None,
    skips_last_product=0,
    captured="step",
    weighs_inside=True,
    regathers=True,
)
COMPILED = TrainingSoftware(
    id="FSDP2, compiled",
    meaning="PyTorch’s own sharding with compiled or hand-fused layers, as torchtitan and NeMo AutoModel: tensor "
    "parallelism waits for its communication, and recomputation leaves out each layer’s last product.",
    dense="compiled",
    mixture="compiled",
    attention="newest",
    overlap_tensor=0,
    skips_last_product=1,
    captured="step",
)
EAGER = TrainingSoftware(
    id="PyTorch, eager",
    meaning="The same operation by operation, as torchtitan without torch.compile and llm-foundry; its loss writes "
    "the logits out in fp32.",
    dense="eager",
    mixture="eager",
    attention="newest",
    overlap_tensor=0,
    skips_last_product=1,
    captured="none",
    layers=HF_SDPA,
    loss="separate",
)
INTERNEVO = TrainingSoftware(
    id="InternEvo",
    meaning="Kernels of its own and what Apex and FlashAttention bring: gradients are reduced beside backward, updated "
    "weights are waited for, under ZeRO-1 in one broadcast after the other. All its steps were published on one "
    "kind of accelerator.",
    dense="internevo",
    mixture="internevo",
    attention="fa2",
    overlap_tensor=0,
    skips_last_product=1,
    captured="none",
    overlap=0.5,
)

JAX = TrainingSoftware(
    id="MaxText (JAX)",
    meaning="One program that is compiled whole, as MaxText’s and Levanter’s: communication runs beside computing. All "
    "such steps were published on TPUs, of one slice.",
    dense="jax",
    mixture="jax",
    attention="newest",
    overlap_tensor=None,
    skips_last_product=1,
    captured="step",
)

SOFTWARE: Mapping[str, TrainingSoftware] = MappingProxyType(
    {software.id: software for software in (MEGATRON, MEGATRON_TUNED, COMPILED, EAGER, INTERNEVO, JAX)}
)
"""Every software by its name."""

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
    return replace(how, ring_gathers=torch, shares_casts=compiled)


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
