"""Requests that look. They read the board and the journal, and wait for no activity; a plan asks the file system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tierd.act.gate import Gate
from tierd.act.inbox import Inbox
from tierd.act.journal import JournalReader
from tierd.as_json import action_json, finding_json
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import Case
from tierd.cycle.loop import Daemon
from tierd.desk import views
from tierd.desk.board import Board
from tierd.desk.explain import entry_json, explained
from tierd.desk.top import top
from tierd.sense.ages import SourceState
from tierd.service.activities import ActivityState

Request = Mapping[str, Any]
MOST_TOLD = 500
"""Findings, and acts, of a report one by one; of the others their number is told."""
MOST_POINTS = 800
"""Of each curve of a report: more cannot be seen."""
MOST_LAST = 10_000
"""Acts that history gives at once."""


class Looking:
    """Answers from what is known, and changes nothing."""

    def __init__(self, daemon: Daemon, gate: Gate, reader: JournalReader, settings: Settings, board: Board,
                 clock: Clock, inbox: Inbox, sources: Callable[[], Sequence[SourceState]] = tuple,
                 activities: Callable[[], Sequence[ActivityState]] = tuple) -> None:
        self._daemon = daemon
        self._gate = gate
        self._reader = reader
        self._settings = settings
        self._board = board
        self._clock = clock
        self._inbox = inbox
        self._sources = sources
        self._activities = activities
        self.requests: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            "status": self._status, "findings": lambda _: views.findings(board.view), "top": self._top,
            "advise": lambda _: views.findings(board.view, advice=True), "history": self._history,
            "explain": lambda request: explained(str(request.get("id", "")), reader, board.view), "plan": self._plan,
            "report": self._report,
        }

    def _status(self, _: Request) -> dict[str, Any]:
        now = self._clock.now()
        return views.status(self._board.view, self._gate, self._settings, len(self._inbox), now) | {
            "activities": [activity_json(state, now) for state in self._activities()],
            "stalled": views.stalled(self._daemon, self._gate, self._activities(), now),
            "sources": [source_json(state) for state in self._sources()]}

    def _top(self, request: Request) -> dict[str, Any]:
        return self._status(request) | top(self._board.view, int(request.get("most", 20)))

    def _history(self, request: Request) -> dict[str, Any]:
        last = max(0, int(request.get("last", 50)))
        if last > MOST_LAST:
            raise ValueError(f"history gives the last {MOST_LAST} acts at the most; the journal has all that it keeps, "
                             f"in SQLite: {self._settings.act.journal}")
        entries = self._reader.last(last, str(request.get("outcome") or ""))
        return {"entries": [entry_json(entry) for entry in entries],
                "all_outcomes": {} if entries else self._reader.sums.of_all(),
                "complete_since": self._reader.complete_since(), "removed_acts": self._reader.removed_acts()}

    def _report(self, request: Request) -> dict[str, Any]:
        until = float(request.get("until") or self._clock.now())
        since = float(request.get("since") or until - 86400)
        return {
            "since": since, "until": until, "mount": self._settings.filesystem.mount,
            **self._reader.sums.of_period(since, until), "complete_since": self._reader.complete_since(),
            "removed_acts": self._reader.removed_acts(),
            "findings": self._reader.findings_between(since, until, MOST_TOLD),
            "acts": [entry_json(entry) for entry in self._reader.acts_between(since, until, MOST_TOLD)],
            "default_layouts": [entry_json(entry) for entry in self._reader.acts_between(
                since, until, MOST_TOLD, "set-default-layout")],
            "judgements": self._reader.judgements(since, until),
            "samples": self._reader.samples(since, until, MOST_POINTS), "status": self._status(request),
        }

    def _plan(self, _: Request) -> dict[str, Any]:
        plans = [{"finding": finding_json(finding) | {"id": self._daemon.number(finding)},
                  "actions": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.actions],
                  "recommended": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.recommended],
                  "refusals": [str(refusal) for refusal in plan.refusals], "case": acted_on(case)}
                 for finding, plan, case in self._daemon.preview()]
        return {"plans": plans, "status": self._status({})}


def acted_on(case: Case | None) -> dict[str, Any] | None:
    """What became of a finding before."""
    return None if case is None else {"since": case.begun_at, "outcome": {"name": case.verdict, "judged": case.judged}}


def source_json(state: SourceState) -> dict[str, Any]:
    """A source, for programs: JSON has no infinity."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return {"name": state.name, "age_seconds": age, "limit_seconds": state.limit_seconds, "stale": state.stale,
            "state": state.words}


def activity_json(state: ActivityState, now: float) -> dict[str, Any]:
    """An activity, for programs."""
    return {"name": state.name, "doing": state.doing, "last_seconds": state.last_seconds, "waits_for": state.waits_for,
            "under_way_seconds": max(0.0, now - state.begun_at) if state.begun_at else 0.0}
