"""A Lustre in memory for many processes: each asks for every call over a socket. What a process had open is closed.

The owner sees what no process does: how often each file was exchanged, and how many used each target at one time.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
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


class SharedLustre:
    """The file system, and its listener."""

    def __init__(self, path: Path) -> None:
        self.lustre = MiniLustre()
        self.port = MiniPort(self.lustre)
        self.lock = threading.RLock()
        self.exchanges: Counter[Fid] = Counter()
        self.using: Counter[int] = Counter()
        """Leases on files of each target, now."""
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

    def excuse(self, pid: int) -> None:
        """A process is stopped: the files that it has now do not count for the limits of their targets any more."""
        with self.lock:
            process = self.processes.get(pid)
            for targets in process.leased.values() if process is not None else ():
                self.using.subtract(targets)
                targets.clear()

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
                    name, method, arguments = receive(client)
                    if method == "sync":
                        self.slow.wait(SYNC_SECONDS)
                    try:
                        with self.lock:
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
        self.leased: dict[int, list[int]] = {}

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
        return self._opened(super().open_fid(fid))

    def create_volatile(self, *arguments: Any) -> int:
        return self._opened(super().create_volatile(*arguments))

    def lease(self, descriptor: int) -> None:
        super().lease(descriptor)
        store = self.lustre.descriptors[descriptor].node.store
        targets = sorted({each.ost_index for component in store.layout.components for each in component.objects})
        self.leased[descriptor] = targets
        self.shared.using.update(targets)
        for target in targets:
            self.shared.most[target] = max(self.shared.most[target], self.shared.using[target])

    def close(self, descriptor: int) -> None:
        self.opened.discard(descriptor)
        self.shared.using.subtract(self.leased.pop(descriptor, []))
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

    def ask(self, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        with self._lock:
            send(self._socket, (name, method, arguments))
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
