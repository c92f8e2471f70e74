"""Exercises on memory: bytes of tensors, model states, checkpoints, and logits, and the largest model that fits."""

from __future__ import annotations

import math
import random

from core.exercises.exercise import Maker, NumberExercise
from core.fields import Link
from core.hardware.accelerators import find
from core.limits import limit
from core.messages import Message, message
from core.tensors.cost import tensor_bytes
from core.training.activations.tensors import logits_bytes
from core.training.device.inputs import largest_model
from core.training.memory import StateBytes, bytes_per_parameter, checkpoint_bytes, state_bytes, states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, find_policy
from core.units import format_count

_SIZES = (1e9, 3e9, 7e9, 8e9, 13e9, 34e9, 70e9, 405e9)
_TYPES = {"fp32": (4, "x.clone()"), "bf16": (2, "x.to(torch.bfloat16)"), "fp8": (1, "x.to(torch.float8_e4m3fn)")}
"""Dtypes → bytes per element, and the expression that makes such a tensor from one of fp32."""
_OPTIMIZERS = ("AdamW", "SGD momentum", "SGD")
_PRECISE = tuple(name for name in ("fp32", "mixed bf16, fp32 master", "bf16 throughout") if name in POLICIES)


def tensor(rng: random.Random) -> NumberExercise:
    """Ask for the bytes of a tensor."""
    shape = tuple(2 ** rng.randint(1, 12) for _ in range(rng.randint(2, 4)))
    name = rng.choice(list(_TYPES))
    count, (each, makes) = float(math.prod(shape)), _TYPES[name]
    shown = {"shape": ", ".join(map(str, shape)), "x": makes}
    size = tensor_bytes.explain(elements=count, element_bytes=float(each))
    return NumberExercise(
        message("exercises.memory.tensor.ask", shape=str(shape), dtype=name),
        size.value,
        "bytes_binary",
        message("exercises.memory.tensor.why"),
        (
            (8 * size.value, message("exercises.memory.tensor.bits")),
            (float(sum(shape) * each), message("exercises.memory.tensor.sum")),
            (count, message("exercises.memory.tensor.elements")),
        ),
        (size,),
        shown=Link("tensors", shown if count <= limit("counted_elements") else {}),
    )


def _draw_states(rng: random.Random) -> tuple[str, str, StateBytes]:
    optimizer, policy = rng.choice(_OPTIMIZERS), rng.choice(_PRECISE)
    return optimizer, policy, states_per_parameter(find_optimizer(optimizer), find_policy(policy))


def _sum(states: StateBytes) -> Message:
    return message(
        "exercises.memory.states.sum",
        weights=states.parameters,
        gradients=states.gradients,
        master=states.master,
        optimizer=states.optimizer,
    )


def per_parameter(rng: random.Random) -> NumberExercise:
    """Ask for the bytes of the model states per parameter."""
    optimizer, policy, states = _draw_states(rng)
    each = bytes_per_parameter.explain(
        parameters=states.parameters, gradients=states.gradients, master=states.master, optimizer=states.optimizer
    )
    return NumberExercise(
        message("exercises.memory.per_parameter.ask", optimizer=optimizer, policy=policy),
        each.value,
        "bytes_per_parameter",
        _sum(states),
        (
            (states.parameters, message("exercises.memory.weights_only")),
            (each.value - states.optimizer - states.master, message("exercises.memory.states.no_optimizer")),
            (each.value - states.gradients, message("exercises.memory.states.no_gradients")),
            (each.value - states.master, message("exercises.memory.states.no_master")),
        ),
        (each,),
        shown=Link("memory", {"n": "8B", "opt": optimizer, "prec": policy}),
    )


