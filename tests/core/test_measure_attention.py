"""Attention by back end: timed here, with the work that a person would count, and refused where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.points import Point, Refusal
from core.benchmark.programme import SIZES
from core.benchmark.timing import attention
from tests.core.timing_bench import BF16, FP32, TINY, measured, processor, programme, refusal

pytestmark = pytest.mark.usefixtures("one_thread")

TOKENS, HEADS, KV_HEADS, LENGTH, WIDTH = 64, 4, 2, 32, 16
FLOP = 2 * HEADS * WIDTH * LENGTH * TOKENS
ELEMENTS = TOKENS * (2 * HEADS + 2 * KV_HEADS) * WIDTH
REAL = torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("element", [BF16, FP32])
def test_every_back_end_of_this_cpu(element: int, monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, element)
    for item in attention.items(programme()):
        point = measured(attention, item, programme())
        assert isinstance(point, Point), point
        times = 3 if item.label.startswith(attention.BOTH) else 1
        assert (point.flop, point.bytes) == (times * FLOP, times * element * ELEMENTS)
        assert point.shape == (2, HEADS, KV_HEADS, LENGTH, WIDTH)
        assert point.relative_error is not None
        assert point.relative_error < (1e-2 if element == BF16 else 1e-5)


def test_a_back_end_that_torch_refuses_is_a_refusal_by_itself() -> None:
    """As on a GPU, where all four are tried: the CPU has no kernel of the memory-efficient one."""
    items = attention.items(programme(device="cuda"))
    assert {item.name for item in items} == set(attention.BACKENDS)
    refused = next(item for item in items if item.name == "efficient")
    found = measured(attention, refused, programme())
    assert isinstance(found, Refusal)
    assert found.why == "refused"
    assert "scaled_dot_product_attention" in found.text


def blind(q: Any, k: Any, v: Any, is_causal: bool, enable_gqa: bool) -> Any:
    return REAL(q, k, v, is_causal=False, enable_gqa=enable_gqa)


def doubled(which: int) -> Any:
    """Attention whose result is right, and whose gradient of one input is twice what it should be."""

    def attend(*qkv: Any, is_causal: bool, enable_gqa: bool) -> Any:
        given = [2 * one - one.detach() if i == which else one for i, one in enumerate(qkv)]
        return REAL(*given, is_causal=is_causal, enable_gqa=enable_gqa)

    return attend


@pytest.mark.parametrize(
    ("wrong", "tensor"),
    [(blind, None), (doubled(0), "queries"), (doubled(1), "keys"), (doubled(2), "values")],
)
def test_wrong_attention_is_not_timed(wrong: Any, tensor: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def attend(q: Any, *kv: Any, **more: Any) -> Any:
        return (REAL if q.dtype is torch.float64 else wrong)(q, *kv, **more)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attend)
    both = next(item for item in attention.items(programme()) if item.label.startswith(attention.BOTH))
    assert refusal(attention, both).values.get("tensor") == tensor


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 8), st.integers(1, 2**20), st.sampled_from(sorted(SIZES)))
def test_what_would_take_too_long_is_timed_with_fewer_tokens(
    batch: int, kv_heads: int, group: int, length: int, kind: Any
) -> None:
    layer = TINY.model_copy(
        update={"micro_batch": batch, "seq_len": length, "heads": kv_heads * group, "kv_heads": kv_heads}
    )
    for item in attention.items(programme(layer, kind)):
        fewer, heads, _, shorter, _ = item.shape
        assert heads == layer.heads
        assert fewer <= batch
        assert shorter <= length
        small = attention.forward_flop(item.shape) <= attention.MOST_FLOP[kind]
        assert small or (fewer == 1 and shorter < 32)
        assert shorter == length or fewer == 1, "sequences are given up before their length"
