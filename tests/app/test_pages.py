"""Every registered page runs through app.py without an exception, and shows its title, answer and permalink."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.glossary import appearances
from pages.common.registry import PAGES, PageSpec
from pages.common.theme import PROJECTOR
from tests.core.test_glossary import undefined
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
APP = str(ROOT / "app.py")
NAMES = {"H100", "SXM", "CPU", "TFLOP", "GWh", "MW", "MiB"}
"""What an answer says without a definition: products, and units with a prefix."""

IDS = [page.id for page in PAGES]


def run(spec: PageSpec) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    return app if spec.default else app.switch_page(spec.path).run()


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_page_runs(spec: PageSpec) -> None:
    """Query parameters of different pages never collide, every widget that holds state is bound or page-local, and
    every chart says what it shows."""
    app = run(spec)
    assert not app.exception
    assert [title.value for title in app.title] == [spec.h1]
    keys = [w.key for kind in ("text_input", "selectbox", "toggle", "number_input", "slider") for w in app.get(kind)]
    keys.remove(PROJECTOR)  # the menu's switch is every page's
    assert keys, "a page without an input answers nothing"
    assert all(key and key.startswith((f"{spec.prefix}_", "p_")) for key in keys), keys
    assert all(len(chart.proto.alt) > 30 for chart in app.get("plotly_chart"))
    html = [block.proto.body for block in app.get("html")]
    said = " ".join(re.sub(r"<[^>]+>", "", body) for body in html if 'class="np-answer"' in body)
    assert said
    assert not undefined(said) - NAMES, "abbreviations of an answer stand in the glossary"
    (defined,) = (body for body in html if 'class="np-terms"' in body)
    assert all(f'id="np-term-{term.id}"' in defined for term in appearances(said))


@pytest.mark.parametrize("spec", PAGES, ids=IDS)
def test_bad_text_in_every_box_keeps_the_page_alive(spec: PageSpec) -> None:
    app = run(spec)
    index = 0
    while index < len(app.text_input):  # what was typed may leave fewer boxes
        if not app.text_input[index].disabled:  # it shows what was found
            app.text_input[index].set_value("⁇ not a value").run()
        assert not app.exception
        index += 1
    assert app.title


def test_prefixes_and_addresses_are_unique() -> None:
    assert len({page.prefix for page in PAGES}) == len(PAGES)
    assert len({page.url_path for page in PAGES}) == len(PAGES)
    assert len([page for page in PAGES if page.default]) == 1


@pytest.mark.process
def test_torch_is_imported_only_where_tensors_are_real() -> None:
    """In a process of its own, because another test may have imported torch into this one."""
    code = f"""
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({APP!r}, default_timeout={PATIENCE_S}).run()
for path in {[p.path for p in PAGES if not p.default and p.id != "tensors"]!r}:
    assert "torch" not in sys.modules, path
    app.switch_page(path).run()
    assert not app.exception, app.exception
assert "torch" not in sys.modules, path
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_no_rule_of_style_asks_of_every_element_what_it_holds() -> None:
    """The browser would ask again whenever anything is drawn: charts of a long page took ten times as long."""
    sheets = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "assets").glob("*.css")}
    asked = re.compile(r"(?:^|[\s>+~,{}])(?:\*?|\.stApp):has\([^)]*\)", re.MULTILINE)
    assert len(sheets) >= 2
    assert {name: found for name, sheet in sheets.items() if (found := asked.findall(sheet))} == {}
