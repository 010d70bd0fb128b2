"""The requests of tierctl, of the web page and of a scheduler that change something.

Pausing never waits: it works while a file moves. Orders become acts at the beginning of a cycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lustre.creation import set_command
from tierd.act.applications import ApplicationStore, NextRun, Preparer, prolog_of
from tierd.act.orders import Order, OrderInbox, OrderPlan, plan_order
from tierd.act.staging import OPEN, Stager, Staging, StagingStore, missing_files, succeeded, summary
from tierd.acts import OrderKind, Outcome
from tierd.config.scopes import below, is_below
from tierd.daemon import answers
from tierd.daemon.loop import Daemon
from tierd.daemon.node import DaemonParts
from tierd.daemon.requests import (
    NAME,
    Handler,
    ReadingRequests,
    Request,
    check_name,
    count_in,
    named_finding,
    number_of,
    text_of,
    what_is,
)
from tierd.daemon.status import act_answer
from tierd.refusal import Reason, of_error, sentence_of
from tierd.text import printable, quoted

ORDER_LOOKUP_SECONDS = 20.0
"""Limit on the time to scan a directory while the requester waits."""
ORDERS_PER_CYCLE = 500
"""Submitted paths that are planned in one cycle. Each costs a few requests to an MDT."""
CHANGING_REQUESTS = frozenset({"pause", "drain", "resume", "undo", "apply", "decline", "promote", "demote", "submit",
                               "stage", "stage-cancel", "drain-target", "prepare"})
"""Requests that change something. They may need more rights than reading requests."""
SCHEDULER_REQUESTS = frozenset({"stage", "stage-cancel", "stage-state", "prepare", "job-summary"})
"""Requests of a scheduler for its jobs. ``control.stage_users`` may send them, and nothing else."""
MAX_PAUSE_SECONDS = 366 * 86400.0
"""A longer pause has no end: ``tierctl pause`` without ``--for``."""


class ChangingRequests:
    """Carries out changing requests, or puts orders into the inbox and queues them while acts may start.

    ``publish`` is called after an undo, so that the next status shows it. ``resumed`` is called after a pause ends.
    """

    def __init__(self, view: ReadingRequests, daemon: Daemon, inbox: OrderInbox, *,
                 publish: Callable[[], None], resumed: Callable[[], None]) -> None:
        self._daemon, self._view, self._inbox = daemon, view, inbox
        self._gate, self._journal, self._settings = daemon.parts.gate, daemon.parts.journal, daemon.parts.settings
        self._publish, self._resumed = publish, resumed
        self.requests: Mapping[str, Handler] = {
            "pause": self._pause, "drain": self._drain, "resume": self._resume, "undo": self._undo,
            "apply": self._decide, "decline": self._decide, "promote": self._order, "demote": self._order,
            "submit": self._submit, "drain-target": self._drain_target}

    def take_in(self) -> None:
        """Queue the moves of orders at the beginning of a cycle. While acts are held back, orders wait."""
        state = self._gate.operating_state
        away = self._gate.guard.blocked_by() if len(self._inbox) else None
        # after an unmount, everything that was ordered looks removed
        if state.held or state.draining or (away is not None and away.reason is Reason.CLAIM_UNREADABLE):
            return
        handed_over: dict[tuple[str, str, str], OrderPlan] = {}
        waiting, queue = self._inbox.take(ORDERS_PER_CYCLE), self._daemon.remediations.queue_order
        for order in waiting:
            try:
                made = self._made(order)  # again: files may have been queued or changed since
            except OSError as error:
                made = OrderPlan()
                made.left_out[of_error(error)] += 1
            if order.kind == OrderKind.SUBMISSION:
                handed_over.setdefault((order.by, order.direction, order.reason), OrderPlan()).add(made)
            else:
                queue(order.kind, order.by, order.what, made)
        for (by, direction, reason), made in handed_over.items():
            because = f" ({quoted(reason)})" if reason else ""
            queue(OrderKind.SUBMISSION, by, f"{by} submitted files to {direction}{because}", made)
        if waiting:
            self._inbox.done()  # after they are queued: a kill before this only lets them come again

    def _made(self, order: Order) -> OrderPlan:
        """The present plan for an order: one file, or as many files of a directory as the time allows."""
        node = self._daemon.parts.node
        now = node.clock.now
        # a submission is one file
        until = float("inf") if order.kind == OrderKind.SUBMISSION else now() + ORDER_LOOKUP_SECONDS
        return plan_order(order, node.filesystem, self._settings, now, until, allowed=self._gate.queue.queued_refusal)

    def _pause(self, request: Request) -> answers.OperatingStateAnswer:
        seconds = number_of(request, "seconds", 0.0)
        if not 0 <= seconds <= MAX_PAUSE_SECONDS:
            raise ValueError(f"a pause with an end lasts {MAX_PAUSE_SECONDS / 86400:.0f} days at most")
        self._gate.operating_state.pause(self._reason(request), seconds=seconds)
        return self._operating_state(request)

    def _drain(self, request: Request) -> answers.OperatingStateAnswer:
        self._gate.operating_state.draining = self._reason(request)
        return self._operating_state(request)

    def _reason(self, request: Request) -> str:
        return printable(text_of(request, "reason")) or f"by {text_of(request, 'by', 'tierctl')}"

    def _resume(self, request: Request) -> answers.OperatingStateAnswer:
        self._gate.operating_state.resume()
        self._resumed()
        return self._operating_state(request)

    def _operating_state(self, request: Request) -> answers.OperatingStateAnswer:
        """Store the operating state in the journal, log who changed it, and return it."""
        self._gate.operating_state.store()
        state = self._view.operating_state()
        self._daemon.log.all([f"{text_of(request, 'by', 'tierctl')} asked to {request['request']}: {state.lines[0]}"])
        return state

    def _undo(self, request: Request) -> answers.UndoAnswer | answers.UndoFindingAnswer:
        by = text_of(request, "by", "tierctl")
        name = request.get("id")
        if (finding := named_finding(name)) is not None:
            return self._undo_finding(str(name), finding, by)
        number = int(name) if isinstance(name, str) and NAME.fullmatch(name) else name
        if type(number) is not int:  # JSON true and 1.5 are not numbers of acts
            raise ValueError(f"undo takes the number of an act (17), a finding (F3) or an order (O3), not {number!r}")
        entry = self._journal.entry(number)
        if entry is None and self._journal.was_removed(number, "actions"):
            raise ValueError(self._removed(f"act {number}"))
        if entry is None:
            raise ValueError(f"the journal has no act {number}; tierctl history lists them")
        result, _ = self._daemon.undoing.act_by_hand(entry, by)
        self._publish()
        return answers.UndoAnswer(result.outcome, result.detail, act_answer(entry))

    def _decide(self, request: Request) -> answers.DecisionAnswer:
        """Approve or decline what the plan for a finding would do, or repeat undone acts."""
        number = named_finding(request.get("id"))
        if number is None or not str(request["id"]).upper().startswith("F"):  # numbers with D and O are orders
            raise ValueError(f"{request['request']} takes the number of a finding (F3), not {request.get('id')!r}")
        key, by, approved = self._journal.key_of_finding(number), text_of(request, "by", "tierctl"), (
            request["request"] == "apply")
        if key is None:
            raise ValueError(f"the journal has no finding F{number}; tierctl findings lists those that hold")
        if all(finding.key != key for finding in self._daemon.findings):
            raise ValueError(f"the finding F{number} has ended: there is nothing to do about it now. If it returns, "
                             "its plan waits again")
        becomes = self._daemon.remediations.decide(key, by, approved=approved)
        self._daemon.log.of_number(number, [f"{'APPROVED' if approved else 'DECLINED'} by {by}: the plan is {becomes}"])
        self._resumed()
        return answers.DecisionAnswer(number, becomes, self._settings.act.dry_run)

    def _removed(self, what: str) -> str:
        days = self._settings.journal.keep_days
        return (f"the record of {what} was removed from the journal after {days:g} days ([journal] keep_days), so it "
                "can no longer be undone; lfs migrate or lfs setstripe -d changes a layout by hand")

    def _undo_finding(self, name: str, number: int, by: str) -> answers.UndoFindingAnswer:
        if self._journal.was_removed(number, "findings"):
            raise ValueError(self._removed(what_is(name)))
        kind, *_ = self._journal.key_of_finding(number) or (None,)
        check_name(name, number, kind)
        if kind == OrderKind.DRAIN:
            raise ValueError(f"{name.upper()} is a drain: tierctl drain-target TARGET --end ends it, tierctl undo ID "
                             "moves one file back")
        if kind == OrderKind.STAGING:
            raise ValueError(f"{name.upper()} stages files for a job: its moves are dropped when the job is cancelled; "
                             "tierctl undo ID moves one file back")
        dropped, results, moved = self._daemon.undoing.finding_by_hand(number, by)
        self._publish()
        restored = all(result.restored for _, result in results)
        goes_on = any(result.outcome == Outcome.UNDOING for _, result in results)
        return answers.UndoFindingAnswer(
            "not undone" if not restored else Outcome.UNDOING if goes_on else Outcome.UNDONE, number, dropped,
            tuple(answers.UndoAnswer(result.outcome, result.detail, act_answer(entry)) for entry, result in results),
            tuple(moved), kind=str(kind))

    def _order(self, request: Request) -> answers.OrderAnswer:
        mount = self._settings.filesystem.mount
        path = from_root(mount, str(request["path"]))
        try:
            fid = self._daemon.parts.node.filesystem.status(path).fid
        except FileNotFoundError:
            raise ValueError(f"{quoted(path)}: there is no such file or directory on the file system at {mount}"
                             ) from None
        order = Order(str(request["request"]), path, text_of(request, "by", "tierctl"),
                      most_files=max(1, count_in(request, "most_files", 1000)),
                      most_bytes=max(1, count_in(request, "most_bytes", 1 << 40)), fid=fid)
        made = self._made(order)
        if made.actions and not request.get("preview"):
            self._inbox.put([order])
        return answers.OrderAnswer.of(
            order, files=len(made.actions), size_bytes=made.size_bytes,
            left_out={why.sentence: count for why, count in made.left_out.most_common(20)},
            refused=sum(count for why, count in made.left_out.items() if why.reason is not Reason.HAS_LAYOUT),
            dry_run=self._settings.act.dry_run, preview=bool(request.get("preview")),
            held=sentence_of(self._gate.operating_state.new_work_refusal))

    def _submit(self, request: Request) -> answers.SubmitAnswer:
        direction = str(request.get("direction", "promote"))
        if direction not in {"promote", "demote"}:
            raise ValueError(f"direction is promote or demote, not {direction!r}")
        paths = request.get("paths")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError("submit takes a list of paths")
        by, reason = f"{request.get('by')} (submit)", printable(str(request.get("reason") or ""))
        whole = [from_root(self._settings.filesystem.mount, path) for path in paths]
        self._inbox.put([Order(direction, path, by, OrderKind.SUBMISSION, reason, most_files=1) for path in whole])
        return answers.SubmitAnswer(len(paths), len(self._inbox))

    def _drain_target(self, request: Request) -> answers.DrainsAnswer | answers.DrainPlanAnswer:
        """Change a drain, and return it; or what it would do, which changes nothing."""
        drains = self._daemon.drains
        target, act = drains.full_name(text_of(request, "target")), text_of(request, "act", "begin")
        if act == "plan":
            planned = drains.plan(target)
            return answers.DrainPlanAnswer.of(
                planned, target=target, bytes_per_second=self._settings.limits.bytes_per_second,
                stop_command=set_command(target, 0) if drains.unstopped(target) else "",
                dry_run=self._settings.act.dry_run, held=sentence_of(self._gate.operating_state.new_work_refusal))
        if act == "begin":
            drain = drains.begin(target, text_of(request, "by", "tierctl"), preview=bool(request.get("preview")))
        else:
            drain = drains.change(target, act)
        return self._view.drain_rows([drain])


def from_root(mount: str, path: str) -> str:
    """Normalize a path below the mount point, or from the root of the file system. Raises ValueError."""
    if not path:
        raise ValueError("give a path: it is empty")
    inner = below(mount, path)
    if not inner.startswith("/") and inner:
        raise ValueError(f"{path!r}: give the whole path, below {mount} or from the root of the file system")
    inner.encode("utf-8", "surrogateescape")  # raises ValueError for a lone surrogate
    if {".", ".."} & set(inner.split("/")) or "\0" in inner:
        raise ValueError(f"{path!r}: give a path without . and .. in it")
    return "/" + "/".join(part for part in inner.split("/") if part)


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

        The sender must ask for their state until they have ended; otherwise a stage-in counts as abandoned.
        """
        job, stages = job_of(request), request.get("stages")
        if not isinstance(stages, list) or not 1 <= len(stages) <= MAX_STAGES:
            raise ValueError(f"stage takes a list of 1 to {MAX_STAGES} stages")
        uid, gid = count_in(request, "uid", -1), count_in(request, "gid", -1)
        if uid < 0 or gid < 0:
            raise ValueError("stage takes the uid and the gid of the job's user")
        wanted = [self._staging(job, uid, gid, printable(text_of(request, "user")), each) for each in stages]
        if refusal := self._gate.operating_state.new_work_refusal:
            return answers.StagingsAnswer(held=refusal.sentence)
        accepted = self._stager.accept(wanted)
        self._wake()
        return answers.StagingsAnswer(tuple(map(self._answer, accepted)))

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
        if not is_below(path, mount):
            raise ValueError(f"{quoted(path)} is not below {mount}")
        now = self._clock.now()
        return Staging(
            job, uid, gid, direction, from_root(mount, path), deadline_at=now + seconds,
            max_files=min(max(1, count_in(stage, "max_files", MAX_STAGED_FILES)), MAX_STAGED_FILES),
            max_bytes=min(max(1, count_in(stage, "max_bytes", MAX_STAGED_BYTES)), MAX_STAGED_BYTES), created_at=now,
            user=user)

    def _state(self, request: Request) -> answers.StagingsAnswer:
        job = job_of(request) if request.get("job") else ""
        self._stager.asked(job)
        count = min(max(1, count_in(request, "most", 2 * MAX_STAGES)), 1000)
        return answers.StagingsAnswer(tuple(map(self._answer, self._store.of_job(job, count))),
                                      sentence_of(self._gate.operating_state.new_work_refusal))

    def _cancel(self, request: Request) -> answers.StagingsAnswer:
        cancelled = self._stager.cancel(job_of(request), request.get("uid"))
        return answers.StagingsAnswer(tuple(map(self._answer, cancelled)))

    def _prepare(self, request: Request) -> answers.PrepareAnswer:
        """Have the layout that helped an application before set for its next run."""
        held = sentence_of(self._gate.operating_state.new_work_refusal)
        if why := held or ("tierd is in a dry run" if self._settings.act.dry_run else ""):
            return answers.PrepareAnswer((), (), (why,))
        mount, path = self._settings.filesystem.mount.rstrip("/"), text_of(request, "directory")
        if not is_below(path, mount):
            return answers.PrepareAnswer((), (), (f"the job does not start on {mount}",))
        run = NextRun(job_of(request), text_of(request, "name"), text_of(request, "user"), count_in(request, "uid", -1),
                      from_root(mount, path))
        ready, waiting, why_not = self._preparer.prepare(run)
        return answers.PrepareAnswer(tuple(ready), tuple(waiting), tuple(map(str, why_not)))

    def _summary(self, request: Request) -> answers.JobSummaryAnswer:
        job, user = job_of(request), text_of(request, "user")
        last = {(each.direction, each.path): each for each in self._store.of_job(job, 2 * MAX_STAGES)
                if not user or each.user in {"", printable(user)}}  # another Slurm cluster has the same numbers
        sentences = [self._answer(each).sentence for each in last.values()]
        if prepared := self._applications.prepared(prolog_of(user, job)):
            sentences.append(f"prepared {', '.join(map(quoted, prepared))}")
        return answers.JobSummaryAnswer(tuple(map(printable, sentences + self._applications.sentences(job, user))))

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
