"""Tensors and their storage: layout algebra, a safe expression reader, and a trace on real torch tensors.

>>> from core.tensors import trace
>>> trace("x.t().view(2, 3)", (2, 3)).last.verdict.reason
'dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2'
"""

from core.tensors.layout import Bounds, Layout, Run, bounds, contiguous_strides
from core.tensors.reading.operations import catalogue
from core.tensors.reading.plan import Plan, PlanStep
from core.tensors.reading.reader import read_expression
from core.tensors.reading.text import read_shape, read_stride
from core.tensors.reading.values import ExpressionError
from core.tensors.running.steps import Fix, Piece, Step, Trace
from core.tensors.running.trace import ELEMENT_DTYPES, START_DTYPES, load_torch, start_layout, trace
from core.tensors.view import Boundary, Hops, Narrowed, ViewVerdict, explain_view

__all__ = [
    "ELEMENT_DTYPES",
    "START_DTYPES",
    "Boundary",
    "Bounds",
    "ExpressionError",
    "Fix",
    "Hops",
    "Layout",
    "Narrowed",
    "Piece",
    "Plan",
    "PlanStep",
    "Run",
    "Step",
    "Trace",
    "ViewVerdict",
    "bounds",
    "catalogue",
    "contiguous_strides",
    "explain_view",
    "load_torch",
    "read_expression",
    "read_shape",
    "read_stride",
    "start_layout",
    "trace",
]
