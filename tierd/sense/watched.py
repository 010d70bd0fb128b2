"""Single-client mode: watches directories with inotify, and returns the events as changelog records.

It is for file systems without a readable changelog that only this node uses. inotify reports activity of this node
only: on a file system with more clients the records are incomplete, and tierd cannot detect that. When the kernel's
queue of events overflows, events are lost, and this is reported.

pyinotify manages the watches. Its reader is not used, since it drops a whole batch of events for one name that is not
UTF-8. Its import adds a handler and a level to its logger, which is undone, and warns of ``asyncore``.

An event does not name its job. The configuration names for each directory the jobs that work there; empty stands for
jobs whose id ends with the number of the file's owner, as ``jobid_var=procname_uid`` makes them. Unless exactly one
active job fits, the event belongs to no job and counts for no finding.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import threading
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import chain
from types import ModuleType
from typing import NamedTuple

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.filesystem import FileStatus, Filesystem
from tierd.sense.changelogs.follow import ChangelogError
from tierd.sense.changelogs.packed import Records
from tierd.sense.paths import join

MAX_EVENTS = 100_000
"""Events held until they are taken; further ones are reported as lost."""
MAX_DIRECTORIES = 8192
CORRECTIONS = {"ENOSPC": ": raise the sysctl fs.inotify.max_user_watches",
               "EMFILE": ": raise the sysctl fs.inotify.max_user_instances"}
"""What to do about errors."""
_HEAD = struct.Struct("iIII")
CLOSE_WRITE, CLOSE_READ, OPEN, MOVED_FROM, MOVED_TO, CREATE, DELETE = (1 << bit for bit in range(3, 10))
MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x800, 0x2000, 0x4000, 0x8000
_ONLY_DIRECTORIES, IS_DIRECTORY = 0x01000000, 0x40000000
WATCHED = CREATE | OPEN | CLOSE_WRITE | CLOSE_READ | MOVED_FROM | MOVED_TO | DELETE | MOVE_SELF


class Event(NamedTuple):
    """Something happened to a name in a directory."""

    folder: str
    name: str
    mask: int
    time: float


class InotifyError(OSError):
    """A directory that cannot be watched, and how to correct that."""


class Watcher:
    """Reads events in its own thread, so that the kernel's short queue does not overflow between two cycles."""

    def __init__(self, now: Callable[[], float]) -> None:
        module = import_pyinotify()
        try:
            self._manager = module.WatchManager()
        except OSError as error:
            raise InotifyError(watch_error(errno.errorcode[error.errno or errno.EMFILE], "inotify")) from error
        self._descriptor: int = self._manager.get_fd()
        os.set_inheritable(self._descriptor, False)  # lfs must not inherit it
        self._now = now
        self._folders: dict[int, str] = {}
        self._events: deque[Event] = deque()
        self._lost = ""
        self._lock = threading.Lock()
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._run, name="tierd-inotify", daemon=True)
        self._thread.start()

    @property
    def folders(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._folders.values())

    def add(self, folder: str) -> None:
        """Watch the files in a directory. Raises InotifyError with what to do about it."""
        with self._lock:
            if len(self._folders) >= MAX_DIRECTORIES and folder not in self._folders.values():
                raise InotifyError(f"more than {MAX_DIRECTORIES} directories: not all are watched")
            try:
                added = self._manager.add_watch(folder, WATCHED | _ONLY_DIRECTORIES, quiet=False)
                number = next(iter(added.values()))
            except UnicodeError as error:
                raise InotifyError(watch_error("its name is not text", folder)) from error
            except Exception as error:
                raise InotifyError(watch_error(str(error).rpartition("Errno=")[2], folder)) from error
            self._folders[number] = folder

    def remove(self, folder: str) -> None:
        """Watch a directory no longer, nor those below it: it has another name now."""
        with self._lock:
            for number in [of for of, each in self._folders.items() if f"{each}/".startswith(f"{folder}/")]:
                del self._folders[number]
                with suppress(Exception):  # it was removed meanwhile
                    self._manager.rm_watch(number, quiet=False)

    def take(self) -> tuple[list[Event], str]:
        """Events since the last call, and why some were lost ("" when none were)."""
        with self._lock:
            taken = list(self._events), self._lost
            self._events, self._lost = deque(), ""
        return taken

    def close(self) -> None:
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        self._manager.close()
        os.close(self._stop)

    def _run(self) -> None:
        poll = select.poll()
        for descriptor in (self._descriptor, self._stop):
            poll.register(descriptor, select.POLLIN)
        while True:
            if self._stop in {descriptor for descriptor, _ in poll.poll()}:
                return
            try:
                data = os.read(self._descriptor, 1 << 18)
            except OSError:
                continue
            self._take(data)

    def _take(self, data: bytes) -> None:
        at, now = 0, self._now()
        with self._lock:
            while at + _HEAD.size <= len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = os.fsdecode(data[at:at + length].rstrip(b"\0"))
                at += length
                if mask & _OVERFLOW:
                    self._lost = "the kernel's queue overflowed (fs.inotify.max_queued_events)"
                elif mask & (_IGNORED | _UNMOUNT):
                    self._folders.pop(number, None)
                    self._manager.watches.pop(number, None)
                elif len(self._events) >= MAX_EVENTS:
                    self._lost = f"more than {MAX_EVENTS} events arrived before they were read"
                elif number in self._folders:
                    self._events.append(Event(self._folders[number], name, mask, now))


