"""Steps that users printed of runs of their own: evidence of how far off a prediction may be, and of no constant.

Their settings are seldom printed whole, so that nothing is fitted to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.limits import cached
from core.models.catalog import model_named
from core.models.spec import TransformerSpec
from core.models.spec_text import read_spec
from core.rows import number, read_rows, whole
from core.step_time.calibration.measured_steps import StepRun, flop_of_token
from core.step_time.parts import TUNINGS
from core.step_time.software import layers_with, running_on, written_with
from core.training.activations.tensors import IMPLEMENTATIONS, Implementation
from core.training.device.inputs import written_under
from core.training.layout import RECOMPUTES, Layout
from core.training.precision import find_policy
from core.training.trained import EVERYTHING

TABLE = "step_runs_users"


def _written(row: Mapping[str, str], spec: TransformerSpec) -> Implementation:
    layers = written_with(row["software"], IMPLEMENTATIONS[layers_with(row["software"], row["implementation"])])
    return written_under(layers, spec, find_policy(row["policy"]), EVERYTHING) if row["policy"] else layers


@cached("tables_kept")
def user_runs() -> tuple[StepRun, ...]:
    """Every row, in the table's order."""
    return tuple(_read(row) for row in read_rows(TABLE))


def _read(row: Mapping[str, str]) -> StepRun:
    spec = model_named(row["catalog"]).spec if row["catalog"] else read_spec(row["shape"])
    device, count, seq_len = find(row["accelerator"]), whole(row["n_gpus"]), whole(row["seq_len"])
    tensor, pipeline, context = (whole(row[name]) for name in ("tp", "pp", "cp"))
    batch, micro = whole(row["global_batch_seqs"]), whole(row["micro_batch_size"])
    data = count // (tensor * pipeline * context)
    layout = Layout(
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=whole(row["ep"]),
        interleave=whole(row["vpp"]),
        data=data,
        micro_batch=micro,
        micro_batches=batch // (data * micro),
        zero=whole(row["zero"]),
        sequence_parallel=int(tensor > 1),
        recompute=RECOMPUTES[row["recompute"]],
    )
    seconds = number(row["step_time_s"])
    if math.isnan(seconds):
        flop = flop_of_token("full", spec, seq_len) * batch * seq_len
        seconds = flop / (number(row["tflops_per_gpu"]) * 1e12 * count)
    running = running_on(row["software"], spec, device, row["precision"])
    return StepRun(
        name=row["model"],
        spec=spec,
        cluster=cluster(device, count),
        layout=layout,
        seq_len=seq_len,
        format=row["precision"],
        running=replace(running, tuned_by=next(kind for kind in TUNINGS if kind == row["tuned"])),
        implementation=_written(row, spec),
        seconds=seconds,
        how="time of a step" if row["step_time_s"] else "FLOP/s, full count",
        source=row["source"],
        group=row["source"].split(",")[0],
        stack=row["software"],
        year=device.year,
        release="",
        memory_bytes=math.nan,
        reading="reserved",
        policy=row["policy"],
        trained=EVERYTHING,
    )
