"""Runs as rows of a table: what each trains, after which other, and by when. The first row is the plan itself."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from core.dates import is_day, parse_day
from core.fields import Field, ParsedForm
from core.limits import limit
from core.messages import message
from core.models.catalog import catalog
from core.models.configs.custom import read_config, read_model
from core.models.spec_text import EXAMPLE, SpecTextError, write_spec
from core.models.stand_in import mixture_stand_in
from core.number_text import QuantityError
from core.planning.decide.offers import CellProblem, CellReader, Cells, numbered
from core.planning.form.layout import BATCH
from core.planning.form.plan_form import MODEL_NAME, PARAMETERS, SEQ_LEN, SHAPE, TRAINED
from core.planning.plan import OWN_SHAPE, TYPED
from core.quantities import parse_quantity
from core.suggest import suggestions
from core.units import format_count
from core.wording import cleaned

RUN_COLUMNS = ("name", "model", "tokens", "seq", "batch", "after", "first", "deadline")

_FIELDS: Mapping[str, Field] = {"tokens": TRAINED, "seq": SEQ_LEN, "batch": BATCH}
"""Columns that are fields of a plan."""

_MIXTURE = re.compile(
    r"(?P<total>[\d.,]{1,12}\s*[KMBT])\s*[-/ ]\s*A\s*(?P<active>[\d.,]{1,12}\s*[KMBT])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        row: Index of its row in the table.
        texts: Texts of the plan's fields in which it differs from the plan.
        after: Index among the runs of the one that it starts after. None if it starts after none.
        first: Days from the start before which it does not start.
        deadline: Days from the start by which it has to end. NaN without one.
    """

    row: int
    name: str
    texts: Mapping[str, str]
    after: int | None = None
    first: float = 0.0
    deadline: float = math.nan


@dataclass(frozen=True, slots=True)
class RunTable:
    """Runs as read.

    Attributes:
        rows: The rows as given, a config.json in them as the text of its shape.
        runs: Those of the rows without a problem.
        problems: One for each cell that cannot be read.
    """

    rows: tuple[Cells, ...]
    runs: tuple[Run, ...]
    problems: tuple[CellProblem, ...]


def read_runs(rows: Sequence[Cells], base: ParsedForm, start: date) -> RunTable:
    """Return the runs of a table.

    Args:
        rows: The first is the plan; empty rows behind it are skipped.
        base: The plan, which every empty cell takes.
        start: The day that days and durations count from.
    """
    table = [_shaped(row) for row in rows or ({},)]
    readers = [CellReader(i, row) for i, row in enumerate(table)]
    used = [reader for reader in readers if not reader.row or any(text.strip() for text in reader.cells.values())]
    for reader in used[limit("calendar_runs") :]:
        reader.fail("name", message("decision.most_runs", most=float(limit("calendar_runs"))))
    found = [_run(reader, base, start) for reader in used]
    names = numbered([run.name for run in found])
    after = [_after(reader, names) for reader in used]
    for i, reader in enumerate(used):
        if circle := _circle(i, after):
            reader.fail("after", message("decision.circle", names=[names[j] for j in circle]))
    good = [i for i, reader in enumerate(used) if not reader.problems]
    runs = [
        replace(found[i], name=names[i], after=good.index(j) if (j := after[i]) is not None and j in good else None)
        for i in good
    ]
    problems = tuple(problem for reader in used for problem in reader.problems)
    return RunTable(tuple(table), tuple(runs), problems)


def _shaped(row: Cells) -> Cells:
    """A row with a config.json as the text of its shape, which a link can carry."""
    text = row.get("model", "").strip()
    if not text.startswith("{"):
        return row
    config = read_config(text) if len(text) <= limit("config_chars") else None
    return {**row, "model": write_spec(config.spec)} if config and config.spec and config.clean else row


