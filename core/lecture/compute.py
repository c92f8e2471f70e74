"""Claims about compute, checked by the FLOP counts, the accelerator table and the published runs."""

from __future__ import annotations

import math

from core.budget.equations import training_seconds
from core.formula import Explanation
from core.hardware.accelerators import find
from core.hardware.operations import elementwise, intensity, product, ridge_point
from core.lecture.claims import Finding, titled
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

H100 = "H100 SXM"


def matmul() -> Finding:
    flop = matmul_flop.explain(m=1024, n=64, k=256, groups=1)
    additions = 1024 * 64 * 255
    multiplications = 1024 * 64 * 256
    text = (
        f"2 × 1,024 × 256 × 64 = {flop.value:,.0f} FLOP; literally {multiplications:,} products and {additions:,} sums"
    )
    literal = literal_operations.explain(rows=1024, width=256, outputs=64)
    return Finding(
        text,
        flop.value == 33_554_432 and literal.value == additions + multiplications,
        (flop, literal),
        shown=(f"{flop.value:,.0f}",),
    )


def six_nd_error() -> Finding:
    names, gaps = MODELS, list[float]()
    steps: list[Explanation] = []
    for name in names:
        found = rule_error(name)
        counted = train_flop_by_layer.explain(forward=found.forward, tokens=1)
        rule = train_flop_6nd.explain(params=found.model.active, tokens=1)
        gaps.append(found.error)
        steps += [
            titled(f"{name}, one token counted by layer", counted),
            titled(f"{name}, one token by the rule", rule),
        ]
    text = ", ".join(f"{name} {signed(gap)}" for name, gap in zip(names, gaps, strict=True))
    return Finding(
        f"counted by layer (causal, 8,192 tokens; GPT-2 1,024) against 6N: {text}",
        max(abs(g) for g in gaps) < 0.25 and abs(gaps[-1]) < 0.05,
        tuple(steps),
        shown=tuple(signed(gap) for gap in gaps),
        how="The forward pass is counted matrix by matrix; Compute budget takes it apart under "
        "“Where do the FLOPs go”.",
    )


def napkin_days() -> Finding:
    flop = train_flop_6nd.explain(params=70e9, tokens=15e12)
    seconds = training_seconds.explain(flop=flop.value, accelerators=1024, peak=find(H100).peak("bf16"), mfu=0.5)
    days = round(seconds.value / 86400, 1)
    shown = (f"{days:.0f} days",)
    return Finding(f"{flop.text}, {seconds.text}", days == 143.9, (flop, seconds), compared=(143.9, days), shown=shown)


def gpt3() -> Finding:
    exact, rounded = (train_flop_6nd.explain(params=n, tokens=300e9) for n in (model_named("GPT-3 175B").active, 175e9))
    published = next(run.flop for run in published_runs() if run.catalog == "GPT-3 175B" and not math.isnan(run.flop))
    printed = format_quantity(published, "flop")
    text = (
        f"6ND gives {exact.text} with the exact parameter count and {rounded.text} with 175B; the paper prints "
        f"{printed}; the notes’ 3.13 × 10²³ is neither"
    )
    confirms = [round(flop / 1e21) for flop in (exact.value, rounded.value, published)] == [314, 315, 314]
    return Finding(text, confirms, (exact, rounded), shown=(printed,))


def attention_share() -> Finding:
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
    crossed = (f"6H = {crossing:,}",)
    return Finding(text, shares[0] < 0.05 and 0.9 < shares[1] < 1.1, steps, how, shown=crossed)


def mostly_matmul() -> Finding:
    shares: list[str] = []
    steps: list[Explanation] = []
    lowest = 1.0
    for name, length in (("GPT-3 175B", 2048), ("GPT-2 124M", 1024)):
        layer = layer_roofline(
            model_named(name).spec, find(H100), seq_len=length, tokens=8 * length, fused_attention=False, head=False
        )
        share = matmul_share([operation for operation in layer if operation.phase != "update"])
        lowest = min(lowest, share)
        shares.append(f"{name} {100 * share:.2f}%")
        steps += [
            titled(
                f"{name}: {operation.name[0].lower()}{operation.name[1:]}, forward", operation.placed.explanations[0]
            )
            for operation in layer
            if operation.phase == "forward" and operation.id in ("up", "softmax")
        ]
    text = f"matmul’s share of the FLOPs of one layer, forward and backward: {', '.join(shares)}"
    how = (
        "Every operation of a layer is counted for eight sequences: products by 2·M·N·K and twice that backward, all "
        "else by so many operations per element. The share is the products’ part of the sum. One of each kind:"
    )
    return Finding(text, lowest > 0.95, tuple(steps), how, shown=(shares[0].removeprefix("GPT-3 175B "),))


def memory_bound() -> Finding:
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
    written = (f"ridge, {ridge.value:.0f} FLOP/B", "Softmax", "Norms", "Cross-entropy")
    return Finding(text, max(norm, small) < ridge.value < matmul, (*steps, ridge), how, shown=written)


def one_two_six() -> Finding:
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
    return Finding(text, (backward, each) == (2, 6), steps, shown=(f"the {each:g} of 6ND",))


LAYERS = TwoLayers(1024, 256, 64)
"""The two-layer linear model of the lecture, at the sizes that its page begins with."""


