"""Operations that memory bounds: norms, softmax, cross-entropy, GELU, a residual addition, and AdamW's step.

FLOPs and bytes are those that predictions count, see `core.hardware.elements`, so that what is measured lies on the
same roofline; what torch moves beyond them shows as time. Forward, in the format that the device computes in; AdamW in
fp32, in one kernel where torch has it. Results are allocated anew in each run, as in training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.benchmark.device import DeviceKind
from core.benchmark.points import Item
from core.benchmark.programme import Programme
from core.benchmark.timing.accuracy import FP32, checked, error_of, exact, format_of, picked
from core.benchmark.timing.bench import Bench, PreparedItem
from core.hardware.elements import (
    ADAMW_BYTES,
    ADAMW_FLOP,
    CROSS_ENTROPY,
    GELU,
    LAYERNORM,
    RESIDUAL,
    RMSNORM,
    SOFTMAX,
    ElementCost,
)
from core.hardware.operations import elementwise

COSTS: Mapping[str, ElementCost] = {
    "LayerNorm": LAYERNORM,
    "RMSNorm": RMSNORM,
    "softmax": SOFTMAX,
    "GELU": GELU,
    "residual addition": RESIDUAL,
    "cross-entropy": CROSS_ENTROPY,
}
"""Operations on a matrix by name, with what they cost per element."""

ADAMW = "AdamW"

ELEMENTS: Mapping[DeviceKind, int] = {"cpu": 2**24, "cuda": 2**28}
"""Elements at most: 32 MiB to 512 MiB in 16 bits. More take longer, and none is slower for it."""

WIDTH, VOCAB = 4_096, 32_768
"""Widths without a plan: of a model, and of its logits."""

_EPS = 1e-5
_LR, _DECAY, _BETAS, _ADAM_EPS = 1e-3, 0.1, (0.9, 0.95), 1e-8
_LOSS_ROWS = 256
_ADAMW_TOLERANCE = 1e-3
"""Of the step, which is a thousandth of the weights that it is the difference of."""

_WORKING = 4
"""Matrices of the largest operation at most: operands, result, and what it makes on the way."""


def items(programme: Programme) -> tuple[Item, ...]:
    """Each operation at the width of the plan's layer and as many rows as it has tokens, or as the device takes.

    Softmax runs over rows as long as the sequence, cross-entropy over the vocabulary. AdamW's step is of the layer's
    feed-forward matrices, without a plan of as many parameters as the device takes.
    """
    layer, most = programme.layer, ELEMENTS[programme.device]
    hidden, tokens = (layer.hidden, layer.tokens) if layer else (WIDTH, most)
    widths = {"softmax": layer.seq_len if layer else WIDTH, "cross-entropy": layer.vocab if layer else VOCAB}
    weights = (3 if layer.gated else 2) * layer.hidden * layer.ffn if layer else most
    result: list[Item] = []
    for name in COSTS:
        width = widths.get(name, hidden)
        rows = max(1, min(tokens, most // width))
        result.append(_item(programme, name, f"{rows:,} × {width:,}", (rows, width)))
    parameters = min(weights, most)
    return (*result, _item(programme, ADAMW, f"{parameters:,} parameters", (parameters,)))


def _item(programme: Programme, name: str, label: str, shape: tuple[int, ...]) -> Item:
    return Item(kind="operations", name=name, label=label, shape=shape, seconds=programme.seconds)


def prepare(bench: Bench, programme: Programme, item: Item) -> PreparedItem:
    """The operation on random data, checked against float64 on a slice; raises `WrongError`, `TooLargeError`."""
    bench.torch.manual_seed(0)
    return _adamw(bench, item) if item.name == ADAMW else _on_rows(bench, item)


def _on_rows(bench: Bench, item: Item) -> PreparedItem:
    torch, how, name = bench.torch, format_of(bench), item.name
    rows, width = item.shape
    bench.need(_WORKING * rows * width * how.bytes, f"the operands of {name}")
    options = {"dtype": getattr(torch, how.torch_name), "device": bench.place}
    x = torch.randn(rows, width, **options)
    other = torch.randn_like(x) if name == "residual addition" else x
    gain, bias = (torch.randn(width, **options) for _ in range(2))
    targets = torch.randint(width, (rows,), device=bench.place)
    call = _call(torch, name, x, other, gain, bias, targets)

    def right(some: Any) -> Any:
        """What the same function gives for some of the rows in float64."""
        a, b = (exact(torch, each[some.to(bench.place)]) for each in (x, other))
        return _call(torch, name, a, b, exact(torch, gain), exact(torch, bias), targets.cpu()[some])()

    if name == "cross-entropy":  # a mean over all rows; the float64 of few at a time is there at once
        mean = sum(right(some) * len(some) for some in torch.arange(rows).split(_LOSS_ROWS)) / rows
        error = error_of(torch, call(), mean)
    else:
        some = picked(torch, rows)
        error = error_of(torch, call()[some.to(bench.place)], right(some))
    cost = COSTS[name]
    work = elementwise(float(rows * width), cost.ahead, cost.moved * how.bytes)
    odd = bench.kind == "cpu" and how is FP32
    return PreparedItem(
        call,
        item.shape,
        flop=float(work.flop),
        bytes=float(work.bytes),
        relative_error=checked(error, how.tolerance),
        note="in fp32: this processor has no instructions for bf16" if odd else f"in {how.name}",
    )


def _call(torch: Any, name: str, x: Any, other: Any, gain: Any, bias: Any, targets: Any) -> Callable[[], Any]:
    """The operation on its operands, of which each takes its own."""
    functional, width = torch.nn.functional, x.shape[1:]
    calls: Mapping[str, Callable[[], Any]] = {
        "LayerNorm": lambda: functional.layer_norm(x, width, gain, bias, _EPS),
        "RMSNorm": lambda: functional.rms_norm(x, width, gain, _EPS),
        "softmax": lambda: torch.softmax(x, -1),
        "GELU": lambda: functional.gelu(x, approximate="tanh"),
        "residual addition": lambda: x + other,
        "cross-entropy": lambda: functional.cross_entropy(x, targets),
    }
    return calls[name]


def adamw(torch: Any, weights: list[Any], rate: float) -> tuple[Any, str]:
    """AdamW over ``weights``: in one kernel where torch has that for their device, else over all tensors at once."""
    options = {"lr": rate, "betas": _BETAS, "eps": _ADAM_EPS, "weight_decay": _DECAY}
    try:
        return torch.optim.AdamW(weights, fused=True, **options), "fused"
    except RuntimeError:
        return torch.optim.AdamW(weights, foreach=True, **options), "foreach"


def _adamw(bench: Bench, item: Item) -> PreparedItem:
    """One step of AdamW on one long vector."""
    torch, (count,) = bench.torch, item.shape
    # Weight, gradient and both moments; the unfused one makes as much again on the way.
    bench.need(2 * ADAMW_BYTES * count, "AdamW’s weights and states")
    weights = torch.randn(count, device=bench.place, requires_grad=True)
    weights.grad = torch.randn(count, device=bench.place)
    places = picked(torch, count).to(bench.place)
    w, g = exact(torch, weights[places]), exact(torch, weights.grad[places])
    optimizer, how = adamw(torch, [weights], _LR)
    optimizer.step()
    # The first step's moments, corrected, are the gradient and its square.
    right = -_LR * (_DECAY * w + g / (g.abs() + _ADAM_EPS))
    error = error_of(torch, exact(torch, weights[places]) - w, right)
    work = elementwise(float(count), ADAMW_FLOP, ADAMW_BYTES)
    return PreparedItem(
        optimizer.step,
        item.shape,
        flop=float(work.flop),
        bytes=float(work.bytes),
        relative_error=checked(error, _ADAMW_TOLERANCE),
        note=f"in fp32, {how}",
    )
