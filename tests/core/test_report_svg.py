"""Pictures of a report show what the page's do: every mark at its value, every label inside the picture."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from core.planning.comparison.comparison import QUANTITY, compare_plan, result
from core.planning.nearest_runs import similar_runs
from core.views.common.chart import Figure
from core.views.comparison.charts import bars, days_against_dollars
from core.views.plan.charts import answer_strip
from core.views.report.svg import INK, WIDTH, svg
from core.views.training.charts_device import CLASSES, device_bars
from tests.core.report_cases import HOSTILE, PAGE_PRESETS
from tests.every import every

SVG = ElementTree.Element
COMPARED = [compare_plan(one) for one in PAGE_PRESETS.values()][:6]


def drawn(figure: Figure) -> SVG:
    """The picture, in which nothing lies outside its box."""
    root = ElementTree.fromstring(svg(figure, "what it shows"))  # noqa: S314
    high = float(root.get("height", 0))
    for one in root.iter():
        for name, most in (("x", WIDTH), ("x1", WIDTH), ("x2", WIDTH), ("cx", WIDTH), ("y", high), ("cy", high)):
            assert -1 <= float(one.get(name, 0)) <= most + 1, (one.tag, name, one.get(name))
        assert "nan" not in " ".join(one.attrib.values()).replace("nano", "")
    return root


def texts(root: SVG) -> set[str]:
    return {one.text or "" for one in root.iter("text")}


def at(root: SVG, tag: str, name: str) -> list[float]:
    return [float(one.get(name, 0)) for one in root.iter(tag)]


@every("name", PAGE_PRESETS)
def test_points_of_published_runs_stand_at_their_values(name: str) -> None:
    a = PAGE_PRESETS[name].answer
    peers = sorted(similar_runs(a), key=lambda peer: -peer.value)
    root = drawn(answer_strip(a, peers, INK))
    places = at(root, "circle", "cx")
    steps = [(x - places[-1]) / (p.value - peers[-1].value) for x, p in zip(places[:-1], peers[:-1], strict=True)
             if not math.isclose(p.value, peers[-1].value)]  # fmt: skip
    assert len(places) == len(peers)
    assert all(step == pytest.approx(max(steps), rel=0.2) for step in steps)
    assert {peer.run.model for peer in peers} <= texts(root)


@every("name", PAGE_PRESETS)
def test_bars_of_memory_are_as_long_as_it_is(name: str) -> None:
    h = PAGE_PRESETS[name].answer.memory
    root = drawn(device_bars([("", h.device_memory)], h.usable, INK))
    wide = [one for one in root.iter("rect") if one.find("title") is not None]
    found = {(one.find("title").text or "").partition(" · ")[0]: float(one.get("width", 0)) for one in wide}  # type: ignore[union-attr]
    sizes = {named: float(getattr(h.device_memory, field)) for field, _, named in CLASSES}
    assert set(found) == {named for named, size in sizes.items() if size > 0}
    scale = sum(found.values()) / float(h.device_memory.total)
    assert all(found[named] == pytest.approx(sizes[named] * scale, abs=0.2) for named in found)


def test_bars_of_a_comparison_are_as_long_as_its_results() -> None:
    root = drawn(bars(COMPARED, 0, INK))
    days = [result(one, QUANTITY["days"]).mid for one in COMPARED]
    marks = [float(one.get("width", 0)) for one in root.iter("rect") if one.find("title") is not None][: len(days)]
    assert [mark / max(marks) for mark in marks] == pytest.approx([d / max(days) for d in days], abs=0.01)
    assert any("baseline" in text for text in texts(root))


def test_the_front_of_a_comparison_has_a_point_for_each_plan_with_a_price() -> None:
    root = drawn(days_against_dollars(COMPARED, 0, INK))
    assert len(at(root, "circle", "cx")) == sum(not one.price_unknown for one in COMPARED)


@every("alt", HOSTILE)
def test_what_a_picture_says_is_text(alt: str) -> None:
    a = COMPARED[0].answer
    assert a
    root = ElementTree.fromstring(svg(answer_strip(a, similar_runs(a), INK), alt.replace("\u202e", "")))  # noqa: S314
    assert " ".join(root.get("aria-label", "").split()) == " ".join(alt.replace("\u202e", "").split())


def test_colours_are_those_of_the_document() -> None:
    a = COMPARED[0].answer
    assert a
    assert "#" not in "".join(one.get("style", "") for one in drawn(answer_strip(a, similar_runs(a), INK)).iter())
