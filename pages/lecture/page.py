"""The lecture, checked: each claim, the value recomputed by core, a verdict, and a link that opens it."""

import streamlit as st

from core.fields import choice
from core.lecture.catalogue import CLAIMS, GROUPS, VERDICTS, Claim, findings, summary
from core.sources import CS336
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import LECTURE, PAGES
from pages.lecture.matmul import linear

ALL = "All"
ROLE = {
    "exact": "optimizer",
    "holds": "optimizer",
    "rule of thumb": "activations",
    "convention": "master",
    "needs care": "gradients",
}
PAGE = {page.id: page for page in PAGES}


def page() -> None:
    """Filters, the verdicts in one sentence, and the table of claims."""
    inputs = Inputs(LECTURE)
    group = inputs.ask(choice("topic", "Topic", [ALL, *GROUPS], ALL, few=True))
    cells = st.columns([1, 1, 2])
    with cells[0]:
        verdict = inputs.ask(choice("verdict", "Verdict", [ALL, *VERDICTS], ALL))
    with cells[1]:
        wanted = inputs.ask(choice("claim", "Claim", [ALL, *CLAIMS], ALL))
    show.input_errors(inputs)

    by_claim = findings()
    claims = [
        claim
        for claim in CLAIMS.values()
        if group in (ALL, claim.group) and verdict in (ALL, claim.verdict) and wanted in (ALL, claim.id)
    ]
    contradicted = [claim.id for claim in claims if not by_claim[claim.id].confirms]
    if claims:
        show.answer(
            summary(claims) + (f" The computation contradicts **{', '.join(contradicted)}**." if contradicted else ""),
            "Every verdict is checked by computing it: "
            + "; ".join(f"**{word}**, {meaning}" for word, meaning in VERDICTS.items())
            + ".",
        )
        show.small_table(
            [show.Column(name) for name in ("No.", "Claim", "Recomputed now", "Verdict", "Try it")],
            [
                (
                    claim.id,
                    claim.text,
                    show.remarked(by_claim[claim.id].value, claim.remark),
                    show.badge(claim.verdict, ROLE[claim.verdict]),
                    _opens(claim),
                )
                for claim in claims
            ],
        )
        show.how_each(
            lambda: [
                show.Part(claim.id, claim.name, by_claim[claim.id].how, by_claim[claim.id].explanations)
                for claim in claims
            ],
            key="lecture:how",
        )
    else:
        show.answer("No claim matches these three filters.", "Set one of them back to “All”.")
    with inputs.panel("linear", "From one matmul to 6ND") as opened:
        if opened.open:
            linear(inputs)
    show.note(
        "The claims are put in our words, after the lecture and four sets of students’ notes on it. They are numbered "
        "as in a longer list, of which these have been checked so far."
    )
    show.source(CS336)
    show.footer(inputs)


def _opens(claim: Claim) -> str:
    """The link to the page that shows the claim, or a dash where none does."""
    if claim.link is None:
        return "–"
    page = PAGE[claim.link.page]
    return show.link(page.title, page, claim.link.fields, at=claim.link.at)


show.body(page)
