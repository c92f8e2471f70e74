"""Parameter counts: every model of the catalogue to the last parameter, and the closed forms of papers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.models.catalog import CATALOG, CatalogModel, catalog, model_named
from core.models.mixer import Mixer
from core.models.parameters import parameters
from core.models.spec import (
    AttentionLayers,
    CompressedAttention,
    DenseLayers,
    Experts,
    Indexer,
    LatentAttention,
    SlidingWindow,
    SpecError,
    TransformerSpec,
)
from core.rows import read_rows
from core.training.layout import Layout
from core.training.trained import Trained
from tests.core.memory_of import memory_per_device
from tests.every import every

TINY = TransformerSpec(layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, ffn=24, vocab=50, glu=True, tied_head=False)
STATE = Mixer("mamba2", layers=1, heads=4, width=8, state=16, groups=2)


def test_the_catalogue_is_whole() -> None:
    assert len({model.name for model in catalog()}) == len(catalog())
    assert all(model.source and model.confidence in {"verified", "recalled"} for model in catalog())


@every("model", catalog(), ids=lambda m: m.name)
def test_count_equals_the_model_built_on_the_meta_device(model: CatalogModel) -> None:
    counted = parameters(model.spec)
    assert counted.total == model.parameters
    assert counted.active == model.active
    assert model.breakdown
    assert all(isinstance(part.total, int) for part in counted.components)


PRINTED = [
    pytest.param(CATALOG[row["label"]], of, int(printed), row["published_counts"], id=row["label"])
    for row in read_rows("models")
    for of in ("total", "active")
    if (printed := row[f"params_{of}_published"])
]
"""Every count that authors print: of all parameters or of the active ones, and what it counts that ours does not."""


def as_printed(spec: TransformerSpec, of: str, counts: str) -> int:
    """Our count of what the printed one counts, by the column ``published_counts``.

    ``total:+mtp-embedding-head active:-embedding`` adds a module of multi-token prediction and leaves tables out; a
    number is what else they count, such as the part that reads images.
    """
    table, counted = spec.vocab * spec.table_width, int(getattr(parameters(spec), of))
    parts = {"embedding": table, "head": table}
    parts["mtp"] = int(getattr(parameters(replace(spec, mtp_modules=1)), of)) - counted if "mtp" in counts else 0
    changes = next((text for name, _, text in (item.partition(":") for item in counts.split()) if name == of), "")
    for sign, part in re.findall(r"([+-])(\w+)", changes):
        counted += int(f"{sign}1") * (parts[part] if part in parts else int(part))
    return counted


@every(("model", "of", "printed", "counts"), PRINTED)
def test_counts_are_those_the_authors_print(model: CatalogModel, of: str, printed: int, counts: str) -> None:
    """To the last digit that they print, rounded or cut; a nominal size ("7B") also within five percent."""
    unit = 10 ** (len(str(printed)) - len(str(printed).rstrip("0")))
    counted = as_printed(model.spec, of, counts)
    assert abs(counted - printed) < unit
    assert counted == pytest.approx(printed, rel=0.05)
    assert model.published_source
    assert model.published_confidence in {"verified", "recalled"}


def test_one_expert_is_a_dense_model_with_a_router() -> None:
    moe = replace(TINY, experts=Experts(count=1, per_token=1, width=24))
    assert parameters(moe).total == parameters(TINY).total + TINY.layers * TINY.hidden
    many = replace(TINY, experts=Experts(count=8, per_token=2, width=24, shared=1, dense_layers=1))
    counted = parameters(many)
    assert counted.total - counted.active == (8 - 2) * 3 * 8 * 24


@every(
    ("field", "change"),
    [
        ("layers", {"layers": 0}),
        ("layers", {"layers": 10_001}),
        ("hidden", {"hidden": 2.5}),
        ("vocab", {"vocab": True}),
        ("norm_vectors", {"norm_vectors": 3}),
        ("positions", {"positions": "learned"}),
        ("qk_norm", {"latent": LatentAttention(4, 4, 2, 2, 2), "qk_norm": "head"}),
        ("kv_heads", {"heads": 5}),
        ("ffn", {"ffn": 0}),
        ("dense_layers", {"experts": Experts(count=4, per_token=1, width=8, dense_layers=3)}),
        ("layers", {"mixer": replace(STATE, layers=3)}),
        ("window", {"mixer": STATE, "window": SlidingWindow(8)}),
        ("gate_per_head", {"gate_per_head": True}),
        ("others", {"others": (AttentionLayers(3, 4, 2, 8),)}),
        ("others", {"others": (AttentionLayers(1, 4, 1, 24, keys="earlier"),)}),
        ("networks", {"networks": (DenseLayers(3, 0),)}),
        ("indexer", {"indexer": Indexer(2, 8, 4, layers=3)}),
        ("compressed", {"compressed": CompressedAttention(8, 2, 4, sparse=1, heavy=1)}),
    ],
)
def test_impossible_shapes_are_refused(field: str, change: dict[str, object]) -> None:
    with pytest.raises(SpecError) as refused:
        replace(TINY, **change)  # type: ignore[arg-type]
    assert refused.value.field == field


@every(
    ("build", "field", "value"),
    [
        (lambda: Experts(count=4, per_token=5, width=8), "per_token", 5),
        (lambda: Experts(count=4, per_token=0, width=8), "per_token", 0),
        (lambda: Experts(count=0, per_token=1, width=8), "count", 0),
        (lambda: Experts(count=4, per_token=1, width=8, shared_gate=True), "shared_gate", True),
        (lambda: LatentAttention(4, 0, 2, 2, 2), "kv_rank", 0),
        (lambda: LatentAttention(4, 4, 0, 0, 2), "nope_dim", 0),
        (lambda: SlidingWindow(0), "size", 0),
        (lambda: SlidingWindow(8, ()), "pattern", ()),
        (lambda: replace(STATE, rank=1), "rank", 1),
        (lambda: replace(STATE, kind="mamba"), "rank", 0),
        (lambda: replace(STATE, kind="mamba", rank=4), "width", 8),
        (lambda: replace(STATE, normed=True), "normed", True),
        (lambda: replace(STATE, groups=3), "groups", 3),
        (lambda: replace(STATE, state=0), "state", 0),
        (lambda: replace(STATE, kind="convolution", width=1, groups=1), "state", 16),
        (lambda: AttentionLayers(1, 4, 3, 8), "kv_heads", 3),
        (lambda: AttentionLayers(1, 4, 2, 8, value_dim=4, keys="one"), "value_dim", 4),
        (lambda: DenseLayers(0, 8), "layers", 0),
        (lambda: Indexer(2, 8, 0), "chosen", 0),
        (lambda: Experts(count=4, per_token=1, width=8, latent_norm=True), "latent_norm", True),
    ],
)
def test_impossible_parts_are_refused(build: Callable[[], object], field: str, value: object) -> None:
    with pytest.raises(SpecError) as refused:
        build()
    assert (refused.value.field, refused.value.value) == (field, value)
    assert refused.value.rule in str(refused.value)


def test_a_vision_tower_is_counted_and_held_and_no_token_runs_through_it() -> None:
    spec, size = model_named("Llama 3.1 8B").spec, 400_000_000
    tall, first = replace(spec, tower=size), Layout(pipeline=4, micro_batches=8)
    without, counts = parameters(spec), parameters(tall)
    assert (counts.total - without.total, counts.active - without.active) == (size, 0)
    for trained, each in ((Trained(), 16), (Trained("adapters"), 2)):
        memory = [memory_per_device(one, first, seq_len=512, stage=0, trained=trained) for one in (spec, tall)]
        assert memory[1].states - memory[0].states == pytest.approx(each * size)


def test_models_are_found_by_name() -> None:
    assert model_named("llama-3.1 405b").name == "Llama 3.1 405B"
    with pytest.raises(KeyError, match=r"Llama 3\.1 405B"):
        model_named("Llama 3.1 450B")
