"""Published step times, each with the exact layout under which it was taken.

A time of a step needs no convention, nor do tokens per second; FLOP/s are turned into time by the formula that their
source divided by time. What a source leaves open is filled by one rule per source, written beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster
from core.models.flop_formulas import hardware_flop_narayanan, train_flop_by_layer
from core.models.flops import flops_per_token
from core.models.spec import TransformerSpec
from core.planning.step.parts import Kernel, Running, Software
from core.planning.step.shapes import shape_of_row
from core.rows import number, read_rows, whole
from core.training.activations.tensors import FUSED, MEGATRON_GPT, Implementation
from core.training.layout import Layout, Recompute

Reading: TypeAlias = Literal["process", "reserved", "tensors"]
"""What was read of memory: all of a process, as the driver says; what the allocator reserved; a sum of tensors."""

Convention: TypeAlias = Literal["hardware", "full", "causal"]
"""FLOPs of a token: with every layer's forward done twice (Narayanan); of the model, attention's square whole or cut in
half."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """One published step.

    format: of the products with weights, as the source names it.  seconds: of one step.  how: what they were worked
    out from.  implementation: how a layer is written.
    group: key of the source, for leaving one out; each release of a vendor's table is one.  stack: the software.
    release: of the vendor's container, empty where there is none.  memory_bytes: of the fullest accelerator, NaN where
    the row has none; reading: what was read.
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
class LeftOut:
    """A published row that is no measured step, and why."""

    name: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Source:
    """What holds for all rows of a source.

    starts: how its citation starts.  zero, interleave, recompute: where its rows name none.
    parallel: whether norms are split over tensor-parallel ranks where its rows do not say.
    network: of one accelerator, in the words of the catalogue, where it is not the usual one of its accelerator.
    convention: of its FLOP/s.  unit: bytes of its memory column's unit.  attention: its fused kernel on Hopper.
    overlap_tensor: of tensor-parallel communication, where it differs from that of data parallelism.
    """

    starts: str
    group: str
    stack: str
    year: int
    overlap: int = 1
    implementation: Implementation = FUSED
    zero: int = 1
    interleave: int = 1
    parallel: bool = True
    network: str = ""
    convention: Convention = "causal"
    reading: Reading = "reserved"
    unit: float = 2.0**30
    attention: Kernel = "newest"
    overlap_tensor: int | None = None


_OLD = _Source(
    "arXiv:2104.04473",
    "Narayanan 2021",
    "Megatron-2021",
    2021,
    overlap=0,
    implementation=MEGATRON_GPT,
    zero=0,
    parallel=False,
    convention="hardware",
)
_SOURCES = (
    _OLD,
    replace(
        _OLD,
        starts="arXiv:2205.05198",
        group="Korthikanti 2022",
        stack="Megatron-2022",
        year=2022,
        convention="full",
        reading="tensors",
    ),
    replace(_OLD, starts="arXiv:2201.11990", group="MT-NLG", stack="DeepSpeed-2021", year=2022),
    replace(
        _OLD,
        starts="bigscience-workshop",
        group="BigScience",
        stack="DeepSpeed-2021",
        year=2022,
        network="50 Gb/s",  # Jean Zay has four links of 100 Gb/s for eight accelerators
        reading="process",
        unit=1e9,
    ),
    _Source("arXiv:2402.15627", "MegaScale", "MegaScale", 2024, convention="full"),
    # Interleaved, of unknown depth: down to one layer in a chunk, as in the same model's row of NeMo 24.07.
    _Source("arXiv:2406.11704", "Nemotron-4", "Megatron-Core 2024", 2024, interleave=8, convention="full"),
    # Sharded gradients and optimizer states; weights stay whole between forward and backward (section 3.3.2).
    _Source("arXiv:2407.21783", "Llama 3", "Llama 3", 2024, zero=2, interleave=8, overlap_tensor=0),
    _Source("mosaicml/llm-foundry", "llm-foundry", "llm-foundry", 2023, convention="full", attention="triton"),
    _Source("NVIDIA/NeMo ", "NeMo 24.07", "NeMo 24.07", 2024, convention="full"),
    _Source("NVIDIA/Megatron-LM examples/llama", "Megatron-LM Llama", "Megatron-Core 2024", 2024, convention="full"),
    _Source("NVIDIA-NeMo/Megatron-Bridge", "Megatron-Bridge", "Megatron-Bridge", 2025),
    _Source("NVIDIA/dgxc-benchmarking", "NeMo 25.05", "NeMo 25.05", 2025),
    _Source("pytorch/torchtitan", "torchtitan", "torchtitan", 2024, attention="fa2", overlap_tensor=0),
)

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

