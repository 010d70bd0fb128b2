"""Streams, buckets and subjects of one file system on NATS, and their declaration by the leader.

One NATS account may serve several file systems: every name contains the name of the file system.
"""

from __future__ import annotations

from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

from tierd.cluster.connection import Connection

NO_TARGET = "none"
"""Source of files whose data is on MDTs only."""
RESULTS_CONSUMER = "leader"
_DAY_SECONDS = 86400.0
DUPLICATE_SECONDS = 120.0
"""Time in which a second message with the same id is not stored."""
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


def stream(name: str, subject: str, replicas: int, retention: RetentionPolicy = RetentionPolicy.WORK_QUEUE,
           days: float = 0.0, max_bytes: int = -1) -> StreamConfig:
    """A stream. Of a work queue, an acknowledged message is removed.

    ``days`` is the age after which messages are removed; 0 keeps them. At ``max_bytes`` the server refuses new ones.
    """
    return StreamConfig(name=name, subjects=[subject], num_replicas=replicas, storage=StorageType.FILE,
                        retention=retention, duplicate_window=DUPLICATE_SECONDS, max_age=days * _DAY_SECONDS or None,
                        max_bytes=max_bytes, discard=DiscardPolicy.NEW if max_bytes > 0 else DiscardPolicy.OLD)


def consumer(name: str, subject: str, at_once: int, ack_wait_seconds: float, max_deliver: int = -1) -> ConsumerConfig:
    """A durable pull consumer: what several processes take from one stream, each message once.

    All of them together work on ``at_once`` messages. A message without an acknowledgement or a sign of work for
    ``ack_wait_seconds`` is delivered again.
    """
    return ConsumerConfig(durable_name=name, filter_subject=subject, ack_policy=AckPolicy.EXPLICIT,
                          ack_wait=ack_wait_seconds, max_ack_pending=at_once, max_deliver=max_deliver)


def declare(connection: Connection, names: Names, replicas: int) -> None:
    results = f"result.{names.fs}.>"
    connection.declare_stream(stream(names.moves, names.all_moves, replicas, days=1))
    connection.declare_stream(stream(names.results, results, replicas))
    connection.declare_stream(stream(names.journal, names.journal_subject, replicas, RetentionPolicy.LIMITS,
                                     days=JOURNAL_DAYS))
    connection.declare_consumer(names.results, consumer(RESULTS_CONSUMER, results, 4096, 30.0))
    connection.declare_bucket(names.control, replicas)
    connection.declare_bucket(names.movers, replicas, MOVER_TTL_SECONDS)
    connection.declare_bucket(names.standbys, replicas, MOVER_TTL_SECONDS)


def declare_readers(connection: Connection, names: Names, replicas: int, lease_seconds: float) -> None:
    every = f"tally.{names.fs}.>"
    connection.declare_stream(stream(names.tallies, every, replicas, days=1, max_bytes=TALLY_STREAM_BYTES))
    connection.declare_consumer(names.tallies, consumer(TALLY_CONSUMER, every, 4096, TALLY_ACK_SECONDS))
    connection.declare_bucket(names.leases, replicas, lease_seconds)
    connection.declare_bucket(names.readers, replicas, MOVER_TTL_SECONDS)
    connection.declare_bucket(names.positions, replicas)


def declare_source(connection: Connection, names: Names, source: str, at_once: int, ack_wait_seconds: float) -> None:
    """Declare the consumer of one source target: ``at_once`` messages from it are under way over all movers."""
    connection.declare_consumer(names.moves, consumer(source, names.move_subject(source), at_once, ack_wait_seconds,
                                                      max_deliver=3))
