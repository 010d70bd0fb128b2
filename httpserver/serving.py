"""Serves addresses until SIGTERM or SIGINT; SIGHUP reloads the web configuration."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from wsgiref.types import WSGIApplication

from httpserver.config import WebConfigFile
from httpserver.connections import Connections, connection_limit
from httpserver.server import Address, Server, listen

log = logging.getLogger("lustre-exporter")
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
SIGNALS = STOP_SIGNALS | {signal.SIGHUP}
SHUTDOWN_SECONDS = 30.0
"""Time limit for answers in progress after SIGTERM."""


def serve(addresses: Sequence[Address], app: WSGIApplication, web: WebConfigFile | None) -> int:
    """Serve every address until SIGTERM or SIGINT, finish requests in progress, and return the exit status.

    SIGHUP reads the web configuration again.

    The signals are waited for, not handled: one that comes between looking whether it has come and waiting for it would
    be seen only when the next one comes.
    """
    with contextlib.ExitStack() as stack:
        servers: list[Server] = []
        connections = Connections(connection_limit())
        for address in addresses:
            try:
                servers.append(stack.enter_context(listen(address, app, web, connections=connections)))
            except OSError as error:
                sys.stderr.write(f"lustre-exporter: cannot listen on {address}: {error.strerror or error}\n")
                return 1
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # all threads to come have it too
        stack.callback(_unblock_signals, before)
        threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in servers]
        for thread in threads:
            thread.start()
        for address in addresses:
            log.info("listening on %s%s", address, " with TLS" if web is not None and web.config().tls else "")
        while signal.sigwait(SIGNALS) not in STOP_SIGNALS:
            _reload(web)
        _stop(servers, connections)
    return 0


def _reload(web: WebConfigFile | None) -> None:
    if web is None:
        log.info("SIGHUP: there is no web configuration to reload; changes of options need a restart")
    elif web.reload():
        log.info("SIGHUP: web configuration reloaded")


def _unblock_signals(before: Iterable[int]) -> None:
    """As it was; whoever asked again meanwhile has been answered."""
    while signal.sigtimedwait(SIGNALS, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(servers: Sequence[Server], connections: Connections) -> None:
    for server in servers:
        server.shutdown()
    if not connections.finish(SHUTDOWN_SECONDS):
        log.warning("stopping although a scrape has not finished within %g s", SHUTDOWN_SECONDS)
