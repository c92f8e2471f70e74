"""What stands in place of attention in some layers: a state of fixed size, carried on from token to token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.messages import message
from core.models.spec_error import SpecError, whole

MixerKind: TypeAlias = Literal["mamba", "mamba2", "delta", "kda", "convolution"]
"""How the state moves on: selective state space, state-space duality (one decay per head), gated delta rule with a
decay per head or per channel (Kimi Linear), or a short gated convolution and nothing else (LFM2)."""

NAMES: Mapping[MixerKind, str] = {
    "mamba": "a selective state space (Mamba)",
    "mamba2": "a state space in heads (Mamba-2)",
    "delta": "a gated delta rule",
    "kda": "a delta rule gated by channel",
    "convolution": "a short convolution",
}
"""What each kind is called."""

_RANKED = ("mamba", "kda")
_PER_HEAD: Mapping[MixerKind, int] = {"mamba": 0, "mamba2": 3, "delta": 2, "kda": 1, "convolution": 0}
_RATES: Mapping[MixerKind, int] = {"mamba": 0, "mamba2": 1, "delta": 2, "kda": 1, "convolution": 0}


@dataclass(frozen=True, slots=True)
class Mixer:
    """Layers with a state in place of attention.

    layers: how many there are; which ones they are changes no count. heads, width: heads of the values and their
    width, with Mamba every channel a head of its own of width 1. groups: heads of what writes and reads the state (B
    and C, keys and queries), shared by so many heads of the values. state: rows of the state of a head. conv: tokens
    that the convolution sees. rank: of Mamba’s step size, or of decay and gate of a delta rule gated by channel. bias,
    conv_bias: of the two projections, and of the convolution. normed: norms of step size, B and C (Jamba). parallel:
    the same layers have attention, too, and add up what both give (Falcon-H1). gate_normed: Mamba-2 norms its output.
    gate_ranked: a rule gated by channel makes its gate from a low rank, too.
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
    parallel: bool = False
    gate_normed: bool = True
    gate_ranked: bool = True

    def __post_init__(self) -> None:
        whole(self, 1, "layers", "heads", "width", "state", "groups", "conv")
        whole(self, 0, "rank")
        if (self.kind in _RANKED) != (self.rank > 0):
            raise SpecError("rank", self.rank, message("spec.mixer_rank"))
        if self.kind in ("mamba", "convolution") and (self.width, self.groups) != (1, 1):
            raise SpecError("width", self.width, message("spec.mixer_width"))
        if self.kind == "convolution" and self.state != 1:
            raise SpecError("state", self.state, message("spec.mixer_state"), 1)
        if self.normed and self.kind != "mamba":
            raise SpecError("normed", True, message("spec.mixer_normed"))
        if self.heads % self.groups:
            raise SpecError("groups", self.groups, message("spec.mixer_groups", heads=float(self.heads)))

    @property
    def inner(self) -> int:
        """Width of the values, and of their gate."""
        return self.heads * self.width

    @property
    def pairs(self) -> int:
        """Width of B and C, or of keys and queries, as far as the first projection makes them."""
        return 0 if self.kind in ("mamba", "convolution") else 2 * self.groups * self.state

    @property
    def rates(self) -> int:
        """Numbers per token by which the state of each head decays and takes up what is new."""
        return _RATES[self.kind] * self.heads

    @property
    def learned(self) -> int:
        """Learned numbers for each head: decay, skip and step size. Mamba decays every row of the state by itself."""
        return _PER_HEAD[self.kind] or self.state + 1

    @property
    def operations(self) -> int:
        """FLOPs per token for each number of the state, by Megatron-LM’s convention."""
        return 8 if self.kind in ("delta", "kda") else 7
