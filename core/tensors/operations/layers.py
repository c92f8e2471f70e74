"""What torch.nn.functional computes: activations, normalisation, layers, attention, losses."""

from __future__ import annotations

from core.tensors.operations import guards_of_results, guards_of_values
from core.tensors.operations.operation import COMPUTED, COMPUTING, EITHER, EVERY, FUNCTIONAL, NUMBER, Operation, Takes

ACTIVATIONS = ("relu6", "silu", "mish", "softsign", "tanhshrink", "logsigmoid", "hardswish", "hardsigmoid", "selu")
"""One tensor in, one of its shape out."""

_DROPPED = "which elements are zeroed is random, so here none is and none grows; with training=False it does nothing"
_LOSS: tuple[Takes, ...] = ("tensor", "text", "float", "int", "none")

_ACTIVE: tuple[Operation, ...] = (
    Operation("relu", COMPUTED, "x.relu()", ("bool",), ("inplace",), EVERY, guards_of_results.outside, why=COMPUTING),
    *(
        Operation(
            name,
            COMPUTED,
            f"F.{name}(x.float())",
            ("bool",),
            ("inplace",),
            FUNCTIONAL,
            guards_of_results.outside,
            why=COMPUTING,
        )
        for name in ACTIVATIONS
        if name not in ("softsign", "tanhshrink", "logsigmoid", "selu")
    ),
    Operation(
        "selu",
        COMPUTED,
        "F.selu(x.float())",
        ("bool",),
        ("inplace",),
        (*FUNCTIONAL, "torch"),
        guards_of_results.outside,
        why=COMPUTING,
    ),
    *(
        Operation(name, COMPUTED, f"F.{name}(x.float())", forms=FUNCTIONAL, why=COMPUTING)
        for name in ("softsign", "tanhshrink", "logsigmoid")
    ),
    Operation("gelu", COMPUTED, "F.gelu(x.float())", ("text",), ("approximate",), FUNCTIONAL, why=COMPUTING),
    *(
        Operation(
            name,
            COMPUTED,
            f"F.{name}(x.float())",
            (*NUMBER, "bool"),
            (*parameters, "inplace"),
            FUNCTIONAL,
            guards_of_results.outside,
            why=COMPUTING,
        )
        for name, parameters in (
            ("leaky_relu", ("negative_slope",)),
            ("elu", ("alpha",)),
            ("celu", ("alpha",)),
            ("hardtanh", ("min_val", "max_val")),
        )
    ),
    *(
        Operation(name, COMPUTED, f"F.{name}(x.float())", NUMBER, parameters, FUNCTIONAL, why=COMPUTING)
        for name, parameters in (
            ("softplus", ("beta", "threshold")),
            ("softshrink", ("lambd",)),
            ("hardshrink", ("lambd",)),
        )
    ),
    Operation(
        "threshold",
        COMPUTED,
        "F.threshold(x.float(), 2, 0)",
        (*NUMBER, "bool"),
        ("threshold", "value", "inplace"),
        FUNCTIONAL,
        guards_of_results.outside,
        why=COMPUTING,
    ),
    Operation(
        "prelu",
        COMPUTED,
        "F.prelu(x.float(), torch.ones(3))",
        ("tensor",),
        ("weight",),
        (*FUNCTIONAL, "torch"),
        why=COMPUTING,
    ),
    Operation("glu", COMPUTED, "F.glu(torch.ones(2, 4))", ("int",), ("dim",), FUNCTIONAL, why=COMPUTING),
    *(
        Operation(
            name,
            COMPUTED,
            f"x.float().{name}(-1)",
            ("int", "dtype"),
            ("dim", "dtype"),
            EVERY,
            guards_of_results.along,
            why=COMPUTING,
        )
        for name in ("softmax", "log_softmax")
    ),
    Operation(
        "softmin",
        COMPUTED,
        "F.softmin(x.float(), -1)",
        ("int", "dtype"),
        ("dim", "dtype"),
        FUNCTIONAL,
        guards_of_results.along,
        why=COMPUTING,
    ),
)

_LAYERS: tuple[Operation, ...] = (
    Operation(
        "linear",
        COMPUTED,
        "F.linear(x.float(), torch.randn(4, 3))",
        ("tensor", "none"),
        ("weight", "bias"),
        FUNCTIONAL,
        guards_of_results.inner,
        why=COMPUTING,
    ),
    Operation(
        "bilinear",
        COMPUTED,
        "F.bilinear(x.float(), x.float(), torch.randn(2, 3, 3))",
        ("tensor", "none"),
        ("input2", "weight", "bias"),
        (*FUNCTIONAL, "torch"),
        guards_of_results.both_multiplied,
        why=COMPUTING,
    ),
    Operation(
        "layer_norm",
        COMPUTED,
        "F.layer_norm(x.float(), (3,))",
        ("ints", "tensor", "float", "none"),
        ("normalized_shape", "weight", "bias", "eps"),
        FUNCTIONAL,
        why=COMPUTING,
    ),
    Operation(
        "rms_norm",
        COMPUTED,
        "F.rms_norm(x.float(), (3,))",
        ("ints", "tensor", "float", "none"),
        ("normalized_shape", "weight", "eps"),
        FUNCTIONAL,
        why=COMPUTING,
    ),
    Operation(
        "group_norm",
        COMPUTED,
        "F.group_norm(torch.randn(1, 4, 2), 2)",
        ("int", "tensor", "float", "none"),
        ("num_groups", "weight", "bias", "eps"),
        FUNCTIONAL,
        why=COMPUTING,
    ),
    Operation(
        "normalize",
        COMPUTED,
        "F.normalize(x.float())",
        ("int", "float"),
        ("p", "dim", "eps"),
        FUNCTIONAL,
        why=COMPUTING,
    ),
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
    Operation(
        "one_hot",
        COMPUTED,
        "F.one_hot(x, 6)",
        ("int",),
        ("num_classes",),
        FUNCTIONAL,
        why=COMPUTING,
        measured=guards_of_values.classes,
    ),
    Operation(
        "cosine_similarity",
        COMPUTED,
        "F.cosine_similarity(x.float(), torch.ones(3))",
        ("tensor", "int", "float"),
        ("x2", "dim", "eps"),
        (*FUNCTIONAL, "torch"),
        guards_of_results.elementwise,
        why=COMPUTING,
    ),
)

_LOSSES: tuple[Operation, ...] = (
    Operation(
        "cross_entropy",
        COMPUTED,
        "F.cross_entropy(x.float(), torch.tensor([2, 0]))",
        _LOSS,
        ("target", "weight", "ignore_index", "reduction", "label_smoothing"),
        FUNCTIONAL,
        guards_of_results.labels,
        why=COMPUTING,
    ),
    Operation(
        "nll_loss",
        COMPUTED,
        "F.nll_loss(x.float(), torch.tensor([2, 0]))",
        _LOSS,
        ("target", "weight", "ignore_index", "reduction"),
        FUNCTIONAL,
        guards_of_results.labels,
        why=COMPUTING,
    ),
    *(
        Operation(
            name,
            COMPUTED,
            f"F.{name}(x.float(), torch.ones(2, 3))",
            _LOSS,
            ("target", *parameters, "reduction"),
            FUNCTIONAL,
            guards_of_results.alike,
            why=COMPUTING,
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
