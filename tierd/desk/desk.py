"""What the daemon answers to tierctl, and who has to wait for it.

Looking never waits: it reads the board and the journal. Pausing does not either: it must work while a move takes long.
What needs the daemon itself waits for the end of its cycle, but not for ever.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.inbox import Inbox
from tierd.act.journal import Journal
from tierd.act.journal_reader import JournalReader
from tierd.act.orders import SUBMISSION, Intent, Order, intent
from tierd.act.undo import Undo
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.cases import Case
from tierd.cycle.loop import Daemon
from tierd.desk import views
from tierd.desk.board import Board
from tierd.desk.explain import entry_json, explained
from tierd.replay import action_json, finding_json
from tierd.sense.ages import SourceState
from tierd.text import printable, quoted

CHANGING = frozenset({"pause", "drain", "resume", "undo", "promote", "demote", "submit"})
"""Requests that change what tierd does, or the file system."""
PATIENCE_SECONDS = 20.0
"""So long a request waits for the cycle, and so long a directory is looked through."""
TAKEN_A_CYCLE = 500
"""Submitted paths made into actions in one cycle: each is a few requests to an MDT."""

Request = Mapping[str, Any]


class Desk:
    """Answers requests about a daemon, from any thread."""

    def __init__(self, daemon: Daemon, gate: Gate, undo: Undo, journal: Journal, reader: JournalReader,
                 settings: Settings, lock: RLock, board: Board, filesystem: Filesystem, clock: Clock, inbox: Inbox,
                 sources: Callable[[], Sequence[SourceState]] = tuple) -> None:
        self._sources = sources
        self._daemon = daemon
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._reader = reader
        self._settings = settings
        self._lock = lock
        self._board = board
        self._filesystem = filesystem
        self._clock = clock
        self._inbox = inbox
        self._requests: dict[str, Callable[[Request], dict[str, Any]]] = {
            "status": self._status, "findings": lambda _: views.findings(board.view), "top": self._top,
            "advise": lambda _: views.findings(board.view, advice=True), "history": self._history,
            "explain": lambda request: explained(str(request.get("id", "")), reader, board.view), "plan": self._plan,
            "report": self._report, "pause": self._pause, "drain": self._drain, "resume": self._resume,
            "undo": self._undo, "promote": self._order, "demote": self._order, "submit": self._submit,
        }

    def __call__(self, request: Request) -> dict[str, Any]:
        """Answer one. Raises ValueError for what is not known, or cannot be."""
        name = request.get("request")
        answer = self._requests.get(str(name))
        if answer is None:
            raise ValueError(f"unknown request {name!r}; known: {', '.join(sorted(self._requests))}")
        try:
            return answer(request)
        except (TypeError, KeyError) as error:
            raise ValueError(f"{name}: the request is not as it should be: {error!r}") from error
        except OSError as error:
            about = f"{quoted(os.fsdecode(error.filename))}: " if error.filename else ""
            raise ValueError(f"{name}: {about}{error.strerror or error}") from error
        except sqlite3.Error as error:
            raise ValueError(f"{name}: the journal: {error}; journalctl -u tierd says what tierd does about it"
                             ) from error

    def take_in(self) -> None:
        """At the beginning of a cycle: what was ordered goes into the queue; nothing while tierd is held back."""
        if self._gate.held or self._gate.draining:
            return
        handed_over: dict[tuple[str, str, str], Intent] = {}
        waiting = self._inbox.take(TAKEN_A_CYCLE)
        for order, found in waiting:
            try:
                made = found or self._made(order)
            except OSError as error:
                made = Intent()
                made.left_out[error.strerror or str(error)] += 1
            if order.kind == SUBMISSION:
                handed_over.setdefault((order.by, order.direction, order.reason), Intent()).add(made)
            else:
                self._daemon.carry_out(order.kind, order.by, order.what, made)
        for (by, direction, reason), made in handed_over.items():
            because = f" ({quoted(reason)})" if reason else ""
            self._daemon.carry_out(SUBMISSION, by, f"{by} hands over files to {direction}{because}", made)
        if waiting:
            self._inbox.done()

    def _made(self, order: Order) -> Intent:
        """What an order comes to at present: one file, or a directory as far as there is time."""
        now = self._clock.now
        until = float("inf") if order.kind == SUBMISSION else now() + PATIENCE_SECONDS
        return intent(order, self._filesystem, self._settings, now, until)

    @contextmanager
    def _between_cycles(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            raise ValueError("tierd is in the middle of a cycle that takes long (a large file moves); ask again later")
        try:
            yield
        finally:
            self._lock.release()

    def _status(self, _: Request) -> dict[str, Any]:
        return views.status(self._board, self._gate, self._settings, len(self._inbox), self._clock.now()) | {
            "sources": [source_json(state) for state in self._sources()]}

    def _top(self, request: Request) -> dict[str, Any]:
        return self._status(request) | views.top(self._board.view, int(request.get("most", 20)))

    def _history(self, request: Request) -> dict[str, Any]:
        entries = self._reader.last(max(0, int(request.get("last", 50))), str(request.get("outcome") or ""))
        return {"entries": [entry_json(entry) for entry in entries]}

    def _report(self, request: Request) -> dict[str, Any]:
        until = float(request.get("until") or self._clock.now())
        since = float(request.get("since") or until - 86400)
        return {
            "since": since, "until": until, "mount": self._settings.filesystem.mount,
            "findings": self._reader.findings_between(since, until),
            "acts": [entry_json(entry) for entry in self._reader.acts_between(since, until)],
            "judgements": self._reader.judgements(since, until), "samples": self._reader.samples(since, until),
            "status": self._status(request),
        }

    def _pause(self, request: Request) -> dict[str, Any]:
        self._gate.pause(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _drain(self, request: Request) -> dict[str, Any]:
        self._gate.drain(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _resume(self, _: Request) -> dict[str, Any]:
        self._gate.resume()
        return self._stance()

    def _stance(self) -> dict[str, Any]:
        """As it is now; it is in the journal at the end of the cycle, or at once when none is under way."""
        if self._lock.acquire(timeout=0.5):
            try:
                self._gate.keep_state()
            finally:
                self._lock.release()
        view = self._board.view
        return {"paused": self._gate.paused, "held": self._gate.held, "draining": self._gate.draining,
                "waiting_moves": view.waiting, "waiting_bytes": view.waiting_bytes}

    def _undo(self, request: Request) -> dict[str, Any]:
        number = int(request.get("id", 0))
        with self._between_cycles():
            entry = self._journal.entry(number)
            if entry is None:
                raise ValueError(f"the journal has no act {number}; tierctl history lists them")
            result, detail = self._undo_act(entry, f"by {request.get('by', 'tierctl')}")
        return {"result": result, "detail": detail, "entry": entry_json(entry)}

    def _plan(self, _: Request) -> dict[str, Any]:
        with self._between_cycles():
            plans = [{"finding": finding_json(finding) | {"id": self._daemon.number(finding)},
                      "actions": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.actions],
                      "recommended": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.recommended],
                      "refusals": [str(refusal) for refusal in plan.refusals], "case": acted_on(case)}
                     for finding, plan, case in self._daemon.preview()]
        return {"plans": plans, "status": self._status({})}

    def _order(self, request: Request) -> dict[str, Any]:
        path = self._from_root(str(request["path"]))
        order = Order(str(request["request"]), path, str(request.get("by", "tierctl")),
                      most_files=max(1, int(request.get("most_files", 1000))),
                      most_bytes=max(1, int(request.get("most_bytes", 1 << 40))), fid=self._filesystem.status(path).fid)
        made = self._made(order)
        if made.actions and not request.get("preview"):
            self._inbox.put([(order, made)])
        return {
            "path": order.path, "direction": order.direction, "files": len(made.actions), "size_bytes": made.size_bytes,
            "left_out": dict(made.left_out.most_common(20)), "dry_run": self._settings.act.dry_run,
            "preview": bool(request.get("preview")), "held": self._gate.held or self._gate.draining,
            "actions": [action_json(action) for action in made.actions[:10]],
        }

    def _submit(self, request: Request) -> dict[str, Any]:
        direction = str(request.get("direction", "promote"))
        if direction not in {"promote", "demote"}:
            raise ValueError(f"direction is promote or demote, not {direction!r}")
        paths = request.get("paths")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError("submit takes a list of paths")
        by, reason = f"{request.get('by')} (submit)", printable(str(request.get("reason") or ""))
        self._inbox.put([(Order(direction, self._from_root(path), by, SUBMISSION, reason, most_files=1), None)
                         for path in paths])
        return {"accepted": len(paths), "waiting_orders": len(self._inbox)}

    def _from_root(self, path: str) -> str:
        """A path below the mount point, or one from the file system's root as in history. Raises ValueError."""
        mount = self._settings.filesystem.mount.rstrip("/")
        inner = path[len(mount):] if mount and (path + "/").startswith(mount + "/") else path
        if not inner.startswith("/") and inner:
            raise ValueError(f"{path!r}: give the whole path, below {mount} or from the root of the file system")
        inner.encode("utf-8", "surrogateescape")  # half a character is no name: a ValueError
        if {".", ".."} & set(inner.split("/")) or "\0" in inner:
            raise ValueError(f"{path!r}: a path without . and .. in it")
        return "/" + "/".join(part for part in inner.split("/") if part)


def acted_on(case: Case | None) -> dict[str, Any] | None:
    """What became of a finding before."""
    return None if case is None else {"since": case.begun_at, "outcome": {"name": case.verdict, "judged": case.judged}}


def source_json(state: SourceState) -> dict[str, Any]:
    """A source, for programs: JSON has no infinity."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return {"name": state.name, "age_seconds": age, "limit_seconds": state.limit_seconds, "stale": state.stale,
            "state": state.words}
