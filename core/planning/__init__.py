"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took."""

from core.hardware.rates import Rates
from core.planning.answer.answer import Answer, Column, answer
from core.planning.answer.form import PLAN_FIELDS, PLAN_FORM, plan_from, plan_of
from core.planning.answer.plan import Limits, Plan, parse_mfu, parse_price, parse_within
from core.planning.budget.errors import BudgetError
from core.planning.budget.interval import Interval
from core.planning.evidence.expectation import ExpectedRun, expected_run
from core.planning.search.constraints import Constraints, SpaceError
from core.planning.search.found import Columns, Found, Searched
from core.planning.search.neighbours import Neighbour, neighbours
from core.planning.search.question import Question
from core.planning.search.search import Objective, search_plans, searched
from core.planning.search.sizes import Sized, best_by_size, sizes_with_plans
from core.planning.step.parts import Running, StepTime
from core.planning.step.time import step_time

__all__ = [
    "PLAN_FIELDS",
    "PLAN_FORM",
    "Answer",
    "BudgetError",
    "Column",
    "Columns",
    "Constraints",
    "ExpectedRun",
    "Found",
    "Interval",
    "Limits",
    "Neighbour",
    "Objective",
    "Plan",
    "Question",
    "Rates",
    "Running",
    "Searched",
    "Sized",
    "SpaceError",
    "StepTime",
    "answer",
    "best_by_size",
    "expected_run",
    "neighbours",
    "parse_mfu",
    "parse_price",
    "parse_within",
    "plan_from",
    "plan_of",
    "search_plans",
    "searched",
    "sizes_with_plans",
    "step_time",
]
