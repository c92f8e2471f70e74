"""What torch.nn.functional computes: activations, normalisation, layers, attention, losses."""

from __future__ import annotations

from core.tensors.operations import guards_of_results, guards_of_values
from core.tensors.operations.operation import COMPUTED, EITHER, EVERY, FUNCTIONAL, NUMBER, Operation, Takes, computed

ACTIVATIONS = ("relu6", "silu", "mish", "softsign", "tanhshrink", "logsigmoid", "hardswish", "hardsigmoid", "selu")
"""One tensor in, one of its shape out."""

_DROPPED = "which elements are zeroed is random, so here none is and none grows; with training=False it does nothing"
_LOSS: tuple[Takes, ...] = ("tensor", "text", "float", "int", "none")

_ACTIVE: tuple[Operation, ...] = (
    computed("relu", "x.relu()", ("bool",), ("inplace",), EVERY, guards_of_results.outside),
    *(
        computed(name, f"F.{name}(x.float())", ("bool",), ("inplace",), FUNCTIONAL, guards_of_results.outside)
        for name in ACTIVATIONS
        if name not in ("softsign", "tanhshrink", "logsigmoid", "selu")
    ),
    computed("selu", "F.selu(x.float())", ("bool",), ("inplace",), (*FUNCTIONAL, "torch"), guards_of_results.outside),
    *(computed(name, f"F.{name}(x.float())", forms=FUNCTIONAL) for name in ("softsign", "tanhshrink", "logsigmoid")),
    computed("gelu", "F.gelu(x.float())", ("text",), ("approximate",), FUNCTIONAL),
    *(
        computed(
            name,
            f"F.{name}(x.float())",
            (*NUMBER, "bool"),
            (*parameters, "inplace"),
            FUNCTIONAL,
            guards_of_results.outside,
        )
        for name, parameters in (
            ("leaky_relu", ("negative_slope",)),
            ("elu", ("alpha",)),
            ("celu", ("alpha",)),
            ("hardtanh", ("min_val", "max_val")),
        )
    ),
    *(
        computed(name, f"F.{name}(x.float())", NUMBER, parameters, FUNCTIONAL)
        for name, parameters in (
            ("softplus", ("beta", "threshold")),
            ("softshrink", ("lambd",)),
            ("hardshrink", ("lambd",)),
        )
    ),
    computed(
        "threshold",
        "F.threshold(x.float(), 2, 0)",
        (*NUMBER, "bool"),
        ("threshold", "value", "inplace"),
        FUNCTIONAL,
        guards_of_results.outside,
    ),
    computed("prelu", "F.prelu(x.float(), torch.ones(3))", ("tensor",), ("weight",), (*FUNCTIONAL, "torch")),
    computed("glu", "F.glu(torch.ones(2, 4))", ("int",), ("dim",), FUNCTIONAL),
    *(
        computed(name, f"x.float().{name}(-1)", ("int", "dtype"), ("dim", "dtype"), EVERY, guards_of_results.along)
        for name in ("softmax", "log_softmax")
    ),
    computed(
        "softmin", "F.softmin(x.float(), -1)", ("int", "dtype"), ("dim", "dtype"), FUNCTIONAL, guards_of_results.along
    ),
)

_LAYERS: tuple[Operation, ...] = (
    computed(
        "linear",
        "F.linear(x.float(), torch.randn(4, 3))",
        ("tensor", "none"),
        ("weight", "bias"),
        FUNCTIONAL,
        guards_of_results.inner,
    ),
    computed(
        "bilinear",
        "F.bilinear(x.float(), x.float(), torch.randn(2, 3, 3))",
        ("tensor", "none"),
        ("input2", "weight", "bias"),
        (*FUNCTIONAL, "torch"),
        guards_of_results.both_multiplied,
    ),
    computed(
        "layer_norm",
        "F.layer_norm(x.float(), (3,))",
        ("ints", "tensor", "float", "none"),
        ("normalized_shape", "weight", "bias", "eps"),
        FUNCTIONAL,
    ),
    computed(
        "rms_norm",
        "F.rms_norm(x.float(), (3,))",
        ("ints", "tensor", "float", "none"),
        ("normalized_shape", "weight", "eps"),
        FUNCTIONAL,
    ),
    computed(
        "group_norm",
        "F.group_norm(torch.randn(1, 4, 2), 2)",
        ("int", "tensor", "float", "none"),
        ("num_groups", "weight", "bias", "eps"),
        FUNCTIONAL,
    ),
    computed("normalize", "F.normalize(x.float())", ("int", "float"), ("p", "dim", "eps"), FUNCTIONAL),
    Operation(
        "scaled_dot_product_attention",
        COMPUTED,
        "F.scaled_dot_product_attention(torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4))",
        ("tensor", "float", "int", "bool", "none"),
        ("key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"),
        FUNCTIONAL,
        guards_of_results.attention,
        why="computed values need cells of their own; no dropout is applied here, because it is random",
    ),
    Operation(
        "dropout",
        EITHER,
        "F.dropout(x.float(), 0.1)",
        ("float", "int", "bool"),
        ("p", "training", "inplace"),
        (*FUNCTIONAL, "torch"),
        guards_of_results.outside,
        why=_DROPPED,
        fill="input",
    ),
    computed("one_hot", "F.one_hot(x, 6)", ("int",), ("num_classes",), FUNCTIONAL, measured=guards_of_values.classes),
    computed(
        "cosine_similarity",
        "F.cosine_similarity(x.float(), torch.ones(3))",
        ("tensor", "int", "float"),
        ("x2", "dim", "eps"),
        (*FUNCTIONAL, "torch"),
        guards_of_results.elementwise,
    ),
)

_LOSSES: tuple[Operation, ...] = (
    computed(
        "cross_entropy",
        "F.cross_entropy(x.float(), torch.tensor([2, 0]))",
        _LOSS,
        ("target", "weight", "ignore_index", "reduction", "label_smoothing"),
        FUNCTIONAL,
        guards_of_results.labels,
    ),
    computed(
        "nll_loss",
        "F.nll_loss(x.float(), torch.tensor([2, 0]))",
        _LOSS,
        ("target", "weight", "ignore_index", "reduction"),
        FUNCTIONAL,
        guards_of_results.labels,
    ),
    *(
        computed(
            name,
            f"F.{name}(x.float(), torch.ones(2, 3))",
            _LOSS,
            ("target", *parameters, "reduction"),
            FUNCTIONAL,
            guards_of_results.alike,
        )
        for name, parameters in (
            ("mse_loss", ()),
            ("l1_loss", ()),
            ("smooth_l1_loss", ("beta",)),
            ("huber_loss", ("delta",)),
            ("binary_cross_entropy_with_logits", ("weight", "pos_weight")),
        )
    ),
)

ROWS: tuple[Operation, ...] = (*_ACTIVE, *_LAYERS, *_LOSSES)
