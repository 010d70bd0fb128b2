"""Verdicts on what was done, and its undo: after a bad verdict, for lack of space, or for an administrator.

A remediation for a slowed stream is judged by its stream, one for a job by the job itself. A policy may judge by a
measure of its own: runs of moves are then stopped, and defaults of directories undone. The journal has what the last
ones need, the act and the numbers of its finding, so a restart loses no judgement of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lustre.layout.model import Layout
from tierd.act.journal.entry import Entry
from tierd.act.undo import Has, UndoResult, earlier_layout, located, present_state
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome, Verdict
from tierd.daemon import log
from tierd.daemon.log import FindingLog
from tierd.daemon.node import DaemonParts
from tierd.daemon.remediation import UNDO_REASONS, Remediation, RemediationStore, is_undone
from tierd.daemon.states import OPEN, State
from tierd.decide.plans import reserved
from tierd.detect.gain import StreamTrack
from tierd.model import Action, Capacity, Facts, MetadataTargets, TargetFill, Window
from tierd.policies.protocol import JudgedBy, MoveRun
from tierd.policies.registry import evidence_of, policies, policy_for, policy_of
from tierd.sense import space
from tierd.sense.paths import join
from tierd.text import count_of, quoted
from tierd.verify.judgement import Act, Judgement, judge, judge_own

MAX_MEASURING_TIMES = 1.25
"""After this many measuring times, an act that helps is judged while files of its remediation still move."""
END_SECONDS = 60.0
"""Time without a move after which a run has ended: the next plan would be made, and the space is up to date."""
MAX_AGE_SECONDS = 7 * 86_400.0
"""Older defaults are no longer judged."""
LOOK_SECONDS = 30.0


class Judge:
    """Gives the verdicts. One thread calls it; it does not hold the lock while it asks the file system."""

    def __init__(self, parts: DaemonParts, store: RemediationStore, undoing: CaseUndo, finding_log: FindingLog, *,
                 history: Callable[[], tuple[Sequence[Window], Mapping[str, StreamTrack]]],
                 facts: Callable[[], Facts]) -> None:
        """``history`` returns the windows, and tracks of slowed streams; ``facts`` the latest facts."""
        self._gate, self._journal, self._settings = parts.gate, parts.journal, parts.settings
        self._filesystem, self._clock = parts.node.filesystem, parts.node.clock
        self._store, self._lock, self._undoing = store, store.lock, undoing
        self._log, self._counters = finding_log, finding_log.counters
        self._history, self._facts = history, facts
        self._looked_at = 0.0

    def judge(self, now: float) -> None:
        """Judge remediations that were measured long enough, and undo those that did not help."""
        judged = self._store.open()
        flash = space.capacity(self._filesystem).pools if judged else {}
        windows, tracks = self._history()
        latest = now + self._settings.sense.stale_seconds + self._settings.verify.judge_seconds
        with self._lock:
            for case in self._store if windows else ():
                # after the clock was set back, the history has windows of the new time only
                case.correct_times(latest, windows[0].start)
        for case in judged:
            with self._lock:
                if case.state in OPEN and not case.abandoned and not self._is_braked(case, now):  # undone meanwhile
                    self._judged(case, windows, tracks, flash.get(case.pool, ()), now)
        self._judge_moves(windows)
        with self._lock:
            unseen = windows[-1].unseen if windows else frozenset[str]()
            self._gate.queue.hold([case.finding.key for case in self._store if case.moves_held
                                   or not unseen.isdisjoint(case.finding.targets)])
        self._undoing.go_on()

    def _is_braked(self, case: Remediation, now: float) -> bool:
        began = [self._store.braked[job] for job in (case.finding.aggressor, case.finding.victim)
                 if job in self._store.braked]
        if began:
            # its acts are measured from the end of the brake on
            case.acted_at, case.braked_at = now, case.braked_at or min(began)
        return bool(began)

    def _judged(self, case: Remediation, windows: Sequence[Window], tracks: Mapping[str, StreamTrack],
                flash: Collection[str], now: float) -> None:
        """Give the verdict on one remediation, if there is one by now.

        Moves load the disks themselves, so throughput measured after the last move counts, if that move ends soon.
        Otherwise throughput measured during the moves may count for the act. Before it counts against the act, the
        remaining moves wait, and the effect is measured again without them. Acts for the job whose files they move are
        judged by that job; without any act there is nothing to judge.
        """
        settings, finding = self._settings.verify, case.finding
        itself, waits = policy_for(finding).judged_by is JudgedBy.ITSELF, self._gate.queue.waiting_for(finding.key) > 0
        if (self._gate.default_layouts.of(finding.key)
                or (not case.defaults and waits and now < case.begun_at + settings.moving_seconds)):
            return  # there is no act but moves, and they have time left
        if not case.defaults and not case.moved:
            if now > case.acted_at + settings.judge_seconds and not self._gate.has_moves(finding.key):
                case.settle(State.KEPT)
            return
        case.to(State.JUDGING)

        def effect(since: float) -> Judgement:
            act = Act(finding, case.unslowed_until, since, flash, case.layout.components[0].on_mdt)
            return (judge_own(act, windows, now, settings, operations=finding.evidence.in_operations) if itself
                    else judge(act, windows, tracks, now, settings))

        judgement = effect(max(case.acted_at, case.moved_at) if itself else case.acted_at)
        # moves load the disks themselves: what is measured after the last one counts, if it ends soon
        if not itself and judgement.verdict != Verdict.TOO_EARLY and case.moved_at > case.acted_at:
            alone = effect(case.moved_at)
            latest = case.acted_at + settings.settle_seconds + MAX_MEASURING_TIMES * settings.judge_seconds
            # an act may count as helpful while moves continue. Before it counts as useless, the remaining moves wait
            # until its effect was measured without moves
            if judgement.verdict in {Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS} or judgement.is_slower:
                if not case.moves_held and waits:
                    case.moves_held = True
                    self._log.of_number(case.number, [
                        f"no gain for {finding.victim}: the remaining moves wait while the effect is measured alone"])
                judgement = alone
            elif alone.verdict != Verdict.TOO_EARLY or (judgement.verdict == Verdict.HELPED and now < latest):
                judgement = alone
        if judgement.verdict != Verdict.TOO_EARLY:
            self.settle(case, judgement)

    def settle(self, case: Remediation, judgement: Judgement) -> None:
        """Give a verdict: log and count it, and store it in the journal for later decisions."""
        rates = ((0.0, 0.0, 0.0) if judgement.operations  # the journal has throughput, for people
                 else (judgement.usual, judgement.contended, judgement.after))
        self._enter(case, judgement, case.size_bytes, rates)
        self._log.of_number(case.number, [log.judged_sentence(case.finding, judgement)])
        if case.abandoned:
            slower = judgement.own and judgement.verdict == Verdict.DID_NOT_HELP
            case.begin_undo("the job got slower" if slower else UNDO_REASONS[judgement.verdict])
        else:
            case.settle(State.KEPT)

    def _enter(self, case: Remediation, judgement: Judgement, size_bytes: int,
               rates: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> None:
        now = self._clock.now()
        case.verdict, case.judgement, case.judged_at = judgement.verdict, judgement, now
        if not judgement.own:
            case.finding = self._log.measured(case.number, case.finding, judgement.usual, judgement.contended)
        self._counters.verdicts[judgement.verdict] += 1
        self._counters.judged_at = now
        self._journal.judgements.add(case.number, case.finding.kind, case.pool, size_bytes, judgement.verdict,
                                     judgement.won_back, now, *rates,
                                     interval=judgement.regained and judgement.regained[1:])

    def _judge_moves(self, windows: Sequence[Window]) -> None:
        """Judge the runs that have ended, and stop those that slow a job."""
        if self._gate.dry_run:
            return
        now, facts = self._clock.now(), self._facts()
        for case in list(self._store):
            with self._store.lock:
                self._judge_moves_of(case, facts, windows, now)

    def _judge_moves_of(self, case: Remediation, facts: Facts, windows: Sequence[Window], now: float) -> None:
        if (judge := policy_for(case.finding).judge_moves) is None:
            return
        if case.abandoned:
            again = (now >= case.judged_at + self._settings.verify.cooldown_seconds
                     or self._gate.approvals.approved(case.finding.key, case.judged_at))
            if case.verdict is not Verdict.UNDONE_BY_HAND and again:
                case.verdict = Verdict.NONE  # it may be tried again
            return
        if not case.moved or case.judged_at >= case.moved_at:  # nothing moved since the verdict
            return
        moving = self._gate.has_moves(case.finding.key) or now < case.moved_at + END_SECONDS
        judgement = judge(case.finding, case.finding.evidence, MoveRun(
            case.run_begun_at or case.begun_at, case.begun_at, last_at=case.moved_at, moving=moving,
            moved=partial(self._moved, case), facts=facts,
            windows=windows, now=now, settings=self._settings.verify))
        if judgement is not None:
            self._settle_moves(case, judgement)

    def _moved(self, case: Remediation) -> tuple[int, int]:
        sums = self._journal.reader.sums_of_finding(case.number)
        return sums["files_moved"], sums["bytes_moved"]

    def _settle_moves(self, case: Remediation, judgement: Judgement) -> None:
        self._enter(case, judgement, 0)
        sentences = [f"verdict on the moves: {judgement.words}"]
        if case.abandoned and (dropped := self._gate.drop(case.finding.key)):
            case.tried -= {action.path for action in dropped}  # they may be moved later
            sentences.append(f"dropped {count_of(len(dropped), 'queued move')}")
        self._log.of_number(case.number, sentences)

    def judge_defaults(self) -> None:
        """Judge the defaults that were measured long enough, twice a minute. A dry run judges none."""
        now = self._clock.now()
        if self._gate.dry_run or 0 <= now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for entry, kind, numbers in self._journal.stripings_to_judge(now - MAX_AGE_SECONDS):
            evidence, policy = evidence_of(kind, numbers), policy_of(kind)
            if policy.judge_default is not None and isinstance(evidence, policy.evidence):
                found = policy.judge_default(entry.place, evidence, self._facts(), now - entry.intended_at)
                if found is not None:
                    self._settle_default(entry, found)

    def _settle_default(self, entry: Entry, found: Judgement) -> None:
        number = self._journal.finding_of(entry.id)
        if found.verdict is Verdict.DID_NOT_HELP:
            result, over = self._undoing.undo(number, entry, found.words)
            # it will not be undone: with the verdict, nobody tries again
            if over and not result.restored:
                self._journal.judged(entry.id, found.verdict, f"not undone: {result.detail}", self._clock.now())
            return
        self._journal.judged(entry.id, found.verdict, f"kept: {found.words}", self._clock.now())
        self._log.of_number(number, [f"KEPT default striping of {entry.place}: {found.words}"])


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
        self._given_up: set[int] = set()
        """Acts that are not tried again: moves of remediations, and default layouts without one."""
        self._restored_at: dict[int, tuple[float, float]] = {}
        """When the move of a file back to its earlier layout was first and last queued, by the number of the act."""
        self._fill_before: Mapping[str, TargetFill] = {}
        """Space of the OSTs at the last :meth:`watch_free_space`: as many bytes less may be free at the next."""
        self._in_force: tuple[object, Collection[Entry]] = None, ()
        """Version of the default layouts in force, of which years have thousands, and one for each layout and scope."""
        self._said: dict[int, UndoResult] = {}
        """Last logged result of each undo that has not succeeded yet, by the number of the act."""
        self._went_on = 0
        """The act whose undo continued last, by one step: each in turn."""

    def go_on(self) -> None:
        """Undo the acts of remediations that are to be undone, retry what failed, and continue one undo.

        They wait for the end of a dry run, which may have begun after the acts.
        """
        if self._gate.dry_run:
            return
        for case in self._store.in_state(State.UNDOING):
            self._undo(case, case.undo_reason)
        undoing = self._journal.undoing()  # their searches continue, or they were under way when tierd ended
        if undoing:
            entry = min(undoing, key=lambda each: (each.id <= self._went_on, each.id))
            self._went_on = entry.id
            self.undo(self._journal.finding_of(entry.id), entry, "by tierd, which had ended during this undo")

    def _undo(self, case: Remediation, reason: str) -> None:
        with self._lock:
            # first what would set them again
            self._gate.default_layouts.drop(case.finding.key)
            dropped = len(self._gate.drop(case.finding.key))
            # what harmed others is undone, whoever relies on it
            if case.verdict is Verdict.DID_NOT_HELP:
                self._hand_over(case)
            there = tuple(case.defaults)
        if dropped:
            log.logger.info("dropped %s: %s", count_of(dropped, "queued move"), reason)
        gone, left = set[int](), {outcome.entry: join(outcome.action.directory, "") for outcome in there}
        while left:  # first those below no other: their undo decides what the others restore
            acts = [act for act, place in left.items()
                    if not any(place != above and place.startswith(above) for above in left.values())]
            over = space.call_each(lambda act: self._undo_act_of(case.number, act, reason), acts, self._executor)
            gone |= {act for act, done in zip(acts, over, strict=True) if done}
            left = {act: place for act, place in left.items() if act not in acts}
        restored = len(gone) == len(there) and self._restored_files(case, reason)
        with self._lock:
            for each in self._store:  # cases share the default layout of a directory
                each.defaults = [outcome for outcome in each.defaults if outcome.entry not in gone]
            if not case.defaults and restored and case.state is State.UNDOING:
                case.settle(State.UNDONE)

    def _hand_over(self, case: Remediation) -> None:
        """Leave default layouts that other cases rely on to these, whose verdicts then decide."""
        others = [each for each in self._store if each is not case]
        for outcome in tuple(case.defaults):
            directory = outcome.action.directory
            heir = next((each for each in others if each.relies_on(directory, case.pool)), None)
            if heir is not None:
                case.defaults.remove(outcome)
                if all(each.entry != outcome.entry for each in heir.defaults):
                    heir.defaults.append(outcome)
                self._journal.hand_over(outcome.entry, heir.number)
                why = f"F{heir.number} relies on it, and its verdict decides"
                self._log.of_number(case.number, [f"KEPT default layout of {quoted(directory)}: {why}"])

    def _restored_files(self, case: Remediation, reason: str) -> bool:
        """Give files their earlier layouts, through the queue and within the limits. True when all is done.

        A file that its job has open gives way, and is tried again for ``moving_seconds``.
        """
        acts = self._journal.acts_to_undo if case.abandoned else self._journal.acts_in_force
        left = [entry for entry in acts(case.number)
                if entry.kind == ActKind.MIGRATE and entry.id not in self._given_up and entry.undoes is None
                and is_undone(case.finding, entry)]
        pools = self._filesystem.pools() if left else {}
        waiting = [entry for entry in left if not self._gate.queue.has(entry.place)]
        # the longest ago first, so that each has its turn
        for entry in sorted(waiting, key=lambda each: self._restored_at.get(each.id, (0.0, 0.0))[1])[:RESTORED_AT_ONCE]:
            result = self._restored(entry, pools, reason, case)
            if result is not None:
                self._given_up.add(entry.id)
                # what moved the file back is an act of its own: this one ends here
                if result.outcome == Outcome.UNDONE:
                    self._journal.end(entry.id, Outcome.UNDONE, reason, self._clock.now())
                    self._moved_back(case.number, entry.outcome)
                self._log.undone(case.number, entry, result.outcome, result.detail)
        return all(entry.id in self._given_up for entry in left)

    def _restored(self, entry: Entry, pools: Mapping[str, tuple[str, ...]], reason: str,
                  case: Remediation) -> UndoResult | None:
        """What became of one file; None while it is still to be done. Queues its move."""
        now = self._clock.now()
        first_at, last_at = self._restored_at.get(entry.id, (now, 0.0))
        late = now > first_at + self._settings.verify.moving_seconds
        try:
            earlier = earlier_layout(entry, pools)
            entry = located(entry, self._filesystem)
            found, _ = present_state(entry, self._filesystem, earlier)
        except FileNotFoundError:
            return UndoResult(Outcome.GONE, "the file is gone")
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or str(error)
            return UndoResult(Outcome.REFUSED, words) if isinstance(error, ValueError) or late else None
        if found is Has.BEFORE:
            return UndoResult(Outcome.UNDONE, reason)
        if found is not Has.AFTER:
            return UndoResult(Outcome.REFUSED, "somebody has changed the file or its layout since")
        if late:
            return UndoResult(Outcome.GAVE_WAY, f"its job keeps it open; tierctl undo {entry.id} restores it")
        if not 0 <= now - last_at < RESTORE_SECONDS:
            self._restored_at[entry.id] = first_at, now
            key = UNDO, case.finding.aggressor, case.finding.subject
            self._gate.submit([Action(ActKind.MIGRATE, earlier, f"undo of act {entry.id}: {reason}", key,
                                      entry.place.rpartition("/")[0] or "/", path=entry.place, fid=entry.fid,
                                      size_bytes=entry.size_bytes, undoes=entry.id)], case.number)
        return None

    def _moved_back(self, number: int, was: Outcome) -> None:
        with self._lock:
            for case in self._store:
                if case.number == number:
                    case.moves.update({was: -1, Outcome.UNDONE: 1})

    def _undo_act_of(self, number: int, act: int, reason: str) -> bool:
        """Undo one act. False if that failed or is held back now; it is then tried again later."""
        entry = self._journal.entry(act)
        return entry is None or self.undo(number, entry, reason)[1]

    def undo(self, number: int, entry: Entry, reason: str) -> tuple[UndoResult, bool]:
        """The result of the undo of an act, and whether another attempt would have the same. Logs each result once."""
        result, over = self._attempted(entry, reason)
        goes_on = result.outcome in {entry.outcome, Outcome.UNDER_WAY}
        if self._said.pop(entry.id, None) != result and not goes_on:
            self._log.undone(number, entry, result.outcome, result.detail)
        if not over:
            self._said[entry.id] = result
        return result, over

    def _attempted(self, entry: Entry, reason: str) -> tuple[UndoResult, bool]:
        held = self.act.held()
        result = self.act(entry, reason)
        held = held or self.act.held()  # a pause may have begun or ended meanwhile
        return result, result.restored or (result.outcome not in {Outcome.FAILED, Outcome.UNDER_WAY} and not held)

    def watch_free_space(self) -> None:
        """Undo default layouts while flash, or the MDTs, still have space for files that are being written.

        The journal has all that are in force: including those of remediations that are forgotten, or followed by
        another.
        """
        acts, of = self._journal.judgements, self._settings.resolved_scopes.of
        if (version := acts.version_of_default_layouts()) != self._in_force[0]:
            self._in_force = version, {(of(each.place).path, each.layout_after): each
                                       for each in acts.default_layouts_in_force()}.values()
        if self._gate.dry_run or not self._in_force[1]:
            self._fill_before = {}
            return
        spaces = self._site_facts().metadata_spaces
        room = replace(space.capacity(self._filesystem), metadata=MetadataTargets(spaces) if spaces else None)
        case_of = {outcome.entry: case for case in self._store for outcome in case.defaults}
        short: dict[int, tuple[Remediation, str]] = {}
        some = any(self._short(each.place, each.layout_after, room) for each in self._in_force[1])
        for entry in acts.default_layouts_in_force() if some else ():
            if entry.id in self._given_up or not (why := self._short(entry.place, entry.layout_after, room)):
                continue
            if (case := case_of.get(entry.id)) is not None:
                short.setdefault(case.number, (case, why))
            elif self._undo_act_of(self._journal.finding_of(entry.id), entry.id, why):
                self._given_up.add(entry.id)
        for case, why in short.values():
            with self._lock:
                case.begin_undo(why)
            self._undo(case, why)
        self._fill_before = room.fill

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
        filled = max(0, sum(self._fill_before.get(target, now).avail_bytes - now.avail_bytes  # an OST may be down
                            for target in room.pools[settings.flash_pool] if (now := room.fill.get(target))))
        # as much again may be written before the next check
        if available - filled >= reserved(room, settings):
            return ""
        return (f"pool {settings.flash_pool!r} is down to its reserve" if available < reserved(room, settings)
                else f"pool {settings.flash_pool!r} is down to its reserve, or will be before the next check")

    def act_by_hand(self, entry: Entry, by: str) -> tuple[UndoResult, bool]:
        """As :meth:`undo`, for an administrator."""
        result, over = self._attempted(entry, f"by {by}")
        if result.restored:
            self._undone_by(entry, result, by)
        return result, over

    def finding_by_hand(self, number: int, by: str) -> tuple[int, list[tuple[Entry, UndoResult]], list[int]]:
        """Undo what was done about a finding or order for an administrator: drop its moves, then restore the defaults.

        Returns the number of dropped moves, the defaults with the results, and the acts that moved files. These files
        stay where they are. If an undo failed or is held back now, the case continues as before.
        """
        done = self._journal.acts_in_force(number)
        with self._lock:
            cases = [(case, case.verdict) for case in self._store if case.number == number]
            for case, _ in cases:
                case.verdict = Verdict.UNDONE_BY_HAND  # nothing is planned meanwhile
            dropped = sum(self._drop(case) for case, _ in cases)
            dropped += len(self._gate.drop_by_number(number))  # an order has no case
            if dropped:
                self._log.of_number(number, [f"dropped {count_of(dropped, 'queued move')}: undo by {by}"])
        tried = [(entry, *self.act_by_hand(entry, by)) for entry in done if entry.kind in DEFAULT_KINDS]
        all_over = all(over for *_, over in tried)
        if all_over:
            self._journal.judgements.undone_by_hand(number)
        with self._lock:
            for case, verdict in cases:
                if all_over:
                    self._end(case)
                elif case.defaults or case.state not in {State.UNDONE, State.CLOSED}:
                    case.verdict = verdict
        return (dropped, [(entry, result) for entry, result, _ in tried],
                [entry.id for entry in done if entry.kind == ActKind.MIGRATE and entry.undoes is None])

    def _undone_by(self, entry: Entry, result: UndoResult, by: str) -> None:
        number = self._journal.finding_of(entry.id)
        detail = f"by {by}" if result.outcome == Outcome.UNDONE else result.detail
        self._log.undone(number, entry, result.outcome, detail)
        if entry.kind == ActKind.MIGRATE:
            self._moved_back(number, entry.outcome)
        elif all(act.kind == ActKind.MIGRATE for act in self._journal.acts_in_force(number)):
            self._journal.judgements.undone_by_hand(number)
        with self._lock:
            for case in self._store:
                left = [outcome for outcome in case.defaults if outcome.entry != entry.id]
                if len(left) == len(case.defaults):
                    continue
                case.defaults = left
                # without any default layout, later measurements say nothing about its acts
                dropped = len(self._gate.drop(case.finding.key, entry.place)) if left else self._end(case)
                if dropped:
                    log.logger.info("dropped %s: %s undid their default layout", count_of(dropped, "queued move"), by)

    def _end(self, case: Remediation) -> int:
        case.verdict, case.undo_reason = Verdict.UNDONE_BY_HAND, ""
        case.settle(State.UNDONE)
        return self._drop(case)

    def _drop(self, case: Remediation) -> int:
        self._gate.default_layouts.drop(case.finding.key)
        return len(self._gate.drop(case.finding.key))
