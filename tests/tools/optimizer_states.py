"""Bytes of state that libraries beyond torch keep for one parameter tensor, after two steps, as each allocates them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from tests.tools.tables import Row, Table

_RANK = {"rank": 128, "update_proj_gap": 200, "scale": 1.0, "projection_type": "std", "scale_type": "channel"}
_ADAM_MINI = {"embedding": "embed", "head": "lm_head", "matrix": "mlp.up", "vector": "norm"}

Make = Callable[[Any, Any, str], Any]
"""A library's module, one parameter and its kind → the optimizer."""


def _low_rank(name: str) -> Make:
    return lambda lib, p, kind: getattr(lib, name)([{"params": [p], **(_RANK if kind == "matrix" else {})}])


def _adam_mini(lib: Any, p: Any, kind: str) -> Any:
    return lib.Adam_mini([(f"{_ADAM_MINI[kind]}.weight", p)], dim=64, n_heads=4, verbose=False)


MAKERS: Mapping[str, tuple[str, str, Make]] = {
    # optimizer → package, module, and how it is made
    "Lion": ("lion-pytorch", "lion_pytorch", lambda lib, p, _: lib.Lion([p])),
    "CAME": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.CAME([p])),
    "LAMB": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.Lamb([p])),
    "LARS": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.LARS([p])),
    "SM3": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.SM3([p])),
    "AdEMAMix": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.AdEMAMix([p])),
    "Shampoo": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.Shampoo([p])),
    "SOAP": ("pytorch_optimizer", "pytorch_optimizer", lambda lib, p, _: lib.SOAP([p])),
    "GaLore, rank 128": ("pytorch_optimizer", "pytorch_optimizer", _low_rank("GaLore")),
    "Prodigy": ("prodigyopt", "prodigyopt", lambda lib, p, _: lib.Prodigy([p])),
    "Schedule-Free AdamW": ("schedulefree", "schedulefree", lambda lib, p, _: lib.AdamWScheduleFree([p])),
    "Schedule-Free SGD": ("schedulefree", "schedulefree", lambda lib, p, _: lib.SGDScheduleFree([p], lr=0.1)),
    "Adam-mini": ("adam-mini", "adam_mini", _adam_mini),
    "8-bit Adam": ("bitsandbytes", "bitsandbytes", lambda lib, p, _: lib.optim.AdamW8bit([p])),
    "8-bit Lion": ("bitsandbytes", "bitsandbytes", lambda lib, p, _: lib.optim.Lion8bit([p])),
    "8-bit LAMB": ("bitsandbytes", "bitsandbytes", lambda lib, p, _: lib.optim.LAMB8bit([p])),
    "8-bit Adam (torchao)": ("torchao", "torchao.optim", lambda lib, p, _: lib.AdamW8bit([p])),
    "4-bit Adam": ("torchao", "torchao.optim", lambda lib, p, _: lib.AdamW4bit([p])),
    "FP8 Adam": ("torchao", "torchao.optim", lambda lib, p, _: lib.AdamWFp8([p])),
}

SHAPES = (
    *(("matrix", 256, 160), ("matrix", 40, 30), ("matrix", 100, 50), ("vector", 160, 1)),
    *(("embedding", 500, 64), ("head", 500, 64)),
)
"""Kinds and shapes: of a multiple of 256 elements, of few, of no multiple, and those that some treat apart."""


def _tensors(value: object) -> Iterator[Any]:
    """Every tensor inside a state, without the tables of codes that quantised states share."""
    import torch

    if isinstance(value, torch.Tensor) and hasattr(value, "codes"):
        yield from (value.codes, value.scale)
    elif isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            if not str(key).startswith("qmap"):
                yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    elif hasattr(value, "__dict__"):
        yield from _tensors(vars(value))


def _parameter(lib: Any, kind: str, shape: tuple[int, ...]) -> Any:
    import torch

    if lib.__name__ == "bitsandbytes":  # what it was told about one optimizer's parameters, the next would inherit
        lib.optim.GlobalOptimManager.get_instance().initialize()
        if kind == "embedding":  # its own table asks for 32-bit states
            return lib.nn.Embedding(*shape).weight
    return torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)))


def answer(row: Mapping[str, str]) -> Row:
    """The bytes, and the library with its version."""
    from importlib import import_module

    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # nothing is gained by compiling two steps
    package, module, make = MAKERS[row["optimizer"]]
    lib = import_module(module)
    kind, rows, columns = row["kind"], int(row["rows"]), int(row["columns"])
    parameter = _parameter(lib, kind, (rows,) if kind == "vector" else (rows, columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = make(lib, parameter, kind)
        if hasattr(optimizer, "train"):
            optimizer.train()
        for _ in range(2):
            parameter.square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    states = [t for t in _tensors(dict(optimizer.state[parameter])) if t.data_ptr() != parameter.data_ptr()]
    size = sum(tensor.numel() * tensor.element_size() for tensor in states)
    return {"bytes": str(size), "library": f"{package} {metadata.version(package)}"}


def _more(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    known = {tuple(row[column] for column in TABLE.questions) for row in rows}
    questions = [(name, kind, str(m), str(n)) for name in MAKERS for kind, m, n in SHAPES]
    return [dict(zip(TABLE.questions, question, strict=True)) for question in questions if question not in known]


TABLE = Table(
    name="optimizer_states",
    questions=("optimizer", "kind", "rows", "columns"),
    answers=("bytes", "library"),
    answer=answer,
    needs="--no-deps -r tests/tools/requirements.txt",
    more=_more,
)
