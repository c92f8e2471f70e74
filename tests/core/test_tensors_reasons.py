"""Writes and who sees them; why a step is a view, a copy or refused; fixes that work."""

from __future__ import annotations

import warnings

import pytest
import torch

from core.tensors.tracing.trace import trace
from core.views.tensors.text import headline
from tests.every import every


@every(
    ("expression", "written", "x"),
    [
        ("x[0, 0] = 100", (0,), (100, 1, 2, 3, 4, 5)),
        ("x[:, 1] += 10", (1, 4), (0, 11, 2, 3, 14, 5)),
        ("x[x > 2] = 0", (3, 4, 5), (0, 1, 2, 0, 0, 0)),
        ("x[[1, 0], [2, 2]] *= 10", (2, 5), (0, 1, 20, 3, 4, 50)),
        ("x[torch.tensor([1])] = x[0] + 0", (3, 4, 5), (0, 1, 2, 0, 1, 2)),
        ("y = x.t()\ny //= 2", (0, 1, 2, 3, 4, 5), (0, 0, 1, 1, 2, 2)),
        ("x.diagonal().zero_()", (0, 4), (0, 1, 2, 3, 0, 5)),
        ("x.add_(x)", (0, 1, 2, 3, 4, 5), (0, 2, 4, 6, 8, 10)),
        ("x.view(6)[::2].mul_(torch.tensor([1, 2, 3]))", (0, 2, 4), (0, 1, 4, 3, 12, 5)),
        ("x.copy_(x.flip(0))", (0, 1, 2, 3, 4, 5), (3, 4, 5, 0, 1, 2)),
        ("x[:0] = 5", (), (0, 1, 2, 3, 4, 5)),
    ],
)
def test_writes_mark_their_cells_and_reach_x(expression: str, written: tuple[int, ...], x: tuple[int, ...]) -> None:
    run = trace(expression + "\nx", (2, 3))
    write = next(step for step in run if step.kind == "write")
    assert write.written == written
    assert write.bytes_allocated == 0
    assert run.last.values == x
    if written:
        assert write.changed[0] == 0
        assert write.after[0] == x


def test_every_tensor_that_sees_a_write_is_named() -> None:
    """A column, a row that it crosses, one that it does not, a copy, and the same bytes as another type."""
    text = "a = x[:, 0]\nb = x[1]\nc = x[:, 1:]\nd = x.clone()\ne = x.view(torch.int32)\nx[1, 0] = -1"
    run = trace(text, (2, 3))
    changed = [(run[n].name, values) for n, values in zip(run.last.changed, run.last.after, strict=True)]
    assert changed == [
        ("x", (0, 1, 2, -1, 4, 5)),
        ("a", (0, -1)),
        ("b", (-1, 4, 5)),
        ("e", (0, 0, 1, 0, 2, 0, -1, -1, 4, 0, 5, 0)),
    ]
    assert run[4].values == (0, 1, 2, 3, 4, 5)


def test_writes_through_wider_elements() -> None:
    """Three bytes of storage hold one number of two bytes; the third byte belongs to the narrow view alone."""
    run = trace("y = x[:2].view(torch.int16)\ny += 1\nx", (3,), dtype="uint8")
    assert run.last.values == (1, 1, 2)
    assert [run[n].label for n in run[3].changed] == ["x", "x[:2]", "y"]


def test_a_write_into_a_piece_reaches_the_split() -> None:
    run = trace("a, b = x.chunk(2)\nb[0] = 9", (6,))
    assert [run[n].label for n in run.last.changed] == ["x", "x.chunk(2)", "b"]
    assert trace("a = x[:3]\nb = x[3:]\nb += 1", (6,)).last.changed == (0, 2)


def test_the_overlap_hazard() -> None:
    """torch runs it, element after element; the cells in the middle are incremented more than once or not as hoped."""
    run = trace("x.as_strided((4, 3), (1, 1)).add_(1)", (6,))
    assert run.last.kind == "write"
    assert run.last.storage_values != (1, 2, 3, 4, 5, 6)
    refused = trace("x.expand(3, 4).add_(1)", (3, 1)).last
    assert refused.error_type == "RuntimeError"
    assert "more than one element of the written-to tensor" in refused.error_message
    assert refused.reason == "several elements of the tensor are one cell (strides (1, 0)): whose value should it keep?"
    partly = trace("x[:-1].add_(x[1:])", (4,)).last
    assert partly.reason == "the values are read from cells that the same step is writing"


