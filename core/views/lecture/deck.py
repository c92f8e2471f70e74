"""The lecture deck as text: its length, and its slides as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.lecture.catalogue import CLAIMS
from core.lecture.deck import Slide, spent

DECK_TITLE = "Resource accounting, a lecture"


def headline(slides: Sequence[Slide]) -> str:
    """How many slides there are and how long they take."""
    return f"**{len(slides)}** slide{'s' * (len(slides) != 1)}, **{spent(slides):g}** minutes."


def value(slide: Slide) -> str:
    """What is worked out for the claim of a slide; empty for one's own."""
    return CLAIMS[slide.claim].check().value if slide.claim else ""


def code(slide: Slide) -> str:
    """Lines of code that show the claim of a slide; empty where there are none."""
    example = CLAIMS[slide.claim].example if slide.claim else None
    return example.code if example else slide.link.fields.get("x", "") if slide.link.page == "tensors" else ""


def markdown(slides: Sequence[Slide], address: Callable[[int], str]) -> str:
    """The slides as Markdown. address: of the slide by its number, from 1."""
    parts = [f"# {DECK_TITLE}", headline(slides)]
    for number, slide in enumerate(slides, 1):
        parts += [f"## {number}. {slide.headline}", slide.say]
        parts += [f"*{slide.ask}*"] if slide.ask else []
        parts += [f"Worked out: {value(slide)}"] if value(slide) else []
        parts += [f"```python\n{code(slide)}\n```"] if code(slide) else []
        parts.append(f"<{address(number)}>")
    return "\n\n".join(parts) + "\n"
