"""Training memory: precision policies, optimizers, sharding, and the bytes of the model states."""

from core.training.costs import StepCost, step_cost
from core.training.device.account import DeviceMemory, bytes_over, memory_over, memory_per_device
from core.training.device.buffers import TENSORS_ONLY, Runtime
from core.training.device.given import States, Step, states_of
from core.training.device.peak import StepCurve, through_one_step
from core.training.fit import largest_micro_batch, largest_of_family, largest_seq_len
from core.training.layout import Layout, LayoutError, Recompute, allowed, check
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
    token_bytes,
    token_width,
)
from core.training.optimizer_state import ModelState, optimizer_bytes, optimizer_state_bytes
from core.training.optimizers import HEADLINE, Optimizer, find_optimizer, headline, optimizers, row_names, why_not
from core.training.policy_own import PolicyRow, own_policy, policy_rows
from core.training.precision import POLICIES, STORAGE_TYPES, PrecisionPolicy, StorageType, find_policy
from core.training.setup import Setup
from core.training.sharding import REPLICATED, SHARDED, SHARDINGS, ZERO_1, ZERO_2, Sharding, stage_sharding
from core.training.tensors import ParameterTensor, tensors_of
from core.training.traffic import Traffic, traffic_per_step

__all__ = [
    "HEADLINE",
    "POLICIES",
    "REPLICATED",
    "SHARDED",
    "SHARDINGS",
    "STORAGE_TYPES",
    "TENSORS_ONLY",
    "ZERO_1",
    "ZERO_2",
    "DeviceMemory",
    "Layout",
    "LayoutError",
    "ModelState",
    "Optimizer",
    "ParameterTensor",
    "PolicyRow",
    "PrecisionPolicy",
    "Recompute",
    "Runtime",
    "Setup",
    "Sharding",
    "StateBytes",
    "States",
    "Step",
    "StepCost",
    "StepCurve",
    "StorageType",
    "Traffic",
    "TrainingMemory",
    "accelerators_filled",
    "account",
    "allowed",
    "bytes_over",
    "bytes_per_parameter",
    "check",
    "checkpoint_bytes",
    "find_optimizer",
    "find_policy",
    "headline",
    "largest_micro_batch",
    "largest_model",
    "largest_of_family",
    "largest_seq_len",
    "memory_over",
    "memory_per_device",
    "optimizer_bytes",
    "optimizer_state_bytes",
    "optimizers",
    "own_policy",
    "policy_rows",
    "row_names",
    "spare_bytes",
    "stage_sharding",
    "state_bytes",
    "states_of",
    "states_per_parameter",
    "step_cost",
    "stored_per_parameter",
    "tensors_of",
    "through_one_step",
    "token_bytes",
    "token_width",
    "traffic_per_step",
    "why_not",
]
