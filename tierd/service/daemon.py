"""``tierd --config FILE``: the daemon on a mounted file system. Signals; the loop does the thinking."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
from contextlib import suppress
from pathlib import Path

from tierd.clock import SystemClock
from tierd.config import Settings
from tierd.config.watch import ConfigurationWatch
from tierd.inotify import Watcher
from tierd.service.garbage import look_rarely
from tierd.service.keeper import Keeper
from tierd.service.notify import Notifier
from tierd.service.pulse import BEAT_SECONDS, Lives, Pulse
from tierd.service.starting import starting
from tierd.service.this_node import on_this_node

log = logging.getLogger("tierd")


def call_oneself(name: str, comm: Path) -> None:
    """Take a process name, so that ``jobid_var=procname_uid`` counts our work as ``NAME.0`` however we were started.

    Started as ``python -m tierd`` it would be ``python.0``, which may be anybody's. Threads inherit the name: this
    comes before any is made.
    """
    with suppress(OSError):  # no procfs: then the job id of our work has to stand in `own_jobs`
        comm.write_text(name, encoding="ascii")


def signs_of_life(of: Lives, notify: Notifier, seconds: float) -> tuple[Pulse, Pulse]:
    """To systemd, and to other movers: apart, as the claim cannot be renewed while an MDS is away."""
    return Pulse(lambda: notify(WATCHDOG="1") if of.beat() else None, seconds).start(), Pulse(of.renew, seconds).start()


def serve(path: Path, settings: Settings) -> int:
    """Run until SIGTERM or SIGINT. SIGHUP reads the configuration again; a bad one is told and the old one kept."""
    call_oneself("tierd", Path("/proc/self/comm"))
    clock = SystemClock()
    reload: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: clock.wake())
    signal.signal(signal.SIGHUP, lambda *_: reload.append(True))
    notify = Notifier(os.environ)
    watch = ConfigurationWatch(path, lambda: Watcher(clock.now), log.warning)
    faulthandler.enable()  # where it hung, in the log, when systemd's watchdog ends it
    with starting(notify, settings.filesystem.mount, log.warning):
        keeper = Keeper(path, settings, lambda chosen: on_this_node(chosen, clock, log.info))
    look_rarely()
    pulses = signs_of_life(keeper, notify, BEAT_SECONDS)
    log.info("watching %s in mode %s%s", settings.filesystem.mount, settings.act.mode,
             ", dry run" if settings.act.dry_run else "")
    notify(READY="1", STATUS="looking for the first time")
    try:
        while not clock.wait(keeper.settings.sense.cycle_seconds):  # shorter when Alertmanager asks for a cycle
            if watch.changed() or reload:
                reload.clear()
                notify(RELOADING="1", MONOTONIC_USEC=str(int(clock.monotonic() * 1e6)))
                keeper.reload()
                notify(READY="1")
            told = keeper.cycle()
            log.info("%s", told)
            notify(WATCHDOG="1", STATUS=told)
    finally:
        notify(STOPPING="1")
        for pulse in pulses:
            pulse.stop()
        watch.close()
        keeper.close()
    log.info("stopped")
    return 0