def adding() -> Finding:
    n = 4096
    added = elementwise_flop.explain(elements=n * n, per_element=1)
    multiplied = matmul_flop.explain(m=n, n=n, k=n, groups=1)
    layer = layer_roofline(model_named("GPT-3 175B").spec, find(H100), seq_len=2048, tokens=8 * 2048, head=False)
    share = matmul_share([operation for operation in layer if operation.phase != "update"])
    return Finding(
        f"adding two {n:,} × {n:,} matrices {added.value:,.0f} FLOP, multiplying them {multiplied.value:,.0f}: "
        f"{multiplied.value / added.value:,.0f} times as many",
        added.value == n * n and multiplied.value == 2 * n**3,
        (titled("Adding", added), titled("Multiplying", multiplied)),
        shown=(f"{100 * share:.2f}% of a layer’s FLOPs",),
    )


def two_layers() -> Finding:
    b, d, k = LAYERS.rows, LAYERS.width, LAYERS.outputs
    forward, backward = LAYERS.flop("forward"), LAYERS.flop("backward")
    notes = 4 * b * d * k + 4 * b * d * d
    return Finding(
        f"B = 1,024, D = 256, K = 64: forward {forward:,}, backward {backward:,}; the notes count {notes:,}",
        forward == 2 * b * d * d + 2 * b * d * k and backward == 4 * b * d * k + 2 * b * d * d < notes,
        tuple(LAYERS.explain()[:2]),
        "The notes’ count has the gradient of the data x in it, 2·B·D·D that nobody asks for: torch leaves it out.",
        shown=(f"{forward:,} FLOP", f"{backward:,} FLOP"),
    )


def indices() -> Finding:
    (product,) = (p for p in LAYERS.products if p.purpose == "gradient of its input h1")
    shapes = f"{product.left.rows:,} × {product.left.columns}, {product.right.rows} × {product.right.columns}"
    return Finding(
        f"{product.sums}; its factors are {shapes}",
        "w2[j, k]" in product.sums and product.left.columns == product.right.rows,
        (matmul_flop.explain(m=product.left.rows, n=product.out.columns, k=product.left.columns, groups=1),),
        "w2 has D rows, named j, and K columns. A first index i, which counts the rows of x, does not fit it.",
        shown=(product.sums,),
    )


def six_each() -> Finding:
    full = TwoLayers(LAYERS.rows, LAYERS.width, LAYERS.outputs, x_gradient=True)
    each = full.per_weight("w1"), LAYERS.per_weight("w2"), LAYERS.per_weight("w1")
    return Finding(
        f"w2 {each[1]:g} FLOPs per weight and row; w1 {each[2]:g}, with the gradient of the data {each[0]:g}",
        each == (6, 6, 4),
        tuple(full.explain()[:1]),
        shown=(f"the {each[0]:g} of 6ND",),
        how="Two in forward, two for the weight’s gradient, two for the gradient of its input.",
    )


def second_layer_alone() -> Finding:
    b, d, k = LAYERS.rows, LAYERS.width, LAYERS.outputs
    both = LAYERS.flop("backward")
    return Finding(
        f"4·B·D·K is {4 * b * d * k:,}, w2’s part of a backward of {both:,}; 4 · rows · parameters is "
        f"{4 * b * LAYERS.weights:,}",
        both != 4 * b * d * k != 4 * b * LAYERS.weights,
        tuple(LAYERS.explain()[:1]),
        shown=(f"{both:,} FLOP",),
        how="w1 adds 2·B·D·D for its gradient, and as much again where the data asks for one.",
    )


def embedding_share() -> Finding:
    shares: list[str] = []
    steps: list[Explanation] = []
    off: list[float] = []
    for name in ("GPT-2 124M", "Llama 3.1 405B"):
        model = model_named(name)
        forward = flops_per_token(model.spec, 1024, "causal").forward
        counted = train_flop_by_layer.explain(forward=forward, tokens=1)
        steps.append(titled(f"{name}, one token counted by layer", counted))
        tables = model.spec.vocab * model.spec.table_width * (1 if model.spec.tied_head else 2)
        shares.append(f"{name} {format_quantity(tables / model.active, 'ratio')}")
        off.append(tables / model.active)
    whole = flops_per_token(model_named("GPT-2 124M").spec, 1024, "causal")
    head = next(part for part in whole.parts if part.name == "Output head")
    each = head.flop / (model_named("GPT-2 124M").spec.vocab * model_named("GPT-2 124M").spec.hidden)
    return Finding(
        f"per token forward the head takes {each:g} FLOPs for each of its parameters, the embedding none; of all "
        f"parameters they are {', '.join(shares)}",
        each == 2 and off[0] > 0.25 > 0.02 > off[1],
        tuple(steps),
        shown=(f"{100 * head.flop / whole.forward:.1f}%",),
        how="Looking up a row of a table multiplies nothing, the head multiplies each of its weights. GPT-2 uses one "
        "table for both: it counts once in P, and its FLOPs once, in the head.",
    )


def squares_by_hand() -> Finding:
    spec, tokens = model_named("GPT-3 175B").spec, 2048
    counted = 3 * flops_per_token(spec, tokens, "full").squares * tokens
    by_hand = 12 * tokens**2 * spec.layers * spec.hidden
    causal = 3 * flops_per_token(spec, tokens, "causal").squares * tokens
    return Finding(
        f"GPT-3 on 2,048 tokens: 12·N²·L·H = {format_quantity(by_hand, 'flop')}; counted by layer "
        f"{format_quantity(counted, 'flop')}, causally {format_quantity(causal, 'flop')}",
        abs(counted / by_hand - 1) < 1e-9,
        tuple(part.explain() for part in flops_per_token(spec, tokens, "full").parts if part.square),
        "Two products of 2·N²·H each in forward, twice that backward, in every layer.",
        compared=(float(by_hand), float(counted)),
        shown=(f"{significant(by_hand / tokens / 2 / 1e9, 4)} GFLOP",),
    )