def whole(rng: random.Random) -> NumberExercise:
    """Ask for the bytes of the model states of a model."""
    optimizer, policy, states = _draw_states(rng)
    params = rng.choice(_SIZES)
    size = state_bytes.explain(parameters=params, stored=states.total)
    return NumberExercise(
        message("exercises.memory.whole.ask", parameters=params, optimizer=optimizer, policy=policy),
        size.value,
        "bytes",
        _sum(states),
        (
            (params * states.parameters, message("exercises.memory.weights_only")),
            (params * (states.total - states.gradients), message("exercises.memory.states.no_gradients")),
            (params * (states.total - states.master), message("exercises.memory.states.no_master")),
        ),
        (size,),
        shown=Link("memory", {"n": format_count(params), "opt": optimizer, "prec": policy}),
    )


def fits(rng: random.Random) -> NumberExercise:
    """Ask for the largest model whose states fill some accelerators."""
    chip, count = rng.choice(("A100 SXM 80 GB", "H100 SXM", "H200 SXM", "B200")), rng.choice((1, 4, 8, 16, 64))
    optimizer, policy, states = _draw_states(rng)
    memory = find(chip).memory_bytes
    each = bytes_per_parameter.explain(
        parameters=states.parameters, gradients=states.gradients, master=states.master, optimizer=states.optimizer
    )
    found = largest_model.explain(memory=memory, ways=float(count), each=states.total)
    slips = [(memory * count / states.parameters, message("exercises.memory.weights_only"))]
    if count > 1:
        slips.append((memory / states.total, message("exercises.memory.fits.one")))
    return NumberExercise(
        message(
            "exercises.memory.fits.ask",
            accelerators=float(count),
            device=chip,
            memory=float(memory),
            optimizer=optimizer,
            policy=policy,
        ),
        found.value,
        "parameters",
        message("exercises.memory.fits.why", each=states.total),
        tuple(slips),
        (each, found),
        shown=Link("memory", {"opt": optimizer, "prec": policy, "gpu": chip, "count": str(count)}),
    )


def checkpoint(rng: random.Random) -> NumberExercise:
    """Ask for the bytes of a checkpoint."""
    params, policy = rng.choice(_SIZES), rng.choice(_PRECISE)
    states = states_per_parameter(find_optimizer("AdamW"), find_policy(policy))
    weights = states.master or states.parameters
    size = checkpoint_bytes.explain(parameters=params, weights=weights, optimizer=states.optimizer)
    return NumberExercise(
        message("exercises.memory.checkpoint.ask", parameters=params, policy=policy),
        size.value,
        "bytes",
        message("exercises.memory.checkpoint.why"),
        (
            (params * states.total, message("exercises.memory.checkpoint.gradients")),
            (params * weights, message("exercises.memory.checkpoint.inference")),
            (params * 2, message("exercises.memory.weights_only")),
        ),
        (size,),
        shown=Link("memory", {"n": format_count(params), "prec": policy, "opt": "AdamW"}),
    )


def logits(rng: random.Random) -> NumberExercise:
    """Ask for the bytes of the logits."""
    tokens, vocab = rng.choice((2048, 4096, 8192, 16384)), rng.choice((32000, 50257, 128256, 151936))
    size = logits_bytes.explain(tokens=float(tokens), vocab=float(vocab), each=4.0, tensor=1.0, chunks=1.0)
    return NumberExercise(
        message("exercises.memory.logits.ask", tokens=float(tokens), vocab=float(vocab)),
        size.value,
        "bytes_binary",
        message("exercises.memory.logits.why"),
        (
            (size.value / 2, message("exercises.memory.logits.bf16")),
            (size.value * 2, message("exercises.memory.logits.gradient")),
            (size.value / 4, message("exercises.memory.tensor.elements")),
            (vocab * 4.0, message("exercises.memory.logits.one")),
        ),
        (size,),
        shown=Link("memory", {"acts": "true"}, "acts"),
    )


MAKERS: tuple[Maker, ...] = (tensor, per_parameter, whole, fits, checkpoint, logits)
"""All kinds of exercises on memory."""
