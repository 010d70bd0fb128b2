"""The default layout that helped an application before its next run, and what tierd did for a job.

An application is a name of jobs of one user. The journal has the names and directories of jobs with findings, from the
scheduler, and whether the default layout that tierd set because of them helped. At the start of the next job of that
name and user, in the same directory or one beside it, tierd sets the layout there again, for new files only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from posixpath import normpath

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout
from tierd.act.default_layouts import same_default
from tierd.act.gate import Gate
from tierd.act.journal.connection import SharedConnection
from tierd.act.journal.entry import to_bytes, to_layout, to_path
from tierd.act.orders import OrderPlan
from tierd.act.staging import QueueOrder
from tierd.acts import ActKind, OrderKind, Verdict, name_of
from tierd.config.scopes import is_below
from tierd.config.settings import Settings
from tierd.decide.plans import reserved
from tierd.integrations.protocol import SchedulerJob, plain
from tierd.model import Action
from tierd.refusal import Reason, Refusal
from tierd.sense import space
from tierd.text import count_of, quoted

MAX_ACTS = 200
MAX_DIGITS = 12
"""Of the number of a job: a choice that SQLite's integers hold."""
MAX_SENTENCES = 4


@dataclass(frozen=True, slots=True)
class HelpfulLayout:
    """A default layout that helped an earlier job of an application."""

    job: str
    directory: str
    """Where that job ran."""
    place: str
    """The directory that got the layout."""
    layout: Layout


class ApplicationStore:
    """Jobs of a scheduler that had findings, in the journal's file."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db
        self._stored: dict[str, SchedulerJob] = {}

    def remember(self, jobs: Mapping[str, SchedulerJob], inner: Callable[[str], str], now: float) -> None:
        """Store jobs of findings that are not stored yet. ``inner`` makes a path start at the file system's root."""
        fresh = {name: job for name, job in jobs.items() if self._stored.get(name) != job}
        if not fresh:
            return
        with self._db.transaction(durable=False):
            self._db.executemany(
                "INSERT OR REPLACE INTO scheduler_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [
                (name, job.id, job.name, job.user, job.account, job.partition, to_bytes(inner(job.directory)), now)
                for name, job in fresh.items()])
        self._stored = dict(list({**self._stored, **fresh}.items())[-1000:])  # bounds memory

    def helpful(self, name: str, user: str) -> list[HelpfulLayout]:
        """Default layouts of the last judged finding of an application, if they helped."""
        rows = self._db.execute(
            "SELECT actions.finding, findings.aggressor, scheduler_jobs.directory, actions.place, "
            "actions.layout_after, judgements.verdict FROM scheduler_jobs "
            "JOIN findings ON findings.aggressor = scheduler_jobs.job "
            "JOIN judgements ON judgements.finding = findings.id JOIN actions ON actions.finding = findings.id "
            "WHERE scheduler_jobs.name = ? AND scheduler_jobs.user = ? AND actions.kind = ? AND NOT actions.dry_run "
            "AND actions.outcome IN ('done', 'undone') "
            "ORDER BY judgements.time DESC, findings.id DESC, actions.id LIMIT ?",
            (plain(name), plain(user), ActKind.SET_DEFAULT_LAYOUT, MAX_ACTS))
        found = []
        for finding, job, directory, place, text, verdict in rows:
            layout = to_layout(text)
            if finding != rows[0][0] or verdict != Verdict.HELPED or layout is None:
                break
            found.append(HelpfulLayout(job, normpath(to_path(directory)), to_path(place), layout))
        return found

    def sentences(self, job: str, user: str = "") -> list[str]:
        """What tierd found about a job, and did because of it, in words; the last findings first. ``job`` is the
        scheduler's number, which jobs of other users have in another cluster. Lustre's id may have more in it.
        """
        number = int(job) if job.isascii() and job.isdigit() and len(job) < MAX_DIGITS else -1
        owners = {job: plain(user), **dict(self._db.execute(
            "SELECT job, user FROM scheduler_jobs WHERE number = ? LIMIT 10", (number,)))}
        names = {name for name, owner in owners.items() if not user or owner == plain(user)}
        places = ", ".join("?" * len(names))
        rows = self._db.execute(
            "SELECT findings.id, kind, aggressor, victim, "  # noqa: S608
            "(SELECT verdict FROM judgements WHERE finding = findings.id), "
            "(SELECT count(*) FROM actions WHERE finding = findings.id AND kind = 'migrate' AND outcome = 'done') "
            f"FROM findings WHERE aggressor IN ({places}) OR victim IN ({places}) ORDER BY findings.id DESC LIMIT ?",
            (*names, *names, MAX_SENTENCES))
        return [_sentence(names, *row) for row in rows]

    def prepared(self, by: str) -> list[str]:
        """Directories that got a default layout before a job, by who gave the order (:func:`prolog_of`)."""
        rows = self._db.execute("SELECT directories FROM findings WHERE kind = ? AND aggressor = ? ORDER BY id DESC "
                                "LIMIT 1", (OrderKind.PREPARATION, by))
        return [directory for (text,) in rows for directory in json.loads(text)]


