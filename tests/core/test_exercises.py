"""Exercises: each answer is worked out once more, slips have reasons, and a sheet is the same for everybody."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exercises import floats, flops, lecture, memory, views
from core.exercises.exercise import OPTIONS, ChoiceExercise, Exercise, NumberExercise, is_readable
from core.exercises.sheet import EDITION, LENGTH, TOPICS, hand_in, read_handed_in, read_topics, sheet
from core.hardware.accelerators import find
from core.lecture.catalogue import CLAIMS
from core.limits import limit
from core.messages import Message
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.views.exercises.text import progress, received_text
from tests.every import every

NUMBERS = tuple(topic for topic in TOPICS if topic != "views")
MAKERS = [(topic, maker) for topic, makers in TOPICS.items() for maker in makers]
DTYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8 E4M3": ml_dtypes.float8_e4m3fn,
    "fp8 E5M2": ml_dtypes.float8_e5m2,
    "fp6 E3M2": ml_dtypes.float6_e3m2fn,
    "fp6 E2M3": ml_dtypes.float6_e2m3fn,
    "fp4 E2M1": ml_dtypes.float4_e2m1fn,
    "fp32": np.float32,
}


def draw(maker: object, seed: int) -> Exercise:
    return maker(random.Random(seed))  # type: ignore[operator]


def bold(one: Exercise) -> list[str]:
    return re.findall(r"\*\*(.+?)\*\*", one.prompt)


@every(("topic", "maker"), MAKERS, ids=[f"{topic} {maker.__name__}" for topic, maker in MAKERS])
def test_every_exercise_is_answered_by_its_solution_and_names_slips(topic: str, maker: object) -> None:
    for seed in range(15 if topic == "views" else 60):
        one = draw(maker, seed)
        assert one == draw(maker, seed)
        assert is_readable(one, one.right_answer)
        assert one.is_right(one.right_answer)
        assert one.explanations or topic not in ("FLOPs", "memory")
        if isinstance(one, NumberExercise):
            assert one.feedback(one.right_answer) == [one.why]
            assert one.is_right(one.solution.split(" (")[0]) or one.kind == "days", one.solution
            assert is_readable(one, one.example)
            slips = [slip for slip in one.slips if not one.is_right(f"{slip[0]:.12g}")]
            assert slips
            for wrong, slip in slips:
                assert one.feedback(f"{wrong:.12g}")[1:] == [one.why], slip
            off: Message = one.feedback(f"{1.37 * one.value:.12g}")[0]  # type: ignore[assignment]
            assert off.id == "exercises.slip.factor"
        else:
            assert len(set(one.options)) == len(one.options) == len(one.reasons)
            assert len(one.options) == {"floats": OPTIONS, "lecture": 2}.get(topic, len(one.options))


@pytest.mark.parametrize("typed", ["", "many", "1e999999", "1" * 500, "5 GB", "=1+1", "½½"])
def test_what_is_no_number_is_neither_read_nor_right(typed: str) -> None:
    one = draw(memory.per_parameter, 1)
    assert not is_readable(one, typed)
    assert not one.is_right(typed)


def test_numbers_are_right_within_two_percent_and_in_any_unit() -> None:
    one = draw(memory.whole, 1)
    assert isinstance(one, NumberExercise)
    typed = (f"{one.value:.0f}", f"{one.value / 1e9} GB", f"{one.value / 2**30} GiB", f"{1.019 * one.value}")
    assert [one.is_right(text) for text in typed] == [True] * 4
    assert not one.is_right(f"{1.021 * one.value}")


def number(text: str) -> float:
    plain = text.replace("−", "-").replace(",", "")
    return {"infinity": np.inf, "NaN": np.nan}.get(text) or parse_quantity(plain, "number", low=-1e40, high=1e40)


def test_stored_numbers_are_those_of_ml_dtypes() -> None:
    for seed in range(400):
        one = floats.stored(random.Random(seed))
        text, name = bold(one)
        with np.errstate(over="ignore"):
            cast = float(np.array(float(text)).astype(DTYPES[name]))
        assert number(one.solution) == pytest.approx(cast, rel=1e-6, nan_ok=True), one.prompt


def test_sums_of_ones_end_where_a_loop_in_ml_dtypes_does() -> None:
    for seed in range(12):
        one = floats.stalls(random.Random(seed))
        dtype = DTYPES[bold(one)[1]]
        total = np.zeros((), dtype)
        for _ in range(3000):
            total = np.asarray(total + np.ones((), dtype), dtype)
        assert one.value == float(total)


def test_largest_values_and_steps_are_those_of_ml_dtypes() -> None:
    for seed in range(300):
        one = floats.largest(random.Random(seed))
        assert one.value == float(ml_dtypes.finfo(DTYPES[bold(one)[0]]).max)
        one = floats.spacing(random.Random(seed))
        name, at = bold(one)
        here = np.array(float(at)).astype(DTYPES[name])
        up = float(np.spacing(here.astype(np.float32)) * 2.0 ** (23 - ml_dtypes.finfo(DTYPES[name]).nmant))
        assert one.value == pytest.approx(up, rel=1e-6)


def of(text: str) -> float:
    return parse_quantity(text.split(" (")[0], "count", high=1e40)


def peak(one: Exercise) -> float:
    found = re.search(r"\(([^(]+?) dense\)", one.prompt)
    assert found
    return parse_quantity(found[1], "flop_per_s")


BITS = {"MXFP8 E4M3": 8.25, "MXFP8 E5M2": 8.25, "MXFP6 E2M3": 6.25, "MXFP6 E3M2": 6.25, "MXFP4": 4.25}
BITS |= {"MXINT8": 8.25, "NVFP4": 4.5, "NF4": 4.5, "NF4, double quantized": 4.127}
WIDTHS = {"fp32": 4, "bf16": 2, "fp8": 1}
KEPT = {"fp32": (4, 4, 0, 4), "mixed bf16, fp32 master": (2, 2, 4, 4), "bf16 throughout": (2, 2, 0, 2)}
MEANS = {"AdamW": 2, "SGD momentum": 1, "SGD": 0}


def states(optimizer: str, policy: str) -> int:
    weights, gradients, master, each = KEPT[policy]
    return weights + gradients + master + MEANS[optimizer] * each


def days_of(one: Exercise) -> float:
    cluster, params, tokens, mfu = bold(one)
    seconds = 6 * of(params) * of(tokens) / (of(cluster.split(" × ")[0]) * peak(one) * float(mfu[:-1]) / 100)
    return seconds / 86400


def least(one: Exercise) -> float:
    """How many accelerators train within the days that the question names, in whole numbers."""
    _, params, tokens, days, mfu = bold(one)
    each = Fraction(peak(one)) * Fraction(int(mfu[:-1]), 100) * int(days.split()[0]) * 86400
    return math.ceil(6 * Fraction(of(params)) * Fraction(of(tokens)) / each)


def multiplied(one: Exercise) -> float:
    (m, k), (_, n) = (map(of, side.split(" × ")) for side in bold(one))
    return 2 * m * k * n


def rate_of(one: Exercise) -> float:
    params, rate, _ = bold(one)
    return of(params) * 6 * of(rate.removesuffix(" tokens/s")) / peak(one)


def elements(one: Exercise) -> float:
    shape, dtype = bold(one)
    return math.prod(int(n) for n in shape.strip("()").split(",") if n.strip()) * WIDTHS[dtype]


def filled(one: Exercise) -> float:
    cluster, optimizer, policy = bold(one)
    count, chip = cluster.split(" × ")
    return int(count) * find(chip).memory_bytes / states(optimizer, policy)


def saved(one: Exercise) -> float:
    params, policy = bold(one)
    weights, _, master, each = KEPT[policy]
    return of(params) * ((master or weights) + 2 * each)


TRUTHS: dict[object, Callable[[Exercise], float]] = {
    floats.bits: lambda one: BITS[bold(one)[0]],
    flops.product: multiplied,
    flops.run: lambda one: 6 * math.prod(map(of, bold(one))),
    flops.days: days_of,
    flops.chips: least,
    flops.utilization: rate_of,
    flops.bound: lambda one: of(bold(one)[0].split(" × ")[0]) / 3,
    memory.tensor: elements,
    memory.per_parameter: lambda one: states(*bold(one)),
    memory.whole: lambda one: of(bold(one)[0]) * states(*bold(one)[1:]),
    memory.fits: filled,
    memory.checkpoint: saved,
    memory.logits: lambda one: 4 * math.prod(map(of, bold(one))),
}
"""Maker → the answer by a calculator, from the words of the question."""


@pytest.mark.parametrize("maker", TRUTHS, ids=lambda maker: maker.__name__)
def test_the_solution_is_what_a_calculator_gives(maker: object) -> None:
    for seed in range(400):
        one = draw(maker, seed)
        assert isinstance(one, NumberExercise)
        assert one.value == pytest.approx(TRUTHS[maker](one), rel=1e-3), one.prompt


@pytest.mark.parametrize("seed", range(4))
def test_views_are_what_torch_says(seed: int) -> None:
    import torch

    for draw_ in range(12):
        one = views.view(random.Random(100 * seed + draw_))
        names: dict[str, object] = {"torch": torch}
        try:
            exec(one.code.rpartition("\n")[0], names)  # noqa: S102 - our own table of expressions
            result = eval(one.code.rpartition("\n")[2], names)  # noqa: S307
        except (RuntimeError, SyntaxError, NameError, IndexError, TypeError, ValueError):
            continue
        if "shape" in one.prompt:
            assert one.solution == str(tuple(result.shape))
        elif "strides" in one.prompt:
            assert one.solution == str(result.stride())


def test_an_exercise_on_a_claim_is_true_where_its_verdict_is() -> None:
    for maker in lecture.MAKERS:
        for seed in range(100):
            one = draw(maker, seed)
            assert isinstance(one, ChoiceExercise)
            verdict = CLAIMS[one.shown.fields["claim"]].verdict
            assert {"exact": 0, "holds": 0, "needs care": 1}[verdict] == one.answer


def best(seed: int, topics: tuple[str, ...]) -> list[str]:
    return [one.right_answer for one in sheet(seed, topics).exercises]


@settings(max_examples=20)
@given(seed=st.integers(1, 10**6), topics=st.sets(st.sampled_from(NUMBERS), min_size=1))
def test_a_sheet_has_ten_different_exercises_and_practice_asks_others(seed: int, topics: set[str]) -> None:
    chosen = tuple(topic for topic in TOPICS if topic in topics)
    one, practice = sheet(seed, chosen), sheet(-seed, chosen)
    asked, practiced = ({(each.prompt, each.code) for each in of.exercises} for of in (one, practice))
    assert len(asked) == len(practiced) == len(asked | practiced) / 2 == LENGTH
    sheet.cache_clear()
    assert sheet(seed, chosen) == one
    scores = one.scores(dict(enumerate(best(seed, chosen))))
    assert [score.topic for score in scores] == list(chosen)
    assert sum(score.right for score in scores) == sum(score.answered for score in scores) == LENGTH
    assert one.score({}) == 0


def test_other_seeds_give_other_sheets() -> None:
    assert len({sheet(seed, NUMBERS).exercises for seed in range(1, 30)}) == 29


def test_progress_counts_by_topic() -> None:
    of = sheet(7, ("floats", "memory"))
    first, second = of.exercises[:2]
    said = progress(of, {0: first.right_answer, 1: second.right_answer, 3: "nonsense"})
    assert (said.values["right"], said.values["answered"]) == (2.0, 3.0)
    assert [(one.values["topic"], one.values["right"], one.values["answered"]) for one in said.values["topics"]] == [
        ("floats", 1.0, 1.0),
        ("memory", 1.0, 2.0),
    ]


ANSWERS = st.lists(st.text(max_size=30), min_size=LENGTH, max_size=LENGTH)


@given(name=st.text(max_size=60), seed=st.integers(1, 10**6), answers=ANSWERS, width=st.integers(30, 200))
def test_a_sheet_is_read_back_from_a_mail_that_quotes_and_wraps_it(
    name: str, seed: int, answers: list[str], width: int
) -> None:
    text = hand_in(name, seed, NUMBERS, answers)
    lines = [[""]]
    for word in f"Dear all, {text} Regards".split():
        line = lines[-1]
        if sum(map(len, line)) + len(word) > width:
            lines.append([word])
        else:
            line.append(word)
    quoted = "\r\n".join(f"> > {' '.join(line)}" for line in lines)
    for mail in (text, f"Dear all,\r\n{text}\r\nRegards", quoted):
        (found,) = read_handed_in(mail)
        assert not found.problem
        assert (found.seed, found.topics, len(found.answers)) == (seed, NUMBERS, LENGTH)
        assert found.score == found.claimed == sheet(seed, NUMBERS).score(dict(enumerate(found.answers)))


def problem(text: str) -> str:
    (found,) = read_handed_in(text)
    return found.problem.id if found.problem else ""


def test_a_change_is_seen() -> None:
    text = hand_in("Ada", 5, ("memory",), best(5, ("memory",)))
    assert "10 of 10" in text
    assert not problem(text)
    for old, new in (("Ada", "Bob"), ("sheet 5", "sheet 6"), ("answers ", "answers 1"), ("10 of", "9 of")):
        assert problem(text.replace(old, new)) == "exercises.problem.checksum"
    assert problem(text.replace(f"exercises {EDITION}", f"exercises {EDITION + 1}")) == "exercises.problem.edition"
    old = "Napkin exercises 2 · sheet 5 · memory · Ada\nanswers a b c d a b c d a - · 9 of 10 · 0123abcd"
    assert problem(old) == "exercises.problem.edition"
    several = received_text(read_handed_in(f"{text}\n\n{text.replace('Ada', 'Eve')}\n"))
    assert (several.values["sheets"], several.values["valid"], several.values["mean"]) == (2.0, 1.0, 10.0)
    assert received_text(read_handed_in("nothing of the kind")).id == "exercises.received.none"


def test_one_paste_grades_a_bounded_number_of_different_sheets() -> None:
    most, answers = limit("sheets_graded"), ["1"] * LENGTH
    different = [hand_in("Ada", seed, ("memory",), answers) for seed in range(1, most + 6)]
    again = hand_in("Bob", 1, ("memory",), answers)
    sheet.cache_clear()
    found = read_handed_in("\n".join([*different, again]))
    assert sheet.cache_info().misses == most
    assert [one.score is None for one in found] == [*[False] * most, *[True] * 5, False]
    assert [bool(one.problem) for one in found] == [one.score is None for one in found]


@pytest.mark.parametrize("text", ["", "a" * 10**5, "Napkin exercises 1 · sheet 1 · x · y\nanswers a", "answers \x00"])
def test_what_is_no_sheet_is_none(text: str) -> None:
    assert read_handed_in(text) == ()


def test_topics_are_read() -> None:
    assert read_topics("Memory; floats") == ("floats", "memory")
    assert read_topics("flops,flops") == ("FLOPs",)
    for typed, said in (("memry", "exercises.error.topic_near"), ("", "exercises.error.topic")):
        with pytest.raises(QuantityError) as refused:
            read_topics(typed)
        assert refused.value.args[0].id == said
