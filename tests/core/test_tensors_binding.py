"""A name means the tensor that it stood for at its line; a tensor whose name moved on is called old."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import torch

from core.tensors.tracing.steps import origin
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import headline
from tests.core.sentence_facts import says
from tests.every import every


@pytest.mark.parametrize(
    ("program", "sentence", "detail", "drawn"),
    [
        ("y = x.t()\ny = y.contiguous()\nx[0] = 5", "old y shows", ("`x` and `old y`",), ["x", "old y", "y"]),
        ("y = x.t()\nx = x.clone()\ny[0] = 5", "old x shows", ("`y` and `old x`",), ["old x", "y", "x"]),
        ("x = x.float()\nx[0] = 5", "old x keeps", ("`.float()` made it",), ["old x", "x"]),
        ("y = x.t()\ny = 3\nx[0] = 5", "old y shows", ("`x` and `old y`",), ["x", "old y"]),
        ("y = x\nx = x.clone()\nx[0] = 5", "y keeps", ("`.clone()` made it",), ["y", "x"]),
        ("x = x.float()\ny = x.t()\ny[0] = 5", "x shows", ("`.float()` made it",), ["old x", "x", "y"]),
        ("x = x.contiguous()\ny = x.t()\nx[0] = 5", "y shows", ("`x` and `y`",), ["x", "y"]),
        ("y = x.t()\nx[0] = 5\ny = y.t()", "y shows", ("`x` and `y`",), ["x", "old y", "y"]),
    ],
)
def test_what_a_name_means(program: str, sentence: str, detail: tuple[str, ...], drawn: list[str]) -> None:
    run = trace(program, (2, 3))
    headline_text, more = headline(run)
    says(headline_text, f"so {sentence} ")
    says(more, *detail)
    assert [tensor["name"] for tensor in storage_picture(run)["tensors"]] == drawn


def test_several_old_tensors_of_one_name_are_told_apart_by_their_lines() -> None:
    run = trace("x = x.float()\nx = x.half()\nx[0] = 5", (2, 3))
    names = [tensor["name"] for tensor in storage_picture(run)["tensors"]]
    assert names == ["old x (start)", "old x (line 1)", "x"]
    says(headline(run)[0], "old x (start) keeps")


_STEPS = ("t()", "clone()", "contiguous()", "float()", "flatten()", "view(-1)", "detach()")


def _program(rng: random.Random) -> tuple[list[str], dict[str, Any], str]:
    """Lines that bind names, the tensors that Python's own names then stand for, and the name to write through."""
    names: dict[str, Any] = {"x": torch.arange(6).view(2, 3)}
    lines: list[str] = []
    for _ in range(rng.randint(1, 6)):
        target, owner = rng.choice("xyz"), rng.choice(sorted(names))
        if rng.random() < 0.2:
            lines.append(f"{target} = {owner}")
            names[target] = names[owner]
            continue
        call = rng.choice(_STEPS)
        method, _, argument = call.removesuffix(")").partition("(")
        if (method == "t" and names[owner].dim() != 2) or (method == "view" and not names[owner].is_contiguous()):
            continue
        lines.append(f"{target} = {owner}.{call}")
        names[target] = getattr(names[owner], method)(*([int(argument)] if argument else []))
    return lines, names, rng.choice(sorted(names))


@every("seed", range(150))
def test_who_is_said_to_see_a_write_is_who_sees_it_in_python(seed: int) -> None:
    lines, names, through = _program(random.Random(seed))
    before = {name: tensor.clone() for name, tensor in names.items()}
    names[through][0] = 77
    see = {name for name, tensor in names.items() if not torch.equal(tensor, before[name])}

    run = trace("\n".join([*lines, f"{through}[0] = 77"]), (2, 3))
    write = run.last
    labels = {run.label(run[number], write.number) for number in write.changed}
    assert {label for label in labels if label in "xyz"} <= see
    for name in names:
        now = run[run[write.number].names[name]]
        origins = {origin(run.steps, run[number]) for number in write.changed}
        assert (origin(run.steps, now) in origins) == (name in see)
    sentence, detail = headline(run)
    shared = re.search(r"\*\*([xyz]) (shows it too|keeps its values)\*\*", sentence)
    if shared:
        assert (shared[1] in see) == (shared[2] == "shows it too"), sentence
    for name in see - {through}:
        assert f"`{name}`" in detail or f"**{name} shows it too**" in sentence, (sentence, detail)
