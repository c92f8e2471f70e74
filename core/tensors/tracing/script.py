"""What a page ran, as a Python script that runs on its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.tensors.parsing.text import readable
from core.tensors.sealed.given import Start, filled, names_in, whole_program
from core.tensors.sealed.namespace import EINOPS
from core.tensors.sealed.program import SPLIT
from core.tensors.tracing.trace import start_layout

_IMPORTS = {
    r"\bnn\.": "from torch import nn",
    r"\bF\.": "import torch.nn.functional as F",
    r"\bnp\.": "import numpy as np",
    r"\bmath\.": "import math",
    r"\beinops\.": "import einops",
}
"""What a text uses → the line that imports it."""


def script(
    source: str,
    shape: Sequence[int],
    dtype: str = "int64",
    stride: Sequence[int] | None = None,
    given: Mapping[str, str] | None = None,
) -> str:
    """``source`` with its imports, and what stands for names that it does not define.

    Raises `ExpressionError` for a start or a value that is none.
    """
    text = readable(source)
    names = names_in(text, shape)
    start = Start(start_layout(shape, stride, "counted_elements"), dtype)
    starts = any(item.name == "x" for item in names)
    whole = whole_program(text, start if starts else None, filled(names, given or {}))
    imports = ["import torch", *(line for used, line in _IMPORTS.items() if re.search(used, whole))]
    functions = [name for name in sorted(EINOPS) if re.search(rf"(?<![.\w]){name}\(", whole)]
    imports += [f"from einops import {', '.join(functions)}"] if functions else []
    before, _, program = whole.partition(f"{SPLIT}\n")
    seed = "torch.manual_seed(0)"
    return "\n".join([*imports, "", seed, before + program.strip("\n"), ""])
