"""The engine that runs ``lfs migrate --non-block``, many files per process; the default engine (docs/decisions).

The engine does not trust the exit code of ``lfs``, which may be 0 without a move, nor its messages. It reads every file
before and after. It never uses the default mode of ``lfs``: that takes the group lock, and loses a truncate.

``lfs`` gets most files by FID: between the examination and its open, another file or a symbolic link may take a name.
A nameless file below ``.lustre/fid`` gets no project, and is not encrypted (``ll_lookup_it`` in lustre/llite/namei.c).
So files with either go by name, as all do where a subdirectory is mounted or before Lustre 2.13. What takes the name is
moved unchecked: it keeps its data, though not its mirrors.

Whether somebody wrote to a file since the examination shows only in its modification time, which counts whole seconds:
a file that was modified a moment ago is left alone. Where data leaves the MDT, Lustre sets that time to the present:
such a file is left to the other engine (:mod:`tierd.act.movers.engines`).

Data gets to the MDT by mirroring, in several transactions. A process that ends between them leaves the file whole with
two mirrors; the engine removes the second one.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lustre.errors import LustreError, kind_of
from lustre.filesystem import Calls, FileFlags
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.movers import checks, inspection
from tierd.act.movers.checks import FileFacts
from tierd.act.movers.moves import Halt, Move, MoveOutcome, MoveResult, halted_outcome, refused_outcome
from tierd.act.movers.space_and_quota import Destination, DestinationState
from tierd.clock import Clock, SystemClock
from tierd.refusal import Reason, Refusal


@dataclass(frozen=True, slots=True)
class FinishedCommand:
    """How a command ended. ``code`` is negative for a signal."""

    code: int
    errors: str


CommandRunner = Callable[[Sequence[str]], FinishedCommand]
Examined = tuple[Move, FileFacts]
"""A file that was examined and may be moved."""
_PARENT_DEATH_PREFIX = ("setpriv", "--pdeathsig", "KILL")
_TRY_SECONDS = 5.0


def parent_death_prefix() -> tuple[str, ...]:
    """Prefix of commands that end with tierd, even if tierd is killed. Empty if setpriv(1) cannot do that.

    Without it, the ``lfs migrate`` of a killed tierd would run alongside the next tierd, whose journal has no such act.
    (systemd kills the whole control group. util-linux has the option since 2.33.)
    """
    with suppress(OSError):
        if command_runner(_TRY_SECONDS)((*_PARENT_DEATH_PREFIX, "true")).code == 0:
            return _PARENT_DEATH_PREFIX
    return ()


def works_on(fids: Collection[str], proc: Path = Path("/proc")) -> bool:
    """Whether a process moves one of these files. The ``lfs`` of a killed tierd may still be in the kernel."""
    for file in proc.glob("[0-9]*/cmdline") if fids else ():
        with suppress(OSError):
            words = os.fsdecode(file.read_bytes())
            if any(f"/.lustre/fid/{fid}\0" in words for fid in fids):
                return True
    return False


def command_runner(timeout_seconds: float, more: Mapping[str, str] | None = None,
                   before: Sequence[str] = ()) -> CommandRunner:
    """Returns a runner that kills commands after a timeout, and waits for their end: one that hangs in the kernel may
    still exchange layouts, so that its files stay under way. A killed ``lfs migrate`` leaves every file whole. ``more``
    is added to the environment, ``before`` is a prefix of each command.
    """

    def run(command: Sequence[str]) -> FinishedCommand:
        environment = {**os.environ, "LC_ALL": "C", **(more or {})}  # its messages are searched for English words
        try:
            done = subprocess.run(  # noqa: S603 -- no shell interprets file names
                [*before, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                check=False, timeout=timeout_seconds, env=environment)
        except subprocess.TimeoutExpired as error:
            words = (error.stderr or b"").decode("utf-8", "surrogateescape")
            return FinishedCommand(-9, f"{words}killed after {timeout_seconds:g} s")
        return FinishedCommand(done.returncode, done.stderr.decode("utf-8", "surrogateescape"))

    return run


FILES_PER_PROCESS = 64
"""A quarter of a MiB of arguments at most, where Linux takes two: no path that can be opened is longer than 4 KiB."""
FILES_OF_FIRST_PROCESS = 4
"""A choice: the time that a file takes is not known yet."""
PROCESS_SECONDS = 2.0
"""Time that a process should take. Moves can be halted only between processes. A choice."""
RECENTLY_MODIFIED_SECONDS = 3
"""Minimum age of the modification time, so that the next modification has another second, with usual clock skew."""
CLOCK_AHEAD_SECONDS = 600
"""Modification times further in the future were set by hand, not by a client whose clock is ahead."""
_TIMES_REFUSAL = (
    "the data would leave the MDT: Lustre then sets the modification time to the present, lfs does not restore it, and "
    "tierd could not detect a write. The engine `lease` moves such files"
)
_BUSY = ("Device or resource busy", "Text file busy", "Resource temporarily unavailable", "source file changed",
         ": -16")
_NO_LEASE = "cannot get lease"
"""Words of ``lfs_migrate`` (lustre/utils/lfs.c) before it copies. On the way to an MDT a later step has them too."""
_NUMBERS = {os.strerror(number): number for number in (
    errno.ENOSPC, errno.EDQUOT, errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOKEY, errno.ESTALE,
    errno.ENOLCK, errno.ENOMEM, errno.ENAMETOOLONG)}
_SEVERAL_OBJECTS = Refusal(Reason.SEVERAL_OBJECTS, "the file has several objects: if a target fails, lfs migrate takes "
                           "what it has read for the whole file. The engine `lease` moves it")


class LfsMover(inspection.FileEngine):
    """A process gets as many files as processes before it moved in ``PROCESS_SECONDS``."""

    files_at_a_time = FILES_PER_PROCESS

    def __init__(self, calls: Calls, destination: Destination, place: Callable[[str], str], run: CommandRunner,
                 lfs: str = "lfs", clock: Clock | None = None, release: Callable[[], tuple[int, int]] = lambda: (2, 17),
                 by_fid: Callable[[], bool] = lambda: True, mirrors: Callable[[], bool] = lambda: True) -> None:
        """``place`` converts a path of the file system to one of this node. The last three return the release of
        this ``lfs``, whether it can copy by FID here, and whether it and the MDTs run 2.15 or later.
        """
        super().__init__(destination)
        self.release, self._mirrors = release, mirrors
        self._by_fid, self._knows_fids = by_fid, False
        self.calls = calls
        self._place = place
        self._run = run
        self._lfs = lfs
        self.clock = clock or SystemClock()
        self._files_per_process = FILES_OF_FIRST_PROCESS

    def move_batch(self, moves: Iterable[Move], halt: Halt, batch: DestinationState) -> Iterator[MoveOutcome]:
        """Moves files with the same new layout together. Examines each just before the process that moves it."""
        waiting: dict[tuple[str, ...], deque[Move]] = {}
        for move in moves:
            arguments: tuple[str, ...] = ()
            with suppress(ValueError):  # the examination refuses a layout that lfs has no options for
                arguments = setstripe_arguments(move.layout)
            waiting.setdefault(arguments, deque()).append(move)
        for arguments, left in waiting.items():
            while left:
                if why := halt():
                    yield from (halted_outcome(move, why) for move in left)
                    break
                ready: list[Examined] = []
                for move in [left.popleft() for _ in range(min(len(left), self._files_per_process))]:
                    found = self.facts_of(move, batch)
                    if isinstance(found, MoveOutcome):
                        yield replace(found, not_copied=1.0)
                    # not in facts_of, which examines files for mirrors too: they keep their own data
                    elif (not checks.enters_mdt(move.layout, found.layout)
                          and sum(map(len, checks.layout_objects(found.layout))) > 1):
                        yield replace(refused_outcome(move, _SEVERAL_OBJECTS), not_copied=1.0)
                    elif why := move.fence():  # the examination may have hung for minutes
                        yield halted_outcome(move, why)
                    else:
                        ready.append((move, found))
                if ready:
                    yield from self._process(arguments, ready, batch)

    def facts_of(self, move: Move, batch: DestinationState) -> FileFacts | MoveOutcome:
        """Facts of a file that may be moved, or the outcome. Refuses a file whose next write might not show."""

        def also(move: Move, facts: FileFacts) -> Refusal | None:
            setstripe_arguments(move.layout)  # raises if lfs has no options for the layout
            if checks.leaves_mdt(move.layout, facts.layout):
                return Refusal(Reason.TIMES, _TIMES_REFUSAL)
            if checks.enters_mdt(move.layout, facts.layout) and (refusal := self.mirroring_refusal(facts)):
                return refusal
            if FileFlags.ENCRYPTED in facts.flags and not self._mirrors():  # LU-14677
                return Refusal(Reason.ENCRYPTED, "the file is encrypted: lfs migrate before Lustre 2.15 loses its data")
            if any(component.overstriped for component in move.layout.components) and self.release() < (2, 17):
                return Refusal(Reason.OVERSTRIPED, "lfs migrate before Lustre 2.17 does not place several objects on "
                               "one target (LU-18824). The engine `lease` moves such files")
            if self.release() == (2, 14):  # from LU-14043 until LU-13397
                return Refusal(Reason.OLD_RELEASE, "lfs migrate of Lustre 2.14 takes a copy that a write error has cut "
                               "short for the whole file. The engine `lease` moves it")
            given = batch.project_beside(self.calls, move.path) if self._goes_by_name(facts) else 0
            return None if given == facts.project else Refusal(
                Reason.PROJECT, f"the file belongs to project {facts.project}, and its objects would count for "
                f"project {given}")

        found = inspection.facts_before(self.calls, move, batch, also)
        return found if isinstance(found, MoveOutcome) else self.modified_just_now(move, found) or found

    def modified_just_now(self, move: Move, facts: FileFacts) -> MoveOutcome | None:
        """The outcome for a file whose next write might have the same modification time."""
        age_seconds = int(self.clock.now()) - facts.status.mtime_ns // 1_000_000_000
        if -CLOCK_AHEAD_SECONDS < age_seconds < RECENTLY_MODIFIED_SECONDS:
            return MoveOutcome(move, MoveResult.GAVE_WAY, "busy", "the file was modified just now, so it is in use")
        return None

    def run(self, *words: str) -> FinishedCommand:
        """Run ``lfs`` with these arguments."""
        try:
            return self._run((self._lfs, *words))
        except OSError as error:
            return FinishedCommand(127, f"{self._lfs} cannot be run: {error}")

    def _process(self, arguments: tuple[str, ...], files: list[Examined],
                 batch: DestinationState) -> Iterator[MoveOutcome]:
        begun = self.clock.now()
        places = [self.place_of(facts, move.path) for move, facts in files]
        finished = self.run("migrate", "--non-block", *arguments, *places)
        self._note_time(len(files), self.clock.now() - begun)
        pools = batch.pools_afterwards()
        for (move, facts), place in zip(files, places, strict=True):
            failure = _failure(finished, place)
            outcome = inspection.Verification(self.calls, move, facts, None, self.clock).outcome(pools, failure)
            if checks.enters_mdt(move.layout, facts.layout):
                yield self._without_half_a_move(outcome, facts, pools, failure)
            elif outcome.result is MoveResult.GAVE_WAY and _NO_LEASE in str(failure):  # no byte was copied
                yield replace(outcome, not_copied=1.0)
            else:
                yield outcome

    def _note_time(self, files: int, seconds: float) -> None:
        in_time = int(PROCESS_SECONDS * files / seconds) if seconds > 0 else FILES_PER_PROCESS
        # twice as many at most: busy files take no time, which says nothing about the next ones
        self._files_per_process = max(1, min(FILES_PER_PROCESS, 2 * self._files_per_process, in_time))

    def _without_half_a_move(self, outcome: MoveOutcome, facts: FileFacts, pools: Mapping[str, tuple[str, ...]],
                             failure: OSError | None) -> MoveOutcome:
        move, mirror = outcome.move, checks.mirror_left(facts.layout, outcome.after)
        if not mirror:
            return outcome
        # the MDT removes it under a lease: a file that is open for writing keeps it
        command = "mirror", "split", "-d", "--mirror-id", str(mirror), self.place_of(facts)
        words = self.run(*command).errors.strip()
        again = inspection.Verification(self.calls, move, facts, None, self.clock).outcome(pools, failure)
        if not checks.mirror_left(facts.layout, again.after):
            return again
        detail = (f"the move was interrupted, and the file is whole with two mirrors ({words or 'no message'}); remove "
                  f"the second: {' '.join([self._lfs, *command])}")
        return MoveOutcome(move, MoveResult.FAILED, "mirror-left", detail)

    def place_of(self, facts: FileFacts, path: str = "") -> str:
        """The file for ``lfs``, whatever its name is now; ``path`` is its name if ``lfs`` copies it beside."""
        return self._place(path if path and self._goes_by_name(facts) else f"/.lustre/fid/{facts.fid}")

    def copies_by_fid(self) -> bool:
        """Whether ``lfs`` can copy files by FID here: not before the releases of all MDTs are known."""
        self._knows_fids = self._knows_fids or self._by_fid()
        return self._knows_fids

    def _goes_by_name(self, facts: FileFacts) -> bool:
        return bool(facts.project) or FileFlags.ENCRYPTED in facts.flags or not self.copies_by_fid()

    def mirroring_refusal(self, facts: FileFacts) -> Refusal | None:
        """Refuses files that could lose a write, or whose archived copy or encrypted data mirroring may not keep."""
        if not self._mirrors():
            return Refusal(Reason.MIRRORED, "this client or an MDT may be older than 2.15: a write could be lost")
        if facts.hsm.copied:
            return Refusal(Reason.ARCHIVED, "the file has a copy in an archive, which mirroring may make out of date; "
                           "data gets to an MDT by mirroring too")
        if FileFlags.ENCRYPTED in facts.flags:
            return Refusal(Reason.ENCRYPTED, "the file is encrypted; tierd does not mirror it, nor move it to an MDT")
        return None

    def resync_refusal(self) -> Refusal | None:
        """Refuses to synchronise a mirror, or to make one that may have to be."""
        return None if self.release() >= (2, 17) else Refusal(
            Reason.MIRRORED, "lfs before 2.17 leaves old data behind the end of a file that became shorter (LU-18468)")


def _failure(finished: FinishedCommand, place: str) -> OSError | None:
    """The message of ``lfs`` about one file, as an error. It explains a failure, but does not prove one."""
    begin = finished.errors.find(f": {place}: ")
    if begin < 0:
        message = finished.errors.strip() or "no message"
        return LustreError(errno.EIO, f"lfs exited with {finished.code}: {message}") if finished.code else None
    return _error_in(finished.errors[begin + len(place) + 4 :].partition("\n")[0], "lfs migrate")


def failure_of_one(finished: FinishedCommand, place: str) -> OSError | None:
    """The messages of a process of ``lfs mirror`` about one file, as an error. Its exit code may be 0 nevertheless."""
    words = finished.errors.replace(place, "FILE").strip()
    return _error_in(words or "no message", "lfs mirror") if words or finished.code else None


def _error_in(words: str, program: str) -> OSError:
    number = next((number for text, number in _NUMBERS.items() if text in words), errno.EIO)
    if any(word in words for word in _BUSY):
        number = errno.EBUSY
    return kind_of(number)(number, f"{program}: {words}")
