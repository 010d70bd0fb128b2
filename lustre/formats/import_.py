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
>>> link.target, link.state, link.failover_nids, link.current_connection, link.inflight
(b'lustre-OST0002_UUID', b'DISCONN', (b'10.0.0.1@tcp', b'10.0.0.2@tcp'), None, None)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from lustre.formats import compiled, fields, header, outline
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Forms, Outline, Place

_LIST = re.compile(rb"\[([^\[\]]*+)\]")
_NONE = b"<none>"


@dataclass(frozen=True, slots=True)
class Import:
    """A connection; None for fields that are not printed in this release or state."""

    name: bytes | None
    """Name of the device."""
    target: bytes | None
    """The target's UUID: ``lustre-OST0002_UUID``."""
    state: bytes | None
    """``FULL`` if connected, ``IDLE`` if disconnected because it was unused, else ``DISCONN``, ``EVICTED``…"""
    connect_flags: tuple[bytes, ...] | None
    import_flags: tuple[bytes, ...] | None
    target_version: bytes | None
    """The server's Lustre release."""
    instance: int | None
    """Number of times the target was started."""
    failover_nids: tuple[bytes, ...] | None
    current_connection: bytes | None
    """The NID in use."""
    connection_attempts: int | None
    generation: int | None
    """Number that increases by one with every new connection."""
    in_progress_invalidations: int | None
    idle_sec: int | None
    """Seconds since the last reply."""
    inflight: int | None
    unregistering: int | None
    timeouts: int | None
    avg_waittime_usec: int | None
    service_estimate_sec: int | None
    network_estimate_sec: int | None
    read_bytes_per_rpc: int | None
    read_usecs_per_rpc: int | None
    write_bytes_per_rpc: int | None
    write_usecs_per_rpc: int | None
    max_brw_bytes: int | None
    """Largest RPC that the server accepts."""
    skipped: int


def parse(data: bytes) -> Import:
    everything = fields.parse(data)
    found = everything.values
    counts = fields.Naturals(found)
    reads, writes = _averages(data, b"read"), _averages(data, b"write")
    return Import(
        name=found.get(b"name"),
        target=found.get(b"target"),
        state=found.get(b"state"),
        connect_flags=_items(found.get(b"connect_flags")),
        import_flags=_items(found.get(b"import_flags")),
        target_version=found.get(b"target_version"),
        instance=fields.number(found.get(b"instance")),
        failover_nids=_items(found.get(b"failover_nids")),
        current_connection=_nid(found.get(b"current_connection")),
        connection_attempts=counts.get(b"connection_attempts"),
        generation=fields.number(found.get(b"generation")),
        in_progress_invalidations=fields.number(found.get(b"in-progress_invalidations")),
        idle_sec=fields.number(found.get(b"idle")),
        inflight=fields.number(found.get(b"inflight")),
        unregistering=fields.number(found.get(b"unregistering")),
        timeouts=counts.get(b"timeouts"),
        avg_waittime_usec=counts.get(b"avg_waittime"),
        service_estimate_sec=fields.number(found.get(b"services")),
        network_estimate_sec=fields.number(found.get(b"network")),
        read_bytes_per_rpc=fields.number(reads.get(b"bytes_per_rpc")),
        read_usecs_per_rpc=_usecs(reads),
        write_bytes_per_rpc=fields.number(writes.get(b"bytes_per_rpc")),
        write_usecs_per_rpc=_usecs(writes),
        max_brw_bytes=fields.number(found.get(b"max_brw_size")),
        skipped=header.skipped_lines(data, everything.understood) + counts.refused,
    )


def _averages(data: bytes, direction: bytes) -> dict[bytes, bytes]:
    """Read the lines below ``read_data_averages:`` or ``write_data_averages:``, which use the same names."""
    _, _, rest = data.partition(b"    " + direction + b"_data_averages:\n")
    section, _, _ = rest.partition(b"_data_averages:")
    return fields.parse(section).values


def _usecs(averages: dict[bytes, bytes]) -> int | None:
    value = fields.number(averages.get(b"usecs_per_rpc"))
    return value if value is not None else fields.number(averages.get(b"usec_per_rpc"))


def _items(value: bytes | None) -> tuple[bytes, ...] | None:
    """Return the items of ``[ a, b ]`` without quotes; None if the list is missing or truncated."""
    match = _LIST.fullmatch(value) if value is not None else None
    if match is None:
        return None
    return tuple([item.strip().strip(b'"') for item in match[1].split(b",") if item.strip()])


def _nid(value: bytes | None) -> bytes | None:
    bare = value.strip(b'"') if value is not None else None
    return None if bare == _NONE else bare


class Brief(NamedTuple):
    """The fields of ``Import`` that metrics need."""

    state: bytes | None
    target_version: bytes | None
    connection_attempts: int | None
    timeouts: int | None
    avg_waittime_usec: int | None
    skipped: int


def brief(link: Import) -> Brief:
    """Select the fields that metrics need from a complete reading."""
    return Brief(*[getattr(link, name) for name in Brief._fields])


@dataclass(frozen=True, slots=True, eq=False)
class ImportForm:
    """Form of texts that differ only in numbers and names. The C module reads them (``lustre.formats.outline``)."""

    outline: Outline
    link: Brief
    """Fields of the text from which the form was made. State and release are the same in all texts of the form."""
    fields: tuple[str, ...]
    """Field names of the numbers, in order."""
    timed: bool = False

    def brief(self, numbers: tuple[int, ...]) -> Brief:
        """Return the fields of a text of this form."""
        found = dict(zip(self.fields, numbers, strict=True)).get
        attempts, timeouts, wait_usec = found("connection_attempts"), found("timeouts"), found("avg_waittime_usec")
        return Brief(self.link.state, self.link.target_version, attempts, timeouts, wait_usec, skipped=0)


def import_forms() -> Forms[ImportForm]:
    """Return an empty set of forms for the connections of a node."""
    return Forms(_form_of, _key_of)


def watched(data: bytes, forms: Forms[ImportForm], like: ImportForm | None) -> tuple[Brief, ImportForm | None]:
    """Read the fields of a text, and return its form if it has one. The form ``like`` is tried first."""
    found = forms.read(data, like)
    if found is None:
        return brief(parse(data)), None
    form, numbers, _ = found
    return form.brief(numbers), form


_WATCHED: Final = {
    b"connection_attempts": "connection_attempts",
    b"timeouts": "timeouts",
    b"avg_waittime": "avg_waittime_usec",
}
_DIGITS = re.compile(rb"\d++")


def _form_of(data: bytes) -> ImportForm | None:
    """Make the form of a text; None if a line of the text is not a field."""
    link = brief(parse(data))
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
        elif row[2] and name not in {b"state", b"target_version"}:
            places.append((*row.span(2), Opcode.REST_OF_LINE))
    made = outline.of(data, places, range(len(numbers)))
    return None if made is None else ImportForm(made, link, tuple(numbers))


def _key_of(data: bytes) -> int:
    return hash((data.count(b"\n"), compiled.following(data, KEYS[:2])))


KEYS = (
    b"\n    state: ",
    b"\n       target_version: ",
    b"\n       connection_attempts: ",
    b"\n       timeouts: ",
    b"\n       avg_waittime: ",
)
"""The lines from which ``Brief`` is made. Other lines hold times and differ at every reading."""
