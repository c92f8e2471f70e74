"""Checks of claims on numbers in memory, by the exact codec and by bytes counted one by one."""

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
from core.messages import message
from core.models.catalog import model_named
from core.tensors.cost import tensor_bytes
from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, find_policy
from core.units import format_bytes

FP16, BF16, FP32 = FORMATS["fp16"], FORMATS["bf16"], FORMATS["fp32"]
E4M3, E5M2 = FORMATS["fp8_e4m3fn"], FORMATS["fp8_e5m2"]
TINY = Fraction(1, 10**8)


def _widths(fmt: FloatFormat) -> str:
    """Return ``1 · 8 · 23``, the bits of sign, exponent, and fraction."""
    return f"1 · {fmt.exponent_bits} · {fmt.fraction_bits}"


def _explain_value(title: str, value: Fraction, fmt: FloatFormat) -> tuple[Explanation, ...]:
    return (titled(title, explain(describe(encode_exact(value, fmt), fmt))[0]),)


def check_value_of_bits() -> Finding:
    normal, tiny = describe(encode_exact(Fraction(5, 32), FP32), FP32), describe(1, FP16)
    smallest = rounded(tiny.value or Fraction(0), 3)
    return Finding(
        message("lecture.F1.found", code=normal.hex_code, value=normal.decimal, tiny=tiny.hex_code, smallest=smallest),
        normal.value == Fraction(5, 4) / 8 and tiny.value == Fraction(1, 2**24),
        (
            titled("0.15625 in fp32, a normal number", explain(normal)[0]),
            titled("The smallest number of fp16, a subnormal", explain(tiny)[0]),
        ),
        shown=(normal.decimal, normal.hex_code),
    )


def check_widths() -> Finding:
    fields = [(f.exponent_bits, f.fraction_bits) for f in (FP32, FP16, BF16)]
    fp32, fp16, bf16 = (f"1/{exponent}/{fraction}" for exponent, fraction in fields)
    return Finding(
        message("lecture.F2.found", fp32=fp32, fp16=fp16, bf16=bf16),
        fields == [(8, 23), (5, 10), (8, 7)],
        how=message("lecture.F2.how"),
        shown=tuple(_widths(f) for f in (FP32, FP16, BF16)),
    )


def check_exponent_field() -> Finding:
    view = describe(124 << 23 | 1 << 21, FP32)
    found = message("lecture.F3.found", code=view.hex_code, value=view.decimal)
    return Finding(found, view.value == Fraction(5, 32), explain(view), shown=(view.decimal, view.hex_code))


def check_single_precision() -> Finding:
    kept, wide = 1 + FP32.fraction_bits, np.finfo(np.float64).nmant + 1
    return Finding(
        message("lecture.F14.found", fp32=float(kept), fp64=float(wide)),
        (kept, wide) == (24, 53),
        how=message("lecture.F14.how"),
        shown=(_widths(FP32), f"1 · {FORMATS['fp64'].exponent_bits} · {wide - 1}"),
    )


def check_underflow() -> Finding:
    half, brain = (describe(encode_exact(TINY, f), f) for f in (FP16, BF16))
    value, smallest = rounded(brain.value or Fraction(0), 5), rounded(FP16.min_subnormal, 3)
    return Finding(
        message("lecture.F4.found", fp16=half.decimal, bf16=value, smallest=smallest),
        half.value == 0 and value == rounded(Fraction("1.0012e-8"), 5),
        (
            *_explain_value("Smallest value of fp16 above 0", FP16.min_subnormal, FP16),
            titled("1e-8 in bf16", explain(brain)[0]),
        ),
        message("lecture.F4.how"),
        shown=(f"becomes {half.decimal} in fp16", smallest),
    )


def check_overflow() -> Finding:
    below, tie = (decode_exact(encode_exact(Fraction(v), FP16), FP16) for v in (65519, 65520))
    return Finding(
        message("lecture.F6.found", largest=float(FP16.max_finite), below=float(below or 0)),
        below == 65504 and tie is None,
        _explain_value("Largest value of fp16", FP16.max_finite, FP16),
        message("lecture.F6.how"),
        shown=("infinity" if tie is None else str(tie),),
    )


