"""The seal of a Linux process: no files, network, or processes, and bounded memory and time, until it ends.

A filter of system calls (seccomp) is the boundary. Behind it stand resource limits, another user than root, and
no privileges to gain. The process reads its program from descriptor 0 and writes its report to descriptor 1.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

from core.limits import limit

if sys.platform != "win32":
    import resource  # by the helper: a sealed process opens no file

REQUEST, REPORT = 0, 1
"""The two descriptors of a sealed process."""

NOBODY = 65_534
_PDEATHSIG, _DUMPABLE, _SECCOMP, _NO_NEW_PRIVS, _FILTER_MODE = 1, 4, 22, 38, 2

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
"""What the kernel does with a call: runs it, answers EPERM, or ends the process."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ARGUMENT = (16, 24, 32)
_X32 = 0x40000000

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_READ_WRITE = "read 0 63 write 1 64"
_OWN_LIMITS = "prlimit64 302 261"
_ALLOWED = """
futex 202 98 mmap 9 222 munmap 11 215 mremap 25 216 mprotect 10 226 brk 12 214 madvise 28 233 close 3 57 fstat 5 80
clock_gettime 228 113 clock_getres 229 114 clock_nanosleep 230 115 nanosleep 35 101 gettimeofday 96 169 time 201 -1
getpid 39 172 gettid 186 178 getuid 102 174 geteuid 107 175 getgid 104 176 getegid 108 177 getrandom 318 278
rt_sigaction 13 134 rt_sigprocmask 14 135 rt_sigreturn 15 139 sigaltstack 131 132 exit 60 93 exit_group 231 94
restart_syscall 219 128 sched_yield 24 124 sched_getaffinity 204 123 getrusage 98 165 getcpu 309 168 uname 63 160
membarrier 324 283
"""
_KILLED = """
fork 57 -1 vfork 58 -1 clone 56 220 clone3 435 435 execve 59 221 execveat 322 281 socket 41 198 socketpair 53 199
connect 42 203 bind 49 200 listen 50 201 sendto 44 206 sendmsg 46 211 sendmmsg 307 269 recvmsg 47 212 kill 62 129
rt_sigqueueinfo 129 138 pidfd_open 434 434 pidfd_getfd 438 438 pidfd_send_signal 424 424 ptrace 101 117
process_vm_readv 310 270 process_vm_writev 311 271 io_uring_setup 425 425 io_uring_enter 426 426
io_uring_register 427 427 bpf 321 280 perf_event_open 298 241 userfaultfd 323 282 unshare 272 97 setns 308 268
mount 165 40 keyctl 250 219 add_key 248 217 request_key 249 218
"""
"""Calls with their numbers on x86-64 and arm64. Those in no list are refused with EPERM, which programs survive."""

Instruction = tuple[int, int, int, int]
"""One instruction of a filter: operation, steps to skip if true and if false, operand."""


class SealError(Exception):
    """Why a process cannot be sealed, as the end of a sentence."""


def filter_of(machine: str) -> list[Instruction]:
    """Return the filter of system calls for ``machine``, x86_64 or aarch64. Raises `SealError` for others."""
    if machine not in _MACHINES:
        raise SealError(f"the seal is made for x86-64 and arm64, not for {machine or 'this processor'}")
    column, architecture = _MACHINES[machine]

    def numbers(table: str) -> list[int]:
        words = table.split()
        return [int(number) for number in words[1 + column :: 3] if number != "-1"]

    def rule(number: int, action: int, *conditions: tuple[int, int]) -> list[Instruction]:
        checks = [
            step
            for offset, value in conditions
            for step in ((_LOAD, 0, 0, offset), (_EQUAL, 1, 0, value), (_RETURN, 0, 0, REFUSE))
        ]
        return [(_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, action)]

    first = _ARGUMENT[0]
    read, write = numbers(_READ_WRITE)
    (limits,) = numbers(_OWN_LIMITS)
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, KILL),
        *rule(read, ALLOW, (first, REQUEST)),
        *rule(write, ALLOW, (first, REPORT)),
        *(step for number in numbers(_ALLOWED) for step in rule(number, ALLOW)),
        # Its own limits may be read. With a third argument, or for another process, the call would set them.
        *rule(limits, ALLOW, (first, 0), (_ARGUMENT[2], 0), (_ARGUMENT[2] + 4, 0)),
        *(step for number in numbers(_KILLED) for step in rule(number, KILL)),
        (_RETURN, 0, 0, REFUSE),
    ]


def seal() -> None:
    """Seal this process for the rest of its life, and check that the seal holds. Raises `SealError`."""
    try:
        code = filter_of(platform.machine())
        libc = ctypes.CDLL(None, use_errno=True)
        with suppress(OSError):  # where memory runs out, this process goes first
            Path("/proc/self/oom_score_adj").write_bytes(b"1000")
        _limit_resources()
        _leave_root()
        packed = b"".join(struct.pack("=HBBI", *step) for step in code)
        steps = ctypes.create_string_buffer(packed, len(packed))
        program = struct.pack("@HP", len(code), ctypes.addressof(steps))
        _control(libc, _PDEATHSIG, signal.SIGKILL)
        _control(libc, _DUMPABLE, 0)
        _control(libc, _NO_NEW_PRIVS, 1)
        _control(libc, _SECCOMP, _FILTER_MODE, program)
    except (OSError, ValueError) as problem:
        raise SealError(f"the system refuses to seal a process ({problem})") from problem
    _check()


def _limit_resources() -> None:
    used = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    memory, seconds = used + limit("program_memory"), limit("program_cpu_seconds")
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for name in ("NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE"):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (0, 0))


def _leave_root() -> None:
    if 0 in (os.getuid(), os.geteuid()):
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        except PermissionError as problem:
            raise SealError("the server runs as root without the right to become another user") from problem


def _control(libc: ctypes.CDLL, option: int, value: int, pointer: bytes | None = None) -> None:
    """Call ``prctl``; raises ``OSError``."""
    words = (ctypes.c_ulong(value), pointer or ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if libc.prctl(ctypes.c_int(option), *words):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _check() -> None:
    """Try what must fail: a seal that nobody tried is not trusted."""
    try:
        os.close(os.open("/", os.O_RDONLY))
    except OSError as problem:
        if problem.errno == errno.EPERM and 0 not in (os.getuid(), os.geteuid()):
            return
    raise SealError("the system accepted the seal and does not enforce it")
