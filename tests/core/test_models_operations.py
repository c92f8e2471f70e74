"""The list of operations: a program that can run, named as in transformers, and one source of counts and formulas."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core.models.catalog import catalog
from core.models.configs.config import from_hf_config
from core.models.flops import flops_per_token
from core.models.mixer import Mixer
from core.models.operation import AttentionCore, GroupedLinear
from core.models.operations import operations
from core.models.parameters import parameters
from core.models.spec import Experts, Further, LatentAttention, SlidingWindow, SpecError, TransformerSpec
from core.models.symbols import symbol
from core.training.device.ranks import pieces_of, rank_parameters, stages_of
from core.training.layout import Degrees
from core.training.trained import tensors_of
from tests.core.models_oracle import DENSE, MIXTURES, config_of, public_configs
from tests.every import every


def experts(draw: random.Random, layers: int) -> Experts:
    count, shared = draw.choice([2, 4, 8]), draw.choice([0, 0, 1, 2])
    return Experts(
        count=count,
        per_token=draw.randint(1, count),
        width=draw.choice([8, 20]),
        shared=shared,
        dense_layers=draw.randint(0, layers),
        router_bias=draw.random() < 0.4,
        shared_width=draw.choice([0, 12]),
        shared_gate=shared > 0 and draw.random() < 0.4,
    )


def state(draw: random.Random, layers: int) -> Mixer:
    kind, biases = draw.choice(["mamba", "mamba2", "delta"]), {"bias": draw.random() < 0.4, "conv_bias": True}
    number = draw.randint(1, layers)
    if kind == "mamba":
        return Mixer("mamba", number, 32, 1, 8, rank=draw.choice([3, 5]), normed=draw.random() < 0.5, **biases)
    groups = draw.choice([1, 2, 4])
    return Mixer(kind, number, 2 * groups, draw.choice([8, 16]), 16, groups=groups, **biases)  # type: ignore[arg-type]


def shapes(count: int) -> Iterator[TransformerSpec]:
    """Shapes at random, every feature with every other as far as a transformer can have both."""
    draw = random.Random(5)
    while count:
        kv_heads, layers = draw.choice([1, 2, 4]), draw.randint(1, 9)
        low = LatentAttention(draw.choice([0, 12]), 10, draw.choice([0, 6]), 4, 7) if draw.random() < 0.3 else None
        mixer = state(draw, layers) if draw.random() < 0.3 else None
        ffn = draw.choice([0, 16, 40])
        window = SlidingWindow(draw.choice([5, 1000]), (True, draw.random() < 0.5)) if draw.random() < 0.4 else None
        try:
            yield TransformerSpec(
                layers=layers,
                hidden=draw.choice([8, 24]),
                heads=kv_heads * draw.choice([1, 2]),
                kv_heads=kv_heads,
                head_dim=draw.choice([4, 6]),
                ffn=ffn,
                vocab=50,
                glu=draw.random() < 0.6,
                tied_head=draw.random() < 0.4,
                norm_vectors=draw.choice([0, 1, 2]),
                norms_per_layer=draw.choice([0, 1, 2, 3, 4]),
                norms_outside=draw.choice([0, 1, 2]),
                qk_norm=draw.choice(["none", "head", "full"]),  # type: ignore[arg-type]
                position_rows=draw.choice([0, 32]),
                attention_bias=draw.random() < 0.4,
                output_bias=draw.random() < 0.4,
                ffn_bias=draw.random() < 0.4,
                attention_sinks=draw.random() < 0.3,
                experts=experts(draw, layers) if draw.random() < 0.5 else None,
                latent=low,
                window=window,
                parallel_blocks=draw.random() < 0.3,
                embedding_width=draw.choice([0, 0, 16]),
                mtp_modules=draw.choice([0, 0, 2]),
                head_bias=draw.random() < 0.3,
                activation_scalars=draw.choice([0, 2]) if ffn else 0,
                mixer=mixer,
                attention_gate=draw.random() < 0.3,
                further=draw.choice(
                    [(), (Further("matmul", 2, 12, 8), Further("norm", 1, 8, 4), Further("vector", 3, 5))]
                ),
            )
        except SpecError:
            continue
        count -= 1


SHAPES = [*(model.spec for model in catalog()), *shapes(300)]
PUBLIC = [from_hf_config(row["config"]) for row in public_configs()]


def test_operations_read_what_operations_before_them_made() -> None:
    for spec in (*SHAPES, *PUBLIC):
        made = {None}
        for op in operations(spec):
            assert made.issuperset(op.reads), (spec, op)
            made.update(op.makes)  # type: ignore[arg-type]
            assert op.layers > 0
            assert all(weight.rows * weight.columns * weight.count for weight in op.weights)
            assert (op.copies > 1) <= (op.block in ("moe", "mtp"))


def test_every_component_has_a_formula_of_the_same_value() -> None:
    for spec in SHAPES:
        for part in parameters(spec).components:
            shown = part.explain()
            assert (shown.value, shown.title) == (part.total, part.name)
            assert shown.sources
        for count in (flops_per_token(spec, 4096), flops_per_token(spec, 64, "exact")):
            for part in count.parts:
                assert part.explain().value == pytest.approx(part.flop, rel=1e-12)


def test_tensors_and_ranks_hold_every_parameter() -> None:
    for spec in (*SHAPES, *PUBLIC):
        total = parameters(spec).total
        assert sum(tensor.elements for tensor in tensors_of(spec)) == total
        rank = rank_parameters(pieces_of(spec, Degrees()), stages_of(spec, Degrees(), ("first",)))
        assert np.sum(rank.total) == pytest.approx(total, rel=1e-12), spec


def test_matmuls_with_weights_are_twice_the_active_matrices() -> None:
    """Tables are looked up, prediction modules use head and projections again, and a convolution’s kernel counts."""
    for spec in SHAPES:
        tensors = [(t, t.kind in ("matrix", "head", "expert matrix")) for t in tensors_of(spec)]
        matrices = sum(t.elements for t, matrix in tensors if matrix and t.name != "state: decay")
        matrices += spec.vocab * spec.table_width * (spec.tied_head + spec.mtp_modules)
        if spec.table_width != spec.hidden:
            matrices += 2 * spec.hidden * spec.table_width * spec.mtp_modules
        idle = sum(
            op.layers * w.rows * w.columns * (w.count - op.copies)
            for op in operations(spec)
            if isinstance(op, GroupedLinear)
            for w in op.weights[:1]
        )
        assert flops_per_token(spec, 64).weights == 2 * (matrices - idle), spec


@every("name", ["llama", "llama, biases", "qwen3", "olmo2", "deepseek_v2, lite", "deepseek_v3", "qwen2_moe"])
def test_weights_are_named_as_in_transformers(name: str) -> None:
    """By name and shape, but for norms, whose place is not known, and stacks of experts."""
    config = config_of(name, {**DENSE, **MIXTURES}[name])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    built: Counter[tuple[str, int, int]] = Counter()
    for key, tensor in model.named_parameters():
        path = key.removeprefix("model.").removesuffix(".weight").replace("shared_experts.", "shared_expert.")
        path = path.split(".", 2)[2] if path.startswith("layers.") else path
        if "layernorm" not in path and path != "norm" and ".experts." not in path:
            built[path, tensor.shape[0], tensor.numel() // tensor.shape[0]] += 1
    ours: Counter[tuple[str, int, int]] = Counter()
    for op in operations(from_hf_config(config.to_json_string())):
        for weight in op.weights:
            if "layernorm" not in weight.name and weight.name != "norm" and ".experts." not in weight.name:
                ours[weight.name, weight.rows, weight.columns] += op.layers * weight.count * (not weight.shared)
    assert +ours == built


def test_attention_caches_keys_and_values_or_a_latent() -> None:
    for spec in SHAPES:
        for op in operations(spec):
            if isinstance(op, AttentionCore):
                low = spec.latent
                plain = (spec.kv_heads * spec.head_dim,) * 2
                assert tuple(t.width for t in op.cached) == ((low.kv_rank, low.rope_dim) if low else plain)


def test_sizes_write_common_factors_once() -> None:
    h, a, k = symbol("hidden", 8), symbol("heads", 4), symbol("kv_heads", 2)
    total = h * a * 2 + h * (k + k) * 2
    assert (total, total.latex) == (128, r"2 \cdot \v{hidden} \cdot (\v{heads} + 2 \cdot \v{kv_heads})")
    assert (h * h + 1).latex == r"\v{hidden}^{2} + 1"
    assert total.values == {"hidden": 8, "heads": 4, "kv_heads": 2}
