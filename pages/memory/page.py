"""Training memory: what each parameter costs in bytes, and the largest model whose states n accelerators hold."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.planning.answer.answer import layout_of, memory_of
from core.planning.answer.form import carried, plan_of
from core.planning.answer.laying import LayoutError
from core.planning.answer.plan import Plan
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
from core.training.layout import Layout
from core.units import format_count, significant
from pages.memory.form import FORM
from pages.memory.inputs import draw
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE, MEMORY
from pages.parts.shape import adopt_built
from pages.parts.theme import TOKENS

_GOOD = "memory:good"


def asked(inputs: Inputs) -> tuple[Plan, Layout]:
    """The plan of the form and its layout; where it cannot be laid out, the last that could be stays."""
    plan = plan_of(inputs.reading)
    try:
        found = plan, layout_of(plan)
    except LayoutError as problem:
        last: Plan = st.session_state.get(_GOOD, plan_of(FORM.read({})))
        inputs.fail(f"{FORM[problem.field].label}: {problem}", "Still showing the last answer.")
        return last, layout_of(last)
    st.session_state[_GOOD] = plan
    return found


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
    adopt_built(MEMORY)
    inputs = Inputs(MEMORY, FORM)
    chips = show.slot()
    plan, layout = asked(inputs)
    draw(inputs, plan, f"{layout.data:,}")
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
    show.how(memory.explain, key="memory:how")
    show.onwards("How long it trains, and what that costs", COMPUTE, carried(inputs.reading.texts))
    show.footer(inputs)


show.body(page)
