"""Results of measuring collectives, made up for tests."""

from __future__ import annotations

from typing import Any

from core.benchmark.collectives.result_fields import ResultFields


def point(operation: str, size: int, median: float, **other: Any) -> dict[str, Any]:
    """A point of ``size`` bytes in ``median`` seconds, with a spread of a few percent."""
    return {
        "operation": operation,
        "bytes": size,
        "dtype": "fp32",
        "median_s": median,
        "best_s": 0.9 * median,
        "p10_s": 0.95 * median,
        "p90_s": 1.1 * median,
        "runs": 40,
        "duration_s": 44 * median,
        "slowest_rank": 3,
        **other,
    }


def values(**other: Any) -> dict[str, Any]:
    """A complete result of 8 ranks on one node, as its file has it."""
    return {
        "format": "napkin-collectives",
        "version": 1,
        "method": "collectives-1",
        "when": "2026-03-04T05:06:07Z",
        "complete": True,
        "problem": "",
        "world_size": 8,
        "nodes": 1,
        "ranks_per_node": 8,
        "devices": ["NVIDIA H100 80GB HBM3"],
        "backend": "nccl",
        "torch": "2.13.0",
        "cuda": "13.0",
        "nccl": "2.28.9",
        "points": [
            point("all-reduce", 1 << 20, 5e-5),
            point("all-reduce", 1 << 30, 0.005),
            point("all-gather", 1 << 30, 0.0025),
            point("ring", 1 << 30, 0.003),
        ],
        "refusals": [{"operation": "all-to-all", "bytes": 0, "kind": "refused", "text": "RuntimeError: no all-to-all"}],
        **other,
    }


def made(**other: Any) -> ResultFields:
    """The same, checked."""
    given = values(**other)
    return ResultFields.model_validate(
        {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}, strict=True
    )
