"""Handouts: one file without a network, with what the page says, whatever was typed."""

from __future__ import annotations

import datetime
import html
import re
import unicodedata

import pytest

from core.exercises.sheet import sheet
from core.floats.comparison import store
from core.floats.formats import FORMATS
from core.floats.typed_numbers import parse
from core.tensors.tracing.trace import trace
from core.views.floats.handout import floats_handout
from core.views.floats.text import describe_outcome
from core.views.report.handout import Handout, handout_html
from core.views.tensors.handout import tensors_handout
from core.views.tensors.text import headline
from tests.every import every

DAY = datetime.date(2026, 1, 2)
LINK = "http://here/float-formats?v=1&f_x=0.1"


def made(handout: Handout) -> str:
    return handout_html(handout, LINK, DAY)


def said(file: str) -> str:
    """The text of a file, without its tags and its sheet."""
    return bare(html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", file, flags=re.S)))


def bare(text: str) -> str:
    """Letters and digits alone, powers and all, as markup sets the rest in ways of its own."""
    return re.sub(r"\W|_", "", unicodedata.normalize("NFKC", text))


@every("name", FORMATS)
@every("text", ["0.1", "1e-8", "-inf", "0x3c00", "1 + 2^-8 + 2^-40", "7" * 300])
def test_a_number_in_every_format(name: str, text: str) -> None:
    fmt = FORMATS[name]
    stored = store(parse(text, fmt), fmt) if text != "0x3c00" or fmt.bits > 8 else store(parse("3", fmt), fmt)
    file = made(floats_handout(stored, "format"))
    assert "http-equiv" in file
    assert not re.search(r"<script|<link|<img|src=", file)
    assert f"0x{stored.view.code:0{fmt.hex_digits}x}" in file
    if text == "0.1":
        assert len(re.findall("<tr>", file)) >= len(FORMATS)


def test_the_answer_is_the_pages() -> None:
    stored = store(parse("0.1", FORMATS["bf16"]), FORMATS["bf16"])
    file = said(made(floats_handout(stored, "format")))
    assert bare(describe_outcome(stored).answer).split("in")[0] in file
    assert bare("How this is computed") in file
    assert bare("0.0977 %") in file
    assert bare("2026-01-02") in file


@pytest.mark.parametrize("source", ["x.t().view(2, 3)", "x.t()\nx[0] = 9", "x.transpose(1, 0).contiguous().view(2, 3)"])
def test_a_program_step_by_step(source: str) -> None:
    run = trace(source, (2, 3), dtype="int64")
    file = made(tensors_handout(run))
    assert len(re.findall("<tr>", file)) >= len(run) + 1
    assert bare(headline(run)[0])[:30] in said(file)
    assert html.escape(source.splitlines()[0]) in file or source.splitlines()[0] in html.unescape(file)


def test_a_sheet_with_its_answers_apart() -> None:
    of = sheet(9, ("floats", "memory"))
    file = made(Handout("Sheet 9", "Ten", questions=of.exercises))
    asked, _, answers = said(file).partition("Theanswers")
    for one in of.exercises:
        assert bare(one.prompt)[:40] in asked
        assert all(bare(option) in asked for option in one.options)
        assert bare(one.options[one.answer]) in answers


def test_what_was_typed_is_no_markup() -> None:
    file = made(Handout("<b>x</b>", "**1**", code="<script>alert(1)</script>"))
    assert "<script" not in file
    assert "<b>x</b>" not in file
