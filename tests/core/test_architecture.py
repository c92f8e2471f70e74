"""The house keeps its walls: who may import whom, and what importing core costs."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import core
from pages.parts.registry import PAGES

ROOT = Path(__file__).parents[2]

FOUNDATION = {
    "units",
    "units_latex",
    "units_shown",
    "limits",
    "knowledge",
    "formula",
    "sources",
    "palette",
    "figure",
    "rows",
    "suggest",
    "products",
    "fields",
    "wording",
    "markup",
    "glossary",
}
MAY_IMPORT: dict[str, set[str]] = {
    "units": {"limits"},
    "limits": set(),
    "knowledge": set(),
    "rows": set(),
    "suggest": set(),
    "units_latex": {"units"},
    "units_shown": {"units"},
    "formula": {"units", "units_latex"},
    "sources": {"formula"},
    "products": {"formula", "sources"},
    "palette": set(),
    "figure": {"palette"},
    "fields": {"limits", "suggest", "units"},
    "wording": {"units"},
    "markup": set(),
    "glossary": {"formula", "sources"},
    "floats": FOUNDATION,
    "tensors": FOUNDATION,
    "models": FOUNDATION,
    "hardware": FOUNDATION,
    "training": FOUNDATION | {"models", "hardware", "measure"},
    "measure": FOUNDATION | {"models", "hardware"},
    "planning": FOUNDATION | {"models", "hardware", "training", "measure"},
    "report": FOUNDATION | {"models", "hardware", "training", "planning"},
    "store": {"fields", "knowledge", "limits", "planning", "wording", "measure"},
    "lecture": FOUNDATION | {"floats", "tensors", "models", "hardware", "training", "measure", "planning", "report"},
}
"""Topic of core → the other topics it may import."""

ROOM_MAY_IMPORT: dict[str, set[str]] = {
    "budget": set(),
    "evidence": {"budget"},
    "counting": {"budget", "evidence"},
    "layer": {"budget"},
    "whole": {"budget"},
    "split": {"budget"},
    "step": {"budget"},
    "search": {"budget", "step", "evidence"},
    "study": {"budget", "step", "search"},
    "answer": {"budget", "evidence", "counting", "whole", "step", "search"},
    "moves": {"budget", "answer"},
    "compare": {"budget", "answer"},
    "board": {"budget", "answer", "whole"},
    "calendar": {"budget", "answer"},
    "money": {"budget", "answer", "calendar"},
}
"""Room of core/planning → the rooms whose rules its own may import. Its figures and words may look into every room."""

WITHOUT_ROOM = {"__init__", "calibrate"}
"""Modules of core/planning that lie in no room: what it exports, and its command."""

FIGURES = re.compile(r"figures(_\w+)?")
WORDS = re.compile(r"words(_\w+)?")
REPORT = re.compile(r"(report|export)(_\w+)?")
"""What a module is called that holds pictures, sentences, or puts both into a file; or the folder it lies in."""

PAGE = re.compile(
    r"\bunder More\b|\b(?:this|of the|on the|for the) page\b|\bthe page[’']s\b|\bpanel (?:on|about)\b"
    r"|\bBelow is\b|\bis above as\b|\b(?:model|models) above\b"
    r"|\b(?:drawn|shown|stands?|listed|set|answer|switch|line|picture|table|chart|panel) (?:above|below)\b"
)
"""Words that only somebody who looks at a page understands."""


def imports(source: str, path: str = "") -> set[str]:
    """Every module that a source names in an import statement, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def imports_by_name(source: str) -> set[str]:
    """Every module that a source imports when it is needed, by its name as text."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    args = [call.args[0] for call in calls if call.args and ast.unparse(call.func).endswith("import_module")]
    return {str(arg.value) for arg in args if isinstance(arg, ast.Constant)}


def holds(parts: Iterable[str], kind: re.Pattern[str]) -> bool:
    """Whether one of a module's names, its own or that of a folder around it, is one for such a thing."""
    return any(kind.fullmatch(part) for part in parts)


