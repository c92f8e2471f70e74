"""The Float formats page under numbers and links that are hard to show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.floats.formats import FORMATS
from pages.floats.inputs import COMMON
from tests.app.plan_pages import current_preset, take_preset
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def page(**fields: str) -> AppTest:
    """The page opened by a link with these fields."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE_S).run()
    app.switch_page("pages/floats/page.py")
    app.query_params.update({f"f_{name}": text for name, text in fields.items()})
    return app.run()


def html(app: AppTest) -> str:
    """Everything the page drew as HTML."""
    return "\n".join(element.proto.body for element in app.get("html"))


@pytest.mark.parametrize(
    "fields",
    [
        {"x": "1e400"},
        {"x": "1e310", "sort": "error in ULP"},
        {"x": "-1e399", "fmt": "fp8_e4m3fn", "over": "saturate", "sort": "value"},
        {"x": "1e-400", "fmt": "fp64", "sort": "relative error"},
        {"x": "1.7976931348623158e308", "fmt": "fp64"},
    ],
)
def test_numbers_beyond_float64_are_shown(fields: dict[str, str]) -> None:
    app = page(**fields)
    assert not app.exception
    assert "becomes" in html(app)


def test_formulas_are_offered_only_where_there_are_some() -> None:
    labels = {x: [e.label for e in page(x=x, fmt="fp16").expander] for x in ("nan", "0.5", "0.1")}
    assert [sum("How is this computed" in label for label in labels[x]) for x in labels] == [0, 1, 1]


def test_the_page_has_few_folds_and_few_rows_until_asked() -> None:
    app = page(fmt="more", more="mxint8")
    assert len(app.expander) <= 10
    assert table_rows(app) == [*COMMON, "mxint8"]
    assert table_rows(page(all="true")) == list(FORMATS)


def table_rows(app: AppTest) -> list[str]:
    """The formats in the table of one number everywhere, in order of the formats themselves."""
    table = next(one.proto for one in app.get("bidi_component") if "floats:everywhere" in one.proto.id)
    shown = {row["id"] for row in json.loads(table.json)["rows"]}
    return [name for name in FORMATS if name in shown]


BAD = {
    "x": "0.1.2",
    "over": "?",
    "fmt": "?",
    "sort": "?",
    **dict.fromkeys(("start", "add", "times", "sum"), "?"),
    **dict.fromkeys(
        ("k", "grow", "back", "every", "to", "n", "med", "end", "sd", "spike", "many", "seed", "step"), "?"
    ),
    **dict.fromkeys(("blk", "rule", "vals", "out", "own"), "?"),
}
FIELDS = {"text_input", "button_group", "slider", "number_input", "toggle", "selectbox", "button"}


def drawn(block: Any) -> Iterator[tuple[str, str]]:
    """Every element in the order of the page: its type, and the HTML in it."""
    for _, one in sorted(block.children.items()):
        if hasattr(one, "children"):
            yield from drawn(one)
        else:
            yield one.type, one.proto.body if one.type == "html" else ""


def test_every_message_stands_under_the_row_of_its_field() -> None:
    app = page(**BAD, **dict.fromkeys(("sums", "loss", "block"), "true"))
    assert not app.exception
    elements, alerts = list(drawn(app.main)), 0
    for (before, text), (_, body) in pairwise(elements):
        if 'class="np-error"' in body:
            alerts += 1
            assert before in FIELDS or 'class="np-error"' in text, body
    assert alerts == len(BAD)


def test_typed_markup_is_shown_as_typed() -> None:
    shown = html(page(x="**0.1**"))
    assert "“**0.1**”" in shown


@pytest.mark.parametrize(
    ("name", "text"), [("fmt", "zzz"), ("to", "fp999"), ("k", "99"), ("k", "**x**"), ("sort", "x" * 10**5)]
)
def test_a_link_with_an_unknown_value_says_so(name: str, text: str) -> None:
    app = page(**{name: text, "loss": "true"})
    alerts = [body for body in html(app).split("\n") if 'class="np-error"' in body]
    assert len(alerts) == 1
    assert f"“{text[:30]}" in alerts[0]
    assert len(alerts[0]) < 400
    assert not [body for body in html(app.run()).split("\n") if 'class="np-error"' in body]


