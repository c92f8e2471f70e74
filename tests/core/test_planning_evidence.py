"""Evidence: every published row under one convention or left out by name."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from core.hardware.accelerators import find
from core.models.catalog import model_named
from core.models.flop_formulas import hardware_flop_narayanan
from core.runs.published import evidence, left_out, peak_16bit, published_runs, width_of

RUNS = published_runs()


def test_every_row_is_known_by_kind_and_source() -> None:
    kinds = Counter(run.kind for run in RUNS)
    assert kinds["benchmark"] > 400
    assert kinds["full_run"] > 70
    assert all(run.model and run.kind and run.source for run in RUNS)
    printed = [run for run in RUNS if not math.isnan(run.flop_per_s)]
    assert all(run.flop_convention for run in printed)


def test_every_row_is_evidence_or_left_out_with_a_reason() -> None:
    for basis, kinds in (("whole", {"full_run"}), ("steady", {"benchmark", "full_run_stage"})):
        rows = [run for run in RUNS if run.kind in kinds]
        evidences, out = evidence(basis), left_out(basis)  # type: ignore[arg-type]
        assert sum(row.rows for row in evidences) + len(out) == len(rows)
        assert all(row.reason for row in out)
        assert all(0.01 < row.utilisation < (1 if row.width == "16-bit" else 2) for row in evidences)
    reasons = {row.run.model: row.reason for row in left_out("whole")}
    assert "assumes" in reasons["GPT-3 175B"]
    assert "impossible" in reasons["llm.c GPT-3 125M"]
    assert "post-training" in reasons["DBRX 132B"]
    assert "hardware(?)" not in {row.run.flop_convention for row in evidence("steady")}


def test_hardware_flops_agree_with_the_time_of_a_step() -> None:
    """BLOOM's chronicles and MT-NLG print both: the source's own formula must give the rate of the printed time."""
    both = [
        run
        for run in RUNS
        if run.flop_convention.startswith("hardware")
        and not math.isnan(run.step_seconds * run.batch_tokens * run.flop_per_s)
    ]
    off: list[float] = []
    for run in both:
        per_token = hardware_flop_narayanan(run.layers, run.hidden, run.seq_len, run.vocab)
        off.append(run.batch_tokens / run.step_seconds / run.accelerators * per_token / run.flop_per_s - 1)
    assert len(both) > 15
    assert abs(float(np.median(off))) < 0.01
    assert max(abs(o) for o in off) < 0.06


def test_a_model_mfu_is_scaled_to_the_rule() -> None:
    """Llama 3.1's 41 % at 8,192 tokens holds 4 to 8 % of attention that 6N leaves out."""
    (row,) = [r for r in evidence("steady") if r.run.model.startswith("Llama-3.1 405B stage")]
    assert row.rows == 2
    assert row.run.flop_per_s / peak_16bit(row.run.accelerator) / row.utilisation == pytest.approx(1.06, abs=0.01)
    assert any("attention is more" in out.reason or "long" in out.reason for out in left_out("steady"))


def test_llm_foundrys_rows_count_without_attention() -> None:
    """Their printed MFU divided by ours is 1 + attention over 6N, row by row."""
    rows = [r for r in evidence("steady") if "llm-foundry" in r.run.model and r.width == "16-bit" and r.run.mfu > 0]
    assert len(rows) > 15
    for row in rows:
        run = row.run
        attention = 12 * run.layers * run.hidden * run.seq_len / (6 * run.params)
        assert run.mfu / row.utilisation == pytest.approx(1 + attention, rel=3e-3)


def test_widths() -> None:
    assert [width_of(p) for p in ("", "bf16", "fp8 mixed", "mxfp8", "nvfp4", "bf16 + fp8 activation storage")] == [
        "16-bit",
        "16-bit",
        "8-bit",
        "8-bit",
        "4-bit",
        "16-bit",
    ]
    assert peak_16bit("V100 SXM 32 GB") == find("V100 SXM 32 GB").peak("fp16")


def test_catalogue_models_have_the_evidence_of_their_runs() -> None:
    linked = [row for row in evidence("whole") if row.run.catalog]
    assert len(linked) > 25
    for row in linked:
        assert row.experts == model_named(row.run.catalog).mixture, row.run.model
