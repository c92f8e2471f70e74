"""Work the reference tables of tests/data out anew: ``python -m tests.tools [--write] [table …]``.

Without ``--write`` it says which rows would change and exits with 1 where any would; with it, it writes them, and the
rows of questions that were missing. Where a library is not installed, its rows are left as they are; a new row of it is
refused.
"""

from __future__ import annotations

import sys

from tests.tools import block_tables, float_tables, optimizer_states, tensor_views
from tests.tools.tables import Table

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *(*float_tables.TABLES, *block_tables.TABLES),
        *(tensor_views.TABLE, optimizer_states.TABLE),
    )
}


def differences(table: Table, write: bool) -> int:
    """How many rows are new or not as committed; a line for each that differs."""
    committed, computed = table.committed(), table.made()
    new, changed = len(computed) - len(committed), 0
    for old, row in zip(committed, computed, strict=False):
        columns = [key for key in row if old.get(key) != row[key]]
        if columns:
            changed += 1
            questions = ", ".join(row[key] for key in table.questions if row[key])[:100]
            print(f"  {questions}: " + "; ".join(f"{key} {old.get(key)!r} → {row[key]!r}" for key in columns)[:300])
    print(f"{table.name}: {len(computed):,} rows, {changed:,} differ, {new:,} new")
    if write:
        table.write(computed)
    return changed + new


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    names = [argument for argument in arguments if argument != "--write"] or list(TABLES)
    changed = refused = 0
    for name in names:
        try:
            changed += differences(TABLES[name], write)
        except ModuleNotFoundError as missing:
            refused += 1
            print(f"{name}: left as it is, {missing}; it needs pip install {TABLES[name].needs}")
    return int(bool(refused or (changed and not write)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
