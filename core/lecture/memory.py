"""Claims about training memory, checked by the byte accounts."""

from __future__ import annotations

from core.experiments.linear_bytes import ACTIVATIONS, LAYERS, PARAMETERS, ROWS, WIDTH
from core.formula import Explanation
from core.hardware.accelerators import find
from core.lecture.claims import Finding, titled
from core.models.catalog import model_named
from core.tensors.cost import tensor_bytes
from core.training.device.inputs import explain_largest
from core.training.device.memory import memory_per_device
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

H100 = "H100 SXM"

_ADDED = ("parameters", "gradients", "master", "optimizer")
"""Parts of the model states in the order in which a table of precisions adds them up."""


def _states(policy: str = "fp32", optimizer: str = "AdamW") -> StateBytes:
    return states_per_parameter(find_optimizer(optimizer), find_policy(policy))


def _explained(policy: str, optimizer: str = "AdamW") -> tuple[Explanation, ...]:
    states = _states(policy, optimizer)
    return (bytes_per_parameter.explain(**{part: float(getattr(states, part)) for part in PARTS}),)


def largest(policy: str = "fp32") -> Finding:
    sheet = find(H100).sheet_bytes
    steps = explain_largest(_states(policy), Layout(data=8, zero=3), sheet)
    found = steps[-1].value
    size = format_bytes(sheet, system="decimal")
    return Finding(
        f"{format_count(found)} parameters on the datasheet’s {size} each",
        found == 40e9,
        steps,
        compared=(40e9, found),
        shown=(f"{size} would hold {format_count(found)}",),
    )


def no_saving() -> Finding:
    policies = ("fp32", "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients")
    sizes = [_states(policy).total for policy in policies]
    text = (
        f"fp32 {sizes[0]:g} B, bf16 with fp32 master {sizes[1]:g} B, with fp32 gradients {sizes[2]:g} B per parameter"
    )
    parts = {part: float(getattr(_states(policies[1]), part)) for part in PARTS}
    shown = (f"{sizes[1]:g} B per parameter",)
    return Finding(text, sizes == [16, 16, 18], (bytes_per_parameter.explain(**parts),), shown=shown)


def kept() -> Finding:
    names = ("SGD momentum", "AdaGrad", "RMSProp", "Adam")
    counts = [len(find_optimizer(name).states) for name in names]
    text = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    return Finding(
        f"state tensors per parameter: {text}",
        counts == [1, 1, 1, 2],
        tuple(
            titled(f"{name}, its state in fp32", optimizer_bytes_per_parameter.explain(tensors=count, each=4))
            for name, count in zip(names, counts, strict=True)
        ),
        "The number of states is read from the table of optimizers that memory is computed with.",
        shown=tuple(f"{name} {count}" for name, count in zip(names, counts, strict=True)),
    )


def checkpoint(parameters: float = 70e9) -> Finding:
    saved = checkpoint_size(find_optimizer("AdamW"), find_policy("fp32"))
    size = saved.explain(parameters)
    found = size.value
    return Finding(
        format_bytes(found, system="decimal"),
        found == 840e9,
        (size,),
        compared=(840e9, found),
        shown=(format_bytes(found, system="decimal"),),
    )


def dataset() -> Finding:
    size = token_bytes.explain(tokens=1.4e12, each=token_width(32_000))
    return Finding(
        f"1.4T tokens × 2 B (uint16) = {format_quantity(size.value, 'bytes')}",
        size.value == 2.8e12,
        (size,),
        shown=(str(format_quantity(size.value, "bytes")),),
    )


def grows() -> Finding:
    spec = model_named("Llama 3.1 8B").spec
    one, two = (memory_per_device(spec, Layout(micro_batch=size), seq_len=4096) for size in (1, 2))
    gib = [format_bytes(float(memory.activations), system="binary", digits=3) for memory in (one, two)]
    return Finding(
        f"Llama 3.1 8B at 4,096 tokens: one sequence at a time keeps {gib[0]} of activations, two {gib[1]}; states "
        f"stay at {format_bytes(float(one.states), system='binary', digits=3)}",
        float(two.activations) > 1.9 * float(one.activations) and float(two.states) == float(one.states),
        _explained("mixed bf16, fp32 master"),
        shown=(format_bytes(2.0 * spec.hidden * 8192, system="binary"),),
        how="Of a layer that is computed again only its input stays: 2 B for each of its numbers. "
        "Gradients are as large as the parameters and stay from step to step in most programs.",
    )


def adagrad_bytes() -> Finding:
    parameters, activations = PARAMETERS, ACTIVATIONS
    states = _states(optimizer="AdaGrad")
    total = states.total * parameters + 4 * activations
    claimed = 4 * (parameters + activations + parameters + parameters)
    return Finding(
        f"D = {WIDTH}, L = {LAYERS}, B = {ROWS}: {parameters} parameters at {states.total:g} B and "
        f"{activations} activations at 4 B are "
        f"{total:g} B",
        total == claimed,
        (tensor_bytes.explain(elements=activations, element_bytes=4), *_explained("fp32", "AdaGrad")),
        "Parameters, gradients and AdaGrad’s sums, 4 B each, and the activations that backward needs.",
        compared=(float(claimed), float(total)),
        shown=(f"{total:g} B",),
    )


def kept_types() -> Finding:
    names = ("fp32", "fp32, bf16 autocast", "mixed bf16, fp32 master", "bf16 throughout")
    text = ", ".join(f"{name}: {_states(name).total:g}" for name in names)
    return Finding(
        f"bytes per parameter under AdamW by precision: {text}",
        _states(names[0]).total == _states(names[1]).total == 16,
        _explained(names[2]),
        shown=tuple(" + ".join(f"{getattr(_states(name), part):g}" for part in _ADDED) for name in names[1:3]),
    )


def eight_bit_products() -> Finding:
    policy = POLICIES["fp8 matmuls, fp32 master, bf16 states"]
    return Finding(
        f"products in {policy.multiplies.name}, weights kept in {policy.weights.name}, master weights in "
        f"{policy.master.name if policy.master else 'none'}, states in {policy.states.name}",
        policy.multiplies.bytes == 1 and policy.weights.bytes == 2,
        shown=(" + ".join(f"{getattr(_states(policy.id), part):g}" for part in _ADDED),),
        how="The precision with which DeepSeek-V3 was trained, on kernels of its own, from the table that memory is "
        "counted with. Norms, softmax, router, embedding and head stay in 16 or 32 bits.",
    )
