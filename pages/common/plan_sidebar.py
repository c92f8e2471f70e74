"""The current plan in the sidebar, the same fields on every page that answers for it, and what can be done with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias, get_args

import streamlit as st

from core.benchmark import device
from core.budget.equations import BudgetError
from core.fields import Field
from core.messages import message
from core.planning.comparison.comparison import suggested, with_saved_results
from core.planning.comparison.entry import EntryKind, entry_of
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form import layout, plan_form, training, whole_run
from core.planning.form.links import link_texts, within_as_deadline
from core.planning.form.plan_form import PLAN_IDS, plan_as_given, plan_of
from core.planning.measured import is_this_machine, rates_origin
from core.planning.plan import OWN_SHAPE, Plan
from core.planning.plan_limits import Check, doubtful, limit_report
from core.training.layout import named_modules
from core.views.common.markup import safe_text
from core.views.plan import text as plan_text
from core.views.plan import text_limits
from core.views.plan.text_rates import rates_text, usual_network, usual_node
from core.wording import price
from pages.common import comparison_list, field_changes, show
from pages.common.inputs import PLAN_TEXTS, Inputs
from pages.common.registry import COMPARE, COMPUTE, DECIDE, HOME, MEASURE, MEMORY, PageSpec
from pages.common.saving import Held, held, hold, name_of, saving, take_up_held
from pages.common.shape import adopt_built, own_model, own_shape, read_pasted
from pages.common.theme import projecting

Rows: TypeAlias = tuple[Field | tuple[Field, ...], ...]

_TOP_ROWS: Rows = (
    plan_form.MODEL_NAME,
    (plan_form.PARAMETERS, plan_form.TRAINED),
    (plan_form.SEQ_LEN, layout.BATCH),
    plan_form.ACCELERATOR,
    (plan_form.COUNT, layout.NETWORK),
    layout.TRAINING_SOFTWARE,
    (plan_form.MFU, plan_form.PRICE),
    plan_form.MFU_KIND,
    (whole_run.DEADLINE, whole_run.BUDGET),
)
_OF_METHOD: Mapping[str, Rows] = {
    "everything": (),
    "adapters": ((training.RANK, training.TARGET), training.FROZEN_TYPE),
    "last layers": (training.LAST, training.FROZEN_TYPE),
    "named tensors": (training.NAMES, training.FROZEN_TYPE),
}
_FINE_TUNING: Rows = (
    (training.ALPHA, training.DORA), (training.DROPOUT, training.NORMS), training.HEAD, training.FROZEN_FP32,
    training.IN_BACKWARD, training.PAGED, training.ACTIVATION_OFFLOAD, (training.MEAN, training.LONGEST),
    training.DISPLAY,
)  # fmt: skip
_DEGREES: Rows = (
    layout.ZERO, (layout.RECOMPUTE, layout.RECOMPUTE_LAYERS), (layout.TENSOR, layout.PIPELINE),
    (layout.CONTEXT, layout.INTERLEAVE), (layout.EXPERT, layout.EXPERT_TENSOR),
    (layout.MICRO_BATCH, layout.MICRO_BATCHES), layout.SHARD_GROUP, layout.SEQUENCE_PARALLEL, layout.OFFLOAD,
)  # fmt: skip
_RUNTIME: Rows = (
    layout.TUNING, layout.IMPLEMENTATION, (layout.KERNEL, layout.LOSS),
    (layout.CHUNKS, layout.RUNTIME_MEMORY, layout.FRAGMENTATION),
)  # fmt: skip


def _layout(plan: Plan) -> Rows:
    """Return the fields of the layout: its degrees where it is a custom one, and what it runs with."""
    modules = (layout.RECOMPUTE_MODULES,) if named_modules(plan.layout.recompute) else ()
    return (layout.LAYING, *((*_DEGREES, *modules) if plan.own_layout else ()), *_RUNTIME)


_MORE: Mapping[str, tuple[str, Callable[[Plan], Rows]]] = {
    "precision": (
        message("sidebar.precision"),
        lambda _: (plan_form.OPTIMIZER, training.POLICY, plan_form.DTYPE),
    ),
    "layout": (message("sidebar.layout"), _layout),
    "trained": (
        message("sidebar.trained"),
        lambda plan: (training.METHOD, *_OF_METHOD[plan.trained.method], *_FINE_TUNING),
    ),
    "limits": (
        message("sidebar.limits"),
        lambda _: (whole_run.POWER_LIMIT, (whole_run.MEMORY_HEADROOM, whole_run.HOST), whole_run.CERTAINTY),
    ),
    "experience": (
        message("sidebar.experience"),
        lambda _: (whole_run.MATURITY, whole_run.OWN_RUNS, layout.PER_NODE),
    ),
}
"""Fields that are asked less often: the name of a box over the page → its title and its rows."""

_ANSWERED: Mapping[str, tuple[Field, ...]] = {
    "tokens": (plan_form.TRAINED,),
    "parameters": (plan_form.MODEL_NAME, plan_form.PARAMETERS),
    "accelerators": (plan_form.COUNT,),
    "MFU": (plan_form.MFU,),
}
"""What can be found → the fields whose place the answer takes."""

_WALL: Mapping[str, tuple[Field, ...]] = {
    COMPUTE.id: (plan_form.COUNT, plan_form.MFU, plan_form.TRAINED),
    MEMORY.id: (training.POLICY, layout.BATCH, plan_form.SEQ_LEN),
}
"""Page → its fields on a projector, of which the first two that are asked are drawn."""

_PAST, _NOW = "plan:past", "plan:now"
"""Where session state has the plans before this one, and this one: texts, the saved plan that it is, and what pages had
of their own, by field and prefix, that a click took away with the plan."""

Snapshot: TypeAlias = "tuple[Mapping[str, str], Held, Mapping[str, Mapping[str, str]]]"

_MOST_PAST = 50


@dataclass
class PageRun:
    """The page in one run: its inputs, and the places that the page fills when it has an answer.

    wrong: what is wrong with the plan's fields, as the sidebar says it.
    changed: boxes of the sidebar in which something is not as usual. Their titles stay, since a box with another title
    is another one, and shut; a style marks them.
    """

    inputs: Inputs
    head: show.Head
    bar: Any
    presets: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    wrong: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])


_HERE: ContextVar[PageRun] = ContextVar("the page in this run")


def page_run() -> PageRun:
    """Return the page in this run."""
    return _HERE.get()


@contextmanager
def question() -> Iterator[None]:
    """Draw the page's question in the line of its title."""
    with page_run().head.question or st.container():
        yield


