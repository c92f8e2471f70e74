"""Every preset, question and accelerator through the functions that the pages call, panel by panel, without a page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, get_args

import numpy as np
import plotly.graph_objects as go

from core.budget.compute_optimal import compute_optimal, overtraining
from core.budget.equations import BudgetError
from core.formula import Explanation
from core.hardware.accelerators import accelerators
from core.hardware.cluster import Rates
from core.models.attention_share import growth
from core.models.flops import FlopCount, flops_per_token, train_flop_6nd
from core.planning.actuals.log import parse_log
from core.planning.actuals.progress import progress
from core.planning.estimate import PlanEstimate, estimate, timed_estimate
from core.planning.form.plan_form import plan_from
from core.planning.largest_model import Counted, largest
from core.planning.layout import stages, traffic
from core.planning.measured import rates_of
from core.planning.memory_estimate import memory_estimate, under_each_optimizer
from core.planning.nearest_runs import similar_runs
from core.planning.plan import FINDS, OWN_SHAPE, Plan
from core.planning.presets import MEMORY_PRESETS, PRESETS
from core.planning.sensitivity import cluster_results, plan_as_answered, swings
from core.runs.conventions import which_mfu
from core.runs.published import compare_all, evidence, explain_comparison, peak_16bit
from core.runs.run_efficiency import run_shares
from core.runs.scores import predictions, score
from core.search.fastest import searched
from core.search.launch import launches
from core.search.neighbours import neighbours
from core.search.placement import groups, timeline_of
from core.search.request import explain
from core.step_time.layer_roofline import ELEMENT_BYTES, layer_roofline, peaks_of, wide_dtype
from core.training.layout import LayoutError
from core.views.actuals import text as actuals_text
from core.views.actuals.charts import tokens_over_days
from core.views.common.palette import LIGHT
from core.views.compute_optimal import text as compute_optimal_text
from core.views.flops import charts as figures_count
from core.views.flops import text as flops_text
from core.views.hardware import text as hardware_text
from core.views.plan import text as plan_text
from core.views.plan import text_memory, text_rates
from core.views.plan.charts import answer_strip
from core.views.plan.memory_rows import memory_rows
from core.views.report.rows import plan_rows
from core.views.report.tables import rows_csv
from core.views.roofline import text as roofline_text
from core.views.roofline.charts import roofline
from core.views.runs import text as runs_text
from core.views.runs import text_goodput as words_whole
from core.views.runs.charts import RunPoint, evidence_scatter
from core.views.runs.charts_goodput import hours_of_the_run
from core.views.search import text as search_text
from core.views.search import text_step
from core.views.search.charts import cluster_sizes, space
from core.views.search.charts_step import pipeline, waterfall
from core.views.sensitivity import text as sensitivity_text
from core.views.sensitivity.charts import tornado
from core.views.training import text as training_text
from core.views.training.charts_device import device_bars

PRESETS_OF_BOTH = {**PRESETS, **MEMORY_PRESETS}
NO_NUMBER = re.compile(r"(?<![A-Za-z])((?i:nan|inf)|None)(?![A-Za-z])")
Shown = str | Explanation | Mapping[str, Any]
"""What a panel shows: text, a formula with its numbers, or a figure."""


# ------------------------------------------------------------------------------------------ panels: quick parts


def _head(a: PlanEstimate) -> Iterator[Shown]:
    yield from (plan_text.headline(a), plan_text.range_text(a), plan_text.mfu_text(a), plan_text.times_text(a))
    yield from (plan_text.impossible(a), *plan_text.cautions(a))
    yield from (
        plan_text.does_not_fit(a),
        *text_rates.rates_text(a.plan),
        text_rates.change(a.plan),
    )
    peers = similar_runs(a)
    yield runs_text.similar_runs_text(a, peers)
    yield from _cells(
        runs_text.near_table(peers, {run.evidence: run.share for run in run_shares(has_step_estimate=True)})[1]
    )


def _actuals(a: PlanEstimate) -> Iterator[Shown]:
    p = progress(parse_log(actuals_text.example(a)), a)
    yield from (*actuals_text.verdict(p), actuals_text.own(p), actuals_text.chart_alt(p), *actuals_text.read(p))
    yield from _cells(actuals_text.changed(p))
    yield from (tokens_over_days(p, LIGHT), *p.explain())


def _whole(a: PlanEstimate) -> Iterator[Shown]:
    yield from (words_whole.whole_text(a), words_whole.failures_text(a), words_whole.energy_text(a))
    yield from _cells(words_whole.checkpoint_rows(a))
    shares = words_whole.time_shares(a)
    assert math.isclose(sum(share for _, share, _ in shares), 1, rel_tol=1e-9), shares
    yield from (name for name, _, _ in shares)


def _table(a: PlanEstimate) -> Iterator[Shown]:
    lines = plan_rows(a)
    yield from (compute_optimal_text.ratio_text(a), *(cell for line in lines for cell in line.cells()))


def _counted(a: PlanEstimate) -> Iterator[Shown]:
    counted = _count(a)
    yield from (flops_text.components_text(counted), flops_text.components_alt(a.shape, counted))
    yield flops_text.gap_text(a.shape, a.plan.seq_len, a.plan.attention)
    yield from _cells(flops_text.gap_rows(a.shape, a.plan.seq_len, a.plan.attention))
    yield from flops_text.cautions(a.shape, a.plan.seq_len)
    if a.stands_in:
        yield flops_text.proxy_text(a.shape)


def look_for_sizes(plan: Plan) -> Iterator[Shown]:
    """What Parallel plan says of clusters of other sizes."""
    sized = cluster_results(plan)
    yield from search_text.sizes_text(sized, plan.within.days, None)
    yield from _cells(search_text.size_table(sized)[1] if sized else [])
    if sized:
        yield cluster_sizes(sized, int(plan.accelerators), plan.within.days, LIGHT)


def look_for(plan: Plan) -> Iterator[Shown]:
    """What Parallel plan says of a plan; of one without a layout that fits, what would make one."""
    try:
        at = timed_estimate(plan)
        query, results = at.request, at.step
        result = searched(query)
    except (BudgetError, LayoutError) as problem:
        yield str(problem)
        return
    if result.best is None:
        yield search_text.does_not_fit(plan, query, result)
    yield search_text.headline(at)
    yield search_text.step_text(at)
    yield from (cell for row in search_text.answer_rows(at, result) for cell in row.cells())
    yield search_text.network_note(query)
    yield search_text.fastest_text(plan, result, results)
    yield text_step.breakdown_text(results)
    yield waterfall(results.step, LIGHT, low=results.low, high=results.high)
    line = timeline_of(results.layout, results.step)
    yield text_step.bubble_text(results.layout, line, results.step)
    yield pipeline(line, LIGHT)
    yield text_step.stages_text(stages(query, results.layout, 16), int(results.layout.pipeline))
    sent = groups(results.layout, results.step, traffic(query, results.layout), query.cluster.per_node)
    yield text_step.traffic_text(sent)
    yield from _cells(text_step.group_table(sent)[1])
    near = neighbours(results, query)
    yield text_step.neighbors_text(results, near)
    yield from _cells(text_step.neighbor_rows(results, near))
    for setting in launches(query, results.layout):
        yield from (setting.text.replace("None", ""), *setting.notes)
    yield from explain(query, results, plan.tokens)
    if result.best:
        yield space(result.plans, result.pareto, results, results.usable, LIGHT)
        yield search_text.pareto_text(result)
        yield from _cells(search_text.space_table(plan, query, result.plans, result.best, 15)[1])


def _memory(plan: Plan) -> Iterator[Shown]:
    """What Training memory says of a plan."""
    h = memory_estimate(plan)
    yield from (text_memory.sentence(h), text_memory.counted(h), *text_memory.remarks(h))
    yield from (f"{row.cells()}" for row in memory_rows(h))
    yield training_text.cited(h.optimizer, h.policy)
    yield device_bars([("", h.device_memory)], h.usable, LIGHT)


QUICK: tuple[Callable[[PlanEstimate], Iterator[Shown]], ...] = (_head, _whole, _actuals, _table, _counted)


# ------------------------------------------------------------------------------------------ panels: the rest


def _count(a: PlanEstimate) -> FlopCount:
    return flops_per_token(a.shape.spec, a.plan.seq_len, a.plan.attention)


def _pictures(a: PlanEstimate) -> Iterator[Shown]:
    yield from a.explain()
    yield answer_strip(a, similar_runs(a), LIGHT)
    yield hours_of_the_run(words_whole.time_shares(a), LIGHT)
    yield from a.explain_power()


def _moves(a: PlanEstimate) -> Iterator[Shown]:
    plan = plan_as_answered(a)
    result = swings(plan, 0.2)
    for dollars in (False, True):
        if dollars and math.isnan(a.middle.dollars):
            continue
        named = sensitivity_text.named(result, dollars=dollars)
        yield from (sensitivity_text.moved(named, dollars=dollars), *(item.name + item.span for item in named))
        if named:
            yield tornado(named, a.middle.dollars if dollars else a.middle.days, dollars, LIGHT)


def _runs(a: PlanEstimate) -> Iterator[Shown]:
    peers = similar_runs(a)
    near = {peer.similarity.evidence for peer in peers}
    m = a.middle
    rows = evidence("whole")
    points = [
        RunPoint(row.run.model, row.run.params, row.utilisation, runs_text.hover_text(row), row in near) for row in rows
    ]
    yours = m.mfu / a.peak_ratio * 6 / m.per_parameter
    yield evidence_scatter([*points, RunPoint("yours", m.parameters, yours, "", here=True)], LIGHT)
    yield runs_text.score_detail(score(), score())
    yield from _cells(runs_text.predicted_table(predictions())[1])
    if a.model is None or a.plan.model == OWN_SHAPE:
        return
    runs = compare_all(a.model, m.mfu * a.peak / peak_16bit(a.device.name), a.plan.seq_len, a.device.name)
    if not runs:
        yield runs_text.no_run(a.model)
    for run in runs[:1]:
        yield from runs_text.published_headings(run)
        yield from _cells(runs_text.published_rows(run, m.accelerators, m.steps_mfu))
        yield runs_text.about_run(run)
        yield explain_comparison(run)


def _flops(a: PlanEstimate) -> Iterator[Shown]:
    counted = _count(a)
    yield figures_count.flops_by_component(counted, LIGHT)
    grown = growth(a.shape.spec, a.plan.seq_len, a.plan.attention)
    yield flops_text.growth_alt(grown)
    yield figures_count.sequence_sweep(grown, LIGHT)
    rate = a.middle.tokens_per_second
    scoreds = which_mfu(
        a.shape.spec,
        a.plan.seq_len,
        accelerators=a.middle.accelerators,
        peak=a.peak,
        tokens_per_second=rate,
    )
    yield flops_text.scores_text(scoreds, rate)
    yield from _cells(flops_text.score_table(scoreds)[1])
    yield from (*(scored.explanation for scored in scoreds), *grown.explain())
    yield from (part.explain() for part in counted.parts)


def _roof(a: PlanEstimate) -> Iterator[Shown]:
    if a.dtype not in ELEMENT_BYTES or not a.device.bandwidth > 0:
        return
    spec, seq_len, trail, rates = a.shape.spec, a.plan.seq_len, 2.0 ** np.arange(16), rates_of(a.plan)
    layer = partial(layer_roofline, spec, a.device, dtype=a.dtype, seq_len=seq_len, rates=rates)
    result, along = layer(tokens=8192.0), layer(tokens=trail)
    rows = ("up", "experts_up", "shared_up", "other")
    up = next(operation for operation in along if operation.row in rows and operation.phase == "forward")
    wide = wide_dtype(a.device, a.dtype)
    peaks, sheet = (peaks_of(a.device, a.dtype, of) for of in (rates, None))
    bandwidth = (rates or Rates()).of("memory", a.device.bandwidth)
    vector = a.device.peak("fp32") if a.device.peak("fp32") > 0 else peaks[wide]
    operations = [operation for operation in result if operation.phase != "backward" and operation.row != "head_update"]
    beside = (sheet, a.device.bandwidth) if rates else None
    yield roofline(operations, up, trail, peaks, vector, bandwidth, LIGHT, beside)
    yield from roofline_text.layer_text(result, a.device.name, 8192)
    yield from _cells(roofline_text.operation_table(result)[1])
    yield from (
        step for operation in result if operation.row in ("up", "norms") for step in operation.placed.explanations
    )


def _split(a: PlanEstimate) -> Iterator[Shown]:
    m = a.middle
    flop = train_flop_6nd(m.parameters, m.tokens)
    try:
        allocations = compute_optimal(flop)
    except BudgetError as refused:
        yield str(refused)
        return
    yield from _cells(compute_optimal_text.split_rows(allocations, a))
    yield overtraining.explain(tokens=m.tokens, params=m.parameters)
    yield from (
        *compute_optimal_text.explain_losses(a),
        *(step for allocation in allocations for step in allocation.explanations),
    )


def _parts(a: PlanEstimate) -> Iterator[Shown]:
    yield from (*flops_text.active_counts(a.shape), flops_text.model_origin(a.shape))
    headings, rows = flops_text.parameter_rows(a.shape)
    assert all(len(row) == len(headings) for row in rows)
    yield from _cells(rows)
    yield from _cells(hardware_text.peak_table(a.device)[1])
    yield from (*hardware_text.peak_origin(a.device, a.dtype), *hardware_text.datasheet(a.device))


def _take_away(a: PlanEstimate) -> Iterator[Shown]:
    yield rows_csv(plan_rows(a))


def _states(a: PlanEstimate) -> Iterator[Shown]:
    try:
        plan = replace(a.plan, accelerators=float(a.memory.layout.accelerators))
    except LayoutError:
        assert plan_text.does_not_fit(a)  # which says why it cannot be laid out
        return
    for counted in get_args(Counted):
        item = largest(plan, counted)
        yield from (text_memory.holding(item), text_memory.what_is_counted(item, largest(plan)))
        yield device_bars([("", item.device_memory)], item.memory.usable, LIGHT)
        yield from item.explain()
    for other in under_each_optimizer(a.memory):
        name, _, *rest = training_text.optimizer_row(other)  # a state may be called exp_inf
        yield from (name, *rest)


COSTLY: tuple[Callable[[PlanEstimate], Iterator[Shown]], ...] = (
    _pictures,
    _moves,
    _runs,
    _flops,
    _roof,
    _split,
    _parts,
    _take_away,
    _states,
)


def _cells(rows: Any) -> Iterator[str]:
    return (str(cell) for row in rows for cell in row)


# ------------------------------------------------------------------------------------------ what may not be shown


@lru_cache(maxsize=50_000)
def _says_no_number(text: str) -> bool:
    return bool(NO_NUMBER.search(text))


def wrong(display: Shown) -> str:
    """What is wrong with something shown; empty where nothing is."""
    if isinstance(display, str):
        return f"“{display[:200]}”" if _says_no_number(display) else ""
    if isinstance(display, Explanation):
        return f"{display.name}: {display.substituted}" if _says_no_number(display.substituted + display.text) else ""
    if not _finite(display["layout"]):
        return f"a layout with a number that is none: {display['layout']}"
    go.Figure(display)
    return ""


def _finite(value: Any) -> bool:
    """Whether no number in it is NaN or infinite, at any depth."""
    if isinstance(value, Mapping):
        return all(_finite(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(_finite(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.all(np.isfinite(value)))
    if isinstance(value, str):
        return not _says_no_number(value)
    return not isinstance(value, float) or math.isfinite(value)


@dataclass
class Walked:
    """How many plans were answered and refused, and what was wrong."""

    plans: int = 0
    refused: int = 0
    costly: int = 0
    faults: list[str] = field(default_factory=list[str])

    def look(self, where: str, panel: Callable[[Any], Iterator[Shown]], at: Any) -> None:
        try:
            self.faults += [f"{where}, {panel.__name__}: {text}" for text in map(wrong, panel(at)) if text]
        except Exception as fault:
            self.faults.append(f"{where}, {panel.__name__}: {type(fault).__name__}: {fault}")

    def step(self, where: str, plan: Plan, *, costly: Sequence[Callable[[PlanEstimate], Iterator[Shown]]] = ()) -> None:
        """One plan through the quick parts of every panel, and through the costly ones that are named."""
        try:
            a = estimate(plan)
        except BudgetError as refused:
            self.refused += 1
            if not str(refused) or wrong(str(refused)):
                self.faults.append(f"{where}: refused with “{refused}”")
            return
        except Exception as fault:
            self.faults.append(f"{where}: {type(fault).__name__}: {fault}")
            return
        self.plans += 1
        for panel in QUICK:
            self.look(where, panel, a)
        for panel in costly:
            self.costly += 1
            self.look(where, panel, a)


def walk_all(costly_every: int, stop_after: int = 10**9, ninths: tuple[int, ...] = tuple(range(9))) -> Walked:
    """Every preset × question × accelerator. The costly parts by turns, one at each ``costly_every``-th plan; at 1 all
    of them at every plan.

    ninths: which ninths of them.
    """
    walked = Walked()
    plans = {name: plan_from({"within": "90 days", **preset}) for name, preset in PRESETS_OF_BOTH.items()}
    places = product(*(enumerate(axis) for axis in (plans.items(), FINDS, accelerators())))
    grid = [[item for _, item in place] for place in places if sum(at for at, _ in place) % 9 in ninths]
    for number, ((name, plan), find, device) in enumerate(grid):
        if number >= stop_after:
            break
        where = f"{name}, {find}, {device.name}"
        plan = replace(plan, find=find, accelerator=device.name)
        turn, rest = divmod(number, costly_every)
        results = (COSTLY[turn % len(COSTLY)],) if rest == 0 else ()
        walked.step(where, plan, costly=COSTLY if costly_every == 1 else results)
        if name in MEMORY_PRESETS and find == "time":
            walked.look(where, _memory, plan)
    return walked
