"""Plans to take away: every one as a line of CSV, numbers in full."""

from __future__ import annotations

import csv
import io
from dataclasses import fields

import numpy as np

from core.search.request import Columns
from core.training.layout import Layout
from core.views.search.names import NAMES


def as_csv(plans: Columns) -> str:
    """The plans with their layout, seconds of a step, bytes on the fullest accelerator, and the part that binds."""
    size = plans.seconds.shape
    names = [field.name for field in fields(Layout)]
    columns = [np.broadcast_to(np.asarray(getattr(plans.layout, name)), size).tolist() for name in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "seconds", "bytes", "most beside computing"])
    rest = (plans.seconds.tolist(), plans.memory.tolist(), plans.bound.tolist())
    for *row, seconds, memory, bound in zip(*columns, *rest, strict=True):
        writer.writerow([*row, repr(seconds), repr(memory), NAMES[bound]])
    return out.getvalue()
