"""The mean layer under the roofline: its operations, each with its FLOPs, bytes, and least time.

The bytes convention is that of `core.hardware.operations`: each operand read once, each result written once, one
kernel per operation. FLOPs per element outside the matrix products are those of `core.hardware.operations`.

In a dtype below 16 bits only the products with a layer's own weights run: they read it and write 16 bits. Attention's
products of activations, softmax, norms, the router and the output head stay in 16 bits, as DeepSeek-V3 trained
(arXiv:2412.19437, section 3.3.1) and as Transformer Engine does unless told otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.formula import Explanation
from core.hardware.accelerators import Accelerator
from core.hardware.cluster import Rates
from core.hardware.operations import (
    ADAMW_BYTES,
    ADAMW_FLOP,
    CROSS_ENTROPY,
    GELU,
    LAYERNORM,
    RESIDUAL,
    RMSNORM,
    SOFTMAX,
    SWIGLU,
    ElementCost,
    Placed,
    Value,
    Work,
    band,
    elementwise,
    place,
    product,
)
from core.messages import Message, message
from core.models import operation as ops
from core.models.components import weight_flop
from core.models.operations import operations
from core.models.parameters import parameters
from core.models.spec import TransformerSpec

Phase: TypeAlias = Literal["forward", "backward", "update"]
Kind: TypeAlias = Literal["matmul", "other"]

ELEMENT_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp6": 0.75, "fp4": 0.5}
"""Bytes per element in each dtype."""

_WIDE = ("bf16", "fp16")

_ROWS: Mapping[str, str] = {
    "self_attn.q_proj": "qkv",
    "self_attn.k_proj": "qkv",
    "self_attn.v_proj": "qkv",
    "self_attn.q_a_proj": "q_down",
    "self_attn.q_b_proj": "q_up",
    "self_attn.kv_a_proj_with_mqa": "kv_down",
    "self_attn.kv_b_proj": "kv_up",
    "self_attn": "attention",
    "self_attn.indexer": "indexer",
    "self_attn.o_proj": "output",
    "mlp.gate_proj": "up",
    "mlp.up_proj": "up",
    "mlp.act_fn": "activation",
    "mlp.down_proj": "down",
    "mlp.gate": "router",
    "mlp.experts.gate_proj": "experts_up",
    "mlp.experts.up_proj": "experts_up",
    "mlp.experts.act_fn": "activation",
    "mlp.experts.down_proj": "experts_down",
    "mlp.shared_expert.gate_proj": "shared_up",
    "mlp.shared_expert.up_proj": "shared_up",
    "mlp.shared_expert.down_proj": "shared_down",
    "mlp.shared_expert_gate": "shared_gate",
}
"""Operation → its row. Consecutive matmuls of one row that read one tensor are one."""

_ENDS = ("embedding", "head", "prediction")
"""Groups of parameters that are in no layer."""


@dataclass(frozen=True, slots=True)
class LayerOperation:
    """One operation of a layer, or of the head, on the roofline.

    row: its name in ids `step.op.…`. kind: matmul, or anything else. phase: forward, backward (both gradients), or
    update (once per step). in_layer: False for the head, which the model has once. dtype: of a matmul's factors and
    its peak. share: of the model's layers, those that run it; ``placed`` is of one such layer.
    """

    row: str
    kind: Kind
    phase: Phase
    placed: Placed
    in_layer: bool
    dtype: str
    share: float

    @property
    def name(self) -> Message:
        """Its name for a reader."""
        return message(f"step.op.{self.row}")

    @property
    def flop(self) -> Value:
        """FLOPs of one micro-batch in a mean layer."""
        return np.multiply(self.placed.work.flop, self.share)

    @property
    def seconds(self) -> Value:
        """Least seconds of one micro-batch in a mean layer."""
        return np.multiply(self.placed.seconds, self.share)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Its FLOPs, bytes and times, under titles that name the operation."""
        return tuple(step.about(f"{self.name}, {self.phase}") for step in self.placed.explanations)


def wide_dtype(device: Accelerator, dtype: str) -> str:
    """The dtype of all that does not run in ``dtype`` where that is below 16 bits; else ``dtype`` itself."""
    known = [wide for wide in _WIDE if device.peak(wide) == device.peak(wide)]
    return known[0] if ELEMENT_BYTES[dtype] < 2 and known else dtype


def peaks_of(device: Accelerator, dtype: str, rates: Rates | None = None) -> dict[str, float]:
    """FLOP/s of products with weights in ``dtype``, and of those that stay wider where there are any, by dtype."""
    rates = rates or Rates()
    return {name: rates.product(name, device.peak(name)) for name in (dtype, wide_dtype(device, dtype))}


