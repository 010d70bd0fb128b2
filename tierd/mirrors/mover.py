"""Adds a mirror on flash to a file, resynchronises it, and removes it, by ``lfs mirror``.

An extension copies the file under a lease and adds the copy to the layout in one transaction: a writer wins, and a kill
leaves the file with one mirror or with two, both whole. A write later goes to the preferred mirror, and makes the other
one stale. So the mirror on disks is brought up to date before the one on flash is removed. (2.17.57 would do that
itself, and change the modification time.)

A mirror has a modification time of its own, that of its copy, which the file shows once the other one is gone. It is
set back. The exit code of ``lfs`` decides nothing: 2.17.57 removes a mirror and reports an error. The file is read
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from lustre.errors import Busy
from lustre.layout.model import Layout, in_sync, mirrors, one_mirror, same_shape
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.movers import checks, inspection, moves
from tierd.act.movers.checks import FileFacts
from tierd.act.movers.lfs import RECENTLY_MODIFIED_SECONDS, LfsMover, failure_of_one
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, outcome_of_error, refused_outcome
from tierd.act.movers.space_and_quota import DestinationState
from tierd.refusal import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done with the mirrors of a file that was examined."""

    facts: FileFacts
    resync: bool = False
    """Whether a mirror is brought up to date first, or only."""
    command: tuple[str, ...] = ()
    """Arguments of ``lfs mirror`` that change the layout, and the file; empty to resynchronise only."""


