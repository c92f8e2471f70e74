"""Streamlit with every run of a script 0.3 s longer: ``python -m tests.browser.slow_streamlit run app.py``.

Half of the time passes before a run applies what the browser sent, the other half while it draws.
"""

from __future__ import annotations

import time

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.web.cli import main

LONGER_S = 0.3
ELEMENTS = 80
"""About so many elements of a page share the second half."""

_run_script, _enqueue = ScriptRunner._run_script, ScriptRunner._enqueue_forward_msg


def run_script(self: ScriptRunner, rerun_data: RerunData) -> None:
    time.sleep(LONGER_S / 2)
    _run_script(self, rerun_data)


def enqueue(self: ScriptRunner, msg: ForwardMsg) -> None:
    if msg.WhichOneof("type") == "delta":
        time.sleep(LONGER_S / 2 / ELEMENTS)
    _enqueue(self, msg)


if __name__ == "__main__":
    ScriptRunner._run_script = run_script
    ScriptRunner._enqueue_forward_msg = enqueue
    main(prog_name="streamlit")
