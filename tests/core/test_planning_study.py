"""Studies: what their files may say, what they find on workers, and what is kept of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import dask
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits import LIMITS, limit
from core.messages import message
from core.search.fastest import searched
from core.search.request import Constraints, Range, SearchRequest
from core.search.study.__main__ import main
from core.search.study.point import Row, search_chunk
from core.search.study.run import Folder, connected, embedded, found, run_study
from core.search.study.study import EXAMPLE, Degree, Study, StudyError, load_study, read_study, spec_named
from core.step_time.running import MEGATRON_TUNED, running_on
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy
from tests.core import study_cases
from tests.core.study_cases import search, seconds_of
from tests.every import every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
GRID: dict[str, Any] = {
    "models": ["Llama 3.1 8B", "Llama 3.1 405B"],
    "clusters": [
        {"accelerator": "H100 SXM", "accelerators": [64, 128]},
        {"accelerator": "A100 SXM 40 GB", "accelerators": [1024], "per_node": 16},
    ],
    "global_batch_sequences": [63, 64, 128],
    "seq_len": [4096, 8192],
    "tokens": 1e12,
    "top": 2,
}
POINTS = 2 * 3 * 3 * 2


def study(**changes: Any) -> Study:
    return read_study(json.dumps(GRID | changes))


def points(item: Study, search: Any = search) -> list[Row]:
    """Every point, searched in this process, in order."""
    return [row for at in range(item.chunk_count) for row in search_chunk(item, at, search)]


def layout_of(row: Row) -> Layout:
    return Layout(**{field.name: row[field.name] for field in fields(Layout)})


def test_a_grid_has_every_combination_once() -> None:
    item = study()
    assert item.count == POINTS
    every = [point for at in range(item.chunk_count) for point in item.chunk(at)]
    rows = {(p.model, p.cluster.accelerator.name, p.cluster.count, p.batch, p.seq_len) for p in every}
    assert len(rows) == POINTS
    assert {p.cluster.per_node for p in every if p.cluster.count == 1024} == {16}


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 40), min_size=2, max_size=2))
def test_chunks_are_the_points_in_order(sizes: list[int]) -> None:
    batches, lengths = sizes
    item = study(global_batch_sequences=list(range(1, batches + 1)), seq_len=list(range(1, lengths + 1)))
    every = [point.index for at in range(item.chunk_count) for point in item.chunk(at)]
    assert every == list(range(6 * batches * lengths))


def test_a_shape_may_be_written_out() -> None:
    text = "layers=2 hidden=64 heads=4 kv_heads=4 head_dim=16 ffn=128 vocab=100 glu=yes tied_head=no"
    assert spec_named(study(models=[text]).models[0]).hidden == 64


def test_constraints_are_those_of_a_search() -> None:
    item = study(constraints={"tensor": [4, 8], "zero": [1], "most": {"pipeline": 16}, "tensor_in_node": False})
    wanted = Constraints(tensor=(4, 8), zero=(1,), pipeline=Range(0, 16), tensor_in_node=False)
    assert item.constraints.constraints == wanted
    assert study().constraints.constraints == Constraints()
    # Micro-batches follow from the batch, but for one's own.
    assert {*get_args(Degree)} == {field.name for field in fields(Constraints)} - {"micro_batches", "tensor_in_node"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"models": []}, "models"),
    ({"models": ["Lama 9"]}, "models.0"),
    ({"models": ["layers=1"]}, "models.0"),
    ({"models": "Llama 3.1 8B"}, "models"),
    ({"models": [7]}, "models.0"),
    ({"models": ["x" * 2_000]}, "models.0"),
    ({"clusters": [{"accelerator": "H1000", "accelerators": [8]}]}, "clusters.0.accelerator"),
    ({"clusters": [{"accelerator": "H100 SXM", "accelerators": [0]}]}, "clusters.0.accelerators.0"),
    ({"clusters": [{"accelerator": "H100 SXM", "accelerators": [8], "per_node": 0}]}, "clusters.0.per_node"),
    ({"clusters": [{"accelerator": "H100 SXM"}]}, "clusters.0.accelerators"),
    ({"clusters": ["H100 SXM"]}, "clusters.0"),
    ({"global_batch_sequences": [1.5]}, "global_batch_sequences.0"),
    ({"global_batch_sequences": ["64"]}, "global_batch_sequences.0"),
    ({"global_batch_sequences": [True]}, "global_batch_sequences.0"),
    ({"seq_len": [10**40]}, "seq_len.0"),
    ({"seq_len": [-1]}, "seq_len.0"),
    ({"tokens": 0}, "tokens"),
    ({"tokens": "15T"}, "tokens"),
    ({"policies": ["bf17"]}, "policies.0"),
    ({"optimizers": ["AdamX"]}, "optimizers.0"),
    ({"constraints": {"tensor": 8}}, "constraints.tensor"),
    ({"constraints": {"tensor": [-1]}}, "constraints.tensor.0"),
    ({"constraints": {"tensors": [8]}}, "constraints.tensors"),
    ({"constraints": {"most": {"tensors": 8}}}, "constraints.most.tensors"),
    ({"constraints": {"tensor_in_node": 1}}, "constraints.tensor_in_node"),
    ({"constraints": []}, "constraints"),
    ({"software": "Megatron"}, "software"),
    ({"top": 101}, "top"),
    ({"tops": 2}, "tops"),
]


def refused(name: str) -> Any:
    """Expect a `StudyError` of this message."""
    return pytest.raises(StudyError, check=lambda problem: problem.args[0].id == f"study.error.{name}")


@every(("change", "field"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_named_with_an_example(change: dict[str, Any], field: str) -> None:
    with pytest.raises(StudyError) as problem:
        study(**change)
    (said,) = problem.value.args
    assert said.values["field"].startswith(field)
    assert len(said) < 1_000


@pytest.mark.parametrize("name", ["models", "clusters", "global_batch_sequences", "seq_len"])
def test_what_no_study_can_do_without(name: str) -> None:
    with refused("field") as missing:
        read_study(json.dumps({key: value for key, value in GRID.items() if key != name}))
    assert missing.value.args[0].values["field"] == name


@every("text", ["", "[]", "{", "null", "[" * 5_000, '{"seq_len": NaN}', '{"models": ["\\ud800"]}', "import os"])
def test_what_is_no_json_object_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(StudyError):
        read_study(text)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=4))
def test_no_value_of_any_field_makes_anything_but_a_message(value: Any) -> None:
    for name in (*GRID, "policies", "optimizers", "constraints"):
        with suppress(StudyError):
            study(**{name: value})


def test_a_study_beyond_the_caps_is_refused_before_anything_is_made() -> None:
    many = list(range(1, 1_001))
    with pytest.raises(StudyError, match="6,000,000"):
        study(global_batch_sequences=many, seq_len=many)
    with pytest.raises(StudyError, match="600,000"):
        study(global_batch_sequences=many, seq_len=[1], top=100)


def test_a_file_that_is_away_too_long_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    with refused("read"):
        load_study(path)
    path.write_bytes(b"\xff\xfe")
    with refused("json"):
        load_study(path)
    path.write_bytes(b" " * (limit("study_bytes") + 1))
    with refused("bytes"):
        load_study(path)
    path.write_text(EXAMPLE)
    assert load_study(path).count == 2


def test_every_point_is_what_its_search_found(here: list[Row]) -> None:
    item = study()
    assert any(row["fitting"] > len(row["top"]) for row in here)
    assert all(any(row.get(kind) for row in here) for kind in ("seconds", "missing", "problem"))
    for row, request in zip(here, map(item.point, range(POINTS)), strict=True):
        assert (row["point"], row["model"], row["seq_len"]) == (request.index, request.model, request.seq_len)
        if request.batch == 63:
            assert row["problem"]
            assert ("seconds" in row, row["top"], row["plans"]) == (False, [], 0)
            continue
        spec = spec_named(request.model)
        plain = search(SearchRequest(spec, request.cluster, request.batch, request.seq_len))
        assert (row["problem"], row["plans"], row["fitting"]) == ("", plain.count, plain.fitting)
        assert len(row["top"]) == min(2, plain.fitting)
        if plain.best is None:
            assert "seconds" not in row
            assert row["missing"] == pytest.approx(3e7 * spec.hidden / 8 - request.cluster.accelerator.memory_bytes)
            continue
        assert row["top"][0].items() <= row.items()
        assert layout_of(row) == plain.best.layout
        assert row["bound"] == "data"
        steps = 1e12 / (request.batch * request.seq_len)
        assert row["days"] == pytest.approx(steps * plain.best.seconds / 86400, rel=1e-12)
        expected = seconds_of(request.cluster, request.batch, request.seq_len)
        assert np.isin([plan["seconds"] for plan in row["top"]], expected).all()


def test_a_real_search_is_asked_for_what_the_point_says() -> None:
    fp8 = "fp8 matmuls, fp32 master, bf16 states"
    clusters = [{"accelerator": "H100 SXM", "accelerators": [64]}]
    item = study(models=["Qwen3 30B-A3B"], clusters=clusters, global_batch_sequences=[128], seq_len=[4096],
                policies=["mixed bf16, fp32 master", fp8], constraints={"zero": [1]},
                 software=MEGATRON_TUNED.id)  # fmt: skip
    wide, narrow = points(item, searched)
    for row, policy in ((wide, item.policies[0]), (narrow, fp8)):
        point = item.point(row["point"])
        spec = spec_named(point.model)
        plain = searched(SearchRequest(
            spec, point.cluster, 128, 4096, policy=find_policy(policy), optimizer=find_optimizer("AdamW"),
            running=running_on(MEGATRON_TUNED.id, spec, point.cluster.accelerator, "fp8" if policy == fp8 else "bf16"),
            constraints=Constraints(zero=1),))  # fmt: skip
        assert plain.best
        assert layout_of(row) == layout_of(row["top"][0]) == plain.best.layout
        assert row["top"][0]["seconds"] == pytest.approx(row["seconds"])
        assert (row["seconds"], row["plans"]) == (plain.best.seconds, plain.count)
    assert narrow["seconds"] < wide["seconds"]


def broken(*_: Any, **__: Any) -> Any:
    raise IndexError("out of range")


def test_a_search_that_breaks_costs_its_point_alone() -> None:
    rows = points(study(), lambda a, **k: (broken if a.batch == 64 else search)(a, **k))
    assert {row["problem"] for row in rows if row["global_batch_sequences"] == 64} == {"IndexError: out of range"}
    assert [row for row in rows if row["global_batch_sequences"] == 128] == [
        row for row in points(study()) if row["global_batch_sequences"] == 128
    ]


@pytest.fixture(scope="module")
def here() -> list[Row]:
    """What the study finds in this process."""
    return points(study())


def kept(path: Path, chunks: Iterator[int] | range | None = None) -> Folder:
    """A folder with these chunks of the study, or with all."""
    folder = Folder(path, study())
    for at in range(study().chunk_count) if chunks is None else chunks:
        folder.keep(at, search_chunk(study(), at, search))
    return folder


def test_others_read_one_row_a_point(here: list[Row], tmp_path: Path) -> None:
    folder = kept(tmp_path)
    assert folder.gather() == POINTS
    table = pd.read_parquet(folder.whole)
    assert len(table) == POINTS
    best = [row.get("seconds") for row in here]
    assert [None if np.isnan(item) else item for item in table["seconds"]] == best
    assert list(map(len, table["top"])) == [len(row["top"]) for row in here]


def test_a_folder_goes_on_where_it_stopped(tmp_path: Path, here: list[Row]) -> None:
    assert kept(tmp_path, range(5)).gather() == 5
    (tmp_path / "chunks" / "00002.parquet").write_bytes(b"torn")
    again = Folder(tmp_path, study())
    assert again.done == [0, 1, 3, 4]
    for at in sorted({*range(study().chunk_count)} - {*again.done}):
        again.keep(at, search_chunk(study(), at, search))
    assert again.gather() == POINTS
    rows = pq.read_table(again.whole).to_pylist()
    assert [{name: row[name] for name in mine} for row, mine in zip(rows, here, strict=True)] == here


def test_a_folder_of_another_study_is_left_alone_and_one_that_cannot_be_is_said(tmp_path: Path) -> None:
    kept(tmp_path).gather()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with refused("other_study"):
        Folder(tmp_path, study(tokens=2e12))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    (tmp_path / "file").write_text("")
    with refused("folder"):
        Folder(tmp_path / "file" / "results", study())


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers in processes of their own."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), embedded(2) as client:
        yield client


def on_workers(item: Study, search: Any, client: Any) -> list[Row]:
    """Every point that workers find, in order."""
    chunks = sorted(found(item, range(item.chunk_count), search, client), key=lambda chunk: chunk[0])
    return [row for _, rows in chunks for row in rows]


@pytest.mark.process
@pytest.mark.long
def test_a_worker_killed_midway_changes_nothing(client: Any, here: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "killed"
    assert on_workers(study(), study_cases.KillingOnce(path), client) == here
    assert path.read_text().isdigit()


@pytest.mark.process
@pytest.mark.long
def test_a_chunk_that_kills_every_worker_is_given_up_and_the_rest_is_kept(client: Any, tmp_path: Path) -> None:
    item = study(models=["Llama 3.1 8B"], clusters=GRID["clusters"][:1], seq_len=[4096])
    folder = Folder(tmp_path, item)
    with refused("chunks"):
        run_study(item, folder, study_cases.killing_always, client)
    again = Folder(tmp_path, item)
    assert 0 < len(again.done) < item.chunk_count
    run_study(item, again, search, client)
    assert again.gather() == item.count
    assert pd.read_parquet(again.whole)["problem"].tolist() == [row["problem"] for row in points(item)]


def test_a_study_of_too_many_plans_stops(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from core import limits

    monkeypatch.setattr(limits, "LIMITS", {**LIMITS, "study_plans": limits.Limit(10, "plans", "a test")})
    folder = Folder(tmp_path, study())
    with refused("layouts"):
        run_study(study(), folder, search, client)
    assert 0 < folder.gather() < POINTS


def test_a_scheduler_elsewhere_searches_elsewhere(client: Any, here: list[Row]) -> None:
    with pytest.raises(ValueError, match="here"):
        study_cases.Elsewhere(os.getpid())(None)
    with connected(client.scheduler.address) as elsewhere:
        assert on_workers(study(), study_cases.Elsewhere(os.getpid()), elsewhere) == here


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "http://x", "tcp://127.0.0.1:99999", "tcp://[::1"])
def test_a_scheduler_that_is_away(address: str) -> None:
    with refused("scheduler"), connected(address):
        pass


def command(tmp_path: Path, search: str) -> subprocess.CompletedProcess[str]:
    """The command line on the grid, with ``search`` of `study_cases`, in a terminal of its own."""
    (tmp_path / "study.json").write_text(json.dumps(GRID))
    (tmp_path / "command.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom core.search.study.__main__ import main\n"
        "from tests.core import study_cases\n"
        f"if __name__ == '__main__':\n    sys.exit(main(sys.argv[1:], study_cases.{search}))\n"
    )
    return subprocess.run(
        [sys.executable, tmp_path / "command.py", tmp_path / "study.json", "--out", tmp_path / "out", "--workers", "2"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        start_new_session=True,
    )


@pytest.mark.process
@pytest.mark.long
def test_the_command_stops_at_once_and_goes_on_from_there(tmp_path: Path, here: list[Row]) -> None:
    path = tmp_path / "told"
    stopped = command(tmp_path, f"StoppingOnce(Path({str(path)!r}), Path({str(tmp_path / 'out')!r}))")
    assert path.exists()
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert message("study.stopped") in stopped.stderr
    whole = tmp_path / "out" / "study.parquet"
    assert 0 < len(pd.read_parquet(whole)) < POINTS
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "chunks").glob("*.parquet")}
    done = command(tmp_path, "search")
    assert done.returncode == 0, done.stderr
    assert f"{POINTS} of {POINTS} points" in done.stdout
    assert pd.read_parquet(whole)["problem"].tolist() == [row["problem"] for row in here]
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_the_command_names_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "away.json"), "--out", str(tmp_path / "out")], search) == 2
    assert "away.json" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_study_of_the_readme_can_be_read() -> None:
    [text] = re.findall(r"```json\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert read_study(text).count == 2 * 2 * 2 * 2
