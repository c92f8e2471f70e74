"""The two-layer linear model: every product against torch's counter, torch's gradients and counting by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from core.models.linear import TwoLayers, count_with_torch, literal_operations, two_layer_flop

SIZES = [(1024, 256, 64), (1, 1, 1), (7, 3, 5), (16_384, 32_768, 8_192)]


@pytest.mark.parametrize("x_gradient", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_forward_and_backward_equal_torchs_counter(size: tuple[int, int, int], x_gradient: bool) -> None:
    model = TwoLayers(*size, x_gradient=x_gradient)
    seen = count_with_torch(model)
    assert (model.flop("forward"), model.flop("backward")) == (seen.forward, seen.backward)
    assert two_layer_flop(*size, int(x_gradient)) == model.flop()


def test_claim_c1() -> None:
    first = TwoLayers(1024, 256, 64).products[1]
    assert first.flop == 33_554_432
    assert first.arithmetic == "2 · 1,024 · 256 · 64"
    multiplications = additions = 0
    for _ in range(4 * 3):  # each output of a 4 × 5 by 5 × 3 product, by hand
        multiplications += 5
        additions += 5 - 1
    assert literal_operations(4, 5, 3) == multiplications + additions


def test_products_are_the_gradients_that_torch_computes() -> None:
    """Each product, run as drawn on real numbers, gives torch's own gradient: names, order and transposes are right."""
    torch.manual_seed(0)
    tensors: dict[str, Any] = {
        "x": torch.randn(7, 4, dtype=torch.float64, requires_grad=True),
        "w1": torch.randn(4, 4, dtype=torch.float64, requires_grad=True),
        "w2": torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    }
    tensors["h1"] = tensors["x"] @ tensors["w1"]
    tensors["h2"] = tensors["h1"] @ tensors["w2"]
    for name in ("h1", "h2"):
        tensors[name].retain_grad()
    tensors["h2"].pow(2).mean().backward()

    def value(name: str) -> np.ndarray:
        if name.endswith("ᵀ"):
            return value(name[:-1]).T
        return (tensors[name[:-5]].grad if name.endswith(".grad") else tensors[name]).detach().numpy()

    for product in TwoLayers(7, 4, 3).products:
        for matrix in (product.left, product.right, product.out):
            assert value(matrix.name).shape == (matrix.rows, matrix.columns)
            assert value(matrix.name).size == matrix.numel
        assert product.left.columns == product.right.rows
        np.testing.assert_allclose(value(product.left.name) @ value(product.right.name), value(product.out.name))
