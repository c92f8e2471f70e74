"""The gradient of ½(x·w − 5)², what has no .grad, and a training loop of ten lines with its loss."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from core.experiments.found import Found
from core.formula import Symbol, formula
from core.sources import CS336

STEPS = 40
RATE = 0.02

LOOP = """x = torch.tensor([1.0, 2.0, 3.0])
w = torch.ones(3, requires_grad=True)
losses = []
for step in range(40):
    loss = 0.5 * (x @ w - 5) ** 2
    loss.backward()
    losses.append(loss.item())
    with torch.no_grad():
        w -= 0.02 * w.grad
    w.grad.zero_()"""
"""The lines that run."""


@formula(
    r"\frac{1}{2} \cdot \left(\left(6 - 5\right) \cdot \left(1 - 14 \cdot \v{rate}\right)^{\v{step}}\right)^{2}",
    result=Symbol("L", "loss after so many steps", "number"),
    symbols={
        "rate": Symbol(r"\eta", "learning rate", "number"),
        "step": Symbol("t", "steps taken", "count"),
    },
    sources=(CS336,),
)
def loss_after(rate: float, step: float) -> float:
    """Loss of ½(x·w − 5)² after plain gradient steps from w = (1, 1, 1) at x = (1, 2, 3).

    A step takes η (x·w − 5) x from w, so that the distance to 5 shrinks by 1 − η · x·x, where x·x is 14.
    """
    return ((6 - 5) * (1 - 14 * rate) ** step) ** 2 / 2


def work() -> Found:
    """Run one backward pass, then the loop."""
    torch: Any = importlib.import_module("torch")
    x, first = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=True)
    predicted = x @ first
    loss = 0.5 * (predicted - 5) ** 2
    loss.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that a result in between keeps no gradient, which is the point
        words = {
            "w.grad": str(first.grad.tolist()),
            "x.grad": str(x.grad),
            "(x @ w).grad": str(predicted.grad),
            "loss.grad": str(loss.grad),
        }
    losses = list[float]()
    w: Any = torch.ones(3, requires_grad=True)
    for _ in range(STEPS):
        loss = 0.5 * (x @ w - 5) ** 2
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            w -= RATE * w.grad
        w.grad.zero_()
    words["torch"] = str(torch.__version__)
    return Found(words=words, series={"loss": losses}, numbers={"x·w": float((x @ w).item())})
