"""Serves until SIGTERM or SIGINT."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from wsgiref.types import WSGIApplication

from exporter.config import Address
from exporter.connections import Connections, most_here
from exporter.server import Server, listen
from exporter.web.reload import Web

log = logging.getLogger("lustre-exporter")
ENDS = frozenset({signal.SIGTERM, signal.SIGINT})
WAITED_FOR = ENDS | {signal.SIGHUP}
PATIENCE_SECONDS = 30.0
"""Time limit for answers in progress after SIGTERM."""


def serve(addresses: Sequence[Address], app: WSGIApplication, web: Web | None) -> int:
    """Serve every address until SIGTERM or SIGINT, finish requests in progress, and return the exit status.

    SIGHUP reads the web configuration again.

    The signals are waited for, not handled: one that comes between looking whether it has come and waiting for it would
    be seen only when the next one comes.
    """
    with contextlib.ExitStack() as stack:
        servers: list[Server] = []
        connections = Connections(most_here())
        for address in addresses:
            try:
                servers.append(stack.enter_context(listen(address, app, web, connections=connections)))
            except OSError as error:
                sys.stderr.write(f"lustre-exporter: cannot listen on {address}: {error.strerror or error}\n")
                return 1
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)  # all threads to come have it too
        stack.callback(_unblock, before)
        threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in servers]
        for thread in threads:
            thread.start()
        for address in addresses:
            log.info("listening on %s%s", address, " with TLS" if web is not None and web.config().tls else "")
        while signal.sigwait(WAITED_FOR) not in ENDS:
            _read_again(web)
        _end(servers, connections)
    return 0


def _read_again(web: Web | None) -> None:
    if web is None:
        log.info("SIGHUP: there is no web configuration to reload; changes of options need a restart")
    elif web.read_again():
        log.info("SIGHUP: web configuration reloaded")


def _unblock(before: Iterable[int]) -> None:
    """As it was; whoever asked again meanwhile has been answered."""
    while signal.sigtimedwait(WAITED_FOR, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(servers: Sequence[Server], connections: Connections) -> None:
    for server in servers:
        server.shutdown()
    if not connections.finish(PATIENCE_SECONDS):
        log.warning("stopping although a scrape has not finished within %g s", PATIENCE_SECONDS)
