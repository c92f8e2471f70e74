"""Training memory: what each parameter costs in bytes, and the largest model whose states n accelerators hold."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.planning.answer.answer import memory_of
from core.planning.answer.form import (
    ACCELERATOR,
    COUNT,
    MODEL_NAME,
    OPTIMIZER,
    PARAMETERS,
    POLICY,
    SHARDING,
    carried,
    plan_form,
    plan_of,
)
from core.planning.answer.stories import MEMORY_STORIES as STORIES
from core.training import (
    HEADLINE,
    POLICIES,
    Optimizer,
    PrecisionPolicy,
    TrainingMemory,
    find_optimizer,
    optimizers,
    words,
)
from core.training.figures import state_bars
from core.units import format_count, significant
from pages.memory import motion, witness
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE, MEMORY
from pages.parts.theme import TOKENS

FORM = plan_form("m", *motion.FIELDS, witness.PANEL, n="32B", count="8")  # begins smaller than Compute budget


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


def mixed_precision(memory: TrainingMemory, policies: Sequence[TrainingMemory]) -> None:
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
            show.Column(f"Precision, under {memory.optimizer.name}"),
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
        here=list(POLICIES).index(memory.policy.id),
    )


def page() -> None:
    """Inputs, the answer, the bars and what mixed precision saves."""
    inputs = Inputs(MEMORY, FORM)
    chips = show.slot()
    plan = plan_of(inputs.reading)
    cells = [*st.columns([1.7, 1, 1, 1.4]), *st.columns([1.1, 1.6, 2.3])]
    drawn = (MODEL_NAME, PARAMETERS, COUNT, ACCELERATOR, OPTIMIZER, POLICY, SHARDING)
    for cell, field in zip(cells, drawn, strict=True):
        with cell:
            if field == PARAMETERS and plan.known:
                total = f"{format_count(plan.known.parameters)} in all"
                st.text_input(field.label, total, disabled=True, key=inputs.key(f"fixed_{plan.known.parameters}"))
            else:
                inputs.draw(field)
    show.input_errors(inputs)
    inputs.stories("Stories", STORIES, into=chips)

    memory, device = memory_of(plan), plan.device

    def under(optimizer: Optimizer, policy: PrecisionPolicy) -> TrainingMemory:
        return replace(memory, optimizer=optimizer, policy=policy)

    optimizer, policy = memory.optimizer, memory.policy
    shown = [*([] if optimizer.name in HEADLINE else [optimizer.name]), *HEADLINE]
    plans = [under(find_optimizer(name), policy) for name in shown]
    unit = words.unit_of(plans)
    named = words.device_name(device.name, device.memory_bytes)

    with show.guarded("The answer"):
        show.answer(f"{words.holding(memory, named)} {words.verdict(memory, unit)}", words.what_is_counted(memory))
        if lacking := words.matrix_units(policy, device):
            show.note(lacking)
        show.note(words.checkpoint(memory, unit))
    with show.guarded("The picture"):
        show.chart(
            state_bars(plans, TOKENS, chosen=optimizer.name, device=device.name),
            alt=f"Stacked bars of {words.spelled(memory)} bytes per parameter for {optimizer.name}, and of "
            f"{len(plans) - 1} other optimizers; under them the same in total against the memory of the accelerators.",
            key="memory:bars",
        )
    with st.container(key="memory_numbers"), show.guarded("The picture in numbers"):
        in_numbers(plans, unit, shown.index(optimizer.name))
    show.note(words.left_out())
    show.note(words.memory_read_as(device.memory_bytes, device.memory_note))

    with st.container(key="memory_precisions"), show.guarded("Does mixed precision save state memory?"):
        mixed_precision(memory, [under(optimizer, p) for p in POLICIES.values()])
    show.source(words.cited(memory))
    with show.fold("Each optimizer under each precision", key="memory:grid", icon=":material/table:") as panel:
        if panel.open:
            grid = [under(o, p) for o in optimizers().values() for p in POLICIES.values()]
            table = pd.DataFrame([words.as_row(p) for p in grid])
            st.dataframe(table, hide_index=True, alt="Each optimizer under each precision")
    with inputs.panel(motion.PANEL.id, motion.PANEL.label) as opened:
        if opened.open:
            motion.motion(inputs)
    with inputs.panel(witness.PANEL.id, witness.PANEL.label) as opened:
        if opened.open:
            witness.witness(plan.known.spec if plan.known else None, optimizer, policy)
    show.how(memory.explain, key="memory:how")
    show.onwards("How long it trains, and what that costs", COMPUTE, carried(inputs.reading.texts))
    show.footer(inputs)


show.body(page)
