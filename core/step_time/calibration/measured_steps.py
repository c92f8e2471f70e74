"""Measured steps: the shapes that they ran, their times, and their memory.

A time of a step needs no convention, nor do tokens per second; FLOP/s are turned into time by the formula that their
source divided by time.

A row says how its step was run, and ``assumed`` names what its source does not print: where Narayanan's Table 1 has
neither, the micro-batch and chunks that fit 80 GB and are fastest. What holds for all rows of a source stands in
``step_sources.csv``; ``step_settings.csv`` has what Megatron-Bridge's own recipes say (``scripts/performance/configs``
on the branch of each release), and ``differs`` what they have otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.limits import cached
from core.models.catalog import model_named
from core.models.flop_formulas import hardware_flop_narayanan, train_flop_by_layer
from core.models.flops import flops_per_token
from core.models.spec import TransformerSpec
from core.models.spec_text import read_spec
from core.rows import number, read_rows, whole
from core.step_time.running import Running, layers_with, running_on, written_with
from core.training.activations.tensors import FUSED_DTENSOR, IMPLEMENTATIONS, Implementation
from core.training.device.inputs import written_under
from core.training.layout import MODULES, RECOMPUTES, Layout, recomputation
from core.training.precision import find_policy
from core.training.trained import EVERYTHING, Trained

Convention: TypeAlias = Literal["hardware", "full", "causal"]
"""FLOPs of a token: with every layer's forward done twice (Narayanan); of the model, attention's square whole or cut in
half."""

TABLES = ("training_runs", "step_runs_moe", "step_runs_more", "step_runs_jax", "step_runs_measured")
"""Tables of published rows: whole runs among them, mixtures with expert tensor parallelism, steps alone, MaxText’s
with the layouts of its scripts, and those that this program ran."""

_RACK = 64
"""Accelerators of one NVL72 rack that a job of more than one takes: degrees of a layout are powers of two."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """One published step.

    format: of the products with weights, as the source names it.  seconds: of one step, NaN where memory alone was
    read.  implementation: how a layer is written.  group: key of the source, for leaving one out; each release of a
    vendor's table is one.  stack: the software.  release: of the vendor's container, empty where there is none.
    memory_bytes: of the fullest accelerator, NaN where the row has none; reading: what was read, ``process`` as the
    driver says, what the allocator ``reserved``, or a sum of ``tensors``.  policy: precision of the model states, empty
    where it is the usual one.  trained: what of the model is.
    """

    name: str
    spec: TransformerSpec
    cluster: Cluster
    layout: Layout
    seq_len: int
    format: str
    running: Running
    implementation: Implementation
    seconds: float
    source: str
    group: str
    stack: str
    release: str = ""
    memory_bytes: float = math.nan
    reading: str = "reserved"
    policy: str = ""
    trained: Trained = EVERYTHING

    @property
    def sequences(self) -> int:
        """Sequences of one step."""
        return int(self.layout.data * self.layout.micro_batch * self.layout.micro_batches)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of one accelerator."""
        return self.sequences * self.seq_len / (self.seconds * self.cluster.count)

    @property
    def mixture(self) -> bool:
        """Whether the model is a mixture of experts."""
        return self.spec.experts is not None


def flop_of_token(convention: Convention, spec: TransformerSpec, seq_len: int) -> float:
    """FLOPs of training on one token, as the sources of each convention count them."""
    if convention == "hardware":
        return hardware_flop_narayanan(spec.layers, spec.hidden, seq_len, spec.vocab)
    return train_flop_by_layer(flops_per_token(spec, seq_len, convention).forward, 1)


def _layout(row: Mapping[str, str]) -> Layout:
    """The row's degrees; data-parallel ranks are what the accelerators leave."""
    tensor, pipeline, context = (whole(row[name]) for name in ("tp", "pp", "cp"))
    data, micro = whole(row["n_gpus"]) // (tensor * pipeline * context), whole(row["micro_batch_size"])
    how = row["recomputes"]
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        interleave=whole(row["vpp"]) if pipeline > 1 else 1,
        context=context,
        expert=whole(row["ep"]),
        expert_tensor=whole(row.get("etp", "")),
        data=data,
        micro_batch=micro,
        micro_batches=whole(row["global_batch_seqs"]) // (data * micro),
        zero=whole(row["zero"]),
        sequence_parallel=whole(row["sequence_parallel"]),
        recompute=RECOMPUTES[how]
        if how in RECOMPUTES
        else recomputation(0, sum(MODULES[name] for name in how.split())),
    )


