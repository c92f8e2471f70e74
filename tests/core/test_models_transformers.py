"""Counts against Hugging Face transformers: what it builds from a config, and what torch counts it doing."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import set_checkpoint_early_stop
from transformers import AutoModelForImageTextToText

from core.models.catalog import CatalogModel, catalog
from core.models.configs.config import NoClosedFormError, from_hf_config, read_hf_config
from core.models.configs.families import FAMILIES
from core.models.configs.json_text import ConfigError
from core.models.flops import flops_per_token
from core.models.mixer import Mixer
from core.models.parameters import parameters
from tests.core.models_oracle import (
    DENSE,
    MIXTURES,
    PUBLISHED_STATES,
    STATES,
    built,
    config_of,
    counted,
    parameter_count,
    published_config,
)

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quiet")]

ATTENDING = {**DENSE, **MIXTURES}
SMALL = {**ATTENDING, **STATES}
SEQ = 24
UNLIKE = {
    ("olmoe", "head_dim"),
    ("mimo_v2_flash", "swa_num_key_value_heads"),
    ("kimi_linear", "routed_expert_hidden_size"),
}
"""OLMoE of another head width is built, and fails at its first token. MiMo's file says what transformers fixes. Kimi K3
adds a key to Kimi Linear's that transformers does not read."""

RUNS_EVERY_EXPERT = {"llama4_text"}
"""Families whose implementation multiplies every expert and weighs those not chosen by zero."""


WHOLE = {"deepseek_v4", "minimax_m3", "step3p5", "mimo", "nemotron-nas", "bailing_moe", "bailing_moe_v2"}
"""Families that `tests.core.test_models_public_configs` tries at full size: a small one is not built, or not run, as an
ordinary decoder is."""


def test_every_family_is_tried() -> None:
    assert {name.partition(",")[0] for name in SMALL} == set(FAMILIES) - WHOLE


@pytest.mark.parametrize("model", catalog(), ids=lambda m: m.name)
def test_the_catalogue_at_full_size(model: CatalogModel) -> None:
    """The model's config through transformers and through us: one shape, one count, to the last parameter."""
    values = published_config(model)
    config = config_of(values.pop("model_type"), values)
    spec = from_hf_config(config.to_json_string())
    assert spec == model.spec
    counts = parameters(spec)
    assert counts.total == model.parameters == parameter_count(config)
    assert counts.active == model.active


@pytest.mark.parametrize("model", catalog(), ids=lambda m: m.name)
def test_a_bare_config_takes_the_familys_defaults(model: CatalogModel) -> None:
    assert from_hf_config(json.dumps(published_config(model))) == model.spec


@pytest.mark.parametrize("name", ATTENDING)
def test_small_models_of_every_family(name: str) -> None:
    """Parameters, and every FLOP of torch's counter forward and backward: all of the square, windows or not."""
    config = config_of(name, SMALL[name])
    model = built(config)
    spec = from_hf_config(config.to_json_string())
    assert parameters(spec).total == sum(parameter.numel() for parameter in model.parameters())
    if name.partition(",")[0] in RUNS_EVERY_EXPERT:
        assert spec.experts
        spec = replace(spec, experts=replace(spec.experts, per_token=spec.experts.count))
    ours = flops_per_token(spec, SEQ, "eager")
    # transformers does not train an indexer.
    frozen = sum(part.flop for part in ours.parts if part.id.startswith("index"))
    assert counted(model, SEQ) == (ours.forward * SEQ, (ours.backward - 2 * frozen) * SEQ)


