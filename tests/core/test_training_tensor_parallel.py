"""What PyTorch's tensor and loss parallelism hold at most on one rank, against the account: a world of fake ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu
from torch.testing._internal.distributed.fake_pg import FakeStore

from core.models.catalog import CATALOG
from core.training.activations.stage import StepSettings, stage_activation_bytes
from core.training.activations.tensors import FUSED_DTENSOR
from core.training.layout import Layout
from tests.core.test_training_peak_torch import Live

TOKENS, HIDDEN, HEAD = 2048, 128, 8
WHOLE = 2 * TOKENS * HIDDEN
"""Bytes of one vector of the hidden width for every token."""


@contextmanager
def ranks(count: int) -> Iterator[DeviceMesh]:
    """A world of so many ranks in which this process is the first, and collectives move nothing."""
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
    try:
        yield init_device_mesh("cpu", (count,))
    finally:
        distributed.destroy_process_group()


class LocalLive(Live):
    """Of distributed tensors, the operations on their local parts."""

    def hold(self, tensor: torch.Tensor) -> None:
        if type(tensor) is torch.Tensor and tensor.device.type == "cpu":
            super().hold(tensor)

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented
        return super().__torch_dispatch__(op, types, args, kwargs)


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (torch.nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            made.view(1, TOKENS, -1, HEAD).transpose(1, 2) for made in (self.wq(x), self.wk(x), self.wv(x))
        )
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(1, TOKENS, -1))


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = (torch.nn.Linear(HIDDEN, 4 * HIDDEN, bias=False) for _ in range(2))
        self.w2 = torch.nn.Linear(4 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(silu(self.w1(x)) * self.w3(x))


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = torch.nn.RMSNorm(HIDDEN), torch.nn.RMSNorm(HIDDEN)
        self.attention, self.feed_forward = Attention(), Network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


_SCATTERED, _WHOLE = (Shard(1),), (Replicate(),)
PLAN = {
    **dict.fromkeys(("attention_norm", "ffn_norm"), SequenceParallel()),
    **dict.fromkeys(
        ("attention", "feed_forward"),
        PrepareModuleInput(input_layouts=_SCATTERED, desired_input_layouts=_WHOLE),
    ),
    **dict.fromkeys(
        ("attention.wq", "attention.wk", "attention.wv", "feed_forward.w1", "feed_forward.w3"), ColwiseParallel()
    ),
    **dict.fromkeys(("attention.wo", "feed_forward.w2"), RowwiseParallel(output_layouts=Shard(1))),
}
"""What torchtitan does to a layer."""


def peak_of_layer(count: int) -> float:
    """The most that forward and backward of a layer hold on one of so many ranks, in vectors of the hidden width."""
    with ranks(count) as mesh:
        layer = parallelize_module(Layer().bfloat16(), mesh, PLAN, src_data_rank=None)
        x = torch.randn(1, TOKENS // count, HIDDEN).bfloat16().requires_grad_()
        with LocalLive() as live:
            layer(x).sum().backward()
    return live.peak / WHOLE


def test_sequence_parallelism_has_so_many_vectors_whole() -> None:
    """What the ranks divide falls with their number, and what is left over is whole on each."""
    fewer, more = peak_of_layer(8), peak_of_layer(16)
    assert 2 * more - fewer == pytest.approx(FUSED_DTENSOR.gathered, abs=0.2)


def test_loss_parallelism_holds_what_is_counted() -> None:
    spec, vocab, count = CATALOG["Llama 3.1 8B"].spec, 2048, 4
    with ranks(count) as mesh:
        targets = torch.randint(0, vocab, (TOKENS,))
        local = torch.randn(TOKENS, vocab // count).bfloat16()
        logits = DTensor.from_local(local, mesh, [Shard(1)], run_check=False).requires_grad_()
        with loss_parallel(), LocalLive() as live:
            cross_entropy(logits.float(), targets).backward()
    layout = Layout(tensor=count, data=1)
    counted = stage_activation_bytes(spec, layout, StepSettings(TOKENS, FUSED_DTENSOR)).logits * (vocab / spec.vocab)
    assert live.peak == pytest.approx(float(counted), rel=0.02)
