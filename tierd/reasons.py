"""Short names for why a plan was refused: few and fixed, as labels of a metric must be. The log has the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Given where the refusal is made, so that a sentence may be put better without losing its count."""

    NO_CHANGELOG = "no-changelog"
    NO_PATH = "no-path"
    ROOT_DIRECTORY = "root-directory"
    NO_POOL = "no-pool"
    NO_LAYOUT = "no-layout"
    NO_ROOM = "no-room"
    SIZES_UNKNOWN = "sizes-unknown"
    NOT_SMALL = "not-small"
    SIZES_MIXED = "sizes-mixed"
    OPTED_OUT = "opted-out"
    OTHER_MOVER = "other-mover"
    OTHER_LAYOUT = "other-layout"
    NOT_WORTH = "not-worth"
    LITTLE_TO_GAIN = "little-to-gain"
    OTHERS_WOULD_LOSE = "others-would-lose"
    MOVES_TOO_DEAR = "moves-too-dear"
    COOLING_DOWN = "cooling-down"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not planned: a name for counters and a sentence for people."""

    reason: Reason
    sentence: str

    def of(self, what: str) -> Refusal:
        """The refusal, with what it is about in front.

        >>> str(Refusal(Reason.NO_POOL, "pool 'flash' has no targets").of("/proj/in"))
        "/proj/in: pool 'flash' has no targets"
        """
        return Refusal(self.reason, f"{what}: {self.sentence}")

    def __str__(self) -> str:
        return self.sentence
