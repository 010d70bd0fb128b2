"""The requests of tierctl and of the web page, by name: those that read, and those that change something.

Reading requests use the published status and the journal. They wait for no activity and do not ask the file system.
Pausing never waits: it works while a file moves. Orders become acts at the beginning of a cycle.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from lustre.creation import DEFAULT_COUNT, set_command
from lustre.fid import Fid
from lustre.filesystem import Space
from tierd.act.applications import ApplicationStore, NextRun, Preparer, prolog_of
from tierd.act.drain import Drain, Phase
from tierd.act.journal.reader import JournalReader, Wanted
from tierd.act.orders import Order, OrderInbox, OrderPlan, plan_order
from tierd.act.staging import OPEN, Stager, Staging, StagingStore, missing_files, succeeded, summary
from tierd.acts import ORDER_KINDS, ActKind, OrderKind, Outcome, name_of
from tierd.clock import Clock
from tierd.config.scopes import below
from tierd.daemon import answers, status
from tierd.daemon.cases import AFTER_SECONDS, BEFORE_SECONDS, cases_of
from tierd.daemon.loop import Daemon
from tierd.daemon.node import DaemonParts
from tierd.daemon.status import StatusView, act_answer, action_answer, finding_answer
from tierd.decide.plans import Plan
from tierd.model import Finding
from tierd.refusal import of_error, sentence_of
from tierd.sense.changelogs.tally_source import TallySource
from tierd.structs import MessageRow, Struct
from tierd.text import printable, quoted

ORDER_LOOKUP_SECONDS = 20.0
"""Limit on the time to scan a directory while the requester waits."""
MAX_EXPLAINED_ACTS = 20


def explanation(name: str, journal: JournalReader, view: StatusView) -> answers.ExplainAnswer:
    """Explain a finding (``F3``), an order (``D3``, ``O3``), or that of an act (``17``).

    Raises ValueError if the journal lacks it.
    """
    number = finding_number(name, journal)
    row = journal.finding(number)
    check_name(name, number, None if row is None else row.kind)
    assert row is not None
    now = next((f for f in view.snapshot.findings if view.snapshot.numbers.get(f.key) == number), None)
    case = view.known_cases().get(number) or with_curve(cases_of([row], {}, journal)[0], journal)
    ordered, sums = row.kind in ORDER_KINDS, journal.sums.of_finding(number)
    return answers.ExplainAnswer(
        case=case, evidence=now.evidence.numbers() if now is not None else row.evidence, ordered=ordered,
        advice=status.advice_answers(now) if now is not None else (),
        acts=tuple(map(act_answer, journal.acts_of(number, MAX_EXPLAINED_ACTS))),
        all_acts=sums["all_acts"], bytes_moved=sums["bytes_moved"], outcomes=sums["outcomes"],
        messages=(MessageRow(row.time, "ordered" if ordered else f"FOUND {row.kind}"), *journal.messages(number)),
        same=() if ordered else tuple(journal.same_as(number)),
        users={} if ordered else view.users((row.aggressor, row.victim)))


def with_curve(case: answers.Case, journal: JournalReader) -> answers.Case:
    """A case of the journal with its curve, from before the onset until after the verdict and its end."""
    end = max(case.since, case.judged_at or 0.0, case.ended_at or 0.0)
    begin = (case.onset or case.since) - BEFORE_SECONDS
    return case.replaced(curve=journal.curve(case.finding or 0, begin, end + 2 * AFTER_SECONDS))


def named_finding(name: object) -> int | None:
    """The number in the name of a finding or an order; None for anything else.

    >>> named_finding("F3"), named_finding("d4"), named_finding("17"), named_finding(3)
    (3, 4, None, None)
    """
    if isinstance(name, str) and name[:1] in {*"FDOfdo"} and is_number(name[1:]):
        return int(name[1:])
    return None


def check_name(name: str, number: int, kind: str | None) -> None:
    """Raise ValueError unless this is the name of what has the number; ``kind`` None: nothing has it."""
    if kind is None:
        raise ValueError(f"the journal has no {what_is(name)}; tierctl findings and tierctl history list them")
    if not is_number(name) and name.upper() != name_of(number, kind):
        raise ValueError(f"the journal has no {what_is(name)}, but {what_is(name_of(number, kind))}")


def what_is(name: str) -> str:
    """What a name of a finding or an order means.

    >>> what_is("f3"), what_is("D4")
    ('finding F3', 'order D4')
    """
    return f"{'finding' if name[:1] in {'F', 'f'} else 'order'} {name.upper()}"


def is_number(digits: str) -> bool:
    """Whether these are the digits of a number that the journal may have."""
    return digits.isascii() and digits.isdigit() and len(digits) < 18


def finding_number(name: str, journal: JournalReader) -> int:
    """Number of the finding that a name refers to. Raises ValueError."""
    if (number := named_finding(name)) is not None:
        return number
    if not is_number(name):
        raise ValueError(f"{name!r} is neither a finding (F3), nor an order (D3, O3), nor an act (17)")
    found = journal.finding_of(int(name))
    if found is None:
        raise ValueError(f"the journal has no act {name}; tierctl history lists them")
    return found


ORDERS_PER_CYCLE = 500
"""Submitted paths that are planned in one cycle. Each costs a few requests to an MDT."""


class OrderIntake:
    """Plans and queues orders while acts may start."""

    def __init__(self, daemon: Daemon, inbox: OrderInbox) -> None:
        self._parts, self._queue_order, self._inbox = daemon.parts, daemon.remediations.queue_order, inbox

    def take_in(self) -> None:
        """Queue the moves of orders at the beginning of a cycle. While acts are held back, orders wait."""
        state = self._parts.gate.operating_state
        if state.held or state.draining:
            return
        handed_over: dict[tuple[str, str, str], OrderPlan] = {}
        waiting = self._inbox.take(ORDERS_PER_CYCLE)
        for order, found in waiting:
            try:
                made = found or self.made(order)
            except OSError as error:
                made = OrderPlan()
                made.left_out[of_error(error)] += 1
            if order.kind == OrderKind.SUBMISSION:
                handed_over.setdefault((order.by, order.direction, order.reason), OrderPlan()).add(made)
            else:
                self._queue_order(order.kind, order.by, order.what, made)
        for (by, direction, reason), made in handed_over.items():
            because = f" ({quoted(reason)})" if reason else ""
            self._queue_order(OrderKind.SUBMISSION, by, f"{by} hands over files to {direction}{because}", made)
        if waiting:
            self._inbox.done()

    def made(self, order: Order) -> OrderPlan:
        """The present plan for an order: one file, or as many files of a directory as the time allows."""
        now = self._parts.node.clock.now
        until = float("inf") if order.kind == OrderKind.SUBMISSION else now() + ORDER_LOOKUP_SECONDS
        return plan_order(order, self._parts.node.filesystem, self._parts.settings, now, until)


CHANGING_REQUESTS = frozenset({"pause", "drain", "resume", "undo", "apply", "decline", "promote", "demote", "submit",
                               "stage", "stage-cancel", "drain-target", "prepare"})
"""Requests that change something. They may need more rights than reading requests."""
SCHEDULER_REQUESTS = frozenset({"stage", "stage-cancel", "stage-state", "prepare", "job-summary"})
"""Requests of a scheduler for its jobs. ``control.stage_users`` may send them, and nothing else."""
Request = Mapping[str, object]
"""A JSON object: the name of the request and its arguments."""
Handler = Callable[[Request], Struct]


def text_of(request: Request, key: str, default: str = "") -> str:
    """An argument as text; the default for a missing or empty one."""
    return str(request.get(key) or default)


def number_of(request: Request, key: str, default: float) -> float:
    """An argument as a number; the default for a missing one. Raises TypeError and ValueError."""
    value = request.get(key, default)
    if not isinstance(value, (int, float, str)):
        raise TypeError(f"{key} is a number, not {value!r:.40}")
    return float(value)


def count_in(request: Request, key: str, default: int) -> int:
    """An argument as a whole number. Raises TypeError, ValueError and OverflowError."""
    value = request.get(key, default)
    return int(value) if isinstance(value, (int, str)) else int(number_of(request, key, default))


MAX_PAUSE_SECONDS = 366 * 86400.0
"""A longer pause has no end: ``tierctl pause`` without ``--for``."""


class ChangingRequests:
    """Carries out changing requests, or puts orders into the inbox.

    ``publish`` is called after an undo, so that the next status shows it. ``resumed`` is called after a pause ends.
    """

    def __init__(self, view: StatusView, daemon: Daemon, inbox: OrderInbox, intake: OrderIntake, drains: DrainRequests,
                 *, publish: Callable[[], None], resumed: Callable[[], None]) -> None:
        self._daemon, self._view, self._inbox, self._intake = daemon, view, inbox, intake
        self._undoing = daemon.undoing
        self._gate, self._journal, self._settings = daemon.parts.gate, daemon.parts.journal, daemon.parts.settings
        self._filesystem = daemon.parts.node.filesystem
        self._publish, self._resumed = publish, resumed
        self.requests: Mapping[str, Handler] = {
            "pause": self._pause, "drain": self._drain, "resume": self._resume, "undo": self._undo,
            "apply": self._decide, "decline": self._decide,
            "promote": self._order, "demote": self._order, "submit": self._submit, "drain-target": drains.change,
        }

    def _pause(self, request: Request) -> answers.OperatingStateAnswer:
        seconds = number_of(request, "seconds", 0.0)
        if not 0 <= seconds <= MAX_PAUSE_SECONDS:
            raise ValueError(f"a pause with an end lasts {MAX_PAUSE_SECONDS / 86400:.0f} days at most")
        self._gate.operating_state.pause(self._reason(request), seconds=seconds)
        return self._operating_state()

    def _drain(self, request: Request) -> answers.OperatingStateAnswer:
        self._gate.operating_state.drain(self._reason(request))
        return self._operating_state()

    def _reason(self, request: Request) -> str:
        return printable(text_of(request, "reason")) or f"by {text_of(request, 'by', 'tierctl')}"

    def _resume(self, _: Request) -> answers.OperatingStateAnswer:
        self._gate.operating_state.resume()
        self._resumed()
        return self._operating_state()

    def _operating_state(self) -> answers.OperatingStateAnswer:
        """Store the operating state in the journal, and return it."""
        self._gate.operating_state.store()
        return self._view.operating_state()

    def _undo(self, request: Request) -> answers.UndoAnswer | answers.UndoFindingAnswer:
        by = text_of(request, "by", "tierctl")
        number = request.get("id")
        if (finding := named_finding(number)) is not None:
            return self._undo_finding(str(number), finding, by)
        if type(number) is not int:  # JSON true and 1.5 are no numbers of acts
            raise ValueError(f"undo takes the number of an act (17), a finding (F3) or an order (O3), not {number!r}")
        entry = self._journal.entry(number)
        if entry is None and self._journal.removed_act(number):
            raise ValueError(self._removed(f"act {number}"))
        if entry is None:
            raise ValueError(f"the journal has no act {number}; tierctl history lists them")
        result = self._undoing.act_by_hand(entry, by)
        self._publish()
        return answers.UndoAnswer(result.outcome, result.detail, act_answer(entry))

    def _decide(self, request: Request) -> answers.DecisionAnswer:
        number = named_finding(request.get("id"))
        if number is None or not str(request["id"]).upper().startswith("F"):
            raise ValueError(f"{request['request']} takes the number of a finding (F3), not {request.get('id')!r}")
        becomes = self._daemon.decide(number, text_of(request, "by", "tierctl"),
                                      approved=request["request"] == "apply")
        self._resumed()
        return answers.DecisionAnswer(number, becomes, self._settings.act.dry_run)

    def _removed(self, what: str) -> str:
        days = self._settings.journal.keep_days
        return (f"the record of {what} was removed from the journal after {days:g} days ([journal] keep_days), so it "
                "cannot be undone any more; lfs migrate or lfs setstripe -d changes a layout by hand")

    def _undo_finding(self, name: str, number: int, by: str) -> answers.UndoFindingAnswer:
        if self._journal.removed_finding(number):
            raise ValueError(self._removed(what_is(name)))
        kind, *_ = self._journal.key_of_finding(number) or (None,)
        check_name(name, number, kind)
        if kind == OrderKind.DRAIN:
            raise ValueError(f"{name.upper()} is a drain: tierctl drain-target TARGET --end ends it, tierctl undo ID "
                             "moves one file back")
        dropped, results, moved = self._undoing.finding_by_hand(number, by)
        self._publish()
        undone = all(result.outcome == Outcome.UNDONE for _, result in results)
        return answers.UndoFindingAnswer(
            Outcome.UNDONE if undone else "not undone", number, dropped,
            tuple(answers.UndoAnswer(result.outcome, result.detail, act_answer(entry)) for entry, result in results),
            tuple(moved), kind=str(kind))

    def _order(self, request: Request) -> answers.OrderAnswer:
        path = self._from_root(str(request["path"]))
        order = Order(str(request["request"]), path, text_of(request, "by", "tierctl"),
                      most_files=max(1, count_in(request, "most_files", 1000)),
                      most_bytes=max(1, count_in(request, "most_bytes", 1 << 40)), fid=self._fid(path))
        made = self._intake.made(order)
        if made.actions and not request.get("preview"):
            self._inbox.put([(order, made)])
        return answers.OrderAnswer.of(
            order, files=len(made.actions), size_bytes=made.size_bytes,
            left_out={why.sentence: count for why, count in made.left_out.most_common(20)},
            dry_run=self._settings.act.dry_run, preview=bool(request.get("preview")),
            held=sentence_of(self._gate.operating_state.last_held) or self._gate.operating_state.draining,
            actions=tuple(map(action_answer, made.actions[:10])))

    def _fid(self, path: str) -> Fid:
        try:
            return self._filesystem.status(path).fid
        except FileNotFoundError:
            raise ValueError(f"{quoted(path)}: there is no such file or directory on the file system at "
                             f"{self._settings.filesystem.mount}") from None

    def _submit(self, request: Request) -> answers.SubmitAnswer:
        direction = str(request.get("direction", "promote"))
        if direction not in {"promote", "demote"}:
            raise ValueError(f"direction is promote or demote, not {direction!r}")
        paths = request.get("paths")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError("submit takes a list of paths")
        by, reason = f"{request.get('by')} (submit)", printable(str(request.get("reason") or ""))
        self._inbox.put([(Order(direction, self._from_root(path), by, OrderKind.SUBMISSION, reason, most_files=1), None)
                         for path in paths])
        return answers.SubmitAnswer(len(paths), len(self._inbox))

    def _from_root(self, path: str) -> str:
        return from_root(self._settings.filesystem.mount.rstrip("/"), path)


def from_root(mount: str, path: str) -> str:
    """Normalize a path below the mount point, or from the root of the file system. Raises ValueError."""
    if not path:
        raise ValueError("an empty path")
    inner = below(mount, path)
    if not inner.startswith("/") and inner:
        raise ValueError(f"{path!r}: give the whole path, below {mount} or from the root of the file system")
    inner.encode("utf-8", "surrogateescape")  # raises ValueError for a lone surrogate
    if {".", ".."} & set(inner.split("/")) or "\0" in inner:
        raise ValueError(f"{path!r}: a path without . and .. in it")
    return "/" + "/".join(part for part in inner.split("/") if part)


MAX_REPORTED = 500
"""Limit on listed findings, and on listed acts, in a report. The report gives the number of all."""
MAX_CURVE_POINTS = 800
"""Points of each curve in a report. More are not visible."""
MAX_HISTORY = 10_000
"""Limit on the acts in one answer to ``history``."""


class DrainRequests:
    """Begins, pauses, resumes, ends and shows drains of targets."""

    def __init__(self, daemon: Daemon, reader: JournalReader) -> None:
        self._drains, self._reader = daemon.drains, reader
        self._settings, self._gate, self._clock = daemon.parts.settings, daemon.parts.gate, daemon.parts.node.clock

    def change(self, request: Request) -> answers.DrainsAnswer | answers.DrainPlanAnswer:
        """Change a drain, and return it; or what it would do, which changes nothing."""
        target = self._drains.full_name(text_of(request, "target"))
        match text_of(request, "act", "begin"):
            case "plan":
                return self._plan(target)
            case "begin":
                drain = self._drains.begin(target, text_of(request, "by", "tierctl"),
                                           preview=bool(request.get("preview")))
            case "pause":
                drain = self._drains.pause(target)
            case "resume":
                drain = self._drains.resume(target)
            case "end":
                drain = self._drains.end(target)
            case other:
                raise ValueError(f"a drain can be planned, begin, pause, resume and end, not {other!r}")
        return answers.DrainsAnswer(self._clock.now(), self._rows([drain]))

    def _plan(self, target: str) -> answers.DrainPlanAnswer:
        planned, state = self._drains.plan(target), self._gate.operating_state
        return answers.DrainPlanAnswer(
            target=target, used_bytes=planned.used_bytes, pools=planned.pools,
            bytes_per_second=self._settings.limits.bytes_per_second, stopped_by_tierd=planned.own_mdts,
            stop_command=set_command(target, 0) if self._drains.unstopped(target) else "",
            dry_run=self._settings.act.dry_run, held=sentence_of(state.held) or state.draining)

    def show(self, request: Request) -> answers.DrainsAnswer:
        """All drains, or that of one target."""
        target = text_of(request, "target")
        wanted = self._drains.full_name(target) if target else ""
        drains = [drain for drain in self._drains.all if wanted in {"", drain.target}]
        if wanted and not drains:
            raise ValueError(f"there is no drain of {quoted(wanted)}")
        return answers.DrainsAnswer(self._clock.now(), self._rows(drains))

    def _rows(self, drains: Iterable[Drain]) -> tuple[answers.DrainRow, ...]:
        return tuple(self._row(drain, self._drains.space.get(drain.target)) for drain in drains)

    def _row(self, drain: Drain, room: Space | None) -> answers.DrainRow:
        used = None if room is None else room.size_bytes - room.free_bytes
        seconds = self._clock.now() - drain.begun_at
        freed = drain.used_bytes_at_begin - used if used is not None else 0
        moving = drain.phase is Phase.RUNNING and not drain.preview and used is not None and freed > 0
        counts = max([DEFAULT_COUNT] if not drain.limits else drain.limits.values())
        return answers.DrainRow.of(
            drain, order=drain.finding, position=drain.after, queued_moves=self._gate.waiting_for(drain.key),
            files_moved=self._reader.sums.of_finding(drain.finding)["files_moved"], used_bytes=used,
            seconds_left=(used or 0) * seconds / freed if moving else None,
            left=tuple(answers.LeftRow.of(each, examples=tuple(each.examples))
                       for each in [*drain.left.values(), *self._drains.failed(drain)]),
            stopped_mdts=tuple(sorted(drain.limits)),
            stop_command=set_command(drain.target, 0) if self._drains.unstopped(drain.target) else "",
            give_back_command=set_command(drain.target, counts),
            waits_for=sentence_of(self._gate.delay_of(drain.key)))


FRESH_SECONDS = 5.0
"""A younger plan is not made again: each costs a few requests to an MDT for each file."""


class Previews:
    """The plan that ``tierctl plan`` shows, made in the background when one is asked for: the file system may not
    answer. Waits for nothing; safe in any thread.
    """

    def __init__(self, preview: Callable[[], Iterable[tuple[Finding, int, Plan]]], clock: Clock,
                 background: Callable[[Callable[[], None]], object]) -> None:
        """``background`` runs a call, if possible in another thread."""
        self._preview, self._clock, self._background = preview, clock, background
        self._lock = threading.Lock()
        self._begun_at: float | None = None
        self._made_at: float | None = None
        self._made: Sequence[answers.PlannedAnswer] = ()
        self._problem = ""

    def renew(self) -> None:
        """Begin to make a plan, unless the last one is fresh or another is being made."""
        with self._lock:
            now = self._clock.now()
            fresh = self._made_at is not None and not self._problem and 0 <= now - self._made_at < FRESH_SECONDS
            if self._begun_at is not None or fresh:
                return
            self._begun_at = now
        self._background(self._make)

    def answer(self, status: answers.StatusAnswer) -> answers.PlanAnswer:
        """The last plan, with its age."""
        now, begun_at, made_at = self._clock.now(), self._begun_at, self._made_at
        return answers.PlanAnswer(
            tuple(self._made), status, age_seconds=None if made_at is None else max(0.0, now - made_at),
            being_made_seconds=None if begun_at is None else max(0.0, now - begun_at), problem=self._problem)

    def _make(self) -> None:
        try:
            self._made = tuple(
                answers.PlannedAnswer(
                    finding=finding_answer(finding, number or None),
                    actions=tuple(map(action_answer, plan.actions)),
                    recommended=tuple(map(action_answer, plan.recommended)), refusals=tuple(map(str, plan.refusals)))
                for finding, number, plan in self._preview())
            self._made_at, self._problem = self._clock.now(), ""
        except OSError as error:
            self._problem = f"no plan could be made: {error.strerror or error}"
        finally:
            self._begun_at = None


class ReadingRequests:
    """Answers reading requests, and changes nothing."""

    def __init__(self, view: StatusView, parts: DaemonParts, reader: JournalReader, drains: DrainRequests, *,
                 previews: Previews, tallies: TallySource | None) -> None:
        """``tallies`` come from changelog readers; None if the daemon reads the changelogs itself."""
        self._view, self._previews, self._reader = view, previews, reader
        self._settings, self._clock = parts.settings, parts.node.clock
        self.requests: Mapping[str, Handler] = {
            "status": lambda _: view.status(), "findings": lambda _: view.findings(),
            "top": lambda request: view.top(count_in(request, "most", 20)),
            "overview": lambda request: view.overview(
                count_in(request, "most", 15), count_in(request, "cases", 50)),
            "advise": lambda _: view.findings(advice=True), "history": self._history,
            "explain": lambda request: explanation(str(request.get("id", "")), reader, view),
            "plan": self._plan, "report": self._report, "movers": lambda _: view.movers(),
            "readers": lambda _: readers_answer(tallies), "drains": drains.show,
        }

    def _history(self, request: Request) -> answers.HistoryAnswer:
        last = max(0, count_in(request, "last", 50))
        if last > MAX_HISTORY:
            raise ValueError(f"history returns at most {MAX_HISTORY} acts; the journal, a file of SQLite, has all: "
                             f"{self._settings.act.journal}")
        word, act = text_of(request, "outcome"), text_of(request, "act")
        job, path = text_of(request, "job"), text_of(request, "path")
        if act and act not in {kind.value for kind in ActKind}:
            raise ValueError(f"no kind of act is called {act!r}; there are {', '.join(ActKind)}")
        if job and not self._reader.has_job(job):
            raise ValueError(f"the journal has no finding with a job {job!r}; tierctl findings lists active ones")
        if word and word not in {outcome.value for outcome in Outcome}:
            raise ValueError(f"no outcome of an act is called {word!r}; there are {', '.join(Outcome)}")
        name = text_of(request, "case")
        finding = named_finding(name)
        if name and finding is None:
            raise ValueError(f"a case has the number of its finding (F3), not {name!r:.40}")
        wanted = Wanted(Outcome(word) if word else None, below(self._settings.filesystem.mount, path), job,
                        since=number_of(request, "since", 0.0), kind=ActKind(act) if act else None, finding=finding)
        reader = self._reader
        entries, moves = (reader.last_by_case(last, wanted) if request.get("by_case")
                          else (reader.last(last, wanted), []))
        acts = {entry.id: act_answer(entry) for entry in reader.acts([each.last_act for each in moves])}
        return answers.HistoryAnswer(
            entries=tuple(map(act_answer, entries)),
            moves=tuple(answers.CaseMovesRow.of(each, time=each.first_at, until=each.last_at, last=acts[each.last_act])
                        for each in moves),
            all_outcomes={} if entries or moves else reader.sums.of_all(),
            complete_since=reader.complete_since(), removed_acts=reader.removed_acts())

    def _report(self, request: Request) -> answers.ReportAnswer:
        until = number_of(request, "until", 0) or self._clock.now()
        since = number_of(request, "since", 0) or until - 86400
        reader = self._reader
        samples = reader.samples(since, until, MAX_CURVE_POINTS)
        cases = cases_of(reader.findings_between(since, until, MAX_REPORTED), self._view.known_cases(), reader)
        return answers.ReportAnswer(
            since=since, until=until, mount=self._settings.filesystem.mount, **reader.sums.of_period(since, until),
            complete_since=reader.complete_since(), removed_acts=reader.removed_acts(),
            cases=cases,
            acts=tuple(map(act_answer, reader.acts_between(since, until, MAX_REPORTED))),
            default_layouts=tuple(map(act_answer, reader.acts_between(
                since, until, MAX_REPORTED, ActKind.SET_DEFAULT_LAYOUT))),
            samples={name: tuple(points) for name, points in samples.items()}, status=self._view.status(),
            users=self._view.users(status.jobs_of(cases)))

    def _plan(self, request: Request) -> answers.PlanAnswer:
        if request.get("renew", True):
            self._previews.renew()
        return self._previews.answer(self._view.status())


def readers_answer(tallies: TallySource | None) -> answers.ReadersAnswer:
    """Changelog readers, and the position in each MDT's changelog."""
    if tallies is None:
        return answers.ReadersAnswer(enabled=False)
    read = {mdt: index for reader in tallies.readers for mdt, index in reader.mdts.items()}
    return answers.ReadersAnswer(
        enabled=True,
        mdts=tuple(answers.MdtReaderRow(
            mdt=mdt, reader=each.reader, position=each.position,
            behind_records=max(0, read[mdt] - each.position) if mdt in read else None,
            age_seconds=None if each.age_seconds == float("inf") else each.age_seconds, problem=each.problem)
            for mdt, each in sorted(tallies.progress.items())),
        readers=tuple(answers.ReaderRow.of(each, mdts=tuple(sorted(each.mdts)), waiting=sum(each.waiting.values()))
                      for each in tallies.readers),
        tallies={outcome.value: count for outcome, count in tallies.outcomes.items()})


