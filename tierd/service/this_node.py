"""The service on this node: the mounted file system, its engine, and the sources the configuration names."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lustre import mounts
from lustre.llapi.calls import Library
from lustre.parameters import Roots, Tree, parse_device
from tierd.act.claim import Claim
from tierd.act.claim_folder import MountedFolder, holder, surely_gone
from tierd.act.movers import engines
from tierd.act.movers.abreast import Abreast
from tierd.act.movers.thread_name import as_the_process
from tierd.clock import SystemClock
from tierd.config import Settings
from tierd.sense.client_round import ClientRound, of_exporter, of_tree
from tierd.sense.clients import THIS_NODE
from tierd.sense.http import Client
from tierd.sense.job_names import unnamed
from tierd.sense.marks import MountedMarks
from tierd.sense.metadata_room import share_free
from tierd.sense.own_nids import own_nids
from tierd.sense.sources import counters
from tierd.service.service import Service


def on_this_node(settings: Settings, clock: SystemClock, say: Callable[[str], None]) -> Service:
    """The service over the mounted file system of the settings. Raises OSError for what is not there."""
    tree = Tree(Roots.of("/proc", "/sys"))
    mount = mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())
    filesystem = engines.mounted(mount, tree, settings.movers)
    mover = engines.mover(mount, Library.load(settings.movers.library), tree, settings.movers)
    if settings.movers.at_once > 1:
        mover = Abreast(mover, filesystem.pools, settings.movers.at_once,
                        settings.movers.per_target_at_once)
    read = counters(settings.sense, mount.fsname, tree, clock, os.environ, say)
    mdts = settings.sense.mdts or mdts_of(tree, mount.fsname)
    folder = MountedFolder(Path(mount.path) / settings.claim.folder.strip("/"))
    proc = Path("/proc")
    claim = Claim(folder, holder(clock.now(), proc), clock.monotonic, settings.claim,
                  lambda words: surely_gone(words, proc))
    web = Client(settings.sense.exporter_access, settings.sense.timeout_seconds, os.environ)
    clients = ClientRound({THIS_NODE: of_tree(tree), **{url: of_exporter(url, web) for url in settings.sense.clients}},
                          clock, settings.sense.clients_at_once)
    executor = ThreadPoolExecutor(settings.act.default_layouts_at_once, "tierd-request", as_the_process)
    service = Service(settings, filesystem, mover, read, mdts, clock, say, clock.nudge, claim, clients,
                      lambda: own_nids(tree), lambda: share_free(tree, mount.fsname), lambda: unnamed(tree),
                      marks(Library.load(settings.movers.library), folder.path), executor)
    service.start()
    return service


def marks(library: Library, folder: Path) -> MountedMarks:
    """Marks in the folder of the claim."""
    def mdt_of(place: Path) -> int:
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return library.mdt_index(descriptor)
        finally:
            os.close(descriptor)

    return MountedMarks(folder, mdt_of, lambda place, index: library.make_directory(str(place), index),
                        lambda place: library.path_fid(str(place)), f"{os.uname().nodename}-{os.getpid()}")


def mdts_of(tree: Tree, fsname: str) -> tuple[str, ...]:
    """MDTs this node knows: those its client is connected to, or those it serves."""
    devices = [parse_device(name) for subsystem in ("mdc", "mdt") for name in tree.devices(subsystem)]
    return tuple(sorted({d.target for d in devices if d.fsname == fsname and d.target.startswith("MDT")}))
