"""One layer on the roofline, and one run under every convention."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.budget.equations import BudgetError
from core.hardware.accelerators import find
from core.hardware.operations import ridge_point
from core.models.catalog import catalog, model_named
from core.models.configs.config import from_hf_config, read_hf_config
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.models.spec import Experts, SlidingWindow, TransformerSpec
from core.runs.conventions import which_mfu
from core.step_time.layer_roofline import LayerOperation, layer_roofline, matmul_share, wide_dtype
from core.training.activations.saved import saved_tensors
from core.training.activations.tensors import FUSED
from core.training.trained import tensors_of
from core.views.flops import text as flops_text
from core.views.roofline import text as roofline_text
from tests.core.models_oracle import public_configs
from tests.core.palm import PALM

H100 = find("H100 SXM")


def named(operations: tuple[LayerOperation, ...], phase: str = "forward") -> dict[str, LayerOperation]:
    return {operation.row: operation for operation in operations if operation.phase == phase}


WIDE_SHARED = TransformerSpec(
    layers=4,
    hidden=3584,
    heads=28,
    kv_heads=4,
    head_dim=128,
    ffn=18944,
    vocab=151936,
    glu=True,
    tied_head=False,
    experts=Experts(64, 8, 2560, shared=1, shared_width=20480, shared_gate=True, dense_layers=1),
    window=SlidingWindow(512, (True, True, False)),
)
"""Every way in which layers of one model differ, and shared experts of a width of their own."""


def whole(spec: TransformerSpec, phase: str, tokens: int, seq_len: int, *, fused: bool) -> dict[str, float]:
    """FLOPs of every product of the model by its operation: a mean layer as often as the model has layers."""
    sums: dict[str, float] = {}
    for operation in layer_roofline(spec, H100, seq_len=seq_len, tokens=tokens, fused_attention=fused):
        if operation.phase == phase and (operation.kind == "matmul" or operation.row == "convolution"):
            times = spec.layers if operation.in_layer else 1
            sums[operation.row] = sums.get(operation.row, 0.0) + times * float(operation.flop)
    return sums


@pytest.mark.parametrize("seq_len", [256, 8192, 9001])
@pytest.mark.parametrize("fused", [False, True])
def test_products_of_all_layers_are_those_of_the_model(seq_len: int, *, fused: bool) -> None:
    """A mean layer as often as the model has layers, and the head, are the count by component, windows and all.

    Backward is twice forward; a fused kernel then computes the scores once more.
    """
    tokens = 3 * seq_len
    shapes = {m.name: m.spec for m in catalog()} | {r["name"]: from_hf_config(r["config"]) for r in public_configs()}
    assert any(spec.others for spec in shapes.values())
    assert any(spec.networks for spec in shapes.values())
    assert any(spec.mixer for spec in shapes.values())
    assert any(spec.compressed for spec in shapes.values())
    for name, spec in {**shapes, "wide shared": WIDE_SHARED}.items():
        counted = flops_per_token(spec, seq_len, "causal" if fused else "full")
        forward, backward = (whole(spec, phase, tokens, seq_len, fused=fused) for phase in ("forward", "backward"))
        assert sum(forward.values()) == pytest.approx(counted.forward * tokens, rel=1e-9), name
        again = sum(part.flop for part in counted.parts if part.id.endswith("scores")) if fused else 0.0
        assert sum(backward.values()) == pytest.approx((counted.backward + again) * tokens, rel=1e-9), name
        squares = sum(flop for key, flop in forward.items() if key in SQUARES)
        assert squares == pytest.approx(counted.squares * tokens, rel=1e-9), name


SQUARES = ("scores", "values", "attention", "indexer", "scan")


def test_a_window_moves_what_it_looks_at() -> None:
    """gpt-oss, scores of 128 keys: queries and keys read, 128 scores for each token and head written."""
    spec = model_named("gpt-oss 20B").spec

    def cores(row: str, tokens: int, *, fused: bool) -> list[LayerOperation]:
        result = layer_roofline(spec, H100, seq_len=8192, tokens=tokens, fused_attention=fused)
        return sorted((o for o in result if (o.row, o.phase) == (row, "forward")), key=lambda o: float(o.flop))

    scores, values, softmax = (cores(row, 8192, fused=False)[0] for row in ("scores", "values", "softmax"))
    assert scores.placed.work.bytes == 2 * 64 * 8192 * (64 + 64 + 128)
    assert values.placed.work.flop == 2 * 64 * 8192 * 64 * 128
    assert softmax.placed.work.bytes == 2 * 2 * 64 * 8192 * 128
    fused, seeing = cores("attention", 8192, fused=True)
    assert fused.share == seeing.share == 0.5
    assert fused.placed.work.bytes == seeing.placed.work.bytes == 2 * 8192 * (64 + 8) * (64 + 64)
    assert (fused.placed.bound, seeing.placed.bound) == ("memory", "compute")
    assert len({float(o.flop) for o in cores("attention", 64, fused=True)}) == 1


def test_below_16_bits_run_only_products_with_weights() -> None:
    """DeepSeek-V3, arXiv:2412.19437, section 3.3.1: fp8 factors, a bf16 product, and much that stays in bf16."""
    spec = model_named("DeepSeek-V3").spec
    narrow, wide = (layer_roofline(spec, H100, seq_len=4096, tokens=8192, dtype=dtype) for dtype in ("fp8", "bf16"))
    same = ("attention", "router", "head", "norms", "activation", "residual", "loss", "update", "head_update")
    for operation, other in zip(narrow, wide, strict=True):
        assert (operation.row, operation.flop) == (other.row, other.flop)
        if operation.row in same:
            assert operation.placed == other.placed
            assert operation.dtype == "bf16"
        else:
            assert (operation.dtype, operation.placed.peak) == ("fp8", H100.peak("fp8"))
            assert operation.placed.work.bytes < other.placed.work.bytes
    m, k, n = 8192, 128 * 128, 7168
    assert named(narrow)["output"].placed.work.bytes == m * k + k * n + 2 * m * n
    back = (m * n + k * n + 2 * m * k) + (m * k + m * n + 2 * k * n)
    assert named(narrow, "backward")["output"].placed.work.bytes == back
    assert [step.value for step in named(narrow)["output"].placed.explanations][1] == m * k + k * n + 2 * m * n
    assert (wide_dtype(H100, "fp8"), wide_dtype(find("T4"), "int8"), wide_dtype(H100, "tf32")) == (
        "bf16",
        "fp16",
        "tf32",
    )
    assert roofline_text.below_16bit("fp8", "bf16", mixture=True)
    assert not roofline_text.below_16bit("bf16", "bf16", mixture=True)


def test_shared_experts_have_their_own_width_and_activation() -> None:
    spec = replace(WIDE_SHARED, window=None, experts=Experts(64, 8, 2560, shared=1, shared_width=20480))
    operations = named(layer_roofline(spec, H100, seq_len=4096, tokens=4096))
    assert operations["shared_up"].flop == 2 * 4096 * 3584 * 2 * 20480
    assert operations["shared_down"].flop == 2 * 4096 * 20480 * 3584
    assert operations["activation"].placed.work.bytes == 2 * 3 * 4096 * (8 * 2560 + 20480)
    narrow = named(layer_roofline(replace(spec, experts=Experts(64, 8, 2560, shared=2)), H100, seq_len=8, tokens=8))
    assert narrow["shared_down"].flop == 2 * 2 * 8 * 2560 * 3584
    assert narrow["activation"].placed.work.bytes == 2 * 3 * 8 * (8 + 2) * 2560


@pytest.mark.parametrize("bias", [False, True])
def test_several_shared_experts_are_one_wide_network(bias: bool) -> None:
    """As in DeepSeek's and ERNIE's modeling code and in Megatron-LM, where they have one matrix each way."""
    two, one = (
        replace(WIDE_SHARED, window=None, ffn_bias=bias, experts=Experts(64, 8, 2560, shared=n, shared_width=5120 // n))
        for n in (2, 1)
    )
    assert parameters(two).total == parameters(one).total
    assert tensors_of(two) == tensors_of(one)
    assert saved_tensors(two, FUSED, "experts", residual=4) == saved_tensors(one, FUSED, "experts", residual=4)
    for n, m in zip(*(layer_roofline(spec, H100, seq_len=8, tokens=8) for spec in (two, one)), strict=True):
        assert (n.row, n.placed.work) == (m.row, m.placed.work)


def test_updates_of_all_layers_are_of_all_parameters() -> None:
    for spec in (model_named("DeepSeek-V3").spec, model_named("gpt-oss 20B").spec, WIDE_SHARED):
        update = named(layer_roofline(spec, H100, seq_len=8, tokens=8), "update")["update"]
        moved = spec.layers * float(update.placed.work.bytes)
        inside = [part.total for part in parameters(spec).components if part.group not in ("embedding", "head")]
        assert moved == pytest.approx(28 * sum(inside), rel=1e-12)


def test_fusing_attention_saves_its_traffic() -> None:
    """Llama 3.1 405B over 8,192 tokens: 57.4 ms of scores, softmax and values are 7.78 ms fused."""
    spec = model_named("Llama 3.1 405B").spec
    fused, apart = (layer_roofline(spec, H100, seq_len=8192, tokens=8192, fused_attention=way) for way in (True, False))
    assert layer_roofline(spec, H100, seq_len=8192, tokens=8192) == fused
    assert roofline_text.attention_seconds(fused) == pytest.approx(7.78e-3, rel=1e-3)
    assert roofline_text.attention_seconds(apart) == pytest.approx(57.4e-3, rel=1e-3)
    assert roofline_text.fused_text(fused, apart).values["fused"] == roofline_text.attention_seconds(fused)


@pytest.mark.parametrize(("name", "seq_len"), [("GPT-3 175B", 2048), ("GPT-2 124M", 1024)])
def test_over_95_percent_of_the_flops_are_matmuls(name: str, seq_len: int) -> None:
    operations = layer_roofline(
        model_named(name).spec, H100, seq_len=seq_len, tokens=8 * seq_len, fused_attention=False
    )
    assert matmul_share(operations) > 0.95
    assert matmul_share([operation for operation in operations if operation.in_layer]) > 0.95


def test_products_with_weights_are_compute_bound_and_the_rest_is_not() -> None:
    assert ridge_point(H100.peak("bf16"), H100.bandwidth) == pytest.approx(295, abs=0.5)
    spec = model_named("GPT-3 175B").spec
    operations = layer_roofline(spec, H100, seq_len=2048, tokens=8192, fused_attention=False)
    for operation in operations:
        if operation.kind == "other":
            assert operation.placed.bound == "memory", operation.row
            assert float(operation.placed.intensity) < 10
        elif operation.row not in ("scores", "values"):
            assert operation.placed.bound == "compute", operation.row
    # Scores written to memory are why attention is fused.
    assert named(operations)["scores"].placed.bound == "memory"
    fused = named(layer_roofline(spec, H100, seq_len=2048, tokens=8192))
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


@pytest.mark.parametrize("fused", [False, True])
def test_arrays_agree_with_numbers(*, fused: bool) -> None:
    sweep = np.array([1.0, 3.0, 4096.0, 16384.0])
    same = {"seq_len": 4096, "dtype": "fp8", "fused_attention": fused}
    many_tokens = layer_roofline(WIDE_SHARED, H100, tokens=sweep, **same)
    for i, tokens in enumerate(sweep.tolist()):
        for operation, many in zip(layer_roofline(WIDE_SHARED, H100, tokens=tokens, **same), many_tokens, strict=True):
            assert np.broadcast_to(many.flop, sweep.shape)[i] == pytest.approx(operation.flop)
            assert np.broadcast_to(many.placed.seconds, sweep.shape)[i] == pytest.approx(operation.placed.seconds)


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


def test_the_range_of_mfus_leaves_out_attention_that_is_not_computed() -> None:
    """PaLM's formula has the whole square in every layer; of a model that chooses 512 tokens it says little."""
    row = next(row for row in public_configs() if row["name"].endswith("DeepSeek-V4-Flash"))
    given: Any = {"accelerators": 1024, "peak": 989.4e12, "tokens_per_second": 1.674e6}
    for spec, sparse in ((read_hf_config(row["config"]).spec, True), (PALM, False)):
        ways = {way.id: way for way in which_mfu(spec, 8192, **given)}
        said = flops_text.scores_text(tuple(ways.values()), 1.674e6)
        takeaway = said.values.get("takeaway", said)
        assert (takeaway is said) != sparse
        assert (takeaway.values["high"] >= ways["palm"].utilisation) != sparse


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
