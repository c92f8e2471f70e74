"""Claims about compute, checked by the FLOP counts, the accelerator table and the published runs."""

from __future__ import annotations

import math

from core.budget.run import training_seconds
from core.formula import Explanation
from core.hardware.accelerators import find
from core.hardware.operations import elementwise, intensity, product
from core.hardware.roofline import explain_device, peak_from_clock, ridge_point
from core.lecture.claims import Claim, Finding, Link, titled
from core.models.attention_share import attention_over_rest
from core.models.catalog import model_named
from core.models.flops import flops_per_token, train_flop_6nd, train_flop_by_layer
from core.models.linear import literal_operations
from core.planning.presets import LECTURE, PRESETS
from core.products import matmul_flop
from core.runs.published import printed_mfu, published_runs
from core.step_time.layer_roofline import layer_roofline, matmul_share
from core.units import format_quantity
from core.wording import signed

H100, A100 = "H100 SXM", "A100 SXM 80 GB"


def _matmul() -> Finding:
    flop = matmul_flop.explain(m=1024, n=64, k=256, groups=1)
    additions = 1024 * 64 * 255
    multiplications = 1024 * 64 * 256
    text = (
        f"2 × 1,024 × 256 × 64 = {flop.value:,.0f} FLOP; literally {multiplications:,} products and {additions:,} sums"
    )
    literal = literal_operations.explain(rows=1024, width=256, outputs=64)
    return Finding(text, flop.value == 33_554_432 and literal.value == additions + multiplications, (flop, literal))


def _six_nd_error() -> Finding:
    names = ("GPT-2 124M", "Llama 3.1 8B", "Llama 3.1 405B")
    gaps: list[float] = []
    steps: list[Explanation] = []
    for name in names:
        model = model_named(name)
        length = min(model.max_seq, 8192)
        forward = flops_per_token(model.spec, length, "causal").forward
        counted = train_flop_by_layer.explain(forward=forward, tokens=1)
        rule = train_flop_6nd.explain(params=model.active, tokens=1)
        gaps.append(counted.value / rule.value - 1)
        steps += [
            titled(f"{name}, one token counted by layer", counted),
            titled(f"{name}, one token by the rule", rule),
        ]
    text = ", ".join(f"{name} {signed(gap)}" for name, gap in zip(names, gaps, strict=True))
    return Finding(
        f"counted by layer (causal, 8,192 tokens; GPT-2 1,024) against 6N: {text}",
        max(abs(g) for g in gaps) < 0.25 and abs(gaps[-1]) < 0.05,
        tuple(steps),
        "The forward pass is counted matrix by matrix; Compute budget takes it apart under “Where do the FLOPs go”.",
    )


def _napkin_days() -> Finding:
    flop = train_flop_6nd.explain(params=70e9, tokens=15e12)
    seconds = training_seconds.explain(flop=flop.value, accelerators=1024, peak=find(H100).peak("bf16"), mfu=0.5)
    return Finding(f"{flop.text}, {seconds.text}", round(seconds.value / 86400, 1) == 143.9, (flop, seconds))


def _gpt3() -> Finding:
    flop = train_flop_6nd.explain(params=175e9, tokens=300e9)
    published = next(run.flop for run in published_runs() if run.catalog == "GPT-3 175B" and not math.isnan(run.flop))
    gap = flop.value / published - 1
    text = f"6ND gives {flop.text}; the paper prints {format_quantity(published, 'flop')} ({signed(gap)})"
    return Finding(text, abs(gap) < 0.01, (flop,))


def _attention_share() -> Finding:
    spec = model_named("GPT-3 175B").spec
    crossing = 6 * spec.hidden
    counts = [flops_per_token(spec, s, "full") for s in (2048, crossing)]
    shares = [count.squares / count.weights for count in counts]
    text = (
        f"GPT-3: attention is {format_quantity(shares[0], 'ratio')} of the other FLOPs at 2,048 tokens and equals them "
        f"near 6H = {crossing:,}, by the full square"
    )
    steps = (
        *(part.explain() for part in counts[0].parts if part.square),
        *(attention_over_rest.explain(seq_len=s, hidden=spec.hidden) for s in (2048, crossing)),
    )
    how = (
        f"Counted by layer, full square: per token forward {format_quantity(counts[0].squares, 'flop')} in attention’s "
        f"two products and {format_quantity(counts[0].weights, 'flop')} in all products with weights, at 2,048 tokens."
    )
    return Finding(text, shares[0] < 0.05 and 0.9 < shares[1] < 1.1, steps, how)


def _clocks(*names: str) -> tuple[Explanation, ...]:
    """The dense bf16 peaks of these accelerators from their clocks, where those are known."""
    return tuple(
        titled(f"{name}: {step.title[0].lower()}{step.title[1:]}", step)
        for name in names
        for step in explain_device(find(name), "bf16")
        if step.name == peak_from_clock.name
    )


