"""Measured steps: the shapes that they ran, their times, and their memory.

A time of a step needs no convention, nor do tokens per second; FLOP/s are turned into time by the formula that their
source divided by time.

Their settings are seldom printed whole, so that nothing is fitted to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster, cluster
from core.limits import cached
from core.models.catalog import model_named
from core.models.flop_formulas import hardware_flop_narayanan, train_flop_by_layer
from core.models.flops import flops_per_token
from core.models.spec import Experts, TransformerSpec
from core.models.spec_text import read_spec
from core.rows import number, read_rows, whole
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
from core.step_time.running import TUNINGS, Running, layers_with, running_on, written_with
from core.training.activations.tensors import IMPLEMENTATIONS, Implementation
from core.training.device.buffers import MEASURED, TENSORS_ONLY, Runtime
from core.training.device.inputs import written_under
from core.training.device.memory import DeviceMemory, memory_per_device
from core.training.layout import RECOMPUTES, Layout
from core.training.optimizers import find_optimizer
from core.training.precision import BF16, PrecisionPolicy, find_policy
from core.training.trained import EVERYTHING, Trained

_UNPRINTED: Mapping[str, tuple[int, int, int, int, int]] = {
    "Nemotron-8B": (32, 4096, 32, 16384, 256000),
    "Nemotron-22B": (40, 6144, 48, 24576, 256000),
}
"""Layers, width, heads, feed-forward width and vocabulary that NeMo 24.07 does not print beside these names: those of
the released models, which give the FLOPs per token of the printed rates within 0.1 %."""

_MIXTURES: Mapping[str, str] = {
    "Nemotron_3_Nano": "Nemotron 3 Nano 30B-A3B",
    "Kimi_K2": "Kimi K2",
    "Qwen3_30B": "Qwen3 30B-A3B",
    "Qwen3_235B": "Qwen3 235B-A22B",
    "GPT OSS 20B": "gpt-oss 20B",
    "GPT OSS 120B": "gpt-oss 120B",
}
"""What rows of mixtures call a model → what the catalogue calls it. Larger Nemotron 3 run their experts at a width of
their own, and are not counted."""


def _mixture(row: Mapping[str, str]) -> TransformerSpec:
    """The mixture that the row names, or whose shape it spells out."""
    name = row["model"]
    if row.get("experts"):
        experts = Experts(
            count=whole(row["experts"]),
            per_token=whole(row["experts_per_token"]),
            width=whole(row["expert_width"]),
            shared=whole(row["shared_experts"]),
            dense_layers=whole(row["dense_layers"]),
        )
        return replace(_dense(row, gpt=False, experts=experts), tied_head="Grok" in name)
    if name.startswith("DeepSeekV3"):
        return replace(model_named("DeepSeek-V3").spec, mtp_modules=0 if "w/o MTP" in name else 1)
    for start, known in _MIXTURES.items():
        if name.startswith(start):
            return model_named(known).spec
    raise KeyError(f"no shape is known of the mixture {name!r}")


def _dense(row: Mapping[str, str], *, gpt: bool, experts: Experts | None = None) -> TransformerSpec:
    """The shape in the row's columns."""
    known = next((shape for name, shape in _UNPRINTED.items() if row["model"].startswith(name)), None)
    columns = (whole(row[name]) for name in ("layers", "hidden", "heads", "ffn", "vocab"))
    layers, hidden, heads, ffn, vocab = known or columns
    nemotron = "Nemotron" in row["model"]
    biases = gpt and not nemotron and not row["model"].startswith("MPT")
    return TransformerSpec(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=whole(row["kv_heads"]) or heads,
        head_dim=hidden // heads,
        ffn=ffn,
        vocab=vocab,
        glu=not gpt,
        tied_head=gpt and not nemotron,
        norm="layernorm" if gpt else "rmsnorm",
        norm_vectors=2 if biases else 1,
        attention_bias=biases,
        output_bias=biases,
        ffn_bias=biases,
        position_rows=whole(row["seq_len"]) if gpt and not nemotron else 0,
        experts=experts,
        parallel_blocks=row["model"].startswith("MegaScale"),
    )


def shape_of_row(row: Mapping[str, str]) -> TransformerSpec:
    """The model of a row; raises ``KeyError`` or ``SpecError`` where the row does not say enough."""
    if row.get("shape"):
        return read_spec(row["shape"])
    mixed = row.get("architecture") in ("moe", "hybrid") or bool(row.get("experts"))
    return _mixture(row) if mixed else _dense(row, gpt=row["architecture"] == "gpt")


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


_RUNTIME: Mapping[Reading, Runtime] = {
    "process": MEASURED,
    "reserved": Runtime(context=0.0, communicator=0.0),
    "tensors": TENSORS_ONLY,
}
_POLICY: Mapping[Reading, PrecisionPolicy] = {
    # BigScience: going from one to two replicas freed 16 bytes per parameter, which is all but 2 + 2 in 16 bits.
    "process": find_policy("mixed fp16, fp32 copies of both"),
    # torchtitan: fp32 shards, which FSDP casts as it gathers them, so that all activations are in bf16.
    "reserved": replace(find_policy("fp32, bf16 autocast"), saved=BF16),
    "tensors": find_policy("mixed bf16, fp32 master, fp32 gradients"),
}


def account(run: StepRun) -> DeviceMemory:
    """What the account says of the fullest stage of a run whose memory was read."""
    return memory_per_device(
        run.spec,
        run.layout,
        policy=find_policy(run.policy) if run.policy else _POLICY[run.reading],
        optimizer=find_optimizer("AdamW"),
        seq_len=run.seq_len,
        implementation=run.implementation,
        runtime=_RUNTIME[run.reading],
        trained=run.trained,
    )


def memory_ratios() -> Mapping[StepRun, float]:
    """Every published reading with what the account says of it, over what was read."""
    return {run: float(account(run).total) / run.memory_bytes for run in memory_runs()}


TABLE = "step_runs_users"


def _written(row: Mapping[str, str], spec: TransformerSpec) -> Implementation:
    layers = written_with(row["software"], IMPLEMENTATIONS[layers_with(row["software"], row["implementation"])])
    return written_under(layers, spec, find_policy(row["policy"]), EVERYTHING) if row["policy"] else layers


@cached("tables_kept")
def user_runs() -> tuple[StepRun, ...]:
    """Every row, in the table's order."""
    return tuple(_read_user_step(row) for row in read_rows(TABLE))


def _read_user_step(row: Mapping[str, str]) -> StepRun:
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
