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
so two readings are never equal. Only the six lines of ``KEYS`` are read.

>>> link = parse(b"import:\n    target: lustre-OST0002_UUID\n    state: DISCONN\n    connection:\n"
...              b"       failover_nids: [ 10.0.0.1@tcp, 10.0.0.2@tcp ]\n       current_connection: <none>\n")
>>> link.state, link.target_version, link.timeouts, link.skipped
(b'DISCONN', None, None, 0)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lustre.formats import compiled, fields
from lustre.formats.header import WRAPPED

KEYS = (
    b"\n    state: ",
    b"\n       target_version: ",
    b"\n    import_flags: ",
    b"\n       connection_attempts: ",
    b"\n       timeouts: ",
    b"\n       avg_waittime: ",
)
"""The lines from which ``Import`` is made, in order. Other lines hold times and differ at every reading."""


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


@lru_cache(maxsize=4096)
def _count(value: bytes) -> tuple[int | None, bool]:
    """The number at the start of a value, and whether it is refused because it has wrapped."""
    count = fields.number(value)
    wrapped = count is not None and not 0 <= count < WRAPPED
    return (None if wrapped else count), wrapped


def parse(data: bytes) -> Import:
    state, version, flags, *values = compiled.following(data, KEYS)
    (attempts, no_attempts), (timeouts, no_timeouts), (wait_usec, no_wait) = map(_count, values)
    skipped = no_attempts + no_timeouts + no_wait + (bool(data) and not (state and data.endswith(b"\n")))
    return Import(state_of(state or None, flags), version or None, attempts, timeouts, wait_usec, skipped=skipped)