def _seconds(row: Mapping[str, str], convention: Convention, spec: TransformerSpec) -> float:
    """Seconds of a step; NaN where nothing was measured."""
    tokens = whole(row["global_batch_seqs"]) * whole(row["seq_len"]) / whole(row["n_gpus"])
    if row["step_time_s"]:
        return number(row["step_time_s"])
    if row.get("tokens_per_s_per_gpu"):
        return tokens / number(row["tokens_per_s_per_gpu"])
    rate = number(row.get("tflops_per_gpu", "")) * 1e12
    return tokens * flop_of_token(convention, spec, whole(row["seq_len"])) / rate


def _read(row: Mapping[str, str], source: Mapping[str, str]) -> StepRun:
    """One row and its source."""
    spec, accelerator, count = read_spec(row["shape"]), find(row["accelerator"]), whole(row["n_gpus"])
    network = number(source["network"]) if source["network"] else accelerator.network
    node, rank = accelerator.node_size, whole(row.get("adapters", ""))
    precision = row.get("format") or row["precision"]
    known: dict[str, Any] = {
        **{name: whole(source[name]) for name in ("skips_last_product", "scattered")},
        "overlap_tensor": whole(source["overlap_tensor"]) if source["overlap_tensor"] else None,
        "tuned_by": source["tuned"],
        "attention": source["attention"],
        "software": row["software"],
    }
    return StepRun(
        name=row["model"],
        spec=spec,
        cluster=Cluster(replace(accelerator, network=network), count, _RACK if node > _RACK and count > node else node),
        layout=_layout(row),
        seq_len=whole(row["seq_len"]),
        format=precision,
        running=Running(
            dtype=next((dtype for dtype in ("fp4", "fp8", "fp16") if dtype in precision), "bf16"),
            overlap=number(source["overlap"]),
            imbalance=number(row.get("imbalance") or "1"),
            graphs=whole(row["graphs"]),
            **known,
        ),
        implementation={**IMPLEMENTATIONS, FUSED_DTENSOR.id: FUSED_DTENSOR}[row["implementation"]],
        seconds=_seconds(row, cast("Convention", source["convention"]), spec),
        source=row["source"],
        group=source["group"],
        stack=source["stack"],
        release=source["release"],
        memory_bytes=number(row["peak_bytes"])
        if "peak_bytes" in row
        else number(row.get("memory_gb_per_gpu", "")) * number(source["unit"]),
        reading=source["reading"],
        policy=row.get("policy", ""),
        trained=Trained("adapters", rank, frozen=row["frozen"]) if rank else EVERYTHING,
    )


@cached("tables_kept")
def _rows() -> tuple[tuple[StepRun, bool], ...]:
    """Every row that says enough, and whether a step of all parameters was timed."""
    sources = {source["name"]: source for source in read_rows("step_sources")}
    rows = (row for table in TABLES for row in read_rows(table) if row["step_source"])
    return tuple((_read(row, sources[row["step_source"]]), not row.get("left_out")) for row in rows)


def step_runs() -> tuple[StepRun, ...]:
    """Every published row that is a measured step under a known layout, in the tables' order."""
    return tuple(run for run, timed in _rows() if timed)


def memory_runs() -> tuple[StepRun, ...]:
    """Every row with a memory reading and a whole layout; ``seconds`` is NaN where no step was timed."""
    return tuple(run for run, _ in _rows() if not math.isnan(run.memory_bytes))


@cached("tables_kept")
def user_runs() -> tuple[StepRun, ...]:
    """Every step of users' own, in the table's order; constants are not fitted to them."""
    return tuple(_user_runs())


def _user_runs() -> Iterator[StepRun]:
    for row in read_rows("step_runs_users"):
        spec = model_named(row["catalog"]).spec if row["catalog"] else read_spec(row["shape"])
        device, software = find(row["accelerator"]), row["software"]
        how = written_with(software, IMPLEMENTATIONS[layers_with(software, row["implementation"])])
        running = running_on(software, spec, device, row["precision"])
        yield StepRun(
            name=row["model"],
            spec=spec,
            cluster=cluster(device, whole(row["n_gpus"])),
            layout=_layout(row),
            seq_len=whole(row["seq_len"]),
            format=row["precision"],
            running=replace(running, tuned_by=cast("Any", row["tuned"])),
            implementation=written_under(how, spec, find_policy(row["policy"]), EVERYTHING) if row["policy"] else how,
            seconds=_seconds(row, "full", spec),
            source=row["source"],
            group=row["source"].split(",")[0],
            stack=software,
            policy=row["policy"],
        )
