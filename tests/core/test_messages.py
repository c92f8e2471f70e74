"""The catalog of messages: every entry is used, every call has an entry and gives it the values that it names."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core.messages import TEXT_FORMATS, Message, MessageError, catalog_entries, message, template
from core.planning.decide.decision import DECISION_FIELDS
from core.planning.decide.offers import OFFER_COLUMNS
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.form.plan_form import PLAN_FIELDS
from core.planning.sweep.form import SWEEP_FIELDS
from core.tensors.examples.quiz import items
from core.views.common.markup import rich
from core.wording import FORMATS, Amount, format_value
from pages.common.registry import PAGES

ROOT = Path(__file__).parents[2]
CALLS = ("message", "pick_message", "messages")


entries = cache(catalog_entries)


def tables(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of a module's own names."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return found


def texts(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def may_be(text: ast.JoinedStr, call: ast.Call) -> set[str]:
    """The ids that an f-string may be, of entries that take the values of ``call``."""
    parts = (re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+" for part in text.values)
    pattern, given = re.compile("".join(parts)), {keyword.arg for keyword in call.keywords}
    some = isinstance(call.func, ast.Name) and call.func.id == "pick_message"
    fitting = ((name, entry.names) for name, entry in entries().items() if pattern.fullmatch(name))
    return {name for name, values in fitting if (values <= given if some else values == given)}


def bindings(function: ast.AST) -> Iterator[tuple[ast.expr, set[str]]]:
    """What names of a function stand for: what is assigned to them, or what they run over."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            yield node.value, names_in(*node.targets)
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.iter, names_in(node.target)


def names_in(*nodes: ast.expr) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def ids_of(call: ast.Call, function: ast.AST, module: dict[str, ast.expr]) -> set[str]:
    """The ids that a call may name: literal, or of the module's tables that its first argument names, also by way of a
    name of the function; of an f-string all that it may be and that take these values; of `messages` each."""
    if isinstance(call.func, ast.Name) and call.func.id == "messages":
        prefix, names = ("".join(texts(arg)) for arg in call.args)
        ids = {f"{prefix}.{name}" for name in names.split()}
        return ids if ids <= entries().keys() else set()
    wanted, seen, ids = [call.args[0]], set[str](), set[str]()
    while wanted:
        node = wanted.pop()
        ids |= texts(node) & entries().keys()
        for part in ast.walk(node):
            ids |= may_be(part, call) if isinstance(part, ast.JoinedStr) else set()
        for name in names_in(node) - seen:
            seen.add(name)
            wanted += [module[name]] if name in module else []
            wanted += [value for value, targets in bindings(function) if name in targets]
    return ids


