"""The lecture's program in words of our own, part by part in its order, with the claims that stand at its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the program that runs by itself. claims: of the lecture, by their ids → the line that shows each."""

    title: str
    source: str
    claims: Mapping[str, int]


PROGRAM: tuple[Part, ...] = (
    Part(
        "A 4 × 8 tensor in float32",
        """\
x = torch.zeros(4, 8)
assert x.dtype == torch.float32
assert x.numel() == 4 * 8
assert x.element_size() == 4
assert get_memory_usage(x) == 4 * 8 * 4""",
        {"F11": 5},
    ),
    Part(
        "One matrix of GPT-3",
        """\
assert get_memory_usage(torch.empty(12288 * 4, 12288)) == 2304 * 1024 * 1024""",
        {"F9": 1},
    ),
    Part(
        "1e-8 in float16",
        """\
x = torch.tensor([1e-8], dtype=torch.float16)
assert x == 0""",
        {"F4": 2},
    ),
    Part(
        "1e-8 in bfloat16",
        """\
x = torch.tensor([1e-8], dtype=torch.bfloat16)
assert x != 0""",
        {"F4": 2, "F5": 1},
    ),
    Part(
        "float8",
        """\
x = torch.tensor([1.0, 448.0]).to(torch.float8_e4m3fn)
assert x.element_size() == 1""",
        {"F7": 1},
    ),
    Part(
        "The step above 1",
        """\
low = torch.finfo(torch.bfloat16).eps
low""",
        {"F17": 1},
    ),
    Part(
        "To the device",
        """\
x = torch.zeros(32, 32)
assert x.device == torch.device('cpu')
if not torch.cuda.is_available():
    x = x + 1
before = torch.cuda.memory_allocated()
y = x.to('cuda:0')
assert y.device == torch.device('cuda', 0)
z = torch.zeros(32, 32, device='cuda:0')
used = torch.cuda.memory_allocated() - before
assert used == 2 * (32 * 32 * 4)""",
        {"T15": 2},
    ),
    Part(
        "Strides",
        """\
x = torch.tensor([[0., 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]])
assert x.stride(0) == 4
assert x.stride(1) == 1
r, c = 1, 2
index = r * x.stride(0) + c * x.stride(1)
assert index == 6
r*x.stride(0)+c*x.stride(1)""",
        {"T1": 2, "T16": 2, "T2": 5},
    ),
    Part(
        "Views share storage",
        """\
def same_storage(x: torch.Tensor, y: torch.Tensor):
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
x = torch.tensor([[1., 2, 3], [4, 5, 6]])
y = x[0]
assert torch.equal(y, torch.tensor([1., 2, 3]))
assert same_storage(x, y)
y = x.transpose(1, 0)
assert same_storage(x, y)
x[0][0] = 100
assert y[0][0] == 100""",
        {"T3": 6, "T17": 7, "T4": 10},
    ),
    Part(
        "A view that is refused",
        """\
x = torch.tensor([[1., 2, 3], [4, 5, 6]])
y = x.transpose(1, 0)
assert not y.is_contiguous()
try:
    y.view(2, 3)
    assert False
except RuntimeError as e:
    assert "view size is not compatible with input tensor's size and stride" in str(e)
y = x.transpose(1, 0).contiguous().view(2, 3)
assert not same_storage(x, y)""",
        {"T5": 5, "T18": 5, "T6": 9},
    ),
    Part(
        "Element by element",
        """\
x = torch.tensor([1, 4, 9])
assert torch.equal(x.pow(2), torch.tensor([1, 16, 81]))
assert torch.equal(x.sqrt(), torch.tensor([1, 2, 3]))
assert torch.equal(x / 0.5, torch.tensor([2, 8, 18]))
x = torch.ones(3, 3).triu()
assert torch.equal(x, torch.tensor([[1, 1, 1], [0, 1, 1], [0, 0, 1]]))""",
        {"C2": 2, "T12": 5},
    ),
    Part(
        "A batch of products",
        """\
x = torch.ones(4, 8, 16, 32)
w = torch.ones(32, 2)
y = x @ w
assert y.size() == torch.Size([4, 8, 16, 2])""",
        {"T13": 3},
    ),
    Part(
        "Named dimensions",
        """\
x: Float[torch.Tensor, 'batch seq1 hidden'] = torch.ones(2, 3, 4)
y: Float[torch.Tensor, 'batch seq2 hidden'] = torch.ones(2, 3, 4)
z = einsum(x, y, 'batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2')
z = einsum(x, y, '... seq1 hidden, ... seq2 hidden -> ... seq1 seq2')""",
        {"T14": 1, "T11": 3},
    ),
    Part(
        "Splitting and joining heads",
        """\
x: Float[torch.Tensor, 'batch seq total'] = torch.ones(2, 3, 8)
w: Float[torch.Tensor, 'hidden1 hidden2'] = torch.ones(4, 4)
x = rearrange(x, '... (heads hidden1) -> ... heads hidden1', heads=2)
x = einsum(x, w, '... hidden1, hidden1 hidden2 -> ... hidden2')
x = rearrange(x, '... heads hidden2 -> ... (heads hidden2)')
y = reduce(x, '... hidden -> ...', 'sum')""",
        {"T10": 3},
    ),
    Part(
        "A product to count",
        """\
if torch.cuda.is_available():
    B = 16384
    D = 32768
    K = 8192
else:
    B = 1024
    D = 256
    K = 64
x = torch.ones(B, D)
w = torch.randn(D, K)
y = x @ w
y.shape""",
        {"C1": 11},
    ),
    Part(
        "A gradient by hand",
        """\
x = torch.tensor([1., 2, 3])
w = torch.tensor([1., 1, 1], requires_grad=True)
pred_y = x @ w
loss = 0.5 * (pred_y - 5).pow(2)
loss.backward()
assert loss.grad is None
assert pred_y.grad is None
assert x.grad is None
assert torch.equal(w.grad, torch.tensor([1, 2, 3]))""",
        {"M12": 9},
    ),
    Part(
        "Gradients of two layers",
        """\
B, D, K = 8, 4, 2
x = torch.ones(B, D)
w1 = torch.randn(D, D, requires_grad=True)
w2 = torch.randn(D, K, requires_grad=True)
h1 = x @ w1
h2 = h1 @ w2
loss = h2.pow(2).mean()
h1.retain_grad()
h2.retain_grad()
loss.backward()
assert w2.grad.size() == torch.Size([D, K])
assert h1.grad.size() == torch.Size([B, D])
assert h2.grad.size() == torch.Size([B, K])""",
        {"C4": 10, "C5": 12},
    ),
    Part(
        "Parameters and their scale",
        """\
input_dim, output_dim = 64, 32
w = nn.Parameter(torch.randn(input_dim, output_dim))
assert isinstance(w, torch.Tensor)
assert type(w.data) == torch.Tensor
x = nn.Parameter(torch.randn(input_dim))
output = x @ w
assert output.size() == torch.Size([output_dim])
text(f'each element is {output[0]}')
w = nn.Parameter(torch.randn(input_dim, output_dim) / np.sqrt(input_dim))
w = nn.Parameter(nn.init.trunc_normal_(torch.empty(input_dim, output_dim), std=1 / np.sqrt(input_dim), a=-3, b=3))""",
        {"M10": 9},
    ),
    Part(
        "Initialisers",
        """\
w = torch.empty(4, 8)
nn.init.xavier_uniform_(w)
nn.init.kaiming_normal_(w, nonlinearity='relu')
nn.init.zeros_(w)
assert (w == 0).all()""",
        {"M10": 2},
    ),
    Part(
        "Seeds",
        """\
seed = 0
torch.manual_seed(seed)
import numpy as np
np.random.seed(seed)
import random
random.seed(seed)
x = torch.randn(2)
assert x[0] > 1.54""",
        {"M11": 2},
    ),
    Part(
        "A batch of tokens",
        """\
data = torch.arange(10)
B, L = 2, 4
starts = torch.randint(len(data) - L, (B,))
x = torch.stack([data[s:s + L] for s in (0, 3)])
assert x.size() == torch.Size([B, L])""",
        {"M9": 1},
    ),
    Part(
        "Two steps of SGD",
        """\
w = torch.ones(3, requires_grad=True)
for step in range(2):
    loss = (w * 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
assert w.grad is None""",
        {"M5": 6},
    ),
    Part(
        "A step of AdaGrad",
        """\
w = nn.Parameter(torch.ones(3))
(w * 3).sum().backward()
grad = w.grad.data
g2 = torch.zeros_like(grad)
g2 += torch.square(grad)
w.data -= 0.1 * grad / torch.sqrt(g2 + 1e-5)""",
        {"M14": 5},
    ),
)
