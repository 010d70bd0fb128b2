"""The service for one file system: the daemon with its activities, journal, control socket and port."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from httpserver.config import WebConfigFile
from httpserver.serving import BackgroundServer, uses_tls
from lustre.background import DaemonExecutor
from lustre.creation import NoObjectCreation, ObjectCreation
from lustre.filesystem import Filesystem
from tierd.act.applications import ApplicationStore, Preparer
from tierd.act.background import BackgroundPace
from tierd.act.claim import FilesystemClaim, NoClaim
from tierd.act.dispatch import Dispatch
from tierd.act.gate import Gate
from tierd.act.guard import SiteGuard
from tierd.act.journal.connection import JournalError, JournalFile, JournalLock, journal_errors
from tierd.act.journal.queue_store import Stamp
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.moves import Mover
from tierd.act.operating_state import MaintenanceGuard
from tierd.act.opt_out import OptOut
from tierd.act.orders import OrderInbox
from tierd.act.queue import BATCH_MOVES, BATCH_MOVES_PER_THREAD
from tierd.act.recovery import close_unfinished, out_of_date_refusal
from tierd.act.staging import Stager, StagingStore
from tierd.act.undo import Undo
from tierd.act.user_rights import User, Users
from tierd.clock import Clock
from tierd.config.scopes import below
from tierd.config.settings import Settings
from tierd.daemon import status, web
from tierd.daemon.activities import FILESYSTEM_AWAY, Activities, Activity, Liveness, Spawn
from tierd.daemon.answers import Json, to_json
from tierd.daemon.control import ControlServer
from tierd.daemon.curves import CurveSampler
from tierd.daemon.loop import ACT_SECONDS, FACTS_SECONDS, OUTCOME_SECONDS, Daemon, Memory
from tierd.daemon.metrics import MetricsContext, registry
from tierd.daemon.previews import Previews
from tierd.daemon.requests import (
    CHANGING_REQUESTS,
    SCHEDULER_REQUESTS,
    ChangingRequests,
    DrainRequests,
    OrderIntake,
    ReadingRequests,
    RequestHandler,
    SchedulerRequests,
)
from tierd.daemon.status import StatusPublisher, StatusView
from tierd.daemon.users import UserNames, name_of
from tierd.model import SiteFacts
from tierd.refusal import Refusal
from tierd.sense import space
from tierd.sense.changelogs.clearing import ChangelogClearing
from tierd.sense.changelogs.follow import Follower
from tierd.sense.changelogs.recording import MakeMark
from tierd.sense.changelogs.tally_source import TallyInbox, TallySource
from tierd.sense.facts import ClientSource, DiskSource, no_job_nodes
from tierd.sense.media import PoolMedia
from tierd.sense.readings import Reading
from tierd.sense.slurm import SlurmJobs
from tierd.sense.slurm import reader as slurm_reader
from tierd.sense.sources import Sources
from tierd.text import count_of, printable, quoted


def build_gate(
    settings: Settings,
    filesystem: Filesystem,
    mover: Mover,
    journal: Journal,
    claim: FilesystemClaim,
    clock: Clock,
    executor: Executor | None = None,
    dispatch: Dispatch | None = None,
    media: PoolMedia | None = None,
) -> tuple[Gate, Undo]:
    """Build the gate with its budget, breaker and guard. Undo obeys the pause file and the guard too.

    ``dispatch`` hands moves over to movers on other nodes. Undo moves files back in this process.
    """
    rotating = (media or PoolMedia(())).rotating
    guard = SiteGuard(settings, OptOut(filesystem, clock, settings.act.without_user_xattr), claim, clock, rotating)
    maintenance = MaintenanceGuard(settings.act.pause_file, settings.act.windows)
    gate = Gate(
        filesystem,
        mover,
        Budget(settings.limits, clock.now()),
        CircuitBreaker(settings.breaker),
        journal,
        clock,
        settings.act.dry_run,
        guard,
        maintenance,
        executor,
        settings.act.default_layouts_per_second,
        max(BATCH_MOVES, BATCH_MOVES_PER_THREAD * settings.movers.at_once),
        dispatch,
        BackgroundPace(settings.limits.max_stream_loss, settings.drain.max_stream_loss),
    )
    undo = Undo(filesystem, mover, journal, clock, lambda: maintenance.pause_file_refusal() or guard.blocked_by())
    return gate, undo


def requeue_after_restart(gate: Gate, inbox: OrderInbox, fsname: str, settings: Settings, now: float) -> Iterator[str]:
    """Requeue the orders of before the restart. Returns a log line for each that is refused, and a summary."""
    for order, why in inbox.reload(lambda stamp: out_of_date_refusal(stamp, fsname, settings, now)):
        gate.not_requeued[why.sentence] += 1
        yield f"not requeued after a restart: {order.what}: {why}"
    if gate.waiting or len(inbox):
        yield (f"found {count_of(gate.waiting, 'move')} and {count_of(len(inbox), 'order')} queued before the start: "
               "tierd checks each again before it acts")


def waiting_at_stop(gate: Gate, inbox: OrderInbox) -> str:
    """The log line for the queue that the journal keeps for the next start; "" for an empty queue."""
    if not (gate.waiting or len(inbox)):
        return ""
    lost = f", except {count_of(gate.not_persisted, 'move')}: lost" if gate.not_persisted else ""
    return (f"queued: {count_of(gate.waiting, 'move')} and {count_of(len(inbox), 'order')}; the journal keeps them for "
            f"the next start{lost}")


class Service:
    """The daemon for one file system with its journal and control socket. It runs from construction to ``close``."""

    def __init__(
        self,
        settings: Settings,
        filesystem: ClearingFilesystem,
        mover: Mover,
        read: Callable[[], Reading],
        mdts: Sequence[str],
        clock: Clock,
        say: Callable[[str], None],
        nudge: Callable[[], None] = lambda: None,
        claim: FilesystemClaim | None = None,
        clients: ClientSource | None = None,
        own_nids: Callable[[], Collection[str]] = tuple,
        site_facts: Callable[[], SiteFacts] = SiteFacts,
        unnamed: Callable[[], str] = str,
        mark: MakeMark | None = None,
        executor: Executor | None = None,
        web_config: WebConfigFile | None = None,
        cluster: Cluster | None = None,
        user_name: Callable[[int], str] = name_of,
        creation: ObjectCreation | None = None,
        rights_of: Callable[[int, int], User | Refusal] | None = None,
        disks: DiskSource | None = None,
    ) -> None:
        """``executor`` runs several file system requests at the same time. The service shuts it down.

        ``cluster`` copies the journal to followers and hands moves over to movers on other nodes.
        ``user_name`` returns the account name of a user id, or "" for an unknown id. It may hang.
        ``creation`` sets the limits of new objects on OSTs, where this node serves MDTs.
        ``rights_of`` returns the user of a job with all groups; None asks this machine's user database.
        """
        self._creation = creation or NoObjectCreation()
        self._disks = disks
        self._settings = settings
        self._cluster = cluster
        self._mark = mark
        self._clock = clock
        self._filesystem = filesystem
        spoken, say = say, lambda sentence: spoken(printable(sentence))  # job ids and names may hold anything
        self._say = say
        self._slurm = (SlurmJobs(settings.sense.slurm, slurm_reader(settings.sense.slurm, os.environ), clock)
                       if settings.sense.slurm.source else None)
        self._users = UserNames(user_name, clock=clock, scheduler=self._slurm.words if self._slurm else lambda _: {})
        self._rights_of = rights_of or Users()
        self._publisher = StatusPublisher()
        self._open = True
        self._closing = ExitStack()
        self._claim = claim or NoClaim()
        self._web_config = web_config
        self.web: BackgroundServer | None = None
        try:
            with journal_errors(settings.act.journal):
                self._start(filesystem, mover, read, mdts, nudge, clients, own_nids, site_facts, unnamed, executor)
        except BaseException:  # release locks and ports for a service with other settings
            self._closing.close()
            raise

    def _start(self, filesystem: ClearingFilesystem, mover: Mover, read: Callable[[], Reading], mdts: Sequence[str],
               nudge: Callable[[], None], clients: ClientSource | None, own_nids: Callable[[], Collection[str]],
               site_facts: Callable[[], SiteFacts], unnamed: Callable[[], str],
               executor: Executor | None) -> None:
        """Build the parts. Close unfinished acts of the journal, and requeue what was queued."""
        settings, clock, say = self._settings, self._clock, self._say
        if executor is not None:  # each reload has one of its own
            self._closing.callback(executor.shutdown, wait=False, cancel_futures=True)
        Path(settings.act.journal).parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._closing.callback(JournalLock(Path(settings.act.journal)).close)
        self._journal = Journal(Path(settings.act.journal), copied=self._cluster is not None)
        self._closing.callback(self._journal.close)
        self._file = JournalFile(Path(settings.act.journal))
        if self._journal.new:
            say(f"created a new journal, {quoted(settings.act.journal)}: it cannot undo acts that were done before")
        dispatch: Dispatch | None = None
        if self._cluster is not None:
            dispatch = self._cluster.attach(self._journal, filesystem, settings)
            self._closing.callback(self._cluster.detach)
        media = PoolMedia(settings.resolved_scopes.pool_pairs)
        gate, undo = build_gate(settings, filesystem, mover, self._journal, self._claim, clock, executor, dispatch,
                                media)
        self._gate = gate
        self._sources = Sources(settings.sense, settings.filesystem.mount, read, filesystem, mdts,
                                self._journal.positions(), clock, os.environ, settings.resolved_scopes.flash_pools,
                                None if settings.act.dry_run else self._mark, lambda: self._claim.generation > 0,
                                self._cluster.tally_inbox(settings) if self._cluster is not None else None,
                                settings.reader)
        self._closing.callback(self._sources.close)
        self._closing.callback(self._claim.release)
        follower = self._sources.follower
        clear = self._sources.timed_calls.clearing(filesystem.clear_changelog)
        self._clearing = (ChangelogClearing(clear, settings.sense.readers, follower, clock, say, filesystem.fsname)
                          if isinstance(follower, Follower) and not settings.act.dry_run else None)
        self._daemon = Daemon(self._sources.live, filesystem, gate, undo, self._journal, clock, settings, say,
                              self._claim, clients, len(mdts), self._sources.enriched, own_nids, site_facts,
                              lambda directory: self._sources.coldest_first(directory, filesystem),
                              self._sources.history, unnamed, executor, media, self._creation,
                              self._disks, self._slurm.nodes if self._slurm is not None else no_job_nodes)
        self._curve_sampler = CurveSampler(self._journal, lambda: space.capacity(filesystem, ()))
        self._inbox = OrderInbox(Path(settings.act.journal),
                            lambda: Stamp(filesystem.fsname, settings.act.dry_run, clock.now()))
        self._closing.callback(self._inbox.close)
        self._intake = OrderIntake(self._daemon, gate, self._inbox, filesystem, settings, clock)
        self._stagings = StagingStore(self._journal.db)
        self._applications = ApplicationStore(self._journal.db)
        self._slurm_problem = ""
        self._stager = Stager(gate, self._stagings, filesystem, settings, clock, self._rights_of,
                              self._daemon.queue_order)
        self.activities = self._made_activities()
        gate.on_queued = self._wake_acts
        self._liveness = Liveness(self.activities.driven_since, lambda: self._daemon.counters.last_cycle_at, settings,
                                  clock)
        self._handler = self._request_handler()
        self._listen(settings, undo, nudge)
        for entry, outcome, detail in close_unfinished(self._journal, filesystem, clock.now()):
            say(f"found unfinished: {entry.kind} of {quoted(entry.place)}: {outcome}: {detail}")
        for sentence in requeue_after_restart(gate, self._inbox, filesystem.fsname, settings, clock.now()):
            say(sentence)

    def _request_handler(self) -> RequestHandler:
        """The handler for requests of the control socket and of the page."""
        settings, reader = self._settings, JournalReader(Path(self._settings.act.journal))
        view = StatusView(self._publisher, self._daemon, self._gate, settings, self._clock, self._inbox.__len__,
                          self._sources.states, lambda: self.activities.states, self._users, self._filesystem.fsname)
        drains = DrainRequests(self._daemon.drains, self._gate, reader, self._clock, settings)
        executor = DaemonExecutor("tierd-preview", 1)
        previews = Previews(self._daemon, self._clock, lambda make: (
            executor.submit(make) if self.activities.concurrent else make()))
        looking = ReadingRequests(view, previews, reader, settings, self._clock, drains, self._tallies)
        changing = ChangingRequests(view, self._gate, self._daemon.undoing, self._journal, settings, self._publish,
                                    self._filesystem, self._inbox, self._intake.made, drains, self._wake_acts)
        preparer = Preparer(self._gate, self._applications, self._filesystem, settings, self._daemon.queue_order)
        scheduler = SchedulerRequests(self._stager, self._stagings, preparer, self._applications, self._gate, settings,
                                      self._clock, lambda: self.activities.wake("plan"))
        return RequestHandler(looking, changing, scheduler)

    def _answer(self, request: Json) -> Json:
        return to_json(self._handler(request))

    def _listen(self, settings: Settings, undo: Undo, nudge: Callable[[], None]) -> None:
        """Open the control socket and the port. Raises OSError if either is in use."""
        control = ControlServer(settings.act.socket, self._answer, settings.control.access, CHANGING_REQUESTS,
                                staging=SCHEDULER_REQUESTS)
        self._closing.callback(control.close)
        if settings.web.enabled:
            beside = MetricsContext(
                fs=self._filesystem.fsname, claim=self._claim, journal_bytes=self._journal.size_bytes,
                positions=lambda: self._sources.follower.positions, under_way_seconds=self._under_way_seconds,
                web_config=self._web_config, powerflex=self._sources.powerflex, tallies=self._tallies,
                slurm=self._slurm, stager=self._stager)
            metrics = registry(self._daemon, self._gate, undo, settings, self._sources.states, beside)
            users = settings.web.change_users if self._web_config is not None else ()
            app = web.App(metrics, self._answer, self._liveness.alive, nudge, self._publisher.changes, users)
            self._closing.callback(self._publisher.changes.close)
            try:
                self.web = web.listen(settings.web, app, self._web_config)
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror}: choose another web.port, or web.address",
                              f"{settings.web.address}:{settings.web.port}") from error
            self._closing.callback(self.web.close)
            self._say(f"listening on {settings.web.address}:{self.web.port}"
                      + (" with TLS" if uses_tls(self._web_config) else ""))

    @property
    def _tallies(self) -> TallySource | None:
        """Tallies of changelog readers; None if this process reads the changelogs itself."""
        follower = self._sources.follower
        return follower if isinstance(follower, TallySource) else None

    @property
    def memory(self) -> Memory:
        """What was seen so far, for the service that replaces this one."""
        return self._daemon.memory

    def take_over(self, memory: Memory) -> None:
        """Continue where the service before ended."""
        self._daemon.take_over(memory)
        self._publish()

    def _made_activities(self) -> Activities:
        """The activities in the order of one cycle. :meth:`cycle` always runs the one that reads the counters."""
        daemon, gate = self._daemon, self._gate

        def each_cycle() -> float:
            return self._settings.sense.cycle_seconds

        def while_some(waiting: Callable[[], int]) -> Callable[[], float]:
            """Retry acts that wait for a limit often. New acts, and the end of a pause, wake the activity."""
            return lambda: ACT_SECONDS if waiting() and not gate.operating_state.paused else each_cycle()

        def activity(name: str, doing: str, step: Callable[[], object], pause: Callable[[], float], *,
                     acts: bool = False, driven: bool = False,
                     explain: Callable[[], str] = lambda: FILESYSTEM_AWAY) -> Activity:
            def published() -> None:
                step()
                self._publish()

            return Activity(name, doing, published, pause, self._clock, acts=acts, driven=driven, explain=explain)

        return Activities([
            activity("records", "reading changelogs", self._take_in_records, each_cycle,
                     explain=self._records_wait_for),
            activity("observe", "reading the counters", daemon.observe, each_cycle, driven=True),
            activity("facts", "reading clients, free space and layouts", self._gather_facts, lambda: FACTS_SECONDS),
            activity("plan", "planning", self._plan, each_cycle),
            activity("default-layouts", "setting default layouts", daemon.set_defaults,
                     while_some(lambda: gate.waiting_defaults), acts=True),
            activity("move", "moving files", self._move, self._move_pause_seconds, acts=True),
            activity("judge", "judging", self._judge, each_cycle, acts=True),
            activity("journal", "removing old records from the journal", self._remove_old,
                     lambda: self._journal.retention.pause_seconds(self._clock.now())),
        ], self._settings.act.journal, self._clock, self._say)

    def _move_pause_seconds(self) -> float:
        """Retry moves that wait for a limit often. Outcomes of movers on other nodes are taken in at once."""
        if self._gate.under_way:
            return OUTCOME_SECONDS
        some = self._gate.waiting and not self._gate.operating_state.paused
        return ACT_SECONDS if some else self._settings.sense.cycle_seconds

    def _wake_acts(self) -> None:
        self.activities.wake("default-layouts", "move")

    def _under_way_seconds(self) -> dict[str, float]:
        now = self._clock.now()
        return {state.name: max(0.0, now - state.begun_at) if state.begun_at else 0.0
                for state in self.activities.states}

    def _publish(self) -> None:
        self._publisher.publish(self._daemon, self._gate)
        jobs = status.jobs_of(self._publisher.view.findings)
        self._users.names(jobs)  # so that the first answer has them
        if self._slurm is not None:
            self._remember_jobs(self._slurm, jobs)

    def _remember_jobs(self, slurm: SlurmJobs, jobs: Sequence[str]) -> None:
        """Store what Slurm says about jobs of findings, for their next runs. Log a problem of Slurm once."""
        mount = self._settings.filesystem.mount.rstrip("/")
        self._applications.remember(slurm.jobs(jobs), partial(below, mount), self._clock.now())
        if slurm.problem != self._slurm_problem:
            self._slurm_problem = slurm.problem
            self._say(f"names of jobs cannot be read: {slurm.problem}" if slurm.problem else "Slurm answers again")

    def start(self, spawn: Spawn | None = None) -> None:
        """Run the activities in threads of their own. Then :meth:`cycle` only reads the counters.

        ``spawn`` runs an activity repeatedly in another way, for example in virtual time for a test.
        """
        self._daemon.gather_facts_beforehand()
        self.activities.start(spawn)

    def cycle(self) -> str:
        """Run one step of the activities that have no thread. Returns a sentence about the state for systemd.

        Raises JournalError and any error of an activity. The caller must then close the service.
        """
        with journal_errors(self._settings.act.journal):
            self._file.check()
            self.activities.run()
        return printable(status.cycle_sentence(self._publisher.view, self._gate))

    def _take_in_records(self) -> None:
        """Read changelogs and other sources, and store the positions in the journal."""
        self._sources.refresh()
        self._daemon.take_in_records()
        self._keep_positions()

    def _records_wait_for(self) -> str:
        """What a long step of :meth:`_take_in_records` waits for."""
        return self._sources.timed_calls.under_way() or (
            f"{self._daemon.records_taken_in:,} records were taken in, and no MDT owes an answer about its changelog: "
            "paths of directories are looked up, or directories listed again, slowly")

    def _gather_facts(self) -> None:
        if self.activities.concurrent:
            self._daemon.gather_facts()

    def _plan(self) -> None:
        self._intake.take_in()
        self._stager.plan()
        self._daemon.plan()

    def _move(self) -> None:
        self._daemon.move(self._settings.sense.cycle_seconds / 2)
        self._stager.follow()

    def _judge(self) -> None:
        self._daemon.judge()
        self._gate.operating_state.store()
        self._publish_journal()
        self._curve_sampler.draw(self._daemon, self._gate, self._clock.now())

    def _publish_journal(self) -> None:
        """Let followers have all changes up to now. Without NATS they get them later."""
        try:
            self._journal.publish()
        except JournalError:
            raise
        except OSError:
            return  # status and metrics show it

    def _remove_old(self) -> None:
        """Remove one portion of the records that are older than the journal keeps."""
        keep_seconds = self._settings.journal.keep_seconds
        view = self._publisher.view
        in_use = {*view.numbers.values(), *(case.finding for case in view.cases if case.finding),
                  *(drain.finding for drain in self._daemon.drains.all)}
        self._journal.remove_old(self._clock.now(), keep_seconds and max(
            keep_seconds, self._settings.verify.cooldown_seconds), in_use)

    def renew(self) -> None:
        """Renew the claim. It waits for as long as the file system does not answer."""
        self._claim.renew()

    def beat(self) -> bool:
        """False if a cycle hangs. It never waits for the file system."""
        self.activities.check()
        return not self._liveness.hung()

    def _keep_positions(self) -> None:
        """Store the changelog positions, and only then clear the records that were read."""
        self._journal.set_positions(self._sources.follower.positions)
        if self._clearing is not None:
            self._clearing()
        if self._tallies is not None:
            with suppress(OSError):  # the next cycle does it again; receiving tallies reports the problem
                self._tallies.acknowledge()

    def close(self) -> None:
        """Stop answering and close the journal, which keeps the queue.

        An act that another thread carries out ends first.
        """
        if self._open and hasattr(self, "activities"):
            self._gate.stop()
            self.activities.stop()
        if self._open:
            with suppress(JournalError), journal_errors(self._settings.act.journal):
                if waits := waiting_at_stop(self._gate, self._inbox):
                    self._say(waits)
        self._open = False
        self._closing.close()


class Cluster(Protocol):
    """Several nodes that work on the file system, as the service of the leader uses them."""

    def attach(self, journal: Journal, filesystem: Filesystem, settings: Settings) -> Dispatch:
        """Copy the changes of the journal to followers from now on. Returns the dispatch for the gate."""

    def detach(self) -> None:
        """Publish the last changes of the journal, which will be closed."""

    def tally_inbox(self, settings: Settings) -> TallyInbox | None:
        """Where tallies of changelog readers arrive; None if the leader reads the changelogs itself."""


class ClearingFilesystem(Filesystem, Protocol):
    """A file system whose changelogs can be cleared."""

    def clear_changelog(self, mdt: str, reader: str, index: int) -> None:
        """Clear the records of a changelog user up to an index."""
