"""Exercises on memory: bytes of tensors, of model states, of logits, and the largest model that fits."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from core.exercises.exercise import Exercise, Maker, choose_amount
from core.fields import Link
from core.hardware.accelerators import find
from core.limits import limit
from core.tensors.cost import tensor_bytes
from core.training.activations.tensors import logits_bytes
from core.training.device.inputs import largest_model
from core.training.memory import StateBytes, bytes_per_parameter, checkpoint_bytes, state_bytes, states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, find_policy
from core.units import format_bytes, format_count

_SIZES = (1e9, 3e9, 7e9, 8e9, 13e9, 34e9, 70e9, 405e9)
_TYPES = {"fp32": (4, "x.clone()"), "bf16": (2, "x.to(torch.bfloat16)"), "fp8": (1, "x.to(torch.float8_e4m3fn)")}
"""Types → bytes of an element, and what makes a tensor of it from one of fp32."""
_OPTIMIZERS = ("AdamW", "SGD momentum", "SGD")
_PRECISE = tuple(name for name in ("fp32", "mixed bf16, fp32 master", "bf16 throughout") if name in POLICIES)


def tensor(rng: random.Random) -> Exercise:
    """Bytes of a tensor."""
    shape = tuple(2 ** rng.randint(1, 12) for _ in range(rng.randint(2, 4)))
    name = rng.choice(list(_TYPES))
    count, (each, makes) = float(math.prod(shape)), _TYPES[name]
    shown = {"shape": ", ".join(map(str, shape)), "x": makes}
    right = tensor_bytes.explain(elements=count, element_bytes=float(each))
    return choose_amount(
        rng,
        f"How many bytes are the elements of a tensor of shape **{shape}** in **{name}**?",
        "bytes_binary",
        (right, "The product of the sizes, times the bytes of an element."),
        [
            (8 * right.value, "Those are bits."),
            (2 * right.value, "That is a type twice as wide."),
            (right.value / 2, "That is a type half as wide."),
            (sum(shape) * each, "Sizes are multiplied, not added."),
        ],
        digits=4,
        shown=Link("tensors", shown if count <= limit("counted_elements") else {}),
    )


def _states(rng: random.Random) -> tuple[str, str, StateBytes]:
    optimizer, policy = rng.choice(_OPTIMIZERS), rng.choice(_PRECISE)
    return optimizer, policy, states_per_parameter(find_optimizer(optimizer), find_policy(policy))


def per_parameter(rng: random.Random) -> Exercise:
    """Bytes of the model states for each parameter."""
    optimizer, policy, states = _states(rng)
    right = bytes_per_parameter.explain(
        parameters=states.parameters, gradients=states.gradients, master=states.master, optimizer=states.optimizer
    )
    return choose_amount(
        rng,
        f"How many bytes does training hold for each parameter under **{optimizer}**, **{policy}**, activations aside?",
        "bytes_per_parameter",
        (right, _sum(states)),
        [
            (right.value - states.optimizer - states.master, "That leaves out master weights and optimizer state."),
            (states.parameters, "Those are the weights alone."),
            (right.value - states.gradients, "That leaves out the gradients."),
            (right.value + 4, "That is a copy in fp32 too many."),
            (right.value + 8, "Those are two numbers a parameter too many."),
            (right.value + 2, "Two bytes too many."),
        ],
        shown=Link("memory", {"n": "8B", "opt": optimizer, "prec": policy}),
    )


def _sum(states: StateBytes) -> str:
    return (
        f"{states.parameters:g} for weights, {states.gradients:g} for gradients, {states.master:g} for master weights, "
        f"{states.optimizer:g} for optimizer state."
    )


def whole(rng: random.Random) -> Exercise:
    """Bytes of the model states of a model."""
    optimizer, policy, states = _states(rng)
    params = rng.choice(_SIZES)
    right = state_bytes.explain(parameters=params, stored=states.total)
    return choose_amount(
        rng,
        f"How much memory do the states of **{format_count(params)}** parameters take, one copy without activations, "
        f"under **{optimizer}**, **{policy}**?",
        "bytes",
        (right, f"{_sum(states)} Times the parameters."),
        [
            (params * states.parameters, "Those are the weights alone."),
            (params * (states.total + 4), "That is a copy in fp32 too many."),
            (params * (states.total - states.gradients), "That leaves out the gradients."),
            (params * states.total / 2, "Half as much."),
            (params * states.total * 2, "Twice as much."),
            (params * (states.total + 8), "Those are two numbers a parameter too many."),
        ],
        shown=Link("memory", {"n": format_count(params), "opt": optimizer, "prec": policy}),
    )


def fits(rng: random.Random) -> Exercise:
    """The largest model whose states fill some accelerators."""
    chip, count = rng.choice(("A100 SXM 80 GB", "H100 SXM", "H200 SXM", "B200")), rng.choice((1, 4, 8, 16, 64))
    optimizer, policy, states = _states(rng)
    memory = find(chip).memory_bytes
    size = format_bytes(memory, system="binary", digits=3)
    each = bytes_per_parameter.explain(
        parameters=states.parameters, gradients=states.gradients, master=states.master, optimizer=states.optimizer
    )
    right = largest_model.explain(memory=memory, ways=float(count), each=states.total)
    made = choose_amount(
        rng,
        f"How many parameters fill **{count} × {chip}** ({size} each) with their states alone, shared "
        f"evenly, under **{optimizer}**, **{policy}**?",
        "parameters",
        (right, f"All their bytes over {states.total:g} for each parameter: an upper bound, with no activations."),
        [
            (memory * count / states.parameters, "That counts the weights alone, as for inference."),
            (right.value / 2, "Half as many."),
            (right.value * 2, "Twice as many."),
            (memory / states.total, "That is one of them."),
        ],
        shown=Link("memory", {"opt": optimizer, "prec": policy, "gpu": chip, "count": str(count)}),
    )
    return replace(made, explanations=(each, *made.explanations))


def checkpoint(rng: random.Random) -> Exercise:
    """Bytes of a checkpoint."""
    params = rng.choice(_SIZES)
    policy = rng.choice(_PRECISE)
    states = states_per_parameter(find_optimizer("AdamW"), find_policy(policy))
    weights = states.master or states.parameters
    right = checkpoint_bytes.explain(parameters=params, weights=weights, optimizer=states.optimizer)
    return choose_amount(
        rng,
        f"How large is a checkpoint to resume **{format_count(params)}** parameters from, under AdamW, **{policy}**?",
        "bytes",
        (right, "The precise weights and the optimizer’s two running means; gradients are made anew."),
        [
            (params * states.total, "That saves gradients too, which the next step makes anew."),
            (params * weights, "That is for inference: without the optimizer’s state, training starts cold."),
            (params * 2, "Those are bf16 weights alone."),
            (right.value * 2, "Twice as much."),
            (right.value / 2, "Half as much."),
        ],
        shown=Link("memory", {"n": format_count(params), "prec": policy, "opt": "AdamW"}),
    )


def logits(rng: random.Random) -> Exercise:
    """Bytes of the logits."""
    tokens, vocab = rng.choice((2048, 4096, 8192, 16384)), rng.choice((32000, 50257, 128256, 151936))
    right = logits_bytes.explain(tokens=float(tokens), vocab=float(vocab), each=4.0, tensor=1.0, chunks=1.0)
    return choose_amount(
        rng,
        f"How large are the logits of **{tokens:,}** tokens over a vocabulary of **{vocab:,}**, in fp32?",
        "bytes_binary",
        (right, "A number of four bytes for each token and each entry of the vocabulary."),
        [
            (right.value / 2, "That is in bf16."),
            (right.value * 2, "That is in fp64, or with their gradient."),
            (right.value / 4, "That is how many there are, not their bytes."),
            (vocab * 4.0, "That is one token’s."),
        ],
        shown=Link("memory", {"acts": "true"}, "acts"),
    )


MAKERS: tuple[Maker, ...] = (tensor, per_parameter, whole, fits, checkpoint, logits)
"""Every kind of exercise on memory."""
