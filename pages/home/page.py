"""Home: the lecture's three napkin questions as live sentences, each a link into its page with the same inputs."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from core.budget.equations import BudgetError
from core.floats.code_description import bits, explain_value
from core.floats.comparison import Stored, store_everywhere
from core.floats.formats import FORMATS
from core.floats.typed_numbers import number_text, parse
from core.messages import message
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.layout import LAYING
from core.planning.form.links import link_texts
from core.planning.form.plan_form import changes_on, plan_of
from core.planning.form.training import METHOD
from core.planning.largest_model import Largest, largest
from core.planning.nearest_runs import similar_runs
from core.planning.plan import TYPED, Plan
from core.planning.presets import FIRST_TUNING, MEMORY_PRESETS
from core.planning.sensitivity import layout_texts
from core.training.layout import LayoutError
from core.training.trained import TrainedError
from core.views.floats.text import as_read
from core.views.plan import text as plan_text
from core.views.plan import text_memory as words
from core.views.plan.charts import answer_strip
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import first_possible
from pages.common.plan_page.published import repeated_notices
from pages.common.registry import COMPUTE, FLOATS, HOME, LECTURE, MEMORY, TENSORS
from pages.common.theme import TOKENS
from pages.home.form import ACCELERATOR_COUNT, ACCELERATOR_TYPE, COUNTED, COUNTED_PRESETS, LECTURES, NUMBER

HOW_LONG, HOW_LARGE, HOW_EXACT = message("home.long"), message("home.large"), message("home.exact")
SHOWN = ("fp16", "bf16", "fp32")


def how_long(inputs: Inputs, plan: Plan) -> PlanEstimate | None:
    """Return the days of a training run, as on Compute budget; nothing if that failed."""
    with show.question(HOW_LONG, key=f"{HOME.prefix}_long"):
        wrong, place, picture = show.slot(), show.slot(), show.slot()
        try:
            a = estimate(plan)
        except BudgetError as problem:
            a, instead = first_possible(inputs, lambda it: estimate(plan_of(it)), problem)
            inputs.fail(str(problem), instead)
        with wrong:
            show.input_errors(inputs)
        lit = plan_sidebar.draw_actions(inputs.reading.texts)
        with place:
            show.answer(plan_text.headline(a), plan_text.range_text(a))
            for line in repeated_notices([a]):
                show.note(line)
            plan_sidebar.draw_limits(inputs)
            if lit == LECTURES:
                show.note(message("plan.preset.lecture"))
            for problem in filter(None, (plan_text.impossible(a), plan_text.does_not_fit(a))):
                show.error(problem)
        with picture:
            show.chart(answer_strip(a, similar_runs(a, 6), TOKENS), alt=plain(plan_text.headline(a)), key="home:answer")
            show.note(plan_text.mfu_text(a))
        show.next_page(message("home.long.link"), COMPUTE, link_texts(inputs.reading.texts))
        return a
    return None


def _largest(inputs: Inputs, plan: Plan, texts: Mapping[str, str]) -> tuple[Largest, Plan, Mapping[str, str]]:
    """Return the largest model of a plan, which it is with its texts without the layout or the choice of trained
    tensors that cannot be."""
    try:
        return largest(plan, inputs.reading.values[COUNTED.id]), plan, texts
    except TrainedError as problem:
        if plan.trained.everything:
            raise
        inputs.fail(str(problem), message("home.large.all_trained"))
        return _largest(inputs, replace(plan, trained=Plan().trained), {**texts, METHOD.id: METHOD.default})
    except LayoutError as problem:
        if not plan.own_layout:
            raise
        inputs.fail(message("error.invalid_layout", problem=str(problem)), message("home.large.unsplit"))
        return _largest(inputs, replace(plan, own_layout=False), {**texts, LAYING.id: LAYING.default})


def how_large(inputs: Inputs, plan: Plan) -> Largest | None:
    """Return the largest model that fits, as on Training memory; nothing if that failed."""
    values, texts = inputs.reading.values, inputs.reading.texts
    holder_plan = replace(plan.on_accelerator(values[ACCELERATOR_TYPE.id]), accelerators=values[ACCELERATOR_COUNT.id])
    with show.question(HOW_LARGE, key=f"{HOME.prefix}_large"):
        with plan_sidebar.question_line("large"):
            plan_sidebar.ask(inputs, message("home.large.on"), ACCELERATOR_COUNT, width=70)
            plan_sidebar.ask(inputs, message("home.large.times"), ACCELERATOR_TYPE, width=170)
            plan_sidebar.ask(inputs, message("home.large.counting"), COUNTED)
        presets, wrong, place, picture = show.slot(), show.slot(), show.slot(), show.slot()
        result, holder_plan, texts = _largest(inputs, holder_plan, texts)
        with wrong:
            show.input_errors(inputs)
        inputs.presets(COUNTED_PRESETS, into=presets, key="held", at="large")
        with place:
            show.answer(words.holding(result), words.what_is_counted(result, largest(holder_plan)))
        with picture:
            show.chart(
                device_bars([("", result.device_memory)], result.memory.usable, TOKENS),
                alt=plain(message("home.large.alt", answer=words.holding(result))),
                key="home:memory",
            )
        there = {"model": TYPED, "count": texts[ACCELERATOR_COUNT.id], "gpu": values[ACCELERATOR_TYPE.id]}
        there = changes_on(plan.accelerator, there)
        there |= {"n": words.typed(result)} if words.typed(result) else {}
        there |= {} if holder_plan.own_layout else layout_texts(Plan().layout)
        show.next_page(message("home.large.link"), MEMORY, {**link_texts(texts), **there})
        show.next_page(message("home.large.fine_tuning"), MEMORY, MEMORY_PRESETS[FIRST_TUNING])
        return result
    return None


_PARTS = ", ".join(
    f'<b style="color:var(--np-{name})">{message(label)}</b>'
    for name, label in (
        ("sign", "home.exact.sign"),
        ("exponent", "home.exact.exponent"),
        ("fraction", "home.exact.fraction"),
    )
)


def draw_bits(stored_values: Sequence[Stored]) -> None:
    """Draw the bits of one number in several formats, one row each."""
    rows = "".join(
        f'<tr><th scope="row">{html.escape(stored.fmt.title)}</th><td>'
        + "".join(
            f'<b style="color:var(--np-{bit.field})">{bit.value}</b>' for bit in bits(stored.view.code, stored.fmt)
        )
        + "</td></tr>"
        for stored in stored_values
    )
    st.html(f'<table class="np-bitrows"><caption>{_PARTS}</caption><tbody>{rows}</tbody></table>')


def how_exact(inputs: Inputs) -> tuple[Stored, ...] | None:
    """Return what a small number becomes in three formats; nothing if that failed."""
    text = inputs.reading.values[NUMBER.id]
    number = parse(text, FORMATS["fp32"])
    stored_values = store_everywhere(number, [FORMATS[name] for name in SHOWN])
    with show.question(HOW_EXACT, key=f"{HOME.prefix}_exact"):
        with plan_sidebar.question_line("exact"):
            plan_sidebar.ask(inputs, message("home.exact.number"), NUMBER, width=170)
        place, picture = show.slot(), show.slot()
        show.input_errors(inputs)
        with place:
            values = [message("home.exact.stored", value=one.text, format=one.fmt.title) for one in stored_values]
            answer = message("home.exact.answer", number=as_read(number), stored=values)
            show.answer(answer, message("home.exact.detail"))
        with picture:
            draw_bits(stored_values)
        show.next_page(
            message("home.exact.link"),
            FLOATS,
            {"x": number_text(text, FORMATS["fp32"]), "fmt": "fp16"},
        )
        return stored_values
    return None


def page(inputs: Inputs) -> None:
    """Draw the three questions, and how their answers are computed."""
    plan = plan_of(inputs.reading)
    with plan_sidebar.question():
        ways = (
            show.link(message("home.first.bits"), FLOATS, {"x": "0.1", "fmt": "bf16"}),
            show.link(message("home.first.view"), TENSORS, {"x": "x.transpose(1, 0).view(2, 3)", "shape": "2, 3"}),
            show.link(message("home.first.rule"), LECTURE, {"linear": "true"}, at="linear"),
            show.link(message("home.first.plan"), COMPUTE, link_texts(inputs.reading.texts)),
        )
        st.html(f'<p class="np-next-page">{"&emsp;".join(ways)}</p>')
    long = how_long(inputs, plan)
    large = how_large(inputs, long.plan if long else plan)  # without what cannot be
    stored_values = how_exact(inputs)
    show.how(
        lambda: [
            *([HOW_LONG, *long.explain()] if long else ()),
            *([HOW_LARGE, *large.explain()] if large else ()),
            *(
                [HOW_EXACT, *(step for stored in stored_values for step in explain_value(stored.view))]
                if stored_values
                else ()
            ),
        ],
        key="home:how",
    )
    show.footer(inputs)


plan_sidebar.draw_page(page)