def question_line(name: str) -> Any:
    """Return a line of fields over an answer that is not the page's first."""
    return st.container(key=f"np-question-{name}", horizontal=True, vertical_alignment="center", gap="xsmall")


def ask(inputs: Inputs, word: str, *fields: Field, width: int | None = None, placeholder: str = "") -> None:
    """Draw fields of the page's question in the line of its title, after the word that replaces their labels."""
    if word:
        st.html(f'<span class="np-ask" aria-hidden="true">{safe_text(word)}</span>', width="content")
    for one in fields:
        with st.container(width=width or "content"):
            inputs.draw(one, bare=True, placeholder=placeholder)


def draw(page: PageSpec, head: show.Head) -> None:
    """Read the page's form, and draw the plan's fields; called by ``app.py`` on every run of a page with a plan.

    They stand in the app and not in the page, so that they are the same widgets on all pages.
    """
    form = import_module(page.path.replace("/", ".").removesuffix("page.py") + "form")
    with st.sidebar:
        bar = st.container(key="np-plan", gap=None)
        adopt_built()
        problems: list[str] = form.open_link() if hasattr(form, "open_link") else []
        inputs = Inputs(page, form.FORM, getattr(form, "packed", None))
        inputs.errors.extend(problems)
        _HERE.set(PageRun(inputs, head, bar, getattr(form, "PAGE_PRESETS", {})))
        if not projecting():
            _remember(st.session_state[PLAN_TEXTS])
            with show.guarded(message("sidebar.plan")):
                _fields(inputs, plan_of(inputs.reading))
            return
    with st.container(key="np-wall", horizontal=True):
        plan = plan_of(inputs.reading)
        for one in [one for one in _WALL.get(page.id, ()) if one not in _hidden(inputs, plan)][:2]:
            inputs.draw(one)


