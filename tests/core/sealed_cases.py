"""Attacks on the sealed process, as programs that the wall never saw. `@F` is a file, `@P` the process to signal."""

from __future__ import annotations

_SYSCALL = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.syscall"
_FIRST_CLASS = "next(c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close')"

REFUSED: dict[str, str] = {
    "read a file": "open('/etc/passwd').read()",
    "write a file": "open('@F', 'w').write('x')",
    "write through a descriptor": "import os\nfor n in range(2, 300): os.write(n, b'x')",
    "write to the request": "import os; os.write(0, b'x')",
    "read the report": "import os; os.read(1, 10)",
    "read own memory": "open('/proc/self/mem', 'rb').read(1)",
    "read the helper's environment": "import os; open(f'/proc/{os.getppid()}/environ').read()",
    "list a folder": "import os; os.listdir('/')",
    "walk up": "import os; os.chdir('/')",
    "make a folder": "import os; os.mkdir('@F')",
    "make a link": "import os; os.symlink('/etc/passwd', '@F')",
    "remove a file": "import os; os.unlink('/etc/hostname')",
    "numpy to a file": "import numpy; numpy.ones(3).tofile('@F')",
    "torch to a file": "import torch; torch.save({}, '@F')",
    "torch from a file": "import torch; torch.from_file('@F', shared=True, size=4)",
    "map a file": "import mmap, os; mmap.mmap(os.open('@F', os.O_RDWR | os.O_CREAT), 4096)",
    "shared memory": "from multiprocessing.shared_memory import SharedMemory; SharedMemory(create=True, size=99)",
    "memory as a file": "import os; os.memfd_create('x')",
    "a device": "open('/dev/mem', 'rb')",
    "a temporary file": "import tempfile; tempfile.TemporaryFile()",
    "another program": "import subprocess; subprocess.run(['touch', '@F'])",
    "a pipe": "import os; os.pipe()",
    "more rights": "import os; os.setuid(0)",
    "another limit": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "a limit of another process": "import resource, os; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "another priority": "import os; os.setpriority(os.PRIO_PROCESS, 0, 0)",
    "a late import": "import sqlite3",
    "signal itself": "import signal; signal.raise_signal(signal.SIGKILL)",
    "a timer": "import signal; signal.setitimer(signal.ITIMER_REAL, 1)",
}
"""Each raises a Python exception, and the program could go on."""

KILLED: dict[str, str] = {
    "a connection": "import socket; socket.socket().connect(('127.0.0.1', 80))",
    "a server": "import socket; socket.create_server(('127.0.0.1', 0))",
    "a name on the network": "import socket; socket.getaddrinfo(b'example.com', 80)",
    "a socket to a file": "import socket; socket.socket(socket.AF_UNIX)",
    "fork": "import os; os.fork()",
    "a fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass",
    "exec": "import os; os.execv('/bin/sh', ['sh', '-c', 'touch @F'])",
    "spawn": "import os; os.posix_spawn('/bin/sh', ['sh', '-c', 'touch @F'], {})",
    "system through a class": f"{_FIRST_CLASS}.__init__.__globals__['sy' + 'stem']('touch @F')",
    "a thread": "import threading; threading.Thread(target=print).start()",
    "threads of torch": "import torch; torch.set_num_threads(4); torch.randn(999, 999) @ torch.randn(999, 999)",
    "kill the helper": "import os; os.kill(os.getppid(), 9)",
    "kill all": "import os; os.kill(-1, 9)",
    "kill a process": "import os; os.kill(@P, 9)",
    "a handle of a process": "import os; os.pidfd_open(@P)",
    "trace a process": f"{_SYSCALL}(101, 16, @P, 0, 0))",
    "read another's memory": f"{_SYSCALL}(310, @P, 0, 0, 0, 0, 0))",
    "io_uring": f"{_SYSCALL}(425, 8, 0))",
    "a filter of packets": f"{_SYSCALL}(321, 0, 0, 0))",
    "another namespace": f"{_SYSCALL}(272, 0x10000000))",
    "calls of the other interface": f"{_SYSCALL}(0x40000000 | 39))",
    "calls of 32 bits": (
        "import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); m.write(b'\\xb8\\x02\\0\\0\\0\\xcd\\x80\\xc3')\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())"
    ),
    "keys of the kernel": f"{_SYSCALL}(250, 0, 0))",
}
"""Each ends the process at once."""

HOSTILE: dict[str, str] = {
    "endless": "while True: pass",
    "endless, catching all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "asleep": "import time; time.sleep(99)",
    "endless in C": "sum(range(10 ** 12))",
    "a power": "10 ** 10 ** 8",
    "a pattern": "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
    "memory": "x = [0] * 10 ** 10",
    "memory in pieces": "x = []\nwhile True: x.append(bytearray(10 ** 6))",
    "memory of torch": "import torch\nx = []\nwhile True: x.append(torch.ones(10 ** 6))",
    "output": "while True: print('x' * 4000)",
    "lines": "while True: print(1)",
    "a deep stack": "import sys; sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()",
    "deep data": "x = []\nfor _ in range(10 ** 6): x = [x]\nprint(x)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "an early end": "import os; os._exit(0)",
    "a closed report": "import os; os.close(1); print(1)",
    "a closed request": "import os; os.close(0); import time; time.sleep(99)",
    "forged lines": 'import os; os.write(1, b\'{"event": "wall", "message": 7, "line": -1}\\n[1]\\nnull\\n{\')',
    "forged depth": "import os; os.write(1, b'[' * 60000 + b'\\n')",
    "forged numbers": "import os; os.write(1, b'{\"n\": ' + b'9' * 9000 + b'}\\n{\"n\": 1e999}\\n')",
    "no text": "import os; os.write(1, bytes(range(256)) * 99)",
    "an exit code": "import os; os._exit(71)",
    "broken tools": "import json, os; json.dumps = os.write = None; print(1)",
}
"""Programs that misuse what a process may do."""
