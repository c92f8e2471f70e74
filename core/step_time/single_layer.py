"""What is predicted of one layer that trains alone on one accelerator, to compare with a measurement.

The time is what a model of two such layers takes longer than a model of one: embedding, head, loss and what a step
costs outside its layers are in both and drop out. The memory is the layer's states and what it keeps for backward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from core.benchmark.layer import layer_parameters, spec_of
from core.benchmark.programme import LayerShape
from core.budget.equations import BudgetError
from core.formula import Explanation, Symbol, explain_run, formula
from core.hardware.accelerators import Accelerator, find
from core.hardware.cluster import Cluster, Rates
from core.messages import message
from core.sources import OWN_CONSTRUCTION
from core.step_time.formulas import constants_of, family_of
from core.step_time.running import COMPILED, EAGER, Running, StepTime, usual_kernel
from core.step_time.step import step_time
from core.training.activations.stage import layer_activation_bytes
from core.training.activations.tensors import FUSED, HF_SDPA
from core.training.device.buffers import device_bytes
from core.training.device.inputs import usual
from core.training.layout import Layout
from core.training.memory import state_bytes, states_per_parameter

_LIKE = "H100 SXM"
"""An accelerator that is not in the catalogue takes all but its rates from here: launches, share of attention."""


@formula(
    r"\v{two} - \v{one}",
    result=Symbol(r"t_\text{layer}", "time of one layer’s step", "seconds"),
    symbols={
        "two": Symbol("t_2", "step of a model of two such layers", "seconds"),
        "one": Symbol("t_1", "step of a model of one", "seconds"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def layer_seconds(two: float, one: float) -> float:
    """Time of one layer alone: what a model of two takes longer than a model of one."""
    return two - one


@dataclass(frozen=True, slots=True)
class LayerPrediction:
    """One layer's step as predicted. time: its parts, in seconds. Bytes are those of tensors.

    Backward's gradients of activations are not counted, nor what operations make on the way: what is allocated at most
    is somewhat more.
    """

    time: StepTime
    states_bytes: float
    activation_bytes: float
    explanations: tuple[Explanation, ...]

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return float(self.time.total)

    @property
    def peak_bytes(self) -> float:
        """States and activations, which are all there when backward begins."""
        return self.states_bytes + self.activation_bytes


def predict_layer(
    shape: LayerShape,
    accelerator: Accelerator | None,
    *,
    rates: Rates | None = None,
    compiled: bool = False,
) -> LayerPrediction:
    """The step of ``shape`` in mixed bf16, or fp16 without it, with fp32 master weights and AdamW on one accelerator.

    accelerator: None where it is not in the catalogue; ``rates`` then say all that is known of it. compiled: one
    kernel each for gates and rotary positions, and no factor for torch operation by operation. Norms are one kernel
    either way, and attention the kernel that torch takes by itself. Raises `BudgetError` without an accelerator or
    rates of products and memory, `SpecError` for a shape that cannot be.
    """
    device, layout = accelerator or _unlisted(rates), Layout(micro_batch=shape.micro_batch)
    cluster = Cluster(device, 1, 1)
    how, software = (FUSED, COMPILED) if compiled else (HF_SDPA, EAGER)
    running = Running(device.usable("bf16"), attention=usual_kernel(software, device), software=software.dense)

    def step(layers: int) -> StepTime:
        return step_time(spec_of(shape, layers), cluster, layout, seq_len=shape.seq_len, running=running, rates=rates)

    def activations() -> float:
        kind = "experts" if shape.experts else "dense"
        return float(layer_activation_bytes(spec_of(shape), how, layout, shape.seq_len, kind=kind))

    time, two = step(1), step(2)
    policy, optimizer = usual(None, None)
    each = states_per_parameter(optimizer, policy, spec_of(shape)).total
    states = state_bytes.explain(parameters=layer_parameters(shape), stored=each)
    value = activations()
    return LayerPrediction(
        time=StepTime(**{part.name: getattr(two, part.name) - getattr(time, part.name) for part in fields(StepTime)}),
        states_bytes=states.value,
        activation_bytes=value,
        explanations=(
            layer_seconds.explain(two=two.total, one=time.total),
            *explain_run(lambda: step(1)),
            states,
            *explain_run(activations),
            device_bytes.explain(states=states.value, activations=value, buffers=0.0, runtime=0.0),
        ),
    )


def _unlisted(rates: Rates | None) -> Accelerator:
    """An accelerator whose datasheet would lead one to expect ``rates``, and which is otherwise like `_LIKE`."""
    known = rates or Rates()
    if math.isnan(known.matmul16) or math.isnan(known.memory):
        raise BudgetError("rates", message("step.error.rates"))
    like = find(_LIKE)
    shares = constants_of(family_of(like))
    return replace(
        like,
        peaks=(("bf16", known.matmul16 / shares.matmul16),),
        bandwidth=known.memory / shares.bandwidth,
    )
