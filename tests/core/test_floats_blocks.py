"""Block formats against the reference blocks, their libraries' own steps, and the definitions of tables of values."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.floats import block_example
from core.floats.blocks import BLOCK_FORMATS, float_element, quantize_block
from core.floats.codec import decode
from core.floats.formats import FORMATS, FloatFormat
from core.floats.integer_blocks import INT8, Q4, UINT4
from core.floats.value_tables import VALUE_TABLES, ValueTable, dynamic_8bit
from core.limits import limit
from core.views.floats.text_training import block_texts
from tests.every import every

DATA = Path(__file__).parents[1] / "data"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


ENCODE = rows("float_block_encode.csv")
FORMAT_ROWS = {row["format"]: row for row in rows("float_block_formats.csv")}
TABLED = tuple(name for name, block in BLOCK_FORMATS.items() if isinstance(block.element, ValueTable))
"""Formats whose elements are a table of values; compared with their definition below."""

EVERY_RULE = [(name, rule) for name, block in BLOCK_FORMATS.items() for rule in block.scale_rules]


def floats(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32).view(np.float32)


def agrees(row: dict[str, str], kernel: str) -> bool:
    block = quantize_block(
        floats(row["input_f32_hex"]), BLOCK_FORMATS[row["block_format"]], row["scale_mode"], kernel=kernel
    )
    *scale, tensor = [*row["scale_hex"].split(), ""] if "tensor=" not in row["scale_hex"] else row["scale_hex"].split()
    same = block.scale_codes.tolist() == [int(code, 16) for code in scale]
    same &= block.codes.tolist() == [int(code, 16) for code in row["elem_hex"].split()]
    same &= np.array_equal(block.values.astype(np.float32), floats(row["dequant_f32_hex"]))
    same &= math.isclose(block.mse, float(row["mse"]), rel_tol=1e-5)
    return same and (not tensor or block.tensor_scale == float(tensor.removeprefix("tensor=")))


def test_every_reference_block() -> None:
    asked = {(row["block_format"], row["scale_mode"]) for row in ENCODE}
    elsewhere = {"mxint8", "fp8_1x128", "fp8_128x128", *TABLED}  # what torchao has not; compared below and beside
    assert asked >= {pair for pair in EVERY_RULE if pair[0] not in elsewhere}
    for row in ENCODE:
        if not row["scale_hex"]:
            assert not floats(row["input_f32_hex"]).any()  # torchao refuses; see below for what we do
            continue
        assert agrees(row, "torchao"), row


def test_defect_torchao_divides_by_the_wrong_smallest_scale() -> None:
    """The rows marked as differing from an exact computation are those with scale code 0, and only those."""
    marked = [row for row in ENCODE if row["scale_hex"] and row["agree_exact_ref"] == "0"]
    exact = [row for row in ENCODE if row["scale_hex"] and row["agree_exact_ref"] != "0" and not without_inverse(row)]
    assert {row["scale_hex"] for row in marked} == {"00"}
    assert sum(agrees(row, "exact") for row in marked) == 0
    assert all(agrees(row, "exact") for row in exact)


def without_inverse(row: dict[str, str]) -> bool:
    """Whether the row's NVFP4 tensor scale is so small that float32 has no reciprocal of it."""
    return "tensor=" in row["scale_hex"] and float(row["scale_hex"].partition("tensor=")[2]) < 2.0**-128


def test_defect_torchao_saturates_tiny_tensors() -> None:
    tiny = [row for row in ENCODE if without_inverse(row)]
    assert [row["case"] for row in tiny] == ["tiny_2^-130", "tiny_2^-120"]
    for row in tiny:
        assert set(row["elem_hex"].split()) == {"7", "f"}
        assert agrees(row, "torchao")
        values = floats(row["input_f32_hex"])
        assert quantize_block(values, BLOCK_FORMATS["nvfp4"], "level2").sqnr_db > 15


@every("size", [1e-45, 1e-42, 1e-38, 1e-36, 1e-35, 1e-33, 1e-20, 3e38])
@every(("name", "rule"), EVERY_RULE)
def test_no_size_of_value_is_too_much(name: str, rule: str, size: float) -> None:
    fmt = BLOCK_FORMATS[name]
    values = np.zeros(2 * fmt.size)
    values[3], values[4] = size, -size / 2
    for kernel in ("exact", "torchao"):
        block = quantize_block(values, fmt, rule, kernel=kernel)  # type: ignore[arg-type]
        assert np.isfinite(block.values).all()
        assert not block.values[fmt.size :].any()
    block = quantize_block(values, fmt, rule)
    if rule == "level2":  # the tensor scale follows the values down to float32's smallest
        assert block.values[3] == pytest.approx(np.float32(size), rel=0.08)
        assert not block.clipped.any()


