"""Claims about numbers in memory, checked by the exact codec and by bytes counted one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.floats.arithmetic import accumulation
from core.floats.arithmetic.accumulation import half_step
from core.floats.code_description import describe, explain
from core.floats.codec import decode, decode_exact, encode, encode_exact
from core.floats.decimals import power_form, raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.formula import Explanation
from core.hardware.accelerators import find
from core.lecture.claims import Finding, titled
from core.limits import cached
from core.training.precision import POLICIES
from core.units import format_quantity

FP16, BF16, FP32 = FORMATS["fp16"], FORMATS["bf16"], FORMATS["fp32"]
E4M3, E5M2 = FORMATS["fp8_e4m3fn"], FORMATS["fp8_e5m2"]
TINY = Fraction(1, 10**8)


def widths() -> Finding:
    shapes = [(f.title, 1, f.exponent_bits, f.fraction_bits) for f in (FP32, FP16, BF16)]
    text = ", ".join(f"{title} {sign}/{exponent}/{fraction}" for title, sign, exponent, fraction in shapes)
    return Finding(
        text,
        [s[1:] for s in shapes] == [(1, 8, 23), (1, 5, 10), (1, 8, 7)],
        shown=tuple(_widths(f) for f in (FP32, FP16, BF16)),
        how="Nothing to compute: the widths define the formats (fp32 and fp16 in IEEE 754; bf16 is fp32 without its "
        "last 16 bits). They are read from the table of formats that everything here computes with.",
    )


def field_124() -> Finding:
    view = describe(124 << 23 | 1 << 21, FP32)
    return Finding(
        f"`{view.hex_code}` is {view.decimal}",
        view.value == Fraction(5, 32),
        explain(view),
        shown=(f"{view.decimal} is stored exactly",),
    )


def tiny() -> Finding:
    half, brain = (describe(encode_exact(TINY, f), f) for f in (FP16, BF16))
    fraction = brain.value or Fraction(0)
    text = (
        f"{half.decimal} in fp16 (its smallest value is {rounded(FP16.min_subnormal, 3)}); "
        f"{rounded(fraction, 5)} in bf16"
    )
    return Finding(
        text,
        half.value == 0 and rounded(fraction, 5) == rounded(Fraction("1.0012e-8"), 5),
        (
            *_valued("Smallest value of fp16 above 0", FP16.min_subnormal, FP16),
            titled("1e-8 in bf16", explain(brain)[0]),
        ),
        "1e-8 is taken as an exact fraction and rounded to the nearest value of each format. Below half of fp16’s "
        "smallest value that is 0.",
        shown=(f"becomes {half.decimal} in fp16", rounded(FP16.min_subnormal, 3)),
    )


def range_of_bf16() -> Finding:
    ratio = 100 * float(BF16.max_finite / FP32.max_finite)
    text = (
        f"largest {rounded(BF16.max_finite, 5)} against {rounded(FP32.max_finite, 5)} ({ratio:.1f}%); "
        f"smallest normal equal; smallest subnormal {rounded(BF16.min_subnormal, 3)} "
        f"against {rounded(FP32.min_subnormal, 3)}"
    )
    return Finding(
        text,
        BF16.min_normal == FP32.min_normal and BF16.min_subnormal > FP32.min_subnormal,
        tuple(
            step
            for fmt in (BF16, FP32)
            for name, value in (("Largest", fmt.max_finite), ("Smallest", fmt.min_subnormal))
            for step in _valued(f"{name} value of {fmt.title}", value, fmt)
        ),
        shown=tuple(rounded(f.max_finite, 5) for f in (BF16, FP32)),
    )


def half_overflow() -> Finding:
    below, tie = (decode_exact(encode_exact(Fraction(v), FP16), FP16) for v in (65519, 65520))
    return Finding(
        f"largest {int(FP16.max_finite):,}; 65,519 becomes {int(below or 0):,}, 65,520 infinity",
        below == 65504 and tie is None,
        _valued("Largest value of fp16", FP16.max_finite, FP16),
        "The next value up would be 65,536. From the middle, 65,520, on, rounding to nearest goes there, which is "
        "infinity.",
        shown=("infinity" if tie is None else str(tie),),
    )


def eight_bits() -> Finding:
    h100, paper = find("H100 SXM"), E4M3.sources[-1].title.partition(",")[0]
    text = (
        f"E4M3 ±{int(E4M3.max_finite)}, E5M2 ±{int(E5M2.max_finite):,}; specified by {paper}; the {h100.name} of "
        f"{h100.year} multiplies them at {format_quantity(h100.peak('fp8'), 'flop_per_s')}"
    )
    return Finding(
        text,
        (E4M3.max_finite, E5M2.max_finite, h100.year) == (448, 57344, 2022),
        (
            *_valued("Largest value of E4M3", E4M3.max_finite, E4M3),
            *_valued("Largest value of E5M2", E5M2.max_finite, E5M2),
        ),
        shown=(str(int(E4M3.max_finite)), str(int(E5M2.max_finite)), str(h100.year)),
    )


def _widths(fmt: FloatFormat) -> str:
    """``1 · 8 · 23``: bits of sign, exponent and fraction."""
    return f"1 · {fmt.exponent_bits} · {fmt.fraction_bits}"


def _valued(title: str, value: Fraction, fmt: FloatFormat) -> tuple[Explanation, ...]:
    """How a value of ``fmt`` follows from its bits."""
    return (titled(title, explain(describe(encode_exact(value, fmt), fmt))[0]),)


@cached("results_kept")
def _summed(name: str, addend: float, times: int) -> float:
    """``addend`` added ``times`` times, rounding to the format ``name`` after every addition."""
    fmt = FORMATS[name]
    step, total = decode(encode(np.array([addend]), fmt), fmt), np.zeros(1)
    for _ in range(times):
        total = decode(encode(total + step, fmt), fmt)
    return float(total[0])


def accumulate() -> Finding:
    sums = {name: _summed(name, 0.01, 1000) for name in ("fp32", "fp16", "bf16")}
    text = ", ".join(f"{name} {value:.4g}" for name, value in sums.items())
    return Finding(
        f"0.01 added 1,000 times gives {text} (exact: 10)",
        sums["bf16"] < 5 < sums["fp16"] < sums["fp32"] + 0.5,
        accumulation.explain(0.0, 0.01, 1000, BF16),
        "0.01 is stored in the format and added a thousand times; every sum is rounded into the format. The step is "
        f"that of bf16 at {sums['bf16']:g}, where its sum stays.",
        shown=(f"stalls at {sums['bf16']:g}",),
    )


@cached("results_kept")
def _trained(name: str, update: float, steps: int) -> float:
    """A weight of 1 after ``steps`` updates by ``−update``, stored in the format ``name`` after each."""
    fmt = FORMATS[name]
    weight = np.ones(1)
    for _ in range(steps):
        weight = decode(encode(weight - update, fmt), fmt)
    return float(weight[0])


def master_weights() -> Finding:
    brain, single = _trained("bf16", 1e-3, 100), _trained("fp32", 1e-3, 100)
    text = f"a weight of 1 after 100 updates of −0.001: bf16 {brain:g}, fp32 {single:.4f}"
    below = describe(encode_exact(Fraction(255, 256), BF16), BF16)
    step = explain(below)[1]
    return Finding(
        text,
        brain == 1 and abs(single - 0.9) < 1e-4,
        (titled("Step of bf16 just below 1", step), half_step.explain(ulp=step.value)),
        "0.001 is taken from 1 a hundred times, and the weight is rounded into its format after each.",
        shown=(f"never moves from {brain:g}",),
    )


def value_of_bits() -> Finding:
    normal = describe(encode_exact(Fraction(5, 32), FP32), FP32)
    tiny = describe(1, FP16)
    smallest = rounded(tiny.value or Fraction(0), 3)
    return Finding(
        f"fp32 `{normal.hex_code}` is {normal.decimal}; fp16 `{tiny.hex_code}`, a subnormal, is {smallest}",
        normal.value == Fraction(5, 4) / 8 and tiny.value == Fraction(1, 2**24),
        (
            titled("0.15625 in fp32, a normal number", explain(normal)[0]),
            titled("The smallest number of fp16, a subnormal", explain(tiny)[0]),
        ),
        shown=(f"{normal.decimal} is stored exactly", "1.25 × 2⁻³"),
    )


def single() -> Finding:
    kept, wide = 1 + FP32.fraction_bits, np.finfo(np.float64).nmant + 1
    return Finding(
        f"fp32 keeps {kept} significant bits, fp64 {wide}",
        (kept, wide) == (24, 53),
        shown=(_widths(FP32), f"1 · {FORMATS['fp64'].exponent_bits} · {wide - 1}"),
        how="The widths of IEEE 754’s binary32 and binary64, one bit of each not stored. torch makes tensors of fp32 "
        "where nothing is said, numpy and Python make fp64.",
    )


def two_fixed() -> Finding:
    numbers = np.array([0.003, 0.3, 300.0])
    read = {f.title: decode(encode(numbers, f), f).tolist() for f in (E4M3, E5M2)}
    results = "; ".join(f"{title} {', '.join(f'{value:,.4g}' for value in values)}" for title, values in read.items())
    widths = [(f.exponent_bits, f.fraction_bits) for f in (E4M3, E5M2)]
    return Finding(
        f"0.003, 0.3 and 300 become {results}",
        widths == [(4, 3), (5, 2)],
        (
            *_valued("Largest value of E4M3", E4M3.max_finite, E4M3),
            *_valued("Largest value of E5M2", E5M2.max_finite, E5M2),
        ),
        "Either format splits its bits once and for all. What software chooses anew is the scale by which a tensor, a "
        "row or a block is divided before.",
        shown=(_widths(E4M3), _widths(E5M2)),
    )


def attention_in_16_bits() -> Finding:
    wide = [policy.id for policy in POLICIES.values() if policy.multiplies.bytes >= 4]
    autocast = POLICIES["fp32, bf16 autocast"]
    narrow = autocast.multiplies
    return Finding(
        f"under autocast every product multiplies in {narrow.name}, those of attention too; of {len(POLICIES)} "
        f"precisions only {wide[0]} multiplies in 32 bits",
        wide == ["fp32"] and narrow.bytes == 2,
        shown=(autocast.note.partition(",")[0],),
        how="Read from the table of precisions that memory is counted with. torch’s scores and fused attention come "
        "out in bf16; the sums of softmax inside are fp32.",
    )


def slightly() -> Finding:
    brain, half, wide = (f.eps for f in (BF16, FP16, FP32))
    return Finding(
        f"the step above 1 is {float(brain):g} in bf16, {float(brain / half):g} times fp16’s and "
        f"{float(brain / wide):,.0f} times fp32’s",
        (brain / half, brain / wide) == (8, 65536),
        (*_valued("1 in bf16", Fraction(1), BF16), *_valued("1 in fp16", Fraction(1), FP16)),
        "The step above 1 is 2 to the minus fraction bits.",
        shown=tuple(raised(power_form(f.eps)) for f in (BF16, FP16, FP32)),
    )
