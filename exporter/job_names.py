"""What jobs are called on the page: their ids, as far as these are text and differ."""

from __future__ import annotations

from collections.abc import Container

from exporter.text_format import escape


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
