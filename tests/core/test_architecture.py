"""The house keeps its walls: who may import whom, and what importing core costs."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import core

ROOT = Path(__file__).parents[2]

FOUNDATION = {
    "units",
    "units_latex",
    "units_shown",
    "limits",
    "formula",
    "sources",
    "palette",
    "figure",
    "rows",
    "suggest",
    "products",
}
MAY_IMPORT: dict[str, set[str]] = {
    "units": {"limits"},
    "limits": set(),
    "rows": set(),
    "suggest": set(),
    "units_latex": {"units"},
    "units_shown": {"units"},
    "formula": {"units", "units_latex"},
    "sources": {"formula"},
    "products": {"formula", "sources"},
    "palette": set(),
    "figure": {"palette"},
    "floats": FOUNDATION,
    "tensors": FOUNDATION,
    "models": FOUNDATION,
    "hardware": FOUNDATION,
    "training": FOUNDATION | {"models", "hardware"},
    "measure": FOUNDATION | {"hardware"},
    "planning": FOUNDATION | {"models", "hardware", "training"},
    "lecture": FOUNDATION | {"floats", "tensors", "models", "hardware", "training", "measure", "planning"},
}
"""Topic of core → the other topics it may import."""


def imports(path: Path) -> set[str]:
    """Every module that the file names in an import statement, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def topic(path: Path) -> str:
    part = path.relative_to(ROOT / "core").parts[0]
    return part.removesuffix(".py")


@pytest.mark.parametrize("path", files("core"), ids=lambda p: str(p.relative_to(ROOT)))
def test_core_imports_follow_the_arrows(path: Path) -> None:
    here = topic(path)
    if here == "__init__":
        assert not any(name.startswith("core.") for name in imports(path))
        return
    for name in imports(path):
        parts = name.split(".")
        assert parts[0] not in {"streamlit", "pages", "plotly"}, f"{path} imports {name}"
        if parts[0] == "core" and len(parts) > 1 and parts[1] != here:
            assert parts[1] in MAY_IMPORT[here], f"{path}: {here} must not import {parts[1]}"
        if parts[0] == "core" and parts[-1] == "figures" and path.stem != "figures":
            raise AssertionError(f"{path}: figures are imported by pages only")


def test_the_arrows_have_no_cycle() -> None:
    seen: dict[str, int] = {}

    def depth(name: str, above: tuple[str, ...] = ()) -> int:
        assert name not in above, f"cycle: {' → '.join((*above, name))}"
        if name not in seen:
            seen[name] = 1 + max((depth(n, (*above, name)) for n in MAY_IMPORT[name]), default=0)
        return seen[name]

    for name in MAY_IMPORT:
        depth(name)


@pytest.mark.parametrize("path", files("pages"), ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_import_what_they_may(path: Path) -> None:
    for name in imports(path):
        assert not name.startswith("plotly"), f"{path}: figures come from core as plain dicts"
        assert name.split(".")[0] != "torch", f"{path}: pages compute nothing"
        if name.startswith("pages."):
            home = ".".join(path.relative_to(ROOT).parts[:2])
            assert name.startswith(("pages.parts", f"{home}.")), f"{path}: pages share through pages/parts"


def test_no_page_lies_directly_in_pages() -> None:
    assert not list((ROOT / "pages").glob("*.py")), "Streamlit would run it without app.py"


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*/page.py")), ids=lambda p: p.parent.name)
def test_a_page_is_one_fragment(path: Path) -> None:
    """What a script does beside defining things is to draw its page in a way that spares the frame at a rerun."""
    *defined, last = ast.parse(path.read_text(encoding="utf-8")).body
    assert ast.unparse(last) == "show.body(page)"
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.AnnAssign)
    assert [ast.unparse(node) for node in defined[1:] if not isinstance(node, allowed)] == []


def test_nothing_runs_untrusted_code() -> None:
    for path in (*files("core"), *files("pages"), ROOT / "app.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, f"{path} calls {node.func.id}"
        unsafe = {name for name in imports(path) if name.split(".")[0] in {"pickle", "yaml", "marshal"}}
        assert not unsafe, f"{path} imports {unsafe}"


MODULES = sorted(m.name for m in pkgutil.walk_packages(core.__path__, "core."))


def test_every_folder_of_core_is_a_package() -> None:
    for folder in (ROOT / "core").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert (folder / "__init__.py").is_file(), folder
            assert folder.name in MAY_IMPORT


def test_importing_core_loads_nothing_heavy() -> None:
    code = (
        f"import sys, importlib\nfor name in {MODULES!r}:\n    importlib.import_module(name)\n"
        "print(','.join(m for m in ('torch', 'streamlit', 'plotly', 'pandas') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_modules_stay_short() -> None:
    for path in (*files("core"), *files("pages")):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, f"{path} is a smell"
