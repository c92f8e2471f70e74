"""Who shares memory, who sees a write, and what fixes a refused step: the same lines run by torch say it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from core.tensors.tracing.steps import origin
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import explanations, headline, names_seeing
from tests.every import every

MADE = (
    *("", ".detach()", ".t()", ".contiguous()", ".reshape(-1)", ".view(-1)", ".unsqueeze(0)", ".view(torch.int32)"),
    *("[0]", "[1]", "[1:]", "[:, :2]", ".clone()", " + 1", ".float()"),
)
WRITES = (("", " += 7"), ("", ".mul_(-3)"), ("[0]", " = 99"), ("[1:]", " += 7"), (".t()", ".add_(7)"))
"""The part of a tensor that is written, and how."""


def cells(tensor: torch.Tensor) -> frozenset[int]:
    """The addresses of all bytes of ``tensor``."""
    index = torch.arange(tensor.untyped_storage().nbytes() // tensor.element_size())
    at = index.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist()
    start, size = tensor.untyped_storage().data_ptr(), tensor.element_size()
    return frozenset(start + size * cell + byte for cell in at for byte in range(size))


def program(rng: random.Random) -> tuple[list[str], set[str], set[str], str]:
    """Lines that torch runs, of which the last writes; all names, those of tensors that see it, and that written by."""
    names: dict[str, Any] = {"torch": torch, "x": torch.arange(6).view(2, 3)}
    lines: list[str] = []
    while True:
        known = sorted(names.keys() - {"torch", "__builtins__"})
        done, source = len(lines) >= rng.randint(1, 6), rng.choice(known)
        part, how = rng.choice(WRITES)
        line = f"{source}{part}{how}" if done else f"{rng.choice('xyzpq')} = {source}{rng.choice(MADE)}"
        try:
            written = cells(eval(f"{source}{part}", names)) if done else frozenset()  # noqa: S307 (a text of our own)
            exec(line, names)  # noqa: S102 (text of our own making)
        except (RuntimeError, IndexError):
            continue
        lines.append(line)
        if done:
            return lines, set(known), {name for name in known if cells(names[name]) & written}, source


@every("seed", range(300))
def test_who_is_said_to_see_a_write_is_who_sees_it_in_torch(seed: int) -> None:
    lines, names, see, through = program(random.Random(seed))
    run = trace("\n".join(lines), (2, 3))
    write = run.last
    origins = {origin(run.steps, run[number]) for number in write.changed}
    for name in names:
        assert (origin(run.steps, run[write.names[name]]) in origins) == (name in see), (lines, name)
    said = headline(run)[0]
    told = {name for name in names_seeing(run, write) if name in names}
    assert see - {through} <= told <= see, (lines, told)
    if said.id == "tensors.write.copy":
        assert said.values["start"] not in see, lines


@every(
    ("program", "drawn"),
    [
        ("y = x.t()\ny = y.contiguous()\nx[0] = 5", ["x", "old y", "y"]),
        ("x = x.float()\ny = x.t()\ny[0] = 5", ["old x", "x", "y"]),
        ("x = x.float()\nx = x.half()\nx[0] = 5", ["old x (start)", "old x (line 1)", "x"]),
    ],
)
def test_a_tensor_whose_name_moved_on_is_drawn_as_an_old_one(program: str, drawn: list[str]) -> None:
    assert [tensor["name"] for tensor in storage_picture(trace(program, (2, 3)))["tensors"]] == drawn


@every(
    ("expression", "written"),
    [
        ("x[:, 1] += 10", (1, 4)),
        ("x[x > 2] = 0", (3, 4, 5)),
        ("x[[1, 0], [2, 2]] *= 10", (2, 5)),
        ("x[torch.tensor([1])] = x[0] + 0", (3, 4, 5)),
        ("y = x.t()\ny //= 2", (0, 1, 2, 3, 4, 5)),
        ("x.diagonal().zero_()", (0, 4)),
        ("x.view(6)[::2].mul_(torch.tensor([1, 2, 3]))", (0, 2, 4)),
        ("x.copy_(x.flip(0))", (0, 1, 2, 3, 4, 5)),
        ("x[:0] = 5", ()),
        ("x.masked_fill_(x > 3, 0)", (4, 5)),
        ("x.scatter_(1, torch.tensor([[2], [0]]), 9)", (2, 3)),
        ("x.t().index_fill_(0, torch.tensor([1]), 9)", (1, 4)),
        ("x.tril_()", (1, 2, 5)),
    ],
)
def test_writes_mark_their_cells_and_reach_x(expression: str, written: tuple[int, ...]) -> None:
    run = trace(expression + "\nx", (2, 3))
    write = next(step for step in run if step.kind == "write")
    names = {"torch": torch, "x": torch.arange(6).view(2, 3)}
    exec(expression, names)  # noqa: S102 (text of our own making)
    assert (write.written, write.bytes_allocated) == (written, 0)
    assert run.last.values == tuple(names["x"].flatten().tolist())
    assert not written or (write.changed[0], write.after[0]) == (0, run.last.values)


def test_writes_through_wider_elements() -> None:
    """Three bytes of storage hold one number of two bytes; the third byte belongs to the narrow view alone."""
    run = trace("y = x[:2].view(torch.int16)\ny += 1\nx", (3,), dtype="uint8")
    assert run.last.values == (1, 1, 2)
    assert [run[n].label for n in run[3].changed] == ["x", "x[:2]", "y"]


def test_memory_that_nobody_wrote_is_shown_as_zeros() -> None:
    for _ in range(20):
        assert set(trace("torch.empty(50, 50)", (2,)).last.values) == {0.0}


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
    ],
)
def test_view_or_copy_is_decided_by_storage(expression: str, kind: str, storage: int) -> None:
    last = trace(expression, (2, 3)).last
    assert (last.kind, last.storage) == (kind, storage)
    assert (last.bytes_allocated > 0) == (kind == "copy" and last.layout.numel > 0)


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
    fixes = [fix for fix in refused.fixes if not fix.reorders]
    assert [fix.instead.split("(")[0] for fix in fixes[-2:]] == [".reshape", ".contiguous"]
    assert [fix.bytes for fix in fixes] == sorted(fix.bytes for fix in fixes)
    assert fixes[-1].bytes == refused.verdict.reshape_copies * refused.element_size
    wanted = trace(fixes[-1].source, shape).last.values
    for fix in refused.fixes[len(fixes) :]:
        step = trace(fix.source, shape)[refused.number + 1]
        assert step.kind in ("view", "same")
        assert step.layout.shape == refused.verdict.shape
        assert sorted(map(float, step.values)) == sorted(
            map(float, trace(fixes[-1].source, shape)[refused.number + 1].values)
        )
    for fix in fixes:
        run = trace(fix.source, shape)
        assert run.refusal is None or run.refusal.number > refused.number + 1
        assert run.last.values == wanted or run.refusal is not None
        copies = [step for step in run.steps[refused.number :] if step.kind == "copy"]
        assert copies[0].bytes_allocated == fix.bytes


def test_explanations_carry_the_numbers_of_the_trace() -> None:
    cell, merge, size = explanations(trace("x.t().view(2, 3)", (2, 3)))
    assert (cell.value, merge.value, size.value) == (5, 6, 48)
    (cell, _) = explanations(trace("x[1, 2]", (4, 4)))
    assert cell.value == 6
    assert [round(term.value) for term in cell.terms] == [0, 1, 4, 2, 1]
