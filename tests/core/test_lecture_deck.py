"""A deck: every slide of the lecture leads somewhere, what is written is read back, and anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.lecture.deck import (
    DeckError,
    Slide,
    deck_text,
    lecture_slides,
    pack_deck,
    read_deck,
    spent,
    unpack_deck,
)
from core.limits import limit
from core.views.lecture.deck import markdown, value
from pages.common.slides import PLACES
from tests.every import every

STANDARD = tuple(lecture_slides().values())
WORDS = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="|"), min_size=1, max_size=30)
FIELD = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
OWN = st.builds(
    Slide,
    claim=st.just(""),
    link=st.builds(
        Link, st.sampled_from(sorted(PLACES)), st.dictionaries(FIELD, st.text(max_size=40), max_size=4), FIELD
    ),
    headline=WORDS,
    say=WORDS,
    minutes=st.integers(1, 180).map(float),
    ask=WORDS | st.just(""),
)


def test_the_lecture_has_25_to_30_slides_in_the_order_of_its_claims() -> None:
    assert 25 <= len(STANDARD) <= 30
    places = [list(CLAIMS).index(slide.claim) for slide in STANDARD]
    chapters = [
        list(dict.fromkeys(one.group for one in CLAIMS.values())).index(CLAIMS[s.claim].group) for s in STANDARD
    ]
    assert len(set(places)) == len(places)
    assert chapters == sorted(chapters)
    assert sum(bool(slide.ask) for slide in STANDARD) >= 10
    assert all(slide.say.endswith((".", "?")) and slide.headline for slide in STANDARD)
    assert 45 <= spent(STANDARD) <= 90


@given(st.lists(st.sampled_from(STANDARD) | OWN, min_size=1, max_size=8))
def test_a_deck_is_read_back_from_its_text_and_its_link(slides: list[Slide]) -> None:
    text = deck_text(slides, PLACES)
    read = read_deck(unpack_deck(pack_deck(text)), PLACES)
    assert read == tuple(slides)
    assert [one.link for one in read] == [one.link for one in slides]


def test_a_slide_of_ones_own_is_a_link_from_any_host() -> None:
    line = "https://napkin.example/tensor-views?v=4&t_x=x.t%28%29&f_x=1&at=t_quiz | Turned | Say so | 3 | What comes?"
    (slide,) = read_deck(line, PLACES)
    assert slide.link == Link("tensors", {"x": "x.t()"}, "quiz")
    assert (slide.headline, slide.say, slide.minutes, slide.ask) == ("Turned", "Say so", 3.0, "What comes?")


@every(
    ("text", "said"),
    [
        ("", "at least one slide"),
        ("F4\nF44", "Line 2: “F44”"),
        ("tensor-view?t_x=x | A | B", "Did you mean tensor-views?"),
        ("https://elsewhere.example/a | A | B", "is no link of these pages"),
        ("tensor-views | ", "has a headline"),
        ("tensor-views | A | B | soon", "no number of minutes"),
        ("tensor-views | A | B | 1e9", "no number of minutes"),
        ("tensor-views | A | B | nan", "no number of minutes"),
        ("F4\n" * 61, "61 slides are more than"),
        ("x" * 20_000, "characters are more than"),
    ],
)
def test_what_is_no_deck_says_which_line_and_what_would_do(text: str, said: str) -> None:
    with pytest.raises(DeckError, match=said.replace("?", r"\?")):
        read_deck(text, PLACES)


@given(st.text(max_size=200) | st.text("AQab-_=", max_size=80))
def test_a_damaged_link_is_refused_or_read(packed: str) -> None:
    try:
        text = unpack_deck(packed)
    except DeckError:
        return
    assert len(text) <= 4 * limit("deck_chars")


def test_a_link_that_would_unpack_without_end_is_cut() -> None:
    bomb = pack_deck("F4\n" * 3_000_000)
    assert len(unpack_deck(bomb)) <= 4 * limit("deck_chars")


def test_markdown_has_every_slide_with_what_is_computed() -> None:
    text = markdown(STANDARD, str)
    for slide in STANDARD:
        assert slide.headline in text
        assert value(slide) == CLAIMS[slide.claim].check().value
        assert value(slide) in text
