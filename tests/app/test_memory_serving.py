"""Training memory's panels on what comes after a step: serving, post-training, launch settings."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from pages.common.registry import MEMORY
from tests.app.plan_pages import bodies, linked, opened, stripped


def panel(name: str, **texts: str) -> AppTest:
    return opened(MEMORY, {"model": "Llama 3.1 8B", "count": "8", name: "true", **texts})


def takeaways(app: AppTest) -> list[str]:
    return [stripped(body) for body in bodies(app, "np-takeaway")]


def test_serving_says_who_fits_and_how_fast() -> None:
    fits, fast = takeaways(panel("serve"))
    assert fits.startswith("Llama 3.1 8B in bf16 serves 57 users of 8,192 tokens at once on one H100 SXM")
    assert "At least 4.8 ms a token for one user" in fast
    fits, fast = takeaways(panel("serve", svw="int4", svkv="fp8", svgpu="RTX 4090", svctx="32k", svusers="4"))
    assert "in int4 serves 8 users of 32,768 tokens at once on one RTX 4090" in fits
    assert "4 users" in fast


def test_bad_fields_of_serving_are_told_and_nothing_is_lost() -> None:
    app = panel("serve", svctx="zero", svkv="fp8")
    assert "Context" in stripped(bodies(app, "np-error")[0])
    assert linked(app)["m_svkv"] == "fp8"
    assert "8,192 tokens" in takeaways(app)[0]
    app = panel("serve", model="GPT-2 XL 1558M", svtp="8")
    assert "8 accelerators cannot share its 25 heads evenly" in stripped(bodies(app, "np-error")[0])
    assert "on one H100 SXM" in takeaways(app)[0]
    assert linked(app)["m_svtp"] == "8"


def test_serving_and_post_training_change_no_answer() -> None:
    closed, app = opened(MEMORY, {"count": "8"}), opened(MEMORY, {"count": "8", "serve": "true", "post": "true"})
    assert bodies(closed, "np-answer") == bodies(app, "np-answer")


def test_post_training_shows_what_each_method_holds() -> None:
    app = panel("post", seq="4096")
    text = takeaways(app)[-1]
    assert all(name in text for name in ("DPO", "GRPO", "PPO"))
    notes = " ".join(stripped(body) for body in bodies(app, "np-note"))
    assert "of cache for 8 answers" in notes
    assert "of a critic" in notes


def test_launch_settings_are_lines_or_a_reason() -> None:
    app = panel("launch", count="1", zero="0", ft="adapters", frozen="nf4, double")
    assert any("adapters of rank 16" in text for text in takeaways(app))
    assert "--load_in_4bit True" in app.code[0].value
    split = panel("launch", count="2", lay="own", tp="2")
    assert not split.code
    assert any("does not support tensor parallelism" in stripped(body) for body in bodies(split, "np-note"))


def test_a_model_that_is_too_large_says_so() -> None:
    app = panel("serve", model="DeepSeek-V3", svgpu="RTX 4090", count="2048", pp="16", ep="64", zero="1")
    assert "does not fit on 32 × RTX 4090" in takeaways(app)[0]
    assert not bodies(app, "np-error")


def test_a_size_alone_is_served_by_the_layers_that_stand_in() -> None:
    app = panel("serve", model="Typed parameters", n="7B")
    assert "of 7B parameters" in takeaways(app)[0]
    assert any("Only a number of parameters is known" in stripped(body) for body in bodies(app, "np-note"))
