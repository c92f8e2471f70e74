"""A measured training step of one layer and its prediction, time and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.benchmark.datasheet import datasheet_of
from core.benchmark.layer import DEFAULT_LAYER, with_tokens
from core.benchmark.points import Point
from core.benchmark.rates import measured_rates
from core.benchmark.record import Record
from core.budget.equations import BudgetError
from core.messages import message
from core.models.spec_error import SpecError
from core.step_time.single_layer import LayerPrediction, predict_layer


@dataclass(frozen=True, slots=True)
class PredictedMeasured:
    """One measured step and what was predicted of it."""

    point: Point
    predicted: LayerPrediction

    @property
    def time_ratio(self) -> float:
        """Measured seconds over predicted."""
        return self.point.median_s / self.predicted.seconds

    @property
    def memory_ratio(self) -> float:
        """Measured bytes over predicted; NaN if they were not measured."""
        peak = self.point.peak_memory_bytes
        return math.nan if peak is None else peak / self.predicted.peak_bytes


def predicted_against_measured(record: Record) -> tuple[tuple[PredictedMeasured, ...], str]:
    """Return each layer's step of a record with its prediction, by the rates of the record and, where they are missing,
    the datasheet's; and why there is none."""
    points = [p for p in record.points if p.item.kind == "layer" and len(p.shape) == 2]
    if not points:
        return (), ""
    if record.programme.device == "cpu":
        return (), message("measure.layer.no_prediction")
    try:
        return tuple(_of(points, record)), ""
    except (BudgetError, SpecError) as problem:
        return (), str(problem)


def _of(points: Sequence[Point], record: Record) -> list[PredictedMeasured]:
    # A step is timed as a burst, before power and temperature limits show.
    rates, rows = measured_rates(record, "burst").rates, datasheet_of(record).rows
    shape = record.programme.layer or DEFAULT_LAYER
    return [
        PredictedMeasured(
            point,
            predict_layer(
                with_tokens(shape, point.shape[0], point.shape[1]),
                rows[0] if len(rows) == 1 else None,
                rates=rates if rates.known else None,
                compiled=point.item.label == "compiled",
            ),
        )
        for point in points
    ]
