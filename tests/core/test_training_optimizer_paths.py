"""Optimizers in motion: our formulas against torch.optim step by step, gradients against autograd, and the pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from core.limits import limit
from core.training.optimizer_paths.path import (
    MOVING,
    OptimizerPath,
    disagreement,
    explained,
    optimizer_path,
    rate_of,
    read_start,
)
from core.training.optimizer_paths.surfaces import SURFACES
from core.training.optimizers import find_optimizer
from core.units import QuantityError
from core.views.common.palette import LIGHT
from core.views.training import text_optimizer_paths
from core.views.training.charts_optimizer_paths import descent, step_lengths
from pages.common.figures import wire
from tests.every import every

STARTS = [(-1.8, -0.6), (0.3, 0.9), (1.0, 1.0)]
EVERY = [(name, surface) for name in MOVING for surface in SURFACES]


def usual(
    name: str, surface: str, start: tuple[float, float] | None = None, rate: float | None = None
) -> OptimizerPath:
    return optimizer_path(name, surface, start or SURFACES[surface].start, rate_of(name, surface, rate))


def all_on(surface: str, rate: float | None = None) -> list[OptimizerPath]:
    return [usual(name, surface, rate=rate) for name in MOVING]


@every("start", STARTS)
@every(("name", "surface"), EVERY)
def test_our_formulas_are_the_steps_of_torch(name: str, surface: str, start: tuple[float, float]) -> None:
    done = usual(name, surface, start)
    assert done.steps == limit("motion_steps") or done.diverged  # where a start is too steep for its rate
    assert disagreement(done) < 1e-6


@pytest.mark.parametrize("name", MOVING)
def test_a_disagreement_would_be_seen(name: str) -> None:
    done = usual(name, "valley")
    moved = done.points.copy()
    moved[7, 1] += 1e-4
    off = OptimizerPath(name, "valley", done.rate, moved, done.slopes, done.losses, done.states, 0)
    assert disagreement(off) > 1e-5


@pytest.mark.parametrize("name", MOVING)
def test_the_states_are_those_that_are_counted(name: str) -> None:
    assert set(usual(name, "valley").states) == set(find_optimizer(name).states)


@pytest.mark.parametrize("surface", SURFACES)
def test_gradients_are_those_of_autograd(surface: str) -> None:
    ground = SURFACES[surface]
    for point in [*STARTS, *ground.minima, (0.7, -2.1)]:
        at = torch.tensor(point, dtype=torch.float64, requires_grad=True)
        height: Any = ground.height(*at)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(height, at)
        assert ground.slope(*point) == pytest.approx(slope.tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("surface", SURFACES)
def test_minima_are_the_lowest_points(surface: str) -> None:
    ground = SURFACES[surface]
    x, y = np.meshgrid(np.linspace(*ground.across, 201), np.linspace(*ground.along, 201))
    assert ground.height.over(x=x, y=y).min() >= ground.lowest - 1e-12
    for minimum in ground.minima:
        assert ground.slope(*minimum) == pytest.approx((0, 0), abs=1e-12)
        assert ground.height(*minimum) == ground.lowest


@every(("name", "surface"), EVERY)
def test_the_usual_rates_lead_downhill_inside_the_picture(name: str, surface: str) -> None:
    done, ground = usual(name, surface), SURFACES[surface]
    assert not done.diverged
    assert text_optimizer_paths.height_left(done, done.steps) < 0.2 * text_optimizer_paths.height_left(done, 0)
    for side, (low, high) in enumerate((ground.across, ground.along)):
        assert (done.points[:, side] >= low).all()
        assert (done.points[:, side] <= high).all()


def test_sgd_diverges_just_above_its_limit_and_not_below() -> None:
    """The valley's steepest curvature is 25, and a step may be at most 2 / 25."""
    assert not usual("SGD", "valley", rate=0.0799).diverged
    fast = usual("SGD", "valley", rate=0.3)
    assert 0 < fast.diverged < limit("motion_steps")
    assert fast.steps == fast.diverged - 1
    assert np.isfinite(fast.points).all()
    near = usual("SGD", "valley", rate=0.0801)
    assert np.abs(near.points[-1]).max() > np.abs(near.points[100]).max()