def test_nvfp4_float32_arithmetic_is_not_clipping() -> None:
    values = np.zeros(16)
    values[0] = 2.8  # amax / 6 / scale comes out at 6.0000005
    block = quantize_block(values, BLOCK_FORMATS["nvfp4"], "level2")
    assert block.values[0] == pytest.approx(2.8, rel=1e-6)
    assert not block.clipped.any()
    # E4M3 rounds the second block's scale down, so that its largest value really is cut.
    pair = np.concatenate([np.full(16, 6.0 * 448), np.full(16, 6 * 1.05)])
    block = quantize_block(pair, BLOCK_FORMATS["nvfp4"], "level2")
    assert block.clipped.tolist() == [False] * 16 + [True] * 16


def test_an_outlier_costs_the_others_precision_unless_elements_have_three_exponent_bits() -> None:
    values = block_example.example("one outlier", block_example.OUTLIER)
    for name, fmt in BLOCK_FORMATS.items():
        effect = block_example.outlier_effect(values, name, fmt.scale_rules[0])
        assert effect.largest == block_example.OUTLIER, name
        wide = isinstance(fmt.element, FloatFormat) and fmt.element.exponent_bits >= 3
        assert effect.lowers != wide, (name, effect)


@pytest.mark.parametrize("entered", ["1, -1, 600", "0", "5", "1e-30, 3e38", "2, 2, -2"])
def test_what_an_outlier_costs_is_said_of_any_values(entered: str) -> None:
    """Others may be exact without it, or lost with it: their SQNR is then infinite."""
    values = block_example.read_block(entered)
    for fmt in BLOCK_FORMATS.values():
        for rule in fmt.scale_rules:
            assert block_texts(values, quantize_block(values, fmt, rule))


@pytest.mark.parametrize(
    "values",
    [
        (0.1, -1 / 3, 24.0, 1e30, 5e-324) + (0.0,) * 27,
        tuple(-(1.2345678901234567 + i) * 10.0 ** (-i * 5) for i in range(32)),
    ],
)
def test_written_blocks_are_read_back(values: tuple[float, ...]) -> None:
    text = block_example.write_block(values)
    assert len(text) <= limit("block_chars")
    read = block_example.read_block(text)
    if len({*values}) < 32:
        assert read == values
    np.testing.assert_allclose(read, values, rtol=1e-6)


def test_a_tensor_of_zeros_has_a_scale() -> None:
    block = quantize_block(np.zeros(16), BLOCK_FORMATS["nvfp4"], "level2")
    assert block.tensor_scale == 1
    assert block.scale_codes.tolist() == [0x08]
    assert not block.values.any()
    assert math.isnan(block.sqnr_db)


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_sizes_equal_the_reference(name: str) -> None:
    block, row = BLOCK_FORMATS[name], FORMAT_ROWS[name]
    assert list(BLOCK_FORMATS) == list(FORMAT_ROWS)
    whole = {table.name: table for table in (INT8, UINT4, Q4)}
    assert block.element is {**FORMATS, **VALUE_TABLES, **whole}[row["element"]]
    assert block.size == int(row["block_size"])
    assert block.bits_per_element == pytest.approx(float(row["bits_per_element"]), rel=1e-5)
    assert block.block_bits == pytest.approx(8 * float(row["bytes_per_block"]), rel=1e-5)
    assert block.scale_bits == float(row["scale_bits"])
    if not isinstance(block.element, ValueTable):
        assert block.element.emax == int(row["elem_emax"])
    assert float(block.element.max_finite) == float(row["elem_max"])
    assert (block.tensor_scale_bits > 0) == row["tensor_scale"].startswith("fp32")
    assert block.sources


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("name", "rule"), [pair for pair in EVERY_RULE if pair[0] not in TABLED])
@given(data=st.data())
def test_blocks_are_what_they_say(name: str, rule: str, data: st.DataObject) -> None:
    fmt = BLOCK_FORMATS[name]
    element = float_element(fmt)
    scale = data.draw(st.sampled_from([1e-3, 1.0, 700.0]))
    size = fmt.size * data.draw(st.integers(1, 3))
    seed = data.draw(st.integers(0, 1000))
    values = (np.random.default_rng(seed).standard_t(2, size) * scale).astype(np.float32)
    block = quantize_block(values, fmt, rule)
    scales = np.repeat(block.scales, fmt.size)
    np.testing.assert_array_equal(block.values, decode(block.codes, element) * scales)
    assert block.mse == pytest.approx(np.mean((block.values - values) ** 2))
    assert block.sqnr_db == pytest.approx(10 * np.log10(np.mean(values.astype(float) ** 2) / block.mse))
    top = float(element.max_finite)
    if block.block_format.short:
        np.testing.assert_array_equal(block.scales, decode(block.scale_codes, FORMATS["fp32"]))
        assert not block.clipped.any()
    elif name != "nvfp4":
        np.testing.assert_array_equal(block.scales, decode(block.scale_codes, FORMATS["e8m0fnu"]))
        np.testing.assert_array_equal(block.clipped, np.abs(values / scales) > top)
        if rule in ("ceil", "rceil"):
            assert not block.clipped.any()
        if rule == "rceil":
            amax = np.abs(values.reshape(-1, fmt.size)).max(axis=1)
            assert (amax > block.scales / 2 * top).all()  # half the scale would clip
    error = np.abs(block.values - values)[~block.clipped] / scales[~block.clipped]
    assert error.max() <= float(element.quantum_max) / 2 * 1.001


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


