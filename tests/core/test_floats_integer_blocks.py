"""Integers and fp8 tiles under scales against their libraries' own steps, for every code and on random blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.floats.blocks import BLOCK_FORMATS, quantize_block

F = np.float32

blocks = st.lists(st.floats(-(2.0**14), 2.0**14, width=32), min_size=32, max_size=32)


def rounded_away(value: float) -> int:
    """C's roundf."""
    return math.floor(abs(value) + 0.5) * (-1 if value < 0 else 1)


def q8_0(x: Sequence[float]) -> tuple[float, list[int], list[float]]:
    """quantize_row_q8_0_ref and dequantize_row_q8_0 of ggml-quants.c, line by line."""
    amax = F(0)
    for value in x:
        amax = max(amax, abs(F(value)))
    d = F(amax / F(127))
    inverse = F(1) / d if d else F(0)
    qs = [rounded_away(float(F(F(value) * inverse))) for value in x]
    kept = F(np.float16(d))
    return float(kept), qs, [float(F(q) * kept) for q in qs]


def q4_0(x: Sequence[float]) -> tuple[float, list[int], list[float]]:
    """quantize_row_q4_0_ref and dequantize_row_q4_0 of ggml-quants.c, line by line."""
    amax, most = F(0), F(0)
    for value in map(F, x):
        if amax < abs(value):
            amax, most = abs(value), value
    d = F(most / F(-8))
    inverse = F(1) / d if d else F(0)
    qs = [min(15, int(F(F(F(value) * inverse) + F(8.5)))) for value in x]
    kept = F(np.float16(d))
    return float(kept), qs, [float(F(q - 8) * kept) for q in qs]


def awq(x: Sequence[float]) -> list[float]:
    """pseudo_quantize_tensor of llm-awq with a zero point, its scale kept in fp16."""
    w = torch.tensor([list(x)], dtype=torch.float32)
    max_val, min_val = w.amax(dim=1, keepdim=True), w.amin(dim=1, keepdim=True)
    scales = ((max_val - min_val).clamp(min=1e-5) / 15).half().float()
    zeros = (-torch.round(min_val / scales)).clamp_(0, 15)
    back = (torch.clamp(torch.round(w / scales) + zeros, 0, 15) - zeros) * scales
    return back[0].tolist()


def ordinary(x: list[float]) -> bool:
    """Whether reciprocals of scales are finite: ggml leaves undefined what becomes of smaller blocks."""
    return not any(x) or max(map(abs, x)) > 1e-30


@given(blocks.filter(ordinary))
def test_gguf_blocks_are_ggmls(x: list[float]) -> None:
    for name, reference, stored in (("q8_0", q8_0, lambda q: q & 0xFF), ("q4_0", q4_0, lambda q: q)):
        scale, qs, back = reference(x)
        block = quantize_block(x, BLOCK_FORMATS[name])
        assert block.scales.tolist() == [scale]
        assert block.codes.tolist() == [stored(q) for q in qs]
        np.testing.assert_array_equal(block.values.astype(F), np.array(back, dtype=F))


@given(st.lists(st.floats(-(2.0**14), 2.0**14, width=32), min_size=1, max_size=128))
def test_int4_is_awqs_and_int8_is_qloras(x: list[float]) -> None:
    block = quantize_block(x, BLOCK_FORMATS["int4"])
    np.testing.assert_array_equal(block.values.astype(F), np.array(awq(x), dtype=F))
    block = quantize_block(x[:64], BLOCK_FORMATS["int8"])
    w = torch.tensor(x[:64], dtype=torch.float32)
    scale = w.abs().max() / 127
    codes = torch.round(w / scale).clamp(-127, 127) if scale else torch.zeros_like(w)
    assert block.codes.astype(np.int8).tolist() == codes.to(torch.int8).tolist()
    np.testing.assert_allclose(block.values, (codes.double() * scale.double()).numpy(), rtol=1e-15)


@pytest.mark.parametrize("name", ["int8", "int4", "q8_0", "q4_0"])
def test_every_code_comes_back_as_its_multiple_of_the_scale(name: str) -> None:
    """A block that holds every whole number of the format, under a scale that fp16 holds, returns each exactly."""
    fmt = BLOCK_FORMATS[name]
    low, high = {"int8": (-127, 127), "q8_0": (-127, 127), "int4": (-8, 7), "q4_0": (-8, 7)}[name]
    for scale in (0.25, 1.0, 3.0):
        codes = set[int]()
        for start in range(low, high + 1, fmt.size - 2):
            numbers = [*range(start, min(start + fmt.size - 2, high + 1)), low, high]
            numbers += [0] * (fmt.size - len(numbers))
            block = quantize_block(scale * np.array(numbers), fmt)
            assert block.values.tolist() == [scale * number for number in numbers]
            codes |= set(block.codes.tolist())
        assert len(codes) == high - low + 1


@given(st.lists(st.floats(-(2.0**30), 2.0**30, width=32), min_size=1, max_size=300))
def test_tiles_are_e4m3_over_the_largest(x: list[float]) -> None:
    small, large = (quantize_block(x, BLOCK_FORMATS[name]) for name in ("fp8_1x128", "fp8_128x128"))
    for block, size in ((small, 128), (large, len(x))):
        for start in range(0, len(x), size):
            part = np.array(x[start : start + size], dtype=F)
            scale = max(F(np.abs(part).max() / F(448)), F(2.0**-149))
            codes = (part / scale).astype(F).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
            assert block.codes[start : start + size].tolist() == codes.view(np.uint8).tolist()
            back = codes.astype(np.float64) * float(scale)
            np.testing.assert_array_equal(block.values[start : start + size], back)
