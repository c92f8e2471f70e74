"""Reads files as DeepSpeed does, in a process of its own: pairs of text and data-parallel ranks in, what it read out.

A key that DeepSpeed never asks for would be passed over without a word, so it is a refusal here.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

logging.disable(logging.CRITICAL)


class Watched(dict[str, Any]):
    """A file's object that remembers what was asked of it, and its copies with it."""

    asked: set[str]

    def __copy__(self) -> Watched:
        watched = Watched(self)
        watched.asked = self.asked
        return watched

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


def read(text: str, ranks: int) -> dict[str, Any]:
    from deepspeed.runtime import config

    config.dist = SimpleNamespace(get_rank=lambda: 0)
    watched = Watched(json.loads(text))
    watched.asked = set()
    try:
        result = config.DeepSpeedConfig(watched, mpu=SimpleNamespace(get_data_parallel_world_size=lambda: ranks))
        summed = result.grad_accum_dtype and config.DtypeEnum(result.grad_accum_dtype).name  # as its engine reads it
    except Exception as problem:
        return {"refused": f"{type(problem).__name__}: {problem}"}
    if left := set(watched) - watched.asked:
        return {"refused": f"nobody asks for {sorted(left)}"}
    half, brain, zero = result.float16_config, result.bfloat16_config, result.zero_config
    return {
        "weights": "bf16" if brain.enabled else "fp16" if half.enabled else "fp32",
        "grad_accum_dtype": summed,
        "bf16_master_weights_and_grads": brain.bf16_master_weights_and_grads,
        "bf16_optimizer_states": brain.bf16_optimizer_states,
        "autocast": config.DtypeEnum(result.torch_autocast_dtype).name if result.torch_autocast_enabled else None,
        "stage": int(zero.stage),
        "offload": zero.offload_optimizer is not None,
        "batch": result.train_batch_size,
    }


def main() -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        rows = [read(text, ranks) for text, ranks in json.load(sys.stdin)]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
