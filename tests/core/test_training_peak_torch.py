"""When a real step is fullest: its live storages from forward to update, against the account."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM

from core.models.configs.config import from_hf_config
from core.training.activations.tensors import HF_SDPA, LOGITS_KEPT, Loss
from core.training.device.buffers import TENSORS_ONLY
from core.training.device.host import foreach_update
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout, Recompute
from core.training.precision import POLICIES
from tests.core.memory_of import memory_per_device

pytestmark = pytest.mark.usefixtures("one_thread")

CONFIG = AutoConfig.for_model(
    "llama",
    vocab_size=2000,
    hidden_size=128,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=8,
    intermediate_size=352,
    tie_word_embeddings=False,
)
"""Its heads share no keys: where they do, kernels of a CPU and of CUDA keep different tensors in fp32."""
SEQUENCES, LENGTH = 4, 128


class Live(TorchDispatchMode):
    """Bytes of storages that are alive, and the most that there were with the phase in which that was."""

    def __init__(self) -> None:
        super().__init__()
        self._held: set[int] = set()
        self._now = self.peak = 0
        self.phase = self.when = ""

    def hold(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._held:
            return
        self._held.add(key)
        self._now += size
        weakref.finalize(storage, self._gone, key, size)
        if self._now > self.peak:
            self.peak, self.when = self._now, self.phase

    def _gone(self, key: int, size: int) -> None:
        self._held.remove(key)
        self._now -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, torch.Tensor):
                self.hold(leaf)
        return made


def measured(policy: str, accumulated: int, loss_kind: Loss = LOGITS_KEPT, *, recomputed: bool = False) -> Live:
    """A second step: the first one has made the optimizer's state."""
    dtype = torch.bfloat16 if policy == "bf16 throughout" else torch.float32
    model = AutoModelForCausalLM.from_config(CONFIG, attn_implementation="sdpa", dtype=dtype).train()
    if recomputed:
        model.activation_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    live = Live()

    def step() -> None:
        for i in range(accumulated):
            tokens = torch.randint(1, CONFIG.vocab_size, (SEQUENCES, LENGTH))
            live.phase = f"forward {i}"
            with torch.autocast("cpu", torch.bfloat16, enabled=POLICIES[policy].autocasts):
                logits = model(tokens, use_cache=False).logits
                loss = functional.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())
            if loss_kind != LOGITS_KEPT:
                del logits
            live.phase = f"backward {i}"
            loss.backward()
        live.phase = "update"
        optimizer.step()
        optimizer.zero_grad()

    step()
    states = [value for state in optimizer.state.values() for value in state.values()]
    for tensor in (*model.parameters(), *states):
        live.hold(tensor)
    with live:
        step()
    return live


def counted(policy: str, accumulated: int, loss: Loss = LOGITS_KEPT, recompute: int = 0) -> DeviceMemory:
    return memory_per_device(
        from_hf_config(CONFIG.to_json_string()),
        Layout(micro_batch=SEQUENCES, micro_batches=accumulated, recompute=recompute),
        policy=POLICIES[policy],
        seq_len=LENGTH,
        implementation=HF_SDPA,
        loss=loss,
        runtime=TENSORS_ONLY,
    )


@pytest.mark.parametrize("loss", [LOGITS_KEPT, "separate"])
@pytest.mark.parametrize("policy", ["bf16 throughout", "fp32, bf16 autocast"])
def test_layers_done_again_leave_no_casts_and_logits_go_where_nobody_keeps_them(policy: str, loss: Loss) -> None:
    """Of layers that keep nothing autocast's copies of weights are there until the loss is made, and no longer."""
    found, expected = measured(policy, 1, loss, recomputed=True), counted(policy, 1, loss, int(Recompute.FULL))
    assert expected.total == pytest.approx(found.peak, rel=0.03)


@pytest.mark.parametrize("policy", ["fp32", "bf16 throughout", "fp32, bf16 autocast"])
def test_gradients_are_there_at_the_loss_where_they_are_accumulated(policy: str) -> None:
    once, twice = measured(policy, 1), measured(policy, 2)
    assert (once.when, twice.when) == ("backward 0", "backward 1")  # where backward begins: at the loss
    one, two = counted(policy, 1), counted(policy, 2)
    assert twice.peak - once.peak == pytest.approx(two.total - one.total, rel=0.01)
    assert one.later == two.gradients == pytest.approx(two.total - one.total)
    assert one.total == pytest.approx(once.peak, rel=0.1)


def test_a_foreach_update_holds_the_roots_of_second_moments() -> None:
    """All at once beside weights, gradients and state; three of one tensor where they are updated one by one."""
    weights = [torch.randn(64, 32, requires_grad=True) for _ in range(8)]
    peaks: list[int] = []
    for foreach in (True, False):
        optimizer, live = torch.optim.AdamW(weights, foreach=foreach), Live()
        for weight in weights:
            weight.grad = torch.ones_like(weight)
            live.hold(weight)
            live.hold(weight.grad)
        with live:
            optimizer.step()
            optimizer.step()
        peaks.append(live.peak)
    size = sum(weight.nbytes for weight in weights)
    memory = DeviceMemory(size, size, 0, 2 * size, 0, 0, 0, 0, 0)
    assert peaks[0] == pytest.approx(foreach_update(memory).value, rel=0.01)
    assert peaks[1] == pytest.approx(memory.states + 3 * size / 8, rel=0.01)
