"""Results as columns of a Parquet file, and back: written by a study, read from anybody.

pyarrow is imported where it is used: it takes a tenth of a second.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from core.limits import limit
from core.search.study.result import Best, PlanRow, PointResult
from core.search.study.study import StudyError

MARK = b"napkin.study"
"""Under this name a file carries the digest of its study."""

_KINDS = {"int": "int64", "float": "float64", "float | None": "float64", "str": "string"}
_BEST = tuple(field for field in fields(Best) if field.name != "plan")
_MAY_LACK = frozenset({"days", "missing", "low", "high", "mfu"})
_BATCH = 256


def schema_of(digest: str = "") -> Any:
    """Columns of a file, from the fields of `PointResult`: a best plan lies flat among them, the top ones in a list."""
    arrow = importlib.import_module("pyarrow")

    def column(item: Any, may_lack: bool = False) -> Any:
        return arrow.field(item.name, getattr(arrow, _KINDS[item.type])(), may_lack or item.name in _MAY_LACK)

    columns: list[Any] = []
    for field in fields(PointResult):
        if field.name == "best":
            columns += [column(part, True) for part in (*fields(PlanRow), *_BEST)]
        elif field.name == "top":
            plan = arrow.struct([column(part) for part in fields(PlanRow)])
            columns.append(arrow.field("top", arrow.list_(arrow.field("element", plan, False)), False))
        else:
            columns.append(column(field))
    return arrow.schema(columns, {MARK: digest.encode()})


def table_of(points: Sequence[PointResult], schema: Any) -> Any:
    """Points as a table of ``schema``."""
    return importlib.import_module("pyarrow").Table.from_pylist([_flat(point) for point in points], schema)


def _flat(point: PointResult) -> dict[str, Any]:
    row = asdict(point)
    best: Mapping[str, Any] = row.pop("best") or {}
    return row | dict(best.get("plan", {})) | {item.name: best.get(item.name) for item in _BEST}


class ResultsFile:
    """A file of results, opened and checked as far as can be without reading its values.

    source: a path, or the bytes of an upload.  Raises `StudyError` for what is no such file, is larger than the caps
    allow, packed or unpacked, or has other columns.
    """

    def __init__(self, source: Path | bytes) -> None:
        self._arrow: Any = importlib.import_module("pyarrow")
        self.name = str(source) if isinstance(source, Path) else "The file"
        try:
            content = _bytes(source) if isinstance(source, Path) else source
            if len(content) > limit("result_bytes"):
                raise self._wrong(f"it has more than {limit('result_bytes'):,} bytes")
            parquet: Any = importlib.import_module("pyarrow.parquet")
            self._check_columns(parquet.ParquetFile(self._arrow.BufferReader(content)).schema_arrow)
            texts = [item.name for item in schema_of() if item.type == "string"]
            self._file: Any = parquet.ParquetFile(
                self._arrow.BufferReader(content), read_dictionary=[*texts, "top.list.element.bound"]
            )
        except self._broken as problem:
            raise self._wrong(_first_line(problem)) from None
        self._check_sizes(self._file.metadata)
        marks: dict[bytes, bytes] = self._file.metadata.metadata or {}
        self.digest = marks.get(MARK, b"").decode("ascii", "replace")
        self.rows = int(self._file.metadata.num_rows)

    @property
    def _broken(self) -> tuple[type[BaseException], ...]:
        """What pyarrow raises for a file that is not as it should be; its memory error included."""
        return (self._arrow.ArrowException, OSError, UnicodeError)

    def _wrong(self, why: str) -> StudyError:
        return StudyError(f"{self.name} holds no results of a study: {why}.")

    def _check_columns(self, result: Any) -> None:
        wanted = schema_of()
        if missing := [name for name in wanted.names if name not in result.names]:
            raise self._wrong(f"it has no column “{missing[0]}”")
        if extra := [name for name in result.names if name not in wanted.names]:
            raise self._wrong(f"a study has no column “{extra[0][:60]}”")
        if not result.equals(wanted):
            other = next((item.name for item in wanted if not result.field(item.name).equals(item)), "top")
            raise self._wrong(f"its column “{other}” is of another type, or in another place")

    def _check_sizes(self, about: Any) -> None:
        groups = [about.row_group(at) for at in range(min(about.num_row_groups, limit("study_points")))]
        unpacked = sum(group.total_byte_size for group in groups)
        values = sum(max(group.column(at).num_values for at in range(group.num_columns)) for group in groups)
        for what, content, most in (
            ("parts", about.num_row_groups, limit("study_points")),
            ("points", about.num_rows, limit("study_points")),
            ("plans", values, limit("study_rows") + limit("study_points")),
            ("bytes unpacked", unpacked, limit("result_bytes")),
        ):
            if not 0 <= content <= most:
                raise self._wrong(f"it has {content:,} {what}, and results have at most {most:,}")

    def points(self) -> Iterator[PointResult]:
        """Every point, in order. Raises `StudyError` where a value is none that a study writes."""
        last = -1
        for rows in self._rows():
            for row in rows:
                point = self._point(row)
                if point.point <= last:
                    raise self._wrong(f"point {point.point} is there twice, or out of order")
                last = point.point
                yield point

    def _rows(self) -> Iterator[list[dict[str, Any]]]:
        """Rows, some at a time; one part of the file after the other, because each has its own numbers for texts."""
        try:
            for part in range(self._file.metadata.num_row_groups):
                for batch in self._file.iter_batches(batch_size=_BATCH, row_groups=[part]):
                    self._check_texts(batch)
                    yield batch.to_pylist()
        except self._broken as problem:
            raise self._wrong(_first_line(problem)) from None

    def _check_texts(self, batch: Any) -> None:
        """No text is longer than the longest that a study writes.

        Each is read once and then by number, so that no small file unpacks to many long ones.
        """
        length = importlib.import_module("pyarrow.compute")
        texts = [column for column in batch.columns if self._arrow.types.is_dictionary(column.type)]
        texts.append(batch.column("top").values.field("bound"))
        for row in texts:
            longest = length.max(length.binary_length(row.dictionary)).as_py() or 0
            if longest > 4 * limit("study_problem_chars"):
                raise self._wrong(f"it has a text of {longest:,} bytes")

    def _point(self, row: dict[str, Any]) -> PointResult:
        top = tuple(self._plan(item) for item in row.pop("top"))
        plan = {item.name: row.pop(item.name) for item in fields(PlanRow)}
        rest = {item.name: row.pop(item.name) for item in _BEST}
        best = None if plan["seconds"] is None else Best(self._plan(plan), **self._sound(rest))
        return PointResult(**self._sound(row), best=best, top=top)

    def _plan(self, row: dict[str, Any]) -> PlanRow:
        return PlanRow(**self._sound(row))

    def _sound(self, row: dict[str, Any]) -> dict[str, Any]:
        """``row``, whose numbers are finite and not negative."""
        for name, value in row.items():
            if value is None:
                if name not in _MAY_LACK:
                    raise self._wrong(f"a plan has no {name}")
            elif not isinstance(value, str) and not (math.isfinite(value) and value >= 0):
                raise self._wrong(f"its {name} is {value}")
        return row


def _bytes(path: Path) -> bytes:
    """A file as far as it is of use: one byte more than results may have."""
    with path.open("rb") as file:
        return file.read(limit("result_bytes") + 1)


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip().partition("\n")[0][:200]
    return text.rstrip(".") or type(problem).__name__


def read_results(source: Path | bytes) -> tuple[PointResult, ...]:
    """Every point of a file of results, in the study's order; see `ResultsFile` for what is refused."""
    return tuple(ResultsFile(source).points())
