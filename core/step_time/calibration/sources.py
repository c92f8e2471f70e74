"""How published steps were run: what each source says, and one rule for each thing that it leaves open.

``step_settings.csv`` holds what the tables of Megatron-Bridge do not print, from its own recipes: those under
``scripts/performance/configs`` on the branch of each release (r0.1.0 for 25.09 to r0.6.0 for 26.08) that have the
printed degrees and batch; ``differs`` names what they have otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.hardware.accelerators import find
from core.hardware.cluster import Cluster
from core.rows import whole
from core.step_time.running import GROUPED, Kernel, Running, Software, Tuning, launches_hidden
from core.training.activations.tensors import FUSED, FUSED_DTENSOR, IMPLEMENTATIONS, MEGATRON_GPT, Implementation
from core.training.layout import MODULES, Layout, Recompute, recomputation

Reading: TypeAlias = Literal["process", "reserved", "tensors"]
"""What was read of memory: all of a process, as the driver says; what the allocator reserved; a sum of tensors."""

Convention: TypeAlias = Literal["hardware", "full", "causal"]
"""FLOPs of a token: with every layer's forward done twice (Narayanan); of the model, attention's square whole or cut in
half."""


@dataclass(frozen=True, slots=True)
class StepSource:
    """What holds for all rows of a source.

    starts: how its citation starts.  zero, interleave, recompute: where its rows name none.
    parallel: whether norms are split over tensor-parallel ranks where its rows do not say.
    network: bytes per second of one accelerator to other nodes, where it is not the usual one of its accelerator.
    convention: of its FLOP/s.  unit: bytes of its memory column's unit.  attention: its fused kernel on Hopper.
    overlap_tensor: of tensor-parallel communication, where it differs from that of data parallelism.  tuned: who made
    its runs fast.
    """

    starts: str
    group: str
    stack: str
    year: int
    overlap: float = 1
    implementation: Implementation = FUSED
    zero: int = 1
    interleave: int = 1
    parallel: bool = True
    network: float | None = None
    convention: Convention = "causal"
    reading: Reading = "reserved"
    unit: float = 2.0**30
    attention: Kernel = "newest"
    overlap_tensor: int | None = None
    tuned: Tuning = "writers"


_OLD = StepSource(
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
_TITAN = StepSource(
    "pytorch/torchtitan",
    "torchtitan",
    "torchtitan",
    2024,
    implementation=FUSED_DTENSOR,
    attention="fa2",
    overlap_tensor=0,
)
_MAXTEXT = StepSource("AI-Hypercomputer/maxtext src", "MaxText", "MaxText", 2024, convention="full")
SOURCES = (
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
        tuned="users",
        network=6.25e9,  # Jean Zay has four links of 100 Gb/s for eight accelerators
        reading="process",
        unit=1e9,
    ),
    StepSource("arXiv:2402.15627", "MegaScale", "MegaScale", 2024, convention="full"),
    # Interleaved, of unknown depth: down to one layer in a chunk, as in the same model's row of NeMo 24.07.
    StepSource("arXiv:2406.11704", "Nemotron-4", "Megatron-Core 2024", 2024, interleave=8, convention="full"),
    # Sharded gradients and optimizer states; weights stay whole between forward and backward (section 3.3.2).
    StepSource("arXiv:2407.21783", "Llama 3", "Llama 3", 2024, zero=2, interleave=8, overlap_tensor=0),
    StepSource("mosaicml/llm-foundry", "llm-foundry", "llm-foundry", 2023, convention="full", attention="triton"),
    StepSource("NVIDIA/NeMo ", "NeMo 24.07", "NeMo 24.07", 2024, convention="full"),
    StepSource("NVIDIA/Megatron-LM examples/llama", "Megatron-LM Llama", "Megatron-Core 2024", 2024, convention="full"),
    StepSource("NVIDIA-NeMo/Megatron-Bridge", "Megatron-Bridge", "Megatron-Bridge", 2025),
    StepSource("NVIDIA/dgxc-benchmarking", "NeMo 25.05", "NeMo 25.05", 2025),
    _TITAN,
    replace(_TITAN, starts="mlc-ai/pith-train", group="torchtitan 2026", year=2026, tuned="users"),
    StepSource("NVIDIA-NeMo/Automodel", "NeMo AutoModel", "NeMo AutoModel", 2025, overlap_tensor=0),
    # SDPA's FlashAttention-2; hosts of 400 Gb/s with A100s, of 800 Gb/s with H100s.
    StepSource("foundation-model-stack/fms-fsdp", "fms-fsdp", "fms-fsdp", 2024, attention="fa2", overlap_tensor=0),
    # A chip’s batch and degrees are those of its scripts; with several slices the network between them is not printed.
    _MAXTEXT,
    replace(_MAXTEXT, starts="AI-Hypercomputer/maxtext docs", group="MaxText tiers", year=2025),
    # Steps that this program ran itself; its rows say how their layers are written, and what runs them.
    StepSource("make gpu", "PyTorch 2.11, one H100", "PyTorch 2.11", 2026, reading="tensors", tuned="nobody"),
    # Its configurations overlap the reduction of gradients (overlap_sync_grad), not the gathering of weights.
    StepSource("InternLM/InternEvo", "InternEvo", "InternEvo", 2023, overlap=0.5, overlap_tensor=0, network=6.25e9),
)

_DTYPES = (("fp4", "fp4"), ("fp8", "fp8"), ("fp16", "fp16"))

_RACK = 64
"""Accelerators of one NVL72 rack that a job of more than one takes: degrees of a layout are powers of two."""


def is_baseline(row: Mapping[str, str], source: StepSource) -> bool:
    """Whether it is what MegaScale measures itself against: Megatron-LM of 2023, without its overlap."""
    return source.group == "MegaScale" and row["model"].startswith("Megatron")


def implementation_of(row: Mapping[str, str], source: StepSource) -> Implementation:
    if row.get("implementation"):
        return IMPLEMENTATIONS[row["implementation"]]
    return MEGATRON_GPT if is_baseline(row, source) else source.implementation


def _recompute(row: Mapping[str, str], source: StepSource) -> int:
    how = row.get("recompute", "")
    if how.startswith("modules "):
        return recomputation(0, sum(MODULES[name] for name in how.split()[1:]))
    if "full" in how or "per-op" in how:
        return Recompute.FULL if "full" in how else Recompute.PER_OPERATION
    # MegaScale's baseline kept its scores and fits 80 GB only where it computes them again.
    return Recompute.SELECTIVE if "selective" in how or is_baseline(row, source) else Recompute.NONE


def _zero(row: Mapping[str, str], source: StepSource) -> int:
    split = row.get("zero_fsdp", "")
    if source.group == "Llama 3":
        return source.zero
    if "SHARD_GRAD_OP" in split or split == "ZeRO-2":
        return 2
    # One copy of 70 B parameters fits no accelerator beside its gradients, whatever the column says.
    whole_copy = source.stack == "Megatron-Bridge" and "70B" in row["model"] and row["tp"] == row["pp"] == "1"
    if "FSDP" in split or split == "ZeRO-3" or whole_copy:
        return 3
    # What lies on the ranks of a node alone is sent between nodes as where nothing is divided.
    return {"ZeRO-1": 1, "none (ZeRO-0)": 0, "ZeRO-1 in a node": 0, "HSDP": 0}.get(split, source.zero)


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


def layout_of(row: Mapping[str, str], source: StepSource) -> Layout:
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
    if data * tensor * context % max(1, whole(row["ep"])):
        raise ValueError("its experts do not divide over the ranks that its pipeline leaves")
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        interleave=interleave if pipeline > 1 else 1,
        context=context,
        expert=max(1, whole(row["ep"])),
        expert_tensor=whole(row.get("etp", "")),
        data=data,
        micro_batch=micro,
        micro_batches=batch // (data * micro),
        zero=_zero(row, source),
        sequence_parallel=int(tensor > 1 and (source.parallel or "SP" in row.get("recompute", ""))),
        recompute=_recompute(row, source),
    )


def cluster_of(row: Mapping[str, str], source: StepSource) -> Cluster:
    accelerator, count = find(row["accelerator"]), whole(row["n_gpus"])
    network = accelerator.network if source.network is None else source.network
    node = accelerator.node_size
    return Cluster(replace(accelerator, network=network), count, _RACK if node > _RACK and count > node else node)


_UNCOMPILED = ("(FSDP)", "(FSDP 128 GPUs)")
"""How torchtitan's rows end that were not compiled."""

