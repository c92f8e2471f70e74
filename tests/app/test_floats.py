"""The Float formats page under numbers and links that are hard to show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

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
        {"x": "1e310"},
        {"x": "-1e399", "fmt": "fp8_e4m3fn", "over": "saturate"},
        {"x": "1e-400", "fmt": "fp64"},
        {"x": "1.7976931348623158e308", "fmt": "fp64"},
    ],
)
def test_numbers_beyond_float64_are_shown(fields: dict[str, str]) -> None:
    app = page(**fields)
    assert not app.exception
    assert "becomes" in html(app)


@pytest.mark.parametrize(
    ("name", "text"), [("fmt", "zzz"), ("to", "fp999"), ("k", "99"), ("k", "**x**"), ("vals", "x" * 10**5)]
)
def test_a_link_with_an_unknown_value_says_so(name: str, text: str) -> None:
    app = page(**{name: text, "loss": "true", "block": "true"})
    alerts = [body for body in html(app).split("\n") if 'class="np-error"' in body]
    assert len(alerts) == 1
    assert f"“{text[:30]}" in alerts[0].replace("\u2060", "")
    assert len(alerts[0]) < 400
    assert not [body for body in html(app.run()).split("\n") if 'class="np-error"' in body]


def answer(app: AppTest) -> str:
    """The answer in large type, without its markup."""
    return re.sub(r"<[^>]*>", "", next(body for body in html(app).split("\n") if "np-answer" in body))


def bits(app: AppTest) -> int:
    """How many bits the strip has."""
    strip = next(one.proto for one in app.get("bidi_component") if "floats:bits" in one.proto.id)
    return len(json.loads(strip.json)["bits"])


def test_a_link_may_name_any_format_and_the_page_takes_ones_own() -> None:
    app = page(x="5", fmt="fp6_e3m2fn")
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
    assert 'class="np-error"' in html(app)
    assert bits(app) == 8
    assert not app.exception


def test_the_address_has_the_ids_of_options_and_not_their_labels() -> None:
    app = page(x="448", fmt="fp8_e4m3fn", sums="true", sum="fp16")
    assert app.button_group(key="f_fmt").value == "fp8_e4m3fn"
    assert app.button_group(key="f_sum").value == "fp16"
    app.button_group(key="f_fmt").set_value("fp8_e5m2").run()
    assert "fp8_e5m2" in app.query_params["f_fmt"]
    app.button_group(key="f_fmt").set_value("bf16").run()
    assert bits(app) == 16