def test_a_divergence_is_said_and_not_drawn() -> None:
    walks = all_on("Rosenbrock", 0.1)
    gone = [w for w in walks if w.diverged]
    assert {w.optimizer for w in gone} >= {"SGD", "SGD momentum"}
    said = text_optimizer_paths.takeaway(walks, 150)
    assert all(w.optimizer in said and f"step {w.diverged}" in said for w in gone)
    figure = descent(walks, 150, "SGD", LIGHT)
    for trace in figure["data"]:
        if trace["type"] == "scatter":
            assert all(abs(value) < 1e3 for value in [*trace["x"], *trace["y"]])
    assert len(figure["data"][-1]["x"]) == len(walks) - len(gone)
    assert all(
        row[2].startswith("diverged") == bool(w.diverged)
        for w, row in zip(walks, text_optimizer_paths.rows(walks, 150), strict=True)
    )
    assert str(gone[0].diverged) in text_optimizer_paths.no_numbers(gone[0])


def test_when_all_have_diverged_there_is_still_something_to_say_and_to_draw() -> None:
    lost = [w for w in all_on("Rosenbrock", 10.0) if w.diverged]
    assert lost
    go.Figure(wire({key: part for key, part in descent(lost, 200, "SGD", LIGHT).items() if key != "frames"}))
    go.Figure(wire(step_lengths(lost, 200, "SGD", LIGHT)))
    assert "lowest" not in text_optimizer_paths.takeaway(lost, 200)


@pytest.mark.parametrize("start", [(0.0, 0.0), (1.0, 1.0)])
def test_a_walk_that_never_moves(start: tuple[float, float]) -> None:
    """At a point without slope steps have no length, which a log scale cannot show."""
    walks = [usual(name, "Rosenbrock" if start[0] else "saddle", start) for name in MOVING]
    still = next(w for w in walks if w.optimizer == "Adam")
    assert still.lengths.max() == 0
    go.Figure(wire(descent(walks, 5, "Adam", LIGHT)))
    go.Figure(wire(step_lengths(walks, 5, "Adam", LIGHT)))
    assert text_optimizer_paths.rows(walks, 5)


@every("step", [1, 30, 200])
@every("surface", SURFACES)
def test_pictures_show_the_walks(surface: str, step: int) -> None:
    walks = all_on(surface)
    figure = descent(walks, step, "Adam", LIGHT)
    go.Figure(wire(figure))
    paths = [trace for trace in figure["data"] if trace.get("mode") == "lines"]
    for trace, done in zip(paths, walks, strict=True):
        assert len(trace["x"]) == step + 1
        assert trace["y"][-1] == pytest.approx(done.points[step, 1], abs=1e-6)
    assert len({(trace["line"]["color"]) for trace in paths}) == len(walks)
    markers = figure["data"][-1]
    assert len(set(markers["marker"]["symbol"])) == len(walks)
    last = figure["frames"][-1]["data"][0]
    assert last["x"] == pytest.approx(markers["x"], abs=1e-3)
    assert figure["data"][figure["frames"][0]["traces"][0]] is markers
    lengths = step_lengths(walks, step, "Adam", LIGHT)
    go.Figure(wire(lengths))
    for trace, done in zip(lengths["data"], walks, strict=True):
        assert trace["y"][0] == pytest.approx(math.dist(done.points[1], done.points[0]))


@pytest.mark.parametrize(
    ("name", "formulas"), [("SGD", 1), ("SGD momentum", 2), ("AdaGrad", 2), ("RMSProp", 2), ("Adam", 5), ("AdamW", 6)]
)
def test_each_step_is_explained_by_its_formulas_with_torchs_numbers(name: str, formulas: int) -> None:
    done = usual(name, "Rosenbrock")
    found = explained(done, 40)
    assert len({one.name for one in found}) == formulas
    assert len(found) == 2 * formulas
    assert [one.value for one in found[-2:]] == pytest.approx(done.points[40].tolist(), rel=1e-6)


