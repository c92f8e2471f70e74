"""The picture of a trace: every storage once, every tensor on it, and why a view does or does not work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import reason, storage_picture


def values(picture: dict[str, Any], number: int) -> list[str]:
    """What the browser shows in a tensor: the storage's values at offset + Σ index · stride."""
    tensor = picture["tensors"][number]
    cells = TensorLayout(tensor["shape"], tensor["stride"], tensor["offset"]).cells().tolist()
    reading = picture["storages"][tensor["storage"]]["readings"][tensor["reading"]]["values"]
    return [reading[cell] for cell in cells]


def written(picture: dict[str, Any]) -> dict[str, list[int]]:
    """The cells that any step wrote, in the element type of each tensor."""
    cells_of: dict[str, list[int]] = {}
    for tensor in picture["tensors"]:
        reading = picture["storages"][tensor["storage"]]["readings"][tensor["reading"]]
        cells_of[tensor["name"]] = sorted({cell for write in reading["writes"] for cell in write["cells"]})
    return cells_of


def test_a_storage_is_drawn_once_with_all_its_tensors() -> None:
    picture = storage_picture(trace("x.t().contiguous()", (2, 3)))
    assert [s["letter"] for s in picture["storages"]] == ["A", "B"]
    assert [(t["name"], t["storage"]) for t in picture["tensors"]] == [
        ("x", 0),
        ("x.t()", 0),
        ("x.t().contiguous()", 1),
    ]
    assert values(picture, 1) == values(picture, 2) == ["0", "3", "1", "4", "2", "5"]
    assert picture["active"] == 2


def test_a_write_marks_the_cell_in_every_tensor_of_the_storage() -> None:
    picture = storage_picture(trace("y = x.t()\nz = y.clone()\nx[0, 1] = 100", (2, 3)))
    assert written(picture) == {"x": [1], "y": [1], "z": []}
    assert picture["steps"][-1]["tensors"] == [0, 1]  # those that see it are opened by it
    assert values(picture, 0) == ["0", "100", "2", "3", "4", "5"]
    assert values(picture, 1)[2] == "100"
    assert "100" not in values(picture, 2)
    assert picture["active"] == 0


def test_a_write_through_another_element_type_shows_in_both_readings() -> None:
    picture = storage_picture(trace("y = x.view(torch.int32)\ny[2] = 7", (4,)))
    assert [r["dtype"] for r in picture["storages"][0]["readings"]] == ["int64", "int32"]
    assert values(picture, 0) == ["0", "7", "2", "3"]
    assert values(picture, 1) == ["0", "0", "7", "0", "2", "0", "3", "0"]
    assert written(picture) == {"x": [1], "y": [2]}


def test_why_names_the_boundary_and_the_runs_a_new_dimension_would_cross() -> None:
    why = reason(trace("x.t().view(2, 3)", (2, 3)))
    assert why is not None
    assert [[d["size"] for d in run["dims"]] for run in why["runs"]] == [[3], [2]]
    assert (why["between"], why["breaks"]) == (["1 ≠ 3 × 2"], 0)
    assert [(d["size"], d["parts"]) for d in why["asked"]] == [(2, [0]), (3, [0, 1])]
    assert len(why["fixes"]) == 3
    assert reason(trace("x.t()", (2, 3))) is None


def test_why_it_works_shows_what_merges() -> None:
    why = reason(trace("x[:, ::2].view(-1)", (4, 6)))
    assert why is not None
    assert [run["joints"] for run in why["runs"]] == [["6 = 2 × 3"]]
    assert (why["between"], why["breaks"], why["error"], why["fixes"]) == ([], -1, "", [])
    assert [(d["size"], d["parts"], d["text"].values["stride"]) for d in why["asked"]] == [(12, [0], 2)]


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("x.t().contiguous()", (256, 256)),
        (("x" + ".t()" * 30 + "\n") * 8, (64, 64)),
        ("x", (65_536,)),
    ],
)
def test_large_pictures_stay_within_the_caps(source: str, shape: tuple[int, ...]) -> None:
    picture = storage_picture(trace(source, shape))
    cells = sum(len(r["values"]) for s in picture["storages"] for r in s["readings"])
    drawn = sum(t["drawn"] for t in picture["tensors"])
    assert cells + drawn <= limit("picture_cells")
    assert max(t["drawn"] for t in picture["tensors"]) <= limit("storage_cells_drawn")
    assert len(json.dumps(picture)) < 200_000


def undone(picture: dict[str, Any], at: int) -> list[list[list[str]]]:
    """Storage → reading → cells once line ``at`` of the timeline was done, as the browser works them out."""
    cells_of: list[list[list[str]]] = []
    for storage in picture["storages"]:
        cells_of.append([])
        for reading in storage["readings"]:
            now = list(reading["values"])
            for write in reversed(reading["writes"]):
                if write["step"] > at:
                    for cell, before in zip(write["cells"], write["before"], strict=True):
                        now[cell] = before
            cells_of[-1].append(now)
    return cells_of


def shown_then(traced: Trace, at: int) -> dict[int, list[str]]:
    """Storage → its cells as torch had them after step ``at``, in the type of the last step on it."""
    last = {step.storage: step for step in traced.steps[: at + 1] if step.kind != "refused"}
    return {number: [f"{value:g}" for value in step.storage_values] for number, step in last.items()}


@pytest.mark.parametrize(
    "source",
    [
        "x[0] = 9\nx[1] = 8\nx[0] = 7",
        "y = x.t()\nx += 1\nz = y.clone()\ny.mul_(2)\nz[0] = 5\nx[0, 0] = 3",
        "y = x.clone()\nx.fill_(4)\nx = y\nx[1] -= 1\nx.view(5)",
    ],
)
def test_undoing_writes_gives_the_memory_after_every_step(source: str) -> None:
    traced = trace(source, (2, 3))
    picture = storage_picture(traced)
    assert picture["kept"]
    assert len(picture["steps"]) == len(traced)
    for at in range(len(traced)):
        cells = undone(picture, at)
        for number, values in shown_then(traced, at).items():
            assert cells[number][0] == values, (at, number)


def test_too_many_writes_to_keep_are_marked_without_what_was_before() -> None:
    picture = storage_picture(trace("\n".join(["x += 1"] * 12), (64, 64)))
    assert not picture["kept"]
    (write,) = picture["storages"][0]["readings"][0]["writes"]
    assert (len(write["cells"]), write["before"]) == (picture["tensors"][0]["drawn"], [])
    assert len(json.dumps(picture)) < 200_000


def test_the_timeline_adds_up_to_what_was_allocated() -> None:
    program = "w, idx = torch.topk(x, 2, dim=-1)\nw = w.softmax(-1)\ny = idx.permute(1, 0).reshape(-1)\ny += 1"
    traced = trace(program, (32, 8), None, "float32")
    timeline = storage_picture(traced)["steps"]
    start = traced.steps[0].bytes_allocated
    assert timeline[-1]["total"] == f"{start + traced.bytes_copied + traced.bytes_inside:,} B"
    assert [entry["added"] for entry in timeline] == ["1,024 B", "768 B", "256 B", "0 B", "512 B", "0 B"]
