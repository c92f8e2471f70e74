"""Measure: time square matmuls on this machine, beside its datasheet where there is one."""

import streamlit as st

from core.limits import limit
from core.measure import report
from core.measure.device import machine
from core.measure.figures import rates
from core.measure.jobs import Runner, Snapshot
from core.measure.spec import DEFAULT_N, DEFAULT_SECONDS, MIN_N, MIN_SECONDS, Spec
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import DEVICE
from pages.parts.theme import TOKENS

CAPTION = "Rates of one run; the error is that of a slice of the result, relative to a float64 product."
STEPS = [show.Column("Step"), show.Column("What happens"), show.Column("In all", numeric=True)]


@st.cache_resource
def shared_runner() -> Runner:
    """The one runner of this process: every session sees the same job."""
    return Runner()


def start(runner: Runner, spec: Spec) -> None:
    """Start a job, or join the one that somebody else has started meanwhile."""
    job, mine = runner.start(spec)
    if mine:
        st.session_state["d:mine"] = job.id


def findings(job: Snapshot, *, key: str) -> None:
    """Answer, chart and table of a job with outcomes."""
    if job.results:
        show.answer(*report.answer(job))
    if doubt := report.warning(job):
        show.error(doubt)
    show.chart(rates(report.bars(job), TOKENS), alt=report.chart_alt(job), key=key)
    if job.results:
        columns = [show.Column(name, numeric=i > 0) for i, name in enumerate(report.headings(job))]
        show.small_table(columns, [row.cells for row in report.rows(job)], caption=CAPTION)
    for remark in report.remarks(job):
        show.note(remark)


def page() -> None:
    """The button, the running job or the latest finished one, and how it was measured."""
    runner = shared_runner()
    here = machine()
    latest = runner.latest()
    running = latest is not None and latest.running
    shown = None if running else runner.latest_with_results()

    inputs = Inputs(DEVICE)
    row = st.columns([1, 1, 0.9, 1.3], vertical_alignment="bottom")
    with row[0]:
        n = inputs.quantity(
            "n", "Matrix size n", str(DEFAULT_N[here.kind]), "count", low=MIN_N, high=limit("matmul_size"), whole=True
        )
    with row[1]:
        top = limit("measure_dtype_seconds")
        seconds = inputs.quantity(
            "s", "Timed seconds per dtype", f"{DEFAULT_SECONDS:g} s", "seconds", low=MIN_SECONDS, high=top
        )
    spec = Spec(here.kind, int(n), seconds)
    with row[2]:
        name = "Measure on this GPU" if here.kind == "cuda" else "Measure on this CPU"
        st.button(name, type="primary", key="d:run", disabled=running, on_click=start, args=(runner, spec))
    if shown:  # before the first run the answer says it
        with row[3].container(key="measure_estimate"):
            show.note(report.estimate(spec))
    show.input_errors(inputs)
    show.note(report.machine_line(here))

    @st.fragment(run_every=1 if running else None)
    def live(job_id: str) -> None:
        """The running job, looked at once a second until it has ended."""
        job = runner.poll(job_id)
        if job is None or not job.running:
            st.rerun()
        bar, stop = st.columns([5, 1], vertical_alignment="center")
        bar.progress(job.fraction, text=report.progress_line(job))
        stop.button("Cancel", key="d:cancel", on_click=runner.cancel, args=(job_id,))
        with show.guarded("The rates so far"):
            findings(job, key="device:live")

    if latest is not None and latest.running:
        if st.session_state.get("d:mine") != latest.id:
            show.note("Somebody else started this measurement; the device does one at a time. You may cancel it.")
        live(latest.id)
    else:
        state, said = report.status(latest) if latest else ("", "")
        if state:
            (show.error if state == "error" else show.note)(said)
        if shown is None:
            show.answer(*report.invitation(here, spec))
            show.small_table(STEPS, report.steps(spec), caption="What will happen")
        else:
            if other := report.earlier(shown, spec):
                show.note(other)
            with show.guarded("The rates"):
                findings(shown, key="device:rates")
    show.how(
        report.explanations(shown) if shown else report.preview(spec),
        notes=report.method(here.kind),
        key="device:how",
    )
    show.footer(inputs)


show.body(page)
