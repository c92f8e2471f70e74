"""Published step times, each with the exact layout under which it was taken.

A time of a step needs no convention, nor do tokens per second; FLOP/s are turned into time by the formula that their
source divided by time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.hardware.cluster import Cluster
from core.limits import cached
from core.models.flop_formulas import hardware_flop_narayanan, train_flop_by_layer
from core.models.flops import flops_per_token
from core.models.spec import TransformerSpec
from core.rows import number, read_rows, whole
from core.step_time.calibration.shapes import shape_of_row
from core.step_time.calibration.sources import (
    Convention,
    Reading,
    StepSource,
    cluster_of,
    implementation_of,
    is_baseline,
    layout_of,
    running_of,
    source_of,
)
from core.step_time.parts import Running
from core.training.activations.tensors import Implementation
from core.training.layout import Layout
from core.training.trained import EVERYTHING, Trained


@dataclass(frozen=True, slots=True)
class StepRun:
    """One published step.

    format: of the products with weights, as the source names it.  seconds: of one step.  how: what they were worked
    out from.  implementation: how a layer is written.
    group: key of the source, for leaving one out; each release of a vendor's table is one.  stack: the software.
    release: of the vendor's container, empty where there is none.  memory_bytes: of the fullest accelerator, NaN where
    the row has none; reading: what was read.  policy: precision of the model states, empty where it is the
    usual one.  trained: what of the model is.
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
    how: str
    source: str
    group: str
    stack: str
    year: int
    release: str
    memory_bytes: float
    reading: Reading
    policy: str
    trained: Trained

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


@dataclass(frozen=True, slots=True)
class StepLeftOut:
    """A published row that is no measured step, and why."""

    name: str
    source: str
    reason: str


TABLES = ("training_runs", "step_runs_moe", "step_runs_more", "step_runs_jax", "step_runs_measured")
"""Tables of published rows: whole runs among them, mixtures with expert tensor parallelism, steps alone, MaxText’s
with the layouts of its scripts, and those that this program ran."""

_RELEASE = re.compile(r"\b(2\d\.\d\d)(?:\.\d\d)? NeMo container|NeMo (2\d\.\d\d)|\((2\d\.\d\d)\)")
_FORMATS = {
    "amp_bf16": "bf16",
    "amp_fp8": "fp8",
    "fp8-cs": "fp8",
    "fp8-cs (fp8-mx)": "fp8",
    "fp8-mx": "mxfp8",
    "": "bf16",
}
"""Other names of a format."""


def flop_of_token(convention: Convention, spec: TransformerSpec, seq_len: int) -> float:
    """FLOPs of training on one token, as the sources of each convention count them."""
    if convention == "hardware":
        return hardware_flop_narayanan(spec.layers, spec.hidden, seq_len, spec.vocab)
    return train_flop_by_layer(flops_per_token(spec, seq_len, convention).forward, 1)


def _seconds(row: Mapping[str, str], source: StepSource, spec: TransformerSpec, tokens: float) -> tuple[float, str]:
    """Seconds of a step of ``tokens`` on each accelerator, and what they come from; NaN where nothing was measured."""
    if row.get("step_time_s"):
        return number(row["step_time_s"]), "time of a step"
    if row.get("tokens_per_s_per_gpu"):
        return tokens / number(row["tokens_per_s_per_gpu"]), "tokens per second"
    rate = number(row.get("tflops_per_gpu", "")) * 1e12
    flop = flop_of_token(source.convention, spec, whole(row["seq_len"]))
    return tokens * flop / rate, f"FLOP/s, {source.convention} count"


def _read(row: Mapping[str, str], source: StepSource) -> StepRun:
    """One row; raises ``KeyError`` or ``ValueError`` where it does not say enough."""
    spec, layout, seq_len = shape_of_row(row), layout_of(row, source), whole(row["seq_len"])
    cluster = cluster_of(row, source)
    tokens = int(layout.data * layout.micro_batch * layout.micro_batches) * seq_len / cluster.count
    seconds, how = _seconds(row, source, spec, tokens)
    match = _RELEASE.search(row["source"])
    release = next((part for part in match.groups() if part), "") if match else ""
    bridge = source.stack == "Megatron-Bridge"
    return StepRun(
        name=row["model"],
        spec=spec,
        cluster=cluster,
        layout=layout,
        seq_len=seq_len,
        format=_FORMATS.get(row["precision"], row["precision"]),
        running=running_of(row, source),
        implementation=implementation_of(row, source),
        seconds=seconds,
        how=how,
        source=row["source"],
        group=f"{source.group} {release}" if bridge else source.group,
        stack="Megatron-2023" if is_baseline(row, source) else source.stack,
        year=2000 + int(release[:2]) if bridge else source.year,
        release=release,
        memory_bytes=_memory(row, source),
        reading=source.reading,
        policy=row.get("policy", ""),
        trained=_trained(row),
    )


