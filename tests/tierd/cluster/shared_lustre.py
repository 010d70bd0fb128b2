"""A Lustre in memory for many processes: each asks for every call over a socket. What a process had open is closed.

The owner sees what no process does: how often each file was exchanged, and how many used each target at one time.

A process that stands still for long loses its messages to others. Each of its threads may complete the file in hand on
top of the limit of a target; these files do not count. Each process sends a beat, so that one that gets no processor
for long counts like one that was stopped.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from lustre.errors import of_errno
from lustre.fid import Fid
from tests.tierd.act.kill.remote import receive, send
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import MiniLustre

SYNC_SECONDS = 0.02
"""Time that a mover waits for the storage of a target, so that moves are under way when something happens."""


BEATS = 10
"""Beats of a process in the time after which it stands still."""


class SharedLustre:
    """The file system, and its listener."""

    def __init__(self, path: Path, still_seconds: float = 1.0) -> None:
        """``still_seconds`` without a sign of a process are too long for the leases of its messages."""
        self.still_seconds = still_seconds
        self.lustre = MiniLustre()
        self.port = MiniPort(self.lustre)
        self.lock = threading.RLock()
        self.exchanges: Counter[Fid] = Counter()
        self.most: Counter[int] = Counter()
        """Leases on files of each target, at most."""
        self.slow = threading.Event()
        self.processes: dict[int, OfProcess] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def count(self, targets: Collection[int]) -> None:
        """Count who works on files of these targets. A process that stands still now, or did since its file, is not."""
        now = time.monotonic()
        using = Counter(target for process in self.processes.values() if not process.stands_still(now)
                        for held in process.leased.values() for target in held)
        for target in targets:
            self.most[target] = max(self.most[target], using[target])

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        process = OfProcess(self)
        (pid,) = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[:1]
        self.processes[pid] = process
        with client:
            try:
                while True:
                    name, method, thread, arguments = receive(client)
                    if method == "sync":
                        self.slow.wait(SYNC_SECONDS)
                    try:
                        with self.lock:
                            process.works(thread, time.monotonic())
                            answer: Any = getattr(process if name == "calls" else self.port, method)(*arguments)
                    except OSError as error:
                        answer = error
                    send(client, answer)
            except (EOFError, OSError):
                with self.lock:
                    process.died()


class OfProcess(MiniCalls):
    """The calls of one process; the system closes what it had open."""

    def __init__(self, shared: SharedLustre) -> None:
        super().__init__(shared.lustre)
        self.shared = shared
        self.opened: set[int] = set()
        self.leased: dict[int, set[int]] = {}
        """Targets of each file with a lease, by its descriptor; none if the file does not count."""
        self._seen_at = time.monotonic()
        self._thread = 0
        """The thread that calls."""
        self._threads: set[int] = set()
        self._completing: set[int] = set()
        """Threads with a file that they had in hand when the process stood still."""

    def stands_still(self, now: float) -> bool:
        """Whether there is no sign of the process for long."""
        return now - self._seen_at > self.shared.still_seconds

    def works(self, thread: int, now: float) -> None:
        """A thread of the process calls."""
        if self.stands_still(now):
            self._completing |= self._threads
            for targets in self.leased.values():
                targets.clear()
        self._seen_at = now
        self._thread = thread
        self._threads.add(thread)

    def beat(self) -> None:
        """The process works."""

    def _opened(self, descriptor: int) -> int:
        self.opened.add(descriptor)
        return descriptor

    def open_for_reading(self, path: str) -> int:
        return self._opened(super().open_for_reading(path))

    def open_for_swap(self, path: str, direct: bool) -> int:
        if self.lustre.names.get(path) is None:
            raise of_errno(2, "open", path)
        return self._opened(super().open_for_swap(path, direct))

    def open_fid(self, fid: Fid) -> int:
        self._completing.discard(self._thread)  # a mover that begins a file has just found its message to be its own
        return self._opened(super().open_fid(fid))

    def create_volatile(self, *arguments: Any) -> int:
        return self._opened(super().create_volatile(*arguments))

    def lease(self, descriptor: int) -> None:
        super().lease(descriptor)
        store = self.lustre.descriptors[descriptor].node.store
        targets = {each.ost_index for component in store.layout.components for each in component.objects}
        self.leased[descriptor] = set() if self._thread in self._completing else targets
        self.shared.count(targets)

    def close(self, descriptor: int) -> None:
        self.opened.discard(descriptor)
        self.leased.pop(descriptor, None)
        super().close(descriptor)

    def swap_and_close(self, source: int, volatile: int, *versions: int) -> None:
        node = self.lustre.descriptors[source].node
        super().swap_and_close(source, volatile, *versions)
        self.shared.exchanges[node.fid] += 1

    def died(self) -> None:
        for descriptor in tuple(self.opened):
            with contextlib.suppress(OSError):
                self.close(descriptor)


class Client:
    """The side of a process: objects whose methods are calls over one socket."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lock = threading.Lock()

    def part(self, name: str) -> Any:
        return Part(self, name)

    def beat(self, still_seconds: float) -> None:
        """Show regularly, as long as the process lives, that it works."""
        pause = threading.Event()
        with contextlib.suppress(EOFError, OSError):
            while True:
                self.ask("calls", "beat", ())
                pause.wait(still_seconds / BEATS)

    def ask(self, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        with self._lock:
            send(self._socket, (name, method, threading.get_ident(), arguments))
            answer = receive(self._socket)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Part:
    """The calls, or the port."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self.fsname = "lustre"

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *arguments: self._client.ask(self._name, method, arguments)