_DTYPES = (("fp4", "fp4"), ("fp8", "fp8"), ("fp16", "fp16"))

_CABLED = "400 Gb/s"
"""Network of a GB200, which the catalogue gives as a range: that of the DGX in which these rows were run."""

_RACK = 64
"""Accelerators of one NVL72 rack that a job of more than one takes: degrees of a layout are powers of two."""


def _baseline(row: Mapping[str, str], source: _Source) -> bool:
    """Whether it is what MegaScale measures itself against: Megatron-LM of 2023, without its overlap."""
    return source.group == "MegaScale" and row["model"].startswith("Megatron")


def _implementation(row: Mapping[str, str], source: _Source) -> Implementation:
    return MEGATRON_GPT if _baseline(row, source) else source.implementation


def _recompute(row: Mapping[str, str], source: _Source) -> Recompute:
    how = row.get("recompute", "")
    if "full" in how or "per-op" in how:
        return Recompute.FULL if "full" in how else Recompute.PER_OPERATION
    # MegaScale's baseline kept its scores and fits 80 GB only where it computes them again.
    return Recompute.SELECTIVE if "selective" in how or _baseline(row, source) else Recompute.NONE


def _zero(row: Mapping[str, str], source: _Source) -> int:
    split = row.get("zero_fsdp", "")
    if source.group == "Llama 3":
        return source.zero
    if "SHARD_GRAD_OP" in split or split == "ZeRO-2":
        return 2
    # One copy of 70 B parameters fits no accelerator beside its gradients, whatever the column says.
    whole_copy = source.stack == "Megatron-Bridge" and "70B" in row["model"] and row["tp"] == row["pp"] == "1"
    if "FSDP" in split or split == "ZeRO-3" or whole_copy:
        return 3
    return {"ZeRO-1": 1, "none (ZeRO-0)": 0}.get(split, source.zero)


_FASTEST: Mapping[str, tuple[int, int]] = {
    "Megatron-LM GPT 1.7B": (16, 1),
    "Megatron-LM GPT 3.6B": (16, 1),
    "Megatron-LM GPT 7.5B": (16, 1),
    "Megatron-LM GPT 18.4B": (8, 1),
    "Megatron-LM GPT 39.1B": (4, 4),
    "Megatron-LM GPT 76.1B": (2, 5),
    "Megatron-LM GPT 145.6B": (2, 5),
    "Megatron-LM GPT 310.1B": (1, 3),
    "Megatron-LM GPT 529.6B (": (1, 3),
    "Megatron-LM GPT 1008.0B": (1, 2),
}
"""Sequences of a micro-batch and chunks of a stage where Narayanan's Table 1 prints neither: by our own account the
fastest that fits 80 GB."""


def _layout(row: Mapping[str, str], source: _Source) -> Layout:
    """The row's degrees; data-parallel ranks are what the accelerators leave."""
    tensor, pipeline, context = (max(1, whole(row[name])) for name in ("tp", "pp", "cp"))
    data, rest = divmod(whole(row["n_gpus"]), tensor * pipeline * context)
    if rest:
        raise ValueError("its degrees do not multiply up to its accelerators")
    micro, interleave = max(1, whole(row["micro_batch_size"])), whole(row["vpp"]) or source.interleave
    fastest = next((both for name, both in _FASTEST.items() if row["model"].startswith(name)), None)
    if fastest:
        micro, interleave = fastest
    if source.group == "torchtitan":
        # It prints a rank's batch, which its pipelines cut into as many micro-batches as there are stages.
        micro, interleave = micro // pipeline, 2 if "Interleaved" in row["model"] else 1
    batch = whole(row["global_batch_seqs"]) or whole(row.get("global_batch_tokens", "")) // whole(row["seq_len"])
    if not batch and source.reading == "tensors":
        batch = micro * data * 4 * pipeline  # a paper's count of bytes: the pipeline is full
    if not batch or batch % (data * micro):
        raise ValueError("its batch is not given, or does not divide into micro-batches")
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        interleave=interleave if pipeline > 1 else 1,
        context=context,
        expert=max(1, whole(row["ep"])),
        data=data,
        micro_batch=micro,
        micro_batches=batch // (data * micro),
        zero=_zero(row, source),
        sequence_parallel=int(tensor > 1 and (source.parallel or "SP" in row.get("recompute", ""))),
        recompute=_recompute(row, source),
    )


