"""How far 6ND is off: three models of different size, one token counted by layer against six times the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from core.models.catalog import CatalogModel, model_named
from core.models.flops import Attention, flops_per_token

MODELS: tuple[str, ...] = ("GPT-2 124M", "Llama 3.1 8B", "Llama 3.1 405B")
"""A small, a usual and a large dense model."""

_LENGTH = 8192


@dataclass(frozen=True, slots=True)
class RuleError:
    """One model: tokens of a sequence, FLOPs of one token forward as counted, and its share above or below 6 N."""

    model: CatalogModel
    seq_len: int
    forward: float
    error: float


def rule_error(name: str, attention: Attention = "causal") -> RuleError:
    """A model of the catalogue at 8,192 tokens, or at its longest sequence where that is shorter."""
    model = model_named(name)
    length = min(model.max_seq, _LENGTH)
    counted = flops_per_token(model.spec, length, attention)
    return RuleError(model, length, counted.forward, counted.training / (6 * model.active) - 1)
