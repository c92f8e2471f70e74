"""Texts of a search: the global batch, and ranges of degrees."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.limits import limit
from core.search.constraints import Range
from core.units import QuantityError, parse_quantity

_SURELY_TOKENS = 500_000
"""Sequences that no step ever had: as a bare number they are rather tokens."""

_BATCH = re.compile(r"(.*?)\s*(tokens?|sequences?|seqs?)?", re.IGNORECASE | re.DOTALL)


PRE_TRAINING_BATCH = "16M tokens"
"""The batch that a plan begins with."""

FINE_TUNING_BATCH = "64 sequences"
"""The batch that a plan begins with where a part of a model is trained: that of Llama 2's fine-tuning [Touvron et al.
2023, arXiv:2307.09288, section 3.1]."""


def begun_batch(text: str, *, everything: bool) -> str:
    """The batch once a plan goes over to training everything, or a part of a model: the one that such plans begin with
    in the place of the one that the others begin with, else ``text``."""
    before, after = (FINE_TUNING_BATCH, PRE_TRAINING_BATCH) if everything else (PRE_TRAINING_BATCH, FINE_TUNING_BATCH)
    return after if text == before else text


@dataclass(frozen=True, slots=True)
class Batch:
    """A global batch as typed: so many sequences, or about so many tokens."""

    size: float = 16e6
    in_tokens: bool = True

    def target(self, seq_len: int) -> float:
        """Sequences of a step as asked for, which need not be whole."""
        return max(1.0, self.size / seq_len) if self.in_tokens else self.size

    def sequences(self, seq_len: int) -> int:
        """About as many, whole."""
        return round(self.target(seq_len))


def parse_batch(text: str) -> Batch:
    """A batch as typed: ``2,048``, ``2,048 sequences``, ``16M tokens`` or ``16M``: no step has millions of sequences.

    Raises `QuantityError` with an example.
    """
    match = _BATCH.fullmatch(text.strip())
    number, unit = (match[1], (match[2] or "").lower()) if match else (text, "")
    if not unit and number[-1:] in ("k", "K"):
        raise QuantityError(f"“{number}” are {number} tokens or {number} sequences: which of them? Type it so.")
    in_tokens = unit.startswith("token") or (not unit and number[-1:].isalpha())
    most = limit("batch_tokens") if in_tokens else limit("batch_sequences")
    size = parse_quantity(
        number, "count", low=1, high=most, whole=True, example="16M tokens, or 2,048 for that many sequences"
    )
    if not in_tokens and not unit and size >= _SURELY_TOKENS:
        typed = text.strip()
        raise QuantityError(
            f"“{typed}” is {size:,.0f} sequences. Did you mean {typed} tokens? If not, type “{typed} sequences”."
        )
    return Batch(size, in_tokens)


def parse_range(text: str) -> Range | None:
    """What a degree must keep to: ``8``, ``up to 8``, ``2-8``; nothing for any. Raises `QuantityError` otherwise."""
    cleaned = " ".join(text.replace("≤", "up to ").replace("–", "-").split()).lower()
    if cleaned in ("", "any"):
        return None
    if cleaned.startswith("up to "):
        return Range(1, _degree(cleaned.removeprefix("up to ")))
    ends = [_degree(end) for end in re.split(r"\s*-\s*|\s+to\s+", cleaned)]
    if len(ends) > 2:
        raise QuantityError(f"“{text.strip()}” is no range. For example: {_EXAMPLES}, or nothing for any.")
    return Range(min(ends), max(ends))


_EXAMPLES = "8, up to 8, 2-8"


def _degree(text: str) -> int:
    return int(parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example=_EXAMPLES))
