"""Text that a reader of Markdown, of HTML or of a figure would take for more than text, wherever somebody can put it.

All of it names one host, of which nothing may be asked or linked.
"""

from __future__ import annotations

import re

from core.benchmark.collectives import Collectives
from core.benchmark.device import DeviceKind
from core.benchmark.points import DeviceFacts
from core.benchmark.programme import METHOD, LayerShape, Programme
from core.benchmark.record import Record
from core.limits import limit
from core.planning.comparison.entry import Entry, entry_of
from core.planning.comparison.examples import examples
from tests.core.collectives_cases import made
from tests.core.measured_cases import copy, item, point, refusal, square

HOST = "a.example"

KINDS = (
    f"![x](//{HOST}) [y](//{HOST})",
    f"<img src=//{HOST}> <a href=//{HOST}>x</a>",
    f"http://{HOST} www.{HOST} x@{HOST}",
    f"<i style=fill:url(//{HOST}/)>x</i>",
    f"<b style='cursor:url(//{HOST}/x),auto'>x</b>",
    f":red[{HOST}] :material/home: :tada:",
    f"$\\href{{//{HOST}}}{{q}}$ **b** `c`",
)
"""Each short enough to be a run's name or, cut, a tag's."""


def plans() -> tuple[Entry, ...]:
    """A comparison of as many plans as it holds, each under such a name."""
    texts = [one.texts for one in examples()]
    return tuple(entry_of(kind, texts[i % len(texts)]) for i, kind in enumerate(KINDS[: limit("compared_plans")]))


def tags() -> tuple[str, ...]:
    """Tags, which have no commas, such as they can be."""
    return (f"![](//{HOST})", f"[t](//{HOST})", f"<img src=//{HOST}>", f"http://{HOST}", f"x@{HOST}", f":red[{HOST}]")


def measurement(kind: str, device: DeviceKind) -> Record:
    """A measurement from a file, of which each text is the one of that ``kind``."""
    name = kind[: limit("measure_name_chars")]
    shape = LayerShape(
        model=name, hidden=1024, heads=8, kv_heads=8, head_dim=128, ffn=4096, gated=True, vocab=1000, seq_len=1024,
        micro_batch=1,
    )  # fmt: skip
    return Record(
        id="0123456789ab",
        programme=Programme(
            device=device,
            kinds=("matmul", "memory", "overhead", "operations", "attention", "layer"),
            dtypes=("fp32", "bf16", "mxfp8"),
            sizes=(1024, 8192),
            seconds=0.2,
            layer=shape,
        ),
        stage="finished",
        started=1.79e9,
        elapsed_s=20.0,
        method=METHOD,
        torch=kind,
        facts=DeviceFacts(name=name, detail=kind, threads=0, memory_bytes=150.1e9, power_limit_w=700.0),
        outcomes=(
            square(name, 8192, 5e13),
            square("fp32", 1024, 1e13),
            square("fp32", 8192, 5e13, note=kind),
            square("bf16", 1024, 1e14),
            refusal("bf16", 8192, kind),
            copy(name, 2**20, 8e12),
            copy("1 GiB", 2**30, 4e12),
            point(item("overhead", name, name), 1e-6),
            point(item("operations", name, name, (4096, 4096)), 2e-5, flop=8 * 4096**2, bytes=4 * 4096**2),
            point(item("attention", name, name, (1, 32, 4096, 128)), 1e-3, flop=2.2e11, bytes=1.3e8),
            point(item("layer", name, name, (4096,)), 1e-3, flop=2.2e11, bytes=1.3e8),
        ),
        message=kind,
    )


def collectives(kind: str) -> Collectives:
    """The same of measured collectives."""
    return made(devices=(kind,), versions=kind)


_LIVE = re.compile(
    rf"://{HOST}|www\.{HOST}|@{HOST}|(?<!\\)\]\(//{HOST}|:red|:material|:tada|(?<!\\)\$\\href|(?<!\\)<|(?<!\\)\*\*b|(?<!\\)`c"
)


def live(markdown: str) -> list[str]:
    """What of such a text is more than text in Markdown."""
    return _LIVE.findall(markdown)
