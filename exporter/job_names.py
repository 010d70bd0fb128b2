"""What jobs are called on the page: their ids, as far as these are text and differ."""

from __future__ import annotations

from collections.abc import Container

from exporter.text_format import escape

OWN_NAME = b"lustre-exporter"
"""What the exporter's process is called, so that with ``jobid_var=procname_uid`` its job is ``lustre-exporter.UID``."""
OWN_OPERATION = b'operation="statfs"'


def is_own(job_id: bytes, operations: bytes, others: bytes = b"") -> bool:
    r"""Whether a job is an exporter: so called, and it has asked for nothing but the room on the file system.

    Reading ``llite.*.kbytesfree`` on a client sends a statfs to servers, which count it for the process that reads.
    ``operations`` are its lines, one an operation; ``others`` those of bytes it moved.

    >>> is_own(b"lustre-exporter.0", b'x{operation="statfs"} 7\n'), is_own(b"lustre-exporter.0", b"", b"bytes")
    (True, False)
    """
    named = job_id == OWN_NAME or job_id.startswith(OWN_NAME + b".")
    return named and not others and operations.count(b"\n") == operations.count(OWN_OPERATION) == 1


def unlike(job_id: bytes, taken: Container[bytes]) -> bytes:
    r"""The id as a label's value, different from those that are taken.

    Ids that are no UTF-8 may look alike once they are. A series must not come twice, so such an id shows its bytes.

    >>> unlike(b"a\xff", set()).decode(), unlike(b"a\xff", {escape(b"a\xfe")}).decode()
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
