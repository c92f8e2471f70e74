"""A sheet of ten exercises that a seed and topics decide, and the text by which it is handed in."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.exercises import floats, flops, lecture, memory, views
from core.exercises.exercise import Exercise, Maker
from core.limits import cached, limit
from core.suggest import suggestions
from core.units import QuantityError
from core.wording import cleaned, listed

TOPICS: Mapping[str, tuple[Maker, ...]] = {
    "floats": floats.MAKERS,
    "views": views.MAKERS,
    "FLOPs": flops.MAKERS,
    "memory": memory.MAKERS,
    "lecture": lecture.MAKERS,
}
"""Topic → its kinds of exercises."""

LENGTH = 10
"""Exercises of a sheet."""

EDITION = 2
"""Raised when the same seed makes other exercises, so that sheets handed in before are not graded by the new ones."""

_DRAWS = 100
"""Of one exercise, until it is none that the sheet has: a kind has dozens, and a sheet at most ten of it."""

_NONE = "-"


def read_topics(text: str) -> tuple[str, ...]:
    """Typed topics, such as ``floats, memory``, in the order of `TOPICS`; raises `QuantityError` for another word."""
    names = {name.lower(): name for name in TOPICS}
    wanted: set[str] = set()
    for word in re.split(r"[,;\s]+", text.strip().lower()):
        if word not in names:
            near = suggestions(word, list(names))
            meant = f" Did you mean {names[near[0]]}?" if near else ""
            raise QuantityError(f"“{word[:40]}” is no topic; there are {listed(list(TOPICS))}.{meant}")
        wanted.add(names[word])
    return tuple(name for name in TOPICS if name in wanted)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Exercises with the topic of each, the same for everybody with the same seed and topics."""

    seed: int
    topics: tuple[str, ...]
    exercises: tuple[Exercise, ...]

    def score(self, choices: Sequence[int | None]) -> int:
        """How many of the choices, one an exercise, are right."""
        return sum(one.right(choice) for one, choice in zip(self.exercises, choices, strict=True))


@cached("results_kept")
def sheet(seed: int, topics: tuple[str, ...]) -> Sheet:
    """The sheet: topics in turn, each topic's kinds once in every round, no question twice.

    A negative seed is practice for the sheet of the positive one, and asks none of its questions.
    """
    made: list[Exercise] = []
    asked = {(one.prompt, one.code) for one in sheet(-seed, topics).exercises} if seed < 0 else set[tuple[str, str]]()
    for number in range(LENGTH):
        topic, turn = topics[number % len(topics)], number // len(topics)
        kinds = list(TOPICS[topic])
        _random(seed, topic, turn // len(kinds)).shuffle(kinds)
        maker = kinds[turn % len(kinds)]
        drawn = (maker(_random(seed, topic, number, again)) for again in range(_DRAWS))
        one = next(one for one in drawn if (one.prompt, one.code) not in asked)
        asked.add((one.prompt, one.code))
        made.append(one)
    return Sheet(seed, topics, tuple(made))


def _random(*what: object) -> random.Random:
    return random.Random(" ".join(map(str, what)))  # noqa: S311 (exercises, no secret)


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A sheet that was handed in: whose, which, the option chosen for each exercise, and the score it claims.

    score: what the choices have, whatever is claimed. None for a sheet that is not graded.
    """

    name: str
    seed: int
    topics: tuple[str, ...]
    choices: tuple[int | None, ...]
    claimed: int
    score: int | None
    problem: str = ""


def hand_in(name: str, seed: int, topics: tuple[str, ...], choices: Sequence[int | None]) -> str:
    """The text to hand in. Its checksum shows slips and edits; it proves nobody's authorship."""
    letters = " ".join(_NONE if choice is None else "abcd"[choice] for choice in choices)
    owner = cleaned(name, limit("plan_name")) or "no name"
    head = f"Napkin exercises {EDITION} · sheet {seed} · {', '.join(topics)} · {owner}"
    score = sheet(seed, topics).score(choices)
    body = f"{head}\nanswers {letters} · {score} of {LENGTH}"
    return f"{body} · {_checksum(body)}"


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:8]


_HANDED = re.compile(
    r"Napkin exercises (?P<edition>\d{1,4}) · sheet (?P<seed>\d{1,7}) · (?P<topics>[A-Za-z, ]{1,60})"
    r" · (?P<name>[^\n]{1,200})\n"
    r"answers (?P<letters>[abcd-](?: [abcd-]){9}) · (?P<score>\d{1,2}) of 10 · (?P<sum>[0-9a-f]{8})"
)


def read_handed_in(text: str) -> tuple[HandedIn, ...]:
    """Every sheet in a text of any length within its cap, in order; ``problem`` says what is wrong with one."""
    found: list[HandedIn] = []
    graded, most = set[tuple[int, tuple[str, ...]]](), limit("sheets_graded")
    for match in _HANDED.finditer(text[: limit("pasted_chars")].replace("\r\n", "\n")):
        try:
            topics = read_topics(match["topics"])
        except QuantityError:
            continue
        choices = tuple(None if letter == _NONE else "abcd".index(letter) for letter in match["letters"].split())
        body = match[0].rpartition(" · ")[0]
        seed, claimed, score = int(match["seed"]), int(match["score"]), None
        if (seed, topics) in graded or len(graded) < most:
            graded.add((seed, topics))
            score = sheet(seed, topics).score(choices)
        problem = ""
        if int(match["edition"]) != EDITION:
            problem = f"made by edition {match['edition']} of the exercises, this is {EDITION}"
        elif _checksum(body) != match["sum"]:
            problem = "the checksum is not that of the text: it was changed, or copied with a slip"
        elif score is None:
            problem = f"not graded: Napkin grades up to {most} different sheets at once. Paste this one again later"
        elif score != claimed:
            problem = f"the answers have {score}, not {claimed}"
        found.append(HandedIn(match["name"], seed, topics, choices, claimed, score, problem))
    return tuple(found)