def _run(reader: CellReader, base: ParsedForm, start: date) -> Run:
    texts = reader.read("model", model_texts, {})
    for column, field in _FIELDS.items():
        reader.read(column, field.parse)
        texts = {**texts, **({field.id: reader.text(column)} if reader.text(column) else {})}
    model = {**base.texts, **texts}[MODEL_NAME.id]
    size = format_count(base.values[PARAMETERS.id]) if PARAMETERS.id not in texts else reader.text("model")
    named = size if model == TYPED else message("decision.custom_model") if model == OWN_SHAPE else model
    if model == OWN_SHAPE and _MIXTURE.fullmatch(reader.text("model")):
        named = reader.text("model")
    first = reader.read("first", parse_day)
    return Run(
        row=reader.row,
        name=cleaned(reader.text("name") or str(named), limit("run_name")),
        texts=texts,
        first=max(0.0, float((first - start).days)) if first else 0.0,
        deadline=reader.read("deadline", lambda text: days_until(text, start), math.nan),
    )


def model_texts(text: str) -> dict[str, str]:
    """Return the texts of a plan's fields for a model: its name in the catalog, parameters, counts, or a shape.

    Raises:
        QuantityError: With what can be entered, for anything else.
    """
    if text.startswith("{"):
        config = read_config(text)
        raise QuantityError(str(config.text).replace("**", ""))
    if "=" in text:
        try:
            read_model(text)
        except SpecTextError as problem:
            raise QuantityError(problem.args[0]) from None
        return {MODEL_NAME.id: OWN_SHAPE, SHAPE.id: text}
    if match := _MIXTURE.fullmatch(text):
        most = limit("parameters")
        total, active = (parse_quantity(match[name], "parameters", low=1, high=most) for name in ("total", "active"))
        if active >= total:
            raise QuantityError(message("decision.active", active=active, total=total))
        return {MODEL_NAME.id: OWN_SHAPE, SHAPE.id: write_spec(mixture_stand_in(total, active))}
    names = {model.name.lower(): model.name for model in catalog()}
    if text.lower() in names:
        return {MODEL_NAME.id: names[text.lower()]}
    try:
        PARAMETERS.parse(text)
    except QuantityError:
        if text[:1].isdigit() or text[:1] in "-+.":
            raise
        near = suggestions(text, list(names.values()))
        entered = text[: limit("number_chars")]
        if near:
            raise QuantityError(message("decision.model_near", entered=entered, near=near)) from None
        raise QuantityError(message("decision.model", entered=entered, example=EXAMPLE)) from None
    return {MODEL_NAME.id: TYPED, PARAMETERS.id: text}


def days_until(text: str, start: date) -> float:
    """Return days from ``start`` to the end of a day, or a duration such as ``90 days``. Raises `QuantityError`."""
    if is_day(text):
        days = (parse_day(text) - start).days + 1
        if days < 1:
            raise QuantityError(message("decision.due_before_start", due=text, start=str(start)))
        return float(days)
    if text[-1].isdigit():
        raise QuantityError(message("decision.days_unit", entered=text))
    return parse_quantity(text, "seconds", low=86400.0, high=3e9, example="2027-10-14 or 90 days") / 86400


def _after(reader: CellReader, names: Sequence[str]) -> int | None:
    """Index of the run that a cell names, or numbers from 1 on."""
    if not (text := reader.text("after")):
        return None
    folded = [name.casefold() for name in names]
    number = text.casefold().removeprefix("run ").strip()
    if text.casefold() in folded:
        return folded.index(text.casefold())
    if number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= len(names):
        return int(number[:6]) - 1
    reader.fail("after", message("decision.after", entered=text[: limit("number_chars")], names=names))
    return None


def _circle(first: int, after: Sequence[int | None]) -> list[int]:
    """The runs of the circle that a run is in, itself at both ends; empty where it is in none."""
    path = [first]
    while (following := after[path[-1]]) is not None and following not in path:
        path.append(following)
    return [*path, first] if following == first else []