def _cluster(row: Mapping[str, str], source: _Source) -> Cluster:
    accelerator, count = find(row["accelerator"]), whole(row["n_gpus"])
    network = source.network or (_CABLED if accelerator.name == "GB200" else accelerator.network)
    node = accelerator.node_size
    return Cluster(replace(accelerator, network=network), count, _RACK if node > _RACK and count > node else node)


def flop_of_token(convention: Convention, spec: TransformerSpec, seq_len: int) -> float:
    """FLOPs of training on one token, as the sources of each convention count them."""
    if convention == "hardware":
        return hardware_flop_narayanan(spec.layers, spec.hidden, seq_len, spec.vocab)
    return train_flop_by_layer(flops_per_token(spec, seq_len, convention).forward, 1)


def _seconds(row: Mapping[str, str], source: _Source, spec: TransformerSpec, tokens: float) -> tuple[float, str]:
    """Seconds of a step of ``tokens`` on each accelerator, and what they come from; NaN where nothing was measured."""
    if row.get("step_time_s"):
        return number(row["step_time_s"]), "time of a step"
    if row.get("tokens_per_s_per_gpu"):
        return tokens / number(row["tokens_per_s_per_gpu"]), "tokens per second"
    rate = number(row.get("tflops_per_gpu", "")) * 1e12
    flop = flop_of_token(source.convention, spec, whole(row["seq_len"]))
    return tokens * flop / rate, f"FLOP/s, {source.convention} count"


_UNCOMPILED = ("(FSDP)", "(FSDP 128 GPUs)")
"""How torchtitan's rows end that were not compiled."""

_TORCH = ("llm-foundry", "torchtitan")
"""Sources whose checkpoints are torch's non-reentrant ones."""


def _software(row: Mapping[str, str], stack: str) -> Software:
    # The ZeRO-3 rows of Narayanan's Table 2 are DeepSpeed's.
    if stack == "DeepSpeed-2021" or row.get("zero_fsdp") == "ZeRO-3":
        return "deepspeed 2021"
    if stack == "llm-foundry" or (stack == "torchtitan" and row["model"].endswith(_UNCOMPILED)):
        return "eager"
    # Recipes that capture a whole step fuse the experts' products and run their exchange beside other work as well.
    return "mature" if row.get("dispatch") and row.get("graphs") == "step" else ""


def _graphs(row: Mapping[str, str]) -> int:
    """Whether the host’s launches do not show, by the release's own recipe; graphs of parts are enough for a Grace."""
    how = row.get("graphs", "step")
    static = "tokendrop" in row["model"]  # dropped tokens keep every shape the same
    return int(how == "step" or static or (how == "parts" and row["accelerator"].startswith("GB")))


def _running(row: Mapping[str, str], source: _Source) -> Running:
    return Running(
        dtype=next((dtype for part, dtype in _DTYPES if part in row["precision"]), "bf16"),
        overlap=0 if _baseline(row, source) else source.overlap,
        overlap_tensor=1 if "AsyncTP" in row["model"] else source.overlap_tensor,
        stops_early=int(source.group in _TORCH),
        attention=source.attention,
        graphs=_graphs(row),
        software=_software(row, source.stack),
        expert_tensor=max(1, whole(row.get("etp", ""))),
    )


