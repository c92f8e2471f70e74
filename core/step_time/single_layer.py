"""Predicted time and memory of one layer on one accelerator, to compare with a measurement.

The time is the difference between a model of two such layers and one of a single layer, so that embedding, head, loss,
and fixed costs cancel. The memory is the layer's states and saved activations.
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
from core.training.activations.stage import StepSettings, layer_activation_bytes
from core.training.activations.tensors import FUSED, HF_SDPA
from core.training.device.buffers import device_bytes
from core.training.device.inputs import usual
from core.training.layout import Layout
from core.training.memory import state_bytes, states_per_parameter

_LIKE = "H100 SXM"
"""Accelerator that serves as a proxy for one outside the catalog, except for its rates."""


@formula(
    r"\v{two} - \v{one}",
    result=Symbol(r"t_\text{layer}", "step time of one layer", "seconds"),
    symbols={
        "two": Symbol("t_2", "step time of a model with two such layers", "seconds"),
        "one": Symbol("t_1", "step time of a model with one", "seconds"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def layer_seconds(two: float, one: float) -> float:
    """Return the step time of one layer, the difference between a model of two and a model of one."""
    return two - one


@dataclass(frozen=True, slots=True)
class LayerPrediction:
    """The predicted step of one layer.

    time: its parts, in seconds. Bytes are those of tensors, without gradients of activations and temporary buffers, so
    that the allocator reports somewhat more.
    """

    time: StepTime
    states_bytes: float
    activation_bytes: float
    explanations: tuple[Explanation, ...]

    @property
    def seconds(self) -> float:
        """Seconds of the whole step."""
        return float(self.time.total)

    @property
    def peak_bytes(self) -> float:
        """Bytes of states and activations when backward begins."""
        return self.states_bytes + self.activation_bytes


def predict_layer(
    shape: LayerShape,
    accelerator: Accelerator | None,
    *,
    rates: Rates | None = None,
    compiled: bool = False,
) -> LayerPrediction:
    """Return the step of ``shape`` in mixed bf16 (or fp16) with fp32 master weights and AdamW on one accelerator.

    Args:
        accelerator: None for one outside the catalog, of which ``rates`` has all that is known.
        compiled: Fuse gates and rotary positions. Norms are one kernel either way, and attention is torch's default.

    Raises:
        BudgetError: Without an accelerator, or rates of matmuls and memory.
        SpecError: For an invalid shape.
    """
    device, layout = accelerator or _unlisted(rates), Layout(micro_batch=shape.micro_batch)
    cluster = Cluster(device, 1, 1)
    how, software = (FUSED, COMPILED) if compiled else (HF_SDPA, EAGER)
    running = Running(device.usable("bf16"), attention=usual_kernel(software, device), software=software.dense)

    def step(layers: int) -> StepTime:
        return step_time(spec_of(shape, layers), cluster, layout, seq_len=shape.seq_len, running=running, rates=rates)

    def activations() -> float:
        kind = "experts" if shape.experts else "dense"
        return float(layer_activation_bytes(spec_of(shape), layout, StepSettings(shape.seq_len, how), kind))

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
    """Return an accelerator whose datasheet matches ``rates``, and which is otherwise like `_LIKE`."""
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
