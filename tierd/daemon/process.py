"""``tierd --config FILE``: the daemon as a process on this node, with its signals.

Builds the service over the mounted file system, its engine, and the sources that the configuration names. A supervisor
reloads the service when its settings change, and restarts it when its journal fails.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from httpserver.config import WebConfigFile
from lustre import mounts
from lustre.creation import LocalObjectCreation
from lustre.llapi.calls import Library
from lustre.mounted import MountedFilesystem, mdts_of, oldest_release, with_fileset
from lustre.mounts import Mount
from lustre.parameters import Roots, Tree
from tierd.act.claim import Claim, FilesystemClaim, claim_folder, describe_this_process
from tierd.act.journal.connection import FULL, JournalError
from tierd.act.movers import engines
from tierd.act.movers.lfs import works_on
from tierd.act.movers.moves import Mover
from tierd.act.movers.parallel import ParallelMover, name_thread_as_process
from tierd.clock import SystemClock
from tierd.config.load import ConfigurationError, load
from tierd.config.settings import Settings
from tierd.daemon.loop import Memory
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.daemon.systemd import BEAT_SECONDS, Notifier, extended_start, heartbeat
from tierd.model import SiteFacts
from tierd.sense import nodes
from tierd.sense.http_client import HttpClient
from tierd.sense.parameters import THIS_NODE, metadata_spaces, own_nids, why_jobs_are_unnamed
from tierd.sense.sources import counter_source
from tierd.text import printable

if TYPE_CHECKING:  # a tierd that works alone needs nothing of it
    from tierd.cluster.leader import Candidate
LEADERSHIP_LOST = 75
"""Exit status of a leader that was replaced (``EX_TEMPFAIL``): systemd starts it again, as a standby."""
REQUESTS_AT_ONCE = 8
"""Requests to MDTs under way at the same time while default layouts are set and paths are looked up. A choice."""
GC_THRESHOLD = 200_000
GC_GENERATION_THRESHOLD = 10


def collect_garbage_rarely() -> None:
    """Collect garbage rarely, and leave the objects of modules and settings out."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, GC_GENERATION_THRESHOLD, GC_GENERATION_THRESHOLD)


def local_claim(settings: Settings, mount: Mount, clock: SystemClock) -> Claim:
    """The claim of this process on a mounted file system."""
    return Claim(claim_folder(mount, settings.claim), describe_this_process(clock.now()), clock.monotonic,
                 settings.claim)


def local_node(settings: Settings, clock: SystemClock, claim: FilesystemClaim | None = None) -> Node:
    """The node of this process, with the mounted file system of the settings. Raises OSError if a part is missing."""
    tree, sense = Tree(Roots.of("/proc", "/sys")), settings.sense
    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    library = Library.load(settings.movers.library)
    filesystem = MountedFilesystem(mount, library, tree)
    seen = with_fileset(library, mount)
    engine = engines.build_mover(seen, library, tree, settings.movers)
    mover: Mover = engine if settings.movers.at_once == 1 else ParallelMover(
        engine, filesystem.pools, settings.movers.at_once, settings.movers.per_target_at_once)
    http = HttpClient(sense.exporter_access, sense.wait_seconds, os.environ)
    clients = {THIS_NODE: lambda pools: nodes.read_mounts(tree, pools),
               **{url: nodes.mounts_of_exporter(url, http) for url in sense.clients}}
    servers = {THIS_NODE: lambda _: nodes.read_disks(tree),
               **{url: nodes.disks_of_exporter(url, http) for url in sense.exporters}}
    return Node(
        filesystem=filesystem, mover=mover, read=counter_source(sense, mount.fsname, tree, clock, os.environ),
        mdts=sense.mdts or mdts_of(tree, mount.fsname), clock=clock, works_on=works_on, nudge=clock.nudge,
        clear_changelog=filesystem.clear_changelog, claim=claim or local_claim(settings, mount, clock),
        clients=nodes.ClientPoller(clients, clock), disks=nodes.DiskPoller(servers, clock),
        own_nids=lambda: own_nids(tree),
        site_facts=lambda: SiteFacts(metadata_spaces(tree, mount.fsname), oldest_release(tree, mount.fsname)),
        unnamed=lambda: why_jobs_are_unnamed(tree),
        executor=ThreadPoolExecutor(REQUESTS_AT_ONCE, "tierd-request", name_thread_as_process),
        creation=LocalObjectCreation(tree, mount.fsname), subdirectory=seen.subdirectory)


