"""Every cap on untrusted input: one table, each row with its reason.

Untrusted is whatever comes from the URL, a text box, an upload or a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """One cap: its value, the unit the value is in, and why it is where it is."""

    value: int
    unit: str
    reason: str


LIMITS: Mapping[str, Limit] = {
    "number_chars": Limit(64, "characters", "a typed quantity; the longest honest one is about 30"),
    "float_chars": Limit(400, "characters", "a typed float; the longest fp64 bit pattern with spaces has 80"),
    "float_exponent": Limit(5_000, "decimal exponent", "beyond fp64's 1e-324 to 1e308; bounds big-integer work"),
    "expression_chars": Limit(300, "characters", "checked before parsing: deep nesting exhausts the parser"),
    "expression_nodes": Limit(200, "syntax nodes", "bounds the work of walking an expression"),
    "expression_steps": Limit(24, "operations", "a page shows each one"),
    "tensor_elements": Limit(4_096, "elements", "what the storage strip can draw and a server can spare"),
    "tensor_rank": Limit(8, "dimensions", "torch allows 64; beyond 8 nobody can read the picture"),
    "storage_cells_drawn": Limit(512, "cells", "the strip summarises beyond this"),
    "parameters": Limit(10**16, "parameters", "a thousand times the largest model announced"),
    "tokens": Limit(10**18, "tokens", "a thousand times all text there is"),
    "accelerators": Limit(10_000_000, "accelerators", "ten times the largest cluster announced"),
    "model_dimension": Limit(10_000_000, "elements", "layers, widths, vocabulary, sequence length"),
    "matmul_size": Limit(16_384, "rows", "a square fp32 matmul of 16,384 takes 3.2 GB for its three operands"),
    "measure_seconds": Limit(300, "seconds", "one measuring job; it holds the device for everybody"),
    "measure_dtype_seconds": Limit(60, "seconds", "timed seconds per dtype; four with warm-up stay under a job's cap"),
    "worker_line_bytes": Limit(65_536, "bytes", "one progress line of the measuring process"),
    "worker_lines": Limit(20_000, "lines", "an honest job prints about four lines a second, 1,200 in all"),
    "worker_stderr_bytes": Limit(8_192, "bytes", "the tail of the measuring process's error output that is kept"),
}


def limit(name: str) -> int:
    """The value of the cap ``name``; raises ``KeyError`` when there is none."""
    return LIMITS[name].value
