"""einsum as products: layouts, copies, FLOPs and errors equal to torch's, on named cases and on random equations."""

from __future__ import annotations

import random
import string

import einops
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.tensors.layout import TensorLayout
from core.tensors.named_axes.contraction import OperandPlan
from core.tensors.named_axes.einsums import EinsumPlan, explain_einsum
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.allocations import AllocationMeter
from tests.every import every


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def check(equation: str, *tensors: torch.Tensor, words: bool = False) -> EinsumPlan:
    """Layout of the result, FLOPs of the matmuls, operands in three dimensions and bytes inside, against torch."""
    explained = explain_einsum(equation, [layout_of(t) for t in tensors], words=words, element_size=4)
    with Recorder() as recorder, FlopCounterMode(display=False) as counter:
        result = einops.einsum(*tensors, equation) if words else torch.einsum(equation, *tensors)
    assert explained.shape == tuple(result.shape)
    assert sum(pair.flop for pair in explained.pairs if pair.kind == "bmm") == counter.get_total_flops()
    assert [pair.kind for pair in explained.pairs] == recorder.kinds
    plans = [plan for pair in explained.pairs for plan in (pair.left, pair.right) if plan is not None]
    for plan, operand in zip(plans, recorder.operands, strict=True):
        assert plan.layout.shape == operand.shape
        assert longer(plan.layout) == longer(operand)
    assert sum(plan.effect == "copy" for plan in plans) == recorder.copies
    meter = AllocationMeter(torch)
    again = meter.watch(lambda: einops.einsum(*tensors, equation) if words else torch.einsum(equation, *tensors))
    shared = {tensor.untyped_storage()._cdata for tensor in tensors}
    kept = 0 if again.untyped_storage()._cdata in shared else again.untyped_storage().nbytes()
    if all(tensor.dtype == torch.float32 for tensor in tensors):
        assert meter.allocated().total == kept + explained.bytes_inside
    if result.numel():
        assert longer(explained.layout) == longer(layout_of(result))
    return explained


def longer(layout: TensorLayout) -> list[tuple[int, int]]:
    """Size and stride of the dimensions longer than 1, the only ones whose stride is ever used."""
    return [(n, s) for n, s in zip(layout.shape, layout.stride, strict=True) if n != 1]


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the products einsum runs, their operands, and how often reshape clones."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []
        self.operands: list[TensorLayout] = []
        self.copies = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name == "bmm":
            self.kinds.append("bmm")
            self.operands += [layout_of(args[0]), layout_of(args[1])]
        elif name == "mul":
            self.kinds.append("multiply")
        elif name == "clone":
            self.copies += 1
        return func(*args, **(kwargs or {}))


