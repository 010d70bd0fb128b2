"""From plans to acts: default layouts at once, moves in their turn, files that settle later, and what people order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lustre.filesystem import Filesystem
from lustre.layout import Layout
from tierd import narrate
from tierd.act import left_over
from tierd.act.gate import Gate
from tierd.act.journal import Journal
from tierd.act.orders import Intent
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import Case
from tierd.cycle.planning import Planning
from tierd.cycle.telling import Key, Telling
from tierd.model import Action, Finding
from tierd.policies import JUDGED
from tierd.sense.echo import Echo

GOES_ON_SECONDS = 10.0
"""No more often is it asked what is to be done where a job has gone on to."""


class Casework:
    """The open cases, and what is done in them through the gate."""

    def __init__(self, cases: dict[Key, Case], planning: Planning, gate: Gate, journal: Journal, telling: Telling,
                 echo: Echo, filesystem: Filesystem, clock: Clock, settings: Settings) -> None:
        self._cases = cases
        self._planning = planning
        self._gate = gate
        self._journal = journal
        self._telling = telling
        self._echo = echo
        self._filesystem = filesystem
        self._clock = clock
        self._settings = settings
        self._planned: dict[Key, float] = {}
        """Findings without a victim: as of which look they were planned for last; the others, when they were again."""

    def act(self, findings: Sequence[Finding]) -> None:
        """Plan for what is new, and do it; then what has become possible since in older cases."""
        for finding in findings:
            if (finding.advice_only or finding.kind not in self._settings.act.on
                    or self._settings.modes == {"observe"} or self._in_hand(finding)):
                continue
            plan = self._planning.for_finding(finding)
            self._telling.refusals(finding, plan.refusals)
            self._telling.recommended(finding, plan.recommended)
            if plan.actions:
                self._begin(finding, plan.actions)
        for case in self._cases.values():
            if not case.judged:
                self._follow_up(case)

    def _begin(self, finding: Finding, actions: Sequence[Action]) -> None:
        now = self._clock.now()
        number = self._telling.number(finding)
        self._journal.located(number, finding)
        case = self._cases.get(finding.key)
        known = case.places if case is not None and not case.closed and finding.kind in JUDGED else set()
        actions = [a for a in actions if a.directory not in known]
        if not actions:
            return
        if case is None or (case.judged and finding.kind in JUDGED):
            case = Case(finding, number, now, now, actions[0].layout, judged=finding.kind not in JUDGED,
                        earlier=[] if case is None else [*case.earlier, *case.defaults])
        elif now < case.begun_at + self._settings.verify.moving_seconds:
            case.acted_at = now  # it is judged by what comes after; one that always goes on is judged some time
        case.places = known | {*finding.directories}
        if finding.kind not in JUDGED:
            case.number = number  # it came back under another: what is done now is done for that
        self._cases[finding.key] = case
        self._submit(case, [a for a in actions if (a.path or a.directory) not in case.tried])
        # advice alone, or a dry run, leaves nothing to be judged
        case.judged = case.judged or self._gate.dry_run or not (case.defaults or case.tried)

    def _in_hand(self, finding: Finding) -> bool:
        """Whether there is nothing more to plan: a victim's case is planned once for each place, the others until they
        end.
        """
        if finding.kind in JUDGED:
            case = self._cases.get(finding.key)
            return case is not None and not case.closed and not self._goes_on(case, finding)
        if self._planned.get(finding.key) == finding.time or self._gate.waiting_for(finding.key):
            return True
        self._planned[finding.key] = finding.time  # seen anew each half minute: no need to plan more often
        return False

    def _goes_on(self, case: Case, finding: Finding) -> bool:
        """Whether the job works in other places by now, as one does that makes a directory for each of its steps."""
        now = self._clock.now()
        if (case.given_up or case.places.issuperset(finding.directories)
                or now < self._planned.get(finding.key, case.begun_at) + GOES_ON_SECONDS):
            return False
        self._planned[finding.key] = now
        return True

    def _follow_up(self, case: Case) -> None:
        """Files that were too young to be moved when the plan was made have settled since."""
        left = [replace(activity, candidates=tuple(c for c in activity.candidates
                                                   if c.created_at < case.begun_at and c.path not in case.tried))
                for activity in self._planning.activities(case.finding)]
        if any(activity.candidates for activity in left):
            plan = self._planning.for_activities(replace(case.finding, time=self._clock.now()), left)
            moves = [a for a in plan.actions if a.kind == "migrate"]
            self._submit(case, [replace(move, layout=case.layout_in(move.directory)) for move in moves])

    def _submit(self, case: Case, actions: Sequence[Action]) -> None:
        defaults = [a for a in actions if a.kind == "set-default-layout"]
        case.tried.update(a.directory for a in defaults)
        for outcome in self._gate.submit(defaults, case.number):
            self._telling.of_number(case.number, list(narrate.default_layout(outcome)))
            if outcome.result in {"done", "dry-run"}:
                case.defaults.append(outcome)
        moves = [a for a in actions if a.kind == "migrate" and a.path not in case.tried]
        if moves:
            case.tried.update(a.path for a in moves)
            self._gate.submit(moves, case.number)
            self._telling.of_number(case.number, [narrate.queued(moves)])

    def carry_out(self, kind: str, by: str, what: str, found: Intent) -> None:
        """Put what somebody asked for into the queue. Doing it is for the gate."""
        number = self._journal.found(Finding(kind, self._clock.now(), by, "", (), what, {}))
        told = [f"{what}: {len(found.actions)} files, {found.size_bytes / 1e6:.0f} MB, wait for their turn"]
        told += [f"      left out: {count} ({why})" for why, count in found.left_out.most_common(5)]
        self._telling.of_number(number, told)
        self._gate.submit(found.actions, number)

    def take_up(self) -> None:
        """Moves that waited when tierd ended: looked at, and queued again or told why not."""
        moves = self._gate.first_left_over(left_over.A_CYCLE)
        if not moves:
            return
        looked = left_over.look(moves, self._filesystem, self._settings, self._layout_of, self._clock.now())
        self._gate.take_up(looked.again, looked.left)
        for number, sentences in looked.told.items():
            self._telling.of_number(number, sentences)
        for action, _ in looked.again:
            if action.finding in self._cases:
                self._cases[action.finding].tried.add(action.path)

    def _layout_of(self, key: Key, directory: str) -> Layout | None:
        """What files of a directory get in a case that is not judged yet."""
        case = self._cases.get(key)
        return None if case is None or case.judged else case.layout_in(directory)

    def move(self, until: float, *, asked_for_only: bool) -> None:
        """Let moves go whose turn has come."""
        outcomes = self._gate.pump(until, asked_for_only=asked_for_only)
        for outcome in outcomes:
            if outcome.fid is not None:
                self._echo.moved(outcome.fid)
        self._telling.all(narrate.moved(outcomes, self._gate.waiting))
        for key in {o.action.finding for o in outcomes if o.result != "gone"} & self._cases.keys():
            self._cases[key].acted_at = self._clock.now()
        if self._gate.stance.paused:
            self._telling.say(f"STOPPED moving: {self._gate.stance.paused}; look, then tierctl resume")
