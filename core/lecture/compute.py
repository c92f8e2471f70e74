"""Checks of claims on compute, by FLOP counts and published runs."""

from __future__ import annotations

import math

from core.budget.equations import training_seconds
from core.formula import Explanation
from core.hardware.accelerators import find
from core.hardware.operations import elementwise, intensity, product, ridge_point
from core.lecture.claims import Finding, titled
from core.messages import message
from core.models.attention_share import attention_over_rest
from core.models.catalog import model_named
from core.models.flops import flops_per_token, train_flop_6nd, train_flop_by_layer
from core.models.linear import TwoLayers, literal_operations
from core.models.rule_of_six import MODELS, rule_error
from core.products import elementwise_flop, matmul_flop
from core.runs.published import published_runs
from core.step_time.layer_roofline import layer_roofline, matmul_share
from core.units import format_quantity, significant
from core.wording import signed

H100, GPT3, GPT2 = "H100 SXM", "GPT-3 175B", "GPT-2 124M"
LAYERS = TwoLayers(1024, 256, 64)
"""The two-layer linear model of the lecture, at the default sizes of its panel."""


def check_gpt3_flops() -> Finding:
    exact, rounded = (train_flop_6nd.explain(params=n, tokens=300e9) for n in (model_named(GPT3).active, 175e9))
    printed = next(run.flop for run in published_runs() if run.catalog == GPT3 and not math.isnan(run.flop))
    return Finding(
        message("lecture.C8.found", exact=exact.value, rounded=rounded.value, printed=printed),
        [round(flop / 1e21) for flop in (exact.value, rounded.value, printed)] == [314, 315, 314],
        (exact, rounded),
        shown=(str(format_quantity(printed, "flop")),),
    )


def check_napkin_days() -> Finding:
    flop = train_flop_6nd.explain(params=70e9, tokens=15e12)
    seconds = training_seconds.explain(flop=flop.value, accelerators=1024, peak=find(H100).peak("bf16"), mfu=0.5)
    days = round(seconds.value / 86400, 1)
    return Finding(
        message("lecture.C7.found", flop=flop.value, days=f"{days} days"),
        days == 143.9,
        (flop, seconds),
        compared=(143.9, days),
        shown=(f"{days:.0f} days",),
    )


def check_matmul() -> Finding:
    flop = matmul_flop.explain(m=1024, n=64, k=256, groups=1)
    literal = literal_operations.explain(rows=1024, width=256, outputs=64)
    multiplications, additions = 1024.0 * 64 * 256, 1024.0 * 64 * 255
    return Finding(
        message("lecture.C1.found", flop=flop.value, multiplications=multiplications, additions=additions),
        flop.value == 33_554_432 and literal.value == additions + multiplications,
        (flop, literal),
        shown=(f"{flop.value:,.0f}",),
    )


def check_addition() -> Finding:
    n = 4096
    added = elementwise_flop.explain(elements=n * n, per_element=1)
    multiplied = matmul_flop.explain(m=n, n=n, k=n, groups=1)
    factor = multiplied.value / added.value
    layer = layer_roofline(model_named(GPT3).spec, find(H100), seq_len=2048, tokens=8 * 2048, head=False)
    share = matmul_share([operation for operation in layer if operation.phase != "update"])
    return Finding(
        message("lecture.C2.found", added=added.value, multiplied=multiplied.value, factor=factor),
        added.value == n * n and multiplied.value == 2 * n**3,
        (titled("Adding", added), titled("Multiplying", multiplied)),
        shown=(f"{100 * share:.2f}%",),
    )


def check_rule_of_six() -> Finding:
    errors = [rule_error(name) for name in MODELS]
    gpt2, small, large = (found.error for found in errors)
    steps = [
        titled(f"{found.model.name}, one token {way}", explanation)
        for found in errors
        for way, explanation in (
            ("counted by layer", train_flop_by_layer.explain(forward=found.forward, tokens=1)),
            ("by the rule", train_flop_6nd.explain(params=found.model.active, tokens=1)),
        )
    ]
    return Finding(
        message("lecture.C3.found", gpt2=gpt2, small=small, large=large),
        max(map(abs, (gpt2, small, large))) < 0.25 and abs(large) < 0.05,
        tuple(steps),
        message("lecture.C3.how"),
        shown=tuple(map(signed, (gpt2, small, large))),
    )


