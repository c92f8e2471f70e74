"""Training memory answers for fine-tuning: from Home in two clicks, with a message for what cannot be."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.presets import FIRST_TUNING, MEMORY_PRESETS
from pages.common.registry import MEMORY
from tests.app.plan_pages import next_pages, stripped, words
from tests.app.test_memory import opened
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

TUNINGS = {name: dict(texts) for name, texts in MEMORY_PRESETS.items() if "ft" in texts}


@pytest.mark.parametrize("name", TUNINGS)
def test_every_story_of_fine_tuning_fits_and_says_what_it_takes(name: str) -> None:
    page = stripped(words(opened(**TUNINGS[name])))
    assert "fits" in page
    assert "not fit" not in page
    assert "tokens/s" in page
    assert "for 10M tokens" in page
    assert "trained" in page or TUNINGS[name]["ft"] == "everything"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ft": "named tensors", "names": "dwn_proj"}, "Near it: mlp.down_proj"),
        ({"rank": "5,000"}, "is above the width of self_attn.k_proj, 1,024"),
        ({"ft": "named tensors", "names": "proj"}, "cannot stay in nf4"),
        ({"ft": "everything"}, "nothing is stored in nf4"),
        ({"target": "q_prj"}, "q_proj"),
        ({"gpu": "RTX 4099"}, "Did you mean"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_lost(changed: dict[str, str], said: str) -> None:
    app = opened(**{**TUNINGS[FIRST_TUNING], **changed})
    page = stripped(words(app))
    assert said in page
    assert "Llama 3.1 8B fits on" in page or "Llama 3.1 8B does not fit on" in page


def test_one_click_takes_the_largest_that_fits() -> None:
    app = opened(**TUNINGS[FIRST_TUNING])
    button = next(b for b in app.button if b.label.startswith("sequence length"))
    length = button.label.removeprefix("sequence length ")
    button.click().run()
    assert not app.exception
    assert f"sequence of {length} tokens" in stripped(words(app))


def test_a_newcomer_gets_from_home_to_the_answer_in_one_click() -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    (link,) = (link for link in next_pages(app, MEMORY) if link.get("ft") == "adapters")
    assert link["model"] == "Llama 3.1 8B"
    assert link["gpu"] == "RTX 4090"
    page = stripped(words(opened(**link)))
    assert "Llama 3.1 8B fits on one RTX 4090" in page


@pytest.mark.parametrize(("ft", "named"), [("adapters", "trained parameter"), ("everything", "each parameter")])
def test_bytes_are_of_what_is_trained(ft: str, named: str) -> None:
    texts = {**TUNINGS[FIRST_TUNING], "ft": ft, "frozen": "bf16", "policy": "true"}
    assert named in stripped(words(opened(**texts)))
