"""Public ``config.json`` files of 2025 and 2026: each is laid out, with the parameters that are built and printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.models.building.events import Built, BuiltPart, laid_out
from core.models.configs.config import read_hf_config
from core.models.configs.custom import about_built
from core.models.configs.families import FAMILIES
from core.models.counts_only import CountedModel
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.models.spec import TransformerSpec
from core.models.spec_text import EXAMPLE, read_spec, write_spec
from core.planning.estimate import estimate
from core.planning.plan import OWN_SHAPE, Plan
from core.serving.cache import cache_of
from tests.core.models_oracle import public_configs
from tests.every import every

CONFIGS = public_configs()


@every("row", CONFIGS, lambda row: row["name"])
def test_every_public_config_is_laid_out(row: dict[str, Any]) -> None:
    """All of it: as printed where a name or a card prints it, with every formula, and through the text of a link."""
    read = read_hf_config(row["config"])
    counts = parameters(read.spec)
    assert counts.total == row["parameters"]
    if row["printed"]:
        assert counts.total == pytest.approx(1e9 * row["printed"], rel=0.03)
    if row["printed_active"]:
        assert counts.active == pytest.approx(1e9 * row["printed_active"], rel=0.11)
    assert not read.spec.unmodelled
    assert read_spec(write_spec(read.spec)) == read.spec
    assert all(part.explain().value == pytest.approx(part.total) for part in counts.components)
    assert all(part.explain().value == pytest.approx(part.flop) for part in flops_per_token(read.spec, 8192).parts)
    assert float(cache_of(read.spec).bytes(8192)) > 0


@pytest.mark.long
@every("row", [row for row in CONFIGS if row["built"]], lambda row: row["name"])
def test_transformers_builds_as_many_parameters(row: dict[str, Any]) -> None:
    outer: dict[str, Any] = row["config"]
    tied = {"tie_word_embeddings": outer["tie_word_embeddings"]} if "tie_word_embeddings" in outer else {}
    values = {**tied, **outer["text_config"]} if "text_config" in outer else outer
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[values["model_type"]].from_dict(values))
    assert sum(parameter.numel() for parameter in model.parameters()) == row["parameters"]


@pytest.mark.long
@every("row", CONFIGS, lambda row: row["name"])
def test_every_public_config_has_days_and_memory(row: dict[str, Any]) -> None:
    shape = write_spec(read_hf_config(row["config"]).spec)
    plan = Plan(model=OWN_SHAPE, shape=shape, tokens=1e12, accelerator="B200", accelerators=2048)
    run = estimate(plan)
    assert 0 < run.middle.steps_days <= run.middle.days


def test_every_family_without_a_small_model_is_among_them() -> None:
    read = {read_hf_config(row["config"]).family for row in CONFIGS}
    assert {FAMILIES[name].name for name in ("deepseek_v4", "minimax_m3", "step3p5", "mimo", "nemotron-nas")} <= read


def _built(spec: TransformerSpec, beyond: int = 0) -> CountedModel:
    counts = parameters(spec)
    flop = {n: int(n * flops_per_token(spec, n, "eager").forward) for n in (6, 12, 24)}
    return CountedModel("LlamaForCausalLM", "transformers", counts.total + beyond, counts.active + beyond, flop)


def _ran(shape: str, total: int, active: int, flop: int = 0) -> Built:
    known = _built(read_spec(EXAMPLE))
    parts = (BuiltPart("model", known.total + total, known.active + active),)
    flops = {n: value + flop for n, value in known.flop.items()}
    return Built("X", "transformers", parts, True, flops, "", shape, "", (), ())


def test_what_ran_is_a_shape_only_with_the_active_parameters_and_flops_of_the_built_model() -> None:
    spec = read_spec(EXAMPLE)
    assert laid_out(_ran(EXAMPLE, 0, 0)) == laid_out(_ran(EXAMPLE, 7, 0)) == spec
    wider = write_spec(replace(spec, heads=16, head_dim=256))
    for built in (
        _ran(EXAMPLE, -1, -1),
        _ran(EXAMPLE, 1, 1),
        _ran(EXAMPLE, 0, 0, 2),
        _ran(wider, 0, 0),
        _ran("", 0, 0),
    ):
        assert laid_out(built) is None


def test_a_shape_is_compared_with_the_model_that_was_built() -> None:
    spec = read_spec(EXAMPLE)
    said = [about_built(spec, _built(spec, beyond)) for beyond in (0, 5, -5)]
    assert [one.id for one in said] == ["shape.built_same", "shape.built_more", "shape.built_fewer"]
    assert said[1].values["total"] == parameters(spec).total + 5
