# pyright: basic, reportPrivateUsage=false, reportPrivateImportUsage=false, reportOptionalMemberAccess=false
"""What a call allocates and computes: torch's own events of its allocator and its operations, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

_PLAIN = ("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::resize_", "aten::new_empty")
"""Operations that only ask for memory: what it is for the one around them says."""


@dataclass(frozen=True, slots=True)
class Used:
    """Memory that calls allocated, in bytes.

    total: all that they asked for. peak: the most at once. kept: what remained at the end. freed: blocks that were
    freed before the calls returned, each with torch's name of the part that asked for it.
    """

    total: int = 0
    peak: int = 0
    kept: int = 0
    freed: tuple[tuple[str, int], ...] = ()


def profiler_config(torch: Any) -> Any:
    """Return what the profiler of a thread is to report: memory, and the shapes of operations."""
    autograd = torch.autograd
    experimental = torch._C._profiler._ExperimentalConfig()
    return autograd.ProfilerConfig(autograd.ProfilerState.CPU, True, True, False, False, False, experimental)


def account(events: Iterable[Any]) -> Used:
    """Return the events of one thread as sums.

    They tell sizes, not addresses. So a block that is given back is one of its size that a part inside asked for, if
    there is one, and of several the oldest: what an operation returns it makes last.
    """
    parts: list[str] = []
    blocks: list[tuple[int, tuple[str, int]]] = []
    """Those that are still there, each with how deep inside it was asked for."""
    freed: list[tuple[str, int]] = []
    now = peak = total = 0
    for event in events:
        match event.kind():
            case "push":
                parts.append(event.name())
            case "pop" if parts:
                parts.pop()
            case "memory_alloc":
                size = event.cpu_memory_usage()
                now += size
                peak = max(peak, now)
                if size > 0:
                    total += size
                    asking = [part for part in parts if part not in _PLAIN]
                    blocks.append((len(asking), ("".join(asking[-1:]).removeprefix("aten::"), size)))
                else:
                    same = [item for item in blocks if item[1][1] == -size]
                    inner = [item for item in same if item[0] > len(parts)]
                    for item in (inner or same)[:1]:
                        blocks.remove(item)
                        freed.append(item[1])
            case _:
                pass
    return Used(total, peak, now, tuple(freed))


def flops_of(
    torch: Any, events: Iterable[Any], out: Sequence[int] | None = None, masks: Sequence[Sequence[bool]] = ()
) -> int:
    """Return FLOPs of the operations in ``events`` by torch's own formulas, from the shapes they were called on.

    out: the shape of the result, which the formula of a convolution asks for. masks: for each convolution that backward
    passes, which gradients it is asked for. torch has no formula for products with
    vectors, and none for fused attention on a CPU; these are two for each multiply-add, as its others.
    """
    total, inside = 0, 0
    asked = iter(masks)
    for event in events:
        kind = event.kind()
        if kind == "pop" and inside:
            inside -= 1
        elif kind == "push":
            name = event.name()
            if inside:  # a counted operation calls parts of its own
                inside += 1
            elif name in _COUNTED:
                inside = 1
                mask = next(asked, (True, True, False)) if name.endswith("convolution_backward") else ()
                total += _flops(torch, name, event.shapes(), out, mask)
    return total


def _flops(
    torch: Any, name: str, shapes: Sequence[Sequence[int]], out: Sequence[int] | None, mask: Sequence[bool]
) -> int:
    from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

    aten = torch.ops.aten
    match name.removeprefix("aten::"):
        case "mm" | "bmm" as short:
            return flop_registry[getattr(aten, short)](*shapes[:2], out_val=())
        case "addmm" | "baddbmm" as short:
            return flop_registry[getattr(aten, short)](*shapes[:3], out_val=())
        case "dot" | "vdot" | "mv":
            return 2 * prod(shapes[0])
        case "addmv" | "addmv_":
            return 2 * prod(shapes[1])
        case "_scaled_dot_product_flash_attention_for_cpu":
            return sdpa_flop_count(*shapes[:3])
        case "_scaled_dot_product_flash_attention_for_cpu_backward":
            return sdpa_backward_flop_count(*shapes[:4])
        case "convolution" if out is not None:
            x, w = shapes[:2]
            transposed = len(out) == len(x) and prod(out[2:]) > prod(x[2:]) and out[1] != w[0]
            return flop_registry[aten.convolution](x, w, None, None, None, None, transposed, out_val=out)
        case "convolution_backward":
            grad, x, w = shapes[:3]
            transposed = grad[1] != w[0]
            rest = (None, None, None, None, transposed, None, None, mask)
            return flop_registry[aten.convolution_backward](grad, x, w, *rest, out_val=[x, w, None])
        case _:
            return 0


_COUNTED = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "dot", "vdot", "mv", "addmv", "addmv_", "convolution"),
        *("convolution_backward", "_scaled_dot_product_flash_attention_for_cpu"),
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    )
)
