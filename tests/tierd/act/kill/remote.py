"""A Lustre in memory that outlives the process at work on it: the process asks for every single call over a socket.

Whoever owns the memory counts the calls, and may kill the other side before a call is carried out, or after it was and
before the answer is sent: then the process dies knowing nothing of what has just been done.
"""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

from tierd.act.journal.writer import Journal

_LENGTH = struct.Struct("!I")


def send(to: socket.socket, what: Any) -> None:
    """One message."""
    data = pickle.dumps(what)
    to.sendall(_LENGTH.pack(len(data)) + data)


def receive(of: socket.socket) -> Any:
    """One message. Raises EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_exactly(of, _LENGTH.size))
    return pickle.loads(_exactly(of, length))


def _exactly(of: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = of.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data


class Remote:
    """An object on the other side: each method is a call over the socket."""

    def __init__(self, to: socket.socket, name: str) -> None:
        self._to = to
        self._name = name

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any) -> Any:
            send(self._to, (self._name, method, arguments))
            answer = receive(self._to)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call


class SteppedJournal(Journal):
    """A journal whose every write is a step of its own: before it, and after it."""

    steps: Remote

    def intend(self, *arguments: Any, **named: Any) -> int:
        self.steps.journal("before intend")
        number = super().intend(*arguments, **named)
        self.steps.journal("after intend")
        return number

    def end(self, *arguments: Any, **named: Any) -> None:
        self.steps.journal("before end")
        super().end(*arguments, **named)
        self.steps.journal("after end")

    def begin_undo(self, *arguments: Any, **named: Any) -> None:
        self.steps.journal("before begin_undo")
        super().begin_undo(*arguments, **named)
        self.steps.journal("after begin_undo")
