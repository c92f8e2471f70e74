"""What rank 0 has found so far, in a file that is whole at every moment and says whether the measuring ended well."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.benchmark.collectives.result import shown, write_result
from core.benchmark.collectives.result_fields import FORMAT, MOMENT, VERSION, PointFields, RefusalFields, ResultFields
from core.benchmark.collectives.spec import METHOD

UNDER_WAY = "the measuring was under way when this was written"
"""Why a file is incomplete whose rank 0 was killed."""


class Draft:
    """The result as far as it is. facts: the fields of the ranks, their devices and libraries."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self._facts: dict[str, Any] = {**facts, "when": time.strftime(MOMENT, time.gmtime())}
        self._points: list[PointFields] = []
        self._refusals: list[RefusalFields] = []
        self._whole = False
        self._lock = threading.Lock()

    def add(self, outcome: PointFields | RefusalFields) -> None:
        """Take what became of one size, and write."""
        with self._lock:
            if isinstance(outcome, PointFields):
                self._points.append(outcome)
            else:
                self._refusals.append(outcome)
            self._write(UNDER_WAY)

    def finish(self) -> ResultFields:
        """Write that all was measured."""
        with self._lock:
            self._whole = True
            return self._write("")

    def keep(self, why: str) -> bool:
        """Write why it ended early; not if nothing was tried, nor if all was. Whether it is written."""
        with self._lock:
            if early := not self._whole and bool(self._points or self._refusals):
                self._write(shown(why))
            return early

    def _write(self, problem: str) -> ResultFields:
        result = ResultFields(
            format=FORMAT,
            version=VERSION,
            method=METHOD,
            complete=not problem,
            problem=problem,
            points=tuple(self._points),
            refusals=tuple(self._refusals),
            **self._facts,
        )
        write_result(result, self.path)
        return result
