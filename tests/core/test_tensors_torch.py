"""What a trace says against torch itself: random programs, samples of torch's own tests, FLOPs, and memory."""

from __future__ import annotations

import csv
import io
import random
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.tensors.operations.table import ROWS
from core.tensors.sealed.allocator import account, profiler_config
from core.tensors.sealed.namespace import namespace
from core.tensors.tracing.steps import Trace, origin
from core.tensors.tracing.trace import follow, trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import headline
from tests.core.tensors_random import random_program
from tests.every import every
from tests.patience import PATIENCE_S

SAMPLES = (Path(__file__).parents[1] / "data" / "tensor_operators.csv").read_text(encoding="utf-8")


def in_torch(text: str, shape: tuple[int, ...] = (2, 3), dtype: str = "float32") -> tuple[dict[str, Any], Any, int]:
    """Every name after ``text``, the error that ended it, and its line."""
    names = namespace()
    names["x"] = torch.arange(torch.Size(shape).numel(), dtype=getattr(torch, dtype)).view(shape)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "<theirs>", "exec"), names)  # noqa: S102 (text of our own making)
        except Exception as problem:
            frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == "<theirs>"]
            return names, problem, frames[-1].lineno or 0
    return names, None, 0


def now(run: Trace, number: int) -> tuple[Any, ...]:
    """The values of a step's tensor once the program has ended."""
    values = run[number].values
    number = origin(run.steps, run[number])
    for later in run.steps[number + 1 :]:
        if number in later.changed:
            values = later.after[later.changed.index(number)]
    return values


def alike(ours: Any, theirs: Any) -> bool:
    return ours == theirs or (ours != ours and theirs != theirs)


def compare(text: str, dtype: str = "float32") -> str:
    """Hold a program against torch: names, layouts, types, values, who shares storage, and errors; how it ended."""
    names, problem, line = in_torch(text, dtype=dtype)
    run = follow(text, (2, 3), dtype=dtype)
    if problem is not None:
        if run.refusal is None:
            assert run.unread is not None, text
            assert (run.unread.line, run.unread.why) == (line, f"{type(problem).__name__}: {problem}"), text
        else:
            said = (run.last.error_type, run.last.error_message, run.last.line)
            assert said == (type(problem).__name__, str(problem), line), text
    else:
        assert run.refusal is None, (text, run.last.error_message)
        assert run.unread is None, (text, run.unread)
    tensors = {name: value for name, value in names.items() if isinstance(value, torch.Tensor)}
    for name, theirs in tensors.items():
        if name not in run.last.names:
            assert name == "x", (text, name)
            assert not run.starts_with_x, text
            continue
        step = run[run.last.names[name]]
        facts = (step.layout.shape, step.layout.stride, step.layout.offset, step.dtype)
        dtype = str(theirs.dtype).removeprefix("torch.")
        assert facts == (tuple(theirs.shape), theirs.stride(), theirs.storage_offset(), dtype), (text, name)
        wanted = theirs.detach().flatten().tolist()
        assert all(map(alike, now(run, step.number), wanted)), (text, name)
        for other, tensor in tensors.items():
            if other in run.last.names:
                shared = theirs.untyped_storage()._cdata == tensor.untyped_storage()._cdata
                assert shared == (step.storage == run[run.last.names[other]].storage), (text, name, other)
    headline(run)
    storage_picture(run)
    return "ran" if problem is None else "refused"


def test_random_programs_do_as_torch_does() -> None:
    rng = random.Random(20261201)
    ended = [compare(random_program(rng), rng.choice(["float32", "int64", "bfloat16"])) for _ in range(150)]
    assert ended.count("ran") > 20
    assert ended.count("refused") > 20


@pytest.mark.long
def test_a_thousand_random_programs_do_as_torch_does() -> None:
    rng = random.Random(20261202)
    assert (
        len([compare(random_program(rng), rng.choice(["float32", "int64", "float16"])) for _ in range(1_000)]) == 1_000
    )


def test_samples_of_torchs_own_operator_tests() -> None:
    """One of each operator, written out as a program."""
    for row in csv.DictReader(io.StringIO(SAMPLES, newline="")):
        shape = tuple(map(int, filter(None, row["shape"].split("x"))))
        names, problem, _ = in_torch(row["program"], shape, row["dtype"])
        run = follow(row["program"], shape, dtype=row["dtype"])
        assert (problem is None) == (run.refusal is None and run.unread is None), row
        for name in names if problem is None else ():
            if not re.fullmatch(r"r\d*", name) or not isinstance(names[name], torch.Tensor):
                continue
            step, theirs = run[run.last.names[name]], names[name]
            assert (step.layout.shape, step.layout.stride) == (tuple(theirs.shape), theirs.stride()), row
            assert f"torch.{step.dtype}" == str(theirs.dtype), row
            if "rand" not in row["program"] and "empty" not in row["program"]:
                assert all(map(alike, now(run, step.number), theirs.detach().flatten().tolist())), row


