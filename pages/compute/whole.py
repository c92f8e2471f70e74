"""Compute budget, the whole run: failures, checkpoints, goodput, energy, carbon; and the best split of its compute."""

from __future__ import annotations

import math

import streamlit as st

from core.limits import limit
from core.models.flops import train_flop_6nd
from core.planning.budget.solver import BudgetError
from core.planning.layer import words as words_layer
from core.planning.layer.figures import loss_curves
from core.planning.split.scaling import compute_optimal, overtraining
from core.planning.whole import words
from core.planning.whole.energy import US_GRID, USUAL_PUE
from core.planning.whole.figures import hours_of_the_run
from core.planning.whole.goodput import Reliability, failure_records
from core.planning.whole.wall import Circumstances, Wall, wall_of
from core.units import QuantityError, parse_quantity
from pages.compute.inputs import Asked
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS

HELP = {
    "rate": "Failures that stop the run, per 1,000 accelerator-days. Llama 3 405B had 0.474.",
    "each": "Bandwidth of writing a checkpoint, for each accelerator: storage grows with the cluster. 120 MB/s are "
    "the 2 TB/s that Llama 3’s storage sustained for 16,384.",
    "waits": "Share of a checkpoint’s writing during which training stands still. Written in the background it is a "
    "few percent: the copy out of the accelerators’ memory.",
    "back": "From a failure until it trains again: noticing, replacing, loading, and warming up.",
    "cost": "14: bf16 weights, their fp32 master, and Adam’s two moments.",
    "every": "Training time between checkpoints. Empty: Daly’s best interval.",
    "other": "Share of the time on the wall for evaluation, planned stops, idle tails.",
    "draw": "Share of the power limit drawn on average. 1 is the upper bound that published tables take.",
    "pue": "Power of the whole building over that of the machines.",
    "grid": "kg of CO₂ equivalent per kWh. 0.385 is the US average in LLaMA’s table.",
}


def whole(inputs: Inputs, asked: Asked) -> None:
    """The panel's content."""
    head = show.slot()
    around = _circumstances(inputs)
    st.session_state[_AROUND] = around
    show.input_errors(inputs)
    try:
        wall = hours(asked, around)
    except BudgetError as problem:
        with head:
            show.error(str(problem))
        return
    said = words.whole(wall, asked.outlook)
    with head:
        show.says(said)
    show.chart(
        hours_of_the_run(words.shares(wall), TOKENS),
        alt=f"Shares of the time on the wall. {said.replace('**', '')}",
        key="compute:wall",
    )
    show.says(words.failing(wall))
    show.small_table([show.Column("of the whole run"), show.Column("", numeric=True)], words.whole_rows(wall))
    show.says(words.used(wall, asked.outlook, asked.device.tdp_note))
    with show.fold("Published failure rates", key="compute:failures") as panel:
        if panel.open:
            show.small_table(
                [
                    show.Column("run or cluster"),
                    show.Column("accelerators", numeric=True),
                    show.Column("per 1,000 accelerator-days", numeric=True),
                    show.Column("counted"),
                    show.Column("source"),
                ],
                words.failures(failure_records()),
            )
    show.how(lambda: wall.explanations, key="compute:whole:how")


_AROUND = "compute:around"


def circumstances(inputs: Inputs) -> Circumstances:
    """What the panel says where it is open; else its defaults, because a link carries no fields of a closed panel."""
    opened = inputs.fields.get(inputs.key("whole")) == "true"
    return st.session_state.get(_AROUND, Circumstances()) if opened else Circumstances()


def hours(asked: Asked, around: Circumstances) -> Wall:
    """The answer's hours taken apart. Raises `BudgetError` for failures that leave no progress."""
    return wall_of(
        asked.outlook,
        asked.seen,
        asked.device,
        around,
        published=asked.published,
        params_total=float(asked.model.parameters) if asked.model else asked.plan.params,
    )


def _circumstances(inputs: Inputs) -> Circumstances:
    number = inputs.quantity
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rate = number("rate1k", "Failures per 1,000 acc.-days", "0.474", "number", high=1e4, help=HELP["rate"])
        each = number("each", "Writes, each acc.", "120 MB/s", "bytes_per_s", low=1, high=1e12, help=HELP["each"])
        back = number("back", "Restart", "10 min", "seconds", high=1e6, help=HELP["back"])
    more = st.expander("More: bytes per parameter, checkpoint interval, writing behind, other stops, power, grid")
    with more, st.container(horizontal=True, vertical_alignment="bottom"):
        cost = number("cost", "Bytes per parameter", "14", "number", low=0.1, high=100.0, help=HELP["cost"])
        every = _interval(inputs)
        waits = number("waits", "Training waits", "100%", "ratio", high=1.0, help=HELP["waits"])
        other = number("other", "Other stops", "0%", "ratio", high=0.9, help=HELP["other"])
    with more, st.container(horizontal=True, vertical_alignment="bottom"):
        draw = number("draw", "Power drawn", "100%", "ratio", low=0.01, high=1.0, help=HELP["draw"])
        pue = number("pue", "PUE", str(USUAL_PUE), "number", low=1.0, high=3.0, help=HELP["pue"])
        grid = number("grid", "Grid, kg/kWh", str(US_GRID), "number", high=3.0, help=HELP["grid"])
    settings = Reliability(
        rate=rate,
        bytes_per_parameter=cost,
        write_each=each,
        blocking=waits,
        restart=back,
        interval=every,
        elsewhere=other,
    )
    return Circumstances(settings, draw, pue, grid)


def _interval(inputs: Inputs) -> float:
    """The typed checkpoint interval in seconds; NaN where Daly's is taken."""
    text = inputs.text(
        "every", "Checkpoint every", "", max_chars=limit("number_chars"), placeholder="best", help=HELP["every"]
    )
    try:
        value = parse_quantity(text, "seconds", low=1.0, high=1e8, example="30 min") if text.strip() else math.nan
        inputs.keep("every", text)
    except QuantityError as problem:
        kept = inputs.last_good("every", "")
        value = parse_quantity(kept, "seconds") if kept.strip() else math.nan
        inputs.fail(f"Checkpoint every: {problem}", "Still using the last good one.")
    return value


def split(asked: Asked) -> None:
    """The best split of the plan's compute between parameters and tokens, by each published law."""
    plan = asked.plan
    flop = train_flop_6nd(plan.params, plan.tokens)
    try:
        found = compute_optimal(flop)
    except BudgetError as problem:
        show.error(str(problem))
        return
    said = words_layer.trained(asked.outlook)
    show.says(said)
    show.chart(
        loss_curves(flop, plan.params, found, TOKENS),
        alt=f"Loss against parameters for one budget, by two published laws. {said.replace('**', '')}",
        key="compute:loss",
    )
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(words_layer.SPLITS)],
        words_layer.splits(found, asked.outlook),
        here=len(found),
    )
    show.note(
        "Both laws are fits of the same runs of dense models, the second one on points read off the first paper’s "
        "figure: where they differ, so much is uncertain. Their losses hold for that text and its tokeniser. With a "
        "mixture of experts N is the active parameters, for which neither was fitted."
    )
    show.how(
        lambda: [
            overtraining.explain(tokens=plan.tokens, params=plan.params),
            *words_layer.explain_losses(asked.outlook),
            *(step for s in found for step in s.explanations),
        ],
        key="compute:split:how",
    )
