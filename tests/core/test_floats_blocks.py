"""Block formats against the reference blocks, and the properties of the scale rules."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats import block_example
from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, float_element, quantize_block
from core.floats.codec import decode
from core.floats.formats import FORMATS
from core.floats.integer_blocks import INT8, Q4, UINT4
from core.floats.value_tables import VALUE_TABLES, ValueTable
from core.limits import limit
from tests.every import every

DATA = Path(__file__).parents[1] / "data"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


ENCODE = rows("float_block_encode.csv")
FORMAT_ROWS = {row["format"]: row for row in rows("float_block_formats.csv")}
TABLED = tuple(name for name, block in BLOCK_FORMATS.items() if isinstance(block.element, ValueTable))
"""Formats whose elements are a table of values; test_floats_value_tables compares them with their definition."""

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


def test_every_rule_has_a_column_of_its_own() -> None:
    rows = block_example.table(block_example.example("one outlier", block_example.OUTLIER))
    for (name, fmt), row in zip(BLOCK_FORMATS.items(), rows, strict=True):
        filled = [rule for rule, cell in zip(SCALE_RULES, row[2:], strict=True) if cell != ("", "")]
        assert set(filled) == set(fmt.scale_rules), name
    assert len({rule.short for rule in SCALE_RULES.values()}) == len(SCALE_RULES)


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