class _Sheet:
    """Collects operations, forward and backward at once."""

    def __init__(self, device: Accelerator, dtype: str, rates: Rates) -> None:
        self.narrow, self.wide = dtype, wide_dtype(device, dtype)
        self.peak = peaks_of(device, dtype, rates)
        vector = device.peak("fp32")
        # Matrix units do no exponentials; without a known vector rate the ridge is taken from the matrix one.
        self.vector = vector if vector == vector else self.peak[self.wide]
        self.bandwidth = rates.of("memory", device.bandwidth)
        self.element = ELEMENT_BYTES[self.wide]
        self.found: list[LayerOperation] = []
        self.in_layer, self.share = True, 1.0

    def add(self, row: str, kind: Kind, phase: Phase, work: Work, dtype: str = "") -> None:
        dtype = dtype or self.wide
        placed = place(work, self.peak[dtype] if kind == "matmul" else self.vector, self.bandwidth)
        self.found.append(LayerOperation(row, kind, phase, placed, self.in_layer, dtype, self.share))

    def weights(
        self, row: str, groups: Value, rows: Value, inner: Value, columns: Value, *, wide: bool = False
    ) -> None:
        """Add a matmul with weights, in the narrow dtype unless ``wide``."""
        dtype = self.wide if wide else self.narrow
        element, result = ELEMENT_BYTES[dtype], self.element
        # The gradient of either factor is a product of the same three sizes in another order.
        inputs = product(groups, rows, columns, inner, element, result)
        weights = product(groups, inner, rows, columns, element, result)
        self.add(row, "matmul", "forward", product(groups, rows, inner, columns, element, result), dtype)
        self.add(row, "matmul", "backward", inputs + weights, dtype)

    def band(self, row: str, groups: Value, rows: Value, inner: Value, span: Value) -> None:
        """Add a matmul of activations: scores, or values."""
        forward = band(groups, rows, inner, span, self.element)
        self.add(row, "matmul", "forward", forward)
        self.add(row, "matmul", "backward", forward + forward)

    def each(self, row: str, elements: Value, cost: ElementCost) -> None:
        self.add(row, "other", "forward", elementwise(elements, cost.ahead, self.element * cost.moved))
        self.add(row, "other", "backward", elementwise(elements, cost.back, self.element * cost.moved_back))


def layer_roofline(
    spec: TransformerSpec,
    device: Accelerator,
    *,
    dtype: str = "bf16",
    seq_len: int,
    tokens: float | npt.NDArray[np.float64],
    fused_attention: bool = True,
    head: bool = True,
    rates: Rates | None = None,
) -> tuple[LayerOperation, ...]:
    """Return every operation of a mean layer of ``spec`` on ``device``, for a micro-batch of ``tokens``.

    tokens: whole sequences of ``seq_len``; fewer make one shorter sequence. An array sweeps over micro-batches, and
    every figure of the result is an array then. fused_attention: scores never leave the chip (FlashAttention), so
    that scores, softmax and values are one operation on what the mask leaves, with the scores computed once more
    backward and the arithmetic of the softmax left out; otherwise they are three, on every score within the window,
    masked or not. Their products count as `core.models.flops` does, "causal" and "full". head: the output head, the
    cross-entropy of its logits and its update too. Operations that only some layers run count by their share of the
    layers; multi-token prediction is left out. Tokens are spread evenly over experts. An update is of a layer's (or the
    head's) own parameters, once per step. rates: measured ones, in place of the datasheet's peaks and bandwidth.

    Raises `BudgetError` for a dtype without a known peak, and for fewer than one token.
    """
    if dtype not in ELEMENT_BYTES or device.peak(dtype) != device.peak(dtype):
        raise BudgetError("dtype", message("step.error.no_peak", dtype=dtype, device=device.name))
    if not (np.all(np.isfinite(tokens)) and np.all(np.asarray(tokens) >= 1) and seq_len >= 1):
        raise BudgetError("tokens", message("step.error.tokens"))
    t: Value = np.asarray(tokens, dtype=np.float64) if isinstance(tokens, np.ndarray) else float(tokens)
    length: Value = np.minimum(t, seq_len) if isinstance(t, np.ndarray) else min(t, float(seq_len))
    sheet, norm = _Sheet(device, dtype, rates or Rates()), LAYERNORM if spec.norm_vectors == 2 else RMSNORM
    elements = defaultdict[str, float](float)
    layer = [op for op in operations(spec) if op.block != "mtp" and not isinstance(op, ops.Logits)]
    for _, group in groupby(layer, lambda op: (_row_of(op), op.reads, op.layers) if isinstance(op, ops.Linear) else op):
        together = list(group)
        op, row = together[0], _row_of(together[0])
        width, sheet.share = op.layers * op.copies * op.makes[0].width / spec.layers, op.layers / spec.layers
        match op:
            case ops.AttentionCore():
                _square(sheet, row, op, t, length, fused_attention)
            case ops.Linear():
                _matmul(sheet, row, op, sum(one.weights[0].rows for one in together), t)
            case ops.Scan() | ops.Convolution():
                kind, moved = "matmul" if isinstance(op, ops.Scan) else "other", op.makes[0].width
                moved = sheet.element * (moved + sum(x.width for x in op.reads))
                work = Work(np.multiply(t, weight_flop(op)), np.multiply(t, moved))
                sheet.add(row, kind, "forward", work)
                sheet.add(row, kind, "backward", work + work)
            case ops.Norm() if op.block not in ("embedding", "head"):
                elements["norms"] += width
            case ops.Add() if op.makes[0].stream and op.block != "embedding":
                elements["residual"] += width
            case ops.Activation():
                elements["activation"] += width
            case ops.Multiply() if not op.name.endswith(".glu"):
                elements["gate"] += width
            case _:
                pass
    sheet.share = 1.0
    costs = {"norms": norm, "activation": SWIGLU if spec.glu else GELU, "gate": SWIGLU, "residual": RESIDUAL}
    for row in elements:
        sheet.each(row, np.multiply(t, elements[row]), costs[row])
    own = sum(part.total for part in parameters(spec).components if part.group not in _ENDS) / spec.layers
    sheet.add("update", "other", "update", _update(own, t))
    if head:
        sheet.in_layer = False
        sheet.weights("head", 1.0, t, spec.table_width, spec.vocab, wide=True)
        sheet.each("loss", np.multiply(t, spec.vocab), CROSS_ENTROPY)
        sheet.add("head_update", "other", "update", _update(spec.table_width * spec.vocab, t))
    return tuple(sheet.found)


