"""The worker's lines: what is encoded comes back, and nothing else gets through."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.limits import limit
from core.measure.events import (
    TEXT_CHARS,
    DeviceFacts,
    Done,
    Event,
    Progress,
    Refusal,
    Result,
    Started,
    clip,
    decode,
    encode,
)
from core.measure.spec import DTYPES, Spec

RESULT = Result("bf16", 1024, 2e-3, 1e-3, 1.5e-3, 4e-3, 50, 0.2, 1e-3, "a note", 1980.0, None, 40.0, 61.0)

dtypes = st.sampled_from(sorted({dtype for group in DTYPES.values() for dtype in group}))
texts = st.text(max_size=200)
amounts = st.floats(min_value=0, max_value=1e18)
times = st.lists(st.floats(min_value=1e-9, max_value=1e3), min_size=4, max_size=4).map(sorted)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started, texts, texts),
    st.builds(DeviceFacts, texts, texts, st.integers(0, 4096), st.none() | amounts, st.none() | amounts),
    st.builds(Progress, dtypes, texts, st.floats(0, 1)),
    st.builds(Refusal, dtypes, st.sampled_from(["refused", "skipped"]), texts),
    st.builds(Done, amounts),
    st.tuples(dtypes, st.integers(1, limit("matmul_size")), times, st.integers(1, 10**6), amounts, texts).map(
        lambda v: Result(v[0], v[1], v[2][2], v[2][0], v[2][1], v[2][3], v[3], v[4], 1e-5, v[5])
    ),
)


@given(events)
def test_events_survive_the_pipe(event: Event) -> None:
    line = encode(event)
    assert "\n" not in line
    assert decode(line.encode()) == event


def changed(**changes: Any) -> bytes:
    return json.dumps(json.loads(encode(RESULT)) | changes).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"event": "done"}',
        b'{"event": "done", "elapsed_s": NaN}',
        b'{"event": "done", "elapsed_s": Infinity}',
        b'{"event": "done", "elapsed_s": 1e999}',
        b'{"event": "done", "elapsed_s": true}',
        b'{"event": "done", "elapsed_s": -1}',
        b'{"event": "done", "elapsed_s": 1, "more": 2}',
        b'{"event": ["done"], "elapsed_s": 1}',
        b'{"event": "progress", "dtype": "fp32", "phase": "timing", "fraction": 1.5}',
        b'{"event": "progress", "dtype": "fp7", "phase": "timing", "fraction": 0.5}',
        b'{"event": "refusal", "dtype": "fp32", "kind": "eaten", "text": ""}',
        b"[" * 100_000,
        changed(dtype="fp7"),
        changed(n=0),
        changed(n=limit("matmul_size") + 1),
        changed(n=10.5),
        changed(n="1024"),
        changed(runs=0),
        changed(runs=2**63),
        changed(best_s=0),
        changed(best_s=3e-3),
        changed(p10_s=2.5e-3),
        changed(p90_s=1e-3),
        changed(note="x" * (TEXT_CHARS + 1)),
        changed(note=None),
        changed(clock_after_mhz="fast"),
    ],
)
def test_anything_else_is_no_event(line: bytes) -> None:
    assert decode(line) is None


def test_rates_follow_from_times() -> None:
    flop = 2 * 1024**3
    assert RESULT.flop == flop
    assert RESULT.rate == pytest.approx(flop / 2e-3)
    assert RESULT.best_rate == pytest.approx(flop / 1e-3)
    assert (RESULT.p10_rate, RESULT.p90_rate) == pytest.approx((flop / 4e-3, flop / 1.5e-3))
    assert RESULT.p10_rate <= RESULT.rate <= RESULT.p90_rate <= RESULT.best_rate


def test_long_texts_are_clipped_visibly() -> None:
    assert clip("short") == "short"
    assert clip("x" * 9000) == "x" * (TEXT_CHARS - 1) + "…"


@pytest.mark.parametrize(
    ("device", "n", "seconds"),
    [
        *(("gpu", 64, 1), ("cpu", 15, 1), ("cpu", limit("matmul_size") + 1, 1)),
        *(("cpu", 64, 0.1), ("cpu", 64, 61.0), ("cpu", 64, math.nan), ("cuda", 64, math.inf)),
    ],
)
def test_a_job_beyond_the_caps_cannot_be_made(device: Any, n: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"out of range|neither cpu nor cuda"):
        Spec(device, n, seconds)


def test_every_job_within_the_caps_ends_before_it_is_stopped() -> None:
    for device in DTYPES:
        assert Spec(device, 64, limit("measure_dtype_seconds")).expected_s < 0.9 * limit("measure_seconds")


def test_a_default_job_on_a_cpu_takes_about_ten_seconds() -> None:
    assert 8 < Spec("cpu", 1024, 2.0).expected_s < 12
