"""A server on loopback with given good or bad answers."""

import gzip
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Behave = Callable[[socket.socket, str], None]
"""Answers one request, of which the head and the body are given."""


@dataclass
class Liar:
    """The server, and the requests it received."""

    url: str
    requests: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


def head(kind: str = "text/plain; version=0.0.4", status: str = "200 OK", *more: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *more, "", "")).encode()


def answers(body: str | bytes, kind: str = "text/plain; version=0.0.4", *more: str, status: str = "200 OK") -> Behave:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body

    def behave(to: socket.socket, _: str) -> None:
        to.sendall(head(kind, status, f"Content-Length: {len(data)}", *more) + data)

    return behave


def answers_json(body: str) -> Behave:
    return answers(body, "application/json")


def matrix(*series: Mapping[str, Any], **more: Any) -> Behave:
    """An answer of Prometheus: a matrix of samples."""
    return answers_json(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}, **more}))


def endless(to: socket.socket, _: str) -> None:
    """Lines without an end, as fast as they are taken."""
    to.sendall(head())
    while True:
        to.sendall(b'lustre_job_read_bytes_total{fs="l",target="OST0000",jobid="j"} 1\n' * 1000)


def slow_body(to: socket.socket, _: str) -> None:
    """A byte now and then, which resets the time-out of every single read."""
    to.sendall(head())
    while not threading.Event().wait(0.05):
        to.sendall(b"#")


def silent(to: socket.socket, _: str) -> None:
    to.recv(1)  # until the other side hangs up


def bomb(to: socket.socket, _: str) -> None:
    """64 MB of zeros, compressed, for a client that did not accept compression."""
    data = gzip.compress(bytes(64 << 20))
    to.sendall(head("text/plain", "200 OK", "Content-Encoding: gzip", f"Content-Length: {len(data)}") + data)


@contextmanager
def liar(behave: Behave | Sequence[Behave]) -> Iterator[Liar]:
    """A server; of several behaviours each request takes the next, and the last is kept."""
    turns = [behave] if callable(behave) else list(behave)

    class Handler(socketserver.BaseRequestHandler):
        request: socket.socket

        def handle(self) -> None:
            data = b""
            while b"\r\n\r\n" not in data:
                more = self.request.recv(65536)
                if not more:
                    return
                data += more
            before, _, body = data.partition(b"\r\n\r\n")
            length = next((int(line.split(b":")[1]) for line in before.split(b"\r\n")
                           if line.lower().startswith(b"content-length:")), 0)
            while len(body) < length:
                body += self.request.recv(65536)
            made.requests.append((before + b"\r\n\r\n" + body).decode())
            turn = turns.pop(0) if len(turns) > 1 else turns[0]
            with suppress(OSError):
                turn(self.request, made.requests[-1])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        made = Liar(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)
