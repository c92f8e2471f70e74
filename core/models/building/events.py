"""What the building process is asked and what it answers: one JSON object each way, checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from annotated_types import Interval, MaxLen

from core.jobs.lines import decoded
from core.limits import limit
from core.models.counts_only import MOST_FLOP, CountedModel, on_parabola
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.models.spec_text import SpecTextError, read_spec

TEXT_CHARS = 400
"""Longest text of an answer."""

MOST_PARTS = 60
"""Most modules that parameters are told by; what is beyond is one row."""

MOST_KEYS = 40
"""Most keys that are named as not read."""

_MOST = limit("parameters")
Text: TypeAlias = Annotated[str, MaxLen(TEXT_CHARS)]
Count: TypeAlias = Annotated[int, Interval(ge=0, le=_MOST)]
Flop: TypeAlias = Annotated[int, Interval(ge=0, le=MOST_FLOP)]

_STRICT = {"strict": True}
"""For pydantic, which is imported where an answer is read and not before."""


@dataclass(frozen=True, slots=True)
class BuiltPart:
    """Parameters of one module, layers taken together. active: of those, what one token runs through."""

    __pydantic_config__ = _STRICT
    module: Text
    total: Count
    active: Count

    def __post_init__(self) -> None:
        if self.active > self.total:
            raise ValueError("more parameters run than there are")


@dataclass(frozen=True, slots=True)
class Built:
    """A model that was built without its weights, and counted.

    made: the class, and who built it. parts: parameters by module. known: whether ``active`` is known, by running one
    sequence through it; elsewhere it is all. flop: forward FLOPs of one sequence, by its length, every key of the
    square counted; empty where they cannot be counted, and ``flop_refused`` says why. shape: as `write_spec` writes
    it, read from what ran; empty where ``shape_refused`` says why. unread: keys of the file that the model's
    configuration does not know.
    """

    __pydantic_config__ = _STRICT
    made: Text
    by: Text
    parts: Annotated[tuple[BuiltPart, ...], MaxLen(MOST_PARTS)]
    known: bool
    flop: Annotated[Mapping[int, Flop], MaxLen(3)]
    flop_refused: Text
    shape: Annotated[str, MaxLen(limit("spec_chars"))]
    shape_refused: Text
    notes: Annotated[tuple[Text, ...], MaxLen(8)]
    unread: Annotated[tuple[Text, ...], MaxLen(MOST_KEYS)]

    @property
    def total(self) -> int:
        """Every parameter, tied ones once."""
        return sum(part.total for part in self.parts)

    @property
    def active(self) -> int:
        """Parameters that one token of text runs through, input embedding included."""
        return sum(part.active for part in self.parts)

    def flop_at(self, seq_len: int) -> float | None:
        """Forward FLOPs of one sequence of ``seq_len`` tokens, None where they were not counted.

        Exact at the lengths that were run. Between and beyond them it follows the parabola through the three, as
        products with weights grow with the length and attention's with its square.
        """
        if not self.flop:
            return None
        return float(self.flop.get(seq_len) or on_parabola(self.flop, seq_len))


@dataclass(frozen=True, slots=True)
class ModelRefused:
    """Why a model was not built."""

    reason: str


def counted(built: Built) -> CountedModel | None:
    """What was built as a counted model; None where its FLOPs are not known."""
    if not built.known or not built.flop:
        return None
    return CountedModel(built.made, built.by.replace(" ", "_"), built.total, built.active, built.flop)


def laid_out(built: Built) -> TransformerSpec | None:
    """The shape that was read from what a model ran, where it has the model's active parameters and FLOPs.

    Parameters beyond it belong to what reads images or sound.
    """
    try:
        spec = read_spec(built.shape)
    except SpecTextError:
        return None
    counts = parameters(spec)
    same = counts.active == built.active and counts.total <= built.total
    alike = all(n * flops_per_token(spec, n, "eager").forward == flop for n, flop in built.flop.items())
    return spec if same and alike else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The line that the process prints: one of both."""

    __pydantic_config__ = _STRICT
    built: Built | None = None
    refused: Text | None = None


def decode(line: bytes) -> Built | ModelRefused | None:
    """The answer on a line of the building process, or None when it is anything else.

    Every field is checked for type and range: a library's own words can land on the same output.
    """
    from pydantic import TypeAdapter

    answer = decoded(TypeAdapter(_Answer), line)
    if answer is None:
        return None
    return ModelRefused(answer.refused) if answer.refused is not None else answer.built
