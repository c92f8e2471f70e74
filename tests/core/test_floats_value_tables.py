"""NF4 against its definition and the thresholds of bitsandbytes, and the 8-bit map of its scales."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.blocks import BLOCK_FORMATS, quantize_block
from core.floats.value_tables import VALUE_TABLES, dynamic_8bit

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


def test_quantised_scales_cost_little_and_save_three_eighths_of_a_bit() -> None:
    """QLoRA, section 3: from 0.5 to 0.127 bits a parameter."""
    values = np.random.default_rng(0).standard_normal(64 * 1024)
    plain, double = (quantize_block(values, BLOCK_FORMATS[name]) for name in ("nf4", "nf4_double"))
    assert plain.bits_per_element - double.bits_per_element == pytest.approx(0.373, abs=5e-4)
    np.testing.assert_array_equal(plain.codes, double.codes)
    assert not np.array_equal(plain.scales, double.scales)
    np.testing.assert_allclose(double.scales, plain.scales, rtol=0.02)
    assert 0 < plain.sqnr_db - double.sqnr_db < 0.1
