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
from core.planning.calendar.presets import PRESETS as CALENDAR_STORIES
from core.planning.comparison.entry import examples, pack
from core.planning.presets import LECTURE as LECTURES
from core.planning.presets import MEMORY_PRESETS, PRESETS, SEARCH_PRESETS
from core.planning.sweep.form import SWEEP_PRESETS
from pages.common import comparison_list
from pages.common.links import LANDS_AT, address
from pages.common.registry import (
    CALENDAR,
    COMPARE,
    COMPUTE,
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
_BOARDS, _CALENDARS = tuple(SWEEP_PRESETS.items()), tuple(CALENDAR_STORIES.values())

TOURS: Mapping[str, tuple[Stop, ...]] = {
    HOME.id: (
        Stop("The lecture’s 70B run, at half of the peak", {item: _LECTURES[item] for item in _ASKED}, "long"),
        Stop("The same run, as published runs did", {one: _LECTURES[one] for one in _ASKED[:-1]}, "long"),
        Stop("The largest model on one node, everything counted", {"k": "8", "of": "everything"}, "large"),
        Stop("The same with model states alone, in fp32", {"of": "model states alone", "prec": "fp32"}, "large"),
        Stop("A number that fp16 cannot keep and bf16 can", {"x": "1e-8"}, "exact"),
    ),
    FLOATS.id: (
        _panel("0.1 + 0.2 in bf16, bit by bit", "arith", {"x": "0.1", "fmt": "bf16"}),
        _panel("A sum in a narrow format stalls", "sums", {"x": "1", "fmt": "bf16"}),
        _panel("Loss scaling lifts gradients over fp16’s floor", "loss", {"x": "2^-24", "fmt": "fp16"}),
        _panel("Many values under one scale, one of them far out", "block", {"x": "21.3", "fmt": "fp8_e4m3fn"}),
    ),
    TENSORS.id: (
        _panel("einops names the axes, and says what it does to memory", "named", {"x": "x.t()", "shape": "2, 3"}),
    ),
    LECTURE.id: (
        _panel("From one matmul to 6ND", "linear", {"claim": "C1"}),
        Stop("How outputs grow with the width", {"claim": "M10"}),
    ),
    EXERCISES.id: (),
    GLOSSARY.id: (),
    COMPUTE.id: (
        Stop(
            "The lecture’s run in 90 days: how many H100s?", {**_LECTURES, "find": "accelerators", "within": "90 days"}
        ),
        _panel("Parameters or tokens: the compute-optimal split", "split", _LECTURES),
        _panel("Where the FLOPs go: attention and matrices", "flops", _GPT3),
        _panel("What moves the answer most", "moves", _LECTURES),
        _panel("The whole run: failures, checkpoints, energy", "whole", _LLAMA),
    ),
    MEMORY.id: (
        Stop(
            "LoRA on an 8B model: does one gaming card hold it?",
            {"model": "Llama 3.1 8B", "ft": "adapters", "gpu": "RTX 4090", "count": "1", "seq": "2,048"},
        ),
        _panel(message("memory.panel.optimizers"), "optims", _HELD_70B),
        _panel(message("memory.panel.serving"), "serve", _HELD_70B),
        _panel(message("memory.panel.zeros"), "zeros", _HELD_405B),
        _panel(message("memory.panel.step"), "step", _HELD_70B),
    ),
    PARALLEL.id: (
        Stop("The fastest layout of a 70B model on 512 H100s", _SOUGHT),
        _panel("Why this one? What its step goes to", "why", _SOUGHT),
        _panel("The whole space that it was found in", "space", _SOUGHT),
        _panel("One step in each direction from it", "near", _SOUGHT),
        _panel("How many accelerators are worth having", "sizes", _SOUGHT),
    ),
    WHAT_IF.id: (
        *(Stop(name, fields) for name, fields in _BOARDS[:4]),
        _panel("Every cell as a row of a table", "table", _BOARDS[0][1]),
    ),
    COMPARE.id: (
        Stop("One model on three kinds of accelerators"),
        Stop("The first is the baseline", {"base": "1"}),
        Stop("The second is the baseline", {"base": "2"}),
        Stop("The third is the baseline", {"base": "3"}),
        _panel("All of it as files to take away", "take", {}),
    ),
    CALENDAR.id: (
        Stop("Llama 3 405B: long sequences after short ones", _CALENDARS[0]),
        Stop("DeepSeek-V3: three stages of context", _CALENDARS[1]),
        Stop("A year of one fleet, experiments beside the main run", _CALENDARS[2]),
        Stop("The same year without maintenance", {**_CALENDARS[2], "closed": "", "mhours": "0"}),
        Stop("Two models, one after the other", _CALENDARS[3]),
    ),
    SAVED.id: (
        Stop("Every plan that was kept"),
        Stop("What is known of Llama", {"q": "Llama"}),
        Stop("Plans of 70B models", {"q": "70B"}),
        Stop("Plans on H100", {"q": "H100"}),
        Stop("With the archive", {"old": "true"}),
    ),
    MEASURE.id: (
        Stop("The rates of this machine, dtype by dtype"),
        Stop("The lecture’s experiment", {"what": "The lecture’s experiment"}),
        Stop("What moves bytes", {"what": "Memory"}),
        Stop("Its own roofline", {"what": "Everything", "roof": "true"}, at="roof"),
        Stop("One layer, predicted and timed", {"what": "One layer’s training step"}),
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
        return f'<p class="np-next-page"><a href="{path}">The path: nine steps from a bit to 6ND</a></p>'
    items = [
        f'<li><a href="{html.escape(href, quote=True)}"{" aria-current=step" if at == str(number) else ""}>'
        f"{stop.says}</a></li>"
        for number, (stop, href) in enumerate(zip(TOURS[page.id], hrefs(page), strict=True), 1)
    ]
    beside = at_stop(page, at)
    return (
        f'<details class="np-tour{" np-beside" if beside else ""}"{" open" if beside else ""}>'
        f"<summary>A tour in five steps</summary><ol>{''.join(items)}</ol></details>"
    )


def landing(address: Mapping[str, str]) -> str:
    """What is brought into sight for the parameters ``address``: the part it names, or the answer at any other stop."""
    return address.get(LANDS_AT, "") or (ANSWER if TOUR in address else "")
