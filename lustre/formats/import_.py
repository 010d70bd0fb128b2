r"""A client's connection to one target: ``osc.*.import``, ``mdc.*.import``, ``osp.*.import``.

An example, shortened::

    import:
        name: lustre-OST0002-osc-ff1100011d6c9800
        target: lustre-OST0002_UUID
        state: FULL
        connect_flags: [ write_grant, server_lock, version ]
        connect_data:
           instance: 1
           target_version: 2.17.57.62
        import_flags: [ IMPF_REPLAYABLE, IMPF_PINGABLE ]
        connection:
           failover_nids: [ "0@lo" ]
           nids_stats:
              "0@lo": { connects: 3, replied: 3, uptodate: uptodate, sec_ago: 943 }
           current_connection: "0@lo"
           connection_attempts: 3
           generation: 3
           in-progress_invalidations: 0
           idle: 3 sec
        rpcs:
           inflight: 0
           unregistering: 0
           timeouts: 0
           avg_waittime: 9109 usecs
        service_estimates:
           services: 5 sec
           network: 5 sec

2.10 has no ``idle``. Up to 2.16 the NIDs have no quotes and ``nids_stats`` is missing. Times change at every reading,
so two readings are never equal.

``import_forms`` uses the C module to read the few fields that metrics need, for thousands of connections.

>>> link = parse(b"import:\n    target: lustre-OST0002_UUID\n    state: DISCONN\n    connection:\n"
...              b"       failover_nids: [ 10.0.0.1@tcp, 10.0.0.2@tcp ]\n       current_connection: <none>\n")
>>> link.state, link.target_version, link.timeouts, link.skipped
(b'DISCONN', None, None, 0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lustre.formats import compiled, fields, header, outline
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Forms, Outline, Place


@dataclass(frozen=True, slots=True)
class Import:
    """The fields that metrics need; None for fields that are not printed in this release or state."""

    state: bytes | None
    """``FULL`` if connected, ``IDLE`` if unused, ``DEACTIVATED`` by ``active=0``, else ``DISCONN``, ``EVICTED``…"""
    target_version: bytes | None
    """The server's Lustre release."""
    connection_attempts: int | None
    timeouts: int | None
    avg_waittime_usec: int | None
    skipped: int


def state_of(state: bytes | None, flags: bytes) -> bytes | None:
    """The state of a connection. Lustre leaves one that ``active=0`` switched off in ``DISCONN``, with a flag."""
    return b"DEACTIVATED" if b"DEACTIVE" in flags.upper() else state


def parse(data: bytes) -> Import:
    everything = fields.parse(data)
    found = everything.values
    counts = fields.Naturals(found)
    return Import(
        state_of(found.get(b"state"), found.get(b"import_flags", b"")),
        found.get(b"target_version"),
        counts.get(b"connection_attempts"),
        counts.get(b"timeouts"),
        counts.get(b"avg_waittime"),
        skipped=header.skipped_lines(data, everything.understood) + counts.refused,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ImportForm:
    """Form of texts that differ only in numbers and names. The C module reads them (``lustre.formats.outline``)."""

    outline: Outline
    link: Import
    """Fields of the text from which the form was made. State and release are the same in all texts of the form."""
    fields: tuple[str, ...]
    """Field names of the numbers, in order."""
    timed: bool = False

    def fill(self, numbers: tuple[int, ...]) -> Import:
        found = dict(zip(self.fields, numbers, strict=True)).get
        attempts, timeouts, wait_usec = found("connection_attempts"), found("timeouts"), found("avg_waittime_usec")
        return Import(self.link.state, self.link.target_version, attempts, timeouts, wait_usec, skipped=0)


def import_forms() -> Forms[ImportForm]:
    return Forms(_form_of, _key_of)


def watched(data: bytes, forms: Forms[ImportForm], like: ImportForm | None) -> tuple[Import, ImportForm | None]:
    """Read the fields of a text, and return its form if it has one. The form ``like`` is tried first."""
    found = forms.read(data, like)
    if found is None:
        return parse(data), None
    form, numbers, _ = found
    return form.fill(numbers), form


_WATCHED: Final = {
    b"connection_attempts": "connection_attempts",
    b"timeouts": "timeouts",
    b"avg_waittime": "avg_waittime_usec",
}
_DIGITS = re.compile(rb"\d++")


def _form_of(data: bytes) -> ImportForm | None:
    link = parse(data)
    if link.skipped:
        return None
    places: list[Place] = []
    numbers: list[str] = []
    for row in fields.FIELD.finditer(data):
        name = row[1]
        places += [(*digits.span(), Opcode.NUMBER) for digits in _DIGITS.finditer(data, *row.span(1))]
        value = _DIGITS.match(data, row.start(2))
        if name in _WATCHED:
            field = _WATCHED[name]
            if value is None or field in numbers or getattr(link, field) != int(value[0]):
                return None
            places.append((*value.span(), Opcode.WANTED))
            numbers.append(field)
        elif row[2] and name not in {b"state", b"target_version", b"import_flags"}:
            places.append((*row.span(2), Opcode.REST_OF_LINE))
    made = outline.of(data, places, range(len(numbers)))
    return None if made is None else ImportForm(made, link, tuple(numbers))


def _key_of(data: bytes) -> int:
    return hash((data.count(b"\n"), compiled.following(data, KEYS[:3])))


KEYS = (
    b"\n    state: ",
    b"\n       target_version: ",
    b"\n    import_flags: ",
    b"\n       connection_attempts: ",
    b"\n       timeouts: ",
    b"\n       avg_waittime: ",
)
"""The lines from which ``Import`` is made. Other lines hold times and differ at every reading."""
