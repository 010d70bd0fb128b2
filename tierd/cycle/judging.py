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

    def judge(self, now: float) -> None:
        """Compare with before, where there was time enough."""
        flash = space.room(self._filesystem, ()).pools if any(not c.judged for c in self._cases.values()) else {}
        for case in self._cases.values():
            moving = self._gate.waiting_for(case.finding.key)
            if case.judged or (moving and now < case.begun_at + self._settings.verify.moving_seconds):
                continue
            act = Act(case.finding, case.begun_at, case.acted_at, flash.get(case.pool, ()))
            judgement = judge(act, self._engine.windows, now, self._settings.verify, self._totals)
            if judgement.verdict != "too-early":
                self._note(case, judgement)
                if judgement.verdict in {"did-not-help", "harmed-others"}:
                    self._undo(case, "it did not help" if judgement.verdict == "did-not-help" else "others paid for it")
        self._totals.settle()

    def watch_room(self) -> None:
        """Take defaults back while there is still room for what is being written."""
        if not any(case.defaults or case.earlier for case in self._cases.values()):
            return
        room = space.room(self._filesystem, ())
        for case in self._cases.values():
            for outcome in (*case.earlier, *case.defaults):
                settings = self._settings.scope_of(outcome.action.directory).small_files_to_flash
                if room.avail_bytes.get(settings.flash_pool, 0) < reserved(room, settings):
                    case.defaults[:0], case.earlier = case.earlier, []
                    self._undo(case, f"pool {settings.flash_pool!r} is down to its reserve")
                    break

    def taken_back(self, entry: Entry, by: str) -> None:
        """Somebody has taken an act back by hand: told; and a case without default layouts of its own is over.

        What would be measured from then on says nothing of what was done, and the moves that wait were for it.
        """
        self._telling.of_number(self._journal.finding_of(entry.id), [narrate.undone(entry, "undone", f"by {by}")])
        for case in self._cases.values():
            case.earlier = [outcome for outcome in case.earlier if outcome.entry != entry.id]
            left = [outcome for outcome in case.defaults if outcome.entry != entry.id]
            if case.defaults and not left:
                case.judged, case.verdict = True, TAKEN_BACK
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
        for outcome in case.defaults:
            entry = self._journal.entry(outcome.entry)
            if entry is not None:
                self._telling.of_number(case.number, [narrate.undone(entry, *self._undo_act(entry, reason))])
        if dropped:
            self._telling.say(f"dropped {dropped} waiting moves: {reason}")
        case.defaults.clear()
        case.judged = True
