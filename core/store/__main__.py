"""Back up and restore what `core.store.locations.address` names, while people work.

``python -m core.store backup FILE`` writes everything into a new file; ``restore FILE`` puts it back into an empty
database, and with ``--replace`` in the place of what a database keeps.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.store.backup import back_up, restore, summary
from core.store.engine import make_engine, place_of
from core.store.errors import StoreError
from core.store.locations import address


def main(arguments: list[str]) -> int:
    """Do it and say what was done; 1 where it could not be, and why."""
    parser = argparse.ArgumentParser(prog="python -m core.store", description=__doc__)
    parser.add_argument("do", choices=("backup", "restore"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--replace", action="store_true", help="restore: in the place of what the database keeps")
    asked = parser.parse_args(arguments)
    try:
        engine = make_engine(address())
        try:
            counts = (
                back_up(engine, asked.file)
                if asked.do == "backup"
                else restore(engine, asked.file, replace=asked.replace)
            )
        finally:
            engine.dispose()
    except StoreError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    ways = ("from", "to") if asked.do == "backup" else ("to", "from")
    sys.stdout.write(f"{summary(counts)}: {ways[0]} {place_of(engine)} {ways[1]} {asked.file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
