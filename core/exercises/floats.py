"""Exercises on number formats: what is stored, where sums stall, how far and how finely formats reach."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from core.exercises.exercise import Exercise, Maker, choose
from core.fields import Link
from core.floats.arithmetic.accumulation import add_up, half_step
from core.floats.block_example import bits_per_element
from core.floats.blocks import BLOCK_FORMATS
from core.floats.codec import classify, decode_exact, encode_exact, floor_log2, neighbor
from core.floats.decimals import raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.floats.laws import unit_in_last_place

_STORED = ("fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2")
_TYPED = ("0.1", "0.3", "1.1", "3.3", "17.3", "100.7", "0.007", "1000.4", "1e-8", "2e-6", "300.5", "70000", "500")
_BLOCKS = ("mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1", "mxint8", "nvfp4", "nf4", "nf4_double")
_STALLING = ("bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2")


def _number(value: Fraction | None) -> str:
    """A value to seven digits; infinity and NaN have none."""
    return "no number" if value is None else rounded(value, 7)


def _shown(fmt: FloatFormat, text: str) -> Link:
    return Link("floats", {"x": text, "fmt": fmt.name})


def stored(rng: random.Random) -> Exercise:
    """What a decimal becomes in a format."""
    fmt, text = FORMATS[rng.choice(_STORED)], rng.choice(_TYPED)
    asked = Fraction(text)
    code = encode_exact(asked, fmt)
    options: list[tuple[str, str]] = []
    for up in (False, True):
        beside = neighbor(code, fmt, up=up)
        if (
            classify(code, fmt) not in ("inf", "nan")
            and beside is not None
            and (value := decode_exact(beside, fmt)) is not None
            and value >= 0
        ):
            options.append((_number(value), "That is the value beside the nearest, further away."))
    options += [
        (_number(asked), f"{fmt.title} has no code for exactly that."),
        ("infinity", f"{fmt.title} reaches {_number(fmt.max_finite)}."),
        ("0", f"The smallest positive value is {_number(fmt.min_subnormal)}."),
        (_number(fmt.max_finite), "That is the largest finite value, which a saturating cast alone would give."),
    ]
    kind = classify(code, fmt)
    result = {"inf": "infinity", "nan": "NaN"}.get(kind) or _number(decode_exact(code, fmt))
    if kind in ("inf", "nan"):
        why = f"It is beyond the largest finite value, {_number(fmt.max_finite)}, by half a step or more."
    elif kind == "zero":
        why = f"It is less than half of the smallest positive value, {_number(fmt.min_subnormal)}."
    else:
        why = f"The nearest of the values that {fmt.title} has, with {fmt.fraction_bits} fraction bits."
    prompt = f"What does **{text}** become in **{fmt.title}**, rounded to nearest, to seven digits?"
    exact = [option for option in options if option[0] != result]
    return choose(rng, prompt, (result, why), exact, shown=_shown(fmt, text))


def stalls(rng: random.Random) -> Exercise:
    """Where a sum of ones ends."""
    fmt = FORMATS[rng.choice(_STALLING)]
    times = 4_000
    final = Fraction(add_up(0.0, 1.0, times, fmt).final)
    step = unit_in_last_place.explain(
        exponent=float(floor_log2(final) + fmt.bias), bias=float(fmt.bias), fraction_bits=float(fmt.fraction_bits)
    )
    others = [Fraction(add_up(0.0, 1.0, times, FORMATS[name]).final) for name in _STALLING if name != fmt.name]
    return choose(
        rng,
        f"1 is added to 0 **{times:,} times** in **{fmt.title}**, each sum rounded to nearest. Where does it end?",
        (
            f"{int(final):,}",
            f"There the next value is {step.value:g} away: 1 is half of it, and the tie goes back to the even sum.",
        ),
        [
            (f"{times:,}", "The exact sum; the format stopped noticing long before."),
            *((f"{int(other):,}", "Another format’s fraction has that many steps.") for other in others),
            (f"{int(2 * final):,}", "One binade too late."),
        ],
        explanations=(step, half_step.explain(ulp=step.value)),
        shown=Link("floats", {"sums": "true", "start": "0", "add": "1", "times": f"{times}", "sum": fmt.name}, "sums"),
    )


def largest(rng: random.Random) -> Exercise:
    """The largest finite value of a format."""
    names = ("fp16", "fp8_e4m3fn", "fp8_e5m2", "fp6_e3m2fn", "fp6_e2m3fn", "fp4_e2m1fn")
    fmt = FORMATS[rng.choice(names)]
    power = Fraction(2) ** (fmt.emax + 1)
    wrong = [
        (_number(power), "That power of two is past the top exponent."),
        (_number(power / 2), "That is the top power of two; its fraction bits come on top."),
        *((_number(FORMATS[name].max_finite), f"That is {FORMATS[name].title}’s.") for name in names),
    ]
    rest = "that is not NaN" if fmt.has_nan else "there is"
    why = raised(f"2^{fmt.emax}") + f" with the largest fraction {rest if not fmt.infinity else 'there is'}."
    return choose(
        rng,
        f"What is the largest finite value of **{fmt.title}** ({fmt.exponent_bits} exponent bits, {fmt.fraction_bits} "
        "fraction bits)?",
        (_number(fmt.max_finite), why),
        [option for option in wrong if option[0] != _number(fmt.max_finite)],
        shown=Link("floats", {"land": "true", "fmt": fmt.name} if fmt.name in _STORED else {"land": "true"}, "land"),
    )


def spacing(rng: random.Random) -> Exercise:
    """The step between neighbors at a number."""
    fmt = FORMATS[rng.choice(("fp32", "fp16", "bf16", "fp8_e4m3fn"))]
    power = rng.randint(2, 7)
    size = Fraction(2) ** (power - fmt.fraction_bits)
    inside = math.ceil(size)  # a step from both ends of the binade, beyond which steps differ
    at = rng.randint(2**power + inside, 2 ** (power + 1) - inside)
    step = unit_in_last_place.explain(
        exponent=float(power + fmt.bias), bias=float(fmt.bias), fraction_bits=float(fmt.fraction_bits)
    )
    return choose(
        rng,
        f"How far is it from one value of **{fmt.title}** to the next, near **{at}**?",
        (
            _number(size),
            raised(f"2^{power}, the power of two below it, over 2^{fmt.fraction_bits}: a step is relative."),
        ),
        [
            (_number(size / 2**power), "That is the step near 1; it grows with the number."),
            (_number(size / 2), "That is half a step, the largest rounding error."),
            (_number(size * 2), "That is the step in the next binade."),
            (_number(size * 2**power), "That takes the power twice."),
        ],
        explanations=(step,),
        shown=_shown(fmt, str(at)),
    )


def bits(rng: random.Random) -> Exercise:
    """Bits that a number takes in a block format."""
    fmt = BLOCK_FORMATS[rng.choice(_BLOCKS)]
    explanation = bits_per_element.explain(
        element_bits=float(fmt.element.bits), scale_bits=float(fmt.scale_bits), size=float(fmt.size)
    )

    def written(value: float) -> str:
        return f"{value:.4g}"

    return choose(
        rng,
        f"How many bits does each number take in **{fmt.title}**, blocks of **{fmt.size}** with their scale counted?",
        (written(explanation.value), "The element’s bits, and the scale’s divided by the values that share it."),
        [
            (written(fmt.element.bits), "That leaves the scale out."),
            (written(fmt.element.bits + fmt.scale_bits), "The scale is there once a block, not once a number."),
            (written(fmt.element.bits + fmt.scale_bits / fmt.size * 2), "That is the scale twice."),
            (written(fmt.element.bits + 1), "A bit each for the scale would be too many."),
        ],
        explanations=(explanation,),
        shown=Link("floats", {"block": "true", "blk": fmt.name}, "block"),
    )


MAKERS: tuple[Maker, ...] = (stored, stalls, largest, spacing, bits)
"""Every kind of exercise on floats."""
