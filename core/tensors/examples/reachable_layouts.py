"""Which operations of torch read a storage by given sizes, strides and offset: a short chain of views, or none.

Views can be taken apart: an index selects, slices and adds dimensions of size 1, a permutation orders them, `expand`
repeats them with stride 0; before that, one move may regroup the dimensions (`view`), take windows of one (`unfold`)
or the diagonal of two. Every move is worked out for the strides that are wanted, so that few have to be tried.
Sources: https://docs.pytorch.org/docs/stable/tensor_view.html,
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.unfold.html,
https://docs.pytorch.org/docs/stable/generated/torch.diagonal.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations, product

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.view_rule import explain_view

Calls = tuple[str, ...]
"""What is written behind a tensor, one operation each: ``.t()``, ``[1:]``."""

_MOST_CALLS = 4
"""Longer chains say less than `as_strided` does."""


def same_cells(a: TensorLayout, b: TensorLayout) -> bool:
    """Whether two layouts are one but for strides that nothing takes, those of dimensions of size 1."""
    steps = zip(a.shape, a.stride, b.stride, strict=False)
    return a.shape == b.shape and a.offset == b.offset and all(s == t for n, s, t in steps if n != 1)


def views_to(base: TensorLayout, wanted: TensorLayout) -> Calls | None:
    """The shortest chain of views found that makes ``wanted`` of ``base``, empty where it is that already.

    ``None`` where none of up to four operations is found, for a layout without elements or with a negative stride.
    """
    if not base.numel or not wanted.numel or min(wanted.stride, default=0) < 0 or min(base.stride, default=0) < 0:
        return None
    if same_cells(base, wanted):
        return ()
    best: Calls | None = None
    for calls, moved in ((), base), *_moves(base, wanted):
        if best is not None and len(calls) >= len(best):
            continue
        for rest in _indexed(moved, wanted):
            parts = (*calls, *rest)
            if len(parts) <= _MOST_CALLS and (best is None or _cost(parts) < _cost(best)):
                best = parts
    return best


def _cost(calls: Calls) -> tuple[int, int]:
    return len(calls), sum(map(len, calls))


# ------------------------------------------------------------------------------- an index, a permutation, an expand


@dataclass(frozen=True, slots=True)
class _Slice:
    """How one dimension is indexed. size 0: a single index, which takes the dimension away."""

    start: int
    size: int = 0
    step: int = 1

    def text(self, length: int) -> str:
        if not self.size:
            return str(self.start)
        end = self.start + (self.size - 1) * self.step + 1
        stop = "" if self.start + self.size * self.step >= length else str(end)
        return f"{self.start or ''}:{stop}" + (f":{self.step}" if self.step != 1 else "")


def _indexed(base: TensorLayout, wanted: TensorLayout) -> Iterator[Calls]:
    """Chains of one index, one permutation and one expand that make ``wanted`` of ``base``."""
    walks = [dim for dim, size in enumerate(wanted.shape) if size > 1 and wanted.stride[dim]]
    taken = [dim for dim, size in enumerate(base.shape) if size > 1 and base.stride[dim]]
    if len(walks) > len(taken):
        return
    choices = [[dim for dim in taken if _walkable(base, dim, wanted, walk)] for walk in walks]
    tried = 0
    for chosen in product(*choices):
        if len(set(chosen)) < len(chosen):
            continue
        tried += 1
        if tried > limit("view_tries"):
            return
        if (calls := _through(base, wanted, dict(zip(chosen, walks, strict=True)))) is not None:
            yield calls


def _walkable(base: TensorLayout, dim: int, wanted: TensorLayout, walk: int) -> bool:
    """Whether a slice of dimension ``dim`` takes the steps of dimension ``walk``, as many as are wanted."""
    step, rest = divmod(wanted.stride[walk], base.stride[dim])
    return not rest and (wanted.shape[walk] - 1) * step < base.shape[dim]


def _through(base: TensorLayout, wanted: TensorLayout, walks: dict[int, int]) -> Calls | None:
    """The calls for one choice of which dimension of ``base`` becomes which of ``wanted``."""
    of = dict(walks)
    new = [dim for dim in range(wanted.rank) if dim not in of.values()]
    for dim, (size, step) in enumerate(zip(base.shape, base.stride, strict=True)):
        if dim in of or (size > 1 and step):
            continue  # one that takes no step stays where a dimension without one is wanted
        stays = (number for number in new if wanted.shape[number] <= size or (size == 1 and not wanted.stride[number]))
        if (match := next(stays, None)) is not None:
            of[dim] = match
            new.remove(match)
    starts = _starts(base, wanted, walks)
    if starts is None:
        return None
    slices = [_Slice(start) for start in starts]
    for dim, to in of.items():
        step = wanted.stride[to] // base.stride[dim] if dim in walks else 1
        slices[dim] = _Slice(starts[dim], min(wanted.shape[to], base.shape[dim]), step)
    items = [item.text(base.shape[dim]) for dim, item in enumerate(slices)]
    grown = [dim for dim in range(wanted.rank) if wanted.shape[dim] > 1 and dim in new]
    grown += [to for dim, to in of.items() if base.shape[dim] < wanted.shape[to]]
    if grown:
        new = [dim for at, dim in enumerate(new) if at != dim]  # expand adds those in front by itself
    order = [of[dim] for dim in sorted(of)]
    if order == sorted(order):
        calls = _index(_with_new([(of.get(dim), item) for dim, item in enumerate(items)], new))
    else:
        calls = [*_index(items), _permuted(order), *_index(_with_new([(dim, ":") for dim in sorted(order)], new))]
    return (*calls, f".expand({', '.join(map(str, wanted.shape))})") if grown else tuple(calls)


def _with_new(items: Sequence[tuple[int | None, str]], new: Sequence[int]) -> list[str]:
    """The items of an index, each with its place in the result, and ``None`` at the places of ``new`` dimensions."""
    parts: list[str] = []
    left = list(new)
    for place, item in items:
        while left and place is not None and left[0] < place:
            parts.append("None")
            left.pop(0)
        parts.append(item)
    return [*parts, *["None"] * len(left)]


def _index(items: list[str]) -> list[str]:
    """Square brackets without the colons that change nothing at their end; none where nothing changes."""
    parts = list(items)
    while parts and parts[-1] == ":":
        parts.pop()
    return [f"[{', '.join(parts)}]"] if parts else []


def _permuted(order: Sequence[int]) -> str:
    """The call that sorts dimensions which lie in ``order``."""
    dims = sorted(range(len(order)), key=order.__getitem__)
    moved = [dim for dim, other in enumerate(dims) if dim != other]
    if len(moved) == 2:
        return ".t()" if len(dims) == 2 else f".transpose({moved[0]}, {moved[1]})"
    return f".permute({', '.join(map(str, dims))})"


def _starts(base: TensorLayout, wanted: TensorLayout, walks: dict[int, int]) -> list[int] | None:
    """Where to begin in each dimension, so that the first element lies where it is wanted; ``None`` where none can."""
    room = [size - 1 for size in base.shape]
    for dim, to in walks.items():
        room[dim] -= (wanted.shape[to] - 1) * (wanted.stride[to] // base.stride[dim])
    dims = sorted((dim for dim in range(base.rank) if base.stride[dim]), key=lambda dim: -base.stride[dim])
    reach = [0]
    for dim in reversed(dims):
        reach.append(reach[-1] + room[dim] * base.stride[dim])
    reach.reverse()
    starts = [0] * base.rank
    tries = 0

    def search(at: int, left: int) -> bool:
        nonlocal tries
        tries += 1
        if not 0 <= left <= reach[at] or tries > limit("view_tries"):
            return False
        if at == len(dims):
            return left == 0
        dim = dims[at]
        for start in range(min(room[dim], left // base.stride[dim]), -1, -1):
            if left - start * base.stride[dim] > reach[at + 1]:
                break
            starts[dim] = start
            if search(at + 1, left - start * base.stride[dim]):
                return True
        starts[dim] = 0
        return False

    return starts if search(0, wanted.offset - base.offset) else None


# ------------------------------------------------------------------------------------------- what may come before it


def _moves(base: TensorLayout, wanted: TensorLayout) -> Iterator[tuple[Calls, TensorLayout]]:
    """What may be done first, each with the layout that it gives."""
    pairs = zip(wanted.stride, wanted.shape, strict=True)
    walks = sorted(((stride, size) for stride, size in pairs if size > 1 and stride), reverse=True)
    yield from _diagonals(base, [stride for stride, _ in walks])
    yield from _windows((), base, walks)
    shapes = dict.fromkeys((_split(base, [stride for stride, _ in walks]), tuple(run.numel for run in base.runs)))
    for shape in shapes:
        if shape == base.shape or (layout := _viewed(base, shape)) is None:
            continue
        call = ".view(-1)" if len(shape) == 1 else f".view({', '.join(map(str, shape))})"
        yield (call,), layout
        yield from _windows((call,), layout, walks)
    yield from _flat(base, wanted)


def _viewed(base: TensorLayout, shape: tuple[int, ...]) -> TensorLayout | None:
    verdict = explain_view(base, shape)
    return TensorLayout(shape, verdict.stride, base.offset) if verdict.stride is not None else None


def _split(base: TensorLayout, strides: Sequence[int]) -> tuple[int, ...]:
    """Every run of ``base`` cut at the wanted strides that divide it, so that each has a dimension of its own."""
    shape: list[int] = []
    for run in base.runs:
        outer = run.numel * run.stride
        for stride in [s for s in sorted(set(strides), reverse=True) if run.stride and s > run.stride]:
            if not outer % stride and not stride % run.stride and outer > stride:
                shape.append(outer // stride)
                outer = stride
        shape.append(outer // run.stride if run.stride else run.numel)
    return tuple(shape)


def _diagonals(base: TensorLayout, strides: Sequence[int]) -> Iterator[tuple[Calls, TensorLayout]]:
    """The diagonals of two dimensions whose strides add up to one that divides a wanted one."""
    for number, two in combinations(range(base.rank), 2):
        step = base.stride[number] + base.stride[two]
        if not step or all(stride % step for stride in strides):
            continue
        away = range(-base.shape[number] + 1, base.shape[two])
        for offset in sorted(away, key=abs)[: limit("view_tries")]:
            size = min(base.shape[number] + min(offset, 0), base.shape[two] - max(offset, 0))
            rest = [dim for dim in range(base.rank) if dim not in (number, two)]
            first = max(offset, 0) * base.stride[two] - min(offset, 0) * base.stride[number]
            given = [str(offset)] * (bool(offset) or base.rank > 2) + [f"{number}, {two}"] * (base.rank > 2)
            yield (
                (f".diagonal({', '.join(given)})",),
                TensorLayout(
                    (*(base.shape[dim] for dim in rest), size),
                    (*(base.stride[dim] for dim in rest), step),
                    base.offset + first,
                ),
            )


def _windows(
    before: Calls, base: TensorLayout, walks: Sequence[tuple[int, int]]
) -> Iterator[tuple[Calls, TensorLayout]]:
    """Windows of one dimension: from one to the next by a wanted stride, inside them by another."""
    for dim, (outer, inner) in product(range(base.rank), dict.fromkeys(permutations(walks, 2))):
        step = base.stride[dim]
        if not step or outer[0] % step or inner[0] % step:
            continue
        size = (inner[1] - 1) * (inner[0] // step) + 1
        if size <= base.shape[dim]:
            yield (*before, f".unfold({dim}, {size}, {outer[0] // step})"), _unfolded(base, dim, size, outer[0] // step)


def _unfolded(base: TensorLayout, dim: int, size: int, step: int) -> TensorLayout:
    windows = (base.shape[dim] - size) // step + 1
    return TensorLayout(
        (*base.shape[:dim], windows, *base.shape[dim + 1 :], size),
        (*base.stride[:dim], base.stride[dim] * step, *base.stride[dim + 1 :], base.stride[dim]),
        base.offset,
    )


def _flat(base: TensorLayout, wanted: TensorLayout) -> Iterator[tuple[Calls, TensorLayout]]:
    """A tensor that one stride walks: flat, cut to what is wanted, and windows of windows of that."""
    runs = base.runs
    step = runs[0].stride if len(runs) == 1 else 0
    if not step or (wanted.offset - base.offset) % step or any(stride % step for stride in wanted.stride):
        return
    steps = zip(wanted.shape, wanted.stride, strict=True)
    pairs = [(size, stride // step) for size, stride in steps if size > 1 and stride]
    first = (wanted.offset - base.offset) // step
    span = sum((size - 1) * stride for size, stride in pairs) + 1
    if not pairs or first < 0 or first + span > base.numel:
        return
    calls = [".view(-1)"] if base.rank != 1 else []
    cut = _Slice(first, span).text(base.numel)
    calls += _index([cut])
    layout = TensorLayout((span,), (step,), wanted.offset)
    packed = sorted(pairs, key=lambda pair: -pair[1])
    if all(a[1] == b[0] * b[1] for a, b in pairwise(packed)) and packed[-1][1] == 1:
        shape, stride = tuple(size for size, _ in packed), tuple(stride * step for _, stride in packed)
        yield (*calls, f".view({', '.join(map(str, shape))})"), TensorLayout(shape, stride, wanted.offset)
    for at, (size, stride) in enumerate(pairs[:-1]):
        inside = span - (size - 1) * stride
        calls.append(f".unfold({at}, {inside}, {stride})")
        layout = _unfolded(layout, at, inside, stride)
        span = inside
    yield tuple(calls), layout
