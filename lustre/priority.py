"""Which threads get the processor first where applications want all of it.

tierd and the exporter need a few percent of a processor, but at once: with the priority of an application, a cycle on a
node with forty runnable threads took 12 s instead of 1 s, and tierd saw what had already passed. Linux has a nice value
for each thread; threads and commands inherit it. Where the kernel groups threads by session (``sched(7)``, autogroup),
it compares a thread only with others of its session, and each session has a nice value of its own.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

PROMPT_NICE = -10
"""A choice: the processor gives a thread with this value nine times the time of an ordinary one."""
ORDINARY_NICE = 0


def run_promptly() -> None:
    """Give the calling thread, and those that it starts, priority over applications, if it may.

    So has the session, if it is this process's own, as that of a unit of systemd is.
    """
    _set_nice(min(_nice(), PROMPT_NICE))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not allowed, /proc is read-only, or a kernel without groups
            Path("/proc/self/autogroup").write_text(str(PROMPT_NICE), encoding="ascii")


def run_as_applications() -> None:
    """Take that priority away from the calling thread: copying a file has time."""
    _set_nice(max(_nice(), ORDINARY_NICE))


def _nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def _set_nice(nice: int) -> None:
    with suppress(PermissionError):  # without root, or where a system call filter forbids it
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
