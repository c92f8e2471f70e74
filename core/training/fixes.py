"""What to change where a setup does not fit: bytes saved, whether it then fits, and what the change costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from core.hardware.accelerators import accelerators
from core.models.flops import flops_per_token
from core.training.layout import LayoutError, Recompute
from core.training.optimizers import optimizers
from core.training.setup import Setup
from core.training.traffic import traffic_per_step

FLOP_PER_BYTE = 1e4
"""FLOPs that a byte sent is worth: 400 TFLOP/s of an H100 in training over 40 GB/s of its network. Only the order of
the changes depends on it."""

TENSOR_FLOP_PER_BYTE = 1e3
"""The same for tensor parallelism, which stays on links ten times as fast."""

_NODE = 8
"""Accelerators on such links in a usual server; tensor parallelism is not proposed across them."""

_LEAN_OPTIMIZERS: Mapping[str, str] = {"AdamW": "8-bit Adam", "Adam": "8-bit Adam"}
_LEAN_POLICIES: Mapping[str, str] = {
    "mixed bf16, fp32 master, fp32 gradients": "mixed bf16, fp32 master, bf16 states",
    "mixed fp16, fp32 copies of both": "mixed bf16, fp32 master, fp32 gradients",
    "fp32": "mixed bf16, fp32 master",
}


@dataclass(frozen=True)
class Fix:
    """One change to a setup.

    changes: fields of `Setup` or its layout, by name, with their new values; optimizer, policy and accelerator by name.
    before, after: the setup without and with it.  flop, traffic: what one accelerator multiplies and sends more in a
    step; negative where less.  cost: share by which a step grows, bytes counted as FLOPs and the pipeline's wait too.
    """

    name: str
    changes: Mapping[str, int | str]
    before: Setup
    after: Setup
    flop: float = 0.0
    traffic: float = 0.0
    cost: float = 0.0

    @cached_property
    def saved(self) -> float:
        """Bytes that the fullest accelerator holds less, or has more."""
        return float(self.before.held.total - self.after.held.total)

    @property
    def fits(self) -> bool:
        """Whether it then fits."""
        return self.after.fits

    @cached_property
    def more_accelerators(self) -> float:
        """Accelerators it takes, over those taken before."""
        return float(self.after.layout.accelerators / self.before.layout.accelerators)

    @property
    def order(self) -> tuple[bool, float, float, float]:
        """What sorts the cheapest first: the same accelerators, then as few, then the cost, then what it saves."""
        return "accelerator" in self.changes, self.more_accelerators, max(0.0, self.cost), -self.saved


def step_flop(setup: Setup) -> float:
    """FLOPs of one step on one accelerator, without recomputation."""
    return flops_per_token(setup.spec, setup.seq_len).training * _tokens(setup)


def _tokens(setup: Setup) -> float:
    """Tokens of one step over the accelerators that share their work."""
    lay = setup.layout
    return float(lay.micro_batch * lay.micro_batches * setup.seq_len / (lay.tensor * lay.pipeline * lay.context))


def _again(setup: Setup) -> float:
    """FLOPs of one step on one accelerator that recomputation adds; selective does only norms again where attention
    keeps no scores."""
    counted = flops_per_token(setup.spec, setup.seq_len, recompute="full")
    if setup.layout.recompute == Recompute.FULL:
        return counted.recomputed * _tokens(setup)
    lean = setup.layout.recompute == Recompute.SELECTIVE and not setup.implementation.flash
    return counted.squares * _tokens(setup) if lean else 0.0


def _sent(setup: Setup) -> tuple[float, float]:
    """Bytes of one step that one accelerator sends, and the FLOPs that they are worth; with offload, those to its
    host and back too."""
    one = setup.layout
    sent = traffic_per_step(setup.spec, one, policy=setup.policy, seq_len=setup.seq_len)
    moved = 0.0
    if one.offload:
        kept = setup.changed({"offload": 0}).held
        moved = float(kept.gradients + kept.parameters)
    worth = FLOP_PER_BYTE * (sent.total - sent.tensor + moved) + TENSOR_FLOP_PER_BYTE * sent.tensor
    return float(sent.total + moved), float(worth)


def _bubble(setup: Setup) -> float:
    """Time that a stage waits, as a share of the time it works [Narayanan et al. 2021, section 2.2]."""
    one = setup.layout
    return float((one.pipeline - 1) / (one.interleave * one.micro_batches))


def _candidates(setup: Setup) -> Iterator[tuple[str, Mapping[str, int | str]]]:
    """Every change to consider, whether it helps or not."""
    one, spec = setup.layout, setup.spec
    if setup.loss == "separate" and setup.chunks == 1:
        yield "fused loss", {"loss": "fused"}
        yield "chunked loss", {"chunks": 8}
    if one.tensor > 1 and not one.sequence_parallel:
        yield "sequence parallel", {"sequence_parallel": 1}
    if one.data * one.context > 1:
        yield from ((f"ZeRO-{stage}", {"zero": stage}) for stage in range(int(one.zero) + 1, 4))
    if one.recompute < Recompute.SELECTIVE:
        yield "selective recomputation", {"recompute": int(Recompute.SELECTIVE)}
    if one.recompute < Recompute.FULL:
        yield "full recomputation", {"recompute": int(Recompute.FULL)}
    if one.micro_batch > 1:
        size = max(d for d in range(1, int(one.micro_batch)) if one.micro_batch % d == 0)
        many = int(one.micro_batches * one.micro_batch) // size
        yield "smaller micro-batch", {"micro_batch": size, "micro_batches": many}
    yield from _degrees(setup)
    if one.expert < (spec.experts.count if spec.experts else 1):
        yield "expert degree", {"expert": 2 * int(one.expert)}
    if not one.offload:
        yield "offload", {"offload": 1}
    lean = _LEAN_OPTIMIZERS.get(setup.optimizer.name, "")
    if lean in optimizers():
        yield lean, {"optimizer": lean}
    if setup.policy.id in _LEAN_POLICIES:
        policy = _LEAN_POLICIES[setup.policy.id]
        yield policy, {"policy": policy}
    if one.zero >= 1:
        yield "more accelerators", {"data": 2 * int(one.data)}


def _degrees(setup: Setup) -> Iterator[tuple[str, Mapping[str, int | str]]]:
    """Twice a degree, on the same accelerators where data parallelism can give way, and then with twice the batch of
    each replica, so that the batch stays."""
    one = setup.layout
    halved = one.data % 2 == 0
    for name in ("tensor", "pipeline", "context"):
        if name == "tensor" and 2 * one.tensor > _NODE:
            continue
        changes = {name: 2 * int(getattr(one, name))}
        if halved:
            changes |= {"data": int(one.data) // 2, "micro_batches": 2 * int(one.micro_batches)}
        if name == "tensor":
            changes["sequence_parallel"] = 1
        yield f"{name} degree", changes


def fixes(setup: Setup) -> tuple[Fix, ...]:
    """Every change that saves memory, the cheapest first: those on the same accelerators before those that need more.

    The last is the accelerator with the least memory that would do as things are, where there is one.
    """
    found: list[Fix] = []
    for name, changes in _candidates(setup):
        after = setup.changed(changes)
        try:
            fix = _fix(name, changes, setup, after)
        except LayoutError:
            continue
        if fix.saved > 0:
            found.append(fix)
    need = float(setup.held.total)
    if not setup.fits and not math.isnan(setup.memory):
        larger = [one for one in accelerators() if one.memory_bytes >= need]
        if larger:
            one = min(larger, key=lambda other: (other.memory_bytes, -other.generation, other.name))
            changes = {"accelerator": one.name}
            found.append(Fix("another accelerator", changes, setup, setup.changed(changes)))
    return tuple(sorted(found, key=lambda fix: fix.order))


def _fix(name: str, changes: Mapping[str, int | str], before: Setup, after: Setup) -> Fix:
    flop = _again(after) - _again(before)
    (sent, worth), (sent_before, worth_before) = _sent(after), _sent(before)
    # Where a change gives each accelerator other work, the step it is compared with is of that work.
    share = (_again(after) + worth) / step_flop(after) - (_again(before) + worth_before) / step_flop(before)
    return Fix(
        name=name,
        changes=changes,
        before=before,
        after=after,
        flop=flop,
        traffic=sent - sent_before,
        cost=share + _bubble(after) - _bubble(before),
    )


def way_to_fit(setup: Setup, most: int = 8) -> tuple[Fix, ...]:
    """Changes on top of each other until it fits: the cheapest one that does, else the one that saves most per cost.

    Ends without fitting where nothing on the same accelerators saves any more, or after ``most``.
    """
    taken: list[Fix] = []
    while not setup.fits and len(taken) < most:
        here = [fix for fix in fixes(setup) if "accelerator" not in fix.changes and fix.more_accelerators <= 1]
        if not here:
            break
        enough = [fix for fix in here if fix.fits]
        best = enough[0] if enough else max(here, key=lambda fix: fix.saved / (0.01 + max(0.0, fix.cost)))
        taken.append(best)
        setup = best.after
    return tuple(taken)