def check_range_of_bf16() -> Finding:
    largest = tuple(rounded(f.max_finite, 5) for f in (BF16, FP32))
    ends = [rounded(f.min_subnormal, 3) for f in (BF16, FP32)]
    share = float(BF16.max_finite / FP32.max_finite)
    return Finding(
        message("lecture.F5.found", bf16=largest[0], fp32=largest[1], share=share, bf16_end=ends[0], fp32_end=ends[1]),
        BF16.min_normal == FP32.min_normal and BF16.min_subnormal > FP32.min_subnormal,
        tuple(
            step
            for fmt in (BF16, FP32)
            for name, value in (("Largest", fmt.max_finite), ("Smallest", fmt.min_subnormal))
            for step in _explain_value(f"{name} value of {fmt.title}", value, fmt)
        ),
        shown=largest,
    )


def check_precision_of_bf16() -> Finding:
    brain, half, wide = (f.eps for f in (BF16, FP16, FP32))
    by_fp16, by_fp32 = float(brain / half), float(brain / wide)
    return Finding(
        message("lecture.F17.found", step=str(float(brain)), fp16=by_fp16, fp32=by_fp32),
        (by_fp16, by_fp32) == (8, 65536),
        (*_explain_value("1 in bf16", Fraction(1), BF16), *_explain_value("1 in fp16", Fraction(1), FP16)),
        message("lecture.F17.how"),
        shown=tuple(raised(power_form(f.eps)) for f in (BF16, FP16, FP32)),
    )


@cached("results_kept")
def sum_up(name: str, addend: float, times: int) -> float:
    """Return the sum of ``addend`` added ``times`` times in the format ``name``, rounded after every addition."""
    fmt = FORMATS[name]
    step, total = decode(encode(np.array([addend]), fmt), fmt), np.zeros(1)
    for _ in range(times):
        total = decode(encode(total + step, fmt), fmt)
    return float(total[0])


def check_sum() -> Finding:
    fp32, fp16, bf16 = (sum_up(name, 0.01, 1000) for name in ("fp32", "fp16", "bf16"))
    return Finding(
        message("lecture.F12.found", bf16=bf16, fp16=f"{fp16:.4g}", fp32=f"{fp32:.4g}"),
        bf16 < 5 < fp16 < fp32 + 0.5,
        accumulation.explain(0.0, 0.01, 1000, BF16),
        message("lecture.F12.how", stall=bf16),
        shown=(f"stalls at {bf16:g}",),
    )


def check_fp8_formats() -> Finding:
    h100, paper = find("H100 SXM"), E4M3.sources[-1].title.partition(",")[0]
    e4m3, e5m2 = int(E4M3.max_finite), int(E5M2.max_finite)
    return Finding(
        message(
            "lecture.F7.found",
            e4m3=float(e4m3),
            e5m2=float(e5m2),
            paper=paper,
            device=h100.name,
            year=str(h100.year),
            peak=h100.peak("fp8"),
        ),
        (e4m3, e5m2, h100.year) == (448, 57344, 2022),
        (
            *_explain_value("Largest value of E4M3", E4M3.max_finite, E4M3),
            *_explain_value("Largest value of E5M2", E5M2.max_finite, E5M2),
        ),
        shown=(str(e4m3), str(e5m2), str(h100.year)),
    )


def check_fp8_is_fixed() -> Finding:
    numbers = np.array([0.003, 0.3, 300.0])
    e4m3, e5m2 = ([f"{value:,.4g}" for value in decode(encode(numbers, f), f).tolist()] for f in (E4M3, E5M2))
    return Finding(
        message("lecture.F15.found", e4m3=e4m3, e5m2=e5m2),
        [(f.exponent_bits, f.fraction_bits) for f in (E4M3, E5M2)] == [(4, 3), (5, 2)],
        (
            *_explain_value("Largest value of E4M3", E4M3.max_finite, E4M3),
            *_explain_value("Largest value of E5M2", E5M2.max_finite, E5M2),
        ),
        message("lecture.F15.how"),
        shown=(_widths(E4M3), _widths(E5M2)),
    )


