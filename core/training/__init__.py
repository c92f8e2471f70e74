"""Training memory: precision policies, optimizers, layouts, and what one accelerator has to hold."""

from core.training.costs import StepCost, step_cost
from core.training.device.account import DeviceMemory, bytes_over, memory_over, memory_per_device
from core.training.device.alone import largest_model
from core.training.device.buffers import TENSORS_ONLY, Runtime
from core.training.device.given import States, Step, states_of, usual
from core.training.device.peak import StepCurve, through_one_step
from core.training.fit import largest_micro_batch, largest_of_family, largest_seq_len
from core.training.layout import Layout, LayoutError, Recompute, allowed, check
from core.training.memory import (
    Saved,
    StateBytes,
    bytes_per_parameter,
    checkpoint_bytes,
    saved_per_parameter,
    state_bytes,
    states_per_parameter,
    token_bytes,
    token_width,
)
from core.training.optimizer_state import ModelState, optimizer_bytes, optimizer_state_bytes
from core.training.optimizers import (
    HEADLINE,
    USUAL_OPTIMIZER,
    Optimizer,
    find_optimizer,
    headline,
    optimizers,
    row_names,
    why_not,
)
from core.training.policy_own import OwnPolicy, PolicyRow, own_like, policy_rows
from core.training.precision import POLICIES, STORAGE_TYPES, USUAL_POLICY, PrecisionPolicy, StorageType, find_policy
from core.training.setup import Setup
from core.training.tensors import ParameterTensor, tensors_of
from core.training.traffic import Traffic, traffic_per_step

__all__ = [
    "HEADLINE",
    "POLICIES",
    "STORAGE_TYPES",
    "TENSORS_ONLY",
    "USUAL_OPTIMIZER",
    "USUAL_POLICY",
    "DeviceMemory",
    "Layout",
    "LayoutError",
    "ModelState",
    "Optimizer",
    "OwnPolicy",
    "ParameterTensor",
    "PolicyRow",
    "PrecisionPolicy",
    "Recompute",
    "Runtime",
    "Saved",
    "Setup",
    "StateBytes",
    "States",
    "Step",
    "StepCost",
    "StepCurve",
    "StorageType",
    "Traffic",
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
    "own_like",
    "policy_rows",
    "row_names",
    "saved_per_parameter",
    "state_bytes",
    "states_of",
    "states_per_parameter",
    "step_cost",
    "tensors_of",
    "through_one_step",
    "token_bytes",
    "token_width",
    "traffic_per_step",
    "usual",
    "why_not",
]