@cache
def calls() -> dict[str, list[tuple[str, set[str], set[str]]]]:
    """Where messages are asked for: place → kind of call, ids, names of values."""
    found: dict[str, list[tuple[str, set[str], set[str]]]] = {}
    for path in sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"]):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"messages?\(", source) or path.name == "messages.py":
            continue
        tree = ast.parse(source)
        module = tables(tree)
        for function, call in calls_in(tree):
            names = {keyword.arg or "**" for keyword in call.keywords}
            kind = call.func.id if isinstance(call.func, ast.Name) else ""
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            found.setdefault(place, []).append((kind, ids_of(call, function, module), names))
    return found


def calls_in(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    for top in tree.body:
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield top, node


def test_every_call_names_an_entry_and_gives_its_values() -> None:
    faults = list[str]()
    for place, rows in calls().items():
        for kind, ids, names in rows:
            faults += [] if ids else [f"{place}: no entry has the id that is asked for"]
            for name in ids:
                wanted = entries()[name].names
                right = wanted <= names if kind == "pick_message" else wanted == names
                faults += [] if right else [f"{place}: {name} takes {sorted(wanted)}, not {sorted(names)}"]
    assert faults == []


def test_every_entry_is_used() -> None:
    used = {name for rows in calls().values() for _, ids, _ in rows for name in ids}
    for field in (*PLAN_FIELDS, *DECISION_FIELDS, *SWEEP_FIELDS):
        own = f"field.{field.id}"
        used |= {own, f"{own}.help", f"{own}.empty", *(f"{own}={option}" for option in field.options)}
    used |= {f"decide.column.{name}{part}" for name in (*OFFER_COLUMNS, *RUN_COLUMNS) for part in ("", ".help")}
    used |= {name for name in entries() if name.partition(".")[0] in ("picture", "replay")}  # for the browser
    used |= {f"quiz.{item.id}" for item in items()}
    used |= {f"page.{page.id}{part}" for page in PAGES for part in ("", ".heading", ".lead")}
    assert sorted(entries().keys() - used) == []


def test_every_placeholder_has_a_format_that_exists() -> None:
    parts = [
        (name, kind) for name, entry in entries().items() for one in (entry.one, entry.many) for _, _, kind in one.parts
    ]
    assert [(name, kind) for name, kind in parts if kind not in FORMATS.keys() | TEXT_FORMATS.keys()] == []
    assert {kind for _, kind in parts} >= {"text", "days", "percent", "dollars", "GiB"}


def test_every_entry_keeps_to_the_marks_of_the_house() -> None:
    """Bold ends where it begins, quotes are curly, and no dash is an em dash."""
    faults = [
        name
        for name, entry in entries().items()
        for one in (entry.one, entry.many)
        for text in ["".join(f"{before}x" for before, _, _ in one.parts) + one.end]
        if text.count("**") % 2 or re.search(r"[\"'—]|  |\d %|\.\.", text) or text != text.strip(" \n")
    ]
    assert [name for name in faults if not name.startswith("rates.by")] == []


def test_every_field_of_a_plan_has_a_label_of_its_own() -> None:
    """No two fields of one part are called the same, and importing them reads no words of theirs."""
    named = [(field.part, field.label) for field in PLAN_FIELDS]
    assert len(set(named)) == len(named)
    assert all(label for _, label in named)
    script = (
        "from core.planning.form.plan_form import FIND, MFU; assert not {'label', 'help'} & {*vars(FIND), *vars(MFU)}"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_message_takes_just_its_values() -> None:
    made = message("limits.check.memory_free", free=2.0**30)
    assert (made.id, made.values) == ("limits.check.memory_free", {"free": 2.0**30})
    assert copy.deepcopy(made).values == made.values
    for values in ({}, {"free": 1.0, "other": 2.0}):
        with pytest.raises(MessageError):
            message("limits.check.memory_free", **values)
    with pytest.raises(MessageError):
        message("no.such.message")


def test_template_rejects_placeholders_without_a_name_or_a_format() -> None:
    for text in ("{}", "{a}", "{a.b:text}", "{a!r:text}", "{:text}"):
        with pytest.raises(MessageError):
            template(text)


def test_text_of_users_is_never_markup_and_a_message_keeps_its_own() -> None:
    name = "**x** `y` <b>{z}</b> 2^9"
    html = rich(message("row.measured", rate=name))
    assert not re.search("<(b|code|sup)[ >]", html)
    nested: Message = message("whole.chart.alt", takeaway=message("limits.verdict.unknown"))
    assert "<b>" in rich(nested)


def test_plural_form_is_that_of_the_value_that_decides() -> None:
    one, many = (message("plan.notice.idle", idle=idle, accelerators=8.0) for idle in (1.0, 2.0))
    assert one.replace("1", "2", 1) != many


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (0.273, "percent", "27.3%"),
        ((0.38, 0.43), "percent", "38–43%"),
        (21.3e6, "dollars", "$21.3M"),
        ((72e6, 212e6), "dollars", "$72–212M"),
        ((9e5, 2e6), "dollars", "$900,000–2M"),
        (263.2, "days", "263 days"),
        ((56.4, 166.0), "days", "56.4–166 days"),
        ((0.5, 2.0), "days", "12 h–2 days"),
        (74.5 * 2**30, "GiB", "74.5 GiB"),
        (6.3e24, "FLOP", "6.3 × 10²⁴ FLOP"),
        (2.054, "factor", "2.05×"),
        (0.999, "chance", "over 99%"),
        (0.384, "chance", "38%"),
        (1.0, "tokens", "1 token"),
        ((3.0, 3.5), "price", "$3.00–3.50/h"),
    ],
)
def test_values_are_written_as_the_field_writes_them(
    value: float | tuple[float, float], kind: str, written: str
) -> None:
    assert format_value(value, kind) == written
    assert message("limits.named.amount", limit=Amount(value, kind)) == written