def _row_of(op: ops.Op) -> str:
    """Return the row of an operation."""
    other = "scan" if isinstance(op, ops.Scan) else "convolution" if isinstance(op, ops.Convolution) else "other"
    row = _ROWS.get(op.name, other)
    return "q_up" if row == "qkv" and "mla_up_proj" in op.makes[0].modules else row


def _matmul(sheet: _Sheet, row: str, op: ops.Linear, columns: int, t: Value) -> None:
    """Add a matmul of so many columns: those of all matmuls that read its input at once."""
    (x,), (y,), weight = op.reads, op.makes, op.weights[0]
    wide, groups, rows = "moe" in y.modules and x.split == y.split, 1.0, t
    if isinstance(op, ops.GroupedLinear):
        copies = np.multiply(t, op.copies)
        # With fewer copies than experts only so many experts have work.
        groups = np.minimum(copies, weight.count)
        rows = np.divide(copies, groups)
    sheet.weights(row, groups, rows, weight.columns, columns, wide=wide)


def _square(sheet: _Sheet, row: str, core: ops.AttentionCore, t: Value, length: Value, fused: bool) -> None:
    """Add scores, softmax, and values; each head of each sequence is one matmul."""
    keys, most = np.divide(length, core.every), core.window or core.chosen
    span = np.minimum(keys, most) if most else keys
    heads = np.multiply(np.divide(t, length), core.heads)
    both = core.key_dim + core.value_dim
    if not fused:
        sheet.band("scores", heads, length, core.key_dim, span)
        sheet.each("softmax", np.multiply(heads, np.multiply(length, span)), SOFTMAX)
        sheet.band("values", heads, length, core.value_dim, span)
        return
    # The first tokens of a sequence see half a window on average, the others a whole one.
    seen = np.subtract(span, np.divide(np.multiply(span, span), np.multiply(keys, 2)))
    pairs = np.multiply(np.multiply(heads, length), seen)
    widths = core.reads[0].width + core.heads * core.value_dim
    widths += sum(x.width for x in {*core.reads[1:]}) / core.every
    moved = np.multiply(t, sheet.element * widths)
    sheet.add(row, "matmul", "forward", Work(np.multiply(pairs, 2.0 * both), moved))
    # Backward: the scores again, and the gradients of both factors of both products; five products for forward's two.
    again = np.multiply(pairs, 4.0 * both + 2.0 * core.key_dim)
    sheet.add(row, "matmul", "backward", Work(again, np.multiply(moved, 2)))


def _update(own: float, t: Value) -> Work:
    """Return the work of AdamW on so many parameters."""
    return elementwise(np.multiply(t, 0) + own if isinstance(t, np.ndarray) else own, ADAMW_FLOP, ADAMW_BYTES)


def matmul_share(operations: Sequence[LayerOperation]) -> float:
    """Return the share of the FLOPs of these operations in matmuls; of arrays, at their last entry."""

    def last(value: Value) -> float:
        return float(np.asarray(value).flat[-1])

    total = sum(last(operation.flop) for operation in operations)
    return sum(last(operation.flop) for operation in operations if operation.kind == "matmul") / total
