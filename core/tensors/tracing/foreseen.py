"""What an operation would make and multiply, seen beforehand on torch's meta device: shapes without memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.limits import cached
from core.tensors.operations.guards import check_elements, check_work, padded_numel
from core.tensors.operations.values import ExpressionError


def foresee(torch: Any, call: Callable[[Sequence[Any]], Any], inputs: Sequence[Any]) -> None:
    """Refuse what ``call`` of ``inputs`` would make or multiply beyond the caps of core.limits, its parts included.

    Raises `TooLargeError`. What torch refuses by itself is left to the call on the tensors themselves.
    """

    def meta(given: Any) -> Any:
        if isinstance(given, torch.Tensor):
            return torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device="meta")
        return [meta(item) for item in given]

    try:
        with torch.no_grad(), torch.device("meta"), _parts()():
            call(meta(inputs))
    except ExpressionError:
        raise
    except Exception:  # which the call itself says with torch's own words
        return


@cached("tables_kept")
def _parts() -> Any:
    """A mode in which every part of an operation is held against the caps."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import flop_registry

    class Parts(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            for item in tree_leaves(result):
                if isinstance(item, torch.Tensor):
                    stored = item.untyped_storage().nbytes() // item.element_size()
                    check_elements(max(padded_numel(item.shape), stored), "The result")
            flop = flop_registry.get(func._overloadpacket)
            if flop is not None:
                check_work(flop(*args, **(kwargs or {}), out_val=result) // 2, "The product")
            return result

    return Parts
