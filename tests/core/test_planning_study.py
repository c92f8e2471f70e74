"""Studies: what their files may say, what they find here and on a cluster, and what is kept of it."""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits import LIMITS, limit
from core.search.constraints import Constraints, Range
from core.search.search import search_plans
from core.search.study.__main__ import main
from core.search.study.columns import read_results, schema_of, table_of
from core.search.study.distributed import embedded
from core.search.study.result import PointResult
from core.search.study.results_folder import Folder
from core.search.study.run import StudyProgress, run_study
from core.search.study.study import Study, StudyError
from core.search.study.study_fields import ConstraintFields, MostFields
from core.search.study.study_file import EXAMPLE, load_study, read_study
from core.step_time.software import MEGATRON_TUNED, running_on
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


def points(item: Study, **how: Any) -> list[PointResult]:
    """Every point that a run finds, in order."""
    chunks = sorted(run_study(item, **{"search": search, **how}), key=lambda chunk: chunk.index)
    return [point for chunk in chunks for point in chunk.points]


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
    assert study(models=[text]).models[0][1].hidden == 64


def test_constraints_are_those_of_a_search() -> None:
    item = study(constraints={"tensor": [4, 8], "zero": [1], "most": {"pipeline": 16}, "tensor_in_node": False})
    assert item.constraints == Constraints(tensor=(4, 8), zero=(1,), pipeline=Range(0, 16), tensor_in_node=False)
    assert study().constraints == Constraints()
    # Micro-batches follow from the batch, but for one's own.
    names = {field.name for field in fields(Constraints)} - {"micro_batches"}
    assert set(ConstraintFields.model_fields) == names | {"most"}
    assert set(MostFields.model_fields) == names - {"tensor_in_node"}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"models": []}, "models", "not empty"),
    ({"models": ["Lama 9"]}, "models.0", "Lama 9"),
    ({"models": ["Llama 3.1 8B", "llama-3.1-8b"]}, "models.1", "already"),
    ({"models": ["layers=1"]}, "models.0", "Missing"),
    ({"models": "Llama 3.1 8B"}, "models", "list"),
    ({"models": [7]}, "models.0", "text"),
    ({"models": ["x" * 2_000]}, "models.0", "at most"),
    ({"clusters": [{"accelerator": "H1000", "accelerators": [8]}]}, "clusters.0.accelerator", "H1000"),
    ({"clusters": [{"accelerator": "H100 SXM", "accelerators": [0]}]}, "clusters.0.accelerators.0", "at least 1"),
    ({"clusters": [{"accelerator": "H100 SXM", "accelerators": [8], "per_node": 0}]}, "clusters.0.per_node", "least 1"),
    ({"clusters": [{"accelerator": "H100 SXM"}]}, "clusters.0.accelerators", "missing"),
    ({"clusters": ["H100 SXM"]}, "clusters.0", "object"),
    ({"global_batch_sequences": [1.5]}, "global_batch_sequences.0", "whole number"),
    ({"global_batch_sequences": ["64"]}, "global_batch_sequences.0", "whole number"),
    ({"global_batch_sequences": [True]}, "global_batch_sequences.0", "whole number"),
    ({"seq_len": [10**40]}, "seq_len.0", "at most"),
    ({"seq_len": [-1]}, "seq_len.0", "at least 1"),
    ({"tokens": 0}, "tokens", "more than 0"),
    ({"tokens": "15T"}, "tokens", "number"),
    ({"policies": ["bf17"]}, "policies.0", "bf17"),
    ({"optimizers": ["AdamX"]}, "optimizers.0", "AdamX"),
    ({"constraints": {"tensor": 8}}, "constraints.tensor", "list"),
    ({"constraints": {"tensor": [-1]}}, "constraints.tensor.0", "at least 0"),
    ({"constraints": {"tensors": [8]}}, "constraints.tensors", "no such field"),
    ({"constraints": {"most": {"tensors": 8}}}, "constraints.most.tensors", "no such field"),
    ({"constraints": {"tensor_in_node": 1}}, "constraints.tensor_in_node", "true or false"),
    ({"constraints": []}, "constraints", "object"),
    ({"software": "Megatron"}, "software", "one of Megatron-Core"),
    ({"software": ["Megatron-Core"]}, "software", "text"),
    ({"top": 101}, "top", "at most 100"),
    ({"tops": 2}, "tops", "no such field"),
]


