"""The service for one file system: the daemon with its activities, journal, control socket and port."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from httpserver.config import WebConfigFile
from httpserver.server import Server
from tierd import extensions
from tierd.act.applications import ApplicationStore, Preparer
from tierd.act.dispatch import Dispatch
from tierd.act.gate import OUTCOME_WAIT_SECONDS, Gate
from tierd.act.guard import OptOut, SiteGuard
from tierd.act.journal.connection import JournalError, JournalFile, JournalLock, journal_errors
from tierd.act.journal.entry import Stamp
from tierd.act.journal.writer import Journal
from tierd.act.limits import BackgroundPace, Budget, CircuitBreaker
from tierd.act.operating_state import MaintenanceGuard
from tierd.act.orders import OrderInbox, out_of_date_refusal
from tierd.act.queue import BATCH_MOVES, BATCH_MOVES_PER_THREAD
from tierd.act.staging import Stager, StagingStore
from tierd.act.undo import Undo, close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.config.scopes import below
from tierd.config.settings import Settings
from tierd.daemon import status, web
from tierd.daemon.activities import FILESYSTEM_AWAY, Activities, Activity, Spawn
from tierd.daemon.answers import Json, to_json
from tierd.daemon.changes import CHANGING_REQUESTS, SCHEDULER_REQUESTS, ChangingRequests, SchedulerRequests
from tierd.daemon.control import ControlServer
from tierd.daemon.curves import Sampler
from tierd.daemon.loop import ACT_SECONDS, FACTS_SECONDS, OUTCOME_SECONDS, Daemon, Memory
from tierd.daemon.metrics import MetricsContext, registry
from tierd.daemon.node import DaemonParts, Node
from tierd.daemon.requests import Previews, ReadingRequests, handled
from tierd.daemon.status import StatusSnapshot
from tierd.daemon.systemd import BEAT_SECONDS, heartbeat
from tierd.daemon.users import UserNames
from tierd.refusal import Reason, Refusal
from tierd.sense.changelogs.follow import ChangelogClearing, Follower
from tierd.sense.changelogs.tally_source import TallySource
from tierd.sense.sources import SourceParts, Sources
from tierd.sense.space import PoolMedia
from tierd.text import count_of, printable, quoted

if TYPE_CHECKING:  # a tierd that works alone needs nothing of it
    from tierd.cluster.leader import Candidate

log = logging.getLogger("tierd.daemon")
STOP_WAITS = 20
"""Waits of ``OUTCOME_WAIT_SECONDS`` for files that movers are moving when tierd stops. A choice."""
UNFINISHED_WAITS = 100
"""Tenths of a second to wait for a move that a killed tierd began. It ends in one, unless a server hangs. A choice."""


def build_gate(settings: Settings, node: Node, journal: Journal, dispatch: Dispatch | None = None,
               media: PoolMedia | None = None) -> tuple[Gate, Undo]:
    """Build the gate with its budget, breaker and guard. Undo obeys the pause file and the guard too.

    ``dispatch`` hands moves over to movers on other nodes. Undo moves files back in this process.
    """
    filesystem, clock = node.filesystem, node.clock
    opt_out = OptOut(filesystem, clock, settings.act.without_user_xattr)
    guard = SiteGuard(settings, opt_out, node.claim, clock, (media or PoolMedia(())).rotating,
                      approved=lambda key: gate.approvals.approved(key))  # noqa: PLW0108 -- the gate is made below
    maintenance = MaintenanceGuard(settings.act.pause_file, settings.act.windows)
    gate = Gate(
        filesystem, node.mover, Budget(settings.limits, clock.now()), CircuitBreaker(), journal,
        clock=clock, dry_run=settings.act.dry_run, guard=guard, maintenance=maintenance, executor=node.executor,
        batch=max(BATCH_MOVES, BATCH_MOVES_PER_THREAD * settings.movers.at_once), dispatch=dispatch,
        pace=BackgroundPace(settings.limits.max_stream_loss, settings.drain.max_stream_loss))
    dry_run = (Refusal(Reason.DRY_RUN, "a dry run changes nothing; set dry_run = false in [act] to undo acts")
               if settings.act.dry_run else None)
    undo = Undo(filesystem, node.mover, journal, clock,
                lambda: dry_run or maintenance.pause_file_refusal() or guard.blocked_by(),
                trip=gate.operating_state.trip)
    return gate, undo


class Service:
    """The daemon for one file system with its journal and control socket. It runs from construction to ``close``."""

    def __init__(self, settings: Settings, node: Node, web_config: WebConfigFile | None = None,
                 cluster: Candidate | None = None) -> None:
        """``cluster`` copies the journal to followers and hands moves over to movers on other nodes."""
        self._settings, self.node, self._web_config, self._cluster = settings, node, web_config, cluster
        self._clock = node.clock
        self._users = UserNames(node.user_name, clock=node.clock, scheduler=lambda names: {
            name: job.words for name, job in self.sources.jobs(names).items()})
        self._view, self._publishing = StatusSnapshot(), Lock()
        self._closing = ExitStack()
        self.web: Server | None = None
        try:
            # the start checks every open act, which may take longer than the claim of a leader lasts
            with journal_errors(settings.act.journal), heartbeat(self.renew, BEAT_SECONDS):
                self._open_journal()
                self._build_gate()
                self._close_unfinished()  # before the daemon: cases are opened again by acts in force
                self._open_sources()
                self._build_daemon()
                self._take_orders()
                self.activities = self._made_activities()
                self.gate.on_queued = self._wake_acts
                self._answer_requests()
                self._listen()
                self._resume()
            self._closing.callback(self._stop)  # the last in is the first out: threads end before their journal
        except BaseException:  # release locks and ports for a service with other settings
            self.close()
            raise

    def _open_journal(self) -> None:
        path = Path(self._settings.act.journal)
        if self.node.executor is not None:  # each reload has one of its own
            self._closing.callback(self.node.executor.shutdown, wait=False, cancel_futures=True)
        # taken before the journal is opened, and released after it is closed
        self._closing.callback(JournalLock(path).close)
        self.journal = Journal(path, copied=self._cluster is not None)
        self._closing.callback(self.journal.close)
        self._file = JournalFile(path)
        if self.journal.new:
            log.warning("created a new journal, %s: it cannot undo acts that were done before", quoted(str(path)))

    def _build_gate(self) -> None:
        dispatch: Dispatch | None = None
        if self._cluster is not None:
            dispatch = self._cluster.attach(self.journal, self.node.filesystem, self._settings)
            self._closing.callback(self._cluster.detach)
        self._media = PoolMedia(self._settings.resolved_scopes.pool_pairs)
        self.gate, self._undo = build_gate(self._settings, self.node, self.journal, dispatch, self._media)

    def _open_sources(self) -> None:
        settings, node, dry_run = self._settings, self.node, self._settings.act.dry_run
        self.sources = Sources(SourceParts(
            settings=settings, filesystem=node.filesystem, read=node.read, mdts=node.mdts,
            positions=self.journal.positions(), clock=node.clock, environment=os.environ,
            inbox=self._cluster.tally_inbox(settings) if self._cluster is not None else None))
        self._closing.callback(self.sources.close)
        self._closing.callback(node.claim.release)
        self._clear: Callable[[], None] = lambda: None
        """Clears the records of changelogs that this process reads."""
        follower = self.sources.follower
        self._tallies = follower if isinstance(follower, TallySource) else None
        """Tallies of changelog readers; None if this process reads the changelogs itself."""
        if isinstance(follower, Follower) and node.clear_changelog is not None and not dry_run:
            clear = self.sources.timed_calls.clearing(node.clear_changelog)
            clearing = ChangelogClearing(clear, settings.sense.readers, node.clock, node.filesystem.fsname)
            self._clear = lambda: clearing(follower, follower.positions)

    def _build_daemon(self) -> None:
        sources = self.sources
        self.daemon = Daemon(DaemonParts(
            node=self.node, settings=self._settings, source=sources.live, gate=self.gate, undo=self._undo,
            journal=self.journal, media=self._media, history=sources.history, enriched=sources.enriched,
            job_nodes=lambda names: {
                name: job.nodes for name, job in sources.jobs(names).items() if job.nodes is not None}))
        self._extensions = extensions.started(self.daemon, self._whose_jobs)
        for extension in self._extensions:
            self._closing.callback(extension.close)
        self._sampler = Sampler(self.journal, self.journal.reader)

    def _take_orders(self) -> None:
        settings, filesystem, clock = self._settings, self.node.filesystem, self._clock
        self._inbox = OrderInbox(self.journal.db, lambda: Stamp(filesystem.fsname, settings.act.dry_run, clock.now()))
        self._stagings = StagingStore(self.journal.db)
        self._applications = ApplicationStore(self.journal.db)
        self._stager = Stager(self.gate, self._stagings, filesystem, settings, clock,
                              user_of=self.node.rights_of, queue_order=self.daemon.remediations.queue_order)

    def _close_unfinished(self) -> None:
        fids = [str(entry.fid) for entry in self.journal.unfinished()]
        engines_ended = any(not self.node.works_on(fids) or self._clock.wait(0.1) for _ in range(UNFINISHED_WAITS))
        self._close_examined(None, again=engines_ended)

    def _close_examined(self, only: Collection[int] | None, *, again: bool) -> None:
        """Close acts of the run before, as far as their files can be examined now."""
        found = list(close_unfinished(self.journal, self.node.filesystem, self._clock.now(), only, again=again))
        self._unexamined = {entry.id for entry, outcome, _ in found if outcome == Outcome.UNDER_WAY}
        if only is None:
            self.gate.queue.earlier = {move.path: move for move in self.journal.queue.all()}
        for entry, outcome, detail in found:
            if entry.id not in self._unexamined or only is None:
                log.warning("found unfinished: %s of %s: %s: %s", entry.kind, quoted(entry.place), outcome, detail)
            if (entry.kind, outcome) == (ActKind.MIGRATE, Outcome.INTERRUPTED) and (
                    entry.place not in self.gate.queue.earlier):
                self.gate.not_requeued["tierd ended during the move (tierctl history --outcome interrupted)"] += 1

    def _resume(self) -> None:
        filesystem, now = self.node.filesystem, self._clock.now()
        for order, why in self._inbox.reload(
                lambda stamp: out_of_date_refusal(stamp, filesystem.fsname, self._settings, now)):
            self.gate.not_requeued[why.sentence] += 1
            log.info("not requeued after a restart: %s: %s", order.what, why)
        if self.gate.waiting or len(self._inbox):
            log.info("found %s queued before the start: tierd checks each again before it acts", self._queued())

    def _answer_requests(self) -> None:
        daemon, parts, reader = self.daemon, self.daemon.parts, self.journal.reader
        preparer = Preparer(self.gate, self._applications, self.node.filesystem, self._settings,
                            daemon.remediations.queue_order)
        view = self.reading = ReadingRequests(
            lambda: self._view, daemon, reader, self._users, waiting_orders=self._inbox.__len__,
            sources=self.sources.ages, activities=lambda: self.activities.all, previews=Previews(daemon.preview),
            tallies=self._tallies)
        self._changing = ChangingRequests(view, daemon, self._inbox, publish=self._publish, resumed=self._wake_acts)
        self._requests = {
            **view.requests, **self._changing.requests,
            **SchedulerRequests(parts, self._stager, self._stagings, preparer=preparer, applications=self._applications,
                                wake=lambda: self.activities.wake("plan")).requests,
            **{name: answer for extension in self._extensions for name, answer in extension.requests.items()}}

    def _queued(self) -> str:
        return f"{count_of(self.gate.waiting, 'move')} and {count_of(len(self._inbox), 'order')}"

    def answer(self, request: Json) -> Json:
        """The answer to a request of the control socket or of the page. Raises ValueError and NoAnswerError."""
        return to_json(handled(self._requests, request))

    def _listen(self) -> None:
        """Open the control socket and the port. Raises OSError if either is in use."""
        settings = self._settings
        control = ControlServer(settings.act.socket, self.answer, settings.control, CHANGING_REQUESTS,
                                SCHEDULER_REQUESTS)
        self._closing.callback(control.close)
        if not settings.web.enabled:
            return
        beside = MetricsContext(
            fs=self.node.filesystem.fsname, positions=lambda: self.sources.follower.positions,
            cases=lambda: self._view.cases,
            activities=lambda: self.activities.all, sources=self.sources.ages, web_config=self._web_config,
            integrations=self.sources.integrations, extensions=self._extensions, tallies=self._tallies,
            stager=self._stager)
        metrics = registry(self.daemon, beside)
        users = settings.web.change_users if self._web_config is not None else ()
        app = web.App(metrics, self.answer, self.activities.alive, self.node.nudge, users,
                      posted={f"/-/{name}": answer for each in self._extensions
                              for name, answer in each.posted.items()})
        try:
            self.web = web.listen(settings.web, app, self._web_config)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: choose another web.port, or web.address",
                          f"{settings.web.address}:{settings.web.port}") from error
        self._closing.callback(self.web.close)
        log.info("listening on %s:%d%s", settings.web.address, self.web.port,
                 " with TLS" if self.web.config().tls else "")

    def take_over(self, memory: Memory) -> None:
        self.daemon.take_over(memory)
        self._publish()

    def _made_activities(self) -> Activities:
        """The activities in the order of one cycle. :meth:`cycle` always runs the one that reads the counters."""
        daemon, gate = self.daemon, self.gate

        def each_cycle() -> float:
            return self._settings.sense.cycle_seconds

        def act_pause_seconds(waiting: int) -> float:
            """Retry acts that wait for a limit often. New acts, and the end of a pause, wake the activity."""
            return ACT_SECONDS if waiting and not gate.operating_state.paused else each_cycle()

        def activity(name: str, doing: str, step: Callable[[], object], pause: Callable[[], float], *,
                     acts: bool = False, driven: bool = False,
                     explain: Callable[[], str] = lambda: FILESYSTEM_AWAY) -> Activity:
            def published() -> None:
                step()
                self._publish()

            return Activity(name, doing, published, pause, self._clock, acts=acts, driven=driven, explain=explain)

        def observe() -> None:
            daemon.observe()
            self.activities.wake("plan")  # with the findings of this reading

        return Activities([
            activity("records", "reading changelogs", self.take_in_records, each_cycle,
                     explain=self.records_wait_for),
            activity("observe", "reading the counters", observe, each_cycle, driven=True),
            activity("facts", "reading clients, free space and layouts", self._gather_facts, lambda: FACTS_SECONDS),
            activity("plan", "planning", self._plan, each_cycle),
            activity("default-layouts", "setting default layouts", daemon.set_defaults,
                     lambda: act_pause_seconds(len(gate.default_layouts)), acts=True),
            # outcomes of movers on other nodes are processed at once
            activity("move", "moving files", self._move,
                     lambda: OUTCOME_SECONDS if gate.under_way else act_pause_seconds(gate.waiting), acts=True),
            activity("judge", "judging", self._judge, each_cycle, acts=True),
            activity("journal", "recording rates, and removing old records from the journal", self._keep_journal,
                     lambda: self.journal.retention.pause_seconds(self._clock.now())),
        ], self._settings, self._clock, lambda: daemon.counters.last_cycle_at)

    def _wake_acts(self) -> None:
        self.activities.wake("default-layouts", "move")

    def _publish(self) -> None:
        with self._publishing:  # else an older snapshot could replace that of another thread
            self._view = status.snapshot_of(self.daemon)
        jobs = status.jobs_of(self._view.findings.values())
        self._users.names(jobs)  # so that the first answer has them
        mount = self._settings.filesystem.mount.rstrip("/")
        self._applications.remember(self.sources.jobs(jobs), partial(below, mount), self._clock.now())

    def _whose_jobs(self, names: Iterable[str]) -> dict[str, tuple[str, str]]:
        jobs = self.sources.jobs(names)
        users = self._users.names(name for name in names if name not in jobs)
        return {name: (user.partition(" (")[0], "") for name, user in users.items()} | {
            name: (job.user, job.account) for name, job in jobs.items()}

    def start(self, spawn: Spawn | None = None) -> None:
        """Run the activities in threads of their own. Then :meth:`cycle` only reads the counters.

        ``spawn`` runs an activity repeatedly in another way, for example in virtual time for a test.
        """
        self.daemon.facts.in_background = True  # policies never wait for it
        self.activities.start(spawn)

    def cycle(self) -> str:
        """Run one step of the activities that have no thread. Returns a sentence about the state for systemd.

        Raises JournalError and any error of an activity. The caller must then close the service.
        """
        with journal_errors(self._settings.act.journal):
            self._file.check()
            self.activities.run()
        return printable(status.cycle_sentence(self._view, self.daemon))

    def take_in_records(self) -> None:
        """Read changelogs and other sources, and store the positions in the journal."""
        self.sources.refresh()
        self.daemon.take_in_records()
        self._keep_positions()

    def records_wait_for(self) -> str:
        """What a long step of :meth:`take_in_records` waits for."""
        return self.sources.timed_calls.under_way() or (
            f"{self.daemon.table.records_read:,} records were read, and no changelog is being waited for: "
            "tierd looks up paths of directories slowly")

    def _gather_facts(self) -> None:
        if self.activities.concurrent:
            self.daemon.facts.gather(self._clock.now())

    def _plan(self) -> None:
        self._changing.take_in()
        self._stager.plan()
        self.daemon.plan()

    def _move(self) -> None:
        self.daemon.move(self._settings.sense.cycle_seconds / 2)
        self._stager.follow()

    def _judge(self) -> None:
        if self._unexamined:
            self._close_examined(self._unexamined, again=False)
        self.daemon.judge()
        self.gate.operating_state.store()
        for extension in self._extensions:
            extension.step()
        self._publish_journal()

    def _publish_journal(self) -> bool:
        """Let followers have all changes up to now. Returns whether they can; without NATS they get them later."""
        try:
            self.journal.publish()
        except JournalError:
            raise
        except OSError:
            return False  # status and metrics show it
        return True

    def _keep_journal(self) -> None:
        keep_seconds, view = self._settings.journal.keep_seconds, self._view
        self._sampler.record(self.daemon, view.cases, self._clock.now())
        in_use = {*view.findings, *(case.finding for case in view.cases),
                  *(drain.finding for drain in self.daemon.drains.all)}
        # while a directory cools down, its acts are needed
        self.journal.remove_old(self._clock.now(), keep_seconds and max(
            keep_seconds, self._settings.verify.cooldown_seconds), in_use)

    def renew(self) -> None:
        """Renew the claim. It waits for as long as the file system does not answer."""
        self.node.claim.renew()

    def beat(self) -> bool:
        """False if a cycle hangs. It never waits for the file system."""
        self.activities.check()
        return not self.activities.hung()

    def _keep_positions(self) -> None:
        self.journal.set_positions(self.sources.follower.positions)
        copied = self._publish_journal()
        # only now: a restart, or a standby, reads again from the stored positions
        self._clear()
        if self._tallies is not None and copied:
            with suppress(OSError):  # the next cycle does it again; receiving tallies reports the problem
                self._tallies.acknowledge()

    def close(self) -> None:
        """Stop answering and close the journal, which keeps the queue.

        An act that another thread carries out ends first. An earlier message named a journal that cannot be written.
        """
        with suppress(JournalError), journal_errors(self._settings.act.journal):
            self._closing.close()

    def _stop(self) -> None:
        self.gate.stop()
        with heartbeat(self.renew, BEAT_SECONDS):  # an act under way ends first, and no other tierd may begin meanwhile
            self.activities.stop()
            # what movers on other nodes have not begun waits for the next start, which would find it unfinished
            for _ in range(STOP_WAITS):
                self.gate.attend(OUTCOME_WAIT_SECONDS)
                if not self.gate.under_way or self.gate.dispatch.trouble():
                    break
        if self.gate.waiting or len(self._inbox):
            lost = count_of(self.gate.not_persisted, "move") if self.gate.not_persisted else ""
            log.info("queued: %s; the journal keeps them for the next start%s", self._queued(),
                     f", except {lost}: lost" if lost else "")
