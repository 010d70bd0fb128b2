"""The requests of tierctl and of the web page that read.

They use the published status and the journal. They wait for no activity, and only a plan asks the file system.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from lustre import __version__
from lustre.creation import DEFAULT_COUNT, set_command
from tierd.act.drain import ACTIVE, Drain, Phase
from tierd.act.journal.rates import JOBS, KEPT_SECONDS, TARGETS, step_of
from tierd.act.journal.reader import JournalReader, Wanted
from tierd.acts import ORDER_KINDS, ActKind, Outcome, name_of
from tierd.background import DaemonExecutor
from tierd.config.scopes import below
from tierd.daemon import answers, status
from tierd.daemon.activities import Activity
from tierd.daemon.loop import LEARNING_WINDOWS, Daemon, is_learning
from tierd.daemon.status import StatusSnapshot
from tierd.daemon.users import UserNames
from tierd.decide.plans import Plan
from tierd.loads import Loads
from tierd.model import Finding, Window
from tierd.rates import Rates, mean_rates
from tierd.refusal import Reason, Refusal, sentence_of
from tierd.sense.changelogs.tally_source import TallySource
from tierd.sense.exposition import LONGEST_LABEL_BYTES
from tierd.sense.freshness import SourceAge
from tierd.structs import MessageRow, Struct
from tierd.text import quoted

Request = Mapping[str, object]
"""A JSON object: the name of the request and its arguments."""
Handler = Callable[[Request], Struct]


# Arguments


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


NAME = re.compile(r"([FDO]?)([0-9]{1,17})", re.ASCII | re.IGNORECASE)
"""The name of a finding or an order, or the number of an act."""


def named_finding(name: object) -> int | None:
    """The number in the name of a finding or an order; None for anything else.

    >>> named_finding("F3"), named_finding("d4"), named_finding("17"), named_finding(3)
    (3, 4, None, None)
    """
    found = NAME.fullmatch(name) if isinstance(name, str) else None
    return int(found[2]) if found and found[1] else None


def finding_number(name: str, journal: JournalReader) -> int:
    """Number of the finding that a name refers to. Raises ValueError."""
    if (number := named_finding(name)) is not None:
        return number
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither a finding (F3), nor an order (D3, O3), nor an act (17)")
    of_act = journal.finding_of(int(name))
    if of_act is None:
        raise ValueError(f"the journal has no act {name}; tierctl history lists them")
    return of_act


def check_name(name: str, number: int, kind: str | None) -> None:
    """Raise ValueError unless this is the name of what has the number; ``kind`` None: nothing has it."""
    if kind is None:
        raise ValueError(f"the journal has no {what_is(name)}; tierctl findings and tierctl history list them")
    if named_finding(name) is not None and name.upper() != name_of(number, kind):
        raise ValueError(f"the journal has no {what_is(name)}, but {what_is(name_of(number, kind))}")


def what_is(name: str) -> str:
    """What a name of a finding or an order means.

    >>> what_is("f3"), what_is("D4")
    ('finding F3', 'order D4')
    """
    return f"{'finding' if name[:1] in {'F', 'f'} else 'order'} {name.upper()}"


def handled(requests: Mapping[str, Handler], request: Request) -> Struct:
    """The answer to a request. Raises ValueError for an unknown or invalid one, NoAnswerError if it cannot be read."""
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


MAX_REPORTED = 500
"""Limit on the findings in a report. The report gives the number of all."""
MAX_HISTORY = 10_000
"""Limit on the acts in one answer to ``history``."""
MAX_EXPLAINED_ACTS = 20
Row = TypeVar("Row", answers.TargetRow, answers.JobRow)
ROLES = {"slowed": "slowed", "noise": "aggressor", "": ""}
"""Words for the roles of jobs."""
SHOWN_ROWS, SHOWN_CASES = 50, 30
"""Limits on the targets or jobs beside one, and on its cases."""
MAX_SECONDS = max(KEPT_SECONDS.values())
"""Longest range of a question."""
MAX_TIME = 1e11


class ReadingRequests:
    """Answers about the present state and the journal. Safe in any thread; holds no lock while it waits."""

    def __init__(self, published: Callable[[], StatusSnapshot], daemon: Daemon, reader: JournalReader,
                 users: UserNames, *, waiting_orders: Callable[[], int],
                 sources: Callable[[], Sequence[SourceAge]], activities: Callable[[], Sequence[Activity]],
                 previews: Previews, tallies: TallySource | None) -> None:
        """``tallies`` come from changelog readers; None if the daemon reads the changelogs itself."""
        self._published, self._daemon, self.reader, self.users = published, daemon, reader, users.names
        self._gate, self._settings, self._clock = daemon.parts.gate, daemon.parts.settings, daemon.parts.node.clock
        self._waiting_orders, self._sources, self._activities = waiting_orders, sources, activities
        self._tallies = tallies
        self.requests: Mapping[str, Handler] = {
            "status": lambda _: self.status(), "findings": lambda _: self._findings(), "top": self._top,
            "overview": self._overview, "advise": lambda _: self._findings(advice=True), "history": self._history,
            "explain": self._explain, "report": self._report,
            "plan": lambda _: answers.PlanAnswer(previews(), self.status()), "movers": lambda _: self._movers(),
            "readers": lambda _: self._readers(), "drains": self._drains, "list": self._list, "about": self._about,
            "rates": self._rates, "moment": self._moment}

    @property
    def snapshot(self) -> StatusSnapshot:
        return self._published()

    def status(self) -> answers.StatusAnswer:
        return self._status([case.replaced(time_before=None) for case in self.cases()])

    def _top(self, request: Request) -> answers.TopAnswer:
        view, most, state = self.snapshot, count_in(request, "most", 20), self._status()
        jobs = view.jobs[:most]
        return answers.TopAnswer.of(
            state, users={**state.users, **self.users(row.job for row in jobs)},
            findings=self._findings().findings if view.windows else (), seconds=view.window.seconds,
            targets=tuple(view.targets[:most]), all_targets=len(view.targets), jobs=tuple(jobs),
            all_jobs=len(view.jobs))

    def _overview(self, request: Request) -> answers.OverviewAnswer:
        """The page, with the requested numbers of targets, jobs and cases. It waits for nothing."""
        view, times, top = self.snapshot, self.snapshot.device_time, self._top(request)
        every_case, max_cases = self.cases(), count_in(request, "cases", 50)
        cases = every_case[:max_cases]
        cases[:1] = map(self._measured, cases[:1])  # the others are rows of a table
        targets = sorted(view.targets, key=lambda row: (
            -(row.slowdown or 0), not row.condition,
            -times[row.target].utilisation if row.target in times else 0.0))[:len(top.targets)]
        return answers.OverviewAnswer.of(
            top, fsname=self._daemon.parts.node.filesystem.fsname, mount=self._settings.filesystem.mount,
            version=__version__, options=status.socket_options(self._settings.act.socket), cases=tuple(cases),
            all_cases=len(every_case), findings=tuple(f for f in top.findings if f.advice_only)[:max_cases],
            targets=tuple(targets), times=time_rows(targets, times), pools=status.pool_rows(view), reasons={
                ": ".join(filter(None, why)): count
                for why, count in self._gate.completed_acts.reasons.most_common()})

    def cases(self) -> list[answers.Case]:
        """All cases, with the reasons why not more is done now about a finding that holds."""
        return [case if not case.active else
                case.replaced(why_not=tuple(map(status.refusal_answer, self._why_not(case.key))))
                for case in self.snapshot.cases]

    def _measured(self, case: answers.Case) -> answers.Case:
        return status.with_measurements(case, self.reader, self._daemon.windows, self.snapshot.device_time)

    def known_cases(self) -> dict[int, answers.Case]:
        """All cases, and the findings that are advice only, by number."""
        view = self.snapshot
        advice = (status.found_case(f, number, active=True) for number, f in view.findings.items())
        return {case.finding: case for case in (*advice, *self.cases())}

    def _why_not(self, key: tuple[str, str, str]) -> tuple[Refusal, ...]:
        """Why nothing, or no more, is done about a finding: refusals of the last plan, and what holds acts back now."""
        view, refusals = self.snapshot, self._daemon.remediations.refusals(key)
        holds = [*filter(None, (self._gate.operating_state.new_work_refusal,)), *self._daemon.blocked_by()]
        if not refusals and not holds and not any(case.state and case.key == key for case in view.cases):
            return (Refusal(Reason.NOTHING_TO_DO, "not planned yet; tierd plans in the next seconds"),)
        return (*refusals, *(hold for hold in holds if hold not in refusals))

    def _findings(self, *, advice: bool = False) -> answers.FindingsAnswer:
        """The findings that hold; with ``advice``, only those about which tierd advises and does nothing."""
        view = self.snapshot
        chosen = [number for number, f in view.findings.items() if f.advice_only or not advice]
        known = self.known_cases() if chosen else {}
        found = tuple(known[number] for number in chosen if number in known)
        return answers.FindingsAnswer(found, bool(view.windows), self.users(status.jobs_of(found)))

    def _movers(self) -> answers.MoversAnswer:
        state, now = self._gate.dispatch.state(), self._clock.now()
        if state is None:
            return answers.MoversAnswer(time=now, cluster=False)
        movers = [answers.MoverAnswer.of(each, under_way=sum(each.under_way.values())) for each in state.movers]
        return answers.MoversAnswer.of(state, time=now, cluster=True, movers=tuple(movers),
                                       standbys=tuple(map(answers.StandbyRow.of, state.standbys)))

    def _readers(self) -> answers.ReadersAnswer:
        """Changelog readers, and the position in each MDT's changelog."""
        if (tallies := self._tallies) is None:
            return answers.ReadersAnswer(enabled=False)
        read = {mdt: index for reader in tallies.readers for mdt, index in reader.mdts.items()}
        return answers.ReadersAnswer(
            enabled=True,
            mdts=tuple(answers.MdtReaderRow.of(
                each, mdt=mdt, behind_records=max(0, read[mdt] - each.position) if mdt in read else None)
                for mdt, each in sorted(tallies.progress.items())),
            readers=tuple(answers.ReaderRow.of(each, mdts=tuple(sorted(each.mdts)), waiting=sum(each.waiting.values()))
                          for each in tallies.readers))

    def operating_state(self) -> answers.OperatingStateAnswer:
        gate, state, held = self._gate, self._gate.operating_state, self._gate.operating_state.last_held
        return answers.OperatingStateAnswer(
            paused=state.paused, held=sentence_of(held), draining=state.draining,
            pause_file=held.sentence if held and held.reason is Reason.PAUSE_FILE else "", waiting_moves=gate.waiting,
            waiting_bytes=gate.queue.size_bytes, blocked=sentence_of(next(self._daemon.blocked_by(), None)))

    def _status(self, cases: Sequence[answers.Case] = ()) -> answers.StatusAnswer:
        view, gate, settings, now = self.snapshot, self._gate, self._settings, self._clock.now()
        activities, acts = self._activities(), self._gate.completed_acts
        return answers.StatusAnswer.of(
            self.operating_state(),
            time=now,
            mode=settings.act.mode,
            scopes={scope.path: scope.mode for scope in settings.scopes},
            dry_run=settings.act.dry_run,
            faults=dict(self._daemon.faults),
            cases=tuple(cases),
            advice=sum(f.advice_only for f in view.findings.values()),
            last_cycle=view.window.end if view.windows else None,
            windows=view.windows,
            least_windows=LEARNING_WINDOWS,
            looking_since=view.looking_since or None,
            history_seconds=settings.history_seconds,
            learning=is_learning(view.windows, view.device_time),
            device_time=status.device_time_rows(view.device_time),
            waiting_orders=self._waiting_orders(),
            under_way_moves=gate.under_way,
            waiting_defaults=len(gate.default_layouts),
            waits_for=gate.queue.waits_for,
            moves_to_requeue=len(gate.queue.earlier),
            moves_not_persisted=gate.not_persisted,
            not_requeued=dict(gate.not_requeued),
            moved_bytes=acts.moved_bytes,
            outcomes={" ".join(key): count - acts.needless[key]  # as the journal has them
                      for key, count in tuple(acts.counts.items()) if count > acts.needless[key]},
            drains={drain.target: str(drain.phase) for drain in self._daemon.drains.all
                    if drain.phase in ACTIVE and not drain.preview},
            needless_moves=acts.needless.total(),
            busy=tuple(status.busy_sentences(activities)),
            stalled=tuple(status.stalled_sentences(self._daemon, activities, now)),
            sources=tuple(map(answers.SourceAnswer.of, self._sources())),
            users=self.users(status.jobs_of(view.cases)))

    def _explain(self, request: Request) -> answers.ExplainAnswer:
        """Explain a finding (``F3``), an order (``D3``, ``O3``), or that of an act (``17``).

        Raises ValueError if the journal lacks it.
        """
        name, journal, view = str(request.get("id", "")), self.reader, self.snapshot
        number = finding_number(name, journal)
        row = journal.finding(number)
        check_name(name, number, None if row is None else row[1].kind)
        assert row is not None
        now = view.findings.get(number, row[1])
        case = self._measured(self.known_cases().get(number) or status.cases_of([row], {}, journal)[0])
        ordered, sums = now.kind in ORDER_KINDS, journal.sums_of_finding(number)
        return answers.ExplainAnswer(
            case=case, ordered=ordered,
            acts=tuple(map(status.act_answer, journal.acts_of(number, MAX_EXPLAINED_ACTS))),
            all_acts=sums["all_acts"], bytes_moved=sums["bytes_moved"], outcomes=sums["outcomes"],
            messages=(MessageRow(row[1].time, "ordered" if ordered else f"FOUND {now.kind}"),
                      *journal.messages(number)),
            same=() if ordered else tuple(journal.same_as(number)),
            users={} if ordered else self.users((now.aggressor, now.victim)))

    def _history(self, request: Request) -> answers.HistoryAnswer:
        last, reader = max(0, count_in(request, "last", 50)), self.reader
        if last > MAX_HISTORY:
            raise ValueError(f"history returns at most {MAX_HISTORY} acts; the journal, a file of SQLite, has all: "
                             f"{self._settings.act.journal}")
        word, act, job, name = (text_of(request, key) for key in ("outcome", "act", "job", "case"))
        if act and act not in {kind.value for kind in ActKind}:
            raise ValueError(f"unknown kind of act {act!r}; known: {', '.join(ActKind)}")
        if job and not reader.findings_about(JOBS, job, 1):
            raise ValueError(f"the journal has no finding with a job {job!r}; tierctl findings lists active ones")
        if word and word not in {outcome.value for outcome in Outcome}:
            raise ValueError(f"unknown outcome {word!r}; known: {', '.join(Outcome)}")
        finding = named_finding(name)
        if name and finding is None:
            raise ValueError(f"a case has the number of its finding (F3), not {name!r:.40}")
        if finding is not None and (row := reader.finding(finding)) is not None:
            check_name(name, finding, row[1].kind)
        wanted = Wanted(Outcome(word) if word else None,
                        below(self._settings.filesystem.mount, text_of(request, "path")), job,
                        since=number_of(request, "since", 0.0), kind=ActKind(act) if act else None, finding=finding)
        entries = reader.last(last, wanted)
        return answers.HistoryAnswer(
            entries=tuple(map(status.act_answer, entries)),
            all_outcomes={} if entries else reader.sums_of_all(),
            complete_since=reader.complete_since())

    def _report(self, request: Request) -> answers.ReportAnswer:
        until, reader = number_of(request, "until", 0) or self._clock.now(), self.reader
        since = number_of(request, "since", 0) or until - 86400
        first = reader.rates.at(since)  # a record each minute
        cases = status.cases_of(reader.findings_between(since, until, MAX_REPORTED), self.known_cases(), reader)
        return answers.ReportAnswer(
            since=since, until=until, mount=self._settings.filesystem.mount, **reader.sums_of_period(since, until),
            recorded_since=None if first is None else first.time - first.seconds,
            cases=cases, status=self.status(), users=self.users(status.jobs_of(cases)))

    def _drains(self, request: Request) -> answers.DrainsAnswer:
        """All drains, or that of one target."""
        drains, target = self._daemon.drains, text_of(request, "target")
        wanted = drains.full_name(target) if target else ""
        found = [drain for drain in drains.all if wanted in {"", drain.target}]
        if wanted and not found:
            raise ValueError(f"there is no drain of {quoted(wanted)}")
        return self.drain_rows(found)

    def drain_rows(self, drains: Iterable[Drain]) -> answers.DrainsAnswer:
        now = self._clock.now()
        return answers.DrainsAnswer(now, tuple(self._drain_row(drain, now) for drain in drains))

    def _drain_row(self, drain: Drain, now: float) -> answers.DrainRow:
        gate, every, room = self._gate, self._daemon.drains, self._daemon.drains.space.get(drain.target)
        used = None if room is None else room.size_bytes - room.free_bytes
        freed = drain.used_bytes_at_begin - used if used is not None else 0
        moving = drain.phase is Phase.RUNNING and not drain.preview and used is not None and freed > 0
        waits = ("tierd is in a dry run" if gate.dry_run and not drain.preview else
                 "; ".join(map(sentence_of, self._daemon.blocked_by(of_orders=True)))
                 or sentence_of(gate.operating_state.new_work_refusal or gate.queue.delay_of(drain.key)))
        return answers.DrainRow.of(
            drain, order=drain.finding, position=drain.after, queued_moves=gate.queue.waiting_for(drain.key),
            files_moved=self.reader.sums_of_finding(drain.finding)["files_moved"], used_bytes=used,
            seconds_left=(used or 0) * (now - drain.begun_at) / freed if moving else None,
            left=tuple(answers.LeftRow.of(each, examples=tuple(each.examples))
                       for each in [*drain.left.values(), *every.failed(drain)]),
            stop_command=set_command(drain.target, 0) if every.unstopped(drain.target) else "",
            give_back_command=set_command(drain.target, DEFAULT_COUNT),
            waits_for=waits if drain.phase is Phase.RUNNING else "")

    def _list(self, request: Request) -> answers.ListAnswer:
        of, most = text_of(request, "of"), count_in(request, "most", 500)
        if of == JOBS:
            return self._jobs(request, most)
        if of == TARGETS:
            return self._targets(request, most)
        raise ValueError(f"unknown list {of!r:.40}; known: {JOBS}, {TARGETS}")

    def _jobs(self, request: Request, most: int) -> answers.ListAnswer:
        rows = self.snapshot.jobs
        users = self.users(row.job for row in rows) if {"search", "sort"} & request.keys() else {}
        rows = listed_rows(rows, request, lambda row: f"{row.job} {users.get(row.job, '')} {ROLES[row.role]}", {
            # jobs of unknown users come last
            "job": lambda row: row.job, "user": lambda row: users.get(row.job, "\uffff"),
            "read": lambda row: row.read_bytes, "write": lambda row: row.write_bytes,
            "operations": lambda row: row.operations, "creates": lambda row: row.creates,
            "targets": lambda row: row.targets})
        shown = tuple(rows[:most])
        return answers.ListAnswer(jobs=shown, found=len(rows), users=self.users(row.job for row in shown))

    def _targets(self, request: Request, most: int) -> answers.ListAnswer:
        times = self.snapshot.device_time
        rows = listed_rows(self.snapshot.targets, request, lambda row: (
            f"{row.target} {row.pool} {row.condition} {'slowed' if row.slowdown else ''}"), {
            "target": lambda row: row.target,
            # unknown: after the others
            "busy": lambda row: times[row.target].utilisation if row.target in times else -1.0,
            "read": lambda row: row.read_bytes, "write": lambda row: row.write_bytes,
            "operations": lambda row: row.operations, "latency": lambda row: row.latency_usec or 0.0,
            "used": lambda row: -1.0 if row.used is None else row.used, "jobs": lambda row: row.jobs})
        shown = tuple(rows[:most])
        return answers.ListAnswer(targets=shown, found=len(rows), device_time=time_rows(shown, times))

    def _about(self, request: Request) -> answers.AboutAnswer:
        kind, name = named(request)
        view = self.snapshot
        target = next((row for row in view.targets if kind == TARGETS and row.target == name), None)
        job = next((row for row in view.jobs if kind == JOBS and row.job == name), None)
        found = self.reader.findings_about(kind, name, SHOWN_CASES)
        if not (target or job or found or self.reader.rates.knows(kind, name)):
            raise ValueError(f"nothing is known about a {kind[:-1]} of this name: it is not active, and the journal "
                             "has neither a finding nor a rate of it")
        window, loads = view.window, Loads.of(view.window.loads)
        its = loads.rows(loads.jobs_among({name}) if kind == JOBS else loads.targets_that(lambda each: each == name))
        rates = mean_rates([Window(window.start, window.end, its, {}, spans=window.spans)], int(kind == TARGETS))
        beside = sorted(rate_rows(rates), key=lambda row: (-row.operations, row.name))
        shown = tuple(beside[:SHOWN_ROWS])
        time = view.device_time.get(name) if kind == TARGETS else None
        return answers.AboutAnswer(
            name=name, target=target, job=job, device_time=status.time_row(name, [time]) if time is not None else None,
            beside=shown, all_beside=len(beside), cases=status.cases_of(found, self.known_cases(), self.reader),
            users=self.users([name, *(row.name for row in shown)]))

    def _moment(self, request: Request) -> answers.MomentAnswer:
        """All targets and the busiest jobs at a ``time``; now if it is left out."""
        found = self.reader.rates.at(number_of(request, "time", self._clock.now()))
        if found is None:
            return answers.MomentAnswer()
        return answers.MomentAnswer.of(found, **{kind: rate_rows(rates) for kind, rates in found.rates.items()})

    def _rates(self, request: Request) -> answers.RatesAnswer:
        """One ``target`` or ``job`` over a number of ``seconds`` that end at ``until``, by default now."""
        kind, name = named(request)
        seconds, until = number_of(request, "seconds", 3600), number_of(request, "until", 0)
        if not (min(KEPT_SECONDS) <= seconds <= MAX_SECONDS and 0 <= until < MAX_TIME):
            raise ValueError(f"a range is between 1 minute and {MAX_SECONDS // 86400} days, and ends at a time in "
                             "seconds since 1970")
        now = self._clock.now()
        since = (until or now) - seconds
        return answers.RatesAnswer(since=since, until=until or now, step_seconds=step_of(now - since), points=tuple(
            self.reader.rates.of_name(kind, name, since, until or now, now)))