def _fields(inputs: Inputs, plan: Plan) -> None:
    messages = st.container()
    with st.container(key="np-fields"):
        _rows(inputs, _TOP_ROWS, plan)
        with st.container(key="np-more", horizontal=True, gap="xxsmall"):
            if plan.model == OWN_SHAPE:
                with _box("shape", message("sidebar.shape")) as opened:
                    if opened:
                        own_shape(inputs)
            for name, (title, rows) in _MORE.items():
                asked = rows(plan)
                fields = [one for row in asked for one in _fields_of(row)]
                fields += whole_run.MEASURED_FIELDS if name == "experience" else ()
                if any(inputs.reading.texts[one.id] != one.default for one in fields):
                    page_run().changed.append(name)
                with _box(name, title) as opened:
                    if opened:
                        _rows(inputs, asked, plan)
                        if name == "experience":
                            field_changes.choose_rates(inputs, plan)
                            _measure_here(plan)
        _rates(plan)
    page_run().wrong += [problem.message for problem in inputs.reading.problems if problem.field in inputs.form.shared]
    page_run().wrong += inputs.errors
    with messages:  # over the fields: under them, a window that is not high does not show it
        show.draw_problems(inputs, *PLAN_IDS)
        show.input_errors(inputs)


@contextmanager
def _box(name: str, title: str) -> Iterator[bool]:
    """Draw a box next to the sidebar, whose content runs only while it is open."""
    with show.popover(title, key=f"plan:{name}") as box, st.container(key=f"np-box-{name}"):
        yield bool(box.open)


def _fields_of(row: Field | tuple[Field, ...]) -> tuple[Field, ...]:
    return row if isinstance(row, tuple) else (row,)


def _hidden(inputs: Inputs, plan: Plan) -> list[Field]:
    hidden = list(_ANSWERED.get(plan.find, ()) if inputs.page == COMPUTE else ())
    hidden += [] if plan.typed_mfu else [plan_form.MFU_KIND]
    hidden += [plan_form.PARAMETERS] if plan.catalog_model or plan.lacks_model else []
    return hidden + ([layout.BATCH] if plan.own_layout and plan.layout.micro_batches else [])  # which decide the batch


def _rows(inputs: Inputs, rows: Rows, plan: Plan) -> None:
    """Draw fields one under the other, those of a tuple side by side; none whose place the answer, the model or the
    layout takes."""
    hidden = _hidden(inputs, plan)
    for row in rows:
        asked = [one for one in _fields_of(row) if one not in hidden]
        if not asked:
            continue
        with st.container():  # of its own, so that fields below keep their places when a message comes
            beside = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall") if asked[1:] else None
            with beside or nullcontext():
                for one in asked:
                    _field(inputs, one, plan)
            show.draw_problems(inputs, *(one.id for one in asked))
            if row == plan_form.MODEL_NAME and plan.model == OWN_SHAPE:
                own_model(inputs)
            if row == plan_form.ACCELERATOR:
                field_changes.say(inputs)


def _field(inputs: Inputs, field: Field, plan: Plan) -> None:
    """Draw a field of a plan; price, network and deadline show those that hold where nothing is entered."""
    changed = {
        layout.LAYING.id: partial(field_changes.own_layout_from, inputs, plan),
        training.METHOD.id: partial(field_changes.begin_batch, inputs, plan),
        plan_form.ACCELERATOR.id: partial(field_changes.changed, inputs),
        plan_form.MODEL_NAME.id: partial(read_pasted, inputs),
    }
    placeholder = ""
    if field == plan_form.PRICE:
        unpriced = plan.prices is None and math.isnan(plan.price_range[0])
        placeholder = "unknown" if unpriced else price(*plan.price_range)
    elif field in (layout.NETWORK, layout.PER_NODE):
        placeholder = usual_network(plan) if field == layout.NETWORK else usual_node(plan)
    elif field == whole_run.DEADLINE:
        placeholder = inputs.reading.texts.get(whole_run.OWN_DEADLINE, "").strip()  # which the page goes by
    inputs.draw(field, placeholder=placeholder, changed=changed.get(field.id))


