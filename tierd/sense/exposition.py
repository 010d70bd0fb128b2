r"""The lines of an exposition that tierd needs, read quickly and with suspicion.

``prometheus_client`` parses anything, at some 20 microseconds a line; servers of large sites have hundreds of thousands
of lines of which we need a few families. What does not fit raises ValueError with the line: an exporter that says one
thing that cannot be is believed in nothing.

Labels come in two halves, since lines of one job differ only in the end: who it is about, and which operation. Where
the second half begins is found by its bytes, which no label's value can hold: a quotation mark in one is escaped.

>>> text = rb'lustre_job_operations_total{fs="l",target="OST0001",jobid="a\"b",operation="read"} 4096'
>>> [(name, head, tail, value)] = samples(text + b"\nother 1\n", (b"lustre_job_",))
>>> name, labels_of(head), labels_of(tail), value
('lustre_job_operations_total', {'fs': 'l', 'target': 'OST0001', 'jobid': 'a"b'}, {'operation': 'read'}, 4096.0)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

LONGEST_LABEL_BYTES = 1024
"""Job ids have 32 bytes in Lustre; what is far longer was not written by our exporter."""
_LONGEST_LINE_BYTES = 8 * LONGEST_LABEL_BYTES
_LABEL = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n"}


def samples(body: bytes, beginnings: tuple[bytes, ...]) -> Iterator[tuple[str, bytes, bytes, float]]:
    """Name, both halves of the labels and value of every sample with a name that begins so. Raises ValueError.

    Written for speed: everything a line needs is done here, and looked up where it can be.
    """
    names: dict[bytes, tuple[str, bytes]] = {}
    for line in body.split(b"\n"):
        if not line.startswith(beginnings):
            continue
        start, end = line.find(b"{"), line.rfind(b"} ")
        if not 0 < start < end:
            raise ValueError(f"not a sample: {excerpt(line)}")
        if len(line) > _LONGEST_LINE_BYTES:
            raise ValueError(f"a line of {len(line)} bytes, beginning {excerpt(line)}")
        name = line[:start]
        known = names.get(name)
        if known is None:
            known = names[name] = name.decode("ascii", "replace"), tail_of_family(name)
        try:
            value = float(line[end + 2:])
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise ValueError(f"a value that cannot be: {excerpt(line, 200)}")
        at = line.find(known[1], start, end) if known[1] else -1
        if at < 0:
            yield known[0], line[start + 1:end], b"", value
        else:
            yield known[0], line[start + 1:at], line[at + 1:end], value


def tail_of_family(name: bytes) -> bytes:
    """Where the second half of the labels begins in a family; empty where there is none."""
    if name.startswith(b"lustre_job_operation"):
        return b',operation="'
    return b',direction="' if name.startswith(b"lustre_job_io_size") else b""


def labels_of(text: bytes) -> Mapping[str, str]:
    """Labels from what stands in the braces. Raises ValueError."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise ValueError(f"not labels: {excerpt(text)}")
        name, value = match[1].decode("ascii"), match[2].decode("utf-8", "replace")
        if len(match[2]) > LONGEST_LABEL_BYTES:
            raise ValueError(f"a label {name} of {len(match[2])} bytes, beginning {excerpt(match[2])}")
        if name in found:
            raise ValueError(f"the label {name} comes twice: {excerpt(text)}")
        found[name] = _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]), value) if "\\" in value else value
        at = match.end()
    return found


def excerpt(text: bytes, most: int = 80) -> str:
    """A piece of what was sent, safe to print."""
    return ascii(text[:most].decode("utf-8", "replace")) + ("…" if len(text) > most else "")
