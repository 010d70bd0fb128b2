"""Which engine moves files, and a mounted file system that uses it.

``lfs`` is the default until the acceptance suite's storm has passed on a real Lustre with the other one
(docs/decisions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Lt

from lustre.filesystem import Quota
from lustre.llapi.calls import NAME, Library
from lustre.mounted import MountedFilesystem, archives_follow_swaps, read_pools, read_space
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount
from lustre.parameters import Tree
from tierd.act.movers.abreast import Engine
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover
from tierd.act.movers.outcome import one_at_a_time
from tierd.act.movers.room import Destination
from tierd.act.movers.runner import runner, tie

DEFAULT: Literal["lfs", "lease"] = "lfs"
"""Changes to ``lease``, here alone, with the first run of the acceptance suite that passes (docs/decisions, 6)."""
TAG = "tierd.0"
"""Job id of our own work, one of ``own_jobs``."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""Names of variables are in capitals; ``procname_uid``, ``nodelocal``, ``session``, ``disable`` are none."""


@dataclass(frozen=True)
class Settings:
    """The engine and what it needs."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    engine: Literal["lfs", "lease"] = DEFAULT
    """``lfs`` runs ``lfs migrate --non-block``; ``lease`` does the same in this process."""
    lfs: str = "lfs"
    """The program."""
    library: str = NAME
    timeout_seconds: Annotated[float, Gt(0)] = 600.0
    """After that a process of ``lfs`` is killed; the files it was at stay as they were."""
    at_once: Annotated[int, Ge(1)] = 1
    """Engines at work at the same time."""
    per_target_at_once: Annotated[int, Ge(1)] = 1
    """Of these, how many may read from one target, or write to it, taken over the targets of a pool."""
    keep_free: Annotated[float, Ge(0), Lt(1)] = 0.05
    """Part of a destination pool that moves leave free."""


def mover(mount: Mount, library: Library, tree: Tree, settings: Settings) -> Engine:
    """The engine of the settings, over one mount."""
    calls = MountedCalls(library, mount.path, lambda: archives_follow_swaps(tree, mount.fsname))

    def quota(kind: int, owner: int, pool: str) -> Quota:
        return library.quota(mount.path, kind, owner, pool)

    destination = Destination(
        lambda: read_pools(tree, mount.fsname), lambda: read_space(tree, mount.fsname), quota,
        settings.keep_free)
    if settings.engine == "lease":
        return LeaseMover(calls, destination)
    run = runner(settings.timeout_seconds, job_tag(tree), tie())
    return LfsMover(calls, destination, calls.whole, run, settings.lfs)


def job_tag(tree: Tree) -> dict[str, str]:
    """What to put into the environment of ``lfs`` so that servers count its work as ours.

    Where ``jobid_var`` names an environment variable (SLURM_JOB_ID), that is the job. Where it names the process or the
    node, nothing of the environment counts.
    """
    name = (tree.read("jobid_var") or b"").strip().decode("ascii", "replace")
    return {name: TAG} if _VARIABLE.fullmatch(name) else {}


def mounted(mount: Mount, tree: Tree, settings: Settings) -> MountedFilesystem:
    """The file system port over a mount. Raises LibraryMissing where liblustreapi is not installed."""
    library = Library.load(settings.library)
    return MountedFilesystem(mount, library, tree, one_at_a_time(mover(mount, library, tree, settings)))
