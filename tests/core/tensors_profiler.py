"""What torch's own profiler says that programs allocate on the CPU."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from einops import einsum, rearrange, reduce, repeat
from torch.profiler import ProfilerActivity, profile, record_function

from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.allocations import COLLECTOR
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import names_asked, trace

Program: TypeAlias = tuple[str, tuple[int, ...], str]
"""The code, and shape and dtype of x."""

_FUNCTIONS = {"rearrange": rearrange, "reduce": reduce, "repeat": repeat, "einsum": einsum, "math": math}
_START, _PROGRAM = "start of x", "program"

OTHER = ("[[[", "rand", "empty", "dropout", "normal", "uniform", "bernoulli", "multinomial", "torch.Tensor,")
"""Nested lists, which torch takes for a tuple; what has other values here, as how many are picked may hang on them; and
an annotation, which alone makes a tensor of its shape here."""


@dataclass(frozen=True)
class Profiled:
    """Bytes that a program asked for in all, and the most it had at once, x with it."""

    total: int
    peak: int


def profiled(programs: Sequence[Program]) -> list[Profiled | None]:
    """Each program run by Python on the CPU, all under one ``torch.profiler``; ``None`` for one that fails."""
    failed: set[int] = set()
    with (
        warnings.catch_warnings(),
        COLLECTOR.held(),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen,
    ):
        warnings.simplefilter("ignore")
        for number, (text, shape, dtype) in enumerate(programs):
            names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, **_FUNCTIONS}
            with record_function(_START):
                if any(item.name == "x" for item in names_asked(text)):
                    names["x"] = torch.arange(math.prod(shape), dtype=getattr(torch, dtype)).view(shape)
            with record_function(_PROGRAM):
                try:
                    exec(compile(text, _PROGRAM, "exec"), names)  # noqa: S102 (text of our own making)
                except Exception:
                    failed.add(number)
    profiler: Any = seen.profiler
    events: list[Any] = sorted(profiler.kineto_results.events(), key=lambda event: event.start_ns())
    starts = [event.start_ns() for event in events if event.name() == _START]
    began = [event.start_ns() for event in events if event.name() == _PROGRAM]
    ended = [event.start_ns() + event.duration_ns() for event in events if event.name() == _PROGRAM]
    sizes: list[list[int]] = [[] for _ in programs]
    mine: list[list[int]] = [[] for _ in programs]
    for event in events:
        number = bisect_right(starts, event.start_ns()) - 1
        if event.name() == "[memory]" and number >= 0 and event.start_ns() <= ended[number]:
            sizes[number].append(event.nbytes())
            mine[number] += [event.nbytes()] * (event.start_ns() >= began[number])
    return [
        None
        if number in failed
        else Profiled(
            sum(size for size in mine[number] if size > 0),
            max(sum(sizes[number][: end + 1]) for end in range(-1, len(sizes[number]))),
        )
        for number in range(len(programs))
    ]


def compared(programs: Sequence[Program]) -> list[str]:
    """For each: ``equal``, ``left out`` where the program or its reader fails or values differ, or what differs."""
    runs: list[Trace | None] = []
    for text, shape, dtype in programs:
        try:
            run = trace(text, shape, dtype=dtype)
        except ExpressionError:
            runs.append(None)
            continue
        other = any(word in text for word in OTHER)
        runs.append(None if run.counted or run.refusal is not None or other else run)
    followed = [(program, run) for program, run in zip(programs, runs, strict=True) if run is not None]
    results: list[str] = ["left out"] * (len(programs) - len(followed))
    for (program, run), theirs in zip(followed, profiled([program for program, _ in followed]), strict=True):
        ours = Profiled(run.last.bytes_total, max(run.at_once))
        equal = "equal" if ours == theirs else f"{ours} is {theirs} in torch's profiler: {program}"
        results.append("left out" if theirs is None else equal)
    return results
