"""PyTorch's own operator samples as programs on tensors: how many are accepted, and whether all of those agree.

Every sample that torch's operator tests (``op_db``) have for an operation of the table is written as source text:
tensors as starts of the same shape, strides and dtype, everything else as literals. Random numbers become counting
ones on both sides. What cannot be written counts as refused. ``tests.core.operator_samples`` does the work.
"""

from __future__ import annotations

from collections import Counter

from tests.core.operator_samples import Outcome, known_operators, samples_of, verdict

SHOWN = 12
"""Reasons and operators listed."""


def main() -> None:
    """Run every sample and print the totals, the operators with most refusals and the commonest reasons."""
    rows: dict[str, Counter[str]] = {}
    why: Counter[str] = Counter()
    wrong: list[Outcome] = []
    for operator in known_operators():
        counts = rows.setdefault(f"{operator.name} {operator.variant_test_name}".strip(), Counter())
        for sample in samples_of(operator):
            made = verdict(operator, sample)
            counts[made.kind] += 1
            if made.kind == "refused":
                why[made.why[:90]] += 1
            elif made.kind == "wrong":
                wrong.append(made)
    total = sum(rows.values(), Counter[str]())
    count = total.total()
    print(f"{len(rows)} operators of torch that are in the table, {count:,} samples")
    for kind in ("agrees", "refused", "wrong"):
        print(f"  {kind:<8} {total[kind]:>6,}  {100 * total[kind] / max(count, 1):5.1f} %")
    print("operators with most refused samples:")
    for name, counts in sorted(rows.items(), key=lambda row: -row[1]["refused"])[:SHOWN]:
        print(f"  {name:<36} {counts['refused']:>4} of {counts.total()}")
    print("commonest reasons:")
    for reason, number in why.most_common(SHOWN):
        print(f"  {number:>4}  {reason}")
    for outcome in wrong:
        print(f"WRONG {outcome.name}: {outcome.text!r}: {outcome.why}")
    if wrong:
        raise SystemExit(f"{len(wrong)} accepted samples disagree with torch")


if __name__ == "__main__":
    main()
