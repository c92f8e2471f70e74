"""Packages and imports: who may import whom, what importing core costs, and how large modules are."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import core
from pages.common.registry import PAGES
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "limits rows suggest",
        "units data_version",
        "wording",
        "messages",
        "number_text",
        "quantities dates",
        "fields jobs",
        "formula",
        "sources",
        "products glossary",
        "floats tensors models hardware",
        "budget benchmark",
        "training",
        "step_time serving experiments",
        "search",
        "runs",
        "planning",
        "lecture store",
        "exercises",
        "views",
    )
)
"""Modules and packages of core from the lowest up. Each imports only from layers below its own, and from itself."""

LAYER = {name: rank for rank, names in enumerate(LAYERS) for name in names}

LARGEST_FOLDER, LONGEST_MODULE = 20, 500

PAGE = re.compile(
    r"\bunder More\b|\b(?:this|of the|on the|for the) page\b|\bthe page[’']s\b|\bpanel (?:on|about)\b"
    r"|\bBelow is\b|\bis above as\b|\b(?:model|models) above\b"
    r"|\b(?:drawn|shown|stands?|listed|set|answer|switch|line|picture|table|chart|panel) (?:above|below)\b"
)
"""Words that only somebody who looks at a page understands."""


@cache
def imports(source: str, path: str = "") -> frozenset[str]:
    """Every module that a source names in an import statement or in `import_module`, at any depth."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            modules.update(str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))
    return frozenset(modules)


def core_faults(path: str, source: str) -> list[str]:
    """What the module at ``path`` (from the root) of core imports against the rules."""
    here = path.removesuffix(".py").split("/")[1]
    faults: list[str] = []
    for name in sorted(imports(source, path)):
        top, *there = name.split(".")
        embeds = path == "core/views/report/document.py"  # a report carries plotly.js
        if top in {"streamlit", "pages"} or (top == "plotly" and not embeds):
            faults.append(f"{path} imports {name}")
        if top != "core" or not there:
            continue
        if path.endswith("/__init__.py"):
            faults.append(f"{path}: an import names the module that defines the thing, so packages import nothing")
        elif there[0] != here and LAYER[there[0]] >= LAYER[here]:
            faults.append(f"{path}: {here} must not import {there[0]}")
    return faults


def page_faults(path: str, source: str) -> list[str]:
    """What the module at ``path`` (from the root) of pages imports against the rules."""
    folder = path.split("/")[1]
    faults: list[str] = []
    for name in sorted(imports(source, path)):
        top, *there = name.split(".")
        if top in {"plotly", "torch"} and path != "pages/common/figures.py":
            faults.append(f"{path}: pages compute nothing and draw what core gives them, not {name}")
        if top == "pages" and there and there[0] not in {"common", "streamlit_patches", folder}:
            faults.append(f"{path}: a page shares through pages/common, not {name}")
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


def two_way_pairs(sources: dict[str, str]) -> list[str]:
    """Packages (folders) that import each other, of modules by path with their sources."""
    packages = {path.rpartition("/")[0].replace("/", ".") for path in sources}
    arrows: set[tuple[str, str]] = set()
    for path, source in sources.items():
        here = path.rpartition("/")[0].replace("/", ".")
        for name in imports(source, path):
            module = name if (f"{name.replace('.', '/')}.py") in sources else name.rpartition(".")[0]
            there = module.rpartition(".")[0]
            if there in packages and there != here and module.replace(".", "/") + ".py" in sources:
                arrows.add((here, there))
    return sorted(f"{a} and {b} import each other" for a, b in arrows if a < b and (b, a) in arrows)


def test_core_imports_only_from_layers_below() -> None:
    assert [fault for path in files("core") for fault in core_faults(named(path), text(path))] == []


@every(
    ("path", "source"),
    [
        ("core/planning/sensitivity.py", "from core.views.sensitivity.charts import picture"),
        ("core/planning/sensitivity.py", "from core.views.sensitivity import text"),
        ("core/planning/form/plan_form.py", "def f():\n    from core.views.runs.text import share_of"),
        ("core/runs/published.py", "from importlib import import_module\nimport_module('core.views.runs.text')"),
        ("core/hardware/operations.py", "from core.models import flops"),
        ("core/runs/published.py", "import core.planning.estimate"),
        ("core/store/store.py", "from core.lecture.claims import Claim"),
        ("core/budget/equations.py", "import streamlit as st"),
        ("core/views/floats/charts.py", "import plotly.graph_objects as go"),
        ("core/training/memory.py", "from pages.common import show"),
        ("core/training/__init__.py", "from core.training.layout import Layout"),
    ],
)
def test_a_planted_import_in_core_is_found(path: str, source: str) -> None:
    assert len(core_faults(path, source)) >= 1


def test_views_and_rules_may_import_what_lies_below() -> None:
    assert core_faults("core/views/sensitivity/charts.py", "from core.views.plan.charts import scale_for") == []
    assert core_faults("core/planning/sensitivity.py", "from core.planning.estimate import answer") == []