def local_service(settings: Settings, clock: SystemClock, web_config: WebConfigFile | None,
                  cluster: Candidate | None = None) -> Service:
    """The service for the mounted file system of the settings. Raises OSError if a part is missing."""
    service = Service(settings, local_node(settings, clock, cluster.claim if cluster else None), web_config, cluster)
    service.start()
    return service


MakeCandidate = Callable[[Settings, SystemClock], "Candidate | None"]
MakeService = Callable[[Settings, SystemClock, WebConfigFile | None, "Candidate | None"], Service]


log = logging.getLogger("tierd.daemon")


def set_process_name(name: str, comm: Path) -> None:
    """Set the process name, so that ``jobid_var=procname_uid`` counts tierd's own work as ``NAME.0``.

    For ``python -m tierd`` the job id would otherwise be ``python.0``, which other programs may have. Threads inherit
    the name, so call this before any thread starts.
    """
    with suppress(OSError):  # without procfs, `own_jobs` must name the job id
        comm.write_text(name, encoding="ascii")


@contextmanager
def heartbeats(of: Supervisor | Service, notify: Notifier, seconds: float) -> Iterator[None]:
    """One heartbeat to systemd and one to other movers, because the claim needs an MDS that answers."""
    with (heartbeat(lambda: notify(WATCHDOG="1") if of.beat() else None, seconds), heartbeat(of.renew, seconds)):
        yield


def serve(path: Path, settings: Settings, web_config: WebConfigFile | None = None,
          make_candidate: MakeCandidate | None = None, make_service: MakeService = local_service) -> int:
    """Run until SIGTERM or SIGINT. SIGHUP reloads the configuration; a bad one is logged and not used.

    ``make_candidate`` and ``make_service`` make the parts that use the mount, for demonstrations.
    """
    set_process_name("tierd", Path("/proc/self/comm"))
    clock = SystemClock()
    reload: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: clock.wake())
    signal.signal(signal.SIGHUP, lambda *_: reload.append(True))
    notify = Notifier(os.environ)
    faulthandler.enable()  # logs the stacks when systemd's watchdog ends the process
    with ExitStack() as closing:
        node = make_candidate(settings, clock) if make_candidate is not None else None
        if node is not None:
            closing.callback(node.close)  # the standby need not wait for the claim to expire
            if not node.stand_by(notify, web_config):
                return 0
        with extended_start(notify, settings.filesystem.mount):
            supervisor = Supervisor(
                path, settings, lambda chosen: make_service(chosen, clock, web_config, node), web_config)
        closing.callback(supervisor.close)
        collect_garbage_rarely()
        closing.enter_context(heartbeats(supervisor, notify, BEAT_SECONDS))
        log.info("watching %s in mode %s%s", settings.filesystem.mount, settings.act.mode,
                 ", dry run" if settings.act.dry_run else "")
        notify(READY="1", STATUS="reading the counters for the first time")
        closing.callback(notify, STOPPING="1")
        while not clock.wait(supervisor.settings.sense.cycle_seconds):  # ends early when Alertmanager asks for a cycle
            if reload:
                reload.clear()
                notify(RELOADING="1", MONOTONIC_USEC=str(int(clock.monotonic() * 1e6)))
                supervisor.reload()
                notify(READY="1")
            state = supervisor.cycle()
            log.info("%s", state)
            notify(WATCHDOG="1", STATUS=state)
            if node is not None and node.lost:
                log.error("another tierd leads now; this one ends, and starts again as a standby")
                return LEADERSHIP_LOST
    log.info("stopped")
    return 0


MAX_SKIPPED_CYCLES = 11
"""Limit on the cycles between two tries: about a minute."""
ROOM_BYTES = 16 << 20
"""Free bytes from which a journal that failed is opened again: four write-ahead logs (SQLite: 1,000 pages of 4 KiB).
Closing the journal frees one, with which tierd would work for some cycles and fail again, without end."""


