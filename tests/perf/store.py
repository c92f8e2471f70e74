"""Ten thousand saved plans: what a list, a search, a save and a change cost, in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import event

from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import entry_of
from core.planning.presets import PRESETS
from core.store.engine import make_engine
from core.store.migrate import migrate
from core.store.store import Store
from tests.perf.options import FULL, Options

ROUNDS = 20
NOTE = "What was agreed on in the meeting: the rent is the one that was quoted, the rest as published. " * 3


def milliseconds(act: Callable[[], object]) -> tuple[float, float]:
    """Of processor time: the best of several rounds, and the worst."""
    took: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        act()
        took.append(1000 * (time.process_time() - start))
    return min(took), max(took)


def main(options: Options = FULL) -> None:
    """Fill a database, then measure and print."""
    count = options.saved_plans
    entries = [with_saved_results(entry_of(name, texts)) for name, texts in PRESETS.items()]
    with TemporaryDirectory() as folder:
        address = f"sqlite:///{Path(folder) / 'napkin.db'}"
        filling = make_engine(address)
        migrate(filling)
        event.listen(filling, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        filling.dispose()
        many = Store(filling)
        for i in range(count):
            many.save(entries[i % len(entries)], NOTE, [f"tag {i % 40}", "all"], f"person {i % 25}")
        many.close()
        store = Store.open(address)
        newest = store.find().plans[0]
        acts: dict[str, Callable[[], object]] = {
            "list, first page": lambda: store.find(),
            "list, last page": lambda: store.find(page=count // 20 or 1),
            "search, many found": lambda: store.find("llama agreed"),
            "search, none found": lambda: store.find("llama agreed xyzzy"),
            "search with a tag": lambda: store.find("person", ["tag 7"]),
            "tags in use": lambda: store.tags(),
            "read one": lambda: store.get(newest.id),
            "save": lambda: store.save(entries[0], NOTE, ["all"]),
            "change": lambda: store.change(newest.id, store.get(newest.id).revision, note=str(time.monotonic_ns())),
        }
        size = (Path(folder) / "napkin.db").stat().st_size / count
        print(f"{count:,} saved plans, {size / 1000:.1f} kB each; processor time of {ROUNDS} rounds")
        for name, act in acts.items():
            best, worst = milliseconds(act)
            print(f"  {name:20} {best:6.1f} ms, at most {worst:6.1f} ms")
        store.close()


if __name__ == "__main__":
    main()
