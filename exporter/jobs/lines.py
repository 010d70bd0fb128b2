"""Renders a job's block of ``job_stats`` to finished lines, under a unique name.

``_lines.c`` renders blocks of the usual form (decision 12). ``exporter.jobs.statistics`` renders all other blocks, and
all blocks if the package was built without a C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from exporter.exposition import escape
from exporter.jobs.statistics import OF_ONE_JOB, Chunks, read_block, render

if TYPE_CHECKING:
    from exporter.jobs._lines import Table

Compiled = Callable[[bytes, bytes, tuple[bytes, ...]], tuple[bytes, Chunks] | None]
compiled: Compiled | None = None
"""Takes a block, label text and names of families; returns the id as a label value and lines. None without C module."""
compiled_table: Callable[..., Table] | None = None
"""Makes the table of the jobs of a target. None without the C module."""


def _keep_memory() -> None:
    pass


return_memory: Callable[[], None] = _keep_memory
"""Returns freed memory to the system; does nothing without the C module."""
try:
    from exporter.jobs import _lines
except ImportError:
    pass
else:
    compiled, compiled_table, return_memory = _lines.lines, _lines.Table, _lines.trim

NAMES = tuple([family.name.encode() for family in OF_ONE_JOB])
NOTHING: Chunks = (b"", b"", b"", b"", b"", b"")
OWN_NAME = b"lustre-exporter"
"""The name of the exporter's process: with ``jobid_var=procname_uid`` its job is ``lustre-exporter.UID``."""
OWN_OPERATION = b'operation="statfs"'


def lines_of(
    block: bytes, labels: bytes, taken: Container[bytes] = (), quick: Compiled | None = compiled
) -> tuple[bytes, Chunks, int]:
    """Return the job's name, its lines with these labels (fs and target), and the number of lines not understood.

    The name is not in ``taken``. The job of an exporter has no lines.
    """
    found = None if quick is None else quick(block, labels, NAMES)
    if found is not None and found[0] not in taken:
        name, chunks, skipped = *found, 0
    else:
        job = read_block(block)
        name = unique_name(job.job_id, taken)
        chunks, skipped = render(job, b'%b,jobid="%b"' % (labels, name))
    reads, writes, operations, _, sizes, _ = chunks
    return name, NOTHING if is_exporter(name, operations, reads + writes + sizes) else chunks, skipped


def is_exporter(job_id: bytes, operations: bytes, others: bytes = b"") -> bool:
    r"""Whether a job is an exporter: it has an exporter's name, and its only operation is ``statfs``.

    When a process reads ``llite.*.kbytesfree`` on a client, the client sends a statfs to servers, which count it for
    this process. ``operations`` has the job's lines of operations, ``others`` its lines of bytes.

    >>> own = b"lustre-exporter.0"
    >>> is_exporter(own, b'x{operation="statfs"} 7\n'), is_exporter(own, b"", b"bytes")
    (True, False)
    """
    named = job_id == OWN_NAME or job_id.startswith(OWN_NAME + b".")
    return named and not others and operations.count(b"\n") == operations.count(OWN_OPERATION) == 1


def unique_name(job_id: bytes, taken: Container[bytes]) -> bytes:
    r"""Return the id as a label value that is not in ``taken``.

    Ids that are not UTF-8 may become equal as UTF-8. A series must be unique, so such an id shows its bytes.

    >>> unique_name(b"a\xff", set()).decode(), unique_name(b"a\xff", {escape(b"a\xfe")}).decode()
    ('a�', 'a\\\\xff')
    """
    name = escape(job_id)
    if name in taken:
        name = escape(job_id.decode("utf-8", "backslashreplace"))
    number = 2
    while name in taken:
        name = escape(job_id.decode("utf-8", "backslashreplace") + f"~{number}")
        number += 1
    return name
