"""The lecture, checked: each claim, the value recomputed by core, a verdict, and a link that opens it."""

import streamlit as st

from core.lecture import CLAIMS, GROUPS, VERDICTS, findings
from core.sources import CS336
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import LECTURE, PAGES

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
    cells = st.columns([3.4, 1.1, 0.9])
    with cells[0]:
        group = inputs.choice("topic", "Topic", [ALL, *GROUPS], ALL, segmented=True)
    with cells[1]:
        verdict = inputs.choice("verdict", "Verdict", [ALL, *VERDICTS], ALL)
    with cells[2]:
        wanted = inputs.choice("claim", "Claim", [ALL, *CLAIMS], ALL)

    found = findings()
    shown = [
        claim
        for claim in CLAIMS.values()
        if group in (ALL, claim.group) and verdict in (ALL, claim.verdict) and wanted in (ALL, claim.id)
    ]
    careful = sum(claim.verdict == "needs care" for claim in shown)
    contradicted = [claim.id for claim in shown if not found[claim.id].confirms]
    if shown:
        show.answer(
            f"Of **{len(shown)}** claims **{len(shown) - careful}** stand and **{careful}** need care."
            + (f" The computation contradicts **{', '.join(contradicted)}**." if contradicted else ""),
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
                    show.remarked(found[claim.id].value, claim.remark),
                    show.badge(claim.verdict, ROLE[claim.verdict]),
                    show.link(PAGE[claim.link.page].title, PAGE[claim.link.page], claim.link.fields),
                )
                for claim in shown
            ],
        )
    else:
        show.answer("No claim matches these three filters.", "Set one of them back to “All”.")
    show.how(lambda: [step for claim in shown for step in found[claim.id].explanations], key="lecture:how")
    show.note("The claims are put in our words, after the lecture and four sets of students’ notes on it.")
    show.source(f"{CS336}; {CS336.url.removeprefix('https://')}")
    show.footer(inputs)


show.body(page)