@every(("change", "field", "rule"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_named_with_its_rule_and_an_example(change: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(StudyError) as refused:
        study(**change)
    assert refused.value.field == field
    assert field in str(refused.value)
    assert rule in str(refused.value)
    assert "For example: " in str(refused.value)
    assert len(str(refused.value)) < 800


@pytest.mark.parametrize("name", ["models", "clusters", "global_batch_sequences", "seq_len"])
def test_what_no_study_can_do_without(name: str) -> None:
    with pytest.raises(StudyError, match=f"^{name} is missing"):
        read_study(json.dumps({key: value for key, value in GRID.items() if key != name}))


@every(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        "[" * 5_000 + "]" * 5_000,
        '{"seq_len": NaN}',
        '{"seq_len": [1e999]}',
        '{"top": 1, "top": 2}',
        '{"models": ["\\ud800"]}',
        "__import__('os').system('true')",
    ],
)
def test_what_is_no_json_object_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(StudyError, match="For example: "):
        read_study(text)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=4))
def test_no_value_of_any_field_makes_anything_but_a_message(value: Any) -> None:
    for name in (*GRID, "policies", "optimizers", "constraints"):
        with suppress(StudyError):
            study(**{name: value})


def test_a_study_beyond_the_caps_is_refused_before_anything_is_made() -> None:
    many = list(range(1, 1_001))
    with pytest.raises(StudyError, match="6,000,000 points; it may have 20,000"):
        study(global_batch_sequences=many, seq_len=many)
    with pytest.raises(StudyError, match="600,000 plans"):
        study(global_batch_sequences=many, seq_len=[1], top=100)


def test_a_file_that_is_away_too_long_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(path)
    path.write_bytes(b" " * (limit("study_bytes") + 1))
    with pytest.raises(StudyError, match="more than 100,000 bytes"):
        load_study(path)
    path.write_text(EXAMPLE)
    assert load_study(path).count == 2


def test_every_point_is_what_its_search_found(here: list[PointResult]) -> None:
    item = study()
    assert any(result.fitting > len(result.top) for result in here)
    assert all(any(getattr(result, kind) for result in here) for kind in ("best", "missing", "problem"))
    for point, request in zip(here, map(item.point, range(POINTS)), strict=True):
        assert (point.point, point.model, point.seq_len) == (request.index, request.model, request.seq_len)
        if request.batch == 63:
            assert point.problem
            assert (point.best, point.top, point.plans) == (None, (), 0)
            continue
        plain = search(request.spec, request.cluster, request.batch, request.seq_len)
        assert (point.problem, point.plans, point.fitting) == ("", plain.count, plain.fitting)
        assert len(point.top) == min(2, plain.fitting)
        if plain.best is None:
            assert point.best is None
            assert point.missing == pytest.approx(
                3e7 * request.spec.hidden / 8 - request.cluster.accelerator.memory_bytes
            )
            continue
        assert point.best
        assert point.best.plan == point.top[0]
        assert point.best.plan.layout == plain.best.layout
        assert point.best.plan.bound == "data"
        steps = 1e12 / (request.batch * request.seq_len)
        assert point.best.days == pytest.approx(steps * plain.best.seconds / 86400, rel=1e-12)
        expected = seconds_of(request.cluster, request.batch, request.seq_len)
        assert np.isin([plan.seconds for plan in point.top], expected).all()


def test_a_real_search_is_asked_for_what_the_point_says() -> None:
    fp8 = "fp8 matmuls, fp32 master, bf16 states"
    clusters = [{"accelerator": "H100 SXM", "accelerators": [64]}]
    item = study(models=["Qwen3 30B-A3B"], clusters=clusters, global_batch_sequences=[128], seq_len=[4096],
                policies=["mixed bf16, fp32 master", fp8], constraints={"zero": [1]},
                 software=MEGATRON_TUNED.id)  # fmt: skip
    wide, narrow = points(item, search=search_plans)
    for result, policy in ((wide, item.policies[0]), (narrow, fp8)):
        point = item.point(result.point)
        plain = search_plans(
            point.spec, point.cluster, 128, 4096, policy=find_policy(policy), optimizer=find_optimizer("AdamW"),
            running=running_on(
                MEGATRON_TUNED.id, point.spec, point.cluster.accelerator, "fp8" if policy == fp8 else "bf16"),
            constraints=Constraints(zero=1),
        )  # fmt: skip
        assert plain.best
        assert result.best
        assert result.best.plan.layout == plain.best.layout
        assert result.best.plan == replace(result.top[0], seconds=result.best.plan.seconds)
        assert result.top[0].seconds == pytest.approx(result.best.plan.seconds)
        assert (result.best.plan.seconds, result.plans) == (plain.best.seconds, plain.count)
    assert wide.best
    assert narrow.best
    assert narrow.best.plan.seconds < wide.best.plan.seconds


