"""Tours: stops, each a link that sets its fields, the part it lands at, and one sentence.

A page of planning has a tour of five. Pages to learn from have the path across them instead (`pages.exercises`); their
stops are panels that a projector steps through.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.limits import cached
from core.messages import message
from core.planning.comparison.entry import examples, pack
from core.planning.decide.presets import PRESETS as DECISIONS
from core.planning.presets import LECTURE as LECTURES
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.planning.sweep.form import SWEEP_PRESETS
from pages.common import comparison_list
from pages.common.links import LANDS_AT, address
from pages.common.registry import (
    COMPARE,
    COMPUTE,
    DECIDE,
    EXERCISES,
    FLOATS,
    GLOSSARY,
    GROUPS,
    HOME,
    LECTURE,
    MEASURE,
    MEMORY,
    PARALLEL,
    SAVED,
    TENSORS,
    WHAT_IF,
    PageSpec,
)

TOUR = "tour"
"""The parameter of a link that says which stop of the tour it is."""


ANSWER = "np-answer"
"""The class of a page's answer."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What it says, the page's fields, names without prefix, and the part to be in sight, which a panel's stop opens.

    The sentence holds whatever is computed: numbers that come out stand on the page.
    """

    says: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    at: str = ""


def _panel(says: str, name: str, fields: Mapping[str, str]) -> Stop:
    return Stop(says, {**fields, name: "true"}, name)


_ASKED = ("n", "tokens", "count", "gpu", "mfu")
_LECTURES = PRESETS[LECTURES]
_GPT3 = PRESETS["GPT-3 175B"]
_LLAMA = PRESETS["Llama 3.1 405B as trained"]
_HELD_70B = MEMORY_PRESETS["70B on one node"]
_HELD_405B = MEMORY_PRESETS["Llama 3.1 405B, TP 8, PP 16"]
_SOUGHT = SEARCH_PRESETS["70B on 512 H100"]
_BOARDS, _DECISIONS = tuple(SWEEP_PRESETS.items()), tuple(DECISIONS.values())

TOURS: Mapping[str, tuple[Stop, ...]] = {
    HOME.id: (
        Stop(message("tour.home.lecture"), {item: _LECTURES[item] for item in _ASKED}, "long"),
        Stop(message("tour.home.published"), {one: _LECTURES[one] for one in _ASKED[:-1]}, "long"),
        Stop(message("tour.home.all"), {"k": "8", "of": "everything"}, "large"),
        Stop(message("tour.home.states"), {"of": "model states alone", "prec": "fp32"}, "large"),
        Stop(message("tour.home.number"), {"x": "1e-8"}, "exact"),
    ),
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
    EXERCISES.id: (),
    GLOSSARY.id: (),
    COMPUTE.id: (
        Stop(message("tour.compute.accelerators"), {**_LECTURES, "find": "accelerators", "within": "90 days"}),
        _panel(message("tour.compute.split"), "split", _LECTURES),
        _panel(message("tour.compute.flops"), "flops", _GPT3),
        _panel(message("tour.compute.sensitivity"), "moves", _LECTURES),
        _panel(message("tour.compute.whole"), "whole", _LLAMA),
    ),
    MEMORY.id: (
        Stop(
            message("tour.memory.lora"),
            {"model": "Llama 3.1 8B", "ft": "adapters", "gpu": "RTX 4090", "count": "1", "seq": "2,048"},
        ),
        _panel(message("memory.panel.optimizers"), "optims", _HELD_70B),
        _panel(message("memory.panel.serving"), "serve", _HELD_70B),
        _panel(message("memory.panel.zeros"), "zeros", _HELD_405B),
        _panel(message("memory.panel.step"), "step", _HELD_70B),
    ),
    PARALLEL.id: (
        Stop(message("tour.parallel.fastest"), _SOUGHT),
        _panel(message("tour.parallel.why"), "why", _SOUGHT),
        _panel(message("tour.parallel.space"), "space", _SOUGHT),
        _panel(message("tour.parallel.near"), "near", _SOUGHT),
        _panel(message("tour.parallel.sizes"), "sizes", _SOUGHT),
    ),
    WHAT_IF.id: (
        *(Stop(name, fields) for name, fields in _BOARDS[:4]),
        _panel(message("tour.what_if.table"), "table", _BOARDS[0][1]),
    ),
    COMPARE.id: (
        Stop(message("tour.compare.three")),
        Stop(message("tour.compare.first"), {"base": "1"}),
        Stop(message("tour.compare.second"), {"base": "2"}),
        Stop(message("tour.compare.third"), {"base": "3"}),
        _panel(message("tour.compare.export"), "take", {}),
    ),
    DECIDE.id: (
        Stop(message("tour.decide.two"), _DECISIONS[0]),
        Stop(message("tour.decide.soonest"), {**_DECISIONS[0], "goal": "soonest"}),
        Stop(message("tour.decide.llama"), _DECISIONS[1]),
        Stop(message("tour.decide.deepseek"), _DECISIONS[2]),
        Stop(message("tour.decide.year"), _DECISIONS[3]),
    ),
    SAVED.id: (
        Stop(message("tour.saved.all")),
        Stop(message("tour.saved.llama"), {"q": "Llama"}),
        Stop(message("tour.saved.size"), {"q": "70B"}),
        Stop(message("tour.saved.h100"), {"q": "H100"}),
        Stop(message("tour.saved.archive"), {"old": "true"}),
    ),
    MEASURE.id: (
        Stop(message("tour.measure.rates")),
        Stop(message("tour.measure.lecture"), {"what": "The lecture’s experiment"}),
        Stop(message("tour.measure.memory"), {"what": "Memory"}),
        Stop(message("tour.measure.roofline"), {"what": "Everything", "roof": "true"}, at="roof"),
        Stop(message("tour.measure.layer"), {"what": "One layer’s training step"}),
    ),
}
"""The stops of each page, by its id."""


def hrefs(page: PageSpec) -> tuple[str, ...]:
    """The addresses of a page's stops, which carry the plans that a comparison needs."""
    plans = {comparison_list.IN_LINK: _examples()} if page is COMPARE else {}
    return tuple(
        address(page, stop.fields, {**plans, TOUR: str(number)}, stop.at)
        for number, stop in enumerate(TOURS[page.id], 1)
    )


