"""What this CUDA device does beside what Napkin says of it: ``make gpu``, at most eight minutes.

Measures everything that the page *Measure* measures, then runs real training steps, and prints one table. The folder
``measured`` receives each result when it is there, so that nothing is lost where the command is stopped:
``checks.jsonl``, a line for each figure beside the band that it should lie in, ``measurement.json``, one line of
``steps.jsonl`` for each step, and the steps as rows for
``assets/data/step_runs_measured.csv``, whose steps are evidence like published ones.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from core.benchmark.choices import programme
from core.benchmark.datasheet import datasheet_of
from core.benchmark.programme import KINDS, SECONDS, SIZES
from core.benchmark.record import Record
from core.benchmark.running.jobs import Runner
from core.rows import read_rows
from core.step_time.predicted_measured import predicted_against_measured
from core.units import format_bytes, format_duration, format_quantity
from core.views.benchmark.tables import points_table, step_table
from tests.gpu.cases import CASES, MORE, Case, Predicted, predicted
from tests.gpu.checks import Check, of_probe, of_record
from tests.gpu.training import Measured

ROOT = Path(__file__).parents[2]
TABLE = "step_runs_measured"
BUDGET_S, CASE_S, PROBE_S = 480.0, 100.0, 40.0
FOLDER = ROOT / "measured"
HEADINGS = ("Step", "Measured", "Said", "Range", "By datasheet", "Measured/said", "Peak", "Said", "Measured/said")


@dataclass(frozen=True)
class Row:
    """A case with what was measured, or why nothing was, and what was said of it: by measured rates and without."""

    case: Case
    said: Predicted
    by_datasheet: Predicted
    measured: Measured | None
    problem: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """A line under `HEADINGS`."""
        said, got = self.said, self.measured
        low, high = (format_duration(each, 3) for each in (said.low, said.high))
        return (
            self.case.name,
            format_duration(got.seconds, 3) if got else self.problem,
            format_duration(said.seconds, 3),
            f"{low} to {high}",
            format_duration(self.by_datasheet.seconds, 3),
            format_quantity(got.seconds / said.seconds, "ratio", 3) if got else "",
            format_bytes(got.peak_bytes, system="binary", digits=3) if got else "",
            format_bytes(said.peak_bytes, system="binary", digits=3),
            format_quantity(got.peak_bytes / said.peak_bytes, "ratio", 3) if got else "",
        )


def measurement(runner: Runner, seconds: float, keep: Callable[[Record], None]) -> Record:
    """Everything about the device, as the page measures it. keep: called with each new result of the measurement.

    A measurement that fails or is stopped is returned as far as it came.
    """
    job, _ = runner.start(programme("all", "cuda", SIZES["cuda"][-1], seconds))
    kept: Record | None = None
    while seen := runner.poll(job.id):
        record = seen.record
        if kept is None or (kept.stage, len(kept.outcomes)) != (record.stage, len(record.outcomes)):
            keep(record)
            kept = record
        if record.stage not in ("queued", "running"):
            break
        time.sleep(0.2)
    if seen is None or not seen.record.outcomes:
        sys.exit(f"Nothing was measured: {seen.record.message if seen else 'the job is gone'} {seen and seen.stderr}")
    if seen.record.stage != "finished":
        print(f"The measurement {seen.record.stage} with {len(seen.record.outcomes)} results: {seen.record.message}")
    return seen.record


def write(path: Path, text: str) -> None:
    """Write a file whole: a reader, or a command that is stopped, never leaves half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def run(case: Case, seconds: float) -> tuple[Measured | None, str]:
    """A case in a process of its own, so that what it leaves or breaks touches no other."""
    command = [sys.executable, "-m", "tests.gpu.training", "cuda", json.dumps(asdict(case))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=seconds)
        answer = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return None, f"took longer than {seconds:.0f} s"
    except (IndexError, json.JSONDecodeError):
        return None, done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "said nothing"
    return (None, answer["problem"]) if "problem" in answer else (Measured(**answer), "")


def probe(name: str, seconds: float = PROBE_S) -> tuple[list[Check], str]:
    """What a probe found, each figure beside its band, or why it found nothing."""
    hide = {"CUDA_VISIBLE_DEVICES": ""} if name == "hidden" else {}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.gpu.probe", name],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=seconds,
            env={**os.environ, **hide},
        )
    except subprocess.TimeoutExpired:
        return [], f"took longer than {seconds:.0f} s"
    try:
        return list(of_probe(name, json.loads(done.stdout.splitlines()[-1]))), ""
    except (IndexError, json.JSONDecodeError):
        return [], (done.stderr.strip().splitlines() or ["said nothing"])[-1][:200]


def cancelled(runner: Runner) -> Check:
    """Whether a measurement under way ends soon when it is cancelled."""
    job, _ = runner.start(programme("dtypes", "cuda", SIZES["cuda"][-1], SECONDS["cuda"]))
    begun = time.monotonic()
    while time.monotonic() - begun < PROBE_S and (seen := runner.poll(job.id)) and not seen.record.outcomes:
        time.sleep(0.2)
    at = time.monotonic()
    ended = runner.cancel(job.id, wait_s=PROBE_S)
    return Check("cancel", time.monotonic() - at if ended else math.nan, 0.0, 10.0, "what the page allows", "seconds")