def broken(*_: Any, **__: Any) -> Any:
    raise IndexError("out of range")


def test_a_search_that_breaks_costs_its_point_alone() -> None:
    results = points(study(), search=lambda *a, **k: (broken if a[2] == 64 else search)(*a, **k))
    assert {result.problem for result in results if result.global_batch_sequences == 64} == {"IndexError: out of range"}
    assert [result for result in results if result.global_batch_sequences == 128] == [
        point for point in points(study()) if point.global_batch_sequences == 128
    ]


def test_progress_counts_points_and_plans_up_to_all() -> None:
    progresses: list[StudyProgress] = []
    results = points(study(), progress=progresses.append)
    assert [progress.points for progress in progresses] == list(range(POINTS + 1))
    assert progresses[-1] == StudyProgress(POINTS, POINTS, sum(result.plans for result in results))


def test_a_study_of_too_many_plans_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    from core import limits

    monkeypatch.setattr(limits, "LIMITS", {**LIMITS, "study_plans": limits.Limit(10, "plans", "a test")})
    chunks = run_study(study(), search=search)
    results = list(islice(chunks, 5))
    assert sum(chunk.plans for chunk in results) == 12
    with pytest.raises(StudyError, match="more than 10 plans"):
        next(chunks)


@pytest.fixture(scope="module")
def here() -> list[PointResult]:
    """What the study finds in this process."""
    return points(study())