def test_no_two_packages_import_each_other() -> None:
    sources = {named(path): text(path) for folder in ("core", "pages") for path in files(folder)}
    assert two_way_pairs(sources) == []
    planted = {"core/a/x.py": "from core.b.y import z", "core/b/y.py": "", "core/b/q.py": "import core.a.x"}
    assert two_way_pairs(planted) == ["core.a and core.b import each other"]


def test_every_module_of_core_has_a_layer() -> None:
    assert {path.removesuffix(".py").split("/")[1] for path in map(named, files("core"))} - {"__init__"} == set(LAYER)
    assert all(low.isdisjoint(high) for low, high in pairwise(LAYERS))


def test_core_knows_no_page() -> None:
    assert [(named(path), words) for path in files("core") for words in mentions_of_a_page(text(path))] == []


@every(
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
    for sentence in ("a clock below this share", "half below 38%", "Above the ridge", "cannot be above 100%"):
        assert mentions_of_a_page(repr(sentence)) == []


def test_pages_import_what_they_may() -> None:
    assert [fault for path in files("pages") for fault in page_faults(named(path), text(path))] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pages/compute/page.py", "from pages.memory.inputs import ask"),
        ("pages/common/show.py", "import pages.compute"),
        ("pages/tensors/page.py", "def f():\n    import torch"),
        ("pages/floats/page.py", "import plotly.express as px"),
    ],
)
def test_a_planted_import_in_a_page_is_found(path: str, source: str) -> None:
    assert len(page_faults(path, source)) >= 1


def test_streamlit_is_imported_by_the_app_and_its_pages_only() -> None:
    drawn = {ROOT / "app.py", *files("pages")}
    others = [path for path in (*ROOT.glob("*.py"), *files("core"), *files("tests")) if path not in drawn]
    named_there = [path for path in others if "streamlit" in text(path)]  # parsing all of them takes seconds
    who = {named(path) for path in named_there if any(name.startswith("streamlit") for name in imports(text(path)))}
    assert all(name.startswith("tests/") for name in who), who


def test_no_page_lies_directly_in_pages() -> None:
    assert not list((ROOT / "pages").glob("*.py")), "Streamlit would run it without app.py"


def test_a_page_is_drawn_by_one_call() -> None:
    """What a script does beside defining things is to draw its page: as one fragment, which spares the frame a rerun,
    or with the plan in the sidebar."""
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.AnnAssign)
    for spec in PAGES:
        *defined, last = ast.parse(text(ROOT / spec.path)).body
        assert ast.unparse(last) == f"{'plan_sidebar' if spec.plans else 'show'}.draw_page(page)", spec.path
        assert [ast.unparse(node) for node in defined[1:] if not isinstance(node, allowed)] == [], spec.path


def test_nothing_runs_untrusted_code() -> None:
    """But for the recorder, which runs where the seal holds it."""
    runs = {"eval", "exec", "compile", "__import__"}
    sealed = {ROOT / "core" / "tensors" / "sealed" / f"{name}.py" for name in ("program", "recorder")}
    for path in {*files("core"), *files("pages"), ROOT / "app.py"} - sealed:
        for node in ast.walk(ast.parse(text(path))) if any(f"{name}(" in text(path) for name in runs) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in runs, f"{path} calls {node.func.id}"
        unsafe = {
            name for name in imports(text(path), named(path)) if name.split(".")[0] in {"pickle", "yaml", "marshal"}
        }
        assert not unsafe, f"{path} imports {unsafe}"


MODULES = sorted(m.name for m in pkgutil.walk_packages(core.__path__, "core."))


def test_every_folder_of_core_is_a_package() -> None:
    folders = {path.parent for path in files("core")}
    assert [named(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


@pytest.mark.process
def test_importing_core_loads_nothing_heavy() -> None:
    """Whatever of it a page or a notebook imports; studies are a command of their own, which nothing else imports."""
    heavy = ("torch", "transformers", "streamlit", "plotly", "pandas", "distributed", "pyarrow")
    modules = [name for name in MODULES if not name.startswith("core.search.study.")]
    code = (
        f"import sys, importlib\nfor name in {modules!r}:\n    importlib.import_module(name)\n"
        f"print(','.join(m for m in {heavy!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_modules_and_folders_stay_small() -> None:
    modules = [*files("core"), *files("pages")]
    assert [named(path) for path in modules if len(text(path).splitlines()) > LONGEST_MODULE] == []
    folders = {path.parent for path in modules}
    sizes = {named(folder): len(list(folder.glob("*.py"))) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > LARGEST_FOLDER} == {}


def test_every_class_has_a_name_of_its_own() -> None:
    paths = [*files("core"), *files("pages")]
    names = Counter(
        node.name for path in paths for node in ast.parse(text(path)).body if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 300
    assert [name for name, count in names.items() if count > 1] == []


def test_the_text_of_a_folder_of_views_has_one_name() -> None:
    def names(path: Path) -> Iterator[tuple[str, str]]:
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("core.views."):
                folder = (node.module or "").rpartition(".")[2]
                yield from ((folder, one.asname) for one in node.names if one.name == "text" and one.asname)

    every = {pair for folder in ("core", "pages", "tests") for path in files(folder) for pair in names(path)}
    assert len(every) > 10
    assert [pair for pair in every if pair[1] != f"{pair[0]}_text"] == []
