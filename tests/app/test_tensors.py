"""The Tensor views page in AppTest: typed code, what stays after bad input, panels."""

from __future__ import annotations

import html
from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest

from core.tensors.examples.lecture import PROGRAM
from core.tensors.examples.presets import LECTURE
from core.tensors.sealed.trust import Site
from pages.common.registry import FLOATS, TENSORS
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
    assert "writes storage cell <b>0</b>" in answer(page)
    for bad in ("z = x.veiw(6)", "z = undefined[0].t(1, 2, 3)", "(" * 500):
        page.text_area(key="t_x").set_value(f"y = x.t()\ny[0, 0] = 7\n{bad}").run()
        assert not page.exception
        assert "Line 3" in errors(page)[0]
        assert "((" in bad or "writes storage cell" in answer(page)
    page.text_area(key="t_x").set_value("x" * 100_000).run()
    assert "12,000" in errors(page)[0]
    page.text_area(key="t_x").set_value("x.view(6)").run()
    page.text_input(key="t_stride").set_value("1, 2").run()
    merged = answer(page)
    assert "<b>stride 1 ≠ 2 × 3</b>" in merged
    page.text_input(key="t_stride").set_value("1, -2").run()
    assert errors(page)
    assert answer(page) == merged


def test_names_that_nothing_defines_are_asked_beside_the_code(page: AppTest) -> None:
    page.text_area(key="t_x").set_value("w = torch.ones(D, K)\nassert w.numel() == 32\nw.shape").run()
    assert [page.text_input(key=f"t_n_{name}").value for name in "DK"] == ["8", "4"]
    assert page.text_input(key="t_shape").disabled
    assert "✓" in said(page)
    assert "8, 4" in said(page)
    page.text_input(key="t_n_K").set_value("5").run()
    assert "✗" in said(page)
    page.text_input(key="t_n_K").set_value("many").run()
    assert not page.exception
    assert errors(page)


def test_links_to_panels_that_are_gone_still_open() -> None:
    """Fields that nothing asks for any more are left aside."""
    gone = {"back": "true", "neg": "Both reversed", "typed": "true", "names": "x: a = 2", "moved": "true", "many": "-3"}
    app = from_link(**gone, dshape="no", x="x.t()", v="3")
    assert not app.exception
    assert not errors(app)
    assert "view" in answer(app)


def from_link(**fields: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(TENSORS.path)
    app.query_params.update({name if name == "v" else f"t_{name}": text for name, text in fields.items()})
    return app.run()


def test_code_of_a_link_waits_for_a_click_unless_it_is_napkins_own() -> None:
    app = from_link(x="y = x.t() + 41\nprint(y.sum())")
    assert "261" not in said(app)
    assert app.text_area(key="t_x").value.startswith("y = x.t()")
    app.button(key="t_run:x").click().run()
    assert "261" in said(app)
    app.text_area(key="t_x").set_value("print(x.sum() * 101)").run()
    assert "1515" in said(app)
    assert [button.key for button in app.button if ":run" in str(button.key)] == []
    assert "copies <b>24" in answer(from_link(x="x.transpose(1, 0).contiguous().view(2, 3)"))


@pytest.mark.parametrize("site", [Site(sealed=False), Site(sealed=True, why="No seal here.")])
def test_without_a_seal_only_napkins_own_code_runs(page: AppTest, site: Site) -> None:
    with patch("pages.tensors.inputs.site", lambda: site):
        page.text_area(key="t_x").set_value("print(x.sum() * 101)").run()
        assert "1515" not in said(page)
        assert not page.exception
        page.text_area(key="t_x").set_value(LECTURE[0].source).run()
        assert ("storage cell" in answer(page)) is not site.sealed


def test_panels_of_older_links_with_code_of_their_own_fill_the_code_box() -> None:
    app = from_link(call="torch.einsum('ij,jk->ik', a, b)", sizes="2, 3; 3, 4", named="true")
    assert app.text_area(key="t_x").value.splitlines()[0] == "a = torch.randn(2, 3)"
    app.button(key="t_run:x").click().run()
    assert "matmul" in said(app)
    app = from_link(view="x.as_strided((4, 3), (1, 1))", vshape="6", verb="mul_", by="2", shared="true")
    assert app.text_area(key="t_x").value == "x.as_strided((4, 3), (1, 1)).mul_(2)"
    assert "copies" in said(app)  # one of the presets, so it has run


def said(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


def test_a_bad_value_leaves_the_last_good_one_in_force() -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(FLOATS.path)
    app.session_state["f_sums"] = True
    app.run().text_input(key="f_times").set_value("70").run()
    app.text_input(key="f_times").set_value("many").run()
    assert "uses 70" in errors(app)[0]


def test_a_panel_says_of_a_tensor_that_is_only_counted_that_it_is_too_large() -> None:
    app = from_link(x="x.clone()", shape="49152, 12288", dtype="float32", shared="true")
    assert errors(app) == []
    assert "65,536" in said(app)
    assert "2.25 GiB" in said(app)


def test_the_lectures_program_is_read_part_by_part(page: AppTest) -> None:
    """A part says which it is, leads to its claims and to the next one; the last has none; other code says nothing."""

    def drawn(code: str) -> str:
        page.text_area(key="t_x").set_value(code).run()
        assert not page.exception
        return " ".join(element.proto.body for element in page.get("html"))

    here = drawn(PROGRAM[0].source)
    assert f"Part 1 of {len(PROGRAM)}" in here
    assert all(f"l_claim={name}" in here for name in PROGRAM[0].claims)
    assert f">{PROGRAM[1].title}</a>" in here
    assert "next:" not in drawn(PROGRAM[-1].source)
    assert "of the lecture’s program" not in drawn("x.t()")
    page.session_state["t_program"] = True
    assert all(html.escape(part.title) in drawn("x") for part in PROGRAM)
