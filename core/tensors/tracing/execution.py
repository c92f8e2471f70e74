"""One operation of the table applied to real tensors: as torch does it, but for what is random or was never written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.tensors.operations.operation import Operation, Written


def call(
    torch: Any,
    form: Written,
    operation: Operation,
    inputs: Sequence[Any],
    args: Sequence[Any],
    named: dict[str, Any],
    watch: Callable[[Callable[[], Any]], Any],
    drawn: Any,
) -> Any:
    """What ``operation``, written as a method, property or function of torch, makes of ``inputs``.

    watch: makes the call itself, apart from what is done around it to have the same numbers every time. drawn: the
    program's generator, from which random numbers are taken as torch would.
    """
    name = operation.name
    if form in ("nn", "init") or name in _TRAINED:
        return watch(lambda: _trained(torch, form, name, inputs, args, named, drawn))
    named = dict(named)
    asks = operation.fill == "zeros" and named.pop("requires_grad", False)
    if name == "scaled_dot_product_attention":
        args = [*args[:3], *([0.0] if len(args) > 3 else []), *args[4:]]
        named |= {"dropout_p": 0.0} if "dropout_p" in named else {}
    if form == "property":
        return watch(lambda: getattr(inputs[0], name))
    if form == "method":
        result = watch(lambda: getattr(inputs[0], name)(*args, **named))
    else:
        owner = torch if form == "torch" else torch.nn.functional
        subject = inputs[:1] if operation.subject else ()
        result = watch(lambda: getattr(owner, name)(*subject, *args, **named))
    if operation.fill == "zeros":
        result.zero_()
    elif operation.fill == "input" and result is not inputs[0]:
        result.copy_(inputs[0])
    elif name.endswith("_loss"):
        _clear_rest(result)
    return result.requires_grad_() if asks else result


BROADCASTING = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
"""Losses that broadcast their two tensors, with a warning."""

_TRAINED = (
    *("cuda", "cpu", "pin_memory", "multinomial", "bernoulli", "bernoulli_", "normal", "normal_", "uniform_"),
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
)


def _trained(
    torch: Any, form: Written, name: str, inputs: Sequence[Any], args: Sequence[Any], named: dict[str, Any], drawn: Any
) -> Any:
    """Parameters, initialisers, moves, and random numbers, which come from a generator that no other visitor shares."""
    if form == "nn":
        return torch.nn.Parameter(inputs[0], *args, **named)
    if name in ("cuda", "cpu", "pin_memory"):
        return inputs[0]
    if form == "init" and name in ("zeros_", "ones_", "eye_", "constant_"):
        return getattr(torch.nn.init, name)(inputs[0], *args, **named)
    meta = torch.empty(0).is_meta  # tensors are only counted: no generator draws there
    given = {} if meta else {"generator": drawn}
    if meta and name == "normal" and not inputs:
        given = {"device": "meta"}  # the one function that makes tensors and asks no context where
    if form == "init":
        return getattr(torch.nn.init, name)(inputs[0], *args, **named, **given)
    if form == "method":
        return getattr(inputs[0], name)(*args, **named, **given)
    subject = inputs[:1] if name in ("multinomial", "bernoulli") or name.endswith("_like") else ()
    return getattr(torch, name)(*subject, *args, **named, **given)


def _clear_rest(result: Any) -> None:
    """Zeros behind the one number of a loss: torch keeps the storage of all terms, parts of which nobody wrote."""
    cells = result.untyped_storage().nbytes() // result.element_size()
    result.detach().as_strided((cells,), (1,), 0)[result.numel() :].zero_()


def touched(torch: Any, operation: Operation, tensor: Any, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """Which elements of ``tensor`` an operation in place writes, as a mask of its shape; ``None`` for all."""
    stem, named = operation.name.rstrip("_"), {**dict(zip(operation.keywords, args, strict=False)), **given}
    mask = torch.zeros(tensor.shape, dtype=torch.bool)
    if stem in ("tril", "triu"):
        away = named.get("diagonal", 0)
        return ~getattr(torch.ones_like(mask), stem)(away)
    if stem in ("masked_fill", "masked_scatter"):
        return named["mask"].expand(tensor.shape)
    if stem.startswith("scatter"):
        return mask.scatter_(named["dim"], named["index"], True)
    if stem in ("index_fill", "index_add", "index_copy"):
        return mask.index_fill_(named["dim"], named["index"], True)
    return None