def tell(out: Path, name: str, checks: Sequence[Check], problem: str = "") -> None:
    """Print each check in a line, a block that could not be run as one that failed, and keep them at once."""
    found = checks or [Check(f"{name}: {problem or 'nothing was measured'}", math.nan, 1.0, 1.0, "it should run")]
    with (out / "checks.jsonl").open("a", encoding="utf-8") as file:
        for check in found:
            print(check.line, flush=True)
            file.write(f"{check.json}\n")


def of_step(row: Row) -> Check:
    """Whether a step took as long as its range says."""
    seconds = row.measured.seconds if row.measured else math.nan
    return Check(f"step {row.case.name}", seconds, row.said.low, row.said.high, "the plan’s own range", "seconds")


def rows(cases: Sequence[Case], record: Record, accelerator: str, begun: float) -> Iterator[Row]:
    """Case after case, as long as there is time for one more."""
    for case in cases:
        left = BUDGET_S - (time.monotonic() - begun)
        got, problem = run(case, min(CASE_S, left)) if left > 20 else (None, "no time left")
        said, plain = (predicted(case, accelerator, each) for each in (record, None))
        yield Row(case, said, plain, got, problem)


def evidence(row: Row, accelerator: str, day: str) -> dict[str, str]:
    """A measured step as a row of published steps."""
    case, got = row.case, row.measured
    assert got is not None
    return {
        "model": case.name,
        "accelerator": accelerator,
        "n_gpus": "1",
        "precision": "bf16",
        "seq_len": str(case.seq_len),
        **dict.fromkeys(("tp", "pp", "cp", "ep", "vpp"), "1"),
        **dict.fromkeys(("zero", "sequence_parallel"), "0"),
        "step_source": "PyTorch 2.11, one H100",
        "left_out": "it trains adapters alone" if case.rank else "",
        "graphs": str(int(case.compiled)),
        "micro_batch_size": str(case.sequences),
        "global_batch_seqs": str(case.sequences * case.accumulated),
        "recomputes": case.recompute,
        "step_time_s": f"{got.seconds:.4g}",
        "peak_bytes": f"{got.peak_bytes:.4g}",
        "software": "compiled" if case.compiled else "eager",
        "implementation": case.texts["impl"],
        "policy": case.policy,
        "adapters": str(case.rank),
        "frozen": case.frozen,
        "shape": case.texts["shape"],
        "source": f"make gpu, {day}, torch {got.torch}",
    }


def write_rows(folder: Path, found: Sequence[Row], accelerator: str, day: str) -> None:
    """Write the steps so far: a line of JSON for each, and those that are evidence as rows of the table."""
    lines = [
        {"case": asdict(row.case), "said": asdict(row.said), "measured": row.measured and asdict(row.measured)}
        | {"problem": row.problem, "by_datasheet": asdict(row.by_datasheet)}
        for row in found
    ]
    write(folder / "steps.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(read_rows(TABLE)[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(evidence(row, accelerator, day) for row in found if row.measured and row.case.published)
    write(folder / f"{TABLE}.csv", text.getvalue())


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns as wide as they need."""
    widths = [max(len(line[i]) for line in (headings, *lines)) for i in range(len(headings))]
    return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)) for line in (headings, *lines))


def main() -> None:
    """Measure, train, compare, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the measurement and the rows")
    parser.add_argument("--measured", type=Path, help="a measurement of this device that is there already")
    parser.add_argument("--more", action="store_true", help="other models and lengths, to which nothing was fitted")
    arguments = parser.parse_args()
    begun, day, out = time.monotonic(), f"{datetime.now(UTC):%Y-%m-%d}", arguments.out

    def keep(record: Record) -> None:
        write(out / "measurement.json", record.model_dump_json(indent=1))

    print(f"torch {torch.__version__} of {Path(torch.__file__).parent}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "checks.jsonl").unlink(missing_ok=True)
    for name in ("launch", "timers"):
        tell(out, name, *probe(name))
    kept = arguments.measured
    record = Record.model_validate_json(kept.read_bytes()) if kept else measurement(Runner(), SECONDS["cuda"], keep)
    keep(record)
    for kind in KINDS:
        print(kind, table(*points_table([p for p in record.points if p.item.kind == kind])), sep="\n")
    for refusal in record.refusals:
        print(f"{refusal.item.kind} {refusal.item.name} {refusal.item.label}: {refusal.why}: {refusal.text}")
    layers, why = predicted_against_measured(record)
    print(table(*step_table(layers)))
    tell(out, "measurement", list(of_record(record)))
    for name in ("failures", "hidden", "silent"):
        tell(out, name, *probe(name))
    tell(out, "cancel", [cancelled(Runner())])
    print(why, f"measured in {record.elapsed_s:.0f} s", flush=True)
    known = datasheet_of(record).rows
    if len(known) != 1:
        sys.exit(f"{record.facts and record.facts.name} is not one row of the catalogue: nothing to set steps beside.")
    found: list[Row] = []
    for row in rows(MORE if arguments.more else CASES, record, known[0].name, begun):
        found.append(row)
        write_rows(out, found, known[0].name, day)
        print(*row.cells, sep=" | ", flush=True)
        tell(out, row.case.name, [of_step(row)])
    print(table(HEADINGS, [row.cells for row in found]))
    print(f"{time.monotonic() - begun:.0f} s in all; written to {out}")


if __name__ == "__main__":
    main()
