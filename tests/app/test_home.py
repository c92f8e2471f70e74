"""Home: what its three sentences say about what was typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.plan_pages import current_preset, take_preset
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")


def home(**typed: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    for key, text in typed.items():
        app.text_input(key=key).set_value(text).run()
    assert not app.exception
    return app


def words(app: AppTest) -> str:
    """Everything said in HTML, without the stylesheet and with ordinary spaces."""
    bodies = [element.proto.body for element in app.get("html")]
    return "\n".join(body for body in bodies if not body.startswith("<style>")).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("typed", "sentence", "link"),
    [
        ("1e-8", "1e-8 becomes <b>0</b> in fp16", "f_x=1e-8&amp;f_fmt=fp16"),
        (
            "0x10",
            "0x10 as a code of fp32, 2.24 × 10<sup>−44</sup>, becomes <b>0</b> in fp16",
            "f_x=2%5E-145&amp;f_fmt=fp16",
        ),
        ("0x3f800000", "0x3f800000 as a code of fp32, 1, becomes <b>1</b> in fp16", "f_x=1&amp;f_fmt=fp16"),
        ("0xff800000", "0xff800000 as a code of fp32, −infinity, becomes", "f_x=-inf&amp;f_fmt=fp16"),
        ("0x7fc00000", "0x7fc00000 as a code of fp32, NaN, becomes", "f_x=nan&amp;f_fmt=fp16"),
    ],
)
def test_a_code_is_said_to_be_one(typed: str, sentence: str, link: str) -> None:
    said = words(home(h_x=typed))
    assert sentence in said
    assert link in said


def test_the_lectures_preset_says_whose_assumption_it_is() -> None:
    app = home()
    assert "lecture’s assumption" not in words(app)
    take_preset(app, "h:presets", "The lecture’s")
    said = words(app)
    assert "50 % is the lecture’s assumption" in said.replace("<b>", "").replace("</b>", "")
    assert "144 days" in said.replace("<b>", "").replace("</b>", "")
    assert app.text_input(key="p_mfu").value == "0.5"


def test_the_lectures_model_counts_states_alone() -> None:
    """40B is one click away and says what it leaves out; as it opens, everything is counted."""
    app = home()
    plain = words(app).replace("<b>", "").replace("</b>", "")
    assert "activations, buffers and runtime" in plain
    assert "40B parameters" not in plain
    take_preset(app, "h:held", "The lecture’s: model states alone")
    plain = words(app).replace("<b>", "").replace("</b>", "")
    assert "80 GB would hold 40B, by model states alone" in plain
    assert "come on top" in plain


def test_a_preset_is_lit_by_what_its_fields_mean() -> None:
    app = home(h_k="08")
    assert current_preset(app, "h:held") == "Everything counted"
