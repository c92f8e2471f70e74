"""A deck: every slide of the lecture leads somewhere, in the order of the claims."""

from __future__ import annotations

from core.lecture.catalogue import CLAIMS
from core.lecture.deck import lecture_slides

SLIDES = lecture_slides()


def test_the_lecture_has_25_to_30_slides_in_the_order_of_its_claims() -> None:
    assert 25 <= len(SLIDES) <= 30
    places = [list(CLAIMS).index(slide.claim) for slide in SLIDES]
    chapters = [list(dict.fromkeys(one.group for one in CLAIMS.values())).index(CLAIMS[s.claim].group) for s in SLIDES]
    assert len(set(places)) == len(places)
    assert chapters == sorted(chapters)
    assert sum(bool(slide.ask) for slide in SLIDES) >= 10
    assert all(bool(slide.ask) == bool(slide.answer) for slide in SLIDES)
    assert all(slide.say.endswith((".", "?")) and slide.headline for slide in SLIDES)
    assert 45 <= sum(slide.minutes for slide in SLIDES) <= 90