def _peaks() -> Finding:
    device = find(H100)
    explained = _clocks(H100, A100)
    text = (
        f"dense bf16: H100 {format_quantity(device.peak('bf16'), 'flop_per_s')}, "
        f"A100 {format_quantity(find(A100).peak('bf16'), 'flop_per_s')}; from the clock {explained[0].text}"
    )
    return Finding(text, abs(explained[0].value / device.peak("bf16") - 1) < 1e-3, explained)


def _tensor_core() -> Finding:
    clock = find(H100).clock
    per_clock = clock.fma_per_clock if clock else 0
    return Finding(
        f"{per_clock} multiply-adds per clock and tensor core; a 4 × 4 × 4 product is 64",
        per_clock == 512,
        _clocks(H100),
        "A 4 × 4 × 4 product is 4 · 4 · 4 = 64 multiply-adds. With so many per clock and unit (w below) the peak would "
        "be an eighth of the datasheet’s.",
    )


def _good_mfu() -> Finding:
    spread = printed_mfu()
    how = (
        "No formula but a survey: all rows of the table of published runs and benchmarks whose source prints an MFU, "
        "each as printed, and the quantiles of these figures. Benchmarks of one source are many rows, so this is no "
        "fair sample of training runs."
    )
    return Finding(spread.text, 0.3 < spread.median < 0.55 and spread.highest < 0.9, how=how)


def _faster() -> Finding:
    h100, a100 = find(H100), find(A100)
    fast, slow, wide = h100.peak("bf16"), a100.peak("bf16"), h100.peak("fp32")
    newer, older, single = (format_quantity(peak, "flop_per_s") for peak in (fast, slow, wide))
    how = "Dense peaks of the datasheets; fp32 is without the matrix units."
    return Finding(
        f"H100 in bf16 {newer}, {fast / slow:.1f} × A100 ({older}) and {fast / wide:.1f} × its own fp32 ({single})",
        fast / slow > 3 and fast / wide > 14,
        _clocks(H100, A100),
        how,
    )


def _mostly_matmul() -> Finding:
    shares: list[str] = []
    steps: list[Explanation] = []
    lowest = 1.0
    for name, length in (("GPT-3 175B", 2048), ("GPT-2 124M", 1024)):
        layer = layer_roofline(
            model_named(name).spec, find(H100), seq_len=length, tokens=8 * length, fused_attention=False, head=False
        )
        share = matmul_share(layer)
        lowest = min(lowest, share)
        shares.append(f"{name} {100 * share:.2f} %")
        steps += [
            titled(
                f"{name}: {operation.name[0].lower()}{operation.name[1:]}, forward", operation.placed.explanations[0]
            )
            for operation in layer
            if operation.phase == "forward" and operation.id in ("up", "softmax")
        ]
    text = f"matmul’s share of the FLOPs of one layer, forward, backward and update: {', '.join(shares)}"
    how = (
        "Every operation of a layer is counted for eight sequences: products by 2·M·N·K and twice that backward, all "
        "else by so many operations per element. The share is the products’ part of the sum. One of each kind:"
    )
    return Finding(text, lowest > 0.95, tuple(steps), how)


def _memory_bound() -> Finding:
    device = find(H100)
    ridge = ridge_point.explain(peak=device.peak("bf16"), bandwidth=device.bandwidth)
    n = 8192
    # bf16, every operand moved once. A norm: sum, square, sum, subtract, scale twice, shift: about 8 FLOPs for each
    # element read (2 B) and written (2 B).
    works = product(1, n, n, n, 2), product(1, 1, n, n, 2), elementwise(n * n, 8, 4)
    names = "Matmul of 8,192 × 8,192 matrices", "The same with one row", "LayerNorm of 8,192 × 8,192 elements"
    steps = tuple(
        titled(name, intensity.explain(flop=float(work.flop), bytes=float(work.bytes)))
        for name, work in zip(names, works, strict=True)
    )
    matmul, small, norm = (step.value for step in steps)
    text = (
        f"8,192³ matmul {matmul:,.0f} FLOP/B, the same with one row {small:.1f}, LayerNorm about {norm:.0f}; "
        f"the ridge is {ridge.text}"
    )
    how = (
        "bf16, every operand moved once. LayerNorm does about 8 FLOPs for each element, which is read and written. "
        "Above the ridge compute is the limit, below it memory."
    )
    return Finding(text, max(norm, small) < ridge.value < matmul, (*steps, ridge), how)


def _one_two_six() -> Finding:
    batch, wide, narrow = 1024, 256, 64
    forward = matmul_flop.explain(m=batch, n=narrow, k=wide, groups=1)
    weight_gradient = matmul_flop.explain(m=wide, n=narrow, k=batch, groups=1)
    input_gradient = matmul_flop.explain(m=batch, n=wide, k=narrow, groups=1)
    backward = (weight_gradient.value + input_gradient.value) / forward.value
    each = (forward.value + weight_gradient.value + input_gradient.value) / (batch * wide * narrow)
    text = (
        f"x (1,024 × 256) @ w (256 × 64): forward 1, backward {backward:g}; together {each:g} FLOPs per weight and row"
    )
    steps = (
        titled("Forward: x @ w", forward),
        titled("Backward: the gradient of w", weight_gradient),
        titled("Backward: the gradient of x", input_gradient),
    )
    return Finding(text, (backward, each) == (2, 6), steps)


