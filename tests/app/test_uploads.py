"""Files that are uploaded and that no widget uses are kept within limits; whatever their names, an answer comes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from core.limits import limit
from pages.common.server.uploads import EACH, Uploads
from tests.loops import run
from tests.perf.attack import put
from tests.perf.client import Session, spawned, until_up
from tests.perf.visitors import ROOT

SESSION, SERVER = limit("session_upload_bytes"), limit("server_upload_bytes")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """What a server keeps."""
    files = MemoryUploadedFileManager("/up")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=files))
    return files


def sent(uploads: Uploads, path: str, bodies: list[bytes], method: str = "PUT") -> int:
    """The status of what comes back for a file that comes in pieces."""
    statuses, pieces = list[int](), iter(bodies)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(pieces)}

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    run(uploads({"type": "http", "path": path, "method": method}, receive, send))
    return statuses[0]


def keeps(files: MemoryUploadedFileManager) -> Uploads:
    """The middleware before an app that keeps what it reads."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        session, name = scope["path"].split("/")[-2:]
        data = b""
        while body := (await receive())["body"]:
            data += body
        data.decode()
        files.add_file(session, UploadedFileRec(name, name, "text", data))
        await send({"status": 204})

    return Uploads(app)


@pytest.mark.parametrize("size", [100_000, 1 << 20])
def test_a_session_keeps_so_much_and_no_more(kept: MemoryUploadedFileManager, size: int) -> None:
    uploads, pieces = keeps(kept), [b"x" * (size // 2), b"x" * (size // 2), b""]
    statuses = [sent(uploads, f"/_stcore/upload_file/a/{i}", pieces) for i in range(2 * SESSION // (size + EACH))]
    assert set(statuses) == {204, 413}
    assert statuses == sorted(statuses)
    assert SESSION - 2 * (size + EACH) < kept._total_bytes + EACH * kept._file_count < SESSION + EACH
    assert sent(uploads, "/_stcore/upload_file/b/1", pieces) == 204
    kept.remove_file("a", "0")
    assert sent(uploads, "/_stcore/upload_file/a/0", pieces) == 204
    assert not uploads._coming


def test_a_file_in_the_air_counts_as_it_comes(kept: MemoryUploadedFileManager) -> None:
    uploads = keeps(kept)
    assert sent(uploads, "/_stcore/upload_file/a/1", [b"x" * 1_000_000] * (1 + SESSION // 1_000_000) + [b""]) == 413
    assert sent(uploads, "/_stcore/upload_file/a/1", [b""]) == 204


def test_all_sessions_keep_so_much_and_no_more(kept: MemoryUploadedFileManager) -> None:
    one = SERVER // SESSION
    for number in range(2 * one):
        kept.add_file(f"{number}", UploadedFileRec("1", "1", "text", b"x" * (SESSION // 2)))
    assert sent(keeps(kept), "/_stcore/upload_file/new/1", [b""]) == 413
    kept.remove_session_files("0")
    assert sent(keeps(kept), "/_stcore/upload_file/new/1", [b""]) == 204


def test_a_name_that_cannot_be_is_refused(kept: MemoryUploadedFileManager) -> None:
    assert sent(keeps(kept), "/_stcore/upload_file/a/1", [b"\xff", b""]) == 400
    assert sent(keeps(kept), f"/_stcore/upload_file/a/{'x' * 65}", [b""]) == 400
    assert kept._file_count == 0


@pytest.mark.process
def test_a_server_takes_honest_files_and_refuses_forged_ones() -> None:
    with spawned(ROOT) as (port, _):

        async def visit() -> None:
            await until_up(port)
            async with Session(port) as visitor:
                await visitor.rerun()
                assert put(port, visitor.id, "1", b"{}") == 204
                assert put(port, visitor.id, "2", b"{}", b"a\xff", "punycode") == 400
                assert put(port, visitor.id, "3", b"{}", b"a", "undefined") == 400
                assert put(port, "nobody", "4", b"{}") == 400
                await visitor.socket.send(b"x" * 6_000_000)
                await visitor.socket.wait_closed()
                assert visitor.socket.close_code == 1009  # too big to be looked at

        run(visit())
