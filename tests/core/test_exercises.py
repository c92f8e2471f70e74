"""Exercises: the right option is right by a second way, one option alone is, and a sheet is the same for everybody."""

from __future__ import annotations

import random
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exercises import floats, flops, lecture, memory, views
from core.exercises.exercise import OPTIONS, Exercise, choose
from core.exercises.sheet import EDITION, LENGTH, TOPICS, hand_in, read_handed_in, read_topics, sheet
from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.limits import limit
from core.units import QuantityError, parse_quantity
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
    for seed in range(150):
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
    for seed in range(60):
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


def test_bits_of_block_formats_count_the_scale_once_a_block() -> None:
    bits = {"MXFP8 E4M3": 8.25, "MXFP8 E5M2": 8.25, "MXFP6 E2M3": 6.25, "MXFP6 E3M2": 6.25, "MXFP4": 4.25}
    bits |= {"MXINT8": 8.25, "NVFP4": 4.5, "NF4": 4.5, "NF4, double quantised": 4.127}
    for seed in range(60):
        one = floats.bits(random.Random(seed))
        assert float(right(one)) == bits[bold(one)[0]]


def of(text: str) -> float:
    return parse_quantity(text.split(" (")[0], "count", high=1e40)


def test_work_and_time_are_those_of_a_calculator() -> None:
    for seed in range(80):
        one = flops.run(random.Random(seed))
        params, tokens = map(of, bold(one))
        assert parse_quantity(right(one), "flop", high=1e40) == pytest.approx(6 * params * tokens, rel=5e-3)
        one = flops.days(random.Random(seed))
        cluster, params, tokens, mfu = bold(one)
        peak = parse_quantity(re.search(r"\((.+?) dense\)", one.prompt)[1], "flop_per_s")  # type: ignore[index]
        seconds = 6 * of(params) * of(tokens) / (of(cluster.split(" × ")[0]) * peak * float(mfu[:-1]) / 100)
        assert parse_quantity(right(one), "seconds") == pytest.approx(seconds, rel=6e-3)
        one = flops.product(random.Random(seed))
        (m, k), (_, n) = (map(of, side.split(" × ")) for side in bold(one))
        assert parse_quantity(right(one), "flop", high=1e40) == pytest.approx(2 * m * k * n, rel=5e-3)
        one = flops.utilisation(random.Random(seed))
        params, rate, _ = bold(one)
        peak = parse_quantity(re.search(r"\((.+?) dense\)", one.prompt)[1], "flop_per_s")  # type: ignore[index]
        used = of(params) * 6 * of(rate.removesuffix(" tokens/s")) / peak
        assert parse_quantity(right(one), "ratio") == pytest.approx(used, rel=0.02)


def test_bytes_are_those_of_a_calculator() -> None:
    widths = {"fp32": 4, "bf16": 2, "fp8": 1}
    kept = {"fp32": (4, 4, 0, 4), "mixed bf16, fp32 master": (2, 2, 4, 4), "bf16 throughout": (2, 2, 0, 2)}
    means = {"AdamW": 2, "SGD momentum": 1, "SGD": 0}
    for seed in range(80):
        one = memory.tensor(random.Random(seed))
        shape, dtype = bold(one)
        size = int(np.prod([int(n) for n in shape.strip("()").split(",") if n.strip()], dtype=object)) * widths[dtype]
        assert parse_quantity(right(one), "bytes_binary") == pytest.approx(size, rel=5e-4)
        one = memory.per_parameter(random.Random(seed))
        optimizer, policy = bold(one)
        weights, gradients, master, each = kept[policy]
        total = weights + gradients + master + means[optimizer] * each
        assert float(right(one).split()[0]) == total
        one = memory.whole(random.Random(seed))
        params, optimizer, policy = bold(one)
        weights, gradients, master, each = kept[policy]
        total = of(params) * (weights + gradients + master + means[optimizer] * each)
        assert parse_quantity(right(one), "bytes") == pytest.approx(total, rel=5e-3)


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


def test_every_topic_comes_in_turn() -> None:
    prompts = [one.prompt for one in sheet(3, ALL).exercises]
    assert len(prompts) == LENGTH
    alone = {topic: {one.prompt for seed in range(40) for one in sheet(seed, (topic,)).exercises} for topic in NUMBERS}
    assert prompts[0] not in alone["memory"]
    assert len(alone["floats"]) > 60


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


def test_a_class_hands_in_the_same_sheet() -> None:
    text = "\n".join([hand_in("Ada", 1, ("memory",), [0] * LENGTH)] * (3 * limit("sheets_graded")))
    assert not any(one.problem for one in read_handed_in(text))


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


def test_too_few_options_are_refused() -> None:
    with pytest.raises(ValueError, match="only 2"):
        choose(random.Random(0), "?", ("1", "."), [("1", "."), ("2", ".")], shown=Link("floats"))


def test_a_claim_needs_care_where_the_lecture_page_says_so() -> None:
    """By the claim that the exercise leads to; both kinds come about as often."""
    drawn = [lecture.stands(random.Random(seed)) for seed in range(200)]
    careful = [CLAIMS[one.shown.fields["claim"]].verdict == "needs care" for one in drawn]
    assert [right(one) == "it needs care" for one in drawn] == careful
    assert 70 < sum(careful) < 130
    assert len({one.prompt for one in drawn}) > 50
