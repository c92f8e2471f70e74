"""Optimizers in motion: torch.optim itself walks down a surface of two weights, and each step is explained.

The surface's gradient is ours, the steps are torch's; `updates` says by which formulas torch took each of them.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation
from core.limits import limit
from core.training.optimizer_paths.rules import (
    decayed,
    heavy_ball,
    plain_step,
    running_mean,
    running_square,
    scaled_step,
    squares_summed,
    unbiased_mean,
    unbiased_square,
)
from core.training.optimizer_paths.surfaces import SURFACES
from core.training.torch_optimizers import MOMENTUM, torch_optimizer
from core.units import QuantityError, parse_quantity

Numbers: TypeAlias = npt.NDArray[np.float64]

MOVING: tuple[str, ...] = ("AdamW", "Adam", "RMSProp", "AdaGrad", "SGD momentum", "SGD")
"""The optimizers that are walked, by the names of `core.training.optimizers`."""

ALPHA, BETA_1, BETA_2, DECAY = 0.99, 0.9, 0.999, 0.1
"""torch's defaults, but for AdamW's decay: 0.1, as language models are trained."""

_EPSILON = {"AdaGrad": 1e-10}
_USUAL_EPSILON = 1e-8

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "SGD": {},
    "SGD momentum": {"momentum": MOMENTUM},
    "AdaGrad": {"eps": _EPSILON["AdaGrad"]},
    "RMSProp": {"alpha": ALPHA, "eps": _USUAL_EPSILON},
    "Adam": {"betas": (BETA_1, BETA_2), "eps": _USUAL_EPSILON},
    "AdamW": {"betas": (BETA_1, BETA_2), "eps": _USUAL_EPSILON, "weight_decay": DECAY},
}
"""Optimizer → what torch is given beside the learning rate."""

_AWAY = 1e12
"""A weight beyond this has diverged: another step or two and it is no number any more."""


@dataclass(frozen=True, slots=True)
class OptimizerPath:
    """What one optimizer did, step by step; row t holds what was after step t, row 0 the start.

    points: both weights. slopes: the gradient that the next step sees there. losses: the height. states: torch's own
    tensors by torch's name.
    diverged: the step that led to no number or out of all bounds, and is not among the rows; 0 where none did.
    """

    optimizer: str
    surface: str
    rate: float
    points: Numbers
    slopes: Numbers
    losses: Numbers
    states: Mapping[str, Numbers]
    diverged: int

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.points) - 1

    @property
    def lengths(self) -> Numbers:
        """How far each step went, from the first on."""
        return np.hypot(*np.diff(self.points, axis=0).T)


@dataclass(frozen=True, slots=True)
class Update:
    """One formula of a step, what it makes (torch's name of a state, or one of the steps between) and from what."""

    makes: str
    rule: Any
    values: Mapping[str, Any]

    @property
    def result(self) -> Any:
        """What the formula gives, of the kind that its values are."""
        return self.rule.function(**self.values)


def read_start(text: str, most: float = 3.0) -> tuple[float, float]:
    """A typed start such as ``-1.5, 1``; raises `QuantityError` with the rule and an example."""
    parts = text.split(",")
    if len(parts) != 2:
        raise QuantityError(f"“{text.strip()[:40]}” is not two numbers with a comma between. For example: -1.5, 1.")
    x, y = (parse_quantity(part, "number", low=-most, high=most, example="-1.5") for part in parts)
    return x, y


def rate_of(optimizer: str, surface: str, typed: float | None) -> float:
    """The learning rate in force: the typed one, or the one that suits the optimizer there."""
    return typed if typed is not None else SURFACES[surface].rates[optimizer]


@lru_cache(maxsize=128)
def optimizer_path(optimizer: str, surface: str, start: tuple[float, float], rate: float) -> OptimizerPath:
    """``optimizer`` of torch.optim from ``start``, as many steps as `core.limits` allows. About 10 ms."""
    torch: Any = importlib.import_module("torch")
    ground = SURFACES[surface]
    weights = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    stepper = torch_optimizer(optimizer, [weights], lr=rate, foreach=False, **_OPTIONS[optimizer])
    points, slopes = [start], [ground.gradient(*start, 1)]
    states: dict[str, list[list[float]]] = {}
    diverged = 0
    for step in range(1, limit("motion_steps") + 1):
        weights.grad = torch.tensor(slopes[-1], dtype=torch.float64)
        stepper.step()
        x, y = weights.tolist()
        if not (abs(x) < _AWAY and abs(y) < _AWAY):
            diverged = step
            break
        points.append((x, y))
        slopes.append(ground.gradient(x, y, step + 1))
        for name, value in stepper.state[weights].items():
            if name != "step":
                states.setdefault(name, [[0.0, 0.0]]).append(value.tolist())
    where = np.array(points)
    return OptimizerPath(
        optimizer=optimizer,
        surface=surface,
        rate=rate,
        points=where,
        slopes=np.array(slopes),
        losses=ground.height.over(x=where[:, 0], y=where[:, 1]),
        states=MappingProxyType({name: np.array(values) for name, values in states.items()}),
        diverged=diverged,
    )


def updates(optimizer: str, rate: float, weight: Any, slope: Any, state: Mapping[str, Any], step: Any) -> list[Update]:
    """The formulas of step number ``step`` in their order, on numbers or on arrays of many steps at once.

    weight, slope, state: weight, gradient and the optimizer's state (by torch's names) before the step.
    """
    result: dict[str, Any] = {}
    computed: list[Update] = []

    def put(makes: str, rule: Any, **values: Any) -> Any:
        computed.append(Update(makes, rule, values))
        result[makes] = computed[-1].result
        return result[makes]

    def scaled(start: Any, direction: Any, square: Any) -> None:
        epsilon = _EPSILON.get(optimizer, _USUAL_EPSILON)
        put("weight", scaled_step, weight=start, rate=rate, direction=direction, square=square, epsilon=epsilon)

    if optimizer == "SGD":
        put("weight", plain_step, weight=weight, rate=rate, direction=slope)
    elif optimizer == "SGD momentum":
        buffer = put("momentum_buffer", heavy_ball, momentum=MOMENTUM, buffer=state["momentum_buffer"], slope=slope)
        put("weight", plain_step, weight=weight, rate=rate, direction=buffer)
    elif optimizer == "AdaGrad":
        scaled(weight, slope, put("sum", squares_summed, total=state["sum"], slope=slope))
    elif optimizer == "RMSProp":
        square = put("square_avg", running_square, beta=ALPHA, square=state["square_avg"], slope=slope)
        scaled(weight, slope, square)
    else:
        if optimizer == "AdamW":
            weight = put("decayed", decayed, weight=weight, rate=rate, decay=DECAY)
        mean = put("exp_avg", running_mean, beta=BETA_1, mean=state["exp_avg"], slope=slope)
        square = put("exp_avg_sq", running_square, beta=BETA_2, square=state["exp_avg_sq"], slope=slope)
        mean = put("unbiased mean", unbiased_mean, mean=mean, beta=BETA_1, step=step)
        square = put("unbiased square", unbiased_square, square=square, beta=BETA_2, step=step)
        scaled(weight, mean, square)
    return computed


def by_formulas(optimizer: str, surface: str, steps: int) -> tuple[tuple[list[Update], list[Update]], float]:
    """The same walk without torch: the updates of its last step for both weights, and the height it ends at."""
    ground = SURFACES[surface]
    point, rate = list(ground.start), rate_of(optimizer, surface, None)
    states: list[dict[str, float]] = [defaultdict(float), defaultdict(float)]
    last: list[list[Update]] = [[], []]
    for step in range(1, steps + 1):
        slopes = ground.gradient(point[0], point[1], step)
        for side in (0, 1):
            last[side] = updates(optimizer, rate, point[side], slopes[side], states[side], step)
            for update in last[side]:
                states[side][update.makes] = float(update.result)
            point[side] = states[side]["weight"]
    return (last[0], last[1]), float(ground.height(x=point[0], y=point[1]))


def explained(done: OptimizerPath, step: int) -> list[Explanation]:
    """The formulas of step ``step`` with torch's numbers in them, each for both weights."""
    before = step - 1
    sides = [
        updates(
            done.optimizer,
            done.rate,
            float(done.points[before, side]),
            float(done.slopes[before, side]),
            {name: float(values[before, side]) for name, values in done.states.items()},
            step,
        )
        for side in (0, 1)
    ]
    return [
        update.rule.explain(**update.values).about(name)
        for pair in zip(*sides, strict=True)
        for name, update in zip("xy", pair, strict=True)
    ]


def disagreement(done: OptimizerPath) -> float:
    """By how much torch's weights and states differ from our formulas, the largest share over all steps.

    Each step is worked out from torch's own state before it, so that differences do not pile up.
    """
    if not done.steps:
        return 0.0
    states = {name: values[:-1] for name, values in done.states.items()}
    steps = np.arange(1, done.steps + 1)[:, None]
    after = {**done.states, "weight": done.points}
    worst = 0.0
    for update in updates(done.optimizer, done.rate, done.points[:-1], done.slopes[:-1], states, steps):
        if update.makes in after:
            torchs = after[update.makes][1:]
            size = np.maximum(np.abs(torchs), np.finfo(np.float64).tiny)
            scale = np.maximum(size, np.abs(done.points[:-1])) if update.makes == "weight" else size
            worst = max(worst, float(np.max(np.abs(update.result - torchs) / scale)))
    return worst
