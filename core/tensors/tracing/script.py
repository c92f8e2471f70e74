"""What a page ran, as a Python script that runs on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.tensors.parsing.text import readable
from core.tensors.sealed.given import Start, filled, names_in, whole_program
from core.tensors.sealed.namespace import EINOPS
from core.tensors.sealed.program import SPLIT
from core.tensors.tracing.trace import start_layout

_IMPORTS = f"""import math

import einops
import numpy as np
import torch
import torch.nn.functional as F
from einops import {", ".join(sorted(EINOPS))}
from torch import nn

torch.manual_seed(0)
"""


def script(
    source: str,
    shape: Sequence[int],
    dtype: str = "int64",
    stride: Sequence[int] | None = None,
    given: Mapping[str, str] | None = None,
) -> str:
    """Return ``source`` as a script, with its imports and with values for names that it does not define.

    Raises `ExpressionError` for an invalid start tensor or value.
    """
    text = readable(source)
    names = names_in(text, shape)
    start = Start(start_layout(shape, stride), dtype)
    starts = any(item.name == "x" for item in names)
    whole = whole_program(text, start if starts else None, filled(names, given or {}))
    before, _, program = whole.partition(f"{SPLIT}\n")
    return _IMPORTS + before + program.strip("\n") + "\n"
