"""Checks of claims on training memory, by the byte accounts."""

from __future__ import annotations

from core.experiments.linear_bytes import ACTIVATIONS, PARAMETERS
from core.formula import Explanation
from core.hardware.accelerators import find
from core.lecture.claims import Finding, titled
from core.messages import message
from core.models.catalog import model_named
from core.tensors.cost import tensor_bytes
from core.training.device.inputs import explain_largest, usual
from core.training.device.memory import Setup
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
from core.training.optimizers import find_optimizer, optimizer_bytes_per_parameter
from core.training.precision import POLICIES, find_policy
from core.units import format_bytes, format_count, format_quantity

MIXED = "mixed bf16, fp32 master"


def _states(policy: str = "fp32", optimizer: str = "AdamW") -> StateBytes:
    return states_per_parameter(find_optimizer(optimizer), find_policy(policy))


def _explain_states(states: StateBytes) -> Explanation:
    return bytes_per_parameter.explain(**{part: float(getattr(states, part)) for part in PARTS})


def _sum_of_parts(states: StateBytes) -> str:
    """Return the bytes of each part as a table of precisions adds them up."""
    return f"{states.parameters:g} + {states.gradients:g} + {states.master:g} + {states.optimizer:g}"


def check_largest_model(policy: str = "fp32") -> Finding:
    sheet = find("H100 SXM").sheet_bytes
    steps = explain_largest(_states(policy), Layout(data=8, zero=3), sheet)
    found = steps[-1].value
    return Finding(
        message("lecture.M1.found", parameters=found, size=sheet),
        found == 40e9,
        steps,
        compared=(40e9, found),
        shown=(str(format_bytes(sheet, system="decimal")), str(format_count(found))),
    )


def check_master_copy() -> Finding:
    fp32, mixed, wide = (_states(name) for name in ("fp32", MIXED, f"{MIXED}, fp32 gradients"))
    return Finding(
        message("lecture.M2.found", fp32=fp32.total, mixed=mixed.total, wide=wide.total),
        (fp32.total, mixed.total, wide.total) == (16, 16, 18),
        (_explain_states(mixed),),
        shown=(f"{mixed.total:g} B per parameter",),
    )


def check_optimizer_states() -> Finding:
    counts = {name: len(find_optimizer(name).states) for name in ("SGD momentum", "AdaGrad", "RMSProp", "Adam")}
    momentum, adagrad, rmsprop, adam = map(float, counts.values())
    return Finding(
        message("lecture.M5.found", momentum=momentum, adagrad=adagrad, rmsprop=rmsprop, adam=adam),
        (momentum, adagrad, rmsprop, adam) == (1, 1, 1, 2),
        tuple(
            titled(f"{name}, its state in fp32", optimizer_bytes_per_parameter.explain(tensors=count, each=4))
            for name, count in counts.items()
        ),
        message("lecture.M5.how"),
        shown=tuple(f"{name} {count}" for name, count in counts.items()),
    )


def check_checkpoint(parameters: float = 70e9) -> Finding:
    size = checkpoint_size(find_optimizer("AdamW"), find_policy("fp32")).explain(parameters)
    return Finding(
        message("lecture.M8.found", size=size.value),
        size.value == 840e9,
        (size,),
        compared=(840e9, size.value),
        shown=(format_bytes(size.value, system="decimal"),),
    )


def check_dataset() -> Finding:
    size = token_bytes.explain(tokens=1.4e12, each=token_width(32_000))
    shown = (str(format_quantity(size.value, "bytes")),)
    return Finding(message("lecture.M9.found", size=size.value), size.value == 2.8e12, (size,), shown=shown)


def check_token_width() -> Finding:
    two, four = (token_bytes.explain(tokens=1.4e12, each=each) for each in (2, 4))
    return Finding(
        message("lecture.M17.found", four=four.value, two=two.value),
        four.value == 2 * two.value,
        (two, four),
        message("lecture.M17.how"),
        shown=(str(two.text), str(four.text)),
    )


def check_growth() -> Finding:
    spec = model_named("Llama 3.1 8B").spec
    one, two = (Setup(spec, Layout(micro_batch=size), *usual(None, None), 4096).device_memory for size in (1, 2))
    activations, doubled = float(one.activations), float(two.activations)
    return Finding(
        message("lecture.M3.found", one=activations, two=doubled, states=float(one.states)),
        doubled > 1.9 * activations and float(two.states) == float(one.states),
        (_explain_states(_states(MIXED)),),
        message("lecture.M3.how"),
        shown=(format_bytes(2.0 * spec.hidden * 8192, system="binary"),),
    )


def check_linear_model() -> Finding:
    states = _states(optimizer="AdaGrad")
    total = states.total * PARAMETERS + 4 * ACTIVATIONS
    claimed = 4 * (PARAMETERS + ACTIVATIONS + PARAMETERS + PARAMETERS)
    return Finding(
        message(
            "lecture.M4.found",
            parameters=float(PARAMETERS),
            each=states.total,
            activations=float(ACTIVATIONS),
            total=total,
        ),
        total == claimed,
        (tensor_bytes.explain(elements=ACTIVATIONS, element_bytes=4), _explain_states(states)),
        message("lecture.M4.how"),
        compared=(float(claimed), float(total)),
        shown=(f"{total:g} B",),
    )


def check_precision_policies() -> Finding:
    names = "fp32", "fp32, bf16 autocast", MIXED, "bf16 throughout"
    fp32, autocast, mixed, bf16 = map(_states, names)
    return Finding(
        message("lecture.M13.found", fp32=fp32.total, autocast=autocast.total, mixed=mixed.total, bf16=bf16.total),
        fp32.total == autocast.total == 16,
        (_explain_states(mixed),),
        shown=(_sum_of_parts(autocast), _sum_of_parts(mixed)),
    )


def check_fp8_matmuls() -> Finding:
    policy = POLICIES["fp8 matmuls, fp32 master, bf16 states"]
    return Finding(
        message(
            "lecture.M18.found",
            matmuls=policy.multiplies.name,
            weights=policy.weights.name,
            master=policy.master.name if policy.master else "",
            states=policy.states.name,
        ),
        policy.multiplies.bytes == 1 and policy.weights.bytes == 2,
        how=message("lecture.M18.how"),
        shown=(_sum_of_parts(_states(policy.id)),),
    )
