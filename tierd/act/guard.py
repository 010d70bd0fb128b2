"""What the gate checks before each act: claim, mode and limits of the scope, disks of the flash pool, opt-out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from tierd.act.claim import FilesystemClaim
from tierd.act.limits import Budget, MoveCost, Spent
from tierd.act.opt_out import OptOut
from tierd.acts import BY_ADMINISTRATOR
from tierd.clock import Clock
from tierd.config.act import Mode, mode_allows
from tierd.config.settings import Settings
from tierd.model import Action
from tierd.refusal import Reason, Refusal
from tierd.text import first_names


class ActGuard(Protocol):
    """Refuses acts. What a guard does not define, it permits."""

    def blocked_by(self) -> Refusal | None:
        """Refuses every act: another tierd holds the claim."""
        return None

    def refusal(self, action: Action) -> Refusal | None:
        """Refuses one act: the mode of its scope, a flash pool on disks, or the opt-out of its owner."""
        return None

    def opt_out_refusal(self, directory: str) -> Refusal | None:
        """Refuses acts in a directory whose owner opted out. Called before acts are planned there."""
        return None

    def limit_refusal(self, action: Action, cost: MoveCost, now: float) -> Refusal | None:
        """Refuses a move while a limit of its scope is reached."""
        return None

    def spend(self, action: Action, cost: MoveCost, now: float) -> Spent:
        """Take a move from the budget of its scope, after ``limit_refusal`` has just found no limit."""
        return Spent()


class NoGuard(ActGuard):
    """Refuses nothing."""


class JobCheck(Protocol):
    """Looks at the job that an act is for, just before the act."""

    def idle(self, action: Action) -> Refusal | None:
        """Delays a move while the job is not seen at work."""
        return None

    def elsewhere(self, action: Action) -> Refusal | None:
        """Refuses an act in a directory where the job does not work any more."""
        return None


class NoJobCheck(JobCheck):
    """Delays and refuses nothing."""


class SiteGuard:
    """Checks the claim of the file system, the opt-out of owners, and the modes and limits of scopes."""

    def __init__(self, settings: Settings, opt_out: OptOut, claim: FilesystemClaim, clock: Clock,
                 rotating: Callable[[str], Sequence[str]] = lambda pool: (),
                 approved: Callable[[tuple[str, str, str]], bool] = lambda key: False) -> None:
        """``rotating`` returns the targets of a pool that are known to be on rotating disks. ``approved`` returns
        whether acts about a finding were approved.
        """
        self._approved = approved
        self._settings = settings
        self._rotating = rotating
        self._opt_out = opt_out
        self._claim = claim
        self._budgets = {scope.path: Budget(scope.limits, clock.now()) for scope in settings.scopes if scope.limits}

    def blocked_by(self) -> Refusal | None:
        """A dry run needs no claim, since it changes nothing."""
        if self._settings.act.dry_run:
            return None
        return (self._claim.hold() if not self._claim.generation else None) or self._claim.refusal()

    def refusal(self, action: Action) -> Refusal | None:
        mode = self._settings.resolved_scopes.of(action.path or action.directory).mode
        ordered = action.finding[0] in BY_ADMINISTRATOR or action.undoes is not None
        if not ordered and not mode_allows(mode, action.kind):
            return Refusal(Reason.MODE, f"mode {mode} applies there")
        if not ordered and mode is Mode.ASK and not self._approved(action.finding):
            return Refusal(Reason.NOT_APPROVED, "mode ask applies there, and nobody approved it")
        for pool in self._settings.resolved_scopes.flash_pools & {part.pool for part in action.layout.components}:
            if rotating := self._rotating(pool):
                targets = first_names(rotating)
                return Refusal(Reason.POOL_ROTATES, f"pool {pool!r} is not flash; these targets rotate: {targets}")
        return self._opt_out.of_file(action.path) if action.path else self._opt_out.of_directory(action.directory)

    def opt_out_refusal(self, directory: str) -> Refusal | None:
        return self._opt_out.of_directory(directory) if directory.startswith("/") else None

    def limit_refusal(self, action: Action, cost: MoveCost, now: float) -> Refusal | None:
        scope = self._scope(action)
        wait = self._budgets[scope].why_not(cost, now) if scope in self._budgets else None
        return replace(wait.refusal, what=f"{scope} {wait.refusal.what}") if wait is not None else None

    def spend(self, action: Action, cost: MoveCost, now: float) -> Spent:
        budget = self._budgets.get(self._scope(action))
        return budget.spend(cost, now) if budget else Spent()

    def _scope(self, action: Action) -> str:
        return self._settings.resolved_scopes.of(action.path or action.directory).path
