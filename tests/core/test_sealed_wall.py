"""The wall: what students write passes, and what has no place here is refused in words, where it stands."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.tensors.parsing.text import plain_code
from core.tensors.sealed.trust import known_programs
from core.tensors.sealed.wall import MODULES, refusal
from tests.every import every

SNIPPETS = Path(__file__).parents[1] / "data" / "snippets"


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What a helper has imported before it looks at programs."""
    for name in MODULES:
        importlib.import_module(name)


def published() -> Iterator[str]:
    for snippet in json.loads((SNIPPETS / "tensors.json").read_text(encoding="utf-8")):
        yield "\n".join((*snippet["given"], *snippet["lines"]))
    with (SNIPPETS / "einops.csv").open(encoding="utf-8", newline="") as table:
        yield from (row["code"].replace("|", "\n") for row in csv.DictReader(table))


def test_published_code_and_that_of_the_product_passes() -> None:
    sources = [*published(), *known_programs()]
    assert len(sources) > 600
    assert {source: refused for source in sources if (refused := refusal(source))} == {}


@every(
    "source",
    [
        "super().__init__()",
        "class M(nn.Module):\n    def f(self):\n        self._n = 1\n        return self._n",
        "x: int = 1\nx[0] += 1\nmatch x:\n    case [1, *_]: pass",
        "import torch.nn.functional as F\nF.scaled_dot_product_attention",
        "from torch import nn, optim\nnn.Linear, optim.AdamW",
        "from torch.utils.checkpoint import checkpoint",
        "from torch.utils.data import DataLoader, TensorDataset",
        "import torch.optim.lr_scheduler as s\ns.CosineAnnealingLR",
        "torch.cuda.memory_allocated(), torch.cuda.is_available()",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.float8_e4m3fn, torch.channels_last, torch.einsum, torch.bmm, torch.finfo",
        "from dataclasses import dataclass\nfrom typing import Any\nfrom collections import defaultdict",
        "import numpy as np\nnp.float32, np.exp, np.concatenate, np.random.default_rng(0)",
        "from jaxtyping import Float",
        "import torch\ntorch.no_such_name",
        "F = 3\nF.real",
        "y.grad_fn._saved_self, y._version, type(y).__name__",
        "try: pass\nexcept (RuntimeError, ValueError) as e: print(e)",
        "def open(): pass\nopen()",
        "no_such_name",
        "x = (",
        "",
        "(" * 5_000 + ")" * 5_000,
    ],
)
def test_what_students_write_passes_and_errors_are_left_to_python(source: str) -> None:
    assert refusal(source) is None


@every(
    ("source", "named", "line", "column"),
    [
        ("x = 1\nimport pandas", "pandas", 2, 1),
        ("import os.path", "os.path", 1, 1),
        ("import trch", "trch", 1, 1),
        ("from torch import save", "torch.save", 1, 1),
        ("import torch as t\n\nx = t.load('f')", "torch.load", 3, 5),
        ("import torch.hub", "torch.hub", 1, 1),
        ("torch.distributed.is_available()", "torch.distributed", 1, 1),
        ("np.load('f')", "numpy.load", 1, 1),
        ("import os\nos.system('ls')", "os.system", 2, 1),
        ("random.sys if False else 0\nimport typing\ntyping.sys", "typing.sys", 3, 1),
        ("open('f')", "open", 1, 1),
        ("f = eval", "eval", 1, 5),
        ("__import__('os')", "__import__", 1, 1),
        ("x.__class__.__base__", "__base__", 1, 1),
        ("(lambda: 0).__globals__", "__globals__", 1, 1),
        ("x._private", "_private", 1, 1),
        ("async def f(): pass", "async def", 1, 1),
        ("from . import x", ".", 1, 1),
    ],
)
def test_what_has_no_place_is_refused_where_it_stands(source: str, named: str, line: int, column: int) -> None:
    refused = refusal(source)
    assert refused
    assert named in refused.name
    assert refused.near == ("torch" if named == "trch" else "")
    assert (refused.line, refused.column) == (line, column)


@every(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("Try:\n```python\nx = 1\n```\nDone.", "\n\nx = 1\n\n"),
        ("```\nx = 1", "\nx = 1"),
        (">>> x = 1\n>>> for i in x:\n...     i\n...\n3\n>>> y", "x = 1\nfor i in x:\n    i\n\n\ny"),
        ("In [1]: x = 1\nOut[1]: 3\nIn [2]: y", "x = 1\n\ny"),
        ("x = [\n    ...\n]", "x = [\n    ...\n]"),
    ],
)
def test_prompts_and_fences_are_taken_away_and_lines_keep_their_numbers(text: str, code: str) -> None:
    assert plain_code(text) == code
