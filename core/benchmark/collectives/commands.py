"""The commands that measure collectives, to be copied: on one machine, and under Slurm on several."""

from __future__ import annotations

from core.limits import limit

PORT = 29500
"""Where the nodes meet; torchrun's own choice."""


def _ranks(nodes: int, gpus: int) -> None:
    if nodes < 1 or gpus < 1 or not 2 <= nodes * gpus <= limit("collective_ranks"):
        raise ValueError(
            f"{nodes:,} × {gpus:,} ranks cannot be measured; there are from 2 to {limit('collective_ranks'):,}."
        )


def local_command(gpus: int) -> str:
    """On one machine with so many GPUs. Raises ``ValueError`` for fewer than two ranks, or too many."""
    _ranks(1, gpus)
    return f"torchrun --standalone --nproc-per-node {gpus} -m core.benchmark.collectives --out result.json"


def slurm_script(nodes: int, gpus: int) -> str:
    """A batch script for so many nodes with so many GPUs each: one torchrun a node. Raises as `local_command` does."""
    _ranks(nodes, gpus)
    return f"""#!/bin/bash
#SBATCH --job-name=collectives
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={2 * gpus}
#SBATCH --gpus-per-node={gpus}
#SBATCH --exclusive
#SBATCH --time=00:15:00

# Run it in Napkin's folder, on a file system that all nodes see.
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task={2 * gpus} torchrun --nnodes {nodes} --nproc-per-node {gpus} \\
  --rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID" --rdzv-endpoint "$head:{PORT}" \\
  -m core.benchmark.collectives --out result.json
"""