def _read(row: Mapping[str, str], source: _Source) -> StepRun:
    """One row; raises ``KeyError`` or ``ValueError`` where it does not say enough."""
    spec, layout, seq_len = shape_of_row(row), _layout(row, source), whole(row["seq_len"])
    cluster = _cluster(row, source)
    tokens = int(layout.data * layout.micro_batch * layout.micro_batches) * seq_len / cluster.count
    seconds, how = _seconds(row, source, spec, tokens)
    found = _RELEASE.search(row["source"])
    release = next((part for part in found.groups() if part), "") if found else ""
    bridge = source.stack == "Megatron-Bridge"
    return StepRun(
        name=row["model"],
        spec=spec,
        cluster=cluster,
        layout=layout,
        seq_len=seq_len,
        format=_FORMATS.get(row["precision"], row["precision"]),
        running=_running(row, source),
        implementation=_implementation(row, source),
        seconds=seconds,
        how=how,
        source=row["source"],
        group=f"{source.group} {release}" if bridge else source.group,
        stack="Megatron-2023" if _baseline(row, source) else source.stack,
        year=2000 + int(release[:2]) if bridge else source.year,
        release=release,
        memory_bytes=number(row.get("memory_gb_per_gpu", "")) * source.unit,
        reading=source.reading,
    )


_KINDS: Mapping[str, str] = {
    "estimate": "it is an estimate, not a measurement",
    "memory_estimate": "it counts bytes, and no step was timed",
    "microbenchmark": "it times one layer, not a step",
    "architecture_only": "it gives a shape, and no step was timed",
}


def _unusable(row: Mapping[str, str], source: _Source | None) -> str:
    """Why a row is no measured step, as far as one sees before reading it; empty where it may be one."""
    kind = row.get("kind", "benchmark")
    timed = row.get("step_time_s") or row.get("tokens_per_s_per_gpu")
    if kind in _KINDS:
        return _KINDS[kind]
    if kind == "full_run":
        return "it is a whole run, whose steps are given in passing if at all"
    if row["accelerator"].startswith("TPU"):
        return "the layout on its TPUs is not published"
    if not row["accelerator"] or not row["n_gpus"]:
        return "its accelerator or their number is not given"
    if source is None or not row.get("tp"):
        return "its layout is not published"
    if not (timed or row["tflops_per_gpu"]):
        return "no step was timed"
    if source.group == "NeMo 25.05" and row["model"].startswith("DeepSeek"):
        return "an early release: later ones of the same vendor take less than half as long"
    if row["model"].startswith("GPT OSS") and "26.06.01" in row["source"]:
        return "a regression that the source names as such, resolved in the release after"
    if "LLAMA3_70B" in row["model"] and "micro batch" in row.get("differs", ""):
        return "its printed layout is not that of its release's own recipe"
    return ""


@lru_cache(maxsize=1)
def _sorted_out() -> tuple[tuple[StepRun, ...], tuple[LeftOut, ...], tuple[StepRun, ...]]:
    """Measured steps, rows left out, and rows with a memory reading and a whole layout."""
    steps: list[StepRun] = []
    left: list[LeftOut] = []
    memory: list[StepRun] = []
    settings = {(row["model"], row["source"]): row for row in read_rows("step_settings")}
    for printed in (*read_rows("training_runs"), *read_rows("step_runs_moe")):
        row = {**printed, **settings.get((printed["model"], printed["source"]), {})}
        source = next((one for one in _SOURCES if row["source"].startswith(one.starts)), None)
        reason = _unusable(row, source)
        if source and row.get("memory_gb_per_gpu"):
            memory.append(_read(row, source))
        if not reason and source:
            try:
                steps.append(_read(row, source))
            except (KeyError, ValueError) as error:
                reason = str(error)
        if reason:
            left.append(LeftOut(row["model"], row["source"], reason))
    return tuple(steps), tuple(left), tuple(memory)


def step_runs() -> tuple[StepRun, ...]:
    """Every published row that is a measured step under a known layout, in the tables' order."""
    return _sorted_out()[0]


def left_out() -> tuple[LeftOut, ...]:
    """The other published rows, each with its reason."""
    return _sorted_out()[1]


def memory_runs() -> tuple[StepRun, ...]:
    """Every row with a memory reading and a whole layout; ``seconds`` is NaN where no step was timed."""
    return _sorted_out()[2]


def rows_by(key: Literal["group", "stack"]) -> dict[str, int]:
    """How many measured steps each source, or each software, has."""
    found: dict[str, int] = {}
    for run in step_runs():
        name = getattr(run, key)
        found[name] = found.get(name, 0) + 1
    return found
