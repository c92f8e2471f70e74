"""Reference tables: rows of questions, and answers that a library other than ours gives."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of tests/data. name: of its file, without .csv. questions: the columns that a person fills in.

    answers: the other columns. answer: a row's questions → its answers. needs: what pip has to fetch for it beyond
    requirements-dev.txt. more: rows of questions still missing, given those there are.
    """

    name: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    answer: Callable[[Mapping[str, str]], Row]
    needs: str = ""
    more: Callable[[Sequence[Mapping[str, str]]], list[Row]] = lambda rows: []

    @property
    def path(self) -> Path:
        return DATA / f"{self.name}.csv"

    def committed(self) -> list[Row]:
        """The rows as they lie in tests/data; a column that a new row leaves empty is empty."""
        text = self.path.read_text(encoding="utf-8")
        return [
            {key: value or "" for key, value in row.items()} for row in csv.DictReader(io.StringIO(text, newline=""))
        ]

    def made(self) -> list[Row]:
        """Every row of questions, old and missing, with the answers of today.

        A row whose library is not installed keeps its answers, so that a new row needs its own library alone. Raises
        ``ModuleNotFoundError`` where it has no answers yet.
        """
        rows = self.committed()
        return [self._answered(row) for row in [*rows, *self.more(rows)]]

    def _answered(self, row: Row) -> Row:
        questions = {key: row.get(key, "") for key in self.questions}
        try:
            return {**questions, **self.answer(questions)}
        except ModuleNotFoundError as missing:
            if not self.needs or not any(row.get(key) for key in self.answers):
                raise ModuleNotFoundError(f"{', '.join(questions.values())}: {missing}") from missing
            return row

    def write(self, rows: Sequence[Row]) -> None:
        out = io.StringIO()
        writer = csv.DictWriter(out, [*self.questions, *self.answers], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.path.write_text(out.getvalue(), encoding="utf-8")
