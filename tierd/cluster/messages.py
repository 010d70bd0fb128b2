"""Messages between leader, movers and readers, typed dataclasses and JSON on the wire, and their places on NATS.

Every message has a version. Unknown fields are ignored, so that a newer release may add some; a message of a newer
version, or with a missing or wrong field, is refused with ValueError.

Moves and results are signed with the content of the claim on Lustre, which only root of a node with the file system
can read. The right to publish on NATS alone is not enough to have a file moved, or to report a move. Tallies and
changes of the journal outlive a leader, so they are signed with a key in the folder of the claim.

One NATS account may serve several file systems: the name of every stream, bucket and subject contains that of the file
system. The leader declares them.
"""

from __future__ import annotations

import hmac
import logging
import os
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Literal, TypeVar

from annotated_types import Ge, Le, Len, Lt, MaxLen
from pydantic import ValidationError

from lustre.layout.yaml import from_yaml, to_yaml
from tierd.act.dispatch import Natural, Version
from tierd.act.movers.moves import MoveResult
from tierd.cluster.connection import Bucket, Connection
from tierd.validators import validator_of

log = logging.getLogger("tierd.cluster")
FILES_PER_MESSAGE = 16
MAX_BYTES = 512 * 1024
"""Size of a message: 16 paths of 4096 control characters, of six bytes each. NATS accepts a megabyte by default."""
STALE = "stale"
"""Result of a file that a mover did not begin: the message was late, or of an earlier leader, or moves are held."""
Text = Annotated[str, MaxLen(16384)]
T = TypeVar("T")
_warn_once = lru_cache(maxsize=256)(partial(log.warning, "the description that %s sent of itself is invalid: %s"))


@dataclass(frozen=True, slots=True)
class FileToMove:
    """One file of a message, with the facts that must still hold."""

    act: Natural
    """Number of the intent in the leader's journal."""
    fid: Text
    path: Text
    """Bytes of the path as Latin-1: a name may hold any byte."""
    size_bytes: Natural
    """0 if it is unknown."""
    objects: Text = ""
    """Digest of the objects that hold the file (:func:`tierd.act.movers.checks.objects_digest`); "" if unknown."""
    layout_generation: Natural = 0
    """Generation of the layout; 0 if unknown, since clients hide that of a plain file."""
    by_request: bool = False
    """Whether an administrator asked for it, or it undoes a move. Then the mode of the scope does not apply."""
    own_mirrors: bool = False
    """Whether tierd gave the file the mirrors that it has."""


@dataclass(frozen=True, slots=True)
class MoveMessage:
    """Up to 16 files of one directory, to be moved to one layout one after the other by one mover."""

    id: Text
    fs: Text
    generation: Natural
    """Generation of the leader's claim on Lustre."""
    epoch: Natural
    """Epoch of :class:`Permit`. A message of an earlier epoch was withdrawn."""
    source: Text
    """Target that holds the files: ``lustre-OST0004``; ``none`` for data on MDTs."""
    deadline: float
    """Epoch seconds after which no file is begun, and no layout exchanged."""
    layout: Text
    """Wanted layout of the files, as YAML."""
    files: Annotated[tuple[FileToMove, ...], Len(1, FILES_PER_MESSAGE)]
    version: Version = 1


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file."""

    act: Natural
    fid: Text
    result: MoveResult | Literal["stale"]
    reason: Text = ""
    detail: Text = ""
    not_copied: Annotated[float, Ge(0), Le(1)] = 0.0
    """Share of the file that was certainly not copied; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class ResultMessage:
    """Results of some files of a message."""

    id: Text
    """Of the message with the moves."""
    fs: Text
    generation: Natural
    mover: Text
    times_delivered: Natural
    """1, or more if NATS had given the message to a mover before."""
    files: Annotated[tuple[FileResult, ...], Len(1, FILES_PER_MESSAGE)]
    seconds: Annotated[float, Ge(0), Lt(float("inf"))] = 0.0
    """Time that these files took."""
    last: bool = True
    """Whether all files of the message have a result now."""
    version: Version = 1


@dataclass(frozen=True, slots=True)
class Permit:
    """Under which conditions movers may begin a file. They read it before each one."""

    generation: Natural
    epoch: Natural
    held: Text = ""
    """Why no file may be begun; "" if files may."""
    version: Version = 1


@dataclass(frozen=True, slots=True)
class WorkHint:
    """Source targets with messages that wait, so that movers need not ask for all."""

    sources: Annotated[tuple[Text, ...], MaxLen(4096)]
    version: Version = 1


def encode(message: object) -> bytes:
    return validator_of(type(message)).dump_json(message)


def decode(kind: type[T], data: bytes) -> T:
    """A message from JSON. Raises ValueError for a malformed or too large one, and for one of a later version."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"a message of {len(data)} bytes")
    try:
        return validator_of(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"not a {kind.__name__}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def descriptions(bucket: Bucket, kind: type[T]) -> tuple[T, ...]:
    """What the processes of one kind report of themselves in their bucket, by name. Raises BrokerError."""
    found = []
    for name, data in sorted(bucket.all().items()):
        try:
            found.append(decode(kind, data))
        except ValueError as error:
            _warn_once(name, str(error))
    return tuple(found)


def signed(body: bytes, secret: str) -> bytes:
    return _signature(body, secret) + b"\n" + body


def verified(data: bytes, secret: str) -> bytes:
    """The bytes of a signed message. Raises ValueError if the signature is not that of the secret."""
    signature, _, body = data.partition(b"\n")
    if not secret or not hmac.compare_digest(signature, _signature(body, secret)):
        raise ValueError("the signature is not that of a holder of the claim, or of its key")
    return body


def unverified(kind: type[T], data: bytes) -> T:
    """A signed message whose signature can no longer be checked: its leader's claim is gone."""
    return decode(kind, data.partition(b"\n")[2])


def _signature(body: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode("utf-8", "surrogateescape"), body, "sha256").hex().encode()


def path_to_wire(path: str) -> str:
    """The bytes of a path as text that JSON can hold.

    >>> path_to_wire("/proj/ä"), path_from_wire(path_to_wire("/proj/ä"))
    ('/proj/Ã¤', '/proj/ä')
    """
    return os.fsencode(path).decode("latin-1")


def path_from_wire(text: str) -> str:
    """The path. Raises ValueError for text that is not a path from the root of the file system."""
    try:
        path = os.fsdecode(text.encode("latin-1"))
    except UnicodeEncodeError as error:
        raise ValueError("not the bytes of a path") from error
    if not path.startswith("/") or "\0" in path or {".", ".."} & set(path.split("/")):
        raise ValueError(f"not a path from the root of the file system: {path!r}")
    return path


layout_to_wire = lru_cache(maxsize=1024)(to_yaml)
layout_from_wire = lru_cache(maxsize=1024)(from_yaml)
NO_TARGET = "none"
"""Source of files whose data is on MDTs only."""
RESULTS_CONSUMER = "leader"
_DAY_SECONDS = 86400.0
JOURNAL_DAYS = 30.0
"""Time for which the stream keeps changes of the journal. A follower that was away for longer needs a copy."""
MOVER_TTL_SECONDS = 20.0
"""A mover or standby that has not reported for this time is no longer shown."""
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
        """Bucket in which movers report their state."""
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
