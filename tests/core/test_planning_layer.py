"""One layer on the roofline, one run under every convention, and what moves the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.hardware.roofline import ridge_point
from core.models import TransformerSpec, flops_per_token, model_named
from core.planning import (
    Assumptions,
    BudgetError,
    iso_days,
    layer_roofline,
    matmul_share,
    which_mfu,
)
from core.planning.layer import LayerOperation
from core.planning.scored import recomputed_share
from core.planning.sensitivity import sensitivity
from tests.core.palm import PALM

H100 = find("H100 SXM")


def named(operations: tuple[LayerOperation, ...], phase: str = "forward") -> dict[str, LayerOperation]:
    return {one.id: one for one in operations if one.phase == phase}


@pytest.mark.parametrize("name", ["GPT-2 124M", "GPT-3 175B", "Llama 3.1 8B", "Mixtral 8x7B", "Qwen3 30B-A3B"])
def test_matmuls_of_a_layer_are_those_of_the_model(name: str) -> None:
    """Layers times one layer, and the head, are the count by component; backward is twice forward."""
    spec, tokens = model_named(name).spec, 4 * 1024
    operations = layer_roofline(spec, H100, seq_len=1024, tokens=tokens)
    matmuls = [one for one in operations if one.kind == "matmul"]
    for phase, times in (("forward", 1), ("backward", 2)):
        layer = sum(float(one.flop) for one in matmuls if one.phase == phase and one.in_layer)
        head = sum(float(one.flop) for one in matmuls if one.phase == phase and not one.in_layer)
        counted = flops_per_token(spec, 1024, "full").forward
        assert (layer * spec.layers + head) / tokens == pytest.approx(times * counted, rel=1e-12)


def test_latent_attention_is_counted_whole() -> None:
    spec = model_named("DeepSeek-V3").spec
    operations = named(layer_roofline(spec, H100, seq_len=4096, tokens=4096))
    attention = sum(
        float(operations[key].flop) for key in ("q_down", "q_up", "kv_down", "kv_up", "scores", "values", "output")
    )
    counted = flops_per_token(spec, 4096, "full")
    inside = sum(part.flop for part in counted.parts if part.group == "attention")
    assert attention / 4096 * spec.layers == pytest.approx(inside, rel=1e-12)


@pytest.mark.parametrize(("name", "seq_len"), [("GPT-3 175B", 2048), ("GPT-2 124M", 1024)])
def test_over_95_percent_of_the_flops_are_matmuls(name: str, seq_len: int) -> None:
    operations = layer_roofline(model_named(name).spec, H100, seq_len=seq_len, tokens=8 * seq_len)
    assert matmul_share(operations) > 0.95
    assert matmul_share([one for one in operations if one.in_layer]) > 0.95


def test_products_with_weights_are_compute_bound_and_the_rest_is_not() -> None:
    assert ridge_point(H100.peak("bf16"), H100.bandwidth) == pytest.approx(295, abs=0.5)
    operations = layer_roofline(model_named("GPT-3 175B").spec, H100, seq_len=2048, tokens=8192)
    for one in operations:
        if one.kind == "other":
            assert one.placed.bound == "memory", one.id
            assert float(one.placed.intensity) < 10
        elif one.id not in ("scores", "values"):
            assert one.placed.bound == "compute", one.id
    # Scores written to memory are why attention is fused.
    assert named(operations)["scores"].placed.bound == "memory"
    fused = named(layer_roofline(model_named("GPT-3 175B").spec, H100, seq_len=2048, tokens=8192, fused_attention=True))
    assert fused["attention"].placed.bound == "compute"
    assert "softmax" not in fused


def test_few_rows_make_a_matmul_memory_bound() -> None:
    rows = np.array([1.0, 16.0, 256.0, 4096.0, 65536.0])
    up = named(layer_roofline(model_named("GPT-3 175B").spec, H100, seq_len=2048, tokens=rows))["up"]
    assert np.asarray(up.placed.compute_bound).tolist() == [False, False, False, True, True]
    assert np.all(np.diff(np.asarray(up.placed.intensity)) > 0)
    assert float(np.asarray(up.placed.intensity)[0]) == pytest.approx(1, rel=0.01)
    assert np.asarray(up.placed.share)[-1] == 1


def test_one_matmul_by_hand() -> None:
    """8,192 rows of GPT-3 through 12,288 × 49,152 in bf16: 2mkn FLOPs, both factors read, the product written."""
    up = named(layer_roofline(model_named("GPT-3 175B").spec, H100, seq_len=2048, tokens=8192))["up"]
    flop, moved = 2 * 8192 * 12288 * 49152, 2 * (8192 * 12288 + 12288 * 49152 + 8192 * 49152)
    assert (up.flop, up.placed.work.bytes) == (flop, moved)
    assert up.placed.seconds == pytest.approx(max(flop / 989.4e12, moved / 3.35e12))
    assert [step.value for step in up.placed.explanations] == pytest.approx(
        [flop, moved, flop / moved, flop / 989.4e12, moved / 3.35e12]
    )


def test_arrays_agree_with_numbers() -> None:
    spec, sweep = model_named("Mixtral 8x7B").spec, np.array([1.0, 3.0, 4096.0, 16384.0])
    whole = layer_roofline(spec, H100, seq_len=4096, tokens=sweep, dtype="fp8")
    for i, tokens in enumerate(sweep.tolist()):
        for one, many in zip(layer_roofline(spec, H100, seq_len=4096, tokens=tokens, dtype="fp8"), whole, strict=True):
            assert np.broadcast_to(many.flop, sweep.shape)[i] == pytest.approx(one.flop)
            assert np.broadcast_to(many.placed.seconds, sweep.shape)[i] == pytest.approx(one.placed.seconds)


def test_the_update_moves_28_bytes_per_parameter() -> None:
    spec = model_named("GPT-2 124M").spec
    update = named(layer_roofline(spec, H100, seq_len=1024, tokens=1024), "update")["update"]
    own = 12 * 768**2 + 13 * 768
    assert update.placed.work.bytes == pytest.approx(28 * (own + 2 * 768 / 12))


def test_rooflines_that_cannot_be() -> None:
    spec = model_named("GPT-2 124M").spec
    for change, field in (({"dtype": "fp8"}, "dtype"), ({"dtype": "q4"}, "dtype"), ({"tokens": 0}, "tokens")):
        with pytest.raises(BudgetError) as refused:
            layer_roofline(spec, find("A100 SXM 80 GB"), **{"seq_len": 1024, "tokens": 1024, **change})
        assert refused.value.field == field


def test_palm_under_every_convention() -> None:
    """arXiv:2204.02311: 45.7 % without attention, 46.2 % with, 57.8 % HFU, which repeats part of the forward pass."""
    ways = {way.id: way for way in which_mfu(PALM, 2048, accelerators=6144, peak=275e12, tokens_per_second=238_300)}
    assert ways["rule"].utilisation == pytest.approx(0.457, abs=5e-4)
    assert ways["full"].utilisation == pytest.approx(0.462, abs=5e-4)
    assert ways["causal"].utilisation == pytest.approx(0.4595, abs=5e-4)
    assert ways["hfu_selective"].utilisation < 0.578 < ways["hfu_full"].utilisation
    assert ways["hfu_full"].utilisation == pytest.approx(4 / 3 * 0.462, rel=5e-3)
    assert recomputed_share(0.578, 0.462) == pytest.approx(0.753, abs=1e-3)
    assert recomputed_share(4 / 3, 1) == pytest.approx(1)
    assert [way.kind for way in ways.values()] == ["MFU"] * 5 + ["HFU"] * 2
    assert all(way.explanation.value == way.utilisation and way.possible for way in ways.values())


def test_korthikantis_mfu_from_the_time_of_a_step() -> None:
    """arXiv:2205.05198 table 5: 175 B on 64 A100, 64 sequences in 13.75 s: MFU 51.4 %, HFU 52.8 %.

    Its HFU counts attention's products twice over, backward included (s/3h in place of s/6h); only their forward is
    done again, a third of that.
    """
    spec = TransformerSpec(
        layers=96,
        hidden=12288,
        heads=96,
        kv_heads=96,
        head_dim=128,
        ffn=4 * 12288,
        vocab=51200,
        glu=False,
        tied_head=True,
        norm_vectors=2,
        position_rows=2048,
        attention_bias=True,
        output_bias=True,
        ffn_bias=True,
    )
    ways = {
        way.id: way.utilisation
        for way in which_mfu(spec, 2048, accelerators=64, peak=312e12, step_seconds=13.75, batch_tokens=64 * 2048)
    }
    assert ways["full"] == pytest.approx(0.514, abs=5e-4)
    again = ways["hfu_selective"] - ways["full"]
    assert ways["full"] + 3 * again == pytest.approx(0.528, abs=5e-4)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tokens_per_second": 1e5, "step_seconds": 1.0, "batch_tokens": 1e5},
        {"step_seconds": 1.0},
        {"step_seconds": 0.0, "batch_tokens": 1e5},
        {"tokens_per_second": math.nan},
        {"tokens_per_second": -1.0},
        {"tokens_per_second": 1e5, "accelerators": 0},
    ],
)
def test_a_run_without_a_rate_cannot_be_scored(given: dict[str, float]) -> None:
    with pytest.raises(BudgetError):
        which_mfu(PALM, 2048, **{"accelerators": 6144, "peak": 275e12, **given})


PLAN = Assumptions(tokens=15e12, parameters=70e9, accelerators=1024, peak=H100.peak("bf16"), mfu=0.4, price=2.5)


def test_what_moves_the_answer_most_comes_first() -> None:
    swings = sensitivity(PLAN, {"price": (2, 3), "mfu": (0.35, 0.45), "tokens": (5e12, 20e12), "goodput": (0.9, 1)})
    assert [swing.input for swing in swings] == ["tokens", "mfu", "goodput", "price"]
    mfu = swings[1]
    base = float(PLAN.solve().days)
    assert mfu.days == pytest.approx((base * 0.4 / 0.35, base * 0.4 / 0.45))
    assert swings[3].days_moved == 0
    assert swings[3].dollars == pytest.approx((base * 24 * 1024 * 2, base * 24 * 1024 * 3))
    with pytest.raises(BudgetError, match="lower end first"):
        sensitivity(PLAN, {"mfu": (0.5, 0.3)})
    with pytest.raises(BudgetError) as refused:
        sensitivity(PLAN, {"mfu": (0.3, 1.3)})
    assert refused.value.field == "mfu"


def test_curves_of_equal_days() -> None:
    tokens = np.geomspace(1e11, 1e14, 50)
    curves = iso_days(PLAN, (30, 90), tokens)
    assert curves.accelerators.shape == (2, 50)
    for i, days in enumerate(curves.days):
        for j in (0, 49):
            plan = Assumptions(
                tokens[j], PLAN.parameters, float(curves.accelerators[i, j]), PLAN.peak, PLAN.mfu, PLAN.goodput
            )
            assert float(plan.solve().days) == pytest.approx(days)
