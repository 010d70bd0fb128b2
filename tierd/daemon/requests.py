"""The requests of tierctl and of the web page, by name: those that read, and those that change something.

Reading requests use the published status and the journal, and wait for no activity; only a plan asks the file system.
Pausing never waits: it works while a file moves. Orders become acts at the beginning of a cycle.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.guard import REQUEST
from tierd.act.journal.entry import Entry
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.orders import SUBMISSION, Order, OrderInbox, OrderPlan, plan_order
from tierd.act.undo import Undo
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.daemon import status
from tierd.daemon.activities import ActivityState
from tierd.daemon.answers import act_json, action_json, finding_json
from tierd.daemon.loop import Daemon
from tierd.daemon.remediation import Remediation
from tierd.daemon.status import StatusPublisher, StatusSnapshot, top_answer
from tierd.sense.freshness import SourceState
from tierd.text import printable, quoted

ORDER_LOOKUP_SECONDS = 20.0
"""So long a directory is looked through for somebody who waits for the answer."""
MAX_EXPLAINED_ACTS = 20
ORDER_KINDS = frozenset({REQUEST, SUBMISSION})
"""What stands among the findings because somebody asked for it: no trouble, which may hold or come again."""


def explanation(name: str, journal: JournalReader, view: StatusSnapshot) -> dict[str, Any]:
    """``F3`` is a finding, ``17`` an act. Raises ValueError for one that is not in the journal."""
    number = finding_number(name, journal)
    finding = journal.finding(number)
    if finding is None:
        raise ValueError(f"the journal has no finding F{number}; tierctl findings and tierctl history list them")
    now = next((f for f in view.findings if view.numbers.get(f.key) == number), None)
    return {
        "finding": finding, "holds": now is not None, "ordered": finding["kind"] in ORDER_KINDS,
        "advice": [{"command": a.command, "where": a.where, "effect": a.effect} for a in now.advice] if now else [],
        "acts": [act_json(entry) for entry in journal.acts_of(number, MAX_EXPLAINED_ACTS)],
        **journal.sums.of_finding(number),
        "told": [{"time": time, "sentence": sentence} for time, sentence in journal.messages(number)],
        "judgements": journal.judgements(finding=number),
        "same": [] if finding["kind"] in ORDER_KINDS else journal.same_as(number),
    }


def finding_number(name: str, journal: JournalReader) -> int:
    """Number of the finding that is meant. Raises ValueError."""
    letter, digits = name[:1].upper(), name[1:] if name[:1].upper() == "F" else name
    if not (digits.isascii() and digits.isdigit() and len(digits) < 18):
        raise ValueError(f"{name!r} is neither a finding (F3) nor an act (17)")
    if letter == "F":
        return int(digits)
    found = journal.finding_of(int(digits))
    if found is None:
        raise ValueError(f"the journal has no act {digits}; tierctl history lists them")
    return found


ORDERS_PER_CYCLE = 500
"""Submitted paths made into actions in one cycle: each is a few requests to an MDT."""


class OrderIntake:
    """Takes orders in, as far as acts may be begun."""

    def __init__(self, daemon: Daemon, gate: Gate, inbox: OrderInbox, filesystem: Filesystem, settings: Settings,
                 clock: Clock) -> None:
        self._daemon = daemon
        self._gate = gate
        self._inbox = inbox
        self._filesystem = filesystem
        self._settings = settings
        self._clock = clock

    def take_in(self) -> None:
        """At the beginning of a cycle: what was ordered goes into the queue; nothing while tierd is held back."""
        if self._gate.stance.held or self._gate.stance.draining:
            return
        handed_over: dict[tuple[str, str, str], OrderPlan] = {}
        waiting = self._inbox.take(ORDERS_PER_CYCLE)
        for order, found in waiting:
            try:
                made = found or self.made(order)
            except OSError as error:
                made = OrderPlan()
                made.left_out[error.strerror or str(error)] += 1
            if order.kind == SUBMISSION:
                handed_over.setdefault((order.by, order.direction, order.reason), OrderPlan()).add(made)
            else:
                self._daemon.queue_order(order.kind, order.by, order.what, made)
        for (by, direction, reason), made in handed_over.items():
            because = f" ({quoted(reason)})" if reason else ""
            self._daemon.queue_order(SUBMISSION, by, f"{by} hands over files to {direction}{because}", made)
        if waiting:
            self._inbox.done()

    def made(self, order: Order) -> OrderPlan:
        """What an order comes to at present: one file, or a directory as far as there is time."""
        now = self._clock.now
        until = float("inf") if order.kind == SUBMISSION else now() + ORDER_LOOKUP_SECONDS
        return plan_order(order, self._filesystem, self._settings, now, until)


CHANGING_REQUESTS = frozenset({"pause", "drain", "resume", "undo", "promote", "demote", "submit"})
"""Their names: not everybody who may look may make them."""
Request = Mapping[str, Any]


class ChangingRequests:
    """Does what somebody asked for, or puts it into the inbox. ``made`` tells what an order comes to at present.

    ``publish`` is called after an undo, so that whoever looks next sees it; ``taken_back`` with each act that was taken
    back, and by whom; ``end_case`` with the number of a finding of which all is taken back: it returns how many moves
    were dropped. ``resumed`` is called when a pause has ended.
    """

    def __init__(self, gate: Gate, undo: Undo, journal: Journal, settings: Settings, publish: Callable[[], None],
                 filesystem: Filesystem, inbox: OrderInbox, made: Callable[[Order], OrderPlan],
                 taken_back: Callable[[Entry, str], None], end_case: Callable[[int, str], int],
                 resumed: Callable[[], None] = lambda: None) -> None:
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._settings = settings
        self._publish = publish
        self._filesystem = filesystem
        self._inbox = inbox
        self._made = made
        self._taken_back = taken_back
        self._end_case = end_case
        self._resumed = resumed
        self.requests: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            "pause": self._pause, "drain": self._drain, "resume": self._resume, "undo": self._undo,
            "promote": self._order, "demote": self._order, "submit": self._submit,
        }

    def _pause(self, request: Request) -> dict[str, Any]:
        self._gate.stance.pause(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _drain(self, request: Request) -> dict[str, Any]:
        self._gate.stance.drain(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _resume(self, _: Request) -> dict[str, Any]:
        self._gate.stance.resume()
        self._resumed()
        return self._stance()

    def _stance(self) -> dict[str, Any]:
        """As it is now, and as the journal keeps it over a restart."""
        self._gate.stance.keep()
        return {**status.operating_state_answer(self._gate), "waiting_moves": self._gate.waiting,
                "waiting_bytes": self._gate.waiting_bytes}

    def _undo(self, request: Request) -> dict[str, Any]:
        by = str(request.get("by", "tierctl"))
        number = request.get("id")
        if isinstance(number, str) and number[:1] in {"F", "f"} and number[1:].isascii() and number[1:].isdigit():
            return self._undo_case(int(number[1:]), by)
        if type(number) is not int:  # neither true nor 1.5 names an act
            raise ValueError(f"undo takes the number of an act (17) or of a finding (F3), not {number!r}")
        entry = self._journal.entry(number)
        if entry is None and self._journal.removed_act(number):
            raise ValueError(self._removed(f"act {number}"))
        if entry is None:
            raise ValueError(f"the journal has no act {number}; tierctl history lists them")
        result = self._undo_act(entry, f"by {by}")
        if result.outcome == Outcome.UNDONE:
            self._taken_back(entry, by)
        self._publish()
        return {"result": result.outcome, "detail": result.detail, "entry": act_json(entry)}

    def _removed(self, what: str) -> str:
        days = self._settings.journal.keep_days
        return (f"the record of {what} was removed from the journal after {days:g} days ([journal] keep_days), so it "
                "cannot be undone any more; lfs migrate or lfs setstripe -d changes a layout by hand")

    def _undo_case(self, number: int, by: str) -> dict[str, Any]:
        """Take back what was done for a finding: its moves are dropped at once, then its default layouts put back.

        Files that were moved stay where they are; their acts can be undone one by one.
        """
        done = self._journal.acts_in_force(number)
        if not done and not self._journal.has_finding(number):
            if self._journal.removed_finding(number):
                raise ValueError(self._removed(f"finding F{number}"))
            raise ValueError(f"the journal has no finding F{number}; tierctl findings and tierctl history list them")
        dropped = self._end_case(number, by)
        acts = []
        for entry in (entry for entry in done if entry.kind == ActKind.SET_DEFAULT_LAYOUT):
            result = self._undo_act(entry, f"by {by}")
            if result.outcome == Outcome.UNDONE:
                self._taken_back(entry, by)
            acts.append({"result": result.outcome, "detail": result.detail, "entry": act_json(entry)})
        self._publish()
        failed = [act for act in acts if act["result"] != Outcome.UNDONE]
        return {"result": Outcome.UNDONE if not failed else "not undone", "finding": number, "dropped_moves": dropped,
                "acts": acts, "moved_files": [entry.id for entry in done if entry.kind == ActKind.MIGRATE]}

    def _order(self, request: Request) -> dict[str, Any]:
        path = self._from_root(str(request["path"]))
        order = Order(str(request["request"]), path, str(request.get("by", "tierctl")),
                      most_files=max(1, int(request.get("most_files", 1000))),
                      most_bytes=max(1, int(request.get("most_bytes", 1 << 40))), fid=self._fid(path))
        made = self._made(order)
        if made.actions and not request.get("preview"):
            self._inbox.put([(order, made)])
        return {
            "path": order.path, "direction": order.direction, "files": len(made.actions), "size_bytes": made.size_bytes,
            "left_out": dict(made.left_out.most_common(20)), "dry_run": self._settings.act.dry_run,
            "preview": bool(request.get("preview")), "held": self._gate.stance.held or self._gate.stance.draining,
            "actions": [action_json(action) for action in made.actions[:10]],
        }

    def _fid(self, path: str) -> Fid:
        """Of what is ordered. Raises OSError or ValueError."""
        try:
            return self._filesystem.status(path).fid
        except FileNotFoundError:
            raise ValueError(f"{quoted(path)}: there is no such file or directory on the file system at "
                             f"{self._settings.filesystem.mount}") from None

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
        if not path:
            raise ValueError("an empty path")
        mount = self._settings.filesystem.mount.rstrip("/")
        inner = path[len(mount):] if mount and (path + "/").startswith(mount + "/") else path
        if not inner.startswith("/") and inner:
            raise ValueError(f"{path!r}: give the whole path, below {mount} or from the root of the file system")
        inner.encode("utf-8", "surrogateescape")  # half a character is no name: a ValueError
        if {".", ".."} & set(inner.split("/")) or "\0" in inner:
            raise ValueError(f"{path!r}: a path without . and .. in it")
        return "/" + "/".join(part for part in inner.split("/") if part)


MAX_REPORTED = 500
"""Findings, and acts, of a report one by one; of the others their number is told."""
MAX_CURVE_POINTS = 800
"""Of each curve of a report: more cannot be seen."""
MAX_HISTORY = 10_000
"""Acts that history gives at once."""


class ReadingRequests:
    """Answers from what is known, and changes nothing."""

    def __init__(self, daemon: Daemon, gate: Gate, reader: JournalReader, settings: Settings, board: StatusPublisher,
                 clock: Clock, inbox: OrderInbox, sources: Callable[[], Sequence[SourceState]] = tuple,
                 activities: Callable[[], Sequence[ActivityState]] = tuple) -> None:
        self._daemon = daemon
        self._gate = gate
        self._reader = reader
        self._settings = settings
        self._publisher = board
        self._clock = clock
        self._inbox = inbox
        self._sources = sources
        self._activities = activities
        self.requests: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            "status": self._status, "findings": lambda _: status.findings_answer(board.view), "top": self._top,
            "advise": lambda _: status.findings_answer(board.view, advice=True), "history": self._history,
            "explain": lambda request: explanation(str(request.get("id", "")), reader, board.view), "plan": self._plan,
            "report": self._report,
        }

    def _status(self, _: Request) -> dict[str, Any]:
        now = self._clock.now()
        return status.status_answer(self._publisher.view, self._gate, self._settings, len(self._inbox), now) | {
            "activities": [activity_json(state, now) for state in self._activities()],
            "stalled": status.stalled_sentences(self._daemon, self._gate, self._activities(), now),
            "sources": [source_json(state) for state in self._sources()]}

    def _top(self, request: Request) -> dict[str, Any]:
        return self._status(request) | top_answer(self._publisher.view, self._settings, int(request.get("most", 20)))

    def _history(self, request: Request) -> dict[str, Any]:
        last = max(0, int(request.get("last", 50)))
        if last > MAX_HISTORY:
            raise ValueError(
                f"history gives the last {MAX_HISTORY} acts at the most; the journal has all that it keeps, "
                f"in SQLite: {self._settings.act.journal}"
            )
        word = str(request.get("outcome") or "")
        entries = self._reader.last(last, Outcome.from_journal(word) if word else None)
        return {"entries": [act_json(entry) for entry in entries],
                "all_outcomes": {} if entries else self._reader.sums.of_all(),
                "complete_since": self._reader.complete_since(), "removed_acts": self._reader.removed_acts()}

    def _report(self, request: Request) -> dict[str, Any]:
        until = float(request.get("until") or self._clock.now())
        since = float(request.get("since") or until - 86400)
        return {
            "since": since, "until": until, "mount": self._settings.filesystem.mount,
            **self._reader.sums.of_period(since, until), "complete_since": self._reader.complete_since(),
            "removed_acts": self._reader.removed_acts(),
            "findings": self._reader.findings_between(since, until, MAX_REPORTED),
            "acts": [act_json(entry) for entry in self._reader.acts_between(since, until, MAX_REPORTED)],
            "default_layouts": [act_json(entry) for entry in self._reader.acts_between(
                since, until, MAX_REPORTED, ActKind.SET_DEFAULT_LAYOUT)],
            "judgements": self._reader.judgements(since, until),
            "samples": self._reader.samples(since, until, MAX_CURVE_POINTS), "status": self._status(request),
        }

    def _plan(self, _: Request) -> dict[str, Any]:
        plans = [{"finding": finding_json(finding) | {"id": self._daemon.number(finding)},
                  "actions": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.actions],
                  "recommended": [action_json(a) | {"size_bytes": a.size_bytes} for a in plan.recommended],
                  "refusals": [str(refusal) for refusal in plan.refusals], "case": remediation_json(case)}
                 for finding, plan, case in self._daemon.preview()]
        return {"plans": plans, "status": self._status({})}


def remediation_json(case: Remediation | None) -> dict[str, Any] | None:
    """What became of a finding before."""
    return None if case is None else {"since": case.begun_at, "outcome": {"name": case.verdict, "judged": case.judged}}


def source_json(state: SourceState) -> dict[str, Any]:
    """A source, for programs: JSON has no infinity."""
    age = state.age_seconds if state.age_seconds < float("inf") else None
    return {"name": state.name, "age_seconds": age, "limit_seconds": state.limit_seconds, "stale": state.stale,
            "state": state.text}


def activity_json(state: ActivityState, now: float) -> dict[str, Any]:
    """An activity, for programs."""
    return {"name": state.name, "doing": state.doing, "last_seconds": state.last_seconds, "waits_for": state.waits_for,
            "under_way_seconds": max(0.0, now - state.begun_at) if state.begun_at else 0.0}


class RequestHandler:
    """Answers requests about a daemon, from any thread."""

    def __init__(self, looking: ReadingRequests, changing: ChangingRequests) -> None:
        self._requests = {**looking.requests, **changing.requests}

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one. Raises ValueError for what is not known, or cannot be."""
        name = request.get("request")
        answer = self._requests.get(str(name))
        if answer is None:
            raise ValueError(f"unknown request {name!r}; known: {', '.join(sorted(self._requests))}")
        try:
            return answer(request)
        except (TypeError, KeyError, OverflowError) as error:  # the last: a number no journal has
            raise ValueError(f"{name}: the request is not as it should be: {error!r}") from error
        except OSError as error:
            about = f"{quoted(os.fsdecode(error.filename))}: " if error.filename else ""
            raise ValueError(f"{name}: {about}{error.strerror or error}") from error
        except sqlite3.Error as error:
            raise ValueError(f"{name}: the journal: {error}; journalctl -u tierd says what tierd does about it"
                             ) from error
