"""Bytes of the model states against published tables, the lecture's numbers, and their own algebra."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hardware.accelerators import accelerators
from core.hardware.accelerators import find as find_accelerator
from core.limits import limit
from core.models.catalog import model_named
from core.palette import LIGHT
from core.training import (
    POLICIES,
    REPLICATED,
    SHARDED,
    SHARDINGS,
    ZERO_1,
    ZERO_2,
    Sharding,
    TrainingMemory,
    account,
    bytes_per_parameter,
    checkpoint_bytes,
    find_optimizer,
    find_policy,
    largest_model,
    optimizers,
    states_per_parameter,
    why_not,
    words,
)
from core.training.figures import state_bars
from core.training.optimizers import LEFT_OUT
from core.units import parse_quantity
from tests.core.said import says

H100 = 80e9
MIXED = "mixed bf16, fp32 master"
MEGATRON = "mixed bf16, fp32 master, fp32 gradients"
SHAPE = model_named("Llama 3 8B").spec


def plan(
    parameters: float,
    precision: str = "fp32",
    optimizer: str = "AdamW",
    accelerators: int = 8,
    memory: float = H100,
    sharding: Sharding = SHARDED,
) -> TrainingMemory:
    return account(
        parameters,
        find_optimizer(optimizer),
        find_policy(precision),
        accelerators=accelerators,
        memory=memory,
        sharding=sharding,
    )


# ------------------------------------------------------------------------------------------- the lecture


def test_m1_eight_h100_hold_forty_billion_parameters() -> None:
    assert largest_model(8, 80e9, bytes_per_parameter(4, 4, 0, 8)) == 640e9 / (4 + 4 + 4 + 4) == 40e9
    assert plan(40e9).largest == 40e9
    assert plan(40e9).fit == "full"
    assert plan(40e9).spare == 0


def test_m2_a_master_copy_costs_what_bf16_saves() -> None:
    adamw = find_optimizer("AdamW")
    assert states_per_parameter(adamw, find_policy(MIXED)).total == 2 + 2 + 4 + 4 + 4 == 16
    assert states_per_parameter(adamw, find_policy("fp32")).total == 16
    assert states_per_parameter(adamw, find_policy(MEGATRON)).total == 18
    for optimizer in optimizers().values():  # the saving is always spent, whatever the optimizer keeps
        mixed, full = (states_per_parameter(optimizer, find_policy(p), SHAPE).total for p in (MIXED, "fp32"))
        assert mixed == full


def test_m4_adagrad_keeps_one_state_per_parameter() -> None:
    """4·(P + P + P) of the lecture's 4·(P + B·D·L + P + P) are model states; P = 36 of the deep linear model."""
    assert plan(36, optimizer="AdaGrad", accelerators=1).total == 4 * (36 + 36 + 36)
    assert plan(36, optimizer="AdaGrad", accelerators=1).total + 4 * (2 * 4 * 2) == 496


def test_m8_a_checkpoint_of_seventy_billion_is_840_gigabytes() -> None:
    assert plan(70e9).checkpoint() == 840e9
    assert checkpoint_bytes(70e9, 4, 8) == 840e9
    assert plan(70e9, MIXED).checkpoint() == 840e9
    assert plan(70e9, MIXED).checkpoint(with_compute_copy=True) == 980e9
    assert plan(70e9, "bf16 throughout").checkpoint(with_compute_copy=True) == 70e9 * (2 + 4)
    assert plan(70e9, "mixed fp16, fp32 copies of both").checkpoint() == 840e9  # the gradient copy is not saved


# ------------------------------------------------------------------------------------------- published tables

