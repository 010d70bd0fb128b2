"""What an administrator approved or declined: plans of mode ``ask``, and acts to repeat after an undo."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from threading import Lock

from tierd.act.journal.writer import Journal
from tierd.clock import Clock

FindingKey = tuple[str, str, str]
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
            self._by_key = {of: each for of, each in self._by_key.items() if now < each.at + VALID_SECONDS}
            self._by_key[key] = Approval(approved, by, now)
            self._journal.set_state({STATE: json.dumps([[*of, asdict(each)] for of, each in self._by_key.items()])})

    def of(self, key: FindingKey) -> Approval | None:
        """The answer about a finding; None without one, and for one that counts no more."""
        found = self._by_key.get(key)
        return found if found is not None and self._clock.now() < found.at + VALID_SECONDS else None

    def approved(self, key: FindingKey, since: float = 0.0) -> bool:
        """Whether acts about a finding were approved, after a time."""
        found = self.of(key)
        return found is not None and found.approved and found.at > since
