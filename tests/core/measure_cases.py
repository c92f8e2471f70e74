"""Any measurement that there can be, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from core.benchmark.points import DeviceFacts, Item, Point, Refusal
from core.benchmark.points import State as Moment
from core.benchmark.programme import DTYPES, KINDS, LayerShape, Programme
from core.benchmark.record import Record, Stage
from core.limits import limit

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
AMOUNT = st.floats(0, 1e30)
_MAYBE = st.none() | AMOUNT
_SECONDS = st.floats(1e-9, 1e6)
_COUNT = st.integers(0, 2**63 - 1)
_SHAPE = st.lists(_COUNT, max_size=8).map(tuple)
ITEMS = st.builds(
    Item,
    kind=st.sampled_from(KINDS),
    name=_NAME,
    label=_NAME,
    shape=_SHAPE,
    seconds=_SECONDS,
    regime=st.sampled_from(["burst", "sustained"]),
)
_MOMENTS = st.builds(Moment, clock_mhz=_MAYBE, temperature_c=_MAYBE, power_w=_MAYBE, energy_j=_MAYBE)


@st.composite
def points(draw: st.DrawFn) -> Point:
    best, p10, median, p90 = sorted(draw(_SECONDS) for _ in range(4))
    return Point(
        item=draw(ITEMS),
        shape=draw(_SHAPE),
        flop=draw(AMOUNT),
        bytes=draw(AMOUNT),
        median_s=median,
        best_s=best,
        p10_s=p10,
        p90_s=p90,
        runs=draw(st.integers(1, 2**63 - 1)),
        duration_s=draw(AMOUNT),
        relative_error=draw(_MAYBE),
        peak_memory_bytes=draw(_MAYBE),
        mean_power_w=draw(_MAYBE),
        before=draw(_MOMENTS),
        after=draw(_MOMENTS),
        note=draw(TEXT),
    )


OUTCOMES = points() | st.builds(Refusal, item=ITEMS, why=st.sampled_from(["refused", "skipped"]), text=TEXT)
DEVICES = st.builds(
    DeviceFacts, name=TEXT, detail=TEXT, threads=st.integers(0, 1_000_000), memory_bytes=_MAYBE, power_limit_w=_MAYBE
)
_WHOLE = st.integers(1, 10_000)
_LAYERS = st.builds(
    LayerShape,
    model=_NAME,
    gated=st.booleans(),
    experts=_COUNT,
    **dict.fromkeys(("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq_len", "micro_batch"), _WHOLE),
)
_PROGRAMMES = st.builds(
    Programme,
    device=st.sampled_from(["cpu", "cuda"]),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, unique=True).map(tuple),
    dtypes=st.lists(st.sampled_from(DTYPES), unique=True).map(tuple),
    sizes=st.lists(st.integers(16, limit("matmul_size")), max_size=limit("measure_sizes"), unique=True).map(tuple),
    seconds=st.floats(0.02, limit("measure_dtype_seconds")),
    sustained_s=st.floats(0, limit("measure_dtype_seconds")),
    layer=st.none() | _LAYERS,
)
ENDED: tuple[Stage, ...] = ("finished", "cancelled", "failed")
RECORDS = st.builds(
    Record,
    id=st.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}"),
    programme=_PROGRAMMES,
    stage=st.sampled_from(ENDED),
    started=AMOUNT,
    elapsed_s=AMOUNT,
    method=TEXT,
    torch=TEXT,
    facts=st.none() | DEVICES,
    outcomes=st.lists(OUTCOMES, max_size=3).map(tuple),
    message=TEXT,
)
"""Any measurement that there can be, however odd its texts and numbers."""