class MirrorMover(inspection.FileEngine):
    """Moves that change no mirrors go to another engine."""

    def __init__(self, engine: inspection.FileEngine, lfs: LfsMover) -> None:
        self.engine = engine
        self.files_at_a_time = engine.files_at_a_time
        self._lfs, self._calls = lfs, lfs.calls

    def batch(self) -> DestinationState:
        return self.engine.batch()

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: DestinationState) -> Iterator[MoveOutcome]:
        for mirrored, some in groupby(moves, changes_mirrors):
            if mirrored:
                yield from super().move_batch(some, halt, batch)
            else:
                yield from self.engine.move_batch(some, halt, batch)

    def facts_of(self, move: Move, batch: DestinationState) -> FileFacts | MoveOutcome:
        if not changes_mirrors(move):
            return self.engine.facts_of(move, batch)
        found = self._examined(move, batch)
        return found if isinstance(found, MoveOutcome) else found.facts

    def _examined(self, move: Move, batch: DestinationState) -> Change | MoveOutcome:
        try:
            present = self._calls.layout_of(move.path)
            if present is None or present.mirror_count == 1:
                return self._extension(move, present, batch)
            facts = checks.read_facts(self._calls, move.path)
            return self._of_mirrored(move, facts, batch)
        except OSError as error:
            return outcome_of_error(move, error)

    def _extension(self, move: Move, present: Layout | None, batch: DestinationState) -> Change | MoveOutcome:
        """How a file without mirrors gets one. Its room is reserved."""
        groups = mirrors(move.layout)
        if present is None or len(groups) != 2 or not same_shape(one_mirror(groups[0]), present):
            return refused_outcome(move, Refusal(Reason.CHANGED, "the file has no mirrors, or another layout"))
        added = one_mirror(groups[1])
        found = self._lfs.facts_of(replace(move, layout=added), batch)
        if isinstance(found, MoveOutcome):
            return replace(found, move=move)
        if refusal := self._lfs.mirroring_refusal(found) or self._lfs.resync_refusal():
            return refused_outcome(move, refusal)
        if not self._lfs.copies_by_fid():  # the mirror could not be removed again
            return refused_outcome(move, Refusal(Reason.MIRRORED, "lfs cannot open files by FID here"))
        return Change(found, command=("extend", "-N", "--flags=prefer", *setstripe_arguments(added),
                                      self._lfs.place_of(found, move.path)))

    def _of_mirrored(self, move: Move, facts: FileFacts, batch: DestinationState) -> Change | MoveOutcome:
        """What is to be done with a file that has mirrors: nothing, unless tierd made them."""
        present = facts.layout
        groups = mirrors(present) if present is not None else ()
        ours = [group for group in groups if any("prefer" in component.flags for component in group)]
        if not move.own_mirrors or present is None or len(groups) != 2 or len(ours) != 1:
            return refused_outcome(move, Refusal(Reason.MIRRORED, "the file has mirrors that tierd did not make"))
        kept, flash = groups if groups[1] is ours[0] else reversed(groups)
        stale = [group for group in groups if not in_sync(Layout(group))]
        resync = bool(stale) if move.layout.mirror_count > 1 else kept in stale
        as_wanted = present if move.layout.mirror_count > 1 else one_mirror(kept)
        if not same_shape(as_wanted, move.layout):
            return refused_outcome(move, Refusal(Reason.CHANGED, "its mirrors are not as tierd made them"))
        if move.layout.mirror_count > 1 and not resync:
            return MoveOutcome(move, MoveResult.ALREADY, "already", "its mirrors are in sync")
        alone = replace(facts, layout=one_mirror(kept))
        to = replace(move, layout=one_mirror(stale[0] if resync else flash))
        refusal = (checks.changed_layout_refusal(move, present)
                   or checks.refusal_for(replace(to, layout=one_mirror(flash)), alone)
                   or self._lfs.mirroring_refusal(facts)
                   or (self._lfs.resync_refusal() or batch.refusal(to, alone) if resync else None))
        if refusal is not None:
            return refused_outcome(move, refusal)
        if busy := self._lfs.modified_just_now(move, facts):
            return busy
        split = "split", "-d", "--mirror-id", str(flash[0].mirror_id), self._lfs.place_of(facts)
        return Change(facts, resync, () if move.layout.mirror_count > 1 else split)

    def move_file(self, move: Move, batch: DestinationState) -> MoveOutcome:
        """Change the mirrors of one file. The file as it is afterwards decides the outcome."""
        found = self._examined(move, batch)
        if isinstance(found, MoveOutcome):
            return replace(found, not_copied=1.0)
        if late := move.fence():  # this process may have hung while it examined the file
            return moves.halted_outcome(move, late)
        before = found.facts
        if found.resync:
            failure = self._run("resync", self._lfs.place_of(before))
            try:
                now = checks.read_facts(self._calls, move.path)
            except OSError as error:
                return outcome_of_error(move, error)
            if now.fid != before.fid:
                return inspection.removed_outcome(move)
            if now.layout is None or not in_sync(now.layout):
                why = failure or Busy(16, "somebody wrote to the file while its mirrors were synchronised")
                return outcome_of_error(move, why)
            if not found.command:
                return MoveOutcome(move, MoveResult.DONE)
            before = now
            self._lfs.clock.wait(RECENTLY_MODIFIED_SECONDS)  # the next write has another time than this copy
        begun_at = self._lfs.clock.now()
        failure = self._run(*found.command)
        then = inspection.Verification(self._calls, move, before, None, self._lfs.clock)
        outcome = then.outcome(batch.pools_afterwards(), failure)
        if outcome.result is not MoveResult.DONE or move.layout.mirror_count > 1:
            return outcome
        if outcome.after is not None and not in_sync(outcome.after):  # the MDT should refuse that
            detail = "a write during the split went to the mirror that was removed, and is lost"
            return replace(outcome, result=MoveResult.DOUBTFUL, reason="verification", detail=detail)
        try:
            self._restore_times(before, begun_at)
        except OSError as error:
            return replace(outcome, detail=f"its modification time may have changed: {error}")
        return outcome

    def _restore_times(self, before: FileFacts, begun_at: float) -> None:
        """Set the times back, unless somebody has written to the file since the split began."""
        descriptor = self._calls.open_fid(before.fid)
        try:
            version = self._calls.data_version(descriptor)  # this client then asks for the times
            now = checks.read_open_facts(self._calls, descriptor, before.hsm)
            since = int(begun_at) - RECENTLY_MODIFIED_SECONDS
            if now.layout is not None and before.status.mtime_ns // 10**9 < now.status.mtime_ns // 10**9 <= since:
                copied = inspection.VerifiedCopy(now.layout, version)
                inspection.times_restored(self._calls, descriptor, before, copied, now, version=version,
                                          clock=self._lfs.clock)
        finally:
            self._calls.close(descriptor)

    def _run(self, *words: str) -> OSError | None:
        return failure_of_one(self._lfs.run("mirror", *words), words[-1])


def changes_mirrors(move: Move) -> bool:
    return move.own_mirrors or move.layout.mirror_count > 1


engine = MirrorMover
