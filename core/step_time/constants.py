"""The constants of step time: a row of ``assets/data/step_constants.csv`` each, with its prior and what a fit made.

Most are shares: of a peak that products reach, of a communication that nothing hides.
``core.step_time.calibration.fit`` fits them to published step times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from core.hardware.accelerators import Accelerator
from core.limits import cached
from core.rows import number, read_rows

TABLE = "step_constants"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant. family: of accelerators, empty where it holds for all.

    prior, prior_sd: what is known without the published step times; standard deviations are of the logarithm.
    posterior_sd: the same after the fit; NaN before one.
    """

    name: str
    family: str
    value: float
    prior: float
    prior_sd: float
    posterior_sd: float
    meaning: str
    source: str


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants for accelerators of one family; NaN where the family has no such thing."""

    matmul16: float
    matmul8: float
    matmul4: float
    operands: float
    tail: float
    attention: float
    attention_fa2: float
    attention_triton: float
    bandwidth: float
    elementwise: float
    casts: float
    inside: float
    between: float
    hop_inside: float
    hop_between: float
    tensor_overlap: float
    data_wait: float
    expert_wait: float
    context_wait: float
    transfer_wait: float
    per_layer: float
    per_expert: float
    per_step: float
    expert_half16: float
    expert_half8: float
    expert_bias: float
    permutation: float
    ultra: float
    capped: float
    odd_head: float
    eager: float
    deepspeed: float
    megatron_tuned: float
    internevo: float
    broadcast: float
    scan: float
    jitter: float
    host: float
    launches: float
    ring: float
    written_out: float
    contention: float
    half_rate: float


@cached("tables_kept")
def step_constants() -> tuple[Constant, ...]:
    """Every constant of the table, in its order."""
    return tuple(
        Constant(
            name=row["name"],
            family=row["family"],
            value=float(row["value"]),
            prior=float(row["prior"]),
            prior_sd=float(row["prior_sd"]),
            posterior_sd=number(row["posterior_sd"]),
            meaning=row["meaning"],
            source=row["source"],
        )
        for row in read_rows(TABLE)
    )


_FAMILY_OF_GENERATION: Mapping[int, str] = {0: "A100", 1: "A100", 2: "Hopper", 3: "Blackwell"}
"""Accelerators of a family without constants of its own take those of their contemporaries."""

BESIDE: Mapping[str, str] = {"TPU": "Hopper"}
"""A family that was measured less → the one that stands for what it was not measured with."""


def family_of(accelerator: Accelerator) -> str:
    """The family whose constants an accelerator takes."""
    return accelerator.family if accelerator.family in BESIDE else _FAMILY_OF_GENERATION[accelerator.generation]


_NEAREST: Mapping[str, str] = {
    "matmul8": "matmul16",
    "matmul4": "matmul8",
    "attention_fa2": "attention",
    "attention_triton": "attention",
}
"""What stands for a format or a kernel that a family was not measured with."""


def resolved(table: Iterable[Constant], family: str) -> Constants:
    """The constants of ``table`` for one family."""
    table = tuple(table)
    by_name = {
        constant.name: constant.value
        for one in ("", BESIDE.get(family, ""), family)
        for constant in table
        if constant.family == one
    }
    for name, nearest in _NEAREST.items():
        by_name.setdefault(name, by_name.get(nearest, math.nan))
    return Constants(**{field.name: by_name.get(field.name, math.nan) for field in fields(Constants)})


@cached("results_kept")
def constants_of(family: str) -> Constants:
    """The published constants for one family."""
    return resolved(step_constants(), family)
