"""The Tensor views page in AppTest: typed code, what stays after bad input, panels."""

from __future__ import annotations

import html
import re

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from core.tensors.examples.lecture import PROGRAM
from core.tensors.examples.presets import LECTURE
from core.tensors.operations.lookup import catalogue
from pages.common.registry import FLOATS, TENSORS, PageSpec
from pages.tensors.inputs import GROUPS, MORE, NUMBERS
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(TENSORS.path).run()


def answer(page: AppTest) -> str:
    return next(element.proto.body for element in page.get("html") if "np-answer" in element.proto.body)


def errors(page: AppTest) -> list[str]:
    return [element.proto.body for element in page.get("html") if 'class="np-error' in element.proto.body]


def test_several_lines_and_what_stays_after_bad_ones(page: AppTest) -> None:
    assert "fails" in answer(page)
    page.text_area(key="t_x").set_value("y = x.t()\ny[0, 0] = 7").run()
    assert "writes storage cell <b>0</b>, so <b>x shows it too</b>" in answer(page)
    for bad in ("z = x.veiw(6)", "import os", "(" * 500):
        page.text_area(key="t_x").set_value(f"y = x.t()\ny[0, 0] = 7\n{bad}").run()
        assert not page.exception
        assert "Line 3 is not run" in errors(page)[0]
        assert "The lines before it are shown." in errors(page)[0]
        assert "writes storage cell" in answer(page)
    page.text_area(key="t_x").set_value("x" * 100_000).run()
    assert "more than the 12,000 characters" in errors(page)[0]
    page.text_area(key="t_x").set_value("x.as_strided((9, 9), (9, 9))").run()
    assert "refuses" in answer(page)
    assert "the last element would be cell 144" in answer(page)
    page.text_area(key="t_x").set_value("x.view(6)").run()
    page.text_input(key="t_stride").set_value("1, 2").run()
    assert "dimensions 0 and 1 cannot merge: <b>stride 1 ≠ 2 × 3</b>" in answer(page)
    page.text_input(key="t_stride").set_value("1, -2").run()
    assert "is not a stride" in errors(page)[0]
    assert "Still on float32 of shape 2, 3 and strides 1, 2" in errors(page)[0]


def test_names_that_nothing_defines_are_asked_beside_the_code(page: AppTest) -> None:
    page.text_area(key="t_x").set_value("w = torch.ones(D, K)\nassert w.numel() == 32\nw.shape").run()
    assert [page.text_input(key=f"t_n_{name}").value for name in "DK"] == ["8", "4"]
    assert page.text_input(key="t_shape").disabled
    assert "✓" in said(page)
    assert "(8, 4)" in said(page)
    page.text_input(key="t_n_K").set_value("5").run()
    assert "✗" in said(page)
    page.text_input(key="t_n_K").set_value("many").run()
    assert not page.exception
    assert "K is a number, such as 4" in errors(page)[0]


def test_gradients_are_the_answer(page: AppTest) -> None:
    lines = "x = torch.tensor([1., 2, 3])\nw = torch.ones(3, requires_grad=True)\nloss = 0.5 * (x @ w - 5).pow(2)"
    page.text_area(key="t_x").set_value(f"{lines}\nloss.backward()\nassert x.grad is None").run()
    assert not errors(page)
    assert "leaves a gradient at" in answer(page)
    assert "w.grad" in answer(page)
    assert "✓" in said(page)


def test_every_claim_stands_in_one_place() -> None:
    """Above the code or behind “More”."""
    presets = [claim for claims in (*GROUPS.values(), MORE) for claim in claims]
    assert sorted(presets) == sorted(preset.claim for preset in LECTURE)


