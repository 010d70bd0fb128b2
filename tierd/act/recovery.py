"""Recovery after a restart: closes acts that were under way, and requeues moves that were waiting.

Recovery closes an act that was under way by reading its file or directory. A file is whole at any time and has either
the earlier layout or the new one; the journal gets to know which.

Recovery examines waiting moves again, a few in every cycle, before it queues them: the file, the settings and the free
space may have changed, and the finding may be over. An order by name is planned as if it were given now. Another move
is queued again only if its remediation still waits for a verdict; other findings are detected again if they hold.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import RLock

from lustre.filesystem import Filesystem
from lustre.layout.model import Component, Layout, explain, in_sync
from tierd.act import orders
from tierd.act.journal.entry import Entry, Stamp, StoredMove
from tierd.act.journal.writer import Journal
from tierd.act.movers.checks import mirror_left
from tierd.act.orders import Order, OrderPlan
from tierd.act.undo import Has, present_state
from tierd.acts import DEFAULT_KINDS, ORDER_KINDS, ActKind, OrderKind, Outcome
from tierd.config.settings import Settings
from tierd.decide.plans import reserved
from tierd.model import Action, Capacity
from tierd.refusal import Reason, Refusal, of_error
from tierd.sense import space
from tierd.text import count_of, quoted


def close_unfinished(journal: Journal, filesystem: Filesystem, now: float) -> Iterator[tuple[Entry, Outcome, str]]:
    """Close every act that was under way. Yields each with its outcome and the detail."""
    for entry in journal.unfinished():
        outcome, detail = _outcome_found(entry, filesystem)
        journal.end(entry.id, outcome, detail, now)
        yield entry, outcome, detail


def _outcome_found(entry: Entry, filesystem: Filesystem) -> tuple[Outcome, str]:
    if entry.dry_run:
        return Outcome.DRY_RUN, ""
    try:
        found, present = present_state(entry, filesystem)
    except FileNotFoundError:
        return Outcome.GONE, "tierd ended during the act, and the file or directory no longer exists"
    except OSError as error:
        return Outcome.INTERRUPTED, f"tierd ended during the act, and cannot examine the result: {error}"
    if found is Has.REPLACED:
        return Outcome.GONE, "tierd ended during the act, and another file or directory has this name now"
    if entry.kind in DEFAULT_KINDS and found is Has.OTHER:
        now = f": {explain(present)}" if present is not None else ""
        return Outcome.INTERRUPTED, f"tierd ended during the act; the default is neither the old nor the new one{now}"
    if entry.outcome == Outcome.UNDOING and found is Has.AFTER:
        return Outcome.DONE, "tierd ended before the act was undone"
    if entry.outcome == Outcome.UNDOING:
        below = "; directories created below may still have tierd's default: lfs getstripe -d -r"
        return Outcome.UNDONE, "found undone" + (below if entry.kind == ActKind.SET_DEFAULT_LAYOUT else "")
    was_mirrored = entry.layout_before is not None and entry.layout_before.mirror_count > 1
    if found is Has.AFTER and (present is None or in_sync(present) or not was_mirrored):
        return Outcome.DONE, "tierd ended before it recorded the outcome; found done"
    if mirror := mirror_left(entry.layout_before, present):
        return Outcome.INTERRUPTED, ("tierd ended during the act. The file is whole and has two mirrors; remove the "
                                     f"second: lfs mirror split -d --mirror-id {mirror} FILE")
    return Outcome.INTERRUPTED, "tierd ended before the act was done; nothing is changed"


REQUEUED_PER_CYCLE = 500
"""Moves examined in one cycle. Each takes two requests to an MDT."""
MAX_WAITING_SECONDS = 7 * 86400.0
"""Age from which moves and orders of an earlier run are dropped."""
FindingKey = tuple[str, str, str]
LayoutOf = Callable[[FindingKey, str], Layout | None]
"""Layout for files of a directory, by a finding's remediation; None unless the remediation waits for a verdict."""


class RequeueList:
    """Moves of an earlier run that were not examined yet, oldest first."""

    def __init__(self, moves: Iterable[StoredMove] = ()) -> None:
        self._lock = RLock()
        self._moves = deque(moves)

    def __len__(self) -> int:
        return len(self._moves)

    @property
    def size_bytes(self) -> int:
        return sum(move.size_bytes for move in tuple(self._moves))

    def of(self, key: FindingKey) -> int:
        return sum(move.key == key for move in tuple(self._moves))

    def by_finding(self) -> Counter[FindingKey]:
        return Counter(move.key for move in tuple(self._moves))

    def drop(self, key: FindingKey) -> list[Action]:
        """Drop the moves of one finding. Returns them as moves to their pools."""
        with self._lock:
            dropped = [move for move in self._moves if move.key == key]
            self._moves = deque(move for move in self._moves if move.key != key)
        return [Action(ActKind.MIGRATE, Layout((Component(pool=move.pool),), composite=False), move.reason, key,
                       path=move.path, size_bytes=move.size_bytes, fid=move.fid) for move in dropped]

    def first(self, most: int) -> list[StoredMove]:
        with self._lock:
            return list(islice(self._moves, most))

    def remove_examined(self, paths: Collection[str]) -> frozenset[str]:
        """Remove the moves of examined files. Returns those that were not dropped meanwhile."""
        with self._lock:
            found = frozenset(move.path for move in self._moves if move.path in paths)
            self._moves = deque(move for move in self._moves if move.path not in paths)
        return found