def _rates(plan: Plan) -> None:
    """Draw the plan's rates in a line, those that are not used with the reason; nothing if it has none."""
    if (origin := rates_origin(plan)) != "none":
        (show.error if origin == "other" else show.note)(" ".join(rates_text(plan)))


def _measure_here(plan: Plan) -> None:
    """Draw the way to measure the plan's accelerator, where this machine has one."""
    machine = device.machine()
    if machine.kind == "cuda" and is_this_machine(plan.accelerator, machine.gpus[0]):
        show.next_page(message("sidebar.measure"), MEASURE, {})


# ------------------------------------------------------------------------------ what can be done with it


def _remember(texts: Mapping[str, str]) -> None:
    """Keep the plan before where this one, of ``texts``, is another."""
    state = st.session_state
    snapshot: Snapshot = (dict(texts), held(), {})
    past: list[Snapshot] = state.setdefault(_PAST, [])
    if _NOW in state and (state[_NOW][0] != snapshot[0] or state[_NOW][2]):
        past.append(state[_NOW])
        del past[:-_MOST_PAST]
    state[_NOW] = snapshot


def replace_plan(inputs: Inputs, texts: Mapping[str, str], saved: Held = None) -> None:
    """Replace the plan, by the saved one ``saved`` or another (callback). Undo restores the previous one."""
    if not projecting():
        _remember(inputs.plan_now())  # no run may have seen the last change
    _put_plan(inputs, texts, saved)


def _put_plan(inputs: Inputs, texts: Mapping[str, str], saved: Held) -> None:
    field_changes.replaced(inputs, texts, whole=True)
    st.session_state[show.TAKEN] = st.session_state.get(show.TAKEN, 0) + 1
    for each in get_args(EntryKind):
        hold(saved if each == "plan" else None, each)
    for name, text in texts.items():
        inputs.put(name, text)


def take_with_undo(inputs: Inputs, texts: Mapping[str, str]) -> None:
    """Set these texts in the plan and the page (callback). “Undo” restores both."""
    own = {name: {inputs.page.prefix: inputs.now(name)} for name in texts if name not in inputs.form.shared}
    for name, text in texts.items():
        inputs.put(name, text)
    st.session_state[_NOW] = (*st.session_state[_NOW][:2], own)


def draw_actions(texts: Mapping[str, str], kind: EntryKind = "plan") -> str | None:
    """Draw the actions for the plan of ``texts``, and return its current preset."""
    now = page_run()
    inputs = now.inputs
    saved = take_up_held(inputs, kind)
    preset = _examples(now)
    if projecting():
        return preset

    def anew() -> None:
        replace_plan(inputs, {name: inputs.form[name].default for name in inputs.form.shared})
        deadlines = inputs.set_everywhere(whole_run.OWN_DEADLINE, {})
        st.session_state[_NOW] = (*st.session_state[_NOW][:2], {whole_run.OWN_DEADLINE: deadlines} if deadlines else {})

    def undo() -> None:
        _remember(inputs.plan_now())
        texts, saved, own = st.session_state[_PAST].pop()
        st.session_state[_NOW] = (texts, saved, {})
        _put_plan(inputs, texts, saved)
        for name, by_page in own.items():
            inputs.set_everywhere(name, by_page)

    error = ""
    with now.bar:
        name = name_of(saved) or name_of(held()) or preset or ""
        summary = suggested(texts).removeprefix(f"{name} · ")
        bold = f"<b>{safe_text(name)}</b> " if name else ""
        marks = "".join(f'<i class="np-changed-{name}"></i>' for name in now.changed)
        st.html(f'<p class="np-plan">{bold}{safe_text(summary)}{marks}</p>')
        with st.container(key="np-acts", horizontal=True, gap="xxsmall"):
            st.button(
                message("sidebar.undo"),
                key="plan:undo",
                on_click=undo,
                type="tertiary",
                disabled=not st.session_state.get(_PAST),
            )
            st.button(message("sidebar.new"), key="plan:new", on_click=anew, type="tertiary")
            saving(inputs, inputs.reading.texts if kind == "decision" else texts, kind)
            # The plan is taken where it is drawn: a callback would have that of before a field just changed.
            if st.button(
                message("sidebar.compare"), key="plan:add", type="tertiary", help=message("sidebar.compare_help")
            ):
                entry = entry_of(name_of(held()) or suggested(texts, comparison_list.plans()), texts)
                error = comparison_list.offer(with_saved_results(entry))
            comparison_list.way_there()
        if error:
            show.error(error)
    return preset


