"""Published utilisations recomputed from the model's shape: each source under the convention it counts by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from core.models.catalog import model_named
from core.models.flops import Attention, conventions, flops_per_token
from core.models.parameters import parameters
from core.models.spec import Experts, TransformerSpec
from core.rows import read_rows
from core.runs.conventions import utilisation_of_rate
from tests.every import every

Row = Mapping[str, str]
ROWS = read_rows("training_runs")
FOUNDRY = [row for row in ROWS if "llm-foundry" in row["source"]]
BRIDGE = [row for row in ROWS if "Megatron-Bridge" in row["source"] and row["tokens_per_s_per_gpu"]]
KORTHIKANTI = [row for row in ROWS if "2205.05198 Table 3" in row["source"] and row["mfu_reported"]]


def gpt(row: Row, **changes: object) -> TransformerSpec:
    """A GPT of the row's sizes: plain feed-forward of 4h, biases everywhere, a position table, a tied head."""
    hidden, heads = int(row["hidden"]), int(row["heads"])
    spec = TransformerSpec(
        layers=int(row["layers"]),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        vocab=int(row["vocab"]),
        glu=False,
        tied_head=True,
        norm="layernorm",
        norm_vectors=2,
        position_rows=int(row["seq_len"]),
        attention_bias=True,
        output_bias=True,
        ffn_bias=True,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def per_token(spec: TransformerSpec, seq_len: int, way: str) -> float:
    """Training FLOPs per token under the named convention."""
    return next(c.per_token for c in conventions(spec, seq_len) if c.id == way)


def foundry_mfu(row: Row, tokens_per_s: float) -> float:
    """MFU as llm-foundry counts it, against the dense peaks its table names."""
    h100 = "h100" in row["model"]
    peak = 312e12 if not h100 else 1979e12 if "fp8" in row["precision"] else 989.5e12
    return utilisation_of_rate(tokens_per_s, per_token(gpt(row), int(row["seq_len"]), "palm"), 1, peak)


@every("row", FOUNDRY, ids=lambda r: r["model"])
def test_llm_foundry(row: Row) -> None:
    """Its count of parameters exactly, and its MFU as exactly as it prints tokens per second: cut to a whole one."""
    assert parameters(gpt(row)).total == int(row["params_total"])
    printed, rate = float(row["mfu_reported"]), float(row["tokens_per_s_per_gpu"])
    digit = 0.5001e-4
    assert foundry_mfu(row, rate) - digit <= printed <= foundry_mfu(row, rate + 1) + digit
    full = row["recompute"] == "full"
    assert float(row["hfu_reported"]) == pytest.approx(printed * (4 / 3 if full else 1), abs=1.2e-4)


_LLAMA = {"LLAMA3_8B": "Llama 3 8B", "LLAMA3_70B": "Llama 3 70B", "LLAMA3.1_405B": "Llama 3.1 405B"}


def bridge_spec(row: Row) -> TransformerSpec | None:
    """The model of a Megatron-Bridge row; None where its table counted FLOPs otherwise for a while."""
    name = row["model"].split()[0]
    if name in _LLAMA:
        return model_named(_LLAMA[name]).spec
    small = model_named("Qwen3 30B-A3B").spec
    if name == "Qwen3_30B_a3B":
        return small
    if name == "Qwen3_235B_a22B":
        experts = Experts(count=128, per_token=8, width=1536)
        return replace(small, layers=94, hidden=4096, heads=64, kv_heads=4, experts=experts)
    deepseek = model_named("DeepSeek-V3").spec
    if name == "DeepSeekV3":
        return deepseek if "w/o MTP" in row["model"] else replace(deepseek, mtp_modules=1)
    if name == "Kimi_K2":
        experts = Experts(count=384, per_token=8, width=2048, shared=1, dense_layers=1)
        return replace(deepseek, heads=64, kv_heads=64, vocab=163840, experts=experts)
    oss = model_named("gpt-oss 20B").spec
    assert oss.experts
    recent = re.search(r"26\.0[68]", row["model"])
    return replace(oss, layers=36, experts=replace(oss.experts, count=128)) if recent else None


COMPARED = [(row, spec) for row in BRIDGE if (spec := bridge_spec(row))]


def bridge_error(row: Row, spec: TransformerSpec, attention: Attention) -> float:
    """TFLOP/s from the tokens per second and our count, relative to the printed TFLOP/s."""
    counted = flops_per_token(spec, int(row["seq_len"]), attention).training
    return float(row["tokens_per_s_per_gpu"]) * counted / (float(row["tflops_per_gpu"]) * 1e12) - 1


@every(("row", "spec"), COMPARED, ids=[row["model"] for row, _ in COMPARED])
def test_megatron_bridge_counts_causal(row: Row, spec: TransformerSpec) -> None:
    """Dense, experts, latent attention, multi-token prediction and windows: all by the causal convention."""
    assert bridge_error(row, spec, "causal") == pytest.approx(0, abs=0.025)


def test_megatron_bridge_on_the_whole() -> None:
    off = sorted(abs(bridge_error(row, spec, "causal")) for row, spec in COMPARED)
    assert len(off) > 130
    assert off[len(off) // 2] < 0.003
    assert sum(value > 0.01 for value in off) <= len(off) / 30


@pytest.mark.parametrize("name", ["GPT OSS", "(w/o MTP)"])
def test_what_other_readings_would_miss(name: str) -> None:
    """Windows left out, or prediction modules counted where there are none, miss by more than 4 %."""
    for row, spec in [(r, s) for r, s in COMPARED if name in r["model"]]:
        wrong = replace(spec, window=None) if spec.window else replace(spec, mtp_modules=1)
        assert bridge_error(row, wrong, "causal") > 0.04


@pytest.mark.parametrize("row", KORTHIKANTI, ids=lambda r: r["model"])
def test_korthikanti(row: Row) -> None:
    """MFU within the rounding of the printed step time; HFU as the paper's equation 9 charges recomputation.

    That equation adds the attention square's forward pass three times over; redoing it once adds a third of that.
    """
    spec, seq = gpt(row, position_rows=0), int(row["seq_len"])
    counted = flops_per_token(spec, seq, "full")
    tokens, gpus, step = (float(row[k]) for k in ("global_batch_tokens", "n_gpus", "step_time_s"))

    def used(flop: float, seconds: float) -> float:
        return utilisation_of_rate(tokens / seconds, flop, gpus, 312e12)

    printed = float(row["mfu_reported"])
    assert used(counted.training, step + 0.005) - 5e-4 <= printed <= used(counted.training, step - 0.005) + 5e-4
    ratio = float(row["hfu_reported"]) / printed
    as_printed = (counted.training + 3 * counted.squares) / counted.training
    assert ratio == pytest.approx(as_printed, abs=0.0025 if float(row["mfu_reported"]) > 0.5 else 0.003)
    assert counted.training + counted.squares < counted.training + 3 * counted.squares