ZERO_TABLE_1 = [
    # GB on each accelerator at 7.5 B, 128 B and 1T parameters; Rajbhandari et al. 2019, table 1, K = 12
    (7.5e9, 64, REPLICATED, 120.0),
    (7.5e9, 64, ZERO_1, 31.4),
    (7.5e9, 64, ZERO_2, 16.6),
    (7.5e9, 64, SHARDED, 1.88),
    (128e9, 64, REPLICATED, 2048.0),
    (128e9, 64, ZERO_1, 536.0),
    (128e9, 64, ZERO_2, 284.0),
    (128e9, 64, SHARDED, 32.0),
    (1e12, 1024, ZERO_1, 4011.0),
    (1e12, 1024, ZERO_2, 2013.0),
    (1e12, 1024, SHARDED, 15.6),
]


@pytest.mark.parametrize(("parameters", "degree", "sharding", "gigabytes"), ZERO_TABLE_1)
def test_zero_paper_table_1(parameters: float, degree: int, sharding: Sharding, gigabytes: float) -> None:
    made = plan(parameters, MIXED, accelerators=degree, sharding=sharding)
    assert made.total / degree / 1e9 == pytest.approx(gigabytes, rel=0.004)


@pytest.mark.parametrize("d", [1, 2, 8, 64])
@pytest.mark.parametrize(
    ("precision", "alone", "kept", "shared"),
    [("mixed fp16, fp32 copies of both", 20, 4, 16), (MEGATRON, 18, 6, 12), ("fp32", 16, 8, 8)],
)
def test_megatron_distributed_optimizer(precision: str, alone: int, kept: int, shared: int, d: int) -> None:
    """20 and 4 + 16/d, 18 and 6 + 12/d, 16 and 8 + 8/d bytes: Megatron Core's documentation of the optimizer."""
    assert plan(1e9, precision, accelerators=d, sharding=REPLICATED).total == pytest.approx(1e9 * d * alone)
    assert plan(1e9, precision, accelerators=d, sharding=ZERO_1).total / d == pytest.approx(1e9 * (kept + shared / d))


def test_deepspeed_zero_3_estimator() -> None:
    """DeepSpeed's estimator for ZeRO-3 without offload: 18N/n, next to its buffer for the largest layer."""
    assert plan(1e9, MEGATRON, accelerators=16).total / 16 == 18e9 / 16


def test_bloom_checkpoint() -> None:
    """176,247,271,424 parameters: "329GB" of bf16 weights and "2.3TB" in full, both rounded up in binary units."""
    bloom = plan(176_247_271_424, MIXED)
    assert math.ceil(bloom.parameters * 2 / 2**30) == 329
    assert math.ceil(10 * bloom.checkpoint(with_compute_copy=True) / 2**40) / 10 == 2.3
    assert math.ceil(10 * bloom.checkpoint() / 2**40) / 10 != 2.3


# ------------------------------------------------------------------------------------------- algebra

ANY_PLAN = st.builds(
    plan,
    st.floats(1, 1e16),
    st.sampled_from(list(POLICIES)),
    st.sampled_from(list(optimizers())),
    st.integers(1, 10_000_000),
    st.floats(1e9, 1e12),
    st.sampled_from(list(SHARDINGS.values())),
)


@given(ANY_PLAN)
def test_numbers_agree_with_each_other(made: TrainingMemory) -> None:
    assert made.stored.total == pytest.approx(made.total, rel=1e-12)
    assert made.spare == pytest.approx(made.capacity - made.total, rel=1e-9, abs=1e-9 * made.capacity)
    assert made.largest * made.stored_per_parameter == pytest.approx(made.capacity, rel=1e-12)
    if made.fit == "over":
        assert made.parameters > made.largest
    if made.fit == "room":
        assert made.parameters < made.largest
    assert {e.name.rsplit(".", 1)[1]: e.value for e in made.explain()}["largest_model"] == made.largest