_KINDS = {
    "Always a view": {"view", "same", "write"},
    "A view if it can, else a copy": {"view", "copy", "same"},
    "A new tensor": {"copy", "same"},
    "Picked into a new tensor": {"copy", "view"},
    "Computed into a new tensor": {"copy", "same"},
    "Written in place": {"write"},
    "Memory layout changed in place": {"same"},
    "Small tensors": {"copy"},
}


@every("row", ROWS, ids=lambda row: row.example)
def test_every_example_runs_and_does_what_its_group_says(row: Any) -> None:
    run = follow(row.example, (2, 3), dtype="float32" if "backward" in row.example else "int64")
    if run.unread or run.refusal:
        run = follow(row.example, (2, 3), dtype="float32")
    assert run.unread is None, run.unread
    assert run.refusal is None, run.last.error_message
    made = [step for step in run.steps[1:] if step.operation != "piece"]
    assert not made or made[-1].kind in _KINDS.get(row.group, {made[-1].kind}), made[-1].kind


def test_a_layout_changed_in_place_is_the_layout_of_every_name() -> None:
    run = trace("y = x\nz = x.t()\nx.unsqueeze_(0)\nx.transpose_(1, 2)\ny[0, 2] = 7\nz", (2, 3))
    assert run[0].layout.shape == (2, 3)
    assert (run[4].kind, run[4].layout.shape, run[4].layout.stride) == ("same", (1, 3, 2), (6, 1, 3))
    assert run[5].written == (2, 5)
    assert run.last.values == (0, 3, 1, 4, 7, 7)


# ---------------------------------------------------------------------------------------------- FLOPs and memory

MODELS = {
    "linear": "m = nn.Linear(8, 4)\nm(torch.randn(3, 8)).sum().backward()",
    "convolution": "m = nn.Conv2d(3, 10, 3)\nm(torch.randn(2, 3, 9, 9)).sum().backward()",
    "convolution of an input": "x = torch.randn(1, 2, 9, requires_grad=True)\n"
    "m = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Conv1d(4, 4, 2))\nm(x).sum().backward()",
    "heads": "m = nn.MultiheadAttention(8, 2, batch_first=True)\nx = torch.randn(2, 5, 8)\n"
    "m(x, x, x)[0].sum().backward()",
    "a step": "m = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))\n"
    "o = torch.optim.AdamW(m.parameters())\nfor _ in range(3):\n    loss = m(torch.randn(4, 8)).pow(2).mean()\n"
    "    o.zero_grad()\n    loss.backward()\n    o.step()",
    "products": "a, b = torch.randn(2, 3, 4), torch.randn(4, 5)\nc = (a @ b) @ torch.randn(2, 5, 6)\n"
    "d = torch.einsum('bij,bjk->ik', a, torch.randn(2, 4, 3))",
}


@every("name", list(MODELS))
def test_flops_are_those_that_torch_counts(name: str) -> None:
    with FlopCounterMode(display=False) as counter:
        _, problem, _ = in_torch(MODELS[name])
    assert problem is None
    assert sum(step.flops for step in trace(MODELS[name], (2, 3), dtype="float32")) == counter.get_total_flops()


@every(
    ("text", "flops"),
    [
        ("F.scaled_dot_product_attention(*torch.randn(3, 1, 12, 64, 64))", 12_582_912),
        ("torch.randn(9, 4) @ torch.randn(4, 9)", 648),
        ("torch.randn(8) @ torch.randn(8)", 16),
        ("torch.randn(4, 8) @ torch.randn(8)", 64),
        ("torch.randn(2, 1, 4, 8) @ torch.randn(3, 8, 5)", 1_920),
        ("torch.ones(16384, 32768) @ torch.ones(32768, 8192)", 2 * 16384 * 32768 * 8192),
    ],
)
def test_flops_of_published_questions(text: str, flops: int) -> None:
    assert sum(step.flops for step in trace(text, (1,))) == flops


def allocated(text: str) -> tuple[int, int]:
    """What torch's allocator hands out for a program, and the most of it at once."""
    torch.autograd._enable_profiler_legacy(profiler_config(torch))  # type: ignore[attr-defined]
    try:
        _, problem, _ = in_torch(text)
        assert problem is None
    finally:
        events = [event for thread in torch.autograd._disable_profiler_legacy() for event in thread]  # type: ignore[attr-defined]
    used = account(events)
    return used.total - 24, used.peak - (0 if "x = " in text else 24)  # without the x that there was before


