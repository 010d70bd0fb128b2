"""Builds the engine that moves files: by default ``lfs`` first (docs/decisions/006-mover-engines.md says why)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from importlib import import_module

from lustre import mounted
from lustre.llapi.calls import Library
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount
from lustre.parameters import Tree
from tierd.act.movers.checks import FileFacts
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover, command_runner, parent_death_prefix
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult
from tierd.act.movers.space_and_quota import Destination, DestinationState
from tierd.config.act import MoverSettings
from tierd.refusal import Reason
from tierd.sense.parameters import metadata_spaces

OTHER_ENGINE = frozenset({Reason.TIMES, Reason.PROJECT, Reason.TO_MDT, Reason.OVERSTRIPED, Reason.OLD_RELEASE,
                          Reason.SEVERAL_OBJECTS})
"""Reasons for which one engine refuses what the other moves: ``lease`` data that goes to an MDT, ``lfs`` the rest."""


class EitherEngine(FileEngine):
    """One engine, and another one for the files that only that one can move. The first one examines each file, so the
    other one costs nothing where it is not needed.
    """

    def __init__(self, first: FileEngine, other: FileEngine) -> None:
        self.first = first
        self.other = other
        self.files_at_a_time = first.files_at_a_time

    def batch(self) -> DestinationState:
        return self.first.batch()

    def facts_of(self, move: Move, batch: DestinationState) -> FileFacts | MoveOutcome:
        found = self.first.facts_of(move, batch)
        other = isinstance(found, MoveOutcome) and needs_other(found)
        return self.other.facts_of(move, batch) if other else found

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: DestinationState) -> Iterator[MoveOutcome]:
        for outcome in self.first.move_batch(moves, halt, batch):
            if needs_other(outcome):
                yield from self.other.move_batch([outcome.move], halt, batch)
            else:
                yield outcome


def needs_other(outcome: MoveOutcome) -> bool:
    return outcome.result is MoveResult.REFUSED and outcome.reason in OTHER_ENGINE


FURTHER = ("tierd.mirrors.mover",)
"""Modules with a function ``engine``, which adds to an engine what it cannot do."""
JOB_TAG = "tierd.0"
"""Job id of tierd's own I/O, one of ``own_jobs``."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""Names of environment variables, in contrast to ``procname_uid``, ``nodelocal``, ``session`` and ``disable``."""


def build_mover(mount: Mount, library: Library, tree: Tree, settings: MoverSettings) -> FileEngine:
    """The engine that the settings name, for one mount; the others move what it cannot."""
    calls = MountedCalls(library, mount.path, lambda: mounted.archives_follow_swaps(tree, mount.fsname))
    destination = Destination(
        lambda: mounted.read_pools(tree, mount.fsname), lambda: mounted.read_space(tree, mount.fsname),
        partial(mounted.read_quota, library, tree, mount), settings.keep_free,
        lambda: metadata_spaces(tree, mount.fsname))
    run = command_runner(settings.timeout_seconds, job_tag(tree), parent_death_prefix())
    lfs = LfsMover(calls, destination, calls.whole, run, settings.lfs,
                   release=lambda: mounted.client_release(tree),
                   by_fid=lambda: mounted.copies_by_fid(tree, mount),
                   mirrors=lambda: mounted.oldest_release(tree, mount.fsname) >= mounted.NEWEST_MIRROR_STAYS)
    by_name: dict[str, FileEngine] = {"lease": LeaseMover(calls, destination), "lfs": lfs}
    first = by_name.pop(settings.engine)
    engine = reduce(EitherEngine, by_name.values(), first)
    for name in FURTHER:
        engine = import_module(name).engine(engine, lfs)
    return engine


def job_tag(tree: Tree) -> dict[str, str]:
    """Environment variables for ``lfs``, so that servers count its I/O as tierd's. Empty if ``jobid_var`` does not name
    an environment variable (such as SLURM_JOB_ID).
    """
    name = (tree.read("jobid_var") or b"").strip().decode("ascii", "replace")
    return {name: JOB_TAG} if _VARIABLE.fullmatch(name) else {}
