"""Works that more than one topic cites; ``.at("section 2.1")`` names the place inside."""

from __future__ import annotations

from core.formula import Source

CS336 = Source("Stanford CS336, lecture 2: PyTorch, resource accounting", url="https://stanford-cs336.github.io/")
DEEPSEEK_V2 = Source("DeepSeek-AI 2024, DeepSeek-V2", url="https://arxiv.org/abs/2405.04434")
DEEPSEEK_V3 = Source("DeepSeek-AI 2024, DeepSeek-V3", url="https://arxiv.org/abs/2412.19437")
MEGATRON_OPTIMIZER = Source(
    "Megatron Core, Distributed Optimizer",
    "table of bytes per parameter",
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/distrib_optimizer.html",
)
MIXTRAL = Source("Jiang et al. 2024, Mixtral of Experts", "section 2", "https://arxiv.org/abs/2401.04088")
ML_ENGINEERING = Source(
    "Bekman, Machine Learning Engineering Open Book",
    url="https://github.com/stas00/ml-engineering/tree/master/compute/accelerator",
)
OCP_MX = Source(
    "OCP Microscaling Formats (MX) Specification 1.0",
    "section 5",
    "https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf",
)
OWN_CONSTRUCTION = Source("Napkin’s own construction")
PALM = Source("Chowdhery et al. 2022, PaLM", url="https://arxiv.org/abs/2204.02311")
ZERO = Source("Rajbhandari et al. 2019, ZeRO", url="https://arxiv.org/abs/1910.02054")
