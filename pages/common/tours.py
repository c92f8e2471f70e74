"""The panels that a projector steps through on a page, and the path across the pages to learn from."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

from core.messages import message
from core.planning.presets import LECTURE as LECTURE_PLAN
from core.planning.presets import MEMORY_PRESETS, PRESETS
from pages.common.links import address
from pages.common.registry import COMPUTE, EXERCISES, FLOATS, LECTURE, MEMORY, PAGES, TENSORS

TOUR = "tour"
"""The parameter of a link that says which stop it opens on a projector, from 1."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A slide: what it says, the page's fields, names without prefix, and the part to be in sight."""

    says: str
    fields: Mapping[str, str]
    at: str = ""


def _panel(says: str, name: str, fields: Mapping[str, str]) -> Stop:
    return Stop(says, {**fields, name: "true"}, name)


TOURS: Mapping[str, tuple[Stop, ...]] = {page.id: () for page in PAGES} | {
    FLOATS.id: (
        _panel(message("floats.tour.arithmetic"), "arith", {"x": "0.1", "fmt": "bf16"}),
        _panel(message("floats.tour.sum"), "sums", {"x": "1", "fmt": "bf16"}),
        _panel(message("floats.tour.scaling"), "loss", {"x": "2^-24", "fmt": "fp16"}),
        _panel(message("floats.tour.block"), "block", {"x": "21.3", "fmt": "fp8_e4m3fn"}),
    ),
    TENSORS.id: (_panel(message("tour.tensors.einops"), "named", {"x": "x.t()", "shape": "2, 3"}),),
    LECTURE.id: (
        _panel(message("tour.lecture.matmul"), "linear", {"claim": "C1"}),
        Stop(message("tour.lecture.width"), {"claim": "M10"}),
    ),
    COMPUTE.id: (
        _panel(message("compute.panel.split"), "split", PRESETS[LECTURE_PLAN]),
        _panel(message("compute.panel.flops"), "flops", PRESETS["GPT-3 175B"]),
        _panel(message("compute.panel.whole"), "whole", PRESETS["Llama 3.1 405B as trained"]),
    ),
    MEMORY.id: (
        _panel(message("memory.panel.optimizers"), "optims", MEMORY_PRESETS["70B on one node"]),
        _panel(message("memory.panel.activations"), "acts", MEMORY_PRESETS["70B on one node"]),
        _panel(message("memory.panel.step"), "step", MEMORY_PRESETS["70B on one node"]),
        _panel(message("memory.panel.serving"), "serve", MEMORY_PRESETS["70B on one node"]),
    ),
}
"""The stops of each page, by its id."""


def path_link() -> str:
    """Return a link to the path across the pages to learn from, as HTML."""
    path = html.escape(address(EXERCISES, {"how": "follow the path"}), quote=True)
    return f'<p class="np-next-page"><a href="{path}">{message("common.path")}</a></p>'