def room_faults(path: str, here: list[str], there: list[str]) -> list[str]:
    """What is wrong with importing ``there`` in ``here``, both modules of core/planning, as to their rooms."""
    room, other = here[1], there[1] if len(there) > 1 else ""
    if room in WITHOUT_ROOM or not other:
        return []
    if room not in ROOM_MAY_IMPORT:
        return [f"{path}: lies in no room of core/planning"]
    if other not in ROOM_MAY_IMPORT:
        return [f"{path}: rooms import from rooms, not core.planning.{other}"]
    shows = any(holds(here, kind) for kind in (FIGURES, WORDS, REPORT))
    if other == room or shows or other in ROOM_MAY_IMPORT[room]:
        return []
    return [f"{path}: the rules of {room} must not import {other}"]


def core_faults(path: str, source: str) -> list[str]:
    """What the module at ``path`` (from the root) of core imports against the rules."""
    here = path.removesuffix(".py").split("/")[1:]
    faults: list[str] = []
    for name in sorted(imports(source, path) | imports_by_name(source)):
        top, *there = name.split(".")
        if top in {"streamlit", "pages", "plotly"}:
            faults.append(f"{path} imports {name}")
        if top != "core" or not there:
            continue
        if here == ["__init__"]:
            faults.append(f"{path}: core itself imports nothing of its own")
        elif there[0] != here[0] and there[0] not in MAY_IMPORT[here[0]]:
            faults.append(f"{path}: {here[0]} must not import {there[0]}")
        elif there[0] == here[0] == "planning":
            faults += room_faults(path, here, there)
        if holds(there, FIGURES) and not (holds(here, FIGURES) or holds(here, REPORT)):
            faults.append(f"{path}: figures are for pages and reports, not {name}")
        shows = holds(here, WORDS) or holds(here, FIGURES) or holds(here, REPORT) or here[0] == "lecture"
        if holds(there, WORDS) and not shows:
            faults.append(f"{path}: words are for pages, reports, figures and the lecture, not {name}")
    return faults


def page_faults(path: str, source: str) -> list[str]:
    """What the module at ``path`` (from the root) of pages imports against the rules."""
    folder = path.split("/")[1]
    faults: list[str] = []
    for name in sorted(imports(source, path)):
        top, *there = name.split(".")
        if top in {"plotly", "torch"}:
            faults.append(f"{path}: pages compute nothing and draw what core gives them, not {name}")
        if top == "pages" and there and there[0] not in {"parts", folder}:
            faults.append(f"{path}: a page shares through pages/parts, not {name}")
    return faults