def scanned(mixer: Mixer, seq: int, chunk: int) -> int:
    """FLOPs of torch's counter for the state of one layer as transformers moves it on, and for the convolution's ends.

    Mamba reads a state per token; the others pad to whole chunks and multiply within them and between them.
    """
    beyond = 2 * mixer.conv * (mixer.conv - 1) * (mixer.inner + mixer.pairs)
    if mixer.kind == "convolution":
        return beyond
    if mixer.kind == "mamba":
        return beyond + 2 * seq * mixer.inner * mixer.state
    chunks = -(-seq // chunk)
    n, p = mixer.state, mixer.width
    if mixer.kind == "mamba2":
        within, between = chunk * (n + p) + 2 * n * p, (chunks + 1) ** 2 * n * p
    else:
        within, between = chunk * (2 * n + p) + 3 * n * p, 0
    return beyond + 2 * mixer.heads * (chunks * chunk * within + between)


@pytest.mark.parametrize("name", STATES)
def test_small_models_with_a_state(name: str) -> None:
    """Parameters, and every FLOP of torch's counter forward, but for how the state is moved on.

    Backward torch counts a convolution of single channels as one across all of them.
    """
    config = config_of(name, STATES[name])
    model = built(config)
    spec = from_hf_config(config.to_json_string())
    assert parameters(spec).total == sum(parameter.numel() for parameter in model.parameters())
    ours = flops_per_token(spec, SEQ, "eager")
    scan = sum(part.flop for part in ours.parts if part.id == "scan")
    theirs = 0
    if mixer := spec.mixer:
        chunk = getattr(config, "mamba_chunk_size", 64)
        theirs = mixer.layers * scanned(mixer, SEQ, getattr(config, "chunk_size", chunk))
        each = {"convolution": 0, "delta": 8, "kda": 8}.get(mixer.kind, 7)
        assert scan == mixer.layers * each * mixer.inner * mixer.state
    assert counted(model, SEQ)[0] == (ours.forward - scan) * SEQ + theirs


@pytest.mark.parametrize("name", PUBLISHED_STATES)
def test_published_models_with_a_state(name: str) -> None:
    values, total, printed, active = PUBLISHED_STATES[name]
    read = read_hf_config({"model_type": name.partition(",")[0], **values})
    found = parameters(read.spec)
    assert found.total == total == parameter_count(config_of(name, values))
    assert found.total == pytest.approx(printed, rel=0.02)
    assert found.active == pytest.approx(active, rel=0.02)
    assert not read.unread


@pytest.mark.parametrize("name", SMALL)
def test_every_key_that_is_read_is_followed(name: str) -> None:
    """Each number of a config doubled, or set where the class leaves it open: as many parameters as are built then."""
    family, values = FAMILIES[name.partition(",")[0]], SMALL[name]
    whole: dict[str, Any] = json.loads(config_of(name, values).to_json_string())
    counts: dict[str, tuple[int, int]] = {}
    for key in (keys[0] for keys in family.keys.values()):
        outer, _, inner = key.rpartition(".")
        now = (whole.get(outer) or {}).get(inner) if outer else whole.get(inner)
        if isinstance(now, bool) or not isinstance(now, int | None) or (name, key) in UNLIKE:
            continue
        changed: dict[str, Any] = {inner: 2 if now is None else 2 * now}
        changed = {**values, **({outer: {**values.get(outer, {}), **changed}} if outer else changed)}
        with suppress(Exception):  # a shape that one of both refuses
            config = config_of(name, changed)
            spec = from_hf_config({"model_type": config.model_type, **changed})
            counts[key] = parameters(spec).total, parameter_count(config)
    assert len(counts) > 3
    assert not {key: both for key, both in counts.items() if both[0] != both[1]}


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - WHOLE))
def test_family_defaults(name: str) -> None:
    """A config that says nothing but its type."""
    needed: Mapping[str, Mapping[str, Any]] = {
        "deepseek_v2": {"num_experts_per_tok": 6},
        "dbrx": {"attn_config": {"rope_theta": 1e4}},
        "nemotron": {"num_key_value_heads": 8},
        "nemotron_h": {"hybrid_override_pattern": "MEM*E"},
        "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    }
    layers = {"gpt2": "n_layer", "bloom": "n_layer", "mpt": "n_layers", "dbrx": "n_layers", "gptj": "n_layer"}
    few = {layers.get(name, "num_hidden_layers"): 2, **needed.get(name, {})}
    spec = from_hf_config({"model_type": name, **few})
    assert parameters(spec).total == parameter_count(config_of(name, few))
    assert spec == from_hf_config(config_of(name, few).to_json_string())


@pytest.mark.parametrize(("early", "saved"), [(False, 0), (True, 1)])
@pytest.mark.parametrize("name", ["llama", "gpt_neox"])
def test_full_recomputation(name: str, early: bool, saved: int) -> None:
    """Every layer once more; torch stops early, before the last product, whose result nobody needs again."""
    config = config_of(name, SMALL[name])
    model = built(config)
    model.activation_checkpointing_enable({"use_reentrant": False})
    ours = flops_per_token(from_hf_config(config.to_json_string()), SEQ, "eager")
    down = next(part.flop for part in ours.parts if part.id == "down")
    with set_checkpoint_early_stop(early):
        forward, backward = counted(model, SEQ)
    assert forward + backward == (ours.training + ours.in_layers - saved * down) * SEQ


@pytest.mark.parametrize(
    "name", ["gemma3", "gemma4", "llava", "mistral3", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"]
)
def test_composites_are_read_for_their_text_model(name: str) -> None:
    config = config_of(name, {})
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    text = [p.numel() for n, p in model.named_parameters() if "language_model" in n or n.startswith("lm_head")]
    read = read_hf_config(config.to_json_string())
    assert parameters(read.spec).total == sum(text)
    assert any("text model" in note for note in read.notes)


def _defaults() -> list[dict[str, str]]:
    with (Path(__file__).parents[1] / "data" / "family_parameters.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", _defaults(), ids=lambda row: row["model_type"])
def test_the_default_of_every_family_is_exact_or_refused(row: dict[str, str]) -> None:
    """What transformers builds from each default config, kept by ``tests.tools.families``, or no number."""
    try:
        read = read_hf_config({"model_type": row["model_type"]})
    except NoClosedFormError:
        assert row["model_type"] not in FAMILIES or row["model_type"] == "nemotron_h", "one of its blocks stands alone"
        return
    except ConfigError:
        assert row["model_type"] == "deepseek_v2", "it does not say how many experts a token runs"
        return
    if read.part:
        assert any("text model" in note for note in read.notes)
    elif row["parameters"]:
        assert parameters(read.spec).total == int(row["parameters"])


@pytest.mark.parametrize("name", SMALL)
def test_keys_that_are_not_read_change_nothing(name: str) -> None:
    """Each number and switch of a config that is neither read nor named: changed, it builds as many parameters."""
    config = config_of(name, SMALL[name])
    values = json.loads(config.to_json_string())
    read = read_hf_config(values)
    assert set(read.unread) <= set(SMALL[name]) & set(DENSE["llama"]), "keys of our own that the family lacks"
    family = FAMILIES[name.partition(",")[0]]
    known = {key for keys in family.keys.values() for key in keys} | set(family.only)
    before = parameter_count(config)
    for key, value in values.items():
        if key in known or not isinstance(value, int | float) or key in ("num_labels", "model_type"):
            continue
        other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 0.5
        try:
            after = parameter_count(config_of(name, {**SMALL[name], key: other}))
        except Exception:  # noqa: S112 - a value that transformers refuses builds nothing else
            continue
        assert after == before, f"{key} = {other} builds {after:,} parameters instead of {before:,}"


def test_a_key_that_was_not_read_is_named() -> None:
    read = read_hf_config({"model_type": "llama", "num_experts": 8, "rope_theta": 1e6, "zork": [1], "unused": None})
    assert read.unread == ("num_experts", "zork")
