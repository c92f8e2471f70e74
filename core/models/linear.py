"""From one matrix product to 6ND: the two-layer linear model of the lecture, product by product.

x (B × D) runs through w1 (D × D) to h1 and through w2 (D × K) to h2; the loss is the mean square of h2. Forward
multiplies twice. Backward multiplies each layer twice more: once for the gradient of its weight, once for the gradient
of its input; the gradient of x itself nobody needs, so torch skips that product unless x asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.formula import Explanation, Source, Symbol, formula
from core.limits import limit
from core.models.flops import train_flop_6nd
from core.models.symbols import count
from core.products import matmul_flop
from core.sources import CS336

Phase: TypeAlias = Literal["forward", "backward"]
Layer: TypeAlias = Literal["w1", "w2"]

_LECTURE = CS336.at("FLOPs of the two-layer linear model")
_CUBLAS = Source(
    "NVIDIA, Matrix Multiplication Background User's Guide",
    "Math and memory bounds",
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
)
_ROWS = count("B", "rows of x: examples, or tokens")
_WIDTH = count("D", "width of x and of the hidden layer")
_OUTPUTS = count("K", "width of the output")


@formula(
    r"\v{rows} \cdot \v{outputs} \cdot (2 \cdot \v{width} - 1)",
    result=Symbol("W'", "multiplications and additions, one by one", "count"),
    symbols={"rows": _ROWS, "width": _WIDTH, "outputs": _OUTPUTS},
    sources=(_CUBLAS,),
)
def literal_operations(rows: float, width: float, outputs: float) -> float:
    """Operations of one product, counted one by one.

    Each output is a sum of D products: D multiplications and D − 1 additions. Counting a multiply-add as two FLOPs
    rounds that up to 2D.
    """
    return rows * outputs * (2 * width - 1)


@formula(
    r"\v{rows} \cdot (6 \cdot \v{width} \cdot \v{outputs}"
    r" + (4 + 2 \cdot \v{x_gradient}) \cdot \v{width} \cdot \v{width})",
    result=Symbol("F", "FLOPs of one training step", "flop"),
    symbols={
        "rows": _ROWS,
        "width": _WIDTH,
        "outputs": _OUTPUTS,
        "x_gradient": count("g", "1 if the gradient of x is computed, else 0"),
    },
    sources=(_LECTURE,),
)
def two_layer_flop(rows: float, width: float, outputs: float, x_gradient: float) -> float:
    """One training step of the two-layer linear model.

    Six FLOPs per weight and row, two of them for the gradient of the layer's input. The first layer's input is the
    data, whose gradient nobody needs: without it the first layer's weights take four.
    """
    return rows * (6 * width * outputs + (4 + 2 * x_gradient) * width * width)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix of a product, by name and shape. ``kind`` is the role whose colour it wears."""

    name: str
    rows: int
    columns: int
    kind: Literal["activations", "parameters", "gradients"]

    @property
    def numel(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix product of a training step: left @ right = out.

    of: the layer it belongs to. sums: the same in indices. needed: whether a training step needs it; only the
    gradient of x is not.
    """

    left: Matrix
    right: Matrix
    out: Matrix
    phase: Phase
    of: Layer
    sums: str
    needed: bool = True

    @property
    def flop(self) -> int:
        """Two FLOPs for each of the inner products' multiply-adds."""
        return int(matmul_flop(m=self.left.rows, n=self.out.columns, k=self.left.columns))

    @property
    def arithmetic(self) -> str:
        """The count as it is worked out: ``2 · 1,024 · 256 · 64``."""
        return f"2 · {self.left.rows:,} · {self.left.columns:,} · {self.out.columns:,}"


_X_GRADIENT = "x.grad[i, l] = Σⱼ w1[l, j] · h1.grad[i, j]"


@dataclass(frozen=True, slots=True)
class TwoLayers:
    """The two-layer linear model and every product of its training step, in order.

    x_gradient: whether x asks for its gradient. Raises ``ValueError`` for a size that is no size.
    """

    rows: int
    width: int
    outputs: int
    x_gradient: bool = False

    def __post_init__(self) -> None:
        for name in ("rows", "width", "outputs"):
            if not 1 <= getattr(self, name) <= limit("model_dimension"):
                raise ValueError(f"{name} is {getattr(self, name)}; from 1 to {limit('model_dimension'):,}.")

    @property
    def weights(self) -> int:
        """Parameters of both layers: D² + D K."""
        return self.width * self.width + self.width * self.outputs

    @property
    def products(self) -> tuple[Product, ...]:
        """Forward, then backward from the loss to the data; the last one only if x asks for its gradient."""
        b, d, k = self.rows, self.width, self.outputs
        sizes = {"x": (b, d), "h1": (b, d), "h2": (b, k)}
        x, h1, h2 = (Matrix(name, *size, "activations") for name, size in sizes.items())
        w1, w2 = Matrix("w1", d, d, "parameters"), Matrix("w2", d, k, "parameters")

        def turned(m: Matrix) -> Matrix:
            return Matrix(f"{m.name}ᵀ", m.columns, m.rows, m.kind)

        def grad(m: Matrix) -> Matrix:
            return Matrix(f"{m.name}.grad", m.rows, m.columns, "gradients")

        return (
            Product(x, w1, h1, "forward", "w1", "h1[i, j] = Σₗ x[i, l] · w1[l, j]"),
            Product(h1, w2, h2, "forward", "w2", "h2[i, k] = Σⱼ h1[i, j] · w2[j, k]"),
            Product(turned(h1), grad(h2), grad(w2), "backward", "w2", "w2.grad[j, k] = Σᵢ h1[i, j] · h2.grad[i, k]"),
            Product(grad(h2), turned(w2), grad(h1), "backward", "w2", "h1.grad[i, j] = Σₖ w2[j, k] · h2.grad[i, k]"),
            Product(turned(x), grad(h1), grad(w1), "backward", "w1", "w1.grad[l, j] = Σᵢ x[i, l] · h1.grad[i, j]"),
            Product(grad(h1), turned(w1), grad(x), "backward", "w1", _X_GRADIENT, needed=False),
        )

    def run(self, product: Product) -> bool:
        """Whether this step really computes ``product``."""
        return product.needed or self.x_gradient

    def flop(self, phase: Phase | None = None, of: Layer | None = None) -> int:
        """FLOPs of the step, or of one phase or one layer of it."""
        return sum(p.flop for p in self.products if self.run(p) and phase in (None, p.phase) and of in (None, p.of))

    def per_weight(self, of: Layer) -> float:
        """FLOPs per weight of the layer and row of x: 6, or 4 where the gradient of the data is left out."""
        size = self.width * (self.width if of == "w1" else self.outputs)
        return self.flop(of=of) / (size * self.rows)

    @property
    def rule(self) -> int:
        """What 6ND gives: six FLOPs per weight and row."""
        return 6 * self.weights * self.rows

    def explain(self) -> list[Explanation]:
        """The whole step, the rule beside it, and the first product counted operation by operation."""
        size = {"rows": self.rows, "width": self.width, "outputs": self.outputs}
        return [
            two_layer_flop.explain(**size, x_gradient=int(self.x_gradient)),
            train_flop_6nd.explain(params=self.weights, tokens=self.rows),
            literal_operations.explain(**size),
        ]


@dataclass(frozen=True, slots=True)
class TorchCount:
    """What torch's own counter saw: FLOPs of forward and backward, and how many matrix products each ran."""

    forward: int
    backward: int
    version: str


def count_with_torch(model: TwoLayers) -> TorchCount:
    """Run the step under ``torch.utils.flop_counter.FlopCounterMode`` and give its counts.

    On the meta device: shapes are followed and products are counted, but nothing is multiplied or stored, so any size
    takes milliseconds. Imports torch.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    def made(rows: int, columns: int, *, gradient: bool) -> torch.Tensor:
        return torch.empty(rows, columns, device="meta", requires_grad=gradient)

    x = made(model.rows, model.width, gradient=model.x_gradient)
    w1 = made(model.width, model.width, gradient=True)
    w2 = made(model.width, model.outputs, gradient=True)
    with FlopCounterMode(display=False) as counter:
        h2 = x @ w1 @ w2
        forward = counter.get_total_flops()
        h2.pow(2).mean().backward()  # pyright: ignore[reportUnknownMemberType]
        total = counter.get_total_flops()
    return TorchCount(forward, total - forward, torch.__version__)
