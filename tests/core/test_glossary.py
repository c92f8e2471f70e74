"""The glossary defines what forms speak of, once and in short."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from core.fields import Form
from core.glossary import TERMS, Term, appearances, matching
from tests.every import every

ROOT = Path(__file__).parents[2]
PLAIN = {
    # units, times, file formats and what has no other name
    *("GB", "MB", "TB", "GiB", "UTC", "US", "MW", "CO₂", "JSON", "AWS", "S3", "PyTorch", "NaN", "IEEE"),
    *("TFLOP", "PFLOP", "H100", "80GB", "HBM3"),
    # models, programs and layouts named after them
    *("GPT", "LLaMA", "DeepSeek", "V2", "V3", "OLMo", "MPT", "DBRX", "PaLM", "LM", "DeepSpeed"),
    *("XL", "OLMoE", "SmolLM3", "BLOOM"),
    *("NVIDIA", "CUDA", "vLLM", "cuDNN", "NeMo", "AutoModel", "FSDP2", "InternEvo", "TRL", "PEFT", "MaxText", "JAX"),
    "nf4",  # as a choice of the field writes NF4
}
"""What help texts may say without a definition."""

_WORD = re.compile(r"\b\w*[A-Z]\w*[A-Z0-9]\w*\b|\b\d[A-Z]{2}\b|\b[a-z]+\d+\b")
_WORDS_DEFINED = {word for term in TERMS for name in term.names for word in (name, *re.split(r"[\s/]", name))}


def forms() -> Iterator[tuple[str, Form]]:
    """Every form of a page, by page."""
    for path in sorted((ROOT / "pages").glob("*/form.py")):
        module = importlib.import_module(f"pages.{path.parent.name}.form")
        yield from ((path.parent.name, value) for value in vars(module).values() if isinstance(value, Form))


def undefined(text: str) -> set[str]:
    """Abbreviations and formats in a text that are neither defined nor plain."""
    return set(_WORD.findall(text)) - _WORDS_DEFINED - PLAIN


def test_every_abbreviation_in_a_form_is_defined() -> None:
    found = list(forms())
    assert len(found) >= 5
    for page, form in found:
        for field in form.fields:
            assert not undefined(f"{field.label} {field.help}"), (page, field.id)


def test_a_name_means_one_thing() -> None:
    names = [name.lower() for term in TERMS for name in term.names]
    assert len(names) == len(set(names))
    assert len({term.id for term in TERMS}) == len(TERMS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", term.id) for term in TERMS)


def test_a_search_finds_names_before_definitions() -> None:
    found = matching(" mfu ")
    assert found[0].name == "MFU"
    assert matching("") == TERMS
    assert matching("bfloat16")[0].name == "bf16"
    assert not matching("zzz")
    assert [term.name for term in matching("bubble")] == ["pipeline parallelism"]


def test_terms_are_found_where_they_stand() -> None:
    said = "Micro-batches under ZeRO-3, data-parallel ranks; P10–P90 of MFU, TFLOP/s dense bf16, and FLOPs by 6ND."
    names = ["micro-batch", "ZeRO", "data parallelism", "rank", "P10–P90", "MFU", "bf16", "FLOP", "6ND"]
    assert [term.name for term in appearances(said)] == names
    assert not appearances("`x.view()`, reviewed; a subviewer, Adamant, TFLOP/s, MFU-like")


@every("term", TERMS, ids=lambda term: term.id)
def test_every_name_finds_its_own_term_alone(term: Term) -> None:
    for name in term.names:
        assert appearances(name) == appearances(f"({name.replace(' ', chr(0xA0))}, so") == (term,), name