@cached("results_kept")
def train_weight(name: str, update: float, steps: int) -> float:
    """Return a weight of 1 after ``steps`` updates by ``−update``, stored in the format ``name`` after each."""
    fmt, weight = FORMATS[name], np.ones(1)
    for _ in range(steps):
        weight = decode(encode(weight - update, fmt), fmt)
    return float(weight[0])


def check_master_weights() -> Finding:
    brain, single = train_weight("bf16", 1e-3, 100), train_weight("fp32", 1e-3, 100)
    step = explain(describe(encode_exact(Fraction(255, 256), BF16), BF16))[1]
    return Finding(
        message("lecture.F13.found", bf16=brain, fp32=single),
        brain == 1 and abs(single - 0.9) < 1e-4,
        (titled("Spacing of bf16 just below 1", step), half_step.explain(ulp=step.value)),
        message("lecture.F13.how"),
        shown=(f"never moves from {brain:g}",),
    )


def check_attention_dtype() -> Finding:
    wide = [policy.id for policy in POLICIES.values() if policy.multiplies.bytes >= 4]
    autocast = POLICIES["fp32, bf16 autocast"]
    return Finding(
        message("lecture.F16.found", narrow=autocast.multiplies.name, policies=float(len(POLICIES)), wide=wide[0]),
        wide == ["fp32"] and autocast.multiplies.bytes == 2,
        how=message("lecture.F16.how"),
        shown=(autocast.note.partition(",")[0],),
    )


def check_share_of_floats() -> Finding:
    each = states_per_parameter(find_optimizer("AdamW"), find_policy("mixed bf16, fp32 master")).total
    states = tensor_bytes.explain(elements=model_named("Llama 3.1 8B").parameters, element_bytes=each)
    ids = tensor_bytes.explain(elements=2**24, element_bytes=8)
    return Finding(
        message("lecture.F18.found", states=states.value, ids=ids.value),
        states.value > 99 * ids.value,
        (titled("Model states in floats", states), titled("Token ids in int64", ids)),
        shown=(f"{each:g} B per parameter",),
    )


def check_small_tensor() -> Finding:
    size = tensor_bytes.explain(elements=4 * 8, element_bytes=4)
    found = message("lecture.F11.found", size=size.value)
    return Finding(found, size.value == 128, (size,), shown=(f"{size.value:.0f} B",))


def check_gpt3_matrix() -> Finding:
    size = tensor_bytes.explain(elements=4 * 12288 * 12288, element_bytes=4)
    mib, gib, gb = size.value / 2**20, size.value / 2**30, size.value / 1e9
    return Finding(
        message("lecture.F9.found", size=size.value, mib=mib, gib=gib, gb=f"{gb:.3f}"),
        mib == 2304 and round(gb, 1) != 2.3,
        (size,),
        shown=(f"{gib} GiB",),
    )


def check_bytes_of_tensor() -> Finding:
    size = tensor_bytes.explain(elements=32 * 32, element_bytes=4)
    found = message("lecture.F10.found", size=size.value)
    return Finding(found, size.value == 4096, (size,), shown=(f"{size.value:,.0f} B",))


def check_kilobyte() -> Finding:
    size, device = tensor_bytes.explain(elements=1024**2, element_bytes=1), find("H100 SXM")
    sheet = format_bytes(device.sheet_bytes, system="decimal")
    driver = f"{device.reported_mib:,.0f} MiB ({format_bytes(device.memory_bytes, system='binary', digits=3)})"
    return Finding(
        message("lecture.F8.found", size=size.value, sheet=device.sheet_bytes, driver=driver),
        size.value == 2**20 and device.memory_bytes == device.reported_mib * 2**20,
        (titled("1,024 × 1,024 bytes", size),),
        message("lecture.F8.how"),
        shown=(driver.partition(" (")[0], sheet),
    )
