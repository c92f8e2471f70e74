"""A recorder that only executes: what a program prints is reported line by line. Tests of the process use it."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable
from typing import Any

SPLIT = "#: program"
"""The wall looks at what follows this line, so a program before it meets the seal alone."""

NAMES = "torch einops numpy ctypes socket subprocess threading mmap resource select asyncio tempfile"


def warm_up() -> None:
    """Import what programs of the tests use, as descriptors are denied later."""
    for name in (*NAMES.split(), "multiprocessing.shared_memory", "torch.utils.checkpoint"):
        importlib.import_module(name)
    import torch

    x = torch.randn(2, 2, requires_grad=True)
    (x @ x).sum().backward()
    repr(x)


def record(source: str, emit: Callable[[dict[str, Any]], None]) -> None:
    """Execute ``source``; each line that it prints is an event, and so is its exception."""

    class Lines(io.StringIO):
        def write(self, text: str, /) -> int:
            if text.strip():
                emit({"event": "print", "text": text[:4_000]})
            return len(text)

    sys.stdout = Lines()
    try:
        exec(compile(source, "program", "exec"), {"__name__": "__main__"})  # noqa: S102 - in a sealed process
    except MemoryError:
        raise
    except BaseException as problem:
        emit({"event": "error", "type": type(problem).__name__, "text": str(problem)[:2_000]})
