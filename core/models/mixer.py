"""What stands in place of attention in some layers: a state of fixed size, carried on from token to token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.models.spec_error import SpecError, whole

MixerKind: TypeAlias = Literal["mamba", "mamba2", "delta"]
"""How the state moves on: selective state space, state-space duality (one decay per head), gated delta rule."""

NAMES: Mapping[MixerKind, str] = {
    "mamba": "a selective state space (Mamba)",
    "mamba2": "a state space in heads (Mamba-2)",
    "delta": "a gated delta rule",
}
"""What each kind is called."""

_PER_HEAD: Mapping[MixerKind, int] = {"mamba": 0, "mamba2": 3, "delta": 2}
_RATES: Mapping[MixerKind, int] = {"mamba": 0, "mamba2": 1, "delta": 2}


@dataclass(frozen=True, slots=True)
class Mixer:
    """Layers with a state in place of attention.

    layers: how many there are; which ones they are changes no count. heads, width: heads of the values and their
    width, with Mamba every channel a head of its own of width 1. groups: heads of what writes and reads the state (B
    and C, keys and queries), shared by so many heads of the values. state: rows of the state of a head. conv: tokens
    that the convolution sees. rank: of the step size, with Mamba alone. bias, conv_bias: of the two projections, and
    of the convolution. normed: norms of step size, B and C (Jamba).
    """

    kind: MixerKind
    layers: int
    heads: int
    width: int
    state: int
    groups: int = 1
    conv: int = 4
    rank: int = 0
    bias: bool = False
    conv_bias: bool = False
    normed: bool = False

    def __post_init__(self) -> None:
        whole(self, 1, "layers", "heads", "width", "state", "groups", "conv")
        whole(self, 0, "rank")
        if (self.kind == "mamba") != (self.rank > 0):
            raise SpecError("rank", self.rank, "Mamba has a step size of some rank, and nothing else has.")
        if self.kind == "mamba" and (self.width, self.groups) != (1, 1):
            raise SpecError("width", self.width, "with Mamba every channel is a head of width 1, all in one group.")
        if self.normed and self.kind != "mamba":
            raise SpecError("normed", True, "only Mamba has step size, B and C to norm.")
        if self.heads % self.groups:
            raise SpecError("groups", self.groups, f"{self.heads} heads cannot share {self.groups} groups evenly.")

    @property
    def inner(self) -> int:
        """Width of the values, and of their gate."""
        return self.heads * self.width

    @property
    def pairs(self) -> int:
        """Width of B and C, or of keys and queries, as far as the first projection makes them."""
        return 0 if self.kind == "mamba" else 2 * self.groups * self.state

    @property
    def rates(self) -> int:
        """Numbers per token by which the state of each head decays and takes up what is new."""
        return _RATES[self.kind] * self.heads

    @property
    def learned(self) -> int:
        """Learned numbers for each head: decay, skip and step size. Mamba decays every row of the state by itself."""
        return _PER_HEAD[self.kind] or self.state + 1

    @property
    def normed_width(self) -> int:
        """Width of the norm of what the mixer gives, or of those of step size, B and C."""
        if self.kind == "mamba":
            return (self.rank + 2 * self.state) if self.normed else 0
        return self.width if self.kind == "delta" else self.inner

    @property
    def operations(self) -> int:
        """FLOPs per token for each number of the state, by Megatron-LM’s convention."""
        return 8 if self.kind == "delta" else 7
