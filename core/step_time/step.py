"""Seconds of one training step under a layout, or under a million of them, by what the time goes to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.budget.equations import BudgetError
from core.hardware.cluster import Cluster, Rates
from core.models.spec import TransformerSpec
from core.step_time.constants import Constants, constants_of, family_of
from core.step_time.formulas import contention_share, jitter_share
from core.step_time.gradient_exchange import Exchange
from core.step_time.layer import LayerTime, layer_time
from core.step_time.links import BITS, Speeds, check_peak, speeds_of
from core.step_time.parts import AS_USUAL, Running, StepTime, added_up
from core.step_time.work import BYTES_16BIT, layer_work
from core.training.activations.formulas import rank_tokens
from core.training.activations.tensors import FUSED, Implementation
from core.training.device.costs import bubble_seconds
from core.training.device.inputs import States, states_of, usual
from core.training.device.traffic import handed_on
from core.training.layout import Counts, Degrees, Layout, check, degrees_of, pick
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy


def step_time(
    spec: TransformerSpec,
    cluster: Cluster,
    layout: Layout,
    *,
    seq_len: Counts,
    running: Running = AS_USUAL,
    implementation: Implementation = FUSED,
    policy: PrecisionPolicy | None = None,
    optimizer: Optimizer | None = None,
    rates: Rates | None = None,
    constants: Constants | None = None,
) -> StepTime:
    """Seconds of one step of ``spec`` on ``cluster`` under ``layout``, whose fields may be arrays.

    policy, optimizer: mixed bf16 with AdamW where they are None. Raises `LayoutError` for a layout that cannot be or
    takes more accelerators than there are, and `BudgetError` for a format that is not timed or whose peak is not known,
    and for a link whose bandwidth is not known but needed. Layouts that are known to be sound go to `step_over`.
    """
    check(spec, layout, seq_len, cluster.count)
    device = cluster.accelerator
    check_peak(device, running.dtype)
    states = default_states(spec, policy, optimizer)
    time = step_over(
        spec, cluster, layout, states, seq_len=seq_len, running=running, implementation=implementation,
        rates=rates, constants=constants,
    )  # fmt: skip
    if np.any(np.isnan(time.total)):
        unknown = math.isnan((rates or Rates()).of("between", cluster.link_between))
        far = np.any(np.greater(layout.accelerators, cluster.per_node)) and unknown
        missing = "network between nodes" if far else "links inside a node"
        raise BudgetError(
            "accelerator",
            f"The bandwidth of {device.name}’s {missing} is not in the catalogue, and this layout needs it. "
            "For example: H100 SXM.",
        )
    return time


def default_states(
    spec: TransformerSpec, policy: PrecisionPolicy | None = None, optimizer: Optimizer | None = None
) -> States:
    """Bytes per parameter of the model states: mixed bf16 with AdamW where they are None."""
    policy, optimizer = usual(policy, optimizer)
    return states_of(optimizer, policy, spec)


def step_over(
    spec: TransformerSpec,
    cluster: Cluster,
    layout: Layout,
    states: States,
    *,
    seq_len: Counts,
    running: Running = AS_USUAL,
    implementation: Implementation = FUSED,
    rates: Rates | None = None,
    constants: Constants | None = None,
) -> StepTime:
    """The same for many layouts at once, none of which is checked; NaN where a bandwidth is unknown but needed.

    Fields of the layout broadcast against each other as they are: what depends on few of them stays small.
    """
    c = constants or constants_of(family_of(cluster.accelerator))
    parts, jitter = _parts(spec, cluster, layout, states, seq_len, running, implementation, rates, c)
    parts["jitter"] = added_up(parts.values()) * jitter
    if all(np.ndim(value) == 0 for value in parts.values()):
        parts = {name: float(value) for name, value in parts.items()}
    return StepTime(**parts)


def _parts(
    spec: TransformerSpec,
    cluster: Cluster,
    layout: Layout,
    states: States,
    seq_len: Counts,
    running: Running,
    how: Implementation,
    rates: Rates | None,
    c: Constants,
) -> tuple[dict[str, Any], Any]:
    """Every part of the step but its jitter, and what share of them that is."""
    speeds = speeds_of(cluster, running, c, rates)
    speeds = speeds.in_fp32() if how.in_fp32 else speeds
    d = degrees_of(layout)
    with np.errstate(invalid="ignore", divide="ignore"):
        layer = layer_time(spec, how, d, seq_len, running, speeds, c)
        parts = _step(spec, d, seq_len, running, speeds, c, states, how, layer)
    accelerators = d.tensor * d.pipeline * d.context * d.data
    beside = contention_share.over(share=c.contention, accelerators=accelerators)
    return parts, beside + jitter_share.over(share=c.jitter, nodes=np.maximum(1.0, accelerators / speeds.domain))


def _step(
    spec: TransformerSpec,
    d: Degrees,
    seq_len: Counts,
    running: Running,
    speeds: Speeds,
    c: Constants,
    states: States,
    how: Implementation,
    layer: LayerTime,
) -> dict[str, Any]:
    """Every part of the step but its jitter.

    A stage's parts are those of a mean stage; what the fullest has more is a wait.
    """
    work = layer_work(spec, how, BITS[running.dtype] / 8)
    p, v, many = d.pipeline, d.interleave, d.micro_batches
    each = many * (work.layers / p)
    head = layer.head + layer.head_elementwise
    share = many / p
    stage = layer.total * (work.layers / p)
    transfer = _transfer(spec, d, seq_len, running, speeds, c)
    exchange = Exchange(spec, d, running, speeds, c, states, work, regathers=how.regathers)
    data = exchange.data(layer.forward * (work.layers / p), layer.backward * (work.layers / p))
    update = exchange.update()
    parts: dict[str, Any] = {
        "matmul": each * layer.matmul + share * layer.head,
        "attention": each * layer.attention,
        "elementwise": each * layer.elementwise + share * layer.head_elementwise,
        "recompute": each * layer.recompute,
        "tensor": each * layer.tensor,
        "context": each * layer.context,
        "expert": each * layer.expert,
        "transfer": many * c.transfer_wait * transfer,
        "bubble": bubble_seconds.over(pipeline=p, interleave=v, stage=stage, transfer=transfer)
        + many * _unevenness(work.layers, layer.total, head, p, v),
        "data": data,
        "optimizer": update,
        "fixed": each * layer.fixed + c.per_step,
    }
    factors = {
        "eager": 1.0 if how.written_out else c.eager,
        "deepspeed 2021": c.deepspeed,
        "megatron tuned": c.megatron_tuned,
        "internevo": c.internevo,
    }
    factor = factors.get(running.software)
    if factor is not None:
        parts = {name: factor * value for name, value in parts.items()}
    return parts


def _unevenness(layers: float, layer: Any, head: Any, p: Any, v: Any) -> Any:
    """Seconds per micro-batch by which the fullest stage takes longer than the mean one.

    Layers that divide evenly leave the head on top of the last stage's; else embedding and head take the places that
    layers leave.
    """
    chunk = layers / (p * v)
    full = np.ceil(chunk)
    return pick(full == chunk, head * (1 - 1 / p), np.maximum(0.0, (full - chunk) * v * layer - head / p))


def _transfer(
    spec: TransformerSpec, d: Degrees, seq_len: Counts, running: Running, speeds: Speeds, c: Constants
) -> Any:
    """Seconds in which one micro-batch's activations and their gradients go from stage to stage."""
    if not np.any(d.pipeline > 1):
        return 0.0
    tokens = rank_tokens.over(micro_batch=d.micro_batch, seq_len=np.asarray(seq_len), context=d.context)
    stride = d.tensor * d.context * d.data
    far = stride * d.pipeline > speeds.domain
    size = tokens * handed_on(d, BYTES_16BIT * spec.stream_width, running.scattered)
    sent = size / np.where(far, speeds.between, speeds.inside)
    hop = np.where(far, c.hop_between, c.hop_inside)
    return np.where(d.pipeline > 1, 2.0 * d.interleave * (sent + hop), 0.0)