def draw_limits(inputs: Inputs) -> None:
    """Draw the limits under an answer, with a link to Decide if other accelerators may meet a missed limit."""
    asks = inputs.page in (COMPUTE, HOME)  # elsewhere the answers are of the accelerators in the sidebar
    with suppress(BudgetError):
        a = estimate((plan_of if asks else plan_as_given)(inputs.reading))
        within = within_as_deadline(inputs.reading) if asks else {}
        report = limit_report(a)
        line = text_limits.limits_line(a, report)
        way = way_to_decide(inputs, report.checks if report.entered else (), within, a)
        if line or way:
            show.note(line, way)


def way_to_decide(
    inputs: Inputs, checks: Iterable[Check], within: Mapping[str, str] | None = None, a: PlanEstimate | None = None
) -> show.Html | None:
    """Return a link to the plan on other offers, where it misses a limit that others may meet, can well miss its
    deadline, or asks how many accelerators it needs ``within`` a limit; a: its answer, of which what was found is
    linked."""
    asks = (doubtful(check) or (check.met is False and check.id not in ("memory", "host")) for check in checks)
    if not within and not any(asks):
        return None
    return show.link(message("plan.link.decide"), DECIDE, {**link_texts(inputs.reading.texts, a), **(within or {})})


def _examples(now: PageRun) -> str | None:
    """Return the presets, beside the page's title; the current one."""
    with now.head.examples or st.container():
        into, at = st.container(), "long" if now.inputs.page == HOME else ""
        return now.inputs.presets(now.presets, into=into, at=at, replaces=partial(replace_plan, now.inputs, {}))


def draw_page(draw: Callable[[Inputs], None]) -> None:
    """Draw a page with a plan. It runs completely each time, because its fields are outside of the page."""

    def page() -> None:
        with st.container(key="np-sidebar-shut"):  # where the sidebar is shut, as it is on a phone
            show.alerts(page_run().wrong, "np-again np-error")
        inputs = page_run().inputs
        _last_valid(inputs)
        asks = inputs.page in (COMPUTE, HOME)
        lacks_model = (plan_of if asks else plan_as_given)(inputs.reading).lacks_model
        (_without_model if lacks_model and inputs.page != COMPARE else draw)(inputs)

    show.guarded_draw(page)()


def _last_valid(inputs: Inputs) -> None:
    """Say of which inputs the answer is, where fields of the plan have texts that cannot be used."""
    wrong = [problem for problem in inputs.reading.problems if problem.field in inputs.form.shared]
    used = [
        message("error.shown.field", field=label, text=one.used) if one.used else message("sidebar.empty", field=label)
        for one in wrong
        for label in (inputs.form[one.field].label,)
    ]
    if used:
        show.note(message("sidebar.last_valid", fields=used))


def _without_model(inputs: Inputs) -> None:
    """Draw a page whose plan has a model of its own that has not been read: what to do."""
    draw_actions(link_texts(inputs.reading.texts), "decision" if inputs.page == DECIDE else "plan")
    show.answer(*plan_text.NO_MODEL)
    show.footer(inputs)
