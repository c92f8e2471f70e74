"""How far off a predicted step time may be: from the errors of comparable published steps, each source left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.hardware.cluster import Cluster
from core.limits import cached
from core.models.spec import TransformerSpec
from core.rows import read_rows
from core.step_time.formulas import family_of
from core.step_time.running import BITS, Running, Tuning

_APART = {"mixture": 0.1, "family": 0.4, "bits": 0.5, "software": 0.3, "tuned": 0.3}
"""What a step counts for that differs in this: mixture or dense, family of accelerator, bits of a number, software, who
tuned it."""

_OF_WRITERS = 0.5
"""What steps tuned by those who wrote the software count for beside that, where others tuned it, or nobody did."""

_OUTSIDE, _FARTHEST = 0.1, 0.48
"""Share of comparable steps beyond either end; the farthest that few sources move a level from the middle."""


@dataclass(frozen=True, slots=True)
class ErrorRange:
    """Factors on a predicted time between which eight of ten comparable readings lie.

    low, high: at most and at least 1.
    """

    low: float
    high: float


@cached("tables_kept")
def _errors() -> Mapping[str, npt.NDArray[Any]]:
    """Return every step with its source left out, users' own among them, as columns, sorted by measured / predicted."""
    rows = sorted(read_rows("step_errors"), key=lambda row: -float(row["error"]))
    of_group = Counter(row["group"] for row in rows)
    columns = {name: np.array([row[name] for row in rows]) for name in ("group", *_APART) if name != "bits"}
    return columns | {
        "measured": np.array([math.exp(-float(row["error"])) for row in rows]),
        "weights": np.array([1 / math.sqrt(of_group[row["group"]]) for row in rows]),
        "bits": np.array([BITS[row["dtype"]] for row in rows]),
    }


def range_of(spec: TransformerSpec, cluster: Cluster, running: Running) -> ErrorRange:
    """The range of a step of ``spec`` on ``cluster``.

    All steps count, those of another kind, family, format or software for less, of others who tuned it too, and each
    source for the root of its rows. Levels are moved away from the middle by one of the sources of the same tuning: the
    one that comes next may lie outside of all.
    """
    kind = str(int(spec.experts is not None)), family_of(cluster.accelerator), BITS[running.dtype]
    return _range(*kind, running.software, running.tuned_by)


@cached("results_kept")
def _range(mixture: str, family: str, bits: int, software: str, tuned: str, without: str = "") -> ErrorRange:
    result = _errors()
    weights = result["weights"] * (result["group"] != without)
    wanted = {"mixture": mixture, "family": family, "bits": bits, "software": software, "tuned": tuned}
    for name, value in wanted.items():
        weights = weights * np.where(result[name] == value, 1.0, _APART[name])
    alike = result["tuned"] == tuned
    weights = weights * np.where((result["tuned"] == "writers") & ~alike, _OF_WRITERS, 1.0)
    sources = len({*result["group"][alike]} - {without})
    reach = min(_FARTHEST, (0.5 - _OUTSIDE) * (1 + 1 / sources))
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    low, high = np.interp([0.5 - reach, 0.5 + reach], middle, result["measured"])
    return ErrorRange(min(1.0, float(low)), max(1.0, float(high)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often steps of one kind lie inside the range that the other sources give.

    sources: how many there are. inside: share of steps, each source weighing the same. usual: the median range.
    """

    sources: int
    inside: float
    usual: ErrorRange


@cached("results_kept")
def coverage_of(tuned: Tuning) -> Coverage:
    """Of all steps that the same people tuned, each with its source left out of constants and range."""
    result = _errors()
    inside: dict[str, list[bool]] = {}
    ranges: list[ErrorRange] = []
    for i in np.flatnonzero(result["tuned"] == tuned):
        kind = (
            str(result["mixture"][i]),
            str(result["family"][i]),
            int(result["bits"][i]),
            str(result["software"][i]),
            tuned,
        )
        band = _range(*kind, without=str(result["group"][i]))
        inside.setdefault(str(result["group"][i]), []).append(bool(band.low <= result["measured"][i] <= band.high))
        ranges.append(band)
    share = float(np.mean([np.mean(each) for each in inside.values()]))
    low, high = (float(np.median([getattr(band, end) for band in ranges])) for end in ("low", "high"))
    return Coverage(len(inside), share, ErrorRange(low, high))
