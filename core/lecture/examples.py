# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false
"""Code that shows a claim or a counterexample, a few lines each.

The body of each function is what a page shows and a reader copies. ``print`` collects its output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Show: TypeAlias = Callable[..., None]
"""A replacement of ``print``."""


def kilobytes(print: Show) -> None:
    print(1024**2 / 1000**2, "MB in a MiB")
    print(80e9 / 1024**3, "GiB in 80 GB")


def copies_compute_nothing(print: Show) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.zeros(32, 32)
    with FlopCounterMode(display=False) as counter:
        y = x.t().reshape(-1)
    print(y.nbytes, "bytes copied,", counter.get_total_flops(), "FLOPs")


def matrix_of_gpt3(print: Show) -> None:
    size = 4 * 12_288 * 12_288 * 4
    print(size / 2**20, "MiB")
    print(size / 2**30, "GiB,", size / 1e9, "GB")


def bytes_are_no_compute(print: Show) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        x = torch.zeros(32, 32)
    print(x.nbytes, "bytes,", counter.get_total_flops(), "FLOPs")


def fp8_is_two_fixed_formats(print: Show) -> None:
    import torch

    x = torch.tensor([0.003, 0.3, 300.0])
    print("E4M3", x.to(torch.float8_e4m3fn).float().tolist())
    print("E5M2", x.to(torch.float8_e5m2).float().tolist())
    print("E4M3, scaled", (x / 0.7).to(torch.float8_e4m3fn).float().mul(0.7).tolist())


def attention_under_autocast(print: Show) -> None:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q = torch.randn(1, 2, 8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        print("scores", (q @ q.transpose(-2, -1)).dtype)
        print("attention", scaled_dot_product_attention(q, q, q).dtype)


def precision_of_bf16(print: Show) -> None:
    import torch

    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        print(dtype, torch.finfo(dtype).eps, torch.finfo(dtype).max)


def which_index_which_stride(print: Show) -> None:
    import torch

    m = torch.arange(6).view(2, 3)
    row, column = 1, 2
    print(m[row, column].item(), row * m.stride(0) + column * m.stride(1), row * m.stride(1) + column * m.stride(0))


def view_without_contiguity(print: Show) -> None:
    import torch

    x = torch.arange(24).view(4, 6)[:, ::2]
    print(x.is_contiguous(), x.view(-1).shape, x.view(-1).stride())


def stride_is_a_method(print: Show) -> None:
    import torch

    x = torch.zeros(4, 4)
    print(x.stride(), x.stride(0))
    try:
        print(x.stride[0])
    except TypeError as refused:
        print("TypeError:", refused)


def most_operations_are_new(print: Show) -> None:
    import torch

    x = torch.arange(6.0).view(2, 3)
    made = {"x + x": x + x, "exp": x.exp(), "x @ x.T": x @ x.T, "sum": x.sum(), "x.T": x.T, "x[0]": x[0]}
    for name, y in made.items():
        shared = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        print(name, "shares storage" if shared else "is new")


def a_transpose_works_nearly_everywhere(print: Show) -> None:
    import torch

    x = torch.arange(6.0).view(2, 3).t()
    print(x.is_contiguous(), (x + 1).shape, (x @ x.t()).shape, x.softmax(-1).shape, x.reshape(6).shape)
    try:
        x.view(6)
    except RuntimeError as refused:
        print(str(refused).partition(" (")[0])


def views_that_slice_nothing(print: Show) -> None:
    import torch

    x = torch.arange(6).view(2, 3)
    for y in (x.t(), x.view(3, 2), x.unsqueeze(0), x.expand(4, 2, 3), x[:, 1]):
        print(tuple(y.shape), y.stride(), y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr())


def backward_of_two_layers(print: Show) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    B, D, K = 8, 4, 2
    x, w1, w2 = torch.ones(B, D), torch.ones(D, D, requires_grad=True), torch.ones(D, K, requires_grad=True)
    loss = (x @ w1 @ w2).pow(2).mean()
    with FlopCounterMode(display=False) as counter:
        loss.backward()
    print(counter.get_total_flops(), "=", 4 * B * D * K, "of w2 +", 2 * B * D * D, "of w1")


def indices_of_a_gradient(print: Show) -> None:
    import torch

    h1, w2 = torch.randn(5, 4, requires_grad=True), torch.randn(4, 3)
    above = torch.randn(5, 3)
    (h1 @ w2).backward(above)
    print(torch.allclose(h1.grad, torch.einsum("jk,ik->ij", w2, above), atol=1e-6), "with w2[j, k]")
    print(f"w2[i, j] has {w2.shape[0]} rows for i; h1 has {h1.shape[0]}")


def attention_beside_width(print: Show) -> None:
    H = 12_288
    for N in (2_048, 32_768, 6 * H):
        print(f"{N:,} tokens: attention is {12 * N * H / (72 * H**2):.3g} of the other FLOPs, N / P {N / 175e9:.1e}")


def tensor_cores_multiply_more(print: Show) -> None:
    from core.hardware.accelerators import find

    h100 = find("H100 SXM")
    for units, dtypes in (("tensor cores", ("bf16", "tf32", "fp64_tensor")), ("CUDA cores", ("fp32", "fp64"))):
        for dtype in dtypes:
            print(units, dtype.partition("_")[0], round(h100.peak(dtype) / 1e12, 1), "TFLOP/s")


def head_takes_two_each(print: Show) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    embedding, head = torch.nn.Embedding(1_000, 64), torch.nn.Linear(64, 1_000, bias=False)
    token = torch.tensor([7])
    for table, given in ((embedding, token), (head, embedding(token))):
        with FlopCounterMode(display=False) as counter:
            table(given)
        print(type(table).__name__, counter.get_total_flops() / table.weight.numel(), "FLOPs per parameter")


def tensor_core_of_h100(print: Show) -> None:
    peak, cores, clock = 989.4e12, 528, 1.83e9
    per_clock = peak / (2 * cores * clock)
    print(round(per_clock), "multiply-adds per clock and tensor core;", 4 * 4 * 4, "in a 4 × 4 × 4 matmul")


def flop_of_gpt3(print: Show) -> None:
    for parameters in (174_604_259_328, 175e9):
        flop = 6 * parameters * 300e9
        print(f"{parameters:,.0f} parameters: {flop:.3g} FLOP; the notes’ 3.13e+23 is {3.13e23 / flop - 1:+.2%} off")


def one_to_two_to_three(print: Show) -> None:
    forward, weight_gradient, input_gradient = (2 * 1024 * 256 * 64,) * 3
    backward = weight_gradient + input_gradient
    print(forward / forward, ":", backward / forward, ":", (forward + backward) / forward)


def mfu_without_communication(print: Show) -> None:
    from core.hardware.accelerators import best_matmul, find

    for name in ("A100 SXM 80 GB", "H100 SXM", "H200 SXM"):
        if best_matmul(name, "bf16").measured:
            print(name, "alone:", f"{best_matmul(find(name).name, 'bf16').share:.1%} of its peak")


def first_step_of_adam(print: Show) -> None:
    import torch

    for gradient in (4.0, 0.004):
        w = torch.ones(1, requires_grad=True)
        w.grad = torch.tensor([gradient])
        torch.optim.Adam([w], lr=0.1).step()
        print("gradient", gradient, "leads from 1 to", round(w.item(), 4))


def steps_along_two_slopes(print: Show) -> None:
    import torch

    for kind, rate in ((torch.optim.SGD, 0.001), (torch.optim.RMSprop, 0.01)):
        w = torch.ones(2, requires_grad=True)
        w.grad = torch.tensor([100.0, 1.0])
        kind([w], lr=rate).step()
        print(kind.__name__, [round(1 - x, 4) for x in w.tolist()])


def adagrad_sums(print: Show) -> None:
    import torch

    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adagrad([w], lr=0.1)
    for _ in range(3):
        w.grad = torch.tensor([2.0])
        optimizer.step()
        print(optimizer.state[w]["sum"].item())


def only_adamw_decays(print: Show) -> None:
    import torch

    for kind in (torch.optim.Adam, torch.optim.AdamW):
        w = torch.ones(1, requires_grad=True)
        w.grad = torch.zeros(1)
        kind([w], lr=0.1).step()
        print(kind.__name__, w.item())


def sign_and_size(print: Show) -> None:
    import torch

    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    for gradient in (1.0, -1.0, 1.0, -1.0):
        w.grad = torch.tensor([gradient])
        optimizer.step()
    state = optimizer.state[w]
    print("first", round(state["exp_avg"].item(), 4), "second", round(state["exp_avg_sq"].item(), 6))


def memmap_of_an_npy(print: Show) -> None:
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/data.npy", np.arange(4, dtype=np.uint16))
        print("memmap", np.memmap(f"{folder}/data.npy", dtype=np.int32, mode="r")[:2])
        print("load", np.load(f"{folder}/data.npy", mmap_mode="r"))


def memmap_of_tokens(print: Show) -> None:
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        np.arange(50_000, dtype=np.uint16).tofile(f"{folder}/tokens.bin")
        tokens = np.memmap(f"{folder}/tokens.bin", dtype=np.uint16, mode="r")
        print(tokens.nbytes, "bytes on disk; token 123 is", tokens[123])


def growing_with_width(print: Show) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    for width in (64, 1_024, 16_384):
        outputs = rng.standard_normal(width) @ rng.standard_normal((width, 256))
        print(width, round(outputs.std(), 1), round((outputs / width**0.5).std(), 2))


def three_seeds(print: Show) -> None:
    import random

    import numpy as np
    import torch

    for name, draw in {"random": random.random, "numpy": np.random.rand, "torch": torch.rand(1).uniform_}.items():
        twice = [(torch.manual_seed(0), float(draw()))[1] for _ in range(2)]
        print(name, "repeats" if twice[0] == twice[1] else "does not")


def gradient_by_hand(print: Show) -> None:
    import torch

    x, w = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
    predicted = x @ w
    loss = 0.5 * (predicted - 5) ** 2
    loss.backward()
    print(w.grad, x.grad, predicted.requires_grad, predicted.is_leaf)
