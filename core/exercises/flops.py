"""Exercises on work and time: FLOPs of matmuls and runs, days, MFU, and arithmetic intensity."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from core.budget.equations import accelerators_needed, training_seconds
from core.exercises.exercise import Maker, NumberExercise
from core.fields import Link
from core.hardware.accelerators import find
from core.hardware.operations import intensity, product_bytes, ridge_point
from core.messages import message
from core.models.flop_formulas import train_flop_6nd
from core.planning.plan import OWN_SHAPE
from core.products import matmul_flop
from core.runs.conventions import utilisation_of_rate
from core.units import format_count

_SIZES = (1e9, 3e9, 7e9, 8e9, 13e9, 30e9, 70e9, 405e9)
_TOKENS = (0.3e12, 1e12, 2e12, 6e12, 15e12)
_CHIPS = ("A100 SXM 80 GB", "H100 SXM", "H200 SXM", "B200")
_DAY = 86400.0


def product(rng: random.Random) -> NumberExercise:
    """Ask for the FLOPs of a matmul."""
    m, k, n = (2 ** rng.randint(7, 13) for _ in range(3))
    flop = matmul_flop.explain(m=float(m), n=float(n), k=float(k), groups=1.0)
    return NumberExercise(
        message("exercises.flops.product.ask", m=float(m), k=float(k), n=float(n)),
        flop.value,
        "flop",
        message("exercises.flops.product.why"),
        (
            (flop.value / 2, message("exercises.flops.product.half")),
            (2.0 * m * n, message("exercises.flops.product.axis")),
            (3 * flop.value, message("exercises.flops.product.training")),
        ),
        (flop,),
        shown=Link("lecture", {"linear": "true", "lb": str(m), "ld": str(k), "lk": str(n)}, "linear"),
    )


def run(rng: random.Random) -> NumberExercise:
    """Ask for the FLOPs of a training run."""
    params, tokens = rng.choice(_SIZES), rng.choice(_TOKENS)
    flop = train_flop_6nd.explain(params=params, tokens=tokens)
    return NumberExercise(
        message("exercises.flops.run.ask", parameters=params, tokens=tokens),
        flop.value,
        "flop",
        message("exercises.flops.run.why"),
        (
            (flop.value / 3, message("exercises.flops.forward_only")),
            (flop.value * 2 / 3, message("exercises.flops.backward_only")),
            (flop.value / 6, message("exercises.flops.run.product")),
            (flop.value * 4 / 3, message("exercises.flops.run.recomputation")),
        ),
        (flop,),
        shown=Link("compute", {"n": _key(params), "tokens": _key(tokens)}),
    )


def _draw_run(rng: random.Random) -> tuple[float, float, str, float, float]:
    """Return parameters, tokens, an accelerator, its dense bf16 peak, and an MFU."""
    chip = rng.choice(_CHIPS)
    return rng.choice(_SIZES), rng.choice(_TOKENS), chip, find(chip).peak("bf16"), rng.choice((0.3, 0.35, 0.4, 0.5))


def days(rng: random.Random) -> NumberExercise:
    """Ask for the days of a run."""
    params, tokens, chip, peak, mfu = _draw_run(rng)
    count = float(rng.choice((64, 256, 512, 1024, 4096)))
    flop = train_flop_6nd.explain(params=params, tokens=tokens)
    seconds = training_seconds.explain(flop=flop.value, accelerators=count, peak=peak, mfu=mfu)
    found = seconds.value / _DAY
    asked = {"n": _key(params), "tokens": _key(tokens), "gpu": chip, "count": _key(count), "mfu": f"{mfu:.0%}"}
    return NumberExercise(
        message(
            "exercises.flops.days.ask",
            accelerators=count,
            device=chip,
            peak=peak,
            parameters=params,
            tokens=tokens,
            mfu=mfu,
        ),
        found,
        "days",
        message("exercises.flops.days.why"),
        (
            (found * mfu, message("exercises.flops.whole_peak")),
            (found / 3, message("exercises.flops.forward_only")),
            (found / 2, message("exercises.flops.sparse_peak")),
        ),
        (flop, seconds),
        shown=Link("compute", asked),
    )


def chips(rng: random.Random) -> NumberExercise:
    """Ask for the accelerators that a deadline needs."""
    params, tokens, chip, peak, mfu = _draw_run(rng)
    within = rng.choice((14, 30, 60, 90))
    flop = train_flop_6nd.explain(params=params, tokens=tokens)
    needed = accelerators_needed.explain(flop=flop.value, peak=peak, mfu=mfu, seconds=within * _DAY)
    each = Fraction(peak) * Fraction(f"{mfu:g}") * within * int(_DAY)  # exact, as one more or fewer decides
    return NumberExercise(
        message(
            "exercises.flops.chips.ask",
            device=chip,
            peak=peak,
            parameters=params,
            tokens=tokens,
            days=float(within),
            mfu=mfu,
        ),
        float(math.ceil(6 * int(params) * int(tokens) / each)),
        "count",
        message("exercises.flops.chips.why"),
        (
            (needed.value * mfu, message("exercises.flops.whole_peak")),
            (needed.value / 3, message("exercises.flops.forward_only")),
            (needed.value / mfu, message("exercises.flops.chips.twice")),
        ),
        (flop, needed),
        shown=Link("compute", {"n": _key(params), "tokens": _key(tokens), "gpu": chip, "mfu": f"{mfu:.0%}"}),
    )


def utilization(rng: random.Random) -> NumberExercise:
    """Ask for the MFU of a token rate."""
    params, _, chip, peak, mfu = _draw_run(rng)
    each = float(f"{mfu * peak / (6 * params):.2g}")
    share = utilisation_of_rate.explain(rate=each, per_token=6 * params, accelerators=1.0, peak=peak)
    return NumberExercise(
        message("exercises.flops.utilization.ask", parameters=params, rate=each, device=chip, peak=peak),
        share.value,
        "ratio",
        message("exercises.flops.utilization.why"),
        (
            (share.value / 3, message("exercises.flops.forward_only")),
            (share.value / 2, message("exercises.flops.sparse_peak")),
            (share.value * 4 / 3, message("exercises.flops.utilization.hfu")),
            (share.value * 2 / 3, message("exercises.flops.backward_only")),
        ),
        (share,),
        shown=Link("compute", {"n": _key(params), "gpu": chip, "flops": "true"}, "flops"),
    )


def bound(rng: random.Random) -> NumberExercise:
    """Ask for the arithmetic intensity of a square matmul."""
    chip = rng.choice(("A100 SXM 80 GB", "H100 SXM"))
    device, power = find(chip), rng.randint(7, 13)
    n = float(2**power)
    moved = product_bytes.explain(m=n, n=n, k=n, groups=1.0, element=2.0, result=2.0)
    flop = matmul_flop.explain(m=n, n=n, k=n, groups=1.0)
    found = intensity.explain(flop=flop.value, bytes=moved.value)
    ridge = ridge_point.explain(peak=device.peak("bf16"), bandwidth=device.bandwidth)
    side = "exercises.flops.bound.compute" if found.value > ridge.value else "exercises.flops.bound.memory"
    return NumberExercise(
        message("exercises.flops.bound.ask", n=n),
        found.value,
        "flop_per_byte",
        message(side, device=chip, ridge=ridge.value),
        (
            (found.value * 3, message("exercises.flops.bound.one_matrix")),
            (found.value / 2, message("exercises.flops.bound.fp32")),
            (found.value * 2, message("exercises.flops.bound.one_byte")),
        ),
        (moved, flop, found, ridge),
        shown=Link("compute", {"gpu": chip, **_square_layer(power), "roof": "true"}, "roof"),
    )


def _square_layer(power: int) -> dict[str, str]:
    """Return the fields of a model whose feed-forward matmuls, of as many tokens at once, are square."""
    n, head = 2**power, 64
    shape = f"layers=1 hidden={n} heads={n // head} kv_heads={n // head} head_dim={head} ffn={n} vocab={n} "
    return {"model": OWN_SHAPE, "shape": f"{shape}glu=no tied_head=no", "seq": str(n), "mb": str(power)}


def _key(value: float) -> str:
    """Return a count as it is entered."""
    return format_count(value).replace(" ", "").replace(",", "")


MAKERS: tuple[Maker, ...] = (product, run, days, chips, utilization, bound)
"""All kinds of exercises on work and time."""