def import_pyinotify() -> ModuleType:
    """pyinotify, without what importing it does to logging. Raises InotifyError where it is not there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import pyinotify  # noqa: PLC0415 -- the daemon works without it
    except ImportError as error:
        raise InotifyError("pyinotify is not installed (pip install pyinotify)") from error
    pyinotify.log.handlers.clear()
    return pyinotify  # type: ignore[no-any-return]


def watch_error(reason: str, what: str) -> str:
    """Why something cannot be watched, and what to do. pyinotify puts the name of the error into its sentence."""
    correction = next((words for name, words in CORRECTIONS.items() if name in reason), "")
    return f"{ascii(what)[1:-1]} cannot be watched: {reason}{correction}"


MAX_FILES = 200_000
_VOLATILE = ".\x0c\x13\x14\x12:VOLATILE"
"""Prefix of the volatile file that a migration writes to. Its events are ignored."""


class WatchedDirectories:
    """Events of this node as changelog records of one imaginary MDT."""

    def __init__(self, watcher: Watcher, filesystem: Filesystem, mount: str, directories: Mapping[str, str],
                 jobs: Callable[[], Collection[str]]) -> None:
        self._watcher = watcher
        self._filesystem = filesystem
        self._mount = mount.rstrip("/")
        self._jobs = jobs
        self._patterns = {directory.rstrip("/") or "/": pattern for directory, pattern in directories.items()}
        self._files: OrderedDict[str, tuple[Fid, int]] = OrderedDict()
        """FID and owner of each file that an event named, by path."""
        self._moving: OrderedDict[Fid, None] = OrderedDict()
        """Files that were renamed, and whose new name is not known yet."""
        self._index = 0
        self._unwatched: dict[str, str] = {}
        """Directories that cannot be watched now, with the reasons."""
        for directory in self._patterns:
            watcher.add(self._mount + directory)
            for _ in self._below(directory, 0.0):
                pass

    @property
    def positions(self) -> Mapping[str, int]:
        """No changelog is read, so none is cleared."""
        return {}

    def batches(self) -> Iterator[Records]:
        """Records since the last call. Raises ChangelogError at the end if events were lost or are not watched."""
        events, lost = self._watcher.take()
        for event in events:
            yield Records.of(list(self._records_of(event)))
        for directory in tuple(self._unwatched):
            if self._watch(directory):
                for _ in self._below(directory, 0.0):
                    pass
            elif directory in self._unwatched:
                break  # it is the last one now: in the next call another is first
        gone = sorted(set(self._patterns) - {self._path(folder) for folder in self._watcher.folders})
        problems = [*([f"events were lost: {lost}"] if lost else []), *sorted(self._unwatched.values())[:1],
                    *(f"{directory!r} is no longer watched: it was removed, renamed or unmounted"
                      for directory in gone)]
        if problems:
            raise ChangelogError(f"watched directories: {'; '.join(problems)}")

    def _watch(self, directory: str) -> bool:
        self._unwatched.pop(directory, None)
        try:
            self._watcher.add(self._mount + directory)
        except InotifyError as error:
            if os.path.isdir(self._mount + directory):
                self._unwatched[directory] = str(error)
            return False
        return True

    def _below(self, directory: str, time: float) -> Iterator[Event]:
        """Watch all directories below one. Events of the files that were created there before the watch began."""
        waiting = [directory]
        while waiting:  # as deep as a user likes
            place = waiting.pop()
            for name, is_directory in self._inside(place):
                if not is_directory:
                    yield Event(self._mount + place, name, CREATE, time)
                elif self._watch(below := join(place, name)):
                    waiting.append(below)

    def _inside(self, directory: str) -> list[tuple[str, bool]]:
        """Names in a directory, and whether each is a directory; none if it was removed."""
        with suppress(OSError), os.scandir(self._mount + directory) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        return []

    def _records_of(self, event: Event) -> Iterator[Record]:
        directory = self._path(event.folder)
        path = join(directory, event.name)
        if event.mask & (IS_DIRECTORY | MOVE_SELF):
            yield from self._of_directory(event, path)
            return
        if not event.name or event.name.startswith(_VOLATILE):
            return
        if event.mask & (DELETE | MOVED_FROM):
            known = self._files.pop(path, None)
            if known and event.mask & DELETE:
                yield self._record(RecordType.UNLINK, event, directory, *known)
            elif known:
                self._moving[known[0]] = None
                if len(self._moving) > MAX_DIRECTORIES:
                    self._moving.popitem(last=False)
            return
        if event.mask & (CREATE | MOVED_TO):
            self._files.pop(path, None)  # another file had this name
        known = self._known(path)
        if known is None:
            return
        if event.mask & MOVED_TO and known[0] in self._moving:
            del self._moving[known[0]]
            yield self._record(RecordType.RENAME, event, directory, *known)
            return
        for bit, kind in ((CREATE | MOVED_TO, RecordType.CREATE), (OPEN, RecordType.OPEN),
                          (CLOSE_WRITE | CLOSE_READ, RecordType.CLOSE)):
            if event.mask & bit:
                yield self._record(kind, event, directory, *known)

    def _of_directory(self, event: Event, path: str) -> Iterator[Record]:
        """Records of files that were created in a new directory before the watch on it began. One that has another
        name now is watched by that, if at all.
        """
        if event.mask & MOVED_FROM or (event.mask & MOVE_SELF and self._path(event.folder) in self._patterns):
            self._watcher.remove(self._mount + path.rstrip("/"))
        elif event.mask & (CREATE | MOVED_TO) and self._watch(path):
            yield from chain.from_iterable(map(self._records_of, self._below(path, event.time)))

    def _known(self, path: str) -> tuple[Fid, int] | None:
        known = self._files.get(path)
        if known is None:
            try:
                status: FileStatus = self._filesystem.status(path)
            except OSError:
                return None  # gone again
            known = self._files[path] = status.fid, status.uid
            if len(self._files) > MAX_FILES:
                self._files.popitem(last=False)
        return known

    def _record(self, kind: RecordType, event: Event, directory: str, fid: Fid, uid: int) -> Record:
        self._index += 1
        parent, _ = self._known(directory) or (Fid(0, 0), 0)
        return Record(self._index, kind, event.time, target=fid, parent=parent,
                      name=os.fsencode(event.name), job_id=self._job(directory, uid).encode(), uid=uid,
                      source=fid if kind is RecordType.RENAME else None)

    def _job(self, directory: str, uid: int) -> str:
        above = max((each for each in self._patterns if join(directory, "").startswith(join(each, ""))), key=len)
        pattern = self._patterns[above] or f"*.{uid}"
        fitting = [job for job in self._jobs() if fnmatchcase(job, pattern)]
        return fitting[0] if len(fitting) == 1 else ""

    def _path(self, folder: str) -> str:
        return folder.removeprefix(self._mount) or "/"
