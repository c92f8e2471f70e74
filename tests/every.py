"""A table in one test: every row is tried, and the failure names all the rows that are wrong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_NAMED = type(pytest.param())
"""A row that says its own name, by ``pytest.param``."""


def every(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[str] | Callable[[Any], object] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but one test for all ``rows``, for a table of which one fact is asserted.

    A row that is skipped counts as right. Fixtures are made once for all rows.
    """
    several = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    single = isinstance(names, str) and len(several) == 1
    rows = list(rows)
    table = [row.values if isinstance(row, _NAMED) else (row,) if single else row for row in rows]
    if callable(ids):
        ids = [row.id if isinstance(row, _NAMED) else ids(row) if single else row for row in rows]
    labels = list(ids)

    def of(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: object) -> None:
            faults: list[Exception] = []
            for values, label in zip(table, labels, strict=True):
                try:
                    test(**dict(zip(several, values, strict=True)), **fixtures)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as fault:
                    faults.append(fault if isinstance(fault, Exception) else AssertionError(str(fault)))
                    faults[-1].add_note(f"row: {label}")
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(table)} rows", faults)

        signature = inspect.signature(test)
        kept = [value for name, value in signature.parameters.items() if name not in several]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return of
