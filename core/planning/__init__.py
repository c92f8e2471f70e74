"""Plans: what a training run takes in time, accelerators and dollars, and what published runs took.

The functions ``comparable`` and ``sensitivity`` are in the modules of the same names.
"""

from core.planning.comparable import (
    Comparables,
    Expected,
    Profile,
    expected,
    expected_hours,
    predictions,
    score,
)
from core.planning.deadline import Fleet, fewest_accelerators
from core.planning.energy import Footprint, footprint
from core.planning.goodput import Reliability, WholeRun, whole_run
from core.planning.interval import Interval
from core.planning.layer import LayerOperation, layer_roofline, matmul_share
from core.planning.scaling import LAWS, Split, compute_optimal, overtraining
from core.planning.scored import Scored, which_mfu
from core.planning.sensitivity import Assumptions, IsoDays, Swing, iso_days
from core.planning.solver import BudgetError, SolvedBudget, solve_budget

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