@dataclass(slots=True)
class RequeueResult:
    """The result of an examination of stored moves."""

    again: list[tuple[Action, int]] = field(default_factory=list)
    """Moves to queue, with the numbers of their findings."""
    left: list[tuple[StoredMove, Refusal]] = field(default_factory=list)
    """Moves that are not queued again, with the reason."""


def requeue_messages(again: Mapping[int, int], left: Mapping[tuple[int, str], int]) -> dict[int, list[str]]:
    """Messages about moves of an earlier run, by the number of their finding.

    ``again`` has the numbers of moves that are queued again, ``left`` of those that are not, by reason.
    """
    sentences: dict[int, list[str]] = {}
    for number, count in again.items():
        moves = f"{count_of(count, 'move')} of F{number}"
        sentences.setdefault(number, []).append(f"requeued after a restart: {moves}")
    for (number, why), count in left.items():
        moves = f"{count_of(count, 'move')} of F{number}"
        sentences.setdefault(number, []).append(f"not requeued after a restart: {moves}: {why}")
    return sentences


def examine_again(moves: Sequence[StoredMove], filesystem: Filesystem, settings: Settings, layout_of: LayoutOf,
         now: float) -> RequeueResult:
    """Examine stored moves. Raises OSError if the file system cannot be read.

    The queue checks size, opt-out, mode and free space again before each move.
    """
    found = RequeueResult()
    room = space.capacity(filesystem)
    left = dict(room.avail_bytes)
    for move in moves:
        action = _replanned(move, filesystem, settings, layout_of, now, room=room, left=left)
        if isinstance(action, Refusal):
            found.left.append((move, action))
        else:
            found.again.append((action, move.finding))
    return found


def _replanned(move: StoredMove, filesystem: Filesystem, settings: Settings, layout_of: LayoutOf, now: float,
           room: Capacity, left: dict[str, int]) -> Action | Refusal:
    """The move as tierd would plan it now."""
    if why := out_of_date_refusal(move.stamp, filesystem.fsname, settings, now):
        return why
    if move.key[0] == OrderKind.DRAIN:
        return Refusal(Reason.OUT_OF_DATE, "the drain finds its files again")
    by_name = move.key[0] in ORDER_KINDS
    directory = move.path.rpartition("/")[0] or "/"
    layout = layout_of(move.key, directory)
    if not by_name and layout is None:
        return Refusal(Reason.REMEDIATION_OVER, "the remediation is over, or too old to be judged; tierd detects "
                       "a finding that still holds again")
    policy = settings.resolved_scopes.of(move.path).small_files_to_flash
    if not move.pool:
        return Refusal(Reason.REMEDIATION_OVER, "moves to an MDT, and mirrors, are planned again if their finding "
                       "still holds")
    if move.pool not in ({policy.flash_pool, policy.hdd_pool} if by_name else {policy.flash_pool}):
        return Refusal(Reason.POOL_CHANGED, f"pool {move.pool!r} is no longer the configured one")
    if not room.pools.get(move.pool):
        return Refusal(Reason.NO_POOL, f"pool {move.pool!r} does not exist or has no targets")
    try:
        status = filesystem.status(move.path)
        if move.fid is None or status.fid != move.fid:
            return Refusal(Reason.CHANGED, "another file has this name now")
        if layout is None:
            direction = "promote" if move.pool == policy.flash_pool else "demote"
            wish, found = Order(direction, move.path, move.key[1], OrderKind(move.key[0])), OrderPlan()
            why = orders.add_move(found, wish, move.path, status, filesystem.layout(move.path), room=room, left=left,
                                  settings=settings)
            return why or replace(found.actions[0], reason=move.reason, finding=move.key)
    except OSError as error:
        return of_error(error)
    if left[move.pool] - status.size_bytes < reserved(room, policy):
        return Refusal(Reason.NO_ROOM, f"pool {move.pool!r} has no room for the file above its reserve")
    left[move.pool] -= status.size_bytes
    return Action(ActKind.MIGRATE, layout, move.reason, move.key, directory, path=move.path,
                  size_bytes=status.size_bytes, fid=status.fid)


def out_of_date_refusal(stamp: Stamp, fs: str, settings: Settings, now: float) -> Refusal | None:
    """Refuses a move or an order of another file system or dry-run setting, and one that is too old."""
    if stamp.fs != fs:
        return Refusal(Reason.OUT_OF_DATE, f"queued for another file system: {quoted(stamp.fs)}")
    if stamp.dry_run != settings.act.dry_run:
        return Refusal(Reason.OUT_OF_DATE,
                       "queued in a dry run" if stamp.dry_run else "tierd is in a dry run now")
    if now - stamp.since > MAX_WAITING_SECONDS:
        return Refusal(Reason.OUT_OF_DATE, f"queued more than {MAX_WAITING_SECONDS / 86400:.0f} days ago")
    return None