class Supervisor:
    """Holds the service, and the settings in force."""

    def __init__(self, path: Path, settings: Settings, start: Callable[[Settings], Service],
                 web_config: WebConfigFile | None = None,
                 free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free) -> None:
        """Start the first service. Raises OSError or ValueError if that fails. ``free`` is of a folder, in bytes.

        ``web_config`` is the web configuration of all services that ``start`` makes. There is one for the whole
        process, because it never drops TLS or passwords.
        """
        self._path = path
        self._web_config = web_config
        self._start = start
        self._free = free
        self.settings = settings
        self._service: Service | None = start(settings)
        self._seen: Memory | None = None
        """What the last service has seen; None if the next one has other sources."""
        self._reported = ""
        self._failures = self._skip = 0
        """Number of failed cycles in a row, and number of cycles to skip before the next try."""

    def cycle(self) -> str:
        """Run one cycle. Returns a sentence about the state."""
        if self._service is None and (self._skip or not self._begin()):
            self._skip = max(0, self._skip - 1)
            return f"tierd does nothing: {self._reported}"
        assert self._service is not None
        try:
            sentence = self._service.cycle()
        except JournalError as error:
            self._end()
            self._skip = min(2**self._failures - 1, MAX_SKIPPED_CYCLES)  # each try writes to the log
            self._failures += 1
            self._report(error_text(error))
            return f"tierd does nothing: {self._reported}"
        self._failures = 0
        if self._reported:  # a full disk lets a service start and fails its first write
            log.info("tierd works again; %s", self._baselines())
            self._reported = ""
        return sentence

    def renew(self) -> None:
        """Renew the claim. It waits for as long as the file system does not answer."""
        if (service := self._service) is not None:  # once: a reload may end the service
            service.renew()

    def beat(self) -> bool:
        """False if a cycle hangs. It never waits for the file system."""
        return (service := self._service) is None or service.beat()

    def reload(self) -> None:
        """Reload the configuration and the web configuration. If one is bad, its previous one stays in use."""
        self._skip = 0
        if self._web_config is not None:
            self._web_config.reload()
        try:
            wanted = load(self._path)
            if wanted.web.config_file != self.settings.web.config_file:
                raise ConfigurationError("a change of web.config_file needs a restart")
        except (ConfigurationError, OSError) as error:
            log.error("configuration not reloaded, the previous one stays in use: %s", error_text(error))
            return
        if wanted == self.settings:
            log.info("configuration reloaded: no setting has changed")
            return
        # first: two services cannot share a journal, a socket and a port
        self._end()
        before, self.settings, seen = self.settings, wanted, self._seen
        if not same_sources(before, wanted):
            self._seen = None
        try:
            self._started(wanted)
        except (OSError, ValueError) as error:
            log.error("configuration not reloaded, the previous one is in use again: %s", error_text(error))
            self.settings, self._seen = before, seen
            self._begin()
        else:
            log.info("configuration reloaded; %s", self._baselines())

    def close(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _end(self) -> None:
        """Stop the service, and keep what it has seen."""
        if self._service is not None:
            self._seen = self._service.daemon.memory
        self.close()

    def _started(self, settings: Settings) -> None:
        self._service = self._start(settings)
        if self._seen is not None:
            self._service.take_over(self._seen)

    def _baselines(self) -> str:
        return "tierd learns baselines again" if self._seen is None else "baselines are kept"

    def _begin(self) -> bool:
        journal = Path(self.settings.act.journal)
        try:
            if self._free(journal.parent) < ROOM_BYTES:
                raise JournalError(None, FULL, str(journal))
            self._started(self.settings)
        except (OSError, ValueError) as error:
            self._report(error_text(error))
            return False
        return True

    def _report(self, why: str) -> None:
        if why != self._reported:
            log.error("%s; until this is repaired, tierd does nothing and tierctl gets no answer; tierd retries within "
                      "a minute", why)
        self._reported = why


def same_sources(before: Settings, wanted: Settings) -> bool:
    """Whether two settings read the same sources, so that the history of one is valid for the other."""
    def view(settings: Settings) -> object:
        return settings.filesystem, settings.sense, settings.own_jobs, settings.history_seconds

    return view(before) == view(wanted)


def error_text(error: Exception) -> str:
    r"""An error for people in one line, with the file it is about.

    >>> error_text(FileNotFoundError(2, "No such file or directory", "/mnt/a")), error_text(ValueError("odd\neven"))
    ('/mnt/a: No such file or directory', 'odd; even')
    """
    name, words = getattr(error, "filename", None), getattr(error, "strerror", None)
    return printable(f"{name}: {words}" if name and words else "; ".join(str(error).splitlines()))
