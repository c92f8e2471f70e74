"""Compute budget, the whole run: failures, checkpoints, goodput, energy, carbon; and the best split of its compute."""

from __future__ import annotations

import math

import streamlit as st

from core.limits import limit
from core.planning import words_layer as words
from core.planning.comparable import Profile, comparable
from core.planning.energy import US_GRID, USUAL_PUE, footprint
from core.planning.figures_layer import hours_of_the_run, loss_curves
from core.planning.goodput import Reliability, WholeRun, failure_records, whole_run
from core.planning.scaling import compute_optimal, overtraining
from core.planning.solver import BudgetError
from core.planning.words import percent
from core.units import QuantityError, parse_quantity
from pages.parts import show
from pages.parts.compute_inputs import Asked
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS

HELP = {
    "rate": "Failures that stop the run, per 1,000 accelerator-days. Llama 3 405B had 0.474.",
    "write": "Bandwidth of writing a checkpoint, whole cluster.",
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
    number = inputs.quantity
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rate = number("rate1k", "Failures per 1,000 acc.-days", "0.474", "number", high=1e4, help=HELP["rate"])
        band = number("write", "Write bandwidth", "100 GB/s", "bytes_per_s", low=1e6, high=1e15, help=HELP["write"])
        back = number("back", "Restart", "10 min", "seconds", high=1e6, help=HELP["back"])
    more = st.expander("More: bytes per parameter, checkpoint interval, other stops, power, grid")
    with more, st.container(horizontal=True, vertical_alignment="bottom"):
        cost = number("cost", "Bytes per parameter", "14", "number", low=0.1, high=100.0, help=HELP["cost"])
        every = _interval(inputs)
        other = number("other", "Other stops", "0%", "ratio", high=0.9, help=HELP["other"])
        draw = number("draw", "Power drawn", "100%", "ratio", low=0.01, high=1.0, help=HELP["draw"])
        pue = number("pue", "PUE", str(USUAL_PUE), "number", low=1.0, high=3.0, help=HELP["pue"])
        grid = number("grid", "Grid, kg/kWh", str(US_GRID), "number", high=3.0, help=HELP["grid"])
    show.input_errors(inputs)
    settings = Reliability(
        rate=rate, bytes_per_parameter=cost, bandwidth=band, restart=back, interval=every, elsewhere=other
    )
    mfu, origin = _steady(asked)
    try:
        run = _run(asked, mfu, settings)
    except BudgetError as problem:
        with head:
            show.error(str(problem))
        return
    with head:
        show.says(words.whole(run, origin))
    show.chart(
        hours_of_the_run(words.shares(run), TOKENS),
        alt=f"Shares of the time on the wall. {words.whole(run, origin).replace('**', '')}",
        key="compute:wall",
    )
    show.small_table([show.Column("of the whole run"), show.Column("", numeric=True)], words.whole_rows(run))
    hours = asked.plan.accelerators * run.wall / 3600
    foot = footprint(hours, asked.device.tdp_watts, share=draw, pue=pue, intensity=grid)
    show.says(words.used(foot, hours, asked.device.tdp_note))
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
    show.how(lambda: [*run.explanations, *foot.explanations], key="compute:whole:how")


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


def _steady(asked: Asked) -> tuple[float, str]:
    """The MFU of steady steps: the typed one, or that of comparable benchmarks, because whole runs hold stops."""
    plan = asked.plan
    if not asked.published:
        return plan.mfu, f"at your {percent(plan.mfu)} MFU"
    profile = asked.seen.peers.profile
    peers = comparable(Profile(plan.params, math.nan, profile.accelerator, profile.experts, profile.width), "steady")
    mfu = min(peers.utilisation.mid * asked.seen.scale, 1.0)
    return mfu, f"at {percent(mfu)} MFU, the median of {len(peers.rows)} comparable steady measurements,"


def _run(asked: Asked, mfu: float, settings: Reliability) -> WholeRun:
    plan = asked.plan
    return whole_run(
        flop=float(asked.outlook.middle.flop),
        accelerators=plan.accelerators,
        peak=plan.peak,
        mfu=mfu,
        params_total=float(asked.model.parameters) if asked.model else plan.params,
        reliability=settings,
    )


def split(asked: Asked) -> None:
    """The best split of the plan's compute between parameters and tokens, by each published law."""
    plan, flop = asked.plan, float(asked.outlook.middle.flop)
    try:
        found = compute_optimal(flop)
    except BudgetError as problem:
        show.error(str(problem))
        return
    said = words.trained(asked.outlook)
    show.says(said)
    show.chart(
        loss_curves(flop, plan.params, found, TOKENS),
        alt=f"Loss against parameters for one budget, by two published laws. {said.replace('**', '')}",
        key="compute:loss",
    )
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(words.SPLITS)],
        words.splits(found, asked.outlook),
        here=len(found),
    )
    show.note(
        "Each law was fitted on its own text with its own tokeniser: losses of different laws do not compare. With a "
        "mixture of experts N is the active parameters, for which no such law was fitted."
    )
    show.how(
        lambda: [
            overtraining.explain(tokens=plan.tokens, params=plan.params),
            *words.explain_losses(asked.outlook),
            *(step for s in found for step in s.explanations),
        ],
        key="compute:split:how",
    )
