"""Checks of claims on optimizers, gradients, initialization, and seeds, computed in plain numbers."""

from __future__ import annotations

import numpy as np

from core.experiments.initialization import output_scale
from core.lecture.claims import Finding, titled
from core.lecture.optimizer_rules import (
    decayed,
    plain_step,
    running_mean,
    running_square,
    scaled_step,
    squares_summed,
    unbiased_mean,
    unbiased_square,
)
from core.messages import message

_RATE, _BETA_1, _BETA_2 = 0.1, 0.9, 0.999


def check_adam() -> Finding:
    mean = running_mean.explain(beta=_BETA_1, mean=0.0, slope=4.0)
    square = running_square.explain(beta=_BETA_2, square=0.0, slope=4.0)
    first = unbiased_mean.explain(mean=mean.value, beta=_BETA_1, step=1)
    second = unbiased_square.explain(square=square.value, beta=_BETA_2, step=1)
    step = scaled_step.explain(weight=1.0, rate=_RATE, direction=first.value, square=second.value, epsilon=1e-8)
    found = message("lecture.M6.found", weight=step.value)
    return Finding(found, abs(step.value - 0.9) < 1e-8, (mean, square, first, second, step))


def check_steep_and_flat() -> Finding:
    slopes = (100.0, 1.0)
    plain = [1 - float(plain_step(weight=1.0, rate=0.001, direction=slope)) for slope in slopes]
    adaptive = [
        1 - float(scaled_step(weight=1.0, rate=0.1, direction=slope, square=slope**2, epsilon=1e-8)) for slope in slopes
    ]
    without, momentum = _steps_off_a_saddle(0.0), _steps_off_a_saddle(0.9)
    return Finding(
        message(
            "lecture.M7.found",
            sgd_steep=plain[0],
            sgd_flat=plain[1],
            steep=adaptive[0],
            flat=adaptive[1],
            plain=float(without),
            momentum=float(momentum),
        ),
        plain[0] > 99 * plain[1] and abs(adaptive[0] - adaptive[1]) < 1e-6 and without > 2 * momentum,
        (
            plain_step.explain(weight=1.0, rate=0.001, direction=100.0),
            scaled_step.explain(weight=1.0, rate=0.1, direction=100.0, square=1e4, epsilon=1e-8),
        ),
        message("lecture.M7.how"),
        shown=tuple(f"tensor([{steep:.4f}, {flat:.4f}])" for steep, flat in (plain, adaptive)),
    )


def _steps_off_a_saddle(momentum: float) -> int:
    """Return the steps of SGD along the falling direction of (x² − y²) / 2, from 10⁻⁶ to 1."""
    place, direction, steps = 1e-6, 0.0, 0
    while place < 1:
        direction = momentum * direction - place
        place, steps = float(plain_step(weight=place, rate=0.01, direction=direction)), steps + 1
    return steps


def check_moments() -> Finding:
    mean, square = 0.0, 0.0
    for step in range(100):
        slope = 1.0 if step % 2 == 0 else -1.0
        mean = float(running_mean(beta=_BETA_1, mean=mean, slope=slope))
        square = float(running_square(beta=_BETA_2, square=square, slope=slope))
    return Finding(
        message("lecture.M16.found", mean=abs(mean), square=square),
        abs(mean) < 0.06 < square,
        (
            running_mean.explain(beta=_BETA_1, mean=0.1, slope=-1.0),
            running_square.explain(beta=_BETA_2, square=0.001, slope=-1.0),
        ),
        message("lecture.M16.how"),
        shown=(f"tensor([ {1 - _BETA_1:.4f}, {_BETA_1 - 1:.4f}])", "None"),
    )


def check_adagrad() -> Finding:
    total, mean = 0.0, 0.0
    for _ in range(3):
        total = float(squares_summed(total=total, slope=2.0))
        mean = float(running_square(beta=0.99, square=mean, slope=2.0))
    return Finding(
        message("lecture.M14.found", total=total, mean=mean),
        total == 12 and mean < 4,
        (
            titled("AdaGrad, the third step", squares_summed.explain(total=8.0, slope=2.0)),
            titled("RMSProp, the first step", running_square.explain(beta=0.99, square=0.0, slope=2.0)),
        ),
    )


def check_weight_decay() -> Finding:
    shrunk = decayed.explain(weight=1.0, rate=0.1, decay=0.01)
    found = message("lecture.M15.found", weight=shrunk.value)
    return Finding(found, shrunk.value == 0.999, (shrunk,), message("lecture.M15.how"))


def check_initialization() -> Finding:
    spread: dict[int, float] = {}
    for width in (64, 1024, 16384):
        rng = np.random.default_rng(0)
        outputs = rng.standard_normal((64, width)) @ rng.standard_normal((width, 64))
        spread[width] = float(np.sqrt(np.mean(outputs**2)))
    small, middle, large = spread.values()
    ratios = [size / width**0.5 for width, size in spread.items()]
    return Finding(
        message("lecture.M10.found", small=small, middle=middle, large=large),
        all(0.7 < ratio < 1.3 for ratio in ratios),
        how=message("lecture.M10.how", ratios=[f"{ratio:.2f}" for ratio in ratios]),
        shown=(f"{output_scale(1.0, 1024):g}",),
    )


def check_seeds() -> Finding:
    first, again, other = (f"{np.random.default_rng(seed).random():.4f}" for seed in (0, 0, 1))
    return Finding(
        message("lecture.M11.found", first=first, again=again, other=other),
        first == again != other,
        how=message("lecture.M11.how"),
        shown=("torch repeats",),
    )


def check_gradient() -> Finding:
    x, w, nudge = np.array([1.0, 2.0, 3.0]), np.ones(3), 1e-6
    predicted = float(x @ w)
    gradient = (predicted - 5) * x
    numeric = [
        (0.5 * (float(x @ (w + nudge * unit)) - 5) ** 2 - 0.5 * (predicted - 5) ** 2) / nudge for unit in np.eye(3)
    ]
    whole = [int(one) for one in gradient]
    return Finding(
        message("lecture.M12.found", predicted=predicted, gradient=str(tuple(whole))),
        gradient.tolist() == [1, 2, 3] and np.allclose(numeric, gradient, atol=1e-4),
        how=message("lecture.M12.how"),
        shown=(f"tensor([{', '.join(f'{one}.' for one in whole)}])", "None"),
    )