def test_negative_zero_is_a_policy_of_ones_own_format() -> None:
    app = page(fmt="custom", custom="e4m3")
    app.toggle(key="f_cz").set_value(False).run()
    assert app.text_input(key="f_custom").value == "e4m3_nonegzero"
    app.toggle(key="f_cz").set_value(True).run()
    assert app.text_input(key="f_custom").value == "e4m3"
    app.selectbox(key="f_cn").set_value("negative_zero").run()
    assert app.text_input(key="f_custom").value == "e4m3fnuz_inf"
    assert app.toggle(key="f_cz").disabled
    app.selectbox(key="f_cn").set_value("ieee").run()
    assert app.text_input(key="f_custom").value == "e4m3"
    app.toggle(key="f_cs").set_value(False).run()
    app.toggle(key="f_cs").set_value(True).run()
    assert app.text_input(key="f_custom").value == "e4m3"
    assert not app.exception


def test_arithmetic_stands_bit_by_bit_and_beside_another_format() -> None:
    app = page(arith="true", aop="add", aa="1", ab="1e-8", af="bf16", av="fp16")
    shown = html(app)
    assert "b is swallowed" in shown
    assert "stored as 0, so nothing is added" in shown
    assert 'aria-label="Round"' in shown
    assert 'aria-label="Aligned at the binary point"' in shown
    fused = html(page(arith="true", aop="fma", aa="1 + 2^-10", ab="1 - 2^-10", ac="-1", fmt="fp16"))
    assert "Unfused" in fused
    assert "then added: <b>0</b>" in fused
    assert not app.exception


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"aa": "0.1.2"}, "a: “0.1.2” is not a number Napkin can read"),
        ({"aop": "divide"}, "is not one of “add”, “multiply” and “fma”"),
        ({"fmt": "e8m0fnu", "x": "2"}, "E8M0 is only the scale of a block"),
        ({"fmt": "custom", "custom": "e4m3f_inf", "aa": "inf", "ab": "-inf"}, "NaN is undefined"),
    ],
)
def test_bad_operands_are_refused_under_their_fields(fields: dict[str, str], said: str) -> None:
    app = page(arith="true", **fields)
    shown = html(app)
    alerts = [body for body in shown.split("\n") if 'class="np-error"' in body]
    assert len(alerts) == 1
    assert said in alerts[0]
    assert shown.index('role="alert"') > shown.index("Same number everywhere")
    assert not app.exception


def test_a_preset_sets_the_operation_and_closed_panels_draw_nothing() -> None:
    app = page(arith="true")
    take_preset(app, "f:arith", "0.1 + 0.2")
    assert app.text_input(key="f_aa").value == "0.1"
    assert "0.30000000000000004" in html(app)
    assert current_preset(app, "f:arith") == "0.1 + 0.2"
    assert 'class="np-stages"' not in html(page())


def answer(app: AppTest) -> str:
    """The answer in large type, without its markup."""
    return re.sub(r"<[^>]*>", "", next(body for _, body in drawn(app.main) if "np-answer" in body))


def bits(app: AppTest) -> int:
    """How many bits the strip has."""
    strip = next(one.proto for one in app.get("bidi_component") if "floats:bits" in one.proto.id)
    return len(json.loads(strip.json)["bits"])


def test_a_preset_says_what_it_is_of() -> None:
    app = page(x="65520", fmt="fp16", over="saturate")
    assert "clipped to the largest finite value" in answer(app)
    take_preset(app, "f:presets2", "65520 does not")
    assert "65520 becomes infinity in fp16: the largest finite value is 65504." in answer(app)
    take_preset(app, "f:presets1", "1e-8 in fp16")
    assert "1e-8 becomes 0 in fp16" in answer(app)


def test_a_link_may_name_any_format_and_the_page_takes_ones_own() -> None:
    app = page(x="5", fmt="fp6_e3m2fn")
    assert "in fp6 E3M2" in answer(app)
    assert bits(app) == 6
    app.button_group(key="f_more").set_value("e8m0fnu").run()
    assert "in E8M0" in answer(app)
    assert bits(app) == 8
    app.button_group(key="f_fmt").set_value("custom").run()
    app.text_input(key="f_custom").set_value("e3m2").run()
    assert bits(app) == 6
    assert app.number_input(key="f_ce").value == 3
    app.number_input(key="f_cm").set_value(4).run()
    assert app.text_input(key="f_custom").value == "e3m4"
    assert bits(app) == 8
    app.text_input(key="f_custom").set_value("e0m3").run()
    alert = next(body for body in html(app).split("\n") if 'class="np-error"' in body)
    assert all(words in alert for words in ("outside 1 to 11", "For example e4m3", "Still using e3m4"))
    assert bits(app) == 8
    assert not app.exception


def test_every_panel_follows_the_overflow() -> None:
    shown = html(page(x="465", fmt="fp8_e4m3fn", over="saturate"))
    assert "clipped" in shown
    assert "NaN</span>" not in shown.split("Rounding microscope")[1]