def test_links_to_panels_that_are_gone_still_open() -> None:
    """Fields that nothing asks for any more are left aside."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(TENSORS.path)
    gone = {"back": "true", "neg": "Both reversed", "typed": "true", "names": "x: a = 2", "moved": "true", "many": "-3"}
    for name, text in {**gone, "dshape": "no", "x": "x.t()", "v": "3"}.items():
        app.query_params[name if name == "v" else f"t_{name}"] = text
    app.run()
    assert not app.exception
    assert not errors(app)
    assert "view" in answer(app)


def said(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


def test_panels_take_the_tensor_that_a_refused_step_was_tried_on(page: AppTest) -> None:
    """The start shows `x.transpose(1, 0).view(2, 3)`, which does not exist."""
    page.session_state["t_shared"] = True
    page.run()
    assert ">x.transpose(1, 0)</code> above: <b>No overlap</b>" in said(page)
    assert not page.exception


def test_pasted_code_runs_with_its_comments(page: AppTest) -> None:
    page.text_area(key="t_x").set_value("import torch\nb, n = x.shape  # rows, columns\nx.t().view(b, n)").run()
    assert not errors(page)
    assert "dimensions 0 and 1 cannot merge" in answer(page)
    page.text_area(key="t_x").set_value("h = 3\nrearrange(x, 'a (h d) -> h a d', h=h)").run()
    page.session_state["t_named"] = True
    page.run()
    assert not page.exception
    page.session_state["t:operations"] = True
    page.run()
    counts = map(int, re.findall(r"<small>(\d+)</small></summary>", said(page)))
    assert sum(counts) == sum(map(len, catalogue().values())) + len(NUMBERS)
    assert "In the code above" in f"{said(page)} {[element.value for element in (*page.markdown, *page.caption)]}"


@pytest.mark.parametrize(
    ("place", "panel", "field", "text", "using"),
    [
        (TENSORS, "t_shared", "t_by", "abc", "1"),
        (FLOATS, "f_sums", "f_times", "many", "1000"),
        (FLOATS, "f_block", "f_out", "-1", "21.3"),
    ],
)
def test_a_bad_value_in_a_panel_is_named_beside_its_field(
    place: PageSpec, panel: str, field: str, text: str, using: str
) -> None:
    """Once, and with nothing but other fields of the row in between."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(place.path)
    app.session_state[panel] = True
    app.run().text_input(key=field).set_value(text).run()
    assert not app.exception
    alerts = errors(app)
    assert len(alerts) == 1
    label = app.text_input(key=field).label.split(",")[0]
    assert label in alerts[0]
    assert f"Still using {using}" in alerts[0]
    drawn = [node for node in app.main if not isinstance(node, Block)]
    at = next(i for i, node in enumerate(drawn) if getattr(node, "key", None) == field)
    alert = next(i for i, node in enumerate(drawn) if node.type == "html" and 'class="np-error' in node.proto.body)
    between = {node.proto.body[:20] if node.type == "html" else node.type for node in drawn[at + 1 : alert]}
    assert at < alert
    assert between <= {"text_input", "button_group", "selectbox", "segmented_control", '<p class="np-score">'}


def test_a_bad_value_leaves_the_last_good_one_in_force() -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(FLOATS.path)
    app.session_state["f_sums"] = True
    app.run().text_input(key="f_times").set_value("70").run()
    app.text_input(key="f_times").set_value("many").run()
    assert "Still using 70" in errors(app)[0]


def test_a_panel_says_of_a_tensor_that_is_only_counted_that_it_is_too_large() -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(TENSORS.path)
    app.query_params.update({"t_x": "x.clone()", "t_shape": "49152, 12288", "t_dtype": "float32", "t_shared": "true"})
    app.run()
    assert errors(app) == []
    said = [element.proto.body for element in app.get("html") if "np-takeaway" in element.proto.body]
    assert any("603,979,776 elements are too many to go through one by one; at most 65,536." in body for body in said)


def test_the_lectures_program_is_read_part_by_part(page: AppTest) -> None:
    """A part says which it is, leads to its claims and to the next one; the last has none; other code says nothing."""

    def drawn(code: str) -> str:
        page.text_area(key="t_x").set_value(code).run()
        assert not page.exception
        return " ".join(element.proto.body for element in page.get("html"))

    here = drawn(PROGRAM[0].source)
    assert f"Part 1 of {len(PROGRAM)}" in here
    assert "1.15 a 4 × 8 tensor in bytes" in here
    assert f">{PROGRAM[1].title}</a>" in here
    assert "next:" not in drawn(PROGRAM[-1].source)
    assert "of the lecture’s program" not in drawn("x.t()")
    page.session_state["t_program"] = True
    assert all(html.escape(part.title) in drawn("x") for part in PROGRAM)
