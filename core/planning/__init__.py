"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took."""

from core.planning.comparable import Comparables, Profile, comparable, expected_hours, predictions, score
from core.planning.deadline import Fleet, fewest_accelerators
from core.planning.energy import Footprint, footprint
from core.planning.goodput import Reliability, WholeRun, whole_run
from core.planning.interval import Interval
from core.planning.scaling import LAWS, Split, compute_optimal, overtraining
from core.planning.solver import BudgetError, SolvedBudget, solve_budget

__all__ = [
    "LAWS",
    "BudgetError",
    "Comparables",
    "Fleet",
    "Footprint",
    "Interval",
    "Profile",
    "Reliability",
    "SolvedBudget",
    "Split",
    "WholeRun",
    "comparable",
    "compute_optimal",
    "expected_hours",
    "fewest_accelerators",
    "footprint",
    "overtraining",
    "predictions",
    "score",
    "solve_budget",
    "whole_run",
]
