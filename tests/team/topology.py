"""The topology of compose.yaml on this machine's loopback: PostgreSQL, replicas of the app, nginx before them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.team.ensure import ensure

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "deploy" / "nginx.conf.template"


def rendered(template: str, values: Mapping[str, str]) -> str:
    """The template as envsubst fills it in: ``${NAPKIN_…}`` and nothing else. A name without value is a KeyError."""
    return re.sub(r"\$\{(NAPKIN_\w+)\}", lambda name: values[name[1]], template)


def nginx_settings(scratch: Path, listen: str, replicas: Sequence[int], patience: str = "10s") -> dict[str, str]:
    """What compose.yaml sets for the template, here for ports of the loopback."""
    servers = (f"server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;" for port in replicas)
    return {
        "NAPKIN_LISTEN": listen,
        "NAPKIN_REPLICAS": " ".join(servers),
        "NAPKIN_PATIENCE": patience,
        "NAPKIN_SCRATCH": str(scratch),
    }


def nginx_command(scratch: Path, settings: Mapping[str, str]) -> list[str]:
    """Write nginx.conf into ``scratch`` and give the command that starts nginx with it in the foreground."""
    config = scratch / "nginx.conf"
    config.write_text(rendered(TEMPLATE.read_text(encoding="utf-8"), settings), encoding="utf-8")
    # As root nginx would become nobody, who may not enter the folders of tests.
    globals_ = "daemon off;" + (" user root;" if os.geteuid() == 0 else "")
    return [ensure("nginx"), "-p", str(scratch), "-c", str(config), "-e", "stderr", "-g", globals_]


@contextmanager
def nginx(scratch: Path, replicas: Sequence[int], *, patience: str = "10s", port: int = 0) -> Iterator[str]:
    """nginx before these ports of the loopback, by the template of compose.yaml; gives its base URL."""
    if not port:
        with free_port() as port, nginx(scratch, replicas, patience=patience, port=port) as url:
            yield url
        return
    command = nginx_command(scratch, nginx_settings(scratch, f"127.0.0.1:{port}", replicas, patience))
    with (scratch / "nginx.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _until_up(lambda: _listens(port), process, scratch / "nginx.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _until_up(met: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until ``met()`` is true; raises with the log if the process ends or takes too long."""
    try:
        until(lambda: process.poll() is not None or met())
        assert process.poll() is None
    except AssertionError:
        raise RuntimeError(f"{process.args} is not up:\n{log.read_text(errors='replace')[-4000:]}") from None


@dataclass
class Replica:
    """One process of the app on a port of the loopback; it can be killed and started again. root: of its program."""

    folder: Path
    port: int
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    root: Path = ROOT
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What it printed."""
        return self.folder / f"replica-{self.port}.log"

    def start(self) -> None:
        """Start it, without waiting until it is up."""
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        command += ["--server.address", "127.0.0.1"]
        with self.log.open("ab") as out:
            shared = {"STREAMLIT_SERVER_COOKIE_SECRET": "of all replicas", **self.environment}
            self.process = subprocess.Popen(
                command, cwd=self.root, stdout=out, stderr=out, env={**os.environ, **shared}
            )

    def until_healthy(self) -> None:
        """Wait until it answers its health check."""
        assert self.process
        _until_up(self.healthy, self.process, self.log)

    def healthy(self) -> bool:
        """Whether it answers its health check now."""
        health = f"http://127.0.0.1:{self.port}/_stcore/health"
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=PATIENCE_S) as answer:
            return answer.status == 200
        return False

    def kill(self) -> None:
        """Kill it as a machine that loses power does."""
        if self.process:
            self.process.kill()
            self.process.wait(timeout=PATIENCE_S)


@contextmanager
def replicas(folder: Path, count: int = 2, environment: Mapping[str, str] | None = None) -> Iterator[list[Replica]]:
    """``count`` healthy processes of the app, started at once."""
    with contextlib.ExitStack() as held:
        started = [Replica(folder, held.enter_context(free_port()), environment or {}) for _ in range(count)]
        try:
            for one in started:
                one.start()
            for one in started:
                one.until_healthy()
            yield started
        finally:
            for one in started:
                one.kill()


def _accepts(port: int) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=port, user="napkin", dbname="postgres").close()
        return True
    return False


@contextmanager
def postgres(*, durable: bool = False) -> Iterator[str]:
    """A fresh PostgreSQL with an empty database; gives its URL for SQLAlchemy. durable: as it is run by default."""
    initdb = Path(ensure("initdb")).resolve()
    folder = Path(tempfile.mkdtemp(prefix="napkin-postgres-", dir="/tmp"))  # its owner must get there
    as_owner: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        as_owner = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data, log = folder / "data", folder / "log.txt"
    process: subprocess.Popen[bytes] | None = None
    with free_port() as port:
        try:
            make = [
                str(initdb),
                "-D",
                str(data),
                "-U",
                "napkin",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]
            subprocess.run([*as_owner, *make], check=True, capture_output=True, cwd=folder, timeout=PATIENCE_S)
            serve = [str(initdb.parent / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
            serve += ["-c", "listen_addresses=127.0.0.1", "-c", f"fsync={'on' if durable else 'off'}"]
            with log.open("w") as out:
                process = subprocess.Popen([*as_owner, *serve], stdout=out, stderr=out, cwd=folder)
            _until_up(lambda: _accepts(port), process, log)
            yield f"postgresql+psycopg://napkin@127.0.0.1:{port}/postgres"
        finally:
            if process:
                process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
                process.wait(timeout=PATIENCE_S)
            shutil.rmtree(folder, ignore_errors=True)
