"""Streams, buckets and subjects of one file system on NATS, and their declaration by the leader.

One NATS account may serve several file systems: every name contains the name of the file system.
"""

from __future__ import annotations

from tierd.cluster.connection import Connection

NO_TARGET = "none"
"""Source of files whose data is on MDTs only."""
RESULTS_CONSUMER = "leader"
_DAY_SECONDS = 86400.0
JOURNAL_DAYS = 30.0
"""Time for which the stream keeps changes of the journal. A follower that was away for longer needs a copy."""
MOVER_TTL_SECONDS = 20.0
"""A mover or standby that has not described itself for this time is not shown any more."""
TALLY_CONSUMER = "leader"
TALLY_ACK_SECONDS = 60.0
"""Time in which the leader's journal has the position of a tally. After it, the tally is delivered again."""
TALLY_STREAM_BYTES = 1 << 30
"""Size of the stream at which NATS refuses tallies. Readers then stop reading."""


class Names:
    """The names for one file system."""

    def __init__(self, fs: str) -> None:
        self.fs = fs
        self.moves = f"MOVES_{fs}"
        """Stream. An acknowledged message is removed."""
        self.results = f"RESULTS_{fs}"
        self.journal = f"JOURNAL_{fs}"
        """Stream of changes of the journal."""
        self.tallies = f"TALLIES_{fs}"
        """Stream. An acknowledged tally is removed."""
        self.control = f"CONTROL_{fs}"
        """Bucket with the permit, which only the leader writes."""
        self.movers = f"MOVERS_{fs}"
        """Bucket in which movers describe themselves."""
        self.standbys = f"STANDBYS_{fs}"
        self.readers = f"READERS_{fs}"
        self.leases = f"LEASES_{fs}"
        """Bucket with the leases of MDTs, which readers write."""
        self.positions = f"POSITIONS_{fs}"
        """Bucket with the leader's position in the changelog of each MDT, which only the leader writes."""
        self.all_moves = f"move.{fs}.>"
        self.journal_subject = f"journal.{fs}"
        self.work = f"work.{fs}"
        """Subject of hints where moves wait. It belongs to no stream."""

    def tally_subject(self, mdt: str) -> str:
        return f"tally.{self.fs}.{mdt}"

    def move_subject(self, source: str) -> str:
        """Subject of moves from one target."""
        return f"move.{self.fs}.{source}"

    def result_subject(self, mover: str) -> str:
        return f"result.{self.fs}.{mover}"


PERMIT = "permit"
"""Key of the permit in the control bucket."""


def declare(connection: Connection, names: Names, replicas: int) -> None:
    results = f"result.{names.fs}.>"
    connection.declare_stream(names.moves, names.all_moves, replicas, max_age_seconds=_DAY_SECONDS)
    connection.declare_stream(names.results, results, replicas)
    connection.declare_stream(names.journal, names.journal_subject, replicas, work_queue=False,
                              max_age_seconds=JOURNAL_DAYS * _DAY_SECONDS)
    connection.declare_consumer(names.results, RESULTS_CONSUMER, results, at_once=4096, ack_wait_seconds=30.0)
    connection.declare_bucket(names.control, replicas)
    connection.declare_bucket(names.movers, replicas, MOVER_TTL_SECONDS)
    connection.declare_bucket(names.standbys, replicas, MOVER_TTL_SECONDS)


def declare_readers(connection: Connection, names: Names, replicas: int, lease_seconds: float) -> None:
    every = f"tally.{names.fs}.>"
    connection.declare_stream(names.tallies, every, replicas, max_age_seconds=_DAY_SECONDS,
                              max_bytes=TALLY_STREAM_BYTES)
    connection.declare_consumer(names.tallies, TALLY_CONSUMER, every, at_once=4096, ack_wait_seconds=TALLY_ACK_SECONDS)
    connection.declare_bucket(names.leases, replicas, lease_seconds)
    connection.declare_bucket(names.readers, replicas, MOVER_TTL_SECONDS)
    connection.declare_bucket(names.positions, replicas)


def declare_source(connection: Connection, names: Names, source: str, at_once: int, ack_wait_seconds: float) -> None:
    """Declare the consumer of one source target: ``at_once`` messages from it are under way over all movers."""
    connection.declare_consumer(names.moves, source, names.move_subject(source), at_once=at_once,
                                ack_wait_seconds=ack_wait_seconds, max_deliver=3)
