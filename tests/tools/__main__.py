"""Work the reference tables of tests/data out anew: ``python -m tests.tools [--write] [table …]``.

Without ``--write`` it says which rows would change and exits with 1 where any would; with it, it writes them, and the
rows of questions that were missing. A library that is not installed is named, and its tables are left as they are.
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
    """How many rows are not as committed, each said in a line."""
    was, made = table.committed(), table.made()
    changed = 0
    for at, row in enumerate(made):
        old = was[at] if at < len(was) else {}
        columns = [key for key in row if old.get(key) != row[key]]
        if columns:
            changed += 1
            asked = ", ".join(row[key] for key in table.questions if row[key])[:100]
            print(f"  {asked}: " + "; ".join(f"{key} {old.get(key)!r} → {row[key]!r}" for key in columns)[:300])
    print(f"{table.name}: {len(made):,} rows, {changed:,} differ")
    if write:
        table.write(made)
    return changed


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    names = [argument for argument in arguments if argument != "--write"] or list(TABLES)
    changed = 0
    for name in names:
        try:
            changed += differences(TABLES[name], write)
        except ModuleNotFoundError as missing:
            print(f"{name}: left as it is, {missing}; it needs pip install {TABLES[name].needs}")
    return int(bool(changed) and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
