"""Whether tierd may change anything now: pause, drain, circuit breaker, pause file, maintenance windows.

A pause and a drain survive a restart: the journal stores them. The pause file stops undo too. The gate checks before
every act.
"""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

from tierd.act.journal.writer import Journal
from tierd.clock import Clock
from tierd.config import act
from tierd.refusal import Reason, Refusal


class MaintenanceGuard:
    """The pause file and the maintenance windows."""

    def __init__(self, pause_file: str = "", maintenance: tuple[str, ...] = ()) -> None:
        self._pause_file = pause_file
        self._maintenance = maintenance
        self._last: Refusal | None = None

    def pause_file_refusal(self) -> Refusal | None:
        """Refuses every act, and undo, while the pause file exists, or while tierd cannot check for it.

        The refusal has the first line of the file.
        """
        self._last = self._pause_file_refusal() if self._pause_file else None
        return self._last

    def _pause_file_refusal(self) -> Refusal | None:
        try:
            words = _first_line(Path(self._pause_file))
        except FileNotFoundError:
            return None
        except OSError as error:
            words = error.strerror or str(error)
        return Refusal(Reason.PAUSE_FILE,
                       f"{self._pause_file} exists{f' ({words!r})' if words else ''}; remove it to continue")

    def refusal(self, now: float) -> Refusal | None:
        """Refuses new acts: the pause file, or the maintenance windows."""
        return self.pause_file_refusal() or self.last_refusal(now)

    def last_refusal(self, now: float) -> Refusal | None:
        """The same, by the pause file as it was seen last. It waits for no disk."""
        return self._last or act.window_refusal(self._maintenance, now)


def _first_line(file: Path) -> str:
    """Empty if it is no regular file: opening a pipe would block."""
    if not stat.S_ISREG(file.stat().st_mode):
        return ""
    with file.open("rb") as opened:
        return opened.read(200).decode("utf-8", "replace").partition("\n")[0].strip()


class OperatingState:
    """Pause, drain and circuit breaker, with the pause file and the maintenance windows."""

    def __init__(self, journal: Journal, maintenance: MaintenanceGuard, clock: Clock) -> None:
        self._journal = journal
        self._maintenance = maintenance
        self._clock = clock
        maintenance.pause_file_refusal()
        state = journal.state()
        self._reason = state.get("paused", "")
        self._until = float(state.get("paused_until") or 0.0)
        """Epoch seconds of the end of the pause; 0 without an end."""
        self.tripped = bool(state.get("tripped"))
        """Whether the circuit breaker paused tierd, and not an administrator."""
        self.draining = state.get("draining", "")
        """The reason for a drain: queued acts end, and no new ones are planned. Empty without a drain."""

    @property
    def paused(self) -> str:
        """The reason that an administrator or the circuit breaker gave for a pause; empty without a pause.

        A pause for a time has its end in the text.
        """
        reason = self.pause_reason
        end = f", until {datetime.fromtimestamp(self._until, UTC):%Y-%m-%d %H:%M:%S UTC}" if self._until else ""
        return reason and reason + end

    @property
    def pause_reason(self) -> str:
        """The reason for a pause without its end; empty without a pause."""
        return "" if self._until and self._clock.now() >= self._until else self._reason

    def pause(self, reason: str, *, tripped: bool = False, seconds: float = 0.0) -> None:
        """Begin no act until :meth:`resume`, or for some seconds. A move in progress ends first."""
        self._reason, self.tripped = reason, tripped
        self._until = self._clock.now() + seconds if seconds else 0.0

    def drain(self, reason: str) -> None:
        """Plan nothing new until :meth:`resume`. Queued acts continue."""
        self.draining = reason

    def resume(self) -> None:
        """End the pause and the drain."""
        self._reason, self._until, self.tripped, self.draining = "", 0.0, False, ""

    def store(self) -> None:
        """Enter the state in the journal, so that a restart does not end a pause."""
        if not self.paused:  # ended by itself, too
            self._reason, self._until, self.tripped = "", 0.0, False
        self._journal.set_state({"paused": self._reason, "paused_until": repr(self._until) if self._until else "",
                                 "tripped": "yes" * self.tripped, "draining": self.draining})

    @property
    def held(self) -> Refusal | None:
        """Refuses new acts: a pause, the pause file, or the maintenance windows."""
        return self._paused_refusal() or self._maintenance.refusal(self._clock.now())

    @property
    def last_held(self) -> Refusal | None:
        """The same, by the pause file as it was seen last: each cycle looks at it. It waits for no disk."""
        return self._paused_refusal() or self._maintenance.last_refusal(self._clock.now())

    def _paused_refusal(self) -> Refusal | None:
        return Refusal(Reason.PAUSED, self.paused) if self.paused else None

    @property
    def stopped(self) -> Refusal | None:
        """Refuses every act, and undo: the pause file."""
        return self._maintenance.pause_file_refusal()
