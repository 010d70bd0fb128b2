"""The one way to refuse something: a reason, which counters and programs read, and a sentence for people.

A function that may refuse returns ``Refusal | None``. Reasons are few and fixed, as labels of metrics must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile


class Reason(StrEnum):
    """Why something is not planned, or not done. The sentence of a refusal may be reworded; its reason stays."""

    # plans: those up to the next heading are PLAN_REASONS
    NO_CHANGELOG = "no-changelog"
    NO_PATH = "no-path"
    ROOT_DIRECTORY = "root-directory"
    NO_POOL = "no-pool"
    POOL_ROTATES = "pool-rotates"
    """The servers report rotating disks for targets of the flash pool."""
    NO_LAYOUT = "no-layout"
    NO_ROOM = "no-room"
    MDT_UNKNOWN = "mdt-unknown"
    """Free space or service times of an MDT are unknown."""
    MDT_LIMIT = "mdt-limit"
    """The MDTs take smaller components than the files need."""
    MDT_BUSY = "mdt-busy"
    MDT_ROOM = "mdt-room"
    NODES_UNKNOWN = "nodes-unknown"
    """The number of nodes of a job is unknown."""
    SIZES_UNKNOWN = "sizes-unknown"
    NOT_SMALL = "not-small"
    SIZES_MIXED = "sizes-mixed"
    OPTED_OUT = "opted-out"
    OPT_OUT_UNREADABLE = "opt-out-unreadable"
    OTHER_MOVER = "other-mover"
    OTHER_LAYOUT = "other-layout"
    IN_USE = "in-use"
    """A file is open. It is moved when it is closed."""
    NOT_WORTH = "not-worth"
    LITTLE_TO_GAIN = "little-to-gain"
    UNCERTAIN_GAIN = "uncertain-gain"
    OTHERS_WOULD_LOSE = "others-would-lose"
    MOVES_TOO_DEAR = "moves-too-dear"
    COOLING_DOWN = "cooling-down"
    FIRST_REVERSIBLE = "first-reversible"
    MODE = "mode"
    NOT_APPROVED = "not-approved"
    """Mode ``ask``: the plan waits for an administrator, or was declined."""
    REPORTED_ONLY = "reported-only"
    NOTHING_TO_DO = "nothing-to-do"
    UNCONFIRMED = "unconfirmed"
    """The newest window did not confirm the finding, and the windows before did."""
    UNCLEAR_IO = "unclear-io"
    """The I/O of the neighbour may be small or a stream: its counters do not show which."""
    ABSORBED = "absorbed"
    """An accelerator or write cache takes the small writes of the neighbour in."""
    JOB_GONE = "job-gone"
    """The job has stopped, so its files are not read."""
    JOB_IDLE = "job-idle"
    """The job was not seen at work just now. The move waits until it is, or until the job counts as stopped."""
    JOB_ELSEWHERE = "job-elsewhere"
    """The job does not work in the directory now."""
    OLD_RELEASE = "old-release"
    POLICY_FAILED = "policy-failed"
    """The policy raised an error, or returned no plan."""
    # acts: the daemon and the file system as a whole
    PAUSED = "paused"
    PAUSE_FILE = "pause-file"
    DRY_RUN = "dry-run"
    MAINTENANCE_WINDOW = "maintenance-window"
    STOPPING = "stopping"
    CLAIM_HELD = "claim-held"
    """Another tierd holds the claim of the file system."""
    CLAIM_LOST = "claim-lost"
    CLAIM_UNREADABLE = "claim-unreadable"
    NO_BROKER = "no-broker"
    """NATS does not answer, so movers on other nodes cannot be reached."""
    NO_MOVERS = "no-movers"
    # acts: one file or directory
    LIMIT = "limit"
    """A rate of ``[limits]`` is reached, so the move waits."""
    TARGET_CLOSED = "target-closed"
    """The move would place objects on a target that is drained, degraded or recovering, or creates no objects."""
    STREAMS = "streams"
    """Streams use the targets of a move that can wait."""
    PATH_CHANGED = "path-changed"
    IS_DIRECTORY = "is-directory"
    GROWN = "grown"
    HAS_LAYOUT = "has-layout"
    MIRRORS = "mirrors"
    """New files would no longer be mirrored."""
    CANNOT_BE_UNDONE = "cannot-be-undone"
    UNREADABLE = "unreadable"
    # orders, and moves from before a restart
    ORDER_LIMIT = "order-limit"
    OUT_OF_TIME = "out-of-time"
    OUT_OF_DATE = "out-of-date"
    REMEDIATION_OVER = "remediation-over"
    POOL_CHANGED = "pool-changed"
    # staging for a scheduler
    NO_PERMISSION = "no-permission"
    """The user of the job may not read or write the file."""
    LINKED = "linked"
    """The path goes through a symbolic link, or the file has several names."""
    # movers: the file or the destination, as examined just before a move
    NOT_A_FILE = "not-a-file"
    EXECUTABLE = "executable"
    GONE = "gone"
    IMMUTABLE = "immutable"
    APPEND_ONLY = "append-only"
    PINNED = "pinned"
    RELEASED = "released"
    ARCHIVING = "archiving"
    ARCHIVED_DIRTY = "archived-dirty"
    ARCHIVED = "archived"
    ARCHIVE_STATE = "archive-state"
    FOREIGN = "foreign"
    ERASURE_CODED = "erasure-coded"
    LAYOUT = "layout"
    MIRRORED = "mirrored"
    CHANGED = "changed"
    PROJECT = "project"
    WANTED_LAYOUT = "wanted-layout"
    ENCRYPTED = "encrypted"
    TIMES = "times"
    OVERSTRIPED = "overstriped"
    """``lfs migrate`` before 2.17 does not place several objects on one target (LU-18824)."""
    SEVERAL_OBJECTS = "several-objects"
    """The engine ``lfs`` does not move files with several objects; ``lease`` does."""
    TO_MDT = "to-mdt"
    """The engine ``lease`` does not move data to an MDT; ``lfs`` does."""
    NO_SUCH_POOL = "no-such-pool"
    EMPTY_POOL = "empty-pool"
    ROOM = "room"
    QUOTA = "quota"
    HALTED = "halted"
    """The mover has not begun it: acts are held back now."""


PLAN_REASONS = frozenset(takewhile(lambda reason: reason is not Reason.PAUSED, Reason))
"""Reasons of plans: ``tierd_refusals`` has each of them from the start, and any other once it occurs."""
REMEDIES = {
    Reason.NO_CHANGELOG: "register a changelog user on each MDT (lctl --device FSNAME-MDT0000 changelog_register)",
    Reason.NO_PATH: "check that tierd may resolve FIDs (lfs fid2path as root, no subdirectory mount)",
    Reason.ROOT_DIRECTORY: "have the job work in a directory of its own",
    Reason.NO_POOL: "make the pool (lctl pool_new, lctl pool_add), or name the right one in [small_files_to_flash]",
    Reason.POOL_ROTATES: "name the right pool in [small_files_to_flash]; for flash that reports itself as rotating: "
                         "lctl set_param osd-*.*.nonrotational=1 on its server",
    Reason.NO_LAYOUT: "check that tierd may read the layout there (lfs getstripe -d)",
    Reason.MDT_UNKNOWN: "check that tierd's mount reaches all MDTs (lfs df), and that they report service times in "
                        "mdt.*.job_stats (Lustre 2.14)",
    Reason.MDT_LIMIT: "raise the limit on the MDSs (lctl set_param -P lod.*.dom_stripesize=1M), or data_on_mdt"
                      ".largest_bytes",
    Reason.MDT_ROOM: "add metadata targets, remove files, or lower data_on_mdt.min_free",
    Reason.NODES_UNKNOWN: "name the scheduler of the jobs in [sense], or use Lustre 2.11 or newer, whose changelogs "
                          "have the NIDs of clients",
    Reason.NO_ROOM: "free space in the flash pool, add targets to it, or lower small_files_to_flash.reserve",
    Reason.SIZES_UNKNOWN: "tierd plans again once it has seen the sizes of some files",
    Reason.NOT_SMALL: "raise small_files_to_flash.sizing.largest_component_bytes, if flash is to hold such files",
    Reason.SIZES_MIXED: "have the job keep small and large files in different directories",
    Reason.OPTED_OUT: "the owner can take part again: setfattr -n user.tierd -v on DIRECTORY, and rm "
                      "DIRECTORY/.tierd-off",
    Reason.OPT_OUT_UNREADABLE: "mount the file system on tierd's node with -o user_xattr, and check that root may read "
                               "the directory (no root squash)",
    Reason.OTHER_MOVER: "stop the other mover, or wait until it has ended",
    Reason.OTHER_LAYOUT: "remove or change the default layout that is there (lfs setstripe -d)",
    Reason.LITTLE_TO_GAIN: "lower benefit.min_gain to act on smaller losses",
    Reason.UNCERTAIN_GAIN: "lower benefit.min_probability or min_probability_seen to act on less certain losses",
    Reason.MOVES_TOO_DEAR: "raise benefit.horizon_seconds if the neighbour stays longer",
    Reason.COOLING_DOWN: "tierctl apply repeats it now; verify.cooldown_seconds is the time to wait",
    Reason.MODE: "set act.mode, or the mode of the scope, to full or new-files-only",
    Reason.NOT_APPROVED: "tierctl apply carries the plan out, tierctl decline puts it aside for a day",
    Reason.REPORTED_ONLY: "add the kind to act.on",
    Reason.JOB_ELSEWHERE: "check that the changelogs record OPEN and CLOSE, and that the clocks of the servers agree",
}
"""What an administrator can do so that tierd acts, for reasons that an administrator can remove."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason for counters and programs, and a sentence with the particulars for people."""

    reason: Reason
    sentence: str
    what: str = ""
    """The directory, job, target or other thing it is about; "" where the reason alone says it."""

    def about(self, what: str) -> Refusal:
        """The refusal of one thing, which its sentence begins with.

        >>> str(Refusal(Reason.NO_POOL, "pool 'flash' has no targets").about("/proj/in"))
        "/proj/in: pool 'flash' has no targets"
        """
        return Refusal(self.reason, f"{what}: {self.sentence}", what)

    def __str__(self) -> str:
        return self.sentence


def sentence_of(refusal: Refusal | None) -> str:
    """The sentence; empty where nothing is refused."""
    return "" if refusal is None else refusal.sentence


def of_error(error: OSError, reason: Reason = Reason.UNREADABLE) -> Refusal:
    """The refusal of what could not be examined."""
    return Refusal(reason, error.strerror or str(error))
