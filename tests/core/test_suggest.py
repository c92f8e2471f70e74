"""Names that are not there, and what was probably meant."""

from __future__ import annotations

import pytest

from core.hardware.accelerators import accelerators
from core.models.catalog import catalog
from core.suggest import suggestions

DEVICES = [device.name for device in accelerators()]
MODELS = [model.name for model in catalog()]


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("B200 SXM", DEVICES, "B200"),
        ("h100", DEVICES, "H100 SXM"),
        ("H100-SXM", DEVICES, "H100 SXM"),
        ("TPUv5p", DEVICES, "TPU v5p"),
        ("llama 3.1 450b", MODELS, "Llama 3.1 405B"),
        ("DeepSeek V3", MODELS, "DeepSeek-V3"),
    ],
)
def test_what_was_meant_comes_first(text: str, names: list[str], first: str) -> None:
    found = suggestions(text, names)
    assert found[0] == first
    assert len(found) == len(set(found)) <= 3


def test_no_more_are_offered_than_asked_for_and_no_fewer() -> None:
    """Where many names hold the text, and where many are only spelt like it."""
    for text in ("Llama", "Qwan2.5 7B"):
        assert [len(suggestions(text, MODELS, most)) for most in (1, 3)] == [1, 3]


def test_a_name_within_the_text_is_the_only_one() -> None:
    assert suggestions("B200 SXM", DEVICES) == ["B200"]


@pytest.mark.parametrize("text", ["", "x", "<b>", "zzzzzzzz"])
def test_nothing_like_it(text: str) -> None:
    assert suggestions(text, DEVICES) == []
