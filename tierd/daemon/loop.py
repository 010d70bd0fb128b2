"""One cycle of the daemon: sense, detect, decide, act, verify. It holds the state between cycles."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lustre.filesystem import Filesystem
from tierd.act.drain import Drains
from tierd.act.journal.connection import JournalError
from tierd.act.journal.writer import Journal
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.daemon.judging import CaseUndo, Judge
from tierd.daemon.log import FindingLog, KnownFindings
from tierd.daemon.node import DaemonParts
from tierd.daemon.observe import JobWork, Observer
from tierd.daemon.planning import Planner
from tierd.daemon.remediation import Remediations, RemediationStore, judged_remediation, reopened_remediations
from tierd.decide.plans import Plan
from tierd.detect.costs import CostLearner, costs_from_json, costs_to_json
from tierd.detect.device_time import TargetTime
from tierd.engine import Engine
from tierd.model import Finding, Window
from tierd.policies.registry import has_victim, policies, policy_for, policy_of
from tierd.refusal import Reason, Refusal, sentence_of
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.facts import FactsCollector
from tierd.sense.file_walks import Inventory, UnevenPools
from tierd.sense.metadata import MetadataMeter
from tierd.sense.own_moves import OwnMoves, nids_of_moves
from tierd.text import first_names

log = logging.getLogger("tierd.daemon")
ACT_SECONDS = 0.5
"""Time between two attempts while default layouts or moves wait for a limit."""
OUTCOME_SECONDS = 0.1
"""Time between two attempts to process outcomes of movers on other nodes."""
FACTS_SECONDS = 15.0
"""Time between two readings of the facts that policies need."""
COSTS_SECONDS = 300.0
"""Time between two writes of the device time costs to the journal."""
COSTS_STATE = "service_costs"
"""Name of these costs in the journal."""
BLOCKING = {"blind": Reason.UNREADABLE, "mover": Reason.OTHER_MOVER, "claim": Reason.CLAIM_HELD,
            "nats": Reason.NO_BROKER, "changelog": Reason.UNREADABLE, "opt-outs": Reason.OPT_OUT_UNREADABLE}
"""Faults with which no act starts."""
LEARNING_WINDOWS = 4
"""Windows before costs of service and the usual throughput of a stream mean something."""


def is_learning(windows: int, device_time: Mapping[str, TargetTime]) -> bool:
    """Whether there are too few windows to know the usual throughput of a stream, and device time is unknown too."""
    return not device_time and windows < LEARNING_WINDOWS


def busy_directory(settings: Settings) -> float:
    """Operations per second in a directory from which a policy needs its MDTs."""
    return min((each.policy.busy_directory(each.settings) for each in settings.policies
                if each.policy.busy_directory is not None), default=float("inf"))


def walk_of(settings: Settings, filesystem: Filesystem) -> UnevenPools | None:
    """The walk for files on the fuller targets of unevenly filled pools, if a policy that acts needs it."""
    for policy in map(policy_of, settings.act.on):
        if policy.walk is not None and (walk := policy.walk(settings.tables)) is not None:
            return UnevenPools(filesystem, walk.directories, walk.files_per_second, walk.min_bytes)
    return None


def directories_of_policies(settings: Settings) -> set[str]:
    """Directories whose files policies examine, whether or not a finding names them."""
    return {place for policy in policies().values() if policy.directories
            for place in policy.directories(settings.tables)}


def reopened_store(journal: Journal, settings: Settings, now: float) -> RemediationStore:
    """The remediations that the journal has still open, as far as their acts can be judged."""
    store = RemediationStore()
    for case in reopened_remediations(journal, now - settings.verify.moving_seconds - settings.history_seconds):
        if has_victim(case.finding) or case.abandoned:
            store.add(case)
        elif policy_for(case.finding) is not policy_of(case.finding.kind):
            log.warning("F%d: the journal lacks numbers of this finding, so its acts are not judged", case.number)
    return store


@dataclass(frozen=True, slots=True)
class Memory:
    """What a daemon knows, for the one that replaces it at a reload."""

    engine: Engine
    known: KnownFindings
    tripped: str
    """Why the circuit breaker is open: the journal may have failed just then."""
    cases: RemediationStore


class Daemon:
    """The seven activities of tierd, each with its own interval.

    ``observe`` (counters, findings), ``take_in_records`` (changelogs), ``facts.gather``, ``plan``, ``set_defaults``,
    ``move`` and ``judge`` may each run in a thread of its own. None holds :attr:`lock` during a request to the file
    system or to a source, so none waits for the requests of another. :meth:`cycle` runs one step of each in turn.
    """

    def __init__(self, parts: DaemonParts) -> None:
        node, settings, journal, gate = parts.node, parts.settings, parts.journal, parts.gate
        self.parts = parts
        self._gate, self._settings, self._clock = gate, settings, node.clock
        self._costs_stored_at = 0.0
        self._seen: float | None = None
        """Time of the last reading of the counters; None if there is no earlier reading to compare it with."""
        self._opt_outs_readable = False
        self.log = FindingLog(journal, node.clock)
        self.counters = self.log.counters
        self.engine = Engine(settings)
        self.engine.learner = CostLearner(costs_from_json(journal.state().get(COSTS_STATE, "")))
        echo = OwnMoves(settings.own_jobs, lambda: nids_of_moves(node.own_nids(), gate.dispatch.nids()),
                             node.clock.now, journal.was_moved)
        self.table = ActivityTable(node.filesystem.path_of, is_echo=echo, executor=node.executor)
        self.store = reopened_store(journal, settings, node.clock.now())
        self._sense(parts)
        self._job_work = JobWork(self.store, self.table, self.engine.jobs_of, node.clock, settings.sense.cycle_seconds)
        self.drains = Drains(node.filesystem, gate, journal, node.clock, settings.drain, creation=node.creation,
                             mdts=len(node.mdts), subdirectory=node.subdirectory)
        self.planning = Planner(parts, self.engine, self.table, lambda: self.drains.moving)
        self.remediations = Remediations(parts, self.store, self.planning, self.log)
        self.undoing = CaseUndo(parts, self.store, self.log)
        """Undoes acts, also by order of an administrator."""
        self._judge = Judge(parts, self.store, self.undoing, self.log, facts=lambda: self.facts.known,
                            history=lambda: (self.observer.windows, self.engine.tracks.known))
        gate.on_begin = echo.moved
        gate.queue.note_streams(None)
        gate.queue.jobs = gate.default_layouts.jobs = self._job_work
        gate.queue.planned_again = self.remediations.planned_again

    def _sense(self, parts: DaemonParts) -> None:
        """Build what observes: facts, counters with changelog records, and detection."""
        node, settings, metadata = parts.node, parts.settings, MetadataMeter(parts.settings.own_jobs)
        flash_pools = settings.resolved_scopes.flash_pools
        acted_in = parts.journal.act_directories
        inventory = Inventory(node.filesystem, flash_pools, lambda: acted_in.all() | directories_of_policies(settings),
                              acted_in.forget)
        self.facts = FactsCollector(
            node.filesystem, self.table, inventory, flash_pools, metadata_targets=len(node.mdts),
            clients=node.clients, media=parts.media, uneven=walk_of(settings, node.filesystem), metadata=metadata,
            disks=node.disks, busy_per_second=busy_directory(settings) / 2, job_nodes=parts.job_nodes,
            closed=lambda: self.closed_targets)
        """The facts that were collected last: pools, and the space on their targets."""
        self.observer = Observer(parts, self.engine, self.table, self.facts, finding_log=self.log, store=self.store,
                                 metadata=metadata)

    def cycle(self, move_seconds: float) -> None:
        """Run one step of each activity in turn. Files move for at most ``move_seconds``."""
        self.observe(with_records=True)
        self.plan()
        self.set_defaults()
        self.move(move_seconds)
        self.judge()

    def observe(self, *, with_records: bool = False) -> None:
        """Read the counters, and the changelogs too if no other thread does, and detect findings."""
        begun = self._clock.now()
        seen = self.observer.read()
        if with_records and not self.observer.blind:
            self.take_in_records()
        if seen is not None:
            newest = self.observer.run_cycle(seen)
            self._gate.queue.note_streams(self.engine.streamed_targets)
            self._job_work.note(newest)
            self.remediations.drop_moves_of_departed_jobs()
        now = self.counters.last_cycle_at = self._clock.now()
        self._seen = self.observer.seen
        self.counters.cycles += 1
        self.counters.cycle_seconds = now - begun
        if self.engine.learner.costs and not 0 <= now - self._costs_stored_at < COSTS_SECONDS:
            self._costs_stored_at = now
            self.parts.journal.set_state({COSTS_STATE: costs_to_json(self.engine.learner.costs)})

    def take_in_records(self) -> None:
        """Read changelog records."""
        self.observer.take_in_records()
        added = [mdt for mdt in sorted(self.facts.known.metadata) if mdt.rpartition("-")[2] not in self.parts.node.mdts]
        self.log.fault("MDTs", f"{first_names(added)}: added since tierd started, so its changelog is not read: "
                       "restart tierd" if added and not self._settings.sense.mdts else "")

    def plan(self) -> None:
        """Plan acts for findings, and queue moves of before a restart. This changes nothing on the file system."""
        self._forget()
        self._try_opt_outs()
        self._gate.queue.closed = self.closed_targets
        if self._seen is not None:
            self.remediations.requeue()
        if self._seen is not None and not self.stale_for and self._take_claim():
            with self._log_filesystem_errors("plans"):
                sole_mover, state = "mover" not in self.faults, self._gate.operating_state
                if sole_mover and "changelog" not in self.faults and not state.held and not state.draining:
                    self.remediations.act(self.findings)
                if sole_mover and not state.held and not state.draining:
                    self.drains.step()

    def _try_opt_outs(self) -> None:
        if not self._opt_outs_readable:  # tried until they can be read
            why = self._gate.guard.opt_out_refusal("/")
            self._opt_outs_readable = why is None or why.reason is not Reason.OPT_OUT_UNREADABLE
            self.log.fault("opt-outs", "" if self._opt_outs_readable else sentence_of(why))

    def _forget(self) -> None:
        holding = {finding.key for finding in self.findings}
        with self.store.lock:
            for case in self.store.forget():
                self._gate.drop(case.finding.key)
                if case.finding.key not in holding:  # a finding that holds keeps its number
                    self.log.forget(case.finding.key)

    def set_defaults(self) -> None:
        with self._log_filesystem_errors("default layouts"):
            while self.may_begin and self.remediations.set_defaults():
                pass

    def move(self, seconds: float) -> None:
        """Move files for this time, within the budget."""
        with self._log_filesystem_errors("moves"):
            self.remediations.moves_ended(self._gate.attend())  # of movers on other nodes
            # files that a person named need no records
            if self.may_begin:
                self.remediations.moves_ended(
                    self._gate.pump(self._clock.now() + seconds, requests_only="changelog" in self.faults))

    def judge(self) -> None:
        """Judge acts, and undo those with a bad verdict. This runs outside of maintenance windows too."""
        with self._log_filesystem_errors("verdicts"):
            if not self._allowed():
                return
            if self._seen is not None:
                self._judge.judge(self._seen)
                if "changelog" not in self.faults:
                    self._judge.judge_defaults()
            if self._seen is not None or self.observer.blind:
                # layouts in force still fill the flash pool, and its size is known without any source
                self.undoing.watch_free_space()

    @contextmanager
    def _log_filesystem_errors(self, what: str) -> Iterator[None]:
        failed = ""
        try:
            yield
        except JournalError:
            raise  # nothing continues without a journal
        except OSError as error:
            failed = f"{what}: the file system does not answer: {error}; tierd retries in the next cycle"
        self.log.fault(what, failed)

    @property
    def stale_for(self) -> float:
        """Age of the last reading in seconds, if it is too old to act on; otherwise 0."""
        age = self._clock.now() - self.counters.last_cycle_at
        limit = self._settings.sense.stale_seconds + self._settings.sense.cycle_seconds
        return age if self._seen is not None and age > limit else 0.0

    @property
    def sees(self) -> bool:
        """Whether the last window is the present. While the counters cannot be read, its values would last."""
        return not (self.observer.blind or self.stale_for)

    def blocked_by(self, *, of_orders: bool = False) -> Iterator[Refusal]:
        """Faults that keep acts from starting at present, or only those that stop orders too."""
        yield from (Refusal(reason, words) for name, reason in BLOCKING.items()
                    if (words := self.faults.get(name)) and not (of_orders and name == "changelog"))
        if self.stale_for:
            yield Refusal(Reason.UNREADABLE, f"the last reading of the counters is {self.stale_for:.0f} s old: no acts "
                          "start before the next")

    @property
    def may_begin(self) -> bool:
        """Whether an act may start, at least one that an order asks for."""
        held = self._gate.operating_state.held or next(self.blocked_by(of_orders=True), None)
        return self._seen is not None and held is None

    def _allowed(self) -> bool:
        held = self._gate.operating_state.held
        # verdicts and undo do not wait for maintenance windows
        free = held is None or held.reason is Reason.MAINTENANCE_WINDOW
        return free and "claim" not in self.faults and "nats" not in self.faults

    def _take_claim(self) -> bool:
        self.log.held(sentence_of(self._gate.operating_state.held))
        # a tierd that changes nothing takes no claim, which would keep another one from its work
        wanted = self._settings.resolved_scopes.modes - {Mode.OBSERVE} or self._gate.waiting or self.drains.running
        acting = wanted and not self._settings.act.dry_run
        self.log.fault("claim", sentence_of(self.parts.node.claim.hold()) if acting else "")
        trouble = self._gate.dispatch.trouble() if acting else None
        self.log.fault("movers", sentence_of(trouble) if trouble and trouble.reason == Reason.NO_MOVERS else "")
        self.log.fault("nats", sentence_of(trouble) if trouble and trouble.reason == Reason.NO_BROKER else "")
        return self._allowed()

    def preview(self) -> list[tuple[Finding, int, Plan]]:
        """Findings with their numbers, and the present plan for each, which is not carried out. Raises OSError."""
        return [(self.log.recorded(finding), self.log.known_number(finding), self.planning.preview_plan(finding))
                for finding in self.findings if not finding.advice_only]

    @property
    def memory(self) -> Memory:
        return Memory(self.engine, self.log.known, self._gate.operating_state.tripped, self.store)

    def take_over(self, memory: Memory) -> None:
        """Continue where the daemon before ended: a finding that holds keeps its number."""
        if memory.tripped:
            self._gate.operating_state.trip(memory.tripped)
        self.log.take_over(memory.known)
        self.observer.findings = self.engine.take_over(memory.engine, self.log.known.numbers)
        self.observer.windows = self.engine.history.windows
        for case in self.store:  # the journal has no brakes
            if (was := memory.cases.get(case.finding.key)) is not None and was.braked_at:
                case.braked_at, case.acted_at = was.braked_at, max(case.acted_at, was.acted_at)
        for finding in self.observer.findings:
            if self.store.get(finding.key) is None and (known := judged_remediation(
                    self.parts.journal, self.log.known.numbers[finding.key], finding)) is not None:
                self.store.add(known)

    @property
    def closed_targets(self) -> Mapping[str, str]:
        """Targets that take no files of moves, with the reasons: not well, without new objects, or drained.

        On an MDS this reads a parameter of each target for each MDT. The gate has the result of the last plan.
        """
        conditions = self.windows[-1].conditions if self.windows else {}
        return {**{target: f"is {why}" for target, why in conditions.items() if why in {"degraded", "in recovery"}},
                **dict.fromkeys(self.parts.node.creation.stopped(), "creates no new objects (max_create_count is 0)"),
                **dict.fromkeys(self.drains.targets, "is being drained, or was")}

    @property
    def windows(self) -> Sequence[Window]:
        """The history, oldest window first."""
        return self.observer.windows

    @property
    def faults(self) -> Mapping[str, str]:
        return self.log.faults

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.observer.findings
