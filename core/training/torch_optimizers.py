"""The optimizers of torch.optim by the names that Napkin has for them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

MOMENTUM = 0.9
"""What momentum is where it is asked for; torch has no default for it."""

IN_TORCH: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "SGD": ("SGD", {}),
        "SGD momentum": ("SGD", {"momentum": MOMENTUM}),
        "SGD Nesterov": ("SGD", {"momentum": MOMENTUM, "nesterov": True}),
        "AdaGrad": ("Adagrad", {}),
        "RMSProp": ("RMSprop", {}),
        "RMSProp centered": ("RMSprop", {"centered": True}),
        "RMSProp momentum": ("RMSprop", {"momentum": MOMENTUM}),
        "RMSProp centered+momentum": ("RMSprop", {"momentum": MOMENTUM, "centered": True}),
        "Adadelta": ("Adadelta", {}),
        "Adam": ("Adam", {}),
        "AdamW": ("AdamW", {}),
        "AMSGrad": ("Adam", {"amsgrad": True}),
        "NAdam": ("NAdam", {}),
        "RAdam": ("RAdam", {}),
        "Adamax": ("Adamax", {}),
        "ASGD": ("ASGD", {}),
        "Rprop": ("Rprop", {}),
    }
)
"""Name → class in torch.optim, and what makes it that optimizer."""


def torch_optimizer(name: str, parameters: list[Any], **options: Any) -> Any:
    """The optimizer ``name`` of torch.optim over ``parameters``; raises ``KeyError`` where torch has none."""
    text, own = IN_TORCH[name]
    return getattr(importlib.import_module("torch.optim"), text)(parameters, **{**own, **options})
