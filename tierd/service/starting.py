"""A start that waits for the file system: systemd gives it more time, and the log says what it waits for.

While an MDS is away every call into the file system waits until it is back: minutes, or a night. systemd would end a
start that takes so long, and after some of them not begin another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tierd.service.notify import Notifier
from tierd.service.pulse import BEAT_SECONDS, Pulse

MORE_TIME_USEC = 60_000_000
"""From each beat on."""
TOLD_AFTER_BEATS = 6


@contextmanager
def starting(notify: Notifier, mount: str, say: Callable[[str], None], seconds: float = BEAT_SECONDS) -> Iterator[None]:
    """Ask for more time for as long as it lasts; a file system that keeps a start waiting is told once."""
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1
        notify(EXTEND_TIMEOUT_USEC=str(MORE_TIME_USEC), STATUS=f"starting: waiting for the file system at {mount}")
        if beats == TOLD_AFTER_BEATS:
            say(f"the file system at {mount} keeps the start waiting: a metadata server, or another, may be away (lfs "
                "check servers); tierd begins when it answers")

    pulse = Pulse(beat, seconds).start()
    try:
        yield
    finally:
        pulse.stop()
