"""Kinds of acts, outcomes of acts, and verdicts on acts.

The values are the words of the journal, of the labels of metrics and of ``--json``: they never change.
A journal may have a word of a later release. ``from_journal`` keeps such a word as it is. It equals no member, so
tierd shows and counts it, and bases no decision on it: the act is neither in force nor undone, and cannot be undone.
"""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False  # tierctl starts faster without typing
if TYPE_CHECKING:
    from typing import Self


class _JournalWord(StrEnum):
    """A column of the journal with few words."""

    @classmethod
    def from_journal(cls, word: str) -> Self:
        """The member of that value; for an unknown word a value that is no member, and has the word as its text."""
        known = cls._value2member_map_.get(word)
        if isinstance(known, cls):
            return known
        unknown = str.__new__(cls, word)
        unknown._name_, unknown._value_ = "", word
        return unknown

    @property
    def known(self) -> bool:
        """Whether this release knows the word."""
        return self._name_ != ""


class ActKind(_JournalWord):
    """What an act changes."""

    SET_DEFAULT_LAYOUT = "set-default-layout"
    """The default layout of a directory, which new files in it get."""
    SET_DEFAULT_STRIPING = "set-default-striping"
    """The default striping of a directory over MDTs, which new subdirectories get."""
    MIGRATE = "migrate"
    """The layout of one file; its data moves."""
    ADVISE = "advise"
    """Nothing. A person may do it by hand, so it is planned and reported, and never carried out."""


class Outcome(_JournalWord):
    """How an act ended. The journal has NULL for UNDER_WAY."""

    UNDER_WAY = "under way"
    """It has not ended, or tierd was killed during it."""
    DONE = "done"
    DRY_RUN = "dry-run"
    """tierd would have done it."""
    ALREADY = "already"
    """The file had the layout before."""
    REFUSED = "refused"
    """tierd did not try it. The detail has the reason."""
    GAVE_WAY = "gave-way"
    """Somebody used or changed the file meanwhile. The file is as they left it."""
    FAILED = "failed"
    """Lustre reported an error. The file or directory is unchanged."""
    DOUBTFUL = "doubtful"
    """The file is not as expected after its move. The circuit breaker stops all moves."""
    GONE = "gone"
    """The file or directory was removed or replaced."""
    INTERRUPTED = "interrupted"
    """tierd ended during the act, which did not take effect, or cannot be examined."""
    UNDOING = "undoing"
    """The undo of the act is under way."""
    UNDONE = "undone"


class Verdict(_JournalWord):
    """The effect of the acts for one finding."""

    NONE = ""
    """There is no verdict yet, or nothing to judge."""
    TOO_EARLY = "too-early"
    HELPED = "helped"
    DID_NOT_HELP = "did-not-help"
    HARMED_OTHERS = "harmed-others"
    CANNOT_TELL = "cannot-tell"
    """A job has ended, or the figures are in doubt."""
    UNDONE_BY_HAND = "taken-back"
    """An administrator undid the acts."""


JUDGED_VERDICTS = (Verdict.HELPED, Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS, Verdict.CANNOT_TELL)
"""Verdicts that a measurement can give."""
