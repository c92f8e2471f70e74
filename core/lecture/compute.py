"""Claims about compute, checked by the FLOP counts, the accelerator table and the published runs."""

from __future__ import annotations

import math

import numpy as np

from core.hardware.accelerators import find
from core.hardware.operations import elementwise, intensity, product
from core.hardware.roofline import explain_device, peak_from_clock, ridge_point
from core.lecture.claims import Claim, Finding, Link
from core.models.catalog import model_named
from core.models.flops import flops_per_token, rule_gap, train_flop_6nd
from core.planning.budget import training_seconds
from core.planning.layer import layer_roofline, matmul_share
from core.planning.runs import published_runs
from core.products import matmul_flop
from core.units import format_quantity

H100, A100 = "H100 SXM", "A100 SXM 80 GB"


def _matmul() -> Finding:
    flop = matmul_flop.explain(m=1024, n=64, k=256, groups=1)
    additions = 1024 * 64 * 255
    multiplications = 1024 * 64 * 256
    shown = (
        f"2 × 1024 × 256 × 64 = {flop.value:,.0f} FLOP; literally {multiplications:,} products and {additions:,} sums"
    )
    return Finding(shown, flop.value == 33_554_432, (flop,))


def _six_nd_error() -> Finding:
    names = ("GPT-2 124M", "Llama 3.1 8B", "Llama 3.1 405B")
    gaps: list[float] = []
    for name in names:
        model = model_named(name)
        length = min(model.max_seq, 8192)
        gaps.append(3 * flops_per_token(model.spec, length, "causal").forward / (6 * model.active) - 1)
    shown = ", ".join(f"{name} {gap:+.1%}" for name, gap in zip(names, gaps, strict=True))
    return Finding(
        f"counted by layer (causal, 8,192 tokens; GPT-2 1,024) against 6N: {shown}",
        max(abs(g) for g in gaps) < 0.25 and abs(gaps[-1]) < 0.05,
    )


def _napkin_days() -> Finding:
    flop = train_flop_6nd.explain(params=70e9, tokens=15e12)
    seconds = training_seconds.explain(flop=flop.value, accelerators=1024, peak=find(H100).peak("bf16"), mfu=0.5)
    return Finding(f"{flop.text}, {seconds.text}", round(seconds.value / 86400, 1) == 143.9, (flop, seconds))


def _gpt3() -> Finding:
    flop = train_flop_6nd.explain(params=175e9, tokens=300e9)
    published = next(run.flop for run in published_runs() if run.catalog == "GPT-3 175B" and not math.isnan(run.flop))
    gap = flop.value / published - 1
    shown = f"6ND gives {flop.text}; the paper prints {format_quantity(published, 'flop')} ({gap:+.1%})"
    return Finding(shown, abs(gap) < 0.01, (flop,))


def _attention_share() -> Finding:
    spec = model_named("GPT-3 175B").spec
    gap = rule_gap(spec, 2048, "full")
    crossing = 6 * spec.hidden
    shares = [
        flops_per_token(spec, s, "full").squares / flops_per_token(spec, s, "full").weights for s in (2048, crossing)
    ]
    shown = (
        f"GPT-3: attention is {shares[0]:.1%} of the other FLOPs at 2,048 tokens and equals them near 6H = {crossing:,}"
    )
    return Finding(shown, gap.square > 0 and shares[0] < 0.05 and 0.9 < shares[1] < 1.1)


def _peaks() -> Finding:
    device = find(H100)
    explained = [step for step in explain_device(device, "bf16") if step.name == peak_from_clock.name]
    shown = (
        f"dense bf16: H100 {format_quantity(device.peak('bf16'), 'flop_per_s')}, "
        f"A100 {format_quantity(find(A100).peak('bf16'), 'flop_per_s')}; from the clock {explained[0].text}"
    )
    return Finding(shown, abs(explained[0].value / device.peak("bf16") - 1) < 1e-3, tuple(explained))


def _tensor_core() -> Finding:
    clock = find(H100).clock
    per_clock = clock.fma_per_clock if clock else 0
    return Finding(f"{per_clock} multiply-adds per clock and tensor core; a 4 × 4 × 4 product is 64", per_clock == 512)


def _good_mfu() -> Finding:
    values = np.array([run.mfu for run in published_runs() if run.mfu > 0])
    p10, median, p90 = np.quantile(values, [0.1, 0.5, 0.9])
    shown = (
        f"{len(values)} published MFUs: median {median:.0%}, P10 {p10:.0%}, P90 {p90:.0%}, highest {values.max():.0%}"
    )
    return Finding(shown, 0.3 < median < 0.55 and float(values.max()) < 0.9)


def _faster() -> Finding:
    h100, a100 = find(H100), find(A100)
    newer, lower = h100.peak("bf16") / a100.peak("bf16"), h100.peak("bf16") / h100.peak("fp32")
    return Finding(f"H100 is {newer:.1f} × A100 in bf16; its bf16 is {lower:.1f} × its fp32", newer > 3 and lower > 14)


def _mostly_matmul() -> Finding:
    shares: list[str] = []
    lowest = 1.0
    for name, length in (("GPT-3 175B", 2048), ("GPT-2 124M", 1024)):
        layer = layer_roofline(
            model_named(name).spec, find(H100), seq_len=length, tokens=8 * length, fused_attention=False, head=False
        )
        share = matmul_share(layer)
        lowest = min(lowest, share)
        shares.append(f"{name} {share:.1%}")
    shown = f"matmul’s share of the FLOPs of one layer, forward, backward and update: {', '.join(shares)}"
    return Finding(shown, lowest > 0.95)


