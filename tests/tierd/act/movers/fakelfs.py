"""``lfs migrate --non-block`` over the Lustre in memory: its steps in their order, with messages that were recorded.

Order and checks are those of Lustre 2.17.57 as its system calls show them: the volatile file comes before the lease,
which is checked before each piece, the data version is compared, times are set to the second, and the exchange is one
call. Each step goes through :class:`MiniCalls`, so applications may come between, and the process may die.
"""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from lustre.layout.model import Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.act.movers.minicalls import Killed, MiniCalls
from tests.tierd.act.movers.minilustre import PAGE, MiniLustre
from tierd.act.movers.lfs import FinishedCommand

T = TypeVar("T")
MOUNT = "/mnt/lustre"
BUFFER = 4 * PAGE


class _Failed(Exception):  # noqa: N818 -- as lfs says it
    """The message of lfs about one file, and the errno it exits with."""

    def __init__(self, number: int, words: str, before: str = "") -> None:
        super().__init__(words)
        self.number = number
        self.words = words
        self.before = before


class FakeLfs:
    """A :data:`~tierd.act.movers.lfs.CommandRunner`. Like MiniCalls, it calls ``before`` before every call."""

    def __init__(self, lustre: MiniLustre, layouts: Iterable[Layout]) -> None:
        self.lustre = lustre
        self.layouts = {setstripe_arguments(layout): layout for layout in layouts}
        self.commands: list[tuple[str, ...]] = []
        self.before: Callable[[str, int], None] = lambda name, number: None
        self.chatter = ""
        self.lose_reply = False

    def __call__(self, command: Sequence[str]) -> FinishedCommand:
        """One process: files in order, whatever becomes of those before."""
        self.commands.append(tuple(command))
        if tuple(command[:4]) == ("lfs", "mirror", "split", "-d"):
            return self._split(command[-1].removeprefix(MOUNT), int(command[5]))
        if command[1] == "mirror":
            return self._mirrors(command[2], command[-1], command[5:-1])
        assert tuple(command[:3]) == ("lfs", "migrate", "--non-block"), "no other mode may ever be used"
        places = [word for word in command if word.startswith(MOUNT + "/")]
        layout = self.layouts[tuple(command[3 : len(command) - len(places)])]
        calls = MiniCalls(self.lustre)
        calls.before, calls.lose_reply = self.before, self.lose_reply
        opened_by_others = set(self.lustre.descriptors)
        code, words = 0, self.chatter
        for place in places:
            try:
                self._file(calls, place.removeprefix(MOUNT), layout)
            except _Failed as failed:
                code = code or failed.number
                words += f"{failed.before}error: lfs migrate: {place}: {failed.words}: {os.strerror(failed.number)}\n"
            except Killed:
                for descriptor in set(self.lustre.descriptors) - opened_by_others:
                    self.lustre.release(descriptor)
                return FinishedCommand(-9, words)
        return FinishedCommand(code, words)

    def _file(self, calls: MiniCalls, path: str, layout: Layout) -> None:
        source = _ask("cannot open source file", calls.open_for_swap, path, True)
        try:
            index = _ask("cannot get MDT index", calls.mdt_index, source)
            volatile = _ask("cannot create volatile file", calls.create_volatile, path, index, layout, source)
            try:
                present = self.lustre.descriptors[source].node.store.layout
                if layout.components[0].on_mdt and not present.components[0].on_mdt:
                    self._mirror(calls, path, source, volatile)
                else:
                    self._copy_and_swap(calls, source, volatile)
            finally:
                _close(calls, volatile)
        finally:
            _close(calls, source)

    def _mirror(self, calls: MiniCalls, path: str, source: int, volatile: int) -> None:
        """``lfs_migrate_to_dom``: copy, add the new layout as a mirror, synchronise it, remove the old one."""
        _ask("cannot get lease", calls.lease, source)
        if not _ask("data copy failed", calls.lease_held, source):
            raise _Failed(errno.EBUSY, "data copy failed")
        old, new = calls.layout(source), calls.layout(volatile)
        assert old is not None
        assert new is not None
        node = _ask("cannot stat file", self.lustre.at, path)
        first = tuple(replace(part, mirror_id=1) for part in old.components)
        second = tuple(replace(part, mirror_id=2) for part in new.components)
        _ask("cannot get lease", calls.step, "merge")
        if not _ask("cannot get lease", calls.lease_held, source):
            raise _Failed(errno.EBUSY, "cannot merge layout")
        node.leased_by = None
        stale = (replace(second[0], flags=("stale",)), *second[1:])
        node.store.layout = replace(new, components=(*first, *stale), mirror_count=2)
        _ask("cannot resync file", calls.step, "resync")
        if node.writers:
            raise _Failed(errno.EBUSY, "cannot resync file")
        node.shown_mtime_ns = self.lustre.tick()  # lfs sets the time back on the MDT, while this mirror counts as stale
        node.store.layout = replace(new, components=(*first, *second), mirror_count=2)
        _ask("cannot delete old layout", calls.step, "split")
        if node.writers:
            raise _Failed(errno.EBUSY, "cannot delete old layout")
        node.store.layout = replace(new, components=second)
        node.ctime_ns = self.lustre.tick()

    def _mirrors(self, what: str, place: str, options: Sequence[str]) -> FinishedCommand:
        """``lfs mirror extend`` and ``resync``, of one file."""
        calls = MiniCalls(self.lustre)
        calls.before, calls.lose_reply = self.before, self.lose_reply
        path = place.removeprefix(MOUNT)
        opened_by_others = set(self.lustre.descriptors)
        try:
            if what == "extend":
                self._extend(calls, path, self.layouts[tuple(options)])
            else:
                self._resync(calls, path)
        except _Failed as failed:
            return FinishedCommand(failed.number, f"error: lfs mirror {what}: {place}: {failed.words}: "
                                   f"{os.strerror(failed.number)}\n")
        except Killed:
            return FinishedCommand(-9, "")
        finally:
            for descriptor in set(self.lustre.descriptors) - opened_by_others:
                self.lustre.release(descriptor)
        return FinishedCommand(0, "")

    def _extend(self, calls: MiniCalls, path: str, layout: Layout) -> None:
        source = _ask("cannot open source file", calls.open_for_swap, path, True)
        volatile = _ask("cannot create volatile file", calls.create_volatile, path, 0, layout, source)
        _ask("cannot get lease", calls.lease, source)
        node = _ask("cannot stat file", self.lustre.at, path)
        if node.writers:
            raise _Failed(errno.EBUSY, "cannot get lease")
        _ask("data copy failed", calls.step, "copy")
        if not calls.lease_held(source):
            raise _Failed(errno.EBUSY, "data copy failed")
        _ask("cannot merge layout", calls.step, "merge")
        if not calls.lease_held(source):
            raise _Failed(errno.EBUSY, "lost lease lock")
        new = calls.layout(volatile)
        parts = (*(replace(part, mirror_id=1) for part in node.store.layout.components),
                 *(replace(part, mirror_id=2, flags=() if number else ("init", "prefer"))
                   for number, part in enumerate(new.components)))
        node.store.layout = Layout(parts, 2, 2, state="ro")
        calls.step("merged")

    def _resync(self, calls: MiniCalls, path: str) -> None:
        _ask("cannot open", calls.step, "open")
        node = _ask("cannot stat file", self.lustre.at, path)
        node.leased_by, node.lease_broken = -1, False
        try:
            _ask("fail to mirror resync", calls.step, "copy")
            if node.writers or node.lease_broken:
                raise _Failed(errno.EBUSY, "lost lease lock")
            node.store.layout = replace(node.store.layout, state="ro", components=tuple(
                replace(part, flags=tuple(flag for flag in part.flags if flag != "stale"))
                for part in node.store.layout.components))
            self.lustre.mirror_mtimes_ns[node.fid] = self.lustre.tick()
        finally:
            node.leased_by = None

    def _split(self, path: str, mirror: int) -> FinishedCommand:
        """``lfs mirror split -d``: refused while a process writes the file."""
        try:
            self.before("remove", 0)
            node = self.lustre.at(path)
        except (Killed, OSError) as why:
            return FinishedCommand(-9 if isinstance(why, Killed) else 2, "")
        if node.writers:
            return FinishedCommand(16, f"error lfs mirror split: cannot split '{MOUNT}{path}': Device or resource busy")
        rest = tuple(part for part in node.store.layout.components if part.mirror_id != mirror)
        if any("stale" in part.flags for part in rest):  # lfs of 2.17.57 synchronises it, and sets the time to now
            rest = tuple(replace(part, flags=tuple(flag for flag in part.flags if flag != "stale")) for part in rest)
            node.mtime_ns = self.lustre.tick()
        node.store.layout = replace(node.store.layout, components=rest, mirror_count=1)
        node.mtime_ns = max(node.mtime_ns, self.lustre.mirror_mtimes_ns.pop(node.fid, 0))
        return FinishedCommand(0, f"lfs mirror mirror: cannot get UNLOCK lease, ext 8 for {node.fid}: "
                               "Invalid argument (22)\n")

    def _copy_and_swap(self, calls: MiniCalls, source: int, volatile: int) -> None:
        status = _ask("cannot stat source file", calls.status, source)
        _ask("cannot change ownwership of volatile", calls.set_owner, volatile, status.uid, status.gid)
        _ask("cannot get lease", calls.lease, source)
        status = _ask("cannot stat source file", calls.status, source)
        version = _ask("cannot get data version", calls.data_version, source)
        offset = 0
        while True:
            if not _ask("data copy failed", calls.lease_held, source):
                raise _Failed(errno.EBUSY, "data copy failed",
                              "lfs migrate: error checking src file: Device or resource busy (16)\n")
            data = _ask("data copy failed", calls.read, source, BUFFER, offset)
            if data:
                _ask("data copy failed", calls.write, volatile, data, offset)
            offset += len(data)
            if len(data) < BUFFER:  # lfs takes a short read for the end of the file
                break
        _ask("data copy failed", calls.sync, volatile)
        if _ask("cannot get data version", calls.data_version, source) != version:
            raise _Failed(errno.EAGAIN, "source file changed")
        _ask("set target file timestamp failed", calls.set_times, volatile, status.atime_ns, status.mtime_ns)
        _ask("cannot get data version", calls.data_version, volatile)
        _ask("cannot swap layout", calls.swap_and_close, source, volatile, version, 0)


def _ask(words: str, call: Callable[..., T], *arguments: object) -> T:
    try:
        return call(*arguments)
    except OSError as error:
        raise _Failed(error.errno or errno.EIO, words) from error


def _close(calls: MiniCalls, descriptor: int) -> None:
    try:
        calls.close(descriptor)
    except OSError:
        return  # lfs does not look
