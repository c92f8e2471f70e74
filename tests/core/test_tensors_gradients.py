"""Gradients: which tensors have one, its values and bytes, and what is kept for it, are torch's own."""

from __future__ import annotations

import random
import warnings
from typing import Any
from unittest.mock import patch

import pytest
import torch

from core.messages import Message
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.report import trace_of
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import follow, trace
from core.views.tensors.training import is_training, parameter_rows, saved_bytes, saved_rows, training_headline

_UNARY = (
    *(".relu()", ".exp()", ".tanh()", ".sigmoid()", ".pow(2)", ".t()", ".contiguous()", ".clone()", ".detach()"),
    *(".softmax(-1)", ".log_softmax(-1)", ".sum(0, keepdim=True)", ".mean(-1, keepdim=True)", ".reshape(-1, 3)"),
    *(".square()", ".transpose(0, 1)", ".cumsum(0)", " * 2", " / 3", " + 1", ".float()", "[:2]", "[:, 1:]", ".sqrt()"),
)
_BINARY = ("+", "-", "*", "@", "/")


def kept_bytes(run: Trace) -> int:
    """Bytes of all storages that operations keep for backward, each counted once."""
    return sum({saved.storage: saved.bytes for step in run.steps for saved in step.keeps}.values())


def gradient_program(rng: random.Random) -> str:
    """Leaves, some of which ask for a gradient, operations on them, a number out of the last, and backward."""
    lines = [
        f"{name} = torch.arange(9.).view(3, 3).add({rng.randint(1, 4)}){rng.choice(['', '.requires_grad_()'])}"
        for name in ("a", "b")
    ]
    lines.append("w = torch.ones(3, 3, requires_grad=True)")
    names = ["a", "b", "w"]
    for number in range(rng.randint(1, 5)):
        name = f"h{number}"
        left = rng.choice(names)
        if rng.random() < 0.5:
            lines.append(f"{name} = {left}{rng.choice(_UNARY)}")
        else:
            lines.append(f"{name} = {left} {rng.choice(_BINARY)} {rng.choice(names)}")
        names.append(name)
        if rng.random() < 0.15:
            lines.append(f"{name}.retain_grad()")
    lines.append(f"loss = {rng.choice([names[-1], names[-1], rng.choice(names)])}.{rng.choice(['sum()', 'mean()'])}")
    lines.append("loss.backward()")
    if rng.random() < 0.2:
        lines.append(f"({rng.choice(names[:3])} * 2).sum().backward()")
    return "\n".join(lines)


