"""Tensors and their storage: layout algebra, a safe expression reader, and a trace on real torch tensors.

>>> from core.tensors import trace
>>> trace("x.t().view(2, 3)", (2, 3)).last.verdict.reason
'dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2'
"""

from core.tensors.layout import Layout, Run, contiguous_strides
from core.tensors.operations import ExpressionError, catalogue
from core.tensors.reader import read_expression, read_shape
from core.tensors.trace import START_DTYPES, Step, Trace, load_torch, trace
from core.tensors.view import Boundary, Hops, ViewVerdict, explain_view

__all__ = [
    "START_DTYPES",
    "Boundary",
    "ExpressionError",
    "Hops",
    "Layout",
    "Run",
    "Step",
    "Trace",
    "ViewVerdict",
    "catalogue",
    "contiguous_strides",
    "explain_view",
    "load_torch",
    "read_expression",
    "read_shape",
    "trace",
]
