"""What torch and einops make of an expression on a tensor that counts 0, 1, 2, …"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Mapping

import einops
import torch
import torch.nn.functional as functional

from tests.tools.tables import Row, Table

NAMES = {"torch": torch, "F": functional, **{name: getattr(einops, name) for name in ("rearrange", "reduce", "repeat")}}


def start(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """0, 1, 2, … in a storage just large enough, seen through ``shape`` and ``stride``."""
    cells = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if 0 not in shape else 0
    return torch.arange(cells, dtype=dtype).as_strided(shape, stride)


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two indices lead to one cell, by listing them all."""
    indices = itertools.product(*(range(size) for size in tensor.shape))
    cells = [sum(i * step for i, step in zip(index, tensor.stride(), strict=True)) for index in indices]
    return len(set(cells)) < len(cells)


def answer(row: Mapping[str, str]) -> Row:
    """Layout and first values of the result, or torch's own error."""
    x = start(ast.literal_eval(row["start_shape"]), ast.literal_eval(row["start_stride"]), getattr(torch, row["dtype"]))
    blank, cells = dict.fromkeys(TABLE.answers, ""), x.untyped_storage().nbytes()
    try:
        with warnings.catch_warnings(action="ignore"):  # torch deprecates some of what is asked
            y = eval(row["expr"], {**NAMES, "x": x})  # noqa: S307 our own rows, and this is no part of the product
    except Exception as error:
        return blank | {"error_type": type(error).__name__, "error_message": plain(str(error))}
    if not isinstance(y, torch.Tensor):
        raise TypeError(f"{row['expr']} gives no tensor")
    storage = y.untyped_storage()
    shared = storage._cdata == x.untyped_storage()._cdata
    written = not (shared and storage.nbytes() > cells)  # a storage that grew holds whatever was in memory
    return blank | {
        "result_shape": str(tuple(y.shape)),
        "stride": str(y.stride()),
        "storage_offset": str(y.storage_offset()),
        "numel": str(y.numel()),
        "is_contiguous": str(int(y.is_contiguous())),
        "shares_storage": str(int(shared)),
        "storage_numel": str(storage.nbytes() // y.element_size()),
        "exact_overlap": str(int(overlaps(y))),
        "values_first24": " ".join(str(value) for value in y.flatten()[:24].tolist()) if written else "",
    }


def plain(message: str) -> str:
    """White space as single spaces; einops’ sets of axes, whose order varies with the hash seed, sorted."""
    spaced = " ".join(message.split())
    return re.sub(r"\{('[^{}]*')\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", spaced)


TABLE = Table(
    "tensor_views",
    ("id", "category", "start_shape", "start_stride", "dtype", "expr", "note"),
    (
        "result_shape",
        "stride",
        "storage_offset",
        "numel",
        "is_contiguous",
        "shares_storage",
        "storage_numel",
        "exact_overlap",
        "values_first24",
        "error_type",
        "error_message",
    ),
    answer,
)