def in_torch(text: str) -> tuple[dict[str, Any], int] | None:
    """Every name after the program, and the bytes that torch's own hooks say are kept; ``None`` where it fails."""
    names: dict[str, Any] = {"torch": torch}
    kept: dict[int, Any] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with warnings.catch_warnings(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        warnings.simplefilter("ignore")
        try:
            exec(text, names)  # noqa: S102 (text of our own making)
        except Exception:
            return None
    return names, sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def agrees(text: str) -> bool:
    """Hold a program against torch; False where torch refuses it, which the trace must too."""
    theirs = in_torch(text)
    run = trace(text, (1,), dtype="float32")
    assert (run.refusal is None) == (theirs is not None), (text, run.last.error_message)
    if theirs is None:
        return False
    names, kept = theirs
    assert kept_bytes(run) == kept, text
    for name, tensor in names.items():
        if not isinstance(tensor, torch.Tensor):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradient = tensor.grad
        alike = {f"{other}.grad" for other, same in names.items() if same is tensor}
        step = next((step for step in reversed(run.steps) if step.name in alike), None)
        assert (step is not None) == (gradient is not None), (text, name)
        if step is not None and gradient is not None:
            facts = (step.layout.shape, step.layout.stride, step.element_size * step.layout.numel)
            assert facts == (tuple(gradient.shape), gradient.stride(), gradient.nbytes), (text, name)
            wanted = gradient.flatten().tolist()
            values = step.values
            for later in run.steps[step.number + 1 :]:
                if step.number in later.changed:
                    values = later.after[later.changed.index(step.number)]
            assert all(a == b or a != a for a, b in zip(values, wanted, strict=True)), (text, name)
    return True


def test_gradients_of_random_programs_are_those_of_torch() -> None:
    rng = random.Random(20261125)
    assert sum(agrees(gradient_program(rng)) for _ in range(60)) > 20


@pytest.mark.long
def test_gradients_of_many_random_programs_are_those_of_torch() -> None:
    rng = random.Random(20261126)
    count = 1_000
    assert sum(agrees(gradient_program(rng)) for _ in range(count)) > count // 3


def test_a_graph_that_backward_has_gone_through_is_gone() -> None:
    run = trace("w = torch.ones(3, requires_grad=True)\nloss = w.pow(2).sum()\nloss.backward()\nloss.backward()", (1,))
    assert "second time" in run.last.error_message
    assert isinstance(run.last.reason, Message)
    assert run.last.reason.values == {"call": "loss.backward()", "line": 3}


def test_a_tensor_that_was_saved_and_changed_is_named_with_both_lines() -> None:
    run = trace("w = torch.ones(3, requires_grad=True)\ny = w.exp()\nz = y * 2\ny += 1\ny.sum().backward()", (1,))
    assert isinstance(run.last.reason, Message)
    assert run.last.reason.values == {"write": "y += 1", "line": 4, "saver": "w.exp()", "saver_line": 2}


def test_in_place_on_a_leaf_is_refused_as_torch_does() -> None:
    with pytest.raises(ExpressionError):
        trace("w = torch.ones(3)\nw.grad.t()", (1,))
    run = trace("w = torch.ones(3, requires_grad=True)\nw += 1", (1,))
    assert "leaf Variable" in run.last.error_message


TRAINING = """model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(32, 64)
for _ in range(2):
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
model[0].bias.requires_grad_(False)"""


def test_parameters_gradients_and_states_have_the_bytes_of_torch() -> None:
    run = trace(TRAINING, (1,))
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(TRAINING, names)  # noqa: S102 (text of our own making)
    state = names["opt"].state
    wanted = [
        (
            name,
            tuple(one.shape),
            one.nbytes,
            one.requires_grad,
            one.grad.nbytes,
            sum(t.nbytes for t in state[one].values()),
        )
        for name, one in names["model"].named_parameters()
    ]
    found = [(p.name, p.shape, p.bytes, p.is_trained, p.gradient_bytes, p.state_bytes) for p in run.parameters]
    assert found == wanted
    answer, used = training_headline(run)
    assert answer.values == {"module": "model", "parameters": 9_610, "peak": max(run.at_once)}
    parts = {part.id.rpartition(".")[2]: part.values["bytes"] for part in used.values["parts"]}
    assert parts["states"] == sum(row[-1] for row in wanted)
    saved = [(row[0], row[3]) for row in saved_rows(run)]  # of the last backward alone
    assert [row for row in saved if row[0] in ("`x`", "`model.2.weight`")] == [
        ("`x`", "8,192 B"),
        ("`model.2.weight`", "5,120 B"),
    ]
    assert saved_bytes(run) == 8_192 + 2 * 16_384 + 5_120 + 1_280
    assert len(parameter_rows(run)) == 4


def test_a_module_within_another_counts_once_and_leaves_count_too() -> None:
    leaf = "w = torch.ones(2, requires_grad=True)"
    run = trace(f"fc = nn.Linear(3, 4)\nnet = nn.Sequential(fc, nn.Linear(4, 2))\n{leaf}", (1,))
    assert [(p.module, p.name) for p in run.parameters][-1] == ("", "w")
    assert {p.module for p in run.parameters} == {"net", ""}
    assert not is_training(trace(f"{leaf}\nw.exp().sum().backward()", (1,)))
    assert not is_training(trace("fc = nn.Linear(3, 4)\nx.t().contiguous()", (2, 3)))
    assert is_training(trace("fc = nn.Linear(3, 4)\nfc(x)", (2, 3), dtype="float32"))


def test_a_forged_report_of_parameters_is_not_read() -> None:
    good = {"module": "net", "name": "w", "at": [0, 0], "shape": [2], "dtype": "int8", "bytes": 2}
    good |= {"is_trained": True, "gradient_bytes": 0, "states": [["m", 2]]}
    assert trace_of([{"e": "model", "parameters": [good]}], "x").parameters[0].state_bytes == 2
    for bad in (
        {"at": [0]},
        {"shape": ["x"]},
        {"bytes": -2},
        {"states": [["m", "x"]]},
        {"dtype": 7},
        {"name": "w" * 999},
    ):
        event = {"e": "model", "parameters": [good | bad]}
        with patch("core.tensors.tracing.trace.run_program", lambda _, event=event: ([event], "")):
            assert follow("x", (2,)).unread is not None
