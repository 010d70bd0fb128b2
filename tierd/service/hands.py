"""All that may change the file system, put together as the settings say: the gate, and who takes acts back."""

from __future__ import annotations

from concurrent.futures import Executor

from lustre.filesystem import Filesystem
from tierd.act.breaker import Breaker
from tierd.act.budget import Budget
from tierd.act.consent import Consent
from tierd.act.gate import Gate
from tierd.act.guard import SiteGuard
from tierd.act.hold import Hold
from tierd.act.journal import Journal
from tierd.act.movers.outcome import Mover
from tierd.act.standstill import Standstill
from tierd.act.undo import Undo
from tierd.act.waiting import BATCH, BATCH_PER_THREAD
from tierd.clock import Clock
from tierd.config import Settings


def hands(settings: Settings, filesystem: Filesystem, mover: Mover, journal: Journal, claim: Hold, clock: Clock,
          executor: Executor | None = None) -> tuple[Gate, Undo]:
    """The gate with its budget, breaker and guard; undoing heeds the pause file and the guard as well."""
    guard = SiteGuard(settings, Consent(filesystem, clock), claim, clock)
    standstill = Standstill(settings.act.pause_file, settings.act.windows)
    gate = Gate(filesystem, mover, Budget(settings.limits, clock.now()), Breaker(settings.breaker), journal, clock,
                settings.act.dry_run, guard, standstill, executor, settings.act.default_layouts_per_second,
                max(BATCH, BATCH_PER_THREAD * settings.movers.at_once))
    undo = Undo(filesystem, mover, journal, clock, lambda: standstill.by_file() or guard.hindrance())
    return gate, undo