@every(
    ("expression", "shape", "reason"),
    [
        ("x.t().reshape(6)", (2, 3), "dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2"),
        ("x[:, ::2].reshape(-1)", (4, 6), "dimensions 0 and 1 merge: stride 6 = 2 × 3"),
        ("x[:, ::2].ravel()", (4, 6), "ravel copies whatever is not contiguous, even where a view would work"),
        ("x.t().contiguous()", (2, 3), "strides (1, 3) become (2, 1): the elements are written in another order"),
        ("x.to(torch.int64, copy=True)", (2, 3), "a copy was asked for"),
        ("x[[0]]", (2, 3), "picked elements need not lie at even steps"),
        ("x.flip(0)", (2, 3), "a view would need a negative stride, and torch has none"),
        ("x[:, ::2].contiguous()", (4, 6), "strides (6, 2) become (3, 1): the gaps between the elements close"),
        ("x.expand(3, 4).contiguous()", (3, 1), "strides (1, 0) become (4, 1): each element gets a cell of its own"),
        ("x[0] = 1", (2, 3), "written in place: no new storage"),
    ],
)
def test_reasons(expression: str, shape: tuple[int, ...], reason: str) -> None:
    assert trace(expression, shape).last.reason == reason


def test_fresh_memory_is_never_shown() -> None:
    """torch.empty would show what another visitor's tensors left behind."""
    for _ in range(20):
        assert set(trace("torch.empty(50, 50)", (2,)).last.values) == {0.0}
        for loss in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
            last = trace(f"F.{loss}(x.float(), torch.ones(2, 3))", (2, 3)).last
            assert last.storage_values == (*last.values, *(0.0,) * (last.storage_elements - 1))


@pytest.mark.parametrize("call", ["l1_loss(x, y, 7)", "mse_loss(x, y, 0, 1)", "cross_entropy(x, y, None, 1, -100, 0)"])
def test_older_arguments_of_losses_are_what_torch_takes_them_for(call: str) -> None:
    run = trace(f"y = x + 2\nF.{call}", (2, 3), dtype="float32")
    x = torch.arange(6.0).view(2, 3)
    with pytest.warns(UserWarning, match="size_average"):
        theirs = eval(f"F.{call}", {"F": torch.nn.functional, "x": x, "y": x + 2})  # noqa: S307 (a text of our own)
    assert run.last.values == tuple(theirs.flatten().tolist())


