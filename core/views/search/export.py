"""The layouts of a search as CSV, with all digits."""

from __future__ import annotations

import csv
import io
from dataclasses import fields

import numpy as np

from core.search.request import Columns
from core.step_time.running import PARTS
from core.training.layout import Layout


def as_csv(plans: Columns) -> str:
    """Return each layout with its step time in seconds, peak memory in bytes, and largest overhead."""
    size = plans.seconds.shape
    names = [field.name for field in fields(Layout)]
    columns = [np.broadcast_to(np.asarray(getattr(plans.layout, name)), size).tolist() for name in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "seconds", "bytes", "largest_overhead"])
    rest = (plans.seconds.tolist(), plans.memory.tolist(), plans.bound.tolist())
    for *row, seconds, memory, bound in zip(*columns, *rest, strict=True):
        writer.writerow([*row, repr(seconds), repr(memory), PARTS[bound]])
    return out.getvalue()
