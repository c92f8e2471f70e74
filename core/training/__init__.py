"""Training memory: precision policies, optimizers, sharding, and the bytes of the model states."""

from core.training.memory import (
    StateBytes,
    TrainingMemory,
    accelerators_filled,
    account,
    bytes_per_parameter,
    checkpoint_bytes,
    largest_model,
    spare_bytes,
    state_bytes,
    states_per_parameter,
    stored_per_parameter,
)
from core.training.optimizer_state import ModelState, optimizer_bytes, optimizer_state_bytes
from core.training.optimizers import HEADLINE, Optimizer, find_optimizer, headline, optimizers, row_names, why_not
from core.training.policy_own import PolicyRow, own_policy, policy_rows
from core.training.precision import POLICIES, STORAGE_TYPES, PrecisionPolicy, StorageType, find_policy
from core.training.sharding import REPLICATED, SHARDED, SHARDINGS, ZERO_1, ZERO_2, Sharding, find_sharding
from core.training.tensors import ParameterTensor, tensors_of

__all__ = [
    "HEADLINE",
    "POLICIES",
    "REPLICATED",
    "SHARDED",
    "SHARDINGS",
    "STORAGE_TYPES",
    "ZERO_1",
    "ZERO_2",
    "ModelState",
    "Optimizer",
    "ParameterTensor",
    "PolicyRow",
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
    "find_sharding",
    "headline",
    "largest_model",
    "optimizer_bytes",
    "optimizer_state_bytes",
    "optimizers",
    "own_policy",
    "policy_rows",
    "row_names",
    "spare_bytes",
    "state_bytes",
    "states_per_parameter",
    "stored_per_parameter",
    "tensors_of",
    "why_not",
]
