"""Whether tierd may change anything now: pause, drain, circuit breaker, pause file, maintenance windows.

A pause and a drain outlive a restart: the journal keeps them. The pause file stops undo too. The gate asks before every
act.
"""

from __future__ import annotations

import stat
from pathlib import Path

from tierd.act.journal.writer import Journal
from tierd.clock import Clock
from tierd.config import act


class MaintenanceGuard:
    """The pause file and the maintenance windows."""

    def __init__(self, pause_file: str = "", maintenance: tuple[str, ...] = ()) -> None:
        self._pause_file = pause_file
        self._maintenance = maintenance

    def by_file(self) -> str:
        """Why nothing at all may be done, not even taken back, or "". A file that cannot be looked for counts as one.

        The first line of the file is the reason that is shown.
        """
        if not self._pause_file:
            return ""
        try:
            words = _first_line(Path(self._pause_file))
        except FileNotFoundError:
            return ""
        except OSError as error:
            words = error.strerror or str(error)
        return f"{self._pause_file} is there{f' ({words!r})' if words else ''}; remove it to go on"

    def __call__(self, now: float) -> str:
        """Why nothing new may be done now, or ""."""
        return self.by_file() or act.outside_windows(self._maintenance, now)


def _first_line(file: Path) -> str:
    """Of what is no regular file, nothing: opening a pipe would wait."""
    if not stat.S_ISREG(file.stat().st_mode):
        return ""
    with file.open("rb") as opened:
        return opened.read(200).decode("utf-8", "replace").partition("\n")[0].strip()


"""Why nothing more may be done, or ""; engines ask before each file, or each process of many."""


class OperatingState:
    """What people and the circuit breaker have said, and what the pause file and the maintenance windows say now."""

    def __init__(self, journal: Journal, standstill: MaintenanceGuard, clock: Clock) -> None:
        self._journal = journal
        self._standstill = standstill
        self._clock = clock
        state = journal.state()
        self.paused = state.get("paused", "")
        """Why a person or the circuit breaker lets nothing be done at present; "" when they do. Kept over a restart."""
        self.tripped = bool(state.get("tripped"))
        """Whether the circuit breaker says so, and not a person."""
        self.draining = state.get("draining", "")
        """Why nothing new is begun, while what is queued is finished; "" when it is not so."""

    def pause(self, reason: str, *, tripped: bool = False) -> None:
        """Change nothing until :meth:`resume`. What is under way comes to its end."""
        self.paused, self.tripped = reason, tripped

    def drain(self, reason: str) -> None:
        """Begin nothing new until :meth:`resume`; what is queued goes on."""
        self.draining = reason

    def resume(self) -> None:
        """Go on."""
        self.paused, self.tripped, self.draining = "", False, ""

    def keep(self) -> None:
        """Enter it in the journal: a restart shall not set loose what somebody has stopped."""
        self._journal.set_state({"paused": self.paused, "tripped": "yes" * self.tripped, "draining": self.draining})

    @property
    def held(self) -> str:
        """Why nothing new is done at present: a pause, the pause file, or the hour; "" when things are done."""
        return self.paused or self._standstill(self._clock.now())

    @property
    def stopped(self) -> str:
        """Why nothing may even be taken back at present: the pause file; or ""."""
        return self._standstill.by_file()
