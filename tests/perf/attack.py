"""Ten who attack a server at once, and what a quiet user of Compute budget and the health check wait meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import WebSocketException

from core.limits import limit
from pages.common.registry import COMPUTE, WHAT_IF
from tests.patience import PATIENCE_S
from tests.perf.client import Session, spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import EDITS, ROOT

FLOODS, UPLOADS = 4, 2
A_SECOND = 1000
"""Changes that each of those who flood sends."""

LEAVES_AFTER_S = 2.0
"""Who opens a link leaves before the answer, and opens it again."""

_SIZES = f"&w_ys={','.join(f'{2**i}B' for i in range(16))}"
_COUNTS = ",".join(str(720_720 * i) for i in range(1, 14))
LINKS = (
    (COMPUTE.url_path, "c_log=time,tokens%0A1e309,1%0A2,3"),
    (WHAT_IF.url_path, f"w_xs={','.join(str(2**i) for i in range(4, 20))}{_SIZES}"),
    (WHAT_IF.url_path, f"p_n=15T&w_xs={_COUNTS}{_SIZES}"),
    (COMPUTE.url_path, "p_n=15T&p_count=7207200"),
)
"""A log whose time never ends, and the widest searches that boxes allow."""


async def _flood(port: int) -> None:
    """Send changes, as many as can be, until the server closes the connection."""
    edit = EDITS[COMPUTE.id]
    async with Session(port) as session:
        await session.open(COMPUTE.url_path)
        both: list[bytes] = []
        for text in edit.texts:
            request = BackMsg()
            request.rerun_script.page_script_hash = session.page_hash
            request.rerun_script.fragment_id = session.fragments[edit.box]
            request.rerun_script.widget_states.widgets.add(id=session.boxes[edit.box], string_value=text)
            both.append(request.SerializeToString())

        async def listen() -> None:
            async for _ in session.socket:
                pass

        listens, begun = asyncio.create_task(listen()), time.monotonic()
        for number in itertools.count():
            await session.socket.send(both[number % 2])
            await asyncio.sleep(max(0.0, begun + number / A_SECOND - time.monotonic()))
            if listens.done():
                return


async def _upload(port: int) -> None:
    """Send files of the largest size one after the other, and go on where they are refused."""
    async with Session(port) as session:
        await session.rerun()
        for number in range(100):
            await asyncio.to_thread(put, port, session.id, f"{number}", b"x" * (limit("upload_bytes") - 1))


async def _visit(port: int, path: str, query: str) -> None:
    """Open a link and leave."""
    async with Session(port) as session, asyncio.timeout(LEAVES_AFTER_S):
        await session.open(path, query)
        await asyncio.sleep(LEAVES_AFTER_S)


def put(port: int, session: str, file: str, data: bytes, name: bytes = b"a", charset: str = "utf-8") -> int:
    """The status of an upload, sent as a browser does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", "/_stcore/health")
        with connection.getresponse() as health:
            health.read()
            (cookie,) = re.findall("_streamlit_xsrf=([^;]+)", health.headers["Set-Cookie"])
        headers = {"Cookie": f"_streamlit_xsrf={cookie}", "X-Xsrftoken": cookie}
        headers |= {"Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
        head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="' + name + b'"\r\n\r\n'
        connection.request("PUT", f"/_stcore/upload_file/{session}/{file}", head + data + b"\r\n--b--\r\n", headers)
        with connection.getresponse() as answer:
            return answer.status


async def _attack(port: int) -> None:
    async def again(act: object, *details: str) -> None:
        while True:
            with contextlib.suppress(OSError, WebSocketException, http.client.HTTPException):
                await act(port, *details)  # type: ignore[operator]

    await asyncio.gather(
        *(again(_flood) for _ in range(FLOODS)),
        *(again(_upload) for _ in range(UPLOADS)),
        *(again(_visit, *link) for link in LINKS),
    )


@contextmanager
def attacked(port: int) -> Iterator[None]:
    """Ten attack the server at ``port``, from a process of their own."""
    process = subprocess.Popen([sys.executable, "-m", __name__, str(port)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@dataclass
class Waits:
    """Seconds of a quiet user's reruns and of the health check."""

    reruns: list[float] = field(default_factory=list[float])
    health: list[float] = field(default_factory=list[float])


async def quiet(port: int, waits: Waits, stay_s: float, think_s: float) -> None:
    """A user of Compute budget who changes a value after each think time, and somebody who asks for health."""
    until, edit = time.monotonic() + stay_s, EDITS[COMPUTE.id]

    def ask() -> float:
        begun = time.perf_counter()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
            connection.request("GET", "/_stcore/health")
            assert connection.getresponse().status == 200
        return time.perf_counter() - begun

    async def healthy() -> None:
        while time.monotonic() < until:
            waits.health.append(await asyncio.to_thread(ask))
            await asyncio.sleep(think_s / 4)

    async def changes() -> None:
        async with Session(port) as session, asyncio.timeout(stay_s + PATIENCE_S):
            await session.open(COMPUTE.url_path)
            for text in itertools.cycle(edit.texts):
                run = await session.rerun({edit.box: text})
                assert not run.errors
                waits.reruns.append(run.finished_s)
                if time.monotonic() > until:
                    return
                await asyncio.sleep(think_s)

    await asyncio.gather(healthy(), changes())


def main(options: Options = FULL) -> None:
    """Measure and print."""

    async def both(port: int) -> None:
        await until_up(port)
        await asyncio.sleep(options.warm_up_s)
        for name, attacks in (("alone", contextlib.nullcontext()), ("while ten attack", attacked(port))):
            waits = Waits()
            with attacks:
                await quiet(port, waits, options.beside_s, options.think_s / 4)
            print(_row(name, waits), flush=True)

    with spawned(ROOT) as (port, _):
        asyncio.run(both(port))


def _row(name: str, waits: Waits) -> str:
    columns = [f"{name:<18}"]
    for what, seconds in (("reruns", sorted(waits.reruns)), ("health", sorted(waits.health))):
        p50, p99 = (1000 * seconds[int(part * (len(seconds) - 1))] for part in (0.5, 0.99))
        columns.append(f"{len(seconds):>5} {what}: p50 {p50:.0f} ms, p99 {p99:.0f} ms, most {1000 * seconds[-1]:.0f}")
    return "; ".join(columns)


if __name__ == "__main__":
    asyncio.run(_attack(int(sys.argv[1])))
