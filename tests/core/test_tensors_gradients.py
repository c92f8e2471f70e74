"""Gradients: which tensors have one, its values and bytes, and what is kept for it, are torch's own."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
import torch

from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from core.views.tensors.text import kept_bytes

_UNARY = (
    *(".relu()", ".exp()", ".tanh()", ".sigmoid()", ".pow(2)", ".t()", ".contiguous()", ".clone()", ".detach()"),
    *(".softmax(-1)", ".log_softmax(-1)", ".sum(0, keepdim=True)", ".mean(-1, keepdim=True)", ".reshape(-1, 3)"),
    *(".square()", ".transpose(0, 1)", ".cumsum(0)", " * 2", " / 3", " + 1", ".float()", "[:2]", "[:, 1:]", ".sqrt()"),
)
_BINARY = ("+", "-", "*", "@", "/")


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


def test_in_place_on_a_leaf_is_refused_as_torch_does() -> None:
    with pytest.raises(ExpressionError):
        trace("w = torch.ones(3)\nw.grad.t()", (1,))
    run = trace("w = torch.ones(3, requires_grad=True)\nw += 1", (1,))
    assert "leaf Variable" in run.last.error_message
