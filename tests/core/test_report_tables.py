"""Tables to take away: numbers in full, the same rows for every plan, and nothing that a reader would run."""

from __future__ import annotations

import csv
import io
import math
import re

from core.planning.comparison.entry import Entry
from core.views.common.markup import markdown_text
from core.views.plan.text import headline
from core.views.report.report import merged
from core.views.report.rows import plan_rows
from core.views.report.tables import as_csv, as_markdown, harmless, rows_csv
from tests.core.report_cases import HOSTILE, LINK, ODD, PAGE_PRESETS, report
from tests.every import every


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@every("name", PAGE_PRESETS)
def test_a_plan_has_its_quantities_in_base_units(name: str) -> None:
    entry = PAGE_PRESETS[name]
    head, *rows = rows_of(as_csv(report(entry)))
    lines = plan_rows(entry.answer)
    assert as_csv(report(entry)) == rows_csv(lines)
    assert len({len(row) for row in (head, *rows)}) == 1
    for row, line in zip(rows, lines, strict=True):
        assert row[0] == line.label
        if isinstance(line.value, str):
            assert row[2] == line.value
        elif math.isfinite(line.value):
            assert float(row[2]) == line.value
        else:
            assert row[2] == ""


def test_plans_beside_each_other_have_the_numbers_of_each() -> None:
    entries = [*list(PAGE_PRESETS.values())[:5], ODD["no answer"]]
    head, *rows = rows_of(as_csv(report(*entries)))
    assert head[3:] == [one.name for one in entries]
    for place, entry in enumerate(entries[:-1], start=3):
        alone = {row[0]: row for row in rows_of(as_csv(report(entry)))[1:]}
        here = {(row[0], row[1]): row[place] for row in rows}
        for quantity, row in alone.items():
            for text, scenario in zip(row[1:4], ("pessimistic", "median", "optimistic"), strict=True):
                assert here.get((quantity, scenario), "") == text, quantity
    assert rows[-1][-1] == report(entries[-1]).plans[0].problem
    assert all(row[-1] == "" for row in rows[:-1])


@every("name", HOSTILE)
def test_no_cell_is_a_formula(name: str) -> None:
    first, second = list(PAGE_PRESETS.values())[:2]
    mine, lost = Entry(name, first.texts), Entry(name, ODD["no answer"].texts)
    for entries in ([mine], [mine, second], [lost]):
        for row in rows_of(as_csv(report(*entries))):
            for cell in row:
                if not re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", cell):
                    assert not cell.lstrip().startswith(("=", "+", "-", "@")), cell
                    assert not cell.startswith(("\t", "\r")), cell


@every("separator", ["", ";", "\t", "\n", "; "])
@every("sign", "=+-@＝＋－＠")
def test_no_cell_becomes_a_formula_in_a_country_that_separates_otherwise(separator: str, sign: str) -> None:
    """A spreadsheet there reads ``a;=1`` as two cells, whatever is quoted."""
    typed = f"a{separator}{sign}1" if separator else f"{sign}1"
    assert not any(re.match(r"\s*[-+=@－＋＝＠]", cell) for cell in re.split(r"[;\t\n]", harmless(typed)))


@every("name", [*PAGE_PRESETS, *ODD])
def test_markdown_is_a_sentence_a_table_and_a_link(name: str) -> None:
    entry = (PAGE_PRESETS | ODD)[name]
    text = as_markdown(report(entry))
    (one,) = report(entry).plans
    assert headline(one.answer) in text if one.answer else markdown_text(one.problem) in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert bool(table) == bool(one.answer)
    assert len({line.replace(r"\|", "").count("|") for line in table}) <= 1
    assert text.rstrip().endswith(f"<{LINK}>")


@every("name", HOSTILE)
def test_a_name_is_no_markdown(name: str) -> None:
    """It stays on its line and in its cell, and neither makes a tag, a heading, a link nor calls anybody."""
    first, second = list(PAGE_PRESETS.values())[:2]
    text = as_markdown(report(Entry(name, first.texts), second))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({re.sub(r"\\.", "", line).count("|") for line in table}) == 1
    ours = re.sub(r"\\.", "", text.replace(f"<{LINK}>", ""))
    assert not re.search(r"[<\[\]]|[@#:](?=\w)|://|www\.", ours)
    assert len(re.findall(r"^#+ ", ours, re.MULTILINE)) == 3


def test_names_of_rows_keep_the_order_of_each_plan() -> None:
    orders = (["a", "b", "d"], ["a", "c", "d", "e"], ["x", "d"])
    found = merged(orders)
    assert sorted(found) == sorted(set().union(*orders))
    for order in orders:
        assert [name for name in found if name in order] == order
