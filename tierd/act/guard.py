"""What the gate checks before each act: the claim, the mode and limits of the scope, and the opt-out of the owner."""

from __future__ import annotations

from typing import Protocol

from tierd.act.claim import FilesystemClaim
from tierd.act.consent import OptOut
from tierd.act.limits import Budget, MoveCost
from tierd.clock import Clock
from tierd.config.act import mode_allows
from tierd.config.settings import Settings
from tierd.model import Action

REQUEST = "request"
"""The kind of what an administrator asked for by name. Modes are for what tierd does by itself."""


class ActGuard(Protocol):
    """The questions."""

    def blocked_by(self) -> str:
        """Why nothing at all may be changed now, or ""."""

    def refusal(self, action: Action) -> str:
        """Why this is left alone, or ""."""

    def opt_out_reason(self, directory: str) -> str:
        """Why its owner wants a directory left alone, or "": asked before anything is planned for it."""

    def spent(self, action: Action, cost: MoveCost, now: float) -> str:
        """Which limit of its scope is reached, or ""."""

    def spend(self, action: Action, cost: MoveCost, now: float) -> None:
        """Count it for its scope."""

    def give_back(self, action: Action, cost: MoveCost, now: float) -> None:
        """Count its bytes no more: it was refused before any was read."""


class NoGuard:
    """For a file system that is nobody else's."""

    def blocked_by(self) -> str:
        """Nothing hinders."""
        return ""

    def refusal(self, action: Action) -> str:
        """Nothing is refused."""
        return ""

    def opt_out_reason(self, directory: str) -> str:
        """Nobody objects."""
        return ""

    def spent(self, action: Action, cost: MoveCost, now: float) -> str:
        """There are no scopes."""
        return ""

    def spend(self, action: Action, cost: MoveCost, now: float) -> None:
        """There are no scopes."""

    def give_back(self, action: Action, cost: MoveCost, now: float) -> None:
        """There are no scopes."""


class SiteGuard:
    """The claim of this file system, its users' wishes, and its scopes."""

    def __init__(self, settings: Settings, consent: OptOut, claim: FilesystemClaim, clock: Clock) -> None:
        self._settings = settings
        self._consent = consent
        self._claim = claim
        self._budgets = {scope.path: Budget(scope.limits, clock.now()) for scope in settings.scopes if scope.limits}

    def blocked_by(self) -> str:
        """Somebody else's claim. A dry run needs none: it changes nothing."""
        if self._settings.act.dry_run:
            return ""
        return (self._claim.hold() if not self._claim.generation else "") or self._claim.refusal()

    def refusal(self, action: Action) -> str:
        """The mode of its scope, then its owner's wish."""
        mode = self._settings.resolved_scopes.of(action.path or action.directory).mode
        if action.finding[0] != REQUEST and not mode_allows(mode, action.kind):
            return f"mode {mode} holds there"
        return self._consent.of_file(action.path) if action.path else self._consent.of_directory(action.directory)

    def opt_out_reason(self, directory: str) -> str:
        """Its owner's wish."""
        return self._consent.of_directory(directory) if directory.startswith("/") else ""

    def spent(self, action: Action, cost: MoveCost, now: float) -> str:
        """The limit of its scope that is reached."""
        budget = self._budget(action)
        wait = budget.why_not(cost, now) if budget else None
        return wait.sentence if wait is not None else ""

    def spend(self, action: Action, cost: MoveCost, now: float) -> None:
        """Take from the budget of its scope."""
        budget = self._budget(action)
        if budget:
            budget.take(cost, now)

    def give_back(self, action: Action, cost: MoveCost, now: float) -> None:
        """Its bytes, to the budget of its scope."""
        budget = self._budget(action)
        if budget:
            budget.give_back(cost, now)

    def _budget(self, action: Action) -> Budget | None:
        return self._budgets.get(self._settings.resolved_scopes.of(action.path or action.directory).path)
