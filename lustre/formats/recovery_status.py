r"""Recovery of a target after a restart: ``obdfilter.*.recovery_status``, ``mdt.*.recovery_status``.

The status is ``INACTIVE`` if no client was connected before the restart. Otherwise it is ``WAITING_FOR_CLIENTS``,
``WAITING`` (for other MDTs), ``RECOVERING`` and finally ``COMPLETE``::

    status: RECOVERING
    recovery_start: 1795217459
    time_remaining: 87
    connected_clients: 3/12
    req_replay_clients: 1
    lock_repay_clients: 2
    completed_clients: 1
    evicted_clients: 0
    replayed_requests: 40
    queued_requests: 7
    next_transno: 4294967590

("lock_repay_clients" is the kernel's own spelling.) After recovery, ``completed_clients`` is also a fraction, and
``recovery_duration`` replaces ``time_remaining``.

>>> status = parse(b"status: RECOVERING\ntime_remaining: 87\nconnected_clients: 3/12\ncompleted_clients: 1\n")
>>> status.status, status.time_remaining_seconds, status.connected_clients, status.clients, status.in_recovery
(b'RECOVERING', 87, 3, 12, True)
>>> parse(b"status: INACTIVE\n").in_recovery
False
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import fields, header

_FRACTION = re.compile(rb"(\d{1,20}+)(?:/(\d{1,20}+))?")
_DONE = frozenset({b"INACTIVE", b"COMPLETE"})


@dataclass(frozen=True, slots=True)
class RecoveryStatus:
    """State of recovery; None for fields that are not printed in this state."""

    status: bytes
    """``INACTIVE``, ``WAITING_FOR_CLIENTS``, ``WAITING``, ``RECOVERING`` or ``COMPLETE``; empty if missing."""
    recovery_duration_seconds: int | None
    time_remaining_seconds: int | None
    clients: int | None
    """Number of clients connected before the restart."""
    connected_clients: int | None
    completed_clients: int | None
    evicted_clients: int | None
    queued_requests: int | None
    skipped: int

    @property
    def in_recovery(self) -> bool:
        """False only for the states INACTIVE and COMPLETE. A missing or unknown state counts as recovery."""
        return self.status not in _DONE


def parse(data: bytes) -> RecoveryStatus:
    everything = fields.parse(data)
    found, counts = everything.values, fields.Naturals(everything.values)
    connected, of_connected = _fraction(found.get(b"connected_clients"))
    completed, of_completed = _fraction(found.get(b"completed_clients"))
    return RecoveryStatus(
        status=found.get(b"status", b""),
        recovery_duration_seconds=counts.get(b"recovery_duration"),
        time_remaining_seconds=counts.get(b"time_remaining"),
        clients=of_connected if of_connected is not None else of_completed,
        connected_clients=connected,
        completed_clients=completed,
        evicted_clients=counts.get(b"evicted_clients"),
        queued_requests=counts.get(b"queued_requests"),
        skipped=header.skipped_lines(data, everything.understood) + counts.refused,
    )


def _fraction(value: bytes | None) -> tuple[int | None, int | None]:
    if (match := _FRACTION.fullmatch(value or b"")) is None:
        return None, None
    return int(match[1]), None if match[2] is None else int(match[2])
