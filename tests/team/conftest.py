"""One team's server for all browser tests of this folder: nginx, two replicas, a Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import until
from tests.ports import free_port
from tests.team.provider import Provider
from tests.team.topology import Replica, nginx, postgres, replicas


@dataclass(frozen=True)
class Team:
    """The proxy's base URL, the replicas behind it, and where the proxy logs."""

    url: str
    replicas: list[Replica]
    log: Path
    provider: Provider

    def answers(self) -> list[tuple[str, str]]:
        """Path and replica's address of every GET that ended, oldest first; a websocket's is that of its end."""
        lines = re.findall(r'"GET (\S+)" \d+ .* (\S+)$', self.log.read_text(), flags=re.MULTILINE)
        return [(path, address) for path, address in lines if address != "-"]

    def serves(self, path: str, seen: int) -> Replica:
        """The replica that gave the latest answer for paths that begin so, after the first ``seen`` answers of all.

        nginx logs an answer after it has sent it, so it may have to be waited for.
        """

        def of_path() -> list[str]:
            return [where for asked, where in self.answers()[seen:] if asked.startswith(path)]

        found = until(of_path, f"an answer for {path}")
        return next(one for one in self.replicas if found[-1].endswith(f":{one.port}"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Address of an empty database in a PostgreSQL of these tests' own."""
    with postgres() as address:
        yield address


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory, cluster: str) -> Iterator[Team]:
    """nginx before two replicas that keep plans in one PostgreSQL, with sign-in."""
    folder = tmp_path_factory.mktemp("team")
    with free_port() as port, free_port() as other, ExitStack() as open_ones:
        url, secrets = f"http://127.0.0.1:{port}", folder / "secrets.toml"
        provider = Provider(other, url)
        open_ones.callback(provider.stop)
        provider.configure(secrets)
        environment = {"DATABASE_URL": cluster, "STREAMLIT_SECRETS_FILES": str(secrets)}
        with replicas(folder, environment=environment) as both, nginx(folder, [one.port for one in both], port=port):
            yield Team(url, both, folder / "nginx.log", provider)