@pytest.mark.parametrize(
    "call",
    [
        *("ldexp(x[0], x)", "searchsorted(x[:, 0], x)", "bucketize(x.t(), x[:, 0])", "randint_like(x, 10**9)"),
        "add(x, 2, x)",
    ],
)
def test_what_torch_warns_of_runs_without_a_warning(call: str) -> None:
    run = trace(f"torch.{call}", (2, 3), dtype="float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = eval(f"torch.{call}", {"torch": torch, "x": torch.arange(6.0).view(2, 3)})  # noqa: S307
    assert (run.last.kind, run.last.layout.shape) == ("copy", tuple(theirs.shape))
    assert "rand" in call or run.last.values == tuple(theirs.flatten().tolist())


@every(
    ("expression", "kind", "storage"),
    [
        ("x.contiguous()", "same", 0),
        ("x.to(torch.int64)", "same", 0),
        ("x.detach()", "view", 0),  # _is_view() says False
        ("x.t().ravel()", "copy", 1),  # _is_view() says True
        ("x.t().reshape(6)", "copy", 1),
        ("x.flip(0)", "copy", 1),
        ("x.float()", "copy", 1),
        ("-x", "copy", 1),
        ("x.t().contiguous().t()", "view", 1),
        ("torch.einsum('ij->ji', x)", "view", 0),
        ("rearrange(x, 'a b -> b a')", "view", 0),
        ("einops.rearrange(x, 'a b -> (b a)')", "copy", 1),
        ("x[:0].t()", "view", 0),  # storages are told apart even where data pointers cannot
        ("x[:0].clone()", "copy", 1),
    ],
)
def test_view_or_copy_is_decided_by_storage(expression: str, kind: str, storage: int) -> None:
    last = trace(expression, (2, 3)).last
    assert (last.kind, last.storage) == (kind, storage)
    assert (last.bytes_allocated > 0) == (kind == "copy" and last.layout.numel > 0)


def test_steps_of_a_branching_expression() -> None:
    run = trace("x.t() @ (x + 1)", (2, 3))
    assert [step.source for step in run.steps] == ["x", ".t()", "+ 1", "@ (x + 1)"]
    assert [step.inputs for step in run.steps] == [(), (0,), (0,), (1, 2)]
    assert [step.storage for step in run.steps] == [0, 0, 1, 2]
    x = torch.arange(6).view(2, 3)
    assert run.last.values == tuple((x.t() @ (x + 1)).flatten().tolist())


@every(
    ("expression", "shape", "reason"),
    [
        (
            "x[2:].as_strided((5,), (1,))",
            (6,),
            "the last element would be cell 6, but the storage has cells 0 to 5: 2 + 4·1 = 6",
        ),
        ("x.view(-1, 4)", (6,), "6 elements do not divide evenly by the other sizes (4)"),
        ("x.select(2, 0)", (2, 3), ""),
        (
            "x.t().view(torch.int32)",
            (2, 3),
            "elements of another size are made of neighbours in memory along the last dimension, as many as it takes",
        ),
        ("x.permute(0, 2, 1)", (2, 3), "permute names every dimension once"),
        (
            "x.expand(5, 5)",
            (2, 3),
            "expanding repeats a single element by stride 0, so only a size of 1 grows, and no dimension is dropped",
        ),
        ("x[5]", (2, 3), ""),
        ("x[:, ::-1]", (2, 3), "a step backwards needs a negative stride, and torch has none; flip copies instead"),
        ("x[::-1] = 1", (2, 3), "a step backwards needs a negative stride, and torch has none; flip copies instead"),
        (
            "x @ x",
            (2, 3),
            "a row of the left has 3 elements and a column of the right 2, and must have as many",
        ),
        ("x[1:] += x[:-1]", (4, 3), "the values are read from cells that the same step is writing"),
        ("x[0] = torch.zeros(2)", (2, 3), "values of shape (2,) do not fit into shape (3,)"),
    ],
)
def test_reasons_for_refusals(expression: str, shape: tuple[int, ...], reason: str) -> None:
    run = trace(expression, shape)
    assert run.last.kind == "refused"
    assert run.last.error_message
    assert run.last.reason == reason
    sentence, detail = headline(run)
    assert "fails" in sentence or "refuses" in sentence
    assert reason.rstrip("?") in sentence
    if run.last.verdict is None:
        assert detail.startswith(run.last.error_type)


@every(
    ("expression", "words"),
    [
        ("x[0, 0].view(torch.int32)", "dim() cannot be 0"),
        ("x.t().view(torch.int32)", "self.stride(-1) must be 1"),
        ("x.to(torch.int32).view(torch.int64)", "self.size(-1) must be divisible by 2"),
        ("torch.arange(8).to(torch.int32).view(2, 4)[:, 1:3].view(torch.int64)", "must be divisible by 2"),
        ("x.permute(0, 2)", "expected to be in range of [-2, 1], but got 2"),
        ("x.permute((1, -1))", "duplicate dims are not allowed"),
        ("x.expand(3)", "the number of sizes provided (1) must be greater"),
        ("x.expand(5, 5)", "must match the existing size (3) at non-singleton dimension 1"),
        ("x[..., -4]", "index -4 is out of bounds for dimension 1 with size 3"),
        ("x[0, None, 0, 0]", "too many indices for tensor of dimension 2"),
        ("x[5] = 1", "index 5 is out of bounds for dimension 0 with size 2"),
        ("x + torch.zeros(4)", "The size of tensor a (3) must match the size of tensor b (4)"),
        ("torch.arange(0, float('inf'))", "unsupported range"),
        ("torch.arange(0, 1e30)", "invalid size, possible overflow"),
        ("torch.arange(0, 1, 1e-320)", "invalid size, possible overflow"),
        ("torch.arange(0, 1, step=-1e-320)", "inconsistent with step sign"),
    ],
)
def test_where_torch_says_it_all_its_own_words_are_the_answer(expression: str, words: str) -> None:
    run = trace(expression, (2, 3))
    assert run.last.kind == "refused"
    assert words in headline(run)[1]


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("x.t().view(2, 3)", (2, 3)),
        ("x.view(2, 3, 2, 4).transpose(1, 2).contiguous().transpose(1, 2).view(2, 3, 8)", (2, 3, 8)),
        ("x[:, :4] . view((16,)) + 1", (4, 6)),
        ("x.t().view(6) @ x.t().view(-1)", (2, 3)),
        ("x.expand(3, 4).view(size=(12,))", (3, 1)),
        ("y = x.t()\nz = y.view(6)\nz + 1", (2, 3)),
        ("x.t()[:, :, None].expand(3, 2, 7) . view(2, 3, 7)", (2, 3)),
    ],
)
def test_fixes_work_and_cost_what_they_say(expression: str, shape: tuple[int, ...]) -> None:
    refused = trace(expression, shape).refusal
    assert refused is not None
    assert refused.verdict is not None
    assert [fix.instead.split("(")[0] for fix in refused.fixes[-2:]] == [".reshape", ".contiguous"]
    assert [fix.bytes for fix in refused.fixes] == sorted(fix.bytes for fix in refused.fixes)
    assert refused.fixes[-1].bytes == refused.verdict.copied_bytes(refused.element_size)
    wanted = trace(refused.fixes[-1].source, shape).last.values
    for fix in refused.fixes:
        run = trace(fix.source, shape)
        assert run.refusal is None or run.refusal.number > refused.number + 1
        assert run.last.values == wanted or run.refusal is not None
        copies = [step for step in run[refused.number :] if step.kind == "copy"]
        assert copies[0].bytes_allocated == fix.bytes


