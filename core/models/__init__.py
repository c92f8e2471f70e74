"""Transformer models: what they are made of, how many parameters that is, and how many FLOPs a token costs."""

from core.models.catalog import CATALOG, CatalogModel, catalog, model_named
from core.models.flops import FlopCount, flops_per_token, train_flop_6nd
from core.models.parameters import ParameterCount, parameters
from core.models.spec import Experts, LatentAttention, SlidingWindow, SpecError, TransformerSpec

__all__ = [
    "CATALOG",
    "CatalogModel",
    "Experts",
    "FlopCount",
    "LatentAttention",
    "ParameterCount",
    "SlidingWindow",
    "SpecError",
    "TransformerSpec",
    "catalog",
    "flops_per_token",
    "model_named",
    "parameters",
    "train_flop_6nd",
]
