"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took."""

from core.planning.answer.answer import Answer, Column, answer
from core.planning.answer.form import PLAN_FIELDS, PLAN_FORM, plan_from, plan_of
from core.planning.answer.plan import Limits, Plan, parse_mfu, parse_price, parse_within
from core.planning.budget.errors import BudgetError
from core.planning.budget.interval import Interval
from core.planning.evidence.expectation import ExpectedRun, expected_run
from core.planning.step.parts import Rates, Running, StepTime
from core.planning.step.time import step_time

__all__ = [
    "PLAN_FIELDS",
    "PLAN_FORM",
    "Answer",
    "BudgetError",
    "Column",
    "ExpectedRun",
    "Interval",
    "Limits",
    "Plan",
    "Rates",
    "Running",
    "StepTime",
    "answer",
    "expected_run",
    "parse_mfu",
    "parse_price",
    "parse_within",
    "plan_from",
    "plan_of",
    "step_time",
]