def test_an_expanded_dimension_need_not_be_copied() -> None:
    refused = trace("x.t().expand(5, 3, 2).view(5, 6) + 1", (2, 3)).refusal
    assert refused is not None
    first = refused.fixes[0]
    assert first.instead == "[:1].reshape(1, 6).expand(5, 6)"
    assert first.source == "x.t().expand(5, 3, 2)[:1].reshape(1, 6).expand(5, 6) + 1"
    assert [fix.bytes for fix in refused.fixes] == [48, 240, 240]


@pytest.mark.parametrize(
    ("expression", "dtype", "shape"),
    [
        ("x.softmax(-1)", "int64", (2, 3)),
        ("y = x + 1\ny.mean(0).view(7)", "uint8", (2, 3)),
        ("x /= 2", "int32", (2, 3)),
        ("reduce(x, 'a b -> a', 'mean')", "int64", (2, 3)),
        ("x @ torch.randn(3, 2)", "bfloat16", (2, 3)),
        ("x & 1", "float32", (2, 3)),
        ("torch.ones(4)[x]", "float16", (3,)),
    ],
)
def test_a_step_that_other_elements_allow_names_their_type(expression: str, dtype: str, shape: tuple[int, ...]) -> None:
    run = trace(expression, shape, dtype=dtype)
    assert run.refusal is not None
    assert run.suits != dtype
    assert f"choose **{run.suits} as Element type**" in headline(run)[0]
    then = trace(expression, shape, dtype=run.suits)
    assert then.refusal is None or then.refusal.number > run.refusal.number


@pytest.mark.parametrize("expression", ["x.select(2, 0)", "x.half() @ x.t().float()", "x.t().view(6)", "x + x.t()"])
def test_no_type_is_named_where_none_helps(expression: str) -> None:
    run = trace(expression, (2, 3))
    assert run.refusal is not None
    assert run.suits == ""
    assert "Element type" not in headline(run)[0]
