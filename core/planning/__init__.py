"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took."""

from core.planning.deadline import Fleet, fewest_accelerators
from core.planning.energy import Footprint, footprint
from core.planning.goodput import Reliability, WholeRun, whole_run
from core.planning.interval import Interval
from core.planning.scaling import LAWS, Split, compute_optimal, overtraining
from core.planning.solver import BudgetError, SolvedBudget, solve_budget

__all__ = [
    "LAWS",
    "BudgetError",
    "Fleet",
    "Footprint",
    "Interval",
    "Reliability",
    "SolvedBudget",
    "Split",
    "WholeRun",
    "compute_optimal",
    "fewest_accelerators",
    "footprint",
    "overtraining",
    "solve_budget",
    "whole_run",
]