_COMPILED = ("torchtitan", "NeMo AutoModel", "fms-fsdp")
"""Stacks of torch's own sharding whose layers are compiled or fused by hand."""

_SKIPS_LAST_PRODUCT = ("llm-foundry", "InternEvo", "PyTorch 2.11", "MaxText", *_COMPILED)
"""Stacks whose checkpoints are torch's non-reentrant ones, or done again by a compiler that knows what is read."""


def _software(row: Mapping[str, str], stack: str) -> Software:
    for name in GROUPED:
        if row.get("software") == name:
            return name
    # The ZeRO-3 rows of Narayanan's Table 2 are DeepSpeed's.
    if stack == "DeepSpeed-2021" or row.get("zero_fsdp") == "ZeRO-3":
        return "deepspeed 2021"
    if stack == "llm-foundry" or (stack == "torchtitan" and row["model"].endswith(_UNCOMPILED)):
        return "eager"
    if stack in _COMPILED:
        return "compiled"
    if stack in ("InternEvo", "MaxText"):
        return "internevo" if stack == "InternEvo" else "jax"
    # Recipes that capture a whole step fuse the experts' products and run their exchange beside other work as well.
    return "megatron tuned" if row.get("dispatch") and row.get("graphs") == "step" else "megatron"


def _graphs(row: Mapping[str, str]) -> int:
    """Whether the host’s launches do not show, by the release's own recipe. Dense layers never show them."""
    static = "tokendrop" in row["model"]  # dropped tokens keep every shape the same
    if row.get("software") == "eager":
        return 0
    how = row.get("graphs", "step") if row.get("dispatch") and not static else "step"
    return launches_hidden(how, row["accelerator"])


_DROPPED = 1.25
"""Places for tokens over the even share that MaxText's mixtures with dropped tokens work through, full or not."""


def running_of(row: Mapping[str, str], source: StepSource) -> Running:
    return Running(
        dtype=next((dtype for part, dtype in _DTYPES if part in row["precision"]), "bf16"),
        overlap=0 if is_baseline(row, source) else source.overlap,
        overlap_tensor=1 if "AsyncTP" in row["model"] else source.overlap_tensor,
        skips_last_product=int(source.stack in _SKIPS_LAST_PRODUCT),
        scattered=int(not source.parallel),
        imbalance=_DROPPED if "dropped" in row["model"] else 1.0,
        attention=source.attention,
        graphs=_graphs(row),
        software=_software(row, source.stack),
        tuned_by=source.tuned,
    )


def source_of(row: Mapping[str, str]) -> StepSource | None:
    """The source of a row, where its steps can be read."""
    return next((source for source in SOURCES if row["source"].startswith(source.starts)), None)
