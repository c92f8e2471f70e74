"""Text of exercises: which sheet it is, how many answers are right, and what was handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from core.exercises.sheet import LENGTH, HandedIn, Sheet, TopicScore
from core.messages import Message, message


def headline(of: Sheet) -> Message:
    """Return which sheet it is, or that it is the path."""
    if not of.seed:
        return message("exercises.headline.path", count=float(len(of.exercises)))
    return message(
        "exercises.headline.sheet" if of.seed > 0 else "exercises.headline.practice",
        sheet=float(abs(of.seed)),
        count=float(LENGTH),
        topics=of.topics,
    )


def progress(of: Sheet, given: Mapping[int, str]) -> Message:
    """Return how many answers are right so far, in all and by topic."""
    if not given:
        return message("exercises.progress.none")
    right, topics = float(of.score(given)), topic_scores(of.scores(given))
    if not of.seed:
        return message("exercises.progress.path", right=right, answered=float(len(given)))
    return message("exercises.progress.some", right=right, answered=float(len(given)), topics=topics)


def topic_scores(scores: Sequence[TopicScore]) -> list[Message]:
    """Return the score of each topic."""
    return [
        message("exercises.topic_score", topic=one.topic, right=float(one.right), answered=float(one.answered))
        for one in scores
    ]


def handed_in_text(of: Sheet, given: Mapping[int, str]) -> tuple[Message, Message]:
    """Return the score of a sheet that was handed in, and the same by topic."""
    return (
        message(
            "exercises.handed_in", sheet=float(of.seed), right=float(of.score(given)), count=float(len(of.exercises))
        ),
        message("exercises.handed_in.detail", topics=topic_scores(of.scores(given))),
    )


def received_text(found: Sequence[HandedIn]) -> Message:
    """Return how many sheets a pasted text has, how many are valid, and their mean score."""
    if not found:
        return message("exercises.received.none")
    sheets, valid = float(len(found)), [one.score for one in found if one.score is not None and not one.problem]
    if not valid:
        return message("exercises.received.invalid", sheets=sheets)
    return message(
        "exercises.received.some", sheets=sheets, valid=float(len(valid)), mean=mean(valid), count=float(LENGTH)
    )
