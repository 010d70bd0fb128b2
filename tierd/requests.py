"""What the daemon answers to tierctl: status, findings, history, pause, resume, undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

from lustre.layout import explain
from tierd.act.gate import Gate
from tierd.act.journal import Entry, Journal
from tierd.act.undo import Undo
from tierd.config import Settings
from tierd.loop import Daemon
from tierd.replay import finding_json
from tierd.sense.ages import SourceState


class Desk:
    """Answers requests about a daemon. The daemon's cycles and the answers take turns."""

    def __init__(self, daemon: Daemon, gate: Gate, undo: Undo, journal: Journal, settings: Settings,
                 lock: RLock, sources: Callable[[], Sequence[SourceState]] = tuple) -> None:
        self._daemon = daemon
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._settings = settings
        self._lock = lock
        self._sources = sources
        self._requests: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "status": self._status, "findings": self._findings, "history": self._history,
            "pause": self._pause, "resume": self._resume, "undo": self._undo,
        }

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one. Raises ValueError for what is not known."""
        name = request.get("request")
        answer = self._requests.get(str(name))
        if answer is None:
            raise ValueError(f"unknown request {name!r}; known: {', '.join(sorted(self._requests))}")
        with self._lock:
            return answer(request)

    def _status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        windows = self._daemon.windows
        return {
            "mode": self._settings.act.mode, "dry_run": self._settings.act.dry_run, "paused": self._gate.held,
            "sources": [source_json(state) for state in self._sources()],
            "faults": dict(self._daemon.faults), "findings": [f.sentence for f in self._daemon.findings],
            "last_cycle": windows[-1].end if windows else None, "windows": len(windows),
            "waiting_moves": self._gate.waiting,
            "outcomes": {" ".join(key): count for key, count in self._gate.outcomes.items()},
            "cases": [{"aggressor": c.finding.aggressor, "victim": c.finding.victim, "since": c.begun_at,
                       "judged": c.judged, "directories": list(c.finding.directories)} for c in self._daemon.cases],
        }

    def _findings(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"findings": [finding_json(f) for f in self._daemon.findings]}

    def _history(self, request: Mapping[str, Any]) -> dict[str, Any]:
        entries = list(self._journal.entries())[-int(request.get("last", 50)):]
        return {"entries": [entry_json(entry) for entry in entries]}

    def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._gate.paused = str(request.get("reason") or "by tierctl")
        return {"paused": self._gate.paused}

    def _resume(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self._gate.paused, self._gate.tripped = "", False
        return {"paused": self._gate.held}

    def _undo(self, request: Mapping[str, Any]) -> dict[str, Any]:
        number = int(request.get("id", 0))
        entry = self._journal.entry(number)
        if entry is None:
            raise ValueError(f"the journal has no entry {number}; tierctl history lists them")
        result, detail = self._undo_act(entry, "by tierctl")
        return {"result": result, "detail": detail, "entry": entry_json(entry)}


def source_json(state: SourceState) -> dict[str, Any]:
    """A source, for programs: JSON has no infinity."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return {"name": state.name, "age_seconds": age, "limit_seconds": state.limit_seconds, "stale": state.stale,
            "state": state.words}


def entry_json(entry: Entry) -> dict[str, Any]:
    """An act, for programs."""
    return {
        "id": entry.id, "time": entry.intended_at, "kind": entry.kind, "place": entry.place,
        "outcome": entry.outcome or "under way", "detail": entry.detail,
        "before": explain(entry.layout_before) if entry.layout_before else None,
        "after": explain(entry.layout_after) if entry.layout_after else None, "reason": entry.reason,
    }
