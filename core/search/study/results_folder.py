"""A folder that keeps what a study has found: a file for each chunk, so that it can go on where it stopped.

Each file is written under another name and then renamed, so that none is ever half written.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.search.study.columns import ResultsFile, schema_of, table_of
from core.search.study.result import ChunkResult
from core.search.study.study import Study, StudyError

_CHUNK = "{:05d}.parquet"


class Folder:
    """Where one study keeps its chunks and, in ``study.parquet``, all of them.

    Raises `StudyError` for a folder that cannot be made, or that holds results of another study.
    """

    def __init__(self, path: Path, study: Study) -> None:
        self.study = study
        self.whole = path / "study.parquet"
        self._chunks = path / "chunks"
        try:
            self._chunks.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StudyError(f"The folder {path} cannot be made: {problem.strerror}.") from None
        self.done = frozenset(at for at in range(study.chunk_count) if self._has(at))
        if self.whole.exists():
            self._mine(self.whole)

    def _file(self, index: int) -> Path:
        return self._chunks / _CHUNK.format(index)

    def _has(self, index: int) -> bool:
        path = self._file(index)
        return path.exists() and self._mine(path) == len(self.study.chunk(index))

    def _mine(self, path: Path) -> int:
        """Points of a file of this study; 0 for a file that cannot be read, which will be written anew."""
        try:
            file = ResultsFile(path)
        except StudyError:
            return 0
        if file.digest != self.study.digest:
            raise StudyError(f"{path} is of another study, or of one changed since. Name another folder.")
        return file.rows

    def keep(self, result: ChunkResult) -> None:
        """Write a chunk."""
        schema = schema_of(self.study.digest)
        self._write(self._file(result.index), lambda out: out.write_table(table_of(result.points, schema)))

    def gather(self) -> int:
        """Write every chunk that there is into one file, one after the other; the points that it has."""
        rows = 0

        def copy(out: Any) -> None:
            nonlocal rows
            for at in filter(self._has, range(self.study.chunk_count)):
                points = tuple(ResultsFile(self._file(at)).points())
                out.write_table(table_of(points, schema_of(self.study.digest)))
                rows += len(points)

        self._write(self.whole, copy)
        return rows

    def _write(self, path: Path, fill: Callable[[Any], None]) -> None:
        parquet: Any = importlib.import_module("pyarrow.parquet")
        torn = path.with_suffix(".part")
        try:
            with parquet.ParquetWriter(torn, schema_of(self.study.digest), compression="zstd") as out:
                fill(out)
            os.replace(torn, path)
        except OSError as problem:
            raise StudyError(f"{path} cannot be written: {problem.strerror or problem}.") from None
