"""Threads of a mover go by the name of their process: where ``jobid_var`` is ``procname_uid``, that makes the job id.

They inherit it, but from Python 3.14 on the system is told the name of each thread, and Lustre takes that: our own
reads and writes would be those of a job ``tierd-mover_0.0`` that nobody knows.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

SELF = Path("/proc/self")


def as_the_process(proc: Path = SELF) -> None:
    """Give the thread that calls this the name of its process."""
    with suppress(OSError):  # no procfs: then the job id of our work has to stand in `own_jobs`
        name = (proc / "comm").read_bytes().rstrip(b"\n")
        (proc / "task" / str(threading.get_native_id()) / "comm").write_bytes(name)
