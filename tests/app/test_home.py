"""Home: a number that was typed as a code, and a preset that is lit."""

from __future__ import annotations

import pytest

from pages.common.registry import HOME
from tests.app.plan_pages import current_preset, opened, words


@pytest.mark.parametrize(
    ("typed", "link"),
    [("1e-8", "f_x=1e-8&f_fmt=fp16"), ("0x10", "f_x=2%5E-145&f_fmt=fp16"), ("0xff800000", "f_x=-inf&f_fmt=fp16")],
)
def test_a_number_or_a_code_leads_to_its_bits(typed: str, link: str) -> None:
    assert link in words(opened(HOME, {"x": typed}))


def test_a_preset_is_lit_by_what_its_fields_mean() -> None:
    assert current_preset(opened(HOME, {"k": "08"}), "h:held") == "Everything counted"
