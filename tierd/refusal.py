"""Refusals: a reason code, few and fixed as labels of a metric must be, and a sentence with the particulars."""

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
    MODE = "mode"
    REPORTED_ONLY = "reported-only"
    NOTHING_TO_DO = "nothing-to-do"


REMEDIES = {
    Reason.NO_CHANGELOG: "register a changelog user on each MDT (lctl --device FSNAME-MDT0000 changelog_register)",
    Reason.NO_PATH: "check that tierd may resolve FIDs (lfs fid2path as root, no subdirectory mount)",
    Reason.ROOT_DIRECTORY: "have the job work in a directory of its own",
    Reason.NO_POOL: "make the pool (lctl pool_new, lctl pool_add), or name the right one in [small_files_to_flash]",
    Reason.NO_LAYOUT: "check that tierd may read the layout there (lfs getstripe -d)",
    Reason.NO_ROOM: "free space in the flash pool, add targets to it, or lower small_files_to_flash.reserve",
    Reason.SIZES_UNKNOWN: "tierd plans again once it has seen the sizes of some files",
    Reason.NOT_SMALL: "raise small_files_to_flash.sizing.largest_component_bytes, if flash is to hold such files",
    Reason.SIZES_MIXED: "have the job keep small and large files in different directories",
    Reason.OPTED_OUT: "the owner can take part again: setfattr -n user.tierd -v on DIRECTORY",
    Reason.OTHER_MOVER: "stop the other mover, or wait until it has ended",
    Reason.OTHER_LAYOUT: "remove or change the default layout that is there (lfs setstripe -d)",
    Reason.LITTLE_TO_GAIN: "lower benefit.min_gain to act on smaller losses",
    Reason.OTHERS_WOULD_LOSE: "raise benefit.max_taken, or lower benefit.factor, if the victim matters more",
    Reason.MOVES_TOO_DEAR: "raise benefit.horizon_seconds if the neighbour stays longer",
    Reason.COOLING_DOWN: "lower verify.cooldown_seconds to try again sooner",
    Reason.MODE: "set act.mode, or the mode of the scope, to full or new-files-only",
    Reason.REPORTED_ONLY: "add the kind to act.on",
}
"""What an administrator can do so that tierd acts, where there is something."""


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
