"""Which data and formulas an answer was worked out with, as one short text: where it is the same, so is the answer."""

from __future__ import annotations

import hashlib
from pathlib import Path

from core.limits import cached

_ROOT = Path(__file__).parents[1]
_FOLDERS = (
    *(
        f"core/{name}"
        for name in ("hardware", "models", "training", "budget", "step_time", "search", "runs", "planning")
    ),
    "assets/data",
)
"""Rules and data; no view, so that a sentence may be mended without a word to those who saved plans."""
_KINDS = (".py", ".csv")


@cached("tables_kept")
def data_version() -> str:
    """Return a digest of every data table and of the code that plans are computed by, as they were at the first
    call."""
    files = [path for folder in _FOLDERS for path in (_ROOT / folder).rglob("*") if path.suffix in _KINDS]
    digest = hashlib.sha256()
    for path in sorted((*files, *(_ROOT / "core").glob("*.py"))):
        digest.update(path.relative_to(_ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
