"""Named dimensions against verdicts of jaxtyping 0.3.11, placements, and the lecture's presets run."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from core.tensors import ExpressionError, read_shape, read_sizes, trace
from core.tensors.panels.names import NamedTensor, check_names, placements, read_named
from core.tensors.panels.presets import LECTURE

TABLE = (Path(__file__).parents[1] / "data" / "jaxtyping_shapes.csv").read_text(encoding="utf-8")
VERDICTS = list(csv.DictReader(io.StringIO(TABLE)))


def test_verdicts_are_those_of_jaxtyping() -> None:
    assert {row["fits"] for row in VERDICTS} == {"0", "1"}
    for row in VERDICTS:
        annotations, shapes = row["annotations"].split(" | "), row["shapes"].split(" | ")
        tensors = [
            NamedTensor(f"t{n}", annotation, tuple(int(size) for size in shape.split()))
            for n, (annotation, shape) in enumerate(zip(annotations, shapes, strict=True))
        ]
        made = check_names(tensors)
        assert made.accepted == (row["fits"] == "1"), row
        assert bool(made.message) != made.accepted
        assert len(made.dimensions) == (len(tensors) if made.refused is None else tensors.index(made.refused))


def test_a_wrong_shape_is_refused_with_the_names() -> None:
    made = check_names(read_named("x: batch seq hidden = 2, 3, 8\nw: hidden vocab = 9, 50"))
    assert made.refused is not None
    assert made.refused.name == "w"
    assert made.message == "`hidden` is 8 in `x`, but dimension 0 of `w` has 9"
    assert made.headline == (
        "`w` is **refused**: `hidden` is 8 in `x`, but dimension 0 of `w` has 9.",
        "Known by then: batch = 2, seq = 3, hidden = 8.",
    )
    assert 'def f(x: Float[Tensor, "batch seq hidden"], w: Float[Tensor, "hidden vocab"]): ...' in made.signature
    fitting = check_names(read_named("x: batch seq hidden = 2, 3, 8\nw: hidden vocab = 8, 50"))
    assert fitting.headline == ("The shapes **fit** their names.", "batch = 2, seq = 3, hidden = 8, vocab = 50.")
    assert [d.sizes for d in fitting.dimensions[1]] == [(8,), (50,)]


def test_ranks_sizes_and_several_dimensions() -> None:
    def message(text: str) -> str:
        return check_names(read_named(text)).message

    assert message("x: batch seq = 2, 3, 8") == "“batch seq” has 2 dimensions, its shape (2, 3, 8) has 3"
    assert message("x: ... a b = 2") == "“... a b” has at least 2 dimensions, its shape (2,) has 1"
    assert message("x: 3 a = 4, 5") == "dimension 0 must be 3, but is 4"
    assert (
        message("x: *b d = 2, 3, 4\ny: *b = 2, 4") == "`*b` is (2, 3) in `x`, but dimensions 0 to 1 of `y` has (2, 4)"
    )
    assert message("x: = ()") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a line each"),
        ("x" * 100_000, "characters long"),
        ("\n".join(["x: a = 2"] * 41), "a line each"),
        ("x: a b", "is not written"),
        ("x: a-1 = 2", "no size, name"),
        ("x: 1a = 2", "no size, name"),
        ("x: *a ... = 2", "Only one of"),
        ("x: a = two", "is not a shape"),
        ("x: a = 1000000000", "would have"),
        (f"x: {'a ' * 17}= 2", "17 dimensions"),
    ],
)
def test_refusals(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        check_names(read_named(text))


def test_two_matrices_on_the_device() -> None:
    made = placements((32, 32))
    assert made.bytes == made.explanation.value == 8192
    assert [(way.host, way.bus, way.device) for way in made.ways] == [(8192, 8192, 8192), (0, 8192, 8192), (0, 0, 8192)]
    assert made.headline[0] == "2 tensors of 32 × 32 float32 take **8,192 B** on the device either way."
    assert placements((), "bfloat16", 2, 1).bytes == 2
    (*_, at_once) = placements((), tensors=1).ways
    assert at_once.code == 'x = torch.zeros((), device="cuda")'
    assert placements((), tensors=1).headline[0].startswith("1 tensor of a single element in float32 takes **4 B**")
    assert placements(read_sizes("4096, 4096")).bytes == 2 * 4 * 4096**2
    with pytest.raises(ExpressionError, match="beyond any device"):
        placements(read_sizes("1000000, 1000000, 1000000"))
    with pytest.raises(ExpressionError, match="9 dimensions"):
        read_sizes("1, " * 9)
    with pytest.raises(ExpressionError, match="not negative"):
        placements((2, -1))
    with pytest.raises(ExpressionError, match="at least one"):
        placements((2,), tensors=0)


def test_the_lecture_has_a_preset_for_every_claim() -> None:
    claims = [preset.claim for preset in LECTURE]
    assert claims == [f"T{n}" for n in range(1, 1 + len(claims))]
    last = {p.claim: trace(p.source, p.shape, dtype=p.dtype) for p in LECTURE if p.room == "expression"}
    assert {claim for claim, made in last.items() if made.refusal} == {"T5"}
    assert [made.last.layout.offset for made in (last["T1"], last["T2"])] == [6, 5]
    assert {step.storage for step in last["T3"]} == {0}
    assert last["T4"].last.values == (100, 3, 1, 4, 2, 5)
    assert last["T6"].last.storage == 1
    assert (last["T7"].bytes_copied, last["T9"].bytes_copied) == (96, 48)
    assert (last["T8"].last.kind, last["T8"].last.is_contiguous) == ("view", False)
    assert len({step.layout for step in last["T10"].steps[2:]}) == 1
    assert last["T10"].bytes_copied == 0
    assert set(last["T11"].last.values) == {0}
    assert last["T12"].last.values == (1, 1, 1, 0, 1, 1, 0, 0, 1)
    assert last["T13"].last.layout.shape == (4, 8, 16, 2)
    names = next(p for p in LECTURE if p.claim == "T14")
    assert check_names(read_named(names.source)).refused is not None
    assert read_shape("32, 32") == next(p for p in LECTURE if p.room == "devices").shape