@given(ANY_PLAN)
def test_fewest_accelerators_is_the_smallest_number_that_holds_the_states(made: TrainingMemory) -> None:
    def fits(count: int) -> bool:
        return account(
            made.parameters,
            made.optimizer,
            made.policy,
            accelerators=count,
            memory=made.memory,
            sharding=made.sharding,
        ).fit in ("room", "full")

    if made.fewest is None:
        assert not fits(10**9)
    elif made.fewest < 10**8:  # beyond, float64's own spacing blurs which count comes first
        assert fits(made.fewest)
        assert made.fewest == 1 or not fits(made.fewest - 1)


@given(ANY_PLAN)
def test_words_never_praise_an_over_full_accelerator(made: TrainingMemory) -> None:
    text = words.verdict(made)
    assert ("too much" in text) == (made.fit == "over")
    assert ("leaves" in text) == (made.fit == "room")
    assert "fits" not in text


def test_sharding_decides_whether_more_accelerators_hold_more() -> None:
    for count in (1, 8, 64):
        assert plan(1e9, accelerators=count, sharding=REPLICATED).largest == plan(1e9, accelerators=1).largest == 5e9
        assert plan(1e9, accelerators=count).largest == count * 5e9


def test_fewest_accelerators_by_hand() -> None:
    assert plan(40e9).fewest == 8
    assert plan(70e9).fewest == 14
    assert plan(405_853_388_800, MEGATRON).fewest == 92
    assert plan(7e9, sharding=REPLICATED).fewest is None
    assert plan(5e9, sharding=REPLICATED).fewest == 1
    assert plan(10e9, sharding=ZERO_1).fewest is None  # parameters and gradients alone fill each one
    assert plan(9e9, sharding=ZERO_1).fewest == 9  # 72 GB of each are taken; 72 GB are left to share in 8 GB pieces


def test_unknown_memory_stays_unknown() -> None:
    made = plan(1e9, memory=math.nan)
    assert made.fit == "unknown"
    assert made.fewest is None
    assert math.isnan(made.largest)
    assert "unknown" in words.verdict(made)
    assert "unknown" in words.holding(made, "Chip")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": 0}, "at least one parameter"),
        ({"parameters": math.nan}, "at least one parameter"),
        ({"parameters": 1e9, "accelerators": 0}, "at least one accelerator"),
        ({"parameters": 1e9, "memory": 0.0}, "is positive"),
    ],
)
def test_impossible_accounts_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**arguments)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- sentences


def test_the_lectures_answer_as_a_sentence() -> None:
    made = plan(32e9)
    says(words.holding(made, "H100 SXM 80 GB"), "8 × H100 SXM 80 GB", "40B parameters", "AdamW in fp32")
    says(words.verdict(made), "32B", "512 GB", "leaves", "128 GB", "16 GB on each")
    says(words.what_is_counted(made), "16 bytes", "4 parameters + 4 gradients + 8 optimizer state", "activations")


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        (plan(70e9), ("70B", "1,120 GB", "480 GB too much", "60 GB on each", "At least 14")),
        (plan(40e9), ("40B", "all 640 GB", "nothing is left")),
        (plan(7e9, sharding=REPLICATED), ("7B", "112 GB on each", "32 GB too much", "would not help")),
        (plan(1e9, sharding=REPLICATED), ("1B", "16 GB on each", "leaves 64 GB")),
        (plan(7e9, MIXED, accelerators=1, memory=24e9), ("7B", "112 GB", "88 GB too much", "At least 5")),
    ],
)
def test_verdicts(made: TrainingMemory, parts: tuple[str, ...]) -> None:
    says(words.verdict(made), *parts)


def test_one_accelerator_and_replicas_in_words() -> None:
    says(words.holding(plan(1e9, accelerators=1), "A100"), "One A100", "5B parameters")
    says(words.holding(plan(1e9, sharding=REPLICATED), "A100"), "in fp32", "a full copy on each")
    assert words.device_name("A100 SXM 80 GB", 80e9) == "A100 SXM 80 GB"
    assert words.device_name("RTX 4090", 24e9) == "RTX 4090 24 GB"
    assert "8 master weights and gradients" in words.spelled(plan(1e9, "mixed fp16, fp32 copies of both"))
    says(words.memory_read_as(80e9, ""), "decimal 80 GB", "74.51 GiB")


