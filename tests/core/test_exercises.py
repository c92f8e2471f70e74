"""Exercises: the right option is right by a second way, one option alone is, and a sheet is the same for everybody."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exercises import floats, flops, lecture, memory, views
from core.exercises.exercise import OPTIONS, Exercise
from core.exercises.sheet import EDITION, LENGTH, TOPICS, hand_in, read_handed_in, read_topics, sheet
from core.hardware.accelerators import find
from core.lecture.catalogue import CLAIMS
from core.limits import limit
from core.units import Kind, QuantityError, parse_quantity
from core.views.exercises.text import received
from tests.every import every

ALL = tuple(TOPICS)
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


def right(one: Exercise) -> str:
    return one.options[one.answer]


def draw(maker: object, seed: int) -> Exercise:
    return maker(random.Random(seed))  # type: ignore[operator]


def bold(one: Exercise) -> list[str]:
    return re.findall(r"\*\*(.+?)\*\*", one.prompt)


@every(("topic", "maker"), MAKERS, ids=[f"{topic} {maker.__name__}" for topic, maker in MAKERS])
def test_every_exercise_has_different_options_and_one_reason_for_the_right_one(topic: str, maker: object) -> None:
    for seed in range(15 if topic == "views" else 60):
        one = draw(maker, seed)
        assert len(set(one.options)) == len(one.options) == len(one.reasons)
        assert len(one.options) <= OPTIONS + 1
        assert 0 <= one.answer < len(one.options)
        assert one.prompt.endswith(("?", "?**", ".)"))
        assert one == draw(maker, seed)
        if topic != "views":
            assert one.reasons[one.answer].endswith(".")
            assert all(one.reasons), "every mistake is named"
            assert len(one.options) == OPTIONS
        if topic in ("FLOPs", "memory"):
            assert one.explanations


def number(text: str) -> float:
    plain = text.replace("−", "-").replace(",", "")
    return {"infinity": np.inf, "NaN": np.nan}.get(text) or parse_quantity(plain, "number", low=-1e40, high=1e40)


def test_stored_numbers_are_those_of_ml_dtypes() -> None:
    for seed in range(400):
        one = floats.stored(random.Random(seed))
        text, name = bold(one)
        with np.errstate(over="ignore"):
            cast = float(np.array(float(text)).astype(DTYPES[name]))
        assert number(right(one)) == pytest.approx(cast, rel=1e-6, nan_ok=True), one.prompt


def test_sums_of_ones_end_where_a_loop_in_ml_dtypes_does() -> None:
    for seed in range(12):
        one = floats.stalls(random.Random(seed))
        dtype = DTYPES[bold(one)[1]]
        total = np.zeros((), dtype)
        for _ in range(3000):
            total = np.asarray(total + np.ones((), dtype), dtype)
        assert number(right(one)) == float(total)


def test_largest_values_and_steps_are_those_of_ml_dtypes() -> None:
    for seed in range(300):
        one = floats.largest(random.Random(seed))
        assert number(right(one)) == float(ml_dtypes.finfo(DTYPES[bold(one)[0]]).max)
        one = floats.spacing(random.Random(seed))
        name, at = bold(one)
        here = np.array(float(at)).astype(DTYPES[name])
        up = (
            next(
                float(value) - float(here)
                for steps in range(1, 1000)
                if (value := np.array(float(here) + float(at) * steps * 2.0**-26).astype(DTYPES[name])) != here
            )
            if name == "fp32"
            else float(np.spacing(here.astype(np.float32)) * 2.0 ** (23 - ml_dtypes.finfo(DTYPES[name]).nmant))
        )
        assert number(right(one)) == pytest.approx(up, rel=1e-6)


def of(text: str) -> float:
    return parse_quantity(text.split(" (")[0], "count", high=1e40)


def peak(one: Exercise) -> float:
    found = re.search(r"\(([^(]+?) dense\)", one.prompt)
    assert found
    return parse_quantity(found[1], "flop_per_s")


BITS = {"MXFP8 E4M3": 8.25, "MXFP8 E5M2": 8.25, "MXFP6 E2M3": 6.25, "MXFP6 E3M2": 6.25, "MXFP4": 4.25}
BITS |= {"MXINT8": 8.25, "NVFP4": 4.5, "NF4": 4.5, "NF4, double quantised": 4.127}
WIDTHS = {"fp32": 4, "bf16": 2, "fp8": 1}
KEPT = {"fp32": (4, 4, 0, 4), "mixed bf16, fp32 master": (2, 2, 4, 4), "bf16 throughout": (2, 2, 0, 2)}
MEANS = {"AdamW": 2, "SGD momentum": 1, "SGD": 0}


def states(optimizer: str, policy: str) -> int:
    weights, gradients, master, each = KEPT[policy]
    return weights + gradients + master + MEANS[optimizer] * each


def days_of(one: Exercise) -> float:
    cluster, params, tokens, mfu = bold(one)
    return 6 * of(params) * of(tokens) / (of(cluster.split(" × ")[0]) * peak(one) * float(mfu[:-1]) / 100)


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


TRUTHS: dict[object, tuple[Kind | Literal[""], Callable[[Exercise], float]]] = {
    floats.bits: ("number", lambda one: BITS[bold(one)[0]]),
    flops.product: ("flop", multiplied),
    flops.run: ("flop", lambda one: 6 * math.prod(map(of, bold(one)))),
    flops.days: ("seconds", days_of),
    flops.utilisation: ("ratio", rate_of),
    flops.bound: ("", lambda one: of(bold(one)[0].split(" × ")[0]) / 3),
    memory.tensor: ("bytes_binary", elements),
    memory.per_parameter: ("", lambda one: states(*bold(one))),
    memory.whole: ("bytes", lambda one: of(bold(one)[0]) * states(*bold(one)[1:])),
    memory.fits: ("parameters", filled),
    memory.checkpoint: ("bytes", saved),
    memory.logits: ("bytes_binary", lambda one: 4 * math.prod(map(of, bold(one)))),
}
"""Maker → the kind of its options, empty for a plain number, and the answer by a calculator."""


def read(option: str, kind: Kind | Literal[""]) -> float:
    return parse_quantity(option, kind, high=1e40) if kind else float(option.split()[0].replace(",", ""))


def enough(one: Exercise, count: int) -> bool:
    """Whether so many accelerators train within the days that the question names, in whole numbers."""
    _, params, tokens, days, mfu = bold(one)
    each = Fraction(peak(one)) * Fraction(int(mfu[:-1]), 100) * int(days.split()[0]) * 86400
    return count * each >= 6 * Fraction(of(params)) * Fraction(of(tokens))


@pytest.mark.parametrize("maker", [*TRUTHS, flops.chips], ids=lambda maker: maker.__name__)
def test_one_option_alone_answers_the_question(maker: object) -> None:
    """5,000 exercises, each worked out once more from its own words."""
    for seed in range(400):
        one = draw(maker, seed)
        if maker is flops.chips:
            fit = [int(option.replace(",", "")) for option in one.options]
            least = [enough(one, count) and not enough(one, count - 1) for count in fit]
            assert least == [at == one.answer for at in range(len(fit))], one
            continue
        kind, truth = TRUTHS[maker]
        wanted = truth(one)
        close = [read(option, kind) == pytest.approx(wanted, rel=0.02) for option in one.options]
        assert close == [at == one.answer for at in range(len(close))], (one, wanted)


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
            assert right(one) == str(tuple(result.shape))
        elif "strides" in one.prompt:
            assert right(one) == str(result.stride())
        elif "Where" in one.prompt:
            shared = result.untyped_storage().data_ptr() == names["x"].untyped_storage().data_ptr()  # type: ignore[attr-defined]
            assert right(one) == ("in x's storage: a view, or x itself" if shared else "in new storage")


@settings(max_examples=20)
@given(seed=st.integers(1, 10**6), topics=st.sets(st.sampled_from(NUMBERS), min_size=1))
def test_a_sheet_has_ten_different_exercises_of_its_topics(seed: int, topics: set[str]) -> None:
    chosen = tuple(topic for topic in TOPICS if topic in topics)
    one = sheet(seed, chosen)
    assert len(one.exercises) == LENGTH
    assert len({(each.prompt, each.code) for each in one.exercises}) == LENGTH
    sheet.cache_clear()
    assert sheet(seed, chosen) == one
    best = [each.answer for each in one.exercises]
    assert one.score(best) == LENGTH
    assert one.score([None] * LENGTH) == 0


def test_other_seeds_give_other_sheets() -> None:
    assert len({sheet(seed, NUMBERS).exercises for seed in range(1, 30)}) == 29


@given(name=st.text(max_size=60), seed=st.integers(1, 10**6), data=st.data())
def test_a_sheet_that_was_handed_in_is_read_back(name: str, seed: int, data: st.DataObject) -> None:
    choices = data.draw(st.lists(st.none() | st.integers(0, 3), min_size=LENGTH, max_size=LENGTH))
    text = hand_in(name, seed, NUMBERS, choices)
    (found,) = read_handed_in(f"Dear all,\r\n{text}\r\nRegards")
    assert not found.problem
    assert (found.seed, found.topics, list(found.choices)) == (seed, NUMBERS, choices)
    assert found.score == found.claimed == sheet(seed, NUMBERS).score(choices)


def test_a_change_is_seen() -> None:
    choices = [one.answer for one in sheet(5, ("memory",)).exercises]
    text = hand_in("Ada", 5, ("memory",), choices)
    assert "10 of 10" in text
    for old, new in (("Ada", "Bob"), ("sheet 5", "sheet 6"), (text.split("answers ")[1][:3], "a a"), ("10 of", "9 of")):
        changed = text.replace(old, new)
        if changed != text:
            (found,) = read_handed_in(changed)
            assert "checksum" in found.problem
    (old_one,) = read_handed_in(text.replace(f"exercises {EDITION}", f"exercises {EDITION + 1}"))
    assert "edition" in old_one.problem
    several = read_handed_in(f"{text}\n\n{text.replace('Ada', 'Eve')}\n")
    assert [bool(one.problem) for one in several] == [False, True]
    assert "**2 sheets**, **1** not as it was made" in received(several)
    assert "No sheet" in received(read_handed_in("nothing of the kind"))


def test_one_paste_grades_a_bounded_number_of_different_sheets() -> None:
    most, choices = limit("sheets_graded"), [0] * LENGTH
    different = [hand_in("Ada", seed, ("memory",), choices) for seed in range(1, most + 6)]
    again = hand_in("Bob", 1, ("memory",), choices)
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
    with pytest.raises(QuantityError, match="Did you mean memory"):
        read_topics("memry")
    with pytest.raises(QuantityError, match="no topic"):
        read_topics("")


def test_the_right_option_on_a_claim_is_its_verdict_on_the_lecture_page() -> None:
    for maker in lecture.MAKERS:
        for seed in range(100):
            one = draw(maker, seed)
            verdict = CLAIMS[one.shown.fields["claim"]].verdict
            meant = {"needs care": "needs care", "convention": "convention", "rule of thumb": "rule of thumb"}
            assert meant.get(verdict, "stands") in right(one)


def test_no_constant_answer_scores_on_the_lecture() -> None:
    for seed in range(1, 60):
        given = Counter(right(one) for one in sheet(seed, ("lecture",)).exercises)
        assert max(given.values()) <= 4


@settings(max_examples=20)
@given(seed=st.integers(1, 10**6), topics=st.sets(st.sampled_from(NUMBERS), min_size=1))
def test_practice_asks_nothing_of_the_sheet_to_hand_in(seed: int, topics: set[str]) -> None:
    chosen = tuple(topic for topic in TOPICS if topic in topics)
    graded, practice = sheet(seed, chosen), sheet(-seed, chosen)
    assert len(practice.exercises) == LENGTH
    assert not {(one.prompt, one.code) for one in graded.exercises} & {(o.prompt, o.code) for o in practice.exercises}