@pytest.fixture(scope="module")
def whole(here: list[PointResult], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of all its results."""
    folder = Folder(tmp_path_factory.mktemp("results"), study())
    for chunk in run_study(study(), search=search):
        folder.keep(chunk)
    assert folder.gather() == POINTS
    return folder.whole.read_bytes()


def test_others_read_one_row_a_point(here: list[PointResult], whole: bytes) -> None:
    table = pd.read_parquet(io.BytesIO(whole))
    assert len(table) == POINTS
    best = [result.best.plan.seconds if result.best else None for result in here]
    assert [None if np.isnan(item) else item for item in table["seconds"]] == best
    assert list(map(len, table["top"])) == [len(result.top) for result in here]


def parquet(table: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def changed(points: Sequence[PointResult], **change: Any) -> bytes:
    return parquet(table_of([replace(points[0], **change), *points[1:]], schema_of()))


def test_what_is_no_file_of_results_is_refused(here: list[PointResult], whole: bytes) -> None:
    table = table_of(here, schema_of())
    best = next(result.best for result in here if result.best)
    bad = {
        "nothing": b"",
        "text": b"PAR1 no PAR1",
        "half": whole[: len(whole) // 2],
        "other table": parquet(pa.table({"a": [1]})),
        "a column less": parquet(table.drop_columns(["mfu"])),
        "a column more": parquet(table.append_column("more", pa.array([1] * POINTS))),
        "another type": parquet(
            table.set_column(0, pa.field("point", pa.int32(), False), table["point"].cast("int32"))
        ),
        "out of order": parquet(table.take(list(range(POINTS))[::-1])),
        "twice": parquet(pa.concat_tables([table, table])),
        "too many": parquet(pa.concat_tables([table] * (limit("study_points") // POINTS + 1))),
        "not finite": changed(here, best=replace(best, mfu=math.nan)),
        "negative": changed(here, plans=-1),
        "half a plan": changed(here, best=replace(best, usable=None)),
        "long text": changed(here, model="x" * 100_000),
        "many long texts": parquet(
            table_of([replace(here[0], point=at, problem="x" * 1_000_000) for at in range(100)], schema_of())
        ),
        "no UTF-8": whole.replace(b"Llama", b"\xff\xff\xff\xff\xff"),
        "bytes": b"\0" * (limit("result_bytes") + 1),
    }
    for content in bad.values():
        with pytest.raises(StudyError, match="The file holds no results of a study: "):
            read_results(content)


@given(at=st.integers(0), mask=st.integers(1, 255), data=st.data())
def test_a_damaged_file_is_read_or_refused(whole: bytes, at: int, mask: int, data: st.DataObject) -> None:
    content = bytearray(whole)
    content[at % len(content)] ^= mask
    content[data.draw(st.integers(1, 4_000).map(lambda back: -back % len(content)))] ^= mask
    with suppress(StudyError):
        read_results(bytes(content))


def test_a_folder_goes_on_where_it_stopped(tmp_path: Path, here: list[PointResult]) -> None:
    first = Folder(tmp_path, study())
    results = iter([False] * 5)
    for chunk in run_study(study(), search=search, cancelled=lambda: next(results, True)):
        first.keep(chunk)
    assert first.gather() == 5
    assert list(read_results(first.whole)) == here[:5]
    (tmp_path / "chunks" / "00002.parquet").write_bytes(b"torn")
    again = Folder(tmp_path, study())
    assert again.done == {0, 1, 3, 4}
    for chunk in run_study(study(), search=search, done=again.done):
        assert chunk.index not in again.done
        again.keep(chunk)
    assert again.gather() == POINTS
    assert list(read_results(again.whole)) == here


def test_a_folder_of_another_study_is_left_alone_and_one_that_cannot_be_is_said(tmp_path: Path) -> None:
    folder = Folder(tmp_path, study())
    for chunk in run_study(study(), search=search):
        folder.keep(chunk)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(StudyError, match="another study"):
        Folder(tmp_path, study(tokens=2e12))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot be made"):
        Folder(tmp_path / "file" / "results", study())


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers in processes of their own."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), embedded(2) as client:
        yield client


@pytest.mark.process
@pytest.mark.long
def test_a_worker_killed_midway_changes_nothing(
    client: Any, here: list[PointResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "killed"
    assert points(study(), search=study_cases.KillingOnce(path), client=client) == here
    assert path.read_text().isdigit()


@pytest.mark.process
@pytest.mark.long
def test_a_chunk_that_kills_every_worker_is_given_up_and_no_other(client: Any) -> None:
    item = study(models=["Llama 3.1 8B"], clusters=GRID["clusters"][:1], seq_len=[4096])
    chunks = run_study(item, search=study_cases.killing_always, client=client)
    results = [point for chunk in islice(chunks, 4) for point in chunk.points]
    with pytest.raises(StudyError, match="given up, 2 of 6"):
        next(chunks)
    assert sorted(results, key=lambda result: result.point) == [
        point for point in points(item) if point.global_batch_sequences != 64
    ]


@pytest.mark.process
@pytest.mark.long
def test_a_cluster_can_be_cancelled(client: Any, here: list[PointResult]) -> None:
    results: list[PointResult] = []
    for chunk in run_study(study(), search=search, client=client, cancelled=lambda: len(results) >= 5):
        results.extend(chunk.points)
    assert 5 <= len(results) < POINTS
    assert all(result == here[result.point] for result in results)


def test_the_environment_names_the_cluster(
    client: Any, here: list[PointResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_SCHEDULER", client.scheduler.address)
    with pytest.raises(ValueError, match="here"):
        study_cases.Elsewhere(os.getpid())(None, None, 64, 1)
    assert points(study(), search=study_cases.Elsewhere(os.getpid())) == here


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "http://x", "tcp://127.0.0.1:99999", "tcp://[::1"])
def test_a_scheduler_that_is_away(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_SCHEDULER", address)
    with pytest.raises(StudyError, match="No Dask scheduler answers at"):
        points(study())


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
def test_the_command_stops_at_once_and_goes_on_from_there(tmp_path: Path, here: list[PointResult]) -> None:
    path = tmp_path / "told"
    stopped = command(tmp_path, f"StoppingOnce(Path({str(path)!r}))")
    assert path.exists()
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert "goes on from here" in stopped.stderr
    results = read_results(tmp_path / "out" / "study.parquet")
    assert 0 < len(results) < POINTS
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "chunks").iterdir()}
    done = command(tmp_path, "search")
    assert done.returncode == 0, done.stderr
    assert f"{POINTS} of {POINTS} points" in done.stdout
    assert list(read_results(tmp_path / "out" / "study.parquet")) == here
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_the_command_names_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "away.json"), "--out", str(tmp_path / "out")], search) == 2
    assert "away.json cannot be read" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_study_of_the_readme_can_be_read() -> None:
    [text] = re.findall(r"```json\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert read_study(text).count == 2 * 2 * 2 * 2
