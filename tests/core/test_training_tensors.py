"""The tensors of a model: their sum is its parameter count, their shapes are those that transformers builds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM

from core.models.catalog import CatalogModel, catalog
from core.models.configs.config import from_hf_config
from core.models.parameters import parameters
from core.training.trained import tensors_of
from tests.core.models_oracle import DENSE, MIXTURES, STATES, config_of
from tests.every import every

SMALL = {**DENSE, **MIXTURES, **STATES}
APART = (
    *("llama", "llama, biases", "qwen2", "qwen3", "gemma2", "gemma3_text", "olmo2", "opt", "opt, narrow table"),
    *("starcoder2", "cohere", "apertus", "qwen2_moe", "olmoe", "deepseek_v2, lite", "deepseek_v3", "gpt_oss"),
    *("mamba", "mamba, biases", "mamba2", "mamba2, biases", "jamba, biases", "jamba, one expert"),
)
"""Families whose projections transformers keeps apart, but for those of experts."""


@every("model", catalog(), ids=lambda m: m.name)
def test_tensors_add_up_to_the_parameters(model: CatalogModel) -> None:
    found = tensors_of(model.spec)
    assert sum(tensor.elements for tensor in found) == parameters(model.spec).total
    assert all(tensor.columns == 1 for tensor in found if tensor.kind == "vector")
    assert len({tensor.name for tensor in found}) == len(found)


@every("name", SMALL)
@every("mtp", [False, True])
def test_tensors_of_every_family_add_up(name: str, mtp: bool) -> None:
    spec = from_hf_config(config_of(name, SMALL[name]).to_json_string(), mtp=mtp)
    assert sum(tensor.elements for tensor in tensors_of(spec)) == parameters(spec).total


def built_shapes(name: str) -> Iterator[tuple[int, int]]:
    """Rows and columns of each tensor as transformers builds it, stacks of experts taken apart."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(name, SMALL[name]))
    for key, tensor in model.named_parameters():
        if ".experts." not in key:
            yield (tensor.shape[0], tensor.numel() // tensor.shape[0])
            continue
        count, *shape = tensor.shape  # gate and up in one, across whichever side; biases as well
        parts = 2 if "gate_up" in key else 1
        if len(shape) == 1:
            yield from [(shape[0] // parts, 1)] * count * parts
            continue
        width, hidden = sorted(shape, key=lambda n: n == model.config.hidden_size)
        width //= parts
        yield from [(hidden, width) if "down" in key else (width, hidden)] * count * parts


@every("name", APART)
def test_shapes_are_those_that_transformers_builds(name: str) -> None:
    found: Counter[tuple[int, int]] = Counter()
    for tensor in tensors_of(from_hf_config(config_of(name, SMALL[name]).to_json_string())):
        found[tensor.rows, tensor.columns] += tensor.count
    assert found == Counter(built_shapes(name))
