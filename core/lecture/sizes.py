"""Claims about bytes, counted one by one."""

from __future__ import annotations

from core.hardware.accelerators import find
from core.lecture.claims import Finding, titled
from core.models.catalog import model_named
from core.tensors.cost import tensor_bytes
from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy
from core.units import format_bytes


def kilobyte() -> Finding:
    sizes = [format_bytes(1024**2, system="decimal"), format_bytes(1024**2, system="binary")]
    size = tensor_bytes.explain(elements=1024**2, element_bytes=1)
    device = find("H100 SXM")
    sheet = format_bytes(device.sheet_bytes, system="decimal")
    driver = f"{device.reported_mib:,.0f} MiB ({format_bytes(device.memory_bytes, system='binary', digits=3)})"
    return Finding(
        f"1,024 × 1,024 B is {sizes[1]}, which is {sizes[0]}; an H100’s {sheet} are {driver} by its driver",
        sizes == ["1.049 MB", "1 MiB"] and device.memory_bytes == device.reported_mib * 2**20,
        (titled("1,024 × 1,024 bytes", size),),
        shown=(driver.partition(" (")[0], sheet),
        how="1 KiB is 2¹⁰ B and 1 MiB 2²⁰ B; 1 kB is 10³ B and 1 MB 10⁶ B.",
    )


def gpt3_matrix() -> Finding:
    size = tensor_bytes.explain(elements=4 * 12288 * 12288, element_bytes=4)
    text = f"{size.value:,.0f} B = {size.value / 2**20:,.0f} MiB = {size.value / 2**30} GiB = {size.value / 1e9:.3f} GB"
    return Finding(
        text,
        size.value == 2304 * 2**20 and round(size.value / 1e9, 1) != 2.3,
        (size,),
        shown=(f"{size.value / 2**30} GiB",),
    )


def not_compute() -> Finding:
    size = tensor_bytes.explain(elements=32 * 32, element_bytes=4)
    return Finding(f"{size.value:,.0f} B of memory", size.value == 4096, (size,), shown=(f"{size.value:,.0f} B",))


def small_tensor() -> Finding:
    size = tensor_bytes.explain(elements=4 * 8, element_bytes=4)
    return Finding(f"{size.value:.0f} B", size.value == 128, (size,), shown=(f"{size.value:.0f} B",))


def mostly_floats() -> Finding:
    parameters = model_named("Llama 3.1 8B").parameters
    each = states_per_parameter(find_optimizer("AdamW"), find_policy("mixed bf16, fp32 master")).total
    states = tensor_bytes.explain(elements=parameters, element_bytes=each)
    ids = tensor_bytes.explain(elements=2**24, element_bytes=8)
    sizes = [format_bytes(size.value, system="decimal", digits=3) for size in (states, ids)]
    return Finding(
        f"training Llama 3.1 8B keeps {sizes[0]} of floats; the token ids of a step of 16M tokens are {sizes[1]}",
        states.value > 99 * ids.value,
        (titled("Model states in floats", states), titled("Token ids in int64", ids)),
        shown=(f"{each:g} B per parameter",),
    )
