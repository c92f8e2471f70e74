"""What the panels say of a count by layer, of a layer on the roofline and of the split, number by number."""

from __future__ import annotations

import pytest
from core.planning.answer.outlook import outlook

from core.hardware.accelerators import find
from core.models.catalog import model_named, nearest_dense
from core.models.flops import flops_per_token
from core.planning.answer.words import percent
from core.planning.budget.interval import Interval
from core.planning.budget.rule import Plan, budget, count_every_way, explain_way, scale_of
from core.planning.counting import words as words_panels
from core.planning.counting.scored import which_mfu
from core.planning.layer.operations import layer_roofline
from core.planning.layer.words import SPLITS, explain_losses, layered, operations, scores, splits
from core.planning.split.scaling import LAWS, compute_optimal
from core.units import format_quantity, significant
from tests.core.said import says

H100 = find("H100 SXM")
PLAN = Plan(70e9, 15e12, 1024, H100.peak("bf16"), 0.26)
LLAMA = model_named("Llama 3 70B").spec


def test_a_convention_changes_a_published_mfu_and_not_the_time() -> None:
    counts = count_every_way(LLAMA, 8192, PLAN)
    says(words_panels.ways_headings(typed=False)[-1], "MFU")
    shown = [row[-1] for row in words_panels.ways(counts, typed=False)]
    assert shown[0] == "26 %"
    assert all(text.endswith(" %") for text in shown)
    by_rule = budget(PLAN).seconds
    for way in counts:
        assert way.mfu == pytest.approx(way.flop / (PLAN.accelerators * PLAN.peak * by_rule))
        assert explain_way(way, PLAN, typed=False).value == pytest.approx(way.mfu)


def test_a_typed_mfu_gives_a_time_under_every_convention() -> None:
    counts = count_every_way(LLAMA, 8192, PLAN)
    says(words_panels.ways_headings(typed=True)[-1], "time")
    for way, row in zip(counts, words_panels.ways(counts, typed=True), strict=True):
        assert row[-1] == format_quantity(way.seconds, "seconds")
        assert explain_way(way, PLAN, typed=True).value == way.seconds


def test_sentence_and_tables_hold_one_count() -> None:
    """70B typed stands on the layers of another model: every figure per token is scaled to 70B."""
    spec = nearest_dense(70e9).spec
    scale = scale_of(spec, PLAN)
    assert abs(scale - 1) > 1e-3
    causal = next(way for way in count_every_way(spec, 8192, PLAN) if way.id == "causal")
    shown = format_quantity(causal.per_token, "flop")
    assert shown in words_panels.where(flops_per_token(spec, 8192, "causal"), scale)
    scored = which_mfu(spec, 8192, accelerators=1024, peak=PLAN.peak, tokens_per_second=6e5, scale=scale)
    assert {row[1] for row in scores(scored)} >= {shown, format_quantity(6 * 70e9, "flop")}
    unscaled = which_mfu(spec, 8192, accelerators=1024, peak=PLAN.peak, tokens_per_second=6e5)
    for one, other in zip(scored, unscaled, strict=True):
        assert one.utilisation == pytest.approx(scale * other.utilisation)
        assert one.per_rule == other.per_rule
        assert one.explanation.terms[0].value == 6e5


@pytest.mark.parametrize(("name", "seq_len"), [("Llama 3 70B", 8192), ("DeepSeek-V3", 4096), ("GPT-3 175B", 2048)])
def test_the_layers_shares_hold_neither_head_nor_update(name: str, seq_len: int) -> None:
    found = layer_roofline(model_named(name).spec, H100, seq_len=seq_len, tokens=8192.0)
    inside = [o for o in found if o.in_layer and o.phase != "update"]
    seconds = sum(float(o.placed.seconds) for o in inside)
    matmul = sum(float(o.placed.seconds) for o in inside if o.kind == "matmul") / seconds
    update = sum(float(o.placed.seconds) for o in found if o.in_layer and o.phase == "update") / seconds
    head = sum(float(o.placed.seconds) for o in found if not o.in_layer) / seconds
    said = layered(found, H100.name, 8192)
    says(said, percent(matmul))
    says(said, percent(update), "once per step")
    says(said, f"{significant(head, 3)} such layers", "once in the model")
    bare = layer_roofline(model_named(name).spec, H100, seq_len=seq_len, tokens=8192.0, head=False)
    assert said.startswith(layered(bare, H100.name, 8192).rstrip("."))
    rows = operations(found)
    assert sum(float(row[6].split()[0]) for row in rows if row[6].endswith("%") and "under" not in row[6]) < 100.1
    beside = {row[0]: row[2] for row in rows if row[2] == row[6]}
    assert beside == {
        "AdamW update": "per step",
        "Output head": "per model",
        "Cross-entropy": "per model",
        "AdamW update, head": "per model",
    }


def test_every_split_and_the_plan_have_their_loss_by_either_law() -> None:
    o = outlook(
        "time",
        parameters=70e9,
        tokens=15e12,
        accelerators=1024,
        peak=H100.peak("bf16"),
        mfu=Interval.point(0.4),
        prices=(3.0, 3.5),
        limits=None,
    )
    found = compute_optimal(6 * 70e9 * 15e12)
    rows = splits(found, o)
    assert {len(row) for row in rows} == {len(SPLITS)}
    assert rows[-1][0] == "**your plan**"
    for column, law in enumerate(LAWS, start=4):
        assert rows[-1][column] == f"{law.loss(70e9, 15e12):.4f}"
        own = next(row for row, split in zip(rows, found, strict=False) if split.id == law.id)
        assert float(own[column]) == min(float(row[column]) for row in rows)
    assert [e.value for e in explain_losses(o)] == [law.loss(70e9, 15e12) for law in LAWS]