MAX_STAGES = 64
"""Limit on the paths that one job may stage."""
MAX_STAGING_SECONDS = 7 * 86400.0
"""Limit on the deadline of a staging."""
MAX_STAGED_FILES = 100_000
MAX_STAGED_BYTES = 1 << 50
_JOB = re.compile(r"[A-Za-z0-9_.+\[\]-]{1,64}")


class SchedulerRequests:
    """Stages files for jobs of a scheduler, such as Slurm. ``wake`` is called when there is something to plan."""

    def __init__(self, parts: DaemonParts, stager: Stager, store: StagingStore, *, preparer: Preparer,
                 applications: ApplicationStore, wake: Callable[[], None]) -> None:
        self._gate, self._settings, self._clock = parts.gate, parts.settings, parts.node.clock
        self._stager, self._store, self._wake = stager, store, wake
        self._preparer, self._applications = preparer, applications
        self.requests: Mapping[str, Handler] = {
            "stage": self._stage, "stage-state": self._state, "stage-cancel": self._cancel,
            "prepare": self._prepare, "job-summary": self._summary}

    def _stage(self, request: Request) -> answers.StagingsAnswer:
        """Accept stagings of a job. Accepts none while acts are held back: a job must not wait for an unknown time.

        Whoever sends this asks for their state until they have ended; otherwise a stage-in counts as abandoned.
        """
        job, stages = job_of(request), request.get("stages")
        if not isinstance(stages, list) or not 1 <= len(stages) <= MAX_STAGES:
            raise ValueError(f"stage takes a list of 1 to {MAX_STAGES} stages")
        uid, gid = count_in(request, "uid", -1), count_in(request, "gid", -1)
        if uid < 0 or gid < 0:
            raise ValueError("stage takes the uid and the gid of the job's user")
        wanted = [self._staging(job, uid, gid, printable(text_of(request, "user")), each) for each in stages]
        if held := self._held():
            return answers.StagingsAnswer(held=held)
        accepted = self._stager.accept(wanted)
        self._wake()
        return answers.StagingsAnswer(tuple(map(self._answer, accepted)))

    def _held(self) -> str:
        state = self._gate.operating_state
        return sentence_of(state.held) or (f"tierd is draining: {state.draining}" if state.draining else "")

    def _staging(self, job: str, uid: int, gid: int, user: str, stage: object) -> Staging:
        if not isinstance(stage, Mapping):
            raise ValueError("a stage is a JSON object")
        direction = str(stage.get("direction"))
        if direction not in {"promote", "demote"}:
            raise ValueError(f"direction is promote or demote, not {direction!r}")
        seconds = number_of(stage, "deadline_seconds", 3600.0)
        if not 0 < seconds <= MAX_STAGING_SECONDS:
            raise ValueError(f"a deadline is more than 0 and at most {MAX_STAGING_SECONDS:.0f} s")
        path, mount = str(stage.get("path") or ""), self._settings.filesystem.mount.rstrip("/")
        if not (path + "/").startswith(mount + "/"):
            raise ValueError(f"{quoted(path)} is not below {mount}")
        now = self._clock.now()
        return Staging(
            job, uid, gid, direction, from_root(mount, path), deadline_at=now + seconds,
            max_files=min(max(1, count_in(stage, "max_files", MAX_STAGED_FILES)), MAX_STAGED_FILES),
            max_bytes=min(max(1, count_in(stage, "max_bytes", MAX_STAGED_BYTES)), MAX_STAGED_BYTES), created_at=now,
            user=user)

    def _state(self, request: Request) -> answers.StagingsAnswer:
        job = job_of(request) if request.get("job") else ""
        if job:
            self._stager.asked(job)
        count = min(max(1, count_in(request, "most", 2 * MAX_STAGES)), 1000)
        return answers.StagingsAnswer(tuple(map(self._answer, self._store.of_job(job, count))), self._held())

    def _cancel(self, request: Request) -> answers.StagingsAnswer:
        return answers.StagingsAnswer(tuple(map(self._answer, self._stager.cancel(job_of(request)))))

    def _prepare(self, request: Request) -> answers.PrepareAnswer:
        """Have the layout that helped an application before set for its next run."""
        if held := self._held():
            return answers.PrepareAnswer((), (), (held,))
        if self._settings.act.dry_run:
            return answers.PrepareAnswer((), (), ("tierd is in a dry run",))
        mount, path = self._settings.filesystem.mount.rstrip("/"), text_of(request, "directory")
        if not (path + "/").startswith(mount + "/"):
            return answers.PrepareAnswer((), (), (f"the job does not start on {mount}",))
        run = NextRun(job_of(request), text_of(request, "name"), text_of(request, "user"), count_in(request, "uid", -1),
                      from_root(mount, path))
        ready, waiting, why_not = self._preparer.prepare(run)
        return answers.PrepareAnswer(tuple(ready), tuple(waiting), tuple(map(str, why_not)))

    def _summary(self, request: Request) -> answers.JobSummaryAnswer:
        job, user = job_of(request), text_of(request, "user")
        last = {(each.direction, each.path): each for each in self._store.of_job(job, 2 * MAX_STAGES)}
        sentences = [self._answer(each).sentence for each in last.values()]
        if prepared := self._applications.prepared(prolog_of(user, job)):
            sentences.append(f"prepared {', '.join(map(quoted, prepared))}")
        return answers.JobSummaryAnswer(tuple(map(printable, sentences + self._applications.sentences(job))))

    def _answer(self, staging: Staging) -> answers.StagingAnswer:
        outcomes = self._store.outcomes(staging.finding) if staging.finding else {}
        reasons = self._store.reasons(staging.finding) if staging.finding else {}
        return answers.StagingAnswer.of(
            staging, user=staging.user or str(staging.uid), open=staging.state in OPEN,
            succeeded=succeeded(staging, reasons), outcomes=outcomes, left_out={**missing_files(staging), **reasons},
            sentence=printable(summary(staging, outcomes, reasons)))


def job_of(request: Request) -> str:
    """The job of a scheduler that a request names. Raises ValueError."""
    job = str(request.get("job") or "")
    if not _JOB.fullmatch(job):
        raise ValueError(f"job is the id of a job, not {job!r:.80}")
    return job


def handled(requests: Mapping[str, Handler], request: Request) -> Struct:
    """The answer to a request. Raises ValueError if it is unknown or invalid. Safe in any thread."""
    name = request.get("request")
    answer = requests.get(str(name))
    if answer is None:
        raise ValueError(f"unknown request {name!r}; known: {', '.join(sorted(requests))}")
    try:
        return answer(request)
    except (TypeError, KeyError, OverflowError) as error:  # OverflowError: a number too large for the journal
        raise ValueError(f"{name}: invalid request: {error!r}") from error
    except OSError as error:
        about = f"{quoted(os.fsdecode(error.filename))}: " if error.filename else ""
        raise answers.NoAnswerError(f"{name}: {about}{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise answers.NoAnswerError(f"{name}: the journal: {error}; see journalctl -u tierd") from error
