"""Training memory: precision policies, optimizers, sharding, and the bytes of the model states."""

from core.training.buffers import TENSORS_ONLY, Runtime
from core.training.device import DeviceMemory, States, memory_over, memory_per_device, states_of
from core.training.layout import Layout, LayoutError, Recompute, allowed, check
from core.training.memory import (
    StateBytes,
    TrainingMemory,
    accelerators_filled,
    account,
    bytes_per_parameter,
    checkpoint_bytes,
    largest_model,
    optimizer_bytes,
    spare_bytes,
    state_bytes,
    states_per_parameter,
    stored_per_parameter,
)
from core.training.optimizers import HEADLINE, Optimizer, find_optimizer, optimizers, why_not
from core.training.precision import POLICIES, PrecisionPolicy, StorageType, find_policy
from core.training.sharding import REPLICATED, SHARDED, SHARDINGS, ZERO_1, ZERO_2, Sharding, stage_sharding

__all__ = [
    "HEADLINE",
    "POLICIES",
    "REPLICATED",
    "SHARDED",
    "SHARDINGS",
    "TENSORS_ONLY",
    "ZERO_1",
    "ZERO_2",
    "DeviceMemory",
    "Layout",
    "LayoutError",
    "Optimizer",
    "PrecisionPolicy",
    "Recompute",
    "Runtime",
    "Sharding",
    "StateBytes",
    "States",
    "StorageType",
    "TrainingMemory",
    "accelerators_filled",
    "account",
    "allowed",
    "bytes_per_parameter",
    "check",
    "checkpoint_bytes",
    "find_optimizer",
    "find_policy",
    "largest_model",
    "memory_over",
    "memory_per_device",
    "optimizer_bytes",
    "optimizers",
    "spare_bytes",
    "stage_sharding",
    "state_bytes",
    "states_of",
    "states_per_parameter",
    "stored_per_parameter",
    "why_not",
]
