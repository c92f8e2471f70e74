"""The product's data tables: one CSV row per thing, every cell text, an empty cell unknown."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_FOLDER = Path(__file__).parents[1] / "assets" / "data"


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of ``assets/data/<name>.csv`` by column name. Raises ``FileNotFoundError`` for an unknown
    name."""
    with (_FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def number(cell: str) -> float:
    """Return a numeric cell; NaN if the cell is empty, which is how "unknown" travels through every formula."""
    return float(cell) if cell else math.nan


def whole(cell: str) -> int:
    """Return a cell that counts things; 0 if it is empty."""
    return int(cell) if cell else 0


Record = TypeVar("Record", bound="DataclassInstance")

_READ: Mapping[object, Callable[[str], Any]] = {"float": number, "int": whole, "bool": "1".__eq__}


def read_record(
    kind: type[Record], row: Mapping[str, str], columns: Mapping[str, str] = MappingProxyType({}), **given: Any
) -> Record:
    """Return a record from the cells of a row: a number if the cell is one, else text.

    Fields without a column keep their default.

    Args:
        columns: Columns of fields that have another name.
        given: Fields that are not cells, or another reading of a cell.
    """
    cells = [(item, columns.get(item.name, item.name)) for item in fields(kind) if item.name not in given]
    read = {item.name: _READ.get(item.type, str)(row[column]) for item, column in cells if column in row}
    return kind(**read, **given)


def read_values(cell: str) -> dict[str, Any]:
    """Return a cell of several values, ``field=value …``, each a whole number, true or false, or a word."""
    pairs = (item.partition("=") for item in cell.split())
    words = {"true": True, "false": False}
    return {name: int(text) if text.isdecimal() else words.get(text, text) for name, _, text in pairs}


def write_rows(name: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write ``assets/data/<name>.csv`` with these rows."""
    with (_FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as table:
        csv.writer(table, lineterminator="\n").writerows((head, *rows))
