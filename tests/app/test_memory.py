"""Training memory: what the page says for links and for hardware that need a word."""

from __future__ import annotations

import html

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.registry import MEMORY
from tests.app.test_home import words
from tests.app.test_pages import APP

BF16 = "mixed bf16, fp32 master"


def opened(**linked: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60).run()
    app.switch_page(MEMORY.path)
    for name, text in linked.items():
        app.query_params[f"m_{name}"] = text
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("field", "linked", "said"),
    [
        ("prec", "xx", "not one of “fp32”, “fp32, bf16 autocast”, “mixed bf16, fp32 master”, “mixed bf16,"),
        ("prec", "xx", "more. Still using mixed bf16, fp32 master."),
        ("opt", "xx", "“Adafactor”, “SGD” and"),
        ("opt", "K-FAC", "K-FAC is left out, because its state"),
        ("opt", "8-bit AdamW", "Did you mean 8-bit Adam"),
        ("opt", "AdamX", "Did you mean Adam"),
    ],
)
def test_a_link_to_no_choice_is_told_the_choices(field: str, linked: str, said: str) -> None:
    assert said in html.unescape(words(opened(**{field: linked})))


def test_missing_matrix_units_and_measurements_in_another_format() -> None:
    plain = words(opened())
    assert "Measured, in fp32" in plain
    assert "no bf16 matrix units" not in plain
    assert "Left out: " in plain
    assert "V100 SXM 32 GB has no bf16 matrix units" in words(opened(gpu="V100 SXM 32 GB", prec=BF16))
    assert "Measured" not in words(opened(opt="Prodigy", prec="bf16 throughout"))