def _trained(row: Mapping[str, str]) -> Trained:
    rank = whole(row.get("adapters", ""))
    return Trained("adapters", rank, frozen=row["frozen"]) if rank else EVERYTHING


def _memory(row: Mapping[str, str], source: StepSource) -> float:
    """Bytes that were read of an accelerator; NaN where none were."""
    if row.get("peak_bytes"):
        return number(row["peak_bytes"])
    return number(row.get("memory_gb_per_gpu", "")) * source.unit


_KINDS: Mapping[str, str] = {
    "estimate": "it is an estimate, not a measurement",
    "memory_estimate": "it counts bytes, and no step was timed",
    "microbenchmark": "it times one layer, not a step",
    "architecture_only": "it gives a shape, and no step was timed",
}


def _unusable(row: Mapping[str, str], source: StepSource | None) -> str:
    """Why a row is no measured step, as far as one sees before reading it; empty where it may be one."""
    kind = row.get("kind", "benchmark")
    timed = row.get("step_time_s") or row.get("tokens_per_s_per_gpu")
    if kind in _KINDS:
        return _KINDS[kind]
    if kind == "full_run":
        return "it is a whole run, whose steps are given in passing if at all"
    if whole(row.get("adapters", "")):
        return "it trains adapters alone"
    if row["accelerator"].startswith("TPU") and not row.get("shape"):
        return "a table of its own has MaxText’s steps of one slice; of several the network between them is not printed"
    if not row["accelerator"] or not row["n_gpus"]:
        return "its accelerator or their number is not given"
    if source is None or not row.get("tp"):
        return "its layout is not published"
    if not (timed or row.get("tflops_per_gpu")):
        return "no step was timed"
    if source.group == "NeMo 25.05" and row["model"].startswith("DeepSeek"):
        return "an early release: later ones of the same vendor take less than half as long"
    if row["model"].startswith("GPT OSS") and "26.06.01" in row["source"]:
        return "a regression that the source names as such, resolved in the release after"
    if "part of the blocks" in row.get("recompute", ""):
        return "it recomputes part of its blocks, and how many is not printed"
    if "LLAMA3_70B" in row["model"] and "micro batch" in row.get("differs", ""):
        return "its printed layout is not that of its release's own recipe"
    return ""


@cached("tables_kept")
def _sorted_out() -> tuple[tuple[StepRun, ...], tuple[StepLeftOut, ...], tuple[StepRun, ...]]:
    """Measured steps, rows left out, and rows with a memory reading and a whole layout."""
    steps: list[StepRun] = []
    left: list[StepLeftOut] = []
    memory: list[StepRun] = []
    settings = {(row["model"], row["source"]): row for row in read_rows("step_settings")}
    for printed in (row for table in TABLES for row in read_rows(table)):
        row = {**printed, **settings.get((printed["model"], printed["source"]), {})}
        source = source_of(row)
        reason = _unusable(row, source)
        if source and not math.isnan(_memory(row, source)):
            memory.append(_read(row, source))
        if not reason and source:
            try:
                steps.append(_read(row, source))
            except (KeyError, ValueError) as error:
                reason = str(error)
        if reason:
            left.append(StepLeftOut(row["model"], row["source"], reason))
    return tuple(steps), tuple(left), tuple(memory)


def step_runs() -> tuple[StepRun, ...]:
    """Every published row that is a measured step under a known layout, in the tables' order."""
    return _sorted_out()[0]


def left_out() -> tuple[StepLeftOut, ...]:
    """The other published rows, each with its reason."""
    return _sorted_out()[1]


def memory_runs() -> tuple[StepRun, ...]:
    """Every row with a memory reading and a whole layout; ``seconds`` is NaN where no step was timed."""
    return _sorted_out()[2]
