"""Undoes what was done about findings: after a bad verdict, for want of space, and by order of an administrator.

:class:`tierd.act.undo.Undo` undoes one act. It does so here too, so that there is one way for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lustre.layout.model import Layout
from tierd.act.journal.entry import Entry
from tierd.act.undo import Has, UndoResult, earlier_layout, present_state
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome, Verdict
from tierd.daemon import log
from tierd.daemon.log import FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.remediation import Remediation, RemediationStore, is_undone
from tierd.daemon.states import State
from tierd.decide.plans import reserved
from tierd.model import Action, Capacity, MetadataTargets
from tierd.policies.registry import policies
from tierd.sense import space
from tierd.text import count_of

UNDO = "undo"
"""Kind in the key of moves that restore earlier layouts."""
RESTORE_SECONDS = 30.0
"""Time between two attempts to restore the layout of a file that is in use."""
RESTORED_AT_ONCE = 64
"""Files that one step examines. Each takes two requests to an MDT. A choice."""


class CaseUndo:
    """Undoes the acts of remediations. It does not hold the lock while it asks the file system or undoes acts."""

    def __init__(self, parts: DaemonParts, store: RemediationStore, finding_log: FindingLog) -> None:
        node = parts.node
        self._gate, self._journal, self._settings = parts.gate, parts.journal, parts.settings
        self._filesystem, self._clock, self._executor = node.filesystem, node.clock, node.executor
        self._site_facts, self._store, self._lock, self._log = node.site_facts, store, store.lock, finding_log
        self.act = parts.undo
        """Undoes one act."""
        in_cases = {outcome.entry for case in store for outcome in case.defaults}
        self._standing = [] if parts.settings.act.dry_run else [
            entry for entry in parts.journal.judgements.default_layouts_in_force() if entry.id not in in_cases]
        """Default layouts in force that belong to no remediation in the store. They still fill the flash pool."""
        self._restored_at: dict[int, tuple[float, float]] = {}
        """When the move of a file back to its earlier layout was first and last queued, by the number of the act."""
        self._available_before: Mapping[str, int] = {}
        """Free bytes of each pool at the last :meth:`watch_free_space`: as many less may be free at the next."""
        self._said: dict[int, UndoResult] = {}
        """Last logged result of each undo that has not succeeded yet, by the number of the act."""

    def go_on(self) -> None:
        """Undo the acts of remediations that are to be undone, and retry what failed."""
        for case in self._store.in_state(State.UNDOING):
            self._undo(case, case.undo_reason)

    def _undo(self, case: Remediation, reason: str) -> None:
        """Drop the queued moves of a remediation, undo its default layouts, and then move files back (is_undone)."""
        with self._lock:
            self._gate.default_layouts.drop(case.finding.key)
            dropped = len(self._gate.drop(case.finding.key))
            there = tuple(case.defaults)
        if dropped:
            log.logger.info("dropped %s: %s", count_of(dropped, "queued move"), reason)
        acts = [outcome.entry for outcome in there]
        over = space.call_each(lambda act: self._undo_act_of(case.number, act, reason), acts, self._executor)
        gone = {act for act, done in zip(acts, over, strict=True) if done}
        restored = all(over) and self._restored_files(case, reason)
        with self._lock:
            case.defaults = [outcome for outcome in case.defaults if outcome.entry not in gone]
            if not case.defaults and restored and case.state is State.UNDOING:
                case.settle(State.UNDONE)

    def _restored_files(self, case: Remediation, reason: str) -> bool:
        """Give files their earlier layouts, through the queue and within the limits. True when all is done.

        A file that its job has open gives way, and is tried again for ``moving_seconds``.
        """
        if self._gate.dry_run:
            return True
        left = [entry for entry in self._journal.acts_in_force(case.number)
                if entry.kind == ActKind.MIGRATE and entry.id not in self._said and entry.undoes is None
                and is_undone(case.finding, entry)]
        pools = self._filesystem.pools() if left else {}
        waiting = [entry for entry in left if not self._gate.queue.has(entry.place)]
        for entry in sorted(waiting, key=lambda each: self._restored_at.get(each.id, (0.0, 0.0))[1])[:RESTORED_AT_ONCE]:
            result = self._restored(entry, pools, reason, case)
            if result is not None:
                self._said[entry.id] = result
                if result.outcome == Outcome.UNDONE:
                    self._journal.end(entry.id, Outcome.UNDONE, reason, self._clock.now())
                    self._moved_back(case.number)
                self._log.undone(case.number, entry, result.outcome, result.detail)
        return all(entry.id in self._said for entry in left)

    def _restored(self, entry: Entry, pools: Mapping[str, tuple[str, ...]], reason: str,
                  case: Remediation) -> UndoResult | None:
        """What became of one file; None while it is still to be done. Queues its move."""
        now = self._clock.now()
        first_at, last_at = self._restored_at.get(entry.id, (now, 0.0))
        late = now > first_at + self._settings.verify.moving_seconds
        try:
            earlier = earlier_layout(entry, pools)
            found, _ = present_state(entry, self._filesystem, earlier)
        except FileNotFoundError:
            return UndoResult(Outcome.GONE, "the file is gone")
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or str(error)
            return UndoResult(Outcome.REFUSED, words) if isinstance(error, ValueError) or late else None
        if found is Has.BEFORE:
            return UndoResult(Outcome.UNDONE, reason)
        if found is not Has.AFTER:
            return UndoResult(Outcome.REFUSED, "somebody changed the file or its layout since")
        if late:
            return UndoResult(Outcome.GAVE_WAY, f"its job keeps it open; tierctl undo {entry.id} restores it")
        if now >= last_at + RESTORE_SECONDS:
            self._restored_at[entry.id] = first_at, now
            key = UNDO, case.finding.aggressor, case.finding.subject
            self._gate.submit([Action(ActKind.MIGRATE, earlier, f"undo of act {entry.id}: {reason}", key,
                                      entry.place.rpartition("/")[0] or "/", path=entry.place,
                                      size_bytes=entry.size_bytes,
                                      fid=entry.fid, undoes=entry.id)], case.number)
        return None

    def _moved_back(self, number: int) -> None:
        """Count a file of a remediation that was moved back."""
        with self._lock:
            for case in self._store:
                if case.number == number:
                    case.moves.update({Outcome.DONE: -1, Outcome.UNDONE: 1})

    def _undo_act_of(self, number: int, act: int, reason: str) -> bool:
        """Undo one act. False if that failed or is held back now; it is then tried again later."""
        entry = self._journal.entry(act)
        if entry is None:
            return True
        held = self.act.held()
        result = self.act(entry, reason)
        if self._said.pop(act, None) != result:
            self._log.undone(number, entry, result.outcome, result.detail)
        if result.outcome == Outcome.UNDONE or (result.outcome != Outcome.FAILED and not held):
            return True
        self._said[act] = result
        return False

    def watch_free_space(self) -> None:
        """Undo default layouts while flash, or the MDTs, still have space for files that are being written."""
        with self._lock:
            cases = [case for case in self._store if case.defaults or case.earlier]
        if not self._standing and not cases:
            self._available_before = {}
            return
        spaces = self._site_facts().metadata_spaces
        room = replace(space.capacity(self._filesystem), metadata=MetadataTargets(spaces) if spaces else None)
        for entry in tuple(self._standing):
            if self._undo_for_space(entry, room):
                with self._lock:
                    self._standing = [other for other in self._standing if other.id != entry.id]
        for case in cases:
            for outcome in (*case.earlier, *case.defaults):
                if outcome.action.striping is not None:
                    continue  # it puts nothing on flash
                if why := self._short(outcome.action.directory, outcome.action.layout, room):
                    with self._lock:
                        if case.state is State.FORGOTTEN:  # it was forgotten meanwhile; see adopt
                            break
                        case.defaults[:0], case.earlier = case.earlier, []
                        case.begin_undo(why)
                    self._undo(case, why)
                    break
        self._available_before = room.avail_bytes

    def _undo_for_space(self, entry: Entry, room: Capacity) -> bool:
        why = self._short(entry.place, entry.layout_after, room)
        return bool(why) and self._undo_act_of(self._journal.finding_of(entry.id), entry.id, why)

    def _short(self, directory: str, layout: Layout | None, room: Capacity) -> str:
        """Why no more files of a directory may go where its default layout puts them; "" if they may."""
        for policy in policies().values():
            why = policy.is_short(layout, room, self._settings.tables) if layout and policy.is_short else None
            if why is not None:
                return why
        settings = self._settings.resolved_scopes.of(directory).small_files_to_flash
        if settings.flash_pool not in room.size_bytes:
            return ""  # the pool does not exist or reports no size
        if layout is not None and all(component.pool != settings.flash_pool for component in layout.components):
            return ""  # it places nothing on flash
        available = room.avail_bytes[settings.flash_pool]
        filled = max(0, self._available_before.get(settings.flash_pool, available) - available)
        if available - filled >= reserved(room, settings):
            return ""
        return (f"pool {settings.flash_pool!r} is down to its reserve" if available < reserved(room, settings)
                else f"pool {settings.flash_pool!r} is down to its reserve before tierd looks again")

    def adopt(self, cases: Sequence[Remediation]) -> None:
        """Watch the default layouts of forgotten remediations, because they still fill the flash pool."""
        for case in cases:
            for outcome in (*case.earlier, *case.defaults):
                entry = self._journal.entry(outcome.entry)
                if entry is not None and entry.outcome == Outcome.DONE and entry.kind == ActKind.SET_DEFAULT_LAYOUT:
                    with self._lock:
                        self._standing.append(entry)

    def act_by_hand(self, entry: Entry, by: str) -> UndoResult:
        result = self.act(entry, f"by {by}")
        if result.outcome == Outcome.UNDONE:
            self._undone_by(entry, by)
        return result

    def finding_by_hand(self, number: int, by: str) -> tuple[int, list[tuple[Entry, UndoResult]], list[int]]:
        """Undo what was done about a finding for an administrator: drop its moves, then restore the defaults.

        Returns the number of dropped moves, the defaults with the results, and the acts that moved files. These files
        stay where they are.
        """
        done = self._journal.acts_in_force(number)
        dropped = self._end_by_hand(number, by)
        results = [(entry, self.act_by_hand(entry, by)) for entry in done if entry.kind in DEFAULT_KINDS]
        return dropped, results, [entry.id for entry in done if entry.kind == ActKind.MIGRATE]

    def _undone_by(self, entry: Entry, by: str) -> None:
        """An administrator undid an act: drop the moves that depend on it.

        A remediation without any default layout left is settled, because later measurements say nothing about its
        acts.
        """
        number = self._journal.finding_of(entry.id)
        self._log.undone(number, entry, Outcome.UNDONE, f"by {by}")
        if entry.kind == ActKind.MIGRATE:
            self._moved_back(number)
        if entry.kind != ActKind.MIGRATE and all(act.kind == ActKind.MIGRATE
                                                 for act in self._journal.acts_in_force(number)):
            self._journal.judgements.undone_by_hand(number)
        with self._lock:
            self._standing = [other for other in self._standing if other.id != entry.id]
            for case in self._store:
                case.earlier = [outcome for outcome in case.earlier if outcome.entry != entry.id]
                left = [outcome for outcome in case.defaults if outcome.entry != entry.id]
                if len(left) == len(case.defaults):
                    continue
                case.defaults = left
                if left:
                    dropped = len(self._gate.drop(case.finding.key, entry.place))
                else:
                    dropped = self._end(case)
                if dropped:
                    log.logger.info("dropped %s: %s undid their default layout",
                                    count_of(dropped, "queued move"), by)

    def _end_by_hand(self, number: int, by: str) -> int:
        """End a remediation that an administrator undoes. Returns the number of queued moves that were dropped."""
        self._journal.judgements.undone_by_hand(number)
        with self._lock:
            dropped = sum(self._end(case) for case in self._store if case.number == number)
            if dropped:
                words = f"dropped {count_of(dropped, 'queued move')}: {by} undid the remediation"
                self._log.of_number(number, [words])
        return dropped

    def _end(self, case: Remediation) -> int:
        """Stop acts and measurements of a remediation. Returns the number of queued moves that were dropped."""
        case.verdict, case.undo_reason = Verdict.UNDONE_BY_HAND, ""
        case.settle(State.UNDONE)
        self._gate.default_layouts.drop(case.finding.key)
        return len(self._gate.drop(case.finding.key))
