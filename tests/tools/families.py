"""Parameters of every causal language model of transformers by its default config, for the tests to hold formulas to.

``python -m tests.tools.families`` builds them all, which takes half an hour, and keeps their totals in
tests/data/family_parameters.csv.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

TABLE = Path(__file__).parents[1] / "data" / "family_parameters.csv"
COLUMNS = ("model_type", "class", "parameters", "refused", "transformers")


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


def write() -> None:
    """Build every family plainly and keep the totals."""
    rows: list[dict[str, str]] = []
    for name in families():
        rows.append(plain(name))
        print(rows[-1], flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    write()
