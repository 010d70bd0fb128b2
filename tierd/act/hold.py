"""What the daemon needs of a claim on a file system, and none for one that nobody else can reach."""

from __future__ import annotations

from typing import Protocol


class Hold(Protocol):
    """What the daemon needs of a claim."""

    def hold(self) -> str:
        """Take the claim, or go on holding it: "", or why it cannot be had."""

    def renew(self) -> None:
        """A sign of life, from whatever thread."""

    def refusal(self) -> str:
        """Why nothing may be changed now, asked before each act; "" while the claim is ours."""

    def release(self) -> None:
        """Give it back."""

    @property
    def generation(self) -> int:
        """The fencing token; 0 while nothing is held."""


class NoClaim:
    """For a file system that nobody else can reach."""

    generation = 0

    def hold(self) -> str:
        """Nothing to take."""
        return ""

    def renew(self) -> None:
        """Nothing to renew."""

    def refusal(self) -> str:
        """Nothing refuses."""
        return ""

    def release(self) -> None:
        """Nothing to give back."""
