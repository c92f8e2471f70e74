"""Memory that published runs read off an accelerator, beside what the account says of the same layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.step_time.calibration.measured_steps import StepRun, memory_runs
from core.step_time.calibration.sources import Reading
from core.training.device.buffers import MEASURED, TENSORS_ONLY, Runtime
from core.training.device.memory import DeviceMemory, memory_per_device
from core.training.optimizers import find_optimizer
from core.training.precision import BF16, PrecisionPolicy, find_policy

_RUNTIME: Mapping[Reading, Runtime] = {
    "process": MEASURED,
    "reserved": Runtime(context=0.0, communicator=0.0),
    "tensors": TENSORS_ONLY,
}
_POLICY: Mapping[Reading, PrecisionPolicy] = {
    # BigScience: going from one to two replicas freed 16 bytes per parameter, which is all but 2 + 2 in 16 bits.
    "process": find_policy("mixed fp16, fp32 copies of both"),
    # torchtitan: fp32 shards, which FSDP casts as it gathers them, so that all activations are in bf16.
    "reserved": replace(find_policy("fp32, bf16 autocast"), saved=BF16),
    "tensors": find_policy("mixed bf16, fp32 master, fp32 gradients"),
}


def account(run: StepRun) -> DeviceMemory:
    """What the account says of the fullest stage of a run whose memory was read."""
    return memory_per_device(
        run.spec,
        run.layout,
        policy=find_policy(run.policy) if run.policy else _POLICY[run.reading],
        optimizer=find_optimizer("AdamW"),
        seq_len=run.seq_len,
        implementation=run.implementation,
        runtime=_RUNTIME[run.reading],
        trained=run.trained,
    )


def memory_ratios() -> Mapping[StepRun, float]:
    """Every published reading with what the account says of it, over what was read."""
    return {run: float(account(run).total) / run.memory_bytes for run in memory_runs()}
