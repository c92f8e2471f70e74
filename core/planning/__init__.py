"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took.

The functions ``comparable`` and ``sensitivity`` are in the modules of the same names.
"""

from core.planning.budget.deadline import Fleet, fewest_accelerators
from core.planning.budget.interval import Interval
from core.planning.budget.solver import BudgetError, SolvedBudget, solve_budget
from core.planning.counting.scored import Scored, which_mfu
from core.planning.evidence.comparable import (
    Comparables,
    Expected,
    Profile,
    expected,
    expected_hours,
    predictions,
    score,
)
from core.planning.layer.operations import LayerOperation, layer_roofline, matmul_share
from core.planning.moves.sensitivity import Assumptions, IsoDays, Swing, iso_days
from core.planning.split.scaling import LAWS, Split, compute_optimal, overtraining
from core.planning.whole.energy import Footprint, footprint
from core.planning.whole.goodput import Reliability, WholeRun, whole_run

__all__ = [
    "LAWS",
    "Assumptions",
    "BudgetError",
    "Comparables",
    "Expected",
    "Fleet",
    "Footprint",
    "Interval",
    "IsoDays",
    "LayerOperation",
    "Profile",
    "Reliability",
    "Scored",
    "SolvedBudget",
    "Split",
    "Swing",
    "WholeRun",
    "compute_optimal",
    "expected",
    "expected_hours",
    "fewest_accelerators",
    "footprint",
    "iso_days",
    "layer_roofline",
    "matmul_share",
    "overtraining",
    "predictions",
    "score",
    "solve_budget",
    "which_mfu",
    "whole_run",
]
