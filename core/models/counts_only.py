"""A model known by its counts alone: built elsewhere, with no shape to edit, and short enough to stand in a link."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from core.limits import limit
from core.messages import message
from core.models.spec_text import SpecTextError, read_items

EXAMPLE = (
    "made=JambaForCausalLM by=transformers_5.23.0 total=51570323328 active=12110311296 "
    "flop.1024=24318915641344 flop.2048=48775264731136 flop.4096=98100279771136"
)
"""A counted model as text."""

MOST_FLOP = limit("parameters") * limit("model_dimension") * 4
"""Most FLOPs of one sequence that are believed."""

_ITEM = re.compile(r"(?:made|by)=[A-Za-z0-9_.-]{1,80}|(?:total|active|flop\.[1-9]\d{0,7})=\d{1,40}")


@dataclass(frozen=True, slots=True)
class CountedModel:
    """made, by: the class, and what built it. total, active: parameters, and those that a token of text runs through.

    flop: forward FLOPs of one sequence by its length, one to three lengths, the whole attention square counted.
    """

    made: str
    by: str
    total: int
    active: int
    flop: Mapping[int, int]

    def forward(self, seq_len: int) -> float:
        """Forward FLOPs per token in a sequence of ``seq_len`` tokens, under the ``eager`` convention.

        Exact at the lengths that were counted, on the parabola through them elsewhere; see `Built.flop_at`.
        """
        return float(on_parabola(self.flop, seq_len) / seq_len)


def on_parabola(known: Mapping[int, int], at: int) -> Fraction:
    """The value at ``at`` of the curve through the known points: a parabola through three, a line through two."""
    fraction = Fraction(0)
    for here, value in known.items():
        share = Fraction(value)
        for other in known:
            if other != here:
                share *= Fraction(at - other, here - other)
        fraction += share
    return fraction


def write_counted(model: CountedModel) -> str:
    """``model`` as text that `read_counted` reads back to the same."""
    flop = [f"flop.{length}={value}" for length, value in sorted(model.flop.items())]
    return " ".join([f"made={model.made}", f"by={model.by}", f"total={model.total}", f"active={model.active}", *flop])


def read_counted(text: str) -> CountedModel:
    """The counted model that ``text`` describes; raises `SpecTextError`."""
    words = read_items(text, _ITEM)
    flop = {int(name[5:]): int(number) for name, number in words.items() if name.startswith("flop.")}
    if not {"made", "by", "total", "active"} <= words.keys() or not 1 <= len(flop) <= 3:
        raise SpecTextError(message("spec.counted_missing"))
    total, active = int(words["total"]), int(words["active"])
    if not 0 < active <= total <= limit("parameters"):
        raise SpecTextError(message("spec.counted_active", active=float(active), total=float(total)))
    if any(not 0 < value <= MOST_FLOP for value in flop.values()) or max(flop) > limit("model_dimension"):
        raise SpecTextError(message("spec.counted_flops"))
    return CountedModel(words["made"], words["by"], total, active, flop)