def check_two_layers() -> Finding:
    b, d, k = LAYERS.rows, LAYERS.width, LAYERS.outputs
    forward, backward = LAYERS.flop("forward"), LAYERS.flop("backward")
    notes = 4 * b * d * k + 4 * b * d * d
    return Finding(
        message("lecture.C4.found", forward=float(forward), backward=float(backward), notes=float(notes)),
        forward == 2 * b * d * d + 2 * b * d * k and backward == 4 * b * d * k + 2 * b * d * d < notes,
        tuple(LAYERS.explain()[:2]),
        message("lecture.C4.how"),
        shown=(f"{forward:,} FLOP", f"{backward:,} FLOP"),
    )


def check_gradient_indices() -> Finding:
    (of_h1,) = (p for p in LAYERS.products if p.out.name == "h1.grad")
    left, right = (f"{matrix.rows:,} × {matrix.columns:,}" for matrix in (of_h1.left, of_h1.right))
    return Finding(
        message("lecture.C5.found", sums=of_h1.sums, left=left, right=right),
        "w2[j, k]" in of_h1.sums and of_h1.left.columns == of_h1.right.rows,
        (matmul_flop.explain(m=of_h1.left.rows, n=of_h1.out.columns, k=of_h1.left.columns, groups=1),),
        message("lecture.C5.how"),
        shown=(of_h1.sums,),
    )


def check_total_of_backward() -> Finding:
    b, d, k = LAYERS.rows, LAYERS.width, LAYERS.outputs
    second, backward, notes = 4 * b * d * k, LAYERS.flop("backward"), 4 * b * LAYERS.weights
    return Finding(
        message("lecture.C19.found", second=float(second), backward=float(backward), notes=float(notes)),
        backward != second != notes,
        tuple(LAYERS.explain()[:1]),
        message("lecture.C19.how"),
        shown=(f"{backward:,} FLOP",),
    )


def check_flops_per_weight() -> Finding:
    full = TwoLayers(LAYERS.rows, LAYERS.width, LAYERS.outputs, x_gradient=True)
    w1_full, w2, w1 = full.per_weight("w1"), LAYERS.per_weight("w2"), LAYERS.per_weight("w1")
    return Finding(
        message("lecture.C6.found", w1_full=w1_full, w2=w2, w1=w1),
        (w1_full, w2, w1) == (6, 6, 4),
        tuple(full.explain()[:1]),
        message("lecture.C6.how"),
        shown=(f"the {w1_full:g} of 6ND",),
    )


def check_ratio_of_passes() -> Finding:
    batch, wide, narrow = 1024, 256, 64
    forward = matmul_flop.explain(m=batch, n=narrow, k=wide, groups=1)
    of_weight = matmul_flop.explain(m=wide, n=narrow, k=batch, groups=1)
    of_input = matmul_flop.explain(m=batch, n=wide, k=narrow, groups=1)
    backward = (of_weight.value + of_input.value) / forward.value
    each = (forward.value + of_weight.value + of_input.value) / (batch * wide * narrow)
    return Finding(
        message("lecture.C17.found", backward=backward, each=each),
        (backward, each) == (2, 6),
        (
            titled("Forward: x @ w", forward),
            titled("Backward: the gradient of w", of_weight),
            titled("Backward: the gradient of x", of_input),
        ),
        shown=(f"the {each:g} of 6ND",),
    )