def listed_rows(rows: Iterable[Row], request: Request, words: Callable[[Row], str],
                keys: Mapping[str, Callable[[Row], float | str]]) -> list[Row]:
    """The rows that a request asks for: those with its ``search`` in their words, in the order of its ``sort``.

    Sorted by a column, names come from the first, numbers from the highest; the other way round after a ``-``. Without
    an order the rows stay as they are. Raises ValueError for an unknown column.
    """
    search, order = text_of(request, "search").casefold(), text_of(request, "sort")
    found = [row for row in rows if search in words(row).casefold()]
    if not order:
        return found
    column = order.removeprefix("-")
    if column not in keys:
        raise ValueError(f"unknown column {column!r:.80}; known: {', '.join(keys)}. A - before one reverses the order")
    key = keys[column]
    numbers = bool(found) and not isinstance(key(found[0]), str)
    return sorted(found, key=key, reverse=numbers != order.startswith("-"))


def named(request: Request) -> tuple[str, str]:
    """Kind and name of the target or job of a request. Raises ValueError."""
    for kind, argument in ((TARGETS, "target"), (JOBS, "job")):
        if name := text_of(request, argument):
            if len(name) > LONGEST_LABEL_BYTES:
                raise ValueError(f"no {argument} has a name of {len(name)} characters")
            return kind, name
    raise ValueError("the request names a target or a job")