def test_coming_near_is_one_step_before_or_never() -> None:
    done = usual("SGD", "valley")
    step = int(text_optimizer_paths.near(done))
    assert (
        text_optimizer_paths.height_left(done, step)
        <= 0.01 * text_optimizer_paths.height_left(done, 0)
        < text_optimizer_paths.height_left(done, step - 1)
    )
    assert text_optimizer_paths.near(usual("RMSProp", "Rosenbrock")) == "–"


def steps_to_a_hundredth(name: str, surface: str, rate: float | None = None) -> float:
    """The step from which on no more than a hundredth of the first height is left."""
    done = usual(name, surface, rate=rate)
    left = done.losses - SURFACES[surface].lowest
    beyond = int(np.flatnonzero(left > 0.01 * left[0])[-1])
    return beyond + 1 if beyond < done.steps and not done.diverged else math.inf


def test_every_surface_teaches_what_its_walks_show() -> None:
    assert set(text_optimizer_paths.LESSONS) == set(SURFACES)
    took = {surface: {name: steps_to_a_hundredth(name, surface) for name in MOVING} for surface in SURFACES}
    for surface in ("scales", "rare"):
        assert took[surface].pop("SGD") == math.inf
        assert max(took[surface].values()) < 100
    assert min(took["valley"], key=lambda name: took["valley"][name]) == "SGD"
    assert min(took["Rosenbrock"], key=lambda name: took["Rosenbrock"][name]) == "SGD momentum"
    assert min(took["saddle"], key=lambda name: took["saddle"][name]) == "SGD momentum"
    assert next(iter(SURFACES)) == "scales"


def test_momentum_carries_through_a_saddle_at_each_ones_best_rate() -> None:
    """Rates five percent apart, up to where the walls throw SGD out."""
    rates = [0.001 * 1.05**power for power in range(90)]
    best = {name: min(steps_to_a_hundredth(name, "saddle", rate) for rate in rates) for name in ("SGD", "SGD momentum")}
    assert best["SGD momentum"] <= 0.6 * best["SGD"]
    usual = {name: steps_to_a_hundredth(name, "saddle") for name in best}
    assert usual["SGD momentum"] <= 0.6 * usual["SGD"]
    assert all(usual[name] <= 1.2 * best[name] for name in best)


@pytest.mark.parametrize("surface", ["noise", "rare"])
def test_what_the_steps_see_is_the_slope_on_average(surface: str) -> None:
    ground = SURFACES[surface]
    seen = np.array([ground.gradient(0.3, -0.7, step) for step in range(1, 1001)])
    spread = seen.std(axis=0) / math.sqrt(len(seen))
    assert (np.abs(seen.mean(axis=0) - ground.slope(0.3, -0.7)) <= 3 * spread + 1e-12).all()
    assert spread.max() > 0


@pytest.mark.long
@pytest.mark.parametrize("surface", SURFACES)
def test_no_other_rate_would_suit_much_better(surface: str) -> None:
    """Rates 1, 2 and 5 of every power of ten: none comes near to the minimum in two thirds of the steps."""
    ground = SURFACES[surface]
    for name in MOVING[1:]:
        ours = steps_to_a_hundredth(name, surface)
        for rate in (digit * 10.0**power for power in range(-4, 1) for digit in (1, 2, 5)):
            done = usual(name, surface, rate=rate)
            left = done.losses - ground.lowest
            inside = all(
                ((done.points[:, side] >= low) & (done.points[:, side] <= high)).all()
                for side, (low, high) in enumerate((ground.across, ground.along))
            )
            beyond = int(np.flatnonzero(left > 0.01 * left[0])[-1])
            if inside and not done.diverged and beyond < done.steps:
                assert beyond + 1 >= min(ours, done.steps) * 2 / 3, (name, rate)


@pytest.mark.parametrize("text", ["1", "1, 2, 3", "a, b", "1,", "4, 0", "nan, 0", "1e9, 0"])
def test_a_start_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        read_start(text)


def test_a_start_is_read() -> None:
    assert read_start(" -1.5 , 0.25") == (-1.5, 0.25)