def check_embedding_and_head() -> Finding:
    models = [model_named(name) for name in (GPT2, "Llama 3.1 405B")]
    gpt2, large = (
        model.spec.vocab * model.spec.table_width * (1 if model.spec.tied_head else 2) / model.active
        for model in models
    )
    counts = [flops_per_token(model.spec, 1024, "causal") for model in models]
    head = next(part for part in counts[0].parts if part.name == "Output head")
    each = head.flop / (models[0].spec.vocab * models[0].spec.hidden)
    return Finding(
        message("lecture.C10.found", each=each, gpt2=gpt2, large=large),
        each == 2 and gpt2 > 0.25 > 0.02 > large,
        tuple(
            titled(
                f"{model.name}, one token counted by layer", train_flop_by_layer.explain(forward=c.forward, tokens=1)
            )
            for model, c in zip(models, counts, strict=True)
        ),
        message("lecture.C10.how"),
        shown=(f"{100 * head.flop / counts[0].forward:.1f}%",),
    )


def check_share_of_attention() -> Finding:
    spec = model_named(GPT3).spec
    crossing = 6 * spec.hidden
    short, long = (flops_per_token(spec, s, "full") for s in (2048, crossing))
    share, at_crossing = short.squares / short.weights, long.squares / long.weights
    return Finding(
        message("lecture.C9.found", share=share, crossing=float(crossing)),
        share < 0.05 and 0.9 < at_crossing < 1.1,
        (
            *(part.explain() for part in short.parts if part.square),
            *(attention_over_rest.explain(seq_len=s, hidden=spec.hidden) for s in (2048, crossing)),
        ),
        message("lecture.C9.how", attention=short.squares, weights=short.weights),
        shown=(f"6H = {crossing:,}",),
    )


def check_attention_by_hand() -> Finding:
    spec, tokens = model_named(GPT3).spec, 2048
    full, causal = (3.0 * flops_per_token(spec, tokens, kind).squares * tokens for kind in ("full", "causal"))
    by_hand = 12.0 * tokens**2 * spec.layers * spec.hidden
    return Finding(
        message("lecture.C20.found", by_hand=by_hand, counted=full, causal=causal),
        abs(full / by_hand - 1) < 1e-9,
        tuple(part.explain() for part in flops_per_token(spec, tokens, "full").parts if part.square),
        message("lecture.C20.how"),
        compared=(by_hand, full),
        shown=(f"{significant(by_hand / tokens / 2 / 1e9, 4)} GFLOP",),
    )


def check_share_of_matmuls() -> Finding:
    shares, steps = list[float](), list[Explanation]()
    for name, length in ((GPT3, 2048), (GPT2, 1024)):
        layer = layer_roofline(
            model_named(name).spec, find(H100), seq_len=length, tokens=8 * length, fused_attention=False, head=False
        )
        shares.append(matmul_share([operation for operation in layer if operation.phase != "update"]))
        steps += [
            titled(
                f"{name}: {operation.name[0].lower()}{operation.name[1:]}, forward", operation.placed.explanations[0]
            )
            for operation in layer
            if operation.phase == "forward" and operation.row in ("up", "softmax")
        ]
    return Finding(
        message("lecture.C15.found", gpt3=shares[0], gpt2=shares[1]),
        min(shares) > 0.95,
        tuple(steps),
        message("lecture.C15.how"),
        shown=(f"{100 * shares[0]:.2f}%",),
    )


def check_bounds() -> Finding:
    device, n = find(H100), 8192
    ridge = ridge_point.explain(peak=device.peak("bf16"), bandwidth=device.bandwidth)
    # bf16, every operand moved once. A norm: sum, square, sum, subtract, scale twice, shift: about 8 FLOPs for each
    # element read (2 B) and written (2 B).
    works = {
        "Matmul of 8,192 × 8,192 matrices": product(1, n, n, n, 2),
        "The same with one row": product(1, 1, n, n, 2),
        "LayerNorm of 8,192 × 8,192 elements": elementwise(n * n, 8, 4),
    }
    steps = tuple(
        titled(name, intensity.explain(flop=float(work.flop), bytes=float(work.bytes))) for name, work in works.items()
    )
    matmul, row, norm = (step.value for step in steps)
    return Finding(
        message("lecture.C16.found", matmul=matmul, row=row, norm=norm, ridge=ridge.value),
        max(norm, row) < ridge.value < matmul,
        (*steps, ridge),
        message("lecture.C16.how"),
        shown=(f"{ridge.value:.0f} FLOP/B", "Softmax", "Norms", "Cross-entropy"),
    )
