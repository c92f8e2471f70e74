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


@pytest.mark.parametrize("size", SIZES)
def test_the_lectures_formulas(size: tuple[int, int, int]) -> None:
    b, d, k = size
    model = TwoLayers(b, d, k)
    assert model.flop("forward") == 2 * b * d * d + 2 * b * d * k
    assert model.flop("backward") == 4 * b * d * k + 2 * b * d * d  # torch leaves the gradient of the data out
    with_x = TwoLayers(b, d, k, x_gradient=True)
    assert with_x.flop("backward") == 4 * b * d * k + 4 * b * d * d
    assert with_x.flop() == with_x.rule == 6 * b * with_x.weights


def test_flops_per_weight() -> None:
    assert (TwoLayers(9, 5, 3).per_weight("w1"), TwoLayers(9, 5, 3).per_weight("w2")) == (4, 6)
    assert TwoLayers(9, 5, 3, x_gradient=True).per_weight("w1") == 6


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


def test_the_indices_of_the_gradient_of_h1() -> None:
    """Claim C5: h1.grad sums over w2[j, k]; with w2[i, j], as in the notes, the indices do not even fit."""
    sums = {p.out.name: p.sums for p in TwoLayers(5, 4, 3).products}
    assert "w2[j, k] · h2.grad[i, k]" in sums["h1.grad"]
    rng = np.random.default_rng(0)
    w2, g = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    by_hand = np.array([[sum(w2[j, k] * g[i, k] for k in range(3)) for j in range(4)] for i in range(5)])
    np.testing.assert_allclose(by_hand, g @ w2.T)
    with pytest.raises(IndexError):
        np.array([[sum(w2[i, j] * g[i, k] for k in range(3)) for j in range(4)] for i in range(5)])


@pytest.mark.parametrize("size", [(0, 1, 1), (1, -1, 1), (1, 1, 10**9)])
def test_sizes_have_limits(size: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="from 1 to"):
        TwoLayers(*size)
