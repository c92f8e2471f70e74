"""Programs to begin with: the lecture's claims about tensors, named axes, elements that overlap, and attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.rows import read_rows
from core.tensors.parsing.text import read_shape
from core.tensors.sealed.given import names_in


@dataclass(frozen=True, slots=True)
class Preset:
    """A row of ``assets/data/tensor_presets.csv``.

    group: the list that it is in. claim: of the lecture, its id; empty for others. shape, dtype, source: the start
    tensor and the program. why: what it is good for, in a sentence; may be empty.
    """

    group: str
    claim: str
    label: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    why: str


PRESETS = tuple(Preset(**row | {"shape": read_shape(row["shape"])}) for row in read_rows("tensor_presets"))  # pyright: ignore[reportArgumentType]

LECTURE = tuple(preset for preset in PRESETS if preset.claim)
"""One preset per claim, in order."""


def older_program(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields for the program of an older link, whose panels had separate code; empty without such a
    program."""
    if call := fields.get("call"):
        made = zip(names_in(call), fields.get("sizes", "").split(";"), strict=False)
        return {"x": "\n".join([*(f"{item.name} = torch.randn({sizes.strip()})" for item, sizes in made), call])}
    if view := fields.get("view"):
        written = f"{view}.{fields.get('verb') or 'add_'}({fields.get('by') or 1})"
        return {"x": written, "shape": fields.get("vshape") or "6", "dtype": "int64"}
    return {}
