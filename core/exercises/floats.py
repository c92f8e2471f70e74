"""Exercises on number formats: what is stored, where sums stall, range, and spacing."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from core.exercises.exercise import ChoiceExercise, Maker, NumberExercise, Reasoned, choose
from core.fields import Link
from core.floats.arithmetic.accumulation import add_up, half_step
from core.floats.block_example import bits_per_element
from core.floats.blocks import BLOCK_FORMATS
from core.floats.codec import classify, decode_exact, encode_exact, floor_log2, neighbor
from core.floats.decimals import rounded
from core.floats.formats import FORMATS, FloatFormat
from core.floats.laws import unit_in_last_place
from core.messages import message

_STORED = ("fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2")
_TYPED = ("0.1", "0.3", "1.1", "3.3", "17.3", "100.7", "0.007", "1000.4", "1e-8", "2e-6", "300.5", "70000", "500")
_BLOCKS = ("mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1", "mxint8", "nvfp4", "nf4", "nf4_double")
_STALLING = ("bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2")
_LARGEST = ("fp16", "fp8_e4m3fn", "fp8_e5m2", "fp6_e3m2fn", "fp6_e2m3fn", "fp4_e2m1fn")


def _number(value: Fraction | None) -> str:
    """Return a value to seven digits."""
    return message("exercises.floats.none") if value is None else rounded(value, 7)


def _shown(fmt: FloatFormat, text: str) -> Link:
    return Link("floats", {"x": text, "fmt": fmt.name})


def stored(rng: random.Random) -> ChoiceExercise:
    """Ask what a decimal becomes in a format."""
    fmt, text = FORMATS[rng.choice(_STORED)], rng.choice(_TYPED)
    asked = Fraction(text)
    code = encode_exact(asked, fmt)
    kind = classify(code, fmt)
    largest, smallest = _number(fmt.max_finite), _number(fmt.min_subnormal)
    infinity = message("exercises.floats.infinity")
    result = {"inf": infinity, "nan": "NaN"}.get(kind) or _number(decode_exact(code, fmt))
    options: list[Reasoned] = []
    for up in (False, True):
        beside = neighbor(code, fmt, up=up)
        value = None if kind in ("inf", "nan") or beside is None else decode_exact(beside, fmt)
        if value is not None and value >= 0:
            options.append((_number(value), message("exercises.floats.stored.neighbor")))
    options += [
        (_number(asked), message("exercises.floats.stored.inexact", format=fmt.title)),
        (infinity, message("exercises.floats.stored.finite", format=fmt.title, largest=largest)),
        ("0", message("exercises.floats.stored.not_zero", smallest=smallest)),
        (largest, message("exercises.floats.stored.saturated")),
    ]
    if kind in ("inf", "nan"):
        why = message("exercises.floats.stored.overflow", largest=largest)
    elif kind == "zero":
        why = message("exercises.floats.stored.underflow", smallest=smallest)
    else:
        why = message("exercises.floats.stored.nearest", format=fmt.title, bits=float(fmt.fraction_bits))
    prompt = message("exercises.floats.stored.ask", number=text, format=fmt.title)
    return choose(rng, prompt, (result, why), [one for one in options if one[0] != result], _shown(fmt, text))


def stalls(rng: random.Random) -> NumberExercise:
    """Ask where a sum of ones ends."""
    fmt, times = FORMATS[rng.choice(_STALLING)], 4_000
    ends = {name: add_up(0.0, 1.0, times, FORMATS[name]).final for name in _STALLING}
    final = ends.pop(fmt.name)
    step = unit_in_last_place.explain(
        exponent=float(floor_log2(Fraction(final)) + fmt.bias),
        bias=float(fmt.bias),
        fraction_bits=float(fmt.fraction_bits),
    )
    return NumberExercise(
        message("exercises.floats.stalls.ask", times=float(times), format=fmt.title),
        final,
        "count",
        message("exercises.floats.stalls.why", step=step.value),
        (
            (times, message("exercises.floats.stalls.exact")),
            *(
                (other, message("exercises.floats.of_format", format=FORMATS[name].title))
                for name, other in ends.items()
            ),
            (2 * final, message("exercises.floats.stalls.late")),
        ),
        (step, half_step.explain(ulp=step.value)),
        shown=Link("floats", {"sums": "true", "start": "0", "add": "1", "times": f"{times}", "sum": fmt.name}, "sums"),
    )


def largest(rng: random.Random) -> NumberExercise:
    """Ask for the largest finite value of a format."""
    fmt = FORMATS[rng.choice(_LARGEST)]
    power = 2.0 ** (fmt.emax + 1)
    others = [other for other in map(FORMATS.__getitem__, _LARGEST) if other is not fmt]
    nan = fmt.has_nan and not fmt.infinity
    return NumberExercise(
        message(
            "exercises.floats.largest.ask",
            format=fmt.title,
            exponent=float(fmt.exponent_bits),
            fraction=float(fmt.fraction_bits),
        ),
        float(fmt.max_finite),
        "number",
        message("exercises.floats.largest.why_nan" if nan else "exercises.floats.largest.why", power=str(fmt.emax)),
        (
            (power, message("exercises.floats.largest.past")),
            (power / 2, message("exercises.floats.largest.power")),
            *((float(o.max_finite), message("exercises.floats.of_format", format=o.title)) for o in others),
        ),
        shown=Link("floats", {"land": "true", "fmt": fmt.name} if fmt.name in _STORED else {"land": "true"}, "land"),
        tolerance=1e-4,
    )


def spacing(rng: random.Random) -> NumberExercise:
    """Ask for the step between neighbors at a number."""
    fmt = FORMATS[rng.choice(("fp32", "fp16", "bf16", "fp8_e4m3fn"))]
    power = rng.randint(2, 7)
    size = 2.0 ** (power - fmt.fraction_bits)
    inside = math.ceil(size)  # a step from both ends of the binade, beyond which steps differ
    at = rng.randint(2**power + inside, 2 ** (power + 1) - inside)
    step = unit_in_last_place.explain(
        exponent=float(power + fmt.bias), bias=float(fmt.bias), fraction_bits=float(fmt.fraction_bits)
    )
    return NumberExercise(
        message("exercises.floats.spacing.ask", format=fmt.title, at=float(at)),
        size,
        "number",
        message("exercises.floats.spacing.why", power=str(power), bits=str(fmt.fraction_bits)),
        (
            (size / 2**power, message("exercises.floats.spacing.near_one")),
            (size / 2, message("exercises.floats.spacing.half")),
            (size * 2, message("exercises.floats.spacing.next")),
        ),
        (step,),
        shown=_shown(fmt, str(at)),
    )


def bits(rng: random.Random) -> NumberExercise:
    """Ask for the bits per number of a block format."""
    fmt = BLOCK_FORMATS[rng.choice(_BLOCKS)]
    each = bits_per_element.explain(
        element_bits=float(fmt.element.bits), scale_bits=float(fmt.scale_bits), size=float(fmt.size)
    )
    return NumberExercise(
        message("exercises.floats.bits.ask", format=fmt.title, size=float(fmt.size)),
        each.value,
        "number",
        message("exercises.floats.bits.why"),
        (
            (float(fmt.element.bits), message("exercises.floats.bits.element")),
            (float(fmt.element.bits + fmt.scale_bits), message("exercises.floats.bits.scale")),
        ),
        (each,),
        shown=Link("floats", {"block": "true", "blk": fmt.name}, "block"),
    )


MAKERS: tuple[Maker, ...] = (stored, stalls, largest, spacing, bits)
"""All kinds of exercises on floats."""
