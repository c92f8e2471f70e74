"""Memory that published runs read off an accelerator, beside what the account says of the same layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from core.models.spec import TransformerSpec
from core.rows import read_rows, whole
from core.training.activations.tensors import FUSED, MEGATRON_GPT
from core.training.device.account import DeviceMemory, memory_per_device
from core.training.device.buffers import MEASURED, TENSORS_ONLY, Runtime
from core.training.layout import Layout, Recompute
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy

Reading: TypeAlias = Literal["process", "reserved", "tensors"]
"""What was read: all of a process, as the driver says; what the allocator reserved; a paper's sum of tensors."""

_GIB = 2.0**30
_GB = 1e9
_RUNTIME: Mapping[Reading, Runtime] = {
    "process": MEASURED,
    "reserved": Runtime(context=0.0, communicator=0.0),
    "tensors": TENSORS_ONLY,
}


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """One published reading, in bytes, and the layout it was taken under."""

    name: str
    reading: Reading
    measured: float
    spec: TransformerSpec
    layout: Layout
    seq_len: int
    source: str

    @property
    def predicted(self) -> DeviceMemory:
        """What the account says of the fullest stage."""
        return self.account(_RUNTIME[self.reading])

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted.total / self.measured

    def account(self, runtime: Runtime) -> DeviceMemory:
        """The account under another runtime."""
        gpt = not self.spec.glu
        # BigScience: going from one to two replicas freed 16 bytes per parameter, which is all but 2 + 2 in 16 bits.
        policies: Mapping[Reading, str] = {
            "process": "mixed fp16, fp32 copies of both",
            "reserved": "fp32, bf16 autocast",
            "tensors": "mixed bf16, fp32 master, fp32 gradients",
        }
        return memory_per_device(
            self.spec,
            self.layout,
            policy=find_policy(policies[self.reading]),
            optimizer=find_optimizer("AdamW"),
            seq_len=self.seq_len,
            implementation=MEGATRON_GPT if gpt else FUSED,
            runtime=runtime,
        )


@lru_cache(maxsize=1)
def measured_memory() -> tuple[MeasuredMemory, ...]:
    """Every row of ``training_runs.csv`` with a memory reading and a whole layout."""
    return tuple(_read(row) for row in read_rows("training_runs") if row["memory_gb_per_gpu"])


def _read(row: Mapping[str, str]) -> MeasuredMemory:
    gpt, estimate = row["architecture"] == "gpt", row["kind"] == "memory_estimate"
    reading: Reading = "tensors" if estimate else "process" if gpt else "reserved"
    heads, hidden, seq_len = whole(row["heads"]), whole(row["hidden"]), whole(row["seq_len"])
    spec = TransformerSpec(
        layers=whole(row["layers"]),
        hidden=hidden,
        heads=heads,
        kv_heads=whole(row["kv_heads"]),
        head_dim=hidden // heads,
        ffn=whole(row["ffn"]),
        vocab=whole(row["vocab"]),
        glu=not gpt,
        tied_head=gpt,
        norm="layernorm" if gpt else "rmsnorm",
        norm_vectors=2 if gpt else 1,
        attention_bias=gpt,
        output_bias=gpt,
        ffn_bias=gpt,
        position_rows=seq_len if gpt else 0,
    )
    how, split = row["recompute"], row["zero_fsdp"]
    pipeline, data = max(1, whole(row["pp"])), max(1, whole(row["dp"]))
    # torchtitan's pipelines cut a rank's batch into as many micro-batches as there are stages, if not told otherwise.
    micro = max(1, whole(row["micro_batch_size"]) // (1 if gpt else pipeline))
    batch = whole(row["global_batch_seqs"]) or micro * data * 4 * pipeline
    layout = Layout(
        tensor=max(1, whole(row["tp"])),
        pipeline=pipeline,
        interleave=max(1, whole(row["vpp"])),
        context=max(1, whole(row["cp"])),
        data=data,
        micro_batch=micro,
        micro_batches=max(1, batch // (data * micro)),
        zero=3 if "FSDP" in split else 1 if split == "ZeRO-1" else 0,
        sequence_parallel=int(not gpt or "SP" in how),
        recompute=_recompute(how),
    )
    unit = _GB if reading == "process" else _GIB
    measured = float(row["memory_gb_per_gpu"]) * unit
    return MeasuredMemory(row["model"], reading, measured, spec, layout, seq_len, row["source"])


def _recompute(how: str) -> Recompute:
    if how == "full":
        return Recompute.FULL
    if "per-op" in how:
        return Recompute.PER_OPERATION
    return Recompute.SELECTIVE if "selective" in how else Recompute.NONE
