"""Training memory: what each parameter costs in bytes, and the largest model whose states n accelerators hold."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.hardware.accelerators import accelerators
from core.hardware.accelerators import find as find_accelerator
from core.limits import limit
from core.training import (
    HEADLINE,
    POLICIES,
    SHARDINGS,
    TrainingMemory,
    account,
    find_optimizer,
    find_policy,
    find_sharding,
    optimizers,
    why_not,
    words,
)
from core.training.figures import state_bars
from core.units import format_count, significant
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import MEMORY
from pages.parts.theme import TOKENS

MIXED, MEGATRON = "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients"
EIGHT_H100 = {"gpu": "H100 SXM", "count": "8", "shard": "sharded"}
STORIES: dict[str, dict[str, object]] = {
    "Lecture: 8 × H100, fp32 AdamW": {"n": "40B", "opt": "AdamW", "prec": "fp32", **EIGHT_H100},
    "Does mixed precision save?": {"n": "40B", "opt": "AdamW", "prec": MIXED, **EIGHT_H100},
    "70B checkpoint": {"n": "70B", "opt": "AdamW", "prec": "fp32", **EIGHT_H100},
    "Without sharding": {"n": "7B", "opt": "AdamW", "prec": "fp32", **EIGHT_H100, "shard": "replicated"},
    "7B on one 24 GB card": {"n": "7B", "opt": "AdamW", "prec": MIXED, **EIGHT_H100, "gpu": "RTX 4090", "count": "1"},
    "Llama 3.1 405B states": {"n": "405.85B", "opt": "AdamW", "prec": MEGATRON, **EIGHT_H100, "count": "96"},
}

HELP = {
    "n": "All of them: of a mixture of experts every expert is stored, active or not.",
    "opt": "What it keeps for each parameter between steps: Adam and AdamW two numbers, momentum one, plain SGD none.",
    "prec": "The number format in which parameters, gradients, master weights and optimizer state are kept between "
    "steps. An fp32 master copy keeps the updates that bf16 would round away.",
    "gpu": "Its memory is the datasheet’s, in GB of 10⁹ bytes.",
}


def in_numbers(plans: Sequence[TrainingMemory], unit: words.ByteUnit, chosen: int) -> None:
    """The picture as a table, in its unit; ``chosen`` is the row to light."""
    share = words.shared_among(plans[0])
    measured = plans[0].policy.fp32_states  # the measurements are in fp32, and beside another format only confuse
    show.small_table(
        [
            show.Column("Optimizer", whole=True),
            show.Column("State it keeps", whole=True),
            show.Column("params + grads + master + state", numeric=True),
            show.Column("B/parameter", numeric=True),
            show.Column("Total" if share == 1 else "On each", numeric=True),
            show.Column("Largest model", numeric=True),
            *([show.Column("Measured, in fp32", numeric=True)] if measured else []),
        ],
        [
            (
                p.optimizer.name,
                ", ".join(f"`{state}`" for state in p.optimizer.states) or "none",
                words.summed(p.per_parameter),
                significant(p.per_parameter.total),
                unit.say(p.total / share),
                format_count(p.largest),
                *([words.measured_state(p.optimizer)] if measured else []),
            )
            for p in plans
        ],
        caption="The picture in numbers."
        + " Measured: the optimizer’s state after one step on a 512 × 256 matrix, per parameter." * measured,
        here=chosen,
    )


def mixed_precision(plan: TrainingMemory, policies: Sequence[TrainingMemory]) -> None:
    """What each precision costs under the chosen optimizer, and why mixing alone saves nothing."""
    st.subheader("Does mixed precision save state memory?", anchor=False)
    show.note(
        "Not with a master copy. The two bytes saved on each parameter and the two on each gradient pay for an fp32 "
        "copy of four: under AdamW 2 + 2 + 4 + 8 = 16, as in fp32 4 + 4 + 8. With gradients accumulated in fp32, as "
        "Megatron does, it is 18. What mixed precision buys is faster matmuls and smaller activations. States shrink "
        "only when the precise copy goes, or when the optimizer keeps its own state in fewer bits; and under ZeRO-1 "
        "and ZeRO-2, which shard the master copy but leave the halved parameters on each accelerator."
    )
    show.small_table(
        [
            show.Column(f"Precision, under {plan.optimizer.name}"),
            show.Column("params + grads + master + state", numeric=True),
            show.Column("B/parameter", numeric=True),
            show.Column("Largest model", numeric=True),
            show.Column("What it is"),
        ],
        [
            (
                p.policy.id,
                words.summed(p.per_parameter),
                significant(p.per_parameter.total),
                format_count(p.largest),
                p.policy.note,
            )
            for p in policies
        ],
        here=list(POLICIES).index(plan.policy.id),
    )


def page() -> None:
    """Inputs, the answer, the bars and what mixed precision saves."""
    inputs = Inputs(MEMORY)
    chips = show.slot()
    cells = [*st.columns([1, 1, 1.7]), *st.columns([1, 1, 1.7])]
    with cells[0]:
        parameters = inputs.quantity(
            "n", "Model parameters", "32B", "count", low=1, high=limit("parameters"), whole=True, help=HELP["n"]
        )
    with cells[1]:
        optimizer = find_optimizer(
            inputs.choice("opt", "Optimizer", list(optimizers()), "AdamW", help=HELP["opt"], why_not=why_not)
        )
    with cells[2]:
        policy = find_policy(
            inputs.choice("prec", "Precision of the model states", list(POLICIES), "fp32", help=HELP["prec"])
        )
    with cells[3]:
        count = int(
            inputs.quantity("count", "Accelerators", "8", "count", low=1, high=limit("accelerators"), whole=True)
        )
    with cells[4]:
        device = find_accelerator(
            inputs.choice("gpu", "Accelerator", [a.name for a in accelerators()], "H100 SXM", help=HELP["gpu"])
        )
    with cells[5]:
        meanings = "\n\n".join(f"**{s.id}**: {s.meaning}" for s in SHARDINGS.values())
        sharding = find_sharding(
            inputs.choice(
                "shard", "Model states across accelerators", list(SHARDINGS), "sharded", segmented=True, help=meanings
            )
        )
    show.input_errors(inputs)
    inputs.presets("Stories", STORIES, into=chips)

    where = {"accelerators": count, "memory": device.memory_bytes, "sharding": sharding}
    plan = account(parameters, optimizer, policy, **where)
    shown = [*([] if optimizer.name in HEADLINE else [optimizer.name]), *HEADLINE]
    plans = [account(parameters, find_optimizer(name), policy, **where) for name in shown]
    unit = words.unit_of(plans)
    named = words.device_name(device.name, device.memory_bytes)

    show.answer(f"{words.holding(plan, named)} {words.verdict(plan, unit)}", words.what_is_counted(plan))
    if lacking := words.matrix_units(policy, device):
        show.note(lacking)
    show.note(words.checkpoint(plan, unit))
    show.chart(
        state_bars(plans, TOKENS, chosen=optimizer.name, device=device.name),
        alt=f"Stacked bars of {words.spelled(plan)} bytes per parameter for {optimizer.name}, and of "
        f"{len(plans) - 1} other optimizers; below, the same in total against the memory of the accelerators.",
        key="memory:bars",
    )
    with st.container(key="memory_numbers"):
        in_numbers(plans, unit, shown.index(optimizer.name))
    show.note(words.left_out())
    show.note(words.memory_read_as(device.memory_bytes, device.memory_note))

    with st.container(key="memory_precisions"):
        mixed_precision(plan, [account(parameters, optimizer, p, **where) for p in POLICIES.values()])
    show.source(words.cited(plan))
    with show.fold("Each optimizer under each precision", key="memory:grid", icon=":material/table:") as panel:
        if panel.open:
            grid = [account(parameters, o, p, **where) for o in optimizers().values() for p in POLICIES.values()]
            table = pd.DataFrame([words.as_row(p) for p in grid])
            st.dataframe(table, hide_index=True, alt="Each optimizer under each precision")
    show.how(plan.explain, key="memory:how")
    show.footer(inputs)


show.body(page)
