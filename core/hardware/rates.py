"""Rates measured on an accelerator, which stand in place of what its datasheet leads one to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

RateName: TypeAlias = Literal["matmul16", "matmul8", "matmul4", "memory", "inside", "between"]
"""What can be measured and stand in: products by the bits of their factors, memory, and links."""

_OF_DTYPE: Mapping[str, RateName] = {"bf16": "matmul16", "fp16": "matmul16", "fp8": "matmul8", "fp4": "matmul4"}


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates measured on a device, in place of datasheet times efficiency; NaN where nothing was measured.

    matmul16, matmul8, matmul4: FLOP/s of large products by the bits of their factors.  memory: bytes per second of a
    large copy, read and written.  inside, between: bytes per second one way that collectives reach on one accelerator's
    links to its node, and on its share of the network to other nodes.
    """

    matmul16: float = math.nan
    matmul8: float = math.nan
    matmul4: float = math.nan
    memory: float = math.nan
    inside: float = math.nan
    between: float = math.nan

    def product(self, dtype: str, otherwise: float) -> float:
        """FLOP/s of products in ``dtype``; ``otherwise`` where they were not measured."""
        name = _OF_DTYPE.get(dtype)
        return self.of(name, otherwise) if name else otherwise

    def of(self, name: RateName, otherwise: float) -> float:
        """The rate of that name; ``otherwise`` where it was not measured."""
        rate: float = getattr(self, name)
        return otherwise if math.isnan(rate) else rate

    @property
    def known(self) -> tuple[tuple[RateName, float], ...]:
        """What was measured, by name."""
        names: tuple[RateName, ...] = get_args(RateName)
        return tuple((name, rate) for name in names if not math.isnan(rate := getattr(self, name)))
