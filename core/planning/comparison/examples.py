"""Plans to begin a comparison with."""

from __future__ import annotations

from core.planning.comparison.entry import Entry, entry_of

_MODEL = {"model": "Llama 3 70B", "tokens": "15T", "count": "1,024"}


def examples() -> tuple[Entry, ...]:
    """One model, trained on as many accelerators of three kinds."""
    return tuple(
        entry_of(f"70B on {gpu.removesuffix(' SXM')}", {**_MODEL, "gpu": gpu})
        for gpu in ("H100 SXM", "H200 SXM", "B200")
    )
