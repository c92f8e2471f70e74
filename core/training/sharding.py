"""How the model states are spread over accelerators: a full copy on each, ZeRO's stages, or one copy over all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.formula import Source
from core.sources import ZERO


@dataclass(frozen=True, slots=True)
class Sharding:
    """Which parts of the model states exist once over all accelerators; the other parts exist once on each.

    optimizer: says it for the optimizer state and for the master copies, which the optimizer owns.
    phrase: the strategy as a clause at the end of a sentence; empty for the default.
    """

    id: str
    parameters: bool
    gradients: bool
    optimizer: bool
    meaning: str
    phrase: str
    sources: tuple[Source, ...]

    @property
    def complete(self) -> bool:
        """True when every part exists exactly once, so that n accelerators hold n times as large a model as one."""
        return self.parameters and self.gradients and self.optimizer

    def copies(self, accelerators: float) -> tuple[float, float, float]:
        """Copies of parameters, gradients, and optimizer-owned states that ``accelerators`` together store."""
        parts = (self.parameters, self.gradients, self.optimizer)
        return (
            1.0 if parts[0] else accelerators,
            1.0 if parts[1] else accelerators,
            1.0 if parts[2] else accelerators,
        )


_ZERO = ZERO.at("table 1")
_FSDP = Source("Zhao et al. 2023, PyTorch FSDP", "section 3", "https://arxiv.org/abs/2304.11277")

REPLICATED = Sharding(
    id="replicated",
    parameters=False,
    gradients=False,
    optimizer=False,
    meaning="Plain data parallelism: every accelerator keeps all states, so more of them hold no larger model.",
    phrase="a full copy on each",
    sources=(_ZERO,),
)
ZERO_1 = Sharding(
    id="ZeRO-1",
    parameters=False,
    gradients=False,
    optimizer=True,
    meaning="Optimizer state and master weights are sharded; parameters and gradients are on each.",
    phrase="only the optimizer’s states sharded",
    sources=(_ZERO,),
)
ZERO_2 = Sharding(
    id="ZeRO-2",
    parameters=False,
    gradients=True,
    optimizer=True,
    meaning="Gradients, optimizer state and master weights are sharded; parameters are on each.",
    phrase="all but the parameters sharded",
    sources=(_ZERO,),
)
SHARDED = Sharding(
    id="sharded",
    parameters=True,
    gradients=True,
    optimizer=True,
    meaning="ZeRO-3 or FSDP: one copy of everything, spread evenly over all accelerators.",
    phrase="",
    sources=(_ZERO, _FSDP),
)

SHARDINGS: Mapping[str, Sharding] = MappingProxyType({s.id: s for s in (SHARDED, ZERO_2, ZERO_1, REPLICATED)})
"""The named strategies, from the least memory to the most."""


def stage_sharding(stage: int) -> Sharding:
    """The strategy of a ZeRO stage, 0 to 3. Raises ``KeyError`` for any other."""
    return dict(enumerate(reversed([*SHARDINGS.values()])))[stage]
