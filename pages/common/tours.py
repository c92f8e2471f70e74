"""The panels that a projector steps through on a page to learn from, and the path across these pages."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

from core.messages import message
from pages.common.links import address
from pages.common.registry import EXERCISES, FLOATS, LECTURE, PAGES, TENSORS

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
}
"""The stops of each page, by its id."""


def path_link() -> str:
    """Return a link to the path across the pages to learn from, as HTML."""
    path = html.escape(address(EXERCISES, {"how": "follow the path"}), quote=True)
    return f'<p class="np-next-page"><a href="{path}">{message("common.path")}</a></p>'
