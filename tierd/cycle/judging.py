"""What acts came to: kept, or taken back where they did not help, others paid for them, or flash runs full."""

from __future__ import annotations

from collections.abc import Mapping

from lustre.filesystem import Filesystem
from tierd import narrate
from tierd.act.entry import Entry
from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.act.undo import Undo
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import TAKEN_BACK, Case
from tierd.cycle.tally import Tally
from tierd.cycle.telling import Key, Telling
from tierd.decide.small_files_to_flash import reserved
from tierd.engine import Engine
from tierd.model import Room
from tierd.sense import space
from tierd.verify.judgement import Act, Judgement, judge
from tierd.verify.totals import Totals


class Judging:
    """Looks at the open cases after the act."""

    def __init__(self, cases: Mapping[Key, Case], engine: Engine, gate: Gate, undo: Undo, journal: Journal,
                 telling: Telling, filesystem: Filesystem, clock: Clock, settings: Settings, tally: Tally) -> None:
        self._cases = cases
        self._engine = engine
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._telling = telling
        self._filesystem = filesystem
        self._clock = clock
        self._settings = settings
        self._tally = tally
        self._totals = Totals()
        in_cases = {outcome.entry for case in cases.values() for outcome in case.defaults}
        self._standing = [] if settings.act.dry_run else [
            entry for entry in journal.judgements.standing() if entry.id not in in_cases]
        """Default layouts of before a restart that were judged, or are not to be: they go on filling the flash pool."""
        self._said: dict[int, tuple[str, str]] = {}
        """What was said last of taking an act back, as long as that has not come about."""

    def judge(self, now: float) -> None:
        """Compare with before, where there was time enough."""
        for case in self._cases.values():
            if case.taking_back:
                self._undo(case, case.taking_back)
        flash = space.room(self._filesystem, ()).pools if any(not c.judged for c in self._cases.values()) else {}
        for case in self._cases.values():
            moving = self._gate.waiting_for(case.finding.key)
            if case.judged or (moving and now < case.begun_at + self._settings.verify.moving_seconds):
                continue
            act = Act(case.finding, case.begun_at, case.acted_at, flash.get(case.pool, ()))
            judgement = judge(act, self._engine.windows, now, self._settings.verify, self._totals)
            if judgement.verdict != "too-early":
                self._note(case, judgement)
                if case.given_up:
                    self._undo(case, "it did not help" if judgement.verdict == "did-not-help" else "others paid for it")
        self._totals.settle()

    def watch_room(self) -> None:
        """Take defaults back while there is still room for what is being written."""
        if not self._standing and not any(case.defaults or case.earlier for case in self._cases.values()):
            return
        room = space.room(self._filesystem, ())
        self._standing = [entry for entry in self._standing if not self._taken_back_for_room(entry, room)]
        for case in self._cases.values():
            for outcome in (*case.earlier, *case.defaults):
                if why := self._short(outcome.action.directory, room):
                    case.defaults[:0], case.earlier = case.earlier, []
                    self._undo(case, why)
                    break

    def _taken_back_for_room(self, entry: Entry, room: Room) -> bool:
        why = self._short(entry.place, room)
        return bool(why) and self._taken_back(self._journal.finding_of(entry.id), entry.id, why)

    def _short(self, directory: str, room: Room) -> str:
        """Why no more may be written to flash from a directory, or ""."""
        settings = self._settings.scope_of(directory).small_files_to_flash
        if settings.flash_pool not in room.size_bytes:
            return ""  # it is not there, and nothing is known of it
        short = room.avail_bytes[settings.flash_pool] < reserved(room, settings)
        return f"pool {settings.flash_pool!r} is down to its reserve" if short else ""

    def taken_back(self, entry: Entry, by: str) -> None:
        """Somebody has taken an act back by hand: told; and a case without default layouts of its own is over.

        What would be measured from then on says nothing of what was done, and the moves that wait were for it.
        """
        self._telling.of_number(self._journal.finding_of(entry.id), [narrate.undone(entry, "undone", f"by {by}")])
        self._standing = [other for other in self._standing if other.id != entry.id]
        for case in self._cases.values():
            case.earlier = [outcome for outcome in case.earlier if outcome.entry != entry.id]
            left = [outcome for outcome in case.defaults if outcome.entry != entry.id]
            if case.defaults and not left:
                case.judged, case.verdict, case.taking_back = True, TAKEN_BACK, ""
                if dropped := self._gate.drop(case.finding.key):
                    self._telling.say(f"dropped {dropped} waiting moves: {by} took their default layout back")
            case.defaults = left

    def _note(self, case: Case, judgement: Judgement) -> None:
        """What the acts came to: told, counted, and kept for later decisions."""
        case.judged, case.verdict = True, judgement.verdict
        self._tally.verdicts[judgement.verdict] += 1
        self._tally.gained[case.finding.victim] = judgement.won_back
        self._tally.gains[case.finding.victim] = (judgement.usual - judgement.contended,
                                                  judgement.after - judgement.contended)
        self._journal.judgements.judged(case.number, case.finding.kind, case.pool, case.size_bytes, judgement.verdict,
                             judgement.won_back, self._clock.now(), judgement.usual, judgement.contended,
                             judgement.after)
        self._telling.of_number(case.number, [narrate.judged(case.finding, judgement)])

    def _undo(self, case: Case, reason: str) -> None:
        dropped = self._gate.drop(case.finding.key)
        case.defaults[:] = [outcome for outcome in case.defaults
                            if not self._taken_back(case.number, outcome.entry, reason)]
        case.taking_back = reason if case.defaults else ""
        if dropped:
            self._telling.say(f"dropped {dropped} waiting moves: {reason}")
        case.judged = True

    def _taken_back(self, number: int, act: int, reason: str) -> bool:
        """Take one back; False where that failed, or may not be now, and is to be tried again."""
        entry = self._journal.entry(act)
        if entry is None:
            return True
        held = self._undo_act.held()
        told = self._undo_act(entry, reason)
        if self._said.pop(act, None) != told:
            self._telling.of_number(number, [narrate.undone(entry, *told)])
        if told[0] == "undone" or (told[0] != "failed" and not held):
            return True
        self._said[act] = told
        return False
