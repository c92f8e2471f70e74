"""Training memory: precision policies, optimizers, sharding, and the bytes of the model states."""

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
    "ZERO_1",
    "ZERO_2",
    "Optimizer",
    "PrecisionPolicy",
    "Sharding",
    "StateBytes",
    "StorageType",
    "TrainingMemory",
    "accelerators_filled",
    "account",
    "bytes_per_parameter",
    "checkpoint_bytes",
    "find_optimizer",
    "find_policy",
    "largest_model",
    "optimizer_bytes",
    "optimizers",
    "spare_bytes",
    "stage_sharding",
    "state_bytes",
    "states_per_parameter",
    "stored_per_parameter",
    "why_not",
]