NF4 = VALUE_TABLES["nf4"]

THRESHOLDS = (
    *(-0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544, -0.23460740596055984),
    *(-0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513, 0.2035212516784668),
    *(0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482, 0.8614784181118011),
)
"""Where bitsandbytes’ dQuantizeNF4 goes from one code to the next (csrc/kernels.cu)."""


def test_nf4_is_the_quantiles_that_qlora_defines() -> None:
    """Eight quantiles above zero, seven below, and zero, over the largest (bitsandbytes, create_normal_map)."""
    offset, quantile = 0.9677083, np.vectorize(NormalDist().inv_cdf)
    above = quantile(np.linspace(offset, 0.5, 9)[:-1])
    below = -quantile(np.linspace(offset, 0.5, 8)[:-1])
    defined = np.sort(np.concatenate([above, [0.0], below])) / above.max()
    np.testing.assert_allclose(NF4.values, defined, atol=2e-7)
    assert NF4.bits == 4


def test_codes_change_where_those_of_bitsandbytes_do() -> None:
    np.testing.assert_allclose(NF4.midpoints, THRESHOLDS, rtol=0, atol=1e-16)
    assert NF4.encode(np.array(THRESHOLDS) + 1e-7).tolist() == list(range(1, 16))
    assert NF4.encode(np.array(THRESHOLDS) - 1e-7).tolist() == list(range(15))


def test_the_8_bit_map_has_256_values_finer_by_the_decade() -> None:
    table = dynamic_8bit()
    values = np.array(table.values)
    assert table.bits == 8
    assert values.size == len(set(table.values)) == 256
    positive = values[(values > 0) & (values < 1)]
    np.testing.assert_array_equal(np.sort(-values[values < 0]), positive)
    assert [int(np.sum(positive >= 10.0**-d)) for d in range(1, 7)] == [64, 96, 112, 120, 124, 126]
    assert positive[-1] == pytest.approx(1 - 0.9 / 64 / 2)


@pytest.mark.parametrize("name", ["nf4", "nf4_double"])
@given(
    values=st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=200),
    seed=st.integers(0, 99),
)
def test_every_value_goes_to_the_nearest_of_its_block(name: str, values: list[float], seed: int) -> None:
    fmt = BLOCK_FORMATS[name]
    given = np.array(values, dtype=np.float32)
    np.random.default_rng(seed).shuffle(given)
    block = quantize_block(given, fmt)
    table = np.array(NF4.values)
    for start in range(0, given.size, fmt.size):
        part = given[start : start + fmt.size].astype(np.float64)
        top = np.abs(part).max() or 1.0
        nearest = np.abs(part[:, None] / top - table).min(axis=1)
        chosen = np.abs(part / top - table[block.codes[start : start + fmt.size]])
        np.testing.assert_allclose(chosen, nearest, atol=1e-12)
    assert block.values.shape == block.codes.shape == given.shape
    assert not block.clipped.any()
    if name == "nf4":
        kept = np.flatnonzero(np.abs(given) == np.abs(given).max())
        positive = kept[given[kept] >= 0]
        np.testing.assert_array_equal(block.values[positive], given[positive])  # the largest comes back exactly


def test_quantized_scales_cost_little_and_save_three_eighths_of_a_bit() -> None:
    """QLoRA, section 3: from 0.5 to 0.127 bits a parameter."""
    values = np.random.default_rng(0).standard_normal(64 * 1024)
    plain, double = (quantize_block(values, BLOCK_FORMATS[name]) for name in ("nf4", "nf4_double"))
    assert plain.bits_per_element - double.bits_per_element == pytest.approx(0.373, abs=5e-4)
    np.testing.assert_array_equal(plain.codes, double.codes)
    assert not np.array_equal(plain.scales, double.scales)
    np.testing.assert_allclose(double.scales, plain.scales, rtol=0.02)
    assert 0 < plain.sqnr_db - double.sqnr_db < 0.1