def _sentence(names: Collection[str], number: int, kind: str, aggressor: str, victim: str, verdict: str | None,
              moved: int) -> str:
    """A finding of a job in a few words.

    >>> _sentence({"7"}, 3, "noisy-neighbour", "7", "9", "helped", 12)
    'F3: noisy-neighbour of job 9, 12 files moved, helped'
    >>> _sentence({"9"}, 3, "noisy-neighbour", "7", "9", None, 0)
    'F3: slowed by job 7 (noisy-neighbour)'
    """
    what = f"slowed by job {aggressor} ({kind})" if victim in names else kind + (f" of job {victim}" if victim else "")
    done = [f"{count_of(moved, 'file')} moved" if moved else "", verdict or ""]
    return ", ".join([f"{name_of(number, kind)}: {what}", *filter(None, done)])


@dataclass(frozen=True, slots=True)
class NextRun:
    """A job that is about to start."""

    job: str
    name: str
    user: str
    uid: int
    directory: str
    """Working directory, from the root of the file system."""

    @property
    def by(self) -> str:
        """Who gave the order, for the journal."""
        return prolog_of(self.user, self.job)


def prolog_of(user: str, job: str) -> str:
    """The name under which the prolog of a job gives orders."""
    return f"{user} (job {job}, prolog)"


def place_for(earlier: HelpfulLayout, run: NextRun) -> str:
    """The directory of the next run that corresponds to the directory with the layout; "" without one.

    >>> layout = Layout((), composite=False)
    >>> run = NextRun("8", "train", "alice", 1001, "/a/run2")
    >>> place_for(HelpfulLayout("7", "/a/run1", "/a/run1/out", layout), run)
    '/a/run2/out'
    >>> place_for(HelpfulLayout("7", "/b/run1", "/b/run1/out", layout), run)
    ''
    >>> place_for(HelpfulLayout("7", "/a/run2", "/scratch/x", layout), run)
    '/scratch/x'
    """
    same = earlier.directory == run.directory
    beside = earlier.directory.rpartition("/")[0] == run.directory.rpartition("/")[0] != ""
    if is_below(earlier.place, earlier.directory):
        return run.directory + earlier.place[len(earlier.directory):] if same or beside else ""
    return earlier.place if same else ""


class Preparer:
    """Sets the layouts that helped before. The gate holds its acts like all others."""

    def __init__(self, gate: Gate, store: ApplicationStore, filesystem: Filesystem, settings: Settings,
                 queue_order: QueueOrder) -> None:
        self._gate = gate
        self._store = store
        self._filesystem = filesystem
        self._settings = settings
        self._queue_order = queue_order

    def prepare(self, run: NextRun) -> tuple[list[str], list[str], list[Refusal]]:
        """Queue default layouts for a job that is about to start. Returns the directories that have the layout, those
        that are about to get it, and why others do not. The request may be repeated. Raises OSError.
        """
        ready: list[str] = []
        waiting: list[str] = []
        refusals: list[Refusal] = []
        actions: list[Action] = []
        helped: list[str] = []
        for earlier in self._store.helpful(run.name, run.user):
            if not (place := place_for(earlier, run)) or place in {*ready, *waiting}:
                continue
            try:
                refusal = self._refusal(earlier, run, place)
                present = None if refusal else self._filesystem.layout(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if refusal is None and same_default(present, earlier.layout):
                ready.append(place)
                continue
            action = Action(ActKind.SET_DEFAULT_LAYOUT, earlier.layout, f"it helped job {earlier.job} of the same name",
                            (OrderKind.PREPARATION, run.by, run.directory), place)
            if refusal is None and present is not None:
                refusal = Refusal(Reason.OTHER_LAYOUT, f"{quoted(place)} has another default layout")
            if refusal := refusal or self._gate.guard.refusal(action):
                refusals.append(refusal)
                continue
            waiting.append(place)
            if not self._gate.default_layouts.has(place):
                actions.append(action)
                helped.append(earlier.job)
        if actions:
            self._queue_order(OrderKind.PREPARATION, run.by, f"{run.by}: the layout that helped job {helped[0]} before",
                              OrderPlan(actions))
        return ready, waiting, refusals

    def _refusal(self, earlier: HelpfulLayout, run: NextRun, place: str) -> Refusal | None:
        if place == "/":
            return Refusal(Reason.ROOT_DIRECTORY, "the default of the root directory applies to the whole file system")
        status = self._filesystem.status(place)
        if not status.is_directory or status.uid != run.uid:
            return Refusal(Reason.NO_PERMISSION, f"{quoted(place)} is not a directory of the job's user")
        if self._filesystem.path_of(status.fid) != place:
            return Refusal(Reason.LINKED, "a part of the path is a symbolic link")
        policy = self._settings.resolved_scopes.of(place).small_files_to_flash
        pools = {component.pool for component in earlier.layout.components if component.pool}
        if not pools <= {policy.flash_pool, policy.hdd_pool}:
            return Refusal(Reason.POOL_CHANGED, "the pools of the layout are no longer the configured ones")
        room = space.capacity(self._filesystem)
        if not room.pools.get(policy.flash_pool) or room.avail_bytes[policy.flash_pool] <= reserved(room, policy):
            return Refusal(Reason.NO_ROOM, f"pool {policy.flash_pool!r} has no room above its reserve")
        return None
