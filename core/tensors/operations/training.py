"""Parameters, their initial values, gradients, and moves to a device."""

from __future__ import annotations

from core.tensors.operations.guards_of_results import drawn, integer_sizes, truncated
from core.tensors.operations.operation import (
    METHOD,
    NUMBER,
    PROPERTY,
    SMALL,
    TRAINED,
    WRITE,
    Operation,
    Takes,
    Written,
)

_INIT: tuple[Written, ...] = ("init",)
_RANDOM = "written in place, with the random numbers that torch draws on a CPU from seed 0, or from your manual_seed"
_CONSTANT = "written in place: no new storage"
_DRAWN = "new storage; the random numbers are those that torch draws on a CPU from seed 0, or from your manual_seed"

RANDOM_INITIALISERS: tuple[tuple[str, tuple[Takes, ...], tuple[str, ...]], ...] = (
    ("trunc_normal_", NUMBER, ("mean", "std", "a", "b")),
    ("normal_", NUMBER, ("mean", "std")),
    ("uniform_", NUMBER, ("a", "b")),
    ("xavier_uniform_", NUMBER, ("gain",)),
    ("xavier_normal_", NUMBER, ("gain",)),
    ("kaiming_uniform_", (*NUMBER, "text"), ("a", "mode", "nonlinearity")),
    ("kaiming_normal_", (*NUMBER, "text"), ("a", "mode", "nonlinearity")),
)

ROWS: tuple[Operation, ...] = (
    Operation(
        "Parameter",
        TRAINED,
        "nn.Parameter(x.float())",
        ("bool",),
        ("requires_grad",),
        ("nn",),
        why="a parameter is the same cells, and asks for a gradient",
    ),
    Operation(
        "requires_grad_",
        TRAINED,
        "x.float().requires_grad_()",
        ("bool",),
        ("requires_grad",),
        METHOD,
        why="the very same tensor: from here on its operations are kept for backward",
    ),
    Operation(
        "retain_grad",
        TRAINED,
        "(x.float().requires_grad_() * 2).retain_grad()",
        (),
        (),
        METHOD,
        why="the very same tensor: backward will leave its gradient too",
    ),
    Operation(
        "backward",
        TRAINED,
        "x.float().requires_grad_().sum().backward()",
        ("tensor", "bool", "none"),
        ("gradient", "retain_graph"),
        METHOD,
        why="walks back through the operations, and leaves a gradient at every leaf that asks for one",
    ),
    Operation(
        "data",
        TRAINED,
        "x.data",
        (),
        (),
        PROPERTY,
        why="the same cells, outside of what backward sees",
    ),
    Operation("cuda", TRAINED, "x.cuda()", ("int",), ("device",), METHOD, why="every byte moves over the bus"),
    Operation("cpu", TRAINED, "x.cuda().cpu()", (), (), METHOD, why="every byte moves over the bus"),
    Operation(
        "pin_memory", TRAINED, "x.pin_memory()", (), (), METHOD, why="a copy in memory that stays in place, for moves"
    ),
    *(
        Operation(
            name,
            WRITE,
            f"nn.init.{name}(torch.empty(2, 3))",
            takes,
            keywords,
            _INIT,
            truncated if name == "trunc_normal_" else None,
            writes=True,
            why=_RANDOM,
        )
        for name, takes, keywords in RANDOM_INITIALISERS
    ),
    *(
        Operation(name, WRITE, f"nn.init.{name}(torch.empty(2, 3))", (), (), _INIT, writes=True, why=_CONSTANT)
        for name in ("zeros_", "ones_", "eye_")
    ),
    Operation(
        "constant_",
        WRITE,
        "nn.init.constant_(torch.empty(2, 3), 0.5)",
        NUMBER,
        ("val",),
        _INIT,
        writes=True,
        why=_CONSTANT,
    ),
    *(
        Operation(name, WRITE, f"x.float().{name}()", NUMBER, keywords, METHOD, writes=True, why=_RANDOM)
        for name, keywords in (("normal_", ("mean", "std")), ("uniform_", ("from", "to")), ("bernoulli_", ("p",)))
    ),
    Operation("bernoulli", SMALL, "(x / 6).bernoulli()", NUMBER, ("p",), why=_DRAWN),
    Operation(
        "multinomial",
        SMALL,
        "torch.multinomial(torch.ones(2, 3), 2)",
        ("int", "bool"),
        ("num_samples", "replacement"),
        guard=drawn,
        why=_DRAWN,
    ),
    Operation(
        "normal",
        SMALL,
        "torch.normal(0.0, 1.0, (2, 3))",
        (*NUMBER, "ints", "tensor"),
        ("mean", "std", "size"),
        ("torch",),
        guard=integer_sizes,
        subject=False,
        why=_DRAWN,
    ),
)
"""One row each; random ones take numbers from a generator of their own."""
