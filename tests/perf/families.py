"""Every causal language model of transformers from its default config: what it has, and what Napkin reads.

``python -m tests.perf families`` reads each one by formula and by the building process, and prints where they differ
from what plain transformers builds. ``python -m tests.perf.families --write`` keeps plain transformers' totals in
tests/data/family_parameters.csv, which the tests hold the formulas to. Names of families limit either.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

TABLE = Path(__file__).parents[1] / "data" / "family_parameters.csv"
COLUMNS = ("model_type", "class", "parameters", "refused", "transformers")
SEQ = 512


def families() -> list[str]:
    """Every ``model_type`` that transformers has a causal language model for."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def plain(model_type: str) -> dict[str, str]:
    """What transformers alone builds from the default config: a row of the table."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    row = {"model_type": model_type, "class": "", "parameters": "", "refused": ""}
    row["transformers"] = transformers.__version__
    try:
        config = CONFIG_MAPPING[model_type]()
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as problem:
        return {**row, "refused": f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:160]}
    total = sum(parameter.numel() for parameter in model.parameters())
    return {**row, "class": type(model).__name__, "parameters": str(total)}


def table() -> list[dict[str, str]]:
    """The stored rows."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(names: Sequence[str]) -> None:
    """Build every family plainly and keep the totals."""
    rows: list[dict[str, str]] = []
    for name in names:
        rows.append(plain(name))
        print(rows[-1], flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def sweep(names: Sequence[str]) -> None:
    """Read every family's default config by formula and by building, and print what disagrees with the table."""
    from core.jobs.queue import WaitingLine
    from core.models.building.events import ModelRefused
    from core.models.building.jobs import BuildRunner
    from core.models.configs.config import read_hf_config
    from core.models.configs.json_text import ConfigError
    from core.models.parameters import parameters

    known = {row["model_type"]: row for row in table()}
    tally = dict.fromkeys(("by formula", "by building", "FLOPs counted", "refused", "transformers cannot", "wrong"), 0)
    slowest = (0.0, "")
    runner = BuildRunner(WaitingLine(Path(tempfile.mkdtemp())))
    for name in names:
        row = known[name]
        text = f'{{"model_type": "{name}"}}'
        start = time.perf_counter()
        built = runner.build(text, SEQ)
        slowest = max(slowest, (time.perf_counter() - start, name))
        try:
            read = read_hf_config(text)
            formula = None if read.part else parameters(read.spec).total
        except ConfigError:
            formula = None
        message = "" if isinstance(built, ModelRefused) else str(built.total)
        tally["by formula"] += formula is not None and str(formula) == row["parameters"]
        tally["by building"] += bool(message) and message == row["parameters"]
        tally["FLOPs counted"] += not isinstance(built, ModelRefused) and bool(built.flop)
        if not row["parameters"]:
            tally["transformers cannot"] += 1
            print(f"{name:<28} transformers cannot: {row['refused'][:90]}", flush=True)
        elif isinstance(built, ModelRefused):
            tally["refused"] += 1
            print(f"{name:<28} refused: {built.reason[:90]}", flush=True)
        elif not built.flop:
            print(f"{name:<28} FLOPs: {built.flop_refused[:90]}", flush=True)
        if any(
            row["parameters"] and result not in (None, "", row["parameters"])
            for result in (formula and str(formula), message)
        ):
            tally["wrong"] += 1
            print(f"{name:<28} WRONG: formula {formula}, built {message}, transformers {row['parameters']}", flush=True)
    print(f"{len(names)} families at {SEQ} tokens: " + ", ".join(f"{key} {value}" for key, value in tally.items()))
    print(f"slowest: {slowest[1]}, {slowest[0]:.1f} s")


def main(argv: Sequence[str] = ()) -> None:
    """Sweep, or with ``--write`` keep the table."""
    names = [name for name in argv if not name.startswith("--")] or families()
    (write if "--write" in argv else sweep)(names)


if __name__ == "__main__":
    main(sys.argv[1:])
