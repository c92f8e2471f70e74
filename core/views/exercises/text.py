"""What a sheet of exercises says of itself, of the answers given, and of sheets that were handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from core.exercises.sheet import LENGTH, HandedIn, Sheet
from core.wording import listed


def headline(of: Sheet) -> str:
    """Which sheet it is, or that it is the path."""
    if "path" in of.topics:
        return f"**{len(of.exercises)}** steps from a bit to 6ND."
    named = ["the lecture" if topic == "lecture" else topic for topic in of.topics]
    what = f"Sheet **{of.seed:,}**" if of.seed > 0 else f"Practice for sheet **{-of.seed:,}**"
    return f"{what}: **{LENGTH}** exercises on {listed(named)}."


def progress(of: Sheet, chosen: Mapping[int, int]) -> str:
    """How many of the answers given are right."""
    if not chosen:
        return "Choose before you reveal. What counts is the first choice."
    right = sum(of.exercises[number].right(choice) for number, choice in chosen.items())
    so_far = " so far" if len(chosen) < len(of.exercises) else ""
    return f"**{right} of {len(chosen)}** right{so_far}."


def handed_in(of: Sheet, choices: Sequence[int | None]) -> str:
    """The score of a sheet that was handed in."""
    return f"Sheet **{of.seed:,}**: **{of.score(choices)} of {LENGTH}** right."


def received(found: Sequence[HandedIn]) -> str:
    """How many sheets a pasted text has, how many stand, and their mean score."""
    if not found:
        return "No sheet in it: each begins with “Napkin exercises” and ends with eight letters and digits."
    good = [one.score for one in found if one.score is not None and not one.problem]
    counted = f"{len(found)} sheets" if len(found) > 1 else "1 sheet"
    if len(good) == len(found):
        return f"**{counted}**, each as it was made; **{mean(good):.3g} of {LENGTH}** on average."
    average = f", **{mean(good):.3g} of {LENGTH}** on average" if good else ""
    ungraded = sum(one.score is None for one in found)
    later = f", **{ungraded}** not graded" if ungraded else ""
    wrong = len(found) - len(good) - ungraded
    return f"**{counted}**, **{wrong}** not as it was made{later}; {len(good)} as made{average}."


TEACHING = (
    "A link with topics and number gives everybody the same ten exercises. Who hands in gets a text of two lines, with "
    "the answers and a checksum; paste as many as there are, with whatever stands around them. The score is worked out "
    "anew from the answers. A checksum shows slips and edits, and not who chose."
)
"""For whoever hands out a sheet."""