def strings(source: str) -> Iterator[str]:
    """Every string of a source, with a … where an f-string has a value."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def mentions_of_a_page(source: str) -> list[str]:
    """Where a source speaks of the page that shows it: the words, and a few around them."""
    texts = (re.sub(r"\s+", " ", text) for text in strings(source))
    return [text[max(0, m.start() - 20) : m.end() + 20] for text in texts for m in PAGE.finditer(text)]


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", files("core"), ids=named)
def test_core_imports_follow_the_arrows(path: Path) -> None:
    assert core_faults(named(path), text(path)) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/planning/moves/sensitivity.py", "from core.planning.moves.figures import picture"),
        ("core/planning/moves/sensitivity.py", "from core.planning.moves import words"),
        ("core/planning/moves/sensitivity.py", "import core.planning.answer.figures"),
        ("core/planning/moves/sensitivity.py", "from core.planning.answer import figures_plan"),
        ("core/planning/__init__.py", "from core.planning.evidence.words_runs import said"),
        ("core/planning/answer/peers.py", "def f():\n    from core.planning.whole.words import share_of"),
        (
            "core/planning/answer/peers.py",
            "from importlib import import_module\nimport_module('core.planning.whole.words')",
        ),
        ("core/planning/moves/words.py", "from core.planning.moves.figures import picture"),
        ("core/lecture/compute.py", "from core.planning.answer.figures import scale_for"),
        ("core/hardware/roofline.py", "from core.models import flops"),
        ("core/planning/budget/rule.py", "import streamlit as st"),
        ("core/floats/figures.py", "import plotly.graph_objects as go"),
        ("core/training/memory.py", "from pages.parts import show"),
        ("core/__init__.py", "from core.units import Kind"),
    ],
)
def test_a_planted_import_in_core_is_found(path: str, source: str) -> None:
    assert len(core_faults(path, source)) >= 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/planning/moves/figures.py", "from core.planning.answer.figures import scale_for"),
        ("core/planning/whole/words.py", "from core.training.words import plural"),
        ("core/planning/answer/export.py", "from core.planning.whole.words import failures"),
        ("core/planning/budget/words.py", "from core.planning.answer.answer import Answer"),
        ("core/lecture/compute.py", "from core.planning.layer.words import signed"),
        ("core/planning/budget/rule.py", "from core import figure"),
    ],
)
def test_pictures_sentences_and_reports_may_be_put_together(path: str, source: str) -> None:
    assert core_faults(path, source) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/planning/budget/rule.py", "from core.planning.evidence.rows import evidence"),
        ("core/planning/evidence/rows.py", "from core.planning.counting.lengths import work_of"),
        ("core/planning/evidence/rows.py", "import core.planning.answer.answer"),
        ("core/planning/counting/layers.py", "from core.planning.answer.answer import Answer"),
        ("core/planning/counting/layers.py", "def f():\n    from core.planning import answer"),
        ("core/planning/whole/goodput.py", "from core.planning.answer.plan import Plan"),
        ("core/planning/split/scaling.py", "from core.planning.moves.sensitivity import swings"),
        ("core/planning/layer/kinds.py", "from core.planning.counting.growth import growth"),
        ("core/planning/answer/solving.py", "from core.planning.moves.sensitivity import swings"),
        ("core/planning/answer/solving.py", "from core.planning import Interval"),
        ("core/planning/moves/words.py", "from core.planning import Answer"),
        ("core/planning/solver.py", "from core.planning.budget.rule import rent"),
    ],
)
def test_a_planted_import_across_rooms_is_found(path: str, source: str) -> None:
    faults = core_faults(path, source)
    assert faults
    assert all("room" in fault or "the rules of" in fault for fault in faults)


def test_the_lecture_may_call_every_topic_that_counts() -> None:
    assert MAY_IMPORT["lecture"] == set(MAY_IMPORT) - {"lecture", "store"}


def test_every_room_is_in_the_table() -> None:
    rooms = {folder.name for folder in (ROOT / "core" / "planning").iterdir() if (folder / "__init__.py").is_file()}
    assert rooms == set(ROOM_MAY_IMPORT)


@pytest.mark.parametrize("path", files("core"), ids=named)
def test_core_knows_no_page(path: Path) -> None:
    assert mentions_of_a_page(text(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "'type one under More'",
        "f'the {row} is the answer above'",
        "'the values of every tensor are drawn '\\\n'below'",
        "def f():\n    return 'where this page answers it'",
        "'''What stands below a question.'''",
        "'Choose a model\\n above'",
        "'The panel on overlap replays such writes.'",
        "'A chip of the page.'",
        "'in the page’s markup'",
    ],
)
def test_a_planted_mention_of_a_page_is_found(source: str) -> None:
    assert len(mentions_of_a_page(source)) == 1


def test_above_and_below_are_words_of_numbers_too() -> None:
    for said in ("a clock below this share", "half below 38 %", "Above the ridge", "cannot be above 100 %"):
        assert mentions_of_a_page(repr(said)) == []


def cycle(arrows: dict[str, set[str]]) -> list[str]:
    """Names that lead back to the first of them along ``arrows``; none where there is no way round."""
    ends: set[str] = set()

    def walk(path: list[str]) -> list[str]:
        for name in sorted(arrows.get(path[-1], set()) - ends):
            found = [*path[path.index(name) :], name] if name in path else walk([*path, name])
            if found:
                return found
        ends.add(path[-1])
        return []

    return next(filter(None, (walk([name]) for name in arrows)), [])


@pytest.mark.parametrize("arrows", [MAY_IMPORT, ROOM_MAY_IMPORT], ids=["topics", "rooms"])
def test_the_arrows_have_no_cycle(arrows: dict[str, set[str]]) -> None:
    assert cycle(arrows) == []


def test_a_planted_cycle_is_found() -> None:
    assert cycle({**MAY_IMPORT, "models": FOUNDATION | {"lecture"}}) == ["models", "lecture", "measure", "models"]
    assert cycle({**ROOM_MAY_IMPORT, "evidence": {"answer"}}) == ["evidence", "answer", "counting", "evidence"]
    assert cycle({"alone": {"alone"}}) == ["alone", "alone"]


@pytest.mark.parametrize("path", files("pages"), ids=named)
def test_pages_import_what_they_may(path: Path) -> None:
    assert page_faults(named(path), text(path)) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pages/compute/page.py", "from pages.memory.inputs import ask"),
        ("pages/compute/moves.py", "from pages import memory"),
        ("pages/parts/show.py", "from pages.compute.inputs import ask"),
        ("pages/parts/show.py", "import pages.compute"),
        ("pages/tensors/page.py", "def f():\n    import torch"),
        ("pages/floats/page.py", "import plotly.express as px"),
    ],
)
def test_a_planted_import_in_a_page_is_found(path: str, source: str) -> None:
    assert len(page_faults(path, source)) >= 1


def test_a_page_may_use_its_own_folder_and_the_common_parts() -> None:
    source = "from pages.compute.inputs import ask\nfrom pages.parts import show\nfrom core.units import Kind"
    assert page_faults("pages/compute/page.py", source) == []


def test_streamlit_is_imported_by_the_app_and_its_pages_only() -> None:
    drawn = {ROOT / "app.py", *files("pages")}
    others = [path for path in (*ROOT.glob("*.py"), *files("core"), *files("tests")) if path not in drawn]
    named_there = [path for path in others if "streamlit" in text(path)]  # parsing all of them takes seconds
    who = {named(path) for path in named_there if any(name.startswith("streamlit") for name in imports(text(path)))}
    assert all(name.startswith("tests/") for name in who), who


def test_no_page_lies_directly_in_pages() -> None:
    assert not list((ROOT / "pages").glob("*.py")), "Streamlit would run it without app.py"


@pytest.mark.parametrize("path", [ROOT / spec.path for spec in PAGES], ids=named)
def test_a_page_is_one_fragment(path: Path) -> None:
    """What a script does beside defining things is to draw its page in a way that spares the frame at a rerun."""
    *defined, last = ast.parse(text(path)).body
    assert ast.unparse(last) == "show.body(page)"
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.AnnAssign)
    assert [ast.unparse(node) for node in defined[1:] if not isinstance(node, allowed)] == []


def test_nothing_runs_untrusted_code() -> None:
    for path in (*files("core"), *files("pages"), ROOT / "app.py"):
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, f"{path} calls {node.func.id}"
        unsafe = {name for name in imports(text(path)) if name.split(".")[0] in {"pickle", "yaml", "marshal"}}
        assert not unsafe, f"{path} imports {unsafe}"


MODULES = sorted(m.name for m in pkgutil.walk_packages(core.__path__, "core."))


def test_every_folder_of_core_is_a_package() -> None:
    for folder in (ROOT / "core").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert (folder / "__init__.py").is_file(), folder
            assert folder.name in MAY_IMPORT


def test_importing_core_loads_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "streamlit", "plotly", "pandas", "distributed", "pyarrow")
    code = (
        f"import sys, importlib\nfor name in {MODULES!r}:\n    importlib.import_module(name)\n"
        f"print(','.join(m for m in {heavy!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_modules_stay_short() -> None:
    for path in (*files("core"), *files("pages")):
        assert len(text(path).splitlines()) <= 500, f"{path} is a smell"
