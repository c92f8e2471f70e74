"""Claims about training memory, checked by the byte accounts."""

from __future__ import annotations

from core.hardware.accelerators import find
from core.lecture.claims import Claim, Finding, Link, titled
from core.tensors.cost import tensor_bytes
from core.training import TrainingMemory, account, find_optimizer, find_policy
from core.training.optimizer_state import optimizer_bytes
from core.units import format_bytes, format_count, format_quantity

H100 = "H100 SXM"


def _account(parameters: float, policy: str = "fp32", optimizer: str = "AdamW") -> TrainingMemory:
    memory = find(H100).memory_bytes
    return account(parameters, find_optimizer(optimizer), find_policy(policy), accelerators=8, memory=memory)


def _largest() -> Finding:
    plan = _account(40e9)
    return Finding(f"{format_count(plan.largest)} parameters", plan.largest == 40e9, plan.explain()[:4])


def _no_saving() -> Finding:
    policies = ("fp32", "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients")
    sizes = [_account(1e9, policy).per_parameter.total for policy in policies]
    shown = (
        f"fp32 {sizes[0]:g} B, bf16 with fp32 master {sizes[1]:g} B, with fp32 gradients {sizes[2]:g} B per parameter"
    )
    return Finding(shown, sizes == [16, 16, 18], _account(1e9, policies[1]).explain()[:2])


def _states() -> Finding:
    names = ("SGD momentum", "Adagrad", "RMSProp", "Adam")
    counts = [len(find_optimizer(name).states) for name in names]
    shown = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    return Finding(
        f"state tensors per parameter: {shown}",
        counts == [1, 1, 1, 2],
        tuple(
            titled(f"{name}, its state in fp32", optimizer_bytes.explain(tensors=count, each=4))
            for name, count in zip(names, counts, strict=True)
        ),
        "The number of states is read from the table of optimizers that memory is computed with.",
    )


def _checkpoint() -> Finding:
    plan = _account(70e9)
    size = plan.checkpoint()
    return Finding(format_bytes(size, system="decimal"), size == 840e9, plan.explain()[-1:])


def _dataset() -> Finding:
    size = tensor_bytes.explain(elements=1.4e12, element_bytes=2)
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
        Link("memory", {"n": "40B", "opt": "AdamW", "prec": "fp32", "gpu": H100, "count": "8"}),
        "Model states only: activations come on top.",
    ),
    Claim(
        "M2",
        "Training memory",
        "bf16 with an fp32 master",
        "bf16 parameters and gradients with an fp32 master copy do not save memory.",
        "holds",
        _no_saving,
        Link("memory", {"n": "40B", "prec": "mixed bf16, fp32 master"}),
        "With gradients accumulated in fp32 it even costs 2 B more.",
    ),
    Claim(
        "M5",
        "Training memory",
        "states of the optimizers",
        "Momentum, AdaGrad and RMSProp keep one state per parameter, Adam keeps two.",
        "exact",
        _states,
        Link("memory", {"n": "8B", "opt": "Adam"}),
    ),
    Claim(
        "M8",
        "Training memory",
        "a checkpoint of 70B",
        "A checkpoint holds the model and the optimizer: 70B under fp32 AdamW is 840 GB.",
        "exact",
        _checkpoint,
        Link("memory", {"n": "70B", "opt": "AdamW", "prec": "fp32"}),
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