COMPUTE: tuple[Claim, ...] = (
    Claim(
        "C1",
        "Compute",
        "FLOPs of a matmul",
        "Multiplying a B × D by a D × K matrix costs 2·B·D·K FLOPs.",
        "convention",
        _matmul,
        Link("lecture", {"claim": "C1", "linear": "true", "lb": "1024", "ld": "256", "lk": "64"}, at="linear"),
        "A multiply-add counts as two. The first product of each sum needs no addition.",
    ),
    Claim(
        "C3",
        "Compute",
        "2, 4 and 6 FLOPs",
        "Forward costs 2 FLOPs per token and parameter, backward 4, training 6.",
        "rule of thumb",
        _six_nd_error,
        Link("compute", {"model": "GPT-2 124M", "seq": "1024", "flops": "true"}, at="flops"),
        "The gap is attention’s products (more) and the embedding lookup (less).",
    ),
    Claim(
        "C7",
        "Compute",
        "70B on 15T tokens",
        "70B parameters on 15T tokens take 143.9 days on 1,024 H100 at MFU 0.5.",
        "exact",
        _napkin_days,
        Link(
            "compute",
            dict(PRESETS[LECTURE]),
        ),
    ),
    Claim(
        "C8",
        "Compute",
        "FLOPs of GPT-3",
        "GPT-3 took 3.14 × 10²³ FLOP.",
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
        "Figures for GPT-4 (2 × 10²⁵ to 3 × 10²⁵ FLOP) are speculation that nobody can check.",
    ),
    Claim(
        "C9",
        "Compute",
        "attention’s N²",
        "Attention’s N² is negligible while the context is much shorter than the parameter count.",
        "needs care",
        _attention_share,
        Link("compute", {"model": "GPT-3 175B", "attn": "full", "seq": "2048", "flops": "true"}, at="flops"),
        "Per token and layer of training the full square is 12·N·H against 72·H²: compare the context with 6H, not "
        "with the parameters. Counted causally, half the square, it is 6·N·H, and what to compare with is 12H.",
    ),
    Claim(
        "C11",
        "Compute",
        "peaks of H100 and A100",
        "An H100 does 1,979 TFLOP/s, half of it without 2:4 sparsity; an A100 312.",
        "holds",
        _peaks,
        Link("compute", {"gpu": H100, "dtype": "bf16", "parts": "true"}, at="parts"),
        "Half of 1,978.9 is the dense peak. A sparse figure is never a peak of dense training.",
    ),
    Claim(
        "C12",
        "Compute",
        "a tensor core’s product",
        "The H100’s tensor core does a 4 × 4 product each clock.",
        "needs care",
        _tensor_core,
        Link("compute", {"gpu": H100, "dtype": "bf16", "parts": "true"}, at="parts"),
        "That was Volta. The H100’s peak needs eight times as much.",
    ),
    Claim(
        "C13",
        "Compute",
        "a good MFU",
        "MFU is the share of the promised FLOP/s; 0.5 is good and 0.9 is out of reach.",
        "holds",
        _good_mfu,
        Link("compute", {"model": "Llama 3.1 405B", "mfu": "50%", "runs": "true"}, at="runs"),
        "Published figures mix attention conventions; a few per cent of difference mean nothing.",
    ),
    Claim(
        "C14",
        "Compute",
        "H100 against A100, bf16 against fp32",
        "An H100 is much faster than an A100, and bf16 than fp32.",
        "holds",
        _faster,
        Link("compute", {"gpu": H100, "dtype": "bf16", "parts": "true"}, at="parts"),
        "Dense datasheet peaks; Measure times bf16 against fp32 on the machine at hand.",
    ),
    Claim(
        "C15",
        "Compute",
        "the share of matmul",
        "Over 95 % of the compute is matmul, forward and backward.",
        "rule of thumb",
        _mostly_matmul,
        Link("compute", {"model": "GPT-3 175B", "gpu": H100, "seq": "2048", "roof": "true", "mb": "14"}, at="roof"),
        "Of the FLOPs. Of the time less, because everything else waits for memory.",
    ),
    Claim(
        "C16",
        "Compute",
        "compute-bound and memory-bound",
        "Matmul is compute-bound; LayerNorm, softmax and cross-entropy are memory-bound.",
        "rule of thumb",
        _memory_bound,
        Link("compute", {"model": "GPT-3 175B", "gpu": H100, "seq": "2048", "roof": "true"}, at="roof"),
        "A matmul with few rows, as in decoding, is memory-bound too.",
    ),
    Claim(
        "C17",
        "Compute",
        "1 : 2 : 6",
        "Forward, backward and all of training cost 1 : 2 : 6.",
        "needs care",
        _one_two_six,
        Link(
            "lecture",
            {"claim": "C17", "linear": "true", "xgrad": "true", "lb": "1024", "ld": "256", "lk": "64"},
            at="linear",
        ),
        "Forward, backward and both are 1 : 2 : 3. The 6 is another quantity: 2 + 4 FLOPs per parameter and token.",
    ),
)