@cached("tables_kept")
def _examples() -> str:
    return pack(examples())


def at_stop(page: PageSpec, at: str) -> bool:
    """Whether ``at`` is a stop of the page's tour."""
    return page not in GROUPS["Learn"] and at in map(str, range(1, len(TOURS[page.id]) + 1))


def row(page: PageSpec, at: str = "") -> str:
    """The tour as HTML, every stop a link: folded to a line, or open beside the page for who is at stop ``at``.

    On a page to learn from, a link to the path instead.
    """
    if page in GROUPS["Learn"]:
        path = html.escape(address(EXERCISES, {"how": "follow the path"}), quote=True)
        return f'<p class="np-next-page"><a href="{path}">{message("common.path")}</a></p>'
    items = [
        f'<li><a href="{html.escape(href, quote=True)}"{" aria-current=step" if at == str(number) else ""}>'
        f"{stop.says}</a></li>"
        for number, (stop, href) in enumerate(zip(TOURS[page.id], hrefs(page), strict=True), 1)
    ]
    beside = at_stop(page, at)
    return (
        f'<details class="np-tour{" np-beside" if beside else ""}"{" open" if beside else ""}>'
        f"<summary>{message('common.tour')}</summary><ol>{''.join(items)}</ol></details>"
    )


def landing(address: Mapping[str, str]) -> str:
    """What is brought into sight for the parameters ``address``: the part it names, or the answer at any other stop."""
    return address.get(LANDS_AT, "") or (ANSWER if TOUR in address else "")
