"""Building a model from its config.json in a process of its own; see `core.models.building.worker`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from core.limits import limit
from core.models.building.events import Built, Refused, decode
from core.models.configs.json_text import ConfigError, read_object
from core.models.configs.keys import GENERIC

_ROOT = Path(__file__).parents[3]
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""Settings of the server that the process gets: what a library needs to load, and nothing that is secret."""

WORKER: Sequence[str] = (sys.executable, "-m", "core.models.building.worker")


def build_model(
    config: str, seq_len: int, lock: int | None = None, *, command: Sequence[str] = WORKER, seconds: float | None = None
) -> Built | Refused:
    """The model of a config.json as transformers builds it, counted; blocks for 3 to 60 seconds, raises nothing.

    seq_len: tokens of the sequence whose FLOPs are counted. lock: a descriptor that the process keeps open until it
    ends. command: the process to ask. seconds: the most it may take, the cap of `core.limits` by default.
    """
    try:
        values = _checked(config, seq_len)
    except ConfigError as problem:
        return Refused(str(problem))
    most = limit("build_wait") if seconds is None else seconds
    request = {"config": values, "seq_len": seq_len, "memory": limit("build_memory"), "seconds": limit("build_seconds")}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            code = _asked(command, json.dumps(request).encode(), out, errors, most, () if lock is None else (lock,))
        except OSError as problem:
            return Refused(f"The building process did not start: {problem}")
        if code is None:
            return Refused(f"It was stopped after {most:g} s, the most that building one model may take.")
        out.seek(0)
        lines = out.read(limit("build_output")).splitlines()
        answer = decode(lines[-1]) if lines else None
        return answer or Refused(_death(code, _tail(errors)))


def _checked(config: str, seq_len: int) -> dict[str, Any]:
    """The config as an object, its sizes such as some model could have; raises `ConfigError`."""
    values = read_object(config)
    if not 1 <= seq_len <= limit("model_dimension"):
        raise ConfigError("", seq_len, f"A sequence has 1 to {limit('model_dimension'):,} tokens, not {seq_len:,}.")
    for key, number in _numbers(values):
        most = limit("model_layers" if key in GENERIC["layers"] else "model_dimension")
        if abs(number) > most and not key.endswith(("_id", "_ids", "_index", "theta", "_base", "length")):
            raise ConfigError(key, number, f"no model has more than {most:,}.", f'"{key}": 32')
    return values


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _numbers(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _numbers(inner, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, value


def _asked(
    command: Sequence[str], request: bytes, out: Any, errors: Any, seconds: float, numbers: Sequence[int]
) -> int | None:
    """Run the process to its end; its exit code, None where it had to be stopped."""
    settings = {name: os.environ[name] for name in _KEPT if name in os.environ}
    process = subprocess.Popen(  # noqa: S603 - our own command, no shell
        list(command),
        cwd=_ROOT,
        env={**settings, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=errors,
        start_new_session=True,
        pass_fds=numbers,
    )
    try:
        process.communicate(request, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


def _tail(errors: Any) -> str:
    """The last line that the process printed as an error."""
    errors.seek(max(errors.seek(0, os.SEEK_END) - 2_000, 0))
    lines = errors.read().decode("utf-8", errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def _death(code: int, last: str) -> str:
    text = f" Its last words: {last}" if last else ""
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return f"It was stopped after {limit('build_seconds')} s of work, or for the memory it took.{text}"
    return f"The building process ended without an answer (exit code {code}).{text}"
