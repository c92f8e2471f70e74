"""Transformer models: what they are made of, how many parameters that is, and how many FLOPs a token costs."""

from core.models.catalog import CATALOG, CatalogModel, catalog, model_named
from core.models.configs.config import NoClosedFormError, ReadConfig, UnknownFamilyError, from_hf_config, read_hf_config
from core.models.configs.json_text import ConfigError
from core.models.flops import FlopCount, flops_per_token, train_flop_6nd
from core.models.mixer import Mixer
from core.models.parameters import ParameterCount, parameters
from core.models.spec import Experts, LatentAttention, SlidingWindow, SpecError, TransformerSpec

__all__ = [
    "CATALOG",
    "CatalogModel",
    "ConfigError",
    "Experts",
    "FlopCount",
    "LatentAttention",
    "Mixer",
    "NoClosedFormError",
    "ParameterCount",
    "ReadConfig",
    "SlidingWindow",
    "SpecError",
    "TransformerSpec",
    "UnknownFamilyError",
    "catalog",
    "flops_per_token",
    "from_hf_config",
    "model_named",
    "parameters",
    "read_hf_config",
    "train_flop_6nd",
]
