"""What a headline says of who shares memory, against torch: the same lines run on tensors of its own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from core.tensors.tracing.trace import trace
from core.views.tensors.inside import memory
from core.views.tensors.text import headline

VIEWS: dict[str, Callable[[Any], Any]] = {
    "": lambda t: t,
    ".detach()": lambda t: t.detach(),
    ".t()": lambda t: t.t(),
    ".contiguous()": lambda t: t.contiguous(),
    ".reshape(-1)": lambda t: t.reshape(-1),
    ".view(-1)": lambda t: t.view(-1),
    ".unsqueeze(0)": lambda t: t.unsqueeze(0),
    ".view(torch.int32)": lambda t: t.view(torch.int32),
    "[0]": lambda t: t[0],
    "[1]": lambda t: t[1],
    "[1:]": lambda t: t[1:],
    "[:, :2]": lambda t: t[:, :2],
}
MAKERS: dict[str, Callable[[Any], Any]] = {
    ".clone()": lambda t: t.clone(),
    " + 1": lambda t: t + 1,
    ".float()": lambda t: t.float(),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    " += 7": lambda t: t.add_(7),
    ".add_(7)": lambda t: t.add_(7),
    ".mul_(-3)": lambda t: t.mul_(-3),
    "[0] = 99": lambda t: t[0].fill_(99),
    "[1:] += 7": lambda t: t[1:].add_(7),
    ".t().add_(7)": lambda t: t.t().add_(7),
    "[1:].add_(7)": lambda t: t[1:].add_(7),
}
PARTS: dict[str, Callable[[Any], Any]] = {".t()": lambda t: t.t(), "[1:]": lambda t: t[1:]}
LABEL = r"(`[^`]*`|old x|x)"
LIST = r"`[^`]*`(?:(?:, | and )`[^`]*`)*"


@dataclass
class Programme:
    """Lines, and what torch made of them. made: all tensors by each name that they had; write: what the last one did.

    Of a write: the names then, the tensor written through, its cells, and which tensors they belong to.
    """

    lines: list[str] = field(default_factory=list[str])
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    made: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    then: dict[str, Any] = field(default_factory=dict[str, Any])
    cells: frozenset[int] = frozenset()

    def bind(self, name: str, tensor: Any) -> None:
        self.names[name] = tensor
        self.made.setdefault(name, []).append(tensor)

    def write(self, part: Any) -> None:
        self.then = dict(self.names)
        self.cells = cells(part)


def cells(tensor: Any) -> frozenset[int]:
    """The addresses of all bytes of ``tensor``."""
    index = torch.arange(tensor.untyped_storage().nbytes() // tensor.element_size())
    at = index.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist()
    start, size = tensor.untyped_storage().data_ptr(), tensor.element_size()
    return frozenset(start + size * cell + byte for cell in at for byte in range(size))


def programme(rng: random.Random) -> Programme:
    """Some lines that torch runs."""
    done = Programme()
    if rng.random() < 0.6:
        done.bind("x", torch.arange(6).view(2, 3))
    else:
        done.bind("p", torch.zeros(2, 3, dtype=torch.int64))
        done.lines.append("p = torch.zeros(2, 3, dtype=torch.int64)")
    count, writes = rng.randint(2, 7), rng.random() < 0.8
    while len(done.lines) < count or (writes and not done.then):
        source, target = rng.choice(sorted(done.names)), rng.choice("xypqw" if "x" in done.made else "ypqw")
        tensor, kind = done.names[source], rng.random()
        try:
            if kind < 0.4:
                text = rng.choice(sorted(VIEWS))
                done.bind(target, VIEWS[text](tensor))
                done.lines.append(f"{target} = {source}{text}")
            elif kind < 0.55:
                text = rng.choice(sorted(MAKERS))
                done.bind(target, MAKERS[text](tensor))
                done.lines.append(f"{target} = {source}{text}")
            elif kind < 0.95 and writes:
                text = rng.choice(sorted(WRITES))
                done.write(WRITES[text](tensor))
                done.lines.append(f"{source}{text}")
            elif len(done.names) > 1:
                del done.names[source]
                done.lines.append(f"del {source}")
        except (RuntimeError, IndexError):
            continue
    return done


def meant(done: Programme, label: str) -> list[Any]:
    """The tensors that a label may stand for."""
    old = re.fullmatch(r"old (\w+)( \(.*\))?", label)
    if old:
        return done.made[old[1]]
    if label in done.then:
        return [done.then[label]]
    base = re.match(r"\w+", label)
    assert base, label
    assert base[0] in done.made, (label, done.lines)
    view = (VIEWS | PARTS)[label.removeprefix(base[0])]
    found: list[Any] = []
    for tensor in done.made[base[0]]:
        with suppress(RuntimeError, IndexError):
            found.append(view(tensor))
    return found


def named(text: str) -> list[str]:
    return re.findall(r"`([^`]*)`", text)


def storage(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()


def check(done: Programme) -> int:
    """Hold every sentence about sharing against torch; how many there were."""
    run = trace("\n".join(done.lines), (2, 3))
    text = " ".join(headline(run)).replace("**", "")
    where = f"{done.lines}\n{text}"
    found = 0
    sees = {name for name, tensor in done.then.items() if cells(tensor) & done.cells}
    every = [tensor for tensors in done.made.values() for tensor in tensors]
    if "x" not in done.made:
        assert not re.search(r"\bx\b", f"{text} {memory(run)}"), where
    if "very step is a view" in text or "is a view: 0" in text or "x and its views" in text:
        found += 1
        assert len({storage(tensor) for tensor in every}) == 1, where
    if "the result is x itself" in text:
        found += 1
        assert len({id(tensor) for tensor in every}) == 1, where
    for kept in re.findall(rf"so {LABEL} keeps its values", text):
        found += 1
        assert any(not cells(tensor) & done.cells for tensor in meant(done, kept.strip("`"))), where
    also = re.findall(rf"({LIST}) shows? it too", text)
    for shown in [*re.findall(rf"so {LABEL} shows it too", text), *named(" ".join(also))]:
        found += 1
        assert any(cells(tensor) & done.cells for tensor in meant(done, shown.strip("`"))), where
    for group, read in re.findall(rf"({LIST}) are one storage, read through ([^.]*)\.", text):
        found += 1
        tensors = [meant(done, label) for label in named(group)]
        shared = set.intersection(*({storage(tensor) for tensor in each} for each in tensors))
        assert shared, where
        one = [next(t for t in each if storage(t) in shared) for each in tensors]
        if all(len(each) == 1 for each in tensors):
            told = {
                "shapes": {tuple(t.shape) for t in one},
                "strides": {t.stride() for t in one},
                "offsets": {t.storage_offset() for t in one},
                "element types": {t.dtype for t in one},
            }
            for word, values in told.items():
                assert ("different" in read and word in read) == (len(values) > 1), where
    for group in re.findall(rf"({LIST}) are one and the same tensor", text):
        found += 1
        tensors = [meant(done, label) for label in named(group)]
        assert set.intersection(*({id(t) for t in each} for each in tensors)), where
    for rest in re.findall(r"No other tensor reads these cells(: .*? but none of them)?\.", text):
        found += 1
        assert len({id(done.then[name]) for name in sees}) < 2, where
        for label in named(rest):
            alike = [t for t in meant(done, label) if not cells(t) & done.cells]
            assert any(storage(t) == storage(other) for t in alike for other in every if cells(other) & done.cells), (
                where
            )
    if "the only tensor" in text:
        found += 1
        assert len({id(tensor) for tensor in done.then.values()}) == 1, where
    for group in re.findall(rf"By then ({LIST}) names? something else", text):
        found += 1
        for name in named(group):
            assert len(done.made[name]) > 1, where
            assert name in done.then, where
    return found


def test_no_sentence_about_sharing_is_false() -> None:
    rng = random.Random(20261130)
    assert sum(check(programme(rng)) for _ in range(500)) > 500
