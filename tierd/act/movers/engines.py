"""Builds the engine that moves files, and a mounted file system that uses it.

``lfs`` is the default until the acceptance suite's storm has passed on a real Lustre with ``lease`` (docs/decisions).
"""

from __future__ import annotations

import re

from lustre.filesystem import Quota
from lustre.llapi.calls import Library
from lustre.mounted import (
    MountedFilesystem,
    archives_follow_swaps,
    migrates_to_overstriped,
    read_pools,
    read_space,
)
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount
from lustre.parameters import Tree
from tierd.act.movers.either import EitherEngine
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover, command_runner, parent_death_prefix
from tierd.act.movers.moves import Fence, no_fence, one_at_a_time
from tierd.act.movers.parallel import Engine
from tierd.act.movers.space_and_quota import Destination
from tierd.config.act import MoverSettings
from tierd.sense.parameters import metadata_spaces

JOB_TAG = "tierd.0"
"""Job id of tierd's own I/O, one of ``own_jobs``."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""Names of environment variables, in contrast to ``procname_uid``, ``nodelocal``, ``session`` and ``disable``."""


def build_mover(mount: Mount, library: Library, tree: Tree, settings: MoverSettings,
                fence: Fence = no_fence) -> Engine:
    """The engine that the settings name, for one mount; the other one moves what that one cannot.

    ``lfs`` ignores the fence: it exchanges layouts itself.
    """
    calls = MountedCalls(library, mount.path, lambda: archives_follow_swaps(tree, mount.fsname))

    def quota(kind: int, owner: int, pool: str) -> Quota:
        return library.quota(mount.path, kind, owner, pool)

    destination = Destination(
        lambda: read_pools(tree, mount.fsname), lambda: read_space(tree, mount.fsname), quota,
        settings.keep_free, lambda: metadata_spaces(tree, mount.fsname))
    run = command_runner(settings.timeout_seconds, job_tag(tree), parent_death_prefix())
    lease = LeaseMover(calls, destination, fence=fence)
    lfs = LfsMover(calls, destination, calls.whole, run, settings.lfs,
                   overstripes=lambda: migrates_to_overstriped(tree))
    return EitherEngine(lease, lfs) if settings.engine == "lease" else EitherEngine(lfs, lease)


def job_tag(tree: Tree) -> dict[str, str]:
    """Environment variables for ``lfs``, so that servers count its I/O as tierd's.

    Empty if ``jobid_var`` does not name an environment variable (such as SLURM_JOB_ID).
    """
    name = (tree.read("jobid_var") or b"").strip().decode("ascii", "replace")
    return {name: JOB_TAG} if _VARIABLE.fullmatch(name) else {}


def mounted_filesystem(mount: Mount, tree: Tree, settings: MoverSettings) -> MountedFilesystem:
    """The file system port over a mount. Raises LibraryMissing if liblustreapi is not installed."""
    library = Library.load(settings.library)
    return MountedFilesystem(mount, library, tree, one_at_a_time(build_mover(mount, library, tree, settings)))
