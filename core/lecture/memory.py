"""Claims about training memory, checked by the byte accounts."""

from __future__ import annotations

from core.hardware.accelerators import find
from core.lecture.claims import Claim, Finding, Link, titled
from core.training.device.states_only import explain_largest
from core.training.layout import Layout
from core.training.memory import (
    PARTS,
    StateBytes,
    bytes_per_parameter,
    checkpoint_size,
    states_per_parameter,
    token_bytes,
    token_width,
)
from core.training.optimizer_state import optimizer_bytes
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy
from core.units import format_bytes, format_count, format_quantity

H100 = "H100 SXM"


def _states(policy: str = "fp32", optimizer: str = "AdamW") -> StateBytes:
    return states_per_parameter(find_optimizer(optimizer), find_policy(policy))


def _largest(policy: str = "fp32") -> Finding:
    steps = explain_largest(_states(policy), Layout(data=8, zero=3), find(H100).memory_bytes)
    return Finding(f"{format_count(steps[-1].value)} parameters", steps[-1].value == 40e9, steps)


def _no_saving() -> Finding:
    policies = ("fp32", "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients")
    sizes = [_states(policy).total for policy in policies]
    text = (
        f"fp32 {sizes[0]:g} B, bf16 with fp32 master {sizes[1]:g} B, with fp32 gradients {sizes[2]:g} B per parameter"
    )
    parts = {part: float(getattr(_states(policies[1]), part)) for part in PARTS}
    return Finding(text, sizes == [16, 16, 18], (bytes_per_parameter.explain(**parts),))


def _kept() -> Finding:
    names = ("SGD momentum", "Adagrad", "RMSProp", "Adam")
    counts = [len(find_optimizer(name).states) for name in names]
    text = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    return Finding(
        f"state tensors per parameter: {text}",
        counts == [1, 1, 1, 2],
        tuple(
            titled(f"{name}, its state in fp32", optimizer_bytes.explain(tensors=count, each=4))
            for name, count in zip(names, counts, strict=True)
        ),
        "The number of states is read from the table of optimizers that memory is computed with.",
    )


def _checkpoint(parameters: float = 70e9) -> Finding:
    saved = checkpoint_size(find_optimizer("AdamW"), find_policy("fp32"))
    size = saved.explain(parameters)
    return Finding(format_bytes(size.value, system="decimal"), size.value == 840e9, (size,))


def _dataset() -> Finding:
    size = token_bytes.explain(tokens=1.4e12, each=token_width(32_000))
    return Finding(
        f"1.4T tokens × 2 B (uint16) = {format_quantity(size.value, 'bytes')}", size.value == 2.8e12, (size,)
    )


MEMORY: tuple[Claim, ...] = (
    Claim(
        "M1",
        "Training memory",
        "40B on eight H100",
        "Eight H100 hold 40B parameters under naive fp32 AdamW.",
        "exact",
        _largest,
        Link("memory", {"n": "40B", "opt": "AdamW", "prec": "fp32", "gpu": H100, "count": "8"}, at="remarks"),
        "Model states only: activations come on top, and then 40B do not fit.",
    ),
    Claim(
        "M2",
        "Training memory",
        "bf16 with an fp32 master",
        "bf16 parameters and gradients with an fp32 master copy do not save memory.",
        "holds",
        _no_saving,
        Link("memory", {"n": "40B", "prec": "mixed bf16, fp32 master"}, at="remarks"),
        "With gradients accumulated in fp32 it even costs 2 B more.",
    ),
    Claim(
        "M5",
        "Training memory",
        "states of the optimizers",
        "Momentum, AdaGrad and RMSProp keep one state per parameter, Adam keeps two.",
        "exact",
        _kept,
        Link("memory", {"n": "8B", "opt": "Adam", "optims": "true"}, at="optims"),
    ),
    Claim(
        "M8",
        "Training memory",
        "a checkpoint of 70B",
        "A checkpoint holds the model and the optimizer: 70B under fp32 AdamW is 840 GB.",
        "exact",
        _checkpoint,
        Link("memory", {"n": "70B", "opt": "AdamW", "prec": "fp32"}, at="remarks"),
        "Gradients are not saved.",
    ),
    Claim(
        "M9",
        "Training memory",
        "2.8 TB of tokens",
        "LLaMA’s data is 2.8 TB: load it with memmap.",
        "holds",
        _dataset,
        None,
        "More than the memory of most machines; memmap reads the part that is asked for.",
    ),
)
