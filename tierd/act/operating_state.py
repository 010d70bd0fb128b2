"""Whether tierd may change anything now: pause, drain, circuit breaker, pause file, windows, and approvals.

A pause, a drain and an approval survive a restart: the journal stores them. The pause file stops undo too. The gate
checks before every act.
"""

from __future__ import annotations

import json
import stat
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tierd.act.journal.writer import Journal
from tierd.clock import Clock
from tierd.config import act
from tierd.model import FindingKey
from tierd.refusal import Reason, Refusal
from tierd.text import printable


class MaintenanceGuard:
    """The pause file and the maintenance windows."""

    def __init__(self, pause_file: str = "", maintenance: tuple[str, ...] = ()) -> None:
        self._pause_file = pause_file
        self._maintenance = maintenance
        self._last: Refusal | None = None

    def pause_file_refusal(self) -> Refusal | None:
        """Refuses every act, and undo, while the pause file is there or cannot be looked for, with its first line."""
        self._last = self._pause_file_refusal() if self._pause_file else None
        return self._last

    def _pause_file_refusal(self) -> Refusal | None:
        try:
            words = _first_line(Path(self._pause_file))
        except FileNotFoundError:
            return None
        except OSError as error:  # in doubt, tierd is paused
            words = error.strerror or str(error)
        return Refusal(Reason.PAUSE_FILE,
                       f"{self._pause_file} exists{f' ({words!r})' if words else ''}; remove it to continue")

    def last_refusal(self, now: float) -> Refusal | None:
        """Refuses new acts, by the pause file as it was seen last. It waits for no disk."""
        return self._last or act.window_refusal(self._maintenance, now)


def _first_line(file: Path) -> str:
    if not stat.S_ISREG(file.stat().st_mode):  # opening a pipe would block
        return ""
    with file.open("rb") as opened:
        return opened.read(200).decode("utf-8", "replace").partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that an administrator asked for. Without a reason there is none."""

    reason: str = ""
    until: float = 0.0
    """Epoch seconds of its end; 0 without an end."""

    def text_at(self, now: float) -> str:
        """The reason with the end of the pause; empty without a pause, and after its end."""
        if not self.until or not self.reason:
            return self.reason
        end = f"{datetime.fromtimestamp(self.until, UTC):%Y-%m-%d %H:%M:%S UTC}"
        return f"{self.reason}, until {end}" if now < self.until else ""


class OperatingState:
    """Pause, drain and circuit breaker, with the pause file and the maintenance windows. The circuit breaker stays open
    until :meth:`resume`, whatever pauses begin and end meanwhile.
    """

    def __init__(self, journal: Journal, maintenance: MaintenanceGuard, clock: Clock) -> None:
        self._journal = journal
        self._maintenance = maintenance
        self._clock = clock
        maintenance.pause_file_refusal()
        state = journal.state()
        self._pause = Pause(state.get("paused", ""), float(state.get("paused_until") or 0.0))
        self.tripped = state.get("tripped", "")
        """Why the circuit breaker is open; empty while it is closed."""
        self.draining = state.get("draining", "")
        """The reason for a drain: queued acts end, and no new ones are planned. Empty without a drain."""

    @property
    def paused(self) -> str:
        """Why the circuit breaker is open and why an administrator paused tierd; empty if neither holds acts back."""
        return "; ".join(filter(None, (self.tripped, self._pause.text_at(self._clock.now()))))

    def pause(self, reason: str, *, seconds: float = 0.0) -> None:
        """Begin no act until :meth:`resume` or for some seconds. A move in hand ends first. A longer pause stays."""
        present, now = self._pause, self._clock.now()
        is_longer = present.text_at(now) and (not present.until or present.until >= now + seconds)
        if not seconds or not is_longer:
            self._pause = Pause(reason, now + seconds if seconds else 0.0)

    def trip(self, reason: str) -> None:
        """Open the circuit breaker, and store that at once. While it is open, the first reason stays."""
        self.tripped = self.tripped or printable(reason)
        self.store()

    def resume(self) -> None:
        self._pause, self.tripped, self.draining = Pause(), "", ""

    def store(self) -> None:
        """Enter the state in the journal, so that a restart does not end a pause."""
        pause = self._pause  # once: another thread may replace it
        self._journal.set_state({"paused": pause.reason, "paused_until": repr(pause.until) if pause.until else "",
                                 "tripped": self.tripped, "draining": self.draining})

    @property
    def held(self) -> Refusal | None:
        """Refuses new acts: a pause, the pause file, or the maintenance windows."""
        self._maintenance.pause_file_refusal()  # look again
        return self.last_held

    @property
    def last_held(self) -> Refusal | None:
        """The same, by the pause file as it was seen last: each cycle reads it. It waits for no disk."""
        if paused := self.paused:
            return Refusal(Reason.PAUSED, f"paused: {paused}")
        return self._maintenance.last_refusal(self._clock.now())

    @property
    def new_work_refusal(self) -> Refusal | None:
        """Refuses work that is not queued yet: a pause, the pause file as it was seen last, the windows, or a drain."""
        drain = Refusal(Reason.PAUSED, f"tierd is draining: {self.draining}") if self.draining else None
        return self.last_held or drain


VALID_SECONDS = 86400.0
"""An answer counts for a day: as long as one is on call. A choice."""
STATE = "approvals"
"""Name of the row of the journal's table ``state``."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One answer about a finding, and all that is done about it while the answer counts."""

    approved: bool
    """False: declined."""
    by: str
    at: float


class Approvals:
    """The answers that count now, by finding. They survive a restart. Safe in any thread."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock, self._lock = journal, clock, Lock()
        self._by_key: dict[FindingKey, Approval] = {}
        for kind, aggressor, victim, approval in json.loads(journal.state().get(STATE, "[]")):
            self._by_key[kind, aggressor, victim] = Approval(**approval)

    def decide(self, key: FindingKey, by: str, *, approved: bool) -> None:
        """Store an answer in the journal. It takes the place of an earlier one."""
        with self._lock:
            now = self._clock.now()
            self._by_key = {of: each for of, each in self._by_key.items() if abs(now - each.at) < VALID_SECONDS}
            self._by_key[key] = Approval(approved, by, now)
            self._journal.set_state({STATE: json.dumps([[*of, asdict(each)] for of, each in self._by_key.items()])})

    def of(self, key: FindingKey) -> Approval | None:
        """The answer about a finding; None without one, and for one that no longer counts."""
        found = self._by_key.get(key)
        return found if found is not None and abs(self._clock.now() - found.at) < VALID_SECONDS else None

    def approved(self, key: FindingKey, since: float = 0.0) -> bool:
        """Whether acts about a finding were approved, after a time."""
        found = self.of(key)
        return found is not None and found.approved and found.at > since