def _memory_bound() -> Finding:
    device = find(H100)
    ridge = ridge_point.explain(peak=device.peak("bf16"), bandwidth=device.bandwidth)
    n = 8192
    # bf16, every operand moved once. A norm: sum, square, sum, subtract, scale twice, shift: about 8 FLOPs for each
    # element read (2 B) and written (2 B).
    works = product(1, n, n, n, 2), product(1, 1, n, n, 2), elementwise(n * n, 8, 4)
    matmul, small, norm = (intensity(float(work.flop), float(work.bytes)) for work in works)
    shown = (
        f"8192³ matmul {matmul:,.0f} FLOP/B, the same with one row {small:.1f}, LayerNorm about {norm:.0f}; "
        f"the ridge is {ridge.text}"
    )
    return Finding(shown, max(norm, small) < ridge.value < matmul, (ridge,))


def _one_two_six() -> Finding:
    batch, wide, narrow = 1024, 256, 64
    forward = matmul_flop.explain(m=batch, n=narrow, k=wide, groups=1)
    weight_gradient = matmul_flop.explain(m=wide, n=narrow, k=batch, groups=1)
    input_gradient = matmul_flop.explain(m=batch, n=wide, k=narrow, groups=1)
    backward = (weight_gradient.value + input_gradient.value) / forward.value
    each = (forward.value + weight_gradient.value + input_gradient.value) / (batch * wide * narrow)
    shown = f"x(1024 × 256) @ w(256 × 64): forward 1, backward {backward:g}; together {each:g} FLOPs per weight and row"
    return Finding(shown, (backward, each) == (2, 6), (forward, weight_gradient, input_gradient))


COMPUTE: tuple[Claim, ...] = (
    Claim(
        "C1",
        "Compute",
        "Multiplying a B × D by a D × K matrix costs 2·B·D·K FLOPs.",
        "convention",
        _matmul,
        Link("device", {"n": "1024"}),
        "A multiply-add counts as two. The first product of each sum needs no addition.",
    ),
    Claim(
        "C3",
        "Compute",
        "Forward costs 2 FLOPs per token and parameter, backward 4, training 6.",
        "rule of thumb",
        _six_nd_error,
        Link("compute", {"model": "GPT-2 124M", "seq": "1024"}),
        "The gap is attention’s products (more) and the embedding lookup (less).",
    ),
    Claim(
        "C7",
        "Compute",
        "70 B parameters on 15 T tokens take 143.9 days on 1024 H100 at MFU 0.5.",
        "exact",
        _napkin_days,
        Link(
            "compute",
            {"model": "Typed parameters", "n": "70B", "tokens": "15T", "gpu": H100, "count": "1024", "mfu": "0.5"},
        ),
    ),
    Claim(
        "C8",
        "Compute",
        "GPT-3 took 3.14e23 FLOP.",
        "holds",
        _gpt3,
        Link(
            "compute",
            {
                "model": "GPT-3 175B",
                "tokens": "300B",
                "gpu": "V100 SXM 32 GB",
                "count": "10,000",
                "mfu": "21.3%",
                "seq": "2048",
                "dtype": "fp16",
            },
        ),
        "Figures for GPT-4 (2e25 to 3e25) are speculation that nobody can check.",
    ),
    Claim(
        "C9",
        "Compute",
        "Attention’s N² is negligible while the context is much shorter than the parameter count.",
        "needs care",
        _attention_share,
        Link("compute", {"model": "GPT-3 175B", "attn": "full", "seq": "2048"}),
        "Per token and layer it is 12·N·H against 72·H²: compare the context with 6H, not with the parameters.",
    ),
    Claim(
        "C11",
        "Compute",
        "An H100 does 1979 TFLOP/s, half of it without 2:4 sparsity; an A100 312.",
        "exact",
        _peaks,
        Link("compute", {"gpu": H100}),
        "Half of 1978.9 is the dense peak. A sparse figure is never a peak of dense training.",
    ),
    Claim(
        "C12",
        "Compute",
        "The H100’s tensor core does a 4 × 4 product each clock.",
        "needs care",
        _tensor_core,
        Link("compute", {"gpu": H100}),
        "That was Volta. The H100’s peak needs eight times as much.",
    ),
    Claim(
        "C13",
        "Compute",
        "MFU is the share of the promised FLOP/s; 0.5 is good and 0.9 is out of reach.",
        "holds",
        _good_mfu,
        Link("compute", {"model": "Llama 3.1 405B", "mfu": "41%"}),
        "Published figures mix attention conventions; a few per cent of difference mean nothing.",
    ),
    Claim(
        "C14",
        "Compute",
        "An H100 is much faster than an A100, and bf16 than fp32.",
        "exact",
        _faster,
        Link("device", {}),
        "Dense datasheet peaks; Measure shows what arrives.",
    ),
    Claim(
        "C15",
        "Compute",
        "Over 95 % of the compute is matmul, forward and backward.",
        "rule of thumb",
        _mostly_matmul,
        Link("compute", {"model": "GPT-3 175B"}),
        "Of the FLOPs. Of the time less, because everything else waits for memory.",
    ),
    Claim(
        "C16",
        "Compute",
        "Matmul is compute-bound; LayerNorm, softmax and cross-entropy are memory-bound.",
        "rule of thumb",
        _memory_bound,
        Link("device", {"n": "512"}),
        "A matmul with few rows, as in decoding, is memory-bound too.",
    ),
    Claim(
        "C17",
        "Compute",
        "Training costs 1 : 2 : 6.",
        "needs care",
        _one_two_six,
        Link("compute", {"model": "Llama 3.1 8B"}),
        "Forward and backward are 1 : 2. The 6 is another quantity: 2 + 4 FLOPs per parameter and token.",
    ),
)
