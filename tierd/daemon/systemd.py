"""systemd and the daemon: readiness, status, watchdog, and more time for a start (``Type=notify``, ``WatchdogSec=``).

A large file takes long to move, so a heartbeat thread notifies the watchdog until the maximum duration of a cycle has
passed. After that the process counts as hung, and systemd restarts it. Another thread renews the claim, because the
claim is a file on the file system: while an MDS is away the renewal waits, which does not call for a restart.

While an MDS is away, every call into the file system waits, for minutes or for a night. A start then asks systemd for
more time, and logs what it waits for. Otherwise systemd would end the process, and give up after a few tries.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

log = logging.getLogger("tierd.daemon")


class Notifier:
    """Sends to the socket systemd names in the environment; does nothing without one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def __call__(self, **states: str) -> None:
        """For instance ``READY="1", STATUS="…"``. A message that cannot be sent is dropped."""
        if not self._address:
            return
        message = "\n".join(f"{name}={value}" for name, value in states.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.sendto(message.encode(), self._address)


BEAT_SECONDS = 5.0


@contextmanager
def heartbeat(beat: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``beat`` at an interval, in its own thread, while the block runs.

    The end of the block does not wait for a beat that hangs in the file system.
    """
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            beat()

    thread = threading.Thread(target=run, name="tierd-pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=2.0)


START_EXTENSION_USEC = 60_000_000
"""Extension from each beat on."""
LOG_AFTER_BEATS = 6


@contextmanager
def extended_start(notify: Notifier, mount: str, seconds: float = BEAT_SECONDS) -> Iterator[None]:
    """Ask systemd for more time while the block runs. Logs once that the file system delays the start."""
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1
        notify(EXTEND_TIMEOUT_USEC=str(START_EXTENSION_USEC),
               STATUS=f"starting: waiting for the file system at {mount}")
        if beats == LOG_AFTER_BEATS:
            log.warning("the file system at %s does not answer: a server may be down (lfs check servers); tierd "
                        "starts when it answers", mount)

    with heartbeat(beat, seconds):
        yield
