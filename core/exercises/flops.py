"""Exercises on work and time: FLOPs of products and of runs, days, utilisation, arithmetic intensity."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

from core.budget.equations import accelerators_needed, training_seconds
from core.exercises.exercise import FAR, Exercise, Maker, choose, choose_amount
from core.fields import Link
from core.formula import Explanation
from core.hardware.accelerators import find
from core.hardware.operations import intensity, product_bytes, ridge_point
from core.models.flop_formulas import train_flop_6nd
from core.planning.plan import OWN_SHAPE
from core.products import matmul_flop
from core.runs.conventions import utilisation_of_rate
from core.units import format_count, format_quantity

_SIZES = (1e9, 3e9, 7e9, 8e9, 13e9, 30e9, 70e9, 405e9)
_TOKENS = (0.3e12, 1e12, 2e12, 6e12, 15e12)
_CHIPS = ("A100 SXM 80 GB", "H100 SXM", "H200 SXM", "B200")
_DAY = 86400.0


def product(rng: random.Random) -> Exercise:
    """FLOPs of a matrix product."""
    m, k, n = (2 ** rng.randint(7, 13) for _ in range(3))
    right = matmul_flop.explain(m=float(m), n=float(n), k=float(k), groups=1.0)
    return choose_amount(
        rng,
        f"How many FLOPs does a product of **{m:,} × {k:,}** and **{k:,} × {n:,}** take?",
        "flop",
        (right, "Each of m · n results is a sum of k products: k multiplications and k additions."),
        [
            (right.value / 2, "Each multiply-add counts as two."),
            (2.0 * m * n, "That leaves out the axis that is summed over."),
            (2 * right.value, "Twice as much as there is."),
            (3 * right.value, "That is the forward and both products of backward."),
        ],
        shown=Link("lecture", {"linear": "true", "lb": str(m), "ld": str(k), "lk": str(n)}, "linear"),
    )


def run(rng: random.Random) -> Exercise:
    """FLOPs of a training run."""
    params, tokens = rng.choice(_SIZES), rng.choice(_TOKENS)
    right = train_flop_6nd.explain(params=params, tokens=tokens)
    return choose_amount(
        rng,
        f"How many FLOPs does it take to train **{format_count(params)}** dense parameters on "
        f"**{format_count(tokens)}** tokens, by the rule of thumb?",
        "flop",
        (right, "6 for each parameter and token: 2 forward, 4 backward."),
        [
            (right.value / 3, "That is forward alone."),
            (right.value * 2 / 3, "That is backward alone."),
            (right.value / 6, "That is parameters × tokens; each costs six."),
            (right.value * 4 / 3, "That computes forward once more, as full recomputation does."),
        ],
        shown=Link("compute", {"n": _key(params), "tokens": _key(tokens)}),
    )


def _drawn(rng: random.Random) -> tuple[float, float, str, float, float]:
    """Parameters, tokens, chip, its dense bf16 peak, and a utilisation."""
    chip = rng.choice(_CHIPS)
    return rng.choice(_SIZES), rng.choice(_TOKENS), chip, find(chip).peak("bf16"), rng.choice((0.3, 0.35, 0.4, 0.5))


def days(rng: random.Random) -> Exercise:
    """Days of a run."""
    params, tokens, chip, peak, mfu = _drawn(rng)
    count = float(rng.choice((64, 256, 512, 1024, 4096)))
    flop = train_flop_6nd.explain(params=params, tokens=tokens)
    seconds = training_seconds.explain(flop=flop.value, accelerators=count, peak=peak, mfu=mfu)
    made = choose_amount(
        rng,
        f"How long do **{format_count(count)} × {chip}** ({format_quantity(peak, 'flop_per_s')} dense) need for "
        f"**{format_count(params)}** parameters and **{format_count(tokens)}** tokens at **{mfu:.0%}** MFU, by 6ND?",
        "seconds",
        (seconds, "6ND FLOPs over what all of them do in a second at that share of their peak."),
        [
            (seconds.value * mfu, "That is at the whole peak, which nobody reaches."),
            (seconds.value / 3, "That counts forward alone, 2ND."),
            (seconds.value / 2, "That is at the sparse peak of the datasheet."),
            (seconds.value * 2, "Twice as long."),
        ],
        shown=Link(
            "compute",
            {"n": _key(params), "tokens": _key(tokens), "gpu": chip, "count": _key(count), "mfu": f"{mfu:.0%}"},
        ),
    )
    return _with(made, flop)


def chips(rng: random.Random) -> Exercise:
    """Accelerators that a deadline takes."""
    params, tokens, chip, peak, mfu = _drawn(rng)
    within = rng.choice((14, 30, 60, 90))
    flop = train_flop_6nd.explain(params=params, tokens=tokens)
    needed = accelerators_needed.explain(flop=flop.value, peak=peak, mfu=mfu, seconds=within * _DAY)
    each = Fraction(peak) * Fraction(f"{mfu:g}") * within * int(_DAY)  # exact, as one more or fewer decides
    count = math.ceil(6 * int(params) * int(tokens) / each)
    made = choose(
        rng,
        f"How many **{chip}** ({format_quantity(peak, 'flop_per_s')} dense) are needed at least to train "
        f"**{format_count(params)}** parameters on **{format_count(tokens)}** tokens within **{within} days** at "
        f"**{mfu:.0%}** MFU, by 6ND?",
        (f"{count:,}", "6ND over what one does in that time at that share of its peak, rounded up."),
        [
            (f"{math.ceil(wrong):,}", reason)
            for wrong, reason in (
                (count - 1, f"One fewer than needed takes longer than {within} days."),
                (needed.value * mfu, "That is at the whole peak, which nobody reaches."),
                (needed.value / 3, "That counts forward alone, 2ND."),
                (needed.value / mfu, "That divides by the utilisation twice."),
                *((far * count, why) for far, why in FAR),
            )
            if wrong > 0
        ],
        explanations=(needed,),
        shown=Link("compute", {"n": _key(params), "tokens": _key(tokens), "gpu": chip, "mfu": f"{mfu:.0%}"}),
    )
    return _with(made, flop)


def utilisation(rng: random.Random) -> Exercise:
    """MFU from a token rate."""
    params, _, chip, peak, mfu = _drawn(rng)
    each = float(f"{mfu * peak / (6 * params):.2g}")
    right = utilisation_of_rate.explain(rate=each, per_token=6 * params, accelerators=1.0, peak=peak)
    return choose_amount(
        rng,
        f"A run of **{format_count(params)}** parameters makes **{each:,g} tokens/s** on each **{chip}** "
        f"({format_quantity(peak, 'flop_per_s')} dense). What is its MFU, by 6N?",
        "ratio",
        (right, "Tokens a second times 6N FLOPs a token, over the dense peak."),
        [
            (right.value / 3, "That counts forward alone, 2N a token."),
            (right.value / 2, "That is over the sparse peak of the datasheet."),
            (right.value * 4 / 3, "That is HFU with full recomputation: 8N a token."),
            (right.value * 2 / 3, "That counts backward alone."),
        ],
        shown=Link("compute", {"n": _key(params), "gpu": chip, "flops": "true"}, "flops"),
    )


def bound(rng: random.Random) -> Exercise:
    """Arithmetic intensity of a square product, and which side of the ridge that is."""
    chip = rng.choice(("A100 SXM 80 GB", "H100 SXM"))
    device = find(chip)
    power = rng.randint(7, 13)
    n = float(2**power)
    moved = product_bytes.explain(m=n, n=n, k=n, groups=1.0, element=2.0, result=2.0)
    flop = matmul_flop.explain(m=n, n=n, k=n, groups=1.0)
    found = intensity.explain(flop=flop.value, bytes=moved.value)
    ridge = ridge_point.explain(peak=device.peak("bf16"), bandwidth=device.bandwidth)
    side = "compute-bound" if found.value > ridge.value else "memory-bound"
    made = choose_amount(
        rng,
        f"What is the arithmetic intensity of a **{n:,.0f} × {n:,.0f}** bf16 product, each matrix moved once? "
        f"(On an {chip} the ridge point is {format_quantity(ridge.value, 'flop_per_byte', 3)}.)",
        "flop_per_byte",
        (found, f"2n³ FLOPs over three matrices of 2n² bytes, n/3: it is {side} there."),
        [
            (found.value * 3, "That moves one matrix; there are two operands and a result."),
            (found.value / 2, "That is the intensity in fp32, of four bytes each."),
            (found.value * 2, "That counts a byte for each number."),
            (n, "That is n itself."),
        ],
        shown=Link("compute", {"gpu": chip, **_square_layer(power), "roof": "true"}, "roof"),
    )
    return _with(made, flop, moved, after=(ridge,))


def _square_layer(power: int) -> dict[str, str]:
    """The fields of a model whose feed-forward products, of as many tokens at once, are square."""
    n, head = 2**power, 64
    shape = f"layers=1 hidden={n} heads={n // head} kv_heads={n // head} head_dim={head} ffn={n} vocab={n} "
    return {"model": OWN_SHAPE, "shape": f"{shape}glu=no tied_head=no", "seq": str(n), "mb": str(power)}


def _key(value: float) -> str:
    """A count as one types it."""
    return format_count(value).replace(" ", "").replace(",", "")


def _with(made: Exercise, *before: Explanation, after: tuple[Explanation, ...] = ()) -> Exercise:
    return replace(made, explanations=(*before, *made.explanations, *after))


MAKERS: tuple[Maker, ...] = (product, run, days, chips, utilisation, bound)
"""Every kind of exercise on work and time."""
