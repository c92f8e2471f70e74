"""The rival expectation: whole runs from the steps of their best layouts."""

from __future__ import annotations

import math

import pytest

from core.planning.evidence.anchored import anchored, anchored_score, run_steps
from core.planning.evidence.judged import Without, score
from core.planning.evidence.rows import evidence
from core.planning.search.whole_runs import steps_of_whole_runs


def test_every_whole_run_has_its_steps_as_the_search_finds_them() -> None:
    """The table is what the search says now: a change of constants or of the search asks for a new table."""
    found = steps_of_whole_runs()
    assert [one.model for one in found] == [row.run.model for row in evidence("whole")]
    for one in found:
        kept = run_steps()[one.model]
        assert (one.accelerators, one.batch, one.seq_len, one.assumed) == (
            kept.accelerators,
            kept.batch,
            kept.seq_len,
            kept.assumed,
        )
        assert one.utilisation == pytest.approx(kept.utilisation, rel=1e-3, nan_ok=True)
        assert math.isnan(one.utilisation) or 0 < one.utilisation < 1.2


def test_what_remains_is_the_runs_share_of_its_steps() -> None:
    pairs = [(new, old) for new, old in zip(anchored(), evidence("whole"), strict=True)]
    shares = [
        new.utilisation / old.utilisation * run_steps()[old.run.model].utilisation
        for new, old in pairs
        if old.run.accelerator == "H100 SXM"
    ]
    assert shares == pytest.approx([shares[0]] * len(shares))


@pytest.mark.parametrize("by", ["model", "lab"])
def test_the_expectation_in_use_predicts_held_out_runs_no_worse(by: Without) -> None:
    """Compute budget says so, and takes the other one as soon as it is not."""
    used, rival = score(by), anchored_score(by)
    assert used.error <= rival.error
    assert used.inside >= rival.inside
    assert used.ratio <= rival.ratio
