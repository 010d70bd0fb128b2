"""What the processes of a mover and of a reader share: the name of the node, signals, and the state for systemd."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable

from tierd.daemon.systemd import BEAT_SECONDS

log = logging.getLogger("tierd.cluster")


def host_name() -> str:
    """Name of this node, without its domain."""
    return os.uname().nodename.partition(".")[0]


def end_at_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set from now on."""
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    return end


def report_until(end: threading.Event, state: Callable[[], str], notify: Callable[..., None],
                 beat_seconds: float = BEAT_SECONDS, sound: Callable[[], bool] = lambda: True) -> bool:
    """Report the state to systemd until ``end`` is set, and log each change of it.

    Returns False, at once, when ``sound`` does.
    """
    last = ""
    still_sound = True
    while still_sound and not end.wait(beat_seconds):
        still_sound = sound()
        sentence = state()
        if sentence != last:
            log.info("%s", sentence)
            last = sentence
        notify(WATCHDOG="1", STATUS=sentence)
    notify(STOPPING="1")
    return still_sound
