"""Claims about optimizers, gradients, initialisation, seeds and data, worked out in plain numbers."""

from __future__ import annotations

import numpy as np

from core.experiments.initialisation import output_scale
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
from core.training.memory import token_bytes

_RATE, _BETA_1, _BETA_2 = 0.1, 0.9, 0.999


def adams_equations() -> Finding:
    slope, weight = 4.0, 1.0
    mean = running_mean.explain(beta=_BETA_1, mean=0.0, slope=slope)
    square = running_square.explain(beta=_BETA_2, square=0.0, slope=slope)
    first = unbiased_mean.explain(mean=mean.value, beta=_BETA_1, step=1)
    second = unbiased_square.explain(square=square.value, beta=_BETA_2, step=1)
    step = scaled_step.explain(weight=weight, rate=_RATE, direction=first.value, square=second.value, epsilon=1e-8)
    return Finding(
        f"the first step from 1, gradient 4, rate 0.1, leads to {step.value:.6g}: by the rate, whatever the gradient",
        abs(step.value - 0.9) < 1e-8,
        (mean, square, first, second, step),
    )


def steep_and_flat() -> Finding:
    slopes = (100.0, 1.0)
    plain = [1 - float(plain_step(weight=1.0, rate=0.001, direction=slope)) for slope in slopes]
    adaptive = [
        1 - float(scaled_step(weight=1.0, rate=0.1, direction=slope, square=slope**2, epsilon=1e-8)) for slope in slopes
    ]
    without, momentum = _steps_off_a_saddle(0.0), _steps_off_a_saddle(0.9)
    return Finding(
        f"slopes of 100 and 1: SGD moves {plain[0]:.3g} and {plain[1]:.3g}, RMSProp and Adam {adaptive[0]:.3g} and "
        f"{adaptive[1]:.3g}; SGD leaves a saddle in {without:,} steps, with momentum in {momentum:,}",
        plain[0] > 99 * plain[1] and abs(adaptive[0] - adaptive[1]) < 1e-6 and without > 2 * momentum,
        (
            plain_step.explain(weight=1.0, rate=0.001, direction=100.0),
            scaled_step.explain(weight=1.0, rate=0.1, direction=100.0, square=1e4, epsilon=1e-8),
        ),
        "The rate is 0.001 for SGD and 0.1 for the others. The saddle is that of x² − y², halved, from y = 10⁻⁶ to 1 "
        "at a rate of 0.01, with a momentum of 0.9.",
        shown=tuple(f"tensor([{steep:.3g}, {flat:.3g}])" for steep, flat in (plain, adaptive)),
    )


def _steps_off_a_saddle(momentum: float) -> int:
    """Steps of SGD along the falling direction of (x² − y²) ∕ 2, from 10⁻⁶ to 1."""
    place, direction, steps = 1e-6, 0.0, 0
    while place < 1:
        direction = momentum * direction - place
        place, steps = float(plain_step(weight=place, rate=0.01, direction=direction)), steps + 1
    return steps


def moments() -> Finding:
    mean, square = 0.0, 0.0
    for step in range(100):
        slope = 1.0 if step % 2 == 0 else -1.0
        mean = float(running_mean(beta=_BETA_1, mean=mean, slope=slope))
        square = float(running_square(beta=_BETA_2, square=square, slope=slope))
    return Finding(
        f"after 100 gradients of +1 and −1 in turn the first moment is {abs(mean):.3f} off 0, the second {square:.3f}",
        abs(mean) < 0.06 < square,
        (
            running_mean.explain(beta=_BETA_1, mean=0.1, slope=-1.0),
            running_square.explain(beta=_BETA_2, square=0.001, slope=-1.0),
        ),
        shown=(f"tensor([{1 - _BETA_1:.1g}, {_BETA_1 - 1:.1g}])", "None"),
        how="Signs cancel in the first, which averages gradients, and not in the second, which averages their squares.",
    )


def sums_of_squares() -> Finding:
    total, mean = 0.0, 0.0
    for _ in range(3):
        total = float(squares_summed(total=total, slope=2.0))
        mean = float(running_square(beta=0.99, square=mean, slope=2.0))
    return Finding(
        f"after three gradients of 2 AdaGrad holds {total:g}, RMSProp {mean:.3g}",
        total == 12 and mean < 4,
        (
            titled("AdaGrad, the third step", squares_summed.explain(total=8.0, slope=2.0)),
            titled("RMSProp, the first step", running_square.explain(beta=0.99, square=0.0, slope=2.0)),
        ),
    )


def decay() -> Finding:
    shrunk = decayed.explain(weight=1.0, rate=0.1, decay=0.01)
    return Finding(
        f"with a gradient of 0 Adam leaves a weight of 1 as it is; AdamW makes it {shrunk.value:g}",
        shrunk.value == 0.999,
        (shrunk,),
        how="At torch’s usual decay of 0.01 and a rate of 0.1. The five equations have no term of it.",
    )


def grown_outputs() -> Finding:
    spread: dict[int, float] = {}
    for width in (64, 1024, 16384):
        rng = np.random.default_rng(0)
        outputs = rng.standard_normal((64, width)) @ rng.standard_normal((width, 64))
        spread[width] = float(np.sqrt(np.mean(outputs**2)))
    text = ", ".join(f"{width:,} wide {size:.3g}" for width, size in spread.items())
    ratios = [size / width**0.5 for width, size in spread.items()]
    return Finding(
        f"size of x @ w with entries of unit normal: {text}",
        all(0.7 < ratio < 1.3 for ratio in ratios),
        shown=(f"{output_scale(1.0, 1024):g}",),
        how="Drawn by numpy with the seed 0. The sum of n products of unit variance has variance n, so its size is √n; "
        f"divided by √n it is {', '.join(f'{ratio:.2f}' for ratio in ratios)}.",
    )


def three_generators() -> Finding:
    first, again, other = (np.random.default_rng(seed).random() for seed in (0, 0, 1))
    return Finding(
        f"numpy with seed 0 draws {first:.4f}, again {again:.4f}, with seed 1 {other:.4f}",
        first == again != other,
        shown=("torch repeats",),
        how="torch, numpy and Python’s random each have a generator of their own, which no other’s seed moves. "
        "Several uses of one library want a generator each, so that one more draw here moves nothing there.",
    )


def gradient_by_hand() -> Finding:
    x, w = np.array([1.0, 2.0, 3.0]), np.ones(3)
    predicted = float(x @ w)
    gradient = (predicted - 5) * x
    nudge = 1e-6
    numeric = [
        (0.5 * (float(x @ (w + nudge * unit)) - 5) ** 2 - 0.5 * (predicted - 5) ** 2) / nudge for unit in np.eye(3)
    ]
    return Finding(
        f"x·w = {predicted:g}, so the gradient is ({predicted:g} − 5) · x = {tuple(gradient.tolist())}",
        gradient.tolist() == [1, 2, 3] and np.allclose(numeric, gradient, atol=1e-4),
        shown=(f"tensor({[int(one) for one in gradient]})", "None"),
        how="By hand, and by nudging each weight by a millionth. x has no .grad because nobody asked for one, and the "
        "prediction has none because it is no leaf.",
    )


def ids_in_four_bytes() -> Finding:
    two, four = (token_bytes.explain(tokens=1.4e12, each=each) for each in (2, 4))
    return Finding(
        f"1.4T tokens in int32 are {four.text}, in uint16 {two.text}",
        four.value == 2 * two.value,
        (two, four),
        shown=(str(two.text), str(four.text)),
        how="An .npy file begins with a header of 128 B or more, which memmap reads as tokens. np.load skips it.",
    )
