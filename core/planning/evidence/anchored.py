"""A rival expectation, scored beside the one in use: what whole runs lose beyond the steps of their best layout.

``assets/data/run_steps.csv`` holds, for every whole run that is evidence, the MFU of its steps under the fastest layout
that a search finds for its model, accelerators, batch and length. The rival learns, with the same weights, what share
of that MFU whole runs reach, instead of what share of the best matmul.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from core.planning.evidence.judged import Score, Without, predictions_of, score_of
from core.planning.evidence.neighbours import best_16bit
from core.planning.evidence.rows import Evidence, evidence
from core.rows import number, read_rows, write_rows


@dataclass(frozen=True, slots=True)
class RunSteps:
    """Steps of a whole run under the best layout found. assumed: names of what its source does not print.

    utilisation: 6 N times tokens over time and the dense 16-bit peak; NaN where no step time can be predicted.
    """

    model: str
    accelerators: int
    batch: int
    seq_len: int
    assumed: tuple[str, ...]
    utilisation: float


_TABLE = "run_steps"


def keep(found: Iterable[RunSteps]) -> None:
    """Write the table anew."""
    head = [one.name for one in fields(RunSteps)]
    rows = (
        (
            *(getattr(one, name) for name in head[:4]),
            " ".join(one.assumed),
            "" if math.isnan(one.utilisation) else f"{one.utilisation:.4f}",
        )
        for one in found
    )
    write_rows(_TABLE, head, rows)


@lru_cache(maxsize=1)
def run_steps() -> Mapping[str, RunSteps]:
    """All of them by the name of the run."""
    return {
        row["model"]: RunSteps(
            model=row["model"],
            accelerators=int(row["accelerators"]),
            batch=int(row["batch"]),
            seq_len=int(row["seq_len"]),
            assumed=tuple(row["assumed"].split()),
            utilisation=number(row["utilisation"]),
        )
        for row in read_rows(_TABLE)
    }


@lru_cache(maxsize=1)
def anchored() -> tuple[Evidence, ...]:
    """The whole runs with their utilisation over that of their best layout's steps, on the scale of the usual one.

    What remains is what the usual model is given to explain; its errors are errors of the whole run as they are. A run
    without predicted steps stands at the middle of the others.
    """
    rows = evidence("whole")
    steps = [run_steps()[row.run.model].utilisation / best_16bit(row.run.accelerator) for row in rows]
    middle = math.exp(float(np.nanmean(np.log(steps))))
    return tuple(
        replace(row, utilisation=row.utilisation * (1.0 if math.isnan(one) else middle / one))
        for row, one in zip(rows, steps, strict=True)
    )


@lru_cache(maxsize=2)
def anchored_score(by: Without = "model") -> Score:
    """How well whole runs are predicted from the steps of their best layout, held out as in `judged.score`."""
    return score_of(predictions_of(anchored(), by))
