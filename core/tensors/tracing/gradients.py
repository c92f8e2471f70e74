"""What an operation keeps for backward: asked of the nodes that torch's autograd adds to its graph."""

from __future__ import annotations

from typing import Any


class SavedTensors:
    """The nodes of the graph so far; what each new one saved is read from it once."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.known: set[Any] = set()
        """Kept alive, so that a node is not taken for a later one in its place."""

    def tracks(self, tensor: Any) -> bool:
        """Whether ``tensor`` came out of an operation that backward goes through.

        A view from ``chunk`` or ``split`` whose base was written has no way back: torch refuses to say its node.
        """
        try:
            return isinstance(tensor, self.torch.Tensor) and tensor.grad_fn is not None
        except RuntimeError:
            return False

    def leaves(self, tensor: Any) -> dict[int, Any]:
        """What backward from ``tensor`` passes: leaves by their identity, and every node by its own."""
        found: dict[int, Any] = {}
        if tensor.requires_grad and tensor.is_leaf:
            return {id(tensor): tensor}
        waiting = [tensor.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is None or id(node) in found:
                continue
            found[id(node)] = node
            if type(node).__name__ == "AccumulateGrad":
                found[id(node.variable)] = node.variable
            waiting += [parent for parent, _ in node.next_functions]
        return found

    def kept(self, tensor: Any) -> list[tuple[int, int]]:
        """Identity and bytes of each storage that the operations behind ``tensor`` newly keep, each once."""
        found: dict[int, int] = {}
        waiting = [tensor.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is None or node in self.known or type(node).__name__ == "AccumulateGrad":
                continue
            self.known.add(node)
            for saved in _saved(node):
                if not saved.dim() and saved.element_size() == 8:
                    continue  # a number of Python, which torch wraps
                storage = saved.untyped_storage()
                found[storage._cdata] = storage.nbytes()
            waiting += [parent for parent, _ in node.next_functions]
        return list(found.items())


def _saved(node: Any) -> list[Any]:
    """The tensors that a node of the graph saved."""
    tensors: list[Any] = []
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        try:
            value = getattr(node, name)
        except RuntimeError:
            continue  # freed, or written since: backward will say so
        items: list[Any] = list(value) if isinstance(value, tuple | list) else [value]  # pyright: ignore[reportUnknownArgumentType]
        tensors += [item for item in items if hasattr(item, "untyped_storage")]
    return tensors
