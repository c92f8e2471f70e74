"""The array path gives what the scalar path gives, shape by shape."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from core.models.batch import SpecBatch, batch, flops_over, parameters_over, stack
from core.models.catalog import catalog
from core.models.flops import SQUARES, Attention, flops_per_token
from core.models.mixer import Mixer
from core.models.parameters import parameters
from core.models.spec import Experts, LatentAttention, SlidingWindow, TransformerSpec
from core.models.terms import NEEDED, OPTIONAL
from tests.every import every

CONVENTIONS: tuple[Attention, ...] = tuple(SQUARES)


def random_spec(rng: random.Random) -> TransformerSpec:
    """A shape with any mixture of features."""
    kv_heads = rng.randint(1, 8)
    layers = rng.randint(1, 40)
    experts = rng.randint(1, 16)
    latent = rng.random() < 0.3
    mixer = random_mixer(rng, layers) if rng.random() < 0.3 else None
    return TransformerSpec(
        layers=layers,
        hidden=rng.randint(8, 4096),
        heads=kv_heads * rng.randint(1, 6),
        kv_heads=kv_heads,
        head_dim=rng.randint(4, 128),
        ffn=rng.randint(8, 16384),
        vocab=rng.randint(100, 200_000),
        glu=rng.random() < 0.5,
        tied_head=rng.random() < 0.5,
        norm_vectors=rng.randint(0, 2),
        norms_per_layer=rng.randint(1, 4),
        qk_norm="none" if latent else rng.choice(("none", "head", "full")),
        position_rows=rng.choice((0, 2048)),
        attention_bias=rng.random() < 0.5,
        output_bias=rng.random() < 0.5,
        ffn_bias=rng.random() < 0.5,
        attention_sinks=rng.random() < 0.2,
        experts=Experts(
            count=experts,
            per_token=rng.randint(1, experts),
            width=rng.randint(8, 2048),
            shared=(shared := rng.randint(0, 2)),
            dense_layers=rng.randint(0, layers),
            router_bias=rng.random() < 0.5,
            shared_width=rng.choice((0, 300)),
            shared_gate=shared > 0 and rng.random() < 0.5,
        )
        if rng.random() < 0.5
        else None,
        latent=LatentAttention(rng.choice((0, 96)), 64, 32, 16, 48) if latent else None,
        window=SlidingWindow(rng.randint(1, 6000), (True,) * rng.randint(1, 5) + (False,))
        if not mixer and rng.random() < 0.5
        else None,
        embedding_width=rng.choice((0, 0, 256)),
        mtp_modules=0 if mixer else rng.choice((0, 0, 1, 2)),
        mixer=mixer,
        attention_gate=not latent and rng.random() < 0.3,
    )


def random_mixer(rng: random.Random, layers: int) -> Mixer:
    """Layers of any kind of state."""
    kind = rng.choice(("mamba", "mamba2", "delta"))
    groups = 1 if kind == "mamba" else rng.randint(1, 4)
    return Mixer(
        kind=kind,
        layers=rng.randint(1, layers),
        heads=groups * rng.randint(1, 32),
        width=1 if kind == "mamba" else rng.randint(4, 64),
        state=rng.randint(1, 128),
        groups=groups,
        conv=rng.randint(1, 4),
        rank=rng.randint(1, 64) if kind == "mamba" else 0,
        bias=rng.random() < 0.5,
        conv_bias=rng.random() < 0.5,
        normed=kind == "mamba" and rng.random() < 0.5,
    )


RANDOM = [random_spec(random.Random(seed)) for seed in range(300)]
CATALOGUE = [model.spec for model in catalog()]


@pytest.mark.parametrize("specs", [CATALOGUE, RANDOM, RANDOM[:1], CATALOGUE[:3]], ids=["84", "random", "one", "alike"])
def test_parameters_of_every_shape(specs: list[TransformerSpec]) -> None:
    counted = parameters_over(stack(specs))
    # Below 2^53 float64 is exact: not near, but equal.
    assert counted.total.tolist() == [parameters(spec).total for spec in specs]
    assert counted.active.tolist() == [parameters(spec).active for spec in specs]


@every("head", [True, False])
@every("seq_len", [1, 1000, 8192])
@every("specs", [CATALOGUE, RANDOM], ids=["84", "random"])
def test_flops_of_every_shape(specs: list[TransformerSpec], seq_len: int, head: bool) -> None:
    counted = flops_over(stack(specs), seq_len, CONVENTIONS, head=head, embedding=not head)
    for attention in CONVENTIONS:
        singly = [flops_per_token(s, seq_len, attention, head=head, embedding=not head) for s in specs]
        np.testing.assert_allclose(counted.forward(attention), [one.forward for one in singly], rtol=1e-15)
        np.testing.assert_allclose(counted.training(attention), [one.training for one in singly], rtol=1e-15)
        np.testing.assert_allclose(counted.squares[attention], [one.squares for one in singly], rtol=1e-15)


def test_a_length_for_each_shape() -> None:
    lengths = np.arange(1, len(RANDOM) + 1) * 37
    counted = flops_over(stack(RANDOM), lengths, ("causal",))
    singly = [flops_per_token(spec, int(s), "causal").forward for spec, s in zip(RANDOM, lengths, strict=True)]
    np.testing.assert_allclose(counted.forward("causal"), singly, rtol=1e-15)


def test_more_shapes_than_one_piece_holds() -> None:
    base = CATALOGUE[0]
    layers = np.arange(1, 40_001) % 50 + 1
    sizes = {name: getattr(base, name) for name in NEEDED} | {"layers": layers, "position_rows": base.position_rows}
    biased = dict.fromkeys(("attention_bias", "output_bias", "ffn_bias", "tied_head"), 1)
    counted = parameters_over(batch(**sizes, **biased, norm_vectors=2))
    singly = np.array([parameters(replace(base, layers=n)).total for n in range(1, 51)])
    np.testing.assert_array_equal(counted.total, singly[layers - 1])


def test_numbers_must_be_known_and_whole() -> None:
    sizes = dict.fromkeys(NEEDED, 8)
    assert batch(**sizes).size == 1
    with pytest.raises(KeyError, match="missing: vocab; not known: depth"):
        batch(**{name: 8 for name in NEEDED if name != "vocab"}, depth=3)
    with pytest.raises(ValueError, match="broadcast"):
        batch(**{**sizes, "layers": [1, 2], "hidden": [1, 2, 3]})
    with pytest.raises(ValueError, match="at least one"):
        stack([])


def test_a_feature_that_no_shape_has_takes_no_array() -> None:
    """What keeps a million dense shapes fast: no array of zeros for experts, latent attention or windows."""
    (pieces,) = SpecBatch(stack(CATALOGUE[:2]).shape, 2).pieces()
    numbers = pieces[1]
    absent = (
        "moe_layers",
        "latent_layers",
        "ranked_layers",
        "sink_layers",
        "table_joints",
        "shared_gates",
        "inner_first",
        "mixer_layers",
        "selective_layers",
        "gate_layers",
    )
    assert [name for name in absent if isinstance(numbers[name], np.ndarray)] == []
    assert set(OPTIONAL) <= set(numbers)
