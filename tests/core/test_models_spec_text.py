"""A shape survives being written and read; what is no shape is refused with a reason and an example."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.models.catalog import CatalogModel, catalog
from core.models.configs.custom import MIXTURE, SIZES, edited, own_model, size_of
from core.models.mixer import Mixer
from core.models.spec import Experts, LatentAttention, SlidingWindow, SpecError, TransformerSpec
from core.models.spec_text import EXAMPLE, SpecTextError, read_spec, write_spec
from tests.every import every

BASE = read_spec(EXAMPLE)


@every("model", catalog(), ids=lambda m: m.name)
def test_every_shape_of_the_catalogue_survives(model: CatalogModel) -> None:
    text = write_spec(model.spec)
    assert read_spec(text) == model.spec
    assert len(text) <= limit("spec_chars")


def test_a_shape_with_every_part_survives() -> None:
    spec = TransformerSpec(
        layers=60,
        hidden=5120,
        heads=128,
        kv_heads=128,
        head_dim=192,
        ffn=12288,
        vocab=102400,
        glu=True,
        tied_head=False,
        norm="layernorm",
        norm_vectors=2,
        positions="alibi",
        attention_sinks=True,
        parallel_blocks=True,
        mtp_modules=1,
        experts=Experts(160, 6, 1536, shared=2, dense_layers=1, router_bias=True, shared_width=3072, shared_gate=True),
        latent=LatentAttention(1536, 512, 128, 64, 128),
        window=SlidingWindow(4096, (True, True, False)),
    )
    state = Mixer("mamba2", 48, 80, 64, 128, groups=8, conv=3, bias=True, conv_bias=True)
    hybrid = replace(spec, mtp_modules=0, window=None, latent=None, mixer=state, attention_gate=True)
    for one in (spec, hybrid):
        assert read_spec(write_spec(one)) == one
        assert len(write_spec(one)) <= limit("spec_chars")


@every(
    "text",
    [
        "",
        EXAMPLE.replace("layers=32", "layers=0"),
        f"{EXAMPLE} experts.count=2 experts.per_token=3 experts.width=8",
        f"{EXAMPLE} layers=3",
        EXAMPLE.replace("layers", "layer"),
        f"{EXAMPLE} qk_norm=round",
        f"{EXAMPLE} experts.size=4",
        f"{EXAMPLE} thing.size=4",
        EXAMPLE.replace("glu=yes", "glu=1"),
        EXAMPLE.replace("4096", "1e999"),
        EXAMPLE.replace("4096", "9" * 40),
        "x" * 2000,
    ],
)
def test_what_is_no_shape_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SpecTextError) as refused:
        read_spec(text)
    assert refused.value.args[0].id == "spec.text"


@settings(max_examples=200)
@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz_.=0123456789 ;,\n\0", max_size=80))
def test_no_text_does_anything_but_read_or_refuse(text: str) -> None:
    for whole in (text, f"{EXAMPLE} {text}"):
        try:
            spec = read_spec(whole)
        except SpecTextError:
            continue
        assert read_spec(write_spec(spec)) == spec


def test_numbers_are_edited_one_by_one() -> None:
    assert edited(BASE, "layers", 40).layers == 40
    mixture = edited(BASE, "count", 16)
    assert mixture.experts == Experts(16, 2, BASE.ffn)
    assert edited(mixture, "per_token", 4).experts == Experts(16, 4, BASE.ffn)
    assert edited(mixture, "count", 0) == BASE
    assert [size_of(mixture, field) for field in MIXTURE] == [16, 2, 14336, 0]
    assert [size_of(BASE, field) for field in (*SIZES, *MIXTURE)] == [32, 4096, 32, 8, 128, 14336, 128256, 0, 0, 0, 0]
    for field, value in (("heads", 33), ("layers", 0), ("per_token", 99)):
        with pytest.raises(SpecError):
            edited(mixture, field, value)


def test_ones_own_model_counts_like_a_catalogues() -> None:
    llama = next(m for m in catalog() if m.name == "Llama 3.1 8B")
    mine = own_model(llama.spec)
    assert (mine.parameters, mine.active) == (llama.parameters, llama.active)
