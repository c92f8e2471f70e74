"""Models with a state in place of some attention, Mamba-2 or the gated delta rule: memory and time.

Their parameters and FLOPs are those that `core.models` counts, which transformers' own classes confirm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.flops import flops_per_token
from core.models.mixer import Mixer
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec
from core.search.fastest import searched
from core.search.request import SearchRequest
from core.step_time.calibration.fit import kept
from core.step_time.calibration.measured_steps import step_runs
from core.step_time.step import step_time
from core.step_time.work import layer_work
from core.training.activations.operations import flop_again, kept_by_operation
from core.training.activations.saved import saved_tensors
from core.training.activations.tensors import FUSED
from core.training.device.ranks import pieces_of, rank_parameters, stages_of
from core.training.layout import Degrees, Layout
from tests.core.memory_of import memory_per_device

NANO = next(run.spec for run in step_runs() if run.name.startswith("Nemotron_3_Nano"))
DELTA = Mixer("delta", layers=36, heads=32, width=128, state=128, groups=16)
NEXT = TransformerSpec(
    layers=48,
    hidden=2048,
    heads=16,
    kv_heads=2,
    head_dim=256,
    ffn=0,
    vocab=151_936,
    glu=True,
    tied_head=False,
    qk_norm="head",
    attention_gate=True,
    experts=Experts(count=512, per_token=10, width=512, shared=1, shared_width=512, shared_gate=True),
    mixer=DELTA,
)
"""Qwen3-Next 80B-A3B."""
DENSE = TransformerSpec(4, 512, 8, 2, 64, 1536, 1000, glu=True, tied_head=False)
MAMBA2 = Mixer("mamba2", layers=4, heads=16, width=64, state=128, groups=8)
SPECS = {
    "Nemotron 3 Nano": NANO,
    "Qwen3-Next": NEXT,
    "dense and Mamba-2": replace(DENSE, mixer=replace(MAMBA2, layers=3)),
    "Mamba-2 alone": replace(DENSE, mixer=MAMBA2, ffn=0, norms_per_layer=1),
    "gate": replace(DENSE, attention_gate=True),
}
H100S = cluster(find("H100 SXM"), 8)


@pytest.mark.parametrize("name", SPECS)
def test_one_accelerator_holds_every_parameter(name: str) -> None:
    spec = SPECS[name]
    held = memory_per_device(spec, Layout(), seq_len=4096)
    assert held.parameters == pytest.approx(2 * parameters(spec).total)


@pytest.mark.parametrize("name", SPECS)
def test_tensor_parallel_ranks_hold_them_all_but_norms_once(name: str) -> None:
    spec = SPECS[name]
    half = memory_per_device(spec, Layout(tensor=2), seq_len=4096)
    assert parameters(spec).total <= half.parameters < 1.01 * parameters(spec).total


def test_stages_hold_the_norms_of_their_layers() -> None:
    """Nemotron 3 has layers without a network, which have one norm. The last stage has that before the head, too."""
    degrees = Degrees(pipeline=4)
    stages = stages_of(NANO, degrees, range(4))
    held = rank_parameters(pieces_of(NANO, degrees), stages).norms / NANO.hidden
    assert np.all(held == stages.layers + stages.moe_layers + stages.last)


@pytest.mark.parametrize("name", SPECS)
def test_products_are_those_of_the_count_of_flops(name: str) -> None:
    """All products with weights but the short convolution and a gate of one row, which are no matrix products."""
    spec = SPECS[name]
    work, moe = layer_work(spec, FUSED, 2.0), spec.experts
    layer = work.dense.flop(1)
    if moe:
        layer += work.moe_share * (moe.per_token * work.routed.flop(1) + work.router.flop(1))
    parts = {part.id: part.flop for part in flops_per_token(spec, 4096).parts}
    counted = flops_per_token(spec, 4096).weights - parts.get("convolution", 0) - parts.get("shared_gate", 0)
    assert work.layers * layer + work.head.flop(1) == pytest.approx(counted)
    assert work.layers * work.scan_flop == pytest.approx(parts.get("scan", 0))


@pytest.mark.parametrize(("name", "casts"), [*zip(SPECS, (6 * 3 + 23, 12 * 4 + 36, 1 * 3 + 3, 4, 4 * 4), strict=True)])
def test_under_autocast_each_matmul_has_a_cast_of_its_input(name: str, casts: int) -> None:
    """Three in a layer with attention, four with a gate, one with a state."""
    spec, kind = SPECS[name], "experts" if SPECS[name].experts else "dense"
    inputs = next(x for x in saved_tensors(spec, FUSED, kind, residual=4) if x.name.startswith("norm 1 output"))
    assert spec.layers * inputs.elements == pytest.approx(casts * spec.hidden)


@pytest.mark.parametrize("name", ["Nemotron 3 Nano", "Qwen3-Next", "dense and Mamba-2"])
def test_every_second_matmul_is_kept_of_each_kind_of_layer(name: str) -> None:
    """Per-operation recomputation of a hybrid is that of its layers with attention and of those with a state."""
    spec = SPECS[name]
    assert spec.mixer
    states = spec.mixer.layers
    apart = (
        (spec.layers - states, replace(spec, mixer=None, ffn=64)),
        (states, replace(spec, mixer=replace(spec.mixer, layers=spec.layers), ffn=64)),
    )
    mixed = replace(spec, ffn=64)
    for kind in ("dense", "experts") if spec.experts else ("dense",):
        kept = [
            sum(float(x.tensor.elements * x.tensor.each) for x in kept_by_operation(one, FUSED, kind, 2))
            for one in (mixed, *(one for _, one in apart))
        ]
        assert spec.layers * kept[0] == pytest.approx(
            sum(n * size for (n, _), size in zip(apart, kept[1:], strict=True))
        )
    assert spec.layers * flop_again(mixed) == pytest.approx(sum(n * flop_again(one) for n, one in apart))


def test_a_state_takes_the_same_time_a_token_at_every_length() -> None:
    spec, layout = SPECS["Mamba-2 alone"], Layout(data=8)
    short, long = (step_time(spec, H100S, replace(layout, micro_batch=n), seq_len=32768 // n) for n in (8, 1))
    assert short.total == pytest.approx(long.total)


@pytest.mark.parametrize("name", SPECS)
def test_a_search_finds_a_layout(name: str) -> None:
    best = searched(SearchRequest(SPECS[name], cluster(find("H100 SXM"), 64), 64, 4096)).best
    assert best
    assert best.seconds > 0


def test_published_steps_of_hybrids_are_met() -> None:
    """With the source left out: of two vendors' stacks, all within a sixth."""
    report = kept()
    errors = [error for run, error in zip(report.runs, report.left, strict=True) if run.spec.mixer]
    assert len(errors) > 20
    assert max(map(abs, errors)) < 0.17
