"""A sheet of ten exercises, decided by a seed and topics, and the text by which it is handed in."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.exercises import floats, flops, lecture, memory, views
from core.exercises.exercise import Exercise, Maker
from core.limits import cached, limit
from core.messages import Message, message
from core.number_text import QuantityError
from core.suggest import suggestions
from core.wording import cleaned

TOPICS: Mapping[str, tuple[Maker, ...]] = {
    "floats": floats.MAKERS,
    "views": views.MAKERS,
    "FLOPs": flops.MAKERS,
    "memory": memory.MAKERS,
    "lecture": lecture.MAKERS,
}
"""Topics, each with its kinds of exercises."""

LENGTH = 10
"""Exercises per sheet."""

EDITION = 3
"""Raised when the same seed makes other exercises, so that sheets handed in before are not graded by the new ones."""

_DRAWS = 100
"""Attempts at an exercise that the sheet does not have yet. A kind has dozens, and a sheet at most ten of it."""

_ANSWER_CHARS = 24
"""Length of an answer, enough for a number with its unit."""


def read_topics(text: str) -> tuple[str, ...]:
    """Return typed topics, such as ``floats, memory``, in the order of `TOPICS`. Raises `QuantityError` for others."""
    names = {name.lower(): name for name in TOPICS}
    wanted: set[str] = set()
    for word in re.split(r"[,;\s]+", text.strip().lower()):
        if word not in names:
            near = suggestions(word, list(names))
            if near:
                raise QuantityError(message("exercises.error.topic_near", typed=word[:40], near=names[near[0]]))
            raise QuantityError(message("exercises.error.topic", typed=word[:40], topics=list(TOPICS)))
        wanted.add(names[word])
    return tuple(name for name in TOPICS if name in wanted)


@dataclass(frozen=True, slots=True)
class TopicScore:
    """How many answers on a topic are right."""

    topic: str
    right: int
    answered: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """Exercises of topics in turn, the same for every user with the same seed and topics."""

    seed: int
    topics: tuple[str, ...]
    exercises: tuple[Exercise, ...]

    def scores(self, given: Mapping[int, str]) -> tuple[TopicScore, ...]:
        """Return the score of each topic that was answered. given: answers by index."""
        answered, right = Counter[str](), Counter[str]()
        for number, answer in given.items():
            topic = self.topics[number % len(self.topics)]
            answered[topic] += 1
            right[topic] += self.exercises[number].is_right(answer)
        return tuple(TopicScore(topic, right[topic], answered[topic]) for topic in self.topics if answered[topic])

    def score(self, given: Mapping[int, str]) -> int:
        """Return how many answers are right."""
        return sum(one.right for one in self.scores(given))


@cached("results_kept")
def sheet(seed: int, topics: tuple[str, ...]) -> Sheet:
    """Return the sheet: topics in turn, each topic's kinds once in every round, no question twice.

    A negative seed is practice for the sheet of the positive one, and asks none of its questions.
    """
    made: list[Exercise] = []
    graded = sheet(-seed, topics).exercises if seed < 0 else ()
    asked = {(str(one.prompt), one.code) for one in graded}
    for number in range(LENGTH):
        topic, turn = topics[number % len(topics)], number // len(topics)
        kinds = list(TOPICS[topic])
        _random(seed, topic, turn // len(kinds)).shuffle(kinds)
        maker = kinds[turn % len(kinds)]
        drawn = (maker(_random(seed, topic, number, again)) for again in range(_DRAWS))
        one = next(one for one in drawn if (str(one.prompt), one.code) not in asked)
        asked.add((str(one.prompt), one.code))
        made.append(one)
    return Sheet(seed, topics, tuple(made))


def _random(*what: object) -> random.Random:
    return random.Random(" ".join(map(str, what)))  # noqa: S311 (exercises, no secret)


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A sheet that was handed in. scores: by topic, None if not graded. problem: why it is not valid, or None."""

    name: str
    seed: int
    topics: tuple[str, ...]
    answers: tuple[str, ...]
    claimed: int
    scores: tuple[TopicScore, ...] | None
    problem: Message | None = None

    @property
    def score(self) -> int | None:
        """Return how many answers are right, whatever is claimed; None if it was not graded."""
        return None if self.scores is None else sum(one.right for one in self.scores)


def clean_answer(given: str) -> str:
    """Return a typed answer on one line, without marks that separate answers or begin quoted lines."""
    return _one_line(cleaned(given, _ANSWER_CHARS))


def _one_line(text: str) -> str:
    return " ".join(re.sub("[;·>|]", " ", text).split())


def hand_in(name: str, seed: int, topics: tuple[str, ...], answers: Sequence[str]) -> str:
    """Return the text to hand in. Its checksum reveals typos and edits but does not prove who wrote it."""
    owner = _one_line(cleaned(name, limit("plan_name"))) or message("exercises.no_name")
    clean = [clean_answer(answer) or "-" for answer in answers]
    score = sheet(seed, topics).score(dict(enumerate(clean)))
    first, second = _lines(EDITION, seed, ", ".join(topics), owner, "; ".join(clean), score)
    return f"{first}\n{second} · {_checksum(first, second)}"


def _lines(edition: int, seed: int, topics: str, name: str, answers: str, score: int) -> tuple[str, str]:
    head = f"Napkin exercises {edition} · sheet {seed} · {topics} · {name}"
    return head, f"answers {answers} · {score} of {LENGTH}"


def _checksum(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


_QUOTED = re.compile(r"^[>|\s]+", re.MULTILINE)
"""Marks and blanks with which a mail program begins lines that it quotes."""

_HANDED = re.compile(
    r"Napkin exercises (?P<edition>\d{1,4}) · sheet (?P<seed>\d{1,7}) · (?P<topics>[A-Za-z, ]{1,60})"
    r" · (?P<name>[^·]{1,200}) answers (?P<answers>[^·]{1,400}) · (?P<score>\d{1,2}) of 10 · (?P<sum>[0-9a-f]{8})"
)


def read_handed_in(text: str) -> tuple[HandedIn, ...]:
    """Return every sheet in a text of any length within its cap, in order, also from quoted and wrapped lines."""
    found: list[HandedIn] = []
    graded, most = set[tuple[int, tuple[str, ...]]](), limit("sheets_graded")
    flat = " ".join(_QUOTED.sub("", text[: limit("pasted_chars")].replace("\r", "\n")).split())
    for match in _HANDED.finditer(flat):
        try:
            topics = read_topics(match["topics"])
        except QuantityError:
            continue
        edition, seed, claimed = int(match["edition"]), int(match["seed"]), int(match["score"])
        answers = tuple(answer.strip() for answer in match["answers"].split(";"))
        lines = _lines(edition, seed, match["topics"], match["name"], match["answers"], claimed)
        scores, problem = None, None
        if edition != EDITION:
            problem = message("exercises.problem.edition", edition=str(edition), current=str(EDITION))
        elif _checksum(*lines) != match["sum"] or len(answers) != LENGTH:
            problem = message("exercises.problem.checksum")
        elif (seed, topics) not in graded and len(graded) >= most:
            problem = message("exercises.problem.not_graded", most=float(most))
        else:
            graded.add((seed, topics))
            scores = sheet(seed, topics).scores(dict(enumerate(answers)))
            if (score := sum(one.right for one in scores)) != claimed:
                problem = message("exercises.problem.score", score=float(score), claimed=float(claimed))
        found.append(HandedIn(match["name"], seed, topics, answers, claimed, scores, problem))
    return tuple(found)