def test_memory_basis_never_contradicts_itself() -> None:
    h100 = find_accelerator("H100 SXM")
    said = words.memory_read_as(h100.memory_bytes, h100.memory_note)
    says(said, "reports more", "81,559 MiB in nvidia-smi", "85.52 GB")
    assert "81,920 MiB" in words.memory_read_as(80e9, find_accelerator("A100 SXM 80 GB").memory_note)
    assert "180 GB are usable" in words.memory_read_as(192e9, find_accelerator("B100").memory_note)
    assert "the 32 GiB of the documentation, which are 34.36 GB" in words.memory_read_as(32 * 2**30, "GiB (doc)")
    for device in accelerators():
        said = words.memory_read_as(device.memory_bytes, device.memory_note)
        assert "more than the part reports" not in said
        assert not any(shorthand in said for shorthand in ("printed", "class", "aiconfigurator", "(doc)"))


@given(ANY_PLAN)
def test_the_largest_model_as_typed_fits(made: TrainingMemory) -> None:
    typed = parse_quantity(words.largest_typed(made), "count", low=1, high=limit("parameters"), whole=True)
    assert account(
        typed,
        made.optimizer,
        made.policy,
        accelerators=made.accelerators,
        memory=made.memory,
        sharding=made.sharding,
        spec=made.shape,
    ).fit in ("room", "full")
    assert typed >= min(made.largest, limit("parameters")) * (1 - 1.001e-3)


def test_the_largest_model_as_typed_by_hand() -> None:
    assert words.largest_typed(plan(1e9)) == "40B"
    assert words.largest_typed(plan(1e9, accelerators=7, memory=141e9)) == "61.68B"  # of 61.6875B, shown as 61.69B
    assert words.largest_typed(plan(1e9, memory=math.nan)) == ""


@pytest.mark.parametrize(
    ("count", "article"),
    [
        *((count, "An") for count in ("8B", "80B", "8.03B", "11B", "11.5B", "18T", "11,000")),
        *((count, "A") for count in ("70B", "110B", "180B", "1", "32B")),
    ],
)
def test_articles_as_read_aloud(count: str, article: str) -> None:
    assert words.article(count) == article
    assert words.verdict(plan(8e9)).startswith("An **8B** model")
    says(words.verdict(plan(1)), "A model of 1 parameter ", "16 B", "leaves")
    says(words.verdict(plan(9e15)), "A model of 9 × 10¹⁵ parameters", "144 PB", "144 PB too much")
    says(words.verdict(plan(999_999)), "A model of 999,999 parameters")
    assert words.plural(1, "parameter") == "parameter"
    assert words.plural(2, "parameter") == "parameters"


def test_checkpoint_says_what_is_counted() -> None:
    said = words.checkpoint(plan(70e9))
    says(said, "840 GB", "70B × (4 fp32 weights + 8 optimizer state)", "gradients are not saved")
    says(words.checkpoint(plan(70e9, MIXED)), "bf16 weights", "140 GB")


def test_sources_are_cited_with_their_addresses() -> None:
    cited = words.cited(plan(70e9, MEGATRON))
    assert "arXiv:1711.05101" in cited
    assert "docs.nvidia.com/megatron-core" in cited
    assert "https://" not in cited


@given(ANY_PLAN)
def test_picture_and_sentence_say_a_total_in_the_same_words(made: TrainingMemory) -> None:
    figure = state_bars([made], LIGHT, chosen=made.optimizer.name, device="Chip")
    total = words.unit_of([made]).say(made.total / words.shared_among(made))
    (tick,) = figure["layout"]["yaxis2"]["ticktext"]
    assert f">{total}, " in tick
    assert total in words.verdict(made)


