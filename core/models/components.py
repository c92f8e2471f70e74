"""Components of a model as people read them: each with its operations, parameters, FLOPs, and the formula of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.formula import Explanation, Source, Symbol, explanation
from core.limits import cached
from core.models.flop_formulas import MEGATRON
from core.models.operation import Convolution, GroupedLinear, Linear, Logits, Lookup, Op, Scan
from core.models.operations import operations, write_operations
from core.models.spec import TransformerSpec
from core.models.symbols import SYMBOLS, count, symbol, symbolic
from core.sources import DEEPSEEK_V2, DEEPSEEK_V3, MIXTRAL

Group: TypeAlias = Literal["embedding", "attention", "feed-forward", "experts", "norms", "head", "prediction", "mixers"]
"""Part of the model that a component belongs to."""

Amount: TypeAlias = Literal["parameters", "active", "flop"]

_GPT2 = Source("Radford et al. 2019, GPT-2; shapes in nanoGPT", "model.py", "https://github.com/karpathy/nanoGPT")
_LLAMA = Source("Touvron et al. 2023, LLaMA", "section 2.2", "https://arxiv.org/abs/2302.13971")
_GQA = Source("Ainslie et al. 2023, GQA", "section 2", "https://arxiv.org/abs/2305.13245")
_GLU = Source("Shazeer 2020, GLU Variants Improve Transformer", "section 2", "https://arxiv.org/abs/2002.05202")
_LATENT = DEEPSEEK_V2.at("sections 2.1 and 3.1.2")
_QK_NORM = Source("Dehghani et al. 2023, ViT-22B", "section 2", "https://arxiv.org/abs/2302.05442")
_OPT = Source("Zhang et al. 2022, OPT", "metaseq, 350M configuration", "https://github.com/facebookresearch/metaseq")
_XIELU = Source("Huang and Schlag 2024, Deriving Activation Functions", "xIELU", "https://arxiv.org/abs/2411.13010")
_GPTJ = Source(
    "Wang and Komatsuzaki 2021, GPT-J", "CausalTransformerShard", "https://github.com/kingoflolz/mesh-transformer-jax"
)
_GPT_OSS = Source("OpenAI 2025, gpt-oss", "model card, section 2", "https://arxiv.org/abs/2508.10925")
_MAMBA = Source("Gu and Dao 2023, Mamba", "sections 3.2 and 3.4", "https://arxiv.org/abs/2312.00752")
_MAMBA2 = Source("Dao and Gu 2024, Mamba-2", "section 7", "https://arxiv.org/abs/2405.21060")
_DELTA = Source("Yang et al. 2024, Gated Delta Networks", "section 3.4", "https://arxiv.org/abs/2412.06464")
_KIMI = Source("Kimi Team 2025, Kimi Linear", "section 3", "https://arxiv.org/abs/2510.26692")
_SPARSE = Source("DeepSeek-AI 2025, DeepSeek-V3.2", "section 2.1", "https://arxiv.org/abs/2512.02556")
_V4 = Source(
    "DeepSeek-AI 2026, DeepSeek-V4",
    "transformers, modeling_deepseek_v4.py",
    "https://github.com/huggingface/transformers/tree/main/src/transformers/models/deepseek_v4",
)
_NEMOTRON = Source("NVIDIA 2025, Nemotron 3", "section 2.2", "https://arxiv.org/abs/2512.20856")
_GEMMA = Source(
    "Google 2025, Gemma 3n", "modeling_gemma3n.py", "https://github.com/huggingface/transformers/tree/main/src"
)
_STATES = (_MAMBA, _MAMBA2, _DELTA)
_GROUPED = "With grouped queries, keys and values have fewer heads than queries, each used by several of them."
_DOWN_AND_UP = "Latent attention projects down to a rank and up to all heads. A rotary key is shared by all heads."
_MIXER_INPUT = "Values, a gate as wide, keys and queries (B and C), and what steers the state."
_SELECTION = (
    "The values give Mamba its step size, B, and C, and the rank of the step size one for each channel. A delta rule "
    "gated by channel makes its decay and its gate from such ranks."
)
_LEARNED = (
    "Mamba has a decay for every row of a channel’s state, and a skip. Mamba-2 has a decay, a skip, and a step size "
    "per head, the delta rule a decay and a step size."
)
_SCAN = (
    "By Megatron-LM’s convention: 7 operations for each number of the state of a state space, and four multiply-adds "
    "for the gated delta rule. Kernels that work in chunks multiply more, which is not counted."
)
_MATRICES = "A gated network (SwiGLU) has three matrices: gate, up, and down. A plain one has two."
_PREDICTION = (
    "Each module is one more layer, a projection of two hidden vectors to one, and three norms. It uses the model’s "
    "embedding and output head once more. Its attention scores and values count with those of the other layers."
)
_INNER_NORMS = "self_attn.q_norm self_attn.k_norm self_attn.q_a_layernorm self_attn.kv_a_layernorm"
_STATE_NORMS = "mamba.norm mamba.dt_layernorm mamba.b_layernorm mamba.c_layernorm"
_LATENT_EXPERTS = "Routed experts compute in a narrower width, with a projection each way."
_LOOKED_UP = "Each layer looks up a short vector of every token, and lets a gate add it."
_INDEXER = (
    "self_attn.indexer.wq_b self_attn.indexer.wk self_attn.indexer.weights_proj self_attn.indexer.q_norm "
    "self_attn.indexer.k_norm self_attn.indexer.kv_proj self_attn.indexer.gate_proj self_attn.indexer.position_bias "
    "self_attn.indexer.kv_norm"
)
_COMPRESSOR = (
    "self_attn.compressor.kv_proj self_attn.compressor.gate_proj self_attn.compressor.position_bias "
    "self_attn.compressor.kv_norm"
)
_LAYER_EMBEDDING = (
    "embed_tokens_per_layer per_layer_model_projection per_layer_projection_norm per_layer_input_gate "
    "per_layer_projection post_per_layer_input_norm"
)
_NORMS = (
    "mlp.gate_norm mlp.latent_norm embed_layernorm input_layernorm post_attention_layernorm "
    "pre_feedforward_layernorm post_feedforward_layernorm norm"
)
_EXPERTS, _SHARED = (
    f"mlp.{which}.gate_proj mlp.{which}.up_proj mlp.{which}.down_proj" for which in ("experts", "shared_expert")
)


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """A component. operations: names of its operations and weights, by spaces. detail: a remark on its formula."""

    name: str
    group: Group
    operations: str = ""
    sources: tuple[Source, ...] = ()
    detail: str = ""


ROWS: Mapping[str, ComponentRow] = {
    "embedding": ComponentRow("Token embedding", "embedding", "embed_tokens", (_GPT2,), "One row per token."),
    "joints": ComponentRow(
        "Embedding projections", "embedding", "project_in project_out", (_OPT,), "One from and one to a narrow table."
    ),
    "positions": ComponentRow("Position table", "embedding", "embed_positions", (_GPT2,), "One row per position."),
    "qkv": ComponentRow(
        "Q, K, V", "attention", "self_attn.q_proj self_attn.k_proj self_attn.v_proj", (_GQA,), _GROUPED
    ),
    "queries": ComponentRow("Queries", "attention", "self_attn.q_a_proj self_attn.q_b_proj", (_LATENT,), _DOWN_AND_UP),
    "queries_unranked": ComponentRow("Queries", "attention", "", (_LATENT,), "One projection to all heads."),
    "keys_values": ComponentRow(
        "Keys and values", "attention", "self_attn.kv_a_proj_with_mqa self_attn.kv_b_proj", (_LATENT,), _DOWN_AND_UP
    ),
    "inner_norms": ComponentRow(
        "Norms inside attention", "norms", _INNER_NORMS, (_QK_NORM, _LATENT), "Of queries and keys, or of both latents."
    ),
    "sinks": ComponentRow("Attention sinks", "attention", "self_attn.sinks", (_GPT_OSS,), "One logit per query head."),
    "attention_gate": ComponentRow(
        "Attention gate", "attention", "self_attn.g_proj", (_DELTA,), "A number for each value, or for each head."
    ),
    "indexer": ComponentRow(
        "Indexer",
        "attention",
        _INDEXER,
        (_SPARSE,),
        "Small queries and keys, whose scores choose tokens for attention.",
    ),
    "index_scores": ComponentRow("Indexer scores", "attention"),
    "index_values": ComponentRow("Indexer scores, weighed", "attention"),
    "compressor": ComponentRow(
        "Compressed keys", "attention", _COMPRESSOR, (_V4,), "One key, which is its value, too, for several tokens."
    ),
    "streams": ComponentRow(
        "Hyper-connections",
        "attention",
        "hyper_connection.fn hyper_connection.base",
        (_V4,),
        "Weights that mix several residual streams before and after each block.",
    ),
    "scores": ComponentRow("Attention scores", "attention"),
    "values": ComponentRow("Attention values", "attention"),
    "window_scores": ComponentRow("Attention scores, windowed", "attention"),
    "window_values": ComponentRow("Attention values, windowed", "attention"),
    "scan": ComponentRow("State: moved on and read", "mixers", "mamba.scan", _STATES, _SCAN),
    "output": ComponentRow(
        "Attention output",
        "attention",
        "self_attn.o_a_proj self_attn.o_proj",
        (_LLAMA,),
        "From all query heads to the hidden width.",
    ),
    "mixer_input": ComponentRow("State: first projection", "mixers", "mamba.in_proj", _STATES, _MIXER_INPUT),
    "convolution": ComponentRow(
        "State: convolution", "mixers", "mamba.conv1d", _STATES, "Each channel has its own kernel over the last tokens."
    ),
    "selection": ComponentRow(
        "State: selection",
        "mixers",
        "mamba.x_proj mamba.dt_proj mamba.f_b_proj mamba.g_b_proj",
        (_MAMBA, _KIMI),
        _SELECTION,
    ),
    "state": ComponentRow(
        "State: decay and step", "mixers", "mamba.A_log mamba.D mamba.A_log,D,dt_bias", _STATES, _LEARNED
    ),
    "mixer_norms": ComponentRow(
        "State: norms", "norms", _STATE_NORMS, _STATES, "Of the output, or of step size, B, and C."
    ),
    "mixer_output": ComponentRow("State: output", "mixers", "mamba.out_proj", _STATES, "Back to the hidden width."),
    "ffn": ComponentRow("Feed-forward", "feed-forward", "mlp.gate_proj mlp.up_proj mlp.down_proj", (_GLU,), _MATRICES),
    "gate": ComponentRow("Feed-forward gate", "feed-forward", "mlp.gate_proj", (_GLU,)),
    "up": ComponentRow("Feed-forward up", "feed-forward", "mlp.up_proj", (_GLU,)),
    "down": ComponentRow("Feed-forward down", "feed-forward", "mlp.down_proj", (_GLU,)),
    "activation": ComponentRow("Activation function", "feed-forward", "mlp.act_fn", (_XIELU,), "Two numbers in xIELU."),
    "router": ComponentRow(
        "Router", "experts", "mlp.gate mlp.gate.scale", (MIXTRAL,), "A score for every expert, chosen or not."
    ),
    "experts": ComponentRow("Routed experts", "experts", _EXPERTS, (_GLU, MIXTRAL), f"A token runs some. {_MATRICES}"),
    "expert_latent": ComponentRow(
        "Expert projections", "experts", "mlp.latent_in_proj mlp.latent_out_proj", (_NEMOTRON,), _LATENT_EXPERTS
    ),
    "shared": ComponentRow(
        "Shared experts", "experts", _SHARED, (_GLU, DEEPSEEK_V2), f"Every token runs all. {_MATRICES}"
    ),
    "shared_gate": ComponentRow(
        "Gate of the shared experts", "experts", "mlp.shared_expert_gate", (MIXTRAL,), "One row of the hidden width."
    ),
    "norms": ComponentRow(
        "Norms", "norms", _NORMS, (_LLAMA,), "RMSNorm has a gain, LayerNorm a gain and mostly a bias."
    ),
    "layer_embedding": ComponentRow("Embedding of layers", "embedding", _LAYER_EMBEDDING, (_GEMMA,), _LOOKED_UP),
    "prediction": ComponentRow(
        "Multi-token prediction", "prediction", "", (DEEPSEEK_V3.at("section 2.2"),), _PREDICTION
    ),
    "head": ComponentRow(
        "Output head", "head", "lm_head", (_GPT2,), "Logits, whether or not its matrix is the embedding."
    ),
    "head_bias": ComponentRow(
        "Bias of the head", "head", "lm_head.bias", (_GPTJ,), "One number per token of the vocabulary."
    ),
}
"""Id → component, in the order in which a token meets them."""

_PARAMETER_ROWS = {
    n: key for key, row in ROWS.items() if key not in ("gate", "up", "down") for n in row.operations.split()
}
_FLOP_ROWS = {n: key for key, row in ROWS.items() if key not in ("ffn", "positions") for n in row.operations.split()}

_PARAMETERS, _FLOP = count("N", "parameters"), Symbol("F", "forward FLOPs per token", "flop")


def row_name(spec: TransformerSpec, key: str) -> str:
    """Return the component’s name. Only beside experts do ordinary feed-forward networks need an adjective."""
    return ROWS[key].name.replace("Feed-forward", "Dense feed-forward" if spec.experts else "Feed-forward")


@dataclass(frozen=True, slots=True)
class ModelPart:
    """A component of one model, by the key of its row."""

    spec: TransformerSpec
    id: str

    @property
    def name(self) -> str:
        """The displayed name."""
        return row_name(self.spec, self.id)

    @property
    def group(self) -> Group:
        """The part of the model that it belongs to."""
        return ROWS[self.id].group


def weight_flop(op: Op) -> int:
    """Return forward FLOPs of one run that multiply by a weight (a lookup by a one-hot vector) or move a state."""
    if isinstance(op, Linear | Lookup | Convolution):
        return 2 * op.weights[0].rows * op.weights[0].columns * op.copies
    return op.flop * op.makes[0].width * op.state if isinstance(op, Scan) else 0


def amounts(
    spec: TransformerSpec, ops: tuple[Op, ...], of: Amount, without: tuple[type[Op], ...] = ()
) -> Iterator[tuple[str, Op, int]]:
    """Yield component, operation, and amount of one run. without: kinds of operations that are left out."""
    for op in ops:
        predicts = op.block == "mtp"
        if of == "flop":
            flop = 0 if isinstance(op, without) else weight_flop(op)
            key = "prediction" if predicts else _key(spec, op.name, _FLOP_ROWS)
            if flop and key and not (predicts and isinstance(op, Lookup)):
                yield key, op, flop
            continue
        for weight in op.weights:
            if not weight.shared:
                run = op.copies if of == "active" and isinstance(op, GroupedLinear) else weight.count
                key = "prediction" if predicts else _key(spec, weight.name, _PARAMETER_ROWS)
                yield key, op, weight.rows * weight.columns * run


def _key(spec: TransformerSpec, name: str, keys: Mapping[str, str]) -> str:
    """Return the component of an operation or a weight, or an empty string."""
    key = keys.get(name) or keys.get(name.removesuffix(".bias"), "")
    return "queries_unranked" if key == "qkv" and spec.latent else key


@cached("small_results_kept")
def totals(spec: TransformerSpec, of: Amount, without: tuple[type[Op], ...] = ()) -> Mapping[str, int]:
    """Return each component’s amount over all layers, in the order in which a token meets them."""
    sums: dict[str, int] = {}
    for key, op, amount in amounts(spec, operations(spec), of, without):
        sums[key] = sums.get(key, 0) + op.layers * amount
    return {key: sums[key] for key in ROWS if key in sums}


@cached("results_kept")
def _symbolic_operations(spec: TransformerSpec) -> tuple[Op, ...]:
    return write_operations(symbolic(spec))


def explain_row(spec: TransformerSpec, key: str, of: Amount, without: tuple[type[Op], ...] = ()) -> Explanation:
    """Return the formula of a component’s amount, under the component’s name."""
    own = [part for part in amounts(spec, _symbolic_operations(spec), of, without) if part[0] == key]
    often = {op.layers for _, op, _ in own}
    if key == "prediction":
        layer = sum(amount for _, op, amount in own if _in_decoder_layer(op))
        module = sum(amount for _, op, amount in own if not _in_decoder_layer(op))
        total = symbol("modules", *often) * (symbol("layer_flop" if of == "flop" else "layer", layer) + module)
    elif len(often) > 1 and len({amount for *_, amount in own}) == 1:  # norms, which are all alike
        total = symbol("times", sum(op.layers for _, op, _ in own)) * own[0][2]
    elif len(often) > 1:
        first, *rest = (symbol("layers", op.layers) * amount for _, op, amount in own)
        total = sum(rest, first)
    else:
        total = symbol("layers", *often) * sum(amount for _, _, amount in own)
    row, values = ROWS[key], total.values
    return explanation(
        f"{key}: {total.latex}",
        row_name(spec, key),
        row.detail,
        total.latex,
        _FLOP if of == "flop" else _PARAMETERS,
        {name: SYMBOLS[name] for name in values},
        values,
        total,
        (*row.sources, MEGATRON) if of == "flop" else row.sources,
    )


def _in_decoder_layer(op: Op) -> bool:
    """Whether an operation of multi-token prediction belongs to the layer that it repeats."""
    return not op.name.startswith("mtp.") and not isinstance(op, Logits)
