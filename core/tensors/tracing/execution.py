"""One operation of the table applied to real tensors: as torch does it, but for what is random or was never written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import signature
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
    drawn: Any = None,
) -> Any:
    """What ``operation``, written as a method, property or function of torch, makes of ``inputs``.

    watch: makes the call itself, apart from what is done around it to have the same numbers every time. drawn: the
    generator of a ``manual_seed``, from which random numbers are then taken as torch would.
    """
    name = operation.name
    if form in ("nn", "init") or name in _TRAINED or (drawn is not None and name in _DRAWN):
        return watch(lambda: _trained(torch, form, name, inputs, args, named, drawn))
    named = dict(named)
    asks = operation.fill in ("counting", "zeros") and named.pop("requires_grad", False)
    result = _called(torch, form, operation, inputs, args, named, watch)
    return result.requires_grad_() if asks else result


BROADCASTING = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
"""Losses that broadcast their two tensors, with a warning."""
_WIDENED = (*BROADCASTING, "ldexp")
_LAID_OUT = ("searchsorted", "bucketize")
"""Operations that make what they take contiguous, with a warning."""

_TRAINED = ("cuda", "cpu", "pin_memory", "multinomial", "bernoulli", "bernoulli_", "normal", "normal_", "uniform_")
_DRAWN = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like")


def _trained(
    torch: Any, form: Written, name: str, inputs: Sequence[Any], args: Sequence[Any], named: dict[str, Any], drawn: Any
) -> Any:
    """Parameters, initialisers, moves, and random numbers, which come from a generator that no other visitor shares."""
    if form == "nn":
        return torch.nn.Parameter(inputs[0], *args, **named)
    if name in ("cuda", "cpu", "pin_memory"):
        return inputs[0]
    if form == "init" and not inputs[0].numel():
        return inputs[0]  # as torch does, with a warning
    if form == "init" and name in ("zeros_", "ones_", "eye_", "constant_"):
        return getattr(torch.nn.init, name)(inputs[0], *args, **named)
    meta = torch.empty(0).is_meta  # tensors are only counted: no generator draws there
    given = {} if meta else {"generator": torch.Generator().manual_seed(0) if drawn is None else drawn}
    if meta and name == "normal" and not inputs:
        given = {"device": "meta"}  # the one function that makes tensors and asks no context where
    if form == "init":
        return getattr(torch.nn.init, name)(inputs[0], *args, **named, **given)
    if name.endswith("_like"):
        rest = {key: value for key, value in named.items() if key != "memory_format"}
        wanted = {"dtype": inputs[0].dtype, **rest}
        return getattr(torch, name.removesuffix("_like"))(tuple(inputs[0].shape), **wanted, **given)
    if form == "method":
        return getattr(inputs[0], name)(*args, **named, **given)
    subject = inputs[:1] if name in ("multinomial", "bernoulli") else ()
    return getattr(torch, name)(*subject, *args, **named, **given)


def _called(
    torch: Any,
    form: Written,
    operation: Operation,
    inputs: Sequence[Any],
    args: Sequence[Any],
    named: dict[str, Any],
    watch: Callable[[Callable[[], Any]], Any],
) -> Any:
    """A call without what is random, or marked for gradients, in it."""
    name = operation.name
    if form == "property":
        return watch(lambda: _property(inputs[0], name))
    if name in ("std", "var", "std_mean", "var_mean"):
        return _spread(torch, name, inputs[0], args, named, watch)
    if name == "meshgrid":
        named = {"indexing": "ij", **named}  # what torch takes anyway, with a warning
    if name == "cross" and len(args) < 2 and "dim" not in named:  # the first of size 3, as torch takes with a warning
        named = {**named, "dim": next((dim for dim, size in enumerate(inputs[0].shape) if size == 3), -1)}
    if name.endswith("_loss") or "cross_entropy" in name:
        args, named = _reduced(torch.nn.functional, name, inputs[0], args, named)
    if name in _WIDENED and len(inputs) > 1 and inputs[0].shape != inputs[1].shape:
        wide = torch.broadcast_tensors(*inputs[:2])  # as torch does, with a warning
        wide = (wide[0], inputs[1]) if name == "ldexp" else wide
        args = [wide[1] if value is inputs[1] else value for value in args]
        named = {key: wide[1] if value is inputs[1] else value for key, value in named.items()}
        inputs = [wide[0], *inputs[1:]]
    if name == "scaled_dot_product_attention":
        args, named = [*args[:3], *([0.0] if len(args) > 3 else []), *args[4:]], {**named}
        if "dropout_p" in named:
            named["dropout_p"] = 0.0

    drawn = args, named
    if name.startswith("randint") and named.get("dtype", inputs[0].dtype if inputs else torch.int64).is_floating_point:
        low, high = _range(args, named)
        if low < high:  # other numbers take their place, and these give no reason to warn of their precision
            drawn = [1, *(value for value in args if not isinstance(value, int))], dict(named)
            _ = drawn[1].pop("low", None), drawn[1].pop("high", None)

    def masks(given: Sequence[Any], among: bool) -> Sequence[Any]:
        if name in _LAID_OUT:
            return [value.contiguous() if isinstance(value, torch.Tensor) else value for value in given]
        return [*(_mask(torch, mask) for mask in given[:1]), *given[1:]] if among else given

    scatters, first = name.startswith("masked_scatter"), name == "where" and form != "method"
    second = scatters or (name == "where" and not first)
    if name == "adjoint" and inputs[0].dim() == 0:
        return inputs[0].conj()  # the same, without a warning
    if form == "method":
        result = watch(lambda: getattr(inputs[0], name)(*masks(args, second), **named))
    else:
        owner = torch if form == "torch" else torch.nn.functional
        subject = inputs[:1] if operation.subject else ()
        result = watch(lambda: getattr(owner, name)(*masks(subject, first), *masks(drawn[0], second), **drawn[1]))
    if operation.fill == "zeros":
        result.zero_()
    elif operation.fill == "counting":
        result.copy_(_counting(torch, operation, result, args, named))
    elif operation.fill == "input" and result is not inputs[0]:
        result.copy_(inputs[0])
    elif name.endswith("_loss"):
        _clear_rest(result)
    return result


def _reduced(
    functional: Any, name: str, subject: Any, args: Sequence[Any], named: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """``size_average`` and ``reduce`` as the reduction that torch takes them for, with a warning."""
    with suppress(TypeError):  # which torch says of the call itself
        given = signature(getattr(functional, name)).bind(subject, *args, **named).arguments
        older = given.pop("size_average", None), given.pop("reduce", None)
        if older != (None, None):
            del given["input"]
            return [], {**given, "reduction": functional._Reduction.legacy_get_string(*older, emit_warning=False)}
    return args, named


def _clear_rest(result: Any) -> None:
    """Zeros behind the one number of a loss: torch keeps the storage of all terms, parts of which nobody wrote."""
    cells = result.untyped_storage().nbytes() // result.element_size()
    result.detach().as_strided((cells,), (1,), 0)[result.numel() :].zero_()


def _mask(torch: Any, mask: Any) -> Any:
    """A mask of bytes as truth values, which torch takes it for, with a warning."""
    return mask.bool() if isinstance(mask, torch.Tensor) and mask.dtype == torch.uint8 else mask


def _property(tensor: Any, name: str) -> Any:
    # What torch does with these ranks is deprecated: it works, but warns once per process. Same results here.
    if name == "T" and tensor.dim() != 2:
        return tensor.permute(*reversed(range(tensor.dim())))
    if name in ("mT", "mH", "H") and tensor.dim() == 0:
        return tensor
    return getattr(tensor, name)


def _counting(torch: Any, operation: Operation, result: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """0, 1, 2, … in the shape of ``result``; from its lowest to its highest and over again for whole random numbers."""
    numbers = torch.arange(result.numel())
    if operation.name in ("randint", "randint_like"):
        low, high = _range(args, named)
        numbers = numbers % (high - low) + low
    return numbers.view(result.shape)


def _range(args: Sequence[Any], named: dict[str, Any]) -> tuple[int, int]:
    """The lowest number of a randint, and the one behind its highest."""
    bounds = [value for value in args if isinstance(value, int)]
    low, high = named.get("low", 0), named.get("high", 1)
    if len(bounds) > 1:
        return bounds[0], bounds[1]
    return (low, high) if not bounds else (bounds[0], high) if "high" in named else (low, bounds[0])


def _spread(
    torch: Any,
    name: str,
    tensor: Any,
    args: Sequence[Any],
    named: dict[str, Any],
    watch: Callable[[Callable[[], Any]], Any],
) -> Any:
    """std and var, with the results that torch warns of: too few elements for the correction."""
    given = dict(zip(("dim", "unbiased", "keepdim"), args, strict=False))
    if isinstance(given.get("dim"), bool):  # std(False): unbiased alone
        given = {"unbiased": given["dim"], "keepdim": given.get("unbiased", False)}
    given |= named
    dims = given.get("dim")
    over = range(tensor.dim()) if dims is None or dims == () else (dims,) if isinstance(dims, int) else dims
    count = math.prod(tensor.shape[dim] for dim in over if -tensor.dim() <= dim < tensor.dim())
    correction = given.get("correction", int(given.get("unbiased", True)))
    function = getattr(torch, name)
    enough = correction is None or (count > correction and tensor.numel() > 0)
    if enough or {"correction", "unbiased"} <= set(given):
        return watch(lambda: function(tensor, *args, **named))
    by_name = {"dim": dims, "keepdim": given.get("keepdim", False)}
    if tensor.numel() == 0:
        mean = tensor.mean(**by_name)  # refuses whole numbers as std does
        spread = torch.full_like(mean.real if mean.is_complex() else mean, math.nan)
        return (spread, mean) if name.endswith("_mean") else spread
    plain = watch(lambda: function(tensor, correction=0, **by_name))
    (plain[0] if name.endswith("_mean") else plain).mul_(math.inf)  # what is divided by 0
    return plain


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