def test_amounts_are_said_in_the_unit_of_the_picture() -> None:
    unit = words.unit_of([plan(405.85e9), plan(1e9)])
    assert unit.name == "GB"
    assert unit.say(7305.3e9) == "7,305 GB"
    assert unit.say(3e6) == "3 MB"
    assert unit.say(math.nan) == "unknown"
    assert words.unit_of([plan(1e9, memory=math.nan)]).name == "GB"
    assert "takes **4,870 GB**" in words.checkpoint(plan(405.85e9), unit)


@pytest.mark.parametrize(
    ("policy", "name", "said"),
    [
        (MIXED, "V100 SXM 32 GB", "**V100 SXM 32 GB has no bf16 matrix units:**"),
        (MIXED, "V100 PCIe 32 GB", "its 112 TFLOP/s are for fp16."),
        ("fp32, bf16 autocast", "T4", "**T4 has no bf16 matrix units:**"),
        ("mixed fp16, fp32 copies of both", "TPU v4", "**Whether TPU v4 multiplies fp16 is unknown:**"),
        ("mixed fp16, fp32 copies of both", "V100 SXM 32 GB", ""),
        ("fp32", "V100 SXM 32 GB", ""),
        (MIXED, "H100 SXM", ""),
    ],
)
def test_missing_matrix_units_are_said_and_unknown_ones_not_guessed(policy: str, name: str, said: str) -> None:
    found = words.matrix_units(find_policy(policy), find_accelerator(name))
    assert said in found
    assert bool(said) == bool(found)


def test_no_accelerator_lacks_what_it_has_a_peak_for() -> None:
    for device in accelerators():
        assert not any(device.lacks(dtype) for dtype, _ in device.peaks)
    assert {a.family for a in accelerators() if a.lacks("bf16")} == {"Volta", "Turing"}


def test_what_the_list_of_optimizers_leaves_out_is_said() -> None:
    for name in LEFT_OUT:
        assert not any(name.lower() == listed.lower() for listed in optimizers())
        assert name in words.left_out()
        assert why_not(f"distributed {name.lower()}").startswith(f"{name} is left out, because")
        with pytest.raises(KeyError, match="is left out"):
            find_optimizer(name)
    shaped = sum(not o.uniform for o in optimizers().values())
    says(words.left_out(), f"The {len(optimizers())} optimizers", f"{shaped} of them")


def test_a_shape_that_stands_in_is_named() -> None:
    made = plan(8e9, optimizer="Muon")
    says(words.stood_in(made), "Muon", "4mn bytes", "Llama 3 8B")
    assert words.stood_in(plan(8e9)) == ""
    known = account(8e9, find_optimizer("Muon"), find_policy("fp32"), memory=H100, spec=SHAPE)
    assert known.stand_in == words.stood_in(known) == ""
    assert known.per_parameter == made.per_parameter
    with pytest.raises(ValueError, match="depends on the shapes"):
        states_per_parameter(find_optimizer("Muon"), find_policy("fp32"))


@pytest.mark.parametrize("name", ["", "Adamm", "xx", "Adam", "camel", "so"])
def test_nothing_is_said_about_other_names(name: str) -> None:
    assert why_not(name) == ""


def test_measured_states() -> None:
    assert words.measured_state(find_optimizer("SGD")) == "0 B"
    assert words.measured_state(find_optimizer("AdamW")) == "8.00003 B"
    assert [p.id for p in POLICIES.values() if not p.fp32_states] == [
        "mixed bf16, fp32 master, bf16 states",
        "bf16 throughout",
        "bf16, stochastic rounding",
        "fp8 matmuls, fp32 master, bf16 states",
        "fp8 weights and gradients, fp16 master",
        "mixed bf16, fp32 master, 8-bit states",
        "mixed bf16, fp32 master, 4-bit states",
    ]
