"""Whether jaxtyping accepts the arguments of one call, each an annotation and a shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.tools.tables import Row, Table


def answer(row: Mapping[str, str]) -> Row:
    """1 where every array is an instance of its annotation, with the names bound before it."""
    from jaxtyping import Shaped, jaxtyped

    @jaxtyped(typechecker=None)
    def fits() -> bool:
        pairs = zip(row["annotations"].split(" | "), row["shapes"].split(" | "), strict=True)
        return all(
            isinstance(np.zeros([int(size) for size in shape.split()]), Shaped[np.ndarray, said])
            for said, shape in pairs
        )

    return {"fits": str(int(fits()))}


TABLE = Table("jaxtyping_shapes", ("annotations", "shapes"), ("fits",), answer, needs="jaxtyping==0.3.11")
