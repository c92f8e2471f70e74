"""Claims about numbers in memory, checked by the exact codec and by bytes counted one by one."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from core.floats.arithmetic import accumulation
from core.floats.arithmetic.accumulation import half_step
from core.floats.code_description import describe, explain
from core.floats.codec import decode, decode_exact, encode, encode_exact
from core.floats.decimals import rounded
from core.floats.formats import FORMATS, FloatFormat
from core.formula import Explanation
from core.lecture.claims import Claim, Finding, Link, titled
from core.tensors.cost import tensor_bytes
from core.units import format_bytes

FP16, BF16, FP32 = FORMATS["fp16"], FORMATS["bf16"], FORMATS["fp32"]
E4M3, E5M2 = FORMATS["fp8_e4m3fn"], FORMATS["fp8_e5m2"]
TINY = Fraction(1, 10**8)


def _widths() -> Finding:
    shapes = [(f.title, 1, f.exponent_bits, f.fraction_bits) for f in (FP32, FP16, BF16)]
    text = ", ".join(f"{title} {sign}/{exponent}/{fraction}" for title, sign, exponent, fraction in shapes)
    return Finding(
        text,
        [s[1:] for s in shapes] == [(1, 8, 23), (1, 5, 10), (1, 8, 7)],
        how="Nothing to compute: the widths define the formats (fp32 and fp16 in IEEE 754; bf16 is fp32 without its "
        "last 16 bits). They are read from the table of formats that everything here computes with.",
    )


def _field_124() -> Finding:
    view = describe(124 << 23 | 1 << 21, FP32)
    return Finding(f"`{view.hex_code}` is {view.decimal}", view.value == Fraction(5, 32), explain(view))


def _tiny() -> Finding:
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
    )


def _range() -> Finding:
    ratio = 100 * float(BF16.max_finite / FP32.max_finite)
    text = (
        f"largest {rounded(BF16.max_finite, 5)} against {rounded(FP32.max_finite, 5)} ({ratio:.1f} %); "
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
    )


def _half_overflow() -> Finding:
    below, tie = (decode_exact(encode_exact(Fraction(v), FP16), FP16) for v in (65519, 65520))
    return Finding(
        f"largest {int(FP16.max_finite):,}; 65,519 becomes {int(below or 0):,}, 65,520 infinity",
        below == 65504 and tie is None,
        _valued("Largest value of fp16", FP16.max_finite, FP16),
        "The next value up would be 65,536. From the middle, 65,520, on, rounding to nearest goes there, which is "
        "infinity.",
    )


def _eight_bits() -> Finding:
    text = f"E4M3 ±{int(E4M3.max_finite)}, E5M2 ±{int(E5M2.max_finite):,}"
    return Finding(
        text,
        (E4M3.max_finite, E5M2.max_finite) == (448, 57344),
        (
            *_valued("Largest value of E4M3", E4M3.max_finite, E4M3),
            *_valued("Largest value of E5M2", E5M2.max_finite, E5M2),
        ),
    )


def _kilobyte() -> Finding:
    sizes = [format_bytes(1024**2, system="decimal"), format_bytes(1024**2, system="binary")]
    size = tensor_bytes.explain(elements=1024**2, element_bytes=1)
    return Finding(
        f"1,024 × 1,024 B is {sizes[1]}, which is {sizes[0]}",
        sizes == ["1.049 MB", "1 MiB"],
        (titled("1,024 × 1,024 bytes", size),),
        "1 KiB is 2¹⁰ B and 1 MiB 2²⁰ B; 1 kB is 10³ B and 1 MB 10⁶ B.",
    )


def _gpt3_matrix() -> Finding:
    size = tensor_bytes.explain(elements=4 * 12288 * 12288, element_bytes=4)
    text = f"{size.value:,.0f} B = {size.value / 2**20:,.0f} MiB = {size.value / 2**30} GiB = {size.value / 1e9:.3f} GB"
    return Finding(text, size.value == 2304 * 2**20 and round(size.value / 1e9, 1) != 2.3, (size,))


def _not_compute() -> Finding:
    size = tensor_bytes.explain(elements=32 * 32, element_bytes=4)
    return Finding(f"{size.value:,.0f} B of memory", size.value == 4096, (size,))


def _small_tensor() -> Finding:
    size = tensor_bytes.explain(elements=4 * 8, element_bytes=4)
    return Finding(f"{size.value:.0f} B", size.value == 128, (size,))


def _valued(title: str, value: Fraction, fmt: FloatFormat) -> tuple[Explanation, ...]:
    """How a value of ``fmt`` follows from its bits."""
    return (titled(title, explain(describe(encode_exact(value, fmt), fmt))[0]),)


@lru_cache(maxsize=8)
def _summed(name: str, addend: float, times: int) -> float:
    """``addend`` added ``times`` times, rounding to the format ``name`` after every addition."""
    fmt = FORMATS[name]
    step, total = decode(encode(np.array([addend]), fmt), fmt), np.zeros(1)
    for _ in range(times):
        total = decode(encode(total + step, fmt), fmt)
    return float(total[0])


def _accumulate() -> Finding:
    sums = {name: _summed(name, 0.01, 1000) for name in ("fp32", "fp16", "bf16")}
    text = ", ".join(f"{name} {value:.4g}" for name, value in sums.items())
    return Finding(
        f"0.01 added 1,000 times gives {text} (exact: 10)",
        sums["bf16"] < 5 < sums["fp16"] < sums["fp32"] + 0.5,
        accumulation.explain(0.0, 0.01, 1000, BF16),
        "0.01 is stored in the format and added a thousand times; every sum is rounded into the format. The step is "
        "that of bf16 at 4, where its sum stays.",
    )


@lru_cache(maxsize=4)
def _trained(name: str, update: float, steps: int) -> float:
    """A weight of 1 after ``steps`` updates by ``−update``, stored in the format ``name`` after each."""
    fmt = FORMATS[name]
    weight = np.ones(1)
    for _ in range(steps):
        weight = decode(encode(weight - update, fmt), fmt)
    return float(weight[0])


def _master_weights() -> Finding:
    brain, single = _trained("bf16", 1e-3, 100), _trained("fp32", 1e-3, 100)
    text = f"a weight of 1 after 100 updates of −0.001: bf16 {brain:g}, fp32 {single:.4f}"
    below = describe(encode_exact(Fraction(255, 256), BF16), BF16)
    step = explain(below)[1]
    return Finding(
        text,
        brain == 1 and abs(single - 0.9) < 1e-4,
        (titled("Step of bf16 just below 1", step), half_step.explain(ulp=step.value)),
        "0.001 is taken from 1 a hundred times, and the weight is rounded into its format after each.",
    )


NUMBERS: tuple[Claim, ...] = (
    Claim(
        "F2",
        "Numbers in memory",
        "bits of fp32, fp16 and bf16",
        "fp32 has 1 sign, 8 exponent and 23 fraction bits; fp16 has 1/5/10 and bf16 1/8/7.",
        "exact",
        _widths,
        Link("floats", {"x": "1", "fmt": "bf16"}),
    ),
    Claim(
        "F3",
        "Numbers in memory",
        "0.15625 in fp32",
        "fp32 with exponent field 124 and fraction .01 (binary) is 0.15625.",
        "exact",
        _field_124,
        Link("floats", {"x": "0.15625", "fmt": "fp32"}),
        "2¹²⁴⁻¹²⁷ × 1.25 = 2⁻³ × 1.25",
    ),
    Claim(
        "F4",
        "Numbers in memory",
        "1e-8 in fp16 and bf16",
        "1e-8 becomes 0 in fp16 and survives in bf16.",
        "holds",
        _tiny,
        Link("floats", {"x": "1e-8", "fmt": "fp16"}),
    ),
    Claim(
        "F5",
        "Numbers in memory",
        "the range of bf16",
        "bf16 has the dynamic range of fp32.",
        "holds",
        _range,
        Link("floats", {"x": "3.3895e38", "fmt": "bf16"}),
        "For normal values; subnormals reach 2¹⁶ times less far down.",
    ),
    Claim(
        "F6",
        "Numbers in memory",
        "overflow in fp16",
        "fp16 overflows easily.",
        "holds",
        _half_overflow,
        Link("floats", {"x": "65520", "fmt": "fp16"}),
    ),
    Claim(
        "F7",
        "Numbers in memory",
        "the two FP8 formats",
        "FP8 comes as E4M3 (±448) and E5M2 (±57,344).",
        "exact",
        _eight_bits,
        Link("floats", {"x": "448", "fmt": "fp8_e4m3fn"}),
    ),
    Claim(
        "F8",
        "Numbers in memory",
        "KB and MB",
        "1 KB is 1,024 B, and 1 MB is 1,024 KB.",
        "convention",
        _kilobyte,
        None,
        "Those are KiB and MiB; datasheets and disks count 1 kB as 1,000 B. Napkin always says which.",
    ),
    Claim(
        "F9",
        "Numbers in memory",
        "a GPT-3 matrix in bytes",
        "One GPT-3 feed-forward matrix, 12,288·4 × 12,288 in fp32, takes 2,304 MiB, “2.3 GB”.",
        "needs care",
        _gpt3_matrix,
        Link(
            "tensors",
            {"shape": "49152, 12288", "x": "x.clone()", "dtype": "float32"},
        ),
        "2,304 MiB is exact; in GB it is 2.4, in GiB 2.25.",
    ),
    Claim(
        "F10",
        "Numbers in memory",
        "bytes are no compute",
        "A 32 × 32 fp32 tensor “costs 4,096 bytes of compute”.",
        "needs care",
        _not_compute,
        Link("tensors", {"shape": "32, 32", "x": "x.clone()", "dtype": "float32"}),
        "Bytes are memory; compute is counted in FLOPs.",
    ),
    Claim(
        "F11",
        "Numbers in memory",
        "a 4 × 8 tensor in bytes",
        "A 4 × 8 fp32 tensor takes 128 B: memory is elements times element size.",
        "exact",
        _small_tensor,
        Link("tensors", {"shape": "4, 8", "x": "x.clone()", "dtype": "float32"}),
    ),
    Claim(
        "F12",
        "Numbers in memory",
        "range before precision",
        "Deep learning cares about range more than precision, hence bf16.",
        "rule of thumb",
        _accumulate,
        Link(
            "floats",
            {"x": "4 + 0.01", "fmt": "bf16"}
            | {"sums": "true", "start": "0", "add": "0.01", "times": "1000", "sum": "bf16"},
            at="sums",
        ),
        "The catch: a long sum in bf16 stalls where half a step exceeds the addend. Sums belong in fp32.",
    ),
    Claim(
        "F13",
        "Numbers in memory",
        "weights in fp32",
        "Keep parameters and optimizer state in fp32; compute in bf16 or fp8.",
        "holds",
        _master_weights,
        Link(
            "floats",
            {"x": "1 - 0.001", "fmt": "bf16"}
            | {"sums": "true", "start": "1", "add": "-0.001", "times": "100", "sum": "bf16"},
            at="sums",
        ),
        "Next to 1, bf16 steps by 0.0039 going down: half of that is more than the update, so it rounds away.",
    ),
)