def time_rows(rows: Iterable[answers.TargetRow], times: status.Times) -> tuple[answers.TargetTimeRow, ...]:
    return tuple(status.time_row(row.target, [times[row.target]]) for row in rows if row.target in times)


def rate_rows(rates: Rates) -> tuple[answers.RateRow, ...]:
    return tuple(answers.RateRow(name, *row) for name, row in zip(rates.names, rates.numbers.tolist(), strict=True))


PLAN_SECONDS = 20.0
"""Time for which a request waits for the plan that it asks for."""


class Previews:
    """Makes the plan that ``tierctl plan`` shows, in a thread of its own: the file system may not answer.

    Safe in any thread. Requests at one time get the same plan.
    """

    def __init__(self, preview: Callable[[], Iterable[tuple[Finding, int, Plan]]],
                 wait_seconds: float = PLAN_SECONDS) -> None:
        self._preview, self._wait_seconds = preview, wait_seconds
        self._executor, self._lock = DaemonExecutor("tierd-preview", 1), threading.Lock()
        self._making: Future[tuple[answers.PlannedAnswer, ...]] | None = None

    def __call__(self) -> tuple[answers.PlannedAnswer, ...]:
        """The present plan. Raises NoAnswerError if none can be made within the time limit."""
        with self._lock:
            if self._making is None or self._making.done():
                self._making = self._executor.submit(self._make)
            making = self._making
        if not wait((making,), self._wait_seconds).done:
            raise answers.NoAnswerError(f"no plan within {self._wait_seconds:.0f} s: the file system answers slowly, "
                                        "or not at all; try again")
        if (error := making.exception()) is not None:
            raise answers.NoAnswerError(f"no plan could be made: {getattr(error, 'strerror', None) or repr(error)}")
        return making.result()

    def _make(self) -> tuple[answers.PlannedAnswer, ...]:
        return tuple(
            answers.PlannedAnswer(
                finding=status.found_case(finding, number, active=True),
                actions=tuple(map(status.action_answer, plan.actions)),
                recommended=tuple(map(status.action_answer, plan.recommended)),
                refusals=tuple(map(str, plan.refusals)))
            for finding, number, plan in self._preview())
