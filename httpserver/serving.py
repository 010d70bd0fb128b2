"""Serves several addresses in the main thread until a signal, or one address in the background."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterable, Sequence
from wsgiref.types import WSGIApplication

from httpserver.config import WebConfigFile
from httpserver.connections import Connections
from httpserver.server import Address, Server

log = logging.getLogger("httpserver")
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
SIGNALS = STOP_SIGNALS | {signal.SIGHUP}
SHUTDOWN_SECONDS = 30.0
"""Time limit for responses in progress after SIGTERM."""


def serve(
    addresses: Sequence[Address],
    app: WSGIApplication,
    *,
    name: str,
    web_config: WebConfigFile | None,
    connections: Connections,
) -> int:
    """Serve every address until SIGTERM or SIGINT, finish requests in progress, and return the exit status.

    All addresses share ``connections``. SIGHUP reloads the web configuration.

    The signals are blocked and received with sigwait. A signal handler could run between the check of its flag and the
    wait, and the signal would then take effect only after the next signal.
    """
    with contextlib.ExitStack() as stack:
        servers: list[Server] = []
        for address in addresses:
            try:
                server = Server(address, app, name=name, web_config=web_config, connections=connections)
            except OSError as error:
                log.error("cannot listen on %s: %s", address, error.strerror or error)
                return 1
            servers.append(stack.enter_context(server))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # new threads inherit it
        stack.callback(_unblock_signals, before)
        threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in servers]
        for thread in threads:
            thread.start()
        for address in addresses:
            log.info("listening on %s%s", address, " with TLS" if uses_tls(web_config) else "")
        while signal.sigwait(SIGNALS) not in STOP_SIGNALS:
            _reload(web_config)
        _stop(servers, connections)
    return 0


class BackgroundServer:
    """Serves one address in its own threads until it is closed. It handles no signals."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, name=f"{server.name}-web", daemon=True).start()

    def close(self, drain_seconds: float = 0.0) -> None:
        """Stop accepting, wait up to ``drain_seconds`` for responses in progress, and release the address."""
        self._server.shutdown()
        self._server.connections.drain(drain_seconds)
        self._server.server_close()


def uses_tls(web_config: WebConfigFile | None) -> bool:
    return web_config is not None and web_config.config().tls is not None


def _reload(web_config: WebConfigFile | None) -> None:
    if web_config is None:
        log.info("SIGHUP: there is no web configuration to reload; changes of options need a restart")
    elif web_config.reload():
        log.info("SIGHUP: web configuration reloaded")


def _unblock_signals(before: Iterable[int]) -> None:
    """Restore the signal mask. Pending signals are discarded, because the server has already stopped."""
    while signal.sigtimedwait(SIGNALS, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(servers: Sequence[Server], connections: Connections) -> None:
    for server in servers:
        server.shutdown()
    if not connections.drain(SHUTDOWN_SECONDS):
        log.warning("stopping although a response was not finished within %g s", SHUTDOWN_SECONDS)