@every("name", list(MODELS))
def test_peaks_are_those_of_the_allocator(name: str) -> None:
    total, peak = allocated(MODELS[name])
    run = trace(MODELS[name], (2, 3), dtype="float32")
    assert abs(max(run.at_once) - peak) <= 0.02 * peak, (max(run.at_once), peak)
    assert abs(run.last.bytes_total - total) <= 0.1 * total, (run.last.bytes_total, total)


def test_what_no_name_stands_for_is_given_back() -> None:
    run = trace("y = x + 1\ny = y.exp() * 2\ny = y.sum()", (64,), dtype="float32")
    assert [sum(now.values()) for now in run.held] == [256, 512, 768, 512, 260]


# ------------------------------------------------------------------------------------------- devices and sizes


def printed(text: str) -> list[str]:
    return [fact.value.strip() for fact in trace(text, (2, 3)).facts]


def test_memory_of_a_gpu_is_counted_in_its_blocks_and_given_back() -> None:
    asked = "print(torch.cuda.memory_allocated())"
    assert printed(f"x = torch.ones(4000, 4000, device='cuda')\n{asked}\ndel x\n{asked}") == ["64000000", "0"]
    assert printed(f"x = torch.ones(3).cuda()\ny = x + 1\n{asked}") == ["1024"]
    assert printed("x = torch.ones(1000).cuda()\ndel x\nprint(torch.cuda.max_memory_allocated())") == ["4096"]


@every(
    "text",
    [
        "m = nn.Linear(5, 1).cuda()\nx = torch.randn(3, 5).cuda()\nm(x).sum().backward()",
        "torch.set_default_device('cuda')\nm = nn.Linear(5, 1)\nm(torch.ones(3, 5)).sum().backward()\n"
        "torch.set_default_device(None)",
        "m = nn.LSTM(4, 8).to('cuda')\ny, _ = m(torch.ones(2, 3, 4, device='cuda'))\ny.sum().backward()",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nm = nn.Linear(2, 2).to(device)\n"
        "o = torch.optim.Adam(m.parameters())\nm(torch.ones(1, 2, device=device)).sum().backward()\no.step()",
        "with torch.autocast('cuda', dtype=torch.bfloat16):\n    y = torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()",
    ],
)
def test_programs_for_a_gpu_run(text: str) -> None:
    run = follow(text, (2, 3))
    assert run.unread is None, run.unread
    assert run.refusal is None, run.last.error_message
    assert any(step.device == "cuda:0" for step in run)


def test_devices_may_not_meet() -> None:
    run = follow("y = x.cuda()\nz = y + x", (2, 3), dtype="float32")
    assert (run[1].device, run[1].moved) == ("cuda:0", 24)
    assert run.refusal is not None
    assert run.refusal.error_message.startswith("Expected all tensors to be on the same device")


def test_large_tensors_are_counted_and_small_ones_beside_them_have_values() -> None:
    run = trace("w = torch.ones(100_000, 100_000)\nm = torch.ones(3).cumsum(0)\nv = w.t()\nw += 1\nprint(m)", (2,))
    assert run.counted
    assert run[1].bytes_allocated == 4 * 10**10
    assert not run[1].values
    assert run[run.last.names["m"]].values == (1.0, 2.0, 3.0)
    assert run.last.changed
    assert run.facts[0].value.strip() == "tensor([1., 2., 3.])"


def test_errors_at_any_size_are_torchs_own() -> None:
    large, small = (follow(f"a = torch.ones({n}, {n})\na.t().view(-1)", (2,)) for n in (100_000, 10))
    assert large.last.error_message == small.last.error_message
    run = follow("a = torch.ones(100_000, 100_000)\na @ torch.ones(3, 3)", (2,))
    assert run.last.error_message == "mat1 and mat2 shapes cannot be multiplied (100000x100000 and 3x3)"


def test_what_depends_on_values_that_are_not_there_says_so() -> None:
    run = follow("a = torch.ones(100_000, 100_000)\nn = a.sum().item()", (2,))
    assert run.unread is not None
    assert run.unread.line == 2
    assert "values" in run.unread.why


@pytest.mark.process
def test_the_sealed_process_reports_what_this_one_does_and_leaves_torch_out() -> None:
    program = "w = torch.ones(3, 2)\ny = (x @ w).t()\ny[0] += 1\ny.reshape(-1).sum()\nassert y.shape == (2, 2)"
    code = (
        "import sys\nfrom core.tensors.tracing.trace import follow\n"
        f"run = follow({program!r}, (2, 3), dtype='float32')\n"
        "print([(step.kind, step.layout.stride, step.values) for step in run], run.facts, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    run = trace(program, (2, 3), dtype="float32")
    steps = [(step.kind, step.layout.stride, step.values) for step in run]
    assert done.stdout.strip() == f"{steps} {run.facts} False"
