"""Training memory, precision: one row for each class of tensors, and what every precision comes to."""

from __future__ import annotations

from core.planning.answer import words_memory
from core.planning.answer.holding import Held, under_each_policy
from core.training import POLICIES
from pages.parts import show
from pages.parts.inputs import Inputs


def policy(_: Inputs, h: Held) -> None:
    """The panel's content."""
    show.says(words_memory.adds_up(h))
    show.small_table(
        [
            show.Column("Tensors", whole=True),
            show.Column("Kept in", whole=True),
            show.Column("B/parameter", numeric=True),
            show.Column("Why"),
        ],
        words_memory.policy_rows(h),
        caption=f"{h.policy.id}, under {h.optimizer.name}.",
    )
    show.small_table(
        [
            show.Column("Precision"),
            show.Column("params + grads + master + state", numeric=True),
            show.Column("B/parameter", numeric=True),
            show.Column("On each, all", numeric=True),
            show.Column("Left", numeric=True),
            show.Column("What it is"),
        ],
        [words_memory.policy_row(one) for one in under_each_policy(h)],
        caption=f"Every precision under {h.optimizer.name}, all else as it is.",
        here=list(POLICIES).index(h.policy.id),
    )
    show.note(words_memory.WHY_SO_MANY)