def filled(*shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


def test_attention_scores_are_a_batched_matmul_of_a_transposed_view() -> None:
    explained = check("bhqd,bhkd->bhqk", filled(2, 4, 3, 8), filled(2, 4, 5, 8))
    assert (explained.summed, explained.shape) == (("d",), (2, 4, 3, 5))
    (pair,) = explained.pairs
    assert (pair.batch, pair.rows, pair.columns, pair.inner) == (("b", "h"), ("q",), ("k",), ("d",))
    assert pair.sizes == (8, 3, 5, 8)
    assert pair.call == "(8, 3, 8) @ (8, 8, 5)"
    assert explained.flop == 2 * 8 * 3 * 5 * 8 == explained.explanations[0].value
    assert pair.left is not None
    assert pair.right is not None
    assert (pair.left.reads, pair.right.reads) == ("rows", "columns")
    assert explained.bytes_copied == 0
    assert "batched matmul** (8, 3, 8) @ (8, 8, 5): **1,920 FLOP**, **0 bytes** copied" in explained.headline[0]
    assert "It sums over **d**. batch = b h, M = q, N = k, K = d." in explained.headline[1]


def test_a_head_order_that_cannot_merge_is_copied() -> None:
    # queries as (batch, position, head, d): b and h are not neighbours, so the batch of the matmul cannot be a view
    explained = check("bqhd,bkhd->bhqk", filled(2, 3, 4, 8), filled(2, 5, 4, 8))
    (pair,) = explained.pairs
    assert pair.left is not None
    assert pair.left.effect == "copy"
    assert pair.left.permute == (0, 2, 1, 3)
    assert pair.left.bytes == 2 * 3 * 4 * 8 * 4
    assert pair.left.reason == "a copy: b and h cannot merge, stride 96 ≠ 8 × 4"
    assert explained.bytes_copied == (3 + 5) * 2 * 4 * 8 * 4


def test_the_lecture_example() -> None:
    x, y = filled(2, 3, 4), filled(2, 3, 4)
    assert check("bij,bkj->bik", x, y).shape == (2, 3, 3)
    explained = check("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2", x, y, words=True)
    assert explained.summed == ("hidden",)
    assert explained.pairs[0].rows == ("seq1",)
    assert check("... seq1 hidden, ... seq2 hidden -> ... seq1 seq2", x, y, words=True).pairs[0].batch == ("…0",)


CASES: list[tuple[str, list[tuple[int, ...]]]] = [  # what the random equations below never are
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("ba", [(2, 3)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("...a,...b", [(2, 2), (2, 3)]),
    ("...i,i->", [(2, 3), (3,)]),
    ("aab,b->a", [(3, 3, 2), (2,)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
    ("Ab,c...b,a->ba", [(1, 2), (2, 1, 2), (2,)]),
]


@every(("equation", "shapes"), CASES, ids=[f"{e} {s}" for e, s in CASES])
def test_equals_torch(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check(equation, *(filled(*shape) for shape in shapes))


def test_equals_torch_on_random_equations() -> None:
    rng = random.Random(11)
    copied = several = 0
    for _ in range(250):
        letters = rng.sample(string.ascii_letters, rng.randint(2, 6))
        size = {letter: rng.choice((1, 2, 3, 4)) for letter in letters}
        operands = [
            rng.sample(letters, rng.randint(1, min(4, len(letters)))) for _ in range(rng.choice((1, 2, 2, 2, 3)))
        ]
        seen = sorted({letter for names in operands for letter in names})
        output = rng.sample(seen, rng.randint(0, len(seen)))
        tensors = [shuffled(rng, [size[letter] for letter in names]) for names in operands]
        equation = f"{','.join(''.join(names) for names in operands)}->{''.join(output)}"
        explained = check(equation, *tensors)
        copied += explained.bytes_copied > 0
        several += len(explained.pairs) > 1
        if explained.best_flop is not None:
            assert explained.best_flop <= explained.flop
    assert copied > 20
    assert several > 20


def shuffled(rng: random.Random, shape: list[int]) -> torch.Tensor:
    """A tensor of ``shape`` whose memory order is random."""
    order = rng.sample(range(len(shape)), len(shape))
    return filled(*(shape[d] for d in order)).permute([order.index(d) for d in range(len(shape))])


def test_the_order_of_three_matrices_matters() -> None:
    explained = check("ij,jk,kl->il", filled(2, 30), filled(30, 40), filled(40, 3))
    assert explained.flop == 2 * 2 * 30 * 40 + 2 * 2 * 40 * 3
    assert explained.best_flop == explained.flop
    worse = check("ij,jk,kl->il", filled(40, 30), filled(30, 20), filled(20, 1))
    assert worse.best_order == "1 × (2 × 3)"
    assert worse.best_flop == 2 * 30 * 20 + 2 * 40 * 30 < worse.flop
    assert "The cheapest order, 1 × (2 × 3), needs 3,600 FLOP." in worse.headline[1]


def test_blas_reads_rows_columns_or_neither() -> None:
    def right(plan: EinsumPlan) -> OperandPlan:
        operand_plan = plan.pairs[0].right
        assert operand_plan is not None
        return operand_plan

    x = filled(2, 3)
    assert right(check("ij,jk->ik", x, filled(3, 4))).reads == "rows"
    assert right(check("ij,kj->ik", x, filled(4, 3))).reads == "columns"
    assert right(check("ij,jk->ik", x, filled(6, 8)[::2, ::2])).reads == "neither"


REFUSED: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3)]),
    ("ij,jk->ik", [(2, 3), (4, 5)]),
    ("ij->i", [(2, 3, 4)]),
    ("i...jk->i", [(2, 3)]),
    ("ij->ik", [(2, 3)]),
    ("ij->ii", [(2, 3)]),
    ("ii->i", [(2, 3)]),
    ("i.j->i", [(2, 3)]),
    ("i1->i", [(2, 3)]),
    ("ij->i->j", [(2, 3)]),
    ("...i,...i->i", [(2, 3), (4, 3)]),
    ("i" * 200 + "->i", [(2, 3)]),
    ("->", []),
]


@every(("equation", "shapes"), REFUSED)
def test_what_torch_refuses_is_refused_in_its_words(equation: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.einsum(equation, *(filled(*shape) for shape in shapes))
    with pytest.raises(ExpressionError) as ours:
        explain_einsum(equation, [TensorLayout.contiguous(shape) for shape in shapes])
    assert str(theirs.value).splitlines()[0][:200] in str(ours.value)


def test_refusals_in_words_and_caps() -> None:
    two = [TensorLayout.contiguous((2, 3)), TensorLayout.contiguous((3, 4))]
    for equation in ("a b, b c", "a _b, _b c -> a c", "a 1, 1 c -> a c", "...a b, b c -> ...a c"):
        with pytest.raises(ExpressionError, match="is refused: "):
            explain_einsum(equation, two, words=True)
    with pytest.raises(ExpressionError, match="characters"):
        explain_einsum("i" * 100_000, two)
